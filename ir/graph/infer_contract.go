package graph

import "slices"

// free lists the dimensions of [0, rank) in neither a nor b, in order.
func free(rank int, a, b []int64) []int64 {
	out := make([]int64, 0, rank)
	for i := range int64(rank) {
		if !slices.Contains(a, i) && !slices.Contains(b, i) {
			out = append(out, i)
		}
	}
	return out
}

func (v *inference) dot() (Type, error) {
	l, r := v.dims(0), v.dims(1)
	var lists [4][]int64
	for i, a := range []struct {
		k    Key
		what string
		rank int
	}{
		{AttrLhsBatch, "lhs batch dimensions", len(l)}, {AttrLhsContract, "lhs contracting dimensions", len(l)},
		{AttrRhsBatch, "rhs batch dimensions", len(r)}, {AttrRhsContract, "rhs contracting dimensions", len(r)},
	} {
		var err error
		if lists[i], err = v.dimList(a.k, a.what, a.rank); err != nil {
			return 0, err
		}
	}
	lb, lc, rb, rc := lists[0], lists[1], lists[2], lists[3]
	if len(lb) != len(rb) || len(lc) != len(rc) {
		return v.errf("batch %v and %v or contracting %v and %v differ in number", lb, rb, lc, rc)
	}
	var out []int64
	for i := range lb {
		if l[lb[i]] != r[rb[i]] {
			return v.errf("batch dimension %d is %d on the left, %d on the right", i, l[lb[i]], r[rb[i]])
		}
		if slices.Contains(lc, lb[i]) || slices.Contains(rc, rb[i]) {
			return v.errf("a dimension is both batch and contracting")
		}
		out = append(out, l[lb[i]])
	}
	for i := range lc {
		if l[lc[i]] != r[rc[i]] {
			return v.errf("contracting dimension %d is %d on the left, %d on the right", i, l[lc[i]], r[rc[i]])
		}
	}
	for _, d := range free(len(l), lb, lc) {
		out = append(out, l[d])
	}
	for _, d := range free(len(r), rb, rc) {
		out = append(out, r[d])
	}
	return v.g.Tensor(v.wanted(v.dtype(0)), out...), nil
}

// ConvDims is AttrDimLabels of a convolution taken apart.
type ConvDims struct {
	LhsBatch, LhsFeature int
	RhsIn, RhsOut        int
	OutBatch, OutFeature int
	Lhs, Rhs, Out        []int64 // spatial dimensions in label order
}

// ConvLabels reads AttrDimLabels of n, which must name all dimensions of operands and result of the given rank.
func (g *Graph) ConvLabels(n Node, rank int) (c ConvDims, ok bool) {
	l := g.IntList(n, AttrDimLabels)
	if rank < 2 || len(l) != 3*rank {
		return c, false
	}
	seen := make([]bool, 3*rank)
	for i, d := range l {
		if d < 0 || d >= int64(rank) || seen[i/rank*rank+int(d)] {
			return c, false
		}
		seen[i/rank*rank+int(d)] = true
	}
	a, b, o := l[:rank], l[rank:2*rank], l[2*rank:]
	return ConvDims{
		LhsBatch: int(a[0]), LhsFeature: int(a[1]), Lhs: a[2:],
		RhsIn: int(b[0]), RhsOut: int(b[1]), Rhs: b[2:],
		OutBatch: int(o[0]), OutFeature: int(o[1]), Out: o[2:],
	}, true
}

func (v *inference) conv() (Type, error) {
	g := v.g
	l, r := v.dims(0), v.dims(1)
	if len(l) != len(r) {
		return v.errf("operands of rank %d and %d", len(l), len(r))
	}
	c, ok := g.ConvLabels(v.n, len(l))
	if !ok {
		return v.errf("dimension labels %v do not name the dimensions of rank %d", v.list(AttrDimLabels), len(l))
	}
	ws, ok := g.Windows(v.n, len(c.Lhs))
	if !ok {
		return v.errf("the window does not have %d dimensions", len(c.Lhs))
	}
	groups, bg := g.Int(v.n, AttrGroups, 1), g.Int(v.n, AttrBatchGroups, 1)
	ci, co := l[c.LhsFeature], r[c.RhsOut]
	if groups < 1 || bg < 1 || groups > 1 && bg > 1 || ci%groups != 0 || co%groups != 0 || ci/groups != r[c.RhsIn] {
		return v.errf("%d input features in %d groups (%d batch groups) for a kernel of %d in, %d out", ci, groups, bg, r[c.RhsIn], co)
	}
	if l[c.LhsBatch]%bg != 0 || co%bg != 0 {
		return v.errf("batch %d and %d output features do not divide by %d batch groups", l[c.LhsBatch], co, bg)
	}
	out := make([]int64, len(l))
	out[c.OutBatch], out[c.OutFeature] = l[c.LhsBatch]/bg, co
	for i, w := range ws {
		if len(v.list(AttrWindowSize)) == 0 {
			w.Size = r[c.Rhs[i]]
		}
		if w.Size != r[c.Rhs[i]] {
			return v.errf("window size %d of spatial dimension %d, the kernel has %d", w.Size, i, r[c.Rhs[i]])
		}
		var ok bool
		if out[c.Out[i]], ok = w.Out(l[c.Lhs[i]]); !ok {
			return v.errf("the window of spatial dimension %d is too large", i)
		}
	}
	return g.Tensor(v.wanted(v.dtype(0)), out...), nil
}
