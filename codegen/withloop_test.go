package codegen

import (
	"context"
	"slices"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

// withLoop is the list of level 2 with the loop-aware colouring of both memories in place of the two of one each.
func withLoop() (list []string) {
	for _, n := range plane2 {
		switch n {
		case "coloring_allocator_psum":
			n = "coloring_allocator_with_loop"
		case "coloring_allocator_sb":
			continue
		}
		list = append(list, n)
	}
	return list
}

// The loop-aware colouring is a name beside the eight of the colouring driver, with a driver of its own, and no level has it yet.
func TestSeed39NinthName(t *testing.T) {
	const name = "coloring_allocator_with_loop"
	if _, ok := memalloc.Registered(name); ok || passByName[name] == nil || !passByName[name].Real {
		t.Errorf("%s is not a pass of its own", name)
	}
	for _, level := range []int{-1, 1, 2, 3} {
		for _, allocator := range []string{"coloring", "lsa"} {
			o := NewOptions()
			o.OptLevel, o.Allocator = level, allocator
			if list, err := o.Passes(); err == nil && slices.Contains(list, name) {
				t.Errorf("level %d with %s has %s", level, allocator, name)
			}
		}
	}
	at := map[string]int{}
	for i, n := range withLoop() {
		at[n] = i + 1
	}
	for _, r := range rules {
		if a, b := at[r.Before], at[r.After]; a != 0 && b != 0 && a >= b {
			t.Errorf("%s must come before %s: %s", r.Before, r.After, r.Because)
		}
	}
}

// A program with loops gets its places through a list of passes, DRAM too, checked and simulated behind each; what comes after
// refuses the loops by name.
func TestWithLoopOfTiles(t *testing.T) {
	const program = `rir 1
module "m" trn2
axis i1 "i" 0 4 1
expr e1 axis i1
expr e2 affine 0 e1*4096
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [4 128 32] part -1
    %1 "A" DRAM 1 x 65536 at 0
  set "B" ExternalOutput Tensor float32 [128 32] part -1
    %2 "B" DRAM 1 x 16384 at 0
  set "x" Internal NeuronBlockTensor float32 [4 128 32] part 1 live 2
    %3 "x0" SB 128 x 128 at 0
    %4 "x1" SB 128 x 128 at 0
    %5 "x2" SB 128 x 128 at 0
    %6 "x3" SB 128 x 128 at 0
  set "sum" Internal NeuronSBTensor float32 [128 32] part 0
    %7 "sum" SB 128 x 128 at 0
  set "d" Internal Tensor float32 [4 128 32] part -1
    %8 "d" DRAM 1 x 65536 at 0
  block "Block1" {
    I-1 "zero" Memset DVE () -> (%7 0+128 @0 1*32:float32) constant=0
    I-2 "L" Loop Unassigned () -> () axis i1 {
      block "body" {
        I-3 "ld" Load SP (sym(set 1 0+0 @0 32*128 1*32 addr e2):float32) -> (sym(set 3 0+128 @0 32*128 1*32 addr e2):float32)
        I-4 "add" TensorTensor DVE (%7 0+128 @0 1*32:float32, sym(set 3 0+128 @0 32*128 1*32 addr e2):float32) -> (%7 0+128 @0 1*32:float32) op=add
        I-5 "keep" Save SP (%7 0+128 @0 1*32:float32) -> (sym(set 5 0+0 @0 32*128 1*32 addr e2):float32)
      }
    }
    I-6 "sv" Save SP (%7 0+128 @0 1*32:float32) -> (%2 @0 32*128 1*32:float32)
  }
}
`
	upto := withLoop()[:slices.Index(withLoop(), "hbm_usage")+1]
	for _, memory := range []struct {
		sb     int
		spills bool
	}{{0, false}, {16392 + 2*128, true}} {
		p, err := Parse([]byte(program), "loop.rir", "")
		if err != nil {
			t.Fatal(err)
		}
		o := verified("")
		o.Pass, o.Simulate, o.SBBytes = upto, true, memory.sb
		_, res := compile(t, p, o)
		if res.SB.Spilled > 0 != memory.spills {
			t.Errorf("%d bytes: %d spilled", memory.sb, res.SB.Spilled)
		}
		for l, r := range p.Module.Locs.All() {
			if k := p.Module.Sets.At(r.Set).Kind; k == ir.KindInternal && r.Space != target.SpaceUnallocated && r.Flags&ir.LocAllocated == 0 {
				t.Errorf("%s has no place", p.Module.LocName(l))
			}
		}
		o.StartPass, o.Pass = "", []string{"build_fdeps"}
		var w Worker
		var buf neff.Buffer
		if _, err := w.Compile(context.Background(), p, &o, &buf); target.ClassOf(err) != target.Unsupported {
			t.Errorf("dependences of a loop: %v", err)
		}
	}
}
