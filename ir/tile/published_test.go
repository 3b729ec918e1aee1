package tile

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/publicdata"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// dataDir is the folder of published inputs beside the module.
func dataDir(t testing.TB) string {
	t.Helper()
	return publicdata.Path(t)
}

type published struct {
	name    string
	model   []byte
	inputs  map[string][]byte
	outputs map[string][]byte
}

func readZip(t testing.TB, path string) []published {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Skip(err)
	}
	defer z.Close()
	byName := map[string]*published{}
	for _, f := range z.File {
		dir, base := filepath.Split(f.Name)
		dir = strings.TrimSuffix(dir, "/")
		if base == "" || strings.HasSuffix(dir, "test_data_set_1") {
			continue
		}
		name := strings.TrimSuffix(dir, "/test_data_set_0")
		c := byName[name]
		if c == nil {
			c = &published{name: filepath.Base(name), inputs: map[string][]byte{}, outputs: map[string][]byte{}}
			byName[name] = c
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case base == "model.onnx":
			c.model = data
		case strings.HasPrefix(base, "input_"):
			c.inputs[base] = data
		case strings.HasPrefix(base, "output_"):
			c.outputs[base] = data
		}
	}
	var out []published
	for _, c := range byName {
		if c.model != nil {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b published) int { return cmp.Compare(a.name, b.name) })
	return out
}

// run lowers a case, simulates it and compares with the published outputs.
func (c *published) run(gen *target.Generation) error {
	names, err := onnx.Inputs(c.model)
	if err != nil {
		return err
	}
	tensor := func(name string) (onnx.Tensor, bool) {
		k := slices.Index(names, name)
		data, ok := c.inputs[fmt.Sprintf("input_%d.pb", k)]
		if !ok {
			return onnx.Tensor{}, false
		}
		t, err := onnx.ReadTensor(data)
		return t, err == nil
	}
	var g graph.Graph
	if _, err := onnx.ReadSpecialised(c.model, onnx.Options{}, tensor, &g); err != nil {
		return err
	}
	lo, err := lowerFor(&g, gen, Options{})
	if err != nil {
		return err
	}
	var ins []graph.Tensor
	for _, p := range lo.g.Params(lo.g.Entry) {
		v, ok := tensor(lo.g.NodeName(p))
		if !ok {
			return target.NotSupported("test data", "no data for input %s", lo.g.NodeName(p))
		}
		ins = append(ins, graph.Tensor{Dtype: v.Dtype, Dims: v.Dims, Data: v.Data})
	}
	got, err := lo.simulate(ins)
	if err != nil {
		return fmt.Errorf("simulation: %v", err)
	}
	if len(got) != len(c.outputs) {
		return fmt.Errorf("%d outputs, published %d", len(got), len(c.outputs))
	}
	tol := graph.Tolerance(lo.g)
	for i := range got {
		w, err := onnx.ReadTensor(c.outputs[fmt.Sprintf("output_%d.pb", i)])
		if err != nil {
			return err
		}
		want := graph.Tensor{Dtype: w.Dtype, Dims: w.Dims, Data: w.Data}
		d, err := graph.Compare(got[i], want, tol.RTol, tol.Of(want))
		if err != nil {
			return err
		}
		if !d.OK() {
			return fmt.Errorf("output %d: %v", i, d)
		}
	}
	return nil
}

// TestPublishedCases: every published single-operator case is computed right or refused by the name of an operator or type.
func TestPublishedCases(t *testing.T) {
	dir := filepath.Join(dataDir(t), "onnx")
	cases := append(readZip(t, filepath.Join(dir, "node", "onnx-node-tests-1.21.zip")),
		readZip(t, filepath.Join(dir, "pytorch", "onnx-pytorch-tests.zip"))...)
	gen, _ := target.ByLevel(30)
	passed := 0
	refused := map[string]int{}
	for i := range cases {
		c := &cases[i]
		err := c.run(gen)
		var te *target.Error
		switch {
		case err == nil:
			passed++
		case errors.As(err, &te) && te.Class == target.Unsupported && te.Subject != "":
			refused[te.Subject]++
			if testing.Verbose() {
				t.Logf("UNSUPPORTED %s: %v", c.name, err)
			}
		default:
			t.Errorf("%s: %v", c.name, err)
		}
	}
	var subjects []string
	for s, n := range refused {
		subjects = append(subjects, fmt.Sprintf("%s %d", s, n))
	}
	sort.Strings(subjects)
	t.Logf("%d cases, %d passed; refused: %s", len(cases), passed, strings.Join(subjects, ", "))
	if passed < 625 {
		t.Errorf("%d cases passed, expected more", passed)
	}
}
