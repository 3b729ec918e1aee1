package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// dense makes a contiguous view of its own memory, filled with values in [-1, 1).
func dense(r *rand.Rand, dt target.Dtype, parts, n int) View {
	v := Dense(make([]byte, parts*n*dt.Size()), 0, dt, parts, n*dt.Size(), n)
	row := make([]float32, n)
	for p := range parts {
		for i := range row {
			row[i] = r.Float32()*2 - 1
		}
		StoreRow(&v, p, row)
	}
	return v
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkMatmul(b *testing.B) {
	for _, dt := range []target.Dtype{target.BFloat16, target.Float32} {
		for _, n := range []int{1, 4, 8, 64, 128, 512} {
			b.Run(fmt.Sprintf("%s/N=%d", dt, n), func(b *testing.B) {
				r := rng(1)
				var s Scratch
				x, w, y := dense(r, dt, 128, n), dense(r, dt, 128, 128), dense(r, target.Float32, 128, n)
				for b.Loop() {
					must(b, MatmulFull(&s, &y, &x, &w, false))
				}
				b.ReportMetric(128*128*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}

// BenchmarkElementwise reports the cost of one element of each operation on [128, 2048] fp32, the casts on what they cast.
func BenchmarkElementwise(b *testing.B) {
	const parts, n = 128, 2048
	r := rng(2)
	var s Scratch
	x, y, z := dense(r, target.Float32, parts, n), dense(r, target.Float32, parts, n), dense(r, target.Float32, parts, n)
	h, h2 := dense(r, target.BFloat16, parts, n), dense(r, target.BFloat16, parts, n)
	f := dense(r, target.Float16, parts, n)
	e := dense(r, target.Float8E4, parts, n)
	one, win := dense(r, target.Float32, parts, 1), dense(r, target.Float32, parts, n/4)
	lanes := make([]float32, parts)
	sum := &Acc{Cmd: target.AccZeroAccumulate, Op: target.AluAdd, Lanes: lanes}
	act := func(f target.ActFunc) func() error {
		return func() error {
			return Activation(&s, &z, &x, &ActOps{Func: f, Scale: Imm(1), Bias: Ptr(&one), Alpha: Imm(0.1)}, nil)
		}
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"add", func() error { return TensorTensor(&s, target.AluAdd, &z, &x, &y, nil) }},
		{"add-bf16", func() error { return TensorTensor(&s, target.AluAdd, &h2, &h, &h, nil) }},
		{"divide", func() error { return TensorTensor(&s, target.AluDivide, &z, &x, &y, nil) }},
		{"mod", func() error { return TensorTensor(&s, target.AluMod, &z, &x, &y, nil) }},
		{"pow", func() error { return TensorTensor(&s, target.AluPow, &z, &x, &y, nil) }},
		{"is_gt", func() error { return TensorTensor(&s, target.AluGT, &z, &x, &y, nil) }},
		{"and", func() error { return TensorTensor(&s, target.AluBitAnd, &z, &x, &y, nil) }},
		{"tensor-scalar", func() error {
			return TensorScalar(&s, &z, &x, &ScalarOps{Op0: target.AluMax, S0: Imm(0), Op1: target.AluMult, S1: Ptr(&one)}, nil)
		}},
		{"copy", func() error { return Copy(&s, &z, &x) }},
		{"fp32-bf16", func() error { return Copy(&s, &h, &x) }},
		{"bf16-fp32", func() error { return Copy(&s, &z, &h) }},
		{"fp32-fp16", func() error { return Copy(&s, &f, &x) }},
		{"fp16-fp32", func() error { return Copy(&s, &z, &f) }},
		{"fp32-fp8", func() error { return Copy(&s, &e, &x) }},
		{"reduce-add", func() error { return TensorReduce(&s, target.AluAdd, &one, &x, false) }},
		{"pool-4", func() error { return Pool(&s, false, &win, &x) }},
		{"predicated", func() error { return CopyPredicated(&s, &z, &x, &y, false, nil) }},
		{"max8", func() error {
			top := Dense(z.Data, 0, target.Float32, parts, 4*n, Top)
			return Max8(&s, &top, &x)
		}},
		{"bn-stats", func() error {
			st := Dense(z.Data, 0, target.Float32, parts, 4*n, BNStatValues)
			return BNStats(&s, &st, &x)
		}},
		{"transpose-32", func() error { return StreamTranspose(&s, &z, &x) }},
		{"exp-sum", func() error {
			return Activation(&s, &z, &x, &ActOps{Func: target.ActExp, Scale: Imm(1), Bias: Ptr(&one)}, sum)
		}},
		{"relu", act(target.ActRelu)},
		{"tanh", act(target.ActTanh)},
		{"sigmoid", act(target.ActSigmoid)},
		{"gelu", act(target.ActGelu)},
		{"erf", act(target.ActErf)},
		{"mish", act(target.ActMish)},
		{"ln", act(target.ActLn)},
		{"sin", act(target.ActSin)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				must(b, c.run())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(parts*n), "ns/elem")
		})
	}
}
