package codegen

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
)

// HLO modules of real models compile for every target, and their packages give the interpreter's numbers under 20
// interleavings with the same bits, no race and no deadlock.
func TestHLOModels(t *testing.T) {
	if testing.Short() {
		t.Skip("20 interleavings of three models for three targets")
	}
	for _, m := range [][]string{
		{"hlo", "neuron", "linear_forward.hlo.txt"}, {"hlo", "openxla", "layer_norm_1x4096x768_bf16.hlo"},
		{"hlo", "openxla", "mha_block_1x12x128x64_bf16.hlo"},
	} {
		file := shared(t, m...)
		for _, target := range targets {
			t.Run(m[2]+"/"+target, func(t *testing.T) {
				pkg, _ := compile(t, load(t, file), verified(target))
				match(t, pkg, file, 0, 20)
			})
		}
	}
}

// A whole network: the published output, and seeded weights against the interpreter.
func TestSqueezeNet(t *testing.T) {
	if testing.Short() {
		t.Skip("a network of 0.35 GMAC, twice")
	}
	file := shared(t, "onnx", "light", "light_squeezenet.onnx")
	published, err := ReadTensors(shared(t, "onnx", "light", "light_squeezenet_output_0.pb"))
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, file)
	pkg, _ := compile(t, p, verified("trn2"))
	published[0].Name = ""
	res, err := Execute(context.Background(), pkg, &RunOptions{
		Inputs: rampInputs(p.Graph), Expect: published, Weights: p, Seeds: 3, Rtol: -1, Atol: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := res.Failed(); f != nil {
		t.Errorf("published output: %s", f.Diff)
	}
	o := verified("trn2")
	o.SeedWeight = 7
	pkg, _ = compile(t, load(t, file), o)
	match(t, pkg, file, 7, 3)
}

// relu(AᵀB) from JSON, on every target; a package for one target is refused by the machine of another.
func TestModuleFromJSON(t *testing.T) { testRelu(t, reluJSON) }

// The published example, whose SBUF placements run into the runtime's strip on later targets.
func TestPublishedModule(t *testing.T) { testRelu(t, published(t)) }

func testRelu(t *testing.T, module []byte) {
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			src := bytes.Replace(module, []byte(`"gen3"`), []byte(map[string]string{"trn1": `"sunda"`, "trn2": `"gen3"`, "trn3": `"core_v4"`}[target]), 1)
			p, err := Parse(src, "relu.json", "")
			if err != nil {
				t.Fatal(err)
			}
			pkg, _ := compile(t, p, verified(target))
			in, want := reluData()
			res, err := Execute(context.Background(), pkg, &RunOptions{Inputs: in, Expect: want, Seeds: 20, Rtol: 1e-5, Atol: 1e-5})
			if err != nil {
				t.Fatal(err)
			}
			if f := res.Failed(); f != nil {
				t.Errorf("output %s", f.Diff)
			}
			for _, other := range targets {
				_, err := Execute(context.Background(), pkg, &RunOptions{Inputs: in, Target: other})
				if (err == nil) != (other == target) {
					t.Errorf("a %s package on a %s machine: %v", target, other, err)
				}
			}
		})
	}
}

// Ten compiles with one worker, and ten with two at a time, give identical bytes.
func TestSameBytes(t *testing.T) {
	p := "zoo:mlp?layers=2"
	first, _ := compile(t, load(t, p), verified("trn2"))
	var w Worker
	o := verified("trn2")
	for k := range 9 {
		var buf neff.Buffer
		if _, err := w.Compile(context.Background(), load(t, p), &o, &buf); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), first) {
			t.Fatalf("compile %d through a used worker gives other bytes", k+2)
		}
	}
	var wg sync.WaitGroup
	got := make([][]byte, 10)
	for half := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var w Worker
			o := verified("trn2")
			for k := half; k < len(got); k += 2 {
				q, err := Load(p)
				if err != nil {
					t.Error(err)
					return
				}
				var buf neff.Buffer
				if _, err := w.Compile(context.Background(), q, &o, &buf); err != nil {
					t.Error(err)
					return
				}
				got[k] = bytes.Clone(buf.Bytes())
			}
		}()
	}
	wg.Wait()
	for k := range got {
		if !bytes.Equal(got[k], first) {
			t.Errorf("compile %d of two at a time gives other bytes", k)
		}
	}
}

// The ordering rules hold on the plane, every name of the plane is registered, and the registry is sorted.
func TestPlane(t *testing.T) {
	at := map[string]int{}
	for i, n := range plane2 {
		if _, ok := passByName[n]; !ok {
			t.Errorf("%s is in the plane and not in the registry", n)
		}
		at[n] = i
	}
	for _, r := range rules {
		a, okA := at[r.Before]
		b, okB := at[r.After]
		if okA && okB && a >= b {
			t.Errorf("%s must come before %s: %s", r.Before, r.After, r.Because)
		}
		if passByName[r.Before] == nil || passByName[r.After] == nil {
			t.Errorf("rule %s before %s names a pass that is not registered", r.Before, r.After)
		}
	}
	for i := 1; i < len(registry); i++ {
		if registry[i-1].Name >= registry[i].Name {
			t.Errorf("%s stands before %s", registry[i-1].Name, registry[i].Name)
		}
	}
}
