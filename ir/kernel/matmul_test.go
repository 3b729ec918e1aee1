package kernel

import (
	"math"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// naiveMatmul is the definition: one product at a time, k ascending, in the order that the documentation promises.
func naiveMatmul(psum, moving, stationary *View, accumulate bool) View {
	out := packed(psum)
	passes := []func(float32) (float32, bool){func(w float32) (float32, bool) { return w, true }}
	if stationary.Dtype.IsFloat() && stationary.Dtype.Size() == 4 {
		passes = []func(float32) (float32, bool){
			func(w float32) (float32, bool) { _, lo := SplitHiLo(w); return lo, lo != 0 },
			func(w float32) (float32, bool) { hi, _ := SplitHiLo(w); return hi, true },
		}
	}
	for i, pass := range passes {
		for m := range stationary.Elems() {
			for n := range moving.Elems() {
				var acc float32
				if accumulate || i > 0 {
					acc = valueAt(&out, m, n)
				}
				for k := range moving.Parts {
					if w, ok := pass(valueAt(stationary, k, m)); ok {
						acc += float32(w * valueAt(moving, k, n))
					}
				}
				storeBitsAt(out.Data, byteOf(&out, m, n), out.Dtype.Size(), Encode(out.Dtype, acc))
			}
		}
	}
	return out
}

// The fast paths give the bits of the definition for every shape, layout and value, special ones too.
func TestMatmulBits(t *testing.T) {
	var s Scratch
	specials := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		0x1p-149, -0x1p-130, math.MaxFloat32, 1, -1, 3.0000002}
	rapid.Check(t, func(t *rapid.T) {
		k, m := rapid.IntRange(1, 11).Draw(t, "K"), rapid.IntRange(1, 9).Draw(t, "M")
		n := rapid.IntRange(1, 13).Draw(t, "N")
		types := rapid.SampledFrom([]target.Dtype{target.Float32, target.Float32R, target.BFloat16, target.Float16, target.Float8E4, target.Uint8})
		x := strided(t, "moving", types.Draw(t, "moving type"), k, n, true)
		w := strided(t, "stationary", types.Draw(t, "stationary type"), k, m, true)
		out := rapid.SampledFrom([]target.Dtype{target.Float32, target.BFloat16}).Draw(t, "psum type")
		y := strided(t, "psum", out, m, n, false)
		for range rapid.IntRange(0, 6).Draw(t, "specials") {
			f := rapid.SampledFrom(specials).Draw(t, "special")
			v := rapid.SampledFrom([]*View{&x, &w, &y}).Draw(t, "where")
			p, i := rapid.IntRange(0, v.Parts-1).Draw(t, "p"), rapid.IntRange(0, v.Elems()-1).Draw(t, "i")
			storeBitsAt(v.Data, byteOf(v, p, i), v.Dtype.Size(), Encode(v.Dtype, f))
		}
		accumulate := rapid.Bool().Draw(t, "accumulate")
		want := naiveMatmul(&y, &x, &w, accumulate)
		if err := MatmulFull(&s, &y, &x, &w, accumulate); err != nil {
			t.Fatal(err)
		}
		for i := range m {
			for j := range n {
				if a, b := rawAt(&y, i, j), rawAt(&want, i, j); a != b {
					t.Fatalf("[%d,%d] is %#x (%g), want %#x (%g)", i, j, a, valueAt(&y, i, j), b, valueAt(&want, i, j))
				}
			}
		}
	})
}

// Full-size operands against float64, with the error bound of K sequential additions.
func TestMatmulAccuracy(t *testing.T) {
	var s Scratch
	r := rng(4)
	for _, dt := range []target.Dtype{target.Float32, target.BFloat16, target.Float16} {
		for _, n := range []int{1, 7, 8, 100, 512} {
			x, w, y := dense(r, dt, 128, n), dense(r, dt, 128, 128), dense(r, target.Float32, 128, n)
			must(t, MatmulFull(&s, &y, &x, &w, false))
			for m := range 128 {
				for j := range n {
					var sum, mag float64
					for k := range 128 {
						p := float64(valueAt(&w, k, m)) * float64(valueAt(&x, k, j))
						sum += p
						mag += math.Abs(p)
					}
					if got := float64(valueAt(&y, m, j)); math.Abs(got-sum) > mag*258*0x1p-24 {
						t.Fatalf("%s N=%d [%d,%d] is %g, want %g", dt, n, m, j, got, sum)
					}
				}
			}
		}
	}
}

// In the first pass of an fp32 product a weight without lower bits adds nothing: it makes no NaN of an infinite operand and
// leaves a -0 alone. The shapes take both loops; every row has weights with and without lower bits.
func TestZeroLoAddsNothing(t *testing.T) {
	var s Scratch
	for _, n := range []int{1, 3, 60} {
		const k, m = 6, 8
		x, w, y := blank(target.Float32, k, n), blank(target.Float32, k, m), blank(target.Float32, m, n)
		for p := range k {
			for i := range n {
				f := float32(p*n + i + 1)
				if (p+i)%5 == 0 {
					f = -f
				}
				storeBitsAt(x.Data, byteOf(&x, p, i), 4, Encode(target.Float32, f))
			}
			for i := range m {
				f := float32(1.5)
				if i%2 == 0 && i > 0 {
					f = 1.0000001
				}
				storeBitsAt(w.Data, byteOf(&w, p, i), 4, Encode(target.Float32, f))
			}
		}
		for _, c := range []struct {
			third float32 // x[2,·]
			acc   bool    // onto -0, or a fresh start
		}{{inf, false}, {inf, true}, {-2, false}, {-2, true}} {
			for i := range n {
				storeBitsAt(x.Data, byteOf(&x, 2, i), 4, Encode(target.Float32, c.third))
			}
			must(t, Memset(&y, 1<<31))
			var lo Weights
			must(t, lo.Load(&w, WeightsLo))
			must(t, Matmul(&s, &y, &x, &lo, c.acc))
			for i := range m {
				for j := range n {
					want := float32(0)
					if c.acc {
						want = negZero
					}
					for p := range k {
						if _, l := SplitHiLo(valueAt(&w, p, i)); l != 0 {
							want += float32(l * valueAt(&x, p, j))
						}
					}
					if got := valueAt(&y, i, j); !same(got, want) {
						t.Fatalf("N=%d %v [%d,%d] is %g, want %g", n, c, i, j, got, want)
					}
				}
			}
		}
	}
}

func TestSplitHiLo(t *testing.T) {
	r := rng(5)
	for range 100000 {
		w := math.Float32frombits(r.Uint32())
		hi, lo := SplitHiLo(w)
		if w-w != 0 {
			if lo != 0 || f32bits(hi) != f32bits(w) {
				t.Fatalf("%g splits into %g and %g", w, hi, lo)
			}
			continue
		}
		if math.Float32bits(hi)&0xFFFF != 0 || float64(hi)+float64(lo) != float64(w) {
			t.Fatalf("%g splits into %g and %g", w, hi, lo)
		}
	}
}

// A product with the identity moves fp32 values exactly, whatever stands beside them, as long as it is finite.
func TestMatmulIdentityIsExact(t *testing.T) {
	var s Scratch
	r := rng(6)
	const p, f = 100, 77
	x := Dense(make([]byte, p*f*4), 0, target.Float32, p, f*4, f)
	for i := range p * f {
		u := r.Uint32()
		if u&0x7F800000 == 0x7F800000 {
			u &^= 1 << 30
		}
		le.PutUint32(x.Data[4*i:], u)
	}
	id := identityView(target.Float32, p)
	y := dense(r, target.Float32, f, p)
	must(t, MatmulFull(&s, &y, &id, &x, false)) // stationary = data, moving = identity
	for i := range p {
		for j := range f {
			if a, b := valueAt(&y, j, i), valueAt(&x, i, j); a != b {
				t.Fatalf("[%d,%d] is %g, want %g", j, i, a, b)
			}
		}
	}
}

func identityView(dt target.Dtype, n int) View {
	v := Dense(make([]byte, n*n*dt.Size()), 0, dt, n, n*dt.Size(), n)
	for i := range n {
		storeBitsAt(v.Data, byteOf(&v, i, i), dt.Size(), Encode(dt, 1))
	}
	return v
}

// The exact transpose keeps every bit, NaN payloads too, with the identity on either side, and refuses what is no selection.
func TestTransposeMovesBits(t *testing.T) {
	var s Scratch
	r := rng(7)
	for _, dt := range []target.Dtype{target.BFloat16, target.Float32, target.Float16, target.Float8E5, target.Uint16} {
		const p, f = 20, 33
		x := Dense(make([]byte, p*f*dt.Size()), 0, dt, p, f*dt.Size(), f)
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32())
		}
		storeBitsAt(x.Data, byteOf(&x, 0, 0), dt.Size(), ^uint64(0)) // a NaN, or a value that is no selection
		id := identityView(dt, p)
		y := Dense(make([]byte, p*f*dt.Size()), 0, dt, f, p*dt.Size(), p)
		must(t, Transpose(&s, &y, &id, &x))
		for i := range p {
			for j := range f {
				if a, b := rawAt(&y, j, i), rawAt(&x, i, j); a != b {
					t.Fatalf("%s [%d,%d] is %#x, want %#x", dt, j, i, a, b)
				}
			}
		}
		z := Dense(make([]byte, p*f*dt.Size()), 0, dt, p, f*dt.Size(), f)
		must(t, Transpose(&s, &z, &x, &id)) // stationary = identity: a plain move
		for i := range p {
			for j := range f {
				if a, b := rawAt(&z, i, j), rawAt(&x, i, j); a != b {
					t.Fatalf("%s [%d,%d] is %#x, want %#x", dt, i, j, a, b)
				}
			}
		}
		if err := Transpose(&s, &y, &y, &x); err == nil {
			t.Errorf("%s: a transpose with operands that select nothing passes", dt)
		}
	}
}

// The machine loads the array once and multiplies twice; the IR simulator makes one call. The bits agree.
func TestPassesAreMatmulFull(t *testing.T) {
	var s Scratch
	var w Weights
	r := rng(8)
	for _, n := range []int{3, 40} {
		x, a := dense(r, target.Float32, 50, n), dense(r, target.Float32, 50, 30)
		y, z := dense(r, target.Float32, 30, n), dense(r, target.Float32, 30, n)
		must(t, MatmulFull(&s, &y, &x, &a, false))
		must(t, w.Load(&a, WeightsLo))
		must(t, Matmul(&s, &z, &x, &w, false))
		must(t, w.Load(&a, WeightsHi))
		clear(a.Data) // the array is a copy
		must(t, Matmul(&s, &z, &x, &w, true))
		if string(y.Data) != string(z.Data) {
			t.Fatalf("N=%d: two passes differ from one call", n)
		}
	}
}

func TestMatmulRefuses(t *testing.T) {
	var s Scratch
	r := rng(9)
	x, w, y := dense(r, target.BFloat16, 16, 8), dense(r, target.BFloat16, 16, 4), dense(r, target.Float32, 4, 8)
	must(t, MatmulFull(&s, &y, &x, &w, false))
	for name, err := range map[string]error{
		"K":        MatmulFull(&s, &y, &y, &w, false),
		"M":        MatmulFull(&s, &x, &x, &w, false),
		"unloaded": Matmul(&s, &y, &x, &Weights{}, false),
		"mode":     s.weights.Load(&w, 9),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	p := Dense(make([]byte, 16*4*4), 0, target.Float8E4M3FNx4, 16, 16, 4)
	if err := MatmulFull(&s, &y, &x, &p, false); target.ClassOf(err) != target.Unsupported {
		t.Errorf("packed weights: %v", err)
	}
	if err := Matmul(&s, &y, &x, &s.weights, true); err != nil {
		t.Errorf("weights stay after a refused load: %v", err)
	}
}
