package ir

import (
	"math"
	"strconv"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// scanner reads the words of one line of text IR. A word is a run of bytes without space and without the punctuation
// ( ) [ ] { } , ; a quoted string is one word with its quotes. Errors carry line and column and are kept: after the first
// one every read gives nothing.
type scanner struct {
	src  []byte
	pos  int // start of the next unread byte
	bol  int // start of the line
	end  int // end of the line, at its newline or the end of the text
	line int
	err  error
}

// next moves to the next line that is not empty and not a comment (#), and reports whether there is one.
func (s *scanner) nextLine() bool {
	for s.err == nil {
		if s.line > 0 {
			s.end++
		}
		if s.end >= len(s.src) {
			return false
		}
		s.bol, s.pos = s.end, s.end
		s.line++
		for s.end < len(s.src) && s.src[s.end] != '\n' {
			s.end++
		}
		s.space()
		if s.pos < s.end && s.src[s.pos] != '#' {
			return true
		}
	}
	return false
}

func (s *scanner) space() {
	for s.pos < s.end && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t' || s.src[s.pos] == '\r') {
		s.pos++
	}
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		args = append([]any{s.line, s.pos - s.bol + 1}, args...)
		s.err = target.Errorf(target.User, "%d:%d: "+format, args...)
	}
}

func punct(c byte) bool {
	switch c {
	case '(', ')', '[', ']', '{', '}', ',':
		return true
	}
	return false
}

// peek is the next word without taking it; empty at the end of the line.
func (s *scanner) peek() []byte {
	if s.err != nil {
		return nil
	}
	s.space()
	if s.pos >= s.end {
		return nil
	}
	i := s.pos
	if punct(s.src[i]) {
		return s.src[i : i+1]
	}
	if s.src[i] == '"' {
		for i++; i < s.end && s.src[i] != '"'; i++ {
			if s.src[i] == '\\' {
				i++
			}
		}
		return s.src[s.pos:min(i+1, s.end)]
	}
	for i < s.end && !punct(s.src[i]) && s.src[i] != ' ' && s.src[i] != '\t' && s.src[i] != '\r' && s.src[i] != '"' {
		i++
	}
	return s.src[s.pos:i]
}

func (s *scanner) take() []byte {
	w := s.peek()
	s.pos += len(w)
	return w
}

// is takes the next word if it is w.
func (s *scanner) is(w string) bool {
	if p := s.peek(); string(p) == w {
		s.pos += len(p)
		return true
	}
	return false
}

func (s *scanner) want(w string) {
	if !s.is(w) {
		s.fail("expected %q, found %q", w, s.peek())
	}
}

func (s *scanner) done() {
	if w := s.peek(); len(w) != 0 {
		s.fail("unexpected %q at the end of the line", w)
	}
}

func (s *scanner) quoted() string {
	w := s.peek()
	if s.err != nil {
		return ""
	}
	str, err := strconv.Unquote(string(w))
	if err != nil || w[0] != '"' {
		s.fail("expected a quoted string, found %q", w)
		return ""
	}
	s.pos += len(w)
	return str
}

// plain is a quoted string without escapes, as it stands in the text; ok is false for any other word, which stays.
func (s *scanner) plain() (text []byte, ok bool) {
	w := s.peek()
	if s.err != nil || len(w) < 2 || w[0] != '"' || w[len(w)-1] != '"' {
		return nil, false
	}
	for _, c := range w[1 : len(w)-1] {
		if c < ' ' || c >= 0x7F || c == '\\' || c == '"' {
			return nil, false
		}
	}
	s.pos += len(w)
	return w[1 : len(w)-1], true
}

// number parses w as a decimal integer in [lo, hi].
func (s *scanner) number(w []byte, lo, hi int64) int64 {
	if s.err != nil {
		return 0
	}
	v, err := strconv.ParseInt(string(w), 10, 64)
	if err != nil {
		s.fail("expected an integer, found %q", w)
		return 0
	}
	if v < lo || v > hi {
		s.fail("%d is outside %d to %d", v, lo, hi)
		return 0
	}
	return v
}

func (s *scanner) int(lo, hi int64) int64 {
	v := s.number(s.peek(), lo, hi)
	s.take()
	return v
}

// id takes a number behind a prefix, which must lie in [1, limit).
func (s *scanner) id(prefix string, limit int) uint32 {
	w := s.peek()
	if len(w) <= len(prefix) || string(w[:len(prefix)]) != prefix {
		s.fail("expected %sN, found %q", prefix, w)
		return 0
	}
	v := s.number(w[len(prefix):], 1, int64(limit)-1)
	s.take()
	return uint32(v)
}

// floatBits parses a float or its bits in hex.
func (s *scanner) floatBits(w []byte) uint32 {
	if s.err != nil {
		return 0
	}
	if len(w) > 2 && w[0] == '0' && w[1] == 'x' {
		v, err := strconv.ParseUint(string(w[2:]), 16, 32)
		if err != nil {
			s.fail("expected the bits of a float, found %q", w)
		}
		return uint32(v)
	}
	f, err := strconv.ParseFloat(string(w), 32)
	if err != nil {
		s.fail("expected a float, found %q", w)
		return 0
	}
	return math.Float32bits(float32(f))
}

func enum[T ~uint8](s *scanner, what string, find func(string) (T, bool)) T {
	w := s.peek()
	if s.err != nil {
		return 0
	}
	v, ok := find(unsafe.String(unsafe.SliceData(w), len(w))) // no finder keeps the word
	if !ok {
		s.fail("unknown %s %q", what, w)
		return 0
	}
	s.take()
	return v
}

// flags takes words as long as they are among names.
func (s *scanner) flags(names []string) (bits uint32) {
	for s.err == nil {
		w := string(s.peek())
		found := false
		for i, n := range names {
			if n == w {
				bits |= 1 << i
				found = true
			}
		}
		if !found {
			return bits
		}
		s.take()
	}
	return bits
}

// ints takes a bracketed list of integers.
func (s *scanner) ints(dst []int64) []int64 {
	s.want("[")
	for s.err == nil && !s.is("]") {
		dst = append(dst, s.int(math.MinInt64, math.MaxInt64))
	}
	return dst
}
