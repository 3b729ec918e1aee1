package memalloc

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc/bestfit"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Manager is the memory in which a linear scan places: rows × units, blocks by owner. bestfit.Manager is the default.
type Manager interface {
	Reset(rows int, size uint32)
	// Reserve takes what is free of a block.
	Reserve(owner uint32, b bestfit.Block)
	Place(owner uint32, q bestfit.Request) (bestfit.Block, bool)
	// Free gives back all blocks of an owner.
	Free(owner uint32) bool
	// Fragmentation is the median and the 90th percentile of what placements found of it, between 0 and 1.
	Fragmentation() (median, tail float64)
}

// piece is a stretch of a value's life in one place. The first pieces are the units, in order; those that follow come of spilling.
type piece struct {
	unit     uint32
	from, to uint32    // its visits, as accesses of the unit's location; of a group in PSUM its first one and the number of the group
	start    ssa.Point // the scheduling unit before which it is placed; of a unit not known before the walk is there
	end      ssa.Point // its place is free from here on
	next     uint32    // 1 + the piece that carries on, 0 none
	queued   uint32    // 1 + the next piece that is due at the same point
	least    uint32    // alignment that it can do with
	req      bestfit.Request
	at       bestfit.Block
	placed   bool
	fixed    bool
}

// spilledUnit is a unit that was sent home.
type spilledUnit struct {
	unit    uint32
	isRemat bool
	rm      remat
	cut     ssa.Point // where its first piece ended
}

// scan is the storage of one linear scan.
type scan struct {
	manager Manager
	mine    bestfit.Manager
	psum    bool

	pieces []piece
	boxes  []box // by piece beyond the units: what of the value it holds
	// active are the pieces that have a place, in the order in which they are spilled. They end from last to first.
	active []uint32
	needs  []uint32
	due    []uint32 // by point: 1 + the first piece that is to be placed there; empty until something is spilled

	mark    []ssa.Point // by unit: 1 + the scheduling unit that used it last
	wait    []ssa.Point // by unit: 1 + the point before which it cannot be spilled; 0 not known, never never
	slot    []uint32    // by unit: 1 + its row in spilled
	turns   []turns     // by unit of PSUM
	stretch []stretch   // from START to STOP of the groups of the units that were asked for
	spilled []spilledUnit

	name, other []byte
	evictions   int
}

const (
	// reserved owns what is nobody's.
	reserved = ^uint32(0)
	never    = ^ssa.Point(0)
	// maxRun is how many visits may share a copy, so that copies which are spilled again cost no more than their visits.
	maxRun = 64
	// askEvery is after how many evictions the watchdog is asked for the time.
	askEvery = 1024
	// scanGap is how many times as far apart as in colouring accesses may be that share a copy: a copy that is in the way is sent
	// home again, so that trying costs little. For a Llama layer in half of its SBUF it is 1,047 reloads and not 1,962, at 16 and
	// beyond the copies drive each other out.
	scanGap = 4
)

// LinearScan places PSUM and then SB, each by one walk over the function in program order. At every instruction (or scheduling unit)
// it frees what is used no more, then places what begins. When something finds no place it sends the active value home that ends
// last and is neither pinned, nor marked no-spill, nor used right here, and tries again with the next until it fits; then it takes the
// marked ones too, unless Options.NoSpillHint. A value that
// went home comes back at its next use as a copy of the bytes that the uses from there on touch. Before it gives up it cuts open
// accumulation groups in PSUM, and lays out the instruction's own operands and results anew, each as small as it can be. All spill
// code is inserted at the end of a scan.
//
// Placements from before the call stay and obstruct from the start of the function to their last use. It sets FuncPsumPlaced and
// FuncSBPlaced. Errors: User for undefined uses; Limit when what one instruction needs does not fit beside what cannot move; Bug
// for a location in another memory than its set; regalloc.TimeoutError. After an error in SB the function holds PSUM's placements and spill code.
func LinearScan(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (psum, sb Metrics, err error) {
	unused, err := ws.linearise(m, f, &opt)
	psum.Unused, sb.Unused = unused, unused
	if err != nil {
		return psum, sb, err
	}
	if err = ws.linearScan(m, f, target.SpacePSUM, &opt, &psum); err != nil {
		return psum, sb, err
	}
	m.Funcs.At(f).Flags |= ir.FuncPsumPlaced
	if err = ws.linearScan(m, f, target.SpaceSB, &opt, &sb); err != nil {
		return psum, sb, err
	}
	m.Funcs.At(f).Flags |= ir.FuncSBPlaced
	return psum, sb, nil
}

// linearScan is the scan of one memory, over points that are there, and leaves them true.
func (ws *Workspace) linearScan(m *ir.Module, f ir.Func, space target.Space, opt *Options, out *Metrics) (err error) {
	mt := ws.begin(m, f, space.String(), opt)
	*mt = Metrics{Space: space, Iterations: 1, Unused: out.Unused}
	defer func() {
		*out = *mt
		ws.spill.end()
		ws.scan.manager = nil
	}()
	if gap := &ws.spill.opt.RunGap; opt.RunGap == 0 && *gap > 0 {
		*gap *= scanGap
	}
	opt.banner(m, f, mt)
	sc := &ws.scan
	sc.psum = space == target.SpacePSUM
	if sc.manager = opt.Manager; sc.manager == nil {
		sc.manager = &sc.mine
	}
	if sc.psum {
		err = ws.describePSUM(m, opt, mt)
	} else {
		err = ws.describeSB(m, opt, mt)
	}
	if err == nil {
		err = ws.walk(m, mt)
	}
	if err != nil {
		return err
	}
	mt.Nodes, mt.Evictions = len(sc.pieces), sc.evictions
	mt.FragMedian, mt.FragTail = sc.manager.Fragmentation()
	ws.note(m)
	if len(sc.spilled) > 0 {
		if sc.psum {
			ws.rewritePSUM(m)
		} else {
			ws.rewriteSB(m)
		}
		ws.spill.apply()
		ws.lin.Build(m, f)
		ws.spill.findUnits(m, &ws.lin)
		mt.SpillCost = spillCost(m, f)
	}
	if sc.psum {
		err = ws.finishPSUM(m, opt, mt)
	} else {
		err = ws.finishSB(m, opt, mt)
	}
	if err == nil {
		ws.logSuccess(m, f, opt, mt)
	}
	return err
}

// beginScan numbers the pieces of the units and sizes the tables. rows and size are the memory.
func (ws *Workspace) beginScan(rows int, size uint32) {
	sc, n := &ws.scan, len(ws.ranges.Units)
	sc.manager.Reset(rows, size)
	sc.pieces = arena.Resized(sc.pieces, n)
	sc.boxes, sc.spilled, sc.active, sc.due = sc.boxes[:0], sc.spilled[:0], sc.active[:0], sc.due[:0]
	sc.mark, sc.wait, sc.slot = arena.Resized(sc.mark, n), arena.Resized(sc.wait, n), arena.Resized(sc.slot, n)
	clear(sc.mark)
	clear(sc.wait)
	clear(sc.slot)
	sc.turns, sc.stretch = sc.turns[:0], sc.stretch[:0]
	if sc.psum {
		sc.turns = arena.Resized(sc.turns, n)
		clear(sc.turns)
	}
	sc.evictions = 0
}

// note writes where the units stand into their locations, which are not allocated before all has been checked.
func (ws *Workspace) note(m *ir.Module) {
	sc := &ws.scan
	for i := range ws.ranges.Units {
		p, l := &sc.pieces[i], m.Locs.At(ws.ranges.Units[i].First)
		switch {
		case p.fixed:
		case sc.psum:
			l.Bank = int8(p.at.Lo)
		default:
			noteSB(l, p.at)
		}
	}
}

// homogeneous refuses a unit with a location outside of the memory that is scanned.
func (ws *Workspace) homogeneous(m *ir.Module, u *ssa.Unit, space target.Space) error {
	for k := range u.Count {
		if s := m.Locs.At(u.Loc(k)).Space; s != space {
			return target.Errorf(target.Bug, "the scan of %s meets %s of set %s, which is in %s", space, m.LocName(u.Loc(k)), m.Names.String(m.Sets.At(u.Set).Name), s)
		}
	}
	return nil
}

// obstruct reserves what has a place already. Of placements that lie on each other the one that ends last holds the common cells,
// so that none is freed too early.
func (ws *Workspace) obstruct() {
	sc := &ws.scan
	sc.needs = sc.needs[:0]
	for i := range sc.pieces {
		if sc.pieces[i].fixed {
			sc.needs = append(sc.needs, uint32(i))
		}
	}
	slices.SortFunc(sc.needs, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(sc.pieces[b].end, sc.pieces[a].end), cmp.Compare(a, b))
	})
	for _, i := range sc.needs {
		sc.manager.Reserve(i, sc.pieces[i].at)
		ws.activate(i)
	}
}

// walk is the scan.
func (ws *Workspace) walk(m *ir.Module, mt *Metrics) error {
	sc, units := &ws.scan, ws.ranges.Units
	ws.obstruct()
	acc, locs := ws.lin.All()
	points := ssa.Point(max(1, ws.lin.Points()))
	next, k, asked := 0, 0, 1
	for h := ssa.Point(0); h < points; {
		end := ws.unitEnd(h)
		ws.expire(m, h)
		for ; k < len(acc) && acc[k].At < end; k++ {
			if u := ws.ranges.UnitOf(locs[k]); u != ssa.NoUnit {
				sc.mark[u] = h + 1
			}
		}
		sc.needs = sc.needs[:0]
		if len(sc.due) > 0 {
			for i := sc.due[h]; i != 0; i = sc.pieces[i-1].queued {
				sc.needs = append(sc.needs, i-1)
			}
			slices.Sort(sc.needs)
		}
		for ; next < len(units) && units[next].Start < end; next++ {
			if p := &sc.pieces[next]; !p.fixed {
				p.start = h
				sc.needs = append(sc.needs, uint32(next))
			}
		}
		for _, i := range sc.needs {
			if ws.placeOrSpill(m, i, h) {
				continue
			}
			if ws.spill.opt.NoSpill {
				return ws.noRoom(m, mt, i, h)
			}
			if i, ok := ws.lastStand(m, h); !ok {
				return ws.noRoom(m, mt, i, h)
			}
			break
		}
		if sc.evictions >= asked {
			asked = sc.evictions + askEvery
			if err := ws.guard.Next(0, true); err != nil {
				return err
			}
		}
		h = end
	}
	return nil
}

// unitEnd is the first point after the scheduling unit that begins at h.
func (ws *Workspace) unitEnd(h ssa.Point) ssa.Point {
	if int(h) >= ws.lin.Points() {
		return h + 1 // of a function without instructions
	}
	return ws.spill.tails[h] + 1
}

// expire frees what ends at or before h. A copy that its value outlives queues the next.
func (ws *Workspace) expire(m *ir.Module, h ssa.Point) {
	sc := &ws.scan
	for len(sc.active) > 0 {
		i := sc.active[len(sc.active)-1]
		if sc.pieces[i].end > h {
			return
		}
		sc.active = sc.active[:len(sc.active)-1]
		sc.manager.Free(i)
		if int(i) >= len(ws.ranges.Units) && !sc.psum {
			ws.carryOn(m, i, false)
		}
	}
}

// before is the order of the active pieces: those that end last, by name of the set, definitions before copies, by name of
// the location, the smaller, the older.
func (ws *Workspace) before(i, j uint32) bool {
	sc, m := &ws.scan, ws.spill.m
	a, b := &sc.pieces[i], &sc.pieces[j]
	if a.end != b.end {
		return a.end > b.end
	}
	u, v := &ws.ranges.Units[a.unit], &ws.ranges.Units[b.unit]
	if c := ws.compareNames(m.Sets.At(u.Set).Name, m.Sets.At(v.Set).Name); c != 0 {
		return c < 0
	}
	n := uint32(len(ws.ranges.Units))
	if (i < n) != (j < n) {
		return i < n
	}
	if c := ws.compareNames(m.Locs.At(u.First).Name, m.Locs.At(v.First).Name); c != 0 {
		return c < 0
	}
	return cmp.Or(cmp.Compare(a.cells(), b.cells()), cmp.Compare(i, j)) < 0
}

func (p *piece) cells() uint64 { return uint64(p.req.Len) * uint64(p.req.Rows) }

func (ws *Workspace) compareNames(a, b arena.Name) int {
	if a == b {
		return 0
	}
	sc, names := &ws.scan, &ws.spill.m.Names
	sc.name, sc.other = names.Append(sc.name[:0], a), names.Append(sc.other[:0], b)
	return bytes.Compare(sc.name, sc.other)
}

// activate puts a placed piece into the order.
func (ws *Workspace) activate(i uint32) {
	sc := &ws.scan
	sc.pieces[i].placed = true
	lo, hi := 0, len(sc.active)
	for lo < hi {
		if mid := (lo + hi) / 2; ws.before(sc.active[mid], i) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	sc.active = slices.Insert(sc.active, lo, i)
}

// deactivate frees the k-th active piece.
func (ws *Workspace) deactivate(k int) {
	sc := &ws.scan
	i := sc.active[k]
	sc.active = slices.Delete(sc.active, k, k+1)
	sc.manager.Free(i)
	sc.pieces[i].placed = false
}

// try places a piece. The start alignment that only serves bus efficiency is given up before anything is spilled.
func (ws *Workspace) try(i uint32) bool {
	sc := &ws.scan
	p := &sc.pieces[i]
	at, ok := sc.manager.Place(i, p.req)
	if !ok && p.least != p.req.Align {
		q := p.req
		q.Align = p.least
		at, ok = sc.manager.Place(i, q)
	}
	if ok {
		p.at = at
		ws.activate(i)
	}
	return ok
}

// placeOrSpill places a piece, at the cost of what may be spilled.
func (ws *Workspace) placeOrSpill(m *ir.Module, i uint32, h ssa.Point) bool {
	if ws.try(i) {
		return true
	}
	if ws.spill.opt.NoSpill {
		return false
	}
	ws.logFailure(m, i, h)
	sc := &ws.scan
	for _, marked := range [...]bool{false, true} {
		for k := 0; k < len(sc.active); {
			if v := sc.active[k]; sc.mark[sc.pieces[v].unit] == h+1 || !ws.evictable(m, v, h, marked) {
				k++
				continue
			}
			ws.evict(m, k, h, false)
			if ws.try(i) {
				return true
			}
		}
	}
	for sc.psum && ws.makeWait(m, h) {
		if ws.try(i) {
			return true
		}
	}
	return false
}

// logFailure tells what found no place, and the active pieces in their order.
func (ws *Workspace) logFailure(m *ir.Module, i uint32, h ssa.Point) {
	if !ws.says(m, "failed to allocate", i, h) {
		return
	}
	for k, j := range ws.scan.active {
		ws.spill.opt.Log.Debug("active", "index", k, "set", ws.setName(m, j), "type", uint8(ws.spill.mt.Space))
	}
}

// says logs an event of a piece, if anybody listens. A set that moves has one location, its index is 0.
func (ws *Workspace) says(m *ir.Module, what string, i uint32, at ssa.Point) bool {
	log := ws.spill.opt.Log
	if log == nil || !log.Enabled(context.Background(), slog.LevelDebug) {
		return false
	}
	log.Debug(what, "set", ws.setName(m, i), "index", 0, "point", at)
	return true
}

func (ws *Workspace) setName(m *ir.Module, i uint32) string {
	return m.Names.String(m.Sets.At(ws.ranges.Units[ws.scan.pieces[i].unit].Set).Name)
}

// evictable reports that a piece can leave its place before the scheduling unit at h. marked says that one may which its producer
// marked do-not-spill.
func (ws *Workspace) evictable(m *ir.Module, i uint32, h ssa.Point, marked bool) bool {
	sc := &ws.scan
	p := &sc.pieces[i]
	w := &sc.wait[p.unit]
	if p.fixed || *w > h+1 {
		return false
	}
	if m.Sets.At(ws.ranges.Units[p.unit].Set).Flags&ir.SetNoSpill != 0 && (!marked || ws.spill.opt.NoSpillHint) {
		return false
	}
	switch {
	case !sc.psum:
		if u := &ws.ranges.Units[p.unit]; *w == 0 {
			*w = 1
			if sbStays(m, u, ws.use(m, u), false) {
				*w = never
			}
		}
	case int(i) >= len(ws.ranges.Units):
		return false // an accumulation group of its own
	default:
		*w = ws.openUntil(m, p.unit, h)
	}
	return *w <= h+1
}

// evict sends the k-th active piece home before the scheduling unit at h. single brings back no more than one scheduling unit needs.
func (ws *Workspace) evict(m *ir.Module, k int, h ssa.Point, single bool) {
	sc := &ws.scan
	i := sc.active[k]
	ws.deactivate(k)
	sc.evictions++
	p := &sc.pieces[i]
	ws.says(m, "spill: store", i, h)
	if sc.slot[p.unit] == 0 {
		ws.sendHome(m, p.unit, h)
	}
	p.end = h
	if sc.psum {
		ws.queueGroups(m, i, h)
		return
	}
	acc := ws.lin.Of(ws.ranges.Units[p.unit].First)
	p.to = p.from + uint32(lowerVisit(acc[p.from:p.to], h))
	ws.carryOn(m, i, single)
}

// sendHome makes a unit a spilled one.
func (ws *Workspace) sendHome(m *ir.Module, unit uint32, h ssa.Point) {
	sc := &ws.scan
	s := spilledUnit{unit: unit, cut: h}
	if !sc.psum {
		s.rm, s.isRemat = ws.remat(m, &ws.ranges.Units[unit])
	}
	if len(sc.spilled) == 0 {
		sc.due = arena.Resized(sc.due, ws.lin.Points()+1)
		clear(sc.due)
	}
	sc.spilled = append(sc.spilled, s)
	sc.slot[unit] = uint32(len(sc.spilled))
}

// lowerVisit is the first access at or after a point.
func lowerVisit(acc []ssa.Access, h ssa.Point) int {
	k, _ := slices.BinarySearchFunc(acc, h, func(a ssa.Access, p ssa.Point) int { return cmp.Compare(a.At, p) })
	return k
}

// queue appends a piece after another of its unit and has it placed where it starts.
func (ws *Workspace) queue(after uint32, p piece) (id uint32) {
	sc := &ws.scan
	id = uint32(len(sc.pieces))
	p.queued = sc.due[p.start]
	sc.due[p.start] = id + 1
	p.next = sc.pieces[after].next
	sc.pieces = append(sc.pieces, p)
	sc.pieces[after].next = id + 1
	return id
}

// lastStand lays out anew all that the scheduling unit at h needs, after everything else that can move has gone: operands come
// back as copies beside the results, tall and large ones first; if that fails, each with no more than the bytes that this unit
// touches. It reports the first piece that found no place.
func (ws *Workspace) lastStand(m *ir.Module, h ssa.Point) (failed uint32, ok bool) {
	sc := &ws.scan
	for k := 0; k < len(sc.active); {
		i := sc.active[k]
		switch {
		case sc.pieces[i].start == h:
			ws.deactivate(k)
		case ws.evictable(m, i, h, true):
			n := len(sc.pieces)
			ws.evict(m, k, h, true)
			for j := n; j < len(sc.pieces); j++ {
				if sc.pieces[j].start == h {
					sc.needs = append(sc.needs, uint32(j))
				}
			}
		default:
			k++
		}
	}
	if failed, ok = ws.layOut(h); ok || sc.psum {
		return failed, ok
	}
	for k, i := range sc.needs {
		sc.needs[k] = ws.shrink(m, i, h)
	}
	sc.needs = slices.DeleteFunc(sc.needs, func(i uint32) bool { return i == reserved })
	return ws.layOut(h)
}

// layOut places the needs, the tallest and longest first, or none of them.
func (ws *Workspace) layOut(h ssa.Point) (failed uint32, ok bool) {
	sc := &ws.scan
	slices.SortFunc(sc.needs, func(i, j uint32) int {
		a, b := &sc.pieces[i].req, &sc.pieces[j].req
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(b.Len, a.Len), cmp.Compare(i, j))
	})
	for _, i := range sc.needs {
		p := &sc.pieces[i]
		q := p.req
		q.Align = p.least
		at, ok := sc.manager.Place(i, q)
		if !ok {
			for k := 0; k < len(sc.active); {
				if sc.pieces[sc.active[k]].start == h {
					ws.deactivate(k)
				} else {
					k++
				}
			}
			return i, false
		}
		p.at = at
		ws.activate(i)
	}
	return 0, true
}

// noRoom is the error for a piece that finds no place though nothing is left to spill.
func (ws *Workspace) noRoom(m *ir.Module, mt *Metrics, i uint32, h ssa.Point) error {
	sc := &ws.scan
	p := &sc.pieces[i]
	o := overflow{space: mt.Space, loc: ws.ranges.Units[p.unit].First, need: int64(p.req.Len) * granule, limit: mt.Capacity, what: "bytes a partition",
		try: "plan smaller tiles (--tile-sb-bytes), give the allocator more bytes (--sb-bytes) or take --allocator=coloring"}
	weight := func(u uint32) int64 { return m.Locs.At(ws.ranges.Units[u].First).Bytes }
	if sc.psum {
		o.need, o.what, o.try = int64(p.req.Len), "banks", "give the allocator more banks (--psum-banks), keep fewer results in PSUM at once (a lower --tile-level) or take --allocator=coloring"
		weight = func(u uint32) int64 { return int64(ws.psum.span[u]) }
	} else {
		o.limit -= int64(ws.sb.floor) * granule
	}
	inst := "the start"
	if int(h) < ws.lin.Points() {
		inst = m.InstName(ws.lin.Insts[h])
	}
	o.why = fmt.Sprintf("and at %s no victim is left to spill", inst)
	if ws.spill.opt.NoSpill {
		o.why = fmt.Sprintf("at %s, and spilling is off", inst)
	}
	return ws.complain(m, &o, ws.segs[p.unit:p.unit+1], ws.segs, weight)
}
