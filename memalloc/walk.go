package memalloc

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// spot is a place that the walk gave. quads 0: none.
type spot struct {
	lo    int32 // granules
	quads uint8
}

// guest is where a tenant is in the walk, or beyond the tenants a further piece of one that is in pieces.
type guest struct {
	spot
	of   uint32 // the tenant
	off  int32  // granules of it before those that are here
	len  int32  // granules of it that are here
	more uint32 // the next piece, 0 none
	// Of the tenant.
	next uint32 // stop that it is at, or waits for
	paid int64  // of its bytes, saved by cuts so far
	busy bool   // at a stop
	new  bool   // came for the present stop
	// moved: 1 + the point at which it moved last.
	moved ssa.Point
}

// walker goes through time with a picture of the memory. What arrives takes the tightest hole, or the window that is cheapest to
// clear: each tenant in it moves to other holes, or is away until its next stop, at the bytes that this moves over the time that it
// lasts. So the cuts leave holes that fit, which sums of bytes do not promise, and every stay has a place.
type walker struct {
	guests []guest
	at     []spot // by stop
	want   []spot // by stop: where it would like to be
	byTime []uint32
	starts []uint32
	rows   [4][]uint32 // by quadrant: the tenants in it, by address
	inside []uint32    // at a stop
	wants  []uint32
	band   []uint32  // the tenants of one band, by address
	tops   []int32   // up to where those and the ones before them reach
	prices []float64 // of clearing them, negative: not to be had
	bounds []float64 // what clearing them costs at least
	more   bool      // wants has grown
	mover

	openings []opening

	hints arena.Column[ir.Set, spot] // for the copies of the next round
}

// run adds to the cuts of the stays what it takes for all stops to find a place.
func (w *walker) run(ws *Workspace, s *stays) {
	points := ws.lin.Points()
	w.guests = arena.Resized(w.guests, len(s.tenants))
	for t := range w.guests {
		w.guests[t] = guest{of: uint32(t), len: s.tenants[t].len, next: s.tenants[t].first}
	}
	w.at = arena.Resized(w.at, len(s.stops))
	clear(w.at)
	w.starts = arena.Resized(w.starts, points+2)
	clear(w.starts)
	for i := range s.stops {
		w.starts[s.stops[i].at+2]++
	}
	for p := 2; p < len(w.starts); p++ {
		w.starts[p] += w.starts[p-1]
	}
	w.byTime = arena.Resized(w.byTime, len(s.stops))
	for i := range s.stops {
		n := &w.starts[s.stops[i].at+1]
		w.byTime[*n] = uint32(i)
		*n++
	}
	for q := range w.rows {
		w.rows[q] = w.rows[q][:0]
	}
	w.inside = w.inside[:0]
	w.moves = w.moves[:0]
	k := 0
	for p := ssa.Point(0); int(p) < points; p++ {
		stay := w.inside[:0]
		for _, t := range w.inside {
			g := &w.guests[t]
			if s.stops[g.next].end >= p {
				stay = append(stay, t)
				continue
			}
			g.busy, g.new = false, false
			g.next++
			if g.next == s.tenants[t].end {
				w.leave(t)
			} else if s.stops[g.next].cut {
				w.away(s, t)
			}
		}
		w.inside = stay
		w.wants = w.wants[:0]
		arrived := len(w.inside)
		for ; k < len(w.byTime) && s.stops[w.byTime[k]].at == p; k++ {
			t := s.stops[w.byTime[k]].tenant
			w.guests[t].busy = true
			w.inside = append(w.inside, t)
			if w.guests[t].quads == 0 || w.guests[t].len < s.tenants[t].len {
				w.wants = append(w.wants, t)
			}
		}
		w.more = true
		for n := 0; n < len(w.wants); n++ {
			if w.more {
				w.more = false
				slices.SortFunc(w.wants[n:], func(a, b uint32) int { return compareWants(ws, s, a, b) })
			}
			w.settle(ws, s, w.wants[n], p)
		}
		for _, t := range w.inside[arrived:] {
			g := &w.guests[t]
			w.at[g.next] = g.spot
		}
	}
	w.settled(s)
}

// compareWants puts first what has the least choice: what has its place already, then the tall, then the long.
func compareWants(ws *Workspace, s *stays, a, b uint32) int {
	x, y := &s.tenants[a], &s.tenants[b]
	fixed := func(t *tenant) int {
		if ws.solver.Nodes[t.unit].Fixed {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(fixed(x), fixed(y)), cmp.Compare(quadsOfClass(y.class), quadsOfClass(x.class)), cmp.Compare(y.len, x.len), cmp.Compare(a, b))
}

// leave takes a tenant out of the picture.
func (w *walker) leave(t uint32) {
	g := &w.guests[t]
	for q := range w.rows {
		if g.quads>>q&1 != 0 {
			k := slices.Index(w.rows[q], t)
			w.rows[q] = slices.Delete(w.rows[q], k, k+1)
		}
	}
	g.quads = 0
}

func (w *walker) enter(t uint32, at spot, length int32) {
	w.guests[t].spot, w.guests[t].len = at, length
	for q := range w.rows {
		if at.quads>>q&1 != 0 {
			k, _ := slices.BinarySearchFunc(w.rows[q], at.lo, func(o uint32, lo int32) int { return cmp.Compare(w.guests[o].lo, lo) })
			w.rows[q] = slices.Insert(w.rows[q], k, t)
		}
	}
}

// away cuts the stay of a tenant before the stop that it waits for, or is at.
func (w *walker) away(s *stays, t uint32) {
	g := &w.guests[t]
	x := &s.stops[g.next]
	x.cut = true
	g.paid = max(g.paid, x.save)
	w.leaveAll(t)
	if g.busy {
		w.wants = append(w.wants, t)
		w.more = true
	}
}

// price is what it costs to send away what is here of a tenant, or a piece of it, less the longer it is away (of powers from a half
// to two the first was best, by little); negative if it must stay.
func (w *walker) price(s *stays, o uint32, p ssa.Point) float64 {
	t := w.guests[o].of
	g := &w.guests[t]
	if s.tenants[t].bound || g.new || g.busy && g.next == s.tenants[t].first {
		return -1
	}
	x := &s.stops[g.next]
	cost := float64(x.reload + max(0, x.save-g.paid))
	cost *= float64(w.guests[o].len) / float64(s.tenants[t].len)
	if g.busy { // it would only move
		return 4*cost + 1
	}
	return cost / math.Sqrt(float64(x.at-p+1))
}

// settle finds a place for a tenant and clears it. What stayed of it is copied there.
func (w *walker) settle(ws *Workspace, s *stays, t uint32, p ssa.Point) {
	r, x := &ws.sb, &s.tenants[t]
	w.guests[t].new = true
	if ws.solver.Nodes[x.unit].Fixed {
		at := &r.at[x.unit]
		w.clear(s, at.lo, at.hi, at.quads, p)
		w.enter(t, spot{at.lo, at.quads}, x.len)
		return
	}
	here := w.guests[t].quads != 0 || w.guests[t].more != 0 // in pieces
	at := w.search(ws, s, t, p)
	if at.quads == 0 && here { // what stayed of it is in the way
		w.leaveAll(t)
		s.stops[w.guests[t].next].cut, here = true, false
		at = w.search(ws, s, t, p)
	}
	if at.quads == 0 { // the next round has it among its candidates again
		return
	}
	w.makeWay(p)
	w.clear(s, at.lo, at.lo+x.len, at.quads, p)
	if here {
		w.leaveAll(t)
		w.note(move{tenant: t, to: at, len: x.len, group: uint32(len(w.moves))}, p)
	}
	w.enter(t, at, x.len)
}

// search is where a tenant goes; quads 0: nowhere.
func (w *walker) search(ws *Workspace, s *stays, t uint32, p ssa.Point) spot {
	r, x := &ws.sb, &s.tenants[t]
	w.plan = w.plan[:0]
	grain := int32(1)<<x.shift - 1
	up := func(lo int32) int32 { return (lo + grain) &^ grain }
	if want := w.want[w.guests[t].next]; want.quads != 0 && w.free(want, x.len) {
		return want
	}
	// The tightest hole.
	best, tight := spot{}, int32(0)
	for _, band := range candidates(x.class) {
		w.gatherBand(band, int32(r.floor))
		below := int32(r.floor)
		for k := 0; k <= len(w.band); k++ {
			above := int32(r.n)
			if k < len(w.band) {
				above = w.guests[w.band[k]].lo
			}
			if hole := above - below; up(below)+x.len <= above && (best.quads == 0 || hole < tight) {
				best, tight = spot{up(below), band}, hole
			}
			if k < len(w.band) {
				below = max(below, w.tops[k])
			}
		}
	}
	if best.quads == 0 {
		best = w.window(ws, s, t, p)
	}
	return best
}

// free reports whether nobody is at a spot.
func (w *walker) free(at spot, length int32) bool {
	for q := range w.rows {
		if at.quads>>q&1 == 0 {
			continue
		}
		for _, o := range w.rows[q] {
			if g := &w.guests[o]; g.lo < at.lo+length && at.lo < g.lo+g.len {
				return false
			}
		}
	}
	return true
}

// opening is a place that could be cleared, at no less than bound. The tenants before first lie below it.
type opening struct {
	bound float64
	lo    int32
	first int32
}

// maxOpenings is how many places of a band are looked at in detail, those with the least bounds.
const maxOpenings = 16

// window is the cheapest place to clear, and leaves in plan what of it moves to another place. It starts at an end of a tenant, or
// ends at a start of one.
func (w *walker) window(ws *Workspace, s *stays, t uint32, p ssa.Point) (best spot) {
	r, x := &ws.sb, &s.tenants[t]
	least := math.Inf(1)
	w.listed = 0
	for _, band := range candidates(x.class) {
		w.gatherBand(band, int32(r.floor))
		w.prices, w.fares, w.bounds = w.prices[:0], w.fares[:0], w.bounds[:0]
		for _, o := range w.band {
			price, fare := w.price(s, o, p), w.fare(ws, s, o, p)
			w.prices, w.fares, w.bounds = append(w.prices, price), append(w.fares, fare), append(w.bounds, w.bound(ws, s, o, price, fare))
		}
		w.findOpenings(r, x)
		for range maxOpenings {
			n := 0
			for k := range w.openings {
				if w.openings[k].bound < w.openings[n].bound {
					n = k
				}
			}
			if len(w.openings) == 0 || w.openings[n].bound >= least {
				break
			}
			at := spot{w.openings[n].lo, band}
			if sum := w.cost(ws, s, at, at.lo+x.len, int(w.openings[n].first)); sum < least {
				best, least = at, sum
				w.plan = append(w.plan[:0], w.draft...)
			}
			w.openings[n].bound = math.Inf(1)
		}
	}
	return best
}

// findOpenings lists the places of a band that could be cleared for a tenant.
func (w *walker) findOpenings(r *rects, x *tenant) {
	w.openings = w.openings[:0]
	grain := int32(1)<<x.shift - 1
	first := 0
	try := func(lo int32) {
		hi := lo + x.len
		if lo < int32(r.floor) || int(hi) > r.n {
			return
		}
		for first < len(w.band) && w.tops[first] <= lo {
			first++
		}
		bound := 0.0
		for k := first; k < len(w.band); k++ {
			g := &w.guests[w.band[k]]
			if g.lo >= hi {
				break
			}
			if g.lo+g.len <= lo {
				continue
			}
			if bound += w.bounds[k]; math.IsInf(bound, 1) {
				return
			}
		}
		w.openings = append(w.openings, opening{bound, lo, int32(first)})
	}
	try((int32(r.floor) + grain) &^ grain)
	for k := range w.band {
		try((w.tops[k] + grain) &^ grain)
	}
	first = 0
	for _, o := range w.band {
		try((w.guests[o].lo - x.len) &^ grain)
	}
	first = 0
	for _, o := range w.band {
		try((w.guests[o].lo + grain) &^ grain)
	}
	first = 0
	try((int32(r.n) - x.len) &^ grain)
}

// cost is what it takes to clear a window of the band at hand, and leaves what moves in the draft; infinite if that cannot be.
func (w *walker) cost(ws *Workspace, s *stays, at spot, hi int32, first int) (sum float64) {
	w.draft = w.draft[:0]
	for k := first; k < len(w.band); k++ {
		o := w.band[k]
		g := &w.guests[o]
		if g.lo >= hi {
			break
		}
		if g.lo+g.len <= at.lo {
			continue
		}
		price := w.prices[k]
		if fare := w.fares[k]; fare >= 0 && fare < price {
			before := len(w.draft)
			if n := w.beside(ws, s, o, at, hi); n > 0 {
				fare += float64(len(w.draft)-before-1)*fareOfCopy + price*(1-float64(n)/float64(g.len))
				if fare < price {
					price = fare
				} else {
					w.draft = w.draft[:before]
				}
			}
		}
		if price < 0 {
			return math.Inf(1)
		}
		sum += price
	}
	return sum
}

// gatherBand lists the tenants in the quadrants of a band by address.
func (w *walker) gatherBand(band uint8, floor int32) {
	w.band = w.band[:0]
	var at [4]int
	for {
		q, lo := -1, int32(0)
		for k := range 4 {
			if band>>k&1 == 0 {
				continue
			}
			row := w.rows[k]
			// One that covers several quadrants counts in the lowest of the band.
			for at[k] < len(row) && bits.TrailingZeros8(w.guests[row[at[k]]].quads&band) != k {
				at[k]++
			}
			if at[k] < len(row) {
				if l := w.guests[row[at[k]]].lo; q < 0 || l < lo {
					q, lo = k, l
				}
			}
		}
		if q < 0 {
			break
		}
		w.band = append(w.band, w.rows[q][at[q]])
		at[q]++
	}
	w.tops = w.tops[:0]
	top := floor
	for _, o := range w.band {
		top = max(top, w.guests[o].lo+w.guests[o].len)
		w.tops = append(w.tops, top)
	}
}

// clear sends away what lies in a window.
func (w *walker) clear(s *stays, lo, hi int32, quads uint8, p ssa.Point) {
	for q := range w.rows {
		if quads>>q&1 == 0 {
			continue
		}
		for k := 0; k < len(w.rows[q]); {
			o := w.rows[q][k]
			if at := w.guests[o].lo; at >= hi {
				break
			} else if t := w.guests[o].of; lo < at+w.guests[o].len && !s.tenants[t].bound && !w.guests[t].new {
				w.evict(s, o, p)
				continue
			}
			k++
		}
	}
}

// hinted is SB's geometry with the places of the walk tried first.
type hinted struct {
	*rects
	ws *Workspace
}

// Place takes the hint of the unit where its neighbours allow it.
func (h hinted) Place(n uint32, neighbours []uint32) bool {
	hint := h.ws.spill.walk.hints.Get(h.ws.ranges.Units[n].Set)
	p := &h.at[n]
	length := p.hi - p.lo
next:
	for _, band := range candidates(p.class) {
		if band&^hint.quads != 0 || int(hint.lo+length) > h.n || hint.lo&(1<<p.least-1) != 0 {
			continue
		}
		for _, j := range neighbours {
			if o := &h.at[j]; o.quads&band != 0 && o.lo < hint.lo+length && hint.lo < o.hi {
				continue next
			}
		}
		return p.put(int(hint.lo), int(length), band)
	}
	return h.rects.Place(n, neighbours)
}

// selectHinted places by the walk of the round before, what it gave a place first, and reports whether all found one.
func (ws *Workspace) selectHinted() bool {
	s, w := &ws.solver, &ws.spill.walk
	if len(w.hints.Slice()) == 0 {
		return false
	}
	ws.order = append(ws.order[:0], s.Order...)
	s.Order = s.Order[:0]
	for _, known := range [2]bool{false, true} {
		for _, n := range ws.order {
			if known == (w.hints.Get(ws.ranges.Units[n].Set).quads != 0) {
				s.Order = append(s.Order, n)
			}
		}
	}
	ws.sb.again(s.Nodes, true)
	regalloc.Select(s, hinted{&ws.sb, ws}, &ws.result)
	s.Order = append(s.Order[:0], ws.order...)
	return len(ws.result.Stuck)+len(ws.result.Unplaced) == 0
}
