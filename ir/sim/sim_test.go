package sim

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// relu(AᵀB): two loads, a matmul, an eviction with Relu, a save.
func program(level int) (*ir.Module, *ir.Builder, []ir.Loc) {
	m := &ir.Module{}
	m.Gen, _ = target.ByLevel(level)
	b := &ir.Builder{}
	b.NewFunc(m, "sg0000", "Block1")
	name := m.Names.Intern
	f := target.Float32
	A := b.DRAM(name("A"), ir.KindExternalInput, f, 8, 4)
	B := b.DRAM(name("B"), ir.KindExternalInput, f, 8, 6)
	C := b.DRAM(name("C"), ir.KindExternalOutput, f, 4, 6)
	a, bb := b.SB(name("a"), f, 8, 4), b.SB(name("b"), f, 8, 6)
	acc, c := b.PSUM(name("acc"), f, 4, 6), b.SB(name("c"), f, 4, 6)
	in := func(ls ...ir.Arg) []ir.Arg { return ls }
	b.Emit(ir.OpLoad, target.EngineSP, in(b.Mem(A, f, 0, ir.Pair{Step: 4, Num: 8}, ir.Pair{Step: 1, Num: 4})), in(b.Chip(a, f, 0, 8, 0, ir.Pair{Step: 1, Num: 4})))
	b.Emit(ir.OpLoad, target.EngineSP, in(b.Mem(B, f, 0, ir.Pair{Step: 1, Num: 48})), in(b.Chip(bb, f, 0, 8, 0, ir.Pair{Step: 1, Num: 6})))
	b.Emit(ir.OpMatmult, target.EnginePE, in(b.Chip(bb, f, 0, 8, 0, ir.Pair{Step: 1, Num: 6}), b.Chip(a, f, 0, 8, 0, ir.Pair{Step: 1, Num: 4})),
		in(b.Chip(acc, f, 0, 4, 0, ir.Pair{Step: 1, Num: 6})), ir.Int(ir.KeyAccumulationFlag, 3))
	b.Emit(ir.OpActivation, target.EngineAct, in(b.Chip(acc, f, 0, 4, 0, ir.Pair{Step: 1, Num: 6})), in(b.Chip(c, f, 0, 4, 0, ir.Pair{Step: 1, Num: 6})),
		ir.Enum(ir.KeyFunc, target.ActRelu))
	b.Emit(ir.OpSave, target.EngineAct, in(b.Chip(c, f, 0, 4, 0, ir.Pair{Step: 1, Num: 6})), in(b.Mem(C, f, 0, ir.Pair{Step: 6, Num: 4}, ir.Pair{Step: 1, Num: 6})))
	b.Close()
	return m, b, []ir.Loc{A, B, C, a, bb, acc, c}
}

func floats(n int, f func(int) float32) []byte {
	var d []byte
	for i := range n {
		d = binary.LittleEndian.AppendUint32(d, math.Float32bits(f(i)))
	}
	return d
}

var fa = func(i int) float32 { return float32(i%7) - 3 }
var fb = func(i int) float32 { return float32(i%5) - 2 }

var env = Env{Input: func(name string, size int64) ([]byte, error) {
	if name == "A" {
		return floats(32, fa), nil
	}
	return floats(48, fb), nil
}}

func want() (w []float32) {
	for m := range 4 {
		for n := range 6 {
			x := float32(0)
			for k := range 8 {
				x += fa(k*4+m) * fb(k*6+n)
			}
			w = append(w, max(x, 0))
		}
	}
	return w
}

func check(t *testing.T, got []byte) (same bool) {
	t.Helper()
	for i, w := range want() {
		if g := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])); g != w {
			return false
		}
	}
	return true
}

func place(m *ir.Module, l ir.Loc, bank int8, addr int64) {
	r := m.Locs.At(l)
	r.Flags |= ir.LocAllocated
	r.Bank, r.Addr = bank, addr
}

func TestReluMatmul(t *testing.T) {
	var s Sim
	for _, level := range []int{20, 30, 40} {
		m, _, l := program(level)
		if err := s.Run(m, env); err != nil {
			t.Fatal(err)
		}
		if !s.Written(m, l[2]) || !check(t, s.Bytes(m, l[2])) {
			t.Errorf("level %d: before allocation the product is wrong", level)
		}
		place(m, l[3], 0, 16392)
		place(m, l[4], 0, 16392+16)
		place(m, l[5], 2, 0)
		place(m, l[6], 0, 0)
		if err := s.Run(m, env); err != nil {
			t.Fatal(err)
		}
		if !check(t, s.Bytes(m, l[2])) {
			t.Errorf("level %d: a right placement changed the product", level)
		}
		place(m, l[4], 0, 16392+8) // b over the right half of a
		if err := s.Run(m, env); err != nil {
			t.Fatal(err)
		}
		if check(t, s.Bytes(m, l[2])) {
			t.Errorf("level %d: a wrong placement went unseen", level)
		}
		place(m, l[4], 0, int64(m.Gen.SBBytes)-8)
		if err := s.Run(m, env); target.ClassOf(err) != target.Bug {
			t.Errorf("level %d: placement outside SBUF: %v", level, err)
		}
	}
}

func TestUnwrittenRead(t *testing.T) {
	m, b, _ := program(30)
	order := m.OrderOf(b.Block)
	m.SetOrder(b.Block, append([]ir.Inst{}, order[1:]...))
	var s Sim
	err := s.Run(m, env)
	if err == nil || !strings.Contains(err.Error(), "%a") || !strings.Contains(err.Error(), "Matmult") {
		t.Errorf("reading a location that was never loaded: %v", err)
	}
}
