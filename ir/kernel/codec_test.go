package kernel

import (
	"math"
	"math/big"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// format is an IEEE-like type written down once more, for the tests to compute with.
type format struct {
	dt        target.Dtype
	exp, mant uint
	maxFinite float64
	saturates bool // beyond the largest finite value: it, rather than infinity
	infIsNaN  bool
	canonical uint64
	codes     int
}

var formats = []format{
	{dt: target.Float16, exp: 5, mant: 10, maxFinite: 65504, canonical: 0x7E00, codes: 1 << 16},
	{dt: target.BFloat16, exp: 8, mant: 7, maxFinite: 0x1.FEp127, canonical: 0x7FC0, codes: 1 << 16},
	{dt: target.Float8E3, exp: 3, mant: 4, maxFinite: 15.5, saturates: true, canonical: 0x78, codes: 256},
	{dt: target.Float8E4, exp: 4, mant: 3, maxFinite: 240, saturates: true, canonical: 0x7C, codes: 256},
	{dt: target.Float8E4M3FN, exp: 4, mant: 3, maxFinite: 448, saturates: true, infIsNaN: true, canonical: 0x7F, codes: 256},
	{dt: target.Float8E5, exp: 5, mant: 2, maxFinite: 57344, saturates: true, canonical: 0x7E, codes: 256},
}

// value decodes a code from the definition of the format.
func (f *format) value(code int) float64 {
	sign := 1.0
	if code >= f.codes/2 {
		sign, code = -1, code-f.codes/2
	}
	e, m := code>>f.mant, code&(1<<f.mant-1)
	bias := 1<<(f.exp-1) - 1
	if e == 1<<f.exp-1 {
		switch {
		case f.infIsNaN && m == 1<<f.mant-1:
			return math.NaN()
		case f.infIsNaN:
		case m == 0:
			return math.Inf(int(sign))
		default:
			return math.NaN()
		}
	}
	if e == 0 {
		return sign * math.Ldexp(float64(m), 1-bias-int(f.mant))
	}
	return sign * math.Ldexp(float64(m|1<<f.mant), e-bias-int(f.mant))
}

func TestFloatCodesRoundTrip(t *testing.T) {
	for _, f := range formats {
		for c := range f.codes {
			want := f.value(c)
			got := Decode(f.dt, uint64(c))
			if math.Float64bits(float64(got)) != math.Float64bits(want) && !(want != want && got != got) {
				t.Fatalf("%s code %#x is %g, want %g", f.dt, c, got, want)
			}
			back, code := Encode(f.dt, got), uint64(c)
			switch {
			case want != want:
				code = f.canonical
			case math.IsInf(want, 0) && f.saturates:
				code-- // infinity saturates
			}
			if back != code {
				t.Fatalf("%s code %#x (%g) encodes as %#x, want %#x", f.dt, c, got, back, code)
			}
		}
	}
}

// Between any two neighbours the midpoint goes to the even code and everything else to the nearer one.
func TestRoundToNearestEven(t *testing.T) {
	for _, f := range formats {
		for c := 0; c < f.codes/2-1; c++ {
			lo, hi := f.value(c), f.value(c+1)
			if lo == f.maxFinite {
				// The next value the exponent range would hold decides where overflow begins.
				hi = lo + (lo - f.value(c-1))
			} else if !(hi <= f.maxFinite) {
				continue
			}
			mid := float32((lo + hi) / 2)
			if float64(mid) != (lo+hi)/2 {
				continue // below the smallest float32: only for the ends of bf16
			}
			even, up := uint64(c+c&1), uint64(c+1)
			if f.saturates && lo == f.maxFinite {
				even, up = uint64(c), uint64(c)
			}
			inf := float32(math.Inf(1))
			for _, s := range []struct {
				x    float32
				want uint64
			}{{mid, even}, {math.Nextafter32(mid, 0), uint64(c)}, {math.Nextafter32(mid, inf), up}} {
				if got := Encode(f.dt, s.x); got != s.want {
					t.Fatalf("%s: %g between codes %#x and %#x encodes as %#x, want %#x", f.dt, s.x, c, c+1, got, s.want)
				}
				neg := s.want | uint64(f.codes/2)
				if got := Encode(f.dt, -s.x); got != neg {
					t.Fatalf("%s: %g encodes as %#x, want %#x", f.dt, -s.x, got, neg)
				}
			}
		}
	}
}

func TestOverflowAndSpecials(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		dt   target.Dtype
		x    float32
		want uint64
	}{
		{target.Float16, inf, 0x7C00}, {target.Float16, -inf, 0xFC00}, {target.Float16, 1e30, 0x7C00}, {target.Float16, 65519.996, 0x7BFF},
		{target.Float16, 0x1p-149, 0}, {target.Float16, -0x1p-149, 0x8000}, {target.Float16, nan, 0x7E00}, {target.Float16, -nan, 0x7E00},
		{target.BFloat16, math.MaxFloat32, 0x7F80}, {target.BFloat16, 0x1p-149, 0}, {target.BFloat16, -nan, 0x7FC0},
		{target.Float32, float32(math.Copysign(0, -1)), 1 << 31}, {target.Float32, math.Float32frombits(0xFFC12345), 0x7FC00000},
		{target.Float8E4, inf, 0x77}, {target.Float8E4, -1e9, 0xF7}, {target.Float8E4M3FN, inf, 0x7E}, {target.Float8E4M3FN, 465, 0x7E},
		{target.Float8E5, 1e9, 0x7B}, {target.Float8E3, 16, 0x6F}, {target.Float8E5, nan, 0x7E},
		{target.Float8E8M0, 1, 127}, {target.Float8E8M0, 1.5, 128}, {target.Float8E8M0, 3, 128}, {target.Float8E8M0, 2.99, 128},
		{target.Float8E8M0, 3.01, 129}, {target.Float8E8M0, 0, 0}, {target.Float8E8M0, -1, 255}, {target.Float8E8M0, nan, 255},
		{target.Float8E8M0, inf, 254}, {target.Float8E8M0, 0x1p-127, 0}, {target.Float8E8M0, 0x1p-126, 1}, {target.Float8E8M0, 0x1.9p-127, 1},
		{target.Int8, 127.9, 127}, {target.Int8, -128.9, 0x80}, {target.Int8, -0.9, 0}, {target.Int8, 2.5, 2}, {target.Int8, -2.5, 0xFE},
		{target.Int8, nan, 0}, {target.Int8, inf, 127}, {target.Int8, -inf, 0x80}, {target.Uint8, -3, 0}, {target.Uint8, 255.5, 255},
		{target.Uint8, 3.99, 3}, {target.Uint8, nan, 0}, {target.Int16, -40000, 0x8000}, {target.Uint16, 70000, 65535},
		{target.Int32, 3e9, math.MaxInt32}, {target.Int32, -3e9, 1 << 31}, {target.Int32, 2147483520, 2147483520},
		{target.Uint32, 5e9, math.MaxUint32}, {target.Uint32, 4294967040, 4294967040}, {target.Int64, 1e19, math.MaxInt64},
		{target.Int64, -1e19, 1 << 63}, {target.Uint64, 2e19, math.MaxUint64}, {target.Uint64, -1, 0}, {target.Int64, -2, ^uint64(1)},
	} {
		if got := Encode(c.dt, c.x); got != c.want {
			t.Errorf("%s of %g is %#x, want %#x", c.dt, c.x, got, c.want)
		}
	}
	for c := range 255 {
		if got := Encode(target.Float8E8M0, Decode(target.Float8E8M0, uint64(c))); got != uint64(c) {
			t.Errorf("e8m0 code %d comes back as %d", c, got)
		}
	}
}

func TestIntegersRoundTrip(t *testing.T) {
	for _, dt := range []target.Dtype{target.Uint8, target.Int8, target.Uint16, target.Int16} {
		for c := range 1 << (8 * dt.Size()) {
			if got := Encode(dt, Decode(dt, uint64(c))); got != uint64(c) {
				t.Fatalf("%s code %#x comes back as %#x", dt, c, got)
			}
		}
	}
}

func TestCastInt(t *testing.T) {
	ints := []target.Dtype{target.Uint8, target.Int8, target.Uint16, target.Int16, target.Uint32, target.Int32, target.Uint64, target.Int64}
	r := rng(3)
	clamp := func(x, lo, hi *big.Int) *big.Int {
		switch {
		case x.Cmp(lo) < 0:
			return lo
		case x.Cmp(hi) > 0:
			return hi
		}
		return x
	}
	bounds := func(dt target.Dtype) (lo, hi *big.Int) {
		w := uint(8 * dt.Size())
		one := big.NewInt(1)
		if dt.Class() == target.ClassUint {
			return big.NewInt(0), new(big.Int).Sub(new(big.Int).Lsh(one, w), one)
		}
		h := new(big.Int).Lsh(one, w-1)
		return new(big.Int).Neg(h), new(big.Int).Sub(h, one)
	}
	for _, src := range ints {
		for _, dst := range ints {
			for k := range 300 {
				w := uint(8 * src.Size())
				u := r.Uint64() >> r.UintN(64)
				if k&1 == 0 {
					u = -u
				}
				u &= ^uint64(0) >> (64 - w)
				x := new(big.Int).SetUint64(u)
				if src.Class() == target.ClassInt && u>>(w-1) == 1 {
					x.Sub(x, new(big.Int).Lsh(big.NewInt(1), w))
				}
				lo, hi := bounds(dst)
				want := clamp(x, lo, hi)
				mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*dst.Size())), big.NewInt(1))
				if got := castInt(dst, src, u); got != new(big.Int).And(want, mask).Uint64() {
					t.Fatalf("%s %#x to %s is %#x, want %v", src, u, dst, got, want)
				}
			}
		}
	}
}
