package tile

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// dotInfo is a contraction: a has the axes batch, m, k and b the axes batch, k, n, with unit axes dropped.
type dotInfo struct {
	a, b       view
	nb, nm, nk int // axes of each kind; the rest of b's are n
	m, n, k    int64
	batch      int64
}

// convInfo is a convolution: x has the axes batch, channel, spatial…; w the axes input channel of a group, output channel,
// spatial…, mirrored where the window is reversed.
type convInfo struct {
	x, w    view
	ws      []graph.Window
	groups  int64
	out     []int64 // batch, channel, spatial… of the result
	outAxes []int   // where they lie in the result
}

func (l *lowering) dot(n graph.Node) view {
	g := l.g
	d := g.Dtype(n)
	dt, ok := machineType(d)
	if !ok || !d.IsFloat() {
		l.badType(n, d, "products are not lowered")
		return view{}
	}
	a, b := l.in(n, 0), l.in(n, 1)
	dims := g.Dims(n)
	if a.root == 0 || b.root == 0 {
		return l.splatOf(d, dt, 0, dims)
	}
	dt = floatType(dt)
	for i := range 2 {
		if od := g.Dtype(g.Operands(n)[i]); !od.IsFloat() {
			l.badType(n, od, "products are not lowered")
			return view{}
		}
	}
	lb, lc := g.IntList(n, graph.AttrLhsBatch), g.IntList(n, graph.AttrLhsContract)
	rb, rc := g.IntList(n, graph.AttrRhsBatch), g.IntList(n, graph.AttrRhsContract)
	a, b = l.pairTypes(a, b)
	var lfBuf, rfBuf [maxRank]int64
	lf, rf := freeAxes(lfBuf[:0], int(a.n), lb, lc), freeAxes(rfBuf[:0], int(b.n), rb, rc)
	info := dotInfo{m: 1, n: 1, k: 1, batch: 1}
	count := func(v view, axes []int64, total *int64) (k int) {
		for _, x := range axes {
			*total *= v.dims[x]
			if v.dims[x] != 1 {
				k++
			}
		}
		return k
	}
	info.nb = count(a, lb, &info.batch)
	info.nm = count(a, lf, &info.m)
	info.nk = count(a, lc, &info.k)
	count(b, rf, &info.n)
	pa, pb := a.permuted3(lb, lf, lc), b.permuted3(rb, rc, rf)
	pa, pb = l.contractedFirst(pa, len(lb), len(lb)+len(lf)), l.relaid(pb)
	info.a, info.b = pa.squeezed(), pb.squeezed()
	l.dots = append(l.dots, info)
	return l.add(valueRow{op: vDot, dt: dt, aux: uint32(len(l.dots) - 1)}, dims, pa, pb)
}

// contractedFirst lays a constant left operand, whose axes are batch, free [nb, nf) and contracted ones, with the contracted
// ones before the free ones, as products read it.
func (l *lowering) contractedFirst(v view, nb, nf int) view {
	var permBuf, backBuf [maxRank]int64
	perm, back := permBuf[:v.n], backBuf[:v.n]
	nk := int(v.n) - nf
	for i := range perm {
		switch {
		case i < nb:
			perm[i] = int64(i)
		case i < nb+nk:
			perm[i] = int64(i - nb + nf)
		default:
			perm[i] = int64(i - nk)
		}
		back[perm[i]] = int64(i)
	}
	w := v.permuted(perm)
	r := l.relaid(w)
	return r.permuted(back)
}

// pairTypes casts the narrower operand of a product when the other is fp32: 32-bit floats pair only with their like.
func (l *lowering) pairTypes(a, b view) (view, view) {
	da, db := l.vals.At(a.root).dt, l.vals.At(b.root).dt
	if da.Size() != 4 && db.Size() == 4 {
		a = l.cast(f32, a.shape(), a)
	}
	if db.Size() != 4 && da.Size() == 4 {
		b = l.cast(f32, b.shape(), b)
	}
	return a, b
}

// freeAxes appends the axes that are in neither list to out.
func freeAxes(out []int64, rank int, a, b []int64) []int64 {
	for i := range int64(rank) {
		if !slices.Contains(a, i) && !slices.Contains(b, i) {
			out = append(out, i)
		}
	}
	return out
}

func (l *lowering) conv(n graph.Node) view {
	g := l.g
	d := g.Dtype(n)
	dt, ok := machineType(d)
	if !ok || !d.IsFloat() {
		l.badType(n, d, "convolutions are not lowered")
		return view{}
	}
	dims := g.Dims(n)
	x, w := l.in(n, 0), l.in(n, 1)
	if x.root == 0 || w.root == 0 {
		return l.splatOf(d, dt, 0, dims)
	}
	dt = floatType(dt)
	if g.Int(n, graph.AttrBatchGroups, 1) != 1 {
		l.unsupported(n, "batch groups are not lowered")
		return view{}
	}
	for i := range 2 {
		if od := g.Dtype(g.Operands(n)[i]); !od.IsFloat() {
			l.badType(n, od, "convolutions are not lowered")
			return view{}
		}
	}
	x, w = l.pairTypes(x, w)
	c, _ := g.ConvLabels(n, len(dims))
	ws, _ := g.Windows(n, len(c.Lhs))
	x = x.permuted3([]int64{int64(c.LhsBatch)}, []int64{int64(c.LhsFeature)}, c.Lhs)
	w = w.permuted3([]int64{int64(c.RhsIn)}, []int64{int64(c.RhsOut)}, c.Rhs)
	info := convInfo{ws: ws, groups: g.Int(n, graph.AttrGroups, 1), out: l.kept.TakeDirty(len(dims))[:0], outAxes: l.keptAxes.TakeDirty(len(dims))[:0]}
	info.outAxes = append(info.outAxes, c.OutBatch, c.OutFeature)
	for i := range ws {
		ws[i].Size = w.dims[2+i]
		if ws[i].Reverse {
			w = w.reversed(2 + i)
		}
		info.outAxes = append(info.outAxes, int(c.Out[i]))
	}
	for _, a := range info.outAxes {
		info.out = append(info.out, dims[a])
	}
	// Weights as products read them: input channel, taps, output channel.
	rank := int64(len(dims))
	var permBuf [maxRank]int64
	perm := append(permBuf[:0], 0)
	for i := int64(2); i < rank; i++ {
		perm = append(perm, i)
	}
	w = w.permuted(append(perm, 1))
	w = l.relaid(w)
	perm = append(permBuf[:0], 0, rank-1)
	for i := int64(1); i < rank-1; i++ {
		perm = append(perm, i)
	}
	w = w.permuted(perm)
	info.x, info.w = x, w
	l.convs = append(l.convs, info)
	return l.add(valueRow{op: vConv, dt: dt, aux: uint32(len(l.convs) - 1)}, dims, x, w)
}
