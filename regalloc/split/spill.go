package split

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// What the walks weigh against each other, in units of flow.LoadWeight. Halved or doubled, each changes the moves of real programs by at most 5 %
// in the mean, as long as storeCost stays above cheap. RATIONALE.md has the figures.
const (
	storeCost = flow.LoadWeight / 2   // of a value that is not in memory yet: other ways may need the store anyhow
	copyCost  = flow.LoadWeight / 2   // into a register that survives a call: it may be saved when registers are given
	cheap     = flow.LoadWeight/2 - 1 // what costs no more leaves at a call, even if there is room, rather than be copied
	unreadFar = 1000                  // how far the next use counts of what only calls and returns read
	loopExit  = 1000                  // how much farther a use is behind the exit of a loop

	distanceWalks = 2 // more find longer ways, and no fewer moves
	spillWalks    = 2 // the second knows what the first found at the ends of back edges; without them one does
)

// state is what the walk knows of a value.
type state struct {
	at     uint32 // 1 + its place among what is in registers, 0 if it is not there
	next   uint32 // position of its next use in a register, Unread or Dead
	weight uint32 // loads that it saves there
	piece  uint32

	ways, safeWays uint32 // into a block: at whose ends it is in a register, in one that survives calls
	mark           uint32

	stored  bool // it is in its slot from its definition on
	before  bool // it was in the walk before
	safe    bool // it is, or could be, in a register that survives calls
	crossed bool // it was kept across a call
}

// event is a change of what is in registers. Results come in without one, and values go at their last use without one.
type event struct {
	at   uint32 // instruction
	what uint32 // value<<2 | kind
}

const (
	evict  = iota // before the uses are read
	load          // likewise; begins a piece
	retire        // after the uses are read, before the results are written
	stay          // across a call; begins a piece
)

// Flags of pieces.
const (
	isRead  = 1 << iota // by an instruction that wants it in a register
	crosses             // begins behind a call
	reaches             // ends before a call, and goes on behind it
	born                // a result or argument that could as well begin in its slot
	local               // ends in its block, and met no call in the walk before, if there was one
)

// resident is a value in a register at the head or the end of a block. 12 bytes.
type resident struct {
	value flow.Value
	piece uint32
	safe  bool
}

type span struct{ from, to uint32 }

// meeting says that two pieces are in registers at once, or that the second passes into the first.
type meeting struct{ a, b uint32 }

// spiller decides which values are in registers at each point, without saying in which.
type spiller struct {
	vals  []state
	in    [flow.NumClasses][]flow.Value // what is in registers now
	safes [flow.NumClasses]int          // of these, safe

	// A piece is a stay of a value in a register: from a definition, a load, a call or the head of a block on, up to such a point.
	valueOf []flow.Value // by piece
	flags   []uint8      // by piece

	events   []event
	eventOf  []span // by block, likewise below
	calls    []meeting
	callsOf  []span
	entry    []resident
	entryOf  []span
	exit     []resident
	exitOf   []span
	ended    []resident // exit and exitOf of the walk before
	endedOf  []span
	meetings []meeting // pieces that are in registers at once

	last  bool // the last walk
	cands []candidate
	fed   []uint32 // by parameter of the block at hand: ways on which its argument is in a register
	err   error
}

// spill decides what is in registers where.
func (a *Allocator) spill() error {
	f, s := a.f, &a.spiller
	n := len(f.Blocks)
	s.vals = arena.Zeroed(s.vals, f.Values())
	s.eventOf, s.callsOf, s.entryOf = arena.Resized(s.eventOf, n), arena.Resized(s.callsOf, n), arena.Resized(s.entryOf, n)
	s.exitOf, s.endedOf = arena.Resized(s.exitOf, n), arena.Resized(s.endedOf, n)
	for b := range s.exitOf {
		s.exitOf[b] = span{1, 0}
	}
	for c := range s.in {
		s.in[c], s.safes[c] = s.in[c][:0], 0
	}
	s.err = nil
	walks := spillWalks
	if !slices.Contains(a.loops.Heads, true) {
		walks = 1
	}
	for walk := range walks {
		s.last = walk == walks-1
		s.exit, s.ended = s.ended, s.exit
		s.exitOf, s.endedOf = s.endedOf, s.exitOf
		for b := range s.exitOf {
			s.exitOf[b] = span{1, 0}
		}
		for v := range s.vals {
			x := &s.vals[v]
			x.before, x.stored = x.stored, false
		}
		s.valueOf, s.flags, s.meetings, s.calls = s.valueOf[:0], s.flags[:0], s.meetings[:0], s.calls[:0]
		s.events, s.entry, s.exit = s.events[:0], s.entry[:0], s.exit[:0]
		for _, b := range a.loops.Order {
			from := span{uint32(len(s.events)), uint32(len(s.calls))}
			a.enter(b)
			a.walk(b)
			s.leave(b)
			s.eventOf[b], s.callsOf[b] = span{from.from, uint32(len(s.events))}, span{from.to, uint32(len(s.calls))}
			if s.err != nil {
				return s.err
			}
		}
	}
	return nil
}

// put brings a value into a register.
func (s *spiller) put(c flow.Class, v flow.Value, next, weight, piece uint32, safe bool) {
	x := &s.vals[v]
	s.in[c] = append(s.in[c], v)
	x.at, x.next, x.weight, x.piece = uint32(len(s.in[c])), next, weight, piece
	if x.safe = safe; safe {
		s.safes[c]++
	}
}

func (s *spiller) newPiece(v flow.Value, flags uint8) uint32 {
	s.valueOf, s.flags = append(s.valueOf, v), append(s.flags, flags)
	return uint32(len(s.valueOf) - 1)
}

// begin puts a value that comes into being, or back from memory. If it was kept across a call in the walk before, it takes a register that
// survives calls while there are any.
func (a *Allocator) begin(c flow.Class, v flow.Value, next, weight uint32, flags uint8) {
	s := &a.spiller
	s.put(c, v, next, weight, s.newPiece(v, flags), s.vals[v].crossed && s.safes[c] < a.regs.Saved[c])
	if s.last {
		s.meet(c, len(s.in[c])-1)
	}
}

// meet notes that the k-th value of a class is in a register at once with those before it. Local pieces find their way among themselves.
func (s *spiller) meet(c flow.Class, k int) {
	p := s.vals[s.in[c][k]].piece
	for _, w := range s.in[c][:k] {
		if q := s.vals[w].piece; s.flags[p]&s.flags[q]&local == 0 {
			s.meetings = append(s.meetings, meeting{p, q})
		}
	}
}

func (s *spiller) drop(c flow.Class, v flow.Value) {
	x := &s.vals[v]
	if x.safe {
		s.safes[c]--
	}
	in := s.in[c]
	last := in[len(in)-1]
	in[x.at-1] = last
	s.vals[last].at = x.at
	x.at = 0
	s.in[c] = in[:len(in)-1]
}

// leaveTo drops a value that is in its slot from now on.
func (s *spiller) leaveTo(c flow.Class, v flow.Value, at, kind uint32) {
	s.drop(c, v)
	s.vals[v].stored = true
	s.events = append(s.events, event{at, v<<2 | kind})
}

// shrink evicts what is worth least until at most n values of a class are left; it fails if the instruction reads them all.
func (s *spiller) shrink(c flow.Class, n int, at, kind, toKeep uint32) bool {
	for len(s.in[c]) > n {
		worst := s.worst(c, at, toKeep)
		if s.vals[worst].next == at {
			return false
		}
		s.leaveTo(c, worst, at, kind)
	}
	return true
}

// worst is the value to evict at an instruction: what costs least for the time that its register is free (Belady's rule, weighed). What is not
// safe costs toKeep less.
func (s *spiller) worst(c flow.Class, at, toKeep uint32) flow.Value {
	worst, cost, away := ^flow.Value(0), uint64(0), uint64(0)
	for _, v := range s.in[c] {
		x := &s.vals[v]
		d := uint64(0) // what the instruction reads stays
		if x.next != at {
			d = distance(x.next, at)
		}
		k := uint64(s.cost(x, toKeep))
		if m, n := k*away, cost*d; worst == ^flow.Value(0) || away == 0 && d > 0 || d > 0 && (m < n || m == n && v < worst) {
			worst, cost, away = v, k, d
		}
	}
	return worst
}

func distance(next, at uint32) uint64 {
	if next >= flow.Unread {
		return unreadFar
	}
	return uint64(next-at) + 1
}

// cost is what it takes to evict a value.
func (s *spiller) cost(x *state, toKeep uint32) uint32 {
	k := x.weight
	if !x.stored && s.flags[x.piece]&(born|isRead) != born {
		k += storeCost
	}
	if !x.safe {
		k -= min(k, toKeep)
	}
	return k
}

// walk goes through b and brings into registers what each instruction wants there.
func (a *Allocator) walk(b uint32) {
	f, s := a.f, &a.spiller
	blk := &f.Blocks[b]
	for i := blk.Insts.From; i < blk.Insts.To; i++ {
		in := &f.Insts[i]
		hard := in.Kind == flow.Op || in.Kind == flow.Branch
		if hard {
			for _, v := range f.Of(in.Uses) {
				x := &s.vals[v]
				if x.at == 0 {
					c := f.Class[v]
					if !s.shrink(c, a.regs.N[c]-1, i, evict, 0) {
						a.tooMany(i, c)
						return
					}
					a.begin(c, v, i, flow.LoadWeight, 0)
					x.stored = true
					s.events = append(s.events, event{i, v<<2 | load})
				}
				s.flags[x.piece] |= isRead
			}
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			v := f.Ops[row]
			if x := &s.vals[v]; x.at == 0 {
				continue
			} else if next := a.ranges.Rows[row].Next; next != flow.Dead {
				x.next, x.weight = next, a.ranges.Rows[row].Weight
			} else {
				s.drop(f.Class[v], v)
			}
		}
		if hard {
			if in.Uses.To < in.To && !a.results(in, i, blk.Insts.To-1) {
				return
			}
			continue
		}
		if in.Kind == flow.Call {
			for c := range flow.Class(flow.NumClasses) {
				a.cross(c, i)
			}
		}
		a.resultsAnywhere(in, i)
	}
}

// results puts the results of an Op into registers; end is the last instruction of the block.
func (a *Allocator) results(in *flow.Inst, i, end uint32) bool {
	f, s := a.f, &a.spiller
	if in.To-in.Uses.To == 1 && a.regs.N[f.Class[f.Ops[in.Uses.To]]] > 0 { // most often
		v, ahead := f.Ops[in.Uses.To], a.ranges.Rows[in.Uses.To]
		c := f.Class[v]
		s.shrink(c, a.regs.N[c]-1, i, retire, 0)
		if a.result(c, v, ahead, end); ahead.Next == flow.Dead {
			s.drop(c, v)
		}
		return true
	}
	var n [flow.NumClasses]int
	for _, v := range f.Of(in.Defs()) {
		n[f.Class[v]]++
	}
	for c, n := range n {
		if n > a.regs.N[c] {
			a.tooMany(i, flow.Class(c))
			return false
		}
		if n > 0 {
			s.shrink(flow.Class(c), a.regs.N[c]-n, i, retire, 0)
		}
	}
	dead := false
	for row := in.Uses.To; row < in.To; row++ {
		v := f.Ops[row]
		a.result(f.Class[v], v, a.ranges.Rows[row], end)
		dead = dead || a.ranges.Rows[row].Next == flow.Dead
	}
	if dead {
		s.dropDead(a, in)
	}
	return true
}

func (a *Allocator) result(c flow.Class, v flow.Value, ahead flow.Ahead, end uint32) {
	flags := uint8(0)
	if a.ranges.End[v] < end && !a.spiller.vals[v].crossed {
		flags = local
	}
	a.begin(c, v, ahead.Next, ahead.Weight, flags)
}

func (s *spiller) dropDead(a *Allocator, in *flow.Inst) {
	for row := in.Uses.To; row < in.To; row++ {
		if v := a.f.Ops[row]; a.ranges.Rows[row].Next == flow.Dead && s.vals[v].at > 0 {
			s.drop(a.f.Class[v], v)
		}
	}
}

// resultsAnywhere puts what it can of the results of a call, or of the arguments, into registers. The others are written to their slots at
// once.
func (a *Allocator) resultsAnywhere(in *flow.Inst, i uint32) {
	f, s := a.f, &a.spiller
	for row := in.Uses.To; row < in.To; row++ {
		v, next := f.Ops[row], a.ranges.Rows[row].Next
		if next == flow.Dead && in.Kind == flow.Args {
			continue
		}
		c := f.Class[v]
		a.begin(c, v, next, a.ranges.Rows[row].Weight, born)
		s.vals[v].mark = i + 1
		if len(s.in[c]) <= a.regs.N[c] {
			continue
		}
		worst := s.worst(c, i, 0)
		s.drop(c, worst)
		s.vals[worst].stored = true
		if s.vals[worst].mark != i+1 {
			s.events = append(s.events, event{i, worst<<2 | retire})
		}
	}
	for row := in.Uses.To; row < in.To; row++ {
		s.vals[f.Ops[row]].mark = 0
	}
	s.dropDead(a, in)
}

// cross evicts what cannot survive the call at i, or is not worth a copy to a register that does, and begins a piece for each value that stays.
func (a *Allocator) cross(c flow.Class, i uint32) {
	s := &a.spiller
	for k := 0; k < len(s.in[c]); {
		v := s.in[c][k]
		if x := &s.vals[v]; x.safe || s.cost(x, 0) > cheap {
			k++
		} else {
			s.leaveTo(c, v, i, retire)
		}
	}
	s.shrink(c, a.regs.Saved[c], i, retire, copyCost)
	s.safes[c] = len(s.in[c])
	for k, v := range s.in[c] {
		x := &s.vals[v]
		flags := uint8(crosses)
		if s.flags[x.piece]&isRead == 0 {
			flags |= s.flags[x.piece] & born
		}
		s.flags[x.piece] |= reaches
		piece := s.newPiece(v, flags)
		s.calls = append(s.calls, meeting{piece, x.piece})
		x.piece, x.safe, x.crossed = piece, true, true
		s.events = append(s.events, event{i, v<<2 | stay})
		if s.last {
			s.meet(c, k)
		}
	}
}

// leave notes what is in registers at the end of b.
func (s *spiller) leave(b uint32) {
	from := uint32(len(s.exit))
	for c := range s.in {
		for _, v := range s.in[c] {
			x := &s.vals[v]
			s.exit = append(s.exit, resident{v, x.piece, x.safe})
		}
	}
	s.exitOf[b] = span{from, uint32(len(s.exit))}
}

// tooMany reports an instruction that wants more registers of a class at once than there are.
func (a *Allocator) tooMany(i uint32, c flow.Class) {
	f := a.f
	in := &f.Insts[i]
	want, defs := 0, 0
	for _, v := range f.Of(in.Uses) {
		if x := &a.spiller.vals[v]; f.Class[v] == c && x.mark != i+1 {
			x.mark = i + 1
			want++
		}
	}
	for _, v := range f.Of(in.Defs()) {
		if f.Class[v] == c {
			defs++
		}
	}
	a.spiller.err = target.Errorf(target.Limit, "function %s: instruction %d needs %d %s registers at once and there are %d; give the file more", f.Name, i,
		max(want, defs), c, a.regs.N[c])
}
