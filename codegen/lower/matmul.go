package lower

import (
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// weightState is the stationary operand that the array holds while a stream is encoded.
type weightState struct {
	row     ir.APRow // of the last load; Loc 0 when nothing is known
	variant uint8
	mark    uint8
	rowGrp  uint8
	colGrp  uint8
	pos     uint32 // program position of the matmul that loaded it
	saved   int64  // loads left out
}

// matmul is a load of the stationary operand and a multiply. The load is left out when the array holds the very same operand
// and nothing has written its bytes since. Full float32 takes two passes over halves of the weights, low ones first: the
// first pass opens the group if the instruction does, the second adds, and closes it.
func (t *Tail) matmul(i ir.Inst, ins, outs []ir.Arg) error {
	m := t.m
	moving, weights, psum := ins[0], ins[1], outs[0]
	mv, err := t.row(moving)
	if err != nil {
		return err
	}
	wt, err := t.row(weights)
	if err != nil {
		return err
	}
	out, err := t.row(psum)
	if err != nil {
		return err
	}
	exact := m.AttrBool(i, ir.KeyIsTranspose) && m.Gen.ExactTranspose
	rows, cols := int(mv.Parts), int(out.Parts)
	rowGrp, ok := isa.GroupCode(t.start(mv), rows)
	if !ok {
		return target.Errorf(target.Bug, "%d rows at partition %d are no row group", rows, t.start(mv))
	}
	colGrp, ok := isa.GroupCode(t.start(out), cols)
	if !ok {
		return target.Errorf(target.Bug, "%d columns at partition %d are no column group", cols, t.start(out))
	}
	if exact {
		colGrp = 0x0F
	}
	wide := func(d target.Dtype) bool { return d == target.Float32 || d == target.Float32R }
	if wide(moving.Dtype) != wide(weights.Dtype) {
		return target.NotSupported(weights.Dtype.String(), "Matmult of %s with %s: 32-bit floats pair only with 32-bit floats", moving.Dtype, weights.Dtype)
	}
	flags := uint8(m.AttrInt(i, ir.KeyAccumulationFlag))
	variant, product := uint8(isa.VariantNormal), uint8(isa.VariantNormal)
	passes := 1
	switch {
	case exact:
		product = isa.VariantTransposed
		if wide(weights.Dtype) {
			variant = isa.VariantFP32R
		}
	case moving.Dtype == target.Float32R || weights.Dtype == target.Float32R:
		variant, product = isa.VariantFP32R, isa.VariantFP32R
	case weights.Dtype == target.Float32:
		passes = 2
	}
	plain := func(d target.Dtype) target.Dtype {
		if d == target.Float32R {
			return target.Float32
		}
		return d
	}
	mark := uint8(0)
	if exact {
		mark = isa.TransposeMark
	}
	for pass := range passes {
		f := flags
		if passes == 2 {
			variant = isa.VariantFP32Lo
			f = flags &^ isa.FlagStop
			if pass == 1 {
				variant = isa.VariantFP32Hi
				f = isa.FlagAccumulate | flags&isa.FlagStop
			}
		}
		if !t.holds(i, wt, variant, mark, rowGrp, colGrp) {
			in := t.next(isa.OpLoadWeights)
			if _, err := t.src(in, weights); err != nil {
				return err
			}
			in.DtSrc = plain(weights.Dtype)
			in.Variant, in.Transpose = variant, mark
			in.Rows, in.Cols, in.RowGroup, in.ColGroup = uint8(rows), uint8(cols), rowGrp, colGrp
			saved := t.weights.saved
			t.weights = weightState{row: *wt, variant: variant, mark: mark, rowGrp: rowGrp, colGrp: colGrp, pos: t.at.Get(i), saved: saved}
		} else {
			t.weights.saved++
		}
		in := t.next(isa.OpMatmul)
		if _, err := t.src(in, moving); err != nil {
			return err
		}
		if _, err := t.dst(in, psum); err != nil {
			return err
		}
		in.DtSrc, in.DtDst = plain(moving.Dtype), psum.Dtype
		in.Variant, in.Flags = product, f
		in.Rows, in.Cols, in.RowGroup, in.ColGroup = uint8(rows), uint8(cols), rowGrp, colGrp
		if m.Gen.Level >= 40 {
			in.ZeroRegion = uint8(m.AttrInt(i, ir.KeyPsumZeroRegion))
		}
	}
	return nil
}

// start is the first partition of a pattern.
func (t *Tail) start(row *ir.APRow) int { return int(t.m.Locs.At(row.Loc).Base) + int(row.Start) }

// holds reports whether the array holds this operand with its present bytes. A write since the load would be an edge of this
// matmul: to the write itself, or to one that stands for it.
func (t *Tail) holds(i ir.Inst, wt *ir.APRow, variant, mark, rowGrp, colGrp uint8) bool {
	w := &t.weights
	if w.row.Loc == 0 || w.row != *wt || w.variant != variant || w.mark != mark || w.rowGrp != rowGrp || w.colGrp != colGrp {
		return false
	}
	m := t.m
	var fp ir.Footprint
	for _, d := range m.DepsOf(i) {
		if t.at.Get(d.Inst) <= w.pos || d.Kind == ir.DepAnti || d.Kind == ir.DepOutput {
			continue
		}
		r := m.Insts.At(d.Inst)
		if d.Kind == ir.DepOrdered {
			if r.Op.Is(ir.FlagMatmul) {
				continue // another group in the same bank
			}
			return false
		}
		if fp.Run == 0 {
			fp = m.Footprint(wt)
		}
		for _, a := range m.Outs(d.Inst) {
			if a.Kind != ir.ArgAP {
				return false
			}
			if p := m.FootprintOf(a.AP()); p.Overlaps(&fp) {
				return false
			}
		}
	}
	return true
}
