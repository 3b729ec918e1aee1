package tile

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// TestLevels: the loads and saves of a dense product at each level of reuse, with the same numbers.
func TestLevels(t *testing.T) {
	const m, k, n = 256, 384, 1024
	const mt, kt, nt = 2, 3, 2
	g := model(t, func(b *B) []N {
		return []N{b.MatMul(b.Param("x", graph.BF16, m, k), b.Param("w", graph.BF16, k, n))}
	})
	for _, c := range []struct {
		level        Level
		loads, saves int64
	}{{L0, 2 * mt * nt * kt, mt * nt}, {L1, mt*kt + mt*nt*kt, mt * nt}, {L2, mt + 1, mt}} {
		agree(t, g, Options{Level: c.level})
		for _, gen := range gens() {
			lo, err := lowerFor(g, gen, Options{Level: c.level})
			if err != nil {
				t.Fatal(err)
			}
			if l, s := lo.stats.ByOpcode[ir.OpLoad], lo.stats.ByOpcode[ir.OpSave]; l != c.loads || s != c.saves || lo.stats.Matmuls != mt*nt*kt {
				t.Errorf("%s: level %d: %d loads, %d saves, %d matmuls; want %d, %d, %d", gen.Name, c.level, l, s, lo.stats.Matmuls, c.loads, c.saves, mt*nt*kt)
			}
		}
	}
	// Values do not stay on chip below L2, and chains of operators agree.
	g = model(t, func(b *B) []N {
		x := b.Param("x", graph.F32, 200, 300)
		y := b.Softmax(b.MatMul(x, b.Param("w", graph.F32, 300, 700)), 1)
		return []N{b.MatMul(b.Unary(graph.OpTanh, y), b.Param("v", graph.F32, 700, 90))}
	})
	for _, level := range []Level{L0, L1} {
		agree(t, g, Options{Level: level})
	}
}

// TestWeightTraffic: operands of large products cross DRAM as often as the blocks of tokens that fit demand.
func TestWeightTraffic(t *testing.T) {
	for _, c := range []struct {
		m, k, n int64
		passes  [3]int64 // of the weights, by generation
	}{
		{512, 4096, 14336, [3]int64{1, 1, 1}}, {512, 14336, 4096, [3]int64{2, 1, 1}}, {2048, 4096, 4096, [3]int64{2, 2, 2}},
		{2048, 14336, 4096, [3]int64{8, 4, 4}}, {1, 4096, 14336, [3]int64{1, 1, 1}}, {1024, 768, 3072, [3]int64{1, 1, 1}},
	} {
		for i, gen := range gens() {
			g := model(t, func(b *B) []N {
				return []N{b.MatMul(b.Param("x", graph.BF16, c.m, c.k), b.Param("w", graph.BF16, c.k, c.n))}
			})
			lo, err := lowerFor(g, gen, Options{})
			if err != nil {
				t.Fatal(err)
			}
			x, w := 2*c.m*c.k, 2*c.k*c.n
			if most := x + c.passes[i]*w; lo.stats.Loaded < x+w || lo.stats.Loaded > most {
				t.Errorf("%s: [%d,%d]·[%d,%d]: %d bytes loaded; operands are %d and %d, at most %d may be", gen.Name, c.m, c.k, c.k, c.n, lo.stats.Loaded, x, w, most)
			}
			if want := (c.m + 127) / 128 * c.n / 512 * c.k / 128; lo.stats.Matmuls != want {
				t.Errorf("%s: %v: %d matmuls, want %d", gen.Name, c, lo.stats.Matmuls, want)
			}
		}
	}
}
