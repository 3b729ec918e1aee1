package graph

import "slices"

// Contractions are packed into row-major matrices and multiplied by two kernels, each of which adds float32(a·b) to its
// accumulator in ascending k: the product is rounded before the sum, so that no machine's fused multiply-add changes a bit.

// gemm adds A·B to C: A [m][k], B [k][n], C [m][n], row-major and contiguous. Four rows of B are read a pass over a row of C,
// in blocks of 256 k by 512 n, which keeps B's block in the second-level cache. C[i][j] sums in ascending k.
func gemm[T number](m, n, k int, a, b, c []T) {
	const kb, nb = 256, 512
	for n0 := 0; n0 < n; n0 += nb {
		nw := min(nb, n-n0)
		for k0 := 0; k0 < k; k0 += kb {
			kw := min(kb, k-k0)
			for i := range m {
				row := c[i*n+n0:][:nw]
				ar := a[i*k+k0:][:kw]
				j := 0
				for ; j+4 <= kw; j += 4 {
					a0, a1, a2, a3 := ar[j], ar[j+1], ar[j+2], ar[j+3]
					at := (k0+j)*n + n0
					b0, b1, b2, b3 := b[at:][:len(row)], b[at+n:][:len(row)], b[at+2*n:][:len(row)], b[at+3*n:][:len(row)]
					for x, s := range row {
						s = T(a0*b0[x]) + s
						s = T(a1*b1[x]) + s
						s = T(a2*b2[x]) + s
						row[x] = T(a3*b3[x]) + s
					}
				}
				for ; j < kw; j++ {
					a0 := ar[j]
					b0 := b[(k0+j)*n+n0:][:len(row)]
					for x, s := range row {
						row[x] = T(a0*b0[x]) + s
					}
				}
			}
		}
	}
}

// dots sets out(i, j) to the dot product of row i of x and row j of y, both with rows of k elements: the form for few y.
// Four rows of x advance together, so that four sums are in flight.
func dots[T number](nx, ny, k int, x, y []T, out func(i, j int, s T)) {
	for j := range ny {
		yr := y[j*k:][:k]
		i := 0
		for ; i+4 <= nx; i += 4 {
			x0, x1, x2, x3 := x[i*k:][:len(yr)], x[(i+1)*k:][:len(yr)], x[(i+2)*k:][:len(yr)], x[(i+3)*k:][:len(yr)]
			var s0, s1, s2, s3 T
			for p, v := range yr {
				s0 = T(x0[p]*v) + s0
				s1 = T(x1[p]*v) + s1
				s2 = T(x2[p]*v) + s2
				s3 = T(x3[p]*v) + s3
			}
			out(i, j, s0)
			out(i+1, j, s1)
			out(i+2, j, s2)
			out(i+3, j, s3)
		}
		for ; i < nx; i++ {
			xr := x[i*k:][:len(yr)]
			var s T
			for p, v := range yr {
				s = T(xr[p]*v) + s
			}
			out(i, j, s)
		}
	}
}

// dot evaluates OpDot: accumulation in float32 (float64 for F64, int64 for integers), one rounding at the end.
func (r *run) dot(n Node, out, x, y Tensor) error {
	switch {
	case x.Dtype == F64 || y.Dtype == F64 || out.Dtype == F64:
		return dotIn(r, n, out, x, y, r.floats64, storeF64)
	case domainOf(x.Dtype) == domF32 && domainOf(y.Dtype) == domF32 && domainOf(out.Dtype) == domF32:
		return dotIn(r, n, out, x, y, r.floats32, storeF32)
	case domainOf(x.Dtype) == domInt && domainOf(y.Dtype) == domInt && domainOf(out.Dtype) == domInt:
		return dotIn(r, n, out, x, y, r.ints, storeInts)
	}
	return r.g.unsupported(n, "%s by %s to %s is not evaluated", x.Dtype, y.Dtype, out.Dtype)
}

func pick(dims, which []int64) []int64 {
	out := make([]int64, len(which))
	for i, d := range which {
		out[i] = dims[d]
	}
	return out
}

func dotIn[T number](r *run, n Node, out, x, y Tensor, load func(Node, Tensor) ([]T, func(), error), store func(Dtype, []byte, int, []T)) error {
	g := r.g
	lb, lc := g.IntList(n, AttrLhsBatch), g.IntList(n, AttrLhsContract)
	rb, rc := g.IntList(n, AttrRhsBatch), g.IntList(n, AttrRhsContract)
	lf, rf := free(len(x.Dims), lb, lc), free(len(y.Dims), rb, rc)
	batch, m, nn, k := count(pick(x.Dims, lb)), count(pick(x.Dims, lf)), count(pick(y.Dims, rf)), count(pick(x.Dims, lc))
	if out.Len() == 0 {
		return nil
	}
	a, doneA, err := load(n, x)
	if err != nil {
		return err
	}
	defer doneA()
	b, doneB, err := load(n, y)
	if err != nil {
		return err
	}
	defer doneB()
	c, doneC, err := temp[T](r, n, batch*m*nn)
	if err != nil {
		return err
	}
	defer doneC()
	if k == 0 {
		store(out.Dtype, out.Data, 0, c)
		return nil
	}
	// Few columns, or few rows against a B that has k innermost already: dot products of rows. Else the row kernel.
	transposed := innermost(y.Dims, slices.Concat(rb, rf, rc))
	byRows := nn < 8 || m < 8 && transposed
	a, doneP, err := packed(r, n, a, x.Dims, slices.Concat(lb, lf, lc))
	if err != nil {
		return err
	}
	defer doneP()
	order := slices.Concat(rb, rc, rf)
	if byRows {
		order = slices.Concat(rb, rf, rc)
	}
	b, doneQ, err := packed(r, n, b, y.Dims, order)
	if err != nil {
		return err
	}
	defer doneQ()
	for i := range batch {
		ai, bi, ci := a[i*m*k:(i+1)*m*k], b[i*k*nn:(i+1)*k*nn], c[i*m*nn:(i+1)*m*nn]
		switch {
		case !byRows:
			gemm(m, nn, k, ai, bi, ci)
		case nn <= m:
			dots(m, nn, k, ai, bi, func(p, q int, s T) { ci[p*nn+q] = s })
		default:
			dots(nn, m, k, bi, ai, func(p, q int, s T) { ci[q*nn+p] = s })
		}
	}
	store(out.Dtype, out.Data, 0, c)
	return nil
}

// innermost reports whether perm leaves the row-major order unchanged but for dimensions of 1.
func innermost(dims, perm []int64) bool {
	last := int64(-1)
	for _, p := range perm {
		if dims[p] == 1 {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}

// packed is x with its dimensions permuted, contiguous; x itself when nothing moves.
func packed[T number](r *run, n Node, x []T, dims, perm []int64) ([]T, func(), error) {
	if innermost(dims, perm) {
		return x, func() {}, nil
	}
	p, done, err := temp[T](r, n, len(x))
	if err != nil {
		return nil, nil, err
	}
	to := pick(dims, perm)
	copyND(bytesOf(p), 0, rowMajor(to), bytesOf(x), 0, pick(rowMajor(dims), perm), to, len(bytesOf(p))/len(p))
	return p, done, nil
}

// conv evaluates OpConv by copying the windows of a block of positions into a matrix and multiplying it with the kernel of
// the group: k ascends over (input feature, taps). Accumulation as in dot.
func (r *run) conv(n Node, out, x, w Tensor) error {
	switch {
	case x.Dtype == F64 || w.Dtype == F64 || out.Dtype == F64:
		return convIn(r, n, out, x, w, r.floats64, storeF64)
	case domainOf(x.Dtype) == domF32 && domainOf(w.Dtype) == domF32 && domainOf(out.Dtype) == domF32:
		return convIn(r, n, out, x, w, r.floats32, storeF32)
	case domainOf(x.Dtype) == domInt && domainOf(w.Dtype) == domInt && domainOf(out.Dtype) == domInt:
		return convIn(r, n, out, x, w, r.ints, storeInts)
	}
	return r.g.unsupported(n, "%s by %s to %s is not evaluated", x.Dtype, w.Dtype, out.Dtype)
}

func convIn[T number](r *run, n Node, out, x, w Tensor, load func(Node, Tensor) ([]T, func(), error), store func(Dtype, []byte, int, []T)) error {
	g := r.g
	if out.Len() == 0 {
		return nil
	}
	cd, _ := g.ConvLabels(n, len(x.Dims))
	ws, _ := g.Windows(n, len(cd.Lhs))
	taps, kdims, odims := 1, pick(w.Dims, cd.Rhs), pick(out.Dims, cd.Out)
	for i, k := range kdims {
		ws[i].Size = k
		taps *= int(k)
	}
	a, doneA, err := load(n, x)
	if err != nil {
		return err
	}
	defer doneA()
	b, doneB, err := load(n, w)
	if err != nil {
		return err
	}
	defer doneB()
	c, doneC, err := temp[T](r, n, out.Len())
	if err != nil {
		return err
	}
	defer doneC()
	// Kernel as [output feature][input feature][taps].
	kernel, doneK, err := packed(r, n, b, w.Dims, append([]int64{int64(cd.RhsOut), int64(cd.RhsIn)}, cd.Rhs...))
	if err != nil {
		return err
	}
	defer doneK()
	groups, bgroups := int(g.Int(n, AttrGroups, 1)), int(g.Int(n, AttrBatchGroups, 1))
	ci, co := int(w.Dims[cd.RhsIn]), int(w.Dims[cd.RhsOut])/(groups*bgroups)
	batch := int(out.Dims[cd.OutBatch])
	k := ci * taps
	positions := count(odims)
	xs, os := rowMajor(x.Dims), rowMajor(out.Dims)
	const blockPositions = 128
	block := min(blockPositions, positions)
	panel, doneP, err := temp[T](r, n, k*block)
	if err != nil {
		return err
	}
	defer doneP()
	sums, doneS, err := temp[T](r, n, co*block)
	if err != nil {
		return err
	}
	defer doneS()
	p := patches[T]{
		ws: ws, taps: taps, ci: ci, kdims: kdims, odims: odims, idims: pick(x.Dims, cd.Lhs),
		spatial: pick(xs, cd.Lhs), feature: int(xs[cd.LhsFeature]), x: a,
		at: make([]int64, len(odims)), tap: make([]int64, len(kdims)),
	}
	oSpatial := pick(os, cd.Out)
	for bg := range bgroups {
		for gr := range groups {
			first := (bg*groups + gr) * co // output feature
			kern := kernel[first*k : (first+co)*k]
			for nb := range batch {
				src := (bg*batch+nb)*int(xs[cd.LhsBatch]) + gr*ci*int(xs[cd.LhsFeature])
				dst := nb*int(os[cd.OutBatch]) + first*int(os[cd.OutFeature])
				for p0 := 0; p0 < positions; p0 += block {
					pw := min(block, positions-p0)
					p.gather(panel[:k*pw], src, p0, pw)
					clear(sums[:co*pw])
					if pw < 8 {
						gemmNarrow(co, pw, k, kern, panel, sums)
					} else {
						gemm(co, pw, k, kern, panel, sums)
					}
					for q := range pw {
						off := dst
						rest := p0 + q
						for i := len(odims) - 1; i >= 0; i-- {
							off += rest % int(odims[i]) * int(oSpatial[i])
							rest /= int(odims[i])
						}
						for f := range co {
							c[off+f*int(os[cd.OutFeature])] = sums[f*pw+q]
						}
					}
				}
			}
		}
	}
	store(out.Dtype, out.Data, 0, c)
	return nil
}

// gemmNarrow is gemm for few columns: the panel's columns are gathered into rows and multiplied by dot products.
func gemmNarrow[T number](m, n, k int, a, b, c []T) {
	row := make([]T, k)
	for j := range n {
		for i := range row {
			row[i] = b[i*n+j]
		}
		dots(m, 1, k, a, row, func(i, _ int, s T) { c[i*n+j] = s })
	}
}

// patches copies the windows of consecutive output positions into a panel [input feature · taps][positions].
type patches[T number] struct {
	ws                           []Window
	taps, ci, feature            int
	kdims, odims, idims, spatial []int64
	x                            []T
	at, tap                      []int64
}

func (p *patches[T]) gather(panel []T, src, p0, pw int) {
	clear(panel)
	rank := len(p.odims)
	clear(p.tap)
	for t := range p.taps {
		// Runs of positions along the innermost spatial dimension.
		for q := 0; q < pw; {
			rest := p0 + q
			runLen := pw - q
			off, inside := src, true
			var last Window
			var lastOff int64
			for i := rank - 1; i >= 0; i-- {
				pos := int64(rest) % p.odims[i]
				rest /= int(p.odims[i])
				w := p.ws[i]
				tap := p.tap[i]
				if w.Reverse {
					tap = w.Size - 1 - tap
				}
				rel := tap*w.RhsDilate - w.PadLow
				if i == rank-1 {
					runLen = min(runLen, int(p.odims[i]-pos))
					last, lastOff = w, pos*w.Stride+rel
					continue
				}
				e := pos*w.Stride + rel
				if e < 0 || e%w.LhsDilate != 0 || e/w.LhsDilate >= p.idims[i] {
					inside = false
					continue
				}
				off += int(e / w.LhsDilate * p.spatial[i])
			}
			if inside {
				p.run(panel[t*pw+q:], off, pw, runLen, rank, last, lastOff)
			}
			q += runLen
		}
		for i := rank - 1; i >= 0; i-- {
			if p.tap[i]++; p.tap[i] < p.kdims[i] {
				break
			}
			p.tap[i] = 0
		}
	}
}

// run copies one run for every input feature. panel starts at the run in the row of feature 0.
func (p *patches[T]) run(panel []T, off, pw, runLen, rank int, w Window, e int64) {
	if rank == 0 {
		for f := range p.ci {
			panel[f*p.taps*pw] = p.x[off+f*p.feature]
		}
		return
	}
	step, limit := int(p.spatial[rank-1]), p.idims[rank-1]
	// Positions [lo, hi) of the run fall inside when nothing is dilated.
	lo, hi := 0, runLen
	if w.LhsDilate == 1 {
		if e < 0 {
			lo = int(min((-e+w.Stride-1)/w.Stride, int64(runLen)))
		}
		if e >= limit {
			return
		}
		hi = int(min(int64(runLen), (limit-e+w.Stride-1)/w.Stride))
	}
	for f := range p.ci {
		dst := panel[f*p.taps*pw:]
		base := off + f*p.feature
		switch {
		case w.LhsDilate > 1:
			for q := range runLen {
				if d := e + int64(q)*w.Stride; d >= 0 && d%w.LhsDilate == 0 && d/w.LhsDilate < limit {
					dst[q] = p.x[base+int(d/w.LhsDilate)*step]
				}
			}
		case w.Stride == 1 && step == 1 && hi > lo:
			from := base + int(e) + lo
			copy(dst[lo:hi], p.x[from:from+hi-lo])
		default:
			by := int(w.Stride) * step
			from := base + (int(e)+lo*int(w.Stride))*step
			for q := lo; q < hi; q++ {
				dst[q] = p.x[from]
				from += by
			}
		}
	}
}
