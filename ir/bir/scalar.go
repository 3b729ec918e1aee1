package bir

import (
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// parseInt reads a JSON number that is an integer, also one written with a fraction or exponent as long as float64 holds
// it exactly.
func parseInt(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	d := b
	if neg {
		d = b[1:]
	}
	if len(d) == 0 || len(d) > 19 {
		return parseIntegral(b)
	}
	v := uint64(0)
	for _, c := range d {
		if c -= '0'; c > 9 {
			return parseIntegral(b)
		}
		v = v*10 + uint64(c)
	}
	switch {
	case !neg && v <= math.MaxInt64:
		return int64(v), true
	case neg && v <= 1<<63:
		return -int64(v), true
	}
	return 0, false
}

func parseIntegral(b []byte) (int64, bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// parseUint is parseInt for the full unsigned range.
func parseUint(b []byte) (uint64, bool) {
	if v, ok := parseInt(b); ok {
		return uint64(v), v >= 0
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	return v, err == nil
}

// parseFloat gives the float32 bits of a JSON number; false when it is beyond the type's range.
func parseFloat(b []byte) (uint32, bool) {
	f, err := strconv.ParseFloat(string(b), 32)
	return math.Float32bits(float32(f)), err == nil
}

// parseFloatWord gives the float32 bits of what a JSON string may say about a float.
func parseFloatWord(s []byte) (uint32, bool) {
	switch string(s) {
	case "nan", "NaN":
		return 0x7fc00000, true
	case "inf", "+inf", "Infinity", "+Infinity":
		return math.Float32bits(float32(math.Inf(1))), true
	case "-inf", "-Infinity":
		return math.Float32bits(float32(math.Inf(-1))), true
	}
	if len(s) > 2 && s[0] == '0' && s[1] == 'x' {
		v, err := strconv.ParseUint(string(s[2:]), 16, 32)
		return uint32(v), err == nil
	}
	return 0, false
}

// intRange is the values of an integer type up to 32 bits.
func intRange(d target.Dtype) (lo, hi int64) {
	bits := 8 * d.Size()
	if d.Class() == target.ClassUint {
		return 0, 1<<bits - 1
	}
	return -1 << (bits - 1), 1<<(bits-1) - 1
}

// cursor walks a value whose grammar has been checked.
type cursor struct {
	b  []byte
	i  int // next byte
	at int // start of the token taken last
}

// next takes a token: its first byte, '0' for numbers, 0 at the end.
func (c *cursor) next() byte {
	for c.i < len(c.b) {
		switch k := c.b[c.i]; k {
		case ' ', '\t', '\r', '\n', ':', ',':
			c.i++
			continue
		case '{', '}', '[', ']':
			c.at = c.i
			c.i++
			return k
		case '"':
			c.at = c.i
			c.i += stringEnd(c.b[c.i:])
			return k
		default:
			c.at = c.i
			for c.i++; c.i < len(c.b); c.i++ {
				if x := c.b[c.i]; x == ',' || x == ']' || x == '}' || x <= ' ' {
					break
				}
			}
			if k == '-' || k-'0' < 10 {
				return '0'
			}
			return k
		}
	}
	return 0
}

// token is the text of the token taken last.
func (c *cursor) token() []byte { return c.b[c.at:c.i] }

// stringEnd is the length of the JSON string that b begins with; 0 when there is none.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}
