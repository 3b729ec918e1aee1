package ir

import (
	"encoding/base64"
	"io"
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// The text form, one object a line, indented by nesting:
//
//	rir 1
//	module "name" trn2
//	  semaphores 16
//	  extra "raw JSON"
//	axis i1 "i0" 0 4 1                           from 0 to below 4 by 1
//	expr e1 axis i1
//	expr e2 affine 0 e1*8192
//	const c1 embedded float32 "base64…"
//	const c2 model float32 "w" [512 512] "permute 1,0"
//	queue q1 "qSPld" SP load 16 sem 16
//	func "sg0000" psum_placed sb_placed {
//	  set "A" ExternalInput Tensor float32 [8 4] part 0 …
//	    %1 "A" DRAM 1 x 128 at 0 allocated …     partitions x bytes of each; without `allocated` the address is none yet
//	  reg r1 "x" int32 1 SP phys -1              lanes, 2 for 64 bits; engine; first lane, -1 for none yet
//	  alias %1 %2 3
//	  block "Block1" {
//	    I-1 "I-0" Load SP (%1 @0 4*8 1*4:float32) -> (%2 0+8 @0 1*4:float32) key=value … dep I-2 Flow … src "conv"
//	    I-2 "L0" Loop Unassigned () -> () axis i1 {
//	      block "body" {
//	      }
//	    }
//	  }
//	}
//
// Numbers are dense in order of appearance, so that printing what was parsed gives the same bytes. Locations, instructions
// and registers that no function holds are not printed. Operands: `%n start+parts @off step*num…:type` on chip,
// `%n @off step*num…:type` in DRAM (axes outermost first, the partition axis implied), `value:type` for immediates (bits in
// hex where decimal would lose them), `rn:type` for registers, `sym(set n start+parts @off step*num… addr en):type` for a pattern on
// the n-th set of the module that starts at off and the value of an expression together, in elements (symbolic.go), and
// `regap(set n … reg rn):type` for one that starts at the value of a register.

// printer holds the renumbering of one print.
type printer struct {
	m    *Module
	buf  []byte
	w    io.Writer
	err  error
	loc  []uint32
	inst []uint32
	reg  []uint32
	sets []Set // by number, for symbolic operands
	set  []uint32
}

// Print writes the text form of m.
func Print(w io.Writer, m *Module) error {
	p := &printer{m: m, w: w}
	p.number()
	p.module()
	for f := Func(1); int(f) < m.Funcs.Len(); f++ {
		p.function(f)
	}
	p.flush(true)
	return p.err
}

// Append appends the text form of m to dst.
func Append(dst []byte, m *Module) []byte {
	p := &printer{m: m, buf: dst}
	p.number()
	p.module()
	for f := Func(1); int(f) < m.Funcs.Len(); f++ {
		p.function(f)
	}
	return p.buf
}

func (p *printer) flush(force bool) {
	if p.w == nil || p.err != nil || (!force && len(p.buf) < 1<<16) {
		return
	}
	_, p.err = p.w.Write(p.buf)
	p.buf = p.buf[:0]
}

// number gives dense numbers in the order of printing.
func (p *printer) number() {
	m := p.m
	p.loc = make([]uint32, m.Locs.Len())
	p.inst = make([]uint32, m.Insts.Len())
	p.reg = make([]uint32, m.Regs.Len())
	p.set = make([]uint32, m.Sets.Len())
	nl, ni, nr := uint32(0), uint32(0), uint32(0)
	for f := Func(1); int(f) < m.Funcs.Len(); f++ {
		for _, s := range m.SetsOf(f) {
			p.sets = append(p.sets, s)
			p.set[s] = uint32(len(p.sets))
			first, n := m.LocsOf(s)
			for l := first; l < first+Loc(n); l++ {
				nl++
				p.loc[l] = nl
			}
		}
		for _, r := range m.RegList.Of(m.Funcs.At(f).Regs) {
			nr++
			p.reg[r] = nr
		}
		walkBlocks(m, f, func(i Inst) { ni++; p.inst[i] = ni })
	}
}

// walkBlocks visits the instructions of a function in textual order: an instruction, then the blocks of its region.
func walkBlocks(m *Module, f Func, visit func(Inst)) {
	var w blockWalk
	w.start(m, f)
	for {
		switch ev, i, _ := w.next(); ev {
		case walkInst:
			visit(i)
		case walkDone:
			return
		}
	}
}

type walkEvent uint8

const (
	walkDone walkEvent = iota
	walkInst
	walkEnterBlock
	walkLeaveBlock
	walkLeaveRegion
)

// blockWalk walks nested blocks with an explicit stack.
type blockWalk struct {
	m     *Module
	stack []blockFrame
}

type blockFrame struct {
	blocks []Block
	order  []Inst
	inside bool
	region bool
}

func (w *blockWalk) start(m *Module, f Func) {
	w.m = m
	w.stack = append(w.stack[:0], blockFrame{blocks: m.BlocksOf(f)})
}

func (w *blockWalk) next() (walkEvent, Inst, Block) {
	for len(w.stack) > 0 {
		t := &w.stack[len(w.stack)-1]
		switch {
		case !t.inside && len(t.blocks) == 0:
			region := t.region
			w.stack = w.stack[:len(w.stack)-1]
			if region {
				return walkLeaveRegion, 0, 0
			}
		case !t.inside:
			t.inside, t.order = true, w.m.OrderOf(t.blocks[0])
			return walkEnterBlock, 0, t.blocks[0]
		case len(t.order) == 0:
			b := t.blocks[0]
			t.inside, t.blocks = false, t.blocks[1:]
			return walkLeaveBlock, 0, b
		default:
			i := t.order[0]
			t.order = t.order[1:]
			if w.m.Insts.At(i).Op.Is(FlagRegion) {
				w.stack = append(w.stack, blockFrame{blocks: w.m.BlockList.Of(w.m.Regions.Get(i).Blocks), region: true})
			}
			return walkInst, i, 0
		}
	}
	return walkDone, 0, 0
}

func (p *printer) str(s string)       { p.buf = append(p.buf, s...) }
func (p *printer) int(v int64)        { p.buf = strconv.AppendInt(p.buf, v, 10) }
func (p *printer) word(s string)      { p.buf = append(p.buf, ' '); p.str(s) }
func (p *printer) quote(n arena.Name) { p.buf = strconv.AppendQuote(p.buf, p.m.Names.String(n)) }
func (p *printer) num(word string, v int64) {
	p.word(word)
	p.buf = append(p.buf, ' ')
	p.int(v)
}
func (p *printer) ref(prefix string, v uint32) {
	p.str(prefix)
	p.buf = strconv.AppendUint(p.buf, uint64(v), 10)
}

func (p *printer) line(depth int) {
	for range depth {
		p.str("  ")
	}
}

func (p *printer) ints(l []int64) {
	p.str("[")
	for i, v := range l {
		if i > 0 {
			p.str(" ")
		}
		p.int(v)
	}
	p.str("]")
}

func (p *printer) extras(depth int, s arena.Span) {
	for _, n := range p.m.NameList.Of(s) {
		p.line(depth)
		p.str("extra ")
		p.quote(n)
		p.str("\n")
	}
}

func (p *printer) module() {
	m := p.m
	p.str("rir 1\nmodule ")
	p.quote(m.Name)
	if m.Gen != nil {
		p.word(m.Gen.Name)
	}
	p.str("\n")
	if m.SemaphoresPerQueue != 0 {
		p.num(" semaphores", int64(m.SemaphoresPerQueue))
		p.str("\n")
	}
	p.extras(1, m.Extra)
	for a, r := range m.Axes.All() {
		p.ref("axis i", uint32(a))
		p.str(" ")
		p.quote(r.Name)
		for _, v := range []int64{r.Lo, r.Hi, r.Step} {
			p.str(" ")
			p.int(v)
		}
		p.str("\n")
	}
	for e, r := range m.Exprs.All() {
		p.expr(e, r)
	}
	for c, r := range m.Consts.All() {
		p.constant(c, r)
	}
	for q, r := range m.Queues.All() {
		p.ref("queue q", uint32(q))
		p.str(" ")
		p.quote(r.Name)
		p.word(r.Owner.String())
		p.word(queueDirs[r.Dir])
		p.str(" ")
		p.int(int64(r.NumQueues))
		p.num("sem", int64(r.SemBase))
		p.str("\n")
		p.extras(1, r.Extra)
	}
}

var queueDirs = [...]string{"load", "store", "copy"}

var exprKinds = [...]string{"", "affine", "sum", "mul", "div", "mod", "axis", "reg", "shard", "indirect", "ccdiv", "ccrank"}

func (p *printer) expr(e Expr, r *ExprRow) {
	p.ref("expr e", uint32(e))
	p.word(exprKinds[r.Kind])
	switch r.Kind {
	case ExprAxis:
		p.ref(" i", r.Ref)
	case ExprReg:
		p.ref(" r", p.reg[r.Ref])
	case ExprMul, ExprFloorDiv, ExprMod:
		p.ref(" e", uint32(r.A))
		p.str(" ")
		p.int(r.C)
	case ExprCCDiv:
		p.ref(" e", uint32(r.A))
		p.str(" ")
		p.int(r.C)
		p.num("groups", int64(r.Ref))
	case ExprCCRank:
		p.str(" ")
		p.int(r.C)
		p.num("iteration", int64(r.Ref))
	default:
		p.str(" ")
		p.int(r.C)
		for _, t := range p.m.Terms.Of(r.Terms) {
			p.ref(" e", uint32(t.Expr))
			p.str("*")
			p.int(t.Coeff)
		}
	}
	p.str("\n")
}

func (p *printer) constant(c Const, r *ConstRow) {
	p.ref("const c", uint32(c))
	if r.Kind == ConstEmbedded {
		p.word("embedded")
		p.word(r.Dtype.String())
		p.str(" \"")
		p.buf = base64.StdEncoding.AppendEncode(p.buf, p.m.Bytes.Of(r.Data))
		p.str("\"\n")
		p.flush(false)
		return
	}
	p.word("model")
	p.word(r.Dtype.String())
	p.str(" ")
	p.quote(r.Tensor)
	p.str(" ")
	p.ints(p.m.Ints.Of(r.Shape))
	p.str(" ")
	p.quote(r.Recipe)
	p.str("\n")
}

var funcFlags = [...]string{"psum_placed", "sb_placed", "dram_placed", "has_deps", "scheduled", "groups_legal", "queued", "synced", "explicit_flags", "nki"}
var setFlags = [...]string{"no_spill", "volatile", "virtual", "no_rotate", "spill_home", "reload"}
var locFlags = [...]string{"allocated", "user_allocated", "pinned", "reserved", "remote_writer"}
var instFlags = [...]string{"spill", "reload", "unit"}

func (p *printer) flags(names []string, bits uint32) {
	for i, n := range names {
		if bits>>i&1 != 0 {
			p.word(n)
		}
	}
}

func (p *printer) function(f Func) {
	m := p.m
	r := m.Funcs.At(f)
	p.str("func ")
	p.quote(r.Name)
	if m.Entry == f {
		p.word("entry")
	}
	p.flags(funcFlags[:], uint32(r.Flags))
	p.str(" {\n")
	p.extras(1, r.Extra)
	for _, s := range m.SetsOf(f) {
		p.setRow(s)
	}
	for _, g := range m.RegList.Of(r.Regs) {
		rr := m.Regs.At(g)
		p.ref("  reg r", p.reg[g])
		p.str(" ")
		p.quote(rr.Name)
		p.word(rr.Dtype.String())
		p.str(" ")
		p.int(int64(rr.Width))
		p.word(rr.Engine.String())
		p.num("phys", int64(rr.Phys))
		p.str("\n")
	}
	for _, a := range m.AliasRows() {
		if m.Sets.At(m.Locs.At(a.A).Set).Func != f {
			continue
		}
		p.ref("  alias %", p.loc[a.A])
		p.ref(" %", p.loc[a.B])
		p.str(" ")
		p.int(int64(a.Kind))
		p.str("\n")
	}
	var w blockWalk
	w.start(m, f)
	depth := 1
	for {
		switch ev, i, b := w.next(); ev {
		case walkDone:
			p.str("}\n")
			return
		case walkEnterBlock:
			p.line(depth)
			p.str("block ")
			p.quote(m.Blocks.At(b).Name)
			p.str(" {\n")
			depth++
		case walkInst:
			p.line(depth)
			p.instruction(i)
			if m.Insts.At(i).Op.Is(FlagRegion) {
				depth++
			}
		case walkLeaveBlock, walkLeaveRegion:
			depth--
			p.line(depth)
			p.str("}\n")
		}
		p.flush(false)
	}
}

func (p *printer) setRow(s Set) {
	m := p.m
	r := m.Sets.At(s)
	p.str("  set ")
	p.quote(r.Name)
	p.word(r.Kind.String())
	p.word(r.Class.String())
	p.word(r.Dtype.String())
	p.str(" ")
	p.ints(m.Ints.Of(r.Shape))
	p.num("part", int64(r.PartDim))
	if r.Addr != AddrLocal {
		p.word(r.Addr.String())
	}
	if r.Origin != OriginInternal {
		p.word(r.Origin.String())
	}
	if r.Const != 0 {
		p.ref(" const c", uint32(r.Const))
	}
	if r.LiveN != 0 {
		p.num("live", int64(r.LiveN))
	}
	if r.File != 0 {
		p.str(" file ")
		p.quote(r.File)
	}
	p.flags(setFlags[:], uint32(r.Flags))
	p.str("\n")
	p.extras(2, r.Extra)
	first, n := m.LocsOf(s)
	for l := first; l < first+Loc(n); l++ {
		lr := m.Locs.At(l)
		p.ref("    %", p.loc[l])
		p.str(" ")
		p.quote(lr.Name)
		p.word(lr.Space.String())
		p.str(" ")
		p.int(int64(lr.Parts))
		p.str(" x ")
		p.int(lr.Bytes)
		p.num("at", lr.Addr)
		if lr.Bank != 0 {
			p.num("bank", int64(lr.Bank))
		}
		if lr.Base != 0 {
			p.num("base", int64(lr.Base))
		}
		if lr.Pack != -1 {
			p.num("pack", int64(lr.Pack))
		}
		if lr.ID != -1 {
			p.num("id", int64(lr.ID))
		}
		p.flags(locFlags[:], uint32(lr.Flags))
		p.str("\n")
		p.extras(3, lr.Extra)
	}
}

func (p *printer) instruction(i Inst) {
	m := p.m
	r := m.Insts.At(i)
	p.ref("I-", p.inst[i])
	p.str(" ")
	p.quote(r.Name)
	p.word(r.Op.String())
	p.word(r.Engine.String())
	p.str(" ")
	p.args(m.Ins(i))
	if r.NInd > 0 {
		p.str(" ind ")
		p.args(m.Indices(i))
	}
	p.str(" -> ")
	p.args(m.Outs(i))
	for _, a := range m.AttrsOf(i) {
		p.str(" ")
		p.attr(a)
	}
	if r.Origin != OriginInternal {
		p.word("origin")
		p.word(r.Origin.String())
	}
	p.flags(instFlags[:], uint32(r.Flags))
	if r.Queue != 0 {
		p.ref(" q", uint32(r.Queue))
	}
	for _, d := range m.DepsOf(i) {
		p.ref(" dep I-", p.inst[d.Inst])
		p.word(d.Kind.String())
	}
	sy := m.Syncs.Get(i)
	for _, s := range m.SyncOps.Of(sy.Waits) {
		p.ref(" wait s", uint32(s.Sem))
		p.str(" ")
		p.int(int64(s.Value))
		p.ref(" I-", p.instNum(s.From))
	}
	for _, s := range m.SyncOps.Of(sy.Updates) {
		p.ref(" update s", uint32(s.Sem))
		p.str(" ")
		p.int(int64(s.Value))
	}
	if src := m.Source.Get(i); src != 0 {
		p.str(" src ")
		p.quote(src)
	}
	if r.Op.Is(FlagRegion) {
		if reg := m.Regions.Get(i); reg.Axis != 0 {
			p.ref(" axis i", uint32(reg.Axis))
		}
		p.str(" {")
	}
	p.str("\n")
}

func (p *printer) instNum(i Inst) uint32 {
	if int(i) < len(p.inst) {
		return p.inst[i]
	}
	return 0
}

func (p *printer) args(as []Arg) {
	p.str("(")
	for i, a := range as {
		if i > 0 {
			p.str(", ")
		}
		p.arg(a)
	}
	p.str(")")
}

func (p *printer) arg(a Arg) {
	m := p.m
	switch a.Kind {
	case ArgAP:
		p.pattern(m.APs.At(a.AP()))
	case ArgSym, ArgSymPW, ArgRegAP, ArgSymImm:
		s := m.Syms.At(Sym(a.Ref))
		p.str(symKinds[a.Kind])
		p.str("(")
		p.ref("set ", p.set[s.Set])
		p.str(" ")
		p.axes(&s.AP)
		if s.Addr != 0 {
			p.ref(" addr e", uint32(s.Addr))
		}
		if s.Reg != 0 {
			p.ref(" reg r", p.reg[s.Reg])
		}
		if s.RegLocOffset {
			p.word("loc_offset")
		}
		if s.APOffset != 0 {
			p.num("ap_offset", s.APOffset)
		}
		if s.SubTensor != 0 {
			p.num("sub", int64(s.SubTensor))
		}
		if s.SubReg != 0 {
			p.ref(" subreg r", p.reg[s.SubReg])
		}
		p.str(")")
	case ArgReg:
		p.ref("r", p.reg[a.Ref])
	case ArgImm:
		p.imm(a.Dtype, a.Ref)
	case ArgImmWide:
		p.wide(a.Dtype, m.Wide.Of(arena.Span{Off: a.Ref, Len: 1})[0])
	case ArgImmArray:
		n := m.Wide.Of(arena.Span{Off: a.Ref, Len: 1})[0]
		p.str("[")
		for i, v := range m.Wide.Of(arena.Span{Off: a.Ref + 1, Len: uint32(n)}) {
			if i > 0 {
				p.str(" ")
			}
			if a.Dtype.Size() == 8 {
				p.wide(a.Dtype, v)
			} else {
				p.imm(a.Dtype, uint32(v))
			}
		}
		p.str("]")
	}
	p.str(":")
	p.str(a.Dtype.String())
}

var symKinds = map[ArgKind]string{ArgSym: "sym", ArgSymPW: "sympw", ArgRegAP: "regap", ArgSymImm: "symimm"}

// imm prints a value so that parsing gives the same bits.
func (p *printer) imm(d target.Dtype, bits uint32) {
	if !d.IsFloat() {
		if d.Class() == target.ClassUint {
			p.buf = strconv.AppendUint(p.buf, uint64(bits), 10)
		} else {
			p.int(int64(int32(bits)))
		}
		return
	}
	p.float(math.Float32frombits(bits))
}

func (p *printer) wide(d target.Dtype, v uint64) {
	if d.Class() == target.ClassUint {
		p.buf = strconv.AppendUint(p.buf, v, 10)
	} else {
		p.int(int64(v))
	}
}

func (p *printer) float(f float32) {
	if f != f {
		p.str("0x")
		p.buf = strconv.AppendUint(p.buf, uint64(math.Float32bits(f)), 16)
		return
	}
	p.buf = strconv.AppendFloat(p.buf, float64(f), 'g', -1, 32)
}

func (p *printer) pattern(a *APRow) {
	p.ref("%", p.loc[a.Loc])
	p.str(" ")
	l := p.m.Locs.At(a.Loc)
	if l.Space.OnChip() {
		p.int(int64(a.Start))
		p.str("+")
		p.int(int64(a.Parts))
		if pitch := int64(a.Pairs[0].Step); pitch != l.Bytes/int64(max(1, a.Dtype.Size())) || a.Pairs[0].Num != uint32(a.Parts) {
			p.str("/")
			p.int(pitch)
			p.str("*")
			p.int(int64(a.Pairs[0].Num))
		}
		p.str(" ")
	}
	p.str("@")
	p.int(a.Off)
	p.pairs(a.Free(l.Space))
}

// axes prints a pattern without a location: every pair, offset and partition window in full.
func (p *printer) axes(a *APRow) {
	p.int(int64(a.Start))
	p.str("+")
	p.int(int64(a.Parts))
	p.str(" @")
	p.int(a.Off)
	p.pairs(a.Pairs[:a.NPairs()])
}

func (p *printer) pairs(ps []Pair) {
	for _, x := range ps {
		p.str(" ")
		p.int(int64(x.Step))
		p.str("*")
		p.int(int64(x.Num))
	}
}

func (p *printer) attr(a Attr) {
	m := p.m
	in := a.Key.Info()
	if in.Form == FormRaw {
		p.str("extra=")
		p.quote(arena.Name(a.Val))
		return
	}
	p.str(in.JSON)
	p.str("=")
	switch in.Form {
	case FormInt:
		p.int(int64(a.Val))
	case FormBool:
		p.str(strconv.FormatBool(a.Val != 0))
	case FormFloat:
		p.float(math.Float32frombits(uint32(a.Val)))
	case FormEnum:
		if a.Val < uint64(len(in.Enum)) {
			p.str(in.Enum[a.Val])
		} else {
			p.int(int64(a.Val))
		}
	case FormName:
		p.quote(arena.Name(a.Val))
	case FormNames:
		p.str("[")
		for i, n := range m.NameList.Of(ValSpan(a.Val)) {
			if i > 0 {
				p.str(" ")
			}
			p.quote(n)
		}
		p.str("]")
	case FormInts, FormPairs:
		p.ints(m.Ints.Of(ValSpan(a.Val)))
	case FormFloats:
		p.str("[")
		for i, v := range m.Ints.Of(ValSpan(a.Val)) {
			if i > 0 {
				p.str(" ")
			}
			p.float(math.Float32frombits(uint32(v)))
		}
		p.str("]")
	case FormBlock:
		p.quote(m.Blocks.At(Block(a.Val)).Name)
	case FormQueue:
		p.ref("q", uint32(a.Val))
	}
}
