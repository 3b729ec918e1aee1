package tile

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// TestSteadyState: a second lowering in a workspace allocates the list that the caller keeps, and next to nothing else; its
// program is that of a fresh workspace, whatever was lowered before.
func TestSteadyState(t *testing.T) {
	gen := gens()[1]
	products := model(t, func(b *B) []N {
		x := b.Param("x", graph.BF16, 300, 512)
		h := b.Unary(graph.OpSilu, b.MatMul(x, b.Param("w", graph.BF16, 512, 1536)))
		y := b.Add(b.MatMul(h, b.Param("v", graph.BF16, 1536, 512)), x)
		q := b.Transpose(b.Reshape(y, 300, 4, 128), 1, 0, 2)
		p := b.Softmax(b.Dot(q, q, []int64{0}, []int64{0}, []int64{2}, []int64{2}), 2)
		return []N{b.Concat(0, y, x), b.Dot(p, q, []int64{0}, []int64{0}, []int64{2}, []int64{1})}
	})
	images := model(t, func(b *B) []N {
		one, three := win(1, 1, 0, 0, 1, 1), win(3, 2, 1, 1, 1, 1)
		x := b.Conv(b.Param("x", graph.F32, 1, 3, 40, 40), b.Param("w", graph.F32, 64, 3, 3, 3), []graph.Window{three, three}, 1)
		x = b.Conv(b.Unary(graph.OpRelu, x), b.Param("v", graph.F32, 64, 1, 3, 3), []graph.Window{three, three}, 64)
		x = b.Conv(x, b.Param("u", graph.F32, 200, 64, 1, 1), []graph.Window{one, one}, 1)
		return []N{b.ReduceWindow(graph.ReduceMax, x, []graph.Window{one, one, three, three})}
	})
	gathers := model(t, func(b *B) []N {
		x, i := b.Param("x", graph.BF16, 300, 512), b.Param("i", graph.S32, 200)
		wrapped := b.Select(b.Compare(graph.DirLT, i, b.Like(i, 0)), b.Add(i, b.Like(i, 300)), i)
		y := b.Take(x, wrapped, 0)
		return []N{b.Mul(y, y), b.TakeAlong(b.Param("z", graph.F32, 30, 40), b.Param("j", graph.S64, 30, 5), 1), b.DynamicSlice(x, []N{b.Param("k", graph.S32), b.Scalar(graph.S32, 8)}, 9, 64)}
	})
	var w Workspace
	var m, fresh ir.Module
	for _, c := range []struct {
		name string
		g    *graph.Graph
		most float64
	}{{"products", products, 4}, {"images", images, 8}, {"gathers", gathers, 20}} {
		run := func() {
			if _, err := w.Lower(c.g, gen, Options{}, &m); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n > c.most {
			t.Errorf("%s: %v allocations in a second lowering, at most %v may be", c.name, n, c.most)
		} else {
			t.Logf("%s: %v allocations", c.name, n)
		}
	}
	for _, g := range []*graph.Graph{products, gathers, images} {
		if _, err := w.Lower(g, gen, Options{}, &m); err != nil {
			t.Fatal(err)
		}
		if _, err := Lower(g, gen, Options{}, &fresh); err != nil {
			t.Fatal(err)
		}
		if a, b := text(t, &m), text(t, &fresh); a != b {
			t.Error("a used workspace gives another program than a fresh one")
		}
	}
}

func text(t *testing.T, m *ir.Module) string {
	t.Helper()
	var s strings.Builder
	if err := ir.Print(&s, m); err != nil {
		t.Fatal(err)
	}
	return s.String()
}
