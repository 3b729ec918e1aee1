package regalloc

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Infinite is the cost of a node that must not be spilled.
const Infinite = math.MaxInt64

// Node is what colouring knows of a node. 40 bytes. See the package comment for Room, Own, Len and Shift.
type Node struct {
	Cost  int64 // of spilling it, Infinite if it cannot be
	Room  int64
	Bytes int64 // of equal candidates the larger is spilled first
	Own   int32
	Len   int32
	Class uint8
	Shift uint8
	Fixed bool
}

// Metric is what Simplify minimises when no place is certain: what to give up for the room that it makes. Costs are as in Node.
type Metric uint8

const (
	// MetricCap is cost over the places that the node lacks.
	MetricCap Metric = iota
	// MetricCapSquared is cost over their square: it weighs room more against cost.
	MetricCapSquared
	// MetricDegreeSquared is cost over the square of the neighbours left, whatever their size.
	MetricDegreeSquared
	NumMetrics
)

// hot is what the loop over edges touches. 24 bytes.
type hot struct {
	cap   int64
	own   int32
	len   int32
	left  uint32 // neighbours that are not stacked
	class uint8
	shift uint8
	state uint8
}

const (
	stateFixed uint8 = iota
	stateSafe
	stateUnsafe
	stateInfinite
	stateStacked
)

// Solver colours one problem at a time and keeps its storage.
type Solver struct {
	Graph  Graph
	Nodes  []Node
	Metric Metric
	// Weight[j*Classes+i] is how many of a node of class i's candidate strips one placement of class j can touch.
	Weight  []int32
	Classes int

	// Order is the stack that Simplify leaves: it is popped from the back. The first Certain nodes are sure to find a place.
	Order   []uint32
	Certain int

	hot    []hot
	safe   arena.Heap
	unsafe monotone
	byRank []uint32 // nodes in descending order of Bytes
	sort   arena.Sorter
	left   []uint32 // of SmallestLast: nodes of which most are not gone
	degree []uint32 // of SmallestLast: neighbours left
}

// Simplify orders the nodes: those whose place is certain first, as they become so, smallest number first; then, each time
// none is certain, the one that is cheapest to spill for the places it frees, of a stretch of the program before the next; last those
// that must not be spilled. Select takes them from the back.
func (s *Solver) Simplify() {
	n := len(s.Nodes)
	s.Order, s.Certain = s.Order[:0], -1
	s.hot = arena.Resized(s.hot, n)
	for i := range s.Nodes {
		d := &s.Nodes[i]
		s.hot[i] = hot{cap: d.Room, own: d.Own, len: d.Len, class: d.Class, shift: d.Shift}
	}
	s.denyAll()
	unsure := false
	for i := range s.hot {
		h := &s.hot[i]
		if s.Nodes[i].Fixed {
			continue
		}
		h.state = stateSafe
		if h.cap <= 0 {
			unsure = true
			h.state = stateUnsafe
			if s.Nodes[i].Cost == Infinite {
				h.state = stateInfinite
			}
		}
	}
	if !unsure {
		for i := range s.hot {
			if s.hot[i].state == stateSafe {
				s.Order = append(s.Order, uint32(i))
			}
		}
		s.Certain = len(s.Order)
		return
	}
	s.safe.Reset(n)
	for i := range s.hot {
		if s.hot[i].state == stateSafe {
			s.safe.Push(uint32(i), 0)
		}
	}
	s.drain()
	s.Certain = len(s.Order)
	for from := 0; from < n; from += stretch {
		s.giveUp(from, min(from+stretch, n))
	}
	for i := range s.hot {
		if s.hot[i].state == stateInfinite {
			s.hot[i].state = stateStacked
			s.Order = append(s.Order, uint32(i))
		}
	}
}

// stretch is how many nodes, which are in program order, give up what is not certain before the next do. Far apart they have nothing to do with
// each other, and what colouring touches of that many lies in the cache of a core.
const stretch = 8192

// giveUp stacks what is not certain of the nodes from to to-1, and what becomes certain by that anywhere.
func (s *Solver) giveUp(from, to int) {
	s.rankNodes(from, to)
	s.unsafe.reset()
	for r, i := range s.byRank {
		s.unsafe.push(uint32(r), s.metric(i))
	}
	// A node's metric only grows while its neighbours go, so the first of the queue is either right or asks to be put back.
	for s.unsafe.n > 0 {
		r, prio := s.unsafe.pop()
		i := s.byRank[r]
		if s.hot[i].state != stateUnsafe {
			continue
		}
		if now := s.metric(i); now > prio {
			s.unsafe.push(r, now)
			continue
		}
		s.push(i)
		s.drain()
	}
}

// denyAll counts the neighbours of each node and takes away the places that they deny it.
func (s *Solver) denyAll() {
	if segs := s.Graph.segs; s.Graph.single {
		// The segments that overlap one and start later follow it.
		for i := range segs {
			a := s.hot[i] // not in memory while it changes with each neighbour
			for j := i + 1; j < len(segs) && segs[j].Start < segs[i].End; j++ {
				if segs[j].Start < segs[j].End {
					b := &s.hot[j]
					a.deny(b, s.Weight[int(b.class)*s.Classes+int(a.class)])
					b.deny(&a, s.Weight[int(a.class)*s.Classes+int(b.class)])
				}
			}
			s.hot[i] = a
		}
		return
	}
	for i := range s.hot {
		h := &s.hot[i]
		for _, j := range s.Graph.Neighbours(uint32(i)) {
			o := &s.hot[j]
			h.deny(o, s.Weight[int(o.class)*s.Classes+int(h.class)])
		}
	}
}

// deny counts a neighbour whose class weighs that much.
func (h *hot) deny(o *hot, weight int32) {
	h.left++
	h.cap -= int64(weight) * (int64(h.own+o.len) >> h.shift)
}

// drain stacks what is certain until nothing is.
func (s *Solver) drain() {
	for s.safe.Len() > 0 {
		i, _ := s.safe.Pop()
		s.push(i)
	}
}

// push stacks a node and gives back to its neighbours the places that it denied them.
func (s *Solver) push(i uint32) {
	h := &s.hot[i]
	h.state = stateStacked
	s.Order = append(s.Order, i)
	row := s.Weight[int(h.class)*s.Classes : int(h.class)*s.Classes+s.Classes]
	for _, j := range s.Graph.Neighbours(i) {
		o := &s.hot[j]
		if o.state < stateUnsafe || o.state == stateStacked {
			continue
		}
		o.left--
		o.cap += int64(row[o.class]) * (int64(o.own+h.len) >> o.shift)
		if o.cap > 0 {
			o.state = stateSafe
			s.safe.Push(j, 0)
		}
	}
}

// metric is the price of giving i up for the room that it makes, as an ordered integer.
func (s *Solver) metric(i uint32) int64 {
	room := float64(max(1, 1-s.hot[i].cap))
	switch s.Metric {
	case MetricCapSquared:
		room *= room
	case MetricDegreeSquared:
		room = float64(max(1, s.hot[i].left))
		room *= room
	}
	return int64(math.Float64bits(float64(s.Nodes[i].Cost) / room))
}

// rankNodes sorts the unsafe nodes of from to to-1 so that of equal metrics the larger comes first, then the earlier.
func (s *Solver) rankNodes(from, to int) {
	s.byRank = s.byRank[:0]
	for i := from; i < to; i++ {
		if s.hot[i].state == stateUnsafe {
			s.byRank = append(s.byRank, uint32(i))
		}
	}
	s.sortByBytes(s.byRank)
}
