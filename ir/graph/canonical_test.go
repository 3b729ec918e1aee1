package graph

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// drawGraph makes a valid model: elementwise operators, moves, reductions, small dots, constants, tuples and calls over a few
// shapes, some results dead, some computed twice.
func drawGraph(t *rapid.T) *Graph {
	g := new(Graph)
	var fns []Comp
	shapes := [][]int64{{}, {3}, {2, 3}, {3, 2}, {1, 3}, {2, 1, 3}, {6}}
	dtypes := []Dtype{F32, BF16, S32}
	for i := range rapid.IntRange(0, 2).Draw(t, "functions") {
		b := Begin(g, fmt.Sprint("fn", i))
		drawNodes(t, b, fns, shapes, dtypes, 2, 6)
		d := rapid.SampledFrom(b.nodesOf()).Draw(t, "result")
		root := d
		if rapid.Bool().Draw(t, "tuple result") {
			root = b.Tuple(d, b.Params()[0])
		}
		c, err := b.End(root)
		if err != nil {
			t.Fatal(err)
		}
		fns = append(fns, c)
	}
	b := Begin(g, "main")
	drawNodes(t, b, fns, shapes, dtypes, 3, 25)
	nodes := b.nodesOf()
	for i := range rapid.IntRange(1, 3).Draw(t, "outputs") {
		b.Output(fmt.Sprint("y", i), rapid.SampledFrom(nodes).Draw(t, "output"))
	}
	c, err := b.End(g.Outputs[0].Node)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	return g
}

// nodesOf are the nodes built so far.
func (b *Builder) nodesOf() []Node {
	var ns []Node
	for n := b.G.Comps.At(b.C).First; int(n) < b.G.Nodes.Len(); n++ {
		ns = append(ns, n)
	}
	return ns
}

func drawNodes(t *rapid.T, b *Builder, fns []Comp, shapes [][]int64, dtypes []Dtype, params, most int) {
	g := b.G
	for i := range params {
		b.Param(fmt.Sprint("p", i), rapid.SampledFrom(dtypes).Draw(t, "dtype"), rapid.SampledFrom(shapes).Draw(t, "shape")...)
	}
	tensors := func() []Node {
		return slices.DeleteFunc(b.nodesOf(), func(n Node) bool { return g.IsTuple(b.Type(n)) || b.Dtype(n) == Bool })
	}
	for range rapid.IntRange(1, most).Draw(t, "nodes") {
		x := rapid.SampledFrom(tensors()).Draw(t, "x")
		same := slices.DeleteFunc(tensors(), func(n Node) bool { return b.Type(n) != b.Type(x) })
		y := rapid.SampledFrom(same).Draw(t, "y")
		dims, d := b.Dims(x), b.Dtype(x)
		switch rapid.IntRange(0, 20).Draw(t, "op") {
		case 0:
			b.Add(x, y)
		case 1:
			b.Mul(x, y)
		case 2:
			b.Max(x, y)
		case 3:
			b.Unary(OpNeg, x)
		case 4:
			if d.IsFloat() {
				b.Unary(OpTanh, x)
			}
		case 5:
			b.Splat(d, dims, float64(rapid.IntRange(-2, 2).Draw(t, "value")))
		case 6:
			vals := make([]float64, g.Elements(b.Type(x)))
			for i := range vals {
				vals[i] = float64(rapid.IntRange(-2, 2).Draw(t, "value"))
			}
			if len(vals) > 0 {
				mat(b, d, dims, vals...)
			}
		case 7:
			if len(dims) > 0 {
				b.Iota(d, dims, rapid.IntRange(0, len(dims)-1).Draw(t, "dim"))
			}
		case 8:
			to := rapid.SampledFrom(shapes).Draw(t, "shape")
			if int64(count(to)) == g.Elements(b.Type(x)) {
				b.Reshape(x, to...)
			}
		case 9:
			if len(dims) > 0 {
				perm := make([]int64, len(dims))
				for i := range perm {
					perm[i] = int64(i)
				}
				b.Transpose(x, rapid.Permutation(perm).Draw(t, "perm")...)
			}
		case 10:
			to := rapid.SampledFrom(shapes).Draw(t, "shape")
			if s, ok := BroadcastShape(dims, to); ok && sameDims(s, to) {
				b.BroadcastTo(x, to)
			}
		case 11:
			if len(dims) > 0 {
				b.Reduce(rapid.SampledFrom([]ReduceKind{ReduceSum, ReduceMax}).Draw(t, "kind"), x, int64(len(dims)-1))
			}
		case 12:
			b.Select(b.Compare(DirLT, x, y), x, y)
		case 13:
			if len(dims) == 2 {
				b.Dot(x, y, nil, nil, []int64{1}, []int64{1})
			}
		case 14:
			b.Convert(x, rapid.SampledFrom(dtypes).Draw(t, "dtype"))
		case 15:
			b.Elem(b.Tuple(x, y), rapid.IntRange(0, 1).Draw(t, "element"))
		case 16:
			b.Node(rapid.SampledFrom([]Op{OpCopy, OpBarrier}).Draw(t, "identity"), 0, []Node{x})
		case 17:
			if len(dims) > 0 {
				b.SliceDim(x, 0, 0, rapid.Int64Range(0, dims[0]).Draw(t, "limit"))
			}
		case 18:
			if len(dims) > 0 {
				b.Concat(0, x, y)
			}
		case 19:
			if len(dims) > 0 {
				b.Pad(x, b.Splat(d, nil, float64(rapid.IntRange(-1, 1).Draw(t, "value"))), make([]int64, len(dims)), fill(make([]int64, len(dims)), 1), nil)
			}
		case 20:
			if len(fns) > 0 {
				fn := rapid.SampledFrom(fns).Draw(t, "function")
				var args []Node
				for _, p := range g.Params(fn) {
					pt := g.Nodes.At(p).Type
					fit := slices.DeleteFunc(tensors(), func(n Node) bool { return b.Type(n) != pt })
					if len(fit) == 0 {
						fit = []Node{b.Splat(g.Dtype(p), g.Dims(p), 1)}
					}
					args = append(args, rapid.SampledFrom(fit).Draw(t, "argument"))
				}
				r := b.Call(fn, args...)
				if g.IsTuple(b.Type(r)) {
					b.Elem(r, rapid.IntRange(0, 1).Draw(t, "element"))
				}
			}
		}
	}
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
}

func sameTensors(a, b []Tensor) bool {
	return slices.EqualFunc(a, b, func(x, y Tensor) bool {
		return x.Dtype == y.Dtype && sameDims(x.Dims, y.Dims) && bytes.Equal(x.Data, y.Data)
	})
}

func TestCanonicalComputesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		if err := Check(g); err != nil {
			t.Fatal(err)
		}
		ins := RandomInputs(g, 7)
		want, err := Eval(g, ins)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Canonical(g)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(c); err != nil {
			t.Fatal(err)
		}
		got, err := Eval(c, ins)
		if err != nil {
			t.Fatal(err)
		}
		if !sameTensors(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for n := Node(1); int(n) < c.Nodes.Len(); n++ {
			for _, x := range c.Operands(n) {
				if x >= n {
					t.Fatalf("%s stands before its operand", c.NodeString(n))
				}
			}
			if c.IsTuple(c.Nodes.At(n).Type) || inlined(c.Op(n)) {
				t.Fatalf("%s is left", c.NodeString(n))
			}
		}
		again, err := Canonical(c)
		if err != nil {
			t.Fatal(err)
		}
		if again.Nodes.Len() != c.Nodes.Len() {
			t.Fatalf("a second pass leaves %d nodes, the first %d", again.Nodes.Len()-1, c.Nodes.Len()-1)
		}
	})
}

// canonCase gives the operators that are left in the entry, without parameters, by name.
func TestCanonicalForms(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *Builder, x Node) Node
		want  string
	}{
		{"identities", func(b *Builder, x Node) Node {
			return b.Node(OpCustomCall, b.Type(x), []Node{b.Node(OpCopy, 0, []Node{x})}, b.G.StrAttr(AttrTarget, "Sharding"))
		}, ""},
		{"other custom calls stay", func(b *Builder, x Node) Node {
			return b.Node(OpCustomCall, b.Type(x), []Node{x}, b.G.StrAttr(AttrTarget, "Mystery"))
		}, "custom-call"},
		{"reshapes merge", func(b *Builder, x Node) Node { return b.Reshape(b.Reshape(b.Reshape(x, 8), 4, 2), 2, 4) }, ""},
		{"bitcast", func(b *Builder, x Node) Node { return b.Node(OpBitcast, b.G.Tensor(F32, 8), []Node{x}) }, "reshape"},
		{"transposes cancel", func(b *Builder, x Node) Node { return b.Transpose(b.Transpose(x, 1, 0), 1, 0) }, ""},
		{"broadcasts merge", func(b *Builder, x Node) Node {
			return b.Broadcast(b.Broadcast(x, []int64{0, 2}, []int64{2, 3, 4}), []int64{1, 2, 3}, []int64{5, 2, 3, 4})
		}, "broadcast"},
		{"splats", func(b *Builder, x Node) Node {
			s := b.Unary(OpExp, b.BroadcastTo(b.Scalar(F32, 0), []int64{1 << 20, 1 << 20}))
			return b.Add(x, b.SliceDim(b.SliceDim(s, 0, 0, 2), 1, 0, 4))
		}, "constant add"},
		{"small constants", func(b *Builder, x Node) Node {
			return b.Add(x, b.Mul(mat(b, F32, []int64{2, 4}, seq(8)...), b.Splat(F32, []int64{2, 4}, 2)))
		}, "constant add"},
		{"iota stays", func(b *Builder, x Node) Node { return b.Add(x, b.Iota(F32, []int64{2, 4}, 1)) }, "iota add"},
		{"iota folds", func(b *Builder, x Node) Node {
			return b.Add(x, b.Unary(OpNeg, b.Iota(F32, []int64{2, 4}, 1)))
		}, "constant add"},
		{"a vector broadcast stays", func(b *Builder, x Node) Node {
			return b.Add(x, b.Broadcast(vec(b, F32, 1, 2), []int64{0}, []int64{2, 4}))
		}, "constant broadcast add"},
		{"common subexpressions", func(b *Builder, x Node) Node { return b.Add(b.Unary(OpExp, x), b.Unary(OpExp, x)) }, "exponential add"},
		{"dead nodes", func(b *Builder, x Node) Node { b.Unary(OpExp, x); return b.Unary(OpNeg, x) }, "negate"},
		{"dimension sizes", func(b *Builder, x Node) Node {
			n := b.Node(OpGetDimensionSize, 0, []Node{x}, b.G.IntsAttr(AttrDim, 1))
			return b.Mul(x, b.Convert(n, F32))
		}, "constant multiply"},
		{"select on a constant", func(b *Builder, x Node) Node { return b.Select(b.Scalar(Bool, 1), b.Unary(OpExp, x), x) }, "exponential"},
		{"elided weights differ", func(b *Builder, x Node) Node {
			return b.Add(b.Weight(F32, []int64{2, 4}, 0, 0), b.Add(x, b.Weight(F32, []int64{2, 4}, 0, 0)))
		}, "constant constant add add"},
		{"outfeed is kept", func(b *Builder, x Node) Node {
			b.Node(OpOutfeed, b.G.Tensor(Token), []Node{x})
			return b.Unary(OpNeg, x)
		}, "outfeed negate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g Graph
			b := Begin(&g, "main")
			x := b.Param("x", F32, 2, 4)
			y := c.build(b, x)
			comp, err := b.End(y)
			if err != nil {
				t.Fatal(err)
			}
			g.Entry = comp
			b.Output("y", y)
			d, err := Canonical(&g)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(d); err != nil {
				t.Fatal(err)
			}
			var ops []string
			for n := Node(1); int(n) < d.Nodes.Len(); n++ {
				if d.Op(n) != OpParameter {
					ops = append(ops, d.Op(n).String())
				}
			}
			slices.Sort(ops)
			want := strings.Fields(c.want)
			slices.Sort(want)
			if !slices.Equal(ops, want) {
				t.Errorf("left %v, want %v", ops, want)
			}
		})
	}
}

func TestCanonicalKeepsLoops(t *testing.T) {
	var g Graph
	inner := Begin(&g, "inner")
	x := inner.Param("x", F32)
	ic, _ := inner.End(inner.Add(x, inner.Add(inner.Scalar(F32, 1), inner.Scalar(F32, 2))))
	cb := Begin(&g, "cond")
	cond, _ := cb.End(cb.Compare(DirLT, cb.Param("x", F32), cb.Scalar(F32, 10)))
	bb := Begin(&g, "body")
	body, _ := bb.End(bb.Call(ic, bb.Param("x", F32)))
	dead := Begin(&g, "dead")
	dead.End(dead.Param("x", F32))
	b := Begin(&g, "main")
	p := b.Param("p", F32)
	w := b.While(cond, body, p, 4)
	b.Output("pair", b.Tuple(w, b.Tuple(p)))
	g.Entry, _ = b.End(w)
	d, err := Canonical(&g)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(d); err != nil {
		t.Fatal(err)
	}
	if d.Comps.Len()-1 != 3 {
		t.Errorf("%d computations are left, want 3", d.Comps.Len()-1)
	}
	if len(d.Outputs) != 2 || d.Names.String(d.Outputs[0].Name) != "pair.0" || d.Names.String(d.Outputs[1].Name) != "pair.1.0" {
		t.Errorf("outputs %v", d.Outputs)
	}
	outs, err := Eval(d, []Tensor{TensorOf(F32, nil, 2)})
	if err != nil || outs[0].Float(0) != 11 || outs[1].Float(0) != 2 {
		t.Errorf("%v %v", outs, err)
	}
}

func TestCanonicalDecidesConditionals(t *testing.T) {
	var g Graph
	mk := func(op Op) Comp {
		b := Begin(&g, op.String())
		c, _ := b.End(b.Unary(op, b.Param("x", F32)))
		return c
	}
	yes, no := mk(OpExp), mk(OpNeg)
	b := Begin(&g, "main")
	p := b.Param("p", F32)
	r := b.NodeCalls(OpConditional, 0, []Node{b.Scalar(Bool, 0), p, p}, []Comp{yes, no})
	g.Entry, _ = b.End(r)
	d, err := Canonical(&g)
	if err != nil || d.Comps.Len()-1 != 1 || d.Op(d.Outputs[0].Node) != OpNeg {
		t.Errorf("%v: %d computations", err, d.Comps.Len()-1)
	}
}

// TestExponentialCalls: each function calls the one before twice; sixty of them must be refused, not expanded. Those that conditionals
// on constants choose are counted as they are expanded.
func TestExponentialCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(b *Builder, callee Comp, x Node) Node
	}{
		{"call", func(b *Builder, callee Comp, x Node) Node { return b.Call(callee, x) }},
		{"conditional", func(b *Builder, callee Comp, x Node) Node {
			return b.NodeCalls(OpConditional, 0, []Node{b.Scalar(Bool, 1), x, x}, []Comp{callee, callee})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g Graph
			b := Begin(&g, "f0")
			prev, _ := b.End(b.Param("x", F32))
			for i := range 60 {
				b := Begin(&g, fmt.Sprint("f", i+1))
				prev, _ = b.End(c.call(b, prev, c.call(b, prev, b.Param("x", F32))))
			}
			g.Entry = prev
			if _, err := Canonical(&g); target.ClassOf(err) != target.Limit {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestConstInts(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	x := b.Param("x", F32, 3, 8)
	shape := b.Concat(0, b.Reshape(b.Node(OpGetDimensionSize, 0, []Node{x}, g.IntsAttr(AttrDim, 1)), 1), b.Ints(S32, []int64{2}, 5, 7))
	n := b.Take(b.Convert(b.Mul(shape, b.Like(shape, 2)), S64), b.Ints(S64, []int64{2}, 0, 2), 0)
	if v, ok := ConstInts(&g, n); !ok || !slices.Equal(v, []int64{16, 14}) {
		t.Errorf("%v %v, builder: %v", v, ok, b.Err())
	}
	if _, ok := ConstInts(&g, b.Convert(x, S64)); ok {
		t.Error("a parameter is no constant")
	}
}

func BenchmarkCanonical(b *testing.B) {
	var g Graph
	bl := Begin(&g, "layer")
	x := bl.Param("x", F32, 8)
	for range 100 {
		x = bl.Add(bl.Unary(OpExp, x), bl.BroadcastTo(bl.Scalar(F32, 1), []int64{8}))
	}
	layer, _ := bl.End(x)
	bl = Begin(&g, "main")
	x = bl.Param("x", F32, 8)
	for range 100 {
		x = bl.Call(layer, x)
	}
	g.Entry, _ = bl.End(x)
	nodes := 0
	b.ReportAllocs()
	for b.Loop() {
		d, err := Canonical(&g)
		if err != nil {
			b.Fatal(err)
		}
		nodes = d.Nodes.Len() - 1
	}
	b.ReportMetric(float64(nodes)*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}

// TestNeuronCustomCalls: the formulas against values computed by hand.
func TestNeuronCustomCalls(t *testing.T) {
	for _, c := range []struct {
		target, backend string
		dims            []int64
		more            []fs
		x, want         fs
	}{
		{"AwsNeuronGelu", "", []int64{2}, nil, fs{1, -1}, fs{0.8413447, -0.15865526}},
		{"AwsNeuronGeluApprxTanh", "", []int64{1}, nil, fs{1}, fs{0.841192}},
		{"AwsNeuronGeluBackward", "", []int64{2}, nil, fs{0, 1}, fs{0.5, 1.0833155}},
		{"AwsNeuronSilu", "", []int64{1}, nil, fs{1}, fs{0.7310586}},
		{"AwsNeuronSoftmax", "1", []int64{2, 2}, nil, fs{0, 0, 1, 1}, fs{0.5, 0.5, 0.5, 0.5}},
		{"AwsNeuronSoftmax", `"0"`, []int64{2, 1}, nil, fs{0, 1}, fs{0.26894143, 0.7310586}},
		{"AwsNeuronRmsNorm", "0", []int64{2, 2}, []fs{{1, 2}, {3}}, fs{3, 1, 5, 2}, fs{3 / 4.472136, 1 / 2.3452079, 10 / 4.472136, 4 / 2.3452079}},
	} {
		var g Graph
		b := Begin(&g, "main")
		ins := []Node{b.Param("x", F32, c.dims...)}
		args := []Tensor{TensorOf(F32, c.dims, c.x...)}
		for _, m := range c.more {
			dims := []int64{int64(len(m))}
			if len(m) == 1 {
				dims = nil
			}
			ins = append(ins, mat(b, F32, dims, m...))
		}
		y := b.Node(OpCustomCall, g.Tensor(F32, c.dims...), ins, g.StrAttr(AttrTarget, c.target), g.StrAttr(AttrBackend, c.backend))
		g.Entry, _ = b.End(y)
		d, err := Canonical(&g)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(d); err != nil {
			t.Fatal(err)
		}
		out, err := Eval(d, args)
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		for i, w := range c.want {
			if v := out[0].Float(i); !near(v, w, 1e-6) {
				t.Errorf("%s: element %d is %v, want %v", c.target, i, v, w)
			}
		}
	}
}

// argReducer builds XLA's argmax (argmin) combiner; nan is whether NaN wins.
func argReducer(g *Graph, dir Dir, nan bool) Comp {
	b := Begin(g, "arg")
	v, i := b.Param("v", F32), b.Param("i", S32)
	w, j := b.Param("w", F32), b.Param("j", S32)
	keep := b.Compare(dir, v, w)
	if nan {
		keep = b.Binary(OpOr, keep, b.Compare(DirNE, v, v))
	}
	tie := b.Binary(OpAnd, b.Compare(DirEQ, v, w), b.Compare(DirLT, i, j))
	c, err := b.End(b.Tuple(b.Select(keep, v, w), b.Select(b.Binary(OpOr, keep, tie), i, j)))
	if err != nil {
		panic(err)
	}
	return c
}

func TestArgReduceIsRecognised(t *testing.T) {
	for _, c := range []struct {
		name string
		dir  Dir
		nan  bool
		init float64
		op   Op
	}{
		{"max", DirGT, true, -inf, OpArgMax}, {"min", DirLT, true, inf, OpArgMin}, {"max without NaN", DirGT, false, -inf, OpReduce},
		{"max from zero", DirGT, true, 0, OpReduce},
	} {
		var g Graph
		fn := argReducer(&g, c.dir, c.nan)
		b := Begin(&g, "main")
		x := b.Param("x", F32, 3, 5)
		r := b.NodeCalls(OpReduce, 0, []Node{x, b.Broadcast(b.Iota(S32, []int64{5}, 0), []int64{1}, []int64{3, 5}), b.Scalar(F32, c.init), b.Scalar(S32, 0)},
			[]Comp{fn}, g.IntsAttr(AttrDims, 1))
		b.Output("value", b.Elem(r, 0))
		b.Output("index", b.Elem(r, 1))
		g.Entry, _ = b.End(r)
		d, err := Canonical(&g)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(d); err != nil {
			t.Fatal(err)
		}
		got := d.Outputs[1].Node
		if d.Op(got) == OpGetTupleElement {
			got = d.Operands(got)[0]
		}
		if d.Op(got) != c.op {
			t.Errorf("%s: the index comes from %s, want %s", c.name, d.Op(got), c.op)
		}
		in := []Tensor{TensorOf(F32, []int64{3, 5}, 1, 7, 7, 2, 0, -1, -5, -1, -9, -1, 2, nan, 5, nan, 1)}
		want, err1 := Eval(&g, in)
		have, err2 := Eval(d, in)
		if err1 != nil || err2 != nil || !sameTensors(want[1:], have[1:]) {
			t.Errorf("%s: %v, want %v (%v, %v)", c.name, have, want, err1, err2)
		}
	}
}

// TestSortKeyLooksThroughCleaning: the comparator that JAX writes for floats.
func TestSortKeyLooksThroughCleaning(t *testing.T) {
	build := func(replace float64) (int, bool, bool) {
		var g Graph
		c := scalarComp(&g, "lt", BF16, 2, func(b *Builder, p []Node) Node {
			clean := func(x Node) Node {
				y := b.Select(b.Compare(DirEQ, x, b.Scalar(BF16, 0)), b.Scalar(BF16, replace), x)
				return b.Select(b.Compare(DirNE, x, x), b.Scalar(BF16, nan), y)
			}
			return b.Compare(DirLT, b.Convert(clean(p[0]), F32), b.Convert(clean(p[1]), F32))
		})
		return SortKey(&g, c)
	}
	if k, desc, ok := build(0); !ok || k != 0 || desc {
		t.Errorf("%v %v %v", k, desc, ok)
	}
	if _, _, ok := build(7); ok {
		t.Error("zero replaced by seven is taken for a plain comparison")
	}
}

// TestSameGraphSameTables: two runs of Canonical on two builds of one model give equal tables, row by row.
func TestSameGraphSameTables(t *testing.T) {
	build := func() *Graph {
		var g Graph
		fn := argReducer(&g, DirGT, true)
		b := Begin(&g, "main")
		x := b.Param("x", F32, 8, 16)
		for i := range 20 {
			b.SetLabel(fmt.Sprint("layer", i))
			x = b.Softmax(b.Add(b.MatMul(x, b.Weight(F32, []int64{16, 16}, uint64(i+1), 0.1)), b.Splat(F32, []int64{16}, float64(i%3))), 1)
		}
		r := b.NodeCalls(OpReduce, 0, []Node{x, b.Iota(S32, []int64{8, 16}, 1), b.Scalar(F32, -inf), b.Scalar(S32, 0)}, []Comp{fn}, g.IntsAttr(AttrDims, 1))
		b.Output("best", r)
		g.Entry, _ = b.End(r)
		d, err := Canonical(&g)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b := build(), build()
	same := slices.Equal(a.Nodes.Rows(), b.Nodes.Rows()) && slices.Equal(a.Types.Rows(), b.Types.Rows()) && slices.Equal(a.Consts.Rows(), b.Consts.Rows()) &&
		slices.Equal(a.Outputs, b.Outputs) && a.NodeLists.Len() == b.NodeLists.Len() && a.Ints.Len() == b.Ints.Len()
	for n := Node(1); same && int(n) < a.Nodes.Len(); n++ {
		same = a.NodeString(n) == b.NodeString(n)
	}
	if !same {
		t.Error("two runs differ")
	}
}
