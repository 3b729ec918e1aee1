package codegen

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Seed 47: lsa puts linear scan where PSUM is coloured, drops the colouring of PSUM and SBUF, and leaves the rest as it is.
func TestSeed47LinearScanInThePlane(t *testing.T) {
	for _, level := range []int{-1, 2} {
		o := NewOptions()
		o.OptLevel, o.Allocator = level, "lsa"
		got, err := o.Passes()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, n := range plane2 {
			switch n {
			case "coloring_allocator_psum":
				n = "linear_scan_allocator"
			case "coloring_allocator_sb":
				continue
			}
			want = append(want, n)
		}
		if !slices.Equal(got, want) || slices.Contains(plane2, "linear_scan_allocator") {
			t.Errorf("level %d: %v", level, got)
		}
		at := map[string]int{}
		for i, n := range got {
			at[n] = i + 1
		}
		for _, r := range rules {
			if a, b := at[r.Before], at[r.After]; a != 0 && b != 0 && a >= b {
				t.Errorf("%s must come before %s: %s", r.Before, r.After, r.Because)
			}
		}
	}
	// An explicit list is taken as it is, and colouring is the default.
	o := NewOptions()
	o.Allocator, o.Pass = "lsa", []string{"coloring_allocator_psum"}
	if got, err := o.Passes(); err != nil || !slices.Equal(got, o.Pass) {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"", "coloring"} {
		o := NewOptions()
		o.Allocator = name
		if got, err := o.Passes(); err != nil || !slices.Equal(got, plane2) {
			t.Errorf("allocator %q: %v, %v", name, got, err)
		}
	}
}

// By linear scan or by colouring the package of a model gives the same bits.
func TestLinearScanModels(t *testing.T) {
	holdToColouring(t, func(o *Options) { o.Allocator = "lsa" })
}

// holdToColouring compiles models by other allocators of PSUM and SBUF than those of the level, with all of the memory, a third of it and so
// little that something must be spilled: the packages give the same bits as those of the level do with all of it. The verifier runs after
// every pass, the simulator too for what is small.
func holdToColouring(t *testing.T, other func(*Options)) {
	type memory struct{ sb, banks int }
	for _, c := range []struct {
		model    string
		targets  []string
		simulate bool
		long     bool
		spills   memory // that it spills in
	}{
		{"zoo:mlp", targets, true, true, memory{}},
		{"zoo:mlp?layers=1&width=8&in=6&out=4&batch=3", targets, true, false, memory{}},
		{"zoo:gpt2?layers=1&seq=40&width=64&heads=2&vocab=64&positions=64", targets, true, true, memory{}},
		{"zoo:llama3-8b?ids=1&layers=1&seq=70&batch=2&width=64&heads=4&kv=2&headdim=16&ffn=48&vocab=300&dtype=f32", targets, true, true, memory{}},
		{"zoo:resnet50?size=32&width=8&classes=10", []string{"trn2"}, false, false, memory{}},
		{"zoo:mlp?layers=3&width=512&in=512&batch=256", targets, false, true, memory{25000, 1}},
		{"zoo:gpt2?layers=1&seq=128", targets, false, true, memory{26000, 4}},
		{"zoo:mlp?width=1024&batch=256&layers=3", []string{"trn2"}, false, true, memory{40000, 2}},
		{"openxla/layer_norm_1x4096x768_bf16.hlo", []string{"trn2"}, false, true, memory{}},
		{"openxla/mha_block_1x12x128x64_bf16.hlo", targets, false, true, memory{19000, 4}},
		{"neuron/linear_forward.hlo.txt", targets, true, true, memory{}},
		{"light_squeezenet.onnx", []string{"trn2"}, false, true, memory{}},
		{"light_shufflenet.onnx", []string{"trn2"}, false, true, memory{}},
	} {
		t.Run(c.model, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("a larger model")
			}
			model := c.model
			switch {
			case strings.HasSuffix(model, ".onnx"):
				model = shared(t, "onnx", "light", model)
			case !strings.HasPrefix(model, "zoo:"):
				model = shared(t, "hlo", model)
			}
			for _, tg := range c.targets {
				g, err := target.ForCodeGen(tg)
				if err != nil {
					t.Fatal(err)
				}
				build := func(use func(*Options), mem memory) ([]byte, *Result, error) {
					o := verified(tg)
					o.SBBytes, o.PSUMBanks, o.SeedWeight = mem.sb, mem.banks, 7
					o.Simulate = c.simulate && (tg == "trn2" || !testing.Short())
					use(&o)
					var w Worker
					var buf neff.Buffer
					res, err := w.Compile(context.Background(), load(t, model), &o, &buf)
					return bytes.Clone(buf.Bytes()), res, err
				}
				level := func(*Options) {}
				pkg, _, err := build(level, memory{})
				if err != nil {
					t.Fatal(err)
				}
				want := seededOutputs(t, pkg, model)
				memories := []memory{{}, {g.SBBytes / 3, (g.PSUMBanks + 2) / 3}}
				if c.spills.sb > 0 {
					memories = append(memories, c.spills)
				}
				for k, m := range memories {
					pkg, res, err := build(other, m)
					for target.ClassOf(err) == target.Limit && 0 < m.banks && m.banks < g.PSUMBanks {
						// Fewer banks than groups that are open together: the level cannot do it either.
						if _, _, err2 := build(level, m); err2 == nil {
							t.Fatalf("%s: only colouring fits %d bytes and %d banks: %v", tg, m.sb, m.banks, err)
						}
						m.banks++
						pkg, res, err = build(other, m)
					}
					if err != nil {
						t.Fatalf("%s, %d bytes and %d banks: %v", tg, m.sb, m.banks, err)
					}
					spilled := res.SB.SpilledBytes + res.PSUM.SpilledBytes
					t.Logf("%s, %d bytes and %d banks: %d bytes of %d values spilled, %d reloads", tg, m.sb, m.banks, spilled, res.SB.Spilled+res.PSUM.Spilled, res.SB.Reloads)
					if k == 2 && spilled == 0 {
						t.Errorf("%s: nothing is spilled with %d bytes and %d banks", tg, m.sb, m.banks)
					}
					if !bytes.Equal(seededOutputs(t, pkg, model), want) {
						t.Errorf("%s, %d bytes and %d banks: other numbers than by colouring", tg, m.sb, m.banks)
					}
				}
			}
		})
	}
}

// seededOutputs are outputs with the weights of seed 7.
func seededOutputs(t *testing.T, pkg []byte, model string) []byte {
	t.Helper()
	p := load(t, model)
	p.Seed(7)
	res, err := Execute(context.Background(), pkg, &RunOptions{Random: 3, HasRand: true, Weights: p})
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, o := range res.Outputs {
		all = append(all, o.Data...)
	}
	return all
}

// The published example in tiles, whose placements of its own linear scan leaves where they are.
func TestLinearScanOfTiles(t *testing.T) {
	for _, tg := range targets {
		src := bytes.Replace(reluJSON, []byte(`"gen3"`), []byte(map[string]string{"trn1": `"sunda"`, "trn2": `"gen3"`, "trn3": `"core_v4"`}[tg]), 1)
		p, err := Parse(src, "relu.json", "")
		if err != nil {
			t.Fatal(err)
		}
		o := verified(tg)
		o.Allocator, o.Simulate = "lsa", true
		pkg, _ := compile(t, p, o)
		in, want := reluData()
		res, err := Execute(context.Background(), pkg, &RunOptions{Inputs: in, Expect: want, Seeds: 5, Rtol: 1e-5, Atol: 1e-5})
		if err != nil {
			t.Fatal(err)
		}
		if f := res.Failed(); f != nil {
			t.Errorf("%s: output %s", tg, f.Diff)
		}
	}
}
