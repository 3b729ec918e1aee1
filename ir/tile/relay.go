package tile

import (
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
)

// relaid gives a constant operand the axis order of its view in memory, so that it loads in long runs: small ones are permuted
// here, large ones by a recipe that whoever supplies the weight follows. A view that is not the whole constant in some order
// of its axes is returned as it is.
func (l *lowering) relaid(v view) view {
	r := l.vals.At(v.root)
	if r.op != vConst {
		return v
	}
	c := l.consts[r.aux]
	sq := v.squeezed()
	if c.node == 0 || c.recipe != 0 || sq.n < 2 || sq.isDense(product(l.shapeOf(v.root))) {
		return v
	}
	// The axes in memory order must be a factorisation of the constant.
	var orderBuf [maxRank]int
	order := orderBuf[:sq.n]
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(min(1, max(-1, sq.step[b]-sq.step[a]))) })
	s := int64(1)
	for k := len(order) - 1; k >= 0; k-- {
		if sq.step[order[k]] != s {
			return v
		}
		s *= sq.dims[order[k]]
	}
	if sq.off != 0 || s != product(l.shapeOf(v.root)) {
		return v
	}
	// Merge what stays together in both orders, then spell the rest.
	var shapeBuf, permBuf, at [maxRank]int64
	shape, perm := shapeBuf[:0], permBuf[:0]
	// at is, of each axis: its place in memory order
	for k, i := range order {
		at[i] = int64(k)
		shape = append(shape, sq.dims[i])
	}
	for i := range sq.n {
		perm = append(perm, at[i])
	}
	n := constant{node: c.node, dims: l.ints.AddSlice(sq.shape())}
	if data := l.embeddable(c.node); data != nil {
		n.node = 0
		n.bytes = l.permuted(&sq, data, r.dt.Size())
	} else {
		s := commas(append(l.spelled[:0], "reshape "...), shape)
		l.spelled = commas(append(s, "; permute "...), perm)
		n.recipe = l.m.Names.InternBytes(l.spelled)
	}
	l.consts = append(l.consts, n)
	keep := l.cur
	l.cur = r.src
	out := l.add(valueRow{op: vConst, dt: r.dt, lo: r.lo, hi: r.hi, aux: uint32(len(l.consts) - 1)}, v.shape())
	l.cur = keep
	return out
}

// commas appends a list.
func commas(dst []byte, xs []int64) []byte {
	for i, x := range xs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, x, 10)
	}
	return dst
}

// permuted copies the elements of a constant in the order of a view.
func (l *lowering) permuted(v *view, data []byte, size int) arena.Span {
	mark := l.own.Mark()
	var buf [maxRank]axis
	axes := buf[:0]
	for i := range v.n {
		axes = append(axes, axis{n: v.dims[i]})
	}
	var idxBuf [maxRank]int64
	idx := idxBuf[:v.n]
	for {
		at := int64(0)
		for i := range v.n {
			at += idx[i] * v.step[i]
		}
		for _, b := range data[at*int64(size) : (at+1)*int64(size)] {
			l.own.Push(b)
		}
		if !odometer(idx, axes) {
			return l.own.Since(mark)
		}
	}
}
