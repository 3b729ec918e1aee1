package tile

import (
	"errors"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// checkModel lowers, simulates and compares one drawn model on one drawn generation.
func checkModel(t *rapid.T, build func(b *B) N) {
	g := new(graph.Graph)
	g.Name = "m"
	b := graph.Begin(g, "main")
	y := build(b)
	if b.Err() != nil {
		t.Skip(b.Err().Error())
	}
	c, err := b.End(y)
	if err != nil {
		t.Fatal(err)
	}
	if product(b.Dims(y)) == 0 || product(b.Dims(y)) > 60000 {
		t.Skip("no or too many elements")
	}
	g.Entry = c
	g.Outputs = append(g.Outputs, graph.Output{Name: g.Names.Intern("y"), Node: y})
	opt := drawOptions(t)
	ins := graph.RandomInputs(g, 1)
	want, err := graph.Eval(g, ins)
	if err != nil {
		t.Fatalf("interpreter: %v", err)
	}
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
	tol := graph.Tolerance(g)
	d, err := graph.Compare(got[0], want[0], tol.RTol, roundings(tol, want[0]))
	if err != nil || !d.OK() {
		t.Fatalf("%s: %v %v", gen.Name, d, err)
	}
}

func drawWindows(t *rapid.T, rank int, lhs bool) []graph.Window {
	ws := make([]graph.Window, rank)
	for i := range ws {
		ws[i] = graph.Window{Size: rapid.Int64Range(1, 4).Draw(t, "size"), Stride: rapid.Int64Range(1, 3).Draw(t, "stride"),
			PadLow: rapid.Int64Range(-1, 3).Draw(t, "low"), PadHigh: rapid.Int64Range(-1, 3).Draw(t, "high"),
			LhsDilate: 1, RhsDilate: rapid.Int64Range(1, 2).Draw(t, "dilate")}
		if lhs {
			ws[i].LhsDilate = rapid.Int64Range(1, 2).Draw(t, "holes")
			ws[i].Reverse = rapid.Bool().Draw(t, "reverse")
		}
	}
	return ws
}

func TestRandomConvolutions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkModel(t, func(b *B) N {
			d := rapid.SampledFrom([]graph.Dtype{graph.F32, graph.BF16}).Draw(t, "dtype")
			rank := rapid.IntRange(1, 3).Draw(t, "rank")
			groups := rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 8}).Draw(t, "groups")
			ci := rapid.SampledFrom([]int64{1, 2, 5, 40, 130}).Draw(t, "in")
			co := rapid.SampledFrom([]int64{1, 2, 5, 40, 130}).Draw(t, "out")
			x := []int64{rapid.Int64Range(1, 3).Draw(t, "batch"), ci * groups}
			w := []int64{co * groups, ci}
			ws := drawWindows(t, rank, true)
			for i := range rank {
				x = append(x, rapid.Int64Range(1, []int64{30, 9, 5}[rank-1]).Draw(t, "extent"))
				w = append(w, ws[i].Size)
			}
			px := b.Param("x", d, x...)
			if rapid.Bool().Draw(t, "channels last") {
				// The operand and the result lie with their channels innermost.
				perm, back := []int64{0}, []int64{0, int64(rank + 1)}
				for i := range rank {
					perm = append(perm, int64(i+2))
					back = append(back, int64(i+1))
				}
				px = b.Transpose(b.Transpose(b.Unary(graph.OpTanh, px), append(perm, 1)...), back...)
			}
			y := b.Conv(px, b.Param("w", d, w...), ws, groups)
			if y == 0 {
				return 0
			}
			y = b.Mul(y, b.Like(y, 0.1))
			switch rapid.IntRange(0, 3).Draw(t, "after") {
			case 0:
				y = b.Unary(graph.OpRelu, b.Add(y, b.Broadcast(b.Param("b", d, co*groups), []int64{1}, b.Dims(y))))
			case 1:
				if product(b.Dims(y)) > 0 {
					var axes []int64
					for i := range rank {
						axes = append(axes, int64(i+2))
					}
					y = b.Reduce(graph.ReduceMax, y, axes...)
				}
			case 2:
				if product(b.Dims(y)) > 0 {
					y = b.Concat(1, y, b.Unary(graph.OpNeg, y))
				}
			}
			return y
		})
	})
}

func TestRandomPools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkModel(t, func(b *B) N {
			rank := rapid.IntRange(1, 4).Draw(t, "rank")
			var x []int64
			for range rank {
				x = append(x, rapid.Int64Range(1, []int64{200, 30, 12, 9}[rank-1]).Draw(t, "extent"))
			}
			ws := drawWindows(t, rank, rapid.Bool().Draw(t, "dilated"))
			for i := range ws {
				ws[i].Reverse = false
				if rapid.Bool().Draw(t, "alone") {
					ws[i] = win(1, 1, 0, 0, 1, 1)
				}
			}
			px := b.Unary(graph.OpTanh, b.Param("x", graph.F32, x...))
			kind := rapid.SampledFrom([]graph.ReduceKind{graph.ReduceSum, graph.ReduceMax, graph.ReduceMin}).Draw(t, "kind")
			return b.Unary(graph.OpNeg, b.ReduceWindow(kind, px, ws))
		})
	})
}

func TestRandomProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkModel(t, func(b *B) N {
			d := rapid.SampledFrom([]graph.Dtype{graph.F32, graph.BF16}).Draw(t, "dtype")
			size := func(name string) int64 {
				return rapid.SampledFrom([]int64{1, 2, 3, 31, 32, 64, 100, 128, 129, 200}).Draw(t, name)
			}
			batch := rapid.SampledFrom([]int64{1, 1, 2, 3}).Draw(t, "batch")
			m, k, n := size("m"), size("k"), size("n")
			if batch*m*n > 40000 {
				n = 3
			}
			// Operands with their axes in any order, straight or made by another unit.
			operand := func(name string, dims [3]int64) N {
				perm := rapid.Permutation([]int64{0, 1, 2}).Draw(t, name+" order")
				var at, back [3]int64
				for i, p := range perm {
					at[i] = dims[p]
					back[p] = int64(i)
				}
				x := b.Param(name, d, at[:]...)
				if rapid.Bool().Draw(t, name+" made") {
					x = b.Unary(graph.OpTanh, x)
				}
				return b.Transpose(x, back[:]...)
			}
			x, w := operand("x", [3]int64{batch, m, k}), operand("w", [3]int64{batch, k, n})
			y := b.MatMul(x, w)
			y = b.Mul(y, b.Like(y, 1/float64(k)))
			switch rapid.IntRange(0, 3).Draw(t, "after") {
			case 0:
				y = b.Add(y, b.Broadcast(b.Param("b", d, n), []int64{2}, b.Dims(y)))
			case 1:
				y = b.Softmax(y, 2)
			case 2:
				y = b.MatMul(y, b.Param("v", d, batch, n, 5))
			}
			return y
		})
	})
}
