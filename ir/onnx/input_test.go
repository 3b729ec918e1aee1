package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// The functions below spell small models in the wire format.

func wireNode(op, domain string, ins, outs []string, attrs ...[]byte) []byte {
	var b []byte
	for _, s := range ins {
		b = putBytes(b, 1, s)
	}
	for _, s := range outs {
		b = putBytes(b, 2, s)
	}
	b = putBytes(b, 3, "the "+op)
	b = putBytes(b, 4, op)
	for _, a := range attrs {
		b = putBytes(b, 5, a)
	}
	return putBytes(b, 7, domain)
}

func wireFloat(name string, v float32) []byte {
	return putInt(putFloat(putBytes(nil, 1, name), 2, v), 20, attrFloat)
}

func wireRef(name, ref string, kind int64) []byte {
	return putInt(putBytes(putBytes(nil, 1, name), 21, ref), 20, kind)
}

// wireInput is a ValueInfoProto; dims are numbers or, as strings, symbols.
func wireInput(name string, code int64, dims ...any) []byte {
	var shape []byte
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = putBytes(shape, 1, putInt(nil, 1, int64(d)))
		case string:
			shape = putBytes(shape, 1, putBytes(nil, 2, d))
		}
	}
	tensor := putBytes(putInt(nil, 1, code), 2, shape)
	return putBytes(putBytes(nil, 1, name), 2, putBytes(nil, 1, tensor))
}

type wireGraph struct {
	nodes, inits, inputs [][]byte
	outputs              []string
	functions            [][]byte
	opset                int64
}

func (w wireGraph) bytes() []byte {
	var g []byte
	for _, n := range w.nodes {
		g = putBytes(g, 1, n)
	}
	g = putBytes(g, 2, "test")
	for _, n := range w.inits {
		g = putBytes(g, 5, n)
	}
	for _, n := range w.inputs {
		g = putBytes(g, 11, n)
	}
	for _, n := range w.outputs {
		g = putBytes(g, 12, putBytes(nil, 1, n))
	}
	b := putInt(nil, 1, 8)
	b = putBytes(b, 7, g)
	v := w.opset
	if v == 0 {
		v = 17
	}
	b = putBytes(b, 8, putInt(putBytes(nil, 1, ""), 2, v))
	for _, d := range []string{"mine", "com.microsoft"} {
		b = putBytes(b, 8, putInt(putBytes(nil, 1, d), 2, 1))
	}
	for _, f := range w.functions {
		b = putBytes(b, 25, f)
	}
	return b
}

func wireTensor(t *testing.T, name string, d graph.Dtype, dims []int64, data []byte) []byte {
	t.Helper()
	b, err := appendTensor(nil, Tensor{Name: name, Dtype: d, Dims: dims, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantRefused(t *testing.T, err error, class target.Class, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, expected one with %q", parts)
		return
	}
	if target.ClassOf(err) != class {
		t.Errorf("class %v, expected %v: %v", target.ClassOf(err), class, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}

func TestInputsAndInitializers(t *testing.T) {
	raw := make([]byte, 8)
	raw[4] = 1
	m := wireGraph{
		nodes:   [][]byte{wireNode("Add", "", []string{"x", "w"}, []string{"y"}), wireNode("Identity", "", []string{"x"}, []string{"same"})},
		inits:   [][]byte{wireTensor(t, "w", graph.F32, []int64{2}, raw)},
		inputs:  [][]byte{wireInput("w", 1, 2), wireInput("x", 1, 3, 2)},
		outputs: []string{"y", "same", "w"},
	}.bytes()
	var g graph.Graph
	if err := Read(m, "", &g); err != nil {
		t.Fatal(err)
	}
	if err := graph.Check(&g); err != nil {
		t.Fatal(err)
	}
	ps := g.Params(g.Entry)
	if len(ps) != 1 || g.NodeName(ps[0]) != "x" {
		t.Errorf("parameters %v: an input with an initializer is a constant", ps)
	}
	var names []string
	for _, o := range g.Outputs {
		names = append(names, g.Names.String(o.Name))
		if op := g.Op(o.Node); op == graph.OpParameter || op == graph.OpConstant {
			t.Errorf("output %s is a bare %v", names, op)
		}
	}
	if !slices.Equal(names, []string{"y", "same", "w"}) {
		t.Errorf("outputs %v", names)
	}
	for n, row := range g.Nodes.All() {
		if row.Const != 0 && g.Consts.At(row.Const).Kind == graph.ConstBlob {
			if b := g.ConstBytes(row.Const); &b[0] != &m[strings.Index(string(m), string(raw))] {
				t.Errorf("%s: the bytes of the initializer were copied", g.NodeName(n))
			}
			return
		}
	}
	t.Error("no constant refers to the file")
}

func TestSymbolicDims(t *testing.T) {
	m := wireGraph{
		nodes:  [][]byte{wireNode("Relu", "", []string{"x"}, []string{"y"})},
		inputs: [][]byte{wireInput("x", 1, "N", 4)}, outputs: []string{"y"},
	}.bytes()
	var g graph.Graph
	wantRefused(t, Read(m, "", &g), target.Unsupported, `input "x"`, "(N)")
	if err := ReadOptions(m, Options{DefaultDim: 1}, &g); err != nil || g.Dims(g.Outputs[0].Node)[0] != 1 {
		t.Errorf("default: %v", err)
	}
	if err := ReadOptions(m, Options{DefaultDim: 1, Dims: map[string]int64{"N": 7}}, &g); err != nil || g.Dims(g.Outputs[0].Node)[0] != 7 {
		t.Errorf("by name: %v", err)
	}
}

func TestKnownInput(t *testing.T) {
	m := wireGraph{
		nodes:  [][]byte{wireNode("Reshape", "", []string{"x", "shape"}, []string{"y"})},
		inputs: [][]byte{wireInput("x", 1, 6), wireInput("shape", 7, 2)}, outputs: []string{"y"},
	}.bytes()
	var g graph.Graph
	err := Read(m, "", &g)
	wantRefused(t, err, target.Unsupported, "Reshape", "input 1", "[shape]")
	var need *NeedsValueError
	if !errors.As(err, &need) || !slices.Equal(need.Inputs, []string{"shape"}) {
		t.Fatalf("%v does not name the input", err)
	}
	shape := Tensor{Dtype: graph.S64, Dims: []int64{2}, Data: append(append([]byte{2}, make([]byte, 7)...), append([]byte{3}, make([]byte, 7)...)...)}
	if err := ReadOptions(m, Options{Known: map[string]Tensor{"shape": shape}}, &g); err != nil {
		t.Fatal(err)
	}
	if d := g.Dims(g.Outputs[0].Node); !slices.Equal(d, []int64{2, 3}) || len(g.Params(g.Entry)) != 1 {
		t.Errorf("dims %v, %d parameters", d, len(g.Params(g.Entry)))
	}
	shape.Dtype = graph.S32
	wantRefused(t, ReadOptions(m, Options{Known: map[string]Tensor{"shape": shape}}, &g), target.User, "shape")
}

func externalTensor(name, file string, off, length string, dims ...int64) []byte {
	b := putInt(putInts(nil, 1, dims), 2, 1)
	b = putBytes(b, 8, name)
	entry := func(k, v string) {
		if v != "" {
			b = putBytes(b, 13, putBytes(putBytes(nil, 1, k), 2, v))
		}
	}
	entry("location", file)
	entry("offset", off)
	entry("length", length)
	return putInt(b, 14, 1)
}

func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	if err := os.MkdirAll(filepath.Join(model, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	data := []byte("....\x00\x00\x80\x3f\x00\x00\x00\x40")
	for _, f := range []string{"model/w.bin", "model/sub/w.bin", "secret"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(f)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(model, "link")); err != nil {
		t.Fatal(err)
	}
	read := func(dir string, w []byte) (graph.Graph, error) {
		m := wireGraph{
			nodes: [][]byte{wireNode("Add", "", []string{"x", "w"}, []string{"y"})}, inits: [][]byte{w},
			inputs: [][]byte{wireInput("x", 1, 2)}, outputs: []string{"y"},
		}.bytes()
		var g graph.Graph
		err := Read(m, dir, &g)
		return g, err
	}
	for _, name := range []string{"w.bin", "sub/w.bin", "./w.bin"} {
		g, err := read(model, externalTensor("w", name, "4", "8", 2))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(g.Blobs) != 2 || string(g.Blobs[1]) != string(data) {
			t.Errorf("%s: %d blobs", name, len(g.Blobs))
		}
		k := g.Nodes.At(g.Operands(g.Outputs[0].Node)[1]).Const
		if r := g.Consts.At(k); r.Kind != graph.ConstBlob || r.Blob != 1 || r.Off != 4 || r.Len != 8 {
			t.Errorf("%s: constant %+v", name, *r)
		}
	}
	for _, name := range []string{"../secret", "/etc/passwd", "link", "sub", "missing", "", "sub/../../secret", "a\x00b"} {
		_, err := read(model, externalTensor("w", name, "", "", 2))
		wantRefused(t, err, target.User, `tensor "w"`)
	}
	for _, x := range [][2]string{{"8", ""}, {"5", "8"}, {"999999999999999999", ""}, {"4", "7"}, {"-4", ""}, {"1e1", ""}, {"99999999999999999999", ""}} {
		_, err := read(model, externalTensor("w", "w.bin", x[0], x[1], 2))
		if err == nil {
			t.Errorf("offset %q, length %q went through", x[0], x[1])
		}
	}
	_, err := read("", externalTensor("w", "w.bin", "", "", 2))
	wantRefused(t, err, target.User, "no folder")
}

func wireFunction(name string, ins, outs []string, defaults [][]byte, nodes ...[]byte) []byte {
	b := putBytes(nil, 1, name)
	for _, s := range ins {
		b = putBytes(b, 4, s)
	}
	for _, s := range outs {
		b = putBytes(b, 5, s)
	}
	for _, n := range nodes {
		b = putBytes(b, 7, n)
	}
	b = putBytes(b, 9, putInt(putBytes(nil, 1, ""), 2, 17))
	b = putBytes(b, 9, putInt(putBytes(nil, 1, "mine"), 2, 1))
	b = putBytes(b, 10, "mine")
	for _, a := range defaults {
		b = putBytes(b, 11, a)
	}
	return b
}

// TestFunctions inlines a function that calls another, passes an attribute through and takes the default of one.
func TestFunctions(t *testing.T) {
	inner := wireFunction("Inner", []string{"a"}, []string{"b"}, [][]byte{wireFloat("slope", 0.5)},
		wireNode("LeakyRelu", "", []string{"a"}, []string{"t"}, wireRef("alpha", "slope", attrFloat)),
		wireNode("Neg", "", []string{"t"}, []string{"b"}))
	outer := wireFunction("Outer", []string{"a", "unused"}, []string{"b", "c"}, nil,
		wireNode("Inner", "mine", []string{"a"}, []string{"b"}, wireRef("slope", "slope", attrFloat)),
		wireNode("Inner", "mine", []string{"b"}, []string{"c"}))
	m := wireGraph{
		nodes:  [][]byte{wireNode("Outer", "mine", []string{"x"}, []string{"y", "z"}, wireFloat("slope", 0.25))},
		inputs: [][]byte{wireInput("x", 1, 2)}, outputs: []string{"y", "z"}, functions: [][]byte{outer, inner},
	}.bytes()
	var g graph.Graph
	if err := Read(m, "", &g); err != nil {
		t.Fatal(err)
	}
	var ops []graph.Op
	var alphas []float64
	for n, row := range g.Nodes.All() {
		ops = append(ops, row.Op)
		if row.Op == graph.OpLeakyRelu {
			alphas = append(alphas, g.Float(n, graph.AttrAlpha, 0))
		}
	}
	want := []graph.Op{graph.OpParameter, graph.OpLeakyRelu, graph.OpNeg, graph.OpLeakyRelu, graph.OpNeg, graph.OpTuple}
	if !slices.Equal(ops, want) || !slices.Equal(alphas, []float64{0.25, 0.5}) {
		t.Errorf("operators %v, slopes %v", ops, alphas)
	}
}

func TestFunctionsThatNeverEnd(t *testing.T) {
	loop := wireFunction("F", []string{"a"}, []string{"b"}, nil, wireNode("F", "mine", []string{"a"}, []string{"b"}))
	read := func(fns ...[]byte) error {
		var g graph.Graph
		return Read(wireGraph{
			nodes:  [][]byte{wireNode("F", "mine", []string{"x"}, []string{"y"})},
			inputs: [][]byte{wireInput("x", 1, 2)}, outputs: []string{"y"}, functions: fns,
		}.bytes(), "", &g)
	}
	wantRefused(t, read(loop), target.User, "calls itself")
	// Each function calls the next one sixteen times: 16^9 nodes.
	var fns [][]byte
	for i := range 10 {
		name, next := "F"+string(rune('0'+i)), "F"+string(rune('1'+i))
		if i == 0 {
			name = "F"
		}
		var nodes [][]byte
		for k := range 16 {
			n := wireNode(next, "mine", []string{"a"}, []string{"b" + string(rune('a'+k))})
			if i == 9 {
				n = wireNode("Relu", "", []string{"a"}, []string{"b" + string(rune('a'+k))})
			}
			nodes = append(nodes, n)
		}
		fns = append(fns, wireFunction(name, []string{"a"}, []string{"ba"}, nil, nodes...))
	}
	wantRefused(t, read(fns...), target.Limit, "functions expand")
}

func TestRefusals(t *testing.T) {
	relu := func(op, domain string) [][]byte { return [][]byte{wireNode(op, domain, []string{"x"}, []string{"y"})} }
	x := [][]byte{wireInput("x", 1, 2)}
	for _, c := range []struct {
		name  string
		g     wireGraph
		class target.Class
		parts []string
	}{
		{"loop", wireGraph{nodes: relu("Loop", ""), inputs: x, outputs: []string{"y"}}, target.Unsupported, []string{"Loop", "the Loop"}},
		{"domain", wireGraph{nodes: relu("Relu", "other"), inputs: x, outputs: []string{"y"}}, target.Unsupported, []string{"other.Relu"}},
		{"opset", wireGraph{nodes: relu("Relu", ""), inputs: x, outputs: []string{"y"}, opset: 99}, target.Unsupported, []string{"opset 99"}},
		{"unknown value", wireGraph{nodes: relu("Relu", ""), outputs: []string{"y"}}, target.User, []string{`"x"`}},
		{"no output", wireGraph{nodes: relu("Relu", ""), inputs: x}, target.User, []string{"no outputs"}},
		{"output of nothing", wireGraph{nodes: relu("Relu", ""), inputs: x, outputs: []string{"z"}}, target.User, []string{`"z"`}},
		{"type error", wireGraph{nodes: relu("Exp", ""), inputs: [][]byte{wireInput("x", 7, 2)}, outputs: []string{"y"}}, target.User, []string{"the Exp"}},
	} {
		var g graph.Graph
		err := Read(c.g.bytes(), "", &g)
		t.Run(c.name, func(t *testing.T) { wantRefused(t, err, c.class, c.parts...) })
	}
}

func TestSupportedOps(t *testing.T) {
	ops := SupportedOps()
	if !slices.IsSorted(ops) || !slices.Contains(ops, "Conv") || !slices.Contains(ops, "com.microsoft.Gelu") || len(ops) < 120 {
		t.Errorf("%d operators: %v", len(ops), ops)
	}
	if !slices.IsSorted(Refusals()) {
		t.Error("the refusals are not sorted")
	}
}
