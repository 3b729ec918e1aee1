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

// What is looked at is counted where it is cut: long runs by pages, a page by its segments.
func TestWrittenCountsSegments(t *testing.T) {
	for _, c := range []struct {
		name        string
		parts       int
		size, run   int64
		step, times int
	}{{"pages", 0, 1 << 34, 1<<34 - 1, 1, 1000}, {"segments", 32, 1 << 15, 1 << 15, 2, 20000}} {
		var m ir.Module
		m.Gen, _ = target.ByLevel(30)
		var b ir.Builder
		b.NewFunc(&m, "f", "b")
		var at func(start, parts int, off int64, step int, n int64) ir.Arg
		if c.parts == 0 {
			l := b.DRAM(m.Names.Intern("x"), ir.KindInternal, target.Uint8, 1, c.size)
			at = func(_, _ int, off int64, step int, n int64) ir.Arg {
				return b.Mem(l, target.Uint8, off, ir.Pair{Step: 1 << 16, Num: uint32(n >> 16)}, ir.Pair{Step: int32(step), Num: 1 << 16})
			}
		} else {
			l := b.SB(m.Names.Intern("x"), target.Uint8, c.parts, c.size)
			at = func(start, parts int, off int64, step int, n int64) ir.Arg {
				return b.Chip(l, target.Uint8, start, parts, off, ir.Pair{Step: int32(step), Num: uint32(n)})
			}
		}
		n := c.run / int64(c.step)
		b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{at(0, c.parts, 0, c.step, n)})
		b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{at(0, c.parts/2, 1, c.step, n-1)})
		b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{at(c.parts/2, c.parts/2, 1, c.step, n-1)})
		for range c.times {
			b.Emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{at(0, c.parts, 0, 1, n)}, []ir.Arg{at(0, 0, 0, 1, 1<<16)})
		}
		b.Close()
		w := &walker{m: &m}
		x := newWrittenBytes(&m)
		w.walk(b.Func, func(i ir.Inst) {
			for _, a := range m.Ins(i) {
				x.read(w.pattern(a))
			}
			for _, a := range m.Outs(i) {
				x.note(w, a)
			}
		})
		if x.bytes.left > 0 || x.bytes.left < -2<<pageBits {
			t.Errorf("%s: %d of %d segments left", c.name, x.bytes.left, maxSegments)
		}
	}
}

// Branches go where they like: only what no instruction writes is read unwritten. The axis of a loop that only the machine counts has
// any value.
func TestWrittenAnyOrder(t *testing.T) {
	const program = `rir 1
module "m" trn2
axis i1 "i" 0 0 1
expr e1 axis i1
func "main" entry {
  set "A" ExternalInput Tensor float32 [4 8] part -1
    %1 "A" DRAM 1 x 128 at 0
  set "x" Internal NeuronSBTensor float32 [4 32] part 0
    %2 "x" SB 4 x 128 at 0
  set "B" ExternalOutput Tensor float32 [4 8] part -1
    %3 "B" DRAM 1 x 128 at 0
  block "a" {
    I-1 "to" UnconditionalBranch SP () -> () target="c"
  }
  block "b" {
    I-2 "save" Save SP (%2 0+4 @24 1*8:float32) -> (%3 @0 8*4 1*8:float32)
    I-3 "end" Halt SP () -> ()
  }
  block "c" {
    I-4 "load" Load SP (%1 @0 8*4 1*8:float32) -> (%2 0+4 @24 1*8:float32)
    I-5 "back" UnconditionalBranch SP () -> () target="b"
  }
}
`
	const loop = `I-1 "L" DynamicForLoop SP () -> () axis i1 {
      block "body" {
        I-2 "load" Load SP (%1 @0 8*4 1*8:float32) -> (sym(set 2 0+4 @0 32*4 1*8 addr e2):float32)
      }
    }
  }
  block "b" {
    I-3 "save" Save SP (%2 0+4 @24 1*8:float32) -> (%3 @0 8*4 1*8:float32)
  }
}
`
	looping := strings.Replace(program, "expr e1 axis i1", "expr e1 axis i1\nexpr e2 affine 0 e1*8", 1)
	looping = looping[:strings.Index(looping, `I-1 "to"`)] + loop
	branching := program
	for _, c := range []struct {
		name, text string
		wrong      bool
	}{
		{"branches", branching, false},
		{"written nowhere", strings.Replace(branching, "(%2 0+4 @24 1*8:float32)\n    I-5", "(%2 0+4 @16 1*8:float32)\n    I-5", 1), true},
		{"loop", looping, false},
		{"no loop", strings.Replace(looping, "DynamicForLoop SP", "Loop Unassigned", 1), true},
	} {
		var m ir.Module
		if err := ir.Parse([]byte(c.text), &m); err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, c.text)
		}
		if err := Written(&m, m.Entry); (err != nil) != c.wrong || err != nil && !strings.HasPrefix(err.Error(), "save (Save): reads bytes 96 to 127 of %x") {
			t.Errorf("%s: %v", c.name, err)
		}
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
