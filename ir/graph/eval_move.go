package graph

import "slices"

// copyND copies a box of elements between two strided layouts. Offsets and strides are in elements of size bytes; a source
// stride of 0 repeats. The box must lie inside both.
func copyND(dst []byte, dOff int64, dStr []int64, src []byte, sOff int64, sStr, dims []int64, size int) {
	var b box
	if b.set(dims, dStr, sStr) {
		b.copy(dst, dOff, src, sOff, size)
	}
}

// copy is copyND for a box that was set with (destination, source) strides.
func (x *box) copy(dst []byte, dOff int64, src []byte, sOff int64, size int) {
	last := len(x.dims) - 1
	n, ds, ss := int(x.dims[last]), int(x.a[last]), int(x.b[last])
	x.each(func(da, sa int64) {
		d, s := int(dOff+da), int(sOff+sa)
		if ds == 1 && ss == 1 {
			copy(dst[d*size:(d+n)*size], src[s*size:(s+n)*size])
			return
		}
		switch size {
		case 1:
			copyLine(dst, d, ds, src, s, ss, n)
		case 2:
			copyLine(view[uint16](dst), d, ds, view[uint16](src), s, ss, n)
		case 4:
			copyLine(view[uint32](dst), d, ds, view[uint32](src), s, ss, n)
		case 8:
			copyLine(view[uint64](dst), d, ds, view[uint64](src), s, ss, n)
		default:
			for range n {
				copy(dst[d*size:(d+1)*size], src[s*size:])
				d, s = d+ds, s+ss
			}
		}
	})
}

func copyLine[T any](dst []T, d, ds int, src []T, s, ss, n int) {
	if ss == 0 && ds == 1 {
		fill(dst[d:d+n], src[s])
		return
	}
	for range n {
		dst[d] = src[s]
		d, s = d+ds, s+ss
	}
}

// box is an iteration space over two strided layouts, with mergeable dimensions merged and the innermost left to the caller.
type box struct {
	dims, a, b []int64
	at         []int64
}

// set prepares the space; false when it is empty. A scalar space gets one dimension of 1.
func (x *box) set(dims, a, b []int64) bool {
	x.dims, x.a, x.b = x.dims[:0], x.a[:0], x.b[:0]
	for i, d := range dims {
		if d == 0 {
			return false
		}
		if d == 1 {
			continue
		}
		if k := len(x.dims) - 1; k >= 0 && x.a[k] == d*a[i] && x.b[k] == d*b[i] {
			x.dims[k], x.a[k], x.b[k] = x.dims[k]*d, a[i], b[i]
			continue
		}
		x.dims, x.a, x.b = append(x.dims, d), append(x.a, a[i]), append(x.b, b[i])
	}
	if len(x.dims) == 0 {
		x.dims, x.a, x.b = append(x.dims, 1), append(x.a, 1), append(x.b, 1)
	}
	return true
}

// each calls f with the two offsets of every innermost line, in row-major order.
func (x *box) each(f func(a, b int64)) {
	outer := len(x.dims) - 1
	x.at = slices.Grow(x.at[:0], outer)[:outer]
	clear(x.at)
	var a, b int64
	for {
		f(a, b)
		i := outer - 1
		for ; i >= 0; i-- {
			x.at[i]++
			a, b = a+x.a[i], b+x.b[i]
			if x.at[i] < x.dims[i] {
				break
			}
			a, b = a-x.a[i]*x.dims[i], b-x.b[i]*x.dims[i]
			x.at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// fillElem sets every element of out to the bits of v's only element.
func fillElem(out, v Tensor) {
	zero := make([]int64, len(out.Dims))
	copyND(out.Data, 0, rowMajor(out.Dims), v.Data, 0, zero, out.Dims, out.Dtype.Size())
}

// move evaluates the operators that rearrange elements. out is allocated and zero.
func (r *run) move(n Node, out Tensor, ins []Tensor) error {
	g := r.g
	x := ins[0]
	size := x.Dtype.Size()
	xs, os := rowMajor(x.Dims), rowMajor(out.Dims)
	switch g.Op(n) {
	case OpBroadcast:
		from := make([]int64, len(out.Dims))
		for i, d := range g.IntList(n, AttrDims) {
			from[d] = xs[i]
		}
		copyND(out.Data, 0, os, x.Data, 0, from, out.Dims, size)
	case OpTranspose:
		from := make([]int64, len(out.Dims))
		for i, p := range g.IntList(n, AttrDims) {
			from[i] = xs[p]
		}
		copyND(out.Data, 0, os, x.Data, 0, from, out.Dims, size)
	case OpReverse:
		from, off := slices.Clone(xs), int64(0)
		for _, d := range g.IntList(n, AttrDims) {
			off += (x.Dims[d] - 1) * xs[d]
			from[d] = -xs[d]
		}
		copyND(out.Data, 0, os, x.Data, off, from, out.Dims, size)
	case OpSlice:
		from, off := slices.Clone(xs), int64(0)
		start, stride := g.IntList(n, AttrStart), g.IntList(n, AttrStride)
		for i := range from {
			off += start[i] * xs[i]
			if len(stride) > 0 {
				from[i] *= stride[i]
			}
		}
		copyND(out.Data, 0, os, x.Data, off, from, out.Dims, size)
	case OpConcat:
		at, off := g.Int(n, AttrDim, 0), int64(0)
		for _, t := range ins {
			copyND(out.Data, off, os, t.Data, 0, rowMajor(t.Dims), t.Dims, size)
			off += t.Dims[at] * os[at]
		}
	case OpPad:
		r.pad(n, out, x, ins[1])
	case OpDynamicSlice:
		off := startOffset(x.Dims, out.Dims, xs, ins[1:])
		copyND(out.Data, 0, os, x.Data, off, xs, out.Dims, size)
	case OpDynamicUpdateSlice:
		copy(out.Data, x.Data)
		up := ins[1]
		copyND(out.Data, startOffset(x.Dims, up.Dims, xs, ins[2:]), os, up.Data, 0, rowMajor(up.Dims), up.Dims, size)
	case OpTake:
		return r.take(n, out, x, ins[1])
	case OpTakeAlong:
		return r.takeAlong(n, out, x, ins[1])
	case OpGather:
		r.gather(n, out, x, ins[1])
	default:
		return g.unsupported(n, "not evaluated")
	}
	return nil
}

// startOffset is the element offset of a dynamic slice: scalar start indices clamped so that the window fits.
func startOffset(dims, window, strides []int64, starts []Tensor) int64 {
	off := int64(0)
	for i, s := range starts {
		off += clampIndex(s, 0, dims[i]-window[i]) * strides[i]
	}
	return off
}

// clampIndex reads element i of an index tensor, clamped to [0, top].
func clampIndex(t Tensor, i int, top int64) int64 {
	v := indexAt(t, i)
	if t.Dtype == U64 && v < 0 {
		return top
	}
	return max(0, min(v, top))
}

func indexAt(t Tensor, i int) int64 { return wrap(t.Dtype, int64(elemBits(t.Dtype, t.Data, i))) }

// pad: where low or high are negative the operand is cropped.
func (r *run) pad(n Node, out, x, value Tensor) {
	g := r.g
	fillElem(out, value)
	low, interior := g.IntList(n, AttrLow), g.IntList(n, AttrInterior)
	xs, os := rowMajor(x.Dims), rowMajor(out.Dims)
	dims, dStr := make([]int64, len(x.Dims)), make([]int64, len(x.Dims))
	dOff, sOff := int64(0), int64(0)
	for i, d := range x.Dims {
		step := int64(1)
		if len(interior) > 0 {
			step += interior[i]
		}
		// Elements [first, last) land inside the result.
		first := int64(0)
		if low[i] < 0 {
			first = (-low[i] + step - 1) / step
		}
		last := d
		if room := out.Dims[i] - low[i]; room <= 0 {
			last = 0
		} else {
			last = min(last, (room+step-1)/step)
		}
		if last <= first {
			return
		}
		dims[i], dStr[i] = last-first, os[i]*step
		dOff += (low[i] + first*step) * os[i]
		sOff += first * xs[i]
	}
	copyND(out.Data, dOff, dStr, x.Data, sOff, xs, dims, x.Dtype.Size())
}

// take is ONNX Gather: out = x with dimension at replaced by the shape of the indices.
func (r *run) take(n Node, out, x, idx Tensor) error {
	at := int(r.g.Int(n, AttrDim, 0))
	size := x.Dtype.Size()
	outer, inner := count(x.Dims[:at]), count(x.Dims[at+1:])
	k := idx.Len()
	for j := range k {
		i, err := r.index(n, idx, j, x.Dims[at])
		if err != nil {
			return err
		}
		for o := range outer {
			d, s := (o*k+j)*inner, (o*int(x.Dims[at])+int(i))*inner
			copy(out.Data[d*size:(d+inner)*size], x.Data[s*size:])
		}
	}
	return nil
}

// index reads an index in [-d, d) and makes it non-negative.
func (r *run) index(n Node, idx Tensor, j int, d int64) (int64, error) {
	i := indexAt(idx, j)
	if i < 0 {
		i += d
	}
	if i < 0 || i >= d {
		return 0, r.g.nodeErr(n, "index %d of element %d is outside a dimension of %d", indexAt(idx, j), j, d)
	}
	return i, nil
}

func (r *run) takeAlong(n Node, out, x, idx Tensor) error {
	at := int(r.g.Int(n, AttrDim, 0))
	xs := rowMajor(x.Dims)
	size := x.Dtype.Size()
	var b box
	along := xs[at]
	xs[at] = 0
	if !b.set(idx.Dims, rowMajor(idx.Dims), xs) {
		return nil
	}
	last := len(b.dims) - 1
	var fail error
	b.each(func(ia, xa int64) {
		for k := range b.dims[last] {
			j, base := ia+k*b.a[last], xa+k*b.b[last]
			i, err := r.index(n, idx, int(j), x.Dims[at])
			if err != nil {
				fail = err
				return
			}
			s := base + i*along
			copy(out.Data[int(j)*size:int(j+1)*size], x.Data[int(s)*size:])
		}
	})
	return fail
}

// indexer walks the index side that gather and scatter share: for each batch position, the window's start in the operand.
type indexer struct {
	idx     Tensor
	batch   []int64 // index dims without the vector dimension
	strides []int64 // their strides in idx
	vector  int64   // stride of the vector dimension
	mapped  []int64 // operand dimension of each vector entry
	pairs   [][2]int
	at      []int64
}

func newIndexer(g *Graph, n Node, idx Tensor, mapped []int64) *indexer {
	w := &indexer{idx: idx, mapped: mapped}
	ivd := int(g.Int(n, AttrIndexVectorDim, int64(len(idx.Dims))))
	s := rowMajor(idx.Dims)
	pos := make([]int, len(idx.Dims)) // batch position of each index dimension
	for i, d := range idx.Dims {
		if i == ivd {
			w.vector = s[i]
			continue
		}
		pos[i] = len(w.batch)
		w.batch, w.strides = append(w.batch, d), append(w.strides, s[i])
	}
	ob := g.IntList(n, AttrOperandBatch)
	for i, d := range g.IntList(n, AttrIndicesBatch) {
		w.pairs = append(w.pairs, [2]int{int(ob[i]), pos[d]})
	}
	w.at = make([]int64, len(w.batch))
	return w
}

// start fills the window's start for the current batch position, one entry an operand dimension.
func (w *indexer) start(start []int64) {
	off := int64(0)
	for i, a := range w.at {
		off += a * w.strides[i]
	}
	clear(start)
	for k, d := range w.mapped {
		v := indexAt(w.idx, int(off+int64(k)*w.vector))
		if w.idx.Dtype == U64 && v < 0 {
			v = MaxElements // beyond any dimension
		}
		start[d] = v
	}
	for _, p := range w.pairs {
		start[p[0]] = w.at[p[1]]
	}
}

// next steps to the next batch position; false after the last.
func (w *indexer) next() bool {
	for i := len(w.at) - 1; i >= 0; i-- {
		if w.at[i]++; w.at[i] < w.batch[i] {
			return true
		}
		w.at[i] = 0
	}
	return false
}

// gather clamps each start so that the window fits.
func (r *run) gather(n Node, out, x, idx Tensor) {
	if len(out.Data) == 0 {
		return
	}
	g := r.g
	w := newIndexer(g, n, idx, g.IntList(n, AttrStartIndexMap))
	sizes, offset := g.IntList(n, AttrSliceSizes), g.IntList(n, AttrOffsetDims)
	gone := append(slices.Clone(g.IntList(n, AttrCollapsedDims)), g.IntList(n, AttrOperandBatch)...)
	xs, os := rowMajor(x.Dims), rowMajor(out.Dims)
	// The window as a box: its dims, strides in the operand, strides in the result.
	var dims, sStr, dStr []int64
	for i, s := range sizes {
		if !slices.Contains(gone, int64(i)) {
			dims, sStr, dStr = append(dims, s), append(sStr, xs[i]), append(dStr, os[offset[len(dims)]])
		}
	}
	bStr := batchStrides(os, offset)
	start := make([]int64, len(x.Dims))
	var b box
	b.set(dims, dStr, sStr)
	for more := true; more; more = w.next() {
		w.start(start)
		var sOff, dOff int64
		for i, s := range start {
			sOff += max(0, min(s, x.Dims[i]-sizes[i])) * xs[i]
		}
		for i, a := range w.at {
			dOff += a * bStr[i]
		}
		b.copy(out.Data, dOff, x.Data, sOff, x.Dtype.Size())
	}
}

// batchStrides are the strides of the dimensions that are not window dimensions.
func batchStrides(strides, window []int64) []int64 {
	var s []int64
	for i := range strides {
		if !slices.Contains(window, int64(i)) {
			s = append(s, strides[i])
		}
	}
	return s
}
