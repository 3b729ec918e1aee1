package hlo

import (
	"bytes"
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

const (
	cName  uint8 = 1 << iota // may stand in a name
	cDigit                   // 0-9
	cSpace
	cOpen // ( [ {
	cClose
	cQuote
	cSlash
)

// class sorts the bytes. Names are wider than XLA's own: whatever cannot start something else may stand in one.
var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9':
			t[c] = cName | cDigit
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
			t[c] = cName
		}
	}
	for _, c := range "_.-$@#+~!^&|" {
		t[c] |= cName
	}
	for _, c := range " \t\r\n" {
		t[c] |= cSpace
	}
	for _, c := range "([{" {
		t[c] |= cOpen
	}
	for _, c := range ")]}" {
		t[c] |= cClose
	}
	t['"'] |= cQuote
	t['/'] |= cSlash
	return t
}()

// errorf records the first error and returns false, so that a parser can say return r.errorf(…).
func (r *Reader) errorf(off int, format string, args ...any) bool {
	return r.fail(target.User, "", off, format, args...)
}

func (r *Reader) fail(c target.Class, subject string, off int, format string, args ...any) bool {
	if r.err != nil {
		return false
	}
	msg := fmt.Sprintf(format, args...)
	if len(r.inst) > 0 {
		msg = fmt.Sprintf("%%%s: %s", clip(r.inst, 80), msg)
	}
	off = min(off, len(r.d))
	line := 1 + bytes.Count(r.d[:off], []byte{'\n'})
	col := off - bytes.LastIndexByte(r.d[:off], '\n')
	r.err = &target.Error{Class: c, Subject: subject, Err: fmt.Errorf("%d:%d: %s", line, col, msg)}
	return false
}

// expected is the error for text that is not what it should be.
func (r *Reader) expected(off int, what string) bool {
	return r.errorf(off, "expected %s, found %s", what, r.found(off))
}

// found quotes the text at off for a message.
func (r *Reader) found(off int) string {
	if off >= len(r.d) {
		return "the end of the text"
	}
	end := off
	for end < len(r.d) && end < off+24 && r.d[end] != '\n' {
		end++
	}
	if end == off {
		return "the end of the line"
	}
	return fmt.Sprintf("%q", r.d[off:end])
}

func clip(b []byte, n int) []byte { return b[:min(len(b), n)] }

// space skips white space and comments of both kinds. A comment that never ends swallows the rest.
func (r *Reader) space() {
	d, p := r.d, r.p
	for p < len(d) {
		c := class[d[p]]
		if c&cSpace != 0 {
			p++
			continue
		}
		if c&cSlash == 0 || p+1 >= len(d) {
			break
		}
		switch d[p+1] {
		case '*':
			if i := bytes.Index(d[p+2:], []byte("*/")); i >= 0 {
				p += i + 4
				continue
			}
			p = len(d)
		case '/':
			if i := bytes.IndexByte(d[p:], '\n'); i >= 0 {
				p += i + 1
				continue
			}
			p = len(d)
		}
		break
	}
	r.p = p
}

// peek is the byte at the cursor, 0 at the end.
func (r *Reader) peek() byte {
	if r.p < len(r.d) {
		return r.d[r.p]
	}
	return 0
}

// take moves over c if it is next.
func (r *Reader) take(c byte) bool {
	if r.p < len(r.d) && r.d[r.p] == c {
		r.p++
		return true
	}
	return false
}

// ident reads a name, empty when there is none. It does not skip space.
func (r *Reader) ident() []byte {
	d, p := r.d, r.p
	for p < len(d) && class[d[p]]&cName != 0 {
		p++
	}
	b := d[r.p:p]
	r.p = p
	return b
}

// name reads a name with or without its %.
func (r *Reader) name(what string) ([]byte, bool) {
	start := r.p
	if r.p < len(r.d) && r.d[r.p] == '%' {
		r.p++
	}
	b := r.ident()
	if len(b) == 0 {
		return nil, r.expected(start, what)
	}
	return b, true
}

// integer reads a signed decimal number.
func (r *Reader) integer(what string) (int64, bool) {
	d, start := r.d, r.p
	p := start
	neg := p < len(d) && d[p] == '-'
	if neg {
		p++
	}
	first := p
	var v uint64
	for p < len(d) && class[d[p]]&cDigit != 0 {
		if v > (1<<63)/10 {
			return 0, r.errorf(start, "%s is beyond 64 bits: %s", what, r.found(start))
		}
		v = v*10 + uint64(d[p]-'0')
		p++
	}
	if p == first {
		return 0, r.expected(start, what)
	}
	limit := uint64(1<<63 - 1)
	if neg {
		limit++
	}
	if v > limit {
		return 0, r.errorf(start, "%s is beyond 64 bits: %s", what, r.found(start))
	}
	r.p = p
	if neg {
		return -int64(v), true
	}
	return int64(v), true
}

// quoted reads a string and returns what is between the quotes, with its escapes.
func (r *Reader) quoted() (raw []byte, ok bool) {
	start := r.p
	if !r.take('"') {
		return nil, r.expected(start, "a string")
	}
	end := stringEnd(r.d, r.p)
	if end < 0 {
		return nil, r.errorf(start, "the string is never closed: %s", r.found(start))
	}
	raw = r.d[r.p : end-1]
	r.p = end
	return raw, true
}

// stringEnd returns the offset after the quote that closes a string whose first byte is at p, or -1.
func stringEnd(d []byte, p int) int {
	for first := p; ; {
		i := bytes.IndexByte(d[p:], '"')
		if i < 0 {
			return -1
		}
		q := p + i
		slashes := 0
		for q-slashes > first && d[q-slashes-1] == '\\' {
			slashes++
		}
		p = q + 1
		if slashes%2 == 0 {
			return p
		}
		first = p
	}
}

// balanced skips a bracket and all up to its partner; strings may hold anything. The kinds of bracket are not told apart.
func (r *Reader) balanced() bool {
	d, p := r.d, r.p
	depth := 0
	for p < len(d) {
		c := class[d[p]]
		p++
		if c&(cOpen|cClose|cQuote) == 0 {
			continue
		}
		if c&cOpen != 0 {
			depth++
			continue
		}
		if c&cQuote != 0 {
			end := stringEnd(d, p)
			if end < 0 {
				return r.errorf(p-1, "the string is never closed: %s", r.found(p-1))
			}
			p = end
			continue
		}
		if depth--; depth <= 0 {
			r.p = p
			return true
		}
	}
	return r.errorf(r.p, "the %q is never closed", d[r.p])
}

// value skips the value of an attribute: brackets, strings and words up to a comma, space or closing bracket.
func (r *Reader) value() bool {
	start := r.p
	for r.p < len(r.d) {
		b := r.d[r.p]
		c := class[b]
		switch {
		case c&cOpen != 0:
			if !r.balanced() {
				return false
			}
		case c&cQuote != 0:
			if _, ok := r.quoted(); !ok {
				return false
			}
		case b == ',' || c&(cSpace|cClose) != 0:
			if r.p == start {
				return r.expected(start, "a value")
			}
			return true
		default:
			r.p++
		}
	}
	if r.p == start {
		return r.expected(start, "a value")
	}
	return true
}

// unescape appends the text of a string to dst. It knows the escapes of C that XLA prints; any other stands for itself.
func unescape(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := c - '0'
			for k := 0; k < 2 && len(raw) > 0 && raw[0] >= '0' && raw[0] <= '7'; k++ {
				v = v<<3 | (raw[0] - '0')
				raw = raw[1:]
			}
			dst = append(dst, v)
		default:
			dst = append(dst, c)
		}
	}
}
