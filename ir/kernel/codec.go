package kernel

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Canonical quiet NaN of float32, which every computed NaN becomes when it is stored.
const nan32 = 0x7FC00000

// minifloat describes an 8-bit float with a sign bit: mantissa bits, exponent bias, largest finite code and canonical NaN.
// The codes from infinity up are NaN, or infinity and NaN for an IEEE-like type.
type minifloat struct {
	mant  uint
	bias  int
	max   uint8
	nan   uint8
	hasIn bool // code max+1 is infinity
}

var minifloats = [...]minifloat{
	target.Float8E3:     {mant: 4, bias: 3, max: 0x6F, nan: 0x78, hasIn: true},  // largest 15.5
	target.Float8E4:     {mant: 3, bias: 7, max: 0x77, nan: 0x7C, hasIn: true},  // largest 240
	target.Float8E4M3FN: {mant: 3, bias: 7, max: 0x7E, nan: 0x7F},               // largest 448
	target.Float8E5:     {mant: 2, bias: 15, max: 0x7B, nan: 0x7E, hasIn: true}, // largest 57344
}

// decode8 holds the value of every code of every 8-bit float, by dtype.
var decode8 = func() (t [target.Float8E5 + 1][256]float32) {
	for _, dt := range []target.Dtype{target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E5} {
		m := &minifloats[dt]
		for c := range 256 {
			abs := uint8(c) & 0x7F
			e, frac := int(abs>>m.mant), float64(abs&(1<<m.mant-1))/float64(uint(1)<<m.mant)
			x := math.Ldexp(1+frac, e-m.bias)
			if e == 0 {
				x = math.Ldexp(frac, 1-m.bias)
			}
			f := float32(x)
			switch {
			case m.hasIn && abs == m.max+1:
				f = float32(math.Inf(1))
			case abs > m.max:
				f = math.Float32frombits(nan32)
			}
			if c >= 128 {
				f = -f
			}
			t[dt][c] = f
		}
	}
	for c := range 255 {
		t[target.Float8E8M0][c] = float32(math.Ldexp(1, c-127))
	}
	t[target.Float8E8M0][255] = math.Float32frombits(nan32)
	return
}()

// encode rounds to nearest even and saturates: whatever lies beyond the largest finite value becomes it.
func (m *minifloat) encode(f float32) uint8 {
	u := math.Float32bits(f)
	sign := uint8(u >> 24 & 0x80)
	u &= 0x7FFFFFFF
	if u > 0x7F800000 {
		return m.nan
	}
	shift := 23 - m.mant
	exp := int(u>>23) - 127 + m.bias
	if exp >= 1 {
		r := (u+(1<<(shift-1)-1)+(u>>shift&1))>>shift - uint32(127-m.bias)<<m.mant
		return sign | uint8(min(r, uint32(m.max)))
	}
	// Subnormal result: the significand with its hidden bit, shifted by as much as the exponent falls short of 1.
	sub := shift + uint(1-exp)
	if sub > 24 {
		return sign
	}
	sig := u&0x7FFFFF | 0x800000
	return sign | uint8((sig+(1<<(sub-1)-1)+(sig>>sub&1))>>sub)
}

// encodeE8M0 rounds to the nearest power of two by value of the exponent code, ties to the even code. Zero becomes the
// smallest power, negative numbers and NaN become the NaN code.
func encodeE8M0(f float32) uint8 {
	u := math.Float32bits(f)
	switch {
	case u<<1 == 0:
		return 0
	case u > 0x7F800000: // NaN, or the sign is set
		return 0xFF
	}
	code := u >> 23
	half := u & 0x7FFFFF
	if code == 0 {
		// Subnormals: 2^-127 is code 0, 2^-126 is code 1, the tie at 1.5·2^-127 goes to 0.
		if half > 0x600000 {
			return 1
		}
		return 0
	}
	if half > 0x400000 || half == 0x400000 && code&1 == 1 {
		code++
	}
	return uint8(min(code, 0xFE))
}

// f16 decodes fp16. Multiplying by 2^112 moves the exponent into place and normalises subnormals exactly.
func f16(h uint16) float32 {
	u := uint32(h&0x7FFF) << 13
	if u >= 0x0F800000 {
		u |= 0x70000000 // infinity or NaN: exponent field all ones
	} else {
		u = math.Float32bits(math.Float32frombits(u) * 0x1p112)
	}
	return math.Float32frombits(u | uint32(h&0x8000)<<16)
}

// f16bits encodes fp16, to nearest even; 65520 and beyond is infinity.
func f16bits(f float32) uint16 {
	u := math.Float32bits(f)
	sign := uint16(u >> 16 & 0x8000)
	u &= 0x7FFFFFFF
	switch {
	case u-0x38800000 < 0x477FF000-0x38800000: // normal result
		return sign | uint16((u+0xFFF+(u>>13&1)-0x38000000)>>13)
	case u > 0x7F800000:
		return 0x7E00
	case u >= 0x477FF000:
		return sign | 0x7C00
	case u <= 0x33000000: // up to half the smallest subnormal
		return sign
	}
	shift := 126 - u>>23
	sig := u&0x7FFFFF | 0x800000
	return sign | uint16((sig+(1<<(shift-1)-1)+(sig>>shift&1))>>shift)
}

// bf16bits encodes bf16, to nearest even.
func bf16bits(f float32) uint16 {
	u := math.Float32bits(f)
	if u&0x7FFFFFFF > 0x7F800000 {
		return nan32 >> 16
	}
	return uint16((u + 0x7FFF + (u >> 16 & 1)) >> 16)
}

// f32bits is the stored form of a float32: NaN made canonical.
func f32bits(f float32) uint32 {
	if f != f {
		return nan32
	}
	return math.Float32bits(f)
}

// Saturating truncation. NaN fails both comparisons of the range tests below and becomes 0.

func toInt(f float32, lo, hi int64) int64 {
	switch {
	case f >= float32(hi): // float32(hi) may round up: only values of hi and beyond pass either way
		return hi
	case f <= float32(lo):
		return lo
	case f != f:
		return 0
	}
	return int64(f)
}

func toUint(f float32, hi uint64) uint64 {
	switch {
	case f >= float32(hi):
		return hi
	case f > 0:
		return uint64(f)
	}
	return 0
}

// Decode gives the value of the low bits of one element. 64-bit integers round to float32; packed types are 0.
func Decode(dt target.Dtype, bits uint64) float32 {
	switch dt {
	case target.Float32, target.Float32R:
		return math.Float32frombits(uint32(bits))
	case target.BFloat16:
		return math.Float32frombits(uint32(bits) << 16)
	case target.Float16:
		return f16(uint16(bits))
	case target.Uint8:
		return float32(uint8(bits))
	case target.Int8:
		return float32(int8(bits))
	case target.Uint16:
		return float32(uint16(bits))
	case target.Int16:
		return float32(int16(bits))
	case target.Uint32:
		return float32(uint32(bits))
	case target.Int32:
		return float32(int32(bits))
	case target.Uint64:
		return float32(bits)
	case target.Int64:
		return float32(int64(bits))
	case target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E8M0, target.Float8E5:
		return decode8[dt][uint8(bits)]
	}
	return 0
}

// Encode rounds f to one element and gives its bits. Packed types are 0.
func Encode(dt target.Dtype, f float32) uint64 {
	switch dt {
	case target.Float32, target.Float32R:
		return uint64(f32bits(f))
	case target.BFloat16:
		return uint64(bf16bits(f))
	case target.Float16:
		return uint64(f16bits(f))
	case target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E5:
		return uint64(minifloats[dt].encode(f))
	case target.Float8E8M0:
		return uint64(encodeE8M0(f))
	case target.Uint8:
		return toUint(f, math.MaxUint8)
	case target.Uint16:
		return toUint(f, math.MaxUint16)
	case target.Uint32:
		return toUint(f, math.MaxUint32)
	case target.Uint64:
		return toUint(f, math.MaxUint64)
	case target.Int8:
		return uint64(uint8(toInt(f, math.MinInt8, math.MaxInt8)))
	case target.Int16:
		return uint64(uint16(toInt(f, math.MinInt16, math.MaxInt16)))
	case target.Int32:
		return uint64(uint32(toInt(f, math.MinInt32, math.MaxInt32)))
	case target.Int64:
		return uint64(toInt(f, math.MinInt64, math.MaxInt64))
	}
	return 0
}

// castInt converts between integer types exactly, saturating at the ends of dst.
func castInt(dst, src target.Dtype, bits uint64) uint64 {
	neg := false
	if src.Class() == target.ClassInt {
		s := 64 - 8*src.Size()
		bits = uint64(int64(bits<<s) >> s)
		neg = int64(bits) < 0
	}
	w := 8 * dst.Size()
	if dst.Class() == target.ClassUint {
		switch {
		case neg:
			return 0
		case w < 64 && bits>>w != 0:
			return 1<<w - 1
		}
		return bits
	}
	hi := uint64(1)<<(w-1) - 1
	switch {
	case neg && int64(bits) < -int64(hi)-1:
		bits = hi + 1
	case !neg && bits > hi:
		bits = hi
	}
	return bits << (64 - w) >> (64 - w)
}
