package scan

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// when says when a value is next needed in a register, as an instruction number of the block at hand, or beyond its end as the
// number that the instruction would have if the way there went on in a line. The top bit says that a call comes before the value's last use.
type when uint32

const (
	crosses when = 1 << 31
	never   when = crosses - 1 // no use left
	stays   when = never - 1   // live, but nothing wants it in a register
	latest  when = stays - 1
)

// leaving a loop looks this much further away than it is, so that what is used inside comes first.
const loopExit = 1 << 16

func (w when) time() when    { return w &^ crosses }
func (w when) crosses() bool { return w&crosses != 0 }
func (w when) live() bool    { return w.time() != never }

// sum is a time a distance later.
func sum(t when, d uint32) when { return when(min(uint64(t)+uint64(d), uint64(latest))) }

// ahead is what the walk against the order knows of a value.
type ahead struct {
	next when
	mark int32 // calls counted when it became live in this block, -1 when one comes before its last use in a block further on
}

// packed is when the value is needed, after that many calls of the block. The sign of the difference is the bit of calls.
func (w *ahead) packed(calls int32) when { return w.next | when(w.mark-calls)&crosses }

// nextUses fills next for every operand, into for every value live into a block, in one walk against the order. Where a back edge leads is not
// known yet: what it brings counts as live and not wanted. A second walk that knows better was tried, and saves no moves.
func (a *Allocator) nextUses() {
	f := a.f
	a.next = arena.Resized(a.next, len(f.Ops))
	a.into = arena.Resized(a.into, a.live.Rows())
	for i := range a.into {
		a.into[i] = stays
	}
	for b := range f.Blocks {
		for row := f.Blocks[b].Params.From; row < f.Blocks[b].Params.To; row++ {
			a.next[row] = stays
		}
	}
	a.work = arena.Resized(a.work, f.Values())
	for v := range a.work {
		a.work[v] = ahead{next: never}
	}
	order := a.loops.Order
	for k := len(order) - 1; k >= 0; k-- {
		a.lookBack(order[k])
	}
}

// lookBack walks one block from its end to its head.
func (a *Allocator) lookBack(b uint32) {
	f, work, next := a.f, a.work, a.next
	ops := f.Ops
	blk := &f.Blocks[b]
	first, end := blk.Insts.From, blk.Insts.To
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		edge := &f.Edges[e]
		to := edge.To
		away := when(end)
		if d, o := a.loops.Depth[b], a.loops.Depth[to]; o < d {
			away = sum(away, (d-o)*loopExit)
		}
		into := a.into[a.live.Row(to):]
		for k, v := range a.live.In(to) {
			work[v].need(away, into[k])
		}
		params := f.Blocks[to].Params
		start := when(f.Blocks[to].Insts.From)
		for k, v := range f.Of(edge.Args) {
			w := next[params.From+uint32(k)]
			if w.time() < stays {
				w -= start // from the head of its block; the bit of calls stays
			}
			work[v].need(away, w)
		}
	}
	calls := int32(0)
	for i := int(end) - 1; i >= int(first); i-- {
		in := &f.Insts[i]
		for row := in.Uses.To; row < in.To; row++ {
			w := &work[ops[row]]
			next[row] = w.packed(calls)
			w.next = never
		}
		if in.Kind == flow.Call {
			calls++
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			next[row] = work[ops[row]].packed(calls)
		}
		wanted := in.Kind == flow.Op || in.Kind == flow.Branch
		for row := in.Uses.From; row < in.Uses.To; row++ {
			w := &work[ops[row]]
			if w.next == never {
				*w = ahead{stays, calls}
			}
			if wanted {
				w.next = when(i)
			}
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		w := &work[ops[row]]
		next[row] = w.packed(calls)
		w.next = never
	}
	into := a.into[a.live.Row(b):]
	for k, v := range a.live.In(b) {
		w := &work[v]
		t := w.packed(calls)
		if t.time() < stays {
			t -= when(first)
		}
		into[k] = t
		w.next = never
	}
}

// need makes a value live at the end of a block, for what is w away from the point away.
func (d *ahead) need(away, w when) {
	t := w.time()
	if t == never {
		return
	}
	if t != stays {
		t = sum(away, uint32(t))
	}
	if d.next == never {
		*d = ahead{next: t}
	} else {
		d.next = min(d.next, t)
	}
	if w.crosses() {
		d.mark = -1
	}
}
