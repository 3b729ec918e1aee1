package verify

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// side is what a rule needs to know of one tensor operand.
type side struct {
	ap    *ir.APRow
	loc   *ir.LocRow
	dtype target.Dtype
	parts int
	elems int64
}

func sideOf(m *ir.Module, a ir.Arg) (s side, tensor bool) {
	if a.Kind != ir.ArgAP {
		return side{}, false
	}
	ap := m.APs.At(a.AP())
	l := m.Locs.At(ap.Loc)
	return side{ap, l, ap.Dtype, int(ap.Parts), ap.FreeElems(l.Space)}, true
}

// checkMove: loads, saves and copies.
func checkMove(p *problems, i ir.Inst) {
	m := p.m
	r := m.Insts.At(i)
	if r.Op != ir.OpLoad && r.Op != ir.OpSave && r.Op != ir.OpDMACopy {
		return
	}
	ins, outs := m.Ins(i), m.Outs(i)
	src, ok0 := sideOf(m, ins[0])
	dst, ok1 := sideOf(m, outs[0])
	if !ok0 || !ok1 {
		p.inst(i, "moves between memory locations; it has an immediate operand")
		return
	}
	if r.Op == ir.OpLoad && (src.loc.Space != target.SpaceDRAM || dst.loc.Space != target.SpaceSB) {
		p.inst(i, "moves %s to %s; a load moves DRAM to SB", src.loc.Space, dst.loc.Space)
	}
	if r.Op == ir.OpSave && (src.loc.Space != target.SpaceSB && src.loc.Space != target.SpacePSUM || dst.loc.Space != target.SpaceDRAM) {
		p.inst(i, "moves %s to %s; a save moves SB or PSUM to DRAM", src.loc.Space, dst.loc.Space)
	}
	if a, b := src.ap.Elems(), dst.ap.Elems(); a != b {
		p.inst(i, "moves %d elements to %d", a, b)
	}
	if src.dtype != dst.dtype && (src.dtype.Class() == target.ClassPacked || dst.dtype.Class() == target.ClassPacked) {
		p.inst(i, "casts %s to %s; packed types are only moved", src.dtype, dst.dtype)
	}
}

// checkSpaces: where operands may lie.
func checkSpaces(p *problems, i ir.Inst) {
	m := p.m
	r := m.Insts.At(i)
	psum := 0
	for _, a := range m.Ins(i) {
		if s, ok := sideOf(m, a); ok && s.loc.Space == target.SpacePSUM && (s.parts > 1 || s.elems > 1) {
			psum++
		}
	}
	if r.Op.Is(ir.FlagMatmul) {
		if psum > 0 {
			p.inst(i, "reads PSUM; matmul operands are in SBUF")
		}
		for _, a := range m.Outs(i) {
			if s, ok := sideOf(m, a); ok && s.loc.Space != target.SpacePSUM {
				p.inst(i, "writes %s; a matmul writes PSUM", s.loc.Space)
			}
		}
		return
	}
	if psum > 1 {
		p.inst(i, "has %d operands in PSUM; at most one", psum)
	}
	if r.Engine == target.EnginePool {
		for _, a := range m.AllArgs(i) {
			if s, ok := sideOf(m, a); ok && s.loc.Space == target.SpacePSUM {
				p.inst(i, "runs on Pool and touches PSUM at %s", m.LocName(s.ap.Loc))
			}
		}
	}
}

// checkTypes: what an engine may compute in and PSUM may hold.
func checkTypes(p *problems, i ir.Inst) {
	m := p.m
	r := m.Insts.At(i)
	transpose := r.Op == ir.OpMatmult && m.AttrBool(i, ir.KeyIsTranspose)
	for _, a := range m.Outs(i) {
		s, ok := sideOf(m, a)
		if !ok || s.loc.Space != target.SpacePSUM || s.dtype.Size() == 4 {
			continue
		}
		if transpose && m.Gen.ExactTranspose || s.dtype == target.BFloat16 && m.Gen.PSUMBF16 {
			continue
		}
		p.inst(i, "writes %s to PSUM at %s; %s writes four-byte types there", s.dtype, m.LocName(s.ap.Loc), m.Gen.Name)
	}
	moves := r.Op == ir.OpTensorCopy || r.Op == ir.OpMemset || r.Op == ir.OpIota
	for _, a := range m.AllArgs(i) {
		if s, ok := sideOf(m, a); ok && !moves && (s.dtype.Size() == 8 || s.dtype.Class() == target.ClassPacked) && r.Op != ir.OpMatmultMx && r.Op != ir.OpQuantizeMx {
			p.inst(i, "computes on %s at %s; that type is only moved", s.dtype, m.LocName(s.ap.Loc))
		}
	}
	if r.Op == ir.OpMatmult {
		a, _ := sideOf(m, m.Ins(i)[0])
		b, _ := sideOf(m, m.Ins(i)[1])
		wide := func(d target.Dtype) bool { return d == target.Float32 || d == target.Float32R }
		if !a.dtype.IsFloat() || !b.dtype.IsFloat() {
			p.inst(i, "multiplies %s by %s; operands are floats", a.dtype, b.dtype)
		} else if wide(a.dtype) != wide(b.dtype) {
			p.inst(i, "multiplies %s by %s; 32-bit floats pair only with 32-bit floats", a.dtype, b.dtype)
		}
	}
}

// checkShapes: counts that must agree.
func checkShapes(p *problems, i ir.Inst) {
	m := p.m
	r := m.Insts.At(i)
	ins, outs := m.Ins(i), m.Outs(i)
	if r.Op == ir.OpMatmult {
		checkMatmult(p, i)
		return
	}
	if r.Op == ir.OpTensorReduce || r.Op == ir.OpPool {
		checkFold(p, i)
		return
	}
	if !r.Op.Is(ir.FlagElementwise) {
		return
	}
	y, ok := sideOf(m, outs[0])
	if !ok {
		return
	}
	sttOrScan := m.AttrBool(i, ir.KeyIsScalarTensorTensor) || m.AttrBool(i, ir.KeyIsTensorTensorScan)
	for k, a := range ins {
		s, ok := sideOf(m, a)
		if !ok {
			continue
		}
		vector := false
		switch r.Op {
		case ir.OpActivation, ir.OpRangeSelect, ir.OpExponential:
			vector = k >= 1
		case ir.OpTensorScalarPtr:
			vector = k == 1 || k == 2 && !sttOrScan
		}
		want := y.elems
		if vector {
			want = 1
		}
		if s.parts != y.parts || s.elems != want {
			p.inst(i, "input %d (%s) is %d x %d, output is %d x %d", k, m.LocName(s.ap.Loc), s.parts, s.elems, y.parts, y.elems)
		}
	}
	if len(outs) > 1 {
		if s, ok := sideOf(m, outs[1]); ok && (s.parts != y.parts || s.elems != 1) && r.Op != ir.OpMaxIndexAndMatchReplace {
			p.inst(i, "second output is %d x %d; it is one element a partition", s.parts, s.elems)
		}
	}
}

func checkFold(p *problems, i ir.Inst) {
	m := p.m
	x, ok0 := sideOf(m, m.Ins(i)[0])
	y, ok1 := sideOf(m, m.Outs(i)[0])
	if !ok0 || !ok1 {
		return
	}
	axes := 2
	if m.Insts.At(i).Op == ir.OpTensorReduce {
		l := ir.AxisList(m.Attr(i, ir.KeyAxis))
		if l == ir.AxisC || l == ir.AxisXYZWC {
			if y.parts != 1 {
				p.inst(i, "folds partitions into %d", y.parts)
			}
			return
		}
		axes = int(l) + 1
	}
	free := x.ap.Free(x.loc.Space)
	fold := int64(1)
	for k := 0; k < axes && k < len(free); k++ {
		fold *= int64(free[len(free)-1-k].Num)
	}
	if x.parts != y.parts || x.elems != y.elems*fold {
		p.inst(i, "folds %d innermost axes (%d elements) of %d x %d into %d x %d", axes, fold, x.parts, x.elems, y.parts, y.elems)
	}
}

func checkMatmult(p *problems, i ir.Inst) {
	m := p.m
	g := m.Gen
	mv, ok0 := sideOf(m, m.Ins(i)[0])
	st, ok1 := sideOf(m, m.Ins(i)[1])
	out, ok2 := sideOf(m, m.Outs(i)[0])
	if !ok0 || !ok1 || !ok2 {
		p.inst(i, "takes and gives tensors only")
		return
	}
	if mv.parts != st.parts || mv.parts > g.PERows {
		p.inst(i, "contracts %d moving rows with %d stationary rows; at most %d", mv.parts, st.parts, g.PERows)
	}
	if int64(out.parts) != st.elems || st.elems > int64(g.PECols) {
		p.inst(i, "%d stationary columns give %d partitions; at most %d", st.elems, out.parts, g.PECols)
	}
	if out.elems != mv.elems || mv.elems > int64(g.MaxMoving(mv.dtype)) {
		p.inst(i, "%d moving columns give %d elements; at most %d", mv.elems, out.elems, g.MaxMoving(mv.dtype))
	}
	// The destination of a matmul stays in one bank (eight on V4).
	lo := out.ap.Off * int64(out.dtype.Size())
	hi := lo
	for _, q := range out.ap.Free(out.loc.Space) {
		span := int64(q.Step) * int64(q.Num-1) * int64(out.dtype.Size())
		lo, hi = lo+min(span, 0), hi+max(span, 0)
	}
	hi += int64(out.dtype.Size()) - 1
	lo, hi = lo+out.loc.Addr, hi+out.loc.Addr
	if bank := int64(g.BankBytes); g.Level < 40 && lo/bank != hi/bank {
		p.inst(i, "writes bytes %d to %d of %s; a matmul stays in one bank of %d", lo, hi, m.LocName(out.ap.Loc), bank)
	}
}
