package opt

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// LowerSelect replaces each Select (pred, t, f → y), which no generation encodes, by TensorCopy f → y and CopyPredicated of
// t over it; where y already is t or f, by one CopyPredicated. It runs before dependences are built. A result that overlaps
// an operand in any other way is refused, because the first write would destroy what the second reads.
func LowerSelect(m *ir.Module, f ir.Func, e *ir.Edits) error {
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			if m.Insts.At(i).Op == ir.OpSelect {
				if err := lowerSelect(m, b, i, e); err != nil {
					e.Reset()
					return err
				}
			}
		}
	}
	e.Apply(m)
	return nil
}

func lowerSelect(m *ir.Module, b ir.Block, i ir.Inst, e *ir.Edits) error {
	ins, outs := m.Ins(i), m.Outs(i)
	if len(ins) != 3 || len(outs) != 1 {
		return target.Errorf(target.Bug, "%s: Select with %d inputs and %d outputs, want 3 and 1", m.InstName(i), len(ins), len(outs))
	}
	pred, yes, no, y := ins[0], ins[1], ins[2], outs[0]
	for _, a := range [4]ir.Arg{pred, yes, no, y} {
		if a.Kind != ir.ArgAP {
			return target.NotSupported("Select", "%s: Select takes tensors on chip, not immediates or symbolic addresses", m.InstName(i))
		}
	}
	fp := m.FootprintOf(y.AP())
	same := func(a ir.Arg) bool { return *m.APs.At(a.AP()) == *m.APs.At(y.AP()) }
	clash := func(a ir.Arg) bool { p := m.FootprintOf(a.AP()); return p.Overlaps(&fp) }
	isYes, isNo := same(yes), same(no)
	for k, a := range [3]ir.Arg{pred, yes, no} {
		if k == 1 && isYes || k == 2 && isNo || !clash(a) {
			continue
		}
		return target.NotSupported("Select", "%s: the result overlaps input %d of Select without being equal to it", m.InstName(i), k)
	}
	src, reverse := yes, false
	if isYes && !isNo {
		src, reverse = no, true
	}
	if !isYes && !isNo {
		c := m.NewInst(b, ir.OpTensorCopy, m.Insts.At(i).Engine, []ir.Arg{no}, []ir.Arg{y})
		m.Source.Set(c, m.Source.Get(i))
		e.Before(i, c)
	}
	var c ir.Inst
	if reverse {
		c = m.NewInst(b, ir.OpCopyPredicated, m.Insts.At(i).Engine, []ir.Arg{src, pred}, []ir.Arg{y}, ir.Bool(ir.KeyReversePred, true))
	} else {
		c = m.NewInst(b, ir.OpCopyPredicated, m.Insts.At(i).Engine, []ir.Arg{src, pred}, []ir.Arg{y})
	}
	m.Source.Set(c, m.Source.Get(i))
	e.Before(i, c)
	e.Delete(i)
	return nil
}
