package onnx

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// smallModels are the sources of damaged files: the smallest models of the data, or of the writer's test when there are none.
func smallModels(t testing.TB) [][]byte {
	var out [][]byte
	for _, c := range allZipCases(t) {
		if len(c.model) < 600 {
			out = append(out, c.model)
		}
	}
	return out
}

// TestPrefixes reads every prefix of small models: an error or a graph, never a panic.
func TestPrefixes(t *testing.T) {
	var g graph.Graph
	models := smallModels(t)
	for i := 0; i < len(models); i += 8 {
		for n := range models[i] {
			if err := Read(models[i][:n:n], "", &g); err == nil && graph.Check(&g) != nil {
				t.Fatalf("model %d, %d bytes: an inconsistent graph", i, n)
			}
		}
	}
}

// TestFlips reads models with random bytes changed, and bounds the memory that takes.
func TestFlips(t *testing.T) {
	var g graph.Graph
	models := smallModels(t)
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reads := 0
	for range rounds {
		for _, m := range models {
			b := append([]byte(nil), m...)
			for range 1 + rng.IntN(4) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
			if err := Read(b, "", &g); err == nil {
				if err := graph.Check(&g); err != nil {
					t.Fatalf("an inconsistent graph: %v", err)
				}
			}
			reads++
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / uint64(reads); per > 4<<20 {
		t.Errorf("%d bytes allocated for a model under 600 bytes", per)
	}
	t.Logf("%d damaged models", reads)
}

func FuzzRead(f *testing.F) {
	for i, m := range smallModels(f) {
		if i%10 == 0 {
			f.Add(m)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var g graph.Graph
		if err := Read(data, "", &g); err == nil {
			if err := graph.Check(&g); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = ReadTensor(data)
		IsONNX(data)
	})
}

func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(dataDir(b), "light", "light_densenet121.onnx"))
	if err != nil {
		b.Fatal(err)
	}
	var g graph.Graph
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Read(data, "", &g); err != nil {
			b.Fatal(err)
		}
	}
}
