package flow

import "github.com/rosmar-compiler/rosmar/arena"

// Ahead says what lies ahead of a value at a point. 8 bytes.
type Ahead struct {
	// Next is the position of the next use that wants a register, as an instruction number of the block at hand, or beyond its end as the
	// number that the instruction would have if the way there went on in a line; or Unread or Dead.
	Next uint32
	// Weight is how many loads it takes, in units of LoadWeight, to have the value in a register where it is wanted if it is in none here. Where
	// ways meet, each has its part of a load behind. Of what lies behind a call half counts, and nothing for a class of which no register survives
	// calls: the value would be lost there again.
	Weight uint32
}

const (
	Dead    = ^uint32(0)     // no use ahead
	Unread  = ^uint32(0) - 1 // live, but nothing ahead wants it in a register
	LiveOut = ^uint32(0)     // live beyond the block

	LoadWeight = 16 // the weight of one load

	farthest = 1 << 30
	heaviest = 1 << 20
)

// Ranges says of every value how long it lives in each block and what is ahead of it. Blocks that control never reaches have no ranges.
// A second Build of the same size allocates nothing.
type Ranges struct {
	Rows  []Ahead  // by row of Func.Ops: after the instruction, for a parameter at the head of its block; not for arguments of edges
	End   []uint32 // by value: position of its last use in the block that defines it, LiveOut if it lives on, 0 if it has no use
	In    []Ahead  // by row of Live: at the head of the block, Next counted from there
	InEnd []uint32 // by row of Live: what End is for the defining block

	vals  []ahead
	stale []bool             // by block: what is ahead of its end has changed
	half  [NumClasses]uint32 // by class: the shift of a weight for each call
}

// ahead is what the walk through a block knows of a value. 16 bytes.
type ahead struct {
	next   uint32
	weight uint32
	calls  uint32 // of the block that lie behind the point that next and weight are for
	last   uint32 // position of the last use
}

// Build finds the ranges of f. A use behind the exit of a loop is farther by exit for each loop that is left. The blocks are walked
// against their order in at most so many rounds, each through those for which the one before changed what is ahead: what lies behind more back edges
// than that seems farther away and lighter than it is.
func (r *Ranges) Build(f *Func, o *Loops, l *Live, regs *File, exit uint32, rounds int) {
	for c := range r.half {
		if r.half[c] = 1; regs.Saved[c] == 0 {
			r.half[c] = 31
		}
	}
	r.Rows, r.End = arena.Resized(r.Rows, len(f.Ops)), arena.Zeroed(r.End, f.Values())
	r.In, r.InEnd = arena.Resized(r.In, l.Rows()), arena.Resized(r.InEnd, l.Rows())
	for k := range r.In {
		r.In[k] = Ahead{Unread, 0}
	}
	for b := range f.Blocks {
		for row := f.Blocks[b].Params.From; row < f.Blocks[b].Params.To; row++ {
			r.Rows[row] = Ahead{Unread, 0}
		}
	}
	r.vals = arena.Resized(r.vals, f.Values())
	for v := range r.vals {
		r.vals[v].next = Dead
	}
	r.stale = arena.Resized(r.stale, len(f.Blocks))
	for b := range r.stale {
		r.stale[b] = true
	}
	for again := true; again && rounds > 0; rounds-- {
		again = false
		for k := len(o.Order) - 1; k >= 0; k-- {
			b := o.Order[k]
			if !r.stale[b] {
				continue
			}
			r.stale[b] = false
			r.behind(f, o, l, b, exit)
			if !r.walk(f, l, b) {
				continue
			}
			p := f.Blocks[b].Preds
			for _, e := range f.Preds[p.From:p.To] {
				from := f.Edges[e].From
				r.stale[from] = true
				again = again || o.Rank[from] >= uint32(k) && o.Rank[from] != NoBlock
			}
		}
	}
}

// behind sets what is ahead of the end of b.
func (r *Ranges) behind(f *Func, o *Loops, l *Live, b, exit uint32) {
	blk := &f.Blocks[b]
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		edge := &f.Edges[e]
		to := &f.Blocks[edge.To]
		far := blk.Insts.To
		if o.Depth[b] > o.Depth[edge.To] {
			far += exit * (o.Depth[b] - o.Depth[edge.To])
		}
		ways := uint32(to.Preds.Len())
		row := l.off[edge.To]
		for k, v := range l.In(edge.To) {
			x := r.wanted(v)
			in := r.In[row+uint32(k)]
			x.last = LiveOut
			x.next = min(x.next, beyond(in.Next, far))
			x.weight = min(x.weight+in.Weight/ways, heaviest)
		}
		for k, v := range f.Of(edge.Args) {
			x := r.wanted(v)
			in := r.Rows[to.Params.From+uint32(k)]
			if in.Next < Unread {
				in.Next -= to.Insts.From
			}
			x.last = max(x.last, blk.Insts.To-1)
			x.next = min(x.next, beyond(in.Next, far))
			x.weight = min(x.weight+in.Weight/ways, heaviest)
		}
	}
}

func beyond(at, far uint32) uint32 {
	if at >= Unread {
		return Unread
	}
	return min(at+far, farthest)
}

// wanted makes v live.
func (r *Ranges) wanted(v Value) *ahead {
	x := &r.vals[v]
	if x.next == Dead {
		*x = ahead{next: Unread}
	}
	return x
}

// walk goes through b against its order and reports whether what is ahead of its head has changed.
func (r *Ranges) walk(f *Func, l *Live, b uint32) (changed bool) {
	blk := &f.Blocks[b]
	calls := uint32(0)
	for i := blk.Insts.To; i > blk.Insts.From; {
		i--
		in := &f.Insts[i]
		for row := in.Uses.To; row < in.To; row++ {
			r.Rows[row] = r.define(f, f.Ops[row], calls)
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			v := f.Ops[row]
			r.Rows[row] = r.vals[v].packed(calls, r.half[f.Class[v]])
		}
		if in.Kind == Call {
			calls++
		}
		hard := in.Kind == Op || in.Kind == Branch
		for _, v := range f.Of(in.Uses) {
			x := &r.vals[v]
			if x.next == Dead {
				*x = ahead{next: Unread, last: i}
			}
			if hard {
				x.next, x.weight, x.calls = i, LoadWeight, calls
			}
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		is := r.define(f, f.Ops[row], calls)
		changed = changed || is != r.Rows[row]
		r.Rows[row] = is
	}
	row := l.off[b]
	for k, v := range l.In(b) {
		x := &r.vals[v]
		is := x.packed(calls, r.half[f.Class[v]])
		if is.Next < Unread {
			is.Next -= blk.Insts.From
		}
		if in := &r.In[row+uint32(k)]; is != *in {
			*in, changed = is, true
		}
		r.InEnd[row+uint32(k)] = x.last
		x.next = Dead
	}
	return changed
}

// define ends the life of v, which is defined here.
func (r *Ranges) define(f *Func, v Value, calls uint32) Ahead {
	x := &r.vals[v]
	if x.next == Dead {
		return Ahead{Dead, 0}
	}
	is := x.packed(calls, r.half[f.Class[v]])
	r.End[v], x.next = x.last, Dead
	return is
}

// packed is what is ahead at a point that has so many calls of the block behind it.
func (x *ahead) packed(calls, half uint32) Ahead {
	if x.next == Dead {
		return Ahead{Dead, 0}
	}
	return Ahead{x.next, x.weight >> min(31, (calls-x.calls)*half)}
}
