package split

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// candidate is a value that could be in a register at the head of a block.
type candidate struct {
	value  flow.Value
	next   uint32 // position of its next use
	weight uint32
	cost   uint32 // of evicting it
	begins bool   // a parameter, or some way into the block must load it
	safe   bool
}

// exits is what is in registers at the end of b, by this walk or else the one before; unknown in the first walk before it came to b.
func (s *spiller) exits(b uint32) (list []resident, known bool) {
	if x := s.exitOf[b]; x.from <= x.to {
		return s.exit[x.from:x.to], true
	}
	if x := s.endedOf[b]; x.from <= x.to {
		return s.ended[x.from:x.to], true
	}
	return nil, false
}

// enter chooses what is in registers at the head of b.
func (a *Allocator) enter(b uint32) {
	f, s := a.f, &a.spiller
	for c := range s.in {
		for _, v := range s.in[c] {
			s.vals[v].at = 0
		}
		s.in[c], s.safes[c] = s.in[c][:0], 0
	}
	if a.inherits(b) {
		a.inherit(b)
		return
	}
	known, room := a.arrive(b)
	s.cands = s.cands[:0]
	row := a.live.Row(b)
	for k, v := range a.live.In(b) {
		x := &s.vals[v]
		if x.ways == 0 {
			continue
		}
		// Each way that lacks it must load it; left out, it is loaded behind, and perhaps not on all ways.
		in := a.ranges.In[row+uint32(k)]
		miss := known - x.ways
		if miss == 0 || miss*flow.LoadWeight < in.Weight {
			if in.Next < flow.Unread {
				in.Next += f.Blocks[b].Insts.From
			}
			s.cands = append(s.cands, candidate{v, in.Next, in.Weight, in.Weight, miss > 0, 2*x.safeWays >= x.ways})
		}
	}
	if f.Blocks[b].Params.Len() > 0 {
		a.enterParams(b, known)
	}
	a.depart(b)
	var n [flow.NumClasses]int
	for k := range s.cands {
		n[f.Class[s.cands[k].value]]++
	}
	if n[flow.Int] > room[flow.Int] || n[flow.Float] > room[flow.Float] {
		a.rank(b)
	}
	from := uint32(len(s.entry))
	for k := range s.cands {
		x := &s.cands[k]
		if c := f.Class[x.value]; len(s.in[c]) < room[c] {
			piece := s.newPiece(x.value, 0)
			s.put(c, x.value, x.next, x.weight, piece, x.safe && s.safes[c] < a.regs.Saved[c])
			s.entry = append(s.entry, resident{x.value, piece, false})
		}
	}
	s.entryOf[b] = span{from, uint32(len(s.entry))}
	if s.last {
		for k := range s.cands {
			if x := &s.cands[k]; x.begins && s.vals[x.value].at > 0 {
				a.meetAll(x.value)
			}
		}
	}
}

// inherits reports a block that has only one way into it and no parameters: it begins with what the block before ends with.
func (a *Allocator) inherits(b uint32) bool {
	return a.f.Blocks[b].Preds.Len() == 1 && a.f.Blocks[b].Params.Len() == 0
}

// before is the block before one that inherits.
func (a *Allocator) before(b uint32) uint32 {
	return a.f.Edges[a.f.Preds[a.f.Blocks[b].Preds.From]].From
}

// inherit goes on from the block before with the pieces there.
func (a *Allocator) inherit(b uint32) {
	f, s := a.f, &a.spiller
	exit := s.exit[s.exitOf[a.before(b)].from:s.exitOf[a.before(b)].to]
	for k := range exit {
		s.vals[exit[k].value].mark = uint32(k) + 1
	}
	from := uint32(len(s.entry))
	first, row := f.Blocks[b].Insts.From, a.live.Row(b)
	for k, v := range a.live.In(b) {
		m := s.vals[v].mark
		if m == 0 {
			continue
		}
		in := a.ranges.In[row+uint32(k)]
		if in.Next < flow.Unread {
			in.Next += first
		}
		r := exit[m-1]
		s.put(f.Class[v], v, in.Next, in.Weight, r.piece, r.safe)
		s.entry = append(s.entry, r)
	}
	for k := range exit {
		s.vals[exit[k].value].mark = 0
	}
	s.entryOf[b] = span{from, uint32(len(s.entry))}
}

// arrive counts on how many ways into b each value is in a register. It returns the number of ways that are known, and the registers that b can
// start with.
func (a *Allocator) arrive(b uint32) (known uint32, room [flow.NumClasses]int) {
	f, s := a.f, &a.spiller
	blk := &f.Blocks[b]
	room = a.regs.N
	params := f.Of(blk.Params)
	s.fed = arena.Zeroed(s.fed, len(params))
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		edge := &f.Edges[e]
		if a.loops.Rank[edge.From] == flow.NoBlock {
			continue
		}
		a.makeRoom(edge.From, &room)
		list, ok := s.exits(edge.From)
		if !ok {
			continue
		}
		known++
		for k := range list {
			x := &s.vals[list[k].value]
			x.ways++
			if list[k].safe {
				x.safeWays++
			}
			x.mark = e + 1
		}
		for k := range params {
			if s.vals[f.Ops[edge.Args.From+uint32(k)]].mark == e+1 {
				s.fed[k]++
			}
		}
	}
	return known, room
}

// depart forgets what arrive counted.
func (a *Allocator) depart(b uint32) {
	f, s := a.f, &a.spiller
	p := f.Blocks[b].Preds
	for _, e := range f.Preds[p.From:p.To] {
		list, _ := s.exits(f.Edges[e].From)
		for k := range list {
			x := &s.vals[list[k].value]
			x.ways, x.safeWays, x.mark = 0, 0, 0
		}
	}
}

// enterParams adds the parameters of b that are better in a register than in their slot.
func (a *Allocator) enterParams(b, known uint32) {
	f, s := a.f, &a.spiller
	blk := &f.Blocks[b]
	for k, p := range f.Of(blk.Params) {
		row := blk.Params.From + uint32(k)
		if a.ranges.Rows[row].Next == flow.Dead || s.fed[k] == 0 {
			continue
		}
		// In its slot it costs a store on each way whose argument is not in that slot. In a register it costs a load where the argument is not in one,
		// and a store if it is evicted later, unless all arguments are in the slot.
		stores := uint32(0)
		for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
			arg := f.Ops[f.Edges[e].Args.From+uint32(k)]
			if a.loops.Rank[f.Edges[e].From] != flow.NoBlock && (!s.vals[arg].before || a.families.Of(arg) != a.families.Of(p)) {
				stores++
			}
		}
		cost, weight := known-s.fed[k], a.ranges.Rows[row].Weight
		if s.vals[p].before && stores > 0 {
			cost++
		}
		if cost*flow.LoadWeight <= stores*storeCost+weight {
			s.cands = append(s.cands, candidate{p, a.ranges.Rows[row].Next, weight, weight, true, s.vals[p].crossed})
		}
	}
}

// rank puts the candidates that are worth most first.
func (a *Allocator) rank(b uint32) {
	s := &a.spiller
	from := a.f.Blocks[b].Insts.From
	for k := range s.cands {
		if x := &s.cands[k]; !s.vals[x.value].stored {
			x.cost += storeCost
		}
	}
	slices.SortFunc(s.cands, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(uint64(y.cost)*distance(x.next, from), uint64(x.cost)*distance(y.next, from)), cmp.Compare(x.value, y.value))
	})
}

// meetAll notes that v is in a register at once with all that is.
func (a *Allocator) meetAll(v flow.Value) {
	s := &a.spiller
	for _, w := range s.in[a.f.Class[v]] {
		if w != v {
			s.meetings = append(s.meetings, meeting{s.vals[v].piece, s.vals[w].piece})
		}
	}
}

// makeRoom leaves registers for the tests of a branch with one way out, before which the moves of its edge stand.
func (a *Allocator) makeRoom(b uint32, room *[flow.NumClasses]int) {
	f := a.f
	in := &f.Insts[f.Last(b)]
	if in.Uses.Len() == 0 || f.Blocks[b].Succs.Len() != 1 {
		return
	}
	left := a.regs.N
	for _, v := range f.Of(in.Uses) {
		left[f.Class[v]]--
	}
	for c := range room {
		room[c] = max(0, min(room[c], left[c]))
	}
}
