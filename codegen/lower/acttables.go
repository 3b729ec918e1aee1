package lower

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// ActTables puts a LoadActFuncSet in front of every Activation whose function needs a table set that is not resident then,
// in the final order, and returns how many. The Scalar engine runs in order, so the loads need no edges. It runs after
// scheduling and before Sync.
func ActTables(m *ir.Module, f ir.Func, e *ir.Edits) (loads int) {
	tableMisses(m, f, func(b ir.Block, i ir.Inst, set int) bool {
		n := m.NewInst(b, ir.OpLoadActFuncSet, target.EngineAct, nil, nil, ir.Int(ir.KeyActFuncSet, int64(set)))
		m.Source.Set(n, m.Source.Get(i))
		e.Before(i, n)
		loads++
		return true
	})
	e.Apply(m)
	return loads
}

// TableMissing is the first Activation whose table set is not resident when it runs, 0 when there is none.
func TableMissing(m *ir.Module, f ir.Func) (first ir.Inst) {
	tableMisses(m, f, func(_ ir.Block, i ir.Inst, _ int) bool { first = i; return false })
	return first
}

// tableMisses calls miss for each Activation that finds another table set than its own, which is resident from then on; it
// stops when miss says so.
func tableMisses(m *ir.Module, f ir.Func, miss func(b ir.Block, i ir.Inst, set int) bool) {
	resident := 0
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			switch m.Insts.At(i).Op {
			case ir.OpLoadActFuncSet:
				resident = int(m.AttrInt(i, ir.KeyActFuncSet))
			case ir.OpActivation:
				set := target.ActFunc(m.Attr(i, ir.KeyFunc)).TableSet()
				if set == 0 || set == resident {
					continue
				}
				if !miss(b, i, set) {
					return
				}
				resident = set
			}
		}
	}
}
