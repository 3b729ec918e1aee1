package tile

import (
	"errors"
	"slices"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// drawDims draws a shape with odd tails, ones and now and then more than a partition tile.
func drawDims(t *rapid.T, maxRank int) []int64 {
	dims := make([]int64, rapid.IntRange(0, maxRank).Draw(t, "rank"))
	total := int64(1)
	for i := range dims {
		d := rapid.SampledFrom([]int64{1, 2, 3, 4, 5, 7, 8, 16, 33, 129}).Draw(t, "dim")
		if total*d > 20000 {
			d = 1
		}
		dims[i] = d
		total *= d
	}
	return dims
}

// drawGraph draws a model that is valid by construction: every operator is applied to values that exist.
func drawGraph(t *rapid.T) *graph.Graph {
	g := new(graph.Graph)
	g.Name = "m"
	b := graph.Begin(g, "main")
	d := rapid.SampledFrom([]graph.Dtype{graph.F32, graph.F32, graph.BF16}).Draw(t, "dtype")
	vals := []N{b.Param("p0", d, drawDims(t, 5)...)}
	if rapid.Bool().Draw(t, "two") {
		vals = append(vals, b.Param("p1", d, drawDims(t, 4)...))
	}
	pick := func() N { return rapid.SampledFrom(vals).Draw(t, "value") }
	axis := func(x N) int { return rapid.IntRange(0, len(b.Dims(x))-1).Draw(t, "axis") }
	for range rapid.IntRange(1, 8).Draw(t, "operators") {
		x := pick()
		dims := slices.Clone(b.Dims(x))
		rank := len(dims)
		var y N
		switch op := rapid.IntRange(0, 17).Draw(t, "op"); {
		case op == 0:
			y = b.Unary(rapid.SampledFrom([]graph.Op{graph.OpTanh, graph.OpSigmoid, graph.OpRelu, graph.OpNeg, graph.OpAbs, graph.OpSin, graph.OpGelu}).Draw(t, "fn"), x)
		case op == 1:
			y = b.Binary(rapid.SampledFrom([]graph.Op{graph.OpAdd, graph.OpSub, graph.OpMul, graph.OpMax, graph.OpMin}).Draw(t, "fn"), x, b.Like(x, rapid.SampledFrom([]float64{0, 1, -0.5}).Draw(t, "const")))
		case op == 2:
			other := pick()
			if slices.Equal(b.Dims(other), dims) {
				y = b.Binary(rapid.SampledFrom([]graph.Op{graph.OpAdd, graph.OpSub, graph.OpMul, graph.OpMax}).Draw(t, "fn"), x, other)
			}
		case op == 3 && rank > 0:
			var red []int64
			for i := range dims {
				if rapid.Bool().Draw(t, "reduced") {
					red = append(red, int64(i))
				}
			}
			kind := rapid.SampledFrom([]graph.ReduceKind{graph.ReduceSum, graph.ReduceMax, graph.ReduceMin}).Draw(t, "kind")
			if len(red) > 0 {
				r := b.ReduceKeep(kind, x, red...)
				if kind == graph.ReduceSum {
					r = b.Mul(r, b.Like(r, 0.01))
				}
				y = r
				if rapid.Bool().Draw(t, "back") {
					y = b.Sub(x, r)
				}
			}
		case op == 4 && rank > 1:
			perm := rapid.Permutation(func() (p []int64) {
				for i := range rank {
					p = append(p, int64(i))
				}
				return
			}()).Draw(t, "perm")
			y = b.Transpose(x, perm...)
		case op == 5:
			n := product(dims)
			to := []int64{}
			for n > 1 && len(to) < 4 {
				f := int64(1)
				for _, k := range []int64{2, 3, 5, 7, 11, 43} {
					if n%k == 0 && rapid.Bool().Draw(t, "factor") {
						f = k
						break
					}
				}
				to = append(to, f)
				n /= f
			}
			y = b.Reshape(x, append(to, n)...)
		case op == 6 && rank > 0:
			lo, hi, st := make([]int64, rank), slices.Clone(dims), make([]int64, rank)
			for i := range dims {
				st[i] = rapid.Int64Range(1, 2).Draw(t, "stride")
				lo[i] = rapid.Int64Range(0, dims[i]-1).Draw(t, "lo")
				hi[i] = rapid.Int64Range(lo[i]+1, dims[i]).Draw(t, "hi")
			}
			y = b.Slice(x, lo, hi, st)
		case op == 7 && rank > 0:
			y = b.Reverse(x, int64(axis(x)))
		case op == 8 && rank > 0:
			y = b.Concat(axis(x), x, x)
		case op == 9 && rank > 0 && product(dims) < 4000:
			lo, hi, in := make([]int64, rank), make([]int64, rank), make([]int64, rank)
			for i := range dims {
				lo[i], hi[i] = rapid.Int64Range(-1, 2).Draw(t, "low"), rapid.Int64Range(0, 2).Draw(t, "high")
				in[i] = rapid.Int64Range(0, 1).Draw(t, "interior")
			}
			y = b.Pad(x, b.Like(x, 0.25), lo, hi, in)
		case op == 10 && rank < 4 && product(dims) < 2000:
			k := rapid.Int64Range(1, 4).Draw(t, "times")
			at := rapid.IntRange(0, rank).Draw(t, "at")
			to := slices.Insert(slices.Clone(dims), at, k)
			var bd []int64
			for i := range to {
				if i != at {
					bd = append(bd, int64(i))
				}
			}
			y = b.Broadcast(x, bd, to)
		case op == 11:
			p := b.Compare(graph.DirGT, x, b.Like(x, 0.1))
			y = b.Select(p, x, b.Unary(graph.OpNeg, x))
		case op == 12:
			y = b.Convert(b.Convert(x, graph.F32), d)
		case op == 13 && rank > 1:
			y = b.Softmax(x, int64(axis(x)))
		case op == 14 && rank > 0:
			// Contract one axis of x with itself, others free or batch.
			k := axis(x)
			var lb []int64
			size := product(dims) * product(dims) / dims[k]
			for i := range dims {
				if i != k && rapid.Bool().Draw(t, "batch") {
					lb = append(lb, int64(i))
					size /= dims[i]
				}
			}
			if size/dims[k] < 20000 {
				y = b.Dot(x, x, lb, lb, []int64{int64(k)}, []int64{int64(k)})
				if y != 0 {
					y = b.Mul(y, b.Like(y, 1/float64(dims[k])))
				}
			}
		case op == 15 && rank > 0:
			at := axis(x)
			i := b.Iota(graph.S32, dims, at)
			y = b.Add(x, b.Mul(b.Convert(i, d), b.Like(x, 0.125)))
		case op == 16 && rank > 0:
			lo := b.Like(x, -0.5)
			y = b.Clamp(lo, x, b.Like(x, 0.5))
		case op == 17 && rank > 0:
			ws := make([]graph.Window, rank)
			for i := range ws {
				ws[i] = win(1, 1, 0, 0, 1, 1)
			}
			i := axis(x)
			ws[i] = win(rapid.Int64Range(1, 3).Draw(t, "size"), rapid.Int64Range(1, 2).Draw(t, "wstride"), rapid.Int64Range(0, 1).Draw(t, "pl"), 1, 1, 1)
			y = b.ReduceWindow(rapid.SampledFrom([]graph.ReduceKind{graph.ReduceSum, graph.ReduceMax}).Draw(t, "wkind"), x, ws)
			if y != 0 && product(b.Dims(y)) == 0 {
				y = 0
			}
		}
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
		if y == 0 || len(b.Dims(y)) > 8 || product(b.Dims(y)) > 40000 || product(b.Dims(y)) == 0 {
			continue
		}
		vals = append(vals, y)
	}
	last := vals[len(vals)-1]
	c, err := b.End(last)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	g.Outputs = append(g.Outputs, graph.Output{Name: g.Names.Intern("y"), Node: last})
	if rapid.Bool().Draw(t, "second output") {
		g.Outputs = append(g.Outputs, graph.Output{Name: g.Names.Intern("z"), Node: pick()})
	}
	return g
}

// drawOptions leaves plenty of room, or so little that rows are cut.
func drawOptions(t *rapid.T) Options {
	return Options{
		TileSBBytes: rapid.SampledFrom([]int64{0, 0, 512, 2048, 16384}).Draw(t, "sb"),
		Level:       rapid.SampledFrom([]Level{L2, L2, L1, L0}).Draw(t, "level"),
	}
}

func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		opt := drawOptions(t)
		ins := graph.RandomInputs(g, 1)
		want, err := graph.Eval(g, ins)
		if err != nil {
			t.Fatalf("interpreter: %v", err)
		}
		tol := graph.Tolerance(g)
		gen := rapid.SampledFrom(gens()).Draw(t, "generation")
		lo, err := lowerFor(g, gen, opt)
		var te *target.Error
		if errors.As(err, &te) && te.Class == target.Unsupported && opt.TileSBBytes != 0 {
			t.Skip("no room")
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := lo.simulate(ins)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			d, err := graph.Compare(got[i], want[i], tol.RTol, roundings(tol, want[i]))
			if err != nil || !d.OK() {
				t.Fatalf("%s: output %d: %v %v", gen.Name, i, d, err)
			}
		}
	})
}

// roundings allows, for narrow types, a few steps of values of the size of one beside the tolerance: a difference of two
// roundings that an operator in between makes large is no error of the lowering.
func roundings(tol graph.Tol, want graph.Tensor) float64 {
	a := tol.Of(want) + 1e-5
	if tol.ATolRMS > 0 {
		a += 0.05
	}
	return a
}
