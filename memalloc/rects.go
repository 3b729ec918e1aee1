package memalloc

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// granule is the unit of every SB offset and length.
const granule = 8

// Height classes: how many partitions a unit takes, and where its first may be.
const (
	class32   = 0 // any quadrant; 1 + q: quadrant q
	class64   = 5 // either half; 6 + h: half h
	class128  = 8
	sbClasses = 9
)

var allBands = [7]uint8{1, 2, 4, 8, 3, 12, 15}

// candidates are the bands that a class may have, as masks of quadrants.
func candidates(class uint8) []uint8 {
	switch {
	case class == class32:
		return allBands[0:4]
	case class < class64:
		return allBands[class-1 : class]
	case class == class64:
		return allBands[4:6]
	case class < class128:
		return allBands[class-2 : class-1]
	}
	return allBands[6:7]
}

// quadsOfClass is how many quadrants a class takes.
func quadsOfClass(class uint8) int64 { return int64(bits.OnesCount8(candidates(class)[0])) }

// bandCount is len(candidates(c)).
var bandCount = [sbClasses]int64{4, 1, 1, 1, 1, 2, 1, 1, 1}

// sbWeights generates the weights of neighbours: entry j·9+i is the largest number of class i's candidate bands that one
// placement of class j can touch.
func sbWeights() (w [sbClasses * sbClasses]int32) {
	for j := range uint8(sbClasses) {
		for i := range uint8(sbClasses) {
			for _, a := range candidates(j) {
				n := int32(0)
				for _, b := range candidates(i) {
					if a&b != 0 {
						n++
					}
				}
				w[j*sbClasses+i] = max(w[j*sbClasses+i], n)
			}
		}
	}
	return w
}

var sbWeight = sbWeights()

// place is where a unit is, in granules. quads 0: nowhere.
type place struct {
	lo, hi int32
	quads  uint8
	class  uint8
	shift  uint8 // alignment, log2 in granules
	least  uint8 // alignment that it can do with
}

// rects is the geometry of SB. The occupancy of a node's neighbours is drawn into one strip of bits a quadrant and searched.
type rects struct {
	n     int // granules
	floor int // granules at the bottom that nobody may have
	// tight is a second try: least alignment, no height is kept whole for others, and everything goes to the lowest offset.
	tight bool
	wrong uint32 // see bad
	small int    // shorter units than this are placed from the bottom
	at    []place
	// partners are rings of units that would share a layout, nil for none.
	partners []uint32
	words    []uint64 // four quadrants, two halves, the whole, one scratch: nw words each
	nw       int
}

func (r *rects) reset(units int, bytes, floor int64) {
	r.n = int(bytes / granule)
	r.floor = int((floor + granule - 1) / granule)
	r.wrong = 0
	r.small = r.n / 48
	r.nw = (r.n + 63) / 64
	r.words = arena.Resized(r.words, 8*r.nw)
	r.at = arena.Resized(r.at, units)
}

// again gives up alignments and whole heights in tight attempts, see Place and try.
func (r *rects) again(nodes []regalloc.Node, tight bool) bool {
	for i := range r.at {
		if !nodes[i].Fixed {
			r.at[i].quads = 0
		}
	}
	r.tight = tight
	return true
}

func (r *rects) bad() uint32 { return r.wrong }

// fault is what is bad about node i: a defect of ours, not of the program.
func (r *rects) fault(m *ir.Module, l ir.Loc, i uint32) error {
	p := &r.at[i]
	if p.class >= sbClasses {
		return target.Errorf(target.Bug, "%s has the unknown height class %d", m.LocName(l), p.class)
	}
	return target.Errorf(target.Bug, "%s is already allocated when its turn comes, at quadrants %04b and byte %d", m.LocName(l), p.quads, int64(p.lo)*granule)
}

func (r *rects) strip(k int) []uint64 { return r.words[k*r.nw : (k+1)*r.nw] }

const (
	stripHalf  = 4
	stripWhole = 6
	stripTemp  = 7
)

// Place finds a band and an offset. The start alignment that only serves bus efficiency is given up before the place is.
func (r *rects) Place(n uint32, neighbours []uint32) bool {
	p := &r.at[n]
	if p.quads != 0 || p.class >= sbClasses {
		if r.wrong == 0 {
			r.wrong = n + 1
		}
		return false
	}
	if int(p.hi-p.lo) > r.n {
		return false
	}
	if p.class == class128 {
		whole := r.strip(stripWhole)
		clear(whole)
		Mark(whole, 0, r.floor)
		for _, j := range neighbours {
			if o := &r.at[j]; o.quads != 0 {
				Mark(whole, int(o.lo), int(o.hi))
			}
		}
	} else {
		r.draw(neighbours)
	}
	if !r.tight && r.try(p, p.shift) || r.partners != nil && r.near(n) {
		return true
	}
	return (r.tight || p.least < p.shift) && r.try(p, p.least)
}

// draw fills the strips of quadrants, halves and the whole.
func (r *rects) draw(neighbours []uint32) {
	clear(r.words[:stripHalf*r.nw])
	for q := range 4 {
		Mark(r.strip(q), 0, r.floor)
	}
	for _, j := range neighbours {
		o := &r.at[j]
		for q := range 4 {
			if o.quads>>q&1 != 0 {
				Mark(r.strip(q), int(o.lo), int(o.hi))
			}
		}
	}
	or(r.strip(stripHalf), r.strip(0), r.strip(1))
	or(r.strip(stripHalf+1), r.strip(2), r.strip(3))
	or(r.strip(stripWhole), r.strip(stripHalf), r.strip(stripHalf+1))
}

func or(dst, a, b []uint64) {
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

// try walks the cascade of free pools: for 32 partitions what only a half offers, then what the whole height offers, then any
// quarter; for 64 the whole height, then any half. Full height and at least a 48th of the memory goes from the top down, the
// rest from the bottom up, so that long and short tensors meet in the middle. There is no window beside that: a try that searches
// less than everything could only turn down places. When tight, only the lowest offset counts.
func (r *rects) try(p *place, shift uint8) bool {
	length := int(p.hi - p.lo)
	whole := r.strip(stripWhole)
	if p.class == class128 {
		at := -1
		if length < r.small || r.tight {
			at = Fit(whole, 0, r.n, length, shift)
		} else {
			at = fitDown(whole, r.n, length, shift)
		}
		return p.put(at, length, 15)
	}
	best, quads := -1, uint8(0)
	consider := func(w []uint64, band uint8) {
		if at := Fit(w, 0, r.n, length, shift); at >= 0 && (best < 0 || at < best) {
			best, quads = at, band
		}
	}
	cands := candidates(p.class)
	if p.class < class64 && !r.tight {
		// A half that is free where the other half is not: taken means the half is taken, or both are free.
		temp := r.strip(stripTemp)
		for _, b := range cands {
			h := bits.TrailingZeros8(b) / 2
			half, other := r.strip(stripHalf+h), r.strip(stripHalf+1-h)
			for i := range temp {
				temp[i] = half[i] | ^other[i]
			}
			consider(temp, b)
		}
		if best >= 0 {
			return p.put(best, length, quads)
		}
	}
	if !r.tight {
		consider(whole, cands[0])
		if best >= 0 {
			return p.put(best, length, quads)
		}
	}
	for _, b := range cands {
		w := r.strip(bits.TrailingZeros8(b))
		if p.class >= class64 {
			w = r.strip(stripHalf + bits.TrailingZeros8(b)/2)
		}
		consider(w, b)
	}
	return p.put(best, length, quads)
}

func (p *place) put(at, length int, quads uint8) bool {
	if at < 0 {
		return false
	}
	p.lo, p.hi, p.quads = int32(at), int32(at+length), quads
	return true
}

// quadsOf is the quadrants of a placement that already has a base.
func quadsOf(base uint8, parts uint32) uint8 {
	switch target.BandHeight(int(parts)) {
	case 32:
		return 1 << (base / target.QuadrantPartitions & 3)
	case 64:
		return 3 << (base / target.QuadrantPartitions & 2)
	}
	return 15
}
