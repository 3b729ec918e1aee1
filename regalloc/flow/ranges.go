package flow

import "github.com/rosmar-compiler/rosmar/arena"

// Ranges says of every value how long it lives in each block and how far its next use in a register is. Positions are numbers of instructions.
// Blocks that control never reaches have no ranges. A second Build of the same size allocates nothing.
type Ranges struct {
	// Next has one entry for each row of Func.Ops: the position of the value's next use in a register after that row's
	// instruction, for a parameter from the head of its block on. Beyond the end of the block positions count on as distances do. Or it is
	// Unread or Dead. The argument of an edge has no entry.
	Next []uint32
	// End is by value: the position of its last use in the block that defines it, LiveOut if it lives on, 0 if it has no use.
	End []uint32
	// InNext and InEnd are aligned with the lists of Live: the distance of the next use from the head of the block, or Unread, and the
	// position of the last use in the block, or LiveOut.
	InNext, InEnd []uint32

	// Weight and InWeight are aligned with Next and InNext: how many loads it takes, in units of LoadWeight, to have the value where it is
	// wanted if it is not in a register at this point. Where ways meet, each has its part of a load behind; of what lies behind a call half counts,
	// and nothing for a class that no register saves across calls: it would be lost there again.
	Weight, InWeight []uint32

	first []uint32           // aligned likewise: distance of the first use within the block, Unread if it has none in a register
	at    []uint32           // by row of a parameter: its distance from the head of the block
	cur   []uint32           // by value
	last  []uint32           // by value
	w     []uint32           // by value
	since []uint32           // by value: calls of the block, counted from its end, behind which w holds
	calls []uint32           // by block
	half  [NumClasses]uint32 // by class: the shift of a weight for each call
}

// LoadWeight is the weight of one load.
const LoadWeight = 16

const (
	Dead     = ^uint32(0)     // no use ahead
	Unread   = ^uint32(0) - 1 // live, but nothing ahead wants it in a register
	LiveOut  = ^uint32(0)     // live beyond the block
	farthest = 1 << 30
	heaviest = 1 << 20
)

// Build finds the ranges of f. A use behind the exit of a loop is farther by exit for each loop that is left. Distances are found in so
// many walks over the blocks: with n walks they are right for uses that lie behind fewer than n back edges, else too long.
func (r *Ranges) Build(f *Func, o *Loops, l *Live, regs *File, exit uint32, walks int) {
	for c := range r.half {
		if r.half[c] = 1; regs.Saved[c] == 0 {
			r.half[c] = 31
		}
	}
	r.Weight, r.InWeight = arena.Resized(r.Weight, len(f.Ops)), arena.Zeroed(r.InWeight, len(l.vals))
	r.w, r.since = arena.Zeroed(r.w, f.Values()), arena.Zeroed(r.since, f.Values())
	r.calls = arena.Resized(r.calls, len(f.Blocks))
	r.Next, r.at = arena.Resized(r.Next, len(f.Ops)), arena.Resized(r.at, len(f.Ops))
	r.End = arena.Resized(r.End, f.Values())
	clear(r.End)
	r.InNext, r.InEnd = arena.Resized(r.InNext, len(l.vals)), arena.Resized(r.InEnd, len(l.vals))
	r.first = arena.Resized(r.first, len(l.vals))
	r.cur, r.last = arena.Resized(r.cur, f.Values()), arena.Resized(r.last, f.Values())
	for v := range r.cur {
		r.cur[v] = Dead
	}
	clear(r.last)
	for _, b := range o.Order {
		r.within(f, l, b)
	}
	for again := true; again && walks > 0; walks-- {
		again = false
		for i := len(o.Order) - 1; i >= 0; i-- {
			if r.through(f, o, l, o.Order[i], exit) {
				again = true
			}
		}
	}
	for _, b := range o.Order {
		r.rows(f, o, l, b, exit)
	}
}

// within finds what a block says of its values by itself.
func (r *Ranges) within(f *Func, l *Live, b uint32) {
	blk := &f.Blocks[b]
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		for _, v := range l.In(f.Edges[e].To) {
			r.last[v] = LiveOut
		}
		for _, v := range f.Of(f.Edges[e].Args) {
			r.last[v] = max(r.last[v], blk.Insts.To-1)
		}
	}
	calls := uint32(0)
	for i := blk.Insts.To; i > blk.Insts.From; {
		i--
		in := &f.Insts[i]
		if in.Kind == Call {
			calls++
		}
		for _, v := range f.Of(in.Defs()) {
			r.End[v], r.last[v], r.cur[v] = r.last[v], 0, Dead
		}
		hard := in.Kind == Op || in.Kind == Branch
		for _, v := range f.Of(in.Uses) {
			r.last[v] = max(r.last[v], i)
			if hard {
				r.cur[v], r.since[v] = i-blk.Insts.From, calls
			}
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		v := f.Ops[row]
		r.End[v], r.at[row] = r.last[v], r.cur[v]
		if r.at[row] == Dead && r.last[v] > 0 {
			r.at[row] = Unread
		}
		r.Weight[row] = 0
		if r.cur[v] < Unread {
			r.Weight[row] = LoadWeight >> min(31, (calls-r.since[v])*r.half[f.Class[v]])
		}
		r.last[v], r.cur[v], r.since[v] = 0, Dead, 0
	}
	r.calls[b] = calls
	for k, v := range l.In(b) {
		x := l.off[b] + uint32(k)
		r.InEnd[x], r.first[x] = r.last[v], min(r.cur[v], Unread)
		r.InNext[x] = r.first[x]
		if r.first[x] < Unread {
			r.InWeight[x] = LoadWeight >> min(31, (calls-r.since[v])*r.half[f.Class[v]])
		}
		r.last[v], r.cur[v], r.since[v] = 0, Dead, 0
	}
}

// ahead sets cur for the end of b, which counts as position end.
func (r *Ranges) ahead(f *Func, o *Loops, l *Live, b, end, exit uint32) {
	blk := &f.Blocks[b]
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		edge := &f.Edges[e]
		far := end
		if o.Depth[b] > o.Depth[edge.To] {
			far += exit * (o.Depth[b] - o.Depth[edge.To])
		}
		base := l.off[edge.To]
		ways := uint32(f.Blocks[edge.To].Preds.Len())
		for k, v := range l.In(edge.To) {
			r.cur[v] = min(r.cur[v], beyond(r.InNext[base+uint32(k)], far))
			r.w[v] += r.InWeight[base+uint32(k)] / ways
		}
		params := f.Blocks[edge.To].Params.From
		for k, v := range f.Of(edge.Args) {
			r.cur[v] = min(r.cur[v], beyond(r.at[params+uint32(k)], far))
			r.w[v] += r.Weight[params+uint32(k)] / ways
		}
	}
}

func beyond(at, far uint32) uint32 {
	if at >= Unread {
		return Unread
	}
	return min(at+far, farthest)
}

// through brings distances from the successors of b to its head and reports a change.
func (r *Ranges) through(f *Func, o *Loops, l *Live, b, exit uint32) (changed bool) {
	blk := &f.Blocks[b]
	n := uint32(blk.Insts.Len())
	r.ahead(f, o, l, b, n, exit)
	base := l.off[b]
	for k, v := range l.In(b) {
		x := base + uint32(k)
		if r.first[x] != Unread {
			continue
		}
		if r.cur[v] < r.InNext[x] {
			r.InNext[x], changed = r.cur[v], true
		}
		if w := min(r.w[v]>>min(31, r.calls[b]*r.half[f.Class[v]]), heaviest); w != r.InWeight[x] {
			r.InWeight[x], changed = w, true
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		v := f.Ops[row]
		if r.at[row] < n {
			continue
		}
		if r.cur[v] < r.at[row] {
			r.at[row], changed = r.cur[v], true
		}
		if w := min(r.w[v]>>min(31, r.calls[b]*r.half[f.Class[v]]), heaviest); w != r.Weight[row] {
			r.Weight[row], changed = w, true
		}
	}
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		for _, v := range l.In(f.Edges[e].To) {
			r.cur[v], r.w[v] = Dead, 0
		}
		for _, v := range f.Of(f.Edges[e].Args) {
			r.cur[v], r.w[v] = Dead, 0
		}
	}
	return changed
}

// rows writes Next for the rows of a block.
func (r *Ranges) rows(f *Func, o *Loops, l *Live, b, exit uint32) {
	blk := &f.Blocks[b]
	r.ahead(f, o, l, b, blk.Insts.To, exit)
	calls := uint32(0)
	for i := blk.Insts.To; i > blk.Insts.From; {
		i--
		in := &f.Insts[i]
		for row := in.Uses.To; row < in.To; row++ {
			v := f.Ops[row]
			r.Next[row], r.Weight[row] = r.cur[v], r.weight(f, v, calls)
			r.cur[v], r.w[v], r.since[v] = Dead, 0, 0
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			v := f.Ops[row]
			r.Next[row], r.Weight[row] = r.cur[v], r.weight(f, v, calls)
		}
		if in.Kind == Call {
			calls++
		}
		hard := in.Kind == Op || in.Kind == Branch
		for _, v := range f.Of(in.Uses) {
			if hard {
				r.cur[v], r.w[v], r.since[v] = i, LoadWeight, calls
			} else if r.cur[v] == Dead {
				r.cur[v] = Unread
			}
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		v := f.Ops[row]
		r.Next[row] = r.cur[v]
		r.cur[v], r.w[v], r.since[v] = Dead, 0, 0
	}
	for _, v := range l.In(b) {
		r.cur[v], r.w[v], r.since[v] = Dead, 0, 0
	}
}

// weight is what v weighs behind an instruction that has so many calls of its block behind it.
func (r *Ranges) weight(f *Func, v Value, calls uint32) uint32 {
	return min(r.w[v]>>min(31, (calls-r.since[v])*r.half[f.Class[v]]), heaviest)
}

// Bytes is the size of the storage, used or not.
func (r *Ranges) Bytes() int {
	return 4 * (cap(r.Next) + cap(r.End) + cap(r.InNext) + cap(r.InEnd) + cap(r.first) + cap(r.at) + cap(r.cur) + cap(r.last))
}
