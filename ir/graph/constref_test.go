package graph

import "testing"

func TestConstRef(t *testing.T) {
	var g Graph
	b := Begin(&g, "main")
	var want []Node
	for _, name := range []string{"w", "x", "w", "", "w", "w#2"} {
		b.SetLabel(name)
		want = append(want, b.Dense(U8, []int64{1}, []byte{byte(len(want))}))
	}
	seen := map[string]bool{}
	for _, n := range want {
		ref := g.ConstRef(n)
		if seen[ref] && ref != "w#2" {
			t.Errorf("two constants are called %q", ref)
		}
		seen[ref] = true
		if got, ok := g.FindConst(ref); !ok || got != n && ref != "w#2" {
			t.Errorf("%q finds %v, want %v", ref, got, n)
		}
	}
	if _, ok := g.FindConst("w#4"); ok {
		t.Error("a fourth w was found")
	}
}
