package verify

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// side is what a rule needs to know of one operand; ap is nil for what is no tensor.
type side struct {
	ap    *ir.APRow
	loc   *ir.LocRow
	dtype target.Dtype
	parts int
	elems int64
}

func (s *side) tensor() bool { return s.ap != nil }

// sides lists the operands of an instruction once for all rules: inputs, indices, outputs, and the inputs and outputs alone.
// Valid until the next call.
func (p *problems) sides(i ir.Inst) (all, ins, outs []side) {
	m := p.m
	all = p.scratch[:0]
	for _, a := range m.AllArgs(i) {
		var s side
		if a.Kind == ir.ArgAP {
			s.ap = m.APs.At(a.AP())
			s.loc = m.Locs.At(s.ap.Loc)
			s.dtype, s.parts, s.elems = s.ap.Dtype, int(s.ap.Parts), s.ap.FreeElems(s.loc.Space)
		}
		all = append(all, s)
	}
	r := m.Insts.At(i)
	return all, all[:r.NIn], all[len(all)-int(r.NOut):]
}

// checkMove: loads, saves, copies and gathers.
func checkMove(p *problems, i ir.Inst) {
	r := p.m.Insts.At(i)
	if r.Op == ir.OpIndirectLoad {
		checkGather(p, i)
		return
	}
	if r.Op != ir.OpLoad && r.Op != ir.OpSave && r.Op != ir.OpDMACopy {
		return
	}
	_, ins, outs := p.sides(i)
	src, dst := &ins[0], &outs[0]
	if !src.tensor() || !dst.tensor() {
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
func checkSpaces(p *problems, i ir.Inst, all, ins, outs []side) {
	r := p.m.Insts.At(i)
	psum := 0
	for k := range ins {
		if s := &ins[k]; s.tensor() && s.loc.Space == target.SpacePSUM && (s.parts > 1 || s.elems > 1) {
			psum++
		}
	}
	if r.Op.Is(ir.FlagMatmul) {
		if psum > 0 {
			p.inst(i, "reads PSUM; matmul operands are in SBUF")
		}
		for k := range outs {
			if s := &outs[k]; s.tensor() && s.loc.Space != target.SpacePSUM {
				p.inst(i, "writes %s; a matmul writes PSUM", s.loc.Space)
			}
		}
		return
	}
	if psum > 1 {
		p.inst(i, "has %d operands in PSUM; at most one", psum)
	}
	if r.Engine == target.EnginePool {
		for k := range all {
			if s := &all[k]; s.tensor() && s.loc.Space == target.SpacePSUM {
				p.inst(i, "runs on Pool and touches PSUM at %s", p.m.LocName(s.ap.Loc))
			}
		}
	}
}

// checkTypes: what an engine may compute in and PSUM may hold.
func checkTypes(p *problems, i ir.Inst, all, ins, outs []side) {
	m := p.m
	r := m.Insts.At(i)
	for k := range outs {
		s := &outs[k]
		if !s.tensor() || s.loc.Space != target.SpacePSUM || s.dtype.Size() == 4 {
			continue
		}
		transpose := r.Op == ir.OpMatmult && m.AttrBool(i, ir.KeyIsTranspose)
		if transpose && m.Gen.ExactTranspose || s.dtype == target.BFloat16 && m.Gen.PSUMBF16 {
			continue
		}
		p.inst(i, "writes %s to PSUM at %s; %s writes four-byte types there", s.dtype, m.LocName(s.ap.Loc), m.Gen.Name)
	}
	moves := r.Op == ir.OpTensorCopy || r.Op == ir.OpMemset || r.Op == ir.OpIota
	if r.Op == ir.OpMemset && m.Attr(i, ir.KeyConstant) != 0 && m.Outs(i)[0].Dtype.Size() == 8 {
		p.inst(i, "fills %s with a constant that is not 0; one of four bytes is possible", m.Outs(i)[0].Dtype)
	}
	if !moves && r.Op != ir.OpMatmultMx && r.Op != ir.OpQuantizeMx {
		for k := range all {
			if s := &all[k]; s.tensor() && (s.dtype.Size() == 8 || s.dtype.Class() == target.ClassPacked) {
				p.inst(i, "computes on %s at %s; that type is only moved", s.dtype, m.LocName(s.ap.Loc))
			}
		}
	}
	if r.Op == ir.OpMatmult {
		a, b := ins[0].dtype, ins[1].dtype
		if !a.IsFloat() || !b.IsFloat() {
			p.inst(i, "multiplies %s by %s; operands are floats", a, b)
		} else if wide(a) != wide(b) {
			p.inst(i, "multiplies %s by %s; 32-bit floats pair only with 32-bit floats", a, b)
		}
	}
}

func wide(d target.Dtype) bool { return d == target.Float32 || d == target.Float32R }

// checkShapes: counts that must agree.
func checkShapes(p *problems, i ir.Inst, ins, outs []side) {
	m := p.m
	r := m.Insts.At(i)
	if r.Op == ir.OpMatmult {
		checkMatmult(p, i, ins, outs)
		return
	}
	if r.Op == ir.OpTensorReduce || r.Op == ir.OpPool {
		checkFold(p, i, ins, outs)
		return
	}
	if !r.Op.Is(ir.FlagElementwise) {
		return
	}
	y := &outs[0]
	if !y.tensor() {
		return
	}
	sttOrScan := m.AttrBool(i, ir.KeyIsScalarTensorTensor) || m.AttrBool(i, ir.KeyIsTensorTensorScan)
	for k := range ins {
		s := &ins[k]
		if !s.tensor() {
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
		if s := &outs[1]; s.tensor() && (s.parts != y.parts || s.elems != 1) && r.Op != ir.OpMaxIndexAndMatchReplace {
			p.inst(i, "second output is %d x %d; it is one element a partition", s.parts, s.elems)
		}
	}
}

func checkFold(p *problems, i ir.Inst, ins, outs []side) {
	m := p.m
	x, y := &ins[0], &outs[0]
	if !x.tensor() || !y.tensor() {
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

func checkMatmult(p *problems, i ir.Inst, ins, outs []side) {
	m := p.m
	g := m.Gen
	mv, st, out := &ins[0], &ins[1], &outs[0]
	if !mv.tensor() || !st.tensor() || !out.tensor() {
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
