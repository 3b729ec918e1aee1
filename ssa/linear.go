package ssa

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Point is a position in the order of a function, from 0: of a top-level instruction, or in the flattened order of any.
type Point = uint32

// AccessFlag says how an operand touches its location.
type AccessFlag uint8

const (
	Read AccessFlag = 1 << iota
	Write
	// Symbolic operands have an address that is not known here: they may touch any byte of the location.
	Symbolic
	// Nested operands stand in the body of a region instruction that is one point, or that need not run.
	Nested
	// Uninit reads may find bytes that nothing wrote.
	Uninit
)

// Access is one operand on one location. 16 bytes. Arg is the operand's row in Module.Args.
type Access struct {
	Inst  ir.Inst
	At    Point
	Arg   uint32
	Flags AccessFlag
}

// Linear is the order of one function and its use lists. Valid until the function's order or operands change.
type Linear struct {
	Func  ir.Func
	Insts []ir.Inst // by point

	off []uint32 // by location: accesses are acc[off[l]:off[l+1]]
	acc []Access
	// flat and locs are the accesses in program order, with their locations.
	flat []Access
	locs []ir.Loc

	// Loops are the regions of a flattened order by their numbers, outer ones first; row 0 is none. Empty in the plain order.
	Loops  []Loop
	loopOf []uint32 // by point: the innermost loop whose body it is in
	axes   arena.Column[ir.Axis, bool]
	twice  bool // two loops share an axis

	aliased arena.Column[ir.Loc, bool] // has a must-alias or may-alias peer
	stack   []frame
}

// frame is a place in a walk over nested blocks: blocks left of a list, instructions left of the current block.
type frame struct {
	blocks arena.Span
	order  arena.Span
	loop   uint32 // whose body it is
}

// Build walks the function and lays out its use lists, a region instruction with all that it holds as one point. It reads the
// module only.
func (l *Linear) Build(m *ir.Module, f ir.Func) { l.build(m, f, false) }

// Flatten is Build with the instructions of all nesting depths as points: the body of a region comes right after its own
// instruction. The position in that chain is the time, and Loops says what lies in which body.
func (l *Linear) Flatten(m *ir.Module, f ir.Func) { l.build(m, f, true) }

func (l *Linear) build(m *ir.Module, f ir.Func, flat bool) {
	l.Func = f
	l.Loops, l.loopOf, l.twice = l.Loops[:0], l.loopOf[:0], false
	l.axes.Reset()
	l.Insts = l.Insts[:0]
	l.flat, l.locs = l.flat[:0], l.locs[:0]
	l.stack = append(l.stack[:0], frame{blocks: m.Funcs.At(f).Blocks})
	for len(l.stack) > 0 {
		top := &l.stack[len(l.stack)-1]
		if top.order.Len == 0 {
			if top.blocks.Len == 0 {
				if top.loop != 0 {
					l.Loops[top.loop].End = Point(len(l.Insts))
				}
				l.stack = l.stack[:len(l.stack)-1]
				continue
			}
			b := m.BlockList.Of(top.blocks)[0]
			top.blocks.Off++
			top.blocks.Len--
			top.order = m.Blocks.At(b).Order
			continue
		}
		i := m.Order.Of(top.order)[0]
		top.order.Off++
		top.order.Len--
		in := top.loop
		nested := len(l.stack) > 1
		if flat {
			nested = in != 0 && !l.Loops[in].Runs
		}
		if flat || !nested {
			l.Insts = append(l.Insts, i)
		}
		l.gather(m, i, Point(len(l.Insts)-1), nested)
		inner := uint32(0)
		region := m.Insts.At(i).Op.Is(ir.FlagRegion)
		if flat && region && len(l.Loops) == 0 {
			l.Loops = append(l.Loops, Loop{})
		}
		if flat && len(l.Loops) > 0 {
			for len(l.loopOf) < len(l.Insts)-1 {
				l.loopOf = append(l.loopOf, 0)
			}
			l.loopOf = append(l.loopOf, in)
		}
		if region {
			if body := m.Regions.Get(i).Blocks; body.Len > 0 {
				if flat {
					inner = l.open(m, i, in)
				}
				l.stack = append(l.stack, frame{blocks: body, loop: inner})
			}
		}
	}
	l.sort(m.Locs.Len())
}

// gather appends the accesses of one instruction: reads, then writes.
func (l *Linear) gather(m *ir.Module, i ir.Inst, at Point, nested bool) {
	r := m.Insts.At(i)
	var nest AccessFlag
	if nested {
		nest = Nested
	}
	if r.NAttr > 0 && m.AttrBool(i, ir.KeyCanReadUninit) {
		nest |= Uninit
	}
	reads := uint32(r.NIn) + uint32(r.NInd)
	for k := uint32(0); k < reads; k++ {
		l.operand(m, i, at, r.Args+k, Read|nest)
	}
	if r.NOut == 0 {
		return
	}
	out := Write | nest
	if m.ReadsDst(i) {
		out |= Read
	}
	for k := uint32(0); k < uint32(r.NOut); k++ {
		l.operand(m, i, at, r.Args+reads+k, out)
	}
}

func (l *Linear) operand(m *ir.Module, i ir.Inst, at Point, arg uint32, fl AccessFlag) {
	a := m.Args.Of(arena.Span{Off: arg, Len: 1})[0]
	switch a.Kind {
	case ir.ArgAP:
		if loc := m.APs.At(ir.AP(a.Ref)).Loc; loc != 0 {
			l.flat = append(l.flat, Access{i, at, arg, fl})
			l.locs = append(l.locs, loc)
		}
	case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP:
		s := m.Syms.At(ir.Sym(a.Ref))
		if loc := s.AP.Loc; loc != 0 {
			l.flat = append(l.flat, Access{i, at, arg, fl | Symbolic})
			l.locs = append(l.locs, loc)
			return
		}
		first, n := m.LocsOf(s.Set)
		for k := range n {
			l.flat = append(l.flat, Access{i, at, arg, fl | Symbolic})
			l.locs = append(l.locs, first+ir.Loc(k))
		}
	}
}

// sort deals the accesses out to their locations; each list stays in program order.
func (l *Linear) sort(nlocs int) {
	l.off = arena.Zeroed(l.off, nlocs+2)
	for _, loc := range l.locs {
		l.off[loc+2]++
	}
	for i := 2; i < len(l.off); i++ {
		l.off[i] += l.off[i-1]
	}
	l.acc = arena.Resized(l.acc, len(l.flat))
	for k, loc := range l.locs {
		l.acc[l.off[loc+1]] = l.flat[k]
		l.off[loc+1]++
	}
	l.off = l.off[:nlocs+1]
}

// Of are the accesses of a location in program order. Not to be written.
func (l *Linear) Of(loc ir.Loc) []Access {
	if int(loc)+1 >= len(l.off) {
		return nil
	}
	return l.acc[l.off[loc]:l.off[loc+1]:l.off[loc+1]]
}

// WrittenIn reports a write to a location at a point in [from, to).
func (l *Linear) WrittenIn(loc ir.Loc, from, to Point) bool {
	acc := l.Of(loc)
	k, _ := slices.BinarySearchFunc(acc, from, func(a Access, p Point) int { return cmp.Compare(a.At, p) })
	for ; k < len(acc) && acc[k].At < to; k++ {
		if acc[k].Flags&Write != 0 {
			return true
		}
	}
	return false
}

// Aliased reports a location that shares bytes with another by an alias relation. Known after Check.
func (l *Linear) Aliased(loc ir.Loc) bool { return l.aliased.Get(loc) }

// All are all accesses in program order with the location of each. Not to be written.
func (l *Linear) All() ([]Access, []ir.Loc) { return l.flat, l.locs }

// Points is the number of points.
func (l *Linear) Points() int { return len(l.Insts) }

// Faults are what is wrong with the definitions and uses of a function: locations that are read before anything writes
// them, and locations that are written and never read. Inputs, constants and what the runtime or the producer placed are
// defined by others; outputs are used by others.
type Faults struct {
	Undefined, Unused           int
	FirstUndefined, FirstUnused [4]ir.Loc
	UndefinedAt                 [4]ir.Inst
}

// Check finds the faults. A location that is written piecewise counts as defined from its first piece on: which bytes a read
// finds is the verifier's question.
func (l *Linear) Check(m *ir.Module) Faults {
	var f Faults
	l.aliased.Reset()
	for _, a := range m.AliasRows() {
		l.aliased.Set(a.A, true)
		l.aliased.Set(a.B, true)
	}
	for _, s := range m.SetsOf(l.Func) {
		r := m.Sets.At(s)
		begun := Point(0) // when the first write to any block of the set is done, once it was asked for
		for k := range r.Count {
			loc := r.First + ir.Loc(k)
			acc := l.Of(loc)
			if len(acc) == 0 || m.Locs.At(loc).Flags&(ir.LocReserved|ir.LocPinned|ir.LocRemoteWriter) != 0 {
				continue
			}
			if a := acc[0]; a.Flags&Read != 0 && a.Flags&Uninit == 0 && !l.definedOutside(m, s, loc) {
				// A symbolic read touches one block, and that may be one that was written.
				if a.Flags&Symbolic != 0 && begun == 0 {
					begun = l.firstWrite(r) + 1
				}
				if a.Flags&Symbolic != 0 && begun <= a.At {
					continue
				}
				if f.Undefined < len(f.FirstUndefined) {
					f.FirstUndefined[f.Undefined], f.UndefinedAt[f.Undefined] = loc, a.Inst
				}
				f.Undefined++
			}
			if r.Kind.IsOutput() || r.Kind == ir.KindInternalInterface || r.Kind == ir.KindPointer {
				continue
			}
			read := false
			for _, a := range acc {
				if a.Flags&(Read|Write) == Read || a.Flags&Symbolic != 0 {
					read = true
					break
				}
			}
			if !read && !r.Kind.IsInput() {
				if f.Unused < len(f.FirstUnused) {
					f.FirstUnused[f.Unused] = loc
				}
				f.Unused++
			}
		}
	}
	return f
}

// firstWrite is the first point at which an instruction does nothing but write to a block of a set.
func (l *Linear) firstWrite(r *ir.SetRow) Point {
	at := Point(l.Points())
	for k := range r.Count {
		for _, a := range l.Of(r.First + ir.Loc(k)) {
			if a.Flags&(Read|Write) == Write {
				at = min(at, a.At)
				break
			}
		}
	}
	return at
}

// definedOutside reports a location whose bytes come from elsewhere: an input or constant, or the twin of another location
// by a must-alias.
func (l *Linear) definedOutside(m *ir.Module, s ir.Set, loc ir.Loc) bool {
	switch k := m.Sets.At(s).Kind; {
	case k.IsInput(), k == ir.KindConst, k == ir.KindPointer, k == ir.KindInternalInterface:
		return true
	}
	return l.aliased.Get(loc)
}

// Err is the faults as an error, nil when there is no undefined use: a value that nothing reads costs its place and no more,
// unless strict.
func (f *Faults) Err(m *ir.Module, fn ir.Func, strict bool) error {
	if f.Undefined == 0 && (f.Unused == 0 || !strict) {
		return nil
	}
	var b strings.Builder
	for k := range min(f.Undefined, len(f.FirstUndefined)) {
		b.WriteString(sep(k, "; undefined: "))
		b.WriteString(m.LocName(f.FirstUndefined[k]))
		b.WriteString(" at ")
		b.WriteString(m.InstName(f.UndefinedAt[k]))
	}
	for k := range min(f.Unused, len(f.FirstUnused)) {
		b.WriteString(sep(k, "; unused: "))
		b.WriteString(m.LocName(f.FirstUnused[k]))
	}
	return target.Errorf(target.User, "function %s: %d undefined uses and %d unused definitions%s; write a location before it is read, or mark the read can_read_uninit",
		m.Names.String(m.Funcs.At(fn).Name), f.Undefined, f.Unused, b.String())
}

func sep(k int, first string) string {
	if k == 0 {
		return first
	}
	return ", "
}
