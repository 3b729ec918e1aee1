package tile

// maxRank bounds the axes of a view and of a unit's domain. Unit axes are dropped and runs are merged before the bound
// matters; a model beyond it is refused by name.
const maxRank = 16

// view is a strided window on the row-major elements of a value: axis i has dims[i] positions step[i] elements apart, from
// element off on. Reshape, transpose, slice, broadcast (step 0) and reverse (negative step) are views and cost nothing.
// Views are comparable; entries beyond n are zero.
type view struct {
	root val
	n    int32
	off  int64
	dims [maxRank]int64
	step [maxRank]int64
}

// dense is the whole of a value in its own order. len(dims) is at most maxRank.
func dense(root val, dims []int64) view {
	v := view{root: root, n: int32(len(dims))}
	s := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		v.dims[i], v.step[i] = dims[i], s
		s *= dims[i]
	}
	return v
}

func (v *view) shape() []int64 { return v.dims[:v.n] }

// elems is the number of positions.
func (v *view) elems() int64 { return product(v.shape()) }

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

func (v *view) push(dim, step int64) {
	v.dims[v.n], v.step[v.n] = dim, step
	v.n++
}

// squeezed drops the axes of one position.
func (v *view) squeezed() view {
	w := view{root: v.root, off: v.off}
	for i := range v.n {
		if v.dims[i] != 1 {
			w.push(v.dims[i], v.step[i])
		}
	}
	return w
}

// merged is squeezed with neighbouring axes joined where they walk like one.
func (v *view) merged() view {
	w := view{root: v.root, off: v.off}
	for i := range v.n {
		if v.dims[i] == 1 {
			continue
		}
		if k := w.n - 1; k >= 0 && w.step[k] == v.step[i]*v.dims[i] {
			w.dims[k] *= v.dims[i]
			w.step[k] = v.step[i]
			continue
		}
		w.push(v.dims[i], v.step[i])
	}
	return w
}

// isDense reports whether the view walks n elements of its root from the first on without a gap.
func (v *view) isDense(n int64) bool {
	w := v.merged()
	switch w.n {
	case 0:
		return w.off == 0 && n == 1
	case 1:
		return w.off == 0 && w.step[0] == 1 && w.dims[0] == n
	}
	return false
}

// permuted has axis perm[i] of v as axis i.
func (v *view) permuted(perm []int64) view {
	w := view{root: v.root, off: v.off}
	for _, p := range perm {
		w.push(v.dims[p], v.step[p])
	}
	return w
}

// permuted3 is permuted by three lists, one after the other.
func (v *view) permuted3(a, b, c []int64) view {
	w := view{root: v.root, off: v.off}
	for _, perm := range [3][]int64{a, b, c} {
		for _, p := range perm {
			w.push(v.dims[p], v.step[p])
		}
	}
	return w
}

// sliced takes n positions of axis i, stride apart, from lo on.
func (v *view) sliced(i int, lo, n, stride int64) view {
	w := *v
	w.off += lo * v.step[i]
	w.dims[i], w.step[i] = n, v.step[i]*stride
	return w
}

// reversed walks axis i from its end.
func (v *view) reversed(i int) view {
	w := *v
	w.off += (v.dims[i] - 1) * v.step[i]
	w.step[i] = -v.step[i]
	return w
}

// broadcast is XLA's: axis i becomes axis at[i] of a view of the given shape, the others repeat.
func (v *view) broadcast(at, shape []int64) view {
	w := view{root: v.root, off: v.off}
	for _, d := range shape {
		w.push(d, 0)
	}
	for i, a := range at {
		w.step[a] = v.step[i]
	}
	return w
}

// reshaped gives the same elements another shape of as many positions (none of them zero), if a strided walk can.
func (v *view) reshaped(to []int64) (view, bool) {
	w := v.squeezed()
	out := view{root: v.root, off: v.off}
	if len(to) > maxRank {
		return out, false
	}
	i, j := int32(0), 0
	for j < len(to) {
		if to[j] == 1 {
			out.push(1, 0)
			j++
			continue
		}
		i0, j0 := i, j
		ni, nj := w.dims[i], to[j]
		i, j = i+1, j+1
		for ni != nj {
			if ni < nj {
				if w.step[i-1] != w.step[i]*w.dims[i] {
					return out, false
				}
				ni *= w.dims[i]
				i++
			} else {
				nj *= to[j]
				j++
			}
		}
		for k := i0; k < i-1; k++ {
			if w.step[k] != w.step[k+1]*w.dims[k+1] {
				return out, false
			}
		}
		s := w.step[i-1]
		for k := j - 1; k >= j0; k-- {
			out.dims[k], out.step[k] = to[k], s
			s *= to[k]
		}
		out.n = int32(j)
	}
	return out, true
}

// domain is the iteration space of a unit: its axes, outermost first, which of them its reductions fold, and where the
// layout puts each.
type domain struct {
	n    int
	dims [maxRank]int64
	red  [maxRank]bool
	grp  [maxRank]group
}

// group says which loop an axis of a domain belongs to.
type group uint8

const (
	groupB group = iota // outer loop
	groupP              // partitions, in tiles
	groupF              // free axis, in chunks
)

func newDomain(dims []int64) domain {
	var d domain
	for _, x := range dims {
		if x != 1 {
			d.dims[d.n] = x
			d.n++
		}
	}
	return d
}

func (d *domain) elems(keptOnly bool) int64 {
	n := int64(1)
	for i := range d.n {
		if !keptOnly || !d.red[i] {
			n *= d.dims[i]
		}
	}
	return n
}

// split cuts axis i into an outer part and inner positions. It fails when the axes run out.
func (d *domain) split(i int, inner int64) bool {
	if d.n == maxRank {
		return false
	}
	copy(d.dims[i+1:], d.dims[i:d.n])
	copy(d.red[i+1:], d.red[i:d.n])
	copy(d.grp[i+1:], d.grp[i:d.n])
	d.n++
	d.dims[i] /= inner
	d.dims[i+1] = inner
	return true
}

// fit refines the domain so that a value of the given shape (over all axes, or over those that stay when kept is set) has
// its axis bounds at axis bounds of the domain. It reports failure for shapes that interleave, and then d is void.
func (d *domain) fit(dims []int64, kept bool) bool {
	i := d.n - 1
	for j := len(dims) - 1; j >= 0; j-- {
		for need := dims[j]; need > 1; {
			for i >= 0 && (kept && d.red[i] || d.dims[i] == 1) {
				i--
			}
			switch {
			case i < 0:
				return false
			case need%d.dims[i] == 0:
				need /= d.dims[i]
				i--
			case d.dims[i]%need == 0:
				if !d.split(i, need) {
					return false
				}
				need = 1
			default:
				return false
			}
		}
	}
	for ; i >= 0; i-- {
		if d.dims[i] != 1 && !(kept && d.red[i]) {
			return false
		}
	}
	return true
}

// conform gives a view whose shape fits d the axes of d. The view ranges over the axes outside skip, and has step 0 on those
// inside; nil skips none.
func (d *domain) conform(v *view, skip *[maxRank]bool) view {
	w := view{root: v.root, off: v.off, n: int32(d.n)}
	j := v.n - 1
	var left, step int64
	for i := d.n - 1; i >= 0; i-- {
		w.dims[i] = d.dims[i]
		if skip != nil && skip[i] || d.dims[i] == 1 {
			continue
		}
		for left <= 1 {
			left, step = v.dims[j], v.step[j]
			j--
		}
		w.step[i] = step
		step *= d.dims[i]
		left /= d.dims[i]
	}
	return w
}

// outside is the axes that are not in any of the groups.
func (d *domain) outside(gs ...group) (skip [maxRank]bool) {
	for i := range d.n {
		skip[i] = true
		for _, g := range gs {
			if d.grp[i] == g {
				skip[i] = false
			}
		}
	}
	return skip
}
