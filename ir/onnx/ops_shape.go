package onnx

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// int64s is a vector of int64.
func int64s(vals []int64) konst {
	k := konst{dtype: graph.S64, dims: []int64{int64(len(vals))}}
	for _, v := range vals {
		k.data = binary.LittleEndian.AppendUint64(k.data, uint64(v))
	}
	return k
}

func opShape(e *emit) {
	_, dims := e.typeOf(0)
	clip := func(v, def int64) int64 {
		if v == math.MinInt64 {
			v = def
		}
		if v < 0 {
			v += int64(len(dims))
		}
		return min(max(v, 0), int64(len(dims)))
	}
	start, end := clip(e.attrInt("start", 0), 0), clip(e.attrInt("end", math.MinInt64), int64(len(dims)))
	e.setKonst(0, int64s(dims[start:max(start, end)]))
}

func opSize(e *emit) {
	_, dims := e.typeOf(0)
	n, _ := elements(dims)
	k := int64s([]int64{n})
	k.dims = []int64{}
	e.setKonst(0, k)
}

// opConstant takes its value from whichever attribute is there.
func opConstant(e *emit) {
	out := e.r.m.lists.Of(e.n.Outs)[0]
	if a, ok := e.typedAttr("value", attrTensor); ok {
		v, err := e.r.tensorKonst(e.r.m.tensors.At(a.Tensor), out)
		if err != nil {
			panic(bail{err})
		}
		e.outs[0] = v
		return
	}
	k := konst{dtype: graph.F32, dims: []int64{}}
	if a, ok := e.typedAttr("value_int", attrInt); ok {
		k = int64s([]int64{int64(a.Num)})
		k.dims = []int64{}
	} else if a, ok := e.typedAttr("value_ints", attrInts); ok {
		k = int64s(e.r.m.ints.Of(a.List))
	} else if a, ok := e.typedAttr("value_float", attrFloat); ok {
		k.data = binary.LittleEndian.AppendUint32(nil, uint32(a.Num))
	} else if a, ok := e.typedAttr("value_floats", attrFloats); ok {
		for _, v := range e.r.m.ints.Of(a.List) {
			k.data = binary.LittleEndian.AppendUint32(k.data, uint32(v))
		}
		k.dims = []int64{int64(len(k.data) / 4)}
	} else {
		e.refuse("a value that is neither a tensor, numbers nor a number")
	}
	k.name = out
	e.setKonst(0, k)
}

// opConstantOfShape makes a splat of any size: weights of the light models are these.
func opConstantOfShape(e *emit) {
	k := konst{dtype: graph.F32, splat: true, dims: e.checkDims(e.ints(0)), name: e.r.m.lists.Of(e.n.Outs)[0]}
	if a, ok := e.typedAttr("value", attrTensor); ok {
		v, err := e.r.tensorKonst(e.r.m.tensors.At(a.Tensor), 0)
		if err != nil {
			panic(bail{err})
		}
		one := &e.r.konsts[v.konst]
		if n, _ := elements(one.dims); n != 1 || !one.splat {
			e.fail("the value has dims %v, expected one element", one.dims)
		}
		k.dtype, k.bits = one.dtype, one.bits
	}
	e.setKonst(0, k)
}

func opIdentity(e *emit) { e.pass(0) }

// opDropout passes its input: what inference means. The mask, if named, keeps everything.
func opDropout(e *emit) {
	if e.has(2) {
		if k := e.known(2); k == nil || !k.splat || k.bits != 0 {
			e.refuse("training mode")
		}
	}
	e.pass(0)
	if e.wants(1) {
		d, dims := e.typeOf(0)
		if e.ver >= 10 {
			d = graph.Bool
		}
		bits, _ := graph.EncodeFloat(d, 1)
		e.setKonst(1, konst{dtype: d, dims: slices.Clone(dims), splat: true, bits: bits})
	}
}

func opReshape(e *emit) {
	_, have := e.typeOf(0)
	want, ok := e.list("shape", 1)
	if !ok {
		e.fail("no shape")
	}
	n, _ := elements(have)
	rest, open := int64(1), -1
	for i, d := range want {
		switch {
		case d == -1 && open < 0:
			open = i
			continue
		case d == 0 && !e.attrBool("allowzero", 0):
			if i >= len(have) {
				e.fail("shape %v copies dimension %d of %v", want, i, have)
			}
			want[i] = have[i]
		case d < 0:
			e.fail("shape %v", want)
		}
		if want[i] > graph.MaxElements || rest > graph.MaxElements/max(want[i], 1) {
			e.fail("shape %v of %v", want, have)
		}
		rest *= want[i]
	}
	if open >= 0 {
		if rest == 0 || n%rest != 0 {
			e.fail("dims %v cannot take shape %v", have, want)
		}
		want[open] = n / rest
	} else if rest != n {
		e.fail("dims %v cannot take shape %v", have, want)
	}
	e.view(want)
}

// view is input 0 in another shape of as many elements; a constant stays one and is not copied.
func (e *emit) view(dims []int64) {
	if k := e.known(0); k != nil {
		c := *k
		c.dims, c.node, c.name = dims, 0, e.r.m.lists.Of(e.n.Outs)[0]
		e.setKonst(0, c)
		return
	}
	if slices.Equal(e.dims(e.in(0)), dims) {
		e.pass(0)
		return
	}
	e.set(0, e.reshape(e.in(0), dims...))
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

func opFlatten(e *emit) {
	_, have := e.typeOf(0)
	a := e.attrInt("axis", 1)
	if a < -int64(len(have)) || a > int64(len(have)) {
		e.fail("axis %d of dims %v", a, have)
	}
	if a < 0 {
		a += int64(len(have))
	}
	e.view([]int64{product(have[:a]), product(have[a:])})
}

func opSqueeze(e *emit) {
	_, have := e.typeOf(0)
	l, ok := e.list("axes", 1)
	gone := make([]bool, len(have))
	if !ok {
		for i, d := range have {
			gone[i] = d == 1
		}
	}
	for _, a := range e.axes(l, len(have)) {
		if have[a] != 1 {
			e.fail("dimension %d of %v is not 1", a, have)
		}
		gone[a] = true
	}
	out := []int64{}
	for i, d := range have {
		if !gone[i] {
			out = append(out, d)
		}
	}
	e.view(out)
}

func opUnsqueeze(e *emit) {
	_, have := e.typeOf(0)
	l, ok := e.list("axes", 1)
	if !ok {
		e.fail("no axes")
	}
	var out []int64
	added := e.axes(l, len(have)+len(l))
	for k := range len(have) + len(l) {
		if len(added) > 0 && added[0] == int64(k) {
			out, added = append(out, 1), added[1:]
		} else {
			out, have = append(out, have[0]), have[1:]
		}
	}
	e.view(out)
}

func opTranspose(e *emit) {
	x := e.in(0)
	perm := e.attrInts("perm")
	if perm == nil {
		for i := e.rank(x) - 1; i >= 0; i-- {
			perm = append(perm, int64(i))
		}
	}
	if len(perm) != e.rank(x) {
		e.fail("perm %v for dims %v", perm, e.dims(x))
	}
	if bits, ok := e.splatBits(x); ok {
		dims := make([]int64, len(perm))
		e.axes(perm, len(perm))
		for i, p := range perm {
			dims[i] = e.dims(x)[p]
		}
		e.set(0, e.constant(e.dtype(x), dims, bits))
		return
	}
	e.set(0, e.transpose(x, perm...))
}

func opConcat(e *emit) {
	def := int64(1) // opset 1; later ones require the attribute
	xs := make([]N, len(e.ins))
	for i := range xs {
		xs[i] = e.in(i)
	}
	if len(xs) == 1 {
		e.pass(0)
		return
	}
	a := e.axis(e.attrInt("axis", def), e.rank(e.in(0)))
	e.set(0, e.concat(a, xs...))
}

func opSplit(e *emit) {
	x := e.in(0)
	a := e.axis(e.attrInt("axis", 0), e.rank(x))
	size, parts := e.dims(x)[a], int64(len(e.outs))
	sizes, ok := e.list("split", 1)
	if !ok {
		if n := e.attrInt("num_outputs", parts); n != parts {
			e.fail("num_outputs is %d, the node names %d results", n, parts)
		}
		each := (size + parts - 1) / max(parts, 1)
		for i := range parts {
			sizes = append(sizes, min(each, max(size-i*each, 0)))
		}
	}
	if int64(len(sizes)) != parts {
		e.fail("%d sizes for %d results", len(sizes), parts)
	}
	at := int64(0)
	for i, s := range sizes {
		if s < 0 || s > size-at {
			e.fail("sizes %v of a dimension of %d", sizes, size)
		}
		e.set(i, e.sliceDim(x, a, at, at+s))
		at += s
	}
	if at != size {
		e.fail("sizes %v of a dimension of %d", sizes, size)
	}
}

// opSlice: a negative step reverses the dimension first.
func opSlice(e *emit) {
	_, have := e.typeOf(0)
	starts, ok1 := e.list("starts", 1)
	ends, ok2 := e.list("ends", 2)
	axes, ok3 := e.list("axes", 3)
	var steps []int64
	if e.has(4) {
		steps = e.ints(4)
	}
	if !ok3 {
		for i := range starts {
			axes = append(axes, int64(i))
		}
	}
	if !ok1 || !ok2 || len(ends) != len(starts) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		e.fail("starts %v, ends %v, axes %v, steps %v", starts, ends, axes, steps)
	}
	e.axes(axes, len(have))
	x := e.in(0)
	rank := len(have)
	lo, hi, step := make([]int64, rank), slices.Clone(have), make([]int64, rank)
	for i := range step {
		step[i] = 1
	}
	var flip []int64
	for i := range starts {
		a := e.axis(axes[i], rank)
		d, s := have[a], int64(1)
		if steps != nil {
			s = steps[i]
		}
		norm := func(v int64) int64 {
			if v < 0 {
				v += d
			}
			return v
		}
		b, n := norm(starts[i]), norm(ends[i])
		switch {
		case s > 0:
			b, n = min(max(b, 0), d), min(max(n, 0), d)
			lo[a], hi[a], step[a] = b, max(b, n), s
		case s < 0 && s > math.MinInt64:
			// Positions b, b+s… above n; in the reversed dimension they ascend from d-1-b.
			b, n = min(max(b, -1), d-1), min(max(n, -1), d-1)
			flip = append(flip, int64(a))
			lo[a], hi[a], step[a] = d-1-b, max(d-1-b, d-1-n), -s
		default:
			e.fail("step %d", s)
		}
		step[a] = min(step[a], max(d, 1))
	}
	if len(flip) > 0 {
		slices.Sort(flip)
		x = e.reverse(x, flip...)
	} else if allZero(lo) && slices.Equal(hi, have) && !slices.ContainsFunc(step, func(s int64) bool { return s != 1 }) {
		e.pass(0)
		return
	}
	e.set(0, e.slice(x, lo, hi, step))
}

func opPad(e *emit) {
	x := e.in(0)
	rank := e.rank(x)
	var pads []int64
	switch {
	case e.ver < 2:
		pads = e.attrInts("paddings")
	default:
		pads, _ = e.list("pads", 1)
	}
	axes := make([]int64, rank)
	for i := range axes {
		axes[i] = int64(i)
	}
	if e.has(3) {
		axes = e.ints(3)
		e.axes(axes, rank)
	}
	if len(pads) != 2*len(axes) {
		e.fail("pads %v for %d axes", pads, len(axes))
	}
	low, high := make([]int64, rank), make([]int64, rank)
	for i, a := range axes {
		at := e.axis(a, rank)
		low[at], high[at] = pads[i], pads[len(axes)+i]
	}
	var v N
	switch mode := e.attrStr("mode", "constant"); mode {
	case "constant":
		switch {
		case e.has(2):
			v = e.reshape(e.in(2))
		default:
			v = e.like(x, e.attrFloat("value", 0))
		}
		e.set(0, e.padOrPass(x, v, low, high))
	case "edge", "reflect", "wrap":
		for d := range rank {
			x = e.padBy(mode, x, d, low[d], high[d])
		}
		e.set(0, x)
	default:
		e.refuse("mode %q", mode)
	}
}

func (e *emit) padOrPass(x, v N, low, high []int64) N {
	for i, d := range e.dims(x) {
		if low[i] < -d || high[i] < -d || low[i]+high[i] < -d {
			e.fail("pads %v and %v of dims %v", low, high, e.dims(x))
		}
	}
	return e.pad(x, v, low, high)
}

// padBy pads one dimension with copies of its own elements; a negative amount crops.
func (e *emit) padBy(mode string, x N, d int, low, high int64) N {
	n := e.dims(x)[d]
	if low < 0 || high < 0 {
		from, to := max(-low, 0), n-max(-high, 0)
		if from > to {
			e.fail("pads %d and %d crop a dimension of %d", low, high, n)
		}
		x, low, high = e.sliceDim(x, d, from, to), max(low, 0), max(high, 0)
		n = to - from
	}
	if low == 0 && high == 0 {
		return x
	}
	most := n
	if mode == "reflect" {
		most = n - 1
	}
	if n == 0 || mode != "edge" && max(low, high) > most {
		e.refuse("%s padding by %d and %d of a dimension of %d", mode, low, high, n)
	}
	part := func(from, to int64, back bool) N {
		p := e.sliceDim(x, d, from, to)
		if back {
			p = e.reverse(p, int64(d))
		}
		return p
	}
	parts := []N{}
	repeat := func(at, times int64) {
		dims := e.shape(x)
		dims[d] = times
		parts = append(parts, e.stretch(part(at, at+1, false), dims))
	}
	switch mode {
	case "edge":
		if low > 0 {
			repeat(0, low)
		}
		parts = append(parts, x)
		if high > 0 {
			repeat(n-1, high)
		}
	case "reflect":
		if low > 0 {
			parts = append(parts, part(1, 1+low, true))
		}
		parts = append(parts, x)
		if high > 0 {
			parts = append(parts, part(n-1-high, n-1, true))
		}
	case "wrap":
		if low > 0 {
			parts = append(parts, part(n-low, n, false))
		}
		parts = append(parts, x)
		if high > 0 {
			parts = append(parts, part(0, high, false))
		}
	}
	return e.concat(d, parts...)
}

func opExpand(e *emit) {
	_, have := e.typeOf(0)
	want := e.ints(1)
	for _, d := range want {
		if d < 0 {
			e.fail("shape %v", want)
		}
	}
	dims, ok := graph.BroadcastShape(have, want)
	if !ok {
		e.fail("dims %v and %v do not broadcast", have, want)
	}
	e.checkDims(dims)
	if slices.Equal(dims, have) {
		e.pass(0)
		return
	}
	if k := e.known(0); k != nil && k.splat {
		c := *k
		c.dims, c.node, c.name = dims, 0, e.r.m.lists.Of(e.n.Outs)[0]
		e.setKonst(0, c)
		return
	}
	e.set(0, e.stretch(e.in(0), dims))
}

// opTile stretches a new dimension before each repeated one.
func opTile(e *emit) {
	x := e.in(0)
	var reps []int64
	if e.ver < 6 {
		reps = make([]int64, e.rank(x))
		for i := range reps {
			reps[i] = 1
		}
		reps[e.axis(e.int(2), e.rank(x))] = e.int(1)
	} else {
		reps = e.ints(1)
	}
	if len(reps) != e.rank(x) {
		e.fail("repeats %v for dims %v", reps, e.dims(x))
	}
	var split, wide, out []int64
	for i, d := range e.dims(x) {
		r := reps[i]
		if r < 0 || r > graph.MaxElements {
			e.fail("repeats %v", reps)
		}
		if r != 1 {
			split, wide = append(split, 1), append(wide, r)
		}
		split, wide = append(split, d), append(wide, d)
		out = append(out, d*r)
	}
	e.checkDims(wide)
	e.set(0, e.reshape(e.stretch(e.reshape(x, split...), wide), out...))
}

// opRange counts; its bounds must be known.
func opRange(e *emit) {
	d, _ := e.typeOf(0)
	var n int64
	var start, delta N
	if d.IsInt() {
		from, to, by := e.int(0), e.int(1), e.int(2)
		if by == 0 {
			e.fail("delta is 0")
		}
		span := float64(to) - float64(from)
		if f := math.Ceil(span / float64(by)); f > graph.MaxElements {
			e.fail("range from %d to %d by %d", from, to, by)
		} else if math.Abs(span) < 1<<52 {
			n = max(int64(f), 0)
		} else {
			e.fail("range from %d to %d by %d", from, to, by)
		}
	} else {
		var v [3]float64
		for i := range v {
			var ok bool
			if v[i], ok = e.float(i); !ok {
				e.ints(i) // says what is missing
				e.fail("input %d is not a scalar", i)
			}
		}
		f := math.Ceil((v[1] - v[0]) / v[2])
		if !(f < graph.MaxElements) {
			e.fail("range from %v to %v by %v", v[0], v[1], v[2])
		}
		n = max(int64(f), 0)
	}
	start, delta = e.reshape(e.in(0)), e.reshape(e.in(2))
	e.set(0, e.plus(start, e.mul(e.iota(d, []int64{n}, 0), delta)))
}

// opDepthToSpace and its inverse are a reshape, a transpose and a reshape.
func opDepthToSpace(e *emit) {
	x := e.in(0)
	b := e.attrInt("blocksize", 0)
	d := e.shape(x)
	if len(d) != 4 || b < 1 || d[1]%(b*b) != 0 {
		e.fail("blocksize %d of dims %v", b, d)
	}
	c := d[1] / (b * b)
	switch mode := e.attrStr("mode", "DCR"); mode {
	case "DCR":
		x = e.transpose(e.reshape(x, d[0], b, b, c, d[2], d[3]), 0, 3, 4, 1, 5, 2)
	case "CRD":
		x = e.transpose(e.reshape(x, d[0], c, b, b, d[2], d[3]), 0, 1, 4, 2, 5, 3)
	default:
		e.fail("mode %q", mode)
	}
	e.set(0, e.reshape(x, d[0], c, d[2]*b, d[3]*b))
}

func opSpaceToDepth(e *emit) {
	x := e.in(0)
	b := e.attrInt("blocksize", 0)
	d := e.shape(x)
	if len(d) != 4 || b < 1 || d[2]%b != 0 || d[3]%b != 0 {
		e.fail("blocksize %d of dims %v", b, d)
	}
	x = e.transpose(e.reshape(x, d[0], d[1], d[2]/b, b, d[3]/b, b), 0, 3, 5, 1, 2, 4)
	e.set(0, e.reshape(x, d[0], d[1]*b*b, d[2]/b, d[3]/b))
}
