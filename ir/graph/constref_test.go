package graph

import "testing"

// Every constant has a reference of its own, also beside names that look like references.
func TestConstRef(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	var all []Node
	for _, name := range []string{"w", "x", "w", "", "w", "2#w", "2#w", "0#w", "#", ""} {
		b.SetLabel(name)
		all = append(all, b.Dense(U8, []int64{1}, []byte{byte(len(all))}))
	}
	seen := map[string]Node{}
	for _, n := range all {
		ref := g.ConstRef(n)
		if m, dup := seen[ref]; dup {
			t.Errorf("%v and %v are both called %q", m, n, ref)
		}
		seen[ref] = n
		if got, ok := g.FindConst(ref); !ok || got != n {
			t.Errorf("%q finds %v, want %v", ref, got, n)
		}
	}
	for _, ref := range []string{"4#w", "1#x#", "y", "", "3#2#w"} {
		if n, ok := g.FindConst(ref); ok {
			t.Errorf("%q finds %v", ref, n)
		}
	}
}
