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
