package opt

import (
	"fmt"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

func TestLowerSelect(t *testing.T) {
	var m ir.Module
	var e ir.Edits
	for _, c := range []struct {
		name  string
		y     int // 0 fresh, 1 is t, 2 is f, 3 is pred, 4 overlaps t
		want  string
		class target.Class
	}{
		{"fresh result", 0, "TensorCopy(f -> y) CopyPredicated(t pred -> y)", 0},
		{"onto t", 1, "CopyPredicated!(f pred -> t)", 0},
		{"onto f", 2, "CopyPredicated(t pred -> f)", 0},
		{"onto pred", 3, "", target.Unsupported},
		{"half over t", 4, "", target.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.Reset()
			m.Gen, _ = target.ByLevel(30)
			var b ir.Builder
			b.NewFunc(&m, "f", "Block1")
			loc := func(name string) ir.Loc { return b.SB(m.Names.Intern(name), target.Float32, 32, 16) }
			pl, tl, fl, yl := loc("pred"), loc("t"), loc("f"), loc("y")
			arg := func(l ir.Loc, off int64) ir.Arg {
				return b.Chip(l, target.Float32, 0, 32, off, ir.Pair{Step: 1, Num: 8})
			}
			y := []ir.Arg{arg(yl, 0), arg(tl, 0), arg(fl, 0), arg(pl, 0), arg(tl, 4)}[c.y]
			b.Source = m.Names.Intern("where_1")
			s := b.Emit(ir.OpSelect, target.EngineDVE, []ir.Arg{arg(pl, 0), arg(tl, 0), arg(fl, 0)}, []ir.Arg{y})
			b.Close()
			err := LowerSelect(&m, b.Func, &e)
			if c.class != 0 {
				if target.ClassOf(err) != c.class || len(m.OrderOf(b.Block)) != 1 || m.OrderOf(b.Block)[0] != s {
					t.Errorf("error %v, order %v", err, m.OrderOf(b.Block))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for k, i := range m.OrderOf(b.Block) {
				if k > 0 {
					got += " "
				}
				got += m.Insts.At(i).Op.String()
				if m.AttrBool(i, ir.KeyReversePred) {
					got += "!"
				}
				got += "("
				for _, a := range m.Ins(i) {
					got += m.LocName(m.LocOf(a))[1:] + " "
				}
				got += fmt.Sprintf("-> %s)", m.LocName(m.LocOf(m.Outs(i)[0]))[1:])
				if m.Names.String(m.Source.Get(i)) != "where_1" {
					t.Errorf("%s lost its provenance", m.InstName(i))
				}
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
