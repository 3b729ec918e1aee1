package kernel

import (
	"bytes"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// A DMA descriptor: both sides are walks of up to 4 axes of one partition, shapes independent, types possibly different. Element
// k of one walk is element k of the other.
func TestCopyOfIndependentShapes(t *testing.T) {
	var s Scratch
	all := append([]target.Dtype{target.Int64, target.Uint64, target.Float4E2M1x4, target.Float8E4M3FNx4}, numericTypes...)
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.SampledFrom([]int{1, 12, 60, 64, 2100}).Draw(t, "total")
		split := func(label string) (int, int) {
			p := rapid.SampledFrom([]int{1, 2, 3, 4, 6, 12}).Draw(t, label)
			if total%p != 0 {
				p = 1
			}
			return p, total / p
		}
		from := rapid.SampledFrom(all).Draw(t, "from")
		to := from
		if rapid.Bool().Draw(t, "cast") && from.Class() != target.ClassPacked {
			to = rapid.SampledFrom(append([]target.Dtype{target.Int64, target.Uint64}, numericTypes...)).Draw(t, "to")
		}
		p, n := split("in parts")
		q, m := split("out parts")
		in, out := strided(t, "in", from, p, n, true), strided(t, "out", to, q, m, false)
		if err := Copy(&s, &out, &in); err != nil {
			t.Fatal(err)
		}
		for k := range total {
			raw := rawAt(&in, k/n, k%n)
			want := raw
			switch {
			case from == to || from.IsFloat() && to.IsFloat() && from.Size() == 4 && to.Size() == 4:
			case from.IsInteger() && to.IsInteger():
				want = castInt(to, from, raw)
			default:
				want = Encode(to, Decode(from, raw))
			}
			if got := rawAt(&out, k/m, k%m); got != want {
				t.Fatalf("%s to %s: element %d is %#x, want %#x (from %#x)", from, to, k, got, want, raw)
			}
		}
	})
}

func TestCopyRefuses(t *testing.T) {
	var s Scratch
	a, b := blank(target.Float32, 2, 6), blank(target.Float32, 1, 11)
	if Copy(&s, &b, &a) == nil {
		t.Error("12 elements go into 11")
	}
	x4 := blank(target.Float8E5M2x4, 2, 6)
	if err := Copy(&s, &a, &x4); target.ClassOf(err) != target.Unsupported {
		t.Errorf("packed to fp32: %v", err)
	}
	wide := View{Data: a.Data, Dtype: target.Float32, Parts: 1 << 40, Nums: [4]int{1}, N: 1}
	if Copy(&s, &wide, &wide) == nil || Memset(&wide, 0) == nil || Accumulate(&s, target.AluAdd, &wide, &wide) == nil {
		t.Error("an output that writes one element 2^40 times passes")
	}
}

func TestTypedMoves(t *testing.T) {
	var s Scratch
	// fp32 to int8 truncates and saturates; the copy of equal types keeps a signalling NaN.
	x, y := row(target.Float32, 2.7, -2.7, 300, nan), blank(target.Int8, 1, 4)
	must(t, Copy(&s, &y, &x))
	wantRow(t, "to int8", &y, 0, 2, -2, 127, 0)
	z := blank(target.Float32R, 1, 4)
	le.PutUint32(x.Data, 0x7F812345)
	must(t, Copy(&s, &z, &x))
	if !bytes.Equal(x.Data, z.Data) {
		t.Error("fp32 to fp32r changes bits")
	}
	must(t, Accumulate(&s, target.AluAdd, &y, &y))
	wantRow(t, "accumulated", &y, 0, 4, -4, 127, 0)
}

func TestPredicates(t *testing.T) {
	var s Scratch
	yes, no := row(target.Float32, 1, 2, 3, nan), row(target.Float32, -1, -2, -3, -4)
	for _, c := range []struct {
		pred View
		want []float32
	}{
		{row(target.Float32, 0, negZero, nan, tiny), []float32{-1, -2, 3, nan}},
		{row(target.Uint8, 1, 0, 255, 0), []float32{1, -2, 3, -4}},
		{row(target.Float8E8M0, 1, 2, 4, 0x1p-127), []float32{1, 2, 3, -4}}, // code 0 is false
		{row(target.Int64, 0, -1, 0, 5), []float32{-1, 2, -3, nan}},
	} {
		out := blank(target.Float32, 1, 4)
		must(t, Select(&s, &out, &c.pred, &yes, &no))
		wantRow(t, "select on "+c.pred.Dtype.String(), &out, 0, c.want...)
		dst := packed(&no)
		must(t, CopyPredicated(&s, &dst, &yes, &c.pred, false, nil))
		wantRow(t, "predicated on "+c.pred.Dtype.String(), &dst, 0, c.want...)
		dst = packed(&yes)
		must(t, CopyPredicated(&s, &dst, &no, &c.pred, true, nil))
		wantRow(t, "reversed on "+c.pred.Dtype.String(), &dst, 0, c.want...)
	}
	lanes := []float32{0}
	dst, pred := row(target.BFloat16, 1, 2, 3, 4), row(target.Uint8, 0, 1, 0, 1)
	must(t, CopyPredicated(&s, &dst, &no, &pred, false, &Acc{Cmd: target.AccZeroAccumulate, Op: target.AluMax, Lanes: lanes}))
	wantRow(t, "with a cast", &dst, 0, 1, -2, 3, -4)
	if lanes[0] != 3 {
		t.Errorf("maximum of the predicated row is %g", lanes[0])
	}
}

func TestMemset(t *testing.T) {
	for _, c := range []struct {
		dt   target.Dtype
		bits uint64
		want float32
	}{
		{target.Float32, 0x40400000, 3}, {target.BFloat16, 0x4040, 3}, {target.Float16, 0x4200, 3}, {target.Uint8, 0x1FF, 255}, {target.Int8, 0xFF, -1},
		{target.Int32, 0xFFFFFFFF, -1}, {target.Int64, ^uint64(0), -1}, {target.Int64, 0xFFFFFFFF, 1 << 32},
	} {
		v := blank(c.dt, 2, 3)
		must(t, Memset(&v, c.bits))
		for p := range 2 {
			wantRow(t, c.dt.String(), &v, p, c.want, c.want, c.want)
		}
	}
}

func TestIndexOperations(t *testing.T) {
	var s Scratch
	a := &Affine{Base: 10, Mult: 100, Steps: [4]int64{1, -4}, Nums: [4]int{3, 2}, N: 2}
	for _, dt := range []target.Dtype{target.Float32, target.Int32, target.Int64, target.BFloat16} {
		out := blank(dt, 2, 6)
		must(t, Iota(&s, &out, a))
		wantRow(t, "iota "+dt.String(), &out, 0, 10, 11, 12, 6, 7, 8)
		if dt != target.BFloat16 {
			wantRow(t, "iota "+dt.String(), &out, 1, 110, 111, 112, 106, 107, 108)
		}
	}
	sat := blank(target.Int8, 2, 6)
	must(t, Iota(&s, &sat, a))
	wantRow(t, "saturating iota", &sat, 1, 110, 111, 112, 106, 107, 108)
	must(t, Iota(&s, &sat, &Affine{Base: 126, Steps: [4]int64{1}, Nums: [4]int{6}, N: 1}))
	wantRow(t, "saturating iota", &sat, 0, 126, 127, 127, 127, 127, 127)
	exact := blank(target.Int32, 1, 1)
	must(t, Iota(&s, &exact, &Affine{Base: 1<<24 + 1}))
	if got := le.Uint32(exact.Data); got != 1<<24+1 {
		t.Errorf("iota beyond 24 bits is %d", got)
	}

	// The causal mask: keep where query - key ≥ 0.
	x := blank(target.Float32, 3, 3)
	must(t, Memset(&x, 0x3F800000))
	must(t, AffineSelect(&s, &x, &x, &Affine{Mult: 1, Steps: [4]int64{-1}, Nums: [4]int{3}, N: 1}, target.AluGE, -3.4e38))
	wantRow(t, "causal", &x, 0, 1, -3.4e38, -3.4e38)
	wantRow(t, "causal", &x, 1, 1, 1, -3.4e38)
	wantRow(t, "causal", &x, 2, 1, 1, 1)
	for _, c := range []struct {
		op   target.AluOp
		want [3]float32
	}{
		{target.AluEqual, [3]float32{0, 5, 0}}, {target.AluNotEqual, [3]float32{5, 0, 5}}, {target.AluGT, [3]float32{0, 0, 5}},
		{target.AluGE, [3]float32{0, 5, 5}}, {target.AluLT, [3]float32{5, 0, 0}}, {target.AluLE, [3]float32{5, 5, 0}},
	} {
		y := row(target.Float32, 5, 5, 5)
		must(t, AffineSelect(&s, &y, &y, &Affine{Base: -1, Steps: [4]int64{1}, Nums: [4]int{3}, N: 1}, c.op, 0))
		wantRow(t, c.op.String(), &y, 0, c.want[:]...)
	}
	if AffineSelect(&s, &x, &x, &Affine{Nums: [4]int{3}, N: 1}, target.AluAdd, 0) == nil {
		t.Error("add selects")
	}
	if Iota(&s, &x, &Affine{Nums: [4]int{4}, N: 1}) == nil {
		t.Error("a pattern of 4 fills 3")
	}

	// Range select with bounds a partition and the fused maximum.
	lo, hi := blank(target.Float32, 2, 1), blank(target.Float32, 2, 1)
	StoreRow(&lo, 0, []float32{1})
	StoreRow(&lo, 1, []float32{0})
	StoreRow(&hi, 0, []float32{3})
	StoreRow(&hi, 1, []float32{1})
	in, out := blank(target.Float32, 2, 4), blank(target.Float32, 2, 4)
	StoreRow(&in, 0, []float32{10, 11, 12, 13})
	StoreRow(&in, 1, []float32{20, 21, 22, 23})
	lanes := make([]float32, 2)
	must(t, RangeSelect(&s, &out, &in, &RangeOps{Lo: Ptr(&lo), Hi: Ptr(&hi), Cmp0: target.AluGE, Cmp1: target.AluLT, Fill: -1},
		&Acc{Cmd: target.AccZeroAccumulate, Op: target.AluMax, Lanes: lanes}))
	wantRow(t, "range", &out, 0, -1, 11, 12, -1)
	wantRow(t, "range", &out, 1, 20, -1, -1, -1)
	if lanes[0] != 12 || lanes[1] != 20 {
		t.Errorf("fused maxima %g", lanes)
	}
}

func TestStreamTranspose(t *testing.T) {
	var s Scratch
	r := rng(31)
	for _, c := range [][2]int{{32, 32}, {64, 96}, {128, 32}, {5, 9}, {32, 7}} {
		p, f := c[0], c[1]
		in := blank(target.Uint16, p, f)
		for i := range in.Data {
			in.Data[i] = byte(r.Uint32())
		}
		whole := p%Block == 0 && f%Block == 0
		out := blank(target.Uint16, f, p)
		if whole {
			out = blank(target.Uint16, p, f)
		}
		must(t, StreamTranspose(&s, &out, &in))
		for i := range p {
			for j := range f {
				q, k := j, i
				if whole {
					q, k = i/Block*Block+j%Block, j/Block*Block+i%Block
				}
				if a, b := rawAt(&out, q, k), rawAt(&in, i, j); a != b {
					t.Fatalf("%d×%d: [%d,%d] is %#x, want %#x", p, f, q, k, a, b)
				}
			}
		}
		if whole {
			must(t, StreamTranspose(&s, &out, &out))
			if !bytes.Equal(out.Data, in.Data) {
				t.Errorf("%d×%d: twice in place is not the identity", p, f)
			}
		}
	}
	in, out := blank(target.Uint16, 33, 32), blank(target.Uint16, 32, 33)
	if StreamTranspose(&s, &out, &in) == nil {
		t.Error("33 partitions pass")
	}
}

func TestStreamShuffle(t *testing.T) {
	var s Scratch
	in, out := blank(target.Int32, 64, 2), blank(target.Int32, 64, 2)
	must(t, Iota(&s, &in, &Affine{Mult: 10, Steps: [4]int64{1}, Nums: [4]int{2}, N: 1}))
	must(t, Memset(&out, 7))
	var mask [Block]uint8
	for i := range mask {
		mask[i] = uint8(i * 5 % Block)
	}
	mask[3] = ShuffleKeep
	must(t, StreamShuffle(&s, &out, &in, &mask))
	for p := range 64 {
		m := float32(p/Block*Block + p%Block*5%Block)
		want := []float32{10 * m, 10*m + 1}
		if p%Block == 3 {
			want = []float32{7, 7}
		}
		wantRow(t, "shuffle", &out, p, want...)
	}
	inPlace := packed(&in)
	must(t, StreamShuffle(&s, &inPlace, &inPlace, &mask))
	wantRow(t, "kept in place", &inPlace, 3, 30, 31)
	wantRow(t, "moved in place", &inPlace, 33, 370, 371)
	mask[0] = 40
	if StreamShuffle(&s, &out, &in, &mask) == nil {
		t.Error("mask entry 40 passes")
	}
}

func TestGathers(t *testing.T) {
	var s Scratch
	data := blank(target.BFloat16, 2, 4)
	StoreRow(&data, 0, []float32{1, 2, 3, 4})
	StoreRow(&data, 1, []float32{5, 6, 7, 8})
	idx, out := blank(target.Uint16, 2, 3), blank(target.BFloat16, 2, 3)
	StoreRow(&idx, 0, []float32{3, 3, 0})
	StoreRow(&idx, 1, []float32{1, 2, 0})
	must(t, Gather(&s, &out, &data, &idx))
	wantRow(t, "gather", &out, 0, 4, 4, 1)
	wantRow(t, "gather", &out, 1, 6, 7, 5)
	StoreRow(&idx, 0, []float32{4})
	if Gather(&s, &out, &data, &idx) == nil {
		t.Error("index 4 of 4 passes")
	}

	// Two groups of 16 partitions and one of 4; 5 valid entries of a list that is spread over the partitions.
	wide, list, dst := blank(target.Int32, 36, 10), blank(target.Uint16, 36, 2), blank(target.Int32, 36, 6)
	must(t, Iota(&s, &wide, &Affine{Mult: 100, Steps: [4]int64{1}, Nums: [4]int{10}, N: 1}))
	must(t, Memset(&dst, 9))
	entry := func(g, i int) float32 { return float32((3*i + g) % 10) }
	for p := range 36 {
		g, h := p/16, min(16, 36-p/16*16)
		StoreRow(&list, p, []float32{entry(g, p%16), entry(g, p%16+h)})
	}
	must(t, IndirectCopy(&s, &dst, &wide, &list, 5))
	for p := range 36 {
		var want []float32
		for i := range 5 {
			want = append(want, float32(100*p)+entry(p/16, i))
		}
		wantRow(t, "indirect copy", &dst, p, append(want, 9)...)
	}
	if IndirectCopy(&s, &dst, &wide, &list, 7) == nil {
		t.Error("7 valid entries of 6 pass")
	}
}

func TestRowMoves(t *testing.T) {
	var s Scratch
	table := blank(target.Float32, 5, 3)
	must(t, Iota(&s, &table, &Affine{Mult: 10, Steps: [4]int64{1}, Nums: [4]int{3}, N: 1}))
	idx, out := blank(target.Int32, 3, 1), blank(target.BFloat16, 3, 3)
	set := func(vals ...int) {
		for p, k := range vals {
			le.PutUint32(idx.Data[4*p:], uint32(k))
		}
	}
	set(4, 0, 4)
	must(t, GatherRows(&s, &out, &table, &idx, false))
	wantRow(t, "rows", &out, 0, 40, 41, 42)
	wantRow(t, "rows", &out, 1, 0, 1, 2)
	wantRow(t, "rows", &out, 2, 40, 41, 42)
	set(1, -1, 5)
	before := bytes.Clone(out.Data)
	if GatherRows(&s, &out, &table, &idx, false) == nil {
		t.Error("index -1 passes")
	}
	if !bytes.Equal(out.Data, before) {
		t.Error("a refused load wrote")
	}
	must(t, GatherRows(&s, &out, &table, &idx, true))
	wantRow(t, "skipping", &out, 0, 10, 11, 12)
	wantRow(t, "skipping", &out, 1, 0, 1, 2)

	upd := blank(target.Float32, 3, 3)
	must(t, Memset(&upd, 0x3F800000))
	set(2, 2, 9)
	must(t, ScatterRows(&s, target.AluAdd, &table, &upd, &idx, true))
	wantRow(t, "added twice", &table, 2, 22, 23, 24)
	set(2, 0, 3)
	must(t, ScatterRows(&s, target.AluBypass, &table, &upd, &idx, false))
	wantRow(t, "overwritten", &table, 3, 1, 1, 1)
	wantRow(t, "untouched", &table, 4, 40, 41, 42)
}
