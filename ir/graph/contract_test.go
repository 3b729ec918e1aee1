package graph

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// randomTensor fills a float tensor with multiples of 1/8 in [-1, 1), which every float type from f16 up holds, so that small
// sums of products are exact in float32 and a naive float64 sum must agree to the bit.
func randomTensor(seed uint64, d Dtype, dims ...int64) Tensor {
	t := NewTensor(d, dims...)
	for i := range t.Len() {
		bits, _ := EncodeFloat(d, math.Floor(uniform(seed, uint64(i))*8)/8)
		putElem(d, t.Data, i, bits)
	}
	return t
}

// coords takes flat index i apart.
func coords(i int, dims []int64) []int64 {
	c := make([]int64, len(dims))
	for k := len(dims) - 1; k >= 0; k-- {
		c[k] = int64(i) % dims[k]
		i /= int(dims[k])
	}
	return c
}

func flat(c, dims []int64) int {
	i := int64(0)
	for k := range c {
		i = i*dims[k] + c[k]
	}
	return int(i)
}

func naiveDot(x, y Tensor, lb, rb, lc, rc, odims []int64) []float64 {
	lf, rf := free(len(x.Dims), lb, lc), free(len(y.Dims), rb, rc)
	kd := pick(x.Dims, lc)
	out := make([]float64, count(odims))
	for i := range out {
		o := coords(i, odims)
		xc, yc := make([]int64, len(x.Dims)), make([]int64, len(y.Dims))
		for k := range lb {
			xc[lb[k]], yc[rb[k]] = o[k], o[k]
		}
		for k, d := range lf {
			xc[d] = o[len(lb)+k]
		}
		for k, d := range rf {
			yc[d] = o[len(lb)+len(lf)+k]
		}
		for j := range count(kd) {
			for k, c := range coords(j, kd) {
				xc[lc[k]], yc[rc[k]] = c, c
			}
			out[i] += x.Float(flat(xc, x.Dims)) * y.Float(flat(yc, y.Dims))
		}
	}
	return out
}

func TestDotAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.Int64Range(1, 12)
		nb, nc := rapid.IntRange(0, 2).Draw(t, "batch"), rapid.IntRange(0, 2).Draw(t, "contract")
		nl, nr := rapid.IntRange(0, 2).Draw(t, "lhs free"), rapid.IntRange(0, 2).Draw(t, "rhs free")
		draw := func(n int) []int64 {
			s := make([]int64, n)
			for i := range s {
				s[i] = dim.Draw(t, "dim")
			}
			return s
		}
		b, c, l, r := draw(nb), draw(nc), draw(nl), draw(nr)
		layout := func(parts ...[]int64) ([]int64, [][]int64) {
			all := slices.Concat(parts...)
			perm := make([]int, len(all))
			for i := range perm {
				perm[i] = i
			}
			perm = rapid.Permutation(perm).Draw(t, "layout")
			dims := make([]int64, len(all))
			at := make([]int64, len(all))
			for i, p := range perm {
				dims[p], at[i] = all[i], int64(p)
			}
			var lists [][]int64
			for _, p := range parts {
				lists = append(lists, at[:len(p)])
				at = at[len(p):]
			}
			return dims, lists
		}
		xd, xl := layout(b, c, l)
		yd, yl := layout(b, c, r)
		d := rapid.SampledFrom([]Dtype{F32, F64, BF16, F16, F8E5M2}).Draw(t, "dtype")
		x, y := randomTensor(1, d, xd...), randomTensor(2, d, yd...)
		var g Graph
		bl := Begin(&g, "main")
		g.Entry, _ = bl.End(bl.Dot(bl.Param("x", d, xd...), bl.Param("y", d, yd...), xl[0], yl[0], xl[1], yl[1]))
		outs, err := Eval(&g, []Tensor{x, y})
		if err != nil {
			t.Fatal(err)
		}
		want := naiveDot(x, y, xl[0], yl[0], xl[1], yl[1], outs[0].Dims)
		for i, w := range want {
			bits, _ := EncodeFloat(d, w)
			if got := outs[0].Float(i); got != DecodeFloat(d, bits) {
				t.Fatalf("element %d is %g, want %g", i, got, DecodeFloat(d, bits))
			}
		}
	})
}

// convCase is a convolution with every knob, over operands in any dimension order.
type convCase struct {
	ws            []Window
	groups, bg    int64
	x, w          Tensor
	labelList     []int64
	spatial, rank int
}

func drawConv(t *rapid.T) convCase {
	var c convCase
	small := rapid.Int64Range(1, 3)
	c.spatial = rapid.IntRange(1, 3).Draw(t, "spatial")
	c.rank = c.spatial + 2
	c.groups, c.bg = 1, 1
	switch rapid.IntRange(0, 3).Draw(t, "grouping") {
	case 0:
		c.groups = small.Draw(t, "groups")
	case 1:
		c.bg = small.Draw(t, "batch groups")
	}
	n, ci, co := small.Draw(t, "n")*c.bg, small.Draw(t, "ci"), small.Draw(t, "co")*c.groups*c.bg
	perm := func() []int64 {
		p := make([]int64, c.rank)
		for i := range p {
			p[i] = int64(i)
		}
		return rapid.Permutation(p).Draw(t, "order")
	}
	l, r, o := perm(), perm(), perm()
	c.labelList = slices.Concat(l, r, o)
	xd, wd := make([]int64, c.rank), make([]int64, c.rank)
	xd[l[0]], xd[l[1]], wd[r[0]], wd[r[1]] = n, ci*c.groups, ci, co
	for i := range c.spatial {
		w := Window{
			Size: small.Draw(t, "size"), Stride: small.Draw(t, "stride"), PadLow: rapid.Int64Range(-1, 2).Draw(t, "low"),
			PadHigh: rapid.Int64Range(-1, 2).Draw(t, "high"), LhsDilate: small.Draw(t, "lhs dilation"), RhsDilate: small.Draw(t, "rhs dilation"),
			Reverse: rapid.Bool().Draw(t, "reverse"),
		}
		c.ws = append(c.ws, w)
		xd[l[2+i]], wd[r[2+i]] = rapid.Int64Range(1, 20).Draw(t, "extent"), w.Size
	}
	d := rapid.SampledFrom([]Dtype{F32, BF16, F64}).Draw(t, "dtype")
	c.x, c.w = randomTensor(3, d, xd...), randomTensor(4, d, wd...)
	return c
}

func naiveConv(c convCase, cd ConvDims, odims []int64) []float64 {
	out := make([]float64, count(odims))
	ci, co := c.w.Dims[cd.RhsIn], c.w.Dims[cd.RhsOut]
	kd := pick(c.w.Dims, cd.Rhs)
	for i := range out {
		o := coords(i, odims)
		of := o[cd.OutFeature]
		xc, wc := make([]int64, c.rank), make([]int64, c.rank)
		wc[cd.RhsOut] = of
		xc[cd.LhsBatch] = o[cd.OutBatch] + of/(co/c.bg)*odims[cd.OutBatch]
		for f := range ci {
			wc[cd.RhsIn] = f
			xc[cd.LhsFeature] = of/(co/c.groups)*ci + f
			if c.bg > 1 {
				xc[cd.LhsFeature] = f
			}
		taps:
			for k := range count(kd) {
				for s, tap := range coords(k, kd) {
					w := c.ws[s]
					wc[cd.Rhs[s]] = tap
					if w.Reverse {
						wc[cd.Rhs[s]] = kd[s] - 1 - tap
					}
					p := o[cd.Out[s]]*w.Stride + tap*w.RhsDilate - w.PadLow
					if p < 0 || p%w.LhsDilate != 0 || p/w.LhsDilate >= c.x.Dims[cd.Lhs[s]] {
						continue taps
					}
					xc[cd.Lhs[s]] = p / w.LhsDilate
				}
				out[i] += c.x.Float(flat(xc, c.x.Dims)) * c.w.Float(flat(wc, c.w.Dims))
			}
		}
	}
	return out
}

func TestConvAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConv(t)
		var g Graph
		b := Begin(&g, "main")
		x, w := b.Param("x", c.x.Dtype, c.x.Dims...), b.Param("w", c.w.Dtype, c.w.Dims...)
		y := b.Node(OpConv, 0, []Node{x, w}, append(b.WindowAttrs(c.ws), g.IntsAttr(AttrDimLabels, c.labelList...),
			g.IntsAttr(AttrGroups, c.groups), g.IntsAttr(AttrBatchGroups, c.bg))...)
		var err error
		if g.Entry, err = b.End(y); err != nil {
			t.Fatal(err)
		}
		outs, err := Eval(&g, []Tensor{c.x, c.w})
		if err != nil {
			t.Fatal(err)
		}
		cd, _ := g.ConvLabels(y, c.rank)
		for i, v := range naiveConv(c, cd, outs[0].Dims) {
			bits, _ := EncodeFloat(c.x.Dtype, v)
			if got := outs[0].Float(i); got != DecodeFloat(c.x.Dtype, bits) {
				t.Fatalf("element %d is %g, want %g", i, got, DecodeFloat(c.x.Dtype, bits))
			}
		}
	})
}

// TestWindowsAgainstNaive: max over every window position, tap by tap.
func TestWindowsAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 3).Draw(t, "rank")
		small := rapid.Int64Range(1, 3)
		ws, dims := make([]Window, rank), make([]int64, rank)
		for i := range ws {
			ws[i] = Window{
				Size: small.Draw(t, "size"), Stride: small.Draw(t, "stride"), PadLow: rapid.Int64Range(-1, 2).Draw(t, "low"),
				PadHigh: rapid.Int64Range(-1, 2).Draw(t, "high"), LhsDilate: small.Draw(t, "lhs"), RhsDilate: small.Draw(t, "rhs"),
			}
			dims[i] = rapid.Int64Range(1, 7).Draw(t, "dim")
		}
		x := randomTensor(5, F32, dims...)
		var g Graph
		b := Begin(&g, "main")
		g.Entry, _ = b.End(b.ReduceWindow(ReduceSum, b.Param("x", F32, dims...), ws))
		outs, err := Eval(&g, []Tensor{x})
		if err != nil {
			t.Fatal(err)
		}
		wd := make([]int64, rank)
		for i, w := range ws {
			wd[i] = w.Size
		}
		for i := range outs[0].Len() {
			o, want := coords(i, outs[0].Dims), 0.0
		taps:
			for k := range count(wd) {
				at := make([]int64, rank)
				for s, tap := range coords(k, wd) {
					p := o[s]*ws[s].Stride + tap*ws[s].RhsDilate - ws[s].PadLow
					if p < 0 || p%ws[s].LhsDilate != 0 || p/ws[s].LhsDilate >= dims[s] {
						continue taps
					}
					at[s] = p / ws[s].LhsDilate
				}
				want += x.Float(flat(at, dims))
			}
			if got := outs[0].Float(i); got != want {
				t.Fatalf("position %v is %g, want %g", o, got, want)
			}
		}
	})
}

// benchGraph is a model of one operator over parameters.
func benchGraph(b *testing.B, build func(bl *Builder) Node) (*Graph, []Tensor) {
	g := new(Graph)
	bl := Begin(g, "main")
	n := build(bl)
	c, err := bl.End(n)
	if err != nil {
		b.Fatal(err)
	}
	g.Entry = c
	var ins []Tensor
	for i, p := range g.Params(c) {
		t := NewTensor(g.Dtype(p), g.Dims(p)...)
		for k := range t.Len() {
			bits, _ := EncodeFloat(t.Dtype, uniform(uint64(i), uint64(k)))
			putElem(t.Dtype, t.Data, k, bits)
		}
		ins = append(ins, t)
	}
	return g, ins
}

func runBench(b *testing.B, unit string, work float64, build func(bl *Builder) Node) {
	g, ins := benchGraph(b, build)
	var in Interp
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Run(g, ins); err != nil {
			b.Fatal(err)
		}
	}
	perSecond := work * float64(b.N) / b.Elapsed().Seconds()
	if unit == "ns/elem" {
		b.ReportMetric(1e9/perSecond, unit)
	} else {
		b.ReportMetric(perSecond/1e9, unit)
	}
}

func BenchmarkDot(b *testing.B) {
	for _, c := range []struct {
		name    string
		m, n, k int64
		d       Dtype
		bt      bool
	}{
		{"f32", 128, 512, 512, F32, false}, {"bf16", 128, 512, 512, BF16, false}, {"f32-nt", 128, 512, 512, F32, true}, {"vector", 1, 1024, 1024, F32, false},
		{"vector-nt", 1, 1024, 1024, F32, true}, {"column", 1024, 1, 1024, F32, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			runBench(b, "GMAC/s", float64(c.m*c.n*c.k), func(bl *Builder) Node {
				x := bl.Param("x", c.d, c.m, c.k)
				if c.bt {
					return bl.Dot(x, bl.Param("y", c.d, c.n, c.k), nil, nil, []int64{1}, []int64{1})
				}
				return bl.MatMul(x, bl.Param("y", c.d, c.k, c.n))
			})
		})
	}
}

func BenchmarkConv(b *testing.B) {
	for _, c := range []struct {
		name                    string
		ci, co, hw, k, s, group int64
	}{
		{"3x3", 64, 64, 28, 3, 1, 1}, {"1x1", 256, 64, 28, 1, 1, 1}, {"7x7s2", 3, 64, 112, 7, 2, 1}, {"3x3-small", 256, 256, 7, 3, 1, 1}, {"depthwise", 64, 64, 56, 3, 1, 64},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := c.hw / c.s
			work := float64(c.ci / c.group * c.co * o * o * c.k * c.k)
			runBench(b, "GMAC/s", work, func(bl *Builder) Node {
				w := Window{Stride: c.s, PadLow: c.k / 2, PadHigh: c.k / 2}
				return bl.Conv(bl.Param("x", F32, 1, c.ci, c.hw, c.hw), bl.Param("w", F32, c.co, c.ci/c.group, c.k, c.k), []Window{w, w}, c.group)
			})
		})
	}
}

func BenchmarkElementwise(b *testing.B) {
	const n = 1 << 16
	for _, d := range []Dtype{F32, BF16} {
		for _, c := range []struct {
			name  string
			build func(bl *Builder, x Node) Node
		}{
			{"add", func(bl *Builder, x Node) Node { return bl.Add(x, x) }}, {"exp", func(bl *Builder, x Node) Node { return bl.Unary(OpExp, x) }},
			{"erf", func(bl *Builder, x Node) Node { return bl.Unary(OpGelu, x) }}, {"tanh", func(bl *Builder, x Node) Node { return bl.Unary(OpTanh, x) }},
			{"compare", func(bl *Builder, x Node) Node { return bl.Compare(DirLT, x, x) }}, {"transpose", func(bl *Builder, x Node) Node { return bl.Transpose(x, 1, 0) }},
			{"sum", func(bl *Builder, x Node) Node { return bl.Reduce(ReduceSum, x, 1) }}, {"max", func(bl *Builder, x Node) Node { return bl.Reduce(ReduceMax, x, 0) }},
			{"broadcast", func(bl *Builder, x Node) Node {
				return bl.Broadcast(bl.SliceDim(x, 0, 0, 1), []int64{2, 1}, []int64{256, 256, 1})
			}},
			{"norm", func(bl *Builder, x Node) Node {
				v := bl.Splat(d, []int64{256}, 1)
				return bl.BatchNorm(x, v, v, v, v, 1, 1)
			}},
		} {
			b.Run(fmt.Sprintf("%s-%s", c.name, d), func(b *testing.B) {
				runBench(b, "ns/elem", n, func(bl *Builder) Node { return c.build(bl, bl.Param("x", d, 256, 256)) })
			})
		}
	}
}
