package codegen

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// placers are the allocators of PSUM and SBUF; the first is that of the level.
var placers = []struct {
	name string
	use  func(*Options)
}{
	{"coloring", func(*Options) {}},
	{"with loop", func(o *Options) { o.Pass = withLoop() }},
	{"lsa", func(o *Options) { o.Allocator = "lsa" }},
}

// size is a part of the memories; 0 is all.
type size struct{ sb, banks int }

func third(t testing.TB, tg string) size {
	t.Helper()
	g, err := target.ForCodeGen(tg)
	if err != nil {
		t.Fatal(err)
	}
	return size{g.SBBytes / 3, g.PSUMBanks / 3}
}

// bench compiles by every allocator and runs what comes out, each package once.
type bench struct {
	w   [3]Worker
	r   Runner
	ran map[string][]byte
}

// agree compiles a model by all allocators in all of the memories and in parts of them: the packages give the same bits, those of the
// interpreter within tolerance.
func (b *bench) agree(t *testing.T, p *Program, tg string, set func(*Options), against bool, sizes ...size) {
	t.Helper()
	b.ran = map[string][]byte{}
	var want []byte
	for _, s := range append([]size{{}}, sizes...) {
		for a, by := range placers {
			o := verified(tg)
			o.SBBytes, o.PSUMBanks, o.SeedWeight = s.sb, s.banks, 7
			set(&o)
			by.use(&o)
			var buf neff.Buffer
			res, err := b.w[a].Compile(context.Background(), p, &o, &buf)
			if err != nil {
				t.Fatalf("%s by %s in %d bytes and %d banks: %v", tg, by.name, s.sb, s.banks, err)
			}
			if res.SB.Spilled+res.PSUM.Spilled > 0 {
				t.Logf("%s by %s in %d bytes and %d banks: %d values of SBUF and %d of PSUM spilled, %d and %d copies and reloads", tg, by.name, s.sb, s.banks,
					res.SB.Spilled, res.PSUM.Spilled, res.SB.Saves+res.SB.Reloads, res.PSUM.Saves+res.PSUM.Reloads)
			}
			got, ok := b.ran[string(buf.Bytes())]
			if !ok {
				opt := &RunOptions{Random: 3, HasRand: true, Weights: p, Rtol: -1, Atol: -1}
				if against && want == nil {
					opt.Against = p
				}
				run, err := b.r.Execute(context.Background(), buf.Bytes(), opt)
				if err != nil {
					t.Fatalf("%s by %s in %d bytes and %d banks: %v", tg, by.name, s.sb, s.banks, err)
				}
				if f := run.Failed(); f != nil {
					t.Errorf("%s: output %q: %s", tg, f.Name, f.Diff)
				}
				for _, x := range run.Outputs {
					got = append(got, x.Data...)
				}
				b.ran[string(buf.Bytes())] = got
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s by %s in %d bytes and %d banks: other numbers than by colouring in all of the memory", tg, by.name, s.sb, s.banks)
			}
		}
	}
}

// Every model that runs gives the same numbers by all allocators, in all of SBUF and PSUM, in a third of both, and in so little that
// something must be spilled. The verifier runs after every pass, and the simulator of the IR too for what is small. Missing are
// models whose runs take minutes.
func TestAllocatorsAgree(t *testing.T) {
	one := []string{"trn2"}
	const (
		simulate = 1 << iota
		long
		elsewhere // held against the interpreter by another test
	)
	var b bench
	for _, c := range []struct {
		model   string
		targets []string
		flags   int
		spills  size // that it spills in
	}{
		{"zoo:mlp", targets, simulate | long, size{}},
		{"zoo:mlp?layers=1&width=8&in=6&out=4&batch=3", targets, simulate, size{}},
		{"zoo:mlp?layers=3&width=512&in=512&batch=256", targets, long, size{25000, 1}},
		{"zoo:mlp?width=1024&batch=256&layers=3&dtype=bf16", one, long, size{30000, 2}},
		{"zoo:gpt2?layers=1&seq=40&width=64&heads=2&vocab=64&positions=64", targets, simulate | long, size{}},
		{"zoo:gpt2?layers=1&seq=128", targets, long, size{26000, 1}},
		{"zoo:gpt2?layers=2&seq=24&ids=1&head=1&vocab=96&width=48&heads=4&ffn=96", one, 0, size{17000, 1}},
		{"zoo:gpt2-medium?layers=1&seq=24", one, long, size{}},
		{"zoo:gpt2-large?layers=1&seq=24", []string{"trn1"}, long, size{}},
		{"zoo:gpt2-xl?layers=1&seq=24", []string{"trn3"}, long, size{}},
		{"zoo:llama2-7b?layers=1&seq=64&width=256&heads=8&kv=8&headdim=32&ffn=688", targets, long, size{}},
		{"zoo:llama3-8b?ids=1&layers=1&seq=70&batch=2&width=64&heads=4&kv=2&headdim=16&ffn=48&vocab=300&dtype=f32", targets, simulate | long, size{}},
		{"zoo:llama3-8b?layers=1&seq=128&width=512&heads=8&kv=2&headdim=64&ffn=1024&ids=1&head=1&vocab=512", one, long, size{}},
		{"zoo:llama3-70b?layers=1&seq=32&width=512&heads=16&kv=2&headdim=32&ffn=1024", []string{"trn3"}, long, size{}},
		{"zoo:llama3.1-405b?layers=1&seq=32&width=512&heads=32&kv=2&headdim=16&ffn=1024", []string{"trn1"}, long, size{}},
		{"zoo:mistral-7b?layers=1&seq=64&width=512&heads=8&kv=2&headdim=64&ffn=1024&rope=param", targets, long, size{}},
		{"zoo:resnet50?size=32&width=8&classes=10", targets, 0, size{}},
		{"zoo:resnet101?size=32&width=8&classes=10", one, long, size{}},
		{"zoo:resnet152?size=32&width=8&classes=10&dtype=bf16", []string{"trn3"}, long, size{}},
		{"hlo/openxla/dynamic_slice_loop_1x2048x768_bf16.hlo", targets, long, size{}},
		{"hlo/openxla/layer_norm_1x4096x768_bf16.hlo", one, long, size{}},
		{"hlo/openxla/mha_block_1x12x128x64_bf16.hlo", targets, long, size{19000, 1}},
		{"hlo/openxla/sum_axis_1x4096x1024_bf16.hlo", targets, long, size{}},
		{"hlo/neuron/linear_forward.hlo.txt", targets, simulate, size{}},
		{"hlo/neuron/linear_backward.hlo.txt", targets, simulate, size{}},
		{"hlo/neuron/linear_adam.hlo.txt", targets, simulate, size{}},
		{"onnx/deeploy/CCT_1_32_32_32/network.onnx", targets, long, size{}},
		{"onnx/deeploy/CCT_2_32_32_128_Opset20/network.onnx", targets, long, size{20000, 1}},
		{"onnx/deeploy/TinyViT_Demo/network.onnx", targets, long, size{}},
		{"onnx/light/light_squeezenet.onnx", one, long | elsewhere, size{}},
		{"onnx/light/light_shufflenet.onnx", one, long | elsewhere, size{}},
		{"onnx/light/light_inception_v1.onnx", one, long | elsewhere, size{}},
		{"onnx/light/light_resnet50.onnx", one, long | elsewhere, size{}},
		{"onnx/light/light_inception_v2.onnx", []string{"trn3"}, long, size{}},
		{"onnx/light/light_densenet121.onnx", one, long, size{}},
	} {
		t.Run(c.model, func(t *testing.T) {
			if c.flags&long != 0 && testing.Short() {
				t.Skip("a larger model")
			}
			model := c.model
			if !strings.HasPrefix(model, "zoo:") {
				model = shared(t, strings.Split(model, "/")...)
			}
			for _, tg := range c.targets {
				sizes := []size{third(t, tg)}
				if c.spills != (size{}) {
					sizes = append(sizes, c.spills)
				}
				small := func(o *Options) { o.Simulate = c.flags&simulate != 0 && tg == "trn2" }
				b.agree(t, load(t, model), tg, small, c.flags&elsewhere == 0, sizes...)
			}
		})
	}
}

// What one instruction touches is more than a third of SBUF: every allocator says so, which tensor it is, how much it needs and of
// how much, instead of placing it.
func TestAllocatorsRefuse(t *testing.T) {
	says := regexp.MustCompile(`SB overflow: %\S+ needs \d+ bytes a partition of \d+`)
	for _, model := range [][]string{{"onnx", "light", "light_vgg19.onnx"}, {"hlo", "neuron", "llama_prefill64_tp1.hlo.txt"}} {
		p := load(t, shared(t, model...))
		for _, by := range placers {
			o := verified("trn2")
			s := third(t, "trn2")
			o.SBBytes, o.PSUMBanks, o.SeedWeight = s.sb, s.banks, 7
			by.use(&o)
			var w Worker
			_, err := w.Compile(context.Background(), p, &o, &neff.Buffer{})
			if target.ClassOf(err) != target.Limit || err == nil || !says.MatchString(err.Error()) {
				t.Errorf("%s by %s: %v", model, by.name, err)
			}
		}
	}
}

// Published single-operator and single-layer cases through the package: none fails, at least as many pass as stated, and by all allocators,
// in all of SBUF and PSUM and in a third of both, the outputs are the same bits. The targets take turns.
func TestONNXCases(t *testing.T) {
	const least = 640
	passed, refused := 0, 0
	var b bench
	for _, z := range [][]string{{"onnx", "node", "onnx-node-tests-1.21.zip"}, {"onnx", "pytorch", "onnx-pytorch-tests.zip"}} {
		if testing.Short() && z[1] == "node" {
			continue // 647 cases
		}
		cases, err := FindCases(unzip(t, shared(t, z...)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			tg := targets[i%len(targets)]
			var want []NamedTensor
			for k := range 2 * len(placers) {
				o, by := verified(tg), &placers[k%len(placers)]
				if k >= len(placers) {
					s := third(t, tg)
					o.SBBytes, o.PSUMBanks = s.sb, s.banks
				}
				by.use(&o)
				r := b.w[k%len(placers)].RunCase(context.Background(), &cases[i], &o, &RunOptions{Rtol: 1e-3, Atol: 1e-5})
				if r.Verdict == Unsupported && k == 0 {
					if refused++; r.Detail == "" {
						t.Errorf("%s: refused without naming an operator or type", cases[i].Name)
					}
					break
				}
				if r.Verdict != Passed {
					t.Errorf("%s: %s by %s in %d bytes and %d banks: %s", cases[i].Name, tg, by.name, o.SBBytes, o.PSUMBanks, r.Detail)
					break
				}
				if k == 0 {
					passed, want = passed+1, r.Run.Outputs
				}
				for j := range want {
					if !bytes.Equal(r.Run.Outputs[j].Data, want[j].Data) {
						t.Errorf("%s: %s by %s in %d bytes and %d banks: output %q has other bits", cases[i].Name, tg, by.name, o.SBBytes, o.PSUMBanks, want[j].Name)
					}
				}
			}
		}
	}
	t.Logf("%d passed, %d refused by name", passed, refused)
	if passed < least && !testing.Short() {
		t.Errorf("%d cases passed; at least %d must", passed, least)
	}
}
