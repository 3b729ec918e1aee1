package regalloc

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The index answers what looking at all segments answers, empty ones among them, also far from where there are any.
func TestIndex(t *testing.T) {
	var x Index
	rapid.Check(t, func(t *rapid.T) {
		var segs []Seg
		at := uint32(0)
		for k := range rapid.SampledFrom([]int{0, 1, 5, 16, 17, 200}).Draw(t, "segments") {
			at += uint32(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 30}).Draw(t, "gap"))
			segs = append(segs, Seg{at, at + uint32(rapid.SampledFrom([]int{0, 1, 3, 40, 300}).Draw(t, "length")), uint32(k)})
		}
		x.Build(segs)
		want := func(lo, hi uint32, but int) (ps []uint32) {
			for p, s := range segs {
				if p != but && max(lo, s.Start) < min(hi, s.End) {
					ps = append(ps, uint32(p))
				}
			}
			return ps
		}
		for range 10 {
			lo := uint32(rapid.IntRange(0, int(at)+400).Draw(t, "lo"))
			hi := lo + uint32(rapid.IntRange(0, 50).Draw(t, "points"))
			if got := x.Append(nil, lo, hi); !slices.Equal(got, want(lo, hi, -1)) {
				t.Fatalf("%v in [%d, %d): %v, want %v", segs, lo, hi, got, want(lo, hi, -1))
			}
		}
		for p, s := range segs {
			if got := x.Around(nil, uint32(p)); !slices.Equal(got, want(s.Start, s.End, p)) {
				t.Fatalf("%v around %d: %v, want %v", segs, p, got, want(s.Start, s.End, p))
			}
		}
	})
}

// Every node of several stretches is stacked once, what is certain finds a place, and so does all that fits.
func TestStretches(t *testing.T) {
	const n, width, lanes = 3*stretch + 5, 12, 8
	segs := make([]Seg, n)
	for k := range uint32(n) {
		segs[k] = Seg{k, k + 1 + k*7%(2*width), k}
	}
	var s Solver
	var geo Lanes
	var r Result
	s.Weight, s.Classes = weight1[:], 1
	s.Graph.Build(n, segs)
	geo.Reset(n, lanes)
	for k := range n {
		s.Nodes = append(s.Nodes, geo.Node(1, int64(1+k%5)))
	}
	s.Simplify()
	seen := make([]bool, n)
	for _, i := range s.Order {
		if seen[i] {
			t.Fatalf("node %d is stacked twice", i)
		}
		seen[i] = true
	}
	if len(s.Order) != n || s.Certain == n || s.Certain == 0 {
		t.Fatalf("%d of %d nodes stacked, %d certain", len(s.Order), n, s.Certain)
	}
	Select(&s, &geo, &r)
	for _, i := range s.Order[:s.Certain] {
		if geo.At[i] < 0 {
			t.Fatalf("node %d was certain and found no place", i)
		}
	}
	for _, i := range r.Unplaced {
		around := 0
		for _, j := range s.Graph.Neighbours(i) {
			if geo.At[j] >= 0 {
				around++
			}
		}
		if around < lanes {
			t.Fatalf("node %d found no place beside %d neighbours with one", i, around)
		}
	}
}
