package scalar

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"pgregory.net/rapid"
)

// The checker of registers is itself held to the simulator: a coloured program is broken in some way, and what the checker still
// accepts must compute the same. Each way must be found out at least once; a missing wait, which no number shows, always.
func TestCheckerFindsWhatIsBroken(t *testing.T) {
	mutations := []struct {
		name   string
		always bool
		apply  func(t *rapid.T, m *ir.Module) bool
	}{
		{"lane", false, func(t *rapid.T, m *ir.Module) bool {
			r := m.Regs.At(ir.Reg(rapid.IntRange(1, m.Regs.Len()-1).Draw(t, "reg")))
			was := r.Phys
			r.Phys = int8(rapid.IntRange(0, 5-int(r.Width)).Draw(t, "lane"))
			return was >= 0 && r.Phys != was
		}},
		{"no reload", false, drop(ir.OpTensorLoad, ir.InstReload)},
		{"no save", false, drop(ir.OpTensorSave, ir.InstSpill)},
		{"no wait", true, drop(ir.OpEventSemaphore, ir.InstSpill|ir.InstReload)},
		{"instruction gone", false, drop(ir.OpRegisterAlu, 0)},
		{"other slot", false, func(t *rapid.T, m *ir.Module) bool {
			var l []ir.Inst
			for _, i := range ops(m, ir.OpTensorLoad) {
				if m.Insts.At(i).Flags&ir.InstReload != 0 {
					l = append(l, i)
				}
			}
			if len(l) < 2 {
				return false
			}
			a := m.Ins(l[rapid.IntRange(0, len(l)-1).Draw(t, "a")])
			for _, i := range l {
				if b := m.Ins(i); a[0] != b[0] && a[0].Dtype == b[0].Dtype {
					a[0] = b[0]
					return true
				}
			}
			return false
		}},
		{"other register", false, func(t *rapid.T, m *ir.Module) bool {
			var regs []*ir.Arg
			for b := range m.Blocks.All() {
				for _, i := range m.OrderOf(b) {
					all := m.AllArgs(i)
					for k := range all {
						if all[k].Kind == ir.ArgReg {
							regs = append(regs, &all[k])
						}
					}
				}
			}
			if len(regs) == 0 {
				return false
			}
			a := regs[rapid.IntRange(0, len(regs)-1).Draw(t, "a")]
			b := regs[rapid.IntRange(0, len(regs)-1).Draw(t, "b")]
			if a.Ref == b.Ref || a.Dtype != b.Dtype || m.Regs.At(ir.Reg(a.Ref)).Engine != m.Regs.At(ir.Reg(b.Ref)).Engine {
				return false
			}
			a.Ref = b.Ref
			return true
		}},
	}
	found := make([]int, len(mutations))
	var ws Workspace
	var s sim.Sim
	rapid.Check(t, func(t *rapid.T) {
		text := random(t)
		for k, mu := range mutations {
			m, err := parse(text)
			if err != nil {
				t.Fatalf("%v", err)
			}
			want, err := run(m, &s)
			if err != nil {
				t.Fatalf("%v", err)
			}
			var g verify.Registers
			g.Remember(m, m.Entry)
			if _, err := Colour(m, m.Entry, &ws, Options{Lanes: 5}); err != nil {
				t.Fatalf("%v", err)
			}
			if !mu.apply(t, m) {
				continue
			}
			if g.Check(m, 5) != nil {
				found[k]++
				continue
			}
			if mu.always {
				t.Fatalf("%s: went unseen\n%s", mu.name, printed(m))
			}
			if got, err := run(m, &s); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: accepted, but %v; same numbers: %v\n%s\n%s", mu.name, err, bytes.Equal(got, want), text, printed(m))
			}
		}
	})
	for k, mu := range mutations {
		if found[k] == 0 && !testing.Short() { // too few programs to be sure of each
			t.Errorf("%s: never found", mu.name)
		}
	}
	t.Logf("found %v", found)
}

// drop takes out one instruction of an opcode with one of the flags, or with none.
func drop(op ir.Opcode, flags ir.InstFlag) func(*rapid.T, *ir.Module) bool {
	return func(t *rapid.T, m *ir.Module) bool {
		var l []ir.Inst
		for _, i := range ops(m, op) {
			if f := m.Insts.At(i).Flags; f&flags != 0 || flags == 0 && f == 0 {
				l = append(l, i)
			}
		}
		if len(l) == 0 {
			return false
		}
		gone := l[rapid.IntRange(0, len(l)-1).Draw(t, "gone")]
		for b := range m.Blocks.All() {
			if order := m.OrderOf(b); slices.Contains(order, gone) {
				m.SetOrder(b, slices.DeleteFunc(slices.Clone(order), func(i ir.Inst) bool { return i == gone }))
			}
		}
		return true
	}
}
