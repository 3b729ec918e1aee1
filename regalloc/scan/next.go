package scan

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// when says how near the next use of a value is that wants a register, the greater the nearer: soonest less an instruction number of
// the block at hand, or beyond its end less the number that the instruction would have if the way there went on in a line. The top bit
// says that a call comes before the value's last use.
type when uint32

const (
	dead     when = 0 // no use left
	unwanted when = 1 // live, but nothing wants it in a register
	latest   when = 2
	soonest  when = 1<<31 - 1
	crosses  when = 1 << 31
)

// leaving a loop looks this much further away than it is, so that what is used inside comes first.
const loopExit = 1 << 16

func (w when) near() when    { return w &^ crosses }
func (w when) crosses() bool { return w&crosses != 0 }
func (w when) live() bool    { return w&^crosses != dead }

// later is what is near one point, seen from a point that is d before it. It must be live.
func (w when) later(d uint32) when {
	return when(max(int64(w)-int64(d), int64(min(w, latest))))
}

// fromHead counts a time of a block that begins at instruction first from its head, atHead the other way around. Both keep the bit of calls.
func (w when) fromHead(first uint32) when {
	if w.near() > unwanted {
		w += when(first)
	}
	return w
}

func (w when) atHead(first uint32) when { return w.near().later(first) | w&crosses }

// operand is a row of Ops with what lies behind its instruction. 8 bytes.
type operand struct {
	value flow.Value
	when  when
}

// ahead is what the walk against the order knows of a value, zero while it is dead. 8 bytes.
type ahead struct {
	near when
	mark int32 // calls counted when it became live in this block, -1 when one comes before its last use in a block further on
}

// packed is when the value is needed, after that many calls of the block. The sign of the difference is the bit of calls.
func (d *ahead) packed(calls int32) when { return d.near | when(d.mark-calls)&crosses }

// lookAhead finds when every operand is needed next and what is live into every block, in one walk against the order. Where a back edge leads
// is not known yet: its parameters count as live and not wanted, and what lives on around the loop is left to the scan.
func (a *Allocator) lookAhead() {
	f := a.f
	a.operands = arena.Resized(a.operands, len(f.Ops))
	a.work = arena.Resized(a.work, f.Values()) // all zero between uses
	a.reached = arena.Resized(a.reached, f.Values()+1)
	a.rows = a.rows[:0]
	order := a.loops.Order
	for k := len(order) - 1; k >= 0; k-- {
		a.lookBack(order[k])
	}
}

// lookBack walks one block from its end to its head.
func (a *Allocator) lookBack(b uint32) {
	f, work, operands, live, n := a.f, a.work, a.operands, a.reached, 0
	ops := f.Ops
	blk := &f.Blocks[b]
	first, end := blk.Insts.From, blk.Insts.To
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		edge := &f.Edges[e]
		to := &a.blocks[edge.To]
		away := end
		if d, o := a.loops.Depth[b], a.loops.Depth[edge.To]; o < d {
			away += min(d-o, 1<<14) * loopExit // no farther than a number holds
		}
		for _, x := range a.rows[to.in.from:to.in.to] {
			d := &work[x.value]
			live[n] = x.value
			if d.near == dead {
				n++
			}
			d.near = max(d.near, x.when.near().later(away))
			d.mark |= int32(x.when) >> 31
		}
		if edge.Args.Len() == 0 {
			continue
		}
		target := &f.Blocks[edge.To]
		for k, v := range f.Of(edge.Args) {
			w := unwanted
			if to.known {
				w = operands[target.Params.From+uint32(k)].when.fromHead(target.Insts.From)
			}
			if !w.live() {
				continue
			}
			d := &work[v]
			live[n] = v
			if d.near == dead {
				n++
			}
			d.near = max(d.near, w.near().later(away))
			d.mark |= int32(w) >> 31
		}
	}
	calls := int32(0)
	insts := f.Insts[first:end]
	for k := len(insts) - 1; k >= 0; k-- {
		x := &insts[k]
		rows, out := ops[x.Uses.From:x.To], operands[x.Uses.From:x.To]
		uses := x.Uses.Len()
		for j := uses; j < len(rows) && j < len(out); j++ {
			v := rows[j]
			d := &work[v]
			out[j] = operand{v, d.packed(calls)}
			*d = ahead{}
		}
		wanted := soonest - when(first) - when(k)
		if x.Kind != flow.Op && x.Kind != flow.Branch {
			wanted = unwanted
			if x.Kind == flow.Call {
				calls++
			}
		}
		rows, out = rows[:uses], out[:uses]
		// A value that the instruction reads twice is needed after both what it is after the instruction.
		for j, v := range rows {
			out[j] = operand{v, work[v].packed(calls)}
		}
		for _, v := range rows {
			d := work[v]
			live[n] = v
			if d.near == dead {
				n++
				d.mark = calls
			}
			d.near = max(d.near, wanted)
			work[v] = d
		}
	}
	for row := blk.Params.From; row < blk.Params.To; row++ {
		v := ops[row]
		operands[row] = operand{v, work[v].packed(calls)}
		work[v] = ahead{}
	}
	// What was reached and not defined is live into the block.
	m := len(a.rows)
	rows := slices.Grow(a.rows, n)[:m+n]
	from := m
	for _, v := range live[:n] {
		d := &work[v]
		rows[m] = operand{v, d.packed(calls).fromHead(first)}
		if d.near != dead {
			m++
		}
		*d = ahead{}
	}
	a.rows = rows[:m]
	x := &a.blocks[b]
	x.in, x.known = span{uint32(from), uint32(m)}, true
	if calls > 0 || x.calls {
		if h := a.loops.Header[b]; h != flow.NoBlock {
			a.blocks[h].calls = true
		}
		if a.loops.Heads[b] {
			// What the loop uses goes around with it.
			for k := from; k < m; k++ {
				if rows[k].when.near() > soonest-loopExit {
					rows[k].when |= crosses
				}
			}
		}
	}
	// Moves along the way into a block must leave what its branch tests in registers.
	if uses := f.Insts[end-1].Uses; uses.Len() > 0 && blk.Succs.Len() == 1 {
		var n [flow.NumClasses]uint32
		for _, v := range f.Of(uses) {
			n[f.Class[v]]++
		}
		to := &a.blocks[f.Edges[blk.Succs.From].To]
		for c := range n {
			to.tests[c] = max(to.tests[c], n[c])
		}
	}
}
