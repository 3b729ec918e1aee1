package memalloc

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Where there is room enough but no hole that fits, a tenant need not leave the memory: a copy on chip takes it to another hole, or as much
// of it as that holds. At its next stop it is put together again.

// moveRounds is how many rounds may move values. A move uses up no gap, so without a limit the rounds might not end.
const moveRounds = 4

// move is a way on chip that a tenant takes right before a point.
type move struct {
	tenant uint32
	stop   uint32 // that it waits for, or is at
	at     ssa.Point
	to     spot
	len    int32  // granules of it that go: where they are not all, the rest comes back from DRAM when it is needed
	order  uint32 // among the moves of the walk
	undone bool
}

// mover is what the walk needs for moves.
type mover struct {
	allowed bool
	moves   []move
	plan    []move // of the best window so far
	draft   []move // of the window at hand
	fares   []float64
	holes   [3][]slot // by height: the free stretches of its bands
	widest  [3]int32  // the longest of them
	listed  uint8     // which of those are up to date
}

// slot is a free stretch of a band.
type slot struct {
	spot
	hi int32
}

// fareOfByte is what moving a byte on chip costs beside one to or from DRAM. Anything from none to a sixteenth gave the same within
// a few percent.
const fareOfByte = 1.0 / 256

// fare is what moving a tenant on chip costs, negative if it must stay.
func (w *walker) fare(ws *Workspace, s *stays, o uint32, p ssa.Point) float64 {
	g, t := &w.guests[o], &s.tenants[o]
	if !w.allowed || t.bound || ws.solver.Nodes[t.unit].Fixed || g.new || g.moved == p+1 || g.next == t.first || g.busy && s.stops[g.next].at < p {
		return -1
	}
	return 1 + fareOfByte*float64(int64(g.len)*granule*quadsOfClass(t.class)*target.QuadrantPartitions)
}

// leastPart is the part of a tenant that must fit for it to be worth while to keep.
const leastPart = 8

// beside is a move of a tenant to the tightest hole that neither the window [win.lo, hi) nor what the draft moves takes. Where none
// holds all of it, its first bytes go to the widest, if it can do without the others; len 0: no hole.
func (w *walker) beside(ws *Workspace, s *stays, o uint32, win spot, hi int32) (best move) {
	t, g := &s.tenants[o], &w.guests[o]
	height := heightOf(t.class)
	least, widest := w.room(ws, s, o)
	if widest < least {
		return best
	}
	may := uint8(0)
	for _, band := range candidates(t.class) {
		may |= band
	}
	grain := int32(1)<<t.shift - 1
	best.tenant = o
	tight := int32(0)
	for _, h := range w.holes[height] {
		size := h.hi - h.lo
		if size < least || h.quads&^may != 0 || best.len == g.len && size >= tight {
			continue
		}
		for lo := (h.lo + grain) &^ grain; lo < h.hi; {
			end, next := h.hi, h.hi
			avoid := func(quads uint8, from, to int32) {
				if quads&h.quads != 0 && from < end && lo < to {
					end, next = max(from, lo), (to+grain)&^grain
				}
			}
			avoid(win.quads, win.lo, hi)
			for k := range w.draft {
				d := &w.draft[k]
				avoid(d.to.quads, d.to.lo, d.to.lo+d.len)
			}
			if n := min(end-lo, g.len); n >= least && n > best.len || n == g.len && size < tight {
				best.to, best.len = spot{lo, h.quads}, n
				if tight = size; n == g.len {
					break
				}
			}
			lo = next
		}
	}
	return best
}

// bound is what it costs at least to get a tenant out of the way: were the widest hole all its own.
func (w *walker) bound(ws *Workspace, s *stays, o uint32, price, fare float64) float64 {
	if fare >= 0 && (price < 0 || fare < price) {
		if least, widest := w.room(ws, s, o); widest >= least {
			if price < 0 {
				return 0
			}
			if n := w.guests[o].len; widest < n {
				fare += price * (1 - float64(widest)/float64(n))
			}
			return min(fare, price)
		}
	}
	if price < 0 {
		return math.Inf(1)
	}
	return price
}

// room is how much of a tenant must find a hole for it to move there, and how long the widest hole of its height is.
func (w *walker) room(ws *Workspace, s *stays, o uint32) (least, widest int32) {
	t, g := &s.tenants[o], &w.guests[o]
	height := heightOf(t.class)
	if w.listed>>height&1 == 0 {
		w.listHoles(height, int32(ws.sb.floor), int32(ws.sb.n))
	}
	if g.busy {
		return g.len, w.widest[height]
	}
	return max(1, t.len/leastPart), w.widest[height]
}

// heightOf is the height of a class: 0 a quadrant, 1 a half, 2 the whole.
func heightOf(class uint8) int { return bits.Len8(uint8(quadsOfClass(class))) - 1 }

// listHoles lists the free stretches of the bands of a height.
func (w *walker) listHoles(height int, floor, top int32) {
	w.holes[height], w.widest[height] = w.holes[height][:0], 0
	w.listed |= 1 << height
	for _, band := range candidates([3]uint8{class32, class64, class128}[height]) {
		var at [4]int
		below := floor
		for {
			q, lo := -1, top
			for k := range 4 {
				if row := w.rows[k]; band>>k&1 != 0 && at[k] < len(row) {
					if l := w.guests[row[at[k]]].lo; q < 0 || l < lo {
						q, lo = k, l
					}
				}
			}
			if below < lo {
				w.holes[height] = append(w.holes[height], slot{spot{below, band}, lo})
				w.widest[height] = max(w.widest[height], lo-below)
			}
			if q < 0 {
				break
			}
			below = max(below, lo+w.guests[w.rows[q][at[q]]].len)
			at[q]++
		}
	}
}

// makeWay moves what the plan moves, before p.
func (w *walker) makeWay(p ssa.Point) {
	for _, d := range w.plan {
		w.move(d, p)
	}
	w.plan = w.plan[:0]
}

func (w *walker) move(d move, p ssa.Point) {
	g := &w.guests[d.tenant]
	w.leave(d.tenant)
	w.enter(d.tenant, d.to, d.len)
	g.moved = p + 1
	d.stop, d.at, d.order = g.next, p, uint32(len(w.moves))
	w.moves = append(w.moves, d)
}

// settled sorts the moves by stop, without those of tenants that left after all.
func (w *walker) settled(s *stays) {
	w.moves = slices.DeleteFunc(w.moves, func(d move) bool { return d.undone || s.stops[d.stop].cut })
	slices.SortFunc(w.moves, func(a, b move) int { return cmp.Or(cmp.Compare(a.stop, b.stop), cmp.Compare(a.order, b.order)) })
	for k := range s.stops {
		s.stops[k].moves = 0
	}
	for k := len(w.moves) - 1; k >= 0; k-- {
		s.stops[w.moves[k].stop].moves = uint32(k) + 1
	}
}

// movesOf are the moves before a stop, in their order.
func (w *mover) movesOf(s *stays, stop uint32) []move {
	from := int(s.stops[stop].moves)
	if from == 0 {
		return nil
	}
	to := from
	for to < len(w.moves) && w.moves[to].stop == stop {
		to++
	}
	return w.moves[from-1 : to]
}
