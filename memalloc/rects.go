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

// rects is the geometry of SB. The occupancy of a node's neighbours is drawn into bits and searched. Only as much is searched as can
// matter: what is placed comes from both ends, and the middle is free.
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

	rows  []uint64 // by 64 granules a word of each of the four quadrants; clear between calls
	whole []uint64 // the same where all quadrants are one; clear between calls
	line  []uint64 // what is searched: rows made one
	low   int      // of what is drawn: the end of all that ends in the lower half
	high  int      // and the start of the rest, n if there is none
	cross uint8    // quadrants that some of the rest leaves free
}

func (r *rects) reset(units int, bytes, floor int64) {
	r.n = int(bytes / granule)
	r.floor = int((floor + granule - 1) / granule)
	r.wrong = 0
	r.small = r.n / 48
	nw := (r.n + 63) / 64
	r.rows = arena.Zeroed(r.rows, 4*nw)
	r.whole = arena.Zeroed(r.whole, nw)
	r.line = arena.Resized(r.line, nw)
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
		r.drawWhole(neighbours)
	} else {
		r.draw(neighbours)
	}
	ok := !r.tight && r.try(p, p.shift) || r.partners != nil && r.near(n) || (r.tight || p.least < p.shift) && r.try(p, p.least)
	r.wipe(p.class == class128)
	return ok
}

// bandMask is the words of a row that a set of quadrants takes.
var bandMask = func() (m [16][4]uint64) {
	for quads := range m {
		for q := range 4 {
			m[quads][q] = -uint64(quads >> q & 1)
		}
	}
	return m
}()

// draw marks what is placed of the neighbours, by quadrants.
func (r *rects) draw(neighbours []uint32) {
	r.low, r.high, r.cross = r.floor, r.n, 0
	rows := r.rows
	for _, j := range neighbours {
		o := &r.at[j]
		if o.quads == 0 {
			continue
		}
		r.extend(o)
		// Most end in the word in which they begin, or in the next, and which of them a branch could not guess.
		a, b := int(o.lo)>>6, int(o.hi-1)>>6
		first, last := ^uint64(0)<<(o.lo&63), ^uint64(0)>>(63-(o.hi-1)&63)
		apart := ((uint64(a)^uint64(b))-1)>>63 - 1 // all ones if a and b differ
		first, last = first&(last|apart), last&(first|apart)
		m := &bandMask[o.quads&15]
		x := rows[4*a : 4*a+4 : 4*a+4]
		x[0] |= first & m[0]
		x[1] |= first & m[1]
		x[2] |= first & m[2]
		x[3] |= first & m[3]
		for a++; a < b; a++ {
			x := rows[4*a : 4*a+4 : 4*a+4]
			x[0] |= m[0]
			x[1] |= m[1]
			x[2] |= m[2]
			x[3] |= m[3]
		}
		x = rows[4*b : 4*b+4 : 4*b+4]
		x[0] |= last & m[0]
		x[1] |= last & m[1]
		x[2] |= last & m[2]
		x[3] |= last & m[3]
	}
}

// drawWhole marks what is placed of the neighbours, whatever their quadrants.
func (r *rects) drawWhole(neighbours []uint32) {
	r.low, r.high, r.cross = r.floor, r.n, 0
	Mark(r.whole, 0, r.floor)
	for _, j := range neighbours {
		if o := &r.at[j]; o.quads != 0 {
			r.extend(o)
			Mark(r.whole, int(o.lo), int(o.hi))
		}
	}
}

// extend counts o in what low, high and cross say of what is drawn.
func (r *rects) extend(o *place) {
	if int(o.hi) <= r.n/2 {
		r.low = max(r.low, int(o.hi))
	} else {
		r.high = min(r.high, int(o.lo))
		r.cross |= ^o.quads & 15
	}
}

// wipe takes away what is drawn.
func (r *rects) wipe(whole bool) {
	low, high := (r.low+63)/64, r.high/64
	if high <= low {
		low, high = len(r.whole), len(r.whole)
	}
	if whole {
		clear(r.whole[:low])
		clear(r.whole[high:])
		return
	}
	clear(r.rows[:4*low])
	clear(r.rows[4*high:])
}

// limit is how far a search from the bottom must go that something of a length and alignment cannot fail at: behind the low ones,
// if the high ones leave that room, and nowhere above them is a band better than at the bottom.
func (r *rects) limit(length int, shift uint8) int {
	round := 1<<shift - 1
	if end := (r.low+round)&^round + length; end <= r.high && r.cross == 0 {
		return end
	}
	return r.n
}

// taken is what is taken in a band, up to limit.
func (r *rects) taken(band uint8, limit int) []uint64 {
	line, m := r.line[:(limit+63)/64], &bandMask[band]
	for i := range line {
		x := r.rows[4*i : 4*i+4 : 4*i+4]
		line[i] = x[0]&m[0] | x[1]&m[1] | x[2]&m[2] | x[3]&m[3]
	}
	return line
}

// spoilt is what is not free in the half of a quadrant, or free in both halves, up to limit: the rest only a half offers.
func (r *rects) spoilt(band uint8, limit int) []uint64 {
	half := uint8(3)
	if band > half {
		half = 12
	}
	line, m := r.line[:(limit+63)/64], &bandMask[half]
	for i := range line {
		x := r.rows[4*i : 4*i+4 : 4*i+4]
		line[i] = x[0]&m[0] | x[1]&m[1] | x[2]&m[2] | x[3]&m[3] | ^(x[0]&^m[0] | x[1]&^m[1] | x[2]&^m[2] | x[3]&^m[3])
	}
	return line
}

// try walks the cascade of free pools: for 32 partitions what only a half offers, then what the whole height offers, then any
// quarter; for 64 the whole height, then any half. Full height and at least a 48th of the memory goes from the top down, the
// rest from the bottom up, so that long and short tensors meet in the middle. There is no window beside that: a try that searches
// less than everything could only turn down places. When tight, only the lowest offset counts.
func (r *rects) try(p *place, shift uint8) bool {
	length := int(p.hi - p.lo)
	limit := r.limit(length, shift)
	if p.class == class128 {
		at := -1
		if length < r.small || r.tight {
			at = Fit(r.whole, r.floor, limit, length, shift)
		} else {
			at = fitDown(r.whole, r.n, length, shift)
		}
		return p.put(at, length, 15)
	}
	best, quads := -1, uint8(0)
	consider := func(w []uint64, band uint8) {
		if at := Fit(w, r.floor, limit, length, shift); at >= 0 && (best < 0 || at < best) {
			best, quads = at, band
		}
	}
	cands := candidates(p.class)
	if p.class < class64 && !r.tight {
		for i, b := range cands {
			if i&1 == 0 { // the other quadrant of a half gives the same
				consider(r.spoilt(b, limit), b)
			}
		}
		if best >= 0 {
			return p.put(best, length, quads)
		}
	}
	if !r.tight {
		consider(r.taken(15, limit), cands[0])
		if best >= 0 {
			return p.put(best, length, quads)
		}
	}
	for _, b := range cands {
		consider(r.taken(b, limit), b)
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
