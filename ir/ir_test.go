package ir

import (
	"testing"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

func TestRowSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"InstRow", unsafe.Sizeof(InstRow{}), 40}, {"Arg", unsafe.Sizeof(Arg{}), 8}, {"APRow", unsafe.Sizeof(APRow{}), 56},
		{"Attr", unsafe.Sizeof(Attr{}), 16}, {"Dep", unsafe.Sizeof(Dep{}), 8}, {"LocRow", unsafe.Sizeof(LocRow{}), 48},
		{"SetRow", unsafe.Sizeof(SetRow{}), 52},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

// The ordinals that the reference gives by number.
func TestOpcodeOrdinals(t *testing.T) {
	want := map[int]string{4: "Activation", 8: "Matmult", 13: "EventSemaphore", 17: "Halt", 19: "Load", 22: "Save",
		23: "TensorCopy", 28: "TensorScalar", 32: "DMACopy", 34: "BNStats", 46: "IndirectSaveAccumulate", 51: "Select",
		52: "CopyPredicated", 61: "Iota", 63: "RangeSelect", 67: "DMATrigger", 73: "RegisterAlu", 78: "CompareAndBranch",
		84: "Call", 87: "CoreBarrier", 90: "MatchReplace", 95: "MatmultMx", 100: "Rng", 103: "Exponential", 105: "Loop",
		107: "DMABlock", 109: "TongaReduceMacroSymbolic"}
	if NumOpcodes != 110 {
		t.Fatalf("%d opcodes, want 110", NumOpcodes)
	}
	for o := Opcode(0); o < NumOpcodes; o++ {
		if w, ok := want[int(o)]; ok && o.String() != w {
			t.Errorf("opcode %d is %s, want %s", o, o, w)
		}
		if got, ok := ParseOpcode([]byte(o.String())); !ok || got != o {
			t.Errorf("%s parses as %d, %v", o, got, ok)
		}
	}
}

func TestFootprint(t *testing.T) {
	var m Module
	var b Builder
	b.NewFunc(&m, "f", "Block1")
	l := b.SB(m.Names.Intern("x"), target.Float32, 128, 512)
	m.Locs.At(l).Flags |= LocAllocated
	m.Locs.At(l).Addr = 1024
	fp := func(start, parts int, off int64, free ...Pair) Footprint {
		return m.FootprintOf(b.Chip(l, target.Float32, start, parts, off, free...).AP())
	}
	whole := fp(0, 128, 0, Pair{1, 512})
	even := fp(0, 128, 0, Pair{2, 256})
	odd := fp(0, 128, 1, Pair{2, 256})
	low := fp(0, 64, 0, Pair{1, 512})
	high := fp(64, 64, 0, Pair{1, 512})
	cols := fp(0, 128, 8, Pair{1, 16})
	rev := fp(0, 128, 23, Pair{-1, 16})
	window := fp(0, 128, 0, Pair{64, 4}, Pair{1, 8})
	hole := fp(0, 128, 8, Pair{64, 4}, Pair{1, 56})
	if whole.Lo != 1024 || whole.Hi != 1024+2048 || whole.N != 0 {
		t.Errorf("whole tile: %+v", whole)
	}
	if rev.Lo != cols.Lo || rev.Hi != cols.Hi || rev.N != 0 {
		t.Errorf("reverse walk %+v differs from forward walk %+v", rev, cols)
	}
	for _, c := range []struct {
		name string
		a, b Footprint
		want bool
	}{
		{"whole, even", whole, even, true}, {"even, odd", even, odd, false}, {"even, even", even, even, true},
		{"low, high", low, high, false}, {"cols, odd", cols, odd, true}, {"window, hole", window, hole, false},
		{"window, cols", window, cols, false}, {"hole, cols", hole, cols, true},
	} {
		if got := c.a.Overlaps(&c.b); got != c.want {
			t.Errorf("%s overlap: %v, want %v", c.name, got, c.want)
		}
		if got := c.b.Overlaps(&c.a); got != c.want {
			t.Errorf("%s overlap, swapped: %v, want %v", c.name, got, c.want)
		}
	}
	if !whole.Contains(&even) || even.Contains(&whole) {
		t.Error("containment of a strided pattern")
	}
}

// Rows of runs at one distance meet as their bytes do, whichever way the test takes.
func TestGridOverlap(t *testing.T) {
	bytesOf := func(f *Footprint) map[int64]bool {
		m := map[int64]bool{}
		for i := range f.Num[0] {
			for b := range f.Run {
				m[f.Lo+i*f.Step[0]+b] = true
			}
		}
		return m
	}
	make1 := func(lo, step, num, run int64) Footprint {
		f := Footprint{P1: 1, N: 1, Lo: lo, Run: run, Hi: lo + step*(num-1) + run}
		f.Step[0], f.Num[0] = step, num
		return f
	}
	for step := int64(2); step <= 7; step += 5 {
		for lo := range int64(20) {
			for run := int64(1); run <= step+1; run++ {
				for num := int64(2); num <= 4; num++ {
					f, g := make1(7, step, 3, 2), make1(lo, step, num, run)
					want := false
					for b := range bytesOf(&g) {
						want = want || bytesOf(&f)[b]
					}
					if got := f.Overlaps(&g); got != want {
						t.Fatalf("%+v and %+v overlap: %v, want %v", f, g, got, want)
					}
					if got := g.Overlaps(&f); got != want {
						t.Fatalf("%+v and %+v overlap, swapped: %v, want %v", f, g, got, want)
					}
				}
			}
		}
	}
}

func TestEdits(t *testing.T) {
	var m Module
	var b Builder
	b.NewFunc(&m, "f", "Block1")
	var is []Inst
	for range 4 {
		is = append(is, b.Emit(OpNoOp, target.EngineSP, nil, nil))
	}
	b.Close()
	var e Edits
	n := func() Inst { return m.NewInst(b.Block, OpNoOp, target.EngineSP, nil, nil) }
	w, x, y, z, v := n(), n(), n(), n(), n()
	e.Before(is[1], x)
	e.Before(is[1], y)
	e.After(is[1], z)
	e.First(is[1], w)
	e.First(is[3], v)
	e.Delete(is[2])
	e.Apply(&m)
	want := []Inst{is[0], w, x, y, is[1], z, v, is[3]}
	got := m.OrderOf(b.Block)
	if len(got) != len(want) {
		t.Fatalf("order %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("order %v, want %v", got, want)
		}
	}
	if e.Len() != 0 {
		t.Error("edits are still pending after Apply")
	}
}

// Equal patterns share a row as long as they are lately made; a builder that served another module finds nothing wrong.
func TestPatternsAreShared(t *testing.T) {
	var m Module
	var b Builder
	for range 2 {
		m.Reset()
		b.NewFunc(&m, "f", "Block1")
		x := b.SB(m.Names.Intern("x"), target.Float32, 128, 64)
		y := b.SB(m.Names.Intern("y"), target.Float32, 128, 64)
		row := Pair{1, 64}
		a := b.Chip(x, target.Float32, 0, 128, 0, row)
		if again := b.Chip(x, target.Float32, 0, 128, 0, row); again != a {
			t.Errorf("equal patterns have rows %d and %d", a.Ref, again.Ref)
		}
		seen := map[uint32]bool{a.Ref: true}
		for _, o := range []Arg{
			b.Chip(y, target.Float32, 0, 128, 0, row), b.Chip(x, target.Int32, 0, 128, 0, row), b.Chip(x, target.Float32, 32, 32, 0, row),
			b.Chip(x, target.Float32, 0, 128, 1, Pair{1, 63}), b.Chip(x, target.Float32, 0, 128, 0, Pair{2, 32}),
			b.Chip(x, target.Float32, 0, 128, 0, Pair{8, 8}, Pair{1, 8}),
		} {
			if seen[o.Ref] {
				t.Errorf("row %d serves different patterns", o.Ref)
			}
			seen[o.Ref] = true
		}
		for k := range int64(5 * recentAPs) { // many more than are remembered
			o := b.Chip(x, target.Float32, 0, 1, k%64, Pair{int32(k), 1})
			if r := m.APs.At(o.AP()); r.Off != k%64 || r.Pairs[1].Step != int32(k) {
				t.Fatalf("pattern %d became %+v", k, *r)
			}
		}
		b.Close()
	}
}
