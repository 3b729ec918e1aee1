package ir

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// parser builds a module from text. Numbers in the text are dense in order of appearance, so a number is the row that the
// parser hands out; references forward are checked at the end.
type parser struct {
	scanner
	m       *Module
	ints    []int64
	args    []Arg
	attrs   []Attr
	deps    []Dep
	sync    []SyncOp
	sets    []Set // of the whole module, by number
	regs    []Reg
	maxInst uint32 // largest instruction number referred to
	maxAt   int    // the line that does
	maxReg  uint32 // largest register number that an expression refers to
	blocks  []blockRef
	byName  map[string]Block // blocks of the current function
}

type blockRef struct {
	inst Inst
	key  Key
	name string
	line int
}

// Parse reads the text form into m, which is reset first. Errors are the user's and carry line:column.
func Parse(src []byte, m *Module) error {
	m.Reset()
	p := &parser{m: m, byName: map[string]Block{}}
	p.src = src
	p.module()
	if p.err == nil && int64(p.maxInst) >= int64(m.Insts.Len()) {
		p.err = target.Errorf(target.User, "%d: I-%d is not in the text, which has %d instructions", p.maxAt, p.maxInst, m.Insts.Len()-1)
	}
	if p.err == nil && int64(p.maxReg) >= int64(m.Regs.Len()) {
		p.err = target.Errorf(target.User, "an expression reads r%d; the text has %d registers", p.maxReg, m.Regs.Len()-1)
	}
	return p.err
}

// IsText reports whether data looks like text IR.
func IsText(data []byte) bool {
	s := scanner{src: data}
	return s.nextLine() && s.is("rir")
}

func (p *parser) name() arena.Name {
	if text, ok := p.plain(); ok {
		return p.m.Names.InternBytes(text)
	}
	return p.m.Names.Intern(p.quoted())
}

func (p *parser) module() {
	m := p.m
	if !p.nextLine() {
		p.fail("empty text; expected \"rir 1\"")
		return
	}
	p.want("rir")
	p.int(1, 1)
	p.done()
	if !p.nextLine() {
		p.fail("expected a module line")
		return
	}
	p.want("module")
	m.Name = p.name()
	if w := p.take(); len(w) != 0 {
		g, err := target.Lookup(string(w))
		if err != nil {
			p.fail("%v", err)
		}
		m.Gen = g
	}
	p.done()
	var extra []arena.Name
	where := 0 // 1 module, 2 queue
	where = 1
	for p.nextLine() {
		w := string(p.peek())
		if w != "extra" {
			extra = p.layExtra(where, extra)
			where = 0
		}
		switch w {
		case "semaphores":
			p.take()
			m.SemaphoresPerQueue = int32(p.int(0, 256))
			where = 1
		case "extra":
			p.take()
			if where == 0 {
				p.fail("extra belongs to the module or to a queue")
			}
			extra = append(extra, p.name())
		case "axis":
			p.axis()
		case "expr":
			p.exprLine()
		case "const":
			p.constLine()
		case "queue":
			p.queueLine()
			where = 2
		case "func":
			p.funcLine()
			continue
		default:
			p.fail("unexpected %q; expected axis, expr, const, queue or func", w)
		}
		p.done()
	}
	p.layExtra(where, extra)
}

// layExtra lays gathered extra texts down at their owner.
func (p *parser) layExtra(where int, extra []arena.Name) []arena.Name {
	if len(extra) > 0 {
		s := p.m.NameList.AddSlice(extra)
		switch where {
		case 1:
			p.m.Extra = s
		case 2:
			p.m.Queues.At(Queue(p.m.Queues.Len() - 1)).Extra = s
		}
	}
	return extra[:0]
}

// defines takes prefixN, where N must be the next number.
func (p *parser) defines(prefix string, next int) {
	if got := p.id(prefix, math.MaxInt32); p.err == nil && int(got) != next {
		p.fail("%s%d is defined where %s%d is next", prefix, got, prefix, next)
	}
}

func (p *parser) axis() {
	p.take()
	p.defines("i", p.m.Axes.Len())
	r := AxisRow{Name: p.name()}
	r.Lo, r.Hi, r.Step = p.anyInt(), p.anyInt(), p.anyInt()
	p.m.Axes.Add(r)
}

func (p *parser) anyInt() int64 { return p.int(math.MinInt64, math.MaxInt64) }

func (p *parser) exprLine() {
	m := p.m
	p.take()
	p.defines("e", m.Exprs.Len())
	kind := enum(&p.scanner, "expression", func(s string) (ExprKind, bool) { return parse[ExprKind](exprKinds[:], s) })
	r := ExprRow{Kind: kind}
	switch kind {
	case ExprAxis:
		r.Ref = p.id("i", m.Axes.Len())
	case ExprReg:
		// Registers are defined by functions, further down.
		r.Ref = p.id("r", math.MaxInt32)
		p.maxReg = max(p.maxReg, r.Ref)
	case ExprMul, ExprFloorDiv, ExprMod:
		r.A = Expr(p.id("e", m.Exprs.Len()))
		r.C = p.anyInt()
	case ExprCCDiv:
		r.A = Expr(p.id("e", m.Exprs.Len()))
		r.C = p.anyInt()
		p.want("groups")
		r.Ref = uint32(p.int(0, math.MaxUint32))
	case ExprCCRank:
		r.C = p.anyInt()
		p.want("iteration")
		r.Ref = uint32(p.int(0, math.MaxUint32))
	default:
		r.C = p.anyInt()
		mark := m.Terms.Mark()
		for w := p.peek(); len(w) != 0 && p.err == nil; w = p.peek() {
			i := 0
			for i < len(w) && w[i] != '*' {
				i++
			}
			if i == 0 || i == len(w) || w[0] != 'e' {
				p.fail("expected eN*coefficient, found %q", w)
				return
			}
			e := p.number(w[1:i], 1, int64(m.Exprs.Len())-1)
			c := p.number(w[i+1:], math.MinInt64, math.MaxInt64)
			p.take()
			m.Terms.Push(Term{Expr(e), c})
		}
		r.Terms = m.Terms.Since(mark)
	}
	m.Exprs.Add(r)
}

func (p *parser) constLine() {
	m := p.m
	p.take()
	p.defines("c", m.Consts.Len())
	embedded := p.is("embedded")
	if !embedded {
		p.want("model")
	}
	r := ConstRow{Kind: ConstModel, Dtype: enum(&p.scanner, "element type", target.ParseDtype)}
	if embedded {
		data, err := base64.StdEncoding.DecodeString(p.quoted())
		if err != nil {
			p.fail("constant data: %v", err)
		}
		r.Kind, r.Data = ConstEmbedded, m.Bytes.AddSlice(data)
	} else {
		r.Tensor = p.name()
		p.ints = p.scanner.ints(p.ints[:0])
		r.Shape = m.Ints.AddSlice(p.ints)
		r.Recipe = p.name()
	}
	m.Consts.Add(r)
}

func (p *parser) queueLine() {
	p.take()
	p.defines("q", p.m.Queues.Len())
	r := QueueRow{Name: p.name(), Owner: enum(&p.scanner, "engine", target.ParseEngine)}
	r.Dir = enum(&p.scanner, "direction", func(s string) (QueueDir, bool) { return parse[QueueDir](queueDirs[:], s) })
	r.NumQueues = uint8(p.int(0, 255))
	p.want("sem")
	r.SemBase = uint8(p.int(0, 255))
	p.m.Queues.Add(r)
}

func (p *parser) funcLine() {
	m := p.m
	p.take()
	f := m.Funcs.Add(FuncRow{Name: p.name()})
	if p.is("entry") {
		m.Entry = f
	}
	flags := FuncFlag(p.flags(funcFlags[:]))
	p.want("{")
	p.done()
	clear(p.byName)
	p.blocks = p.blocks[:0]
	firstSet, firstReg := len(p.sets), len(p.regs)
	var extra []arena.Name
	owner := extraFunc
	layExtra := func() {
		if len(extra) == 0 {
			return
		}
		s := m.NameList.AddSlice(extra)
		switch owner {
		case extraFunc:
			m.Funcs.At(f).Extra = s
		case extraSet:
			m.Sets.At(p.sets[len(p.sets)-1]).Extra = s
		case extraLoc:
			m.Locs.At(Loc(m.Locs.Len() - 1)).Extra = s
		}
		extra = extra[:0]
	}
	top := []Block{}
	for p.nextLine() {
		w := p.peek()
		if string(w) != "extra" {
			layExtra()
		}
		switch {
		case string(w) == "extra":
			p.take()
			extra = append(extra, p.name())
		case string(w) == "set":
			p.setLine(f)
			owner = extraSet
		case len(w) > 0 && w[0] == '%':
			p.locLine(firstSet)
			owner = extraLoc
		case string(w) == "reg":
			p.regLine()
		case string(w) == "alias":
			p.take()
			a := AliasRow{A: Loc(p.id("%", m.Locs.Len())), B: Loc(p.id("%", m.Locs.Len())), Kind: uint8(p.int(1, 7))}
			m.Aliases.Push(a)
		case string(w) == "block":
			top = append(top, p.block(f))
		case string(w) == "}":
			p.take()
			r := m.Funcs.At(f)
			r.Flags = flags
			r.Blocks = m.BlockList.AddSlice(top)
			r.Sets = m.SetList.AddSlice(p.sets[firstSet:])
			r.Regs = m.RegList.AddSlice(p.regs[firstReg:])
			p.resolveBlocks()
			p.done()
			return
		default:
			p.fail("unexpected %q; expected set, %%N, reg, alias, block or }", w)
		}
		p.done()
	}
	p.fail("function %q is not closed", m.Names.String(m.Funcs.At(f).Name))
}

const (
	extraFunc = iota
	extraSet
	extraLoc
)

func (p *parser) resolveBlocks() {
	for _, r := range p.blocks {
		b, ok := p.byName[r.name]
		if !ok && p.err == nil {
			p.err = target.Errorf(target.User, "%d: there is no block %q in the function", r.line, r.name)
			return
		}
		p.m.SetAttr(r.inst, Attr{r.key, uint64(b)})
	}
}

func (p *parser) setLine(f Func) {
	m := p.m
	p.take()
	r := SetRow{Name: p.name(), Func: f}
	r.Kind = enum(&p.scanner, "tensor kind", ParseTensorKind)
	r.Class = enum(&p.scanner, "tensor class", ParseTensorClass)
	r.Dtype = enum(&p.scanner, "element type", target.ParseDtype)
	p.ints = p.scanner.ints(p.ints[:0])
	r.Shape = m.Ints.AddSlice(p.ints)
	p.want("part")
	r.PartDim = int8(p.int(-1, 127))
	if a, ok := ParseAddrSpace(string(p.peek())); ok {
		p.take()
		r.Addr = a
	}
	if o, ok := ParseOrigin(string(p.peek())); ok {
		p.take()
		r.Origin = o
	}
	if p.is("const") {
		r.Const = Const(p.id("c", m.Consts.Len()))
	}
	if p.is("live") {
		r.LiveN = uint32(p.int(0, math.MaxUint32))
	}
	if p.is("file") {
		r.File = p.name()
	}
	r.Flags = SetFlag(p.flags(setFlags[:]))
	if p.err == nil {
		p.sets = append(p.sets, m.Sets.Add(r))
	}
}

func (p *parser) locLine(firstSet int) {
	m := p.m
	p.defines("%", m.Locs.Len())
	if len(p.sets) == firstSet {
		p.fail("a placement before the first set of its function")
		return
	}
	set := p.sets[len(p.sets)-1]
	r := LocRow{Set: set, Pack: -1, ID: -1, Name: p.name()}
	r.Space = enum(&p.scanner, "memory space", target.ParseSpace)
	r.Parts = uint32(p.int(0, math.MaxUint32))
	p.want("x")
	r.Bytes = p.int(0, 1<<48)
	p.want("at")
	r.Addr = p.int(-1<<48, 1<<48)
	if p.is("bank") {
		r.Bank = int8(p.int(-128, 127))
	}
	if p.is("base") {
		r.Base = uint8(p.int(0, 255))
	}
	if p.is("pack") {
		r.Pack = int16(p.int(-1, math.MaxInt16))
	}
	if p.is("id") {
		r.ID = int32(p.int(math.MinInt32, math.MaxInt32))
	}
	r.Flags = LocFlag(p.flags(locFlags[:]))
	if r.Parts > 1<<20 {
		p.fail("%d partitions", r.Parts)
	}
	if p.err != nil {
		return
	}
	l := m.Locs.Add(r)
	s := m.Sets.At(set)
	if s.Count == 0 {
		s.First = l
	}
	s.Count++
}

func (p *parser) regLine() {
	m := p.m
	p.take()
	p.defines("r", m.Regs.Len())
	r := RegRow{Name: p.name(), Dtype: enum(&p.scanner, "element type", target.ParseDtype)}
	r.Width = uint8(p.int(1, 2))
	r.Engine = enum(&p.scanner, "engine", target.ParseEngine)
	p.want("phys")
	r.Phys = int8(p.int(-1, 127))
	p.regs = append(p.regs, m.Regs.Add(r))
}

// blockOpen is a block whose lines are being read; a region's blocks stack on it.
type blockOpen struct {
	block  Block
	order  []Inst
	region Inst // the open region instruction at the end of order, when its blocks are being read
	axis   Axis
	inner  []Block
}

// block reads from the line `block "name" {` to its closing brace.
func (p *parser) block(f Func) Block {
	m := p.m
	stack := []blockOpen{p.openBlock(f, 0)}
	for p.err == nil && p.nextLine() {
		t := &stack[len(stack)-1]
		switch w := p.peek(); {
		case string(w) == "}":
			p.take()
			if t.region != 0 {
				m.Regions.Set(t.region, RegionRow{Axis: t.axis, Blocks: m.BlockList.AddSlice(t.inner)})
				t.region, t.inner, t.axis = 0, nil, 0
				break
			}
			m.Blocks.At(t.block).Order = m.Order.AddSlice(t.order)
			if len(stack) == 1 {
				return t.block
			}
			done := t.block
			stack = stack[:len(stack)-1]
			t = &stack[len(stack)-1]
			t.inner = append(t.inner, done)
		case t.region != 0:
			if string(w) != "block" {
				p.fail("unexpected %q in a region; expected block or }", w)
				break
			}
			stack = append(stack, p.openBlock(f, t.region))
		default:
			i, axis, opens := p.inst(t.block)
			t.order = append(t.order, i)
			if opens {
				t.region, t.axis = i, axis
			}
		}
		p.done()
	}
	p.fail("block %q is not closed", m.Names.String(m.Blocks.At(stack[0].block).Name))
	return stack[0].block
}

func (p *parser) openBlock(f Func, parent Inst) blockOpen {
	p.want("block")
	s := p.quoted()
	p.want("{")
	p.done()
	b := p.m.Blocks.Add(BlockRow{Name: p.m.Names.Intern(s), Func: f, Parent: parent})
	if _, dup := p.byName[s]; dup {
		p.fail("block %q is defined twice", s)
	}
	p.byName[s] = b
	return blockOpen{block: b}
}

func (p *parser) instRef() Inst {
	if p.is("I-0") {
		return 0
	}
	i := p.id("I-", math.MaxInt32)
	if i > p.maxInst {
		p.maxInst, p.maxAt = i, p.line
	}
	return Inst(i)
}

func (p *parser) inst(b Block) (id Inst, axis Axis, opens bool) {
	m := p.m
	p.defines("I-", m.Insts.Len())
	r := InstRow{Block: b, Name: p.name()}
	r.Op = enum(&p.scanner, "opcode", func(s string) (Opcode, bool) { return ParseOpcode([]byte(s)) })
	r.Engine = enum(&p.scanner, "engine", target.ParseEngine)
	p.args = p.args[:0]
	r.NIn = p.argList()
	if p.is("ind") {
		r.NInd = p.argList()
	}
	p.want("->")
	r.NOut = p.argList()
	p.attrs, p.deps, p.sync = p.attrs[:0], p.deps[:0], p.sync[:0]
	var waits int
	var src arena.Name
	refs := len(p.blocks)
	for p.err == nil {
		w := p.peek()
		if len(w) == 0 {
			break
		}
		switch string(w) {
		case "origin":
			p.take()
			r.Origin = enum(&p.scanner, "origin", ParseOrigin)
			continue
		case "dep":
			p.take()
			d := Dep{Inst: p.instRef()}
			d.Kind = enum(&p.scanner, "dependence", ParseDepKind)
			p.deps = append(p.deps, d)
			continue
		case "wait", "update":
			p.take()
			o := SyncOp{Sem: uint16(p.semaphore()), Value: int32(p.int(math.MinInt32, math.MaxInt32))}
			if string(w) == "wait" {
				o.From = p.instRef()
				if waits != len(p.sync) {
					p.fail("a wait behind an update")
				}
				waits++
			}
			p.sync = append(p.sync, o)
			continue
		case "src":
			p.take()
			src = p.name()
			continue
		case "axis":
			p.take()
			axis = Axis(p.id("i", m.Axes.Len()))
			continue
		case "{":
			p.take()
			opens = true
			continue
		case "spill", "reload", "unit":
			r.Flags |= InstFlag(p.flags(instFlags[:]))
			continue
		}
		if w[0] == 'q' && len(w) > 1 && w[1] >= '0' && w[1] <= '9' {
			r.Queue = Queue(p.id("q", m.Queues.Len()))
			continue
		}
		p.attr(r.Op)
	}
	if opens != r.Op.Is(FlagRegion) && p.err == nil {
		p.fail("%s and its braces do not agree", r.Op)
	}
	if p.err != nil {
		return 0, 0, false
	}
	r.Args = m.Args.AddSlice(p.args).Off
	as := m.Attrs.AddSlice(p.attrs)
	if len(p.attrs) > math.MaxUint16 {
		p.fail("%d attributes", len(p.attrs))
	}
	r.Attrs, r.NAttr = as.Off, uint16(len(p.attrs))
	r.Deps = m.Deps.AddSlice(p.deps)
	id = m.Insts.Add(r)
	if len(p.sync) > 0 {
		s := m.SyncOps.AddSlice(p.sync)
		m.Syncs.Set(id, SyncRow{Waits: arena.Span{Off: s.Off, Len: uint32(waits)}, Updates: arena.Span{Off: s.Off + uint32(waits), Len: s.Len - uint32(waits)}})
	}
	if src != 0 {
		m.Source.Set(id, src)
	}
	for k := refs; k < len(p.blocks); k++ {
		p.blocks[k].inst = id
	}
	return id, axis, opens
}

func (p *parser) semaphore() int64 {
	w := p.peek()
	if len(w) < 2 || w[0] != 's' {
		p.fail("expected sN, found %q", w)
		return 0
	}
	v := p.number(w[1:], 0, 255)
	p.take()
	return v
}

func (p *parser) argList() uint8 {
	p.want("(")
	n := 0
	for p.err == nil && !p.is(")") {
		if n > 0 {
			p.want(",")
		}
		p.args = append(p.args, p.arg())
		if n++; n > math.MaxUint8 {
			p.fail("more than %d operands", math.MaxUint8)
		}
	}
	return uint8(n)
}

// typed splits the last word of an operand at its colon and gives what stands before, and the type.
func (p *parser) typed(w []byte) ([]byte, target.Dtype) {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i] == ':' {
			d, ok := target.ParseDtype(string(w[i+1:]))
			if !ok {
				p.fail("unknown element type %q", w[i+1:])
			}
			return w[:i], d
		}
	}
	p.fail("expected value:type, found %q", w)
	return nil, 0
}

func (p *parser) arg() Arg {
	m := p.m
	w := p.peek()
	if len(w) == 0 {
		p.fail("the operand list is not closed")
		return Arg{}
	}
	switch {
	case w[0] == '%':
		l := Loc(p.id("%", m.Locs.Len()))
		if p.err != nil {
			return Arg{}
		}
		r := APRow{Loc: l}
		d := p.window(&r, m.Locs.At(l))
		return Arg{Kind: ArgAP, Dtype: d, Ref: uint32(m.APs.Add(r))}
	case w[0] == '[':
		return p.array()
	}
	for k := ArgSym; k <= ArgSymImm; k++ {
		if name, ok := symKinds[k]; ok && string(w) == name {
			p.take()
			return p.symbolic(k)
		}
	}
	v, d := p.typed(p.take())
	if p.err != nil {
		return Arg{}
	}
	if len(v) > 1 && v[0] == 'r' {
		return Arg{Kind: ArgReg, Dtype: d, Ref: uint32(p.number(v[1:], 1, int64(m.Regs.Len())-1))}
	}
	if d.Size() == 8 {
		return Arg{Kind: ArgImmWide, Dtype: d, Ref: m.Wide.Add(p.value(v, d)).Off}
	}
	return Arg{Kind: ArgImm, Dtype: d, Ref: uint32(p.value(v, d))}
}

// value is the bits of an immediate.
func (p *parser) value(v []byte, d target.Dtype) uint64 {
	switch {
	case p.err != nil:
		return 0
	case d.IsFloat():
		return uint64(p.floatBits(v))
	case d.Class() == target.ClassUint:
		bits := 32
		if d.Size() == 8 {
			bits = 64
		}
		u, err := strconv.ParseUint(string(v), 10, bits)
		if err != nil {
			p.fail("expected an unsigned integer, found %q", v)
		}
		return u
	case d.Size() == 8:
		return uint64(p.number(v, math.MinInt64, math.MaxInt64))
	}
	return uint64(uint32(p.number(v, math.MinInt32, math.MaxInt32)))
}

func (p *parser) array() Arg {
	m := p.m
	p.take()
	var words [][]byte
	for p.err == nil && !p.is("]") {
		w := p.take()
		if len(w) == 0 {
			p.fail("the list is not closed")
		}
		words = append(words, w)
	}
	_, d := p.typed(p.take())
	mark := m.Wide.Mark()
	m.Wide.Push(uint64(len(words)))
	for _, w := range words {
		m.Wide.Push(p.value(w, d))
	}
	return Arg{Kind: ArgImmArray, Dtype: d, Ref: mark}
}

// window reads `start+parts[/pitch*num] @off step*num… :type`, the first part on chip only.
func (p *parser) window(r *APRow, l *LocRow) target.Dtype {
	chip := l.Space.OnChip()
	first := 0
	pitch := int64(math.MinInt64)
	num := uint32(0)
	if chip {
		w := p.take()
		body, rest, hasPitch := cut(w, '/')
		a, b, ok := cut(body, '+')
		if !ok {
			p.fail("expected start+partitions, found %q", w)
			return 0
		}
		r.Start, r.Parts = uint8(p.number(a, 0, 255)), uint16(p.number(b, 0, math.MaxUint16))
		num = uint32(r.Parts)
		if hasPitch {
			a, b, ok := cut(rest, '*')
			if !ok {
				p.fail("expected pitch*num, found %q", rest)
				return 0
			}
			pitch, num = p.number(a, math.MinInt32, math.MaxInt32), uint32(p.number(b, 0, math.MaxUint32))
		}
		first = 1
	}
	d := p.offsetAndPairs(r, first)
	r.Dtype = d
	if chip {
		if pitch == math.MinInt64 {
			pitch = l.Bytes / int64(max(1, d.Size()))
		}
		if pitch > math.MaxInt32 {
			p.fail("row of %d elements", pitch)
		}
		r.Pairs[0] = Pair{int32(pitch), num}
		if num == 0 && r.Pairs[1].Num != 0 {
			p.fail("no partitions")
		}
	}
	return d
}

func (p *parser) offsetAndPairs(r *APRow, first int) target.Dtype {
	w := p.take()
	if len(w) < 2 || w[0] != '@' {
		p.fail("expected @offset, found %q", w)
		return 0
	}
	n := first
	last := w[1:]
	if next := p.peek(); len(next) == 0 || punct(next[0]) {
		v, d := p.typed(last)
		r.Off = p.number(v, -1<<48, 1<<48)
		return d
	}
	r.Off = p.number(last, -1<<48, 1<<48)
	for p.err == nil {
		w := p.take()
		more := true
		var d target.Dtype
		if next := p.peek(); len(next) == 0 || punct(next[0]) {
			w, d = p.typed(w)
			more = false
		}
		a, b, ok := cut(w, '*')
		if !ok || n >= len(r.Pairs) {
			p.fail("expected at most %d step*num, found %q", len(r.Pairs)-first, w)
			return 0
		}
		r.Pairs[n] = Pair{int32(p.number(a, math.MinInt32, math.MaxInt32)), uint32(p.number(b, 1, math.MaxUint32))}
		n++
		if !more {
			return d
		}
	}
	return 0
}

func cut(w []byte, c byte) (before, after []byte, ok bool) {
	for i := range w {
		if w[i] == c {
			return w[:i], w[i+1:], true
		}
	}
	return w, nil, false
}

func (p *parser) symbolic(k ArgKind) Arg {
	m := p.m
	var s SymRow
	p.want("(")
	p.want("set")
	n := p.int(1, int64(len(p.sets)))
	if p.err != nil {
		return Arg{}
	}
	s.Set = p.sets[n-1]
	w := p.take()
	a, b, ok := cut(w, '+')
	if !ok {
		p.fail("expected start+partitions, found %q", w)
		return Arg{}
	}
	s.AP.Start, s.AP.Parts = uint8(p.number(a, 0, 255)), uint16(p.number(b, 0, math.MaxUint16))
	w = p.take()
	if len(w) < 2 || w[0] != '@' {
		p.fail("expected @offset, found %q", w)
		return Arg{}
	}
	s.AP.Off = p.number(w[1:], -1<<48, 1<<48)
	for i := 0; p.err == nil; i++ {
		a, b, ok := cut(p.peek(), '*')
		if !ok {
			break
		}
		if i >= len(s.AP.Pairs) {
			p.fail("more than %d axes", len(s.AP.Pairs))
			break
		}
		s.AP.Pairs[i] = Pair{int32(p.number(a, math.MinInt32, math.MaxInt32)), uint32(p.number(b, 1, math.MaxUint32))}
		p.take()
	}
	if p.is("addr") {
		s.Addr = Expr(p.id("e", m.Exprs.Len()))
	}
	if p.is("reg") {
		s.Reg = Reg(p.id("r", m.Regs.Len()))
	}
	s.RegLocOffset = p.is("loc_offset")
	if p.is("ap_offset") {
		s.APOffset = p.anyInt()
	}
	if p.is("sub") {
		s.SubTensor = int32(p.int(math.MinInt32, math.MaxInt32))
	}
	if p.is("subreg") {
		s.SubReg = Reg(p.id("r", m.Regs.Len()))
	}
	p.want(")")
	_, d := p.typed(p.take())
	s.AP.Dtype = d
	return Arg{Kind: k, Dtype: d, Ref: uint32(m.Syms.Add(s))}
}

func (p *parser) attr(op Opcode) {
	m := p.m
	w := p.peek()
	key, rest, ok := cut(w, '=')
	if !ok {
		p.fail("unexpected %q; expected key=value", w)
		return
	}
	// The value may be a list or a string, which the scanner takes as words of their own.
	p.pos += len(key) + 1
	if string(key) == "extra" {
		p.attrs = append(p.attrs, Attr{KeyExtra, uint64(p.name())})
		return
	}
	k, ok := KeyFor(op, key)
	if !ok {
		p.fail("%s has no attribute %q", op, key)
		return
	}
	a := Attr{Key: k}
	in := k.Info()
	switch in.Form {
	case FormInt:
		a.Val = uint64(p.anyInt())
	case FormBool:
		switch string(rest) {
		case "true":
			a.Val = 1
		case "false":
		default:
			p.fail("expected true or false, found %q", rest)
		}
		p.take()
	case FormFloat:
		a.Val = uint64(p.floatBits(p.peek()))
		p.take()
	case FormEnum:
		found := false
		for v, n := range in.Enum {
			if n == string(rest) {
				a.Val, found = uint64(v), true
			}
		}
		if !found {
			p.fail("%s has no value %q", key, rest)
		}
		p.take()
	case FormName:
		a.Val = uint64(p.name())
	case FormNames:
		p.want("[")
		var l []arena.Name
		for p.err == nil && !p.is("]") {
			l = append(l, p.name())
		}
		a.Val = SpanVal(m.NameList.AddSlice(l))
	case FormInts, FormPairs:
		p.ints = p.scanner.ints(p.ints[:0])
		a.Val = SpanVal(m.Ints.AddSlice(p.ints))
	case FormFloats:
		p.want("[")
		p.ints = p.ints[:0]
		for p.err == nil && !p.is("]") {
			w := p.peek()
			p.ints = append(p.ints, int64(p.floatBits(w)))
			p.take()
		}
		a.Val = SpanVal(m.Ints.AddSlice(p.ints))
	case FormBlock:
		p.blocks = append(p.blocks, blockRef{key: k, name: p.quoted(), line: p.line})
	case FormQueue:
		a.Val = uint64(p.id("q", m.Queues.Len()))
	}
	p.attrs = append(p.attrs, a)
}
