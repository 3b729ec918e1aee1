package verify

import (
	"math"
	"slices"
	"sort"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// region is a loop as the checkers see it: points head < p < end of the flattened order are its body.
type region struct {
	inst      ir.Inst
	head, end int32
	up        int32 // index of the region around it, -1 at top level
	runs      bool  // every instruction of the body is known to run
}

// flattened is a function with the bodies of its loops right behind the loop instructions. Points count from 1.
type flattened struct {
	m       *ir.Module
	insts   []ir.Inst // by point
	in      []int32   // by point: index of the innermost region around it, -1 none
	regions []region  // in order of head
}

func flatten(m *ir.Module, f ir.Func) *flattened {
	o := &flattened{m: m, insts: []ir.Inst{0}, in: []int32{-1}}
	type place struct {
		blocks []ir.Block
		order  []ir.Inst
		region int32
	}
	stack := []place{{blocks: m.BlocksOf(f), region: -1}}
	for len(stack) > 0 {
		t := &stack[len(stack)-1]
		switch {
		case len(t.order) > 0:
			i := t.order[0]
			t.order = t.order[1:]
			up := t.region
			o.insts, o.in = append(o.insts, i), append(o.in, up)
			if op := m.Insts.At(i).Op; op.Is(ir.FlagRegion) {
				g := m.Regions.Get(i)
				runs := up < 0 || o.regions[up].runs
				if op != ir.OpLoop || g.Axis == 0 {
					runs = false
				} else if n, _ := m.Axes.At(g.Axis).Trips(); n == 0 {
					runs = false
				}
				o.regions = append(o.regions, region{inst: i, head: int32(len(o.insts) - 1), up: up, runs: runs})
				stack = append(stack, place{blocks: m.BlockList.Of(g.Blocks), region: int32(len(o.regions) - 1)})
			}
		case len(t.blocks) > 0:
			t.order = m.OrderOf(t.blocks[0])
			t.blocks = t.blocks[1:]
		default:
			if t.region >= 0 {
				o.regions[t.region].end = int32(len(o.insts))
			}
			stack = stack[:len(stack)-1]
		}
	}
	return o
}

// symbolic reports an operand whose place in its tensor is an expression or in a register.
func symbolic(a ir.Arg) bool {
	return a.Kind == ir.ArgSym || a.Kind == ir.ArgSymPW || a.Kind == ir.ArgRegAP
}

// eachLoc calls f with the locations that an operand may touch.
func eachLoc(m *ir.Module, a ir.Arg, f func(ir.Loc)) {
	if l := m.LocOf(a); l != 0 {
		f(l)
	} else if symbolic(a) {
		first, n := m.LocsOf(m.Syms.At(ir.Sym(a.Ref)).Set)
		for l := first; l < first+ir.Loc(n); l++ {
			f(l)
		}
	}
}

// spans are the points from which and to which each location on chip is live, both included; 0 where nothing touches it.
// A location that is touched inside of a loop and outside is live up to the end of the loop that it leaves, or enters; one
// that a single loop touches is live over all of it unless every turn writes what it reads before it reads it.
func spans(m *ir.Module, f ir.Func) (from, to arena.Column[ir.Loc, int32]) {
	o := flatten(m, f)
	touched := func(p int32, f func(ir.Loc)) {
		for _, a := range m.AllArgs(o.insts[p]) {
			eachLoc(m, a, func(l ir.Loc) {
				if m.Locs.At(l).Space.OnChip() {
					f(l)
				}
			})
		}
	}
	var first, last arena.Column[ir.Loc, int32]
	for p := int32(1); p < int32(len(o.insts)); p++ {
		touched(p, func(l ir.Loc) {
			if first.Get(l) == 0 {
				first.Set(l, p)
			}
			last.Set(l, p)
		})
	}
	if len(o.regions) == 0 {
		return first, last
	}
	// Forwards the regions around a point lie on a stack by ascending heads, backwards by descending ends.
	var stack []int32
	for p, next := int32(1), 0; p < int32(len(o.insts)); p++ {
		for len(stack) > 0 && o.regions[stack[len(stack)-1]].end <= p {
			stack = stack[:len(stack)-1]
		}
		touched(p, func(l ir.Loc) {
			if last.Get(l) != p {
				return
			}
			to.Set(l, p)
			if k := sort.Search(len(stack), func(k int) bool { return o.regions[stack[k]].head > first.Get(l) }); k < len(stack) {
				to.Set(l, o.regions[stack[k]].end-1)
			}
		})
		if next < len(o.regions) && o.regions[next].head == p {
			stack = append(stack, int32(next))
			next++
		}
	}
	stack = stack[:0]
	local := map[ir.Loc]int32{} // touched by one outermost region only
	for p := int32(len(o.insts)) - 1; p > 0; p-- {
		for len(stack) > 0 && o.regions[stack[len(stack)-1]].head >= p {
			stack = stack[:len(stack)-1]
		}
		mark := len(stack)
		for r := o.in[p]; r >= 0 && (mark == 0 || r != stack[mark-1]); r = o.regions[r].up {
			stack = append(stack, r)
		}
		slices.Reverse(stack[mark:])
		touched(p, func(l ir.Loc) {
			if first.Get(l) != p {
				return
			}
			from.Set(l, p)
			if k := sort.Search(len(stack), func(k int) bool { return o.regions[stack[k]].end <= last.Get(l) }); k < len(stack) {
				from.Set(l, o.regions[stack[k]].head)
			}
			if len(stack) > 0 && last.Get(l) < o.regions[stack[0]].end {
				local[l] = stack[0]
			}
		})
	}
	o.widen(local, &from, &to)
	return from, to
}

// use is one access of a location that a single region touches.
type use struct {
	arg         ir.Arg
	read, write bool
	certain     bool // it is known to run
}

// widen makes those locations live over their region that a turn may read as an earlier one left them.
func (o *flattened) widen(local map[ir.Loc]int32, from, to *arena.Column[ir.Loc, int32]) {
	m := o.m
	uses := map[ir.Loc][]use{}
	for p := int32(1); p < int32(len(o.insts)); p++ {
		r := o.in[p]
		if r < 0 {
			continue
		}
		i := o.insts[p]
		note := func(a ir.Arg, read, write bool) {
			eachLoc(m, a, func(l ir.Loc) {
				if _, ok := local[l]; ok {
					uses[l] = append(uses[l], use{a, read, write, o.regions[r].runs})
				}
			})
		}
		outs := m.Outs(i)
		for _, a := range m.AllArgs(i)[:len(m.AllArgs(i))-len(outs)] {
			note(a, true, false)
		}
		for _, a := range outs {
			note(a, m.ReadsDst(i), true)
		}
	}
	shared := o.sharedAxis()
	for l, r := range local { // each by itself: no order to keep
		if turnsMeet(m, l, uses[l], shared) {
			from.Set(l, o.regions[r].head)
			to.Set(l, o.regions[r].end-1)
		}
	}
}

// sharedAxis reports two loops that count with one axis, so that an index may mean two things.
func (o *flattened) sharedAxis() bool {
	var seen arena.Column[ir.Axis, bool]
	for _, r := range o.regions {
		if a := o.m.Regions.Get(r.inst).Axis; a != 0 {
			if seen.Get(a) {
				return true
			}
			seen.Set(a, true)
		}
	}
	return false
}

// maxExtent is more bytes than a partition on chip has.
const maxExtent = 1 << 20

// turnsMeet reports a read of a location that may find what an earlier turn wrote: not all of it was written for certain earlier in
// the same turn.
func turnsMeet(m *ir.Module, l ir.Loc, uses []use, sharedAxis bool) bool {
	o := &owners{left: math.MaxInt64}
	r := m.Locs.At(l)
	if r.Bytes > maxExtent || r.Addr > maxExtent || r.Addr < 0 {
		return true // it has no place that Bounds allows
	}
	all := ir.APRow{Loc: l, Dtype: target.Uint8, Parts: uint16(r.Parts)}
	all.Pairs = [5]ir.Pair{{Step: int32(r.Bytes), Num: r.Parts}, {Step: 1, Num: uint32(r.Bytes)}}
	var indexed []ir.Arg
	for _, u := range uses {
		if !u.certain {
			return true
		}
		fp := m.Footprint(&all)
		if !symbolic(u.arg) {
			fp = m.FootprintOf(u.arg.AP())
		}
		if u.read && !o.holds(&fp) {
			same := func(w ir.Arg) bool {
				return w.Kind == u.arg.Kind && u.arg.Kind != ir.ArgRegAP && *m.Syms.At(ir.Sym(w.Ref)) == *m.Syms.At(ir.Sym(u.arg.Ref))
			}
			if sharedAxis || !symbolic(u.arg) || !slices.ContainsFunc(indexed, same) {
				return true
			}
		}
		if u.write && symbolic(u.arg) {
			indexed = append(indexed, u.arg)
		} else if u.write {
			o.write(&fp, l)
		}
	}
	return false
}

// oneSlot reports two blocks of a tensor that take turns in one place by its number of live blocks, where an index says which is
// meant. That they are not wanted at once is its producer's promise, which Reads holds it to.
func oneSlot(m *ir.Module, indexed map[ir.Set]bool, a, b ir.Loc) bool {
	s := m.Locs.At(a).Set
	if s != m.Locs.At(b).Set || !indexed[s] {
		return false
	}
	n := m.Sets.At(s).LiveN
	return n > 0 && (max(a, b)-min(a, b))%ir.Loc(n) == 0
}

// indexedSets are the tensors that symbolic operands of a function touch.
func indexedSets(m *ir.Module, f ir.Func) map[ir.Set]bool {
	sets := map[ir.Set]bool{}
	for _, i := range flatten(m, f).insts[1:] {
		for _, a := range m.AllArgs(i) {
			if symbolic(a) {
				sets[m.Syms.At(ir.Sym(a.Ref)).Set] = true
			}
		}
	}
	return sets
}
