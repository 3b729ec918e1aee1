package scan

import (
	"cmp"
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

// maxLive bounds what is known to be live into one block, or many values that live through many blocks would cost their product. Half as
// many, those needed soonest, stay when there are more; the others go to their slots, where what comes without being expected is found.
const maxLive = 1024

// lookAhead finds when every operand is needed next and what is live into every block, in one walk against the order. Where a back edge leads
// is not known yet: its parameters count as live and not wanted, and what lives on around the loop is left to the scan.
func (a *Allocator) lookAhead() {
	f := a.f
	a.operands = arena.Resized(a.operands, len(f.Ops))
	a.work = arena.Resized(a.work, f.Values()) // all zero between uses
	a.reached = arena.Resized(a.reached, f.Values()+1)
	a.rows, a.cut = a.rows[:0], false
	order := a.loops.Order
	for k := len(order) - 1; k >= 0; k-- {
		a.lookBack(order[k], a.lookBehind(order[k]))
	}
}

// lookBehind lists in reached what is live at the end of a block, and returns how many they are.
func (a *Allocator) lookBehind(b uint32) (n int) {
	f, work, live := a.f, a.work, a.reached
	blk := &f.Blocks[b]
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		edge := &f.Edges[e]
		to := &a.blocks[edge.To]
		away := blk.Insts.To
		if d, o := a.loops.Depth[b], a.loops.Depth[edge.To]; o < d {
			away += min(d-o, 1<<14) * loopExit // no farther than a number holds
		}
		rows := a.rows[to.in.From:to.in.To]
		if n == 0 { // nothing is live yet, and no row is of a value that another is of
			for k, x := range rows {
				live[k] = x.value
				work[x.value] = ahead{x.when.near().later(away), int32(x.when) >> 31}
			}
			n, rows = len(rows), nil
		}
		for _, x := range rows {
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
				w = a.operands[target.Params.From+uint32(k)].when.fromHead(target.Insts.From)
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
	return n
}

// lookBack walks one block from its end, where n values are live, to its head, and notes what is live there.
func (a *Allocator) lookBack(b uint32, n int) {
	f, work, operands, live := a.f, a.work, a.operands, a.reached
	ops := f.Ops
	blk := &f.Blocks[b]
	first := blk.Insts.From
	calls := int32(0)
	insts := f.Insts[first:blk.Insts.To]
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
		o := operand{v, work[v].packed(calls)}
		if a.cut && !o.when.live() {
			o.when = unwanted // it may have been cut, and one that is dead has no place
		}
		operands[row] = o
		work[v] = ahead{}
	}
	// What was reached and not defined is live into the block.
	from := len(a.rows)
	m := from
	rows := slices.Grow(a.rows, n)[:m+n]
	for _, v := range live[:n] {
		d := &work[v]
		rows[m] = operand{v, d.packed(calls).fromHead(first)}
		if d.near != dead {
			m++
		}
		*d = ahead{}
	}
	if m-from > maxLive {
		soonestFirst(rows[from:m])
		m, a.cut = from+maxLive/2, true
	}
	a.rows = rows[:m]
	x := &a.blocks[b]
	x.in, x.known = flow.Span{From: uint32(from), To: uint32(m)}, true
	if calls > 0 || x.calls {
		a.crossed(b)
	}
	// Moves along the way into a block must leave what its branch tests in registers.
	if uses := f.Insts[blk.Insts.To-1].Uses; uses.Len() > 0 && blk.Succs.Len() == 1 {
		a.tested(uses, &a.blocks[f.Edges[blk.Succs.From].To])
	}
}

// crossed notes the calls of a block, or of the loop that it heads, for the loops around it.
func (a *Allocator) crossed(b uint32) {
	if h := a.loops.Header[b]; h != flow.NoBlock {
		a.blocks[h].calls = true
	}
	if a.loops.Heads[b] {
		// What the loop uses goes around with it.
		x := a.blocks[b].in
		for k := x.From; k < x.To; k++ {
			if w := &a.rows[k].when; w.near() > soonest-loopExit {
				*w |= crosses
			}
		}
	}
}

func soonestFirst(rows []operand) {
	slices.SortFunc(rows, func(x, y operand) int {
		return cmp.Or(cmp.Compare(y.when.near(), x.when.near()), cmp.Compare(x.value, y.value))
	})
}

// tested counts what a branch to one block tests.
func (a *Allocator) tested(uses flow.Span, to *block) {
	var n [flow.NumClasses]uint32
	for _, v := range a.f.Of(uses) {
		n[a.f.Class[v]]++
	}
	for c := range n {
		to.tests[c] = max(to.tests[c], n[c])
	}
}
