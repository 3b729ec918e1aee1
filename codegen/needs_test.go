package codegen

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// activated is a model with matmuls, functions of several table sets, a select and a bfloat16 product.
func activated() *Program {
	g := new(graph.Graph)
	g.Name = "activated"
	b := graph.Begin(g, "main")
	x := b.Param("x", graph.F32, 5, 130)
	y := b.MatMul(x, b.Weight(graph.F32, []int64{130, 33}, 1, 0.1))
	y = b.Unary(graph.OpTanh, y)
	y = b.Select(b.Compare(graph.DirGT, b.SliceDim(x, 1, 0, 33), b.Like(x, 0)), y, b.Unary(graph.OpExp, y))
	h := b.Convert(y, graph.BF16)
	z := b.MatMul(h, b.Weight(graph.BF16, []int64{33, 7}, 2, 0.1))
	b.Output("y", y)
	b.Output("z", b.Unary(graph.OpSigmoid, z))
	c, err := b.End(z)
	if err != nil {
		panic(err)
	}
	g.Entry = c
	return &Program{Name: g.Name, Graph: g}
}

// right compiles by a list of passes. What comes out is no package, a package that computes the model, or an error that
// names a pass.
func right(t rapid.TB, w *Worker, passes []string) error {
	o := NewOptions()
	o.Pass = passes
	var buf neff.Buffer
	p := activated()
	res, err := w.Compile(context.Background(), p, &o, &buf)
	if err != nil {
		named := strings.Contains(err.Error(), "codegen writes the package")
		for _, r := range Registry() {
			named = named || strings.Contains(err.Error(), " needs "+r.Name+" ")
		}
		if target.ClassOf(err) != target.User || !named {
			t.Fatalf("%q: %v", passes, err)
		}
		return err
	}
	if res.Bytes == 0 {
		return nil
	}
	run, err := Execute(context.Background(), bytes.Clone(buf.Bytes()), &RunOptions{Random: 1, HasRand: true, Against: p, Seeds: 2, Rtol: -1, Atol: -1})
	if err != nil {
		t.Fatalf("%q: %v", passes, err)
	}
	if f := run.Failed(); f != nil {
		t.Fatalf("%q: %s", passes, f.Diff)
	}
	return nil
}

// A list that lacks a pass on which another builds is refused by the names of both.
func TestMissingPass(t *testing.T) {
	var w Worker
	essential := map[string]string{
		"coloring_allocator_psum": "address_rotation_psum", "coloring_allocator_sb": "address_rotation_sb",
		"coloring_allocator_dram": "address_rotation_dram", "build_fdeps": "post_sched", "legalize_mm_accumulation_groups": "codegen",
		"alloc_queues": "lower_sync", "lower_act": "codegen", "lower_sync": "codegen",
	}
	for i, n := range plane2 {
		list := append(append([]string{}, plane2[:i]...), plane2[i+1:]...)
		err := right(t, &w, list)
		if user, ok := essential[n]; ok {
			if err == nil || !strings.Contains(err.Error(), user+" needs "+n+" ") {
				t.Errorf("without %s: %v; want that %s needs it", n, err, user)
			}
		} else if err != nil {
			t.Errorf("without %s: %v", n, err)
		}
	}
}

// Lists of passes in any order and number of times, mostly that of the plane.
func TestAnyPassList(t *testing.T) {
	var w Worker
	rapid.Check(t, func(t *rapid.T) {
		list := append([]string{}, plane2...)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "at")
			j := rapid.IntRange(0, len(list)-1).Draw(t, "other")
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				list[i], list[j] = list[j], list[i]
			case 1:
				list = append(list[:i+1], list[i:]...)
			case 2:
				x := list[i]
				list = append(list[:i], list[i+1:]...)
				j = min(j, len(list))
				list = append(list[:j], append([]string{x}, list[j:]...)...)
			}
		}
		_ = right(t, &w, list)
	})
}
