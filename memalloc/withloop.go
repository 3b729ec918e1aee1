package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// WithLoop places every PSUM and then every SB set of the function by live ranges over its flattened loops: values of one turn
// share places with each other, and what a turn takes from another or from outside keeps its place over the loop. Spill code
// stands in the body next to the access that it serves. SB sees the function as PSUM left it. At the end rings of blocks
// become the blocks that are live: an index that a loop counts is taken modulo their number. DRAM sets and registers stay
// as they are. Nothing is kept from one function to the next.
//
// Errors are those of PSUM and SB. After an error of SB the PSUM sets have their places.
func WithLoop(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (psum, sb Metrics, err error) {
	opt.flat = true
	if psum, err = PSUM(m, f, ws, opt); err != nil {
		return psum, sb, err
	}
	if sb, err = SB(m, f, ws, opt); err != nil {
		return psum, sb, err
	}
	ws.physicalIndices(m, f)
	return psum, sb, nil
}

// endInTheirLoop reports that every accumulation group ends in the turn in which it begins, or begins before the loop.
func (ws *Workspace) endInTheirLoop(acc []ssa.Access) bool {
	for k := range ws.spill.groups {
		g := &ws.spill.groups[k]
		if !ws.lin.In(acc[g.last].At, ws.lin.LoopOf(acc[g.first].At)) {
			return false
		}
	}
	return true
}

// findWraps marks the visits behind which a loop turns back to a load: what they wrote must be home by then, whatever comes
// further down. Of the loops that a visit is the last of, the outermost holds the loads of all.
func (sp *spiller) findWraps() {
	lin := sp.lin
	if len(lin.Loops) == 0 {
		return
	}
	run, load := 0, -1
	for i := range sp.visits {
		v := &sp.visits[i]
		for sp.runs[run].to <= i {
			run++
		}
		if v.load || sp.runs[run].dense == i {
			load = i
		}
		loop := lin.Loops[v.loop].Top
		if i+1 < len(sp.visits) {
			loop = lin.Leaving(v.at, sp.visits[i+1].at)
		}
		v.wraps = loop != 0 && load >= 0 && sp.visits[load].at > lin.Loops[loop].Head
	}
}

// physicalIndices turns every ring of blocks that is placed into the blocks that are live: block b is block b mod LiveN in every
// access, by the number of a loop's turn too, and the set has no others. A symbolic pattern whose address does not depend on
// any turn becomes a physical one. A ring with an index that only the machine knows, or that may leave the tensor, stays as it is.
func (ws *Workspace) physicalIndices(m *ir.Module, f ir.Func) {
	acc, locs := ws.lin.All()
	ws.slots.Reset()
	for _, s := range m.SetsOf(f) {
		ws.slots.Set(s, ringSlots(m, m.Sets.At(s)))
	}
	for k := range acc {
		s := m.Locs.At(locs[k]).Set
		if !ws.inside(m, s, &acc[k]) {
			ws.slots.Set(s, m.Sets.At(s).Count)
		}
	}
	for k := range acc {
		a, s := &acc[k], m.Locs.At(locs[k]).Set
		slots, first := ws.slots.Get(s), m.Sets.At(s).First
		if a.Flags&ssa.Symbolic != 0 {
			if locs[k] == first { // it is listed with every block
				ws.physicalIndex(m, s, a, slots)
			}
		} else if b := uint32(locs[k] - first); b >= slots {
			row := *m.APs.At(apOf(m, a.Arg))
			row.Loc = first + ir.Loc(b%slots)
			m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0].Ref = uint32(m.APs.Add(row))
		}
	}
	for _, s := range m.SetsOf(f) {
		dropBlocks(m, m.Sets.At(s), ws.slots.Get(s))
	}
}

// inside reports an access that is known to begin in its tensor, so that an index modulo the live blocks hides no mistake.
func (ws *Workspace) inside(m *ir.Module, s ir.Set, a *ssa.Access) bool {
	lo, hi, ok := ws.indexBounds(m, a)
	if !ok || a.Flags&ssa.Symbolic == 0 {
		return ok
	}
	sym := m.Syms.At(ir.Sym(m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0].Ref))
	first := linearStart(m, sym)
	return first+lo >= 0 && first+hi < int64(m.Sets.At(s).Count)*m.BlockElems(s, sym.AP.Dtype)
}

// indexBounds are bounds of the expression of an access; not ok where only the machine knows them.
func (ws *Workspace) indexBounds(m *ir.Module, a *ssa.Access) (lo, hi int64, ok bool) {
	if a.Flags&ssa.Symbolic == 0 {
		return 0, 0, true
	}
	arg := m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0]
	s := m.Syms.At(ir.Sym(arg.Ref))
	if arg.Kind == ir.ArgRegAP || s.Reg != 0 || s.SubReg != 0 || a.Flags&ssa.Nested != 0 {
		return 0, 0, false
	}
	lo, hi, err := ws.eval.Bounds(m, s.Addr, func(x ir.Axis) (int64, int64, bool) {
		lo, hi := m.Axes.At(x).Range()
		return lo, hi, true
	})
	return lo, hi, err == nil
}

// ringSlots is how many blocks of a set have bytes of their own: all, unless the others lie where the ring says.
func ringSlots(m *ir.Module, set *ir.SetRow) uint32 {
	n := set.LiveN
	if n == 0 || n >= set.Count {
		return set.Count
	}
	for b := n; b < set.Count; b++ {
		x, y := m.Locs.At(set.First+ir.Loc(b)), m.Locs.At(set.First+ir.Loc(b%n))
		if !x.Space.OnChip() || x.Flags&ir.LocAllocated == 0 || x.Addr != y.Addr || x.Bank != y.Bank || x.Base != y.Base {
			return set.Count
		}
	}
	return n
}

// physicalIndex rewrites one symbolic operand on a set of which slots blocks are live.
func (ws *Workspace) physicalIndex(m *ir.Module, s ir.Set, a *ssa.Access, slots uint32) {
	lo, hi, ok := ws.indexBounds(m, a)
	if !ok {
		return
	}
	arg := &m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0]
	sym := *m.Syms.At(ir.Sym(arg.Ref))
	first, size := linearStart(m, &sym), int64(slots)*m.BlockElems(s, sym.AP.Dtype)
	wraps := slots < m.Sets.At(s).Count && (lo+first < 0 || hi+first >= size)
	if lo == hi {
		if wraps {
			lo -= (lo + first) / size * size
		}
		if row, ok := m.Resolve(&sym, lo); ok {
			*arg = ir.Arg{Kind: ir.ArgAP, Dtype: arg.Dtype, Ref: uint32(m.APs.Add(row))}
		}
		return
	}
	if wraps {
		sym.Addr = modulo(m, sym.Addr, first, size)
		sym.AP.Start, sym.AP.Off, sym.APOffset = 0, 0, 0
		arg.Ref = uint32(m.Syms.Add(sym))
	}
}

// linearStart is the element of its tensor at which a symbolic pattern begins where its expression is 0.
func linearStart(m *ir.Module, s *ir.SymRow) int64 {
	l := m.Locs.At(m.Sets.At(s.Set).First)
	n := s.AP.Off + s.APOffset
	if l.Space.OnChip() {
		n += int64(s.AP.Start) * (l.Bytes / int64(max(1, s.AP.Dtype.Size())))
	}
	return n
}

// modulo is the expression (e + c) mod size.
func modulo(m *ir.Module, e ir.Expr, c, size int64) ir.Expr {
	if c != 0 || e == 0 {
		row := ir.ExprRow{Kind: ir.ExprAffine, C: c}
		if e != 0 {
			row.Terms = m.Terms.Add(ir.Term{Expr: e, Coeff: 1})
		}
		e = m.Exprs.Add(row)
	}
	return m.Exprs.Add(ir.ExprRow{Kind: ir.ExprMod, A: e, C: size})
}

// dropBlocks leaves a set its first n blocks.
func dropBlocks(m *ir.Module, set *ir.SetRow, n uint32) {
	if n == set.Count {
		return
	}
	for b := n; b < set.Count; b++ {
		l := m.Locs.At(set.First + ir.Loc(b))
		l.Space, l.Parts, l.Bytes = target.SpaceUnallocated, 0, 0
		l.Flags = 0
	}
	if shape := m.Ints.Of(set.Shape); len(shape) > 0 && shape[0] == int64(set.Count) {
		set.Shape = m.Ints.AddSlice(shape)
		m.Ints.Of(set.Shape)[0] = int64(n)
	}
	set.Count, set.LiveN = n, 0
}
