package split

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

const (
	loopExit      = 1000 // a use behind a loop is that much farther than one inside
	distanceWalks = 4
	spillWalks    = 2
)

// event is a change of what is in registers. Results of instructions come in without one, and values go at their last use without one.
type event struct {
	at   uint32 // instruction
	what uint32 // value<<2 | kind
}

const (
	evict  = iota // before the uses are read
	load          // likewise
	retire        // after the uses are read, before the results are written
)

// resident is a value in a register at the head or the end of a block, with the number of the piece that it belongs to.
type resident struct {
	value flow.Value
	piece uint32
}

const (
	isRead    = 1 << iota // by an instruction that wants it in a register
	crosses               // a call
	notStored             // some value of it is not in memory
)

type span struct{ from, to uint32 }

// spiller decides which values are in registers at each point, without saying in which.
type spiller struct {
	in        [flow.NumClasses][]flow.Value // what is in registers now
	at        []uint32                      // by value: 1 + its place in in, 0 if it is not there
	next      []uint32                      // by value in in: position of its next use in a register
	weight    []uint32                      // by value in in: loads that it saves
	piece     []uint32                      // by value in in
	memBefore []bool
	mem       []bool   // by value: it is in its slot from its definition on
	need      []uint32 // by value: a mark
	count     []uint32 // by value
	fed       []uint32 // by parameter: ways on which its argument is in a register
	pieces    uint32

	// A piece is a stay of a value in a register, from its definition, a load or the head of a block on. Pieces that meet along edges make one web.
	valueOf []flow.Value // by piece
	flags   []uint8      // by piece, in the end by web
	up      []uint32     // union-find over pieces

	events   []event
	eventOf  []span // by block
	entry    []resident
	entryOf  []span
	exit     []resident
	exitOf   []span
	before   []resident // exit and exitOf of the walk before
	beforeOf []span

	cand []candidate
}

type candidate struct {
	value  flow.Value
	dist   uint32
	weight uint32
	miss   uint32 // predecessors at whose end it is not in a register
}

// spill decides what is in registers where, after Braun and Hack, "Register Spilling and Live-Range Splitting for SSA-Form Programs" (CC
// 2009): block by block, evicting what is used farthest ahead. The second walk knows from the first what arrives along back edges.
func (a *Allocator) spill() {
	f, s := a.f, &a.spiller
	n := f.Values()
	s.at, s.next, s.piece = arena.Zeroed(s.at, n), arena.Resized(s.next, n), arena.Resized(s.piece, n)
	s.weight = arena.Resized(s.weight, n)
	s.count, s.fed, s.need = arena.Zeroed(s.count, n), arena.Zeroed(s.fed, n), arena.Zeroed(s.need, n)
	s.mem = arena.Zeroed(s.mem, n)
	s.memBefore = arena.Zeroed(s.memBefore, n)
	s.eventOf, s.entryOf = arena.Resized(s.eventOf, len(f.Blocks)), arena.Resized(s.entryOf, len(f.Blocks))
	s.exitOf, s.beforeOf = arena.Resized(s.exitOf, len(f.Blocks)), arena.Resized(s.beforeOf, len(f.Blocks))
	for b := range s.beforeOf {
		s.beforeOf[b] = span{1, 0}
	}
	for c := range s.in {
		s.in[c] = s.in[c][:0]
	}
	for range spillWalks {
		s.mem, s.memBefore = s.memBefore, s.mem
		clear(s.mem)
		s.pieces, s.valueOf, s.flags = 0, s.valueOf[:0], s.flags[:0]
		s.events, s.entry, s.exit = s.events[:0], s.entry[:0], s.exit[:0]
		for b := range s.exitOf {
			s.exitOf[b] = span{1, 0}
		}
		for _, b := range a.loops.Order {
			a.enter(b)
			a.walk(b)
			a.leave(b)
		}
		s.exit, s.before = s.before, s.exit
		s.exitOf, s.beforeOf = s.beforeOf, s.exitOf
	}
	s.exit, s.before = s.before, s.exit
	s.exitOf, s.beforeOf = s.beforeOf, s.exitOf
	a.couple()
}

// exits is what is in registers at the end of b, from this walk or else the one before; unknown in the first walk before it came to b.
func (s *spiller) exits(b uint32) (list []resident, known bool) {
	if x := s.exitOf[b]; x.from <= x.to {
		return s.exit[x.from:x.to], true
	}
	if x := s.beforeOf[b]; x.from <= x.to {
		return s.before[x.from:x.to], true
	}
	return nil, false
}

func (s *spiller) put(c flow.Class, v flow.Value, next, weight uint32) {
	s.in[c] = append(s.in[c], v)
	s.at[v] = uint32(len(s.in[c]))
	s.next[v], s.weight[v] = next, weight
	s.piece[v] = s.pieces
	s.pieces++
	s.valueOf, s.flags = append(s.valueOf, v), append(s.flags, 0)
}

func (s *spiller) drop(c flow.Class, v flow.Value) {
	in := s.in[c]
	last := in[len(in)-1]
	in[s.at[v]-1] = last
	s.at[last] = s.at[v]
	s.at[v] = 0
	s.in[c] = in[:len(in)-1]
}

// shrink evicts what is used farthest ahead until at most n values of a class are left.
func (s *spiller) shrink(c flow.Class, n int, at uint32, kind uint32) {
	for len(s.in[c]) > n {
		worst := s.in[c][0]
		for _, v := range s.in[c][1:] {
			if s.worse(v, worst) {
				worst = v
			}
		}
		s.drop(c, worst)
		s.mem[worst] = true
		s.events = append(s.events, event{at, worst<<2 | kind})
	}
}

// worse reports whether v should leave before w.
func (s *spiller) worse(v, w flow.Value) bool {
	if s.next[v] != s.next[w] {
		return s.next[v] > s.next[w]
	}
	if s.mem[v] != s.mem[w] {
		return s.mem[v]
	}
	return v < w
}

// enter chooses what is in registers at the head of b.
func (a *Allocator) enter(b uint32) {
	f, s := a.f, &a.spiller
	blk := &f.Blocks[b]
	for c := range s.in {
		for _, v := range s.in[c] {
			s.at[v] = 0
		}
		s.in[c] = s.in[c][:0]
	}
	from := uint32(len(s.entry))
	known, unknown := uint32(0), uint32(0)
	room := a.regs.N
	params := f.Of(blk.Params)
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		edge := &f.Edges[e]
		if a.loops.Rank[edge.From] == flow.NoBlock {
			continue
		}
		a.makeRoom(edge.From, &room)
		list, ok := s.exits(edge.From)
		if !ok {
			unknown++
			continue
		}
		known++
		for _, r := range list {
			s.count[r.value]++
			s.need[r.value] = e + 1
		}
		for k, p := range params {
			if s.need[f.Ops[edge.Args.From+uint32(k)]] == e+1 {
				s.fed[p]++
			}
		}
	}
	s.cand = s.cand[:0]
	base := a.live.Row(b)
	for k, v := range a.live.In(b) {
		if s.count[v] == 0 {
			continue
		}
		x := base + uint32(k)
		next, weight := a.ranges.InNext[x], a.ranges.InWeight[x]
		miss := known - s.count[v]
		if miss == 0 || miss*flow.LoadWeight <= weight {
			s.cand = append(s.cand, candidate{v, next, weight, miss})
		}
	}
	for k, p := range params {
		row := blk.Params.From + uint32(k)
		next := a.ranges.Next[row]
		if next == flow.Dead || s.fed[p] == 0 {
			continue
		}
		if next < flow.Unread {
			next -= blk.Insts.From
		}
		weight := a.ranges.Weight[row]
		miss := known - s.fed[p]
		store := uint32(0)
		for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
			arg := f.Ops[f.Edges[e].Args.From+uint32(k)]
			if a.loops.Rank[f.Edges[e].From] != flow.NoBlock && (!s.memBefore[arg] || a.families.Of(arg) != a.families.Of(p)) {
				store++
			}
		}
		cost := miss
		if s.memBefore[p] && store > 0 {
			cost++
		}
		if cost*flow.LoadWeight <= store*flow.LoadWeight+weight {
			s.cand = append(s.cand, candidate{p, next, weight, miss})
		}
	}
	for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
		if list, ok := s.exits(f.Edges[e].From); ok {
			for _, r := range list {
				s.count[r.value], s.need[r.value] = 0, 0
			}
		}
	}
	for _, p := range params {
		s.fed[p] = 0
	}
	var sizes [flow.NumClasses]int
	for _, x := range s.cand {
		sizes[f.Class[x.value]]++
	}
	if sizes[flow.Int] > room[flow.Int] || sizes[flow.Float] > room[flow.Float] {
		slices.SortFunc(s.cand, func(x, y candidate) int {
			if x.dist != y.dist {
				if x.dist < y.dist {
					return -1
				}
				return 1
			}
			return int(x.value) - int(y.value)
		})
	}
	for _, x := range s.cand {
		c := f.Class[x.value]
		if len(s.in[c]) == room[c] {
			continue
		}
		next := x.dist
		if next < flow.Unread {
			next += blk.Insts.From
		}
		s.put(c, x.value, next, x.weight)
		s.entry = append(s.entry, resident{x.value, s.piece[x.value]})
	}
	s.entryOf[b] = span{from, uint32(len(s.entry))}
}

// makeRoom leaves registers for the tests of a branch with one way out, before which the moves of its edge stand.
func (a *Allocator) makeRoom(b uint32, room *[flow.NumClasses]int) {
	f := a.f
	in := &f.Insts[f.Last(b)]
	if f.Blocks[b].Succs.Len() != 1 || in.Uses.Len() == 0 {
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

// walk goes through b and brings into registers what each instruction wants there.
func (a *Allocator) walk(b uint32) {
	f, s, next := a.f, &a.spiller, a.ranges.Next
	blk := &f.Blocks[b]
	from := uint32(len(s.events))
	for i := blk.Insts.From; i < blk.Insts.To; i++ {
		in := &f.Insts[i]
		hard := in.Kind == flow.Op || in.Kind == flow.Branch
		if hard {
			for _, v := range f.Of(in.Uses) {
				if s.at[v] == 0 {
					c := f.Class[v]
					s.shrink(c, a.regs.N[c]-1, i, evict)
					s.put(c, v, i, flow.LoadWeight)
					s.mem[v] = true
					s.events = append(s.events, event{i, v<<2 | load})
				}
				s.flags[s.piece[v]] |= isRead
			}
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			v := f.Ops[row]
			if s.at[v] == 0 {
				continue
			}
			if next[row] == flow.Dead {
				s.drop(f.Class[v], v)
			} else {
				s.next[v], s.weight[v] = next[row], a.ranges.Weight[row]
			}
		}
		if hard {
			a.results(in, i)
			continue
		}
		if in.Kind == flow.Call {
			for c := range flow.Class(flow.NumClasses) {
				s.shrink(c, a.regs.Saved[c], i, retire)
				for _, v := range s.in[c] {
					s.flags[s.piece[v]] |= crosses
				}
			}
		}
		a.resultsAnywhere(in, i)
	}
	s.eventOf[b] = span{from, uint32(len(s.events))}
}

// results puts the results of an Op into registers.
func (a *Allocator) results(in *flow.Inst, i uint32) {
	f, s := a.f, &a.spiller
	if in.Uses.To == in.To {
		return
	}
	var n [flow.NumClasses]int
	for _, v := range f.Of(in.Defs()) {
		n[f.Class[v]]++
	}
	for c, n := range n {
		if n > 0 {
			s.shrink(flow.Class(c), a.regs.N[c]-n, i, retire)
		}
	}
	for row := in.Uses.To; row < in.To; row++ {
		v := f.Ops[row]
		s.put(f.Class[v], v, a.ranges.Next[row], a.ranges.Weight[row])
	}
	for row := in.Uses.To; row < in.To; row++ {
		if v := f.Ops[row]; a.ranges.Next[row] == flow.Dead {
			s.drop(f.Class[v], v)
		}
	}
}

// resultsAnywhere puts what it can of the results of a call, or of the arguments, into registers, nearest use first.
func (a *Allocator) resultsAnywhere(in *flow.Inst, i uint32) {
	f, s := a.f, &a.spiller
	for row := in.Uses.To; row < in.To; row++ {
		v, next := f.Ops[row], a.ranges.Next[row]
		if next == flow.Dead && in.Kind == flow.Args {
			continue
		}
		c := f.Class[v]
		s.need[v] = i + 1
		if len(s.in[c]) < a.regs.N[c] {
			s.put(c, v, next, a.ranges.Weight[row])
			continue
		}
		s.put(c, v, next, a.ranges.Weight[row])
		worst := v
		for _, w := range s.in[c] {
			if s.worse(w, worst) {
				worst = w
			}
		}
		s.drop(c, worst)
		s.mem[worst] = true
		if s.need[worst] != i+1 { // not a result: those are written to their slots at once
			s.events = append(s.events, event{i, worst<<2 | retire})
		}
	}
	for row := in.Uses.To; row < in.To; row++ {
		v := f.Ops[row]
		if s.need[v] = 0; a.ranges.Next[row] == flow.Dead && s.at[v] > 0 {
			s.drop(f.Class[v], v)
		}
	}
}

// leave notes what is in registers at the end of b.
func (a *Allocator) leave(b uint32) {
	s := &a.spiller
	from := uint32(len(s.exit))
	for c := range s.in {
		for _, v := range s.in[c] {
			s.exit = append(s.exit, resident{v, s.piece[v]})
		}
	}
	s.exitOf[b] = span{from, uint32(len(s.exit))}
}

// couple finds what the edges between blocks need in memory and which pieces are one across them.
func (a *Allocator) couple() {
	f, s := a.f, &a.spiller
	s.up = arena.Resized(s.up, int(s.pieces))
	for p := range s.up {
		s.up[p] = uint32(p)
	}
	clear(s.need)
	for _, b := range a.loops.Order {
		blk := &f.Blocks[b]
		entry := s.entry[s.entryOf[b].from:s.entryOf[b].to]
		params := f.Of(blk.Params)
		for _, r := range entry {
			s.need[r.value] = 1
		}
		for _, v := range a.live.In(b) {
			if s.need[v] == 0 {
				s.mem[v] = true
			}
		}
		for _, p := range params {
			if s.need[p] == 0 && a.ranges.End[p] > 0 {
				s.mem[p] = true
			}
		}
		for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
			edge := &f.Edges[e]
			x := s.exitOf[edge.From]
			if a.loops.Rank[edge.From] == flow.NoBlock {
				continue
			}
			for _, r := range s.exit[x.from:x.to] {
				s.count[r.value] = r.piece + 1
			}
			for _, r := range entry {
				s.need[r.value] = r.piece + 2
			}
			for k, p := range params {
				arg := f.Ops[edge.Args.From+uint32(k)]
				switch {
				case s.need[p] < 2:
				case s.count[arg] == 0:
					s.mem[arg] = true
				case a.families.Of(arg) == a.families.Of(p):
					s.unite(s.need[p]-2, s.count[arg]-1)
				}
				s.need[p] = 0
			}
			for _, r := range entry {
				if s.need[r.value] == 0 {
					continue
				}
				if at := s.count[r.value]; at > 0 {
					s.unite(r.piece, at-1)
				} else {
					s.mem[r.value] = true
				}
			}
			for _, r := range s.exit[x.from:x.to] {
				s.count[r.value] = 0
			}
		}
		for _, r := range entry {
			s.need[r.value] = 0
		}
	}
	for p, v := range s.valueOf {
		w := s.web(uint32(p))
		s.flags[w] |= s.flags[p]
		if !s.mem[v] {
			s.flags[w] |= notStored
		}
	}
}

func (s *spiller) web(p uint32) uint32 {
	for s.up[p] != p {
		s.up[p] = s.up[s.up[p]]
		p = s.up[p]
	}
	return p
}

func (s *spiller) unite(p, q uint32) {
	p, q = s.web(p), s.web(q)
	s.up[max(p, q)] = min(p, q)
}

// idle reports a web that no instruction reads and whose values are all in memory: it needs no registers.
func (s *spiller) idle(web uint32) bool { return s.flags[web]&(isRead|notStored) == 0 }
