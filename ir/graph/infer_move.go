package graph

import "slices"

func (v *inference) move() (Type, error) {
	g := v.g
	if v.op == OpConcat || v.op == OpDynamicSlice || v.op == OpDynamicUpdateSlice || v.op == OpScatter {
		if len(v.ins) == 0 {
			return v.errf("no operands")
		}
	}
	d, dims := v.dtype(0), v.dims(0)
	switch v.op {
	case OpReshape, OpBitcast:
		if v.want == 0 {
			return v.errf("%s needs a result type", v.op)
		}
		to := g.Types.At(v.want)
		if to.Dtype != d {
			return v.errf("a %s cannot change the element type", v.op)
		}
		if !CheckDims(g.TypeDims(v.want)) {
			return v.want, nil // reported by the caller
		}
		if a, b := g.Elements(v.inType(0)), g.Elements(v.want); a != b {
			return v.errf("%d elements cannot become %d", a, b)
		}
		return v.want, nil
	case OpBroadcast:
		if v.want == 0 || g.Types.At(v.want).Dtype != d {
			return v.errf("broadcast needs a result type of the operand's element type")
		}
		to := g.TypeDims(v.want)
		at, err := v.dimList(AttrDims, "broadcast dimensions", len(to))
		if err != nil {
			return 0, err
		}
		if len(at) != len(dims) {
			return v.errf("%d broadcast dimensions for an operand of rank %d", len(at), len(dims))
		}
		for i, r := range at {
			if to[r] != dims[i] {
				return v.errf("operand dimension %d (%d) does not equal result dimension %d (%d)", i, dims[i], r, to[r])
			}
		}
		return v.want, nil
	case OpTranspose:
		perm, err := v.dimList(AttrDims, "permutation", len(dims))
		if err != nil {
			return 0, err
		}
		if len(perm) != len(dims) {
			return v.errf("permutation %v of rank %d", perm, len(dims))
		}
		out := make([]int64, len(dims))
		for i, p := range perm {
			out[i] = dims[p]
		}
		return g.Tensor(d, out...), nil
	case OpReverse:
		if _, err := v.dimList(AttrDims, "reversed dimensions", len(dims)); err != nil {
			return 0, err
		}
		return v.inType(0), nil
	case OpSlice:
		return v.slice()
	case OpConcat:
		return v.concat()
	case OpPad:
		return v.pad()
	case OpDynamicSlice:
		sizes := v.list(AttrSizes)
		if len(sizes) != len(dims) {
			return v.errf("%d slice sizes for rank %d", len(sizes), len(dims))
		}
		for i, s := range sizes {
			if s < 0 || s > dims[i] {
				return v.errf("slice size %d of dimension %d (%d)", s, i, dims[i])
			}
		}
		if err := v.indexScalars(1, len(dims)); err != nil {
			return 0, err
		}
		return g.Tensor(d, sizes...), nil
	case OpDynamicUpdateSlice:
		if len(v.ins) < 2 {
			return v.errf("no update")
		}
		up := v.dims(1)
		if v.dtype(1) != d || len(up) != len(dims) {
			return v.errf("the update's element type or rank differs from the operand's")
		}
		for i, s := range up {
			if s > dims[i] {
				return v.errf("update dimension %d is %d, the operand's %d", i, s, dims[i])
			}
		}
		if err := v.indexScalars(2, len(dims)); err != nil {
			return 0, err
		}
		return v.inType(0), nil
	case OpGather:
		return v.gather()
	case OpScatter:
		return v.scatter()
	case OpTake:
		if !v.dtype(1).IsInt() {
			return v.errf("indices are %s", v.dtype(1))
		}
		at, err := v.dim(AttrDim, len(dims))
		if err != nil {
			return 0, err
		}
		return g.Tensor(d, slices.Concat(dims[:at], v.dims(1), dims[at+1:])...), nil
	case OpTakeAlong:
		if !v.dtype(1).IsInt() {
			return v.errf("indices are %s", v.dtype(1))
		}
		at, err := v.dim(AttrDim, len(dims))
		if err != nil {
			return 0, err
		}
		idx := v.dims(1)
		if len(idx) != len(dims) {
			return v.errf("indices of rank %d for an operand of rank %d", len(idx), len(dims))
		}
		for i := range idx {
			if i != at && idx[i] > dims[i] {
				return v.errf("index dimension %d is %d, the operand's %d", i, idx[i], dims[i])
			}
		}
		return g.Tensor(d, idx...), nil
	}
	return v.errf("no inference rule")
}

// indexScalars checks that operands from on are rank integer scalars.
func (v *inference) indexScalars(from, rank int) error {
	if len(v.ins) != from+rank {
		return v.g.nodeErr(v.n, "%d start indices for rank %d", len(v.ins)-from, rank)
	}
	for i := from; i < len(v.ins); i++ {
		if !v.dtype(i).IsInt() || len(v.dims(i)) != 0 {
			return v.g.nodeErr(v.n, "start index %d is not an integer scalar", i-from)
		}
	}
	return nil
}

func (v *inference) slice() (Type, error) {
	dims := v.dims(0)
	start, limit, stride := v.list(AttrStart), v.list(AttrLimit), v.list(AttrStride)
	if len(start) != len(dims) || len(limit) != len(dims) || len(stride) != 0 && len(stride) != len(dims) {
		return v.errf("slice bounds of rank %d, %d, %d for rank %d", len(start), len(limit), len(stride), len(dims))
	}
	out := make([]int64, len(dims))
	for i, d := range dims {
		s := int64(1)
		if len(stride) > 0 {
			s = stride[i]
		}
		if start[i] < 0 || limit[i] < start[i] || limit[i] > d || s < 1 {
			return v.errf("slice [%d:%d:%d] of dimension %d (%d)", start[i], limit[i], s, i, d)
		}
		out[i] = (limit[i] - start[i] + s - 1) / s
	}
	return v.g.Tensor(v.dtype(0), out...), nil
}

func (v *inference) concat() (Type, error) {
	dims := v.dims(0)
	at, err := v.dim(AttrDim, len(dims))
	if err != nil {
		return 0, err
	}
	out := slices.Clone(dims)
	for i := 1; i < len(v.ins); i++ {
		o := v.dims(i)
		if v.dtype(i) != v.dtype(0) || len(o) != len(dims) {
			return v.errf("operand %d differs in element type or rank", i)
		}
		for k := range o {
			if k != at && o[k] != dims[k] {
				return v.errf("operand %d has dimension %d of %d, operand 0 has %d", i, k, o[k], dims[k])
			}
		}
		if out[at] += o[at]; out[at] > MaxElements {
			break // the caller reports the size
		}
	}
	return v.g.Tensor(v.dtype(0), out...), nil
}

func (v *inference) pad() (Type, error) {
	dims := v.dims(0)
	low, high, interior := v.list(AttrLow), v.list(AttrHigh), v.list(AttrInterior)
	if v.dtype(1) != v.dtype(0) || len(v.dims(1)) != 0 {
		return v.errf("the padding value is not a scalar of the operand's element type")
	}
	if len(low) != len(dims) || len(high) != len(dims) || len(interior) != 0 && len(interior) != len(dims) {
		return v.errf("padding of rank %d, %d, %d for rank %d", len(low), len(high), len(interior), len(dims))
	}
	out := make([]int64, len(dims))
	for i, d := range dims {
		in := int64(0)
		if len(interior) > 0 {
			in = interior[i]
		}
		if in < 0 || in > MaxElements || low[i] > MaxElements || high[i] > MaxElements || low[i] < -MaxElements || high[i] < -MaxElements ||
			d > 1 && in > MaxElements/(d-1) {
			return v.errf("padding %d_%d_%d of dimension %d", low[i], high[i], in, i)
		}
		if out[i] = low[i] + high[i] + d + max(d-1, 0)*in; out[i] < 0 {
			return v.errf("padding %d_%d_%d leaves dimension %d with %d", low[i], high[i], in, i, out[i])
		}
	}
	return v.g.Tensor(v.dtype(0), out...), nil
}

// gather: XLA's rule with batching dimensions. Result = index batch dimensions with the window dimensions at OffsetDims.
func (v *inference) gather() (Type, error) {
	g := v.g
	dims, idx := v.dims(0), v.dims(1)
	if !v.dtype(1).IsInt() {
		return v.errf("indices are %s", v.dtype(1))
	}
	sizes := v.list(AttrSliceSizes)
	if len(sizes) != len(dims) {
		return v.errf("%d slice sizes for rank %d", len(sizes), len(dims))
	}
	for i, s := range sizes {
		if s < 0 || s > dims[i] {
			return v.errf("slice size %d of dimension %d (%d)", s, i, dims[i])
		}
	}
	collapsed, err := v.dimList(AttrCollapsedDims, "collapsed dimensions", len(dims))
	if err != nil {
		return 0, err
	}
	ob, err := v.dimList(AttrOperandBatch, "operand batching dimensions", len(dims))
	if err != nil {
		return 0, err
	}
	for _, l := range [][]int64{collapsed, ob} {
		for _, d := range l {
			if sizes[d] > 1 {
				return v.errf("dimension %d is dropped but has slice size %d", d, sizes[d])
			}
		}
	}
	batch, err := v.indexBatch(idx, dims)
	if err != nil {
		return 0, err
	}
	var window []int64
	for i, s := range sizes {
		if !slices.Contains(collapsed, int64(i)) && !slices.Contains(ob, int64(i)) {
			window = append(window, s)
		}
	}
	rank := len(batch) + len(window)
	offset, err := v.dimList(AttrOffsetDims, "offset dimensions", rank)
	if err != nil {
		return 0, err
	}
	if len(offset) != len(window) || !slices.IsSorted(offset) {
		return v.errf("offset dimensions %v for a window of rank %d", offset, len(window))
	}
	out := make([]int64, 0, rank)
	for i := range rank {
		if slices.Contains(offset, int64(i)) {
			out, window = append(out, window[0]), window[1:]
		} else {
			out, batch = append(out, batch[0]), batch[1:]
		}
	}
	return g.Tensor(v.dtype(0), out...), nil
}

// indexBatch checks the index side that gather and scatter share (dims is the operand's shape) and gives the index shape
// without the index vector dimension.
func (v *inference) indexBatch(idx, dims []int64) ([]int64, error) {
	g := v.g
	key := AttrStartIndexMap
	if v.op == OpScatter {
		key = AttrScatterDims
	}
	ivd := g.Int(v.n, AttrIndexVectorDim, int64(len(idx)))
	if ivd < 0 || ivd > int64(len(idx)) {
		return nil, g.nodeErr(v.n, "index vector dimension %d of rank %d", ivd, len(idx))
	}
	m, err := v.dimList(key, "indexed dimensions", len(dims))
	if err != nil {
		return nil, err
	}
	width := int64(1)
	if ivd < int64(len(idx)) {
		width = idx[ivd]
	}
	if width != int64(len(m)) {
		return nil, g.nodeErr(v.n, "index vectors of length %d for %d indexed dimensions", width, len(m))
	}
	ib, err := v.dimList(AttrIndicesBatch, "index batching dimensions", len(idx))
	if err != nil {
		return nil, err
	}
	ob, err := v.dimList(AttrOperandBatch, "operand batching dimensions", len(dims))
	if err != nil {
		return nil, err
	}
	if len(ib) != len(ob) {
		return nil, g.nodeErr(v.n, "%d index batching dimensions for %d of the operand", len(ib), len(ob))
	}
	for i := range ib {
		if ib[i] == ivd || idx[ib[i]] != dims[ob[i]] {
			return nil, g.nodeErr(v.n, "index batching dimension %d does not match operand dimension %d", ib[i], ob[i])
		}
	}
	batch := make([]int64, 0, len(idx))
	for i, d := range idx {
		if int64(i) != ivd {
			batch = append(batch, d)
		}
	}
	return batch, nil
}

func (v *inference) scatter() (Type, error) {
	g := v.g
	if len(v.ins) < 3 || len(v.ins)%2 == 0 {
		return v.errf("scatter takes n operands, indices, n updates; there are %d operands", len(v.ins))
	}
	k := len(v.ins) / 2
	dims, idx := v.dims(0), v.dims(k)
	if !v.dtype(k).IsInt() {
		return v.errf("indices are %s", v.dtype(k))
	}
	batch, err := v.indexBatch(idx, dims)
	if err != nil {
		return 0, err
	}
	inserted, err := v.dimList(AttrInsertedDims, "inserted window dimensions", len(dims))
	if err != nil {
		return 0, err
	}
	ob := v.list(AttrOperandBatch)
	var window []int64 // bounds of the update's window dimensions
	for i, d := range dims {
		if !slices.Contains(inserted, int64(i)) && !slices.Contains(ob, int64(i)) {
			window = append(window, d)
		}
	}
	elems := make([]Type, k)
	for j := range k {
		up := v.dims(k + 1 + j)
		if !sameDims(v.dims(j), dims) || v.dtype(k+1+j) != v.dtype(j) || len(up) != len(batch)+len(window) {
			return v.errf("operand or update %d does not fit", j)
		}
		wd, err := v.dimList(AttrUpdateWindowDims, "update window dimensions", len(up))
		if err != nil {
			return 0, err
		}
		if len(wd) != len(window) || !slices.IsSorted(wd) {
			return v.errf("update window dimensions %v for a window of rank %d", wd, len(window))
		}
		w, b := 0, 0
		for i, d := range up {
			if slices.Contains(wd, int64(i)) {
				if d > window[w] {
					return v.errf("update dimension %d (%d) exceeds the operand's window (%d)", i, d, window[w])
				}
				w++
				continue
			}
			if d != batch[b] {
				return v.errf("update dimension %d is %d, the indices' %d", i, d, batch[b])
			}
			b++
		}
		elems[j] = v.inType(j)
	}
	if k > 1 || len(v.calls()) > 0 {
		if err := v.combiner(k); err != nil {
			return 0, err
		}
	}
	if k == 1 {
		return elems[0], nil
	}
	return g.TupleOf(elems...), nil
}
