package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
)

// resident is a value that stays in SBUF between the unit that makes it and the last that reads it. Its rows lie on
// partitions in tiles of height; on the free axis lie the outer loop, then the partition tiles, then the columns.
type resident struct {
	loc    ir.Loc
	height int64
	tile   int64 // elements from one partition tile to the next
	elems  int64 // elements a partition
	n      int
	axes   [maxRank]place
}

// place is one axis of a resident value.
type place struct {
	n    int64
	mem  int64 // step in the value's row-major order
	chip int64 // step on the free axis; of a row axis: rows
	row  bool
}

// layoutOf is where the tiles of a unit put a value of it.
func (l *lowering) layoutOf(v val, u *unit, p *plan) resident {
	d := &u.dom
	row := l.vals.At(v).row
	r := resident{height: p.height, tile: p.cols, n: d.n}
	if row {
		r.tile = 1
	}
	var skip *[maxRank]bool
	if row {
		skip = &d.red
	}
	whole := dense(v, l.shapeOf(v))
	w := d.conform(&whole, skip)
	cols, rows := int64(1), int64(1)
	outer := r.tile * p.tiles()
	for i := d.n - 1; i >= 0; i-- {
		a := place{n: d.dims[i], mem: w.step[i]}
		switch d.grp[i] {
		case groupF:
			a.chip = cols
			if row {
				a.n, a.chip = 1, 0
			} else {
				cols *= d.dims[i]
			}
		case groupP:
			a.row, a.chip = true, rows
			rows *= d.dims[i]
		default:
			a.chip = outer
			outer *= d.dims[i]
		}
		r.axes[i] = a
	}
	r.elems = outer
	r.join()
	return r
}

// join drops axes of one position and merges neighbours that walk like one on both sides.
func (r *resident) join() {
	k := 0
	for i := range r.n {
		a := r.axes[i]
		if a.n == 1 {
			continue
		}
		if k > 0 {
			p := &r.axes[k-1]
			if p.row == a.row && p.mem == a.mem*a.n && p.chip == a.chip*a.n {
				p.n *= a.n
				p.mem, p.chip = a.mem, a.chip
				continue
			}
		}
		r.axes[k] = a
		k++
	}
	r.n = k
}

// reached is how a consumer walks a resident value: chip steps of its own axes, and where it starts.
type reached struct {
	off   int64          // free element of its first position
	row0  int64          // row of its first position
	tile0 int64          // partition tile of its first row
	step  [maxRank]int64 // of its axes that are not rows
}

// reach finds the walk of a view whose rows are the axes part and whose other axes are rest, in tiles of height rows. ok is
// false when rows do not fall on the partitions where the consumer needs them.
func (r *resident) reach(off int64, part, rest []axis, height int64) (w reached, ok bool) {
	w, ok = r.find(off, part, rest)
	rows := int64(1)
	for _, a := range part {
		rows *= a.n
	}
	if !ok || w.row0%r.height != 0 || height != r.height && rows > min(height, r.height) {
		return w, false
	}
	w.tile0 = w.row0 / r.height
	return w, true
}

// find is reach for a reader that takes rows from any partition, as transfers do.
func (r *resident) find(off int64, part, rest []axis) (w reached, ok bool) {
	// Coordinates of the first element: the root is dense, so its row-major index is unique.
	var at [maxRank]int64
	var orderBuf, haveBuf [maxRank]int
	order := orderBuf[:0]
	for i := range r.n {
		k := len(order)
		order = append(order, i)
		for ; k > 0 && r.axes[order[k-1]].mem < r.axes[i].mem; k-- {
			order[k] = order[k-1]
		}
		order[k] = i
	}
	left := off
	for _, i := range order {
		a := &r.axes[i]
		at[i] = left / a.mem
		left -= at[i] * a.mem
		if at[i] >= a.n {
			return w, false
		}
		if a.row {
			w.row0 += at[i] * a.chip
		} else {
			w.off += at[i] * a.chip
		}
	}
	if left != 0 {
		return w, false
	}
	// Rows: the innermost row axes in the same order; only the outermost that the consumer walks may be cut.
	var buf [maxRank]axis
	want := joined(part, buf[:0])
	have := haveBuf[:0]
	for i := range r.n {
		if r.axes[i].row {
			have = append(have, i)
		}
	}
	if len(want) > len(have) {
		return w, false
	}
	have = have[len(have)-len(want):]
	for j, a := range want {
		h := &r.axes[have[j]]
		switch {
		case a.mem != h.mem:
			return w, false
		case j == 0 && at[have[j]]+a.n > h.n:
			return w, false
		case j > 0 && (a.n != h.n || at[have[j]] != 0):
			return w, false
		}
	}
	// The others: each along one axis, all within its bounds.
	var lo, hi [maxRank]int64
	for k, a := range rest {
		if a.n == 1 || a.mem == 0 {
			continue
		}
		found := false
		for _, i := range order {
			p := &r.axes[i]
			if p.row || a.mem%p.mem != 0 {
				continue
			}
			s := a.mem / p.mem
			if s >= p.n || -s >= p.n {
				return w, false
			}
			w.step[k] = s * p.chip
			lo[i] += min(0, s*(a.n-1))
			hi[i] += max(0, s*(a.n-1))
			found = true
			break
		}
		if !found {
			return w, false
		}
	}
	for i := range r.n {
		if at[i]+lo[i] < 0 || at[i]+hi[i] >= r.axes[i].n {
			return w, false
		}
	}
	return w, true
}

// smallSteps reports free axes that an engine's slot can walk: int16 steps once neighbours are merged, at most n of them.
func smallSteps(free []axis, n int) bool {
	var buf [maxRank]axis
	c := chipJoined(free, buf[:0])
	for _, a := range c {
		if a.chip > math.MaxInt16 || a.chip < math.MinInt16 || a.n > math.MaxUint16 {
			return false
		}
	}
	return len(c) <= n
}

// chipJoined appends the axes to w without those of one position, neighbours that walk like one on chip joined. w is empty
// and may share the storage of axes.
func chipJoined(axes, w []axis) []axis {
	for _, a := range axes {
		if a.n == 1 {
			continue
		}
		if k := len(w) - 1; k >= 0 && w[k].chip == a.chip*a.n {
			w[k].n *= a.n
			w[k].chip = a.chip
			continue
		}
		w = append(w, a)
	}
	return w
}
