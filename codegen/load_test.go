package codegen

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// A JSON module may keep a constant in a .npy file beside it, and nowhere else.
func TestConstantInFile(t *testing.T) {
	in, want := reluData()
	dir := t.TempDir()
	module := func(file string) string {
		s := strings.Replace(string(reluJSON), `"kind": "ExternalInput"`, `"kind": "Const", "file": "`+file+`"`, 1)
		p := filepath.Join(dir, "m.json")
		if err := os.WriteFile(p, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var npy bytes.Buffer
	if err := WriteTensor(&npy, in[0].Tensor); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.npy"), npy.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	pkg, _ := compile(t, load(t, module("a.npy")), verified("trn2"))
	res, err := Execute(context.Background(), pkg, &RunOptions{Inputs: in[1:], Expect: want, Rtol: 1e-5, Atol: 1e-5})
	if err != nil {
		t.Fatal(err)
	}
	if f := res.Failed(); f != nil {
		t.Error(f.Diff)
	}
	for _, file := range []string{"../a.npy", "/etc/hostname", "missing.npy", "m.json"} {
		if _, err := Load(module(file)); err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), `"A_set"`) {
			t.Errorf("constant in %q: %v", file, err)
		}
	}
}

// Recipe steps against values by hand.
func TestRecipes(t *testing.T) {
	x := graph.TensorOf(graph.F32, []int64{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		name string
		step neff.RecipeStep
		dims []int64
		want []float64
	}{
		{"permute", neff.RecipeStep{Op: neff.RecipePermute, A: []int64{1, 0}}, []int64{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
		{"reshape", neff.RecipeStep{Op: neff.RecipeReshape, A: []int64{6}}, []int64{6}, []float64{1, 2, 3, 4, 5, 6}},
		{"slice", neff.RecipeStep{Op: neff.RecipeSlice, A: []int64{0, 1}, B: []int64{2, 3}, C: []int64{1, 1}}, []int64{2, 2}, []float64{2, 3, 5, 6}},
		{"slice by two", neff.RecipeStep{Op: neff.RecipeSlice, A: []int64{1, 0}, B: []int64{2, 3}, C: []int64{1, 2}}, []int64{1, 2}, []float64{4, 6}},
		{"pad", neff.RecipeStep{Op: neff.RecipePad, A: []int64{0, 1}, B: []int64{1, 0}}, []int64{3, 4}, []float64{0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0}},
		{"block", neff.RecipeStep{Op: neff.RecipeBlock, A: []int64{1, 3}}, []int64{2, 1, 1, 3}, []float64{1, 2, 3, 4, 5, 6}},
		{"cast", neff.RecipeStep{Op: neff.RecipeCast, Dtype: "bfloat16"}, []int64{2, 3}, []float64{1, 2, 3, 4, 5, 6}},
	} {
		got, err := applyStep(x, &c.step)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d, err := graph.Compare(got, graph.TensorOf(got.Dtype, c.dims, c.want...), 0, 0); err != nil || !d.OK() {
			t.Errorf("%s: %v %v, %v", c.name, got.Dims, got.Floats(), err)
		}
	}
	for _, bad := range []neff.RecipeStep{
		{Op: neff.RecipePermute, A: []int64{0, 0}}, {Op: neff.RecipePermute, A: []int64{0}}, {Op: neff.RecipeReshape, A: []int64{4}},
		{Op: neff.RecipeSlice, A: []int64{0, 0}, B: []int64{3, 3}, C: []int64{1, 1}}, {Op: neff.RecipePad, A: []int64{-1, 0}, B: []int64{0, 0}},
		{Op: neff.RecipeBlock, A: []int64{2, 2}}, {Op: neff.RecipeCast, Dtype: "float99"}, {},
	} {
		if _, err := applyStep(x, &bad); err == nil {
			t.Errorf("step %+v was taken", bad)
		}
	}
}
