package regalloc

import "slices"

// Geometry finds places. Place puts node n where it overlaps none of its neighbours that have a place, and reports whether
// there is such a place; the geometry remembers which nodes have one. It is called once a node, so the call may be indirect.
type Geometry interface {
	Place(n uint32, neighbours []uint32) bool
}

// Result is what Select leaves.
type Result struct {
	Unplaced []uint32 // finite cost, in the order in which they failed
	Stuck    []uint32 // infinite cost
	Score    int64    // summed cost of the unplaced; Infinite when one is stuck
}

// Select pops the stack and gives each node a place. What finds none is reported and does not obstruct the rest. Nodes that
// must not be spilled are popped first, so they meet only fixed nodes and each other.
func Select[G Geometry](s *Solver, geo G, r *Result) {
	r.Unplaced, r.Stuck, r.Score = r.Unplaced[:0], r.Stuck[:0], 0
	for k := len(s.Order) - 1; k >= 0; k-- {
		n := s.Order[k]
		if geo.Place(n, s.Graph.Neighbours(n)) {
			continue
		}
		c := s.Nodes[n].Cost
		if c == Infinite || r.Score > Infinite-c {
			r.Score = Infinite
		} else if r.Score != Infinite {
			r.Score += c
		}
		if c == Infinite {
			r.Stuck = append(r.Stuck, n)
		} else {
			r.Unplaced = append(r.Unplaced, n)
		}
	}
}

// InfiniteBySize restacks the nodes that must not be spilled so that the larger are placed first: first fit leaves the fewest
// holes that way. For a second try when one of them was stuck.
func (s *Solver) InfiniteBySize() {
	keep, out := s.Order[:0], s.byRank[:0]
	for _, n := range s.Order {
		if s.Nodes[n].Cost != Infinite {
			keep = append(keep, n)
		}
	}
	for i := range s.Nodes {
		if d := &s.Nodes[i]; d.Cost == Infinite && !d.Fixed {
			out = append(out, uint32(i))
		}
	}
	s.sortByBytes(out)
	slices.Reverse(out)
	s.Order, s.byRank = append(keep, out...), out[:0]
}

// BySize restacks all nodes so that the larger are placed first, whatever their cost.
func (s *Solver) BySize() {
	s.Order = s.Order[:0]
	for i := range s.Nodes {
		if !s.Nodes[i].Fixed {
			s.Order = append(s.Order, uint32(i))
		}
	}
	s.sortByBytes(s.Order)
	slices.Reverse(s.Order)
}

// sortByBytes sorts nodes, the larger first and equal ones as they were.
func (s *Solver) sortByBytes(ns []uint32) {
	s.sort.Take(ns)
	s.sort.By(func(i uint32) uint64 { return ^uint64(s.Nodes[i].Bytes) })
	s.sort.Put(ns)
}
