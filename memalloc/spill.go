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

// box is a rectangle of a location: partitions × bytes.
type box struct {
	p0, p1 int32
	lo, hi int64
}

func (b *box) add(o box) {
	if b.p0 == b.p1 {
		*b = o
		return
	}
	b.p0, b.p1, b.lo, b.hi = min(b.p0, o.p0), max(b.p1, o.p1), min(b.lo, o.lo), max(b.hi, o.hi)
}

// and is what two boxes share, which may be nothing.
func (b box) and(o box) box {
	return box{max(b.p0, o.p0), min(b.p1, o.p1), max(b.lo, o.lo), min(b.hi, o.hi)}
}

func (b *box) holds(o box) bool { return b.p0 <= o.p0 && o.p1 <= b.p1 && b.lo <= o.lo && o.hi <= b.hi }

func boxOf(f *ir.Footprint) box { return box{f.P0, f.P1, f.Lo, f.Hi} }

// dense is the footprint of a whole box.
func (b box) dense(like *ir.Footprint) ir.Footprint {
	return ir.Footprint{Space: like.Space, Region: like.Region, P0: b.p0, P1: b.p1, Lo: b.lo, Hi: b.hi, Run: b.hi - b.lo}
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

// newSet adds a set with one location that is derived from another.
func (sp *spiller) newSet(of ir.Set, kind arena.Derive, class ir.TensorClass, space target.Space, parts int64, bytes int64, fl ir.SetFlag) (ir.Set, ir.Loc) {
	m := sp.m
	o := *m.Sets.At(of)
	sp.names++
	parent := o.Name
	if sp.copied.Get(of) { // a copy of a copy is a copy
		parent, _, _ = m.Names.Origin(parent)
	}
	name := m.Names.Derived(parent, kind, sp.names)
	esz := int64(max(1, o.Dtype.Size()))
	dtype := o.Dtype
	if bytes%esz != 0 {
		dtype, esz = target.Uint8, 1
	}
	s := m.Sets.Add(ir.SetRow{
		Name: name, Kind: ir.KindInternal, Class: class, Dtype: dtype, Func: sp.f, Count: 1, Origin: o.Origin,
		Shape: m.Ints.Add(parts, bytes/esz), Flags: fl,
	})
	row := ir.LocRow{Name: name, Set: s, Space: space, Parts: uint32(parts), Bytes: bytes, Pack: -1, ID: -1}
	if space == target.SpaceDRAM {
		m.Sets.At(s).PartDim = -1
		row.Parts, row.Bytes = 1, parts*bytes
	}
	l := m.Locs.Add(row)
	m.Sets.At(s).First = l
	sp.fresh = append(sp.fresh, s)
	return s, l
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

// stand makes a location for a box of a unit.
func (sp *spiller) stand(u *ssa.Unit, b box, kind arena.Derive, fl ir.SetFlag, h *home) ir.Loc {
	s, l := sp.newSet(u.Set, kind, ir.ClassNeuronSBTensor, target.SpaceSB, int64(b.p1-b.p0), b.hi-b.lo, fl)
	sp.copied.Set(s, true)
	if h.loc != 0 {
		sp.homes.Set(s, home{h.loc, h.part + b.p0, h.lo + b.lo, h.row})
	}
	return l
}

// drop takes a spilled set out of the function. Nothing refers to it any more; its rows stay, empty.
func (sp *spiller) drop(u *ssa.Unit) {
	sp.dropped.Set(u.Set, true)
	l := sp.m.Locs.At(u.First)
	l.Space, l.Parts, l.Bytes = target.SpaceUnallocated, 0, 0
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

// shape widens a box so that a start partition stays legal relative to a location for it: as it is where all accesses share it
// (starts, else -1), else by halves. What the array reads starts at partition 0.
func (b *box) shape(matmul bool, starts int32) {
	switch {
	case matmul:
		b.p0 = 0
	case starts >= 0 && starts%target.QuadrantPartitions == 0 && b.p0 == starts:
	case b.p0 >= 64:
		b.p0 = 64
	default:
		b.p0 = 0
	}
	b.round()
}

// round widens a box to whole granules.
func (b *box) round() {
	b.lo &^= granule - 1
	b.hi = (b.hi + granule - 1) &^ (granule - 1)
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

// rebase points an operand at the location that holds a box of its old one.
func (sp *spiller) rebase(arg uint32, b box, to ir.Loc) {
	m := sp.m
	a := &m.Args.Of(arena.Span{Off: arg, Len: 1})[0]
	a.Ref = uint32(m.APs.Add(b.within(*m.APs.At(ir.AP(a.Ref)), to)))
}

// within is a pattern of the value in the location that holds the box of it.
func (b box) within(row ir.APRow, to ir.Loc) ir.APRow {
	esz := int64(row.Dtype.Size())
	row.Loc = to
	row.Start -= uint8(b.p0)
	row.Off -= b.lo / esz
	row.Pairs[0].Step = int32((b.hi - b.lo) / esz)
	return row
}

// chip is the pattern of a footprint of the value in the location that holds box b of it, memory the one in its home.
func (sp *spiller) chip(fp *ir.Footprint, d target.Dtype, b box, l ir.Loc) ir.Arg {
	esz := int64(d.Size())
	row := ir.APRow{Loc: l, Dtype: d, Start: uint8(fp.P0 - b.p0), Parts: uint16(fp.P1 - fp.P0), Off: (fp.Lo - b.lo) / esz}
	row.Pairs[0] = ir.Pair{Step: int32((b.hi - b.lo) / esz), Num: uint32(row.Parts)}
	axesOf(fp, esz, row.Pairs[1:])
	return ir.Arg{Kind: ir.ArgAP, Dtype: d, Ref: uint32(sp.m.APs.Add(row))}
}

func (sp *spiller) memory(fp *ir.Footprint, d target.Dtype, h *home) ir.Arg {
	esz := int64(d.Size())
	row := ir.APRow{Loc: h.loc, Dtype: d, Off: (int64(fp.P0+h.part)*h.row + fp.Lo + h.lo) / esz}
	row.Pairs[0] = ir.Pair{Step: int32(h.row / esz), Num: uint32(fp.P1 - fp.P0)}
	axesOf(fp, esz, row.Pairs[1:])
	return ir.Arg{Kind: ir.ArgAP, Dtype: d, Ref: uint32(sp.m.APs.Add(row))}
}

// axesOf writes the axes of a footprint within a partition, outermost first: at most four, since a pattern on chip has no more
// and runs of several elements took at least one of them.
func axesOf(fp *ir.Footprint, esz int64, pairs []ir.Pair) {
	k := 0
	for i := int(fp.N) - 1; i >= 0; i-- {
		pairs[k] = ir.Pair{Step: int32(fp.Step[i] / esz), Num: uint32(fp.Num[i])}
		k++
	}
	if fp.Run > esz || k == 0 {
		pairs[k] = ir.Pair{Step: 1, Num: uint32(fp.Run / esz)}
	}
}

// elemOf is the element type in which a region is moved: the operand's, or bytes where the region or the home's rows are not
// whole elements of it.
func elemOf(m *ir.Module, arg uint32, fp *ir.Footprint, h *home) target.Dtype {
	d := m.APs.At(apOf(m, arg)).Dtype
	esz := int64(d.Size())
	if fp.Lo%esz != 0 || fp.Run%esz != 0 || h.row%esz != 0 || h.lo%esz != 0 {
		return target.Uint8
	}
	for i := range int(fp.N) {
		if fp.Step[i]%esz != 0 {
			return target.Uint8
		}
	}
	return d
}

// reload emits the load of a region of the value into the run's location before anchor.
func (sp *spiller) reload(rm *remat, isRemat bool, h *home, r *run, at ir.Loc, fp ir.Footprint, arg uint32, anchor ir.Inst) {
	m := sp.m
	var i ir.Inst
	blk := m.Insts.At(anchor).Block
	if isRemat {
		src, got, ok := rm.slice(boxOf(&fp))
		if !ok {
			src, got = rm.src, rm.dst
		}
		in := rm.operand(m, src)
		like := got.dense(&fp)
		out := sp.chip(&like, rm.row, r.box, at)
		row := *m.Insts.At(rm.load)
		i = m.NewInst(blk, row.Op, row.Engine, []ir.Arg{in}, []ir.Arg{out}, m.AttrsOf(rm.load)...)
	} else {
		d := elemOf(m, arg, &fp, h)
		i = m.NewInst(blk, ir.OpLoad, target.EngineSP, []ir.Arg{sp.memory(&fp, d, h)}, []ir.Arg{sp.chip(&fp, d, r.box, at)})
	}
	m.Insts.At(i).Flags |= ir.InstReload
	sp.stamp(i, anchor)
	sp.edits.Before(anchor, i)
	sp.mt.Reloads++
	sp.moved += bytesOut(m, i)
}

// save emits the store of what an access wrote, after its scheduling unit, from the engine that wrote it.
func (sp *spiller) save(h *home, r *run, at ir.Loc, fp ir.Footprint, a ssa.Access, anchor ir.Inst) {
	m := sp.m
	d := elemOf(m, a.Arg, &fp, h)
	i := m.NewInst(m.Insts.At(anchor).Block, ir.OpSave, sp.saver(a.Inst), []ir.Arg{sp.chip(&fp, d, r.box, at)}, []ir.Arg{sp.memory(&fp, d, h)})
	m.Insts.At(i).Flags |= ir.InstSpill
	sp.stamp(i, a.Inst)
	sp.edits.After(anchor, i)
	sp.mt.Saves++
	sp.moved += bytesOf(&fp)
}

// saver is the engine that saves what an instruction wrote.
func (sp *spiller) saver(i ir.Inst) target.Engine {
	if r := sp.m.Insts.At(i); !r.Op.IsDMA() && r.Engine.HasStream() {
		return r.Engine
	}
	return target.EngineSP
}

// stamp gives spill code the provenance of the instruction that it serves.
func (sp *spiller) stamp(i, of ir.Inst) {
	if s := sp.m.Source.Get(of); s != 0 {
		sp.m.Source.Set(i, s)
	}
}
