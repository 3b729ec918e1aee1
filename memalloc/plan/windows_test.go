package plan

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/arena"
)

// TestWindowsAgree: the tree and the bit rows give the same answers as looking at every buffer, while buffers are taken.
func TestWindowsAgree(t *testing.T) {
	var m model
	var o orderer
	m.sort, o.sort = &arena.Sorter{}, &arena.Sorter{}
	var tree kdTree
	var few windowSet
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
			n *= 50 // of several blocks
		}
		p, _ := cutProblem(n, 4000, 4000, rapid.IntRange(0, 100).Draw(t, "stack"), 0, rapid.Uint64().Draw(t, "seed"))
		m.build(p)
		o.prepare(&m)
		o.by(&m, bySize, byLength)
		tree.build(&m)
		tree.queue(o.rank)
		few.queue(&m, o.rank)
		taken := make([]bool, m.n)
		rng := splitmix(rapid.Uint64().Draw(t, "queries"))
		for range min(2*m.n, 500) {
			x := int32(rng.next() % uint64(m.s))
			y := x + 1 + int32(rng.next()%uint64(m.s-x))
			var fits func(uint32) bool
			if rng.next()%4 == 0 {
				odd := uint32(rng.next() % 2)
				fits = func(u uint32) bool { return u%2 == odd }
			}
			want, rank := uint32(notQueued), uint32(notQueued)
			for u := range m.n {
				if !taken[u] && m.lo[u] >= x && m.hi[u] <= y && o.rank[u] < rank && (fits == nil || fits(uint32(u))) {
					want, rank = uint32(u), o.rank[u]
				}
			}
			a, at := tree.first(x, y, fits)
			b, rb := few.first(x, y, fits)
			if a != want || b != want || rb != rank {
				t.Fatalf("window [%d, %d): tree %d, rows %d, want %d", x, y, a, b, want)
			}
			if want != notQueued {
				taken[want] = true
				tree.take(at)
				few.take(rank)
			}
		}
	})
}
