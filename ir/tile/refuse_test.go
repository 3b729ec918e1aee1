package tile

import (
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// TestGiants: a program of astronomical size is refused at once, by the operator that makes it so, with need and limit.
func TestGiants(t *testing.T) {
	gen, _ := target.ByLevel(30)
	for _, c := range []struct {
		name  string
		build func(b *B) []N
		opt   Options
		want  []string
	}{
		{"product", func(b *B) []N {
			b.SetLabel("giant")
			return []N{b.MatMul(b.Param("x", graph.BF16, 1<<17, 1<<15), b.Param("w", graph.BF16, 1<<15, 1<<17))}
		}, Options{HBMBytes: 1 << 50}, []string{"giant", "instructions", "the limit is 4000000"}},
		{"elementwise", func(b *B) []N {
			x := b.Param("x", graph.F32, 1<<22, 1<<20)
			b.SetLabel("huge")
			return []N{b.Unary(graph.OpExp, x)}
		}, Options{HBMBytes: 1 << 60}, []string{"huge", "instructions"}},
		{"DRAM", func(b *B) []N {
			x := b.Param("x", graph.F32, 1<<20, 1<<13)
			b.SetLabel("wide")
			return []N{b.MatMul(b.Unary(graph.OpExp, x), b.Param("w", graph.F32, 1<<13, 1))}
		}, Options{}, []string{"bytes of DRAM", "the window of a core is 25769803776"}},
		{"one instruction too many", func(b *B) []N {
			b.SetLabel("last straw")
			return []N{b.Unary(graph.OpExp, b.Param("x", graph.F32, 128, 512))}
		}, Options{MaxInstructions: 2}, []string{"last straw", "3 instructions", "the limit is 2"}},
		{"many layers", func(b *B) []N {
			x := b.Param("x", graph.F32, 4, 1<<16)
			b.SetLabel("layer")
			w := b.Param("w", graph.F32, 1<<16, 1<<16)
			for range 1000 {
				x = b.Unary(graph.OpRelu, b.MatMul(x, w))
			}
			return []N{x}
		}, Options{HBMBytes: 1 << 50}, []string{"layer", "instructions"}},
		{"convolution", func(b *B) []N {
			x := b.Param("x", graph.BF16, 1, 1<<15, 64, 64)
			b.SetLabel("wide")
			w := win(5, 1, 2, 2, 1, 1)
			return []N{b.Conv(x, b.Param("w", graph.BF16, 1<<15, 1<<15, 5, 5), []graph.Window{w, w}, 1)}
		}, Options{HBMBytes: 1 << 50}, []string{"wide", "instructions"}},
		{"filling", func(b *B) []N {
			x := b.Param("x", graph.F32, 3)
			b.SetLabel("long")
			return []N{b.Pad(x, b.Splat(graph.F32, nil, 0), []int64{0}, []int64{1 << 45}, nil)}
		}, Options{HBMBytes: 1 << 60}, []string{"long", "instructions"}},
		{"transfers", func(b *B) []N {
			x := b.Param("x", graph.F32, 64, 3, 64, 3, 16, 3, 16, 2, 2)
			b.SetLabel("shuffle")
			return []N{b.Transpose(x, 8, 6, 4, 2, 0, 7, 5, 3, 1)}
		}, Options{MaxInstructions: 100}, []string{"shuffle", "instructions"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := model(t, c.build)
			start := time.Now()
			var m ir.Module
			_, err := Lower(g, gen, c.opt, &m)
			if target.ClassOf(err) != target.Limit {
				t.Fatalf("not refused as a limit: %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if m.Insts.Len() > 1 {
				t.Errorf("%d instructions were emitted", m.Insts.Len()-1)
			}
			if d := time.Since(start); d > time.Second {
				t.Errorf("refused after %v", d)
			}
		})
	}
}

// TestUnsupported: what is not lowered is refused by the name of the operator or type.
func TestUnsupported(t *testing.T) {
	gen, _ := target.ByLevel(30)
	for _, c := range []struct {
		subject string
		build   func(b *B) []N
	}{
		{"f64", func(b *B) []N { return []N{b.Unary(graph.OpExp, b.Param("x", graph.F64, 3))} }},
		{"s32", func(b *B) []N { return []N{b.Add(b.Param("x", graph.S32, 3), b.Param("y", graph.S32, 3))} }},
		{"s32", func(b *B) []N {
			return []N{b.MatMul(b.Param("x", graph.S32, 3, 3), b.Param("y", graph.S32, 3, 3))}
		}},
		{"dynamic-update-slice", func(b *B) []N {
			return []N{b.DynamicUpdateSlice(b.Param("x", graph.F32, 5), b.Param("y", graph.F32, 2), b.Param("i", graph.S32))}
		}},
	} {
		_, err := lowerFor(model(t, c.build), gen, Options{})
		if te, ok := err.(*target.Error); !ok || te.Class != target.Unsupported || te.Subject != c.subject {
			t.Errorf("%s: %v", c.subject, err)
		}
	}
}
