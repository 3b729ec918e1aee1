package verify

import (
	"cmp"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// touch is one operand on a location: at a point, reading or writing bytes [lo, hi). Writes with gaps are not dense.
type touch struct {
	point              int32
	read, write, dense bool
	lo, hi             int64
}

// lives says at which points the bytes of a DRAM location matter. It is asked only where the stretches from first to last
// access meet: a location that is written anew as a whole is dead before. Points are those of gather.
type lives struct {
	p       *problems
	f       ir.Func
	touches map[ir.Loc][]touch
	nested  map[ir.Loc]bool // touched in a loop's body, whose turns follow each other
	jumps   bool            // control may pass over writes
	known   map[ir.Loc][]period
}

// period is a stretch of points, both included.
type period struct{ from, to int32 }

func livesOf(p *problems, f ir.Func) *lives { return &lives{p: p, f: f} }

func (v *lives) collect() {
	m := v.p.m
	v.touches, v.nested, v.known = map[ir.Loc][]touch{}, map[ir.Loc]bool{}, map[ir.Loc][]period{}
	point := int32(0)
	note := func(a ir.Arg, read, write bool) {
		if symbolic(a) {
			eachLoc(m, a, func(l ir.Loc) {
				if r := m.Locs.At(l); r.Space == target.SpaceDRAM {
					v.touches[l] = append(v.touches[l], touch{point, true, true, false, r.Addr, r.Addr + r.Bytes*int64(r.Parts)})
					v.nested[l] = true
				}
			})
		}
		l := m.LocOf(a)
		if l == 0 || m.Locs.At(l).Space != target.SpaceDRAM {
			return
		}
		fp := m.FootprintOf(a.AP())
		v.touches[l] = append(v.touches[l], touch{point, read, write, fp.N == 0, fp.Lo, fp.Hi})
	}
	var body []ir.Block
	for _, b := range m.BlocksOf(v.f) {
		for _, top := range m.OrderOf(b) {
			point++
			op := m.Insts.At(top).Op
			v.jumps = v.jumps || op == ir.OpCompareAndBranch || op == ir.OpUnconditionalBranch
			for _, a := range m.Ins(top) {
				note(a, true, false)
			}
			for _, a := range m.Indices(top) {
				note(a, true, false)
			}
			for _, a := range m.Outs(top) {
				note(a, m.ReadsDst(top), true)
			}
			if !m.Insts.At(top).Op.Is(ir.FlagRegion) {
				continue
			}
			body = append(body[:0], m.BlockList.Of(m.Regions.Get(top).Blocks)...)
			for len(body) > 0 {
				inner := body[len(body)-1]
				body = body[:len(body)-1]
				for _, i := range m.OrderOf(inner) {
					for _, a := range m.AllArgs(i) {
						note(a, true, true)
						v.nested[m.LocOf(a)] = true
					}
					if m.Insts.At(i).Op.Is(ir.FlagRegion) {
						body = append(body, m.BlockList.Of(m.Regions.Get(i).Blocks)...)
					}
				}
			}
		}
	}
}

// of are the periods of a location, walked from its end: a read makes its bytes matter before, a write without gaps ends that.
func (v *lives) of(l ir.Loc) []period {
	if v.touches == nil {
		v.collect()
	}
	if ps, ok := v.known[l]; ok {
		return ps
	}
	var ps []period
	var need []extent
	ts := v.touches[l]
	for k := len(ts) - 1; k >= 0; {
		at := ts[k].point
		if len(need) > 0 || (v.nested[l] || v.jumps) && len(ps) > 0 {
			ps[len(ps)-1].from = at
		} else {
			ps = append(ps, period{at, at})
		}
		first := k
		for first >= 0 && ts[first].point == at {
			if t := &ts[first]; t.write && !t.read && t.dense {
				need = without(need, t.lo, t.hi)
			}
			first--
		}
		for ; k > first; k-- {
			if t := &ts[k]; t.read {
				need = with(need, t.lo, t.hi)
			}
		}
	}
	v.known[l] = ps
	return ps
}

// meet reports two locations whose bytes matter at a common point. What is live as one with another, or seen by others, is so
// from end to end.
func (v *lives) meet(a, b *life, alias map[ir.Loc]ir.Loc) bool {
	periods := func(x *life) []period {
		if _, ok := alias[x.loc]; ok || x.from == 0 || x.to == math.MaxInt32 {
			return []period{{x.from, x.to}}
		}
		return v.of(x.loc)
	}
	for _, x := range periods(a) {
		for _, y := range periods(b) {
			if x.from <= y.to && y.from <= x.to {
				return true
			}
		}
	}
	return false
}

// extent is bytes [lo, hi). Lists of them are sorted and do not touch.
type extent struct{ lo, hi int64 }

func with(list []extent, lo, hi int64) []extent {
	i, _ := slices.BinarySearchFunc(list, lo, func(e extent, lo int64) int { return cmp.Compare(e.hi, lo) })
	j := i
	for j < len(list) && list[j].lo <= hi {
		lo, hi = min(lo, list[j].lo), max(hi, list[j].hi)
		j++
	}
	return slices.Replace(list, i, j, extent{lo, hi})
}

func without(list []extent, lo, hi int64) []extent {
	i, _ := slices.BinarySearchFunc(list, lo+1, func(e extent, lo int64) int { return cmp.Compare(e.hi, lo) })
	j := i
	var rest []extent
	for j < len(list) && list[j].lo < hi {
		if list[j].lo < lo {
			rest = append(rest, extent{list[j].lo, lo})
		}
		if list[j].hi > hi {
			rest = append(rest, extent{hi, list[j].hi})
		}
		j++
	}
	return slices.Replace(list, i, j, rest...)
}
