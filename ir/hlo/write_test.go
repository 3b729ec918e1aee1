package hlo

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// diff says where two graphs differ in what HLO text can say, or returns "". Node, type and name numbers may differ; order and all
// texts may not.
func diff(a, b *graph.Graph) string {
	if a.Name != b.Name || a.Comps.Len() != b.Comps.Len() || a.Nodes.Len() != b.Nodes.Len() || a.Entry != b.Entry {
		return fmt.Sprintf("module %s of %d computations and %d nodes, entry %d; %s of %d and %d, entry %d", a.Name, a.Comps.Len(),
			a.Nodes.Len(), a.Entry, b.Name, b.Comps.Len(), b.Nodes.Len(), b.Entry)
	}
	for c, ra := range a.Comps.All() {
		rb := b.Comps.At(c)
		if a.Names.String(ra.Name) != b.Names.String(rb.Name) || ra.First != rb.First || ra.Count != rb.Count || ra.Root != rb.Root ||
			!slices.Equal(a.Params(c), b.Params(c)) {
			return fmt.Sprintf("computation %d: %s, %s", c, a.Names.String(ra.Name), b.Names.String(rb.Name))
		}
	}
	var ta, tb []byte
	for n, ra := range a.Nodes.All() {
		rb := b.Nodes.At(n)
		where := fmt.Sprintf("node %d %s", n, a.NodeName(n))
		ta, tb = a.AppendType(ta[:0], ra.Type), b.AppendType(tb[:0], rb.Type)
		if a.NodeName(n) != b.NodeName(n) || ra.Op != rb.Op || string(ta) != string(tb) || ra.Comp != rb.Comp {
			return fmt.Sprintf("%s: %v %s; %s %v %s", where, ra.Op, ta, b.NodeName(n), rb.Op, tb)
		}
		if !slices.Equal(a.Operands(n), b.Operands(n)) || !slices.Equal(a.Calls(n), b.Calls(n)) {
			return where + ": operands or calls differ"
		}
		for k := graph.AttrNone; k < graph.NumKeys; k++ {
			la, lb := a.IntList(n, k), b.IntList(n, k)
			fa, fb := a.Float(n, k, math.Inf(1)), b.Float(n, k, math.Inf(1))
			if !slices.Equal(la, lb) || fa != fb || a.Str(n, k) != b.Str(n, k) {
				return fmt.Sprintf("%s: attribute %d: %v %v %q; %v %v %q", where, k, la, fa, a.Str(n, k), lb, fb, b.Str(n, k))
			}
		}
		if ra.Op == graph.OpConstant {
			ka, kb := a.Consts.At(ra.Const), b.Consts.At(rb.Const)
			if ka.Kind != kb.Kind || ka.Bits != kb.Bits || ka.Seed != kb.Seed || ka.Std != kb.Std || ka.Mean != kb.Mean ||
				!bytes.Equal(a.ConstBytes(ra.Const), b.ConstBytes(rb.Const)) {
				return fmt.Sprintf("%s: constants differ: %+v, %+v", where, ka, kb)
			}
		}
	}
	for i, oa := range a.Outputs {
		if i >= len(b.Outputs) || oa.Node != b.Outputs[i].Node || a.Names.String(oa.Name) != b.Names.String(b.Outputs[i].Name) {
			return fmt.Sprintf("output %d %s differs", i, a.Names.String(oa.Name))
		}
	}
	if len(a.Outputs) != len(b.Outputs) || !slices.Equal(a.Aliases, b.Aliases) {
		return "outputs or aliases differ"
	}
	return ""
}

func text(t *testing.T, g *graph.Graph) string {
	t.Helper()
	var w bytes.Buffer
	if err := Write(&w, g); err != nil {
		t.Fatal(err)
	}
	return w.String()
}

func TestDataRoundTrip(t *testing.T) {
	dir := dataDir(t)
	var r Reader
	var g, h graph.Graph
	for i, row := range manifest(t, dir) {
		if testing.Short() && i%4 != 0 {
			continue
		}
		if err := r.Read(load(t, filepath.Join(dir, row["file"])), &g); err != nil {
			t.Fatalf("%s: %v", row["file"], err)
		}
		out := text(t, &g)
		if err := r.Read([]byte(out), &h); err != nil {
			t.Errorf("%s: what was written does not read: %v", row["file"], err)
			continue
		}
		if d := diff(&g, &h); d != "" {
			t.Errorf("%s: %s", row["file"], d)
		}
	}
}

// TestSinkRoundTrip writes the module that uses all of the syntax, whose calls point forwards; what comes out has them backwards, and
// from then on text and graph stay the same.
func TestSinkRoundTrip(t *testing.T) {
	g := mustRead(t, goodSink())
	one := text(t, g)
	h := mustRead(t, one)
	if two := text(t, h); two != one {
		t.Errorf("second text differs:\n%s\nfirst:\n%s", two, one)
	}
	k := mustRead(t, one)
	if d := diff(h, k); d != "" {
		t.Error(d)
	}
	if len(h.Outputs) != 4 || h.Names.String(h.Outputs[3].Name) != "z" || h.NodeName(h.Params(h.Entry)[0]) != "gpu/data" {
		t.Errorf("names of inputs and outputs are lost in\n%s", one)
	}
}

// TestFloatText prints every code of the small types, and reads it back.
func TestFloatText(t *testing.T) {
	for d := graph.F4E2M1; d <= graph.F16; d++ {
		codes := uint64(1) << d.Bits()
		data := make([]byte, 0, codes*uint64(d.Size()))
		for c := range codes {
			data = append(data, byte(c))
			if d.Size() == 2 {
				data = append(data, byte(c>>8))
			}
		}
		var g graph.Graph
		b := graph.Begin(&g, "main")
		root := b.Dense(d, []int64{int64(codes)}, data)
		b.Output("output0", root)
		c, err := b.End(root)
		if err != nil {
			t.Fatal(err)
		}
		g.Entry = c
		h := mustRead(t, text(t, &g))
		if got := h.ConstBytes(h.Nodes.At(h.Outputs[0].Node).Const); !bytes.Equal(got, data) {
			for i := range data {
				if i < len(got) && got[i] != data[i] {
					t.Errorf("%v: byte %d of the codes is %#x, want %#x", d, i, got[i], data[i])
					break
				}
			}
		}
	}
}

// TestComposites writes every composite that HLO lacks and asks inference about what is read back.
func TestComposites(t *testing.T) {
	g := compositeGraph(t)
	out := text(t, g)
	h := mustRead(t, out)
	if err := graph.Check(h); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	for n, row := range h.Nodes.All() {
		if slices.Contains(composites, row.Op) || row.Op == graph.OpOther {
			t.Errorf("%s: %v survives", h.NodeName(n), row.Op)
		}
	}
	if len(h.Outputs) != len(g.Outputs) {
		t.Fatalf("%d outputs, want %d", len(h.Outputs), len(g.Outputs))
	}
	for i, o := range g.Outputs {
		p := h.Outputs[i]
		if h.Names.String(p.Name) != g.Names.String(o.Name) || h.TypeString(h.Nodes.At(p.Node).Type) != g.TypeString(g.Nodes.At(o.Node).Type) {
			t.Errorf("output %d is %s %s, want %s %s", i, h.Names.String(p.Name), h.TypeString(h.Nodes.At(p.Node).Type),
				g.Names.String(o.Name), g.TypeString(g.Nodes.At(o.Node).Type))
		}
	}
	if again := text(t, h); again != text(t, mustRead(t, again)) {
		t.Error("the text changes when it is written again")
	}
	for _, want := range []string{`neff_input_names="in/x"`, `rosmar_seed="7"`, "combine.sum.f32", "erf(", "logistic("} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// TestCompositesCompute runs the composites and what they are written as on the same inputs.
func TestCompositesCompute(t *testing.T) {
	g := compositeGraph(t)
	h := mustRead(t, text(t, g))
	rng := rand.New(rand.NewPCG(7, 8))
	draw := func(d graph.Dtype, dims ...int64) graph.Tensor {
		n := int64(1)
		for _, d := range dims {
			n *= d
		}
		vals := make([]float64, n)
		for i := range vals {
			vals[i] = float64(rng.IntN(17)-8) / 2 // few values, so that there are equals
		}
		return graph.TensorOf(d, dims, vals...)
	}
	ins := []graph.Tensor{draw(graph.F32, 2, 6, 5, 5), draw(graph.BF16, 4, 6), draw(graph.S32, 4, 6)}
	want, err := graph.Eval(g, ins)
	if err != nil {
		t.Fatal(err)
	}
	got, err := graph.Eval(h, ins)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for i := range want {
		tol := 1e-5
		if want[i].Dtype == graph.BF16 {
			tol = 1e-2
		}
		for k := range want[i].Len() {
			a, b := got[i].Float(k), want[i].Float(k)
			if math.Abs(a-b) > tol*(1+math.Abs(b)) || a != a {
				t.Errorf("output %d (%v), element %d: %v, want %v", i, g.Op(g.Outputs[i].Node), k, a, b)
				break
			}
		}
	}
}

// compositeGraph uses every composite, on f32 and on types that are computed in another one.
func compositeGraph(t *testing.T) *graph.Graph {
	t.Helper()
	g := new(graph.Graph)
	g.Name = "composites of 1"
	b := graph.Begin(g, "main")
	b.SetLabel("same label")
	x := b.Param("in/x", graph.F32, 2, 6, 5, 5)
	h := b.Param("h", graph.BF16, 4, 6)
	i := b.Param("i", graph.S32, 4, 6)
	add := func(n graph.Node) {
		b.Output("out, "+fmt.Sprint(len(g.Outputs)), n)
	}
	for _, v := range []graph.Node{x, h} {
		for _, op := range []graph.Op{graph.OpRelu, graph.OpGelu, graph.OpGeluTanh, graph.OpSilu, graph.OpSoftplus, graph.OpMish} {
			add(b.Unary(op, v))
		}
		add(b.LeakyRelu(v, 0.25))
		add(b.LRN(v, 4, 0.5, 0.75, 2))
	}
	for _, v := range []graph.Node{x, h, i} {
		for _, last := range []bool{false, true} {
			add(b.ArgMax(v, 1, last, graph.S64))
			add(b.ArgMin(v, 0, last, graph.S32))
			add(b.CumSum(v, 1, last, false))
			add(b.CumSum(v, 0, last, true))
		}
	}
	pool := []graph.Window{{Size: 1}, {Size: 1}, {Size: 3, Stride: 2, PadLow: 1, PadHigh: 1}, {Size: 2, PadHigh: 1}}
	add(b.AvgPool(x, pool, true))
	add(b.AvgPool(x, pool, false))
	add(b.Reduce(graph.ReduceMax, h, 1))
	add(b.Reduce(graph.ReduceSum, x, 1, 2))
	idx := b.Ints(graph.S64, []int64{2, 2}, 0, -1, 3, -4)
	add(b.Take(h, idx, 0))
	add(b.Take(x, b.Ints(graph.S32, nil, -2), 1))
	add(b.TakeAlong(h, b.Ints(graph.S32, []int64{3, 2}, 0, 1, -1, 2, 3, -4), 0))
	add(b.TakeAlong(h, b.Ints(graph.U8, []int64{4, 3}, 0, 1, 5, 2, 3, 4, 0, 0, 0, 5, 5, 5), 1))
	add(b.Add(b.Splat(graph.F32, []int64{100, 100}, 3), b.Weight(graph.F32, []int64{100, 100}, 7, 0.5)))
	add(b.WeightAround(graph.BF16, []int64{5}, 9, 1, 0.25))
	c, err := b.End(g.Outputs[0].Node)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	return g
}

func TestWriteRefuses(t *testing.T) {
	var g graph.Graph
	if err := Write(&bytes.Buffer{}, &g); err == nil {
		t.Error("an empty graph is written")
	}
	b := graph.Begin(&g, "main")
	n := g.AddBlob(b.C, g.Tensor(graph.F32, 4), 0, 0, 8, 0)
	g.Blobs = append(g.Blobs, make([]byte, 8))
	b.Output("y", n)
	c, err := b.End(n)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	if err := Write(&bytes.Buffer{}, &g); err == nil || !strings.Contains(err.Error(), "the constant has 8 bytes, its type f32[4] takes 16") {
		t.Errorf("a short constant: %v", err)
	}
}
