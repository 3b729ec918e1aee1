package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// home is where a value lives in DRAM: dense and row-major from element off on.
type home struct {
	loc ir.Loc
	off int64
}

// axis is one axis of a transfer: positions, and the step of each side in elements of that side.
type axis struct {
	n    int64
	mem  int64 // DRAM
	chip int64 // free axis of the chip side
}

// side is the chip side of a transfer: partitions start… and elements from off on.
type side struct {
	loc   ir.Loc
	dt    target.Dtype
	start int64
	off   int64
}

// denseChip numbers the chip steps of free axes so that they fill the side without gaps.
func denseChip(free []axis) []axis {
	s := int64(1)
	for i := len(free) - 1; i >= 0; i-- {
		free[i].chip = s
		s *= free[i].n
	}
	return free
}

// box is part of a range over several axes: its axes, from position at of the range on.
type box struct {
	at, n int64 // position in the range, positions covered
	mem   int64 // offset
	axes  [maxRank]axis
	k     int
}

// boxes cuts positions [r0, r0+rn) of the row-major walk over axes into boxes, in order. One axis gives one box.
func boxes(axes []axis, r0, rn int64, out []box) []box {
	var buf [maxRank]axis
	axes = joined(axes, buf[:0])
	for pos := r0; pos < r0+rn; {
		b := box{at: pos - r0}
		left := r0 + rn - pos
		size := int64(1)
		for _, a := range axes {
			size *= a.n
		}
		rest := pos
		for i, a := range axes {
			size /= a.n
			idx := rest / size
			rest %= size
			b.mem += idx * a.mem
			if rest != 0 || left < size {
				continue
			}
			n := min(left/size, a.n-idx)
			b.axes[0] = axis{n: n, mem: a.mem}
			b.k = 1 + copy(b.axes[1:], axes[i+1:])
			b.n = n * size
			break
		}
		if b.n == 0 { // no axes: one position
			b.n = 1
		}
		out = append(out, b)
		pos += b.n
	}
	return out
}

// joined appends the axes to w without those of one position, neighbours that walk like one in memory joined. w is empty.
func joined(axes, w []axis) []axis {
	for _, a := range axes {
		if a.n == 1 {
			continue
		}
		if k := len(w) - 1; k >= 0 && w[k].mem == a.mem*a.n {
			w[k].n *= a.n
			w[k].mem = a.mem
			continue
		}
		w = append(w, a)
	}
	return w
}

// Direction of a transfer.
const (
	load  = false
	store = true
)

// transfer moves between DRAM and chip: rows [p0, p0+pn) of the row-major walk over part, each with the free axes, whose
// steps are given on both sides. Each instruction's pattern fits the pairs that a side has.
func (l *lowering) transfer(dir bool, h home, dt target.Dtype, off int64, part []axis, p0, pn int64, free []axis, chip side) {
	l.boxes = boxes(part, p0, pn, l.boxes[:0])
	for i := range l.boxes {
		b := &l.boxes[i]
		l.transferBox(dir, h, dt, off+b.mem, b.axes[:b.k], b.n, free, side{chip.loc, chip.dt, chip.start + b.at, chip.off})
	}
}

// maxPartAxes is how many partition axes one pattern keeps beside free ones.
const maxPartAxes = 4

func (l *lowering) transferBox(dir bool, h home, dt target.Dtype, off int64, part []axis, parts int64, free []axis, chip side) {
	outer := part[:max(0, len(part)-maxPartAxes)]
	part = part[len(outer):]
	for _, a := range outer {
		parts /= a.n
	}
	k := 0
	for {
		l.pairChip, l.pairMem = l.pairs(free[k:], part, l.pairChip[:0], l.pairMem[:0])
		if len(l.pairChip) <= 4 && len(l.pairMem) <= 5 {
			break
		}
		k++
	}
	var idx [maxRank]int64
	for {
		m, c := off, chip
		step := int64(0)
		for i, a := range outer {
			m += idx[i] * a.mem
			step = step*a.n + idx[i]
		}
		c.start += step * parts
		before := l.count
		l.peeled(dir, h, dt, m, free[:k], parts, c, l.pairChip, l.pairMem)
		if l.counting {
			one := count{l.count.insts - before.insts, l.count.descriptors - before.descriptors}
			for _, a := range outer {
				one = one.times(a.n)
			}
			l.count = before
			l.count.add(one)
			return
		}
		if !odometer(idx[:len(outer)], outer) {
			return
		}
	}
}

// odometer moves idx to the next position of the axes, innermost first, and reports whether there is one.
func odometer(idx []int64, axes []axis) bool {
	for i := len(axes) - 1; i >= 0; i-- {
		if idx[i]++; idx[i] < axes[i].n {
			return true
		}
		idx[i] = 0
	}
	return false
}

// peeled issues one transfer for each position of the outer free axes.
func (l *lowering) peeled(dir bool, h home, dt target.Dtype, off int64, outer []axis, parts int64, chip side, chipPairs, memPairs []ir.Pair) {
	bytes := parts * int64(dt.Size())
	for _, p := range chipPairs {
		bytes *= int64(p.Num)
	}
	per := patternDescriptors(memPairs, chipPairs)
	if l.counting {
		n := int64(1)
		for _, a := range outer {
			n *= a.n
		}
		l.count.insts += n
		l.count.descriptors += n * per
		return
	}
	l.stats.Descriptors += per
	var idx [maxRank]int64
	for {
		m, c := h.off+off, chip.off
		for i, a := range outer {
			m += idx[i] * a.mem
			c += idx[i] * a.chip
		}
		mem := l.mem(h.loc, dt, m, memPairs...)
		on := l.chip(chip.loc, chip.dt, int(chip.start), int(parts), c, chipPairs...)
		if !dir {
			l.emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem}, []ir.Arg{on})
			l.stats.Loaded += bytes
		} else {
			l.emit(ir.OpSave, target.EngineSP, []ir.Arg{on}, []ir.Arg{mem})
			l.stats.Saved += bytes
		}
		if !odometer(idx[:len(outer)], outer) {
			return
		}
	}
}

// pairs spells the axes of both sides, merged where they walk like one.
func (l *lowering) pairs(free, part []axis, chip, mem []ir.Pair) (c, m []ir.Pair) {
	push := func(ps []ir.Pair, n, step int64) []ir.Pair {
		if n == 1 {
			return ps
		}
		if step > math.MaxInt32 || step < math.MinInt32 || n > math.MaxUint32 {
			l.fail(target.Errorf(target.Limit, "%s: an access steps %d elements %d times; a pattern holds 31 bits", l.g.NodeString(l.cur), step, n))
			return ps
		}
		if k := len(ps) - 1; k >= 0 && int64(ps[k].Step) == step*n {
			ps[k].Num *= uint32(n)
			ps[k].Step = int32(step)
			return ps
		}
		return append(ps, ir.Pair{Step: int32(step), Num: uint32(n)})
	}
	for _, a := range part {
		mem = push(mem, a.n, a.mem)
	}
	for _, a := range free {
		mem = push(mem, a.n, a.mem)
		chip = push(chip, a.n, a.chip)
	}
	if len(mem) == 0 {
		mem = append(mem, ir.Pair{Step: 1, Num: 1})
	}
	if len(chip) == 0 {
		chip = append(chip, ir.Pair{Step: 1, Num: 1})
	}
	return chip, mem
}

// axesOf lists the axes of a conformed view in the groups, for the box of a tile, and the offset that the tile adds.
func axesOf(d *domain, v *view, t *tile, out []axis, gs ...group) []axis {
	for i := range d.n {
		for _, g := range gs {
			if d.grp[i] != g {
				continue
			}
			n := d.dims[i]
			if g == groupF {
				n = t.fn[i]
			}
			out = append(out, axis{n: n, mem: v.step[i]})
		}
	}
	return out
}

// tileOff is the element of a conformed view's root where the tile's outer index and free box begin.
func tileOff(d *domain, v *view, t *tile) int64 {
	off := v.off
	for i := range d.n {
		switch d.grp[i] {
		case groupB:
			off += t.b[i] * v.step[i]
		case groupF:
			off += t.f0[i] * v.step[i]
		}
	}
	return off
}
