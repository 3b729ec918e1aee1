package bir

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/arena"
)

// next takes a token. Its kind is its first byte, '0' for numbers; 0 after an error.
func (r *Reader) next() byte {
	if r.err != nil {
		return 0
	}
	i := r.end
	if _, err := r.dec.ReadToken(); err != nil {
		r.syntax(err)
		return 0
	}
	r.end = r.base + int(r.dec.InputOffset())
	for {
		switch c := r.data[i]; c {
		case ' ', '\t', '\r', '\n', ':', ',':
			i++
			continue
		default:
			r.start = i
			if c == '-' || c-'0' < 10 {
				c = '0'
			}
			r.kind = c
			return c
		}
	}
}

// skip completes the value that the token at hand begins and gives its place.
func (r *Reader) skip() span {
	s := span{r.start, r.end}
	if r.kind == '{' || r.kind == '[' {
		for depth := 1; depth > 0; {
			switch r.next() {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case 0:
				return span{}
			}
		}
		s.end = r.end
	}
	return s
}

// value takes a whole value.
func (r *Reader) value() span {
	r.next()
	return r.skip()
}

func (r *Reader) raw(s span) []byte { return r.data[s.off:s.end] }

// object takes the opening brace of an object.
func (r *Reader) object() bool { return r.expect('{') }

func (r *Reader) array() bool { return r.expect('[') }

func (r *Reader) expect(kind byte) bool {
	r.next()
	return r.is(kind)
}

// is checks the kind of the token at hand.
func (r *Reader) is(kind byte) bool {
	if r.kind != kind && r.err == nil {
		r.fail(r.start, "expected %s, found %s", kindName(kind), kindName(r.kind))
	}
	return r.kind == kind && r.err == nil
}

func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't':
		return "true"
	case 'f':
		return "false"
	case 'n':
		return "null"
	}
	return fmt.Sprintf("%q", kind)
}

// member takes the name of the next member into key, and reports whether there is one.
func (r *Reader) member() bool {
	if r.next() != '"' {
		return false
	}
	r.keyAt = span{r.start, r.end}
	r.key = r.unquote(r.keyAt)
	return true
}

// element takes the first token of the next element of an array, and reports whether there is one.
func (r *Reader) element() bool {
	k := r.next()
	return k != ']' && k != 0
}

// unquote is the text of a string; it may lie in r.unquoted, which the next call overwrites.
func (r *Reader) unquote(s span) []byte {
	b := r.data[s.off+1 : s.end-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var err error
	if r.unquoted, err = jsontext.AppendUnquote(r.unquoted[:0], r.data[s.off:s.end]); err != nil {
		r.fail(s.off, "%v", err)
	}
	return r.unquoted
}

// str takes a string.
func (r *Reader) str() []byte {
	if !r.expect('"') {
		return nil
	}
	return r.unquote(span{r.start, r.end})
}

func (r *Reader) name() arena.Name { return r.m.Names.InternBytes(r.str()) }

// someName takes a string that may not be empty.
func (r *Reader) someName() arena.Name {
	n := r.name()
	if n == 0 {
		r.fail(r.start, "the name is empty")
	}
	return n
}

// nameHere is the name of the string at hand.
func (r *Reader) nameHere() arena.Name {
	if !r.is('"') {
		return 0
	}
	return r.m.Names.InternBytes(r.unquote(span{r.start, r.end}))
}

// int takes an integer in [lo, hi].
func (r *Reader) int(lo, hi int64) int64 {
	r.next()
	return r.intHere(lo, hi)
}

func (r *Reader) intHere(lo, hi int64) int64 {
	if !r.is('0') {
		return 0
	}
	v, ok := parseInt(r.data[r.start:r.end])
	if !ok || v < lo || v > hi {
		r.fail(r.start, "%s is not an integer from %d to %d", r.data[r.start:r.end], lo, hi)
		return 0
	}
	return v
}

func (r *Reader) bool() bool {
	switch k := r.next(); k {
	case 't':
		return true
	case 'f', 0:
		return false
	default:
		if b := r.data[r.start:r.end]; len(b) == 1 && (b[0] == '0' || b[0] == '1') {
			return b[0] == '1'
		}
		r.fail(r.start, "expected true or false, found %s", kindName(k))
		return false
	}
}

// enumOf takes the name of an enumeration's member.
func enumOf[T any](r *Reader, what string, parse func(string) (T, bool)) T {
	s := r.str()
	v, ok := parse(view(s))
	if !ok && r.err == nil {
		r.fail(r.start, "unknown %s %q", what, s)
	}
	return v
}

// view is the bytes as a string, for a call that reads it and keeps nothing.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// once reports a member that an object has twice.
func (r *Reader) once(seen *uint32, bit uint) {
	if *seen>>bit&1 != 0 {
		r.fail(r.keyAt.off, "the object has the key twice")
	}
	*seen |= 1 << bit
}
