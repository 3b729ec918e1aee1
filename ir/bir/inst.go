package bir

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// member is a member of an object by its place in the text.
type member struct{ key, val span }

// instScratch is the lists of the instructions, blocks and regions that are open, as stacks: an inner object works above
// the mark of its outer one and cuts back to it.
type instScratch struct {
	stack  []frame
	pend   []member // members whose meaning depends on the opcode, or that stay text
	ins    []ir.Arg
	ind    []ir.Arg
	outs   []ir.Arg
	imms   []ir.Arg // immediates that stood among the outputs: they are inputs
	deps   []scratchDep
	waits  []scratchSync
	upds   []ir.SyncOp
	extra  []scratchExtra // members of operands and other inner objects
	order  []ir.Inst
	blocks []ir.Block
	attrs  []ir.Attr
	late   []lateBlock
	exprs  []exprFrame
	terms  []ir.Term
	names  []arena.Name
}

type scratchDep struct {
	name arena.Name
	kind ir.DepKind
	at   int
}

type scratchSync struct {
	op   ir.SyncOp
	from arena.Name
	text span // of the producer's name
}

// scratchExtra is a member of an inner object: where says which, index its place in its list.
type scratchExtra struct {
	where extraWhere
	index int
	m     member
}

type extraWhere uint8

const (
	inIns extraWhere = iota
	inInd
	inOuts
	inImms
	inAxis
	inSync
	inWait
	inUpdate
)

type lateBlock struct {
	attr int // in scratch.attrs
	name arena.Name
	at   int
}

type frameKind uint8

const (
	frameBlocks frameKind = iota // between the blocks of a list
	frameBlock                   // between the members of a block
	frameInsts                   // between the instructions of a block
	frameInst                    // between the members of an instruction
)

// frame is an open array or object. One struct for all kinds: the stack is flat.
type frame struct {
	kind   frameKind
	calc   uint8
	seen   uint32
	at     int
	block  ir.Block
	inst   ir.Inst
	row    ir.InstRow
	axis   ir.Axis
	hidden ir.Axis // what the axis' name means outside the loop
	source arena.Name
	queue  ref
	body   arena.Span

	pend, ins, ind, outs, imms, deps, waits, upds, extra, list uint32
}

// blocks reads a function's blocks, whose array is open, with an explicit stack over regions.
func (r *Reader) blocks(f ir.Func) {
	s := &r.scratch
	s.stack = append(s.stack[:0], frame{kind: frameBlocks})
	s.pend, s.ins, s.ind, s.outs, s.imms = s.pend[:0], s.ins[:0], s.ind[:0], s.outs[:0], s.imms[:0]
	s.deps, s.waits, s.upds, s.extra = s.deps[:0], s.waits[:0], s.upds[:0], s.extra[:0]
	s.order, s.blocks = s.order[:0], s.blocks[:0]
	m := r.m
	for r.err == nil {
		t := &s.stack[len(s.stack)-1]
		switch t.kind {
		case frameBlocks:
			if !r.element() {
				list := m.BlockList.AddSlice(s.blocks[t.list:])
				s.blocks = s.blocks[:t.list]
				s.stack = s.stack[:len(s.stack)-1]
				if len(s.stack) == 0 {
					m.Funcs.At(f).Blocks = list
					return
				}
				s.stack[len(s.stack)-1].body = list
				break
			}
			if !r.is('{') {
				return
			}
			b := m.Blocks.Add(ir.BlockRow{Func: f, Parent: t.inst})
			s.blocks = append(s.blocks, b)
			s.stack = append(s.stack, frame{kind: frameBlock, at: r.start, block: b, pend: uint32(len(s.pend))})
		case frameBlock:
			r.blockMembers(t)
		case frameInsts:
			if !r.element() {
				m.Blocks.At(t.block).Order = m.Order.AddSlice(s.order[t.list:])
				s.order = s.order[:t.list]
				s.stack = s.stack[:len(s.stack)-1]
				break
			}
			if !r.is('{') {
				return
			}
			id := m.Insts.Add(ir.InstRow{Block: t.block})
			s.order = append(s.order, id)
			s.stack = append(s.stack, frame{kind: frameInst, at: r.start, block: t.block, inst: id,
				pend: uint32(len(s.pend)), ins: uint32(len(s.ins)), ind: uint32(len(s.ind)), outs: uint32(len(s.outs)),
				imms: uint32(len(s.imms)), deps: uint32(len(s.deps)), waits: uint32(len(s.waits)),
				upds: uint32(len(s.upds)), extra: uint32(len(s.extra))})
		case frameInst:
			r.instMembers(t)
		}
	}
}

// blockMembers reads members of a block until its instructions open or it ends.
func (r *Reader) blockMembers(t *frame) {
	s, m := &r.scratch, r.m
	for r.member() {
		switch string(r.key) {
		case "name":
			r.once(&t.seen, 0)
			n := r.someName()
			if r.err != nil {
				return
			}
			if r.of(n).block != 0 {
				r.fail(r.start, "block %q is defined twice", m.Names.String(n))
				return
			}
			r.of(n).block = t.block
			m.Blocks.At(t.block).Name = n
		case "instructions":
			r.once(&t.seen, 1)
			if r.array() {
				s.stack = append(s.stack, frame{kind: frameInsts, block: t.block, list: uint32(len(s.order))})
			}
			return
		default:
			key := r.keyAt
			s.pend = append(s.pend, member{key, r.value()})
		}
	}
	if r.err != nil {
		return
	}
	n := m.Blocks.At(t.block).Name
	if n == 0 {
		r.fail(t.at, "a block without a name")
		return
	}
	for _, x := range s.pend[t.pend:] {
		r.fextra = append(r.fextra, r.pointerText("/blocks/"+string(appendSegment(nil, m.Names.String(n))), x.key, x.val))
	}
	s.pend = s.pend[:t.pend]
	s.stack = s.stack[:len(s.stack)-1]
}

// Members of an instruction that have a place of their own.
const (
	seenInstName = iota
	seenOpcode
	seenEngine
	seenOrigin
	seenIns
	seenInd
	seenOuts
	seenDeps
	seenSync
	seenAxis
	seenDynAxis
	seenBlocks
	seenQueue
	seenSource
	seenFlags
	seenStart
	seenStop
)

// D1's two booleans of a matmul, as bits of frame.calc.
const (
	calcStart = 1 << iota
	calcStop
)

// instMembers reads members of an instruction until its blocks open or it ends.
func (r *Reader) instMembers(t *frame) {
	s := &r.scratch
	for r.member() {
		switch string(r.key) {
		case "name":
			r.once(&t.seen, seenInstName)
			t.row.Name = r.someName()
		case "opcode":
			r.once(&t.seen, seenOpcode)
			o, ok := ir.ParseOpcode(r.str())
			if !ok && r.err == nil {
				r.fail(r.start, "unknown opcode %s", r.data[r.start:r.end])
			}
			t.row.Op = o
		case "engine":
			r.once(&t.seen, seenEngine)
			t.row.Engine = enumOf(r, "engine", target.ParseEngine)
		case "origin":
			r.once(&t.seen, seenOrigin)
			t.row.Origin = enumOf(r, "origin", ir.ParseOrigin)
		case "ins":
			r.once(&t.seen, seenIns)
			r.operands(&s.ins, int(t.ins), inIns, t)
		case "indirection_ins":
			r.once(&t.seen, seenInd)
			r.operands(&s.ind, int(t.ind), inInd, t)
		case "outs":
			r.once(&t.seen, seenOuts)
			r.operands(&s.outs, int(t.outs), inOuts, t)
		case "dependencies":
			r.once(&t.seen, seenDeps)
			r.dependencies()
		case "sync_info":
			r.once(&t.seen, seenSync)
			r.syncInfo(t)
		case "LoopAxis":
			r.once(&t.seen, seenAxis)
			r.loopAxis(t, false)
		case "DynamicForLoopAxis":
			r.once(&t.seen, seenDynAxis)
			r.loopAxis(t, true)
		case "blocks":
			r.once(&t.seen, seenBlocks)
			if r.array() {
				s.stack = append(s.stack, frame{kind: frameBlocks, inst: t.inst, list: uint32(len(s.blocks))})
			}
			return
		case "queue":
			r.once(&t.seen, seenQueue)
			if r.next() == 'n' {
				break
			}
			if n := r.nameHere(); n != 0 {
				t.queue = ref{name: n, inst: t.inst, at: r.start}
			}
		case "source":
			r.once(&t.seen, seenSource)
			t.source = r.name()
		case "flags":
			r.once(&t.seen, seenFlags)
			r.instFlags(t)
		case "start_tensor_calc":
			r.once(&t.seen, seenStart)
			if r.bool() {
				t.calc |= calcStart
			}
		case "stop_tensor_calc":
			r.once(&t.seen, seenStop)
			if r.bool() {
				t.calc |= calcStop
			}
		default:
			key := r.keyAt
			s.pend = append(s.pend, member{key, r.value()})
		}
		if r.err != nil {
			return
		}
	}
	if r.err == nil {
		r.instEnd(t)
		s.stack = s.stack[:len(s.stack)-1]
	}
}

// instEnd lays the instruction down.
func (r *Reader) instEnd(t *frame) {
	s, m := &r.scratch, r.m
	row := &t.row
	row.Block = t.block
	region := row.Op.Is(ir.FlagRegion)
	switch {
	case t.seen>>seenOpcode&1 == 0:
		r.fail(t.at, "an instruction without an opcode")
		return
	case t.seen>>seenInstName&1 == 0:
		r.fail(t.at, "a %s without a name", row.Op)
		return
	case !region && t.seen>>seenBlocks&1 != 0:
		r.fail(t.at, "%s %q has blocks; only loops and DMABlock do", row.Op, m.Names.String(row.Name))
		return
	case row.Op == ir.OpLoop && t.axis == 0:
		r.fail(t.at, "loop %q has no LoopAxis", m.Names.String(row.Name))
		return
	case !region && t.axis != 0:
		r.fail(t.at, "%s %q has a loop axis", row.Op, m.Names.String(row.Name))
		return
	}
	id := t.inst
	ins, imms, ind, outs := s.ins[t.ins:], s.imms[t.imms:], s.ind[t.ind:], s.outs[t.outs:]
	if len(ins)+len(imms) > math.MaxUint8 || len(ind) > math.MaxUint8 || len(outs) > math.MaxUint8 {
		r.fail(t.at, "%s %q has more than %d operands in a list", row.Op, m.Names.String(row.Name), math.MaxUint8)
		return
	}
	row.NIn, row.NInd, row.NOut = uint8(len(ins)+len(imms)), uint8(len(ind)), uint8(len(outs))
	mark := m.Args.Mark()
	for _, l := range [4][]ir.Arg{ins, imms, ind, outs} {
		for _, a := range l {
			m.Args.Push(a)
		}
	}
	row.Args = mark

	r.instAttrs(t)
	if r.err != nil {
		return
	}
	dm := m.Deps.Mark()
	for _, d := range s.deps[t.deps:] {
		p := r.of(d.name)
		if p.last == 0 {
			r.refs = append(r.refs, ref{kind: refDep, row: uint32(m.Deps.Len()), inst: id, name: d.name, at: d.at})
		}
		m.Deps.Push(ir.Dep{Inst: p.last, Kind: d.kind})
	}
	row.Deps = m.Deps.Since(dm)
	if len(s.waits) > int(t.waits) || len(s.upds) > int(t.upds) {
		wm := m.SyncOps.Mark()
		for _, w := range s.waits[t.waits:] {
			if w.from != 0 {
				if w.op.From = r.of(w.from).last; w.op.From == 0 {
					r.refs = append(r.refs, ref{kind: refWait, row: uint32(m.SyncOps.Len()), inst: id, name: w.from, at: w.text.off})
				}
			}
			m.SyncOps.Push(w.op)
		}
		sync := ir.SyncRow{Waits: m.SyncOps.Since(wm)}
		sync.Updates = m.SyncOps.AddSlice(s.upds[t.upds:])
		m.Syncs.Set(id, sync)
	}
	if t.source != 0 {
		m.Source.Set(id, t.source)
	}
	if t.queue.name != 0 {
		r.queued = append(r.queued, t.queue)
	}
	if region {
		m.Regions.Set(id, ir.RegionRow{Axis: t.axis, Blocks: t.body})
		if t.axis != 0 {
			r.of(m.Axes.At(t.axis).Name).axis = t.hidden
		}
	}
	*m.Insts.At(id) = *row
	p := r.of(row.Name)
	if p.first == 0 {
		p.first = id
	}
	p.last = id

	s.pend, s.ins, s.ind, s.outs, s.imms = s.pend[:t.pend], s.ins[:t.ins], s.ind[:t.ind], s.outs[:t.outs], s.imms[:t.imms]
	s.deps, s.waits, s.upds, s.extra = s.deps[:t.deps], s.waits[:t.waits], s.upds[:t.upds], s.extra[:t.extra]
}

var instFlags = [...]flagName[ir.InstFlag]{{"reload", ir.InstReload}, {"spill", ir.InstSpill}, {"unit", ir.InstUnit}}

func (r *Reader) instFlags(t *frame) {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('"') {
			return
		}
		s := r.unquote(span{r.start, r.end})
		f, ok := flagOf(instFlags[:], s)
		if !ok {
			r.fail(r.start, "unknown flag %q", s)
			return
		}
		t.row.Flags |= f
	}
}

// dependencies reads [[name, kind], …].
func (r *Reader) dependencies() {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('[') {
			return
		}
		d := scratchDep{at: r.start, name: r.someName()}
		d.kind = enumOf(r, "dependence", ir.ParseDepKind)
		if r.err == nil && r.next() != ']' {
			r.fail(r.start, "a dependence is [instruction, kind]")
		}
		if r.err != nil {
			return
		}
		r.scratch.deps = append(r.scratch.deps, d)
	}
}

// syncInfo reads waits and updates; members beside semaphore, value and producer stay text.
func (r *Reader) syncInfo(t *frame) {
	s := &r.scratch
	if r.next() == 'n' || !r.is('{') {
		return
	}
	var seen uint32
	for r.member() {
		switch string(r.key) {
		case "on_wait":
			r.once(&seen, 0)
			if !r.array() {
				return
			}
			for i := 0; r.element(); i++ {
				var w scratchSync
				at := r.start
				if !r.is('{') {
					return
				}
				var have uint32
				for r.member() {
					switch string(r.key) {
					case "from":
						r.once(&have, 0)
						w.from = r.name()
						w.text = span{r.start, r.end}
					case "id":
						r.once(&have, 1)
						w.op.Sem = uint16(r.int(0, 255))
					case "wait_value":
						r.once(&have, 2)
						w.op.Value = int32(r.int(math.MinInt32, math.MaxInt32))
					default:
						r.inner(inWait, i)
					}
				}
				if have>>1&1 == 0 && r.err == nil {
					r.fail(at, "a wait without a semaphore id")
				}
				s.waits = append(s.waits, w)
			}
		case "on_update":
			r.once(&seen, 1)
			if !r.array() {
				return
			}
			for i := 0; r.element(); i++ {
				var u ir.SyncOp
				at := r.start
				if !r.is('{') {
					return
				}
				var have uint32
				for r.member() {
					switch string(r.key) {
					case "id":
						r.once(&have, 1)
						u.Sem = uint16(r.int(0, 255))
					case "update_value":
						r.once(&have, 2)
						u.Value = int32(r.int(math.MinInt32, math.MaxInt32))
					default:
						r.inner(inUpdate, i)
					}
				}
				if have>>1&1 == 0 && r.err == nil {
					r.fail(at, "an update without a semaphore id")
				}
				s.upds = append(s.upds, u)
			}
		default:
			r.inner(inSync, 0)
		}
	}
}

// inner keeps a member of an object inside an instruction.
func (r *Reader) inner(where extraWhere, index int) {
	key := r.keyAt
	if v := r.value(); r.err == nil {
		r.scratch.extra = append(r.scratch.extra, scratchExtra{where, index, member{key, v}})
	}
}

// loopAxis reads a loop's axis. The bounds of a dynamic loop may stand elsewhere.
func (r *Reader) loopAxis(t *frame, dynamic bool) {
	if t.axis != 0 {
		r.fail(r.keyAt.off, "the loop has two axes")
		return
	}
	if r.next() == '"' && dynamic {
		r.defineAxis(t, ir.AxisRow{Name: r.nameHere(), Step: 1}, r.start)
		return
	}
	if !r.is('{') {
		return
	}
	at := r.start
	var seen uint32
	a := ir.AxisRow{Step: 1}
	for r.member() {
		switch string(r.key) {
		case "name":
			r.once(&seen, 0)
			a.Name = r.someName()
		case "lb":
			r.once(&seen, 1)
			a.Lo = r.bound(dynamic, 0)
		case "ub":
			r.once(&seen, 2)
			a.Hi = r.bound(dynamic, 0)
		case "stride":
			r.once(&seen, 3)
			if a.Step = r.bound(dynamic, 1); a.Step == 0 {
				r.fail(r.start, "the stride of a loop is 0")
			}
		default:
			r.inner(inAxis, 0)
		}
	}
	if r.err == nil {
		r.defineAxis(t, a, at)
	}
}

// bound takes a bound of a loop: an integer, or for a dynamic loop anything, which stays text beside the given value.
func (r *Reader) bound(dynamic bool, otherwise int64) int64 {
	key := r.keyAt
	if r.next() == '0' {
		return r.intHere(math.MinInt64, math.MaxInt64)
	}
	if dynamic {
		r.scratch.extra = append(r.scratch.extra, scratchExtra{inAxis, 0, member{key, r.skip()}})
	} else {
		r.failClass(target.Unsupported, r.start, "the bounds of a loop are integers; other bounds take a DynamicForLoop")
	}
	return otherwise
}

// axisInfo is what the reader knows about an axis beside its row.
type axisInfo struct {
	defined bool
	at      int // first mention of an axis that is not defined yet
}

// defineAxis gives the axis of a loop its bounds and binds its name inside the loop. The name may have been mentioned, in
// blocks that stand before the axis.
func (r *Reader) defineAxis(t *frame, a ir.AxisRow, at int) {
	m := r.m
	if a.Name == 0 {
		r.fail(at, "a loop axis without a name")
	}
	if r.err != nil {
		return
	}
	p := r.of(a.Name)
	info := r.axisSeen.Get(p.axis)
	switch {
	case p.axis == 0 || info.defined:
		t.hidden = p.axis
		p.axis = m.Axes.Add(a)
	case info.at < t.at:
		r.noAxis(a.Name, info.at)
		return
	default:
		*m.Axes.At(p.axis) = a
	}
	t.axis = p.axis
	r.axisSeen.Set(p.axis, axisInfo{defined: true})
}

func (r *Reader) noAxis(n arena.Name, at int) {
	r.fail(at, "there is no loop axis %q around this", r.m.Names.String(n))
}

// axisNamed is the axis of a name; its bounds may follow.
func (r *Reader) axisNamed(n arena.Name, at int) ir.Axis {
	p := r.of(n)
	if p.axis == 0 {
		p.axis = r.m.Axes.Add(ir.AxisRow{Name: n, Step: 1})
		r.axes = append(r.axes, ref{row: uint32(p.axis), name: n, at: at})
		r.axisSeen.Set(p.axis, axisInfo{at: at})
	}
	return p.axis
}

// resolveFunction binds what names in the function mean.
func (r *Reader) resolveFunction() {
	m := r.m
	for _, a := range r.axes {
		if !r.axisSeen.Get(ir.Axis(a.row)).defined {
			r.noAxis(a.name, a.at)
			return
		}
	}
	for _, x := range r.refs {
		p := r.of(x.name)
		switch x.kind {
		case refDep:
			if p.first == 0 {
				r.fail(x.at, "%s depends on %q, which is no instruction of the function", m.InstName(x.inst), m.Names.String(x.name))
				return
			}
			if p.first == x.inst {
				r.fail(x.at, "%s depends on itself", m.InstName(x.inst))
				return
			}
			m.Deps.Of(arena.Span{Off: x.row, Len: 1})[0].Inst = p.first
		case refWait:
			if p.first != 0 {
				m.SyncOps.Of(arena.Span{Off: x.row, Len: 1})[0].From = p.first
			} else {
				r.keepProducer(x)
			}
		case refBlock:
			if p.block == 0 {
				r.fail(x.at, "%s branches to %q, which is no block of the function", m.InstName(x.inst), m.Names.String(x.name))
				return
			}
			m.Attrs.Of(arena.Span{Off: x.row, Len: 1})[0].Val = uint64(p.block)
		}
	}
}
