package hlo

import (
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// floatKind says what a format does beyond finite numbers.
type floatKind uint8

const (
	kindIEEE   floatKind = iota + 1 // infinities and NaNs in the top exponent
	kindFN                          // no infinity; all ones is NaN; overflow is NaN
	kindFNUZ                        // no infinity, no -0; the code of -0 is NaN; overflow is NaN
	kindFinite                      // neither infinity nor NaN; overflow saturates
	kindPower                       // an exponent alone, no sign, no zero; all ones is NaN
)

// floatFormat is the layout of a float of at most 32 bits: a sign (but for kindPower), exp and man bits.
type floatFormat struct {
	exp, man, bias int
	kind           floatKind
}

var floatFormats = [graph.NumDtypes]floatFormat{
	graph.F4E2M1:        {2, 1, 1, kindFinite},
	graph.F8E3M4:        {3, 4, 3, kindIEEE},
	graph.F8E4M3:        {4, 3, 7, kindIEEE},
	graph.F8E4M3FN:      {4, 3, 7, kindFN},
	graph.F8E4M3FNUZ:    {4, 3, 8, kindFNUZ},
	graph.F8E4M3B11FNUZ: {4, 3, 11, kindFNUZ},
	graph.F8E5M2:        {5, 2, 15, kindIEEE},
	graph.F8E5M2FNUZ:    {5, 2, 16, kindFNUZ},
	graph.F8E8M0:        {8, 0, 127, kindPower},
	graph.BF16:          {8, 7, 127, kindIEEE},
	graph.F16:           {5, 10, 15, kindIEEE},
	graph.F32:           {8, 23, 127, kindIEEE},
}

// nan is the quiet NaN, or the only one.
func (f floatFormat) nan() uint64 {
	switch f.kind {
	case kindIEEE:
		return (1<<f.exp-1)<<f.man | 1<<(f.man-1)
	case kindFN:
		return 1<<(f.exp+f.man) - 1
	case kindFNUZ:
		return 1 << (f.exp + f.man)
	case kindPower:
		return 1<<f.exp - 1
	}
	return 0
}

// encode rounds x to the nearest code, ties to even.
func (f floatFormat) encode(x float64) uint64 {
	neg := math.Signbit(x)
	sign := uint64(0)
	if neg {
		sign = 1 << (f.exp + f.man)
	}
	a := math.Abs(x)
	switch {
	case x != x:
		if f.kind == kindIEEE || f.kind == kindFN {
			return sign | f.nan()
		}
		return f.nan()
	case f.kind == kindPower:
		if neg || a == 0 || math.IsInf(a, 0) {
			return f.nan()
		}
	case a == 0:
		if f.kind == kindFNUZ {
			return 0
		}
		return sign
	}
	var code, top uint64 // top is the largest finite code
	switch f.kind {
	case kindIEEE:
		top = (1<<f.exp-1)<<f.man - 1
	case kindFN, kindPower:
		top = f.nan() - 1
	default:
		top = 1<<(f.exp+f.man) - 1
	}
	if math.IsInf(a, 0) {
		code = top + 1
	} else {
		_, e := math.Frexp(a)
		e-- // a = 1.… · 2^e
		low := 1 - f.bias
		if f.kind == kindPower {
			low = -f.bias
		}
		e = max(e, low)
		q := uint64(math.RoundToEven(math.Ldexp(a, f.man-e)))
		// Below 2^man the number is subnormal and q is its code; a carry out of the mantissa adds to the exponent by itself.
		if code = q; f.kind == kindPower {
			code = uint64(e+f.bias) + max(q, 1) - 1
		} else if q >= 1<<f.man {
			code = uint64(e+f.bias)<<f.man + q - 1<<f.man
		}
	}
	if code > top {
		switch f.kind {
		case kindIEEE:
			return sign | (top + 1)
		case kindFinite:
			return sign | top
		}
		return f.nan()
	}
	if code == 0 && f.kind == kindFNUZ {
		return 0
	}
	return sign | code
}

// decode is the value of a code.
func (f floatFormat) decode(code uint64) float64 {
	if f.kind == kindPower {
		if code == f.nan() {
			return math.NaN()
		}
		return math.Ldexp(1, int(code)-f.bias)
	}
	neg := code>>(f.exp+f.man)&1 != 0
	m := code & (1<<(f.exp+f.man) - 1)
	var v float64
	e, frac := int(m>>f.man), m&(1<<f.man-1)
	switch {
	case f.kind == kindIEEE && e == 1<<f.exp-1:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	case f.kind == kindFN && m == f.nan(), f.kind == kindFNUZ && code == f.nan():
		v = math.NaN()
	case e == 0:
		v = math.Ldexp(float64(frac), 1-f.bias-f.man)
	default:
		v = math.Ldexp(float64(frac|1<<f.man), e-f.bias-f.man)
	}
	if neg {
		v = math.Copysign(v, -1)
	}
	return v
}

// str looks at bytes as a string for the length of one call.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// pow10 are the powers of ten that are exact in float64.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
	1e21, 1e22}

// parseFloat reads a decimal or hexadecimal float, inf or nan. Short decimals whose digits and power of ten are exact in float64 take one
// multiplication or division, which rounds once (Clinger 1990); the rest goes to strconv. bitSize 32 asks for a value that is
// correctly rounded to float32.
func parseFloat(b []byte, bitSize int) (float64, bool) {
	var m uint64
	i, exp, digits := 0, 0, 0
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		i++
	}
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		m = m*10 + uint64(b[i]-'0')
		digits++
	}
	if i < len(b) && b[i] == '.' {
		i++
		for ; i < len(b) && b[i]-'0' < 10; i++ {
			m = m*10 + uint64(b[i]-'0')
			digits++
			exp--
		}
	}
	if digits > 0 && digits <= 19 && i < len(b) && b[i] == 'e' {
		j := i + 1
		eneg := j < len(b) && b[j] == '-'
		if j < len(b) && (b[j] == '-' || b[j] == '+') {
			j++
		}
		e, first := 0, j
		for ; j < len(b) && j < first+4 && b[j]-'0' < 10; j++ {
			e = e*10 + int(b[j]-'0')
		}
		if j > first {
			i = j
			if eneg {
				e = -e
			}
			exp += e
		}
	}
	// For float32 the product is exact only when the power of ten is 1: otherwise two roundings could differ from one.
	limit := uint64(1) << 53
	if bitSize == 32 && exp != 0 {
		limit = 0
	}
	if i == len(b) && digits > 0 && digits <= 19 && m < limit && exp >= -22 && exp <= 22 {
		v := float64(m)
		if exp < 0 {
			v /= pow10[-exp]
		} else {
			v *= pow10[exp]
		}
		if bitSize == 32 {
			v = float64(float32(v))
		}
		if neg {
			v = -v
		}
		return v, true
	}
	for _, c := range b {
		if c == '_' {
			return 0, false // strconv takes it in hexadecimal; HLO does not
		}
	}
	v, err := strconv.ParseFloat(str(b), bitSize)
	if err != nil {
		// Too large is infinity, as in XLA; anything else is not a number.
		if math.IsInf(v, 0) && len(b) > 0 {
			return v, true
		}
		return 0, false
	}
	return v, true
}

// parseInt reads a decimal integer of the given type into its two's complement bits.
func parseInt(b []byte, d graph.Dtype) (uint64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		if c-'0' >= 10 {
			return 0, false
		}
		hi, lo := bits.Mul64(v, 10)
		sum, carry := bits.Add64(lo, uint64(c-'0'), 0)
		if hi+carry != 0 {
			return 0, false
		}
		v = sum
	}
	w := d.Bits()
	if d.Signed() {
		half := uint64(1) << (w - 1)
		if neg && v > half || !neg && v >= half {
			return 0, false
		}
		if neg {
			v = -v
		}
		return v & mask(8*d.Size()), true
	}
	if neg && v != 0 || v&^mask(w) != 0 {
		return 0, false
	}
	return v, true
}

func mask(w int) uint64 {
	if w >= 64 {
		return math.MaxUint64
	}
	return 1<<w - 1
}
