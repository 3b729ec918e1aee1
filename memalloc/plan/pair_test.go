package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestChains: with two live at once, beside any that are live throughout, every mode reaches the bound.
func TestChains(t *testing.T) {
	var pl Planner
	rapid.Check(t, func(rt *rapid.T) {
		p := &Problem{}
		rng := splitmix(rapid.Uint64().Draw(rt, "seed"))
		var until [2]int64 // two places, each taken by one after the other
		n := rapid.IntRange(1, 400).Draw(rt, "n")
		if rapid.IntRange(0, 3).Draw(rt, "large") == 0 {
			n *= 100 // too many for the search
		}
		for i := range n {
			k := 0
			if until[1] < until[0] {
				k = 1
			}
			at := until[k] + int64(rng.next()%3)/2
			until[k] = at + 1 + int64(rng.next()%5)
			p.Add(fmt.Sprint(i), at, until[k], 1+int64(rng.next()%100))
		}
		for i := range rapid.IntRange(0, 3).Draw(rt, "throughout") {
			p.Add(fmt.Sprint("all", i), 0, max(until[0], until[1]), 1+int64(rng.next()%100))
		}
		r := planLarge(t, &pl, p, Options{Mode: Mode(rng.next() % 3)})
		if r.Peak != r.LowerBound || !r.Optimal {
			rt.Fatalf("%d buffers: peak %d, bound %d", p.Len(), r.Peak, r.LowerBound)
		}
	})
}
