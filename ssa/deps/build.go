package deps

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Workspace is the storage of Build, for one worker. The zero value is ready.
type Workspace struct {
	chip    segments // SBUF, PSUM and what will be there
	dram    segments
	entries []entry
	prints  []ir.Footprint
	asked   []question  // by print
	changes [256]change // of the access at hand, by hash of the history
	number  uint32      // of accesses
	order   []ir.Inst

	region  arena.Column[ir.Loc, int64] // 1 + key of byte 0 of a location with an address space of its own
	root    arena.Column[ir.Loc, ir.Loc]
	written arena.Column[ir.Loc, bool]
	nextKey int64

	state [ir.NumStates]single
	regs  arena.Column[ir.Reg, single]
	links []link // readers of a single, as lists

	// Edges of the instruction at hand: one place an instruction, by stamp.
	scratchEdges []ir.Dep
	place        arena.Column[ir.Inst, place]
	stamp        uint32

	fence, fenced int // position after the last fence, and the fence itself + 1

	tails []ir.Inst             // last matmul of each group
	banks [16][quadrants]uint32 // 1 + group that used a bank last
}

type place struct{ stamp, at uint32 }

// single is the history of a location that is always touched whole: a register, an engine's state.
type single struct {
	writer  ir.Inst
	readers uint32 // head in links
}

type link struct {
	inst ir.Inst
	next uint32
}

const (
	keyPSUM   = 1 << 20
	keyRegion = 1 << 50
	regionGap = 4096 // regions start at its multiples, coarse intervals do not cross it
	coarse    = 512
)

// Build finds the edges of a straight-line function and stores them in InstRow.Deps; those of an earlier Build are
// dropped. The blocks count as one sequence in their order. A function with loops or branches is refused as unsupported.
// It takes time in proportion to the operands and the histories they meet, and allocates nothing when it runs again.
func Build(m *ir.Module, f ir.Func, w *Workspace) error {
	if err := w.begin(m, f); err != nil {
		return err
	}
	for at, i := range w.order {
		w.stamp++
		w.scratchEdges = w.scratchEdges[:0]
		if err := w.visit(m, i, at); err != nil {
			return err
		}
		e := w.scratchEdges
		if len(e) > 1 {
			slices.SortFunc(e, func(a, b ir.Dep) int { return int(int64(a.Inst) - int64(b.Inst)) })
		}
		m.Insts.At(i).Deps = m.Deps.AddSlice(e)
	}
	m.Funcs.At(f).Flags |= ir.FuncHasDeps
	return nil
}

// begin lists the instructions, forgets the last function and sees which locations are written at all.
func (w *Workspace) begin(m *ir.Module, f ir.Func) error {
	w.order = w.order[:0]
	for _, b := range m.BlocksOf(f) {
		w.order = append(w.order, m.OrderOf(b)...)
	}
	w.chip.reset(quadrants)
	w.dram.reset(1)
	w.entries = append(w.entries[:0], entry{})
	w.prints = append(w.prints[:0], ir.Footprint{})
	w.asked = append(w.asked[:0], question{})
	w.changes, w.number = [256]change{}, 0
	w.links = append(w.links[:0], link{})
	w.region.Reset()
	w.root.Reset()
	w.written.Reset()
	w.regs.Reset()
	w.place.Reset()
	w.place.Resize(m.Insts.Len())
	w.tails = w.tails[:0]
	w.banks = [16][quadrants]uint32{}
	w.state = [ir.NumStates]single{}
	w.nextKey, w.stamp, w.fence, w.fenced = keyRegion, 0, 0, 0

	keep := false
	for g := ir.Func(1); int(g) < m.Funcs.Len(); g++ {
		keep = keep || g != f && m.Funcs.At(g).Flags&ir.FuncHasDeps != 0
	}
	if !keep {
		m.Deps.Reset()
	}
	for _, a := range m.AliasRows() {
		if ra, rb := w.rootOf(a.A), w.rootOf(a.B); ra != rb {
			w.root.Set(rb, ra)
		}
	}
	for at, i := range w.order {
		op := m.Insts.At(i).Op
		if op.Is(ir.FlagRegion) || op == ir.OpCompareAndBranch || op == ir.OpUnconditionalBranch || op == ir.OpCall {
			return target.NotSupported(op.String(), "%s (%s): dependences are found in straight-line code only, so programs with branches, loops or calls end before this pass: give the passes in front of it by --pass",
				m.InstName(i), op)
		}
		if op.Is(ir.FlagTerminator) && at != len(w.order)-1 {
			return target.Errorf(target.User, "%s (%s) ends the function before its last instruction", m.InstName(i), op)
		}
		for _, a := range m.Outs(i) {
			switch a.Kind {
			case ir.ArgAP:
				w.written.Set(w.rootOf(m.LocOf(a)), true)
			case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP:
				first, n := m.LocsOf(m.Syms.At(ir.Sym(a.Ref)).Set)
				for l := first; int(l) < int(first)+n; l++ {
					w.written.Set(w.rootOf(l), true)
				}
			}
		}
	}
	return nil
}

func (w *Workspace) rootOf(l ir.Loc) ir.Loc {
	for {
		p := w.root.Get(l)
		if p == 0 {
			return l
		}
		if up := w.root.Get(p); up != 0 {
			w.root.Set(l, up) // halves the path, so that long chains of aliases stay cheap
			p = up
		}
		l = p
	}
}

// edge notes that the instruction at hand depends on p.
func (w *Workspace) edge(p ir.Inst, k ir.DepKind) {
	at := w.place.Ptr(p)
	if at.stamp == w.stamp {
		if e := &w.scratchEdges[at.at]; e.Kind < k {
			e.Kind = k
		}
		return
	}
	*at = place{w.stamp, uint32(len(w.scratchEdges))}
	w.scratchEdges = append(w.scratchEdges, ir.Dep{Inst: p, Kind: k})
}

// visit finds the edges of one instruction, its reads before its writes.
func (w *Workspace) visit(m *ir.Module, i ir.Inst, at int) error {
	op := m.Insts.At(i).Op
	info := op.Info()
	if info.Flags&(ir.FlagBarrier|ir.FlagTerminator) != 0 {
		for _, p := range w.order[w.fence:at] {
			w.edge(p, ir.DepOrdered)
		}
		w.fence, w.fenced = at, at+1
	} else if w.fenced != 0 {
		w.edge(w.order[w.fenced-1], ir.DepOrdered)
	}
	matmul := info.Flags&ir.FlagMatmul != 0
	for _, a := range m.Ins(i) {
		if err := w.operand(m, i, a, false); err != nil {
			return err
		}
	}
	for _, a := range m.Indices(i) {
		if err := w.operand(m, i, a, false); err != nil {
			return err
		}
	}
	outs := m.Outs(i)
	if m.ReadsDst(i) {
		for _, a := range outs {
			if err := w.operand(m, i, a, false); err != nil {
				return err
			}
		}
	}
	reads, writes := m.StateOf(i)
	reads, writes = reads&^ir.StatePEW, writes&^ir.StatePEW
	if reads|writes != 0 {
		for b := range w.state {
			if reads>>b&1 != 0 {
				w.readSingle(&w.state[b], i)
			}
		}
		for b := range w.state {
			if writes>>b&1 != 0 {
				w.writeSingle(&w.state[b], i)
			}
		}
	}
	for _, a := range outs {
		w.accumulation(m, i, a, matmul)
	}
	for _, a := range outs {
		if err := w.operand(m, i, a, true); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) operand(m *ir.Module, i ir.Inst, a ir.Arg, write bool) error {
	switch a.Kind {
	case ir.ArgAP:
		ap := m.APs.At(ir.AP(a.Ref))
		return w.enter(m, i, ap.Loc, m.Footprint(ap), write)
	case ir.ArgReg:
		if r := w.regs.Ptr(ir.Reg(a.Ref)); write {
			w.writeSingle(r, i)
		} else {
			w.readSingle(r, i)
		}
	case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP:
		// The address is not known here: every placement of the tensor is touched whole. A write may leave any of it as
		// it was, so it is no overwrite: it reads, too.
		y := m.Syms.At(ir.Sym(a.Ref))
		if y.Reg != 0 {
			w.readSingle(w.regs.Ptr(y.Reg), i)
		}
		first, n := m.LocsOf(y.Set)
		for l := first; int(l) < int(first)+n; l++ {
			fp := whole(m, l)
			if err := w.enter(m, i, l, fp, false); err != nil {
				return err
			}
			if write {
				if err := w.enter(m, i, l, fp, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// whole is the footprint of every byte of a location.
func whole(m *ir.Module, l ir.Loc) ir.Footprint {
	r := m.Locs.At(l)
	a := ir.APRow{Loc: l, Dtype: target.Uint8, Parts: uint16(r.Parts)}
	size := r.Bytes
	if !r.Space.OnChip() {
		a.Parts = 0
		size *= int64(max(r.Parts, 1))
	}
	fp := m.Footprint(&a)
	fp.Hi, fp.Run = fp.Lo+size, size
	return fp
}

// enter notes one access to the location.
func (w *Workspace) enter(m *ir.Module, i ir.Inst, l ir.Loc, fp ir.Footprint, write bool) error {
	root := w.rootOf(l)
	w.number++
	a := access{inst: i, in: &w.dram}
	if fp.Space.OnChip() {
		a.in = &w.chip
	}
	switch {
	case fp.Region != 0:
		if !w.written.Get(root) {
			return nil
		}
		fp.Region = root
		a.base = w.regionKey(m, root)
	case fp.Space == target.SpacePSUM:
		a.base = keyPSUM
	}
	if fp.Lo < 0 || fp.Hi < fp.Lo || fp.P0 < 0 || fp.P1 > 32*quadrants {
		return target.Errorf(target.Bug, "%s touches partitions %d to %d, bytes %d to %d of %s: outside any memory",
			m.InstName(i), fp.P0, fp.P1, fp.Lo, fp.Hi, m.LocName(l))
	}
	a.p0, a.p1 = uint8(fp.P0), uint8(fp.P1)
	a.lo, a.hi = a.base+fp.Lo, a.base+fp.Hi
	runs := fp.Runs()
	cut := runs <= maxRuns && write // run by run, each filling its interval
	if fp.Space == target.SpaceDRAM {
		cut = runs <= maxRunsDRAM
	}
	if runs > 1 && !cut {
		w.prints, w.asked = append(w.prints, fp), append(w.asked, question{})
		a.id = uint32(len(w.prints) - 1)
		a.fp = &w.prints[a.id]
		// The pattern decides, so the interval may be wider: neighbours then share its ends and histories stay whole.
		a.lo, a.hi = a.lo&^(coarse-1), (a.hi+coarse-1)&^(coarse-1)
	}
	if runs == 1 || !cut {
		w.access(&a, write)
		return nil
	}
	var idx [5]int64
	for {
		at := a.base + fp.Lo
		for k := 0; k < int(fp.N); k++ {
			at += idx[k] * fp.Step[k]
		}
		a.lo, a.hi = at, at+fp.Run
		w.access(&a, write)
		k := 0
		for ; k < int(fp.N); k++ {
			if idx[k]++; idx[k] < fp.Num[k] {
				break
			}
			idx[k] = 0
		}
		if k == int(fp.N) {
			return nil
		}
	}
}

func (w *Workspace) access(a *access, write bool) {
	switch dram := a.in == &w.dram; {
	case dram && write:
		w.writeDRAM(a)
	case dram:
		w.readDRAM(a)
	case write:
		w.write(a)
	default:
		w.read(a)
	}
}

// regionKey is the key of byte 0 of a location with an address space of its own.
func (w *Workspace) regionKey(m *ir.Module, root ir.Loc) int64 {
	at := w.region.Ptr(root)
	if *at == 0 {
		r := m.Locs.At(root)
		size := r.Bytes
		if !r.Space.OnChip() {
			size *= int64(max(r.Parts, 1))
		}
		*at = w.nextKey + 1
		w.nextKey += (size + regionGap - 1) &^ (regionGap - 1)
	}
	return *at - 1
}

func (w *Workspace) readSingle(s *single, i ir.Inst) {
	if s.writer != 0 && s.writer != i {
		w.edge(s.writer, ir.DepFlow)
	}
	w.links = append(w.links, link{i, s.readers})
	s.readers = uint32(len(w.links) - 1)
}

func (w *Workspace) writeSingle(s *single, i ir.Inst) {
	if s.writer != 0 && s.writer != i {
		w.edge(s.writer, ir.DepOutput)
	}
	for k := s.readers; k != 0; k = w.links[k].next {
		if w.links[k].inst != i {
			w.edge(w.links[k].inst, ir.DepAnti)
		}
	}
	s.writer, s.readers = i, 0
}
