package scalar

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// maxJoin is how many members and neighbours of them, counted with repetition, the two sides of a move may have together for the
// move to be looked at: it bounds what a chain of moves can cost. A file has 62 lanes.
const maxJoin = 512

// joins makes one node of values that moves connect.
type joins struct {
	class []uint32 // by node, while joining: towards its class; afterwards its node in the solver

	next   []uint32 // ring of the members of a class
	root   []slot   // by class: where the value is made that all members hold, none when they hold different ones
	caps   []int64  // by class: places left, as in the solver
	mark   []uint32 // by class: turn·4 + sides whose neighbour it is
	turn   uint32
	around []uint32 // neighbours of the move at hand, each once
	moves  []rated
	ids    []uint32 // by class: 1 + its number
	open   []uint32 // by number: 1 + its last segment
	segs   []regalloc.Seg
	nodes  []regalloc.Node
}

type rated struct {
	weight   int64
	at       uint32
	src, dst uint32 // nodes
}

func (j *joins) find(n uint32) uint32 {
	for j.class[n] != n {
		j.class[n] = j.class[j.class[n]]
		n = j.class[n]
	}
	return n
}

// coalesce joins the two ends of moves where that cannot cost a lane (Briggs: few neighbours of the union are hard to colour;
// George and Appel: those of one side are neighbours of the other too, or easy), those that run most often first, and tells the
// solver about the result. Ends that are live together may still be one when they hold one value: the destination is written by
// this move alone, and the value is not made anew while the destination lives.
func (ws *Workspace) coalesce(m *ir.Module, e target.Engine, lanes int) {
	j, s := &ws.joins, &ws.solver
	n := len(s.Nodes)
	j.class = arena.Resized(j.class, n)
	for i := range j.class {
		j.class[i] = uint32(i)
	}
	j.moves = j.moves[:0]
	for _, mv := range ws.uses.moves {
		if ws.uses.engine[mv.src] != e || m.Regs.At(mv.src).Width != m.Regs.At(mv.dst).Width {
			continue
		}
		src, dst := ws.webNode[ws.webAt(mv.src, mv.at, false)], ws.webNode[ws.webAt(mv.dst, mv.at, true)]
		if src != dst && !s.Nodes[src].Fixed && !s.Nodes[dst].Fixed && !ws.lives.webs[ws.nodeWeb[src]].hard && !ws.lives.webs[ws.nodeWeb[dst]].hard {
			j.moves = append(j.moves, rated{ws.flow.weight[ws.flow.nodeOf[mv.at]], mv.at, src, dst})
		}
	}
	if len(j.moves) == 0 {
		return
	}
	slices.SortFunc(j.moves, func(a, b rated) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.at, b.at)) })
	j.next = arena.Resized(j.next, n)
	j.root = arena.Resized(j.root, n)
	j.caps = arena.Resized(j.caps, n)
	j.mark = arena.Zeroed(j.mark, n)
	j.turn = 0
	for i := range n {
		w := &ws.lives.webs[ws.nodeWeb[i]]
		j.next[i], j.root[i], j.caps[i] = uint32(i), none, s.Nodes[i].Room
		if w.defs == 1 {
			j.root[i] = w.def
		}
		for _, o := range s.Graph.Neighbours(uint32(i)) {
			j.caps[i] -= deny(&s.Nodes[i], &s.Nodes[o])
		}
	}
	joined := 0
	for _, mv := range j.moves {
		a, b := j.find(mv.src), j.find(mv.dst)
		if a == b {
			ws.mt.Coalesced++
		} else if ws.join(a, b, mv.dst) {
			joined++
			ws.mt.Coalesced++
		}
	}
	if joined > 0 {
		ws.renumber(lanes)
	}
}

// deny is how many places of i a neighbour o takes at most.
func deny(i, o *regalloc.Node) int64 { return int64(i.Own + o.Len) }

const (
	nearA = 1 << iota
	nearB
)

// join makes one class of a and b, the class of a move's destination, if that is right and safe.
func (ws *Workspace) join(a, b, dst uint32) bool {
	j, s := &ws.joins, &ws.solver
	// A destination that is alone in its class and written by this move only holds what the source holds.
	w := &ws.lives.webs[ws.nodeWeb[dst]]
	same := j.next[b] == b && w.defs == 1 && j.root[a] != none && (j.root[a] < w.first || j.root[a] >= w.last)
	j.turn++
	j.around = j.around[:0]
	work := 0
	for k, c := range [2]uint32{a, b} {
		for i := c; ; {
			near := s.Graph.Neighbours(i)
			if work += 1 + len(near); work > maxJoin {
				return false
			}
			for _, o := range near {
				t := j.find(o)
				if t == a || t == b {
					if t != c && !same {
						return false // they are live together and differ
					}
					continue
				}
				if j.mark[t]>>2 != j.turn {
					j.mark[t] = j.turn << 2
					j.around = append(j.around, t)
				}
				j.mark[t] |= nearA << k
			}
			if i = j.next[i]; i == c {
				break
			}
		}
	}
	union := &s.Nodes[a]
	hard := int64(0)
	coversA, coversB := true, true // what is hard around the one is around the other too
	left := union.Room
	for _, t := range j.around {
		d := deny(union, &s.Nodes[t])
		left -= d
		at := j.caps[t]
		if j.mark[t]&3 == nearA|nearB {
			at += deny(&s.Nodes[t], union)
		}
		if at > 0 && !s.Nodes[t].Fixed {
			continue
		}
		hard += d
		coversA = coversA && j.mark[t]&nearB != 0
		coversB = coversB && j.mark[t]&nearA != 0
	}
	if hard >= union.Room && !coversA && !coversB {
		return false
	}
	for _, t := range j.around {
		if j.mark[t]&3 == nearA|nearB {
			j.caps[t] += deny(&s.Nodes[t], union)
		}
	}
	if !same {
		j.root[a] = none
	}
	j.caps[a] = left
	j.class[b] = a
	j.next[a], j.next[b] = j.next[b], j.next[a]
	return true
}

// renumber gives the classes numbers in order of their first segment and rebuilds graph and nodes for them.
func (ws *Workspace) renumber(lanes int) {
	j, s := &ws.joins, &ws.solver
	n := len(s.Nodes)
	j.ids = arena.Zeroed(j.ids, n)
	j.segs, j.nodes, j.open = j.segs[:0], j.nodes[:0], j.open[:0]
	for _, g := range ws.segs {
		c := j.find(g.Node)
		if j.ids[c] == 0 {
			j.nodes = append(j.nodes, s.Nodes[c])
			j.open = append(j.open, 0)
			j.ids[c] = uint32(len(j.nodes))
		}
		id := j.ids[c] - 1
		if k := j.open[id]; k > 0 && j.segs[k-1].End >= g.Start {
			j.segs[k-1].End = max(j.segs[k-1].End, g.End)
			continue
		}
		j.segs = append(j.segs, regalloc.Seg{Start: g.Start, End: g.End, Node: id})
		j.open[id] = uint32(len(j.segs))
	}
	// A class of several can be spilled even if each member is too short for that.
	for c, id := range j.ids {
		if id != 0 && j.next[c] != uint32(c) {
			j.nodes[id-1].Cost = 0
		}
	}
	for i := range n {
		if c := j.find(uint32(i)); j.next[c] != c {
			j.nodes[j.ids[c]-1].Cost += ws.lives.webs[ws.nodeWeb[i]].cost
		}
	}
	// From here on class is the number. find must not be asked any more.
	for i := range n {
		j.next[i] = j.ids[j.find(uint32(i))] - 1
	}
	j.class, j.next = j.next, j.class
	s.Nodes, j.nodes = j.nodes, s.Nodes
	s.Graph.Build(len(s.Nodes), j.segs)
	ws.lanes.Reset(len(s.Nodes), lanes)
	for i, c := range j.class {
		d := &s.Nodes[c]
		ws.lanes.SetWidth(c, int(d.Len))
		if d.Fixed {
			ws.lanes.Fix(c, int(ws.lives.webs[ws.nodeWeb[i]].fixed))
		}
	}
}

// webAt is the web that a register belongs to at a point, where it is read or written.
func (ws *Workspace) webAt(r ir.Reg, at uint32, def bool) uint32 {
	occs := ws.uses.of(uint32(r))
	k, _ := slices.BinarySearchFunc(occs, at, func(o occ, at uint32) int { return cmp.Compare(o.at, at) })
	for occs[k].def != def {
		k++
	}
	return occs[k].web
}
