package graph

import "testing"

func TestTypesIntern(t *testing.T) {
	var g Graph
	build := func() {
		g.Reset()
		seen := map[Type]bool{}
		for d := Bool; d <= F64; d++ {
			for i := int64(0); i < 40; i++ {
				for _, dims := range [][]int64{{i}, {i, 1}, {1, i, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
					a := g.Tensor(d, dims...)
					if a != g.Tensor(d, dims...) {
						t.Fatalf("%v%v has two numbers", d, dims)
					}
					if seen[a] {
						t.Fatalf("%v%v shares number %d", d, dims, a)
					}
					seen[a] = true
					tu := g.TupleOf(a, a)
					if tu == a || tu != g.TupleOf(a, a) || tu == g.TupleOf(a) {
						t.Fatalf("tuples of %v%v are not told apart", d, dims)
					}
				}
			}
		}
		if g.Tensor(F32) == g.Tensor(F32, 1) || g.Tensor(F32, 2, 3) == g.Tensor(F32, 3, 2) {
			t.Fatal("shapes of equal size share a number")
		}
	}
	build()
	first := g.Types.Len()
	build()
	if g.Types.Len() != first {
		t.Fatalf("%d types after Reset, %d before", g.Types.Len(), first)
	}
	allocs := testing.AllocsPerRun(10, func() {
		g.Reset()
		for i := int64(0); i < 1000; i++ {
			g.TupleOf(g.Tensor(F32, i, i, i), g.Tensor(BF16, i, 1, 2, 3, 4, 5, 6, 7, 8, i))
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations to intern known types, want 0", allocs)
	}
}

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
			if got := g.ReduceKindOf(combiner(tt.ty, tt.op, swap, tt.ty == h)); got != tt.want {
				t.Errorf("%v on type %d, swapped %v: kind %d, want %d", tt.op, tt.ty, swap, got, tt.want)
			}
		}
	}
	c := g.BeginComp("first")
	a, b := g.AddParam(c, 0, f, "a"), g.AddParam(c, 1, f, "b")
	g.EndComp(c, b, []Node{a, b})
	if got := g.ReduceKindOf(c); got != ReduceOther {
		t.Errorf("a combiner that keeps one side has kind %d", got)
	}
	c = g.BeginComp("square")
	a, b = g.AddParam(c, 0, f, "a"), g.AddParam(c, 1, f, "b")
	g.EndComp(c, g.AddNode(c, OpAdd, f, 0, []Node{a, a}), []Node{a, b})
	if got := g.ReduceKindOf(c); got != ReduceOther {
		t.Errorf("a combiner that adds one side to itself has kind %d", got)
	}
	inner := combiner(f, OpMax, false, false)
	c = g.BeginComp("wrapper")
	a, b = g.AddParam(c, 0, f, "a"), g.AddParam(c, 1, f, "b")
	call := g.AddNode(c, OpCall, f, 0, []Node{a, b})
	g.Nodes.At(call).Calls = g.CompLists.Add(inner)
	g.EndComp(c, call, []Node{a, b})
	if got := g.ReduceKindOf(c); got != ReduceMax {
		t.Errorf("a wrapped max has kind %d", got)
	}
}
