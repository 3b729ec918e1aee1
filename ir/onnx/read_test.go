package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// readCase reads a case, fixing inputs that the model needs to know to the case's own.
func readCase(c *testCase, g *graph.Graph) (fixed []string, err error) {
	return ReadSpecialised(c.model, Options{}, func(name string) (Tensor, bool) {
		i := inputIndex(c.model, name)
		if i < 0 || i >= len(c.inputs) {
			return Tensor{}, false
		}
		v, err := ReadTensor(c.inputs[i].data)
		return v, err == nil
	}, g)
}

// inputIndex is the position of a graph input among those that are fed.
func inputIndex(model []byte, name string) int {
	names, err := Inputs(model)
	if err != nil {
		return -1
	}
	return slices.Index(names, name)
}

// TestReadAll reads every model of the test data: each reads or is refused as unsupported, with a subject.
func TestReadAll(t *testing.T) {
	dir := dataDir(t)
	cases := allZipCases(t)
	for _, pat := range []string{"light/*.onnx", "deeploy/*/network.onnx"} {
		files, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pat)))
		sort.Strings(files)
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(dir, f)
			cases = append(cases, testCase{name: rel, model: b})
		}
	}
	var g graph.Graph
	read, refused := 0, 0
	for i := range cases {
		c := &cases[i]
		_, err := readCase(c, &g)
		var te *target.Error
		switch {
		case err == nil:
			read++
			if err := graph.Check(&g); err != nil {
				t.Errorf("%s: the graph is inconsistent: %v", c.name, err)
			}
			if !IsONNX(c.model) {
				t.Errorf("%s: not recognised as ONNX", c.name)
			}
		case errors.As(err, &te) && te.Class == target.Unsupported && te.Subject != "":
			refused++
			t.Logf("%s: UNSUPPORTED %s (%v)", c.name, te.Subject, err)
		default:
			t.Errorf("%s: %v", c.name, err)
		}
	}
	t.Logf("%d models: %d read, %d refused by name", len(cases), read, refused)
	if read < 350 {
		t.Errorf("only %d models read", read)
	}
}
