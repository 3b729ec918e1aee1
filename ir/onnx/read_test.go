package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// readCase reads a case, fixing inputs that the model needs to know, one after the other.
func readCase(c *testCase, g *graph.Graph) (known map[string]Tensor, err error) {
	known = map[string]Tensor{}
	for range 8 {
		err = ReadOptions(c.model, Options{Known: known}, g)
		var need *NeedsValueError
		if !errors.As(err, &need) {
			return known, err
		}
		fixed := false
		for _, name := range need.Inputs {
			i := inputIndex(c.model, name)
			if _, ok := known[name]; ok || i < 0 || i >= len(c.inputs) {
				continue
			}
			v, e := ReadTensor(c.inputs[i].data)
			if n, _ := elements(v.Dims); e != nil || !v.Dtype.IsInt() && n != 1 {
				continue
			}
			known[name], fixed = v, true
		}
		if !fixed {
			return known, err
		}
	}
	return known, err
}

// inputIndex is the position of a graph input among those without initializer.
func inputIndex(model []byte, name string) int {
	var g graph.Graph
	var m model2
	if m.m.parse(model, &g.Names) != nil {
		return -1
	}
	i := 0
	for id := m.m.inputs.Off; id < m.m.inputs.End(); id++ {
		n := g.Names.String(m.m.values.At(valueID(id)).Name)
		if m.hasInit(n) {
			continue
		}
		if n == name {
			return i
		}
		i++
	}
	return -1
}

type model2 struct{ m model }

func (m *model2) hasInit(name string) bool {
	for id := m.m.inits.Off; id < m.m.inits.End(); id++ {
		if string(m.m.text(m.m.tensors.At(tensorID(id)).Name)) == name {
			return true
		}
	}
	return false
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
