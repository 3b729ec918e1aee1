package tile

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// integers is a tensor of the given elements.
func integers(d graph.Dtype, dims []int64, vals ...int64) graph.Tensor {
	x := graph.NewTensor(d, dims...)
	for i, v := range vals {
		b := binary.LittleEndian.AppendUint64(nil, uint64(v))
		copy(x.Data[i*d.Size():], b[:d.Size()])
	}
	return x
}

func TestTake(t *testing.T) {
	for _, c := range []struct {
		x, idx []int64
		at     int
	}{
		{[]int64{5}, []int64{3}, 0},
		{[]int64{10, 7}, []int64{4}, 0},
		{[]int64{10, 7}, nil, 0},
		{[]int64{10, 7}, []int64{300}, 0},
		{[]int64{10, 7}, []int64{2, 3}, 1},
		{[]int64{3, 9, 40}, []int64{130}, 1},
		{[]int64{3, 9, 100}, []int64{2, 1, 2}, 1},
		{[]int64{2, 3, 4, 5}, []int64{3}, 2},
		{[]int64{2, 3, 4, 5}, []int64{3}, 3},
		{[]int64{1, 70000}, []int64{2}, 0},
	} {
		for _, d := range []graph.Dtype{graph.F32, graph.BF16, graph.S8, graph.S64} {
			for _, id := range []graph.Dtype{graph.S32, graph.S64, graph.U8} {
				agree(t, model(t, func(b *B) []N {
					x, i := b.Param("x", d, c.x...), b.Param("i", id, c.idx...)
					return []N{b.Take(x, i, c.at)}
				}), Options{})
			}
		}
	}
}

// First and last row, repeated rows, and negative indices, which count from the end.
func TestTakeWraps(t *testing.T) {
	idx := []int64{0, 8, -1, -9, 3, 3, -6, 8, 0}
	for _, id := range []graph.Dtype{graph.S8, graph.S16, graph.S32, graph.S64} {
		g := model(t, func(b *B) []N {
			x, i := b.Param("x", graph.F32, 9, 9), b.Param("i", id, 9)
			y := b.Param("y", graph.F32, 9, 9)
			j := b.Param("j", id, 1, 9)
			return []N{b.Take(x, i, 0), b.Take(x, i, 1), b.TakeAlong(y, j, 1), b.TakeAlong(y, j, 0)}
		})
		ins := graph.RandomInputs(g, 3)
		ins[1], ins[3] = integers(id, []int64{9}, idx...), integers(id, []int64{1, 9}, idx...)
		agreeOn(t, g, Options{}, ins)
	}
}

// An index outside of its dimension is an error wherever the dimension stands, never another element.
func TestTakeOutside(t *testing.T) {
	for _, at := range []int{0, 1, 2, 3} {
		for _, bad := range []int64{9, -10, 10, 17, 1 << 24, -(1 << 30), -(1 << 25) - 3, 1<<31 - 1, -1 << 31} {
			g := model(t, func(b *B) []N {
				if at == 3 {
					return []N{b.TakeAlong(b.Param("x", graph.F32, 2, 9), b.Param("i", graph.S32, 1, 2), 1)}
				}
				dims := []int64{3, 4, 5}
				dims[at] = 9
				return []N{b.Take(b.Param("x", graph.F32, dims...), b.Param("i", graph.S32, 2), at)}
			})
			lo, err := lowerFor(g, gens()[1], Options{})
			if err != nil {
				t.Fatal(err)
			}
			ins := graph.RandomInputs(g, 1)
			ins[1] = integers(graph.S32, ins[1].Dims, 8, bad)
			if _, err := lo.simulate(ins); target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "is out of [0, ") {
				t.Errorf("index %d of dimension %d with 9: %v", bad, at, err)
			}
		}
	}
}

func TestTakeAlong(t *testing.T) {
	for _, c := range []struct {
		x, idx []int64
		at     int
	}{
		{[]int64{3, 3}, []int64{2, 3}, 0}, {[]int64{3, 3}, []int64{3, 2}, 1}, {[]int64{7}, []int64{20}, 0},
		{[]int64{4, 5, 6}, []int64{3, 9, 6}, 1}, {[]int64{4, 5, 6}, []int64{4, 5, 1}, 2}, {[]int64{20, 30}, []int64{1, 30}, 0},
	} {
		for _, d := range []graph.Dtype{graph.F32, graph.F16, graph.U8, graph.S64} {
			agree(t, model(t, func(b *B) []N {
				return []N{b.TakeAlong(b.Param("x", d, c.x...), b.Param("i", graph.S64, c.idx...), c.at)}
			}), Options{})
		}
	}
}

// gatherOf builds XLA's gather.
func gatherOf(b *B, x, idx N, offset, collapsed, starts []int64, vector int64, sizes, ob, ib []int64) N {
	g := b.G
	return b.Node(graph.OpGather, 0, []N{x, idx}, g.IntsAttr(graph.AttrOffsetDims, offset...), g.IntsAttr(graph.AttrCollapsedDims, collapsed...),
		g.IntsAttr(graph.AttrStartIndexMap, starts...), g.IntsAttr(graph.AttrIndexVectorDim, vector), g.IntsAttr(graph.AttrSliceSizes, sizes...),
		g.IntsAttr(graph.AttrOperandBatch, ob...), g.IntsAttr(graph.AttrIndicesBatch, ib...))
}

// Indices are drawn far outside of the operand: they are clamped so that the window fits.
func TestGather(t *testing.T) {
	for _, c := range []struct {
		name                      string
		x, idx                    []int64
		offset, collapsed, starts []int64
		vector                    int64
		sizes, ob, ib             []int64
	}{
		{"embedding", []int64{50, 24}, []int64{9, 1}, []int64{1}, []int64{0}, []int64{0}, 1, []int64{1, 24}, nil, nil},
		{"implicit vector", []int64{50, 24}, []int64{3, 4}, []int64{2}, []int64{0}, []int64{0}, 2, []int64{1, 24}, nil, nil},
		{"columns", []int64{50, 24}, []int64{9, 1}, []int64{0}, []int64{1}, []int64{1}, 1, []int64{50, 1}, nil, nil},
		{"part of a row", []int64{50, 24}, []int64{9, 1}, []int64{1}, []int64{0}, []int64{0}, 1, []int64{1, 10}, nil, nil},
		{"window", []int64{50, 24}, []int64{9, 2}, []int64{1, 2}, nil, []int64{0, 1}, 1, []int64{3, 5}, nil, nil},
		{"window, swapped", []int64{50, 24}, []int64{2, 9}, []int64{0, 2}, nil, []int64{1, 0}, 0, []int64{3, 5}, nil, nil},
		{"rows together", []int64{50, 24}, []int64{9, 1}, []int64{1, 2}, nil, []int64{0}, 1, []int64{7, 24}, nil, nil},
		{"elements", []int64{5, 6, 7}, []int64{30, 3}, nil, []int64{0, 1, 2}, []int64{2, 0, 1}, 1, []int64{1, 1, 1}, nil, nil},
		{"batching", []int64{4, 30, 8}, []int64{4, 5, 1}, []int64{2}, []int64{1}, []int64{1}, 2, []int64{1, 1, 8}, []int64{0}, []int64{0}},
		{"one position", []int64{50, 24}, []int64{1}, []int64{0}, []int64{0}, []int64{0}, 0, []int64{1, 24}, nil, nil},
		{"all of it", []int64{5, 6}, []int64{3, 2}, []int64{1, 2}, nil, []int64{0, 1}, 1, []int64{5, 6}, nil, nil},
		{"unmapped", []int64{5, 6, 7}, []int64{3, 1}, []int64{1}, []int64{0, 1}, []int64{1}, 1, []int64{1, 1, 7}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, id := range []graph.Dtype{graph.S32, graph.S64, graph.U32, graph.U64} {
				g := model(t, func(b *B) []N {
					x, idx := b.Param("x", graph.BF16, c.x...), b.Param("i", id, c.idx...)
					return []N{gatherOf(b, x, idx, c.offset, c.collapsed, c.starts, c.vector, c.sizes, c.ob, c.ib)}
				})
				ins := graph.RandomInputs(g, 5)
				n := int64(ins[1].Len())
				vals := make([]int64, n)
				for i := range vals {
					vals[i] = int64(i*i*7%61) - 3
					if i%7 == 5 {
						vals[i] = 1<<31 - 1
					}
					if vals[i] < 0 && (id == graph.U32 || id == graph.U64) {
						vals[i] = 1
					}
				}
				ins[1] = integers(id, c.idx, vals...)
				agreeOn(t, g, Options{}, ins)
			}
		})
	}
}

func TestDynamicSliceOfParameters(t *testing.T) {
	for _, c := range [][2][]int64{{{10}, {3}}, {{40, 30}, {5, 30}}, {{40, 30}, {40, 7}}, {{4, 5, 6}, {2, 1, 3}}, {{3, 200, 64}, {3, 1, 64}}, {{7}, {7}}} {
		g := model(t, func(b *B) []N {
			var at []N
			for i := range c[0] {
				if i == 1 && len(c[0]) == 3 {
					at = append(at, b.Scalar(graph.S32, 2)) // known
					continue
				}
				at = append(at, b.Param(string(rune('i'+i)), graph.S32))
			}
			return []N{b.DynamicSlice(b.Param("x", graph.F32, c[0]...), at, c[1]...)}
		})
		for _, at := range []int64{0, 2, -4, 1000} {
			ins := graph.RandomInputs(g, 5)
			for i := range ins {
				if ins[i].Dtype == graph.S32 {
					ins[i] = integers(graph.S32, nil, at)
				}
			}
			agreeOn(t, g, Options{}, ins)
		}
	}
}

// The table is computed, the indices are, and what reads the rows joins them.
func TestTakeAmongOthers(t *testing.T) {
	for _, sb := range []int64{0, 4096} {
		agree(t, model(t, func(b *B) []N {
			x := b.Param("x", graph.F32, 40, 300)
			table := b.Unary(graph.OpTanh, x)
			ids := b.ArgMax(b.Param("s", graph.F32, 150, 40), 1, false, graph.S32)
			rows := b.Take(table, ids, 0)
			mean := b.Mul(b.ReduceKeep(graph.ReduceSum, rows, 1), b.Scalar(graph.F32, 1.0/300))
			return []N{b.Sub(rows, mean), b.Unary(graph.OpExp, rows), b.MatMul(rows, b.Transpose(table, 1, 0)), rows}
		}), Options{TileSBBytes: sb})
		agree(t, model(t, func(b *B) []N { // the table as views of something else, and rows of rows
			x := b.Param("x", graph.BF16, 30, 4, 50)
			i := b.Param("i", graph.S64, 17)
			y := b.Take(b.Transpose(x, 1, 0, 2), b.Param("j", graph.S32, 5), 1)
			return []N{b.Take(b.SliceDim(x, 2, 10, 45), i, 0), b.Take(b.Reverse(x, 0), i, 0), y, b.Take(y, b.Param("k", graph.S32), 0),
				b.Take(b.Broadcast(b.Param("v", graph.F32, 6), []int64{1}, []int64{9, 6}), b.Param("l", graph.S32, 3), 0)}
		}), Options{TileSBBytes: sb})
	}
}

// An embedding is one transfer of indices and one gather for 128 of them, beside the two operations that wrap negative ones.
func TestEmbeddingIsSmall(t *testing.T) {
	g := model(t, func(b *B) []N {
		return []N{b.Take(b.Param("table", graph.BF16, 50257, 768), b.Param("ids", graph.S32, 4, 128), 0)}
	})
	lo, err := lowerFor(g, gens()[1], Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := lo.stats.ByOpcode[ir.OpIndirectLoad]; n != 4 {
		t.Errorf("%d gathers for 512 indices", n)
	}
	if lo.stats.Insts > 4*4+6 {
		t.Errorf("%d instructions", lo.stats.Insts)
	}
	if in := int64(512*768*2 + 512*4); lo.stats.Loaded < in || lo.stats.Loaded > in+512*8 {
		t.Errorf("%d bytes loaded, %d are needed", lo.stats.Loaded, in)
	}
	// Many constant indices without a rule are gathered as well, few are slices.
	for n, want := range map[int]bool{4: false, 400: true} {
		g := model(t, func(b *B) []N {
			vals := make([]int64, n)
			for i := range vals {
				vals[i] = int64(i * i * 7 % 1000)
			}
			return []N{b.Take(b.Param("x", graph.F32, 1000, 64), b.Ints(graph.S64, []int64{int64(n)}, vals...), 0)}
		})
		agree(t, g, Options{})
		lo, err := lowerFor(g, gens()[1], Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := lo.stats.ByOpcode[ir.OpIndirectLoad] > 0; got != want {
			t.Errorf("%d constant indices: gathered %v", n, got)
		}
	}
}

// Front ends wrap negative indices by a select; the sum in it is not exact for every integer, but right as an index.
func TestWrapIdiom(t *testing.T) {
	for _, id := range []graph.Dtype{graph.S32, graph.S64, graph.S16} {
		for _, ge := range []bool{false, true} {
			build := func(read func(b *B, x, i N) []N) *graph.Graph {
				return model(t, func(b *B) []N {
					x, i := b.Param("x", graph.F32, 50, 24), b.Param("i", id, 3, 4)
					up := b.Add(i, b.Like(i, 50))
					s := b.Select(b.Compare(graph.DirLT, i, b.Like(i, 0)), up, i)
					if ge {
						s = b.Select(b.Compare(graph.DirGE, i, b.Like(i, 0)), i, b.Add(b.Like(i, 50), i))
					}
					return read(b, x, s)
				})
			}
			g := build(func(b *B, x, s N) []N {
				first := b.Reshape(b.SliceDim(b.Reshape(s, 12), 0, 0, 1))
				outs := []N{gatherOf(b, x, s, []int64{2}, []int64{0}, []int64{0}, 2, []int64{1, 24}, nil, nil),
					b.DynamicSlice(x, []N{first, b.Scalar(id, 0)}, 2, 24)}
				if id != graph.S64 { // what fills rows out of range asks like this
					outs = append(outs, b.Convert(b.Compare(graph.DirGE, s, b.Like(s, 0)), graph.F32), b.Convert(b.Compare(graph.DirGT, b.Like(s, 49), s), graph.F32))
				}
				return outs
			})
			ins := graph.RandomInputs(g, 1)
			ins[1] = integers(id, []int64{3, 4}, -50, -1, 0, 49, 50, -51, 1<<24+1, -1<<24-1, 1<<31-1, -1<<31, 7, -7)
			if id == graph.S16 {
				ins[1] = integers(id, []int64{3, 4}, -50, -1, 0, 49, 50, -51, 1<<15-1, -1<<15, 48, -49, 7, -7)
			}
			agreeOn(t, g, Options{}, ins)
			// Anything else that reads it wants every bit.
			if _, err := lowerFor(build(func(b *B, x, s N) []N { return []N{b.Take(x, s, 0), s} }), gens()[1], Options{}); id != graph.S16 && target.ClassOf(err) != target.Unsupported {
				t.Errorf("the wrapped index as an output: %v", err)
			}
		}
	}
}

func TestTakeLimits(t *testing.T) {
	for _, c := range []struct {
		name, want string
		class      target.Class
		build      func(b *B) []N
	}{
		{"wrapped", "computed in 24 bits; the dimension is 16777216", target.Unsupported, func(b *B) []N {
			return []N{b.Take(b.Param("x", graph.S8, 1<<24), b.Param("i", graph.S32, 2), 0)}
		}},
		{"flattened", "row numbers up to 25165823 are computed in 24 bits", target.Unsupported, func(b *B) []N {
			return []N{b.Take(b.Param("x", graph.S8, 3, 1<<23, 2), b.Param("i", graph.S32, 2), 1)}
		}},
		{"clamped", "indices are clamped in 24 bits; the largest is 16777217", target.Unsupported, func(b *B) []N {
			return []N{b.DynamicSlice(b.Param("x", graph.S8, 1<<24+3), []N{b.Param("i", graph.S32)}, 2)}
		}},
		{"known", "index 9 is outside [0,9)", target.Unsupported, func(b *B) []N {
			return []N{b.TakeAlong(b.Param("x", graph.F32, 9), b.Splat(graph.S32, []int64{4}, 9), 0)}
		}},
	} {
		_, err := lowerFor(model(t, c.build), gens()[1], Options{})
		if target.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// What needs no arithmetic has no such limit.
	if _, err := lowerFor(model(t, func(b *B) []N {
		return []N{b.Take(b.Param("x", graph.S8, 1<<25, 3), b.Param("i", graph.U32, 2), 0)}
	}), gens()[1], Options{}); err != nil {
		t.Error(err)
	}
}

// drawTake draws an operator that takes elements by indices: tables of odd sizes and every width of element, one row to more
// than a tile of indices, negative and extreme ones among them.
func drawTake(t *rapid.T) (*graph.Graph, []graph.Tensor) {
	g := new(graph.Graph)
	g.Name = "m"
	b := graph.Begin(g, "main")
	d := rapid.SampledFrom([]graph.Dtype{graph.F32, graph.BF16, graph.F16, graph.S8, graph.U8, graph.S16, graph.S32, graph.S64, graph.Bool}).Draw(t, "dtype")
	id := rapid.SampledFrom([]graph.Dtype{graph.S32, graph.S64, graph.S16, graph.U8}).Draw(t, "index dtype")
	size := func(label string) int64 {
		return rapid.SampledFrom([]int64{1, 1, 2, 3, 5, 7, 16, 33, 100}).Draw(t, label)
	}
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	dims := make([]int64, rank)
	total := int64(1)
	for i := range dims {
		if dims[i] = size("dim"); total*dims[i] > 20000 {
			dims[i] = 1
		}
		total *= dims[i]
	}
	x := b.Param("x", d, dims...)
	table := x
	if rank > 1 && rapid.Bool().Draw(t, "transposed") {
		perm := make([]int64, rank)
		for i := range perm {
			perm[i] = int64(rank - 1 - i)
		}
		table = b.Transpose(x, perm...)
		slices.Reverse(dims)
	}
	if d == graph.F32 && rapid.Bool().Draw(t, "computed") {
		table = b.Unary(graph.OpTanh, table)
	}
	at := rapid.IntRange(0, rank-1).Draw(t, "at")
	n := dims[at]
	var y N
	var idims []int64
	switch rapid.IntRange(0, 2).Draw(t, "op") {
	case 0:
		idims = make([]int64, rapid.IntRange(0, 2).Draw(t, "index rank"))
		for i := range idims {
			idims[i] = rapid.SampledFrom([]int64{1, 2, 5, 13, 130}).Draw(t, "indices")
		}
		if total/n*product(idims) > 40000 {
			idims = nil
		}
		y = b.Take(table, b.Param("i", id, idims...), at)
	case 1:
		idims = slices.Clone(dims)
		for i := range idims {
			if i == at {
				idims[i] = rapid.SampledFrom([]int64{1, 2, 5, 13}).Draw(t, "indices")
			} else {
				idims[i] = rapid.Int64Range(1, dims[i]).Draw(t, "part")
			}
		}
		if product(idims) > 6000 {
			idims = make([]int64, rank)
			for i := range idims {
				idims[i] = 1
			}
		}
		y = b.TakeAlong(table, b.Param("i", id, idims...), at)
	default: // windows of the dimension, which the indices clamp
		sizes, offset := slices.Clone(dims), []int64{}
		sizes[at] = rapid.Int64Range(1, n).Draw(t, "window")
		for i := range sizes {
			offset = append(offset, int64(i)+1)
		}
		idims = []int64{rapid.SampledFrom([]int64{1, 2, 5, 13}).Draw(t, "indices"), 1}
		if product(sizes)*idims[0] > 40000 {
			idims[0] = 1
		}
		y = gatherOf(b, table, b.Param("i", id, idims...), offset, nil, []int64{int64(at)}, 1, sizes, nil, nil)
	}
	if d.IsFloat() && rapid.Bool().Draw(t, "consumer") {
		y = b.Mul(y, y)
	}
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	c, err := b.End(y)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	g.Outputs = append(g.Outputs, graph.Output{Name: g.Names.Intern("y"), Node: y})
	ins := graph.RandomInputs(g, rapid.Uint64Range(1, 1000).Draw(t, "seed"))
	vals := make([]int64, product(idims))
	for i := range vals {
		switch rapid.IntRange(0, 4).Draw(t, "index") {
		case 0:
			vals[i] = 0
		case 1:
			vals[i] = n - 1
		case 2:
			vals[i] = rapid.Int64Range(-n, -1).Draw(t, "from the end")
		default:
			vals[i] = rapid.Int64Range(0, n-1).Draw(t, "row")
		}
		if vals[i] < 0 && !id.Signed() {
			vals[i] += n
		}
	}
	ins[1] = integers(id, idims, vals...)
	return g, ins
}

func TestRandomTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, ins := drawTake(t)
		opt := drawOptions(t)
		want, err := graph.Eval(g, ins)
		if err != nil {
			t.Fatalf("interpreter: %v", err)
		}
		gen := rapid.SampledFrom(gens()).Draw(t, "generation")
		lo, err := lowerFor(g, gen, opt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lo.simulate(ins)
		if err != nil {
			t.Fatal(err)
		}
		tol := graph.Tolerance(g)
		d, err := graph.Compare(got[0], want[0], tol.RTol, tol.Of(want[0]))
		if err != nil || !d.OK() {
			t.Fatalf("%s: %v %v", gen.Name, d, err)
		}
	})
}
