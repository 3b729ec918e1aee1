package bir

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/arena"
)

// memberText is the text of a member that the tables do not explain.
func (r *Reader) memberText(key, value span) arena.Name {
	k := r.unquote(key)
	if len(k) > 0 && k[0] == '/' {
		return r.pointerText("", key, value)
	}
	r.text, _ = jsontext.AppendQuote(r.text[:0], k)
	r.text = append(append(r.text, ':'), r.raw(value)...)
	return r.m.Names.InternBytes(r.text)
}

// bagText is memberText for an attributes bag.
func (r *Reader) bagText(key, value span) arena.Name {
	if k := r.unquote(key); len(k) > 0 && k[0] == '/' {
		return r.pointerText("/attributes", key, value)
	}
	return r.memberText(key, value)
}

// pointerText is the text of a member prefix/key of an owner.
func (r *Reader) pointerText(prefix string, key, value span) arena.Name {
	r.path = append(append(r.path[:0], prefix...), '/')
	r.path = appendSegment(r.path, r.unquote(key))
	r.text, _ = jsontext.AppendQuote(r.text[:0], r.path)
	r.text = append(append(r.text, ':'), r.raw(value)...)
	return r.m.Names.InternBytes(r.text)
}

// appendSegment appends one segment of a JSON pointer.
func appendSegment[B ~[]byte | ~string](dst []byte, s B) []byte {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, s[i])
		}
	}
	return dst
}

type textName struct {
	name     arena.Name
	off, end int
}

// sortExtras brings the texts of one owner into order and refuses a key that occurs twice.
func (r *Reader) sortExtras(l []arena.Name, at int) {
	if len(l) < 2 || r.err != nil {
		return
	}
	r.text, r.sortSpans = r.text[:0], r.sortSpans[:0]
	for _, n := range l {
		off := len(r.text)
		r.text = r.m.Names.Append(r.text, n)
		r.sortSpans = append(r.sortSpans, textName{n, off, len(r.text)})
	}
	slices.SortStableFunc(r.sortSpans, func(a, b textName) int { return bytes.Compare(r.text[a.off:a.end], r.text[b.off:b.end]) })
	prev := []byte(nil)
	for i, s := range r.sortSpans {
		t := r.text[s.off:s.end]
		if k := t[:stringEnd(t)]; len(k) > 0 && len(k) < len(t) { // a member, not an element of a list
			if bytes.Equal(k, prev) {
				r.fail(at, "the object has the key %s twice", k)
			}
			prev = k
		}
		l[i] = s.name
	}
}
