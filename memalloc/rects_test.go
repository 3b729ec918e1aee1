package memalloc

import (
	"testing"

	"pgregory.net/rapid"
)

// A place is the one that looking at every granule finds, whatever is in the way and however little of it is searched.
func TestRectsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		n := num("granules", 40, 400)
		floor := num("floor", 0, n/4)
		var r rects
		places := num("others", 0, 12)
		r.reset(places+1, int64(n)*granule, int64(floor)*granule)
		r.tight = rapid.Bool().Draw(t, "tight")
		p := &r.at[0]
		*p = place{hi: int32(num("length", 1, n/3)), class: uint8(num("class", 0, sbClasses-1)), shift: uint8(num("shift", 0, 3))}
		p.least = uint8(num("least", 0, int(p.shift)))
		var taken [4][]bool
		for q := range taken {
			taken[q] = make([]bool, n)
		}
		around := make([]uint32, places)
		for k := range around {
			around[k] = uint32(k) + 1
			length := num("other length", 1, n/3)
			lo := []int{num("other", floor, n-1), floor, n - length}[num("where", 0, 2)]
			o := place{lo: int32(lo), hi: int32(min(lo+length, n)), quads: allBands[num("band", 0, 6)]}
			if num("placed", 0, 4) == 0 {
				o.quads = 0
			}
			r.at[k+1] = o
			for q := range taken {
				for i := o.lo; o.quads>>q&1 != 0 && i < o.hi; i++ {
					taken[q][i] = true
				}
			}
		}
		length := int(p.hi)
		at, quads := -1, uint8(0)
		for _, shift := range []uint8{p.shift, p.least} {
			if at < 0 && !(r.tight && shift != p.least) {
				at, quads = slowPlace(&r, p, taken, length, shift)
			}
		}
		for range 2 { // nothing is left behind of the first
			got := *p
			if ok := r.Place(0, around); ok != (at >= 0) || ok && (int(p.lo) != at || p.quads != quads || int(p.hi) != at+length) {
				t.Fatalf("%+v of %d granules, %d of floor, tight %v: %v at %d of %04b, want %d of %04b", got, n, floor, r.tight, ok, p.lo, p.quads, at, quads)
			}
			*p = got
		}
	})
}

// slowPlace is rects.try, granule by granule.
func slowPlace(r *rects, p *place, taken [4][]bool, length int, shift uint8) (at int, quads uint8) {
	in := func(band uint8, i int) bool {
		for q := range taken {
			if band>>q&1 != 0 && taken[q][i] {
				return true
			}
		}
		return false
	}
	find := func(down bool, free func(i int) bool) int {
		best := -1
	next:
		for at := 0; at+length <= r.n; at += 1 << shift {
			if at < r.floor {
				continue
			}
			for i := at; i < at+length; i++ {
				if !free(i) {
					continue next
				}
			}
			if best = at; !down {
				break
			}
		}
		return best
	}
	if p.class == class128 {
		return find(length >= r.small && !r.tight, func(i int) bool { return !in(15, i) }), 15
	}
	at = -1
	consider := func(band uint8, free func(i int) bool) {
		if x := find(false, free); x >= 0 && (at < 0 || x < at) {
			at, quads = x, band
		}
	}
	if p.class < class64 && !r.tight {
		for _, b := range candidates(p.class) {
			half := uint8(3)
			if b > 3 {
				half = 12
			}
			consider(b, func(i int) bool { return !in(half, i) && in(15&^half, i) })
		}
	}
	if at < 0 && !r.tight {
		consider(candidates(p.class)[0], func(i int) bool { return !in(15, i) })
	}
	if at < 0 {
		for _, b := range candidates(p.class) {
			consider(b, func(i int) bool { return !in(b, i) })
		}
	}
	return at, quads
}
