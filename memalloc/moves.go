package memalloc

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Where there is room enough but no hole that fits, a tenant need not leave the memory: a copy on chip takes it to another hole, or copies in
// pieces to several. At its next stop it is put together again; what found no room comes back from DRAM.

// moveRounds is how many rounds may move values. A move uses up no gap, so without a limit the rounds might not end.
const moveRounds = 4

// move is a way on chip that a tenant takes right before a point.
type move struct {
	tenant uint32
	stop   uint32 // that it waits for, or is at
	at     ssa.Point
	to     spot
	off    int32  // granules of it before those that go
	len    int32  // granules of it that go, 0 if a piece is given up; what is lost on the way comes back from DRAM when it is needed
	guest  uint32 // where they come from: the moves of one guest in a row cut it into pieces
	group  uint32 // of those the first
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

// What a copy on chip costs, in bytes to or from DRAM: for each byte, where anything from none to a tenth gave the same within a few
// percent, and for itself. The latter keeps small tiles from being cut up for little: every piece is one more value to place.
const (
	fareOfByte = 1.0 / 32
	fareOfCopy = 256
)

// fare is what moving a guest on chip costs, negative if it must stay, so also wherever price is.
func (w *walker) fare(ws *Workspace, s *stays, o uint32, p ssa.Point) float64 {
	g := &w.guests[o]
	m, t := &w.guests[g.of], &s.tenants[g.of]
	if !w.allowed || t.bound || ws.solver.Nodes[t.unit].Fixed || m.new || g.moved == p+1 || m.next == t.first || m.busy && s.stops[m.next].at < p {
		return -1
	}
	return fareOfCopy + fareOfByte*float64(int64(g.len)*granule*quadsOfClass(t.class)*target.QuadrantPartitions)
}

// A guest may be cut into maxPieces at a time, of at least 1/leastPart of its tenant.
const (
	leastPart = 8
	maxPieces = 4
)

// beside adds the move of a guest to the draft, to holes that neither the window [win.lo, hi) nor the draft takes: to the tightest that
// holds all of it, or else in pieces to the widest, if it need not be whole. It returns how many granules found room.
func (w *walker) beside(ws *Workspace, s *stays, o uint32, win spot, hi int32) (n int32) {
	g := &w.guests[o]
	t := &s.tenants[g.of]
	for range maxPieces {
		rest := g.len - n
		least := rest
		if !w.guests[g.of].busy {
			least = min(rest, max(1, t.len/leastPart))
		}
		d := w.widestBeside(ws, t, least, rest, win, hi)
		if d.len == 0 {
			break
		}
		d.tenant, d.guest, d.off = g.of, o, g.off+n
		w.draft = append(w.draft, d)
		if n += d.len; n == g.len {
			break
		}
	}
	return n
}

// widestBeside is the tightest hole for most granules of a tenant, or the widest for least; len 0: none.
func (w *walker) widestBeside(ws *Workspace, t *tenant, least, most int32, win spot, hi int32) (best move) {
	height := heightOf(t.class)
	if w.listed>>height&1 == 0 {
		w.listHoles(height, int32(ws.sb.floor), int32(ws.sb.n))
	}
	if w.widest[height] < least {
		return best
	}
	may := uint8(0)
	for _, band := range candidates(t.class) {
		may |= band
	}
	grain := int32(1)<<t.shift - 1
	tight := int32(0)
	for _, h := range w.holes[height] {
		size := h.hi - h.lo
		if size < least || h.quads&^may != 0 || best.len == most && size >= tight {
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
			if n := min(end-lo, most); n >= least && n > best.len || n == most && size < tight {
				best.to, best.len = spot{lo, h.quads}, n
				if tight = size; n == most {
					break
				}
			}
			lo = next
		}
	}
	return best
}

// bound is what it costs at least to get a guest out of the way: were the widest hole as often there as there may be pieces.
func (w *walker) bound(ws *Workspace, s *stays, o uint32, price, fare float64) float64 {
	if fare >= 0 && fare < price {
		g := &w.guests[o]
		t := &s.tenants[g.of]
		height := heightOf(t.class)
		if w.listed>>height&1 == 0 {
			w.listHoles(height, int32(ws.sb.floor), int32(ws.sb.n))
		}
		least, most := g.len, w.widest[height]
		if !w.guests[g.of].busy {
			least, most = min(g.len, max(1, t.len/leastPart)), maxPieces*most
		}
		if w.widest[height] >= least {
			if most < g.len {
				fare = min(price, fare+price*(1-float64(most)/float64(g.len)))
			}
			return fare
		}
	}
	if price < 0 {
		return math.Inf(1)
	}
	return price
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
	for k, d := range w.plan {
		o := d.guest
		if d.group = uint32(len(w.moves)); k > 0 && w.plan[k-1].guest == o { // a further piece
			d.group = w.moves[len(w.moves)-1].group
			m := &w.guests[d.tenant]
			g := guest{of: d.tenant, off: d.off, more: m.more}
			o = uint32(len(w.guests))
			m.more = o
			w.guests = append(w.guests, g)
		} else {
			w.leave(o)
		}
		w.enter(o, d.to, d.len)
		w.guests[o].moved = p + 1
		w.note(d, p)
	}
	w.plan = w.plan[:0]
}

// note adds a move before p.
func (w *walker) note(d move, p ssa.Point) {
	d.stop, d.at, d.order = w.guests[d.tenant].next, p, uint32(len(w.moves))
	w.moves = append(w.moves, d)
}

// evict sends a guest away: a tenant until its next stop, and of one in pieces the piece.
func (w *walker) evict(s *stays, o uint32, p ssa.Point) {
	t := w.guests[o].of
	if m := &w.guests[t]; m.more == 0 || m.quads == 0 && w.guests[m.more].more == 0 { // the only one
		w.away(s, t)
		return
	}
	w.leave(o)
	if o == t {
		w.guests[o].len = 0
	} else {
		k := t
		for w.guests[k].more != o {
			k = w.guests[k].more
		}
		w.guests[k].more = w.guests[o].more
	}
	w.note(move{tenant: t, off: w.guests[o].off, group: uint32(len(w.moves))}, p)
}

// leaveAll takes a tenant out of the picture with all its pieces.
func (w *walker) leaveAll(t uint32) {
	for k := w.guests[t].more; k != 0; k = w.guests[k].more {
		w.leave(k)
	}
	w.leave(t)
	w.guests[t].more = 0
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
