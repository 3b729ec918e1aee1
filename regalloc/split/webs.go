package split

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// webs says which pieces are worth their register, and which belong together.
type webs struct {
	stores bool      // some value is in memory
	wanted []bool    // by piece: what it holds is read there or behind it, or is nowhere else
	flows  []meeting // a piece and one that passes into it along an edge or across a call
	passes []meeting // likewise, of values that are no family
	part   []uint32  // by piece: the first of the pieces that are one between calls
	up     []uint32  // by piece: likewise across calls, as a union-find
}

// join finds what must be in memory because of edges, what is wanted in registers and which pieces are one.
func (a *Allocator) join() {
	s, w := &a.spiller, &a.webs
	n := len(s.valueOf)
	w.flows, w.passes = w.flows[:0], w.passes[:0]
	for c := range s.in {
		for _, v := range s.in[c] {
			s.vals[v].at = 0
		}
		s.in[c] = s.in[c][:0]
	}
	for _, b := range a.loops.Order {
		a.couple(b)
	}
	w.wanted = arena.Resized(w.wanted, n)
	w.stores = false
	for v := range s.vals {
		w.stores = w.stores || s.vals[v].stored
	}
	for p, v := range s.valueOf {
		w.wanted[p] = s.flags[p]&isRead != 0 || !s.vals[v].stored
	}
	for _, b := range a.loops.Order {
		a.wantParams(b)
	}
	w.want(s)
	w.up = arena.Resized(w.up, n)
	for p := range w.up {
		w.up[p] = uint32(p)
	}
	for _, m := range w.flows {
		if w.wanted[m.a] && w.wanted[m.b] && s.flags[m.a]&crosses == 0 {
			unite(w.up, m.a, m.b)
		}
	}
	w.part = arena.Resized(w.part, n)
	for p := range w.part {
		w.part[p] = find(w.up, uint32(p))
		s.flags[w.part[p]] |= s.flags[p] & (crosses | reaches)
	}
	for _, m := range s.calls {
		if w.wanted[m.a] && w.wanted[m.b] {
			unite(w.up, m.a, m.b)
		}
	}
}

// wantRounds bounds how often wants are followed backwards. One round is enough but for what comes along back edges.
const wantRounds = 3

// want follows wants from pieces to those that pass into them.
func (w *webs) want(s *spiller) {
	for range wantRounds {
		changed := false
		for k := len(w.flows) - 1; k >= 0; k-- {
			if m := w.flows[k]; w.wanted[m.a] && !w.wanted[m.b] {
				w.wanted[m.b], changed = true, true
			}
		}
		if !changed {
			return
		}
	}
	// Where an edge leads from a piece that is not wanted to one that is, the value is loaded. A call has no such place: what is wanted behind it but not
	// before is given up. It is not read there, or the first round would have found it.
	for _, m := range w.flows {
		if s.flags[m.a]&crosses != 0 && w.wanted[m.a] && !w.wanted[m.b] {
			w.wanted[m.a] = false
		}
	}
}

// couple notes along the edges into b what passes from piece to piece and what must be in memory.
func (a *Allocator) couple(b uint32) {
	f, s, w := a.f, &a.spiller, &a.webs
	of := s.callsOf[b]
	if a.inherits(b) {
		w.flows = append(w.flows, s.calls[of.from:of.to]...)
		return
	}
	blk := &f.Blocks[b]
	entry := s.entry[s.entryOf[b].from:s.entryOf[b].to]
	params := f.Of(blk.Params)
	for _, r := range entry {
		s.vals[r.value].at = r.piece + 1
	}
	for _, v := range a.live.In(b) {
		if x := &s.vals[v]; x.at == 0 {
			x.stored = true
		}
	}
	for _, p := range params {
		if x := &s.vals[p]; x.at == 0 && a.ranges.End[p] > 0 {
			x.stored = true
		}
	}
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		edge := &f.Edges[e]
		if a.loops.Rank[edge.From] == flow.NoBlock {
			continue
		}
		exit := s.exit[s.exitOf[edge.From].from:s.exitOf[edge.From].to]
		for _, r := range exit {
			s.vals[r.value].mark = r.piece + 1
		}
		for k, p := range params {
			x, arg := &s.vals[p], f.Ops[edge.Args.From+uint32(k)]
			switch y := &s.vals[arg]; {
			case x.at == 0:
			case y.mark == 0:
				y.stored = true
			case a.families.Of(arg) == a.families.Of(p):
				w.flows = append(w.flows, meeting{x.at - 1, y.mark - 1})
			default:
				w.passes = append(w.passes, meeting{x.at - 1, y.mark - 1})
			}
		}
		for _, r := range entry {
			switch x := &s.vals[r.value]; {
			case len(params) > 0 && a.live.Home(r.value) == b: // a parameter
			case x.mark > 0:
				w.flows = append(w.flows, meeting{r.piece, x.mark - 1})
			default:
				x.stored = true
			}
		}
		for _, r := range exit {
			s.vals[r.value].mark = 0
		}
	}
	for _, r := range entry {
		s.vals[r.value].at = 0
	}
	w.flows = append(w.flows, s.calls[of.from:of.to]...)
}

// wantParams wants in their registers the parameters of b that are stored from them.
func (a *Allocator) wantParams(b uint32) {
	f, s := a.f, &a.spiller
	params := f.Of(f.Blocks[b].Params)
	if len(params) == 0 {
		return
	}
	for k, p := range params {
		if a.storesAtHead(b, uint32(k)) {
			s.vals[p].mark = 1
		}
	}
	for _, r := range s.entry[s.entryOf[b].from:s.entryOf[b].to] {
		if s.vals[r.value].mark == 1 {
			a.webs.wanted[r.piece] = true
		}
	}
	for _, p := range params {
		s.vals[p].mark = 0
	}
}

// storesAtHead reports that parameter k of b must be stored if it is in a register: not all arguments are in the slot that it shares with
// them.
func (a *Allocator) storesAtHead(b uint32, k uint32) bool {
	f, s := a.f, &a.spiller
	blk := &f.Blocks[b]
	v := f.Ops[blk.Params.From+k]
	if !s.vals[v].stored {
		return false
	}
	kin := a.families.Of(v)
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		arg := f.Ops[f.Edges[e].Args.From+k]
		if a.loops.Rank[f.Edges[e].From] != flow.NoBlock && (!s.vals[arg].stored || a.families.Of(arg) != kin) {
			return true
		}
	}
	return false
}

func find(up []uint32, p uint32) uint32 {
	for up[p] != p {
		up[p] = up[up[p]]
		p = up[p]
	}
	return p
}

func unite(up []uint32, p, q uint32) {
	p, q = find(up, p), find(up, q)
	up[max(p, q)] = min(p, q)
}
