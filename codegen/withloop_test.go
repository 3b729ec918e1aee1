package codegen

import (
	"bytes"
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

// A module without loops is a special case: with the two colourings replaced the package gives the same numbers, in all of the memory
// and in a third of it, and the verifier finds nothing after any pass.
func TestWithLoopModels(t *testing.T) {
	for _, c := range []struct {
		model    string
		targets  []string
		simulate bool
		long     bool
		memory   [2]int // bytes and banks with which something must be spilled
	}{
		{"zoo:mlp", targets, true, true, [2]int{}},
		{"zoo:mlp?layers=1&width=8&in=6&out=4&batch=3", targets, true, false, [2]int{}},
		{"zoo:mlp?layers=3&width=512&in=512&batch=256", targets, false, true, [2]int{25000, 1}},
		{"zoo:gpt2?layers=1&seq=40&width=64&heads=2&vocab=64&positions=64", targets, true, true, [2]int{}},
		{"zoo:gpt2?layers=1&seq=128", []string{"trn2"}, false, true, [2]int{26000, 4}},
		{"zoo:llama3-8b?ids=1&layers=1&seq=70&batch=2&width=64&heads=4&kv=2&headdim=16&ffn=48&vocab=300&dtype=f32", targets, true, true, [2]int{}},
		{"zoo:resnet50?size=32&width=8&classes=10", []string{"trn2"}, false, false, [2]int{}},
		{"openxla/mha_block_1x12x128x64_bf16.hlo", targets, false, true, [2]int{19000, 4}},
		{"neuron/linear_forward.hlo.txt", targets, true, true, [2]int{}},
		{"light_squeezenet.onnx", []string{"trn2"}, false, true, [2]int{}},
		{"light_shufflenet.onnx", []string{"trn2"}, false, true, [2]int{}},
	} {
		t.Run(c.model, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("a larger model")
			}
			model := c.model
			switch {
			case len(model) > 5 && model[len(model)-5:] == ".onnx":
				model = shared(t, "onnx", "light", model)
			case model[:4] != "zoo:":
				model = shared(t, "hlo", model)
			}
			for _, tg := range c.targets {
				g, err := target.ForCodeGen(tg)
				if err != nil {
					t.Fatal(err)
				}
				build := func(list []string, sb, banks int) ([]byte, *Result, error) {
					o := verified(tg)
					o.Pass, o.SBBytes, o.PSUMBanks, o.Simulate, o.SeedWeight = list, sb, banks, c.simulate && tg == "trn2", 7
					var w Worker
					var buf neff.Buffer
					res, err := w.Compile(context.Background(), load(t, model), &o, &buf)
					return bytes.Clone(buf.Bytes()), res, err
				}
				pkg, _, err := build(nil, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				want := seededOutputs(t, pkg, model)
				memories := [][2]int{{0, 0}, {g.SBBytes / 3, (g.PSUMBanks + 2) / 3}}
				if c.memory[0] > 0 {
					memories = append(memories, c.memory)
				}
				for k, memory := range memories {
					sb, banks := memory[0], memory[1]
					pkg, res, err := build(withLoop(), sb, banks)
					for ; target.ClassOf(err) == target.Limit && 0 < banks && banks < g.PSUMBanks; banks++ {
						// Fewer banks than groups that are open together: the other colouring cannot do it either.
						if _, _, other := build(nil, sb, banks); other == nil {
							t.Fatalf("%s: only the plain family fits %d bytes and %d banks: %v", tg, sb, banks, err)
						}
						pkg, res, err = build(withLoop(), sb, banks+1)
					}
					if err != nil {
						t.Fatalf("%s, %d bytes and %d banks: %v", tg, sb, banks, err)
					}
					t.Logf("%s, %d bytes and %d banks: %d values spilled", tg, sb, banks, res.SB.Spilled+res.PSUM.Spilled)
					if k == 2 && res.SB.SpilledBytes+res.PSUM.SpilledBytes == 0 {
						t.Errorf("%s: nothing is spilled with %d bytes and %d banks", tg, sb, banks)
					}
					if !bytes.Equal(seededOutputs(t, pkg, model), want) {
						t.Errorf("%s, %d bytes and %d banks: other numbers than by colouring", tg, sb, banks)
					}
				}
			}
		})
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
