package codegen

import (
	_ "embed"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// reluJSON is C = relu(AᵀB) by hand: two loads, a product, an eviction, a save. C[64,256] fp32, A[128,64] and B[128,256] bf16.
//
//go:embed testdata/relu.json
var reluJSON []byte

// reluData draws A and B and computes C in float64: small multiples of a power of two, so that every sum is exact.
func reluData() (in, want []NamedTensor) {
	val := func(i int) float64 { return float64(i*i%23-11) / 16 }
	a, b := make([]float64, 128*64), make([]float64, 128*256)
	for i := range a {
		a[i] = val(i)
	}
	for i := range b {
		b[i] = val(3*i + 1)
	}
	c := make([]float64, 64*256)
	for m := range 64 {
		for n := range 256 {
			x := 0.0
			for k := range 128 {
				x += a[k*64+m] * b[k*256+n]
			}
			c[m*256+n] = math.Max(x, 0)
		}
	}
	in = []NamedTensor{{"A", graph.TensorOf(graph.BF16, []int64{128, 64}, a...)}, {"B", graph.TensorOf(graph.BF16, []int64{128, 256}, b...)}}
	return in, []NamedTensor{{"C", graph.TensorOf(graph.F32, []int64{64, 256}, c...)}}
}

// published is the example of the data-model notes beside the shared data, as it stands there.
func published(t *testing.T) []byte {
	t.Helper()
	notes, err := os.ReadFile(filepath.Join(filepath.Dir(shared(t, "..", "reference")), "reference", "ir-and-json.md"))
	if err != nil {
		t.Skip("no data-model notes beside the module")
	}
	_, rest, ok := strings.Cut(string(notes), "## 8.")
	if !ok {
		t.Skip("the notes have no section 8")
	}
	_, rest, _ = strings.Cut(rest, "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	return []byte(example)
}
