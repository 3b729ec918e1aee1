package bir

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// operand is the members of an operand object, whose kind may stand last.
type operand struct {
	kind      ir.ArgKind
	dtype     target.Dtype
	locOffset bool
	seen      uint32
	at        int
	memref    arena.Name
	memrefAt  member
	setref    arena.Name
	owner     arena.Name
	regref    ir.Reg
	subReg    ir.Reg
	sub       int64
	constAP   int64
	offset    int64
	offsetAt  int
	apAt      int
	pairs     [5]ir.Pair
	npairs    int
	addr      ir.Expr
	value     span // of value or value_array
}

const (
	seenKind = iota
	seenAP
	seenOffset
	seenDtype
	seenMemref
	seenSetref
	seenOwner
	seenAddrs
	seenRegref
	seenLocOffset
	seenConstAP
	seenConstSub
	seenRegSub
	seenValue
	seenExpr
	seenValues
)

var argKinds = [...]struct {
	name string
	kind ir.ArgKind
}{
	{"physical_ap", ir.ArgAP}, {"imm_value", ir.ArgImm}, {"symbolic_ap", ir.ArgSym}, {"symbolic_pwap", ir.ArgSymPW},
	{"register_ap", ir.ArgRegAP}, {"symbolic_imm_value", ir.ArgSymImm}, {"imm_array", ir.ArgImmArray},
	{"register_access", ir.ArgReg},
}

func parseArgKind(s string) (ir.ArgKind, bool) {
	for _, k := range argKinds {
		if k.name == s {
			return k.kind, true
		}
	}
	return 0, false
}

// operands reads one operand list of the open instruction onto its stack.
func (r *Reader) operands(list *[]ir.Arg, mark int, where extraWhere, t *frame) {
	s := &r.scratch
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		extras := len(s.extra)
		a := r.operand(where, len(*list)-mark)
		if r.err != nil {
			return
		}
		if where == inOuts && immediate(a.Kind) {
			for i := extras; i < len(s.extra); i++ {
				s.extra[i].where, s.extra[i].index = inImms, len(s.imms)-int(t.imms)
			}
			s.imms = append(s.imms, a)
			continue
		}
		*list = append(*list, a)
	}
}

func immediate(k ir.ArgKind) bool {
	return k == ir.ArgImm || k == ir.ArgImmWide || k == ir.ArgImmArray || k == ir.ArgSymImm
}

func (r *Reader) operand(where extraWhere, index int) ir.Arg {
	o := operand{at: r.start, sub: -1}
	for r.member() {
		switch string(r.key) {
		case "kind":
			r.once(&o.seen, seenKind)
			o.kind = enumOf(r, "operand kind", parseArgKind)
		case "ap":
			r.once(&o.seen, seenAP)
			r.pairs(&o)
		case "offset":
			r.once(&o.seen, seenOffset)
			o.offset = r.int(-maxAddress, maxAddress)
			o.offsetAt = r.start
		case "dtype":
			r.once(&o.seen, seenDtype)
			o.dtype = enumOf(r, "element type", target.ParseDtype)
		case "memref":
			r.once(&o.seen, seenMemref)
			key := r.keyAt
			o.memref = r.nameOrNull()
			o.memrefAt = member{key, span{r.start, r.end}}
		case "memsetref":
			r.once(&o.seen, seenSetref)
			o.setref = r.nameOrNull()
		case "memref_owner_func":
			r.once(&o.seen, seenOwner)
			o.owner = r.nameOrNull()
		case "addrs":
			r.once(&o.seen, seenAddrs)
			r.addrs(&o)
		case "expr":
			r.once(&o.seen, seenExpr)
			r.next()
			o.addr = r.expr()
		case "regref":
			r.once(&o.seen, seenRegref)
			o.regref = r.regRef(r.someName())
		case "reg_sub_tensor_id":
			r.once(&o.seen, seenRegSub)
			if r.next() == '"' {
				o.subReg = r.regRef(r.nameHere())
			} else if r.kind != 'n' {
				r.is('"')
			}
		case "is_regloc_offset":
			r.once(&o.seen, seenLocOffset)
			o.locOffset = r.bool()
		case "const_ap_offset":
			r.once(&o.seen, seenConstAP)
			o.constAP = r.int(-maxAddress, maxAddress)
		case "const_sub_tensor_id":
			r.once(&o.seen, seenConstSub)
			o.sub = r.int(math.MinInt32, math.MaxInt32)
		case "value":
			r.once(&o.seen, seenValue)
			o.value = r.value()
		case "value_array":
			r.once(&o.seen, seenValues)
			o.value = r.value()
		default:
			r.inner(where, index)
		}
	}
	if r.err != nil {
		return ir.Arg{}
	}
	return r.arg(&o, where, index)
}

func (r *Reader) nameOrNull() arena.Name {
	if r.next() == 'n' {
		return 0
	}
	return r.nameHere()
}

// regRef finds a register that the function declares.
func (r *Reader) regRef(n arena.Name) ir.Reg {
	if r.err != nil {
		return 0
	}
	g := r.of(n).reg
	if g == 0 {
		r.fail(r.start, "there is no register %q in the function's allocations", r.m.Names.String(n))
	}
	return g
}

// pairs reads [[step, num], …].
func (r *Reader) pairs(o *operand) {
	if !r.array() {
		return
	}
	o.apAt = r.start
	for r.element() {
		if !r.is('[') {
			return
		}
		if o.npairs == len(o.pairs) {
			r.fail(r.start, "more than %d axes", len(o.pairs))
			return
		}
		step := r.int(math.MinInt32, math.MaxInt32)
		num := r.int(1, math.MaxInt32)
		if r.err == nil && r.next() != ']' {
			r.fail(r.start, "an axis is [step, num]")
		}
		o.pairs[o.npairs] = ir.Pair{Step: int32(step), Num: uint32(num)}
		o.npairs++
	}
}

// addrs reads the list with the address expression. More than one has no agreed meaning.
func (r *Reader) addrs(o *operand) {
	if !r.array() {
		return
	}
	n := 0
	for r.element() {
		if n++; n > 1 {
			r.failClass(target.Unsupported, r.start, "more than one address expression")
			return
		}
		o.addr = r.expr()
	}
}

// arg makes the operand out of its members.
func (r *Reader) arg(o *operand, where extraWhere, index int) ir.Arg {
	m := r.m
	if o.kind == ir.ArgNone {
		r.fail(o.at, "an operand without a kind")
		return ir.Arg{}
	}
	if o.seen>>seenDtype&1 == 0 {
		r.fail(o.at, "an operand without a dtype")
		return ir.Arg{}
	}
	const ap = 1<<seenKind | 1<<seenAP | 1<<seenOffset | 1<<seenDtype | 1<<seenMemref | 1<<seenSetref
	const imm = 1<<seenKind | 1<<seenDtype
	allowed := [...]uint32{
		ir.ArgAP: ap | 1<<seenOwner, ir.ArgSym: ap | 1<<seenAddrs, ir.ArgSymPW: ap | 1<<seenAddrs,
		ir.ArgRegAP: ap | 1<<seenAddrs | 1<<seenRegref | 1<<seenLocOffset | 1<<seenConstAP | 1<<seenConstSub | 1<<seenRegSub,
		ir.ArgImm:   imm | 1<<seenValue, ir.ArgSymImm: imm | 1<<seenExpr, ir.ArgImmArray: imm | 1<<seenValues,
		ir.ArgReg: imm | 1<<seenRegref,
	}
	if o.seen&^allowed[o.kind] != 0 {
		r.fail(o.at, "the operand has keys of another kind of operand")
		return ir.Arg{}
	}
	a := ir.Arg{Kind: o.kind, Dtype: o.dtype}
	switch o.kind {
	case ir.ArgAP:
		if o.owner != 0 && r.funcs.Get(o.owner) == 0 {
			// The function with the placement follows.
			ap := m.APs.Add(ir.APRow{Dtype: o.dtype})
			r.abroad = append(r.abroad, lateOperand{ap, *o})
			a.Ref = uint32(ap)
			return a
		}
		if row := r.physical(o); r.err == nil {
			a.Ref = uint32(m.APs.Add(row))
		}
	case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP:
		s := ir.SymRow{Set: r.setOf(o), Addr: o.addr, Reg: o.regref, RegLocOffset: o.locOffset, APOffset: o.constAP, SubReg: o.subReg}
		if r.err != nil {
			return a
		}
		if o.kind == ir.ArgRegAP {
			s.SubTensor = int32(o.sub)
			if o.regref == 0 {
				r.fail(o.at, "a register_ap without regref")
				return a
			}
		}
		s.AP.Dtype = o.dtype
		var loc ir.LocRow
		if set := m.Sets.At(s.Set); set.Count > 0 {
			loc = *m.Locs.At(set.First)
		}
		r.split(o, &s.AP, &loc)
		if o.memref != 0 {
			// Which placement the pattern named has no column beside the tensor.
			r.scratch.extra = append(r.scratch.extra, scratchExtra{where, index, o.memrefAt})
		}
		a.Ref = uint32(m.Syms.Add(s))
	case ir.ArgImm:
		v := r.immediate(o, o.value)
		if o.dtype.Size() == 8 {
			return ir.Arg{Kind: ir.ArgImmWide, Dtype: o.dtype, Ref: m.Wide.Add(v).Off}
		}
		a.Ref = uint32(v)
	case ir.ArgImmArray:
		a.Ref = r.immArray(o)
	case ir.ArgSymImm:
		if o.addr == 0 {
			r.fail(o.at, "a symbolic_imm_value without expr")
			return a
		}
		r.plainType(o)
		a.Ref = uint32(m.Syms.Add(ir.SymRow{Addr: o.addr, AP: ir.APRow{Dtype: o.dtype}}))
	case ir.ArgReg:
		if o.regref == 0 {
			r.fail(o.at, "a register_access without regref")
		}
		a.Ref = uint32(o.regref)
	}
	return a
}

// lateOperand is a pattern on a placement of a function that had not been read yet.
type lateOperand struct {
	ap ir.AP
	o  operand
}

// physical is the row of a physical pattern.
func (r *Reader) physical(o *operand) ir.APRow {
	row := ir.APRow{Loc: r.placementOf(o), Dtype: o.dtype}
	if r.err == nil {
		loc := r.m.Locs.At(row.Loc)
		r.split(o, &row, loc)
		r.walk(o, &row, loc)
	}
	return row
}

// placementOf is the location of a physical pattern.
func (r *Reader) placementOf(o *operand) ir.Loc {
	m := r.m
	var l ir.Loc
	switch {
	case o.owner != 0 && (r.fn == 0 || r.funcs.Get(o.owner) != r.fn):
		f := r.funcs.Get(o.owner)
		if f == 0 {
			r.fail(o.at, "memref_owner_func: there is no function %q", m.Names.String(o.owner))
			return 0
		}
		if l = r.foreign.find(m, f, o.memref); l == 0 {
			r.fail(o.at, "function %q has no placement %q", m.Names.String(o.owner), m.Names.String(o.memref))
			return 0
		}
	case o.memref != 0:
		if l = r.of(o.memref).loc; l == 0 {
			r.fail(o.at, "there is no placement %q", m.Names.String(o.memref))
			return 0
		}
	default:
		s := r.setOf(o)
		if r.err != nil {
			return 0
		}
		if m.Sets.At(s).Count != 1 {
			r.fail(o.at, "tensor %q has %d placements; memref must say which", m.Names.String(o.setref), m.Sets.At(s).Count)
			return 0
		}
		return m.Sets.At(s).First
	}
	if s := m.Locs.At(l).Set; o.setref != 0 && m.Sets.At(s).Name != o.setref {
		r.fail(o.at, "placement %q is of tensor %q, not of %q", m.Names.String(o.memref), m.Names.String(m.Sets.At(s).Name), m.Names.String(o.setref))
	}
	return l
}

// setOf is the tensor of a symbolic or register-addressed pattern.
func (r *Reader) setOf(o *operand) ir.Set {
	m := r.m
	if o.setref != 0 {
		s := r.of(o.setref).set
		if s == 0 {
			r.fail(o.at, "there is no tensor %q", m.Names.String(o.setref))
		}
		return s
	}
	if o.memref == 0 {
		r.fail(o.at, "an access pattern without memref and memsetref")
		return 0
	}
	l := r.of(o.memref).loc
	if l == 0 {
		r.fail(o.at, "there is no placement %q", m.Names.String(o.memref))
		return 0
	}
	return m.Locs.At(l).Set
}

// split turns JSON's packed offset into partition and element on chip.
func (r *Reader) split(o *operand, a *ir.APRow, l *ir.LocRow) {
	if r.err != nil {
		return
	}
	a.Off = o.offset
	a.Pairs = o.pairs
	if !l.Space.OnChip() {
		return
	}
	pitch := l.Bytes / int64(o.dtype.Size())
	name := func() string { return r.m.Names.String(l.Name) }
	switch {
	case o.npairs == 0:
		r.fail(o.at, "a pattern on %q in %s needs a partition axis", name(), l.Space)
	case pitch == 0:
		r.fail(o.at, "a partition of %q has %d bytes and no room for a %s", name(), l.Bytes, o.dtype)
	case o.offset < 0 || o.offset/pitch > 127:
		r.fail(o.offsetAt, "the offset is %d; on %q it lies in [0, %d)", o.offset, name(), int64(l.Parts)*pitch)
	case o.pairs[0].Num > 128:
		r.fail(o.apAt, "%d partitions; there are 128", o.pairs[0].Num)
	case o.pairs[0].Num > 1 && int64(o.pairs[0].Step) != pitch:
		r.fail(o.apAt, "the partition axis steps by %d; a partition of %q has %d elements of %s", o.pairs[0].Step, name(), pitch, o.dtype)
	default:
		a.Start, a.Off = uint8(o.offset/pitch), o.offset%pitch
		a.Parts = uint16(o.pairs[0].Num)
		a.Pairs[0].Step = int32(pitch)
	}
}

// walk checks that a physical pattern stays inside its location.
func (r *Reader) walk(o *operand, a *ir.APRow, l *ir.LocRow) {
	if r.err != nil {
		return
	}
	lo, hi := a.Off, a.Off
	for _, p := range a.Free(l.Space) {
		d := int64(p.Step) * int64(p.Num-1) // below 2^62
		if d < 0 {
			lo += d
		} else {
			hi += d
		}
		if lo < -maxAddress || hi > maxAddress {
			r.fail(o.apAt, "the pattern spans more than 2^48 elements")
			return
		}
	}
	name := func() string { return r.m.Names.String(l.Name) }
	if l.Space.OnChip() {
		pitch := l.Bytes / int64(a.Dtype.Size())
		if lo < 0 || hi >= pitch {
			r.fail(o.apAt, "the pattern walks elements %d to %d of a partition of %q, which has %d of %s", lo, hi, name(), pitch, a.Dtype)
		} else if int(a.Start)+int(a.Parts) > int(l.Parts) {
			r.fail(o.apAt, "the pattern takes partitions %d to %d of %q, which has %d", a.Start, int(a.Start)+int(a.Parts)-1, name(), l.Parts)
		}
		return
	}
	size := l.Bytes * int64(l.Parts) / int64(a.Dtype.Size())
	if lo < 0 || hi >= size {
		r.fail(o.apAt, "the pattern walks elements %d to %d of %q, which has %d of %s", lo, hi, name(), size, a.Dtype)
	}
}

// plainType checks the types that immediates may have.
func (r *Reader) plainType(o *operand) bool {
	switch d := o.dtype; {
	case d.IsInteger(), d == target.Float32, d == target.BFloat16, d == target.Float16:
		return true
	}
	r.fail(o.at, "an immediate of %s; plain integers, bfloat16, float16 and float32 can be immediates", o.dtype)
	return false
}

// immediate is the bits of a value: float32 for floats, the integer otherwise.
func (r *Reader) immediate(o *operand, v span) uint64 {
	if !r.plainType(o) {
		return 0
	}
	if v.end == 0 {
		r.fail(o.at, "an immediate without a value")
		return 0
	}
	c := cursor{b: r.raw(v)}
	return r.immToken(o, &c, c.next(), v.off)
}

func (r *Reader) immToken(o *operand, c *cursor, kind byte, off int) uint64 {
	d := o.dtype
	if d.IsFloat() {
		bits, ok := r.floatToken(c, kind, off)
		if !ok {
			r.fail(off+c.at, "%s is no number that float32 holds (NaN and infinities are strings of the bits, such as \"0x7fc00000\")", c.token())
		}
		return uint64(bits)
	}
	ok := kind == '0'
	var v uint64
	if ok {
		switch {
		case d == target.Uint64:
			v, ok = parseUint(c.token())
		case d == target.Int64:
			var n int64
			n, ok = parseInt(c.token())
			v = uint64(n)
		default:
			var n int64
			n, ok = parseInt(c.token())
			lo, hi := intRange(d)
			ok = ok && lo <= n && n <= hi
			v = uint64(uint32(n))
		}
	}
	if !ok {
		r.fail(off+c.at, "%s is no value of %s", c.token(), d)
	}
	return v
}

// immArray lays down a count and the values.
func (r *Reader) immArray(o *operand) uint32 {
	m := r.m
	if !r.plainType(o) {
		return 0
	}
	if o.value.end == 0 || r.data[o.value.off] != '[' {
		r.fail(o.at, "an imm_array without a list value_array")
		return 0
	}
	mark := m.Wide.Mark()
	m.Wide.Push(0)
	c := cursor{b: r.raw(o.value)}
	c.next()
	n := uint64(0)
	for k := c.next(); k != ']' && r.err == nil; k = c.next() {
		m.Wide.Push(r.immToken(o, &c, k, o.value.off))
		n++
	}
	m.Wide.Of(arena.Span{Off: mark, Len: 1})[0] = n
	return mark
}
