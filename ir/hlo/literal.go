package hlo

import (
	"bytes"
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// literal reads what stands between the brackets of constant(…) and adds it to the constants. Elements are counted as they come: equal
// ones are only counted, and bytes are kept from the first one that differs.
func (r *Reader) literal(t graph.Type) (graph.Const, bool) {
	g := r.g
	row := g.Types.At(t)
	dt := row.Dtype
	start := r.p
	if dt.Size() == 0 {
		return 0, r.fail(target.Unsupported, "constant of type "+dt.String(), start, "a constant of type %s", dt)
	}
	r.space()
	if bytes.HasPrefix(r.d[r.p:], []byte("{...}")) {
		r.p += 5
		return g.Consts.Add(graph.ConstRow{Kind: graph.ConstElided}), true
	}
	dims := g.Ints.Of(row.Dims)
	want := g.Elements(t)
	size := dt.Size()
	if cap(r.counts) < maxRank+1 {
		r.counts = make([]int64, maxRank+1)
	}
	counts := r.counts[:len(dims)+1]
	var (
		depth       int
		n           int64
		first, last element
		dense       bool
		mark        = g.Bytes.Mark()
	)
	for {
		r.space()
		off := r.p
		switch {
		case r.take('{'):
			if depth == len(dims) {
				return 0, r.errorf(off, "the literal nests deeper than its %d dimensions", len(dims))
			}
			if depth > 0 {
				counts[depth]++
			}
			depth++
			counts[depth] = 0
			r.space()
			if r.peek() != '}' {
				continue
			}
		default:
			if depth != len(dims) {
				return 0, r.errorf(off, "expected '{' at depth %d of a literal with %d dimensions, found %s", depth+1, len(dims), r.found(off))
			}
			var ok bool
			if last, ok = r.element(dt); !ok {
				return 0, false
			}
			counts[depth]++
			if n == 0 {
				first = last
			}
			if !dense && n < want && (last != first || size > 8 || dt == graph.C64) {
				if uint64(want)*uint64(size)+uint64(mark) > math.MaxUint32 {
					return 0, r.fail(target.Limit, "", start, "a literal of %d elements does not fit beside %d bytes of other literals", want, mark)
				}
				dense = true
				for range n {
					r.push(first, size)
				}
			}
			if dense && n < want {
				r.push(last, size)
			}
			n++
		}
		for depth > 0 {
			r.space()
			if r.take(',') {
				break
			}
			if !r.take('}') {
				return 0, r.expected(r.p, "',' or '}' in a literal")
			}
			if c := counts[depth]; c != dims[depth-1] && want > 0 {
				return 0, r.errorf(r.p-1, "dimension %d of the literal has %d entries, its type says %d", depth-1, c, dims[depth-1])
			}
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if n != want {
		return 0, r.errorf(start, "the literal has %d elements, its type says %d", n, want)
	}
	k := graph.ConstRow{Kind: graph.ConstSplat, Bits: first.lo}
	if dense {
		k = graph.ConstRow{Kind: graph.ConstDense, Data: g.Bytes.Since(mark)}
	}
	return g.Consts.Add(k), true
}

// element is the little-endian bits of one element of at most 16 bytes.
type element struct{ lo, hi uint64 }

func (r *Reader) push(e element, size int) {
	b := &r.g.Bytes
	v := e.lo
	for i := range size {
		if i == 8 {
			v = e.hi
		}
		b.Push(byte(v))
		v >>= 8
	}
}

// element reads one number, truth value or complex pair.
func (r *Reader) element(dt graph.Dtype) (element, bool) {
	start := r.p
	if dt == graph.C64 || dt == graph.C128 {
		part := graph.F32
		if dt == graph.C128 {
			part = graph.F64
		}
		if !r.take('(') {
			return element{}, r.expected(start, "a complex number such as (1, 2)")
		}
		r.space()
		re, ok := r.scalar(part)
		if !ok {
			return element{}, false
		}
		r.space()
		if !r.take(',') {
			return element{}, r.expected(r.p, "',' in a complex number")
		}
		r.space()
		im, ok := r.scalar(part)
		if !ok {
			return element{}, false
		}
		r.space()
		if !r.take(')') {
			return element{}, r.expected(r.p, "')' after a complex number")
		}
		if dt == graph.C64 {
			return element{lo: re | im<<32}, true
		}
		return element{re, im}, true
	}
	v, ok := r.scalar(dt)
	return element{lo: v}, ok
}

func (r *Reader) scalar(dt graph.Dtype) (uint64, bool) {
	start := r.p
	b := r.ident()
	switch {
	case dt == graph.Bool:
		switch string(b) {
		case "true", "1":
			return 1, true
		case "false", "0":
			return 0, true
		}
		return 0, r.expected(start, "true or false")
	case dt.IsInt():
		if v, ok := parseInt(b, dt); ok {
			return v, true
		}
		return 0, r.expected(start, "a number of type "+dt.String())
	}
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if string(b) == "nan" {
		return r.nan(dt, neg)
	}
	size := 64
	if dt == graph.F32 {
		size = 32
	}
	v, ok := parseFloat(b, size)
	if !ok || len(b) > 0 && b[0] == '-' {
		return 0, r.expected(start, "a number of type "+dt.String())
	}
	if neg {
		v = -v
	}
	bits, _ := graph.EncodeFloat(dt, v)
	return bits, true
}

// nan reads what may follow the word: a payload, the bits of the mantissa, as in nan(0x400001).
func (r *Reader) nan(dt graph.Dtype, neg bool) (uint64, bool) {
	code, _ := graph.EncodeFloat(dt, math.NaN())
	man := nanBits[dt]
	if neg && hasNegNaN(dt) {
		code |= 1 << (dt.Bits() - 1)
	}
	if dt == graph.F64 || dt == graph.F32 {
		code = code&^mask(man) | 1<<(man-1) // Go's NaN has a payload of its own
	}
	if !r.take('(') {
		return code, true
	}
	start := r.p
	b := r.ident()
	var v uint64
	ok := len(b) > 2 && len(b) <= 18 && b[0] == '0' && b[1] == 'x'
	for i := 2; i < len(b) && ok; i++ {
		c := b[i] | 0x20
		switch {
		case c-'0' < 10:
			v = v<<4 | uint64(c-'0')
		case c-'a' < 6:
			v = v<<4 | uint64(c-'a'+10)
		default:
			ok = false
		}
	}
	if !ok || v == 0 || v > mask(man) || !r.take(')') {
		return 0, r.expected(start, "the payload of a nan, such as 0x400001)")
	}
	return code&^mask(man) | v, true
}
