package graph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// indexCase is the index side of a gather or scatter over an operand, valid by construction.
type indexCase struct {
	dims, sizes        []int64 // operand shape, window
	gone, ob, ib       []int64 // collapsed (inserted) dims, batching pairs
	mapped             []int64 // operand dim of each index vector entry
	ivd                int64
	idxDims, batchDims []int64
	window             []int64 // result (update) dimensions of the window
	out                []int64
	idx                Tensor
}

func drawIndexCase(t *rapid.T) indexCase {
	var c indexCase
	rank := rapid.IntRange(1, 3).Draw(t, "rank")
	kinds := make([]int, rank) // 0 window, 1 collapsed, 2 batching
	for i := range rank {
		c.dims = append(c.dims, rapid.Int64Range(1, 4).Draw(t, "dim"))
		kinds[i] = rapid.IntRange(0, 2).Draw(t, "kind")
		size := int64(1)
		switch kinds[i] {
		case 0:
			size = rapid.Int64Range(1, c.dims[i]).Draw(t, "size")
		case 1:
			c.gone = append(c.gone, int64(i))
		case 2:
			c.ob = append(c.ob, int64(i))
		}
		c.sizes = append(c.sizes, size)
		if kinds[i] != 2 && rapid.Bool().Draw(t, "mapped") {
			c.mapped = append(c.mapped, int64(i))
		}
	}
	if len(c.mapped) > 0 {
		c.mapped = rapid.Permutation(c.mapped).Draw(t, "order")
	}
	// Index batch dimensions: the batching ones somewhere among others.
	extra := rapid.IntRange(0, 2).Draw(t, "batch dims")
	type bd struct {
		size int64
		ob   int // index into c.ob, or -1
	}
	var batch []bd
	for k := range c.ob {
		batch = append(batch, bd{c.dims[c.ob[k]], k})
	}
	for range extra {
		batch = append(batch, bd{rapid.Int64Range(1, 3).Draw(t, "batch"), -1})
	}
	if len(batch) > 0 {
		batch = rapid.Permutation(batch).Draw(t, "batch order")
	}
	c.ivd = rapid.Int64Range(0, int64(len(batch))).Draw(t, "vector dim")
	implicit := len(c.mapped) == 1 && rapid.Bool().Draw(t, "implicit")
	if implicit {
		c.ivd = int64(len(batch))
	}
	c.ib = make([]int64, len(c.ob))
	for i, b := range batch {
		if int64(i) == c.ivd {
			c.idxDims = append(c.idxDims, int64(len(c.mapped)))
		}
		if b.ob >= 0 {
			c.ib[b.ob] = int64(len(c.idxDims))
		}
		c.idxDims, c.batchDims = append(c.idxDims, b.size), append(c.batchDims, b.size)
	}
	if c.ivd == int64(len(batch)) && !implicit {
		c.idxDims = append(c.idxDims, int64(len(c.mapped)))
	}
	// Result dimensions: window ones at sorted positions.
	nw := 0
	for _, k := range kinds {
		nw += btoi(k == 0)
	}
	at := make([]int64, len(batch)+nw)
	for i := range at {
		at[i] = int64(i)
	}
	if len(at) > 0 {
		at = rapid.Permutation(at).Draw(t, "positions")
	}
	c.window = slices.Clone(at[:nw])
	slices.Sort(c.window)
	w, b := 0, 0
	for i := range len(batch) + nw {
		if slices.Contains(c.window, int64(i)) {
			for kinds[w] != 0 {
				w++
			}
			c.out = append(c.out, c.sizes[w])
			w++
		} else {
			c.out = append(c.out, c.batchDims[b])
			b++
		}
	}
	c.idx = NewTensor(S32, c.idxDims...)
	for i := range c.idx.Len() {
		putElem(S32, c.idx.Data, i, EncodeInt(S32, rapid.Int64Range(-2, 5).Draw(t, "index")))
	}
	return c
}

// place gives the operand position that element o of the result (update) stands for; clamp moves the window inside.
func (c indexCase) place(o []int64, clamp bool) (pos []int64, fits bool) {
	var batch, win []int64
	for i, v := range o {
		if slices.Contains(c.window, int64(i)) {
			win = append(win, v)
		} else {
			batch = append(batch, v)
		}
	}
	index := func(k int64) int64 {
		at := slices.Clone(batch)
		if int(c.ivd) < len(c.idxDims) {
			at = slices.Insert(at, int(c.ivd), k)
		}
		return indexAt(c.idx, flat(at, c.idxDims))
	}
	start := make([]int64, len(c.dims))
	for k, d := range c.mapped {
		start[d] = index(int64(k))
	}
	fits = true
	for d := range c.dims {
		top := c.dims[d] - c.sizes[d]
		if clamp {
			start[d] = max(0, min(start[d], top))
		}
		fits = fits && start[d] >= 0 && start[d] <= top
	}
	for k, d := range c.ob {
		b := c.ib[k]
		if int(c.ivd) < len(c.idxDims) && b > c.ivd {
			b--
		}
		start[d] = batch[b]
	}
	w := 0
	for d := range c.dims {
		if !slices.Contains(c.gone, int64(d)) && !slices.Contains(c.ob, int64(d)) {
			start[d] += win[w]
			w++
		}
	}
	return start, fits
}

func TestGatherAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawIndexCase(t)
		x := randomTensor(6, F32, c.dims...)
		var g Graph
		b := Begin(&g, "main")
		n := b.Node(OpGather, 0, []Node{b.Param("x", F32, c.dims...), b.Param("i", S32, c.idxDims...)},
			g.IntsAttr(AttrOffsetDims, c.window...), g.IntsAttr(AttrCollapsedDims, c.gone...), g.IntsAttr(AttrStartIndexMap, c.mapped...),
			g.IntsAttr(AttrIndexVectorDim, c.ivd), g.IntsAttr(AttrSliceSizes, c.sizes...), g.IntsAttr(AttrOperandBatch, c.ob...), g.IntsAttr(AttrIndicesBatch, c.ib...))
		var err error
		if g.Entry, err = b.End(n); err != nil {
			t.Fatal(err)
		}
		y, err := Eval(&g, []Tensor{x, c.idx})
		if err != nil {
			t.Fatal(err)
		}
		if !sameDims(y[0].Dims, c.out) {
			t.Fatalf("shape %v, want %v", y[0].Dims, c.out)
		}
		for i := range y[0].Len() {
			pos, _ := c.place(coords(i, c.out), true)
			if got, want := y[0].Float(i), x.Float(flat(pos, c.dims)); got != want {
				t.Fatalf("element %v is %g, want %g from %v", coords(i, c.out), got, want, pos)
			}
		}
	})
}

func TestScatterAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawIndexCase(t)
		x, u := randomTensor(7, F32, c.dims...), randomTensor(8, F32, c.out...)
		var g Graph
		kind := rapid.SampledFrom([]ReduceKind{ReduceSum, ReduceMax, ReduceOther}).Draw(t, "kind")
		b := Begin(&g, "main")
		n := b.Node(OpScatter, 0, []Node{b.Param("x", F32, c.dims...), b.Param("i", S32, c.idxDims...), b.Param("u", F32, c.out...)},
			g.IntsAttr(AttrUpdateWindowDims, c.window...), g.IntsAttr(AttrInsertedDims, c.gone...), g.IntsAttr(AttrScatterDims, c.mapped...),
			g.IntsAttr(AttrIndexVectorDim, c.ivd), g.IntsAttr(AttrOperandBatch, c.ob...), g.IntsAttr(AttrIndicesBatch, c.ib...), g.IntsAttr(AttrKind, int64(kind)))
		var err error
		if g.Entry, err = b.End(n); err != nil {
			t.Fatal(err)
		}
		y, err := Eval(&g, []Tensor{x, c.idx, u})
		if err != nil {
			t.Fatal(err)
		}
		want := x.Floats()
		// Batch positions in row-major order, as the interpreter takes them: only assignment depends on it.
		order := make([]int, u.Len())
		for i := range order {
			order[i] = i
		}
		batchOf := func(i int) []int64 {
			var at []int64
			for k, v := range coords(i, c.out) {
				if !slices.Contains(c.window, int64(k)) {
					at = append(at, v)
				}
			}
			return at
		}
		slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(batchOf(a), batchOf(b)) })
		for _, i := range order {
			pos, fits := c.place(coords(i, c.out), false)
			if !fits {
				continue
			}
			k := flat(pos, c.dims)
			switch kind {
			case ReduceSum:
				want[k] = float64(float32(want[k]) + float32(u.Float(i)))
			case ReduceMax:
				want[k] = max(want[k], u.Float(i))
			default:
				want[k] = u.Float(i)
			}
		}
		for i, w := range want {
			if got := y[0].Float(i); got != w {
				t.Fatalf("element %v is %g, want %g", coords(i, c.dims), got, w)
			}
		}
	})
}
