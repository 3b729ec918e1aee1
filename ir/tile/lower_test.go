package tile

import (
	"math"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

type B = graph.Builder
type N = graph.Node

func TestElementwise(t *testing.T) {
	for _, dims := range [][]int64{nil, {1}, {7}, {128}, {129}, {1000}, {3, 5}, {200, 77}, {2, 3, 4, 5}, {300, 1, 513}, {2, 3, 2, 2, 3, 2, 5}} {
		for _, d := range []graph.Dtype{graph.F32, graph.BF16, graph.F16} {
			agree(t, model(t, func(b *B) []N {
				x, y := b.Param("x", d, dims...), b.Param("y", d, dims...)
				z := b.Add(b.Mul(x, y), b.Like(x, 0.5))
				z = b.Unary(graph.OpExp, z)
				return []N{b.Max(z, y), b.Div(x, b.Add(b.Unary(graph.OpAbs, y), b.Like(x, 1)))}
			}), Options{})
		}
	}
}

func TestSoftmax(t *testing.T) {
	for _, dims := range [][]int64{{1, 8}, {5, 1}, {130, 77}, {3, 4, 50}, {2, 2, 9, 33}} {
		for _, d := range []graph.Dtype{graph.F32, graph.BF16} {
			for ax := range dims {
				agree(t, model(t, func(b *B) []N {
					x := b.Param("x", d, dims...)
					m := b.ReduceKeep(graph.ReduceMax, x, int64(ax))
					e := b.Unary(graph.OpExp, b.Sub(x, m))
					return []N{b.Div(e, b.ReduceKeep(graph.ReduceSum, e, int64(ax)))}
				}), Options{})
			}
		}
	}
}

func TestMatmul(t *testing.T) {
	for _, c := range [][3]int64{{1, 1, 1}, {1, 7, 3}, {128, 128, 512}, {130, 200, 600}, {5, 300, 1100}, {257, 64, 33}} {
		for _, d := range []graph.Dtype{graph.F32, graph.BF16} {
			agree(t, model(t, func(b *B) []N {
				x, w, bias := b.Param("x", d, c[0], c[1]), b.Param("w", d, c[1], c[2]), b.Param("b", d, c[2])
				y := b.Add(b.MatMul(x, w), bias)
				return []N{b.Unary(graph.OpRelu, y)}
			}), Options{})
		}
	}
}

func win(size, stride, lo, hi, lhs, rhs int64) graph.Window {
	return graph.Window{Size: size, Stride: stride, PadLow: lo, PadHigh: hi, LhsDilate: lhs, RhsDilate: rhs}
}

func TestConv(t *testing.T) {
	for _, c := range []struct {
		name      string
		x, w      []int64
		ws        []graph.Window
		groups    int64
		transpose bool
	}{
		{"1x1", []int64{1, 3, 5, 5}, []int64{4, 3, 1, 1}, []graph.Window{win(1, 1, 0, 0, 1, 1), win(1, 1, 0, 0, 1, 1)}, 1, false},
		{"3x3 pad", []int64{2, 5, 9, 7}, []int64{6, 5, 3, 3}, []graph.Window{win(3, 1, 1, 1, 1, 1), win(3, 1, 1, 1, 1, 1)}, 1, false},
		{"stride", []int64{1, 130, 17, 15}, []int64{140, 130, 3, 3}, []graph.Window{win(3, 2, 1, 0, 1, 1), win(3, 2, 0, 1, 1, 1)}, 1, false},
		{"dilated", []int64{1, 3, 20, 21}, []int64{2, 3, 3, 2}, []graph.Window{win(3, 1, 2, 2, 1, 2), win(2, 2, 0, 0, 1, 3)}, 1, false},
		{"lhs dilated", []int64{1, 3, 6, 5}, []int64{2, 3, 3, 3}, []graph.Window{win(3, 1, 2, 2, 2, 1), win(3, 1, 1, 2, 3, 1)}, 1, false},
		{"1d", []int64{2, 4, 600}, []int64{3, 4, 5}, []graph.Window{win(5, 1, 2, 2, 1, 1)}, 1, false},
		{"3d", []int64{1, 3, 5, 6, 7}, []int64{4, 3, 2, 3, 2}, []graph.Window{win(2, 1, 0, 1, 1, 1), win(3, 2, 1, 1, 1, 1), win(2, 1, 0, 0, 1, 2)}, 1, false},
		{"large", []int64{1, 3, 60, 61}, []int64{5, 3, 7, 7}, []graph.Window{win(7, 2, 3, 3, 1, 1), win(7, 2, 3, 3, 1, 1)}, 1, false},
		{"image wide", []int64{2, 1, 9, 50}, []int64{5, 1, 2, 11}, []graph.Window{win(2, 1, 0, 1, 1, 1), win(11, 3, 7, 2, 1, 2)}, 1, false},
		{"image spread", []int64{2, 2, 31, 20}, []int64{5, 2, 6, 2}, []graph.Window{win(6, 4, 7, 5, 1, 6), win(2, 1, 0, 1, 1, 1)}, 1, false},
		{"image tall", []int64{1, 3, 40, 9}, []int64{130, 3, 5, 2}, []graph.Window{win(5, 4, 9, 30, 1, 1), win(2, 1, 3, 0, 2, 1)}, 1, false},
		{"groups", []int64{1, 6, 8, 8}, []int64{9, 2, 3, 3}, []graph.Window{win(3, 1, 1, 1, 1, 1), win(3, 1, 1, 1, 1, 1)}, 3, false},
		{"groups packed", []int64{1, 160, 4, 4}, []int64{80, 8, 3, 3}, []graph.Window{win(3, 1, 1, 1, 1, 1), win(3, 1, 1, 1, 1, 1)}, 20, false},
		{"groups wide", []int64{1, 300, 4, 4}, []int64{280, 150, 1, 1}, []graph.Window{win(1, 1, 0, 0, 1, 1), win(1, 1, 0, 0, 1, 1)}, 2, false},
		{"depthwise", []int64{1, 150, 9, 8}, []int64{150, 1, 3, 3}, []graph.Window{win(3, 1, 1, 1, 1, 1), win(3, 2, 1, 1, 1, 1)}, 150, false},
		{"multiplier", []int64{1, 5, 9, 8}, []int64{15, 1, 3, 3}, []graph.Window{win(3, 1, 1, 1, 1, 1), win(3, 1, 0, 0, 1, 1)}, 5, false},
		{"depthwise 3d", []int64{1, 5, 4, 5, 6}, []int64{5, 1, 2, 2, 2}, []graph.Window{win(2, 1, 0, 0, 1, 1), win(2, 1, 0, 0, 1, 1), win(2, 1, 1, 0, 1, 1)}, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range []graph.Dtype{graph.F32, graph.BF16} {
				agree(t, model(t, func(b *B) []N {
					x, w, bias := b.Param("x", d, c.x...), b.Param("w", d, c.w...), b.Param("b", d, c.w[0])
					y := b.Conv(x, w, c.ws, c.groups)
					return []N{b.Unary(graph.OpRelu, b.Add(y, b.Broadcast(bias, []int64{1}, b.Dims(y))))}
				}), Options{})
			}
		})
	}
}

// Few channels that an earlier operator leaves in SBUF are stacked from there.
func TestStackedResident(t *testing.T) {
	for _, d := range []graph.Dtype{graph.F32, graph.BF16} {
		g := model(t, func(b *B) []N {
			x, v, w := b.Param("x", d, 2, 20, 9, 8), b.Param("v", d, 3, 20, 1, 1), b.Param("w", d, 7, 3, 3, 3)
			one, three := win(1, 1, 0, 0, 1, 1), win(3, 2, 1, 1, 1, 1)
			y := b.Unary(graph.OpTanh, b.Conv(x, v, []graph.Window{one, one}, 1))
			return []N{b.Conv(y, w, []graph.Window{three, three}, 1)}
		})
		agree(t, g, Options{})
		lo, err := lowerFor(g, gens()[1], Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := lo.stats.ByOpcode[ir.OpDMACopy]; n != 3 {
			t.Errorf("%d copies on chip, want one for each of 3 rows of the window", n)
		}
	}
}

func TestPool(t *testing.T) {
	one := win(1, 1, 0, 0, 1, 1)
	for _, c := range []struct {
		name string
		x    []int64
		ws   []graph.Window
	}{
		{"2x2", []int64{1, 3, 6, 6}, []graph.Window{one, one, win(2, 2, 0, 0, 1, 1), win(2, 2, 0, 0, 1, 1)}},
		{"overlap pad", []int64{2, 70, 9, 8}, []graph.Window{one, one, win(3, 2, 1, 1, 1, 1), win(3, 1, 1, 0, 1, 1)}},
		{"dilated", []int64{1, 3, 12, 13}, []graph.Window{one, one, win(3, 1, 0, 0, 1, 2), win(3, 2, 2, 2, 1, 3)}},
		{"1d", []int64{2, 3, 40}, []graph.Window{one, one, win(5, 3, 0, 2, 1, 1)}},
		{"3d", []int64{1, 3, 6, 7, 8}, []graph.Window{one, one, win(2, 2, 0, 0, 1, 1), win(3, 2, 1, 1, 1, 1), win(2, 1, 0, 1, 1, 1)}},
		{"global", []int64{1, 3, 6, 7}, []graph.Window{one, one, win(6, 1, 0, 0, 1, 1), win(7, 1, 0, 0, 1, 1)}},
		{"half global", []int64{1, 3, 6, 7}, []graph.Window{one, one, win(6, 1, 0, 0, 1, 1), win(3, 1, 1, 0, 1, 1)}},
		{"channels", []int64{2, 9, 5, 4}, []graph.Window{one, win(5, 1, 2, 2, 1, 1), one, one}},
		{"big", []int64{1, 2, 5, 5}, []graph.Window{one, one, win(5, 1, 4, 4, 1, 1), win(5, 1, 4, 4, 1, 1)}},
		{"holes", []int64{1, 2, 5, 5}, []graph.Window{one, one, win(2, 1, 0, 0, 2, 1), win(2, 1, 1, 1, 3, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range []graph.Dtype{graph.F32, graph.BF16} {
				agree(t, model(t, func(b *B) []N {
					x := b.Param("x", d, c.x...)
					outs := []N{b.ReduceWindow(graph.ReduceMax, x, c.ws), b.ReduceWindow(graph.ReduceMin, x, c.ws), b.ReduceWindow(graph.ReduceSum, x, c.ws)}
					if c.name != "holes" {
						outs = append(outs, b.AvgPool(x, c.ws, true), b.AvgPool(x, c.ws, false))
					}
					return outs
				}), Options{})
			}
		})
	}
}

// TestConstantWeights: weights as the model has them are re-laid for products, small ones in the program and large ones by
// recipe.
func TestConstantWeights(t *testing.T) {
	for _, n := range []int64{60, 300} { // the convolution is too large to embed, the linear layer is not
		recipes := 0
		g := model(t, func(b *B) []N {
			x := b.Param("x", graph.F32, 2, 40, 5, 5)
			b.SetLabel("conv.weight")
			w := b.Splat(graph.F32, []int64{n, 40, 3, 3}, 1)
			b.SetLabel("linear.weight")
			v := b.Splat(graph.F32, []int64{9, n * 2}, 1)
			y := b.Conv(x, w, []graph.Window{win(3, 2, 1, 1, 1, 1), win(3, 1, 0, 0, 1, 1)}, 1)
			y = b.Reshape(b.Reduce(graph.ReduceMax, y, 3), 2*3, n)
			y = b.Concat(1, y, y)
			return []N{b.Dot(y, v, nil, nil, []int64{1}, []int64{1})}
		})
		if graph.SeedWeights(g, 1) != 2 {
			t.Fatal("both weights should be seeded")
		}
		agree(t, g, Options{})
		lo, err := lowerFor(g, gens()[1], Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range lo.m.Consts.Rows() {
			if c.Recipe != 0 {
				recipes++
			}
		}
		if want := map[int64]int{60: 1, 300: 1}[n]; recipes != want {
			t.Errorf("%d constants have a recipe, want %d", recipes, want)
		}
	}
}

func TestRowOperations(t *testing.T) {
	for _, dims := range [][]int64{{5}, {3, 9}, {130, 7}, {2, 3, 300}, {4, 1, 6}} {
		for ax := range dims {
			for _, sb := range []int64{0, 640} {
				agree(t, model(t, func(b *B) []N {
					x := b.Param("x", graph.F32, dims...)
					q := b.Convert(b.Mul(x, b.Like(x, 3)), graph.S8) // with many equal elements
					return []N{b.ArgMax(x, ax, false, graph.S64), b.ArgMin(x, ax, true, graph.S32), b.ArgMax(q, ax, false, graph.S32), b.ArgMax(q, ax, true, graph.S64),
						b.CumSum(x, ax, false, false), b.CumSum(x, ax, true, true), b.CumSum(b.Transpose(x, reversedAxes(len(dims))...), ax, false, true)}
				}), Options{TileSBBytes: sb})
			}
		}
		last := dims[len(dims)-1]
		for _, k := range []int64{1, min(5, last), min(11, last), last} {
			agree(t, model(t, func(b *B) []N {
				x := b.Param("x", graph.F32, dims...)
				v, i := b.TopK(x, k, true, graph.S64)
				w, j := b.TopK(x, k, false, graph.S32)
				return []N{v, i, b.Unary(graph.OpNeg, w), j}
			}), Options{})
		}
	}
}

func reversedAxes(n int) (p []int64) {
	for i := n - 1; i >= 0; i-- {
		p = append(p, int64(i))
	}
	return p
}

// TestMatmulCounts: products and convolutions take exactly the matmuls of the closed formulas, and what can stay in SBUF
// crosses DRAM once.
func TestMatmulCounts(t *testing.T) {
	ceil := func(a, b int64) int64 { return (a + b - 1) / b }
	for _, c := range [][4]int64{{1, 256, 200, 512}, {1, 2048, 256, 1024}, {1, 200, 77, 300}, {3, 128, 64, 600}, {1, 1, 1000, 33}} {
		g := model(t, func(b *B) []N {
			return []N{b.MatMul(b.Param("x", graph.BF16, c[0], c[1], c[2]), b.Param("w", graph.BF16, c[0], c[2], c[3]))}
		})
		for _, gen := range gens() {
			lo, err := lowerFor(g, gen, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := c[0] * ceil(c[1], 128) * ceil(c[3], 512) * ceil(c[2], 128); lo.stats.Matmuls != want {
				t.Errorf("%s: %v: %d matmuls, want %d", gen.Name, c, lo.stats.Matmuls, want)
			}
			bytes := 2 * c[0] * (c[1]*c[2] + c[2]*c[3])
			if lo.stats.Loaded != bytes || lo.stats.Saved != 2*c[0]*c[1]*c[3] {
				t.Errorf("%s: %v: %d bytes loaded, %d saved; operands are %d, the result %d", gen.Name, c, lo.stats.Loaded, lo.stats.Saved, bytes, 2*c[0]*c[1]*c[3])
			}
		}
	}
	for _, c := range []struct{ ci, co, h, k, s int64 }{{64, 64, 56, 3, 1}, {64, 256, 56, 1, 1}, {256, 512, 28, 1, 2}, {512, 512, 7, 3, 1}, {3, 64, 112, 7, 2}} {
		g := model(t, func(b *B) []N {
			w := win(c.k, c.s, c.k/2, c.k/2, 1, 1)
			x := b.Param("x", graph.F32, 1, c.ci, c.h*c.s, c.h*c.s)
			return []N{b.Unary(graph.OpRelu, b.Conv(x, b.Splat(graph.F32, []int64{c.co, c.ci, c.k, c.k}, 0.01), []graph.Window{w, w}, 1))}
		})
		lo, err := lowerFor(g, gens()[1], Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows := c.k // of the window: stacked on partitions when there are few channels
		if c.ci <= fewChannels {
			rows = 1
		}
		if want := ceil(c.co, 128) * ceil(c.h, min(512/c.h, c.h)) * ceil(c.ci, 128) * rows * c.k; lo.stats.Matmuls != want {
			t.Errorf("%+v: %d matmuls, want %d", c, lo.stats.Matmuls, want)
		}
	}
	// A chain of layers reads its input and weights, and writes its result: nothing else crosses DRAM.
	g := model(t, func(b *B) []N {
		x := b.Param("x", graph.F32, 256, 512)
		y := b.Softmax(b.MatMul(b.Unary(graph.OpTanh, b.MatMul(x, b.Param("w", graph.F32, 512, 512))), b.Param("v", graph.F32, 512, 256)), 1)
		return []N{y}
	})
	lo, err := lowerFor(g, gens()[1], Options{})
	if err != nil {
		t.Fatal(err)
	}
	if in, out := int64(4*(256*512+512*512+512*256)), int64(4*256*256); lo.stats.Loaded != in || lo.stats.Saved != out {
		t.Errorf("%d bytes loaded, %d saved; want %d and %d", lo.stats.Loaded, lo.stats.Saved, in, out)
	}
}

// A window over many columns and rows: no instruction may read more than 65536 elements a partition.
func TestWideWindows(t *testing.T) {
	agree(t, model(t, func(b *graph.Builder) []graph.Node {
		x := b.Param("x", graph.F32, 1, 16, 1, 127)
		return []graph.Node{b.ReduceWindow(graph.ReduceSum, x, []graph.Window{win(1, 1, 0, 0, 1, 1), win(1, 1, 0, 0, 2, 1), win(1, 1, 0, 0, 1, 1), win(127, 2, 0, 0, 2, 1)})}
	}), Options{})
}

// TestNarrowFloats: engines saturate where arithmetic leaves an 8-bit float type, and the model's types have infinities or NaN.
func TestNarrowFloats(t *testing.T) {
	for _, c := range []struct {
		d        graph.Dtype
		max, sum float64 // the largest number, and twice it
	}{{graph.F8E5M2, 57344, math.Inf(1)}, {graph.F8E3M4, 15.5, math.Inf(1)}, {graph.F8E4M3FN, 448, math.NaN()}} {
		g := model(t, func(b *B) []N {
			x := b.Param("x", c.d, 3)
			sum := b.Add(x, x)
			wide := b.Convert(sum, graph.F32)
			return []N{wide, b.Convert(b.Unary(graph.OpNeg, sum), graph.F32), b.Clamp(b.Like(wide, -1), wide, b.Like(wide, 1e9)), b.Convert(b.Reduce(graph.ReduceMax, sum, 0), graph.F32),
				b.Convert(b.Convert(x, graph.F8E4M3FN), graph.F32)}
		})
		in := graph.TensorOf(c.d, []int64{3}, c.max, 1, -c.max)
		want, err := graph.Eval(g, []graph.Tensor{in})
		if err != nil {
			t.Fatal(err)
		}
		if got := want[0].Floats(); got[0] != c.sum && !math.IsNaN(c.sum) || math.IsNaN(c.sum) != math.IsNaN(got[0]) || got[1] != 2 {
			t.Fatalf("%s: the interpreter gives %v", c.d, got)
		}
		agreeOn(t, g, Options{}, []graph.Tensor{in})
	}
}

// TestConvAxes: a moving operand walks three axes; batch and three dimensions are four, in one bank or in several.
func TestConvAxes(t *testing.T) {
	for _, dims := range [][]int64{{5, 1, 3, 9, 4}, {20, 1, 3, 9, 4}, {40, 2, 4, 11, 3}} {
		agree(t, model(t, func(b *B) []N {
			x := b.Param("x", graph.F32, dims...)
			w := b.Weight(graph.F32, []int64{3, dims[1], 2, 1, 1}, 1, 1)
			return []N{b.Conv(x, w, []graph.Window{win(2, 1, 0, 0, 1, 1), win(1, 2, 0, 0, 1, 1), win(1, 2, 0, 0, 2, 1)}, 1)}
		}), Options{})
	}
}

// TestWideToNarrow: 64-bit integers that engines cannot compare become 8-bit floats, with overflow.
func TestWideToNarrow(t *testing.T) {
	for _, d := range []graph.Dtype{graph.F8E5M2, graph.F8E4M3FN, graph.F8E3M4} {
		g := model(t, func(b *B) []N {
			return []N{b.Convert(b.Convert(b.Param("x", graph.S64, 4), d), graph.F32)}
		})
		agreeOn(t, g, Options{}, []graph.Tensor{graph.TensorOfInts(graph.S64, []int64{4}, 3, -7, 1<<40, -1<<40)})
	}
}

// TestWideSigns: 64-bit integers change their sign by being read otherwise.
func TestWideSigns(t *testing.T) {
	g := model(t, func(b *B) []N {
		x := b.Param("x", graph.S64, 4)
		return []N{b.Convert(x, graph.U64), b.Convert(b.Convert(x, graph.U64), graph.F32)}
	})
	agreeOn(t, g, Options{}, []graph.Tensor{graph.TensorOfInts(graph.S64, []int64{4}, 3, -7, 1<<40, -1<<40)})
}

// TestWideConstants: repeated 64-bit elements, of one word and of two.
func TestWideConstants(t *testing.T) {
	agree(t, model(t, func(b *B) []N {
		x := b.Param("x", graph.F32, 3, 70)
		p := b.Compare(graph.DirGT, x, b.Like(x, 0))
		i := b.Convert(b.Convert(x, graph.S32), graph.S64)
		return []N{b.Convert(b.Scalar(graph.F32, -1), graph.S64), b.Ints(graph.S64, []int64{3, 70}, 5), b.Select(p, i, b.Ints(graph.S64, []int64{3, 70}, -3<<40+7)),
			b.Pad(i, b.Ints(graph.S64, nil, 1<<33), []int64{1, 0}, []int64{0, 2}, nil), b.Concat(0, i, b.Ints(graph.S64, []int64{2, 70}, -1))}
	}), Options{})
}
