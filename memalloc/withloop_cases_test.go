package memalloc

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Two nested loops. sum is carried by both and s by the inner one, in SB; acc adds up over the inner loop in PSUM; q is kept
// over it there; x, w and local live in one turn; ring has a block for each turn of the outer loop, of which two are live: this turn's and the one before.
const nestedLoops = `rir 1
module "m" trn2
axis i1 "i" 0 3 1
axis i2 "j" 0 2 1
expr e1 axis i1
expr e2 axis i2
expr e3 affine 0 e1*1024
expr e4 affine 1024 e1*1024
expr e5 affine 0 e1*2048 e2*1024
expr e6 affine 0 e1*512 e2*256
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [3 32 32] part -1
    %1 "A" DRAM 1 x 12288 at 0
  set "W" ExternalInput Tensor float32 [3 2 32 32] part -1
    %2 "W" DRAM 1 x 24576 at 0
  set "B" ExternalOutput Tensor float32 [32 32] part -1
    %3 "B" DRAM 1 x 4096 at 0
  set "C" ExternalOutput Tensor float32 [3 2 16 16] part -1
    %4 "C" DRAM 1 x 6144 at 0
  set "sum" Internal NeuronSBTensor float32 [32 32] part 0
    %5 "sum" SB 32 x 128 at 0
  set "s" Internal NeuronSBTensor float32 [32 32] part 0
    %6 "s" SB 32 x 128 at 0
  set "x" Internal NeuronSBTensor float32 [32 32] part 0
    %7 "x" SB 32 x 128 at 0
  set "w" Internal NeuronSBTensor float32 [32 32] part 0
    %8 "w" SB 32 x 128 at 0
  set "local" Internal NeuronSBTensor float32 [32 32] part 0
    %9 "local" SB 32 x 128 at 0
  set "ring" Internal NeuronBlockTensor float32 [4 32 32] part 1 live 2
    %10 "r0" SB 32 x 128 at 0
    %11 "r1" SB 32 x 128 at 0
    %12 "r2" SB 32 x 128 at 0
    %13 "r3" SB 32 x 128 at 0
  set "acc" Internal NeuronPSUMTensor float32 [16 16] part 0
    %14 "acc" PSUM 16 x 64 at 0
  set "p" Internal NeuronPSUMTensor float32 [16 16] part 0
    %15 "p" PSUM 16 x 64 at 0
  set "c" Internal NeuronSBTensor float32 [16 16] part 0
    %16 "c" SB 16 x 64 at 0
  set "q" Internal NeuronPSUMTensor float32 [16 16] part 0
    %17 "q" PSUM 16 x 64 at 0
  block "Block1" {
    I-# "z" Memset DVE () -> (%5 0+32 @0 1*32:float32) constant=0
    I-# "r" Load SP (%1 @0 32*32 1*32:float32) -> (%10 0+32 @0 1*32:float32)
    I-# "L" Loop Unassigned () -> () axis i1 {
      block "outer" {
        I-# "la" Load SP (sym(set 1 0+0 @0 32*32 1*32 addr e3):float32) -> (%7 0+32 @0 1*32:float32)
        I-# "next" TensorTensor DVE (%7 0+32 @0 1*32:float32, sym(set 10 0+32 @0 32*32 1*32 addr e3):float32) -> (sym(set 10 0+32 @0 32*32 1*32 addr e4):float32) op=subtract
        I-# "s0" TensorCopy DVE (%7 0+32 @0 1*32:float32) -> (%6 0+32 @0 1*32:float32)
        I-# "start" Matmult PE (%7 0+32 @0 1*16:float32, %6 0+32 @16 1*16:float32) -> (%14 0+16 @0 1*16:float32) accumulation_flag=1
        I-# "q" Matmult PE (%7 0+32 @4 1*16:float32, %6 0+32 @12 1*16:float32) -> (%17 0+16 @0 1*16:float32) accumulation_flag=3
        I-# "M" Loop Unassigned () -> () axis i2 {
          block "inner" {
            I-# "lw" Load SP (sym(set 2 0+0 @0 32*32 1*32 addr e5):float32) -> (%8 0+32 @0 1*32:float32)
            I-# "mul" TensorTensor DVE (%8 0+32 @0 1*32:float32, %6 0+32 @0 1*32:float32) -> (%9 0+32 @0 1*32:float32) op=max
            I-# "more" Matmult PE (%9 0+32 @0 1*16:float32, %8 0+32 @8 1*16:float32) -> (%14 0+16 @0 1*16:float32) accumulation_flag=4
            I-# "one" Matmult PE (%8 0+32 @0 1*16:float32, %9 0+32 @8 1*16:float32) -> (%15 0+16 @0 1*16:float32) accumulation_flag=3
            I-# "pc" TensorCopy DVE (%15 0+16 @0 1*16:float32) -> (%16 0+16 @0 1*16:float32)
            I-# "sc" Save SP (%16 0+16 @0 1*16:float32) -> (sym(set 4 0+0 @0 16*16 1*16 addr e6):float32)
            I-# "s1" TensorTensor DVE (%9 0+32 @0 1*32:float32, %6 0+32 @0 1*32:float32) -> (%6 0+32 @0 1*32:float32) op=add
          }
        }
        I-# "stop" Matmult PE (%6 0+32 @0 1*16:float32, %7 0+32 @16 1*16:float32) -> (%14 0+16 @0 1*16:float32) accumulation_flag=6
        I-# "ac" TensorTensor DVE (%14 0+16 @0 1*16:float32, %5 0+16 @0 1*16:float32) -> (%5 0+16 @0 1*16:float32) op=add
        I-# "qs" TensorTensor DVE (%17 0+16 @0 1*16:float32, %5 0+16 @0 1*16:float32) -> (%5 0+16 @0 1*16:float32) op=add
        I-# "rs" TensorTensor DVE (%5 0+32 @0 1*32:float32, sym(set 10 0+32 @0 32*32 1*32 addr e3):float32) -> (%5 0+32 @0 1*32:float32) op=add
      }
    }
    I-# "sb" Save SP (%5 0+32 @0 1*32:float32) -> (%3 @0 32*32 1*32:float32)
  }
}
`

func parsed(t testing.TB, text string) *program {
	t.Helper()
	for n := 1; strings.Contains(text, "I-# "); n++ {
		text = strings.Replace(text, "I-# ", fmt.Sprintf("I-%d ", n), 1)
	}
	p := &program{}
	if err := ir.Parse([]byte(text), &p.m); err != nil {
		t.Fatal(err)
	}
	p.f = p.m.Entry
	return p
}

// With ever less memory the program computes the same until it does not fit; every kind of value has been spilled by then, and
// spill code stands in the body of the access that it serves.
func TestNestedLoopsSpill(t *testing.T) {
	var ws Workspace
	homes := map[string]bool{}
	psum := 0
	for _, banks := range []int{0, 2} {
		fits := true
		for size := int64(1400); fits; size -= 112 {
			p := parsed(t, nestedLoops)
			loop := map[ir.Block]bool{}
			for b, r := range p.m.Blocks.All() {
				loop[b] = r.Parent != 0
			}
			opt := Options{StripBytes: 8, SBBytes: size, PsumBanks: banks}
			if _, _, err := WithLoop(&p.m, p.f, &ws, opt); err != nil {
				if target.ClassOf(err) != target.Limit || size > 600 {
					t.Fatalf("%d bytes: %v", size, err)
				}
				fits = false
				continue
			}
			p = parsed(t, nestedLoops)
			ps, _ := sameWithLoops(t, p, &ws, opt)
			psum += ps.Spilled
			for s, r := range p.m.Sets.All() {
				if r.Flags&ir.SetSpillHome == 0 {
					continue
				}
				name := p.m.Names.String(p.m.Names.Root(r.Name))
				homes[name] = true
				for b := range p.m.Blocks.All() {
					for _, i := range p.m.OrderOf(b) {
						if fl := p.m.Insts.At(i).Flags; fl&(ir.InstSpill|ir.InstReload) != 0 && p.m.Insts.At(i).Block != b {
							t.Fatalf("%d bytes: %s of %s stands in another block than its own", size, p.m.InstName(i), s)
						}
					}
				}
			}
		}
	}
	for _, name := range []string{"sum", "s", "ring", "local"} {
		if !homes[name] {
			t.Errorf("%s was never spilled: %v", name, homes)
		}
	}
	if psum == 0 {
		t.Error("nothing in PSUM was spilled with two banks")
	}
}

// In all of the memory: values of one turn share bytes, what is carried shares with none of the loop, and the ring is two blocks
// with an index modulo two.
func TestNestedLoopsPlaced(t *testing.T) {
	p := parsed(t, nestedLoops)
	var ws Workspace
	sameWithLoops(t, p, &ws, Options{})
	m := &p.m
	var lin ssa.Linear
	var r ssa.Ranges
	lin.Flatten(m, p.f)
	r.Build(m, &lin, target.SpaceSB, ssa.BySlot, nil)
	points := map[string][2]ssa.Point{}
	for _, u := range r.Units {
		points[m.LocName(u.First)] = [2]ssa.Point{u.Start, u.End}
	}
	for name, want := range map[string][2]ssa.Point{"%sum": {0, 21}, "%s": {5, 17}, "%w": {9, 13}, "%local": {10, 16}, "%c": {13, 15}, "%r0": {1, 20}, "%r1": {2, 20}} {
		if points[name] != want {
			t.Errorf("%s lives in %v, want %v", name, points[name], want)
		}
	}
	ring := m.Locs.At(10).Set
	if n := m.Sets.At(ring).Count; n != 2 || m.Sets.At(ring).LiveN != 0 || m.Ints.Of(m.Sets.At(ring).Shape)[0] != 2 {
		t.Errorf("the ring has %d blocks", n)
	}
	text := string(ir.Append(nil, m))
	if !strings.Contains(text, "mod e") || strings.Contains(text, `"r2"`) {
		t.Errorf("indices are not those of the live blocks:\n%s", text)
	}
	if again := parsed(t, text); string(ir.Append(nil, &again.m)) != text {
		t.Error("the program prints differently after parsing")
	}
}

// A group that begins in every turn and ends behind the loop, and whose partial sums a turn reads before it begins anew, stays in
// PSUM: what is copied out behind the loop would come too late.
func TestGroupsThatTurnsShare(t *testing.T) {
	const text = `rir 1
module "m" trn2
axis i1 "i" 0 3 1
expr e1 axis i1
expr e2 affine 0 e1*256
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [32 32] part -1
    %1 "A" DRAM 1 x 4096 at 0
  set "C" ExternalOutput Tensor float32 [3 16 16] part -1
    %2 "C" DRAM 1 x 3072 at 0
  set "D" ExternalOutput Tensor float32 [16 16] part -1
    %3 "D" DRAM 1 x 1024 at 0
  set "x" Internal NeuronSBTensor float32 [32 32] part 0
    %4 "x" SB 32 x 128 at 0
  set "c" Internal NeuronSBTensor float32 [16 16] part 0
    %5 "c" SB 16 x 64 at 0
  set "p" Internal NeuronPSUMTensor float32 [16 16] part 0
    %6 "p" PSUM 16 x 64 at 0
  set "q" Internal NeuronPSUMTensor float32 [16 32] part 0
    %7 "q" PSUM 16 x 128 at 0
  block "Block1" {
    I-1 "l" Load SP (%1 @0 32*32 1*32:float32) -> (%4 0+32 @0 1*32:float32)
    I-2 "q1" Matmult PE (%4 0+32 @0 1*16:float32, %4 0+32 @0 1*16:float32) -> (%7 0+16 @0 1*16:float32) accumulation_flag=3
    I-3 "q2" Matmult PE (%4 0+32 @8 1*16:float32, %4 0+32 @0 1*16:float32) -> (%7 0+16 @16 1*16:float32) accumulation_flag=3
    I-4 "z" Memset DVE () -> (%6 0+16 @0 1*16:float32) constant=0
    I-5 "L" Loop Unassigned () -> () axis i1 {
      block "body" {
        I-6 "c" TensorCopy DVE (%6 0+16 @0 1*16:float32) -> (%5 0+16 @0 1*16:float32)
        I-7 "sc" Save SP (%5 0+16 @0 1*16:float32) -> (sym(set 2 0+0 @0 16*16 1*16 addr e2):float32)
        I-8 "xx" TensorTensor DVE (%4 0+32 @0 1*32:float32, %4 0+32 @0 1*32:float32) -> (%4 0+32 @0 1*32:float32) op=add
        I-9 "m" Matmult PE (%4 0+32 @16 1*16:float32, %4 0+32 @0 1*16:float32) -> (%6 0+16 @0 1*16:float32) accumulation_flag=1
      }
    }
    I-10 "e" Matmult PE (%4 0+32 @8 1*16:float32, %4 0+32 @0 1*16:float32) -> (%6 0+16 @0 1*16:float32) accumulation_flag=6
    I-11 "d" TensorTensor DVE (%6 0+16 @0 1*16:float32, %5 0+16 @0 1*16:float32) -> (%5 0+16 @0 1*16:float32) op=add
    I-12 "d1" TensorTensor DVE (%7 0+16 @0 1*16:float32, %5 0+16 @0 1*16:float32) -> (%5 0+16 @0 1*16:float32) op=add
    I-13 "d2" TensorTensor DVE (%7 0+16 @16 1*16:float32, %5 0+16 @0 1*16:float32) -> (%5 0+16 @0 1*16:float32) op=add
    I-14 "sd" Save SP (%5 0+16 @0 1*16:float32) -> (%3 @0 16*16 1*16:float32)
  }
}
`
	p := parsed(t, text)
	var ws Workspace
	if ps, _ := sameWithLoops(t, p, &ws, Options{PsumBanks: 1}); ps.Spilled != 1 {
		t.Errorf("%d tensors spilled, want q only", ps.Spilled)
	}
	if m := &p.m; m.Locs.At(6).Space != target.SpacePSUM || m.Locs.At(7).Space == target.SpacePSUM {
		t.Errorf("p is in %s and q in %s", m.Locs.At(6).Space, m.Locs.At(7).Space)
	}
}

// A value from DRAM whose source the loop overwrites further down cannot be brought from there again.
func TestSourceThatTheLoopOverwrites(t *testing.T) {
	const text = `rir 1
module "m" trn2
axis i1 "i" 0 3 1
func "sg0000" entry {
  set "d" Internal Tensor float32 [128 32] part -1
    %1 "d" DRAM 1 x 16384 at 0
  set "D" ExternalOutput Tensor float32 [128 32] part -1
    %2 "D" DRAM 1 x 16384 at 0
  set "a" Internal NeuronSBTensor float32 [128 32] part 0
    %3 "a" SB 128 x 128 at 0
  set "x" Internal NeuronSBTensor float32 [128 32] part 0
    %4 "x" SB 128 x 128 at 0
  set "y" Internal NeuronSBTensor float32 [128 32] part 0
    %5 "y" SB 128 x 128 at 0
  block "Block1" {
    I-1 "a" Memset DVE () -> (%3 0+128 @0 1*32:float32) constant=1065353216
    I-2 "sa" Save SP (%3 0+128 @0 1*32:float32) -> (%1 @0 32*128 1*32:float32)
    I-3 "lx" Load SP (%1 @0 32*128 1*32:float32) -> (%4 0+128 @0 1*32:float32)
    I-4 "L" Loop Unassigned () -> () axis i1 {
      block "body" {
        I-5 "ax" TensorTensor DVE (%3 0+128 @0 1*32:float32, %4 0+128 @0 1*32:float32) -> (%3 0+128 @0 1*32:float32) op=add
        I-6 "y" TensorTensor DVE (%3 0+128 @0 1*32:float32, %3 0+128 @0 1*32:float32) -> (%5 0+128 @0 1*32:float32) op=add
        I-7 "sy" Save SP (%5 0+128 @0 1*32:float32) -> (%1 @0 32*128 1*32:float32)
      }
    }
    I-8 "sa" Save SP (%3 0+128 @0 1*32:float32) -> (%2 @0 32*128 1*32:float32)
  }
}
`
	var ws Workspace
	p := parsed(t, text)
	_, sb := sameWithLoops(t, p, &ws, Options{StripBytes: 8, SBBytes: 8 + 2*128})
	if sb.Spilled == 0 || sb.Remats != 0 {
		t.Errorf("%d spilled, %d brought from their source", sb.Spilled, sb.Remats)
	}
}

// Function after function: PSUM, SB, indices; a function comes out the same whatever was done before it in the workspace, which
// keeps no reference to the module.
func TestSeed51PerFunction(t *testing.T) {
	opt := Options{StripBytes: 8, SBBytes: 8 + 2*128, PsumBanks: 2}
	first := parsed(t, nestedLoops)
	second := parsed(t, strings.Replace(nestedLoops, "sg0000", "sg0001", 1))
	var log hearing
	var used Workspace
	opt.Log = slog.New(&log)
	for _, p := range []*program{first, second} {
		if _, _, err := WithLoop(&p.m, p.f, &used, opt); err != nil {
			t.Fatal(err)
		}
		if used.spill.m != nil || used.spill.lin != nil {
			t.Error("the workspace keeps the module")
		}
	}
	var order []string
	for _, l := range log.lines {
		if space, ok := strings.CutPrefix(l.text, "allocating "); ok {
			order = append(order, space)
		}
	}
	if !slices.Equal(order, []string{"PSUM", "SB", "PSUM", "SB"}) {
		t.Errorf("order %v of %v", order, log.lines)
	}
	fresh := parsed(t, strings.Replace(nestedLoops, "sg0000", "sg0001", 1))
	if _, _, err := WithLoop(&fresh.m, fresh.f, new(Workspace), opt); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ir.Append(nil, &fresh.m), ir.Append(nil, &second.m)) {
		t.Error("the second function depends on the first")
	}
	// Indices come last: the ring is shrunk once it has addresses.
	if s := second.m.Sets.At(second.m.Locs.At(10).Set); s.Count == 4 {
		t.Error("the ring has its virtual blocks")
	}
}

// It places PSUM and SB only: spill homes and other DRAM tensors have no address after it, and registers no number.
func TestSeed52OnChipOnly(t *testing.T) {
	p := parsed(t, nestedLoops)
	r := p.m.Regs.Add(ir.RegRow{Dtype: target.Int32, Width: 1, Engine: target.EngineSP, Phys: -1})
	p.m.Funcs.At(p.f).Regs = p.m.RegList.Add(r)
	var ws Workspace
	_, sb, err := WithLoop(&p.m, p.f, &ws, Options{StripBytes: 8, SBBytes: 8 + 2*128})
	if err != nil || sb.HomeBytes == 0 {
		t.Fatalf("%d bytes of homes, %v", sb.HomeBytes, err)
	}
	homes := 0
	for l, x := range p.m.Locs.All() {
		switch allocated := x.Flags&ir.LocAllocated != 0; {
		case x.Space.OnChip() && !allocated:
			t.Errorf("%s has no place", p.m.LocName(l))
		case x.Space == target.SpaceDRAM && allocated:
			t.Errorf("%s in DRAM has an address", p.m.LocName(l))
		case x.Space == target.SpaceDRAM && p.m.Sets.At(x.Set).Flags&ir.SetSpillHome != 0:
			homes++
		}
	}
	fl := p.m.Funcs.At(p.f).Flags
	if homes == 0 || fl&ir.FuncDRAMPlaced != 0 || fl&ir.FuncPsumPlaced == 0 || fl&ir.FuncSBPlaced == 0 || p.m.Regs.At(r).Phys != -1 {
		t.Errorf("%d homes, flags %b, register %d", homes, fl, p.m.Regs.At(r).Phys)
	}
}

// SB colours the function that PSUM left: the copies that PSUM spilled to have places.
func TestSeed53SBAfterPSUM(t *testing.T) {
	p := parsed(t, nestedLoops)
	var ws Workspace
	ps, _, err := WithLoop(&p.m, p.f, &ws, Options{PsumBanks: 2})
	if err != nil || ps.Saves == 0 {
		t.Fatalf("%d copies out of PSUM, %v", ps.Saves, err)
	}
	copies := 0
	for b := range p.m.Blocks.All() {
		for _, i := range p.m.OrderOf(b) {
			if in := p.m.Insts.At(i); in.Op == ir.OpTensorCopy && in.Flags&ir.InstSpill != 0 {
				l := p.m.Locs.At(p.m.LocOf(p.m.Outs(i)[0]))
				if l.Space != target.SpaceSB || l.Flags&ir.LocAllocated == 0 {
					t.Errorf("%s has no place in SB", p.m.LocName(p.m.LocOf(p.m.Outs(i)[0])))
				}
				copies++
			}
		}
	}
	if copies != ps.Saves {
		t.Errorf("%d of %d copies are left", copies, ps.Saves)
	}
}

// A second module through one workspace allocates nothing.
func TestWithLoopSteadyState(t *testing.T) {
	p := parsed(t, nestedLoops)
	var ws Workspace
	pass := func() {
		unplace(p)
		p.m.Funcs.At(p.f).Flags = 0
		if _, _, err := WithLoop(&p.m, p.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

// What a turn loads by its number it can load again, and needs no home.
func TestIndexedLoadIsItsOwnHome(t *testing.T) {
	const text = `rir 1
module "m" trn2
axis i1 "i" 0 3 1
axis i2 "j" 0 2 1
expr e1 axis i1
expr e2 affine 0 e1*4096
func "sg0000" entry {
  set "W" ExternalInput Tensor float32 [3 128 32] part -1
    %1 "W" DRAM 1 x 49152 at 0
  set "D" ExternalOutput Tensor float32 [128 32] part -1
    %2 "D" DRAM 1 x 16384 at 0
  set "a" Internal NeuronSBTensor float32 [128 32] part 0
    %3 "a" SB 128 x 128 at 0
  set "w" Internal NeuronSBTensor float32 [128 32] part 0
    %4 "w" SB 128 x 128 at 0
  set "y" Internal NeuronSBTensor float32 [128 32] part 0
    %5 "y" SB 128 x 128 at 0
  block "Block1" {
    I-# "a" Memset DVE () -> (%3 0+128 @0 1*32:float32) constant=1065353216
    I-# "L" Loop Unassigned () -> () axis i1 {
      block "body" {
        I-# "lw" Load SP (sym(set 1 0+0 @0 32*128 1*32 addr e2):float32) -> (%4 0+128 @0 1*32:float32)
        I-# "aw" TensorTensor DVE (%3 0+128 @0 1*32:float32, %4 0+128 @0 1*32:float32) -> (%3 0+128 @0 1*32:float32) op=add
        I-# "y" TensorTensor DVE (%3 0+128 @0 1*32:float32, %3 0+128 @0 1*32:float32) -> (%5 0+128 @0 1*32:float32) op=add
        I-# "M" Loop Unassigned () -> () axis i2 {
          block "inner" {
            I-# "ay" TensorTensor DVE (%3 0+128 @0 1*32:float32, %5 0+128 @0 1*32:float32) -> (%3 0+128 @0 1*32:float32) op=add
            I-# "aw2" TensorTensor DVE (%3 0+128 @8 1*8:float32, %4 0+128 @16 1*8:float32) -> (%3 0+128 @8 1*8:float32) op=add
          }
        }
      }
    }
    I-# "sa" Save SP (%3 0+128 @0 1*32:float32) -> (%2 @0 32*128 1*32:float32)
  }
}
`
	var ws Workspace
	p := parsed(t, text)
	_, sb := sameWithLoops(t, p, &ws, Options{StripBytes: 8, SBBytes: 8 + 2*128 + 32})
	if sb.Remats != 1 || sb.Saves != 0 {
		t.Errorf("%d of %d spilled brought from their source, %d saves\n%s", sb.Remats, sb.Spilled, sb.Saves, ir.Append(nil, &p.m))
	}
}
