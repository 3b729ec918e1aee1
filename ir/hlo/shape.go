package hlo

import (
	"bytes"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const (
	maxRank  = 64   // dimensions of one tensor
	maxDepth = 1024 // tuples in tuples
)

func (r *Reader) dtype(b []byte) (graph.Dtype, bool) {
	switch string(b) { // the common ones, at half the price of the map
	case "f32":
		return graph.F32, true
	case "bf16":
		return graph.BF16, true
	case "s32":
		return graph.S32, true
	case "pred":
		return graph.Bool, true
	case "f16":
		return graph.F16, true
	case "u32":
		return graph.U32, true
	}
	d, ok := graph.ParseDtype(b)
	if d == graph.Tuple { // our word, not HLO's
		return 0, false
	}
	return d, ok
}

// shape reads a type with or without its layout. A tuple type may nest; an explicit stack holds the open ones.
func (r *Reader) shape() (graph.Type, bool) {
	if r.peek() != '(' {
		return r.tensor()
	}
	g := r.g
	r.elems, r.marks = r.elems[:0], r.marks[:0]
	for {
		r.space()
		switch {
		case r.take('('):
			if len(r.marks) >= maxDepth {
				return 0, r.fail(target.Limit, "", r.p, "tuples nest deeper than %d", maxDepth)
			}
			r.marks = append(r.marks, uint32(len(r.elems)))
			r.space()
			if r.peek() != ')' {
				continue
			}
		default:
			t, ok := r.tensor()
			if !ok {
				return 0, false
			}
			r.elems = append(r.elems, t)
		}
		for {
			r.space()
			if r.take(',') {
				break
			}
			if !r.take(')') {
				return 0, r.expected(r.p, "',' or ')' in a tuple type")
			}
			m := r.marks[len(r.marks)-1]
			r.marks = r.marks[:len(r.marks)-1]
			t := g.TupleOf(r.elems[m:]...)
			if len(r.marks) == 0 {
				return t, true
			}
			r.elems = append(r.elems[:m], t)
		}
	}
}

// tensor reads an element type, dimensions and an optional layout.
func (r *Reader) tensor() (graph.Type, bool) {
	start := r.p
	word := r.ident()
	if len(word) == 0 {
		return 0, r.expected(start, "a type")
	}
	if r.peek() != '[' {
		return 0, r.expected(start, "a type such as f32[2,3]")
	}
	dt, ok := r.dtype(word)
	if !ok {
		return 0, r.fail(target.Unsupported, string(clip(word, 40)), start, "unknown element type %q", clip(word, 40))
	}
	r.p++
	r.dims = r.dims[:0]
	for d := r.d; ; {
		if r.p < len(d) && d[r.p] == ']' && len(r.dims) == 0 {
			break
		}
		if r.p < len(d) && class[d[r.p]]&cDigit == 0 {
			r.space()
			if r.p+1 < len(d) && d[r.p] == '<' && d[r.p+1] == '=' {
				r.p += 2
			}
			if r.peek() == '?' {
				return 0, r.fail(target.Unsupported, "unbounded dimension", r.p, "dimension ? has no bound; export the model with fixed or bounded shapes")
			}
		}
		v, ok := r.integer("a dimension")
		if !ok {
			return 0, false
		}
		if len(r.dims) >= maxRank {
			return 0, r.fail(target.Limit, "", start, "a tensor has more than %d dimensions", maxRank)
		}
		r.dims = append(r.dims, v)
		if r.p < len(d) && class[d[r.p]]&cSpace != 0 {
			r.space()
		}
		if r.take(',') {
			continue
		}
		if r.peek() != ']' {
			return 0, r.expected(r.p, "',' or ']' in the dimensions")
		}
		break
	}
	r.p++
	if !graph.CheckDims(r.dims) {
		return 0, r.fail(target.Limit, "", start, "type %s has more than 2^46 elements or a negative dimension", r.found(start))
	}
	if !r.layout() {
		return 0, false
	}
	return r.g.Tensor(dt, r.dims...), true
}

// layout skips a layout that follows the dimensions without a space: {1,0}, {1,0:T(8,128)(2,1)S(1)}.
func (r *Reader) layout() bool {
	if r.peek() != '{' {
		return true
	}
	i := bytes.IndexByte(r.d[r.p:], '}')
	if i < 0 {
		return r.errorf(r.p, "the layout is never closed")
	}
	r.p += i + 1
	return true
}

// skipShape moves over a type without looking at it: a tuple in brackets, or a word and dimensions, with its layout.
func (r *Reader) skipShape() bool {
	if r.peek() == '(' {
		return r.balanced()
	}
	start := r.p
	if len(r.ident()) == 0 || r.peek() != '[' {
		return r.expected(start, "a type")
	}
	return r.skipDims(start)
}

func (r *Reader) skipDims(start int) bool {
	i := bytes.IndexByte(r.d[r.p:], ']')
	if i < 0 {
		return r.errorf(start, "the dimensions are never closed: %s", r.found(start))
	}
	r.p += i + 1
	return r.layout()
}
