package codegen

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
)

// A transformer with published outputs, on every target under 20 interleavings.
func TestTransformerPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("20 interleavings for three targets")
	}
	cases, err := FindCases(shared(t, "onnx", "deeploy", "CCT_2_32_32_128_Opset20"))
	if err != nil || len(cases) != 1 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, target := range targets {
		o := verified(target)
		var w Worker
		r := w.RunCase(context.Background(), &cases[0], &o, &RunOptions{Rtol: 1e-3, Atol: 1e-5, Seeds: 20})
		if r.Verdict != Passed {
			t.Errorf("%s: %s", target, r.Detail)
		}
	}
}

// Classification networks: the published outputs, and seeded, layer-scaled weights against the interpreter.
func TestNetworks(t *testing.T) {
	if testing.Short() {
		t.Skip("networks of up to 4 GMAC")
	}
	for _, name := range []string{"light_resnet50", "light_bvlc_alexnet", "light_inception_v1", "light_shufflenet"} {
		t.Run(name, func(t *testing.T) {
			file := shared(t, "onnx", "light", name+".onnx")
			cases, err := FindCases(filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			for i := range cases {
				if cases[i].Name != name {
					continue
				}
				o := NewOptions()
				var w Worker
				if r := w.RunCase(context.Background(), &cases[i], &o, &RunOptions{Rtol: -1, Atol: -1, Seeds: 3}); r.Verdict != Passed {
					t.Errorf("published output: %s", r.Detail)
				}
			}
			o := NewOptions()
			o.SeedWeight = 7
			pkg, _ := compile(t, load(t, file), o)
			match(t, pkg, file, 7, 3)
		})
	}
}

// matmuls counts the matmuls of a model whose operator name ends in one of words; all without words.
func matmuls(t *testing.T, model string, words ...string) (n int) {
	t.Helper()
	o := NewOptions()
	o.Pass = []string{"report_stats"}
	var w Worker
	if _, err := w.Compile(context.Background(), load(t, model), &o, &neff.Buffer{}); err != nil {
		t.Fatal(err)
	}
	for b := range w.m.Blocks.All() {
		for _, i := range w.m.OrderOf(b) {
			if !w.m.Insts.At(i).Op.Is(ir.FlagMatmul) || w.m.AttrBool(i, ir.KeyIsTranspose) {
				continue
			}
			if len(words) == 0 {
				n++
				continue
			}
			src := w.m.Names.String(w.m.Source.Get(i))
			for _, word := range words {
				if strings.HasSuffix(src, word) {
					n++
					break
				}
			}
		}
	}
	return n
}

// Levels of data reuse differ in what they load, not in matmuls or results.
func TestTileLevels(t *testing.T) {
	const model = "zoo:mlp?width=1024&batch=256&layers=3"
	var loads [3]int64
	for level := range loads {
		o := verified("trn2")
		o.TileLevel, o.SeedWeight = level, 3
		pkg, res := compile(t, load(t, model), o)
		match(t, pkg, model, 3, 2)
		loads[level] = res.Tile.ByOpcode[ir.OpLoad]
		if want := int64(2 * (2*1 + 2*8 + 1*8)); res.Tile.Matmuls != want {
			t.Errorf("level %d: %d matmuls, want %d", level, res.Tile.Matmuls, want)
		}
	}
	if loads[0] <= loads[1] || loads[1] <= loads[2] {
		t.Errorf("loads of levels 0, 1, 2: %d; each must take fewer than the one before", loads)
	}
}

// Published counts: the projections of a Llama layer; the convolutions of ResNet-50 and its classifier.
func TestMatmulCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("a program of 80,000 instructions")
	}
	if n := matmuls(t, "zoo:llama3-8b?layers=1&seq=2048", "query", "key", "value", "output", "gate", "up", "down"); n != 53248 {
		t.Errorf("%d matmuls in the projections of a Llama layer, want 53248", n)
	}
	if n, c := matmuls(t, "zoo:resnet50"), matmuls(t, "zoo:resnet50", "classifier"); n-c != 1986 || c != 32 {
		t.Errorf("%d matmuls in the convolutions of ResNet-50 and %d in its classifier, want 1986 and 32", n-c, c)
	}
}
