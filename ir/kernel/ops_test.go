package kernel

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// byteOf is the byte of element (p, i) of a view, by division rather than by walking.
func byteOf(v *View, p, i int) int {
	off := v.Off + p*v.PStep
	for d := range v.N {
		off += i % v.Nums[d] * v.Steps[d]
		i /= v.Nums[d]
	}
	return off
}

func rawAt(v *View, p, i int) uint64 {
	return loadBitsAt(v.Data, byteOf(v, p, i), v.Dtype.Size())
}

func valueAt(v *View, p, i int) float32 { return Decode(v.Dtype, rawAt(v, p, i)) }

// packed copies a view into memory of its own, contiguous.
func packed(v *View) View {
	n, size := v.Elems(), v.Dtype.Size()
	d := Dense(make([]byte, v.Parts*n*size), 0, v.Dtype, v.Parts, n*size, n)
	for p := range v.Parts {
		for i := range n {
			storeBitsAt(d.Data, byteOf(&d, p, i), size, rawAt(v, p, i))
		}
	}
	return d
}

// strided draws a view of parts × elems whose elements are all distinct bytes: axes nested in any order with gaps, some walked
// backwards, partitions anywhere among them. Reads may also broadcast axes.
func strided(t *rapid.T, label string, dt target.Dtype, parts, elems int, read bool) View {
	v := View{Dtype: dt, Parts: parts, N: rapid.IntRange(1, Axes).Draw(t, label+" axes")}
	left := elems
	for d := range v.N {
		v.Nums[d] = left
		if d < v.N-1 {
			var divs []int
			for k := 1; k <= left; k++ {
				if left%k == 0 {
					divs = append(divs, k)
				}
			}
			v.Nums[d] = rapid.SampledFrom(divs).Draw(t, label+" count")
		}
		left /= v.Nums[d]
	}
	order := rapid.Permutation([]int{-1, 0, 1, 2, 3}[:v.N+1]).Draw(t, label+" order")
	span := dt.Size()
	for _, d := range order {
		num := parts
		if d >= 0 {
			num = v.Nums[d]
		}
		step := span + dt.Size()*rapid.IntRange(0, 2).Draw(t, label+" gap")
		if read && d >= 0 && rapid.IntRange(0, 7).Draw(t, label+" broadcast") == 0 {
			step = 0
		} else {
			span = step * num
		}
		if step > 0 && rapid.IntRange(0, 3).Draw(t, label+" backwards") == 0 {
			v.Off += step * (num - 1)
			step = -step
		}
		if d < 0 {
			v.PStep = step
		} else {
			v.Steps[d] = step
		}
	}
	lead := rapid.IntRange(0, 3).Draw(t, label+" lead")
	v.Off += lead
	v.Data = make([]byte, lead+span+rapid.IntRange(0, 3).Draw(t, label+" tail"))
	r := rng(rapid.Uint64().Draw(t, label+" seed"))
	for i := range v.Data {
		v.Data[i] = byte(r.Uint32())
	}
	if dt.IsFloat() && rapid.Bool().Draw(t, label+" tame") {
		for p := range parts {
			for i := range elems {
				storeBitsAt(v.Data, byteOf(&v, p, i), dt.Size(), Encode(dt, r.Float32()*4-2))
			}
		}
	}
	return v
}

var numericTypes = []target.Dtype{
	target.Float32, target.BFloat16, target.Float16, target.Int32, target.Uint8, target.Int8, target.Uint16, target.Int16,
	target.Uint32, target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E5, target.Float8E8M0, target.Float32R,
}

// opCase is one operation with the operands it wants: ins[i] is p×n unless cols says otherwise.
type opCase struct {
	name string
	cols []int // 0: n, otherwise the literal count
	out  int   // 0: n, negative: n divided by it, otherwise the literal count
	run  func(s *Scratch, out *View, in []*View, lanes []float32) error
}

func accOf(lanes []float32) *Acc {
	return &Acc{Cmd: target.AccAccumulate, Op: target.AluAdd, Lanes: lanes}
}

var opCases = []opCase{
	{"TensorTensor", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return TensorTensor(s, target.AluSub, out, in[0], in[1], accOf(l))
	}},
	{"TensorScalar", []int{0, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return TensorScalar(s, out, in[0], &ScalarOps{Op0: target.AluSub, S0: Ptr(in[1]), Rev0: true, Op1: target.AluMult, S1: Imm(3)}, accOf(l))
	}},
	{"ScalarTensorTensor", []int{0, 0, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return ScalarTensorTensor(s, out, in[0], in[1], &ScalarOps{Op0: target.AluMult, S0: Ptr(in[2]), Op1: target.AluSub, Rev1: true}, accOf(l))
	}},
	{"TensorTensorScan", []int{0, 0, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return TensorTensorScan(s, out, in[0], in[1], &ScalarOps{Op0: target.AluMult, S0: Ptr(in[2]), Op1: target.AluAdd})
	}},
	{"TensorScalarCache", []int{0, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return TensorScalarCache(s, out, in[0], &ScalarOps{Op0: target.AluAdd, S0: Ptr(in[1]), Op1: target.AluMax}, CacheCumulative, accOf(l))
	}},
	{"Reciprocal", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return Reciprocal(s, out, in[0]) }},
	{"Activation", []int{0, 1, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return Activation(s, out, in[0], &ActOps{Func: target.ActLrelu, Scale: Ptr(in[1]), Bias: Ptr(in[2]), Alpha: Imm(.5)}, accOf(l))
	}},
	{"Exponential", []int{0, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return Exponential(s, out, in[0], Ptr(in[1]), accOf(l))
	}},
	{"TensorReduce", []int{0}, -4, func(s *Scratch, out *View, in []*View, l []float32) error {
		return TensorReduce(s, target.AluAdd, out, in[0], true)
	}},
	{"Pool", []int{0}, -4, func(s *Scratch, out *View, in []*View, l []float32) error { return Pool(s, true, out, in[0]) }},
	{"BNStats", []int{0}, BNStatValues, func(s *Scratch, out *View, in []*View, l []float32) error { return BNStats(s, out, in[0]) }},
	{"BNAggregate", []int{12}, 2, func(s *Scratch, out *View, in []*View, l []float32) error { return BNAggregate(s, out, in[0]) }},
	{"Copy", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return Copy(s, out, in[0]) }},
	{"Accumulate", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return Accumulate(s, target.AluMax, out, in[0])
	}},
	{"CopyPredicated", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return CopyPredicated(s, out, in[0], in[1], true, accOf(l))
	}},
	{"Select", []int{0, 0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return Select(s, out, in[0], in[1], in[2])
	}},
	{"Memset", nil, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return Memset(out, 0x12345678_9ABCDEF0) }},
	{"Iota", nil, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		n := out.Elems()
		return Iota(s, out, &Affine{Base: -7, Mult: 100, Steps: [Axes]int64{3, -5}, Nums: [Axes]int{2, n / 2}, N: 2})
	}},
	{"AffineSelect", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return AffineSelect(s, out, in[0], &Affine{Base: 3, Mult: 1, Steps: [Axes]int64{-1}, Nums: [Axes]int{out.Elems()}, N: 1}, target.AluGE, -9)
	}},
	{"RangeSelect", []int{0, 1}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return RangeSelect(s, out, in[0], &RangeOps{Lo: Imm(1), Hi: Ptr(in[1]), Cmp0: target.AluGE, Cmp1: target.AluLT, Fill: -1}, accOf(l))
	}},
	{"Max8", []int{0}, Top, func(s *Scratch, out *View, in []*View, l []float32) error { return Max8(s, out, in[0]) }},
	{"MaxIndex8", []int{0, Top}, Top, func(s *Scratch, out *View, in []*View, l []float32) error { return MaxIndex8(s, out, in[0], in[1]) }},
	{"MatchReplace8", []int{0, Top}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
		return MatchReplace8(s, out, in[0], in[1], 5)
	}},
}

// Whatever the steps, an operation gives the bits that it gives on contiguous copies, leaves every other byte of the output's
// memory and all of its inputs alone, and does so with scratch that served other shapes before.
func TestStridedIsDense(t *testing.T) {
	var s Scratch
	for _, c := range opCases {
		t.Run(c.name, rapid.MakeCheck(func(t *rapid.T) {
			parts, n := rapid.IntRange(1, 5).Draw(t, "parts"), 4*rapid.IntRange(1, 9).Draw(t, "quarter")
			cols := func(k int) int {
				switch {
				case k == 0:
					return n
				case k < 0:
					return n / -k
				}
				return k
			}
			types := rapid.SampledFrom(numericTypes)
			out := strided(t, "out", types.Draw(t, "out type"), parts, cols(c.out), false)
			dense := packed(&out)
			var ins, ins2 []*View
			var before [][]byte
			for i, k := range c.cols {
				v := strided(t, fmt.Sprint("in", i), types.Draw(t, "in type"), parts, cols(k), true)
				d := packed(&v)
				ins, ins2, before = append(ins, &v), append(ins2, &d), append(before, bytes.Clone(v.Data))
			}
			lanes, lanes2 := make([]float32, parts), make([]float32, parts)
			rest := bytes.Clone(out.Data)
			if err := c.run(&s, &out, ins, lanes); err != nil {
				t.Fatal(err)
			}
			if err := c.run(new(Scratch), &dense, ins2, lanes2); err != nil {
				t.Fatal(err)
			}
			for p := range parts {
				if f32bits(lanes[p]) != f32bits(lanes2[p]) {
					t.Fatalf("lane %d is %g, %g when contiguous", p, lanes[p], lanes2[p])
				}
				for i := range out.Elems() {
					if a, b := rawAt(&out, p, i), rawAt(&dense, p, i); a != b {
						t.Fatalf("[%d,%d] is %#x, %#x when contiguous", p, i, a, b)
					}
					storeBitsAt(out.Data, byteOf(&out, p, i), out.Dtype.Size(), 0)
					storeBitsAt(rest, byteOf(&out, p, i), out.Dtype.Size(), 0)
				}
			}
			if !bytes.Equal(out.Data, rest) {
				t.Fatal("bytes outside of the output changed")
			}
			for i := range ins {
				if !bytes.Equal(ins[i].Data, before[i]) {
					t.Fatalf("in%d changed", i)
				}
			}
		}))
	}
}

// Every mistake in a view is an error of the operation that meets it, never a panic.
func TestBadViews(t *testing.T) {
	var s Scratch
	faults := []struct {
		name string
		bad  func(*View)
	}{
		{"type", func(v *View) { v.Dtype = 99 }},
		{"axes", func(v *View) { v.N = 5 }},
		{"negative axes", func(v *View) { v.N = -1 }},
		{"no partitions", func(v *View) { v.Parts = 0 }},
		{"zero count", func(v *View) { v.Nums[0] = 0 }},
		{"short", func(v *View) { v.Data = v.Data[:255] }},
		{"before", func(v *View) { v.Off = -4 }},
		{"after", func(v *View) { v.Off = 4 }},
		{"backwards", func(v *View) { v.Steps[0] = -4 }},
		{"huge step", func(v *View) { v.Steps[0] = 1 << 62 }},
		{"least step", func(v *View) { v.Steps[0] = -1 << 63 }},
		{"huge count", func(v *View) { v.N, v.Nums[1], v.Steps[1] = 2, 1<<62, 4 }},
		{"broadcast count", func(v *View) { v.N, v.Nums[1] = 2, 1<<44 }},
		{"overflowing", func(v *View) {
			v.N, v.Parts, v.PStep, v.Nums, v.Steps = 2, 1<<32, 0, [4]int{1 << 32, 1 << 32}, [4]int{}
		}},
		{"beyond by the partitions", func(v *View) { v.PStep = 65 }},
	}
	for _, f := range faults {
		for _, c := range opCases {
			for bad := -1; bad < len(c.cols); bad++ {
				if c.out != 0 || c.name == "Iota" || c.name == "AffineSelect" || bad >= 0 && c.cols[bad] != 0 {
					continue
				}
				out := Dense(make([]byte, 256), 0, target.Float32, 4, 64, 16)
				ins := make([]*View, len(c.cols))
				for i, k := range c.cols {
					v := Dense(make([]byte, 256), 0, target.Float32, 4, 64, 16)
					if k != 0 {
						v.Nums[0] = k
					}
					ins[i] = &v
				}
				if bad < 0 {
					f.bad(&out)
				} else {
					f.bad(ins[bad])
				}
				if err := c.run(&s, &out, ins, make([]float32, 4)); err == nil {
					t.Errorf("%s accepts operand %d with bad %s", c.name, bad, f.name)
				}
			}
		}
	}
}

// Offsets and strides whose sums and products wrap around an int are outside, not inside.
func TestCheckDoesNotWrap(t *testing.T) {
	v := Dense(make([]byte, 256), 0, target.Float32, 1, 0, 4)
	must(t, v.Check("test", "view"))
	for _, c := range []struct{ off, step, num int }{{1<<63 - 1, 4, 4}, {-1 << 63, 4, 4}, {0, 1 << 32, 1<<32 + 1}, {0, -1 << 63, 3}, {0, 1 << 62, 5}, {252, 1, 2}} {
		w := v
		w.Off, w.Steps[0], w.Nums[0] = c.off, c.step, c.num
		if w.Check("test", "view") == nil {
			t.Errorf("offset %d, step %d, count %d passes", c.off, c.step, c.num)
		}
	}
}

// Views drawn without any care either work or are refused.
func TestAnyViewNeverPanics(t *testing.T) {
	var s Scratch
	number := rapid.SampledFrom([]int{-1 << 63, -1 << 40, -8, -4, -2, -1, 0, 1, 2, 4, 8, 12, 64, 1 << 40, 1<<63 - 1})
	count := rapid.SampledFrom([]int{-1, 0, 1, 1, 2, 2, 3, 4, 8, 1 << 40, 1<<63 - 1})
	view := rapid.Custom(func(t *rapid.T) *View {
		v := &View{Data: make([]byte, rapid.IntRange(0, 300).Draw(t, "bytes")), Off: number.Draw(t, "off"), PStep: number.Draw(t, "pstep"),
			Parts: count.Draw(t, "parts"), Dtype: target.Dtype(rapid.IntRange(0, 21).Draw(t, "type")), N: rapid.IntRange(0, Axes).Draw(t, "axes")}
		for d := range v.N {
			v.Steps[d], v.Nums[d] = number.Draw(t, "step"), count.Draw(t, "count")
		}
		if rapid.IntRange(0, 3).Draw(t, "plausible") > 0 {
			*v = blank(rapid.SampledFrom([]target.Dtype{target.Float32, target.Float32, target.Int32}).Draw(t, "usual type"), 8, 8)
		}
		return v
	})
	ops := append([]opCase{
		{"PartitionReduce", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
			return PartitionReduce(s, target.AluAdd, out, in[0], false)
		}},
		{"StreamTranspose", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return StreamTranspose(s, out, in[0]) }},
		{"StreamShuffle", []int{0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
			return StreamShuffle(s, out, in[0], new([Block]uint8))
		}},
		{"Gather", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return Gather(s, out, in[0], in[1]) }},
		{"IndirectCopy", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
			return IndirectCopy(s, out, in[0], in[1], 3)
		}},
		{"GatherRows", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
			return GatherRows(s, out, in[0], in[1], true)
		}},
		{"ScatterRows", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
			return ScatterRows(s, target.AluAdd, out, in[0], in[1], false)
		}},
		{"Matmul", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error {
			return MatmulFull(s, out, in[0], in[1], true)
		}},
		{"Transpose", []int{0, 0}, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return Transpose(s, out, in[0], in[1]) }},
		{"ReadAccumulator", nil, 0, func(s *Scratch, out *View, in []*View, l []float32) error { return ReadAccumulator(out, l, false) }},
	}, opCases...)
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(ops).Draw(t, "operation")
		out := view.Draw(t, "out")
		ins := make([]*View, len(c.cols))
		for i := range ins {
			ins[i] = view.Draw(t, "in")
		}
		if c.run(&s, out, ins, make([]float32, 4)) == nil {
			passed++
		}
	})
	if passed == 0 {
		t.Error("no drawn view was fit for its operation: the generator tests nothing")
	}
}
