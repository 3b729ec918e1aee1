package isa

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// gen draws legal, canonical instructions of one layout from its rows: each field by its kind, then the rules that tie
// fields together are made true by construction.
type gen struct {
	t     *rapid.T
	g     int
	l     *layout
	in    Inst
	elems uint32 // common element count of the operands
	cut   uint32 // elements folded into one result
	start int    // start partition
}

func (q *gen) n(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(q.t, label) }

func (q *gen) u32(lo, hi uint32, label string) uint32 {
	return rapid.Uint32Range(lo, hi).Draw(q.t, label)
}

// dtype draws a canonical type whose size is one of the given ones.
func (q *gen) dtype(label string, sizes ...int) target.Dtype {
	var ok []target.Dtype
	for d := target.Dtype(0); d < target.NumDtypes; d++ {
		if back := dtypeOf(q.g, dtypeTag(q.g, d)); back != d || d == target.Float4E2M1x4 {
			continue
		}
		for _, s := range sizes {
			if d.Size() == s {
				ok = append(ok, d)
			}
		}
	}
	return rapid.SampledFrom(ok).Draw(q.t, label)
}

func drawInst(t *rapid.T, g int, op Opcode) Inst {
	q := &gen{t: t, g: g, l: index[g][op]}
	q.in.Opcode = op
	n := q.n(1, 128, "partitions")
	switch {
	case n <= 32:
		q.start = 32 * q.n(0, 3, "start")
	case n <= 64:
		q.start = 64 * q.n(0, 1, "start")
	}
	if op == OpQuantizeMx {
		n = 32 * q.n(1, 4, "blocks")
		q.start = 0
	}
	q.elems, q.cut = q.u32(1, 20, "elems"), 1
	if q.l.shape == shapeInner {
		q.cut = q.u32(1, 12, "cut")
	}
	for i := range q.l.rows {
		f := &q.l.rows[i]
		if f.mem == mParts || f.mem == mRows || f.mem == mCols {
			put8(&q.in, f.mem, uint8(n))
		}
	}
	q.scalars()
	q.fix()
	for i := range q.l.rows {
		if f := &q.l.rows[i]; f.kind == kDesc {
			*descOf(&q.in, f.mem) = q.desc(f)
		}
	}
	q.finish()
	return q.in
}

// scalars draws every field but descriptors and partition counts.
func (q *gen) scalars() {
	in := &q.in
	for i := range q.l.rows {
		f := &q.l.rows[i]
		if f.mem == mParts || f.mem == mRows || f.mem == mCols {
			continue
		}
		switch f.kind {
		case kSat:
			put8(in, f.mem, uint8(q.n(0, 1, f.name)))
		case kU8, kLo4, kHi4:
			if f.set != 0 {
				var vals []uint8
				for v := uint8(0); v < 64; v++ {
					if f.set>>v&1 != 0 {
						vals = append(vals, v)
					}
				}
				put8(in, f.mem, rapid.SampledFrom(vals).Draw(q.t, f.name))
			} else {
				put8(in, f.mem, uint8(q.u32(f.lo, f.hi, f.name)))
			}
		case kU16, kU24, kU32, kRun:
			put32(in, f.mem, q.u32(f.lo, f.hi, f.name))
		case kI32:
			put32(in, f.mem, rapid.Uint32().Draw(q.t, f.name))
		case kI16:
			put32(in, f.mem, uint32(int32(rapid.Int16().Draw(q.t, f.name))))
		case kU64:
			put64(in, f.mem, rapid.Uint64().Draw(q.t, f.name))
		case kDtype, kDtypeLo, kDtypeHi:
			put8(in, f.mem, uint8(q.dtype(f.name, 1, 2, 4, 8)))
		case kDtypeMx:
			put8(in, f.mem, uint8(rapid.SampledFrom([]target.Dtype{target.Float4E2M1x4, target.Float8E4M3FNx4, target.Float8E5M2x4}).Draw(q.t, f.name)))
		case kAlu:
			var ops []target.AluOp
			for op := target.AluOp(0); op < target.NumAluOps; op++ {
				if want := bitForm[in.Opcode]; want != 0 && op != target.AluBypass && op.Bitwise() != (want == bits) {
					continue
				}
				if op.LegalOn(gens[q.g].Level) {
					ops = append(ops, op)
				}
			}
			put8(in, f.mem, uint8(rapid.SampledFrom(ops).Draw(q.t, f.name)))
		case kAcc, kAccHi:
			put8(in, f.mem, uint8(rapid.SampledFrom(accCmds[:]).Draw(q.t, f.name)))
		case kAccAct:
			put8(in, f.mem, uint8(rapid.SampledFrom(accCmds[1:]).Draw(q.t, f.name)))
		case kFunc:
			put8(in, f.mem, uint8(q.n(0, int(target.NumActFuncs)-1, f.name)))
		case kPtr:
			put32(in, f.mem, SBAddr(0, 4*q.u32(0, 1000, f.name)))
			if f.flags&fSBUF == 0 && rapid.Bool().Draw(q.t, f.name+" psum") {
				put32(in, f.mem, PSUMAddr(q.n(0, 127, "p"), q.n(0, 7, "bank"), 8))
			}
		case kBytes:
			for i := range bytesOf(in, f) {
				bytesOf(in, f)[i] = uint8(q.n(0, 31, f.name))
			}
		case kName:
			in.SetName(rapid.StringMatching(`[a-zA-Z_][!-~]{0,29}`).Draw(q.t, f.name))
		}
	}
	for i := range q.l.rows { // after their source codes
		f := &q.l.rows[i]
		if f.kind != kImm {
			continue
		}
		switch get8(in, f.dt) {
		case SrcPointer:
			put32(in, f.mem, SBAddr(q.start, 4*q.u32(0, 1000, f.name)))
		case SrcRegister:
			put32(in, f.mem, q.u32(0, 63, f.name))
		default:
			put32(in, f.mem, rapid.Uint32().Draw(q.t, f.name))
		}
	}
	q.sync()
}

func (q *gen) sync() {
	s := &q.in.Sync
	*s, q.in.Wait1Mode, q.in.Wait1Sem = Sync{}, 0, 0
	if q.in.Opcode == OpDMADynamic {
		return
	}
	wait := func(label string) (mode, sem uint8, v uint32) {
		switch q.n(0, 3, label) {
		case 1:
			return WaitGE, uint8(q.n(0, 255, "sem")), q.u32(0, 1<<31-1, "value")
		case 2:
			return WaitGEReg, uint8(q.n(0, 255, "sem")), q.u32(0, 63, "value")
		case 3:
			return WaitEvent, uint8(q.n(0, 255, "sem")), 0
		}
		return 0, 0, 0
	}
	s.WaitMode, s.WaitSem, s.Value = wait("wait")
	modes := []uint8{UpdateNone, UpdateEvent, UpdateInc, UpdateDec}
	event := q.in.Opcode == OpEventSemaphore
	if event || s.WaitMode != WaitGE && s.WaitMode != WaitGEReg {
		modes = append(modes, UpdateAdd, UpdateSub, UpdateWrite)
	}
	s.UpdateMode = rapid.SampledFrom(modes).Draw(q.t, "update")
	if s.UpdateMode != UpdateNone {
		s.UpdateSem = uint8(q.n(0, 255, "sem"))
	}
	amount := uint32(0)
	if s.UpdateMode == UpdateAdd || s.UpdateMode == UpdateSub || s.UpdateMode == UpdateWrite {
		amount = rapid.Uint32().Draw(q.t, "amount")
	}
	if event {
		q.in.UpdateValue = amount
		q.in.Wait1Mode, q.in.Wait1Sem, q.in.Wait1Value = wait("wait1")
	} else if amount != 0 {
		s.Value = amount
	}
}

// fix makes the rules of single forms true, before descriptors are drawn.
func (q *gen) fix() {
	in := &q.in
	switch in.Opcode {
	case OpLoadWeights, OpMatmul, OpMatmulSparse, OpLoadTags, OpLoadWeightsMx, OpMatmulMx:
		q.start = 0
		in.RowGroup, in.ColGroup = 15, 0
		if in.Opcode == OpLoadWeights || in.Opcode == OpMatmul || in.Opcode == OpMatmulSparse {
			in.ColGroup = 15
			in.DtSrc = q.dtype("pe dtype", 1, 2, 4)
			if in.DtSrc == target.Float32R {
				in.DtSrc = target.Float32
			}
		}
		if in.Opcode == OpMatmul || in.Opcode == OpMatmulSparse || in.Opcode == OpMatmulMx {
			in.DtDst = target.Float32
		}
		switch in.Opcode {
		case OpLoadWeights:
			in.Variant = VariantNormal
			if in.DtSrc == target.Float32 {
				in.Variant = rapid.SampledFrom([]uint8{2, 0x81, 0x82}).Draw(q.t, "variant")
			}
			in.Cols = uint8(q.elems)
		case OpLoadTags:
			in.Variant = 0
		case OpMatmul:
			if in.Variant == VariantTransposed && q.g > 0 {
				in.DtDst = q.dtype("transposed dtype", 2, 4)
				if in.DtDst == target.Float32R {
					in.DtDst = target.Float32
				}
			}
		}
	case OpActivate, OpActivate2:
		if !in.Func.Parametric() {
			in.Imm2Src, in.Imm2 = 0, 0
		}
	case OpActReadAcc:
		in.Count = q.elems
	case OpTensorCopy, OpTensorCopyCast:
		if in.Opcode == OpTensorCopy {
			in.DtDst = in.DtSrc
		}
		in.Ptr, in.Count = 0, 0
	case OpTensorReduce, OpTensorReduceBit:
		in.Axes = 0
		if q.cut > 1 {
			in.Axes = 1
		}
	case OpCrossLaneReduce, OpCrossLaneReduceBit:
		in.Axes = 0
	case OpAffineSelect:
		in.Op0 = rapid.SampledFrom([]target.AluOp{target.AluEqual, target.AluNotEqual, target.AluGT, target.AluGE, target.AluLT, target.AluLE}).Draw(q.t, "compare")
	case OpExponential:
		in.Op0, in.Op1, in.Reverse = 0, 0, 0
	case OpGroupReset:
		if in.Mode == ResetRange {
			in.Mask = [32]byte{}
			if in.SemLast < in.SemFirst {
				in.SemFirst, in.SemLast = in.SemLast, in.SemFirst
			}
		} else {
			in.SemFirst, in.SemLast = 0, 0
		}
	case OpRegisterMove:
		if in.Mode == 2 {
			in.Imm0Src = 1
		}
	case OpIndirectDMA:
		in.DtSrc = rapid.SampledFrom([]target.Dtype{target.Int32, target.Uint32}).Draw(q.t, "index dtype")
		in.Count2 = rapid.SampledFrom([]uint32{1, 2, 4, 8}).Draw(q.t, "element bytes")
		in.Imm0 = SBAddr(128-int(in.Count), 8*q.u32(0, 1000, "data"))
		in.Imm1 = q.u32(1, 16384, "row")
	case OpDMAStatic, OpDMADynamic:
		for _, s := range []*DMASide{&in.From, &in.To} {
			s.Mode = rapid.SampledFrom([]uint8{AddrStatic, AddrDGE, AddrDGEReg | AddrTwoReg, AddrDGE | AddrMove}).Draw(q.t, "mode")
		}
	}
	if in.Opcode == OpLoadWeightsMx || in.Opcode == OpMatmulMx || in.Opcode == OpQuantizeMx {
		in.Mx.Sign = rapid.SampledFrom([]uint8{1, 0xFF}).Draw(q.t, "sign")
	}
}

// desc draws a canonical pattern of q.elems elements (8 for result vectors, q.elems * q.cut for folded inputs).
func (q *gen) desc(f *field) Desc {
	if f.flags&fOptional != 0 && rapid.Bool().Draw(q.t, f.name+" absent") {
		return Desc{}
	}
	total, inner := q.elems, uint32(1)
	switch {
	case f.flags&fVector != 0, q.l.shape == shapeVector8 && f.mem == mDst:
		total = 8
	case q.l.shape == shapeVector8:
		total = 8 + q.elems
	case q.l.shape == shapeInner && f.mem == mSrc:
		inner = q.cut
	}
	axes := []uint32{}
	if inner > 1 {
		axes = append(axes, inner)
	}
	rest := total
	if f.n >= 2 {
		for _, p := range []uint32{2, 3} {
			if rest%p == 0 && rest/p > 1 && len(axes)+2 <= int(f.n) {
				axes = append(axes, p)
				rest /= p
			}
		}
	}
	if rest > 1 {
		axes = append(axes, rest)
	}
	dt := target.Float32
	if f.dt != noMember {
		dt = target.Dtype(get8(&q.in, f.dt))
	}
	psum := f.flags&fPSUM != 0
	if f.flags&(fPSUM|fSBUF) == 0 && (f.flags&fWrite == 0 || dt == target.Int32 || dt == target.Float32) {
		psum = rapid.Bool().Draw(q.t, f.name+" psum")
	}
	gap := 2
	if psum && int(total*inner)*dt.Size()<<len(axes) > 4*2048 { // the walk starts in one of the first four banks of eight
		gap = 1
	}
	var d Desc
	step := int32(1)
	for _, a := range axes {
		s := step * int32(q.n(1, gap, "gap"))
		if rapid.IntRange(0, 7).Draw(q.t, "broadcast") == 0 {
			s = 0
		} else {
			step = s * int32(a)
		}
		d.Step[d.N], d.Num[d.N] = s, a
		d.N++
	}
	if d.N == 0 {
		d.N, d.Step[0], d.Num[0] = 1, 1, 1
	}
	start := q.start
	if psum {
		d.Addr = PSUMAddr(start, q.n(0, 3, "bank"), 0)
	} else {
		d.Addr = SBAddr(start, uint32(8*q.n(0, 4000, "offset")))
	}
	if f.flags&(fPSUM|fSBUF) == 0 && rapid.IntRange(0, 15).Draw(q.t, "register") == 0 {
		d.Addr = RegAddr(uint8(q.n(0, 63, "register number")))
	}
	return d
}

// finish makes the rules true that need the descriptors.
func (q *gen) finish() {
	in := &q.in
	if gens[q.g].Level == 40 && (in.Opcode == OpActivate || in.Opcode == OpActivate2) {
		for _, s := range []struct {
			src uint8
			v   *uint32
		}{{in.Imm0Src, &in.Imm0}, {in.Imm1Src, &in.Imm1}, {in.Imm2Src, &in.Imm2}} {
			if s.src == SrcPointer && (s.v != &in.Imm2 || in.Func.Parametric()) {
				*s.v = SBAddr(q.start, 64)
			}
		}
	}
}

// eachForm runs f for every laid-out opcode of every generation.
func eachForm(t *testing.T, f func(t *testing.T, g int, op Opcode)) {
	for g := range gens {
		for op := 0; op < 256; op++ {
			if index[g][op] == nil {
				continue
			}
			op := Opcode(op)
			t.Run(gens[g].Core+"/"+op.String(), func(t *testing.T) { f(t, g, op) })
		}
	}
}
