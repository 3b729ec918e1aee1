package graph

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

func TestRowSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"NodeRow", unsafe.Sizeof(NodeRow{}), 44}, {"CompRow", unsafe.Sizeof(CompRow{}), 24}, {"TypeRow", unsafe.Sizeof(TypeRow{}), 20},
		{"Attr", unsafe.Sizeof(Attr{}), 12},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

// inferCase builds one operator and gives its type, or a part of the error message.
type inferCase struct {
	name  string
	build func(b *Builder) Node
	want  string
	err   string
}

func f32(b *Builder, dims ...int64) Node  { return b.Splat(F32, dims, 1) }
func s32(b *Builder, dims ...int64) Node  { return b.Splat(S32, dims, 1) }
func pred(b *Builder, dims ...int64) Node { return b.Splat(Bool, dims, 1) }

var inferCases = []inferCase{
	{"iota", func(b *Builder) Node { return b.Iota(S32, []int64{2, 3}, 1) }, "s32[2,3]", ""},
	{"iota dim", func(b *Builder) Node { return b.Iota(S32, []int64{2, 3}, 2) }, "", "dimension 2 is not in [0,2)"},
	{"exp", func(b *Builder) Node { return b.Unary(OpExp, f32(b, 4)) }, "f32[4]", ""},
	{"exp of int", func(b *Builder) Node { return b.Unary(OpExp, s32(b, 4)) }, "", "exponential does not take s32"},
	{"is-finite", func(b *Builder) Node { return b.Unary(OpIsFinite, f32(b, 4)) }, "pred[4]", ""},
	{"convert", func(b *Builder) Node { return b.Convert(f32(b, 2, 2), BF16) }, "bf16[2,2]", ""},
	{"bitcast-convert narrow", func(b *Builder) Node { return b.Node(OpBitcastConvert, b.G.Tensor(U8), []Node{f32(b, 2)}) }, "u8[2,4]", ""},
	{"bitcast-convert wide", func(b *Builder) Node {
		return b.Node(OpBitcastConvert, b.G.Tensor(F32), []Node{b.Splat(U16, []int64{3, 2}, 0)})
	}, "f32[3]", ""},
	{"bitcast-convert bad", func(b *Builder) Node {
		return b.Node(OpBitcastConvert, b.G.Tensor(F32), []Node{b.Splat(U16, []int64{3}, 0)})
	}, "", "last dimension of 2"},
	{"add broadcasts", func(b *Builder) Node { return b.Add(f32(b, 2, 1, 3), f32(b, 4, 1)) }, "f32[2,4,3]", ""},
	{"add dtype", func(b *Builder) Node { return b.Add(f32(b, 2), s32(b, 2)) }, "", "operand types f32[2] and s32[2] differ"},
	{"add shapes", func(b *Builder) Node { return b.Add(f32(b, 2), f32(b, 3)) }, "", "shapes [2] and [3] do not broadcast"},
	{"raw add shapes", func(b *Builder) Node { return b.Node(OpAdd, 0, []Node{f32(b, 2), f32(b, 3)}) }, "", "add(f32[2] %1, f32[3] %2): operand types f32[2] and f32[3] differ"},
	{"compare", func(b *Builder) Node { return b.Compare(DirLT, f32(b, 2), f32(b)) }, "pred[2]", ""},
	{"and float", func(b *Builder) Node { return b.Binary(OpAnd, f32(b), f32(b)) }, "", "and does not take f32"},
	{"select", func(b *Builder) Node { return b.Select(pred(b), f32(b, 2), f32(b, 2)) }, "f32[2]", ""},
	{"select row", func(b *Builder) Node { return b.Select(pred(b, 3, 1), f32(b, 3, 2), f32(b)) }, "f32[3,2]", ""},
	{"select pred", func(b *Builder) Node { return b.Select(f32(b), f32(b, 2), f32(b, 2)) }, "", "the selector is f32, not pred"},
	{"clamp", func(b *Builder) Node { return b.Clamp(f32(b), f32(b, 2), f32(b, 2)) }, "f32[2]", ""},
	{"clamp bound", func(b *Builder) Node { return b.Clamp(f32(b, 3), f32(b, 2), f32(b)) }, "", "bound f32[3]"},
	{"reshape", func(b *Builder) Node { return b.Reshape(f32(b, 2, 6), -1, 4) }, "f32[3,4]", ""},
	{"reshape count", func(b *Builder) Node { return b.Reshape(f32(b, 2, 6), 5) }, "", "12 elements cannot become 5"},
	{"broadcast", func(b *Builder) Node { return b.Broadcast(f32(b, 3), []int64{1}, []int64{2, 3}) }, "f32[2,3]", ""},
	{"broadcast dim", func(b *Builder) Node { return b.Broadcast(f32(b, 3), []int64{0}, []int64{2, 3}) }, "", "does not equal result dimension 0 (2)"},
	{"broadcast huge", func(b *Builder) Node { return b.Broadcast(f32(b), nil, []int64{1 << 40, 1 << 40}) }, "", "more than"},
	{"transpose", func(b *Builder) Node { return b.Transpose(f32(b, 2, 3, 4), 2, 0, 1) }, "f32[4,2,3]", ""},
	{"transpose perm", func(b *Builder) Node { return b.Transpose(f32(b, 2, 3), 0, 0) }, "", "not distinct dimensions below 2"},
	{"reverse", func(b *Builder) Node { return b.Reverse(f32(b, 2, 3), 1) }, "f32[2,3]", ""},
	{"slice", func(b *Builder) Node { return b.Slice(f32(b, 10), []int64{1}, []int64{9}, []int64{3}) }, "f32[3]", ""},
	{"slice limit", func(b *Builder) Node { return b.Slice(f32(b, 10), []int64{1}, []int64{11}, nil) }, "", "slice [1:11:1] of dimension 0 (10)"},
	{"concat", func(b *Builder) Node { return b.Concat(1, f32(b, 2, 3), f32(b, 2, 4)) }, "f32[2,7]", ""},
	{"concat shape", func(b *Builder) Node { return b.Concat(1, f32(b, 2, 3), f32(b, 3, 4)) }, "", "operand 1 has dimension 0 of 3"},
	{"pad", func(b *Builder) Node { return b.Pad(f32(b, 3), f32(b), []int64{1}, []int64{-1}, []int64{2}) }, "f32[7]", ""},
	{"pad negative", func(b *Builder) Node { return b.Pad(f32(b, 3), f32(b), []int64{-2}, []int64{-2}, nil) }, "", "leaves dimension 0 with -1"},
	{"dynamic-slice", func(b *Builder) Node { return b.DynamicSlice(f32(b, 3, 4), []Node{s32(b), s32(b)}, 1, 2) }, "f32[1,2]", ""},
	{"dynamic-slice starts", func(b *Builder) Node { return b.DynamicSlice(f32(b, 3, 4), []Node{s32(b)}, 1, 2) }, "", "1 start indices for rank 2"},
	{"dynamic-update-slice", func(b *Builder) Node { return b.DynamicUpdateSlice(f32(b, 3), f32(b, 2), s32(b)) }, "f32[3]", ""},
	{"take", func(b *Builder) Node { return b.Take(f32(b, 5, 6), s32(b, 2, 3), 1) }, "f32[5,2,3]", ""},
	{"take-along", func(b *Builder) Node { return b.TakeAlong(f32(b, 5, 6), s32(b, 5, 2), 1) }, "f32[5,2]", ""},
	{"gather rows", func(b *Builder) Node {
		g := b.G
		return b.Node(OpGather, 0, []Node{f32(b, 10, 4), s32(b, 3, 1)}, g.IntsAttr(AttrOffsetDims, 1), g.IntsAttr(AttrCollapsedDims, 0),
			g.IntsAttr(AttrStartIndexMap, 0), g.IntsAttr(AttrIndexVectorDim, 1), g.IntsAttr(AttrSliceSizes, 1, 4))
	}, "f32[3,4]", ""},
	{"gather collapsed", func(b *Builder) Node {
		g := b.G
		return b.Node(OpGather, 0, []Node{f32(b, 10, 4), s32(b, 3, 1)}, g.IntsAttr(AttrOffsetDims, 1), g.IntsAttr(AttrCollapsedDims, 0),
			g.IntsAttr(AttrStartIndexMap, 0), g.IntsAttr(AttrIndexVectorDim, 1), g.IntsAttr(AttrSliceSizes, 2, 4))
	}, "", "dimension 0 is dropped but has slice size 2"},
	{"scatter", func(b *Builder) Node {
		g := b.G
		return b.Node(OpScatter, 0, []Node{f32(b, 10, 4), s32(b, 3, 1), f32(b, 3, 4)}, g.IntsAttr(AttrUpdateWindowDims, 1),
			g.IntsAttr(AttrInsertedDims, 0), g.IntsAttr(AttrScatterDims, 0), g.IntsAttr(AttrIndexVectorDim, 1), g.IntsAttr(AttrKind, int64(ReduceSum)))
	}, "f32[10,4]", ""},
	{"reduce", func(b *Builder) Node { return b.Reduce(ReduceSum, f32(b, 2, 3, 4), 0, 2) }, "f32[3]", ""},
	{"reduce dim", func(b *Builder) Node { return b.Reduce(ReduceSum, f32(b, 2), 1) }, "", "reduced dimensions [1]"},
	{"reduce keep", func(b *Builder) Node { return b.ReduceKeep(ReduceMax, f32(b, 2, 3), 1) }, "f32[2,1]", ""},
	{"reduce-window", func(b *Builder) Node {
		return b.ReduceWindow(ReduceMax, f32(b, 1, 8), []Window{{Size: 1}, {Size: 3, Stride: 2, PadLow: 1, PadHigh: 1}})
	}, "f32[1,4]", ""},
	{"reduce-window larger", func(b *Builder) Node { return b.ReduceWindow(ReduceMax, f32(b, 2), []Window{{Size: 3}}) }, "f32[0]", ""},
	{"avg-pool", func(b *Builder) Node { return b.AvgPool(f32(b, 4), []Window{{Size: 2, RhsDilate: 2}}, true) }, "f32[2]", ""},
	{"argmax", func(b *Builder) Node { return b.ArgMax(f32(b, 4, 5), 0, false, S32) }, "s32[5]", ""},
	{"cumsum", func(b *Builder) Node { return b.CumSum(f32(b, 4, 5), 1, true, false) }, "f32[4,5]", ""},
	{"topk", func(b *Builder) Node { _, i := b.TopK(f32(b, 4, 5), 2, true, S64); return i }, "s64[4,2]", ""},
	{"topk k", func(b *Builder) Node { _, i := b.TopK(f32(b, 4, 5), 6, true, S64); return i }, "", "the top 6 of the last dimension of [4 5]"},
	{"dot", func(b *Builder) Node {
		return b.Dot(f32(b, 7, 2, 3), f32(b, 3, 7, 5), []int64{0}, []int64{1}, []int64{2}, []int64{0})
	}, "f32[7,2,5]", ""},
	{"dot contract", func(b *Builder) Node { return b.Dot(f32(b, 2, 3), f32(b, 4, 5), nil, nil, []int64{1}, []int64{0}) }, "", "contracting dimension 0 is 3 on the left, 4 on the right"},
	{"matmul batch", func(b *Builder) Node { return b.MatMul(f32(b, 2, 1, 3, 4), f32(b, 5, 4, 6)) }, "f32[2,5,3,6]", ""},
	{"matmul vector", func(b *Builder) Node { return b.MatMul(f32(b, 4), f32(b, 5, 4, 6)) }, "f32[5,6]", ""},
	{"conv", func(b *Builder) Node {
		return b.Conv(f32(b, 1, 4, 8, 8), f32(b, 6, 2, 3, 3), []Window{{Stride: 2, PadLow: 1, PadHigh: 1}, {RhsDilate: 2}}, 2)
	}, "f32[1,6,4,4]", ""},
	{"conv groups", func(b *Builder) Node { return b.Conv(f32(b, 1, 4, 8), f32(b, 6, 4, 3), []Window{{}}, 2) }, "", "4 input features in 2 groups"},
	{"batch-norm", func(b *Builder) Node {
		v := f32(b, 4)
		return b.BatchNorm(f32(b, 1, 4, 2), v, v, v, v, 1, 1e-5)
	}, "f32[1,4,2]", ""},
	{"batch-norm vector", func(b *Builder) Node {
		v := f32(b, 3)
		return b.BatchNorm(f32(b, 1, 4, 2), v, v, v, v, 1, 1e-5)
	}, "", "operand 1 is not a vector of the 4 features"},
	{"lrn", func(b *Builder) Node { return b.LRN(f32(b, 1, 4, 2), 3, 1e-4, 0.75, 1) }, "f32[1,4,2]", ""},
	{"element", func(b *Builder) Node { return b.Elem(b.Tuple(f32(b, 1), s32(b)), 1) }, "s32[]", ""},
	{"element index", func(b *Builder) Node { return b.Elem(b.Tuple(f32(b, 1)), 1) }, "", "no element 1 in (f32[1])"},
	{"tuple operand", func(b *Builder) Node { return b.Unary(OpExp, b.Tuple(f32(b, 1))) }, "", "operand 0 is not a tensor"},
	{"arity", func(b *Builder) Node { return b.Node(OpExp, 0, []Node{f32(b), f32(b)}) }, "", "2 operands, the operator takes 1"},
	{"mean", func(b *Builder) Node { return b.Mean(f32(b, 4, 5), 1) }, "f32[4]", ""},
	{"softmax", func(b *Builder) Node { return b.Softmax(f32(b, 4, 5), 1) }, "f32[4,5]", ""},
}

func TestInfer(t *testing.T) {
	for _, c := range inferCases {
		t.Run(c.name, func(t *testing.T) {
			var g Graph
			b := Begin(&g, "main")
			n := c.build(b)
			if c.err != "" {
				if b.Err() == nil || !strings.Contains(b.Err().Error(), c.err) {
					t.Fatalf("error %v, want one with %q", b.Err(), c.err)
				}
				if n != 0 || b.Add(1, 1) != 0 {
					t.Error("a failed builder still builds")
				}
				return
			}
			comp, err := b.End(n)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.TypeString(g.Nodes.At(n).Type); got != c.want {
				t.Errorf("type %s, want %s", got, c.want)
			}
			g.Entry = comp
			b.Output("y", n)
			if err := Check(&g); err != nil {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

func TestCheckFindsWrongTypes(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	x := b.Param("x", F32, 4)
	y := b.Unary(OpExp, x)
	g.Entry, _ = b.End(y)
	g.Nodes.At(y).Type = g.Tensor(F32, 5)
	if err := Check(&g); err == nil || !strings.Contains(err.Error(), "the type given is f32[5], the operands say f32[4]") {
		t.Errorf("error %v", err)
	}
	g.Nodes.At(y).Type = 0
	if err := Infer(&g); err != nil || g.TypeString(g.Nodes.At(y).Type) != "f32[4]" {
		t.Errorf("Infer: %v, %s", err, g.TypeString(g.Nodes.At(y).Type))
	}
}

func TestCyclesAreReported(t *testing.T) {
	var g Graph
	c := g.BeginComp("main")
	f := g.Tensor(F32)
	a := g.AddNode(c, OpExp, f, g.Names.Intern("a"), []Node{2})
	g.AddNode(c, OpExp, f, g.Names.Intern("b"), []Node{a})
	g.EndComp(c, a, nil)
	if err := Check(&g); err == nil || !strings.Contains(err.Error(), "depends on itself") {
		t.Errorf("error %v", err)
	}
	g.Reset()
	c = g.BeginComp("loop")
	f = g.Tensor(F32)
	n := g.AddNode(c, OpCall, f, 0, nil)
	g.Nodes.At(n).Calls = g.CompLists.Add(c)
	g.EndComp(c, n, nil)
	if err := Check(&g); err == nil || !strings.Contains(err.Error(), "computation loop calls itself") {
		t.Errorf("error %v", err)
	}
}

// TestDeepGraphs proves that depth costs no stack: a chain of a million nodes and of a hundred thousand calls.
func TestDeepGraphs(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	x := b.Param("x", F32, 1)
	for range 1_000_000 {
		x = b.Unary(OpNeg, x)
	}
	g.Entry, _ = b.End(x)
	if err := Check(&g); err != nil {
		t.Fatal(err)
	}
	g.Reset()
	var prev Comp
	for i := range 100_000 {
		b := Begin(&g, fmt.Sprint("c", i))
		x := b.Param("x", F32, 1)
		if prev != 0 {
			x = b.Call(prev, x)
		}
		prev, _ = b.End(x)
	}
	if err := Check(&g); err != nil {
		t.Fatal(err)
	}
}

func TestErrorClasses(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	b.Broadcast(f32(b), nil, []int64{1 << 30, 1 << 30})
	if target.ClassOf(b.Err()) != target.Limit {
		t.Errorf("class %v of %v", target.ClassOf(b.Err()), b.Err())
	}
}
