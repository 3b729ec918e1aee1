package tile

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readModel(t testing.TB, path string) *graph.Graph {
	t.Helper()
	data := readFile(t, path)
	g := new(graph.Graph)
	var err error
	if strings.HasSuffix(path, ".onnx") {
		err = onnx.Read(data, filepath.Dir(path), g)
	} else {
		err = hlo.Read(data, g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestHLO runs the modules that the product promises.
func TestHLO(t *testing.T) {
	dir := filepath.Join(dataDir(t), "hlo")
	for _, f := range []string{"neuron/linear_forward.hlo.txt", "openxla/layer_norm_1x4096x768_bf16.hlo", "openxla/mha_block_1x12x128x64_bf16.hlo"} {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if testing.Short() && strings.Contains(f, "layer_norm") {
				t.Skip("simulates 3 M elements")
			}
			agree(t, readModel(t, filepath.Join(dir, f)), Options{})
		})
	}
}

// TestSurvey says which of the published models are lowered, and how large.
func TestSurvey(t *testing.T) {
	if os.Getenv("SURVEY") == "" {
		t.Skip("set SURVEY to see the list")
	}
	gen, _ := target.ByLevel(30)
	var files []string
	for _, p := range []string{"hlo/*/*.hlo*", "onnx/light/*.onnx", "onnx/deeploy/*/network.onnx"} {
		m, _ := filepath.Glob(filepath.Join(dataDir(t), p))
		files = append(files, m...)
	}
	for _, f := range files {
		g := func() (g *graph.Graph) {
			defer func() { recover() }()
			return readModel(t, f)
		}()
		if g == nil {
			continue
		}
		start := time.Now()
		lo, err := lowerFor(g, gen, Options{})
		if err != nil {
			msg := err.Error()
			t.Logf("%s: %.200s", filepath.Base(f), msg)
			continue
		}
		t.Logf("%s: %d insts, %d matmuls, loaded %.1f MB, saved %.1f MB, %v", filepath.Base(f), lo.stats.Insts, lo.stats.Matmuls,
			float64(lo.stats.Loaded)/1e6, float64(lo.stats.Saved)/1e6, time.Since(start))
	}
}

// TestNetworks runs whole networks: splat weights as published, and seeded ones.
func TestNetworks(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 0.4 G multiply-adds a run")
	}
	gen, _ := target.ByLevel(30)
	for _, name := range []string{"light_squeezenet", "light_shufflenet"} {
		for _, seeded := range []bool{false, true} {
			g := readModel(t, filepath.Join(dataDir(t), "onnx", "light", name+".onnx"))
			if seeded {
				c, err := graph.Canonical(g)
				if err != nil {
					t.Fatal(err)
				}
				g = c
				if graph.SeedWeights(g, 1) == 0 {
					t.Fatal("no weights were seeded")
				}
			}
			lo, err := lowerFor(g, gen, Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ins := graph.RandomInputs(lo.g, 1)
			want, err := graph.Eval(lo.g, ins)
			if err != nil {
				t.Fatal(err)
			}
			got, err := lo.simulate(ins)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range want {
				d, err := graph.Compare(got[i], want[i], 1e-3, 1e-5)
				if err != nil || !d.OK() {
					t.Fatalf("%s, seeded %v: output %d: %v %v", name, seeded, i, d, err)
				}
			}
			t.Logf("%s, seeded %v: %d insts, %d matmuls, %.1f MB loaded, %.1f MB saved", name, seeded, lo.stats.Insts, lo.stats.Matmuls,
				float64(lo.stats.Loaded)/1e6, float64(lo.stats.Saved)/1e6)
		}
	}
}
