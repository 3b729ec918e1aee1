package regalloc

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// segments draws segments in order of start: one a node, or several disjoint ones.
func segments(t *rapid.T, several bool) (n int, segs []Seg) {
	n = rapid.IntRange(0, 80).Draw(t, "nodes")
	for k := range n {
		at := uint32(0)
		for range rapid.IntRange(1, map[bool]int{false: 1, true: 3}[several]).Draw(t, "segments") {
			at += uint32(rapid.IntRange(0, 40).Draw(t, "gap"))
			end := at + uint32(rapid.IntRange(1, 20).Draw(t, "length"))
			segs = append(segs, Seg{at, end, uint32(k)})
			at = end
		}
	}
	slices.SortStableFunc(segs, func(a, b Seg) int { return int(a.Start) - int(b.Start) })
	if !several {
		for k := range segs {
			segs[k].Node = uint32(k)
		}
	}
	return n, segs
}

// Every way to hold the graph gives the edges that comparing all pairs gives.
func TestGraph(t *testing.T) {
	var g Graph
	rapid.Check(t, func(t *rapid.T) {
		n, segs := segments(t, rapid.Bool().Draw(t, "several"))
		want := make(map[[2]uint32]bool)
		for _, a := range segs {
			for _, b := range segs {
				if a.Node != b.Node && a.Start < b.End && b.Start < a.End {
					want[[2]uint32{a.Node, b.Node}] = true
				}
			}
		}
		g.Limits = rapid.SampledFrom([]GraphLimits{DefaultLimits, {MatrixNodes: 0, Edges: 1 << 20}, {MatrixNodes: 10, Edges: 0}}).Draw(t, "limits")
		g.Stored = rapid.Bool().Draw(t, "stored")
		g.Build(n, segs)
		got := 0
		for k := range n {
			seen := map[uint32]bool{}
			for _, o := range g.Neighbours(uint32(k)) {
				if !want[[2]uint32{uint32(k), o}] || seen[o] {
					t.Fatalf("edge %d–%d: wrong or twice", k, o)
				}
				seen[o] = true
				got++
			}
		}
		if got != len(want) {
			t.Fatalf("%d directed edges, want %d", got, len(want))
		}
		if g.Kind == GraphAdjacency && 2*g.Edges() != got {
			t.Fatalf("%d edges counted, %d listed", g.Edges(), got/2)
		}
	})
}

// One long segment among many short ones: found from each of them.
func TestIndexLongSegment(t *testing.T) {
	segs := []Seg{{0, 10000, 0}}
	for k := range uint32(5000) {
		segs = append(segs, Seg{2 * k, 2*k + 1, k + 1})
	}
	slices.SortFunc(segs, func(a, b Seg) int { return int(a.Start) - int(b.Start) })
	var x Index
	x.Build(segs)
	for _, at := range []uint32{0, 17, 5000, 9998} {
		hits := x.Append(nil, at, at+1)
		if want := int(2 - at%2); len(hits) != want {
			t.Errorf("at %d: %d segments, want %d", at, len(hits), want)
		}
	}
	if hits := x.Append(nil, 10000, 20000); len(hits) != 0 {
		t.Errorf("after the end: %v", hits)
	}
}

// What Simplify calls certain gets a place whatever the rest took, the rest is reported, and nothing overlaps.
func TestCertainMeansPlaced(t *testing.T) {
	var s Solver
	var r Result
	var geo Lanes
	rapid.Check(t, func(t *rapid.T) {
		n, segs := segments(t, false)
		slots := rapid.SampledFrom([]int{1, 2, 3, 5, 8, 12, 63, 64, 65, 127, 128, 129, 260}).Draw(t, "slots")
		s.Weight, s.Classes = []int32{1}, 1
		s.Graph.Build(n, segs)
		s.Nodes = s.Nodes[:0]
		geo.Reset(n, slots)
		s.Metric = Metric(rapid.IntRange(0, int(NumMetrics)-1).Draw(t, "metric"))
		if slots > 1 && rapid.Bool().Draw(t, "forbid") {
			geo.Forbid(rapid.IntRange(0, slots-1).Draw(t, "forbidden"))
		}
		fixed := 0
		for k := range n {
			w := rapid.IntRange(1, 3).Draw(t, "width")
			geo.SetWidth(uint32(k), w)
			d := geo.Node(w, int64(rapid.IntRange(1, 9).Draw(t, "cost")))
			if rapid.IntRange(0, 9).Draw(t, "infinite") == 0 {
				d.Cost = Infinite
			}
			if k < 2 && w <= slots && rapid.IntRange(0, 5).Draw(t, "fixed") == 0 {
				d.Fixed = true
				geo.Fix(uint32(k), slots-w)
				fixed++
			}
			s.Nodes = append(s.Nodes, d)
		}
		s.Simplify()
		if len(s.Order) != n-fixed {
			t.Fatalf("%d nodes stacked of %d", len(s.Order), n-fixed)
		}
		seen := map[uint32]bool{}
		for _, o := range s.Order {
			if seen[o] || s.Nodes[o].Fixed {
				t.Fatalf("node %d stacked twice, or fixed", o)
			}
			seen[o] = true
		}
		Select(&s, &geo, &r)
		for k, o := range s.Order[:s.Certain] {
			if geo.At[o] < 0 {
				t.Fatalf("node %d, number %d of %d certain ones, found no place", o, k, s.Certain)
			}
		}
		score := int64(0)
		for _, o := range r.Unplaced {
			score += s.Nodes[o].Cost
		}
		if len(r.Stuck) > 0 {
			score = Infinite
		}
		if r.Score != score {
			t.Fatalf("score %d, want %d", r.Score, score)
		}
		for k := range n {
			missing := slices.Contains(r.Unplaced, uint32(k)) || slices.Contains(r.Stuck, uint32(k))
			if missing == (geo.At[k] >= 0) {
				t.Fatalf("node %d: place %d, reported missing %v", k, geo.At[k], missing)
			}
			for _, o := range s.Graph.Neighbours(uint32(k)) {
				a, b := geo.At[k], geo.At[o]
				if a >= 0 && b >= 0 && a < b+s.Nodes[o].Len && b < a+s.Nodes[k].Len && !(s.Nodes[k].Fixed && s.Nodes[o].Fixed) {
					t.Fatalf("nodes %d and %d overlap", k, o)
				}
			}
		}
	})
}

// Of three that cannot all stay, the cheapest for its deficit goes first onto the stack, and so is the one without a place.
func TestCheapestIsSpilled(t *testing.T) {
	segs := []Seg{{0, 10, 0}, {0, 10, 1}, {0, 10, 2}}
	for _, c := range []struct {
		name  string
		costs [3]int64
		bytes [3]int64
		want  []uint32
		stuck []uint32
	}{
		{"cost", [3]int64{5, 3, 9}, [3]int64{1, 1, 1}, []uint32{1}, nil},
		{"larger of equals", [3]int64{5, 5, 5}, [3]int64{1, 1, 2}, []uint32{2}, nil},
		{"earlier of equals", [3]int64{5, 5, 5}, [3]int64{1, 1, 1}, []uint32{0}, nil},
		{"never the infinite", [3]int64{Infinite, 9, Infinite}, [3]int64{1, 1, 1}, []uint32{1}, nil},
		{"all infinite", [3]int64{Infinite, Infinite, Infinite}, [3]int64{1, 1, 1}, nil, []uint32{0}},
	} {
		var s Solver
		var r Result
		s.Weight, s.Classes = []int32{1}, 1
		s.Graph.Build(3, segs)
		var geo Lanes
		geo.Reset(3, 2)
		for k := range 3 {
			s.Nodes = append(s.Nodes, Node{Room: 2, Len: 1, Cost: c.costs[k], Bytes: c.bytes[k]})
		}
		s.Simplify()
		Select(&s, &geo, &r)
		if !slices.Equal(r.Unplaced, c.want) || !slices.Equal(r.Stuck, c.stuck) {
			t.Errorf("%s: unplaced %v, stuck %v, want %v, %v", c.name, r.Unplaced, r.Stuck, c.want, c.stuck)
		}
	}
}

func TestGuard(t *testing.T) {
	g := Guard{What: "SB", Limit: time.Hour}
	g.Start()
	for k := range 10 * StagnationRounds {
		if err := g.Next(100, true); err != nil {
			t.Fatalf("round %d that made progress: %v", k, err)
		}
	}
	var err error
	rounds := 0
	for ; err == nil && rounds < 10*StagnationRounds; rounds++ {
		err = g.Next(100, false)
	}
	var stuck *StagnationError
	if !errors.As(err, &stuck) || rounds != StagnationRounds {
		t.Errorf("after %d idle rounds: %v", rounds, err)
	}
}

// Seed item 63: the watchdog goes off after its limit and not before, however many rounds that are; the clock is the test's.
func TestSeed63Watchdog(t *testing.T) {
	now := time.Unix(0, 0)
	g := Guard{What: "SB", Now: func() time.Time { return now }}
	g.Start()
	for k := range 1000 {
		if err := g.Next(int64(1000-k), true); err != nil {
			t.Fatalf("round %d: %v", k, err)
		}
	}
	now = now.Add(DefaultWatchdog)
	if err := g.Next(1, true); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	now = now.Add(time.Nanosecond)
	var late *TimeoutError
	if err := g.Next(1, true); !errors.As(err, &late) || late.What != "SB" || late.Limit != 2700*time.Second || late.Round != 1002 {
		t.Errorf("beyond the limit: %v", err)
	}
	g = Guard{What: "PSUM", Limit: time.Second, Now: g.Now}
	g.Start()
	now = now.Add(2 * time.Second)
	if err := g.Next(1, true); !errors.As(err, &late) || late.Limit != time.Second {
		t.Errorf("beyond a lower limit: %v", err)
	}
}

// A second problem of the same size allocates nothing, in either representation.
func TestSteadyState(t *testing.T) {
	geo := &counting{}
	for _, nodes := range []int{1000, 2000} {
		var segs []Seg
		for k := range uint32(2000) {
			segs = append(segs, Seg{k, k + 1 + k%60, k % uint32(nodes)})
		}
		var s Solver
		var r Result
		s.Graph.Limits = GraphLimits{MatrixNodes: 100, Edges: 1 << 20}
		pass := func() {
			s.Weight, s.Classes = weight1[:], 1
			s.Graph.Build(nodes, segs)
			if s.Nodes == nil {
				s.Nodes = make([]Node, nodes)
			}
			for k := range s.Nodes {
				s.Nodes[k] = Node{Room: 20, Len: 1, Cost: int64(k), Bytes: 8}
			}
			s.Simplify()
			Select(&s, geo, &r)
		}
		pass()
		if n := testing.AllocsPerRun(5, pass); n != 0 {
			t.Errorf("%d segments of %d nodes: %v allocations a run, want 0", len(segs), nodes, n)
		}
	}
}

var weight1 = [1]int32{1}

// counting places every other node.
type counting struct{ n int }

func (c *counting) Place(uint32, []uint32) bool { c.n++; return c.n%2 == 0 }

func BenchmarkBuildSimplify(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(map[int]string{10_000: "10k", 100_000: "100k"}[n], func(b *testing.B) {
			var segs []Seg
			for k := range uint32(n) {
				segs = append(segs, Seg{k, k + 100, k})
			}
			var s Solver
			s.Weight, s.Classes = weight1[:], 1
			s.Nodes = make([]Node, n)
			b.ReportAllocs()
			for b.Loop() {
				s.Graph.Build(n, segs)
				for k := range s.Nodes {
					s.Nodes[k] = Node{Room: 90, Len: 1, Cost: int64(k), Bytes: 8}
				}
				s.Simplify()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Graph.Edges()), "ns/edge")
		})
	}
}

// The largest are popped first, of equal ones the earliest.
func TestBySize(t *testing.T) {
	var s Solver
	for _, b := range []int64{5, 9, 5, 1, 9} {
		s.Nodes = append(s.Nodes, Node{Bytes: b, Cost: 1, Room: 1})
	}
	s.Order = append(s.Order, 3, 1, 0, 4, 2)
	s.BySize()
	if want := []uint32{3, 2, 0, 4, 1}; !slices.Equal(s.Order, want) {
		t.Errorf("stack %v, want %v", s.Order, want)
	}
}

// Segments of no length overlap nothing and hide nothing from the count.
func TestEmptySegments(t *testing.T) {
	g := Graph{Limits: GraphLimits{Edges: 0, MatrixNodes: 1}}
	g.Build(5, []Seg{{0, 9, 0}, {4, 9, 1}, {4, 4, 2}, {4, 4, 3}, {9, 9, 4}})
	if g.Kind != GraphIndex || g.Edges() != 1 || !slices.Equal(g.Neighbours(1), []uint32{0}) || len(g.Neighbours(2)) > 0 {
		t.Errorf("kind %d, %d edges, neighbours %d and %d", g.Kind, g.Edges(), g.Neighbours(1), g.Neighbours(2))
	}
}
