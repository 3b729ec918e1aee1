package bir

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// aliasRef is an alias of a placement, the other one still by name.
type aliasRef struct {
	loc  ir.Loc
	set  arena.Name // none in the legacy form
	to   arena.Name
	kind uint8
	at   int
}

// foreignLocs finds placements of functions that were read before by name; built for the functions that are asked for.
type foreignLocs struct {
	built map[ir.Func]bool
	locs  map[foreignKey]ir.Loc
}

type foreignKey struct {
	fn   ir.Func
	name arena.Name
}

func (f *foreignLocs) reset() { f.built, f.locs = nil, nil }

func (f *foreignLocs) find(m *ir.Module, fn ir.Func, name arena.Name) ir.Loc {
	if !f.built[fn] {
		if f.built == nil {
			f.built, f.locs = map[ir.Func]bool{}, map[foreignKey]ir.Loc{}
		}
		f.built[fn] = true
		for _, s := range m.SetsOf(fn) {
			first, n := m.LocsOf(s)
			for l := first; l < first+ir.Loc(n); l++ {
				f.locs[foreignKey{fn, m.Locs.At(l).Name}] = l
			}
		}
	}
	return f.locs[foreignKey{fn, name}]
}

// flagName pairs a flag with its spelling.
type flagName[T any] struct {
	name string
	flag T
}

var funcFlags = [...]flagName[ir.FuncFlag]{
	{"dram_placed", ir.FuncDRAMPlaced}, {"explicit_flags", ir.FuncExplicitFlags}, {"groups_legal", ir.FuncGroupsLegal},
	{"has_deps", ir.FuncHasDeps}, {"psum_placed", ir.FuncPsumPlaced}, {"queued", ir.FuncQueued},
	{"sb_placed", ir.FuncSBPlaced}, {"scheduled", ir.FuncScheduled}, {"synced", ir.FuncSynced},
}

func flagOf[T any](list []flagName[T], name []byte) (T, bool) {
	for _, f := range list {
		if f.name == string(name) {
			return f.flag, true
		}
	}
	var zero T
	return zero, false
}

// of is what the name means in the function at hand.
func (r *Reader) of(n arena.Name) *nameRef {
	p := r.names.Ptr(n)
	if p.fn != r.fn {
		*p = nameRef{fn: r.fn}
	}
	return p
}

func (r *Reader) function(nki bool) ir.Func {
	m := r.m
	at := r.start
	f := m.Funcs.Add(ir.FuncRow{})
	r.fn = f
	r.fextra, r.sets, r.regs = r.fextra[:0], r.sets[:0], r.regs[:0]
	r.refs, r.axes, r.alias = r.refs[:0], r.axes[:0], r.alias[:0]
	if nki {
		m.Funcs.At(f).Flags |= ir.FuncNKI
	}
	var seen uint32
	var late span // blocks that stand before the allocations they use
	for r.member() {
		switch string(r.key) {
		case "name":
			r.once(&seen, 0)
			n := r.someName()
			if r.funcs.Get(n) != 0 {
				r.fail(r.start, "function %q is defined twice", m.Names.String(n))
			}
			r.funcs.Set(n, f)
			m.Funcs.At(f).Name = n
		case "attributes":
			r.once(&seen, 1)
			r.functionAttributes(f)
		case "allocations":
			r.once(&seen, 2)
			r.allocations(f)
		case "blocks":
			r.once(&seen, 3)
			if seen>>2&1 == 0 {
				late = r.value()
			} else if r.array() {
				r.blocks(f)
			}
		default:
			key := r.keyAt
			if v := r.value(); r.err == nil {
				r.fextra = append(r.fextra, r.pointerText("", key, v))
			}
		}
	}
	if r.err == nil && seen&1 == 0 {
		r.fail(at, "the function has no name")
	}
	if late.end > 0 && r.err == nil {
		r.blocksLate(f, late)
	}
	if r.err != nil {
		return f
	}
	r.resolveFunction()
	row := m.Funcs.At(f)
	row.Sets, row.Regs = m.SetList.AddSlice(r.sets), m.RegList.AddSlice(r.regs)
	row.Extra = r.layNames(r.fextra, at)
	if m.Names.String(row.Name) == "main" && !nki {
		r.main = f
	}
	return f
}

// blocksLate reads blocks from their place in the text after the members behind them.
func (r *Reader) blocksLate(f ir.Func, late span) {
	start, end := r.start, r.end
	r.part = *bytes.NewBuffer(r.data[late.off:late.end:late.end])
	r.late.Reset(&r.part, jsontext.AllowDuplicateNames(true))
	r.dec, r.base, r.end = &r.late, late.off, late.off
	if r.array() {
		r.blocks(f)
	}
	r.dec, r.base, r.start, r.end = &r.whole, 0, start, end
}

// functionAttributes takes a list of names, or a bag. Passes' flags go to the row, the rest stays text.
func (r *Reader) functionAttributes(f ir.Func) {
	m := r.m
	switch r.next() {
	case '[':
		for r.element() {
			v := r.skip()
			if r.err != nil {
				return
			}
			if b := r.raw(v); b[0] == '"' {
				if fl, ok := flagOf(funcFlags[:], b[1:len(b)-1]); ok {
					m.Funcs.At(f).Flags |= fl
					continue
				}
			}
			r.fextra = append(r.fextra, m.Names.InternBytes(r.raw(v)))
		}
	case '{':
		for r.member() {
			if fl, ok := flagOf(funcFlags[:], r.key); ok {
				if r.bool() {
					m.Funcs.At(f).Flags |= fl
				}
				continue
			}
			key := r.keyAt
			if v := r.value(); r.err == nil {
				r.fextra = append(r.fextra, r.bagText(key, v))
			}
		}
	case 'n', 0:
	default:
		r.fail(r.start, "expected a list or an object, found %s", kindName(r.kind))
	}
}

func (r *Reader) allocations(f ir.Func) {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		r.allocation(f)
		if r.err != nil {
			return
		}
	}
	r.aliases()
}

// allocation reads a tensor with its placements, or a register.
func (r *Reader) allocation(f ir.Func) {
	m := r.m
	at := r.start
	var seen uint32
	s := ir.SetRow{Func: f, Kind: ir.KindInternal, First: ir.Loc(m.Locs.Len())}
	g := ir.RegRow{Width: 1, Phys: -1}
	register := false
	tensors := int64(-1)
	mark := len(r.fextra)
	pend := len(r.scratch.pend)
	// The row is added first so that placements can refer to it; a register takes it back by leaving it unlisted.
	var set ir.Set
	flag := func(bit uint, fl ir.SetFlag) {
		r.once(&seen, bit)
		if r.bool() {
			s.Flags |= fl
		}
	}
	for r.member() {
		switch string(r.key) {
		case "Skind":
			r.once(&seen, 0)
			switch k := r.str(); string(k) {
			case "register":
				register = true
			case "memory_location_set":
			default:
				r.fail(r.start, "unknown allocation kind %q; memory_location_set and register are known", k)
			}
		case "name":
			r.once(&seen, 1)
			s.Name = r.someName()
			g.Name = s.Name
		case "dtype":
			r.once(&seen, 2)
			s.Dtype = enumOf(r, "element type", target.ParseDtype)
			g.Dtype = s.Dtype
		case "kind":
			r.once(&seen, 3)
			s.Kind = enumOf(r, "tensor kind", ir.ParseTensorKind)
		case "tensor_class":
			r.once(&seen, 4)
			s.Class = enumOf(r, "tensor class", ir.ParseTensorClass)
		case "tensor_shape":
			r.once(&seen, 5)
			s.Shape = r.shape()
		case "partition_dim":
			r.once(&seen, 6)
			if r.next() == 'n' {
				s.PartDim = -1
			} else {
				s.PartDim = int8(r.intHere(-1, maxRank-1))
			}
		case "addr_space":
			r.once(&seen, 7)
			s.Addr = enumOf(r, "address space", ir.ParseAddrSpace)
		case "file":
			r.once(&seen, 8)
			s.File = r.name()
		case "no_spill":
			flag(9, ir.SetNoSpill)
		case "volatile":
			flag(10, ir.SetVolatile)
		case "virtual":
			flag(11, ir.SetVirtual)
		case "no_rotate":
			flag(12, ir.SetNoRotate)
		case "spill_home":
			flag(13, ir.SetSpillHome)
		case "reload":
			flag(14, ir.SetReload)
		case "tensorId2MemLocSize":
			r.once(&seen, 15)
			tensors = r.int(0, math.MaxInt32)
		case "memorylocations":
			r.once(&seen, 16)
			if set == 0 {
				set = m.Sets.Add(ir.SetRow{})
			}
			r.placements(set, &s)
		case "origin":
			r.once(&seen, 17)
			s.Origin = enumOf(r, "origin", ir.ParseOrigin)
		case "const":
			r.once(&seen, 18)
			s.Const = ir.Const(r.int(0, math.MaxInt32))
		case "live":
			r.once(&seen, 19)
			s.LiveN = uint32(r.int(0, math.MaxUint32))
		case "num_physical_regs", "numPhysicalRegs":
			r.once(&seen, 20)
			g.Width = uint8(r.int(1, 2))
		case "engine":
			r.once(&seen, 21)
			g.Engine = enumOf(r, "engine", target.ParseEngine)
		case "physical_id":
			r.once(&seen, 22)
			g.Phys = int8(r.int(-1, 63))
		default:
			key := r.keyAt
			r.scratch.pend = append(r.scratch.pend, member{key, r.value()})
		}
	}
	if r.err != nil {
		return
	}
	if seen>>1&1 == 0 {
		r.fail(at, "an allocation without a name")
		return
	}
	extras := r.scratch.pend[pend:]
	r.scratch.pend = r.scratch.pend[:pend]
	if register {
		r.register(g, at, seen, extras)
		return
	}
	if seen>>2&1 == 0 {
		r.fail(at, "tensor %q has no dtype", m.Names.String(s.Name))
		return
	}
	for _, x := range extras {
		r.fextra = append(r.fextra, r.memberText(x.key, x.val))
	}
	if tensors >= 0 && tensors != int64(s.Count) {
		r.text = append(r.text[:0], `"tensorId2MemLocSize":`...)
		r.text = appendInt(r.text, tensors)
		r.fextra = append(r.fextra, m.Names.InternBytes(r.text))
	}
	if seen>>4&1 == 0 && s.Kind == ir.KindInternal {
		s.Class = ir.ClassNeuronSBTensor
	}
	s.Extra = r.layNames(r.fextra[mark:], at)
	r.fextra = r.fextra[:mark]
	if s.Count == 0 {
		s.First = 0
	}
	if set == 0 {
		set = m.Sets.Add(s)
	} else {
		*m.Sets.At(set) = s
	}
	p := r.of(s.Name)
	if p.set != 0 {
		r.fail(at, "tensor %q is defined twice", m.Names.String(s.Name))
	}
	p.set = set
	r.sets = append(r.sets, set)
}

func (r *Reader) register(g ir.RegRow, at int, seen uint32, extras []member) {
	m := r.m
	const own = 1<<0 | 1<<1 | 1<<2 | 1<<20 | 1<<21 | 1<<22
	if seen&^own != 0 {
		r.fail(at, "register %q has keys of a tensor", m.Names.String(g.Name))
		return
	}
	if seen>>20&1 == 0 && g.Dtype.Size() == 8 {
		g.Width = 2
	}
	for _, x := range extras {
		r.fextra = append(r.fextra, r.pointerText("/registers/"+string(appendSegment(nil, m.Names.String(g.Name))), x.key, x.val))
	}
	p := r.of(g.Name)
	if p.reg != 0 {
		r.fail(at, "register %q is defined twice", m.Names.String(g.Name))
	}
	p.reg = m.Regs.Add(g)
	r.regs = append(r.regs, p.reg)
}

// placements reads memorylocations.
func (r *Reader) placements(set ir.Set, s *ir.SetRow) {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		l := r.placement(set)
		if r.err != nil {
			return
		}
		if s.Count == 0 {
			s.First = l
		}
		s.Count++
	}
}

const (
	maxParts   = 1 << 20
	maxAddress = 1 << 48
)

func (r *Reader) placement(set ir.Set) ir.Loc {
	m := r.m
	at := r.start
	var seen uint32
	l := ir.LocRow{Set: set, Pack: -1, ID: -1, Space: target.SpaceUnallocated}
	mark, aliases := len(r.fextra), len(r.alias)
	flag := func(bit uint, fl ir.LocFlag) {
		r.once(&seen, bit)
		if r.bool() {
			l.Flags |= fl
		}
	}
	dims := 0
	r.ints = r.ints[:0]
	for r.member() {
		switch string(r.key) {
		case "Skind":
			r.once(&seen, 0)
			if k := r.str(); r.err == nil && string(k) != "memory_location" {
				r.fail(r.start, "unknown kind %q; memory_location is expected", k)
			}
		case "name":
			r.once(&seen, 1)
			l.Name = r.someName()
		case "type":
			r.once(&seen, 2)
			l.Space = enumOf(r, "memory type", target.ParseSpace)
		case "addr":
			r.once(&seen, 3)
			l.Addr = r.int(-maxAddress, maxAddress)
		case "dims":
			r.once(&seen, 4)
			if !r.array() {
				return 0
			}
			dims = r.start
			for r.element() {
				if r.ints = append(r.ints, r.intHere(0, maxAddress)); len(r.ints) > maxRank {
					r.fail(r.start, "more than %d dimensions", maxRank)
				}
			}
		case "bank":
			r.once(&seen, 5)
			l.Bank = int8(r.int(-128, 127))
		case "base":
			r.once(&seen, 6)
			l.Base = uint8(r.int(0, 127))
		case "allocated":
			flag(7, ir.LocAllocated)
		case "user_allocated":
			flag(8, ir.LocUserAllocated)
		case "pinned":
			flag(9, ir.LocPinned)
		case "runtime_reserved":
			flag(10, ir.LocReserved)
		case "written_by_another_core":
			flag(11, ir.LocRemoteWriter)
		case "tensor_id":
			r.once(&seen, 12)
			l.ID = int32(r.int(-1, math.MaxInt32))
		case "pack_id_hint":
			r.once(&seen, 13)
			l.Pack = int16(r.int(-1, math.MaxInt16))
		case "alias":
			r.once(&seen, 14)
			r.aliasList()
		default:
			key := r.keyAt
			if v := r.value(); r.err == nil {
				r.fextra = append(r.fextra, r.memberText(key, v))
			}
		}
	}
	if r.err != nil {
		return 0
	}
	r.dims(&l, dims)
	switch {
	case l.Name == 0:
		r.fail(at, "a placement without a name")
	case seen>>2&1 == 0:
		r.fail(at, "placement %q has no type", m.Names.String(l.Name))
	case l.Pack != -1 && l.Space != target.SpacePSUM:
		r.fail(at, "placement %q is in %s; only PSUM takes pack_id_hint", m.Names.String(l.Name), l.Space)
	}
	l.Extra = r.layNames(r.fextra[mark:], at)
	r.fextra = r.fextra[:mark]
	if r.err != nil {
		return 0
	}
	p := r.of(l.Name)
	if p.loc != 0 {
		r.fail(at, "placement %q is defined twice", m.Names.String(l.Name))
		return 0
	}
	p.loc = m.Locs.Add(l)
	for i := aliases; i < len(r.alias); i++ {
		r.alias[i].loc = p.loc
	}
	return p.loc
}

// dims turns r.ints into partitions and bytes a partition on chip, and into the size in DRAM.
func (r *Reader) dims(l *ir.LocRow, at int) {
	d := r.ints
	if l.Space.OnChip() {
		if len(d) != 2 || d[0] < 1 || d[0] > 128 || d[1] > math.MaxInt32 {
			r.fail(at, "dims are %d; in %s they are [partitions up to 128, bytes a partition]", d, l.Space)
			return
		}
		l.Parts, l.Bytes = uint32(d[0]), d[1]
		return
	}
	if len(d) == 0 {
		return
	}
	size := int64(1)
	for _, x := range d {
		if x > 0 && size > maxAddress/x {
			r.fail(at, "dims %d multiply to more than 2^48 bytes", d)
			return
		}
		size *= x
	}
	if len(d) == 2 && d[0] <= maxParts {
		l.Parts, l.Bytes = uint32(d[0]), d[1]
	} else {
		l.Parts, l.Bytes = 1, size
	}
}

// aliasList reads [[set, loc, kind]], or [loc, kind] of old.
func (r *Reader) aliasList() {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('[') {
			return
		}
		a := aliasRef{at: r.start}
		a.set = r.someName()
		if r.next() == '"' {
			a.to = r.nameHere()
			r.next()
		} else {
			a.set, a.to = 0, a.set
		}
		a.kind = uint8(r.intHere(1, 7))
		if r.err == nil && r.next() != ']' {
			r.fail(r.start, "an alias is [set, location, kind] or [location, kind]")
		}
		if r.err != nil {
			return
		}
		r.alias = append(r.alias, a)
	}
}

// aliases lays down the aliases of the function: each pair once, the kinds of its repeats joined.
func (r *Reader) aliases() {
	if r.err != nil || len(r.alias) == 0 {
		return
	}
	m := r.m
	rows := make([]ir.AliasRow, 0, len(r.alias))
	for _, a := range r.alias {
		p := r.of(a.to)
		to := p.loc
		if to == 0 {
			r.fail(a.at, "there is no placement %q", m.Names.String(a.to))
			return
		}
		if s := m.Locs.At(to).Set; a.set != 0 && r.of(a.set).set != s {
			r.fail(a.at, "placement %q is not of tensor %q", m.Names.String(a.to), m.Names.String(a.set))
			return
		}
		if to == a.loc || m.Locs.At(to).Space != target.SpaceDRAM || m.Locs.At(a.loc).Space != target.SpaceDRAM {
			r.fail(a.at, "an alias ties two DRAM placements")
			return
		}
		rows = append(rows, ir.AliasRow{A: min(a.loc, to), B: max(a.loc, to), Kind: a.kind})
	}
	slices.SortFunc(rows, func(x, y ir.AliasRow) int {
		return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
	})
	for i, x := range rows {
		if i > 0 && rows[i-1].A == x.A && rows[i-1].B == x.B {
			rows[i].Kind |= rows[i-1].Kind
		}
		if i+1 == len(rows) || rows[i+1].A != x.A || rows[i+1].B != x.B {
			m.Aliases.Push(rows[i])
		}
	}
}
