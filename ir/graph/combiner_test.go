package graph

import "testing"

func TestReduceKindOf(t *testing.T) {
	var g Graph
	f, h := g.Tensor(F32), g.Tensor(BF16)
	p := g.Tensor(Bool)
	combiner := func(ty Type, op Op, swap, conv bool) Comp {
		c := g.BeginComp("c")
		a, b := g.AddParam(c, 0, ty, "a"), g.AddParam(c, 1, ty, "b")
		ins := []Node{a, b}
		if conv {
			ins[0], ins[1] = g.AddNode(c, OpConvert, f, 0, []Node{a}), g.AddNode(c, OpConvert, f, 0, []Node{b})
		}
		if swap {
			ins[0], ins[1] = ins[1], ins[0]
		}
		r := g.AddNode(c, op, g.Nodes.At(ins[0]).Type, 0, ins)
		if conv {
			r = g.AddNode(c, OpConvert, ty, 0, []Node{r})
		}
		g.EndComp(c, r, []Node{a, b})
		return c
	}
	for _, tt := range []struct {
		ty   Type
		op   Op
		want ReduceKind
	}{
		{f, OpAdd, ReduceSum}, {f, OpMul, ReduceProd}, {f, OpMax, ReduceMax}, {f, OpMin, ReduceMin}, {h, OpAdd, ReduceSum},
		{p, OpAnd, ReduceAnd}, {p, OpOr, ReduceOr}, {p, OpAdd, ReduceOr}, {p, OpMul, ReduceAnd}, {p, OpMax, ReduceOr},
		{p, OpMin, ReduceAnd}, {f, OpSub, ReduceOther}, {f, OpDiv, ReduceOther},
	} {
		for _, swap := range []bool{false, true} {
			if got := ReduceKindOf(&g, combiner(tt.ty, tt.op, swap, tt.ty == h)); got != tt.want {
				t.Errorf("%v on type %d, swapped %v: kind %d, want %d", tt.op, tt.ty, swap, got, tt.want)
			}
		}
	}
	c := g.BeginComp("first")
	a, b := g.AddParam(c, 0, f, "a"), g.AddParam(c, 1, f, "b")
	g.EndComp(c, b, []Node{a, b})
	if got := ReduceKindOf(&g, c); got != ReduceOther {
		t.Errorf("a combiner that keeps one side has kind %d", got)
	}
	c = g.BeginComp("square")
	a, b = g.AddParam(c, 0, f, "a"), g.AddParam(c, 1, f, "b")
	g.EndComp(c, g.AddNode(c, OpAdd, f, 0, []Node{a, a}), []Node{a, b})
	if got := ReduceKindOf(&g, c); got != ReduceOther {
		t.Errorf("a combiner that adds one side to itself has kind %d", got)
	}
}
