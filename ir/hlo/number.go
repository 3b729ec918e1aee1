package hlo

import (
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// nanBits are the mantissa bits of the types whose NaNs carry a payload.
var nanBits = [graph.NumDtypes]int{graph.F8E3M4: 4, graph.F8E4M3: 3, graph.F8E5M2: 2, graph.F16: 10, graph.BF16: 7, graph.F32: 23, graph.F64: 52}

// hasNegNaN are the types in which a NaN has a sign.
func hasNegNaN(d graph.Dtype) bool { return nanBits[d] > 0 || d == graph.F8E4M3FN }

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
		return v & mask(w), true
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
