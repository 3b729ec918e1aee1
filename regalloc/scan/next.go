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
	next  when
	calls uint32 // calls counted when it became live in this block
	later bool   // a call comes before its last use, in a block further on
}

// pressure is how many values of each class are live at once in a block or loop, and how many across a call.
type pressure struct {
	live, across [flow.NumClasses]uint32
	calls        bool
}

func (p *pressure) max(o *pressure) {
	for c := range p.live {
		p.live[c], p.across[c] = max(p.live[c], o.live[c]), max(p.across[c], o.across[c])
	}
	p.calls = p.calls || o.calls
}

// nextUses fills next for every operand, into for every value live into a block, and the pressures. Blocks in loops are walked twice: the
// first time what the back edge brings is not known.
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
	a.block = arena.Resized(a.block, len(f.Blocks))
	loops := false
	order := a.loops.Order
	for k := len(order) - 1; k >= 0; k-- {
		a.lookBack(order[k])
		loops = loops || a.loops.Heads[order[k]]
	}
	if loops {
		for k := len(order) - 1; k >= 0; k-- {
			if a.loops.Depth[order[k]] > 0 {
				a.lookBack(order[k])
			}
		}
	}
	a.loop = arena.Resized(a.loop, len(f.Blocks))
	clear(a.loop)
	for k := len(order) - 1; k >= 0; k-- {
		b := order[k]
		p := &a.block[b]
		if a.loops.Heads[b] {
			a.loop[b].max(p)
			p = &a.loop[b]
		}
		if h := a.loops.Header[b]; h != flow.NoBlock {
			a.loop[h].max(p)
		}
	}
}

// lookBack walks one block from its end to its head.
func (a *Allocator) lookBack(b uint32) {
	f := a.f
	blk := &f.Blocks[b]
	first, end := blk.Insts.From, blk.Insts.To
	p := &a.block[b]
	*p = pressure{}
	var live [flow.NumClasses]uint32
	calls := uint32(0)
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		to := f.Edges[e].To
		away := when(end)
		if d, o := a.loops.Depth[b], a.loops.Depth[to]; o < d {
			away = sum(away, (d-o)*loopExit)
		}
		row := a.live.Row(to)
		for k, v := range a.live.In(to) {
			a.need(v, away, a.into[row+uint32(k)], &live)
		}
		params, args := f.Blocks[to].Params, f.Edges[e].Args
		start := when(f.Blocks[to].Insts.From)
		for k := range uint32(args.Len()) {
			w := a.next[params.From+k]
			if t := w.time(); t < stays {
				w = w - start // relative; the bit of calls stays
			}
			a.need(f.Ops[args.From+k], away, w, &live)
		}
	}
	p.live = live
	for i := int(end) - 1; i >= int(first); i-- {
		in := &f.Insts[i]
		for row := in.Uses.To; row < in.To; row++ {
			a.define(row, calls, &live)
		}
		reg := in.Kind == flow.Op || in.Kind == flow.Branch
		if in.Kind == flow.Call {
			for c := range live {
				p.across[c] = max(p.across[c], live[c])
			}
			p.calls = true
			calls++
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			w := &a.work[f.Ops[row]]
			a.next[row] = w.packed(calls)
		}
		for row := in.Uses.From; row < in.Uses.To; row++ {
			v := f.Ops[row]
			w := &a.work[v]
			if w.next == never {
				live[f.Class[v]]++
				*w = ahead{next: stays, calls: calls}
			}
			if reg {
				w.next = when(i)
			}
		}
		for c := range live {
			p.live[c] = max(p.live[c], live[c])
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		a.define(row, calls, &live)
	}
	row := a.live.Row(b)
	for k, v := range a.live.In(b) {
		w := &a.work[v]
		t := w.packed(calls)
		if t.time() < stays {
			t -= when(first)
		}
		a.into[row+uint32(k)] = t
		w.next = never
	}
}

// need makes v live at the end of a block, for what is w away from the point away.
func (a *Allocator) need(v flow.Value, away, w when, live *[flow.NumClasses]uint32) {
	t := w.time()
	if t == never {
		return
	}
	if t != stays {
		t = sum(away, uint32(t))
	}
	d := &a.work[v]
	if d.next == never {
		live[a.f.Class[v]]++
		*d = ahead{next: t, later: w.crosses()}
		return
	}
	d.next = min(d.next, t)
	d.later = d.later || w.crosses()
}

func (w *ahead) packed(calls uint32) when {
	if w.next != never && (w.later || calls > w.calls) {
		return w.next | crosses
	}
	return w.next
}

// define ends the life of what a row defines.
func (a *Allocator) define(row, calls uint32, live *[flow.NumClasses]uint32) {
	v := a.f.Ops[row]
	w := &a.work[v]
	a.next[row] = w.packed(calls)
	if w.next != never {
		live[a.f.Class[v]]--
		w.next = never
	}
}
