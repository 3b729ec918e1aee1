package regalloc

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// edgeList draws a graph as pairs, some of a node with itself.
func edgeList(t *rapid.T) (n int, edges [][2]uint32) {
	n = rapid.IntRange(1, 40).Draw(t, "nodes")
	seen := map[[2]uint32]bool{}
	for range rapid.IntRange(0, 200).Draw(t, "edges") {
		a := uint32(rapid.IntRange(0, n-1).Draw(t, "a"))
		b := uint32(rapid.IntRange(0, n-1).Draw(t, "b"))
		if key := [2]uint32{min(a, b), max(a, b)}; !seen[key] {
			seen[key] = true
			edges = append(edges, [2]uint32{a, b})
		}
	}
	return n, edges
}

// A list of edges gives each node its neighbours, once, whatever the order and the direction of the pairs.
func TestBuildEdges(t *testing.T) {
	var g Graph
	rapid.Check(t, func(t *rapid.T) {
		n, edges := edgeList(t)
		want := make([][]uint32, n)
		count := 0
		for _, e := range edges {
			if e[0] != e[1] {
				want[e[0]] = append(want[e[0]], e[1])
				want[e[1]] = append(want[e[1]], e[0])
				count++
			}
		}
		g.BuildEdges(n, edges)
		if g.Len() != n || g.Edges() != count {
			t.Fatalf("%d nodes, %d edges; want %d, %d", g.Len(), g.Edges(), n, count)
		}
		for k := range n {
			got := slices.Sorted(slices.Values(g.Neighbours(uint32(k))))
			slices.Sort(want[k])
			if !slices.Equal(got, want[k]) {
				t.Fatalf("node %d: %v, want %v", k, got, want[k])
			}
		}
	})
}

// Smallest-last is a permutation in which no node has more neighbours behind it than the degeneracy that it returns, and that is
// the least there is: some part of the graph has that many neighbours at every node.
func TestSmallestLast(t *testing.T) {
	var s Solver
	rapid.Check(t, func(t *rapid.T) {
		var n int
		if rapid.Bool().Draw(t, "by time") {
			var segs []Seg
			n, segs = segments(t, false)
			s.Graph.Limits = GraphLimits{Edges: rapid.SampledFrom([]int{0, 1 << 20}).Draw(t, "limit")}
			s.Graph.Build(n, segs)
		} else {
			var edges [][2]uint32
			n, edges = edgeList(t)
			s.Graph.BuildEdges(n, edges)
		}
		degeneracy := s.SmallestLast()
		at := make([]int, n)
		for k := range at {
			at[k] = -1
		}
		for k, i := range s.Order {
			at[i] = k
		}
		if len(s.Order) != n || slices.Contains(at, -1) {
			t.Fatalf("%v is not an order of %d nodes", s.Order, n)
		}
		for _, i := range s.Order {
			later := 0
			for _, j := range s.Graph.Neighbours(i) {
				if at[j] > at[i] {
					later++
				}
			}
			if later > degeneracy {
				t.Fatalf("node %d has %d neighbours left, degeneracy %d", i, later, degeneracy)
			}
		}
		// Peel everything of fewer neighbours; something must be left.
		gone := make([]bool, n)
		for again := true; again; {
			again = false
			for k := range n {
				d := 0
				for _, j := range s.Graph.Neighbours(uint32(k)) {
					if !gone[j] {
						d++
					}
				}
				if !gone[k] && d < degeneracy {
					gone[k], again = true, true
				}
			}
		}
		if n > 0 && !slices.Contains(gone, false) {
			t.Fatalf("degeneracy %d is too high", degeneracy)
		}
	})
}

// The half graph goes level by level up to half of its nodes.
func TestSmallestLastLevels(t *testing.T) {
	const n = 3000
	var edges [][2]uint32
	for a := range uint32(n) {
		// Node a of a half graph has about a neighbours.
		for b := n - 1 - a; b < n; b++ {
			if a < b {
				edges = append(edges, [2]uint32{a, b})
			}
		}
	}
	var s Solver
	s.Graph.BuildEdges(n, edges)
	if got := s.SmallestLast(); got != n/2 {
		t.Errorf("degeneracy %d, want %d", got, n/2)
	}
}

// Each metric gives up the node that is cheaper by its own measure.
func TestMetrics(t *testing.T) {
	// Node 0 has four neighbours and node 1 three, none of which may go. One lane leaves them 3 and 2 places short, which the first
	// two metrics count as 4 and 3.
	for _, c := range []struct {
		metric Metric
		costs  [2]int64
		want   uint32
	}{
		{MetricCap, [2]int64{100, 74}, 1},
		{MetricCap, [2]int64{100, 76}, 0},
		{MetricCapSquared, [2]int64{100, 56}, 1},
		{MetricCapSquared, [2]int64{100, 57}, 0},
		{MetricDegreeSquared, [2]int64{160, 89}, 1},
		{MetricDegreeSquared, [2]int64{160, 91}, 0},
	} {
		var s Solver
		s.Weight, s.Classes, s.Metric = weight1[:], 1, c.metric
		var geo Lanes
		geo.Reset(9, 1)
		s.Graph.BuildEdges(9, [][2]uint32{{0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 6}, {1, 7}, {1, 8}})
		for k := range 9 {
			d := geo.Node(1, Infinite)
			if k < 2 {
				d.Cost = c.costs[k]
			}
			s.Nodes = append(s.Nodes, d)
		}
		s.Simplify()
		if s.Order[0] != c.want {
			t.Errorf("metric %d, costs %v: node %d goes first, want %d", c.metric, c.costs, s.Order[0], c.want)
		}
	}
}

// Pairs start at odd lanes, do not end outside of the file, and find no room between single nodes.
func TestLanes(t *testing.T) {
	for _, lanes := range []int{4, 66, 130} {
		var l Lanes
		l.Reset(lanes+2, lanes)
		for k := range lanes - 4 {
			l.Fix(uint32(k), k)
		}
		base := lanes - 4
		all := make([]uint32, lanes+2)
		for k := range all {
			all[k] = uint32(k)
		}
		single, pair, last := uint32(base), uint32(base+1), uint32(base+2)
		l.SetWidth(pair, 2)
		l.SetWidth(last, 2)
		if !l.Place(single, all) || l.At[single] != int32(base) {
			t.Errorf("%d lanes: single at %d", lanes, l.At[single])
		}
		if !l.Place(pair, all) || l.At[pair] != int32(base+1) {
			t.Errorf("%d lanes: pair at %d", lanes, l.At[pair])
		}
		if l.Place(last, all) || l.At[last] != -1 {
			t.Errorf("%d lanes: second pair at %d, one lane is left", lanes, l.At[last])
		}
		nodes := make([]Node, lanes+2)
		for k := range base {
			nodes[k].Fixed = true
		}
		l.Forget(nodes)
		l.Forbid(base + 1)
		if !l.Place(pair, all) || l.At[pair] != int32(base+2) {
			t.Errorf("%d lanes: pair at %d beside a forbidden lane", lanes, l.At[pair])
		}
		if d := l.Node(2, 7); d.Room != int64(lanes-3) || d.Own != 1 || d.Len != 2 || d.Cost != 7 {
			t.Errorf("%d lanes: pair described as %+v", lanes, d)
		}
	}
}
