package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// home is where the bytes of a spilled value live. A byte at (partition, byte) of the value is at (partition + part, byte + lo)
// of the home, rows of row bytes.
type home struct {
	loc  ir.Loc
	part int32
	lo   int64
	row  int64
}

// visit is one access of the value that is being spilled.
type visit struct {
	fp    ir.Footprint
	acc   int32 // in the use list of the location
	part  int32 // which of the parts that no access joins, see findParts
	at    ssa.Point
	unit  ssa.Point // first point of its scheduling unit
	loop  uint32    // whose body it is in
	write bool
	read  bool
	load  bool // its bytes must be loaded first
	save  bool // its bytes must be saved after
	// glued is a save of these bytes to the home, from an earlier round; clean is a load of bytes that stay where they came from.
	glued  bool
	clean  bool
	matmul bool
	out    [2]int64 // of a save of a dense run: the bytes that are loaded again
	wraps  bool     // the last visit of a loop, of which the next turn loads something
}

// run is a stretch of visits that share one location.
type run struct {
	from, to int
	box      box
	dense    int // visit before which all that the run reads is loaded at once, -1 none
	reads    box
	idle     bool // nothing but clean loads
	atomic   bool // one scheduling unit: it cannot be cut again
	// resident: in the value's own location, which holds all that it reads. Of such a run only the saves are planned.
	resident bool
	loc      ir.Loc // where it stands once rewritten, none when idle
}

// spiller rewrites values so that they live elsewhere and visit the memory.
type spiller struct {
	m   *ir.Module
	f   ir.Func
	lin *ssa.Linear // of the visits
	opt Options
	mt  Metrics

	edits ir.Edits
	homes arena.Column[ir.Set, home]
	// copied marks what spilling made: it counts as no value of its own.
	copied  arena.Column[ir.Set, bool]
	dropped arena.Column[ir.Set, bool]
	fresh   []ir.Set
	names   uint32 // last ordinal of a derived name
	moved   int64  // bytes by the spill code of the value at hand, less by loads that it made needless

	visits    []visit
	runs      []run
	hops      []hop // of the value at hand
	fills     []fill
	carried   []carry
	fragments []fragment
	copies    []copying // of the round
	spans     []span
	strips    []int32 // partitions where visits begin or end, ascending
	coarse    bool    // they are quadrants instead
	high      int64   // end of the bytes that visits touch
	// valid is what the run that is being planned has, or what later loads need; written is what the value has.
	valid, written cover
	done           cover // what a hop has copied

	stays stays
	cuts  cutter
	walk  walker
	fit   fitter
	// split is by unit: it lives in parts. old and oldFirst are the stops before that was decided.
	split        []bool
	old          []stop
	oldFirst     []uint32
	heads, tails []ssa.Point // by point: the first and the last of its scheduling unit

	groups    []group
	open      []int // groups that have not stopped
	groupRuns []groupRun
	psumUses  []uint32 // by point: accesses to PSUM before it; empty until it is asked for
	owned     []ir.Loc
	list      []ir.Set
}

// begin starts the spilling of one call.
func (sp *spiller) begin(m *ir.Module, f ir.Func, opt *Options) {
	sp.m, sp.f, sp.opt, sp.mt = m, f, *opt, Metrics{}
	sp.edits.Reset()
	sp.homes.Reset()
	sp.copied.Reset()
	sp.walk.hints.Reset()
	sp.dropped.Reset()
	sp.fresh = sp.fresh[:0]
	sp.names = 0
}

// end drops the reference to the module.
func (sp *spiller) end() { sp.m, sp.lin = nil, nil }

// apply lays the round's changes into the function: instructions into the order, new sets into its list, dead ones out of it.
func (sp *spiller) apply() {
	m := sp.m
	sp.edits.Apply(m)
	sp.list = sp.list[:0]
	for _, s := range m.SetsOf(sp.f) {
		if !sp.dropped.Get(s) {
			sp.list = append(sp.list, s)
		}
	}
	sp.list = append(sp.list, sp.fresh...)
	sp.fresh = sp.fresh[:0]
	m.Funcs.At(sp.f).Sets = m.SetList.AddSlice(sp.list)
	m.Funcs.At(sp.f).Flags &^= ir.FuncHasDeps
}

// countSpilled adds a value to the figures of which bytes of so many partitions left, countWhole one that left whole.
func (sp *spiller) countSpilled(bytes, parts int64, isRemat bool) {
	sp.mt.Spilled++
	sp.mt.SpilledPerPart += bytes
	sp.mt.SpilledBytes += bytes * parts
	if isRemat {
		sp.mt.Remats++
	}
}

func (sp *spiller) countWhole(m *ir.Module, u *ssa.Unit, isRemat bool) {
	l := m.Locs.At(u.First)
	sp.countSpilled(l.Bytes, int64(l.Parts), isRemat)
}

// rewrite gives each planned run a location of its own and adds the loads and saves. single says that the locations may not be
// spilled again.
func (ws *Workspace) rewrite(m *ir.Module, u *ssa.Unit, rm *remat, isRemat, single bool) {
	sp := &ws.spill
	l := *m.Locs.At(u.First)
	h := sp.homes.Get(u.Set)
	if h.loc == 0 && !isRemat && sp.anyLoad() {
		_, hl := sp.newSet(u.Set, arena.DeriveHome, ir.ClassTensor, target.SpaceDRAM, int64(l.Parts), l.Bytes, ir.SetSpillHome)
		h = home{loc: hl, row: l.Bytes}
		sp.mt.HomeBytes += int64(l.Parts) * l.Bytes
	}
	acc := ws.lin.Of(u.First)
	n, fills := 0, 0 // behind
	for k := range sp.runs {
		r := &sp.runs[k]
		if r.idle { // nobody near needs these loads: everybody reloads
			for v := r.from; v < r.to; v++ {
				i := acc[sp.visits[v].acc].Inst
				sp.edits.Delete(i)
				sp.moved -= bytesOf(&sp.visits[v].fp)
			}
			continue
		}
		fl, kind := ir.SetFlag(0), arena.DeriveSpill
		if single || r.atomic {
			fl = ir.SetReload
		}
		if sp.visits[r.from].load || r.dense == r.from {
			kind = arena.DeriveReload
		}
		if r.resident {
			r.loc = u.First
		} else {
			r.loc = sp.stand(u, r.box, kind, fl, &h)
		}
		at := r.loc
		for v := r.from; v < r.to; v++ {
			for ; n < len(sp.hops) && sp.hops[n].visit == v; n++ {
				at = ws.hop(u, n, r, &h)
			}
			vis := &sp.visits[v]
			a := acc[vis.acc]
			head := ws.lin.Insts[vis.unit]
			for ; fills < len(sp.fills) && sp.fills[fills].visit == v; fills++ {
				sp.reload(rm, isRemat, &h, r, at, sp.fills[fills].fp, a.Arg, head)
			}
			if r.dense == v {
				sp.reload(rm, isRemat, &h, r, at, r.reads.dense(&vis.fp), a.Arg, head)
			} else if vis.load {
				sp.reload(rm, isRemat, &h, r, at, vis.fp, a.Arg, head)
			}
			if vis.save {
				fp := vis.fp
				if fp.N == 0 {
					fp.Lo, fp.Hi, fp.Run = vis.out[0], vis.out[1], vis.out[1]-vis.out[0]
				}
				sp.save(&h, r, at, fp, a, ws.tail(vis.at))
			}
			if !r.resident {
				sp.rebase(a.Arg, r.box, at)
			}
		}
	}
}

// gather lists the visits of a unit's location.
func (sp *spiller) gather(lin *ssa.Linear, u *ssa.Unit, isRemat bool) {
	m := sp.m
	sp.lin = lin
	sp.visits = sp.visits[:0]
	h := sp.homes.Get(u.Set)
	for k, a := range lin.Of(u.First) {
		v := visit{
			fp: m.FootprintOf(apOf(m, a.Arg)), acc: int32(k), at: a.At, unit: sp.heads[a.At], loop: lin.LoopOf(a.At),
			write: a.Flags&ssa.Write != 0, read: a.Flags&ssa.Read != 0,
		}
		in := m.Insts.At(a.Inst)
		v.matmul = in.Op.Is(ir.FlagMatmul)
		if h.loc != 0 {
			// A value that comes from elsewhere has these bytes when it needs them, like for any other read.
			v.glued = !isRemat && v.read && in.Flags&ir.InstSpill != 0 && m.LocOf(m.Outs(a.Inst)[0]) == h.loc
			v.clean = v.write && in.Flags&ir.InstReload != 0 && m.LocOf(m.Ins(a.Inst)[0]) == h.loc
		}
		v.clean = v.clean || isRemat && v.write
		sp.visits = append(sp.visits, v)
	}
}

// findUnits finds the scheduling units: an instruction and those behind it that are tied to it, in one turn of one loop.
func (sp *spiller) findUnits(m *ir.Module, lin *ssa.Linear) {
	sp.psumUses = sp.psumUses[:0]
	n := lin.Points()
	sp.heads, sp.tails = arena.Resized(sp.heads, n), arena.Resized(sp.tails, n)
	for p := range n {
		q := ssa.Point(p)
		sp.heads[p] = q
		if p > 0 && m.Insts.At(lin.Insts[p]).Flags&ir.InstUnit != 0 && lin.LoopOf(q) == lin.LoopOf(q-1) {
			sp.heads[p] = sp.heads[p-1]
		}
	}
	for p := n - 1; p >= 0; p-- {
		sp.tails[p] = ssa.Point(p)
		if p+1 < n && sp.heads[p+1] == sp.heads[p] {
			sp.tails[p] = sp.tails[p+1]
		}
	}
}

// tail is the last instruction of the scheduling unit of p.
func (ws *Workspace) tail(p ssa.Point) ir.Inst { return ws.lin.Insts[ws.spill.tails[p]] }

// cutRuns groups the visits of a value in one part: visits of one scheduling unit always together, and with a save of an earlier
// round what it saves; beyond that all that lie near each other in one loop, unless single. So a run is straight-line code in one
// turn, and what it does not write itself it loads in each turn.
func (sp *spiller) cutRuns(single bool) {
	gap := sp.opt.RunGap
	if gap == 0 {
		gap = DefaultRunGap
	}
	sp.runs = sp.runs[:0]
	for i := range sp.visits {
		v := &sp.visits[i]
		if i > 0 {
			prev := &sp.visits[i-1]
			if v.unit == prev.unit || v.glued || !single && v.loop == prev.loop && int(v.at-prev.at) <= gap {
				sp.runs[len(sp.runs)-1].to = i + 1
				continue
			}
		}
		sp.runs = append(sp.runs, run{from: i, to: i + 1, dense: -1})
	}
}

// plan decides what each run loads and saves, what its location holds, and what its hops copy. It returns the visit before which copies
// cannot do, none -1.
func (sp *spiller) plan(isRemat bool, rm *remat) int {
	sp.fills, sp.carried = sp.fills[:0], sp.carried[:0]
	n := 0
	sp.findStrips()
	sp.written.reset(sp)
	sp.valid.reset(sp)
	for k := range sp.runs {
		r := &sp.runs[k]
		sp.planLoads(r, isRemat, rm)
		if from := n; n < len(sp.hops) && sp.hops[n].visit < r.to {
			for n < len(sp.hops) && sp.hops[n].visit < r.to {
				n++
			}
			v := sp.planHops(r, from, n, isRemat, rm)
			sp.valid.reset(sp)
			if v >= 0 {
				return v
			}
		}
		for i := r.from; i < r.to; i++ {
			if sp.visits[i].write {
				sp.written.add(sp, &sp.visits[i].fp)
			}
		}
	}
	sp.findWraps()
	// Backwards: what is written and loaded again must be saved, unless it is written once more before that.
	need, f := &sp.valid, len(sp.fills)
	for k := len(sp.runs) - 1; k >= 0; k-- {
		r := &sp.runs[k]
		for i := r.to - 1; i >= r.from; i-- {
			v := &sp.visits[i]
			if v.wraps {
				need.fill()
			}
			switch {
			case v.glued || v.clean: // home has them as they are here
				need.remove(sp, &v.fp)
			case v.write:
				if v.save = need.meets(sp, &v.fp); v.save && v.fp.N == 0 {
					fp := v.fp
					need.narrow(sp, &fp)
					v.out = [2]int64{fp.Lo, fp.Hi}
				}
				need.remove(sp, &v.fp)
			}
			for ; f > 0 && sp.fills[f-1].visit == i; f-- {
				need.touch(sp, &sp.fills[f-1].fp)
			}
			if r.dense == i {
				whole := r.reads.dense(&v.fp)
				need.touch(sp, &whole)
			} else if v.load {
				need.touch(sp, &v.fp)
			}
		}
	}
	return -1
}

// planLoads walks one run and finds the reads of bytes that the run neither wrote nor loaded before.
func (sp *spiller) planLoads(r *run, isRemat bool, rm *remat) {
	r.idle = true
	for i := r.from; i < r.to; i++ {
		r.idle = r.idle && sp.visits[i].clean
	}
	if r.idle || r.resident {
		return
	}
	valid := &sp.valid
	starts, matmul := int32(-1), false
	bytes := int64(0)
	for i := r.from; i < r.to; i++ {
		v := &sp.visits[i]
		r.box.add(boxOf(&v.fp))
		if v.read && !v.glued && !valid.holds(sp, &v.fp) {
			r.reads.add(boxOf(&v.fp))
			bytes += bytesOf(&v.fp)
		}
		valid.add(sp, &v.fp)
		if i == r.from {
			starts = v.fp.P0
		} else if starts != v.fp.P0 {
			starts = -1
		}
		matmul = matmul || v.matmul
	}
	sp.forget(r)
	// All at once where most of the rectangle is read anyway and nothing of it is still unwritten.
	var whole ir.Footprint
	all := false
	if bytes > 0 && 2*bytes >= (r.reads.hi-r.reads.lo)*int64(r.reads.p1-r.reads.p0) {
		whole = r.reads.dense(&sp.visits[r.from].fp)
		all = sp.written.holds(sp, &whole)
	}
	for i := r.from; i < r.to; i++ {
		v := &sp.visits[i]
		v.load = v.read && !v.glued && !valid.holds(sp, &v.fp)
		if v.load && all {
			v.load, r.dense = false, i
			all = false
			if isRemat {
				r.box.add(rm.region(boxOf(&whole)))
			}
			valid.add(sp, &whole)
		}
		if v.load && isRemat {
			r.box.add(rm.region(boxOf(&v.fp)))
		}
		valid.add(sp, &v.fp)
	}
	sp.forget(r)
	if r.dense >= 0 {
		valid.remove(sp, &whole)
	}
	r.box.shape(matmul, starts)
}

// forget empties the set of what the run has.
func (sp *spiller) forget(r *run) {
	for i := r.from; i < r.to; i++ {
		sp.valid.remove(sp, &sp.visits[i].fp)
	}
}

func (sp *spiller) anyLoad() bool {
	for i := range sp.visits {
		if sp.visits[i].load {
			return true
		}
	}
	for i := range sp.runs {
		if sp.runs[i].dense >= 0 || len(sp.fills) > 0 {
			return true
		}
	}
	return false
}
