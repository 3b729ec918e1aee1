package sched

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Stats is what an order costs, in ns.
type Stats struct {
	Makespan int64
	Busy     [target.NumEngines]int64 // by timeline; EngineDMA is the rings
	Busiest  target.Engine
	Insts    int
}

// Result is the cost of the order before and after scheduling.
type Result struct{ Before, After Stats }

// Workspace is the storage of the scheduler, for one worker. The zero value is ready.
type Workspace struct {
	order []ir.Inst // of the block at hand
	first []uint32  // first member of each node, in order; one more at the end
	node  arena.Column[ir.Inst, uint32]
	dur   []int64
	line  []target.Engine
	hold  []int64 // how long the node keeps its timeline
	high  []int64 // longest path from the node's start to the end
	ready []int64 // when the last dependence ends
	left  []uint32
	succ  []uint32 // successors of all nodes, compressed
	off   []uint32
	seq   []uint32
	mark  []uint32
	out   []ir.Inst

	pending [target.NumEngines]arena.Queue // not yet startable, by ready time
	avail   [target.NumEngines]arena.Queue // startable, highest first
	next    [target.NumEngines]int64
	floor   [target.NumEngines]int64 // earliest start of what is in avail

	groups groupSpace
}

// Schedule gives every block of a straight-line function a new order: whenever a timeline is free it starts the startable
// unit with the longest path to the end. Needs the edges of ssa/deps. Allocates nothing when it runs again.
func Schedule(m *ir.Module, f ir.Func, w *Workspace) (Result, error) {
	var res Result
	if m.Funcs.At(f).Flags&ir.FuncHasDeps == 0 {
		return res, target.Errorf(target.Bug, "scheduling %s before its dependences are known", m.Names.String(m.Funcs.At(f).Name))
	}
	for _, b := range m.BlocksOf(f) {
		if err := w.load(m, b); err != nil {
			return res, err
		}
		before := w.run(m, true)
		after := w.run(m, false)
		res.Before.add(&before)
		if after.Makespan >= before.Makespan {
			res.After.add(&before)
			continue
		}
		res.After.add(&after)
		w.out = w.out[:0]
		for _, n := range w.seq {
			w.out = append(w.out, w.order[w.first[n]:w.first[n+1]]...)
		}
		m.SetOrder(b, w.out)
	}
	res.Before.finish()
	res.After.finish()
	m.Funcs.At(f).Flags |= ir.FuncScheduled
	return res, nil
}

// Simulate is the cost of the present order. Without anti it ignores anti and output edges: the headroom that more memory
// could give.
func Simulate(m *ir.Module, f ir.Func, anti bool, w *Workspace) (Stats, error) {
	var sum Stats
	for _, b := range m.BlocksOf(f) {
		if err := w.load(m, b); err != nil {
			return sum, err
		}
		if !anti {
			w.link(m, ir.DepFlow)
		}
		s := w.run(m, true)
		sum.add(&s)
	}
	sum.finish()
	return sum, nil
}

func (s *Stats) add(t *Stats) {
	s.Makespan += t.Makespan
	s.Insts += t.Insts
	for e := range s.Busy {
		s.Busy[e] += t.Busy[e]
	}
}

func (s *Stats) finish() {
	s.Busiest = 0
	for e := range s.Busy {
		if s.Busy[e] > s.Busy[s.Busiest] {
			s.Busiest = target.Engine(e)
		}
	}
}

// load cuts the block into nodes and links them.
func (w *Workspace) load(m *ir.Module, b ir.Block) error {
	w.order = append(w.order[:0], m.OrderOf(b)...)
	w.first, w.dur, w.line, w.hold = w.first[:0], w.dur[:0], w.line[:0], w.hold[:0]
	w.node.Reset()
	w.node.Resize(m.Insts.Len())
	for k, i := range w.order {
		r := m.Insts.At(i)
		e := Timeline(m, i)
		if e >= target.NumEngines {
			return target.Errorf(target.Bug, "%s runs on engine %d, which does not exist", m.InstName(i), e)
		}
		c := Cost(m, i)
		if r.Flags&ir.InstUnit != 0 && k > 0 {
			n := len(w.dur) - 1
			w.dur[n] += c
			w.hold[n] = w.dur[n] - overlap(m.Gen, e, c)
		} else {
			w.first = append(w.first, uint32(k))
			w.dur = append(w.dur, c)
			w.line = append(w.line, e)
			w.hold = append(w.hold, c-overlap(m.Gen, e, c))
		}
		w.node.Set(i, uint32(len(w.dur))) // 1 + node
	}
	w.first = append(w.first, uint32(len(w.order)))
	return w.link(m, ir.DepOrdered)
}

// link lays out the successor lists of edges of at least the given kind, and checks that all point backwards.
func (w *Workspace) link(m *ir.Module, least ir.DepKind) error {
	n := len(w.dur)
	w.off = arena.Resized(w.off, n+2)
	w.mark = arena.Resized(w.mark, n)
	clear(w.off)
	for pass := range 2 {
		clear(w.mark)
		for v := range n {
			for _, i := range w.order[w.first[v]:w.first[v+1]] {
				for _, d := range m.DepsOf(i) {
					p := int(w.node.Get(d.Inst)) - 1
					if p < 0 || p == v || d.Kind < least || w.mark[p] == uint32(v)+1 {
						continue // another block, the same unit, or seen
					}
					if p > v {
						return target.Errorf(target.Bug, "%s depends on %s, which comes later", m.InstName(i), m.InstName(d.Inst))
					}
					w.mark[p] = uint32(v) + 1
					if pass == 0 {
						w.off[p+2]++
					} else {
						w.succ[w.off[p+1]] = uint32(v)
						w.off[p+1]++
					}
				}
			}
		}
		if pass == 0 {
			for v := range n {
				w.off[v+2] += w.off[v+1]
			}
			w.succ = arena.Resized(w.succ, int(w.off[n+1]))
		}
	}
	return nil
}

func (w *Workspace) succOf(v uint32) []uint32 { return w.succ[w.off[v]:w.off[v+1]] }

// run schedules the nodes, in their own order when keep is set, and leaves the sequence in seq.
func (w *Workspace) run(m *ir.Module, keep bool) Stats {
	n := len(w.dur)
	w.high, w.ready, w.left = arena.Resized(w.high, n), arena.Resized(w.ready, n), arena.Resized(w.left, n)
	clear(w.left)
	clear(w.ready)
	w.seq = w.seq[:0]
	w.next = [target.NumEngines]int64{}
	st := Stats{Insts: len(w.order)}
	if keep {
		for v := range uint32(n) {
			w.place(m, v, max(w.ready[v], w.free(m, w.line[v])), &st)
		}
		return st
	}
	for v := n - 1; v >= 0; v-- {
		h := int64(0)
		for _, s := range w.succOf(uint32(v)) {
			h = max(h, w.high[s])
			w.left[s]++
		}
		w.high[v] = h + w.dur[v]
	}
	for e := range w.pending {
		w.pending[e].Reset()
		w.avail[e].Reset()
		w.floor[e] = 0
	}
	for v := range uint32(n) {
		if w.left[v] == 0 {
			w.pending[w.line[v]].Push(v, 0)
		}
	}
	for len(w.seq) < n {
		// The timeline that can start something first; of those, the one with the longest path ahead.
		best, at, high, id := -1, int64(0), int64(0), uint32(0)
		for e := range w.pending {
			t := w.free(m, target.Engine(e))
			if w.avail[e].Len() == 0 {
				if w.pending[e].Len() == 0 {
					continue
				}
				_, w.floor[e] = w.pending[e].Peek()
			}
			t = max(t, w.floor[e])
			for w.pending[e].Len() > 0 {
				v, r := w.pending[e].Peek()
				if r > t {
					break
				}
				w.pending[e].Pop()
				w.avail[e].Push(v, -w.high[v])
			}
			v, h := w.avail[e].Peek()
			if best < 0 || t < at || t == at && (-h > high || -h == high && v < id) {
				best, at, high, id = e, t, -h, v
			}
		}
		w.avail[best].Pop()
		w.place(m, id, at, &st)
		for _, s := range w.succOf(id) {
			if w.left[s]--; w.left[s] == 0 {
				w.pending[w.line[s]].Push(s, w.ready[s])
			}
		}
	}
	return st
}

// free is when a timeline takes its next operation. Where engines share ports they wait for each other.
func (w *Workspace) free(m *ir.Module, e target.Engine) int64 {
	if m.Gen.SharedPorts && (e == target.EngineDVE || e == target.EnginePool) {
		return max(w.next[target.EngineDVE], w.next[target.EnginePool])
	}
	return w.next[e]
}

func (w *Workspace) place(m *ir.Module, v uint32, at int64, st *Stats) {
	e := w.line[v]
	end := at + w.dur[v]
	w.next[e] = at + w.hold[v]
	st.Busy[e] += w.hold[v]
	st.Makespan = max(st.Makespan, end)
	w.seq = append(w.seq, v)
	for _, s := range w.succOf(v) {
		w.ready[s] = max(w.ready[s], end)
	}
}
