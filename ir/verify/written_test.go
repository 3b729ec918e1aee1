package verify

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Random accesses against a model that keeps every byte of every location: the first read of what nothing wrote is the first finding.
func TestWrittenAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	found, clean := 0, 0
	for round := range 400 {
		var m ir.Module
		m.Gen, _ = target.ByLevel(30)
		var b ir.Builder
		b.NewFunc(&m, "f", "b")
		type tile struct {
			loc         ir.Loc
			parts, size int
			written     [128][64]bool
		}
		var tiles [3]tile
		for k := range tiles {
			x := &tiles[k]
			x.parts, x.size = 1+r.IntN(128), 1+r.IntN(64)
			x.loc = b.SB(m.Names.Intern("x"), target.Uint8, x.parts, int64(x.size))
			if round%2 == 0 { // with a place or without, it is the same
				row := m.Locs.At(x.loc)
				row.Flags |= ir.LocAllocated
				row.Addr = int64(r.IntN(1000))
			}
			if r.IntN(2) == 0 {
				m.Sets.At(m.Locs.At(x.loc).Set).Kind = ir.KindConst
				for p := range x.written {
					for at := range x.written[p] {
						x.written[p][at] = true
					}
				}
			}
		}
		pattern := func(x *tile) (ir.Arg, func(func(p, at int))) {
			start := r.IntN(x.parts)
			parts := 1 + r.IntN(x.parts-start)
			if r.IntN(2) == 0 {
				start, parts = 0, x.parts
			}
			off, step := r.IntN(x.size), 1+r.IntN(3)
			if r.IntN(2) == 0 {
				off, step = 0, 1
			}
			n := 1 + r.IntN((x.size-off+step-1)/step)
			if r.IntN(2) == 0 {
				n = (x.size - off + step - 1) / step
			}
			return b.Chip(x.loc, target.Uint8, start, parts, int64(off), ir.Pair{Step: int32(step), Num: uint32(n)}), func(f func(p, at int)) {
				for p := range parts {
					for k := range n {
						f(start+p, off+k*step)
					}
				}
			}
		}
		bad := ir.Inst(0)
		for range 3 + r.IntN(8) {
			var ins []ir.Arg
			wrong := false
			x := &tiles[r.IntN(len(tiles))]
			if r.IntN(3) == 0 {
				a, each := pattern(x)
				ins = append(ins, a)
				each(func(p, at int) { wrong = wrong || !x.written[p][at] })
			}
			y := &tiles[r.IntN(len(tiles))]
			out, each := pattern(y)
			i := b.Emit(ir.OpTensorCopy, target.EngineDVE, ins, []ir.Arg{out})
			each(func(p, at int) { y.written[p][at] = true })
			if wrong && bad == 0 {
				bad = i
			}
		}
		b.Close()
		err := Written(&m, b.Func)
		if (err != nil) != (bad != 0) || err != nil && (target.ClassOf(err) != target.User || !strings.HasPrefix(err.Error(), m.InstName(bad)+" ")) {
			t.Fatalf("model: first bad read %v, checker: %v\n%s", bad, err, ir.Append(nil, &m))
		}
		if bad != 0 {
			found++
		} else {
			clean++
		}
	}
	if found < 50 || clean < 50 {
		t.Errorf("%d programs with a bad read and %d without: the generator is lopsided", found, clean)
	}
}

// Patterns of more runs than anybody can look at one by one, and tensors of more bytes than there are, end the check and nothing else.
func TestWrittenIsBounded(t *testing.T) {
	var m ir.Module
	m.Gen, _ = target.ByLevel(30)
	var b ir.Builder
	b.NewFunc(&m, "f", "b")
	for _, size := range []int64{1 << 33, 1 << 50} {
		l := b.DRAM(m.Names.Intern("x"), ir.KindInternal, target.Uint8, 1, size)
		every := b.Mem(l, target.Uint8, 0, ir.Pair{Step: 1 << 16, Num: 1 << 16}, ir.Pair{Step: 2, Num: 1 << 15})
		b.Emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{every}, []ir.Arg{every})
		b.Emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{every}, []ir.Arg{every})
	}
	b.Close()
	err := Written(&m, b.Func)
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%v, want one finding for each tensor", err)
	}
}

// Loops run in their turns, rings are told apart by block, and a damaged write is found where it is missed. An instruction that may read
// anything does.
func TestWrittenInLoops(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"legal", "", "", ""},
		{"by half", `%6 0+4 @1 2*4:float32) constant`, `%6 0+4 @1 2*3:float32) constant`, "rr (TensorTensor): reads bytes 0 to 31 of %p, partitions 0 to 3"},
		{"by half, and said so", `%6 0+4 @1 2*4:float32) constant`, `%6 0+4 @0 2*4:float32) constant`, "%p"},
		{"no block for the first turn", `%7 0+4 @0 1*8:float32)
    I-3`, `%8 0+4 @0 1*8:float32)
    I-3`, "rr (TensorTensor): reads bytes 0 to 31 of %r0"},
		{"not in this turn", `(%4 0+4 @0 1*8:float32) -> (%3 0+4 @0 1*8:float32)`, `(%3 0+4 @0 1*8:float32) -> (%3 0+4 @0 1*8:float32)`, "x1 (TensorCopy): reads bytes 0 to 31 of %x"},
		{"the output", `%5 0+4 @0 1*8:float32) -> (%4`, `%2 @0 1*8:float32) -> (%4`, "of %B"},
	} {
		var m ir.Module
		if err := ir.Parse([]byte(strings.Replace(looped, c.old, c.new, 1)), &m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err := Written(&m, m.Entry)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		for i := range m.Insts.All() {
			m.SetAttr(i, ir.Int(ir.KeyCanReadUninit, 1))
		}
		if err := Written(&m, m.Entry); err != nil {
			t.Errorf("%s, with can_read_uninit: %v", c.name, err)
		}
	}
}
