package onnx

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// splitHeads turns [batch, tokens, heads·width] into [batch, heads, tokens, width].
func (e *emit) splitHeads(x N, heads int64) N {
	if e.rank(x) == 4 {
		return x
	}
	d := e.shape(x)
	if len(d) != 3 || heads < 1 || d[2]%heads != 0 {
		e.fail("dims %v in %d heads", d, heads)
	}
	return e.transpose(e.reshape(x, d[0], d[1], heads, d[2]/heads), 0, 2, 1, 3)
}

// opAttention spells scaled dot-product attention: query heads share key and value heads in groups; the mask is added, bool masks
// and causality as -∞; then soft cap, softmax and the product with the values.
func opAttention(e *emit) {
	q, k, v := e.in(0), e.in(1), e.in(2)
	flat := e.rank(q) == 3
	qh, kvh := e.attrInt("q_num_heads", 0), e.attrInt("kv_num_heads", 0)
	q, k, v = e.splitHeads(q, qh), e.splitHeads(k, kvh), e.splitHeads(v, kvh)
	for _, x := range []N{q, k, v} {
		if e.rank(x) != 4 {
			e.fail("an input of dims %v, expected rank 3 or 4", e.dims(x))
		}
	}
	past := int64(0)
	if e.has(4) != e.has(5) {
		e.fail("past key and past value come together")
	}
	if e.has(4) {
		pk, pv := e.in(4), e.in(5)
		if e.rank(pk) != 4 || e.rank(pv) != 4 {
			e.fail("past key and value of dims %v and %v", e.dims(pk), e.dims(pv))
		}
		past = e.dims(pk)[2]
		k, v = e.concat(2, pk, k), e.concat(2, pv, v)
	}
	e.set(1, k)
	e.set(2, v)
	qd, kd, vd := e.shape(q), e.shape(k), e.shape(v)
	qh, kvh = qd[1], kd[1]
	if kvh < 1 || qh%kvh != 0 || vd[1] != kvh || kd[3] != qd[3] || kd[2] != vd[2] {
		e.fail("queries %v, keys %v, values %v", qd, kd, vd)
	}
	k, v = e.repeatHeads(k, qh/kvh), e.repeatHeads(v, qh/kvh)

	scale := e.attrFloat("scale", 0)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(max(qd[3], 1)))
	}
	root := math.Sqrt(scale)
	batch := []int64{0, 1}
	scores := e.dot(e.mul(q, e.like(q, root)), e.mul(k, e.like(k, root)), batch, batch, []int64{3}, []int64{3})
	mode := e.attrInt("qk_matmul_output_mode", 0)
	if mode < 0 || mode > 3 {
		e.fail("qk_matmul_output_mode %d", mode)
	}
	if mode == 0 {
		e.set(3, scores)
	}
	if bias, ok := e.attentionBias(q, kd[2], past); ok {
		scores = e.plus(scores, bias)
	}
	if mode == 1 {
		e.set(3, scores)
	}
	if limit := e.attrFloat("softcap", 0); limit != 0 {
		scores = e.mul(e.unary(graph.OpTanh, e.div(scores, e.like(scores, limit))), e.like(scores, limit))
	}
	if mode == 2 {
		e.set(3, scores)
	}
	d := e.dtype(scores)
	soft := scores
	if code := e.attrInt("softmax_precision", 0); code != 0 {
		p, err := dtypeOf(code)
		if err != nil {
			panic(bail{err})
		}
		soft = e.convert(soft, p)
	}
	soft = e.convert(e.softmax(soft, []int64{3}), d)
	if mode == 3 {
		e.set(3, soft)
	}
	y := e.dot(soft, e.convert(v, d), batch, batch, []int64{3}, []int64{2})
	if flat {
		y = e.reshape(e.transpose(y, 0, 2, 1, 3), qd[0], qd[2], qh*vd[3])
	}
	e.set(0, y)
}

// repeatHeads gives each key or value head n times in a row.
func (e *emit) repeatHeads(x N, n int64) N {
	if n == 1 {
		return x
	}
	d := e.shape(x)
	wide := e.stretch(e.reshape(x, d[0], d[1], 1, d[2], d[3]), []int64{d[0], d[1], n, d[2], d[3]})
	return e.reshape(wide, d[0], d[1]*n, d[2], d[3])
}

// attentionBias is what is added to the scores of q against keys keys, of which past come from the cache.
func (e *emit) attentionBias(q N, keys, past int64) (bias N, ok bool) {
	d, queries := e.dtype(q), e.dims(q)[2]
	join := func(x N) {
		if !ok {
			bias, ok = x, true
			return
		}
		bias = e.plus(bias, x)
	}
	hidden := func(seen N) N { // 0 where seen, else -∞
		return e.sel(seen, e.splat(d, e.shape(seen), 0), e.scalar(d, math.Inf(-1)))
	}
	if e.has(3) {
		m := e.in(3)
		e.needRank(m, 1)
		if e.dtype(m) == graph.Bool {
			m = hidden(m)
		}
		m = e.convert(m, d)
		if have := e.dims(m)[e.rank(m)-1]; have < keys && have != 1 { // keys beyond the mask are hidden
			low, high := make([]int64, e.rank(m)), make([]int64, e.rank(m))
			high[len(high)-1] = keys - have
			m = e.pad(m, e.scalar(d, math.Inf(-1)), low, high)
		}
		join(m)
	}
	if e.attrBool("is_causal", 0) {
		shape := []int64{queries, keys}
		row := e.iota(graph.S32, shape, 0)
		if past != 0 {
			row = e.plus(row, e.like(row, float64(past)))
		}
		join(hidden(e.compare(graph.DirGE, row, e.iota(graph.S32, shape, 1))))
	}
	if e.has(6) { // how many keys of each batch entry are no padding
		n := e.in(6)
		b := e.g.Elements(e.g.Nodes.At(n).Type)
		shape := []int64{b, 1, 1, keys}
		join(hidden(e.compare(graph.DirLT, e.iota(e.dtype(n), shape, 3), e.reshape(n, b, 1, 1, 1))))
	}
	return bias, ok
}

// opRotary rotates pairs of features by the angles whose cosines and sines are given for each token.
func opRotary(e *emit) {
	x, cos, sin := e.in(0), e.in(1), e.in(2)
	shape := e.shape(x)
	// Tokens before heads: [batch, tokens, heads, width].
	switch len(shape) {
	case 4:
		x = e.transpose(x, 0, 2, 1, 3)
	case 3:
		h := e.attrInt("num_heads", 0)
		if h < 1 || shape[2]%h != 0 {
			e.fail("dims %v in %d heads", shape, h)
		}
		x = e.reshape(x, shape[0], shape[1], h, shape[2]/h)
	default:
		e.fail("dims %v, expected rank 3 or 4", shape)
	}
	d := e.shape(x)
	width := e.attrInt("rotary_embedding_dim", 0)
	if width == 0 {
		width = d[3]
	}
	if width < 2 || width > d[3] || width%2 != 0 {
		e.fail("rotary_embedding_dim %d of heads of width %d", width, d[3])
	}
	if e.has(3) {
		ids := e.in(3)
		e.start()
		cos, sin = e.ok(e.b.Take(cos, ids, 0)), e.ok(e.b.Take(sin, ids, 0))
	}
	half := width / 2
	angle := func(c N) N {
		if r := e.rank(c); r != 3 || e.dims(c)[2] < half {
			e.fail("cosines and sines of dims %v for a half width of %d", e.dims(c), half)
		}
		c = e.sliceDim(c, 2, 0, half)
		s := e.dims(c)
		return e.reshape(c, s[0], s[1], 1, half)
	}
	cos, sin = angle(cos), angle(sin)
	turn, keep := e.sliceDim(x, 3, 0, width), N(0)
	if width < d[3] {
		keep = e.sliceDim(x, 3, width, d[3])
	}
	pairs := e.attrBool("interleaved", 0)
	var a, b N
	if pairs {
		p := e.reshape(turn, d[0], d[1], d[2], half, 2)
		a = e.reshape(e.sliceDim(p, 4, 0, 1), d[0], d[1], d[2], half)
		b = e.reshape(e.sliceDim(p, 4, 1, 2), d[0], d[1], d[2], half)
	} else {
		a, b = e.sliceDim(turn, 3, 0, half), e.sliceDim(turn, 3, half, width)
	}
	real := e.minus(e.mul(a, cos), e.mul(b, sin))
	imag := e.plus(e.mul(a, sin), e.mul(b, cos))
	if pairs {
		real, imag = e.reshape(real, d[0], d[1], d[2], half, 1), e.reshape(imag, d[0], d[1], d[2], half, 1)
		turn = e.reshape(e.concat(4, real, imag), d[0], d[1], d[2], width)
	} else {
		turn = e.concat(3, real, imag)
	}
	if keep != 0 {
		turn = e.concat(3, turn, keep)
	}
	if len(shape) == 4 {
		turn = e.transpose(turn, 0, 2, 1, 3)
	}
	e.set(0, e.reshape(turn, shape...))
}
