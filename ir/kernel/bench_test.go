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
		for _, n := range []int{1, 4, 8, 32, 64, 128, 512} {
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

type hotOp struct {
	name string
	run  func() error
}

// hotOps is every operation on [parts, n] fp32 operands (casts on what they cast), ready to run again and again. n is a multiple
// of 32 and parts is.
func hotOps(parts, n int) []hotOp {
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
	idx, list := Dense(make([]byte, parts*4*n), 0, target.Int32, parts, 4*n, n), Dense(make([]byte, parts*2), 0, target.Uint16, parts, 2, 1)
	rows := Dense(make([]byte, parts*4), 0, target.Int32, parts, 4, 1)
	line := dense(r, target.Float32, 1, n)
	top := Dense(z.Data, 0, target.Float32, parts, 4*n, Top)
	var mask [Block]uint8
	for i := range mask {
		mask[i] = uint8(Block - 1 - i)
	}
	ramp := &Affine{Base: 5, Mult: 1, Steps: [Axes]int64{-1}, Nums: [Axes]int{n}, N: 1}
	eye := identityView(target.BFloat16, parts)
	sq := Dense(h.Data, 0, target.BFloat16, parts, 2*n, min(n, 128))
	ps := Dense(h2.Data, 0, target.BFloat16, sq.Elems(), 2*parts, parts)
	return []hotOp{
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
		{"max8", func() error { return Max8(&s, &top, &x) }},
		{"max-index", func() error { return MaxIndex8(&s, &top, &x, &top) }},
		{"match-replace", func() error { return MatchReplace8(&s, &z, &x, &top, 0) }},
		{"bn-stats", func() error {
			st := Dense(z.Data, 0, target.Float32, parts, 4*n, BNStatValues)
			return BNStats(&s, &st, &x)
		}},
		{"bn-aggregate", func() error {
			st := Dense(x.Data, 0, target.Float32, parts, 4*n, 12)
			mv := Dense(z.Data, 0, target.Float32, parts, 4*n, 2)
			return BNAggregate(&s, &mv, &st)
		}},
		{"stt", func() error {
			return ScalarTensorTensor(&s, &z, &x, &y, &ScalarOps{Op0: target.AluMult, S0: Ptr(&one), Op1: target.AluAdd}, sum)
		}},
		{"scan", func() error {
			return TensorTensorScan(&s, &z, &x, &y, &ScalarOps{Op0: target.AluMult, Op1: target.AluAdd})
		}},
		{"cache", func() error {
			return TensorScalarCache(&s, &z, &x, &ScalarOps{Op0: target.AluMult, S0: Imm(2), Op1: target.AluMax}, CacheReduce, sum)
		}},
		{"read-acc", func() error { return ReadAccumulator(&one, lanes, true) }},
		{"reciprocal", func() error { return Reciprocal(&s, &z, &x) }},
		{"exponential", func() error { return Exponential(&s, &z, &x, Ptr(&one), sum) }},
		{"partition-reduce", func() error { return PartitionReduce(&s, target.AluMax, &line, &x, false) }},
		{"accumulate", func() error { return Accumulate(&s, target.AluMax, &z, &x) }},
		{"select", func() error { return Select(&s, &z, &x, &y, &x) }},
		{"memset", func() error { return Memset(&z, 1) }},
		{"iota", func() error { return Iota(&s, &idx, &Affine{Nums: [Axes]int{n}, N: 1}) }},
		{"affine-select", func() error { return AffineSelect(&s, &z, &x, ramp, target.AluGE, 0) }},
		{"range-select", func() error {
			return RangeSelect(&s, &z, &x, &RangeOps{Lo: Imm(1), Hi: Ptr(&one), Cmp0: target.AluGE, Cmp1: target.AluLT}, sum)
		}},
		{"shuffle", func() error { return StreamShuffle(&s, &z, &x, &mask) }},
		{"gather", func() error { return Gather(&s, &z, &x, &idx) }},
		{"indirect-copy", func() error { return IndirectCopy(&s, &z, &x, &list, min(n, IndirectGroup)) }},
		{"gather-rows", func() error { return GatherRows(&s, &z, &x, &rows, false) }},
		{"scatter-rows", func() error { return ScatterRows(&s, target.AluMax, &z, &x, &rows, false) }},
		{"pe-transpose", func() error { return Transpose(&s, &ps, &eye, &sq) }},
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
	}
}

// BenchmarkElementwise reports the cost of one element of each operation.
func BenchmarkElementwise(b *testing.B) {
	const parts, n = 128, 2048
	for _, c := range hotOps(parts, n) {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				must(b, c.run())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(parts*n), "ns/elem")
		})
	}
}

// Once the scratch has seen a size, nothing allocates.
func TestNoAllocs(t *testing.T) {
	for _, c := range hotOps(64, 64) {
		must(t, c.run())
		if n := testing.AllocsPerRun(5, func() { must(t, c.run()) }); n != 0 {
			t.Errorf("%s: %g allocations a run", c.name, n)
		}
	}
	r := rng(1)
	for _, dt := range []target.Dtype{target.BFloat16, target.Float32} {
		for _, n := range []int{1, 64} {
			var s Scratch
			x, w, y := dense(r, dt, 32, n), dense(r, dt, 32, 16), dense(r, target.Float32, 16, n)
			must(t, MatmulFull(&s, &y, &x, &w, false))
			if k := testing.AllocsPerRun(5, func() { must(t, MatmulFull(&s, &y, &x, &w, true)) }); k != 0 {
				t.Errorf("%s matmul of N=%d: %g allocations a run", dt, n, k)
			}
		}
	}
}
