package graph

import (
	"math"
	"testing"
)

func TestSmallFloatsRoundTrip(t *testing.T) {
	for d, f := range smallFloats {
		d := Dtype(d)
		if f.exp == 0 {
			continue
		}
		for i := range 1 << d.Bits() {
			v := f.decode(uint16(i))
			got := f.encode(v)
			if v != v {
				if w := f.decode(got); w == w {
					t.Errorf("%s: NaN %#x encodes as %#x = %g", d, i, got, w)
				}
				continue
			}
			if got != uint16(i) {
				t.Errorf("%s: %#x decodes to %g, encodes to %#x", d, i, v, got)
			}
		}
	}
}

func TestKnownEncodings(t *testing.T) {
	for _, c := range []struct {
		d    Dtype
		x    float64
		bits uint64
	}{
		{F32, 1, 0x3f800000}, {F64, -2, 0xc000000000000000}, {BF16, 1, 0x3f80}, {BF16, 1 + 1.0/256, 0x3f80}, {BF16, 1 + 3.0/256, 0x3f82},
		{BF16, 3.5e38, 0x7f80}, {F16, 1, 0x3c00}, {F16, 65519, 0x7bff}, {F16, 65520, 0x7c00}, {F16, -5.9604644775390625e-8, 0x8001},
		{F16, 2.98e-8, 0}, {F8E4M3FN, 448, 0x7e}, {F8E4M3FN, 480, 0x7f}, {F8E4M3FN, 1, 0x38}, {F8E5M2, 57344, 0x7b}, {F8E5M2, 65536, 0x7c},
		{F8E4M3FNUZ, 240, 0x7f}, {F8E4M3FNUZ, math.Copysign(0, -1), 0}, {F4E2M1, 6, 7}, {F4E2M1, -100, 15}, {F4E2M1, 0.25, 0}, {F4E2M1, 0.75, 2},
		{F8E8M0, 1, 127}, {F8E8M0, 3, 128}, {F8E8M0, 6, 130}, {F8E8M0, 2.9, 128}, {F8E8M0, -1, 255},
		{S8, 200, 127}, {S8, -3.9, 0xfd}, {U8, -1, 0}, {S4, -9, 0xf8}, {U4, 20, 15}, {U64, 1e30, math.MaxUint64}, {S64, -1e30, 1 << 63}, {Bool, 0.5, 1},
		{S32, math.NaN(), 0},
	} {
		if got, ok := EncodeFloat(c.d, c.x); !ok || got != c.bits {
			t.Errorf("%s(%g) = %#x, want %#x", c.d, c.x, got, c.bits)
		}
	}
}

// TestFastHalves proves the bit tricks against the definition.
func TestFastHalves(t *testing.T) {
	x := uint32(1)
	for range 200000 {
		x = x*1664525 + 1013904223
		f := math.Float32frombits(x)
		if f != f {
			continue
		}
		if got, want := bf16FromFloat32(f), smallFloats[BF16].encode(float64(f)); got != want {
			t.Fatalf("bf16(%g) = %#x, want %#x", f, got, want)
		}
		f = float32(math.Ldexp(float64(x)/(1<<32)-0.5, int(x%48)-28))
		if got, want := f16FromFloat32(f), smallFloats[F16].encode(float64(f)); got != want {
			t.Fatalf("f16(%g) = %#x, want %#x", f, got, want)
		}
	}
	for h := range 1 << 16 {
		a, b := float64(float32FromF16(uint16(h))), smallFloats[F16].decode(uint16(h))
		if a != b && a == a {
			t.Fatalf("f16 %#x = %g, want %g", h, a, b)
		}
	}
}
