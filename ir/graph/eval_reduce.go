package graph

import (
	"cmp"
	"math"
	"slices"
)

// number is the types that reductions and contractions accumulate in.
type number interface{ float32 | float64 | int64 }

// accumulate combines the elements of x into acc over a box set with (accumulator, operand) strides, in row-major order of
// the box. An accumulator stride of 0 reduces.
func accumulate[T number](kind ReduceKind, less func(a, b T) bool, b *box, acc []T, aOff int64, x []T, xOff int64) {
	last := len(b.dims) - 1
	n, as, xs := int(b.dims[last]), int(b.a[last]), int(b.b[last])
	pick := func(a, v T) T {
		switch kind {
		case ReduceSum:
			return a + v
		case ReduceProd:
			return a * v
		case ReduceMax:
			if v != v || less(a, v) {
				return v
			}
		case ReduceMin:
			if v != v || less(v, a) {
				return v
			}
		case ReduceAnd:
			return T(int64(a) & int64(v))
		case ReduceOr:
			return T(int64(a) | int64(v))
		}
		return a
	}
	b.each(func(ao, xo int64) {
		a, i := int(aOff+ao), int(xOff+xo)
		switch {
		case as == 0 && kind == ReduceSum:
			s := acc[a]
			for range n {
				s += x[i]
				i += xs
			}
			acc[a] = s
		case as == 1 && xs == 1 && kind == ReduceSum:
			dst := acc[a : a+n]
			for k, v := range x[i : i+n] {
				dst[k] += v
			}
		default:
			for range n {
				acc[a] = pick(acc[a], x[i])
				a, i = a+as, i+xs
			}
		}
	})
}

func lessThan[T number](a, b T) bool { return a < b }

func lessU64(a, b int64) bool { return uint64(a) < uint64(b) }

// foldBox is one box of operand elements that a reduction folds, at offsets into accumulator and operand.
type foldBox struct {
	box
	aOff, xOff int64
}

// fold reduces x into out through the boxes, starting from init (one element). Floats up to 32 bits accumulate in float32
// and are rounded once at the end; integers wrap at the end.
func (r *run) fold(n Node, kind ReduceKind, out, x, init Tensor, boxes func(yield func(*foldBox))) error {
	total, from := out.Len(), x.Len()
	switch domainOf(x.Dtype) {
	case domF32:
		acc, done, err := temp[float32](r, n, total)
		if err != nil {
			return err
		}
		defer done()
		xs, done2, err := r.floats32(n, x)
		if err != nil {
			return err
		}
		defer done2()
		fill(acc, loadF32(init.Dtype, init.Data, 0, 1, make([]float32, 1))[0])
		boxes(func(b *foldBox) { accumulate(kind, lessThan, &b.box, acc, b.aOff, xs, b.xOff) })
		storeF32(out.Dtype, out.Data, 0, acc)
	case domF64:
		acc := fill(view[float64](out.Data), view[float64](init.Data)[0])
		boxes(func(b *foldBox) { accumulate(kind, lessThan, &b.box, acc, b.aOff, view[float64](x.Data), b.xOff) })
	case domInt:
		acc, done, err := temp[int64](r, n, total)
		if err != nil {
			return err
		}
		defer done()
		buf, done2, err := temp[int64](r, n, from)
		if err != nil {
			return err
		}
		defer done2()
		xs := loadInts(x.Dtype, x.Data, 0, from, buf)
		fill(acc, loadInts(init.Dtype, init.Data, 0, 1, make([]int64, 1))[0])
		less := lessThan[int64]
		if x.Dtype == U64 {
			less = lessU64
		}
		if x.Dtype == Bool { // on pred, add is or, multiply is and
			switch kind {
			case ReduceSum:
				kind = ReduceOr
			case ReduceProd:
				kind = ReduceAnd
			}
		}
		boxes(func(b *foldBox) { accumulate(kind, less, &b.box, acc, b.aOff, xs, b.xOff) })
		storeInts(out.Dtype, out.Data, 0, acc)
	default:
		return r.g.unsupported(n, "%s is not evaluated", x.Dtype)
	}
	return nil
}

// reduceStrides are the accumulator's stride of every operand dimension, 0 for the reduced ones.
func reduceStrides(dims, reduced []int64) []int64 {
	s := make([]int64, len(dims))
	k := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		if !slices.Contains(reduced, int64(i)) {
			s[i] = k
			k *= dims[i]
		}
	}
	return s
}

// reduce evaluates OpReduce with one operand and a plain combiner.
func (r *run) reduce(n Node, kind ReduceKind, out, x, init Tensor) error {
	return r.fold(n, kind, out, x, init, func(yield func(*foldBox)) {
		var b foldBox
		if b.set(x.Dims, reduceStrides(x.Dims, r.g.IntList(n, AttrDims)), rowMajor(x.Dims)) {
			yield(&b)
		}
	})
}

// windowBoxes yields, tap by tap, the boxes that pair result positions with the operand elements they read; positions whose
// tap falls into padding or between dilated elements are left out.
func windowBoxes(ws []Window, out, in []int64, yield func(tap []int64, b *foldBox)) {
	rank := len(ws)
	tap := make([]int64, rank)
	os, is := rowMajor(out), rowMajor(in)
	dims, aStr, xStr := make([]int64, rank), make([]int64, rank), make([]int64, rank)
	var b foldBox
	for {
		b.aOff, b.xOff = 0, 0
		empty := false
		for i, w := range ws {
			lo, step, cnt, from, by := w.valid(tap[i], out[i], in[i])
			if cnt == 0 {
				empty = true
				break
			}
			dims[i], aStr[i], xStr[i] = cnt, step*os[i], by*is[i]
			b.aOff += lo * os[i]
			b.xOff += from * is[i]
		}
		if !empty && b.set(dims, aStr, xStr) {
			yield(tap, &b)
		}
		i := rank - 1
		for ; i >= 0; i-- {
			if tap[i]++; tap[i] < ws[i].Size {
				break
			}
			tap[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// valid lists the window positions of a dimension at which a tap reads an element: cnt positions lo, lo+step, …, which read
// the elements from, from+by, ….
func (w Window) valid(tap, out, in int64) (lo, step, cnt, from, by int64) {
	off := tap*w.RhsDilate - w.PadLow // position p reads dilated element p·Stride + off
	step = 1
	if w.LhsDilate > 1 {
		step = w.LhsDilate / gcd(w.Stride, w.LhsDilate)
	}
	by = step * w.Stride / w.LhsDilate
	if off < 0 {
		lo = (-off + w.Stride - 1) / w.Stride
	}
	// The first position whose element is not between the dilated ones; step consecutive positions hold one, or none does.
	for k := int64(0); (lo*w.Stride+off)%w.LhsDilate != 0; k++ {
		if k == step {
			return 0, step, 0, 0, by
		}
		lo++
	}
	from = (lo*w.Stride + off) / w.LhsDilate
	if lo >= out || from >= in {
		return lo, step, 0, from, by
	}
	cnt = (out-1-lo)/step + 1
	if by > 0 {
		cnt = min(cnt, (in-1-from)/by+1)
	}
	return lo, step, cnt, from, by
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (r *run) reduceWindow(n Node, kind ReduceKind, out, x, init Tensor) error {
	ws, _ := r.g.Windows(n, len(x.Dims))
	return r.fold(n, kind, out, x, init, func(yield func(*foldBox)) {
		windowBoxes(ws, out.Dims, x.Dims, func(_ []int64, b *foldBox) { yield(b) })
	})
}

// avgPool sums each window in float32 (float64 for F64) and divides by the window's size, or by the elements inside.
func (r *run) avgPool(n Node, out, x Tensor) error {
	ws, _ := r.g.Windows(n, len(x.Dims))
	sum := NewTensor(F32, out.Dims...)
	cnt := NewTensor(F32, out.Dims...)
	counts := view[float32](cnt.Data)
	inside := r.g.Int(n, AttrCountPad, 0) == 0
	size := float32(1)
	for _, w := range ws {
		size *= float32(w.Size)
	}
	fill(counts, size)
	if inside {
		clear(counts)
		ones := []float32{1}
		windowBoxes(ws, out.Dims, x.Dims, func(_ []int64, b *foldBox) {
			var c foldBox
			c.aOff = b.aOff
			if c.set(b.dims, b.a, make([]int64, len(b.dims))) {
				accumulate(ReduceSum, lessThan, &c.box, counts, c.aOff, ones, 0)
			}
		})
	}
	if x.Dtype == F64 {
		sum = NewTensor(F64, out.Dims...)
	}
	wide := x
	if domainOf(x.Dtype) == domF32 && x.Dtype != F32 {
		xs, done, err := r.floats32(n, x)
		if err != nil {
			return err
		}
		defer done()
		wide = Tensor{Dtype: F32, Dims: x.Dims, Data: bytesOf(xs)}
	}
	if err := r.fold(n, ReduceSum, sum, wide, NewTensor(sum.Dtype), func(yield func(*foldBox)) {
		windowBoxes(ws, out.Dims, x.Dims, func(_ []int64, b *foldBox) { yield(b) })
	}); err != nil {
		return err
	}
	if x.Dtype == F64 {
		for i, s := range view[float64](sum.Data) {
			view[float64](out.Data)[i] = s / float64(counts[i])
		}
		return nil
	}
	s := view[float32](sum.Data)
	for i, c := range counts {
		s[i] /= c
	}
	storeF32(out.Dtype, out.Data, 0, s)
	return nil
}

// line is the elements of a tensor along one dimension.
type line struct{ off, stride, n int }

func (l line) at(i int) int { return l.off + i*l.stride }

// lines calls f for every line along dim; k counts them in row-major order of the other dimensions.
func lines(dims []int64, dim int, f func(k int, l line) error) error {
	inner, n := count(dims[dim+1:]), int(dims[dim])
	for o := range count(dims[:dim]) {
		for i := range inner {
			if err := f(o*inner+i, line{o*n*inner + i, inner, n}); err != nil {
				return err
			}
		}
	}
	return nil
}

// rank is a number that orders elements of one type as sort, top-k and argmax do: NaN above everything, zeros equal.
func rank(t Tensor, i int) uint64 {
	const top = 1 << 63
	switch {
	case t.Dtype == Bool:
		return uint64(t.Data[i])
	case t.Dtype == U64:
		return elemBits(t.Dtype, t.Data, i)
	case t.Dtype.IsInt():
		return uint64(indexAt(t, i)) ^ top
	}
	v := t.Float(i)
	if v != v {
		return math.MaxUint64
	}
	b := math.Float64bits(v + 0) // −0 + 0 is +0
	if b&top != 0 {
		return ^b
	}
	return b | top
}

// sortLine orders perm, a permutation of the line, by rank, stably.
func sortLine(t Tensor, l line, perm []int, keys []uint64, descending bool) {
	for i := range perm {
		perm[i] = i
		keys[i] = rank(t, l.at(i))
	}
	slices.SortStableFunc(perm, func(a, b int) int {
		if descending {
			a, b = b, a
		}
		return cmp.Compare(keys[a], keys[b])
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// arg finds the largest (smallest) element of each line; NaN counts as that.
func (r *run) arg(n Node, out, x Tensor, largest bool) error {
	last := r.g.Int(n, AttrSelectLast, 0) != 0
	return lines(x.Dims, int(r.g.Int(n, AttrDim, 0)), func(k int, l line) error {
		best, top := 0, uint64(0)
		for i := range l.n {
			v := rank(x, l.at(i))
			if !largest && !(x.Dtype.IsFloat() && v == math.MaxUint64) { // NaN stays on top
				v = ^v - uint64(btoi(x.Dtype.IsFloat()))
			}
			if i == 0 || v > top || v == top && last {
				best, top = i, v
			}
		}
		putElem(out.Dtype, out.Data, k, EncodeInt(out.Dtype, int64(best)))
		return nil
	})
}

// cumSum accumulates in float32 (float64, int64) and rounds each partial sum as it is written.
func (r *run) cumSum(n Node, out, x Tensor) error {
	exclusive, reverse := r.g.Int(n, AttrExclusive, 0) != 0, r.g.Int(n, AttrReverse, 0) != 0
	dom := domainOf(x.Dtype)
	return lines(x.Dims, int(r.g.Int(n, AttrDim, 0)), func(_ int, l line) error {
		var s32 float32
		var s64 float64
		var si int64
		for k := range l.n {
			i := l.at(k)
			if reverse {
				i = l.at(l.n - 1 - k)
			}
			put := func() {
				switch dom {
				case domInt:
					putElem(x.Dtype, out.Data, i, EncodeInt(x.Dtype, si))
				case domF64:
					putElem(x.Dtype, out.Data, i, math.Float64bits(s64))
				default:
					storeF32(x.Dtype, out.Data, i, []float32{s32})
				}
			}
			if exclusive {
				put()
			}
			switch dom {
			case domInt:
				si += indexAt(x, i)
			case domF64:
				s64 += x.Float(i)
			default:
				s32 += float32(x.Float(i))
			}
			if !exclusive {
				put()
			}
		}
		return nil
	})
}

// topK: equal elements keep their order, the lower index first.
func (r *run) topK(n Node, values, indices, x Tensor) error {
	k := int(values.Dims[len(values.Dims)-1])
	largest := r.g.Int(n, AttrLargest, 1) != 0
	perm := make([]int, x.Dims[len(x.Dims)-1])
	keys := make([]uint64, len(perm))
	return lines(x.Dims, len(x.Dims)-1, func(row int, l line) error {
		sortLine(x, l, perm, keys, largest)
		for i, p := range perm[:k] {
			putElem(x.Dtype, values.Data, row*k+i, elemBits(x.Dtype, x.Data, l.at(p)))
			putElem(indices.Dtype, indices.Data, row*k+i, EncodeInt(indices.Dtype, int64(p)))
		}
		return nil
	})
}
