package bir

import (
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// writeFrame is a block list whose array is open: of the function, or of a region.
type writeFrame struct {
	blocks []ir.Block
	order  []ir.Inst
	block  ir.Block // open block, none between blocks
	done   int      // blocks begun
	count  int      // instructions of the open block written
	axis   ir.Axis
	tail   int // of a region: where its members behind the blocks begin in tails
	after  int // of the open block: the same for its own members
}

// blockTree writes the blocks of a function with all that is in them, with an explicit stack. Text stands in buf only
// for finished objects: what follows a list of blocks or instructions in its object waits in tails.
func (w *Writer) blockTree(f ir.Func) {
	m := w.m
	w.frames = append(w.frames[:0], writeFrame{blocks: m.BlocksOf(f)})
	w.tails = w.tails[:0]
	for w.err == nil {
		t := &w.frames[len(w.frames)-1]
		switch {
		case t.block == 0 && t.done == len(t.blocks):
			axis, tail := t.axis, t.tail
			w.frames = w.frames[:len(w.frames)-1]
			w.str("\n")
			if len(w.frames) == 0 {
				return
			}
			w.close()
			w.finishTail(tail)
			if axis != 0 {
				w.bound.Set(axis, false)
			}
		case t.block == 0:
			w.item(t.done)
			w.str("\n")
			t.block = t.blocks[t.done]
			t.order, t.count = m.OrderOf(t.block), 0
			t.done++
			t.after = w.blockHead(t.block)
		case t.count == len(t.order):
			if t.count > 0 {
				w.str("\n")
			}
			w.close()
			w.finishTail(t.after)
			t.block = 0
		default:
			w.item(t.count)
			w.str("\n")
			i := t.order[t.count]
			t.count++
			w.instruction(i)
			w.flush(false)
		}
	}
}

// splitAt ends the innermost object's sorted members before the key and keeps the ones behind it for finishTail. The value
// of the key is written next.
func (w *Writer) splitAt(key string) (tail int) {
	w.sortMembers()
	o := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	tail = len(w.tails)
	for k := o.mem; k < len(w.mem); k++ {
		if x := w.mem[k]; string(w.buf[x.off+1:x.key-1]) == key {
			w.tails = append(w.tails, w.buf[x.end:]...)
			w.buf = w.buf[:x.key+1]
			break
		}
	}
	w.mem = w.mem[:o.mem]
	return tail
}

func (w *Writer) finishTail(tail int) {
	w.buf = append(w.buf, w.tails[tail:]...)
	w.tails = w.tails[:tail]
	w.str("}")
	w.depth--
}

func (w *Writer) blockHead(b ir.Block) int {
	own := w.innerExtras("/blocks/", w.blocks[b], prefixBlock)
	w.begin()
	w.later("instructions")
	w.key("name")
	w.spelled(w.blocks[b], prefixBlock)
	if len(own) > 0 {
		w.put(own, own[0].owner)
	}
	tail := w.splitAt("instructions")
	w.list()
	return tail
}

// alwaysKeys are the attributes that are written even at their default.
var alwaysKeys = func() (t [ir.NumOpcodes][]ir.Key) {
	header := []ir.Key{ir.KeyEngineID, ir.KeyOptinPasses, ir.KeySchedStart, ir.KeySchedEnd}
	matmul := []ir.Key{ir.KeyAccumulationFlag, ir.KeyPsumZeroRegion, ir.KeyReplicationResolution, ir.KeyReplicationShift,
		ir.KeyReplicationRows, ir.KeyIsTranspose, ir.KeyIsFmapOneZero, ir.KeyIsWeightOneZero, ir.KeyTileSize,
		ir.KeyTilePosition, ir.KeyPerfMode, ir.KeyIfmapQuantOffset, ir.KeyWeightsQuantOffset}
	own := map[ir.Opcode][]ir.Key{
		ir.OpMatmultBase:              matmul,
		ir.OpMatmult:                  matmul,
		ir.OpMatmultMx:                matmul,
		ir.OpMatmultSparse:            append(matmul[:len(matmul):len(matmul)], ir.KeyCompressRatio),
		ir.OpActivation:               {ir.KeyScale, ir.KeyAlpha, ir.KeyFunc, ir.KeyAcc, ir.KeyOp0, ir.KeyOp1, ir.KeyReduceOp},
		ir.OpLoadActFuncSet:           {ir.KeyActFuncSet},
		ir.OpTensorReduce:             {ir.KeyOp, ir.KeyAxis},
		ir.OpPool:                     {ir.KeyPoolFunc},
		ir.OpTensorScalar:             {ir.KeyOp0, ir.KeyConst0, ir.KeyReverse0, ir.KeyOp1, ir.KeyConst1, ir.KeyReverse1},
		ir.OpTensorScalarPtr:          {ir.KeyOp0, ir.KeyReverse0, ir.KeyOp1, ir.KeyReverse1},
		ir.OpTensorScalarCache:        {ir.KeyOp0, ir.KeyOp1},
		ir.OpTensorTensor:             {ir.KeyOp},
		ir.OpIota:                     {ir.KeyBase, ir.KeyPattern},
		ir.OpTensorScalarAffineSelect: {ir.KeyBase, ir.KeyPattern, ir.KeyCompareOp},
		ir.OpMemset:                   {ir.KeyMemsetMode, ir.KeyConstant},
		ir.OpStreamShuffle:            {ir.KeyMask},
		ir.OpMatchReplace:             {ir.KeyImmValue},
		ir.OpMaxIndexAndMatchReplace:  {ir.KeyImmValue},
		ir.OpExponential:              {ir.KeyReduceCmd},
		ir.OpIndirectCopy:             {ir.KeyNumValidIndices},
		ir.OpRegisterAlu:              {ir.KeyOp},
		ir.OpCompareAndBranch:         {ir.KeyCompOp},
	}
	for o := range t {
		t[o] = append(header[:len(header):len(header)], own[ir.Opcode(o)]...)
	}
	return t
}()

// instruction writes one instruction; of a region, its members up to the blocks, and opens its block list.
func (w *Writer) instruction(i ir.Inst) {
	m := w.m
	r := m.Insts.At(i)
	attrs := m.AttrsOf(i)
	w.extras = w.extras[:0]
	for _, a := range attrs {
		if a.Key == ir.KeyExtra {
			w.extras = append(w.extras, w.takeExtra(arena.Name(a.Val), false))
		}
	}
	region := r.Op.Is(ir.FlagRegion)
	var reg ir.RegionRow
	w.begin()
	if region {
		if reg = m.Regions.Get(i); reg.Axis != 0 {
			w.axis(r.Op, reg.Axis)
		}
		w.later("blocks")
	}
	w.dependencies(i)
	w.key("engine")
	w.word(r.Engine.String())
	if r.Flags != 0 {
		w.key("flags")
		w.list()
		n := 0
		for _, fl := range instFlags {
			if r.Flags&fl.flag != 0 {
				w.item(n)
				w.word(fl.name)
				n++
			}
		}
		w.close()
	}
	if r.NInd > 0 {
		w.key("indirection_ins")
		w.operands(i, m.Indices(i), inInd)
	}
	w.key("ins")
	w.operands(i, m.Ins(i), inIns)
	w.key("name")
	w.spelled(w.insts[i], prefixInst)
	w.key("opcode")
	w.word(r.Op.String())
	w.key("origin")
	w.word(r.Origin.String())
	w.key("outs")
	w.operands(i, m.Outs(i), inOuts)
	if r.Queue != 0 {
		w.key("queue")
		w.spelled(w.queues[r.Queue], prefixQueue)
	}
	if s := m.Source.Get(i); s != 0 {
		w.key("source")
		w.name(s)
	}
	w.syncInfo(i)
	w.always = keySet{}
	for _, k := range alwaysKeys[r.Op] {
		w.always.add(k)
	}
	for _, a := range attrs {
		if a.Key != ir.KeyExtra && (a.Val != a.Key.Info().Default || w.always.has(a.Key)) {
			w.attr(i, a)
		}
		if w.always.has(a.Key) {
			w.always[a.Key/64] &^= 1 << (a.Key % 64)
		}
	}
	for _, k := range alwaysKeys[r.Op] {
		if w.always.has(k) {
			w.attr(i, ir.Attr{Key: k, Val: k.Info().Default})
		}
	}
	w.put(w.extras, "")
	if !region {
		w.end()
		return
	}
	tail := w.splitAt("blocks")
	w.list()
	w.frames = append(w.frames, writeFrame{blocks: m.BlockList.Of(reg.Blocks), axis: reg.Axis, tail: tail})
}

func (w *Writer) axis(op ir.Opcode, a ir.Axis) {
	r := w.m.Axes.At(a)
	owner := "/LoopAxis"
	if op == ir.OpLoop {
		w.key("LoopAxis")
	} else {
		owner = "/DynamicForLoopAxis"
		w.key("DynamicForLoopAxis")
	}
	if r.Name == 0 {
		w.fail(target.User, "loop axis %s has no name", a)
	}
	w.bound.Set(a, true)
	w.begin()
	for _, b := range [...]struct {
		key string
		val int64
	}{{"lb", r.Lo}, {"stride", r.Step}, {"ub", r.Hi}} {
		if !hasExtra(w.extras, owner, b.key) {
			w.key(b.key)
			w.int(b.val)
		}
	}
	w.key("name")
	w.name(r.Name)
	w.put(w.extras, owner)
	w.end()
}

func (w *Writer) dependencies(i ir.Inst) {
	n := 0
	for _, d := range w.m.DepsOf(i) {
		if w.insts[d.Inst] == (spelling{}) {
			continue // an instruction that a pass took out
		}
		if n == 0 {
			w.key("dependencies")
			w.list()
		}
		w.item(n)
		n++
		w.str("[")
		w.spelled(w.insts[d.Inst], prefixInst)
		w.str(",")
		w.word(d.Kind.String())
		w.str("]")
	}
	if n > 0 {
		w.close()
	}
}

func (w *Writer) syncInfo(i ir.Inst) {
	m := w.m
	s := m.Syncs.Get(i)
	if s == (ir.SyncRow{}) && !hasOwner(w.extras, "/sync_info") {
		return
	}
	w.key("sync_info")
	w.begin()
	for _, l := range [...]struct {
		key, value string
		where      extraWhere
		ops        arena.Span
	}{{"on_update", "update_value", inUpdate, s.Updates}, {"on_wait", "wait_value", inWait, s.Waits}} {
		if l.ops.Empty() {
			continue
		}
		w.key(l.key)
		w.list()
		for k, o := range m.SyncOps.Of(l.ops) {
			w.item(k)
			w.begin()
			if o.From != 0 && int(o.From) < len(w.insts) && w.insts[o.From] != (spelling{}) {
				w.key("from")
				w.spelled(w.insts[o.From], prefixInst)
			}
			w.key("id")
			w.int(int64(o.Sem))
			w.key(l.value)
			w.int(int64(o.Value))
			w.inner(l.where, k)
			w.end()
		}
		w.close()
	}
	w.put(w.extras, "/sync_info")
	w.end()
}

func hasOwner(l []extra, owner string) bool {
	for i := range l {
		if l[i].owner == owner {
			return true
		}
	}
	return false
}

// inner writes the unexplained members of element k of a list inside the instruction.
func (w *Writer) inner(where extraWhere, k int) {
	if len(w.extras) > 0 {
		w.put(w.extras, extraLists[where]+strconv.Itoa(k))
	}
}

func (w *Writer) attr(i ir.Inst, a ir.Attr) {
	m := w.m
	in := a.Key.Info()
	w.key(in.JSON)
	switch in.Form {
	case ir.FormInt:
		w.int(int64(a.Val))
	case ir.FormBool:
		w.bool(a.Val != 0)
	case ir.FormFloat:
		w.float(uint32(a.Val))
	case ir.FormEnum:
		if a.Val >= uint64(len(in.Enum)) {
			w.fail(target.User, "%s: %s has no value %d", m.InstName(i), in.JSON, a.Val)
			return
		}
		w.word(in.Enum[a.Val])
	case ir.FormName:
		w.name(arena.Name(a.Val))
	case ir.FormNames:
		w.list()
		for k, n := range m.NameList.Of(ir.ValSpan(a.Val)) {
			w.item(k)
			w.name(n)
		}
		w.close()
	case ir.FormInts:
		l := m.Ints.Of(ir.ValSpan(a.Val))
		if len(l) == 0 && (a.Key == ir.KeyTileSize || a.Key == ir.KeyTilePosition) {
			l = unsetTile[:]
		}
		w.ints(l)
	case ir.FormPairs:
		l := m.Ints.Of(ir.ValSpan(a.Val))
		w.list()
		for k := 0; k+1 < len(l); k += 2 {
			w.item(k)
			w.ints(l[k : k+2])
		}
		w.close()
	case ir.FormFloats:
		w.list()
		for k, v := range m.Ints.Of(ir.ValSpan(a.Val)) {
			w.item(k)
			w.float(uint32(v))
		}
		w.close()
	case ir.FormBlock:
		b := ir.Block(a.Val)
		if w.blocks[b] == (spelling{}) || m.Blocks.At(b).Func != w.fn {
			w.fail(target.User, "%s: %s is no block of the function", m.InstName(i), in.JSON)
			return
		}
		w.spelled(w.blocks[b], prefixBlock)
	case ir.FormQueue:
		w.spelled(w.queues[ir.Queue(a.Val)], prefixQueue)
	}
}

func (w *Writer) operands(i ir.Inst, l []ir.Arg, where extraWhere) {
	w.list()
	for k, a := range l {
		w.item(k)
		w.begin()
		w.operand(i, a, where, k)
		w.inner(where, k)
		w.end()
	}
	w.close()
}

func (w *Writer) operand(i ir.Inst, a ir.Arg, where extraWhere, k int) {
	m := w.m
	switch a.Kind {
	case ir.ArgAP:
		r := m.APs.At(a.AP())
		l := m.Locs.At(r.Loc)
		w.key("ap")
		w.pairs(r)
		w.key("dtype")
		w.word(a.Dtype.String())
		w.key("kind")
		w.word("physical_ap")
		w.key("memref")
		w.spelled(w.locs[r.Loc], prefixLoc)
		if f := m.Sets.At(l.Set).Func; f != w.fn {
			w.key("memref_owner_func")
			w.spelled(w.funcs[f], prefixFunc)
		}
		w.key("memsetref")
		w.spelled(w.sets[l.Set], prefixSet)
		w.key("offset")
		w.int(w.packed(i, r, l))
		if w.locs[r.Loc] == (spelling{}) {
			w.fail(target.Bug, "%s: %s is in no function", m.InstName(i), m.LocName(r.Loc))
		}
	case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP:
		s := m.Syms.At(ir.Sym(a.Ref))
		if s.Addr != 0 {
			w.key("addrs")
			w.list()
			w.expr(i, s.Addr)
			w.close()
		}
		w.key("ap")
		w.pairs(&s.AP)
		if s.APOffset != 0 {
			w.key("const_ap_offset")
			w.int(s.APOffset)
		}
		if a.Kind == ir.ArgRegAP && s.SubTensor != -1 {
			w.key("const_sub_tensor_id")
			w.int(int64(s.SubTensor))
		}
		w.key("dtype")
		w.word(a.Dtype.String())
		w.flag("is_regloc_offset", s.RegLocOffset)
		w.key("kind")
		w.word(kindOf(a.Kind))
		w.key("memsetref")
		w.spelled(w.sets[s.Set], prefixSet)
		var l ir.LocRow
		if set := m.Sets.At(s.Set); set.Count > 0 {
			l = *m.Locs.At(set.First)
		}
		if off := w.packed(i, &s.AP, &l); off != 0 {
			w.key("offset")
			w.int(off)
		}
		if s.SubReg != 0 {
			w.key("reg_sub_tensor_id")
			w.spelled(w.regs[s.SubReg], prefixReg)
		}
		if s.Reg != 0 {
			w.key("regref")
			w.spelled(w.regs[s.Reg], prefixReg)
		}
	case ir.ArgImm:
		w.key("dtype")
		w.word(a.Dtype.String())
		w.key("kind")
		w.word("imm_value")
		w.key("value")
		w.imm(a.Dtype, uint64(a.Ref))
	case ir.ArgImmWide:
		w.key("dtype")
		w.word(a.Dtype.String())
		w.key("kind")
		w.word("imm_value")
		w.key("value")
		w.imm(a.Dtype, m.Wide.Of(arena.Span{Off: a.Ref, Len: 1})[0])
	case ir.ArgImmArray:
		w.key("dtype")
		w.word(a.Dtype.String())
		w.key("kind")
		w.word("imm_array")
		w.key("value_array")
		w.list()
		n := m.Wide.Of(arena.Span{Off: a.Ref, Len: 1})[0]
		for k, v := range m.Wide.Of(arena.Span{Off: a.Ref + 1, Len: uint32(n)}) {
			w.item(k)
			w.imm(a.Dtype, v)
		}
		w.close()
	case ir.ArgSymImm:
		w.key("dtype")
		w.word(a.Dtype.String())
		w.key("expr")
		w.expr(i, m.Syms.At(ir.Sym(a.Ref)).Addr)
		w.key("kind")
		w.word("symbolic_imm_value")
	case ir.ArgReg:
		w.key("dtype")
		w.word(a.Dtype.String())
		w.key("kind")
		w.word("register_access")
		w.key("regref")
		w.spelled(w.regs[ir.Reg(a.Ref)], prefixReg)
	default:
		w.fail(target.Bug, "%s: operand %d of kind %d", m.InstName(i), k, a.Kind)
	}
}

func kindOf(k ir.ArgKind) string {
	for _, x := range argKinds {
		if x.kind == k {
			return x.name
		}
	}
	return ""
}

func (w *Writer) pairs(a *ir.APRow) {
	w.list()
	for k, p := range a.Pairs[:a.NPairs()] {
		w.item(k)
		w.deeper()
		w.str("[")
		w.int(int64(p.Step))
		w.str(",")
		w.int(int64(p.Num))
		w.close()
	}
	w.close()
}

// packed joins partition and element into JSON's offset.
func (w *Writer) packed(i ir.Inst, a *ir.APRow, l *ir.LocRow) int64 {
	if !l.Space.OnChip() {
		return a.Off
	}
	pitch := l.Bytes / int64(max(1, a.Dtype.Size()))
	switch {
	case pitch == 0 || a.Off < 0 || a.Off >= pitch:
		w.fail(target.User, "%s: element %d is outside a partition of %q, which has %d of %s; JSON cannot say that",
			w.m.InstName(i), a.Off, w.m.Names.String(l.Name), pitch, a.Dtype)
		return 0
	case a.Pairs[0].Num != uint32(a.Parts) || a.Parts == 0 || a.Parts > 1 && int64(a.Pairs[0].Step) != pitch:
		w.fail(target.User, "%s: the partition axis %d*%d of %d partitions does not step by the %d elements of a partition of %q; JSON cannot say that",
			w.m.InstName(i), a.Pairs[0].Step, a.Pairs[0].Num, a.Parts, pitch, w.m.Names.String(l.Name))
		return 0
	}
	return int64(a.Start)*pitch + a.Off
}

func (w *Writer) imm(d target.Dtype, v uint64) {
	switch {
	case d.IsFloat():
		w.float(uint32(v))
	case d.Class() == target.ClassUint && d.Size() == 8:
		w.buf = strconv.AppendUint(w.buf, v, 10)
	case d.Class() == target.ClassUint:
		w.buf = strconv.AppendUint(w.buf, uint64(uint32(v)), 10)
	case d.Size() == 8:
		w.int(int64(v))
	default:
		w.int(int64(int32(uint32(v))))
	}
}

// exprStep is a node whose children are being written: next is the term to write.
type exprStep struct {
	e    ir.Expr
	next int
}

// maxExprNodes bounds the tree of one expression: rows may share children, JSON cannot.
const maxExprNodes = 1 << 20

// expr writes an expression as a tree, without recursion.
func (w *Writer) expr(i ir.Inst, e ir.Expr) {
	m := w.m
	w.walk = append(w.walk[:0], exprStep{e: e})
	nodes := 0
	for len(w.walk) > 0 && w.err == nil {
		t := &w.walk[len(w.walk)-1]
		r := m.Exprs.At(t.e)
		terms := m.Terms.Of(r.Terms)
		first := t.next == 0
		if first {
			if nodes++; nodes > maxExprNodes {
				w.fail(target.Limit, "%s: an address expression of more than %d nodes", m.InstName(i), maxExprNodes)
				return
			}
			w.deeper()
		}
		t.next++
		switch r.Kind {
		case ir.ExprAffine, ir.ExprSum:
			k := t.next - 2 // the term whose child was just written
			if first {
				if r.Kind == ir.ExprAffine {
					w.str(`{"c":`)
					w.int(r.C)
					w.str(`,"kind":"AffExprKind","terms":[`)
				} else {
					if r.C != 0 {
						w.fail(target.Bug, "%s: a sum with a constant", m.InstName(i))
					}
					w.str(`{"kind":"SumKind","n_terms":`)
					w.int(int64(len(terms)))
					w.str(`,"terms":[`)
				}
				w.deeper()
			} else if r.Kind == ir.ExprAffine {
				w.str("}")
				w.depth--
			}
			if k++; k < len(terms) {
				w.item(k)
				if r.Kind == ir.ExprAffine {
					w.deeper()
					w.str(`{"coeff":`)
					w.int(terms[k].Coeff)
					w.str(`,"idx":`)
				}
				w.walk = append(w.walk, exprStep{e: terms[k].Expr})
				continue
			}
			w.close()
		case ir.ExprMul, ir.ExprFloorDiv, ir.ExprMod, ir.ExprCCDiv:
			if first {
				switch r.Kind {
				case ir.ExprMul:
					w.str(`{"kind":"MultKind","scale":`)
					w.int(r.C)
					w.str(`,"var":`)
				case ir.ExprMod:
					w.str(`{"denom":`)
					w.int(r.C)
					w.str(`,"kind":"ModuloKind","numer":`)
				case ir.ExprFloorDiv:
					w.str(`{"denom":`)
					w.int(r.C)
					w.str(`,"kind":"FloorDivKind","numer":`)
				default:
					w.str(`{"denom":`)
					w.int(r.C)
					w.str(`,"kind":"CCDivKind","numer":`)
				}
				w.walk = append(w.walk, exprStep{e: r.A})
				continue
			}
			if r.Kind == ir.ExprCCDiv {
				w.str(`,"replica_groups_id":`)
				w.int(int64(r.Ref))
			}
		case ir.ExprAxis:
			if !w.visible(ir.Axis(r.Ref)) {
				w.fail(target.User, "%s: axis %q belongs to no loop around the instruction, or an inner loop has the same name",
					m.InstName(i), m.Names.String(m.Axes.At(ir.Axis(r.Ref)).Name))
			}
			w.str(`{"axis":`)
			w.name(m.Axes.At(ir.Axis(r.Ref)).Name)
			w.str(`,"kind":"AffIVKind"`)
		case ir.ExprReg:
			w.str(`{"kind":"IntRuntimeValueKind","regref":`)
			w.spelled(w.regs[ir.Reg(r.Ref)], prefixReg)
		case ir.ExprShard:
			w.str(`{"kind":"ShardIDKind","ub":`)
			w.int(r.C)
		case ir.ExprIndirect:
			w.str(`{"arg_id":`)
			w.int(r.C)
			w.str(`,"kind":"IndirectArgId"`)
		case ir.ExprCCRank:
			w.str(`{"channel_id":`)
			w.int(r.C)
			w.str(`,"iteration_id":`)
			w.int(int64(r.Ref))
			w.str(`,"kind":"CCGetRankKind"`)
		default:
			w.fail(target.Bug, "%s: expression %d of kind %d", m.InstName(i), t.e, r.Kind)
		}
		w.str("}")
		w.depth--
		w.walk = w.walk[:len(w.walk)-1]
	}
}

// visible reports whether an axis' loop is open and no inner open loop has its name.
func (w *Writer) visible(a ir.Axis) bool {
	if !w.bound.Get(a) {
		return false
	}
	n := w.m.Axes.At(a).Name
	for k := len(w.frames) - 1; k >= 0; k-- {
		if x := w.frames[k].axis; x != 0 && w.m.Axes.At(x).Name == n {
			return x == a
		}
	}
	return false
}
