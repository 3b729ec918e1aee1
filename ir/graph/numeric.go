package graph

import (
	"encoding/binary"
	"math"
)

// floatFormat describes a floating-point type of at most 16 bits: sign (but for e8m0), exponent, mantissa.
type floatFormat struct {
	exp, man, bias int
	special        floatSpecial
}

type floatSpecial uint8

const (
	ieeeSpecial floatSpecial = iota // the top exponent is Inf and NaN
	fnSpecial                       // no Inf; all ones is NaN; overflow gives NaN
	fnuzSpecial                     // no Inf, no −0; the pattern of −0 is NaN; overflow gives NaN
	satSpecial                      // neither Inf nor NaN; overflow saturates
)

var smallFloats = [NumDtypes]floatFormat{
	F4E2M1: {2, 1, 1, satSpecial}, F8E3M4: {3, 4, 3, ieeeSpecial}, F8E4M3: {4, 3, 7, ieeeSpecial}, F8E4M3FN: {4, 3, 7, fnSpecial},
	F8E4M3FNUZ: {4, 3, 8, fnuzSpecial}, F8E4M3B11FNUZ: {4, 3, 11, fnuzSpecial}, F8E5M2: {5, 2, 15, ieeeSpecial},
	F8E5M2FNUZ: {5, 2, 16, fnuzSpecial}, F16: {5, 10, 15, ieeeSpecial}, BF16: {8, 7, 127, ieeeSpecial},
}

func (f floatFormat) nan() uint16 {
	sign := uint16(1) << (f.exp + f.man)
	switch f.special {
	case fnuzSpecial:
		return sign
	case fnSpecial:
		return sign - 1
	case satSpecial:
		return 0
	}
	return sign - 1<<(f.man-1) // quiet
}

// maxFinite is the largest finite pattern.
func (f floatFormat) maxFinite() uint16 {
	top := uint16(1)<<(f.exp+f.man) - 1
	switch f.special {
	case ieeeSpecial:
		return top - 1<<f.man
	case fnSpecial:
		return top - 1
	}
	return top
}

// encode rounds x to nearest even.
func (f floatFormat) encode(x float64) uint16 {
	if x != x {
		return f.nan()
	}
	var sign uint16
	if math.Signbit(x) {
		sign = 1 << (f.exp + f.man)
		x = -x
	}
	var r uint16
	if x > 0 {
		_, e := math.Frexp(x) // x in [2^(e-1), 2^e)
		be := e - 1 + f.bias  // biased exponent of a normal
		be = max(be, 1)       // below: subnormal, in steps of the smallest normal's mantissa
		steps := math.Inf(1)
		if !math.IsInf(x, 0) {
			steps = math.RoundToEven(math.Ldexp(x, f.man+f.bias-be))
		}
		// A carry out of the mantissa runs into the exponent by itself.
		if v := float64(int(be-1)<<f.man) + steps; v > float64(f.maxFinite()) {
			switch f.special {
			case ieeeSpecial:
				return sign | f.maxFinite() + 1
			case satSpecial:
				return sign | f.maxFinite()
			}
			return f.nan() | sign&^(f.nan())
		} else {
			r = uint16(v)
		}
	}
	if r == 0 && f.special == fnuzSpecial {
		return 0
	}
	return sign | r
}

func (f floatFormat) decode(b uint16) float64 {
	sign := uint16(1) << (f.exp + f.man)
	mag := b & (sign - 1)
	neg := b&sign != 0
	switch f.special {
	case ieeeSpecial:
		if mag > f.maxFinite() {
			if mag == f.maxFinite()+1 {
				if neg {
					return math.Inf(-1)
				}
				return math.Inf(1)
			}
			return math.NaN()
		}
	case fnSpecial:
		if mag == sign-1 {
			return math.NaN()
		}
	case fnuzSpecial:
		if b == sign {
			return math.NaN()
		}
	}
	e, m := int(mag>>f.man), float64(mag&(1<<f.man-1))
	v := 0.0
	if e == 0 {
		v = math.Ldexp(m, 1-f.bias-f.man)
	} else {
		v = math.Ldexp(m+float64(uint(1)<<f.man), e-f.bias-f.man)
	}
	if neg {
		return math.Copysign(v, -1)
	}
	return v
}

// bf16FromFloat32 rounds to nearest even; NaN stays NaN.
func bf16FromFloat32(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func float32FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// f16FromFloat32 rounds to IEEE half to nearest even.
func f16FromFloat32(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x47800000: // 65536 and above, Inf
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: subnormal; the addition aligns and rounds
		f := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(f)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

func float32FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	e, m := uint32(h>>10&31), uint32(h&1023)
	switch e {
	case 0:
		f := float32(m) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}

// decode8 is the value of every pattern of the types of at most 8 bits.
var decode8 = func() (t [NumDtypes]*[256]float32) {
	for d, f := range smallFloats {
		if w := Dtype(d).Bits(); f.exp == 0 || w > 8 {
			continue
		}
		t[d] = new([256]float32)
		for i := range t[d] {
			t[d][i] = float32(f.decode(uint16(i) & (1<<Dtype(d).Bits() - 1)))
		}
	}
	t[F8E8M0] = new([256]float32)
	for i := range t[F8E8M0] {
		t[F8E8M0][i] = float32(math.Ldexp(1, i-127))
	}
	t[F8E8M0][255] = float32(math.NaN())
	return t
}()

// encodeE8M0 is the nearest power of two; ties go to the even exponent. Zero gives the smallest, a negative or Inf NaN.
func encodeE8M0(x float64) uint8 {
	if !(x >= 0) || math.IsInf(x, 0) {
		return 255
	}
	if x == 0 {
		return 0
	}
	fr, e := math.Frexp(x) // x = fr·2^e, fr in [0.5, 1)
	b := e - 1 + 127
	if fr > 0.75 || fr == 0.75 && b&1 != 0 {
		b++
	}
	if b > 254 {
		return 255
	}
	return uint8(max(b, 0))
}

// EncodeFloat gives the little-endian bits of x as an element of d, rounded to nearest even for a float type, truncated
// and saturated for an integer type (NaN gives 0), x != 0 for Bool. ok is false for other types.
func EncodeFloat(d Dtype, x float64) (bits uint64, ok bool) {
	switch {
	case d == F32:
		return uint64(math.Float32bits(float32(x))), true
	case d == F64:
		return math.Float64bits(x), true
	case d == F8E8M0:
		return uint64(encodeE8M0(x)), true
	case d.IsFloat():
		return uint64(smallFloats[d].encode(x)), true
	case d == Bool:
		if x != 0 {
			return 1, true
		}
		return 0, true
	case d.IsInt():
		return EncodeInt(d, saturate(d, x)), true
	}
	return 0, false
}

// EncodeInt gives the little-endian bits of x wrapped to the integer type d. A type below 8 bits fills its byte by sign or
// zero, so that the byte read as int8 or uint8 is the value.
func EncodeInt(d Dtype, x int64) uint64 {
	if b := d.Bits(); b < 8 {
		return uint64(uint8(wrap(d, x)))
	}
	return uint64(x) & (^uint64(0) >> (64 - uint(d.Bits())))
}

// wrap reduces x modulo 2^bits into the range of d. A u64 above 2^63 is held as the int64 of the same bits.
func wrap(d Dtype, x int64) int64 {
	s := 64 - uint(d.Bits())
	if d.Signed() {
		return x << s >> s
	}
	return int64(uint64(x) << s >> s)
}

// saturate truncates x towards zero into the range of integer type d; NaN gives 0.
func saturate(d Dtype, x float64) int64 {
	if x != x {
		return 0
	}
	b := uint(d.Bits())
	if d.Signed() {
		lim := math.Ldexp(1, int(b-1))
		if x >= lim {
			return int64(^uint64(0) >> (65 - b))
		}
		if x <= -lim {
			return -1 << (b - 1)
		}
		return int64(x)
	}
	if x <= 0 {
		return 0
	}
	if x >= math.Ldexp(1, int(b)) {
		return int64(^uint64(0) >> (64 - b))
	}
	return int64(uint64(x))
}

// elemBits reads the bits of element i of data.
func elemBits(d Dtype, data []byte, i int) uint64 {
	switch d.Size() {
	case 1:
		return uint64(data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return binary.LittleEndian.Uint64(data[8*i:])
}

// putElem writes the bits of element i of data.
func putElem(d Dtype, data []byte, i int, bits uint64) {
	switch d.Size() {
	case 1:
		data[i] = byte(bits)
	case 2:
		binary.LittleEndian.PutUint16(data[2*i:], uint16(bits))
	case 4:
		binary.LittleEndian.PutUint32(data[4*i:], uint32(bits))
	default:
		binary.LittleEndian.PutUint64(data[8*i:], bits)
	}
}

// DecodeFloat is the value of the bits of an element of d; integers and Bool as a float64, other types NaN.
func DecodeFloat(d Dtype, bits uint64) float64 {
	switch {
	case d == F32:
		return float64(math.Float32frombits(uint32(bits)))
	case d == F64:
		return math.Float64frombits(bits)
	case d == BF16:
		return float64(float32FromBF16(uint16(bits)))
	case d == F16:
		return float64(float32FromF16(uint16(bits)))
	case d.IsFloat():
		return float64(decode8[d][uint8(bits)])
	case d == Bool:
		if bits&0xff != 0 {
			return 1
		}
		return 0
	case d == U64:
		return float64(bits)
	case d.IsInt():
		return float64(wrap(d, int64(bits)))
	}
	return math.NaN()
}
