package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// row makes a one-partition view of literal values.
func row(dt target.Dtype, vals ...float32) View {
	v := Dense(make([]byte, len(vals)*dt.Size()), 0, dt, 1, len(vals)*dt.Size(), len(vals))
	StoreRow(&v, 0, vals)
	return v
}

func values(v *View, p int) []float32 {
	x := make([]float32, v.Elems())
	LoadRow(x, v, p)
	return x
}

func wantRow(t *testing.T, what string, v *View, p int, want ...float32) {
	t.Helper()
	got := values(v, p)
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

func blank(dt target.Dtype, parts, n int) View {
	return Dense(make([]byte, parts*n*dt.Size()), 0, dt, parts, n*dt.Size(), n)
}

func TestTensorReduce(t *testing.T) {
	var s Scratch
	in := row(target.Float32, 1, 2, 3, -4, 5, nan)
	two := blank(target.Float32, 1, 2)
	for _, c := range []struct {
		op   target.AluOp
		neg  bool
		a, b float32
	}{
		{target.AluAdd, false, 6, nan}, {target.AluAdd, true, -6, nan}, {target.AluMax, false, 3, nan}, {target.AluMin, true, -1, nan},
		{target.AluMult, false, 6, nan}, {target.AluAbsMax, false, 3, nan}, {target.AluAnd, false, 1, 1}, {target.AluSub, false, -4, nan},
	} {
		must(t, TensorReduce(&s, c.op, &two, &in, c.neg))
		wantRow(t, c.op.String(), &two, 0, c.a, c.b)
	}
	bits, one := row(target.Uint8, 0xF3, 0x3F, 0x37), blank(target.Uint8, 1, 1)
	must(t, TensorReduce(&s, target.AluBitAnd, &one, &bits, false))
	wantRow(t, "and", &one, 0, 0x33)
	if TensorReduce(&s, target.AluBitAnd, &one, &bits, true) == nil {
		t.Error("a negated bit reduction passes")
	}
	four := blank(target.Float32, 1, 4)
	if TensorReduce(&s, target.AluAdd, &four, &in, false) == nil {
		t.Error("6 elements reduce into 4")
	}
}

func TestPartitionReduce(t *testing.T) {
	var s Scratch
	rapid.Check(t, func(t *rapid.T) {
		parts, m, g := rapid.IntRange(1, 6).Draw(t, "parts"), rapid.IntRange(1, 4).Draw(t, "out"), rapid.IntRange(1, 3).Draw(t, "group")
		op := rapid.SampledFrom([]target.AluOp{target.AluAdd, target.AluMax, target.AluMin}).Draw(t, "op")
		in := strided(t, "in", target.BFloat16, parts, m*g, true)
		out := strided(t, "out", target.Float32, 1, m, false)
		if err := PartitionReduce(&s, op, &out, &in, true); err != nil {
			t.Fatal(err)
		}
		for i := range m {
			var want float32
			for p := range parts {
				x := valueAt(&in, p, i*g)
				for j := 1; j < g; j++ {
					x = arith(op, x, valueAt(&in, p, i*g+j))
				}
				if p == 0 {
					want = x
				} else {
					want = arith(op, want, x)
				}
			}
			if got := valueAt(&out, 0, i); !same(got, -want) {
				t.Fatalf("[%d] is %g, want %g", i, got, -want)
			}
		}
	})
	bits, one := blank(target.Uint16, 3, 1), blank(target.Uint16, 1, 1)
	copy(bits.Data, []byte{1, 0, 2, 0, 4, 1})
	must(t, PartitionReduce(&s, target.AluBitOr, &one, &bits, false))
	wantRow(t, "or", &one, 0, 0x107)
}

// A 3×3 window of stride 2 over a padded map, as a view of 4 axes: what the pooling template emits.
func TestPoolWindows(t *testing.T) {
	var s Scratch
	r := rng(21)
	const h, w, k, st = 9, 11, 3, 2
	img := dense(r, target.BFloat16, 5, h*w)
	oh, ow := (h-k)/st+1, (w-k)/st+1
	win := View{Data: img.Data, Dtype: target.BFloat16, Parts: 5, PStep: 2 * h * w, N: 4,
		Steps: [4]int{2, 2 * w, 2 * st, 2 * st * w}, Nums: [4]int{k, k, ow, oh}}
	if win.Inner(2) != k*k {
		t.Errorf("two inner axes have %d elements", win.Inner(2))
	}
	for _, avg := range []bool{false, true} {
		out := blank(target.Float32, 5, oh*ow)
		must(t, Pool(&s, avg, &out, &win))
		for p := range 5 {
			for y := range oh {
				for x := range ow {
					best, sum := float32(math.Inf(-1)), float32(0)
					for i := range k {
						for j := range k {
							v := valueAt(&img, p, (y*st+i)*w+x*st+j)
							best = max(best, v)
							sum += v
						}
					}
					want := best
					if avg {
						want = sum / (k * k)
					}
					if got := valueAt(&out, p, y*ow+x); got != want {
						t.Fatalf("avg %v [%d,%d,%d] is %g, want %g", avg, p, y, x, got, want)
					}
				}
			}
		}
	}
}

func TestBNStats(t *testing.T) {
	var s Scratch
	x := row(target.Float32, 1, 10, 3, 20, 8)
	st, mv := blank(target.Float32, 1, 6), blank(target.Float32, 1, 2)
	must(t, BNStats(&s, &st, &x))
	wantRow(t, "statistics", &st, 0, 3, 4, 26, 2, 15, 50)
	must(t, BNAggregate(&s, &mv, &st))
	wantRow(t, "mean and variance", &mv, 0, 8.4, 44.24)
}

// Statistics of pieces merge into those of the whole, for rows that are large compared with their spread too.
func TestBNAggregateIsWhole(t *testing.T) {
	var s Scratch
	r := rng(22)
	for _, n := range []int{1, 2, 511, 512, 1300} {
		x := blank(target.Float32, 1, n)
		var sum, sq float64
		vals := make([]float32, n)
		for i := range vals {
			vals[i] = 1000 + r.Float32()
			sum += float64(vals[i])
		}
		StoreRow(&x, 0, vals)
		mean := sum / float64(n)
		for _, v := range vals {
			sq += (float64(v) - mean) * (float64(v) - mean)
		}
		pieces := (n + 511) / 512
		st, mv := blank(target.Float32, 1, 6*pieces), blank(target.Float32, 1, 2)
		for i := range pieces {
			k := min(512, n-512*i)
			in := Dense(x.Data, 2048*i, target.Float32, 1, 0, k)
			out := Dense(st.Data, 24*i, target.Float32, 1, 0, 6)
			must(t, BNStats(&s, &out, &in))
		}
		must(t, BNAggregate(&s, &mv, &st))
		if got := float64(valueAt(&mv, 0, 0)); math.Abs(got-mean) > 1e-4 {
			t.Errorf("n=%d: mean %g, want %g", n, got, mean)
		}
		if got, want := float64(valueAt(&mv, 0, 1)), sq/float64(n); math.Abs(got-want) > 1e-3*want+1e-6 {
			t.Errorf("n=%d: variance %g, want %g", n, got, want)
		}
	}
}

func TestScanAndCache(t *testing.T) {
	var s Scratch
	x, y, out := row(target.Float32, 2, 3, 4), row(target.Float32, 10, 20, 30), blank(target.Float32, 1, 3)
	must(t, TensorTensorScan(&s, &out, &x, &y, &ScalarOps{Op0: target.AluMult, S0: Imm(1), Op1: target.AluAdd}))
	wantRow(t, "recurrence", &out, 0, 12, 56, 254)
	must(t, TensorTensorScan(&s, &out, &x, &y, &ScalarOps{Op0: target.AluSub, S0: Imm(1), Rev0: true, Op1: target.AluSub, Rev1: true}))
	wantRow(t, "reversed recurrence", &out, 0, 11, 12, 22) // y - (r - x)

	lanes := []float32{1000}
	acc := &Acc{Cmd: target.AccZeroAccumulate, Lanes: lanes}
	ops := &ScalarOps{Op0: target.AluMult, S0: Imm(-1), Op1: target.AluMax, S1: Imm(-2.5)}
	must(t, TensorScalarCache(&s, &out, &x, ops, CacheReduce, acc))
	wantRow(t, "cached reduce", &out, 0, -2, -3, -4)
	if lanes[0] != -2 {
		t.Errorf("cached maximum is %g", lanes[0])
	}
	acc.Cmd, ops.Op1 = target.AccLoadAccumulate, target.AluAdd
	must(t, TensorScalarCache(&s, &out, &x, ops, CacheCumulative, acc))
	wantRow(t, "cumulative", &out, 0, -4.5, -7.5, -11.5)
	if lanes[0] != -11.5 {
		t.Errorf("cumulative lane is %g", lanes[0])
	}
}

// The scalar family against its definition, every reverse bit, immediates and pointers.
func TestTensorScalarDefinition(t *testing.T) {
	var s Scratch
	ops := []target.AluOp{target.AluBypass, target.AluAdd, target.AluSub, target.AluMult, target.AluDivide, target.AluMax, target.AluLT, target.AluPow, target.AluAbs}
	rapid.Check(t, func(t *rapid.T) {
		parts, n := rapid.IntRange(1, 4).Draw(t, "parts"), rapid.IntRange(1, 6).Draw(t, "n")
		types := rapid.SampledFrom([]target.Dtype{target.Float32, target.BFloat16, target.Int32, target.Uint8})
		x, y := strided(t, "x", types.Draw(t, "x type"), parts, n, true), strided(t, "y", types.Draw(t, "y type"), parts, n, true)
		ptr := strided(t, "scalar", types.Draw(t, "scalar type"), parts, 1, true)
		out := blank(types.Draw(t, "out type"), parts, n)
		a := &ScalarOps{
			Op0: rapid.SampledFrom(ops).Draw(t, "op0"), Op1: rapid.SampledFrom(ops).Draw(t, "op1"),
			S0: Ptr(&ptr), S1: Imm(1.5), Rev0: rapid.Bool().Draw(t, "rev0"), Rev1: rapid.Bool().Draw(t, "rev1"),
		}
		def := func(second func(p, i int) float32) func(p, i int) float32 {
			return func(p, i int) float32 {
				r := pair(a.Op0, valueAt(&x, p, i), valueAt(&ptr, p, 0), a.Rev0)
				return pair(a.Op1, r, second(p, i), a.Rev1)
			}
		}
		compare := func(what string, want func(p, i int) float32) {
			for p := range parts {
				for i := range n {
					w := Encode(out.Dtype, want(p, i))
					if a.Op0 == target.AluBypass && a.Op1 == target.AluBypass && x.Dtype == out.Dtype && what == "TensorScalar" {
						w = rawAt(&x, p, i) // moved as raw bits
					}
					if a.Op0 == target.AluBypass && a.Op1 == target.AluBypass && x.Dtype.IsInteger() && out.Dtype.IsInteger() && what == "TensorScalar" {
						w = castInt(out.Dtype, x.Dtype, rawAt(&x, p, i))
					}
					if got := rawAt(&out, p, i); got != w {
						t.Fatalf("%s [%d,%d] is %#x, want %#x", what, p, i, got, w)
					}
				}
			}
		}
		if err := TensorScalar(&s, &out, &x, a, nil); err != nil {
			t.Fatal(err)
		}
		compare("TensorScalar", def(func(p, i int) float32 { return 1.5 }))
		if err := ScalarTensorTensor(&s, &out, &x, &y, a, nil); err != nil {
			t.Fatal(err)
		}
		compare("ScalarTensorTensor", def(func(p, i int) float32 { return valueAt(&y, p, i) }))
	})
}

func TestTop8(t *testing.T) {
	var s Scratch
	in := row(target.Float32, 3, 9, 9, nan, -1, 5, 9, 2, 7, 7, 0)
	top, at, out := blank(target.Float32, 1, 8), blank(target.Uint16, 1, 8), blank(target.Float32, 1, 11)
	must(t, Max8(&s, &top, &in))
	wantRow(t, "max", &top, 0, 9, 9, 9, 7, 7, 5, 3, 2)
	must(t, MaxIndex8(&s, &at, &in, &top))
	wantRow(t, "index", &at, 0, 1, 2, 6, 8, 9, 5, 0, 7)
	must(t, MatchReplace8(&s, &out, &in, &top, -100))
	wantRow(t, "replace", &out, 0, -100, -100, -100, nan, -1, -100, -100, -100, -100, -100, 0)

	short := row(target.Float32, 4, nan, 4)
	must(t, Max8(&s, &top, &short))
	wantRow(t, "short row", &top, 0, 4, 4, -inf, -inf, -inf, -inf, -inf, -inf)
	must(t, MaxIndex8(&s, &at, &short, &top))
	wantRow(t, "missing values", &at, 0, 0, 2, 65535, 65535, 65535, 65535, 65535, 65535)
	signed := blank(target.Int32, 1, 8)
	must(t, MaxIndex8(&s, &signed, &short, &top))
	wantRow(t, "missing values, signed", &signed, 0, 0, 2, -1, -1, -1, -1, -1, -1)
}

// ⌈k/8⌉ rounds of Max, MaxIndex, MatchReplace sort a row with ties: the indices are a permutation in descending order.
func TestTopKRounds(t *testing.T) {
	var s Scratch
	rapid.Check(t, func(t *rapid.T) {
		n := 8 * rapid.IntRange(1, 4).Draw(t, "octets")
		vals := make([]float32, n)
		for i := range vals {
			vals[i] = float32(rapid.IntRange(-3, 3).Draw(t, "value"))
		}
		in := row(target.Float32, vals...)
		top, at := blank(target.Float32, 1, 8), blank(target.Uint32, 1, 8)
		want := slices.Clone(vals)
		slices.Sort(want)
		slices.Reverse(want)
		seen := make([]bool, n)
		for k := 0; k < n; k += 8 {
			if Max8(&s, &top, &in) != nil || MaxIndex8(&s, &at, &in, &top) != nil || MatchReplace8(&s, &in, &in, &top, -inf) != nil {
				t.Fatal("refused")
			}
			for i, f := range values(&at, 0) {
				j := int(f)
				if seen[j] || vals[j] != want[k+i] {
					t.Fatalf("rank %d is position %d (%g), want %g", k+i, j, vals[j], want[k+i])
				}
				seen[j] = true
			}
		}
	})
}
