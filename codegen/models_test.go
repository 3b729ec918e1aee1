package codegen

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// extents are dimensions around the sizes at which tiles end: primes, ones, one less and one more than a partition tile.
var extents = []int64{1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 13, 16, 31, 33, 64, 127, 128, 129, 257, 513, 1030}

// drawn is a value of a model and what may be done with it.
type drawn struct {
	n graph.Node
	// exact: the same bits whatever the order of arithmetic, so that comparisons and truncations of it cannot tip over.
	exact bool
	mag   float64 // bound of the magnitude, for floats
}

// drawer builds a model that is valid by construction: every operator is applied to values that exist, in their domain.
type drawer struct {
	t    *rapid.T
	b    *graph.Builder
	g    *graph.Graph
	vals []drawn
	// special: inputs hold infinities, NaN and negative zeros, and operators are those that say what becomes of them.
	special bool
	budget  int64 // multiplications that the rest of the model may take
}

func (d *drawer) n(lo, hi int, what string) int { return rapid.IntRange(lo, hi).Draw(d.t, what) }
func (d *drawer) n64(lo, hi int64, what string) int64 {
	return rapid.Int64Range(lo, hi).Draw(d.t, what)
}
func (d *drawer) coin(what string) bool { return rapid.Bool().Draw(d.t, what) }

func pickOf[T any](d *drawer, what string, from ...T) T {
	return rapid.SampledFrom(from).Draw(d.t, what)
}

// extent draws a dimension of at most most.
func (d *drawer) extent(most int64) int64 {
	k := len(extents)
	for k > 1 && extents[k-1] > most {
		k--
	}
	return rapid.SampledFrom(extents[:k]).Draw(d.t, "extent")
}

// shape draws a shape of at most most elements.
func (d *drawer) shape(minRank, maxRank int, most int64) []int64 {
	dims := make([]int64, d.n(minRank, maxRank, "rank"))
	for i := range dims {
		dims[i] = d.extent(max(most, 1))
		most /= dims[i]
	}
	d.shuffle(dims)
	return dims
}

func (d *drawer) shuffle(x []int64) {
	if len(x) > 1 {
		copy(x, rapid.Permutation(slices.Clone(x)).Draw(d.t, "order"))
	}
}

func (d *drawer) perm(n int) []int64 {
	p := make([]int64, n)
	for i := range p {
		p[i] = int64(i)
	}
	d.shuffle(p)
	return p
}

func elements(dims []int64) int64 {
	n := int64(1)
	for _, x := range dims {
		n *= x
	}
	return n
}

func (d *drawer) dtype() graph.Dtype {
	return pickOf(d, "dtype", graph.F32, graph.F32, graph.F32, graph.F32, graph.BF16, graph.F16, graph.S32, graph.S8, graph.U8, graph.S16, graph.U16, graph.Bool,
		graph.F8E4M3FN, graph.F8E5M2, graph.F8E3M4)
}

func (d *drawer) float() graph.Dtype {
	return pickOf(d, "float type", graph.F32, graph.F32, graph.F32, graph.F32, graph.BF16, graph.BF16, graph.F16, graph.F8E4M3FN, graph.F8E5M2)
}

func (d *drawer) add(n graph.Node, exact bool, mag float64) graph.Node {
	if n != 0 && elements(d.b.Dims(n)) <= 200000 && len(d.b.Dims(n)) <= 9 {
		d.vals = append(d.vals, drawn{n, exact, mag})
	}
	return n
}

// leaf is a parameter or a constant.
func (d *drawer) leaf(dt graph.Dtype, dims ...int64) graph.Node {
	b := d.b
	var n graph.Node
	switch kind := d.n(0, 9, "leaf"); {
	case kind == 0 && dt.IsFloat():
		n = b.Weight(dt, dims, uint64(d.n(1, 100, "seed")), 0.5)
	case kind == 1 && (dt.IsInt() || dt.IsFloat()) && len(dims) > 0 && elements(dims) > 0:
		at := d.n(0, len(dims)-1, "iota")
		n = b.Iota(dt, dims, at)
		if dt.IsFloat() {
			n = b.Mul(n, b.Like(n, 1/float64(dims[at])))
		} else if m := map[graph.Dtype]int64{graph.S8: 127, graph.U8: 255}[dt]; m > 0 && dims[at] > m {
			n = b.Param(d.name(), dt, dims...)
		}
	case kind == 2:
		n = b.Splat(dt, dims, pickOf(d, "splat", 0.0, 1, 0.5, 3))
	case kind == 3 && dt == graph.F32 && elements(dims) < 2000:
		vs := make([]float64, elements(dims))
		for i := range vs {
			vs[i] = float64((i*37)%64)/32 - 1
		}
		n = b.Floats(dt, dims, vs...)
	default:
		n = b.Param(d.name(), dt, dims...)
	}
	d.add(n, true, 3)
	return n
}

func (d *drawer) name() string {
	return pickOf(d, "name", "p", "a b", "é", `q"x`, "x.1/y:0") + string(rune('0'+len(d.b.Params())%10)) + string(rune('a'+len(d.b.Params())/10))
}

// pick is any value that ok accepts; ok false when there is none.
func (d *drawer) pick(ok func(v drawn) bool) (drawn, bool) {
	var fit []drawn
	for _, v := range d.vals {
		if ok(v) {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 {
		return drawn{}, false
	}
	return rapid.SampledFrom(fit).Draw(d.t, "value"), true
}

func (d *drawer) any() drawn { v, _ := d.pick(func(drawn) bool { return true }); return v }

// step applies one operator.
func (d *drawer) step() {
	b := d.b
	v := d.any()
	dims := slices.Clone(b.Dims(v.n))
	rank := len(dims)
	dt := b.Dtype(v.n)
	size := elements(dims)
	isInt := dt.IsInt()
	switch op := d.n(0, 27, "operator"); op {
	case 0: // functions of one operand
		if !dt.IsFloat() {
			fns := []graph.Op{graph.OpAbs, graph.OpNeg, graph.OpSign, graph.OpNot}
			if dt == graph.Bool {
				fns = fns[3:]
			}
			d.add(b.Unary(pickOf(d, "fn", fns...), v.n), true, 0)
			return
		}
		fns := []graph.Op{graph.OpAbs, graph.OpNeg, graph.OpRelu}
		if !d.special {
			fns = append(fns, graph.OpTanh, graph.OpSigmoid, graph.OpErf, graph.OpGelu, graph.OpGeluTanh, graph.OpSilu)
			if v.mag <= 16 {
				fns = append(fns, graph.OpSin, graph.OpCos, graph.OpExp, graph.OpExpm1, graph.OpSoftplus, graph.OpMish)
			}
			if v.exact {
				fns = append(fns, graph.OpFloor, graph.OpCeil, graph.OpRoundEven, graph.OpRoundAway, graph.OpSign, graph.OpIsFinite, graph.OpCbrt)
			}
		}
		fn := pickOf(d, "fn", fns...)
		mag := max(v.mag, 1)
		if fn == graph.OpExp || fn == graph.OpExpm1 {
			mag = math.Exp(v.mag)
		}
		exact := v.exact && slices.Contains([]graph.Op{graph.OpAbs, graph.OpNeg, graph.OpRelu, graph.OpFloor, graph.OpCeil, graph.OpRoundEven, graph.OpRoundAway, graph.OpSign, graph.OpIsFinite}, fn)
		d.add(b.Unary(fn, v.n), exact, mag)
	case 1: // functions with a domain
		if dt.IsFloat() && !d.special {
			x := b.Add(b.Unary(graph.OpAbs, v.n), b.Like(v.n, 0.5))
			d.add(b.Unary(pickOf(d, "fn", graph.OpLog, graph.OpLog1p, graph.OpSqrt, graph.OpRsqrt), x), false, v.mag+2)
		}
	case 2, 3: // two operands, broadcast by the rules of NumPy
		w, ok := d.pick(func(w drawn) bool {
			_, fits := graph.BroadcastShape(b.Dims(w.n), dims)
			return fits && b.Dtype(w.n) == dt
		})
		if d.coin("scalar") {
			w, ok = drawn{b.Like(v.n, pickOf(d, "scalar value", 0.0, 1, 2, 7, 0.25, 3)), true, 7}, true
		}
		if !ok {
			return
		}
		if s, _ := graph.BroadcastShape(b.Dims(w.n), dims); elements(s) > 100000 {
			return
		}
		x, y := v, w
		if d.coin("swap") {
			x, y = y, x
		}
		exact := x.exact && y.exact
		switch {
		case dt == graph.Bool:
			d.add(b.Binary(pickOf(d, "fn", graph.OpAnd, graph.OpOr, graph.OpXor, graph.OpAdd, graph.OpMul, graph.OpMax, graph.OpMin), x.n, y.n), true, 0)
		case isInt:
			fn := pickOf(d, "fn", graph.OpAdd, graph.OpSub, graph.OpMul, graph.OpMax, graph.OpMin, graph.OpAnd, graph.OpOr, graph.OpXor, graph.OpDiv, graph.OpRem)
			n := y.n
			if fn == graph.OpDiv || fn == graph.OpRem {
				n = b.Max(b.Unary(graph.OpAbs, n), b.Like(n, 1))
			}
			d.add(b.Binary(fn, x.n, n), true, 0)
		default:
			fns := []graph.Op{graph.OpMax, graph.OpMin, graph.OpAdd, graph.OpSub, graph.OpMul}
			if !d.special {
				fns = append(fns, graph.OpDiv)
			}
			fn := pickOf(d, "fn", fns...)
			n := y.n
			if fn == graph.OpDiv {
				n = b.Add(b.Unary(graph.OpAbs, n), b.Like(n, 0.5))
			}
			mag := x.mag + y.mag
			if fn == graph.OpMul || fn == graph.OpDiv {
				mag = max(x.mag*y.mag, x.mag*2)
				exact = false
			}
			d.add(b.Binary(fn, x.n, n), exact && (fn == graph.OpMax || fn == graph.OpMin), mag)
		}
	case 4: // compare and select
		w, ok := d.pick(func(w drawn) bool { return b.Type(w.n) == b.Type(v.n) })
		if !ok || !v.exact || !w.exact && dt.IsFloat() {
			return
		}
		y := w
		if d.coin("with a scalar") {
			y = drawn{b.Like(v.n, pickOf(d, "scalar value", 0.0, 1, 0.25, 3)), true, 3}
		}
		p := b.Compare(graph.Dir(d.n(0, 5, "direction")), v.n, y.n)
		d.add(p, true, 0)
		if d.coin("select") {
			d.add(b.Select(p, v.n, w.n), true, max(v.mag, w.mag))
		}
	case 5: // clamp
		if dt == graph.Bool {
			return
		}
		lo, hi := b.Like(v.n, pickOf(d, "lo", 0.0, 1)), b.Like(v.n, pickOf(d, "hi", 1.0, 2, 3))
		if w, ok := d.pick(func(w drawn) bool { return b.Type(w.n) == b.Type(v.n) }); ok && w.exact && v.exact && d.coin("tensor bound") {
			lo = w.n
			hi = b.Max(w.n, b.BroadcastTo(hi, dims))
		}
		d.add(b.Clamp(lo, v.n, hi), v.exact, max(v.mag, 3))
	case 6: // reductions
		if rank == 0 {
			return
		}
		var red []int64
		count := int64(1)
		for i := range dims {
			if d.coin("reduced") {
				red = append(red, int64(i))
				count *= dims[i]
			}
		}
		d.shuffle(red)
		switch {
		case dt == graph.Bool:
			d.add(b.Reduce(pickOf(d, "kind", graph.ReduceAnd, graph.ReduceOr, graph.ReduceMax, graph.ReduceMin), v.n, red...), true, 0)
		case isInt:
			d.add(b.Reduce(pickOf(d, "kind", graph.ReduceSum, graph.ReduceMax, graph.ReduceMin, graph.ReduceAnd, graph.ReduceOr), v.n, red...), true, 0)
		default:
			kind := pickOf(d, "kind", graph.ReduceSum, graph.ReduceMax, graph.ReduceMin, graph.ReduceProd)
			switch {
			case kind == graph.ReduceSum && dt != graph.F32 && count > 64, d.special && kind == graph.ReduceProd:
				return
			case kind == graph.ReduceSum:
				r := b.Mul(b.Reduce(kind, v.n, red...), b.Scalar(dt, 1/float64(max(count, 1))))
				d.add(r, false, v.mag)
			case kind == graph.ReduceProd:
				if v.mag <= 1 && count < 20 {
					d.add(b.Reduce(kind, v.n, red...), false, 1)
				}
			default:
				d.add(b.Reduce(kind, v.n, red...), v.exact, v.mag)
			}
		}
	case 7:
		d.add(b.Transpose(v.n, d.perm(rank)...), v.exact, v.mag)
	case 8:
		var to []int64
		for n := size; n > 1 && len(to) < 5; {
			f := int64(1)
			for _, k := range []int64{2, 3, 5, 7, 13, 31, 43, 127, 257} {
				if n%k == 0 && d.coin("factor") {
					f = k
					break
				}
			}
			to, n = append(to, f), n/f
		}
		if len(to) > 0 {
			rest := size / elements(to)
			to = append(to, rest)
			d.shuffle(to)
		} else if size == 0 {
			return
		}
		if size == 1 {
			to = make([]int64, d.n(0, 4, "ones"))
			for i := range to {
				to[i] = 1
			}
		}
		d.add(b.Reshape(v.n, to...), v.exact, v.mag)
	case 9:
		if rank == 0 || size == 0 {
			return
		}
		lo, hi, st := make([]int64, rank), make([]int64, rank), make([]int64, rank)
		for i := range dims {
			st[i] = pickOf(d, "stride", int64(1), 1, 1, 2, 3, 5)
			lo[i] = d.n64(0, dims[i]-1, "lo")
			hi[i] = d.n64(lo[i]+1, dims[i], "hi")
		}
		d.add(b.Slice(v.n, lo, hi, st), v.exact, v.mag)
	case 10:
		var rev []int64
		for i := range dims {
			if d.coin("reversed") {
				rev = append(rev, int64(i))
			}
		}
		d.add(b.Reverse(v.n, rev...), v.exact, v.mag)
	case 11: // concatenation of up to 40 pieces, some of them parts
		if rank == 0 || size == 0 {
			return
		}
		at := d.n(0, rank-1, "dim")
		most := 3
		if size < 100 {
			most = 40
		}
		xs := []graph.Node{v.n}
		exact, mag := v.exact, v.mag
		for range d.n(0, most, "pieces") {
			w, ok := d.pick(func(w drawn) bool {
				e := b.Dims(w.n)
				if len(e) != rank || b.Dtype(w.n) != dt {
					return false
				}
				for i := range e {
					if i != at && e[i] != dims[i] {
						return false
					}
				}
				return true
			})
			x := w.n
			if ok && b.Dims(x)[at] > 1 && d.coin("part") {
				x = b.SliceDim(x, at, d.n64(0, b.Dims(x)[at]-1, "from"), b.Dims(x)[at])
			}
			xs, exact, mag = append(xs, x), exact && w.exact, max(mag, w.mag)
		}
		d.add(b.Concat(at, xs...), exact, mag)
	case 12:
		if rank == 0 || size == 0 {
			return
		}
		lo, hi, in := make([]int64, rank), make([]int64, rank), make([]int64, rank)
		total := int64(1)
		for i := range dims {
			in[i] = pickOf(d, "interior", int64(0), 0, 0, 1, 3)
			lo[i], hi[i] = d.n64(-2, 3, "low"), d.n64(-2, 3, "high")
			if k := (dims[i]-1)*in[i] + dims[i] + lo[i] + hi[i]; k < 1 {
				lo[i], hi[i] = 0, 1
			}
			total *= (dims[i]-1)*in[i] + dims[i] + lo[i] + hi[i]
		}
		if total > 100000 {
			return
		}
		d.add(b.Pad(v.n, b.Like(v.n, pickOf(d, "with", 0.0, 1, 0.25)), lo, hi, in), v.exact, max(v.mag, 1))
	case 13: // XLA's broadcast
		at := d.n(0, rank, "at")
		k := d.extent(max(1, 60000/max(size, 1)))
		to := slices.Insert(slices.Clone(dims), at, k)
		var bd []int64
		for i := range to {
			if i != at {
				bd = append(bd, int64(i))
			}
		}
		d.add(b.Broadcast(v.n, bd, to), v.exact, v.mag)
	case 14: // conversions
		to := d.dtype()
		if d.coin("64 bits") {
			to = pickOf(d, "wide", graph.S64, graph.U32, graph.U64)
		}
		if dt.IsFloat() && !to.IsFloat() && (!v.exact || d.special) {
			return
		}
		c := b.Convert(v.n, to)
		d.add(c, v.exact, max(v.mag, 300))
		if to.Bits() >= 32 && !to.IsFloat() || to.Bits() == 8 && to.IsFloat() {
			d.add(b.Convert(c, graph.F32), v.exact, 300)
		}
	case 15:
		if !dt.IsFloat() || rank == 0 || d.special || v.mag > 50 || size == 0 {
			return
		}
		d.add(b.Softmax(v.n, int64(d.n(0, rank-1, "axis"))), false, 1)
	case 16: // a normalisation over some axes
		if dt != graph.F32 || rank == 0 || d.special || size == 0 || v.mag > 100 {
			return
		}
		var over []int64
		for i := range dims {
			if d.coin("over") {
				over = append(over, int64(i))
			}
		}
		count := 1.0
		for _, i := range over {
			count *= float64(dims[i])
		}
		mean := b.Mul(b.ReduceKeep(graph.ReduceSum, v.n, over...), b.Scalar(dt, 1/count))
		c := b.Sub(v.n, mean)
		vr := b.Mul(b.ReduceKeep(graph.ReduceSum, b.Mul(c, c), over...), b.Scalar(dt, 1/count))
		d.add(b.Mul(c, b.Unary(graph.OpRsqrt, b.Add(vr, b.Scalar(dt, 0.25)))), false, 50)
	case 17, 18:
		d.dot()
	case 19, 20:
		d.conv()
	case 21, 22:
		d.pool()
	case 23:
		if dt.IsFloat() && v.exact && !d.special && rank > 0 && size > 0 {
			at := d.n(0, rank-1, "axis")
			if d.coin("max") {
				d.add(b.ArgMax(v.n, at, d.coin("last"), graph.S32), true, 0)
			} else {
				d.add(b.ArgMin(v.n, at, d.coin("last"), graph.S32), true, 0)
			}
		}
	case 24: // gather by constant indices
		if rank == 0 || size == 0 {
			return
		}
		at := d.n(0, rank-1, "axis")
		idx := make([]int64, d.n(1, 9, "indices"))
		for i := range idx {
			idx[i] = d.n64(-dims[at], dims[at]-1, "index")
		}
		if size/dims[at]*int64(len(idx)) < 100000 {
			d.add(b.Take(v.n, b.Ints(graph.S64, []int64{int64(len(idx))}, idx...), at), v.exact, v.mag)
		}
	case 25: // slices at constant starts, which are clamped
		if rank == 0 || size == 0 {
			return
		}
		starts, sizes := make([]graph.Node, rank), make([]int64, rank)
		for i := range starts {
			starts[i] = b.Scalar(graph.S32, float64(d.n64(-1, dims[i]+1, "start")))
			sizes[i] = d.n64(1, dims[i], "size")
		}
		part := b.DynamicSlice(v.n, starts, sizes...)
		d.add(part, v.exact, v.mag)
		if d.coin("update") {
			d.add(b.DynamicUpdateSlice(v.n, b.Reverse(part, int64(d.n(0, rank-1, "reversed"))), starts...), v.exact, v.mag)
		}
	case 26:
		if dt.IsFloat() && !d.special && rank > 0 && size > 0 && dt == graph.F32 {
			d.add(b.CumSum(v.n, d.n(0, rank-1, "axis"), d.coin("exclusive"), d.coin("reverse")), false, v.mag*float64(size))
		}
	case 27:
		d.leaf(d.dtype(), d.shape(0, 5, 20000)...)
	}
}

// dot draws operands with batch, contracted and free dimensions in any order.
func (d *drawer) dot() {
	b := d.b
	if d.special {
		return
	}
	dt := d.float()
	const batch, contract, left, right = 0, 1, 2, 3
	var sizes [4][]int64
	room := d.budget
	for k, most := range []int{2, 2, 2, 2} {
		for range d.n(0, most, "dimensions") {
			x := d.extent(room)
			sizes[k] = append(sizes[k], x)
			room /= x
		}
	}
	d.budget = room
	side := func(free int) (n graph.Node, bs, cs []int64) {
		type dim struct{ kind, at int }
		var ds []dim
		for _, k := range []int{batch, contract, free} {
			for i := range sizes[k] {
				ds = append(ds, dim{k, i})
			}
		}
		if len(ds) > 1 {
			ds = rapid.Permutation(ds).Draw(d.t, "layout")
		}
		bs, cs = make([]int64, len(sizes[batch])), make([]int64, len(sizes[contract]))
		dims := make([]int64, len(ds))
		for i, x := range ds {
			dims[i] = sizes[x.kind][x.at]
			switch x.kind {
			case batch:
				bs[x.at] = int64(i)
			case contract:
				cs[x.at] = int64(i)
			}
		}
		if elements(dims) > 100000 {
			return 0, nil, nil
		}
		return d.operand(dt, dims), bs, cs
	}
	x, xb, xc := side(left)
	y, yb, yc := side(right)
	if x == 0 || y == 0 {
		return
	}
	if out := elements(sizes[batch]) * elements(sizes[left]) * elements(sizes[right]); out > 100000 {
		return
	}
	n := elements(sizes[contract])
	var want graph.Type
	if d.coin("wide result") {
		want = b.G.Tensor(graph.F32)
	}
	g := b.G
	r := b.Node(graph.OpDot, want, []graph.Node{x, y}, g.IntsAttr(graph.AttrLhsBatch, xb...), g.IntsAttr(graph.AttrRhsBatch, yb...),
		g.IntsAttr(graph.AttrLhsContract, xc...), g.IntsAttr(graph.AttrRhsContract, yc...))
	d.add(b.Mul(r, b.Like(r, 1/math.Sqrt(float64(max(n, 1))))), false, 3*math.Sqrt(float64(n)))
}

// operand is a leaf of the shape, or one that is moved into it.
func (d *drawer) operand(dt graph.Dtype, dims []int64) graph.Node {
	b := d.b
	leaf := func(dims []int64) graph.Node {
		if d.coin("weight") {
			return b.Weight(dt, dims, 5, 0.5)
		}
		return b.Param(d.name(), dt, dims...)
	}
	switch d.n(0, 6, "operand") {
	case 0:
		p := d.perm(len(dims))
		from := make([]int64, len(dims))
		for i, x := range p {
			from[x] = dims[i]
		}
		return b.Transpose(leaf(from), p...)
	case 1:
		var bd, from []int64
		for i := range dims {
			if d.coin("kept") {
				bd, from = append(bd, int64(i)), append(from, dims[i])
			}
		}
		return b.Broadcast(leaf(from), bd, dims)
	case 2:
		lo, hi := make([]int64, len(dims)), make([]int64, len(dims))
		from := slices.Clone(dims)
		for i := range dims {
			lo[i] = d.n64(0, 2, "skipped")
			hi[i] = lo[i] + dims[i]
			from[i] = hi[i] + d.n64(0, 1, "left")
		}
		return b.Slice(leaf(from), lo, hi, nil)
	case 3:
		return b.Unary(graph.OpTanh, leaf(dims))
	case 4:
		return b.Reshape(leaf([]int64{elements(dims)}), dims...)
	}
	return leaf(dims)
}

// conv draws a convolution of one to three dimensions, in any layout.
func (d *drawer) conv() {
	if d.special {
		return
	}
	b := d.b
	g := b.G
	dt := d.float()
	k := d.n(1, 3, "spatial")
	groups, batchGroups := int64(1), int64(1)
	switch d.n(0, 5, "groups") {
	case 0, 1:
		groups = pickOf(d, "feature groups", int64(2), 3, 8, 32)
	case 2:
		batchGroups = pickOf(d, "batch groups", int64(2), 3)
	}
	room := min(d.budget, 400000)
	cin := pickOf(d, "in", int64(1), 1, 2, 3, 16, 129)
	mult := pickOf(d, "out", int64(1), 1, 2, 5, 16, 130)
	if groups > 1 {
		cin, mult = min(cin, 4), min(mult, 4)
	}
	cout := mult * groups * batchGroups
	batch := pickOf(d, "batch", int64(1), 1, 2, 5) * batchGroups
	room /= max(cin*cout*batch, 1)
	ws := make([]graph.Window, k)
	sp := make([]int64, k)
	for i := range ws {
		w := &ws[i]
		w.Size = pickOf(d, "kernel", int64(1), 1, 2, 3, 4, 5, 7)
		w.Stride = pickOf(d, "stride", int64(1), 1, 1, 2, 3)
		w.LhsDilate = pickOf(d, "lhs dilation", int64(1), 1, 1, 1, 2, 3)
		w.RhsDilate = pickOf(d, "rhs dilation", int64(1), 1, 1, 2, 3)
		w.Reverse = d.n(0, 7, "reverse") == 0
		w.PadLow, w.PadHigh = d.n64(-1, 3, "pad low"), d.n64(-1, 3, "pad high")
		most := int64(33)
		if k == 1 {
			most = 600
		}
		sp[i] = min(d.extent(most), max(room/w.Size, 1))
		room /= max(sp[i]*w.Size, 1)
		if n, ok := w.Out(sp[i]); !ok || n < 1 {
			w.PadLow, w.PadHigh = (w.Size-1)*w.RhsDilate, 0
		}
	}
	lay := func(a, f int64) (labels, dims []int64) {
		labels = d.perm(k + 2)
		dims = make([]int64, k+2)
		dims[labels[0]], dims[labels[1]] = a, f
		return labels, dims
	}
	xl, xd := lay(batch, cin*groups)
	wl, wd := lay(cin, cout)
	for i := range k {
		xd[xl[2+i]], wd[wl[2+i]] = sp[i], ws[i].Size
	}
	labels := slices.Concat(xl, wl, d.perm(k+2))
	x, w := d.operand(dt, xd), d.operand(dt, wd)
	r := b.Node(graph.OpConv, 0, []graph.Node{x, w}, append(b.WindowAttrs(ws), g.IntsAttr(graph.AttrDimLabels, labels...),
		g.IntsAttr(graph.AttrGroups, groups), g.IntsAttr(graph.AttrBatchGroups, batchGroups))...)
	if b.Err() != nil {
		return
	}
	n := float64(cin)
	for i := range ws {
		n *= float64(ws[i].Size)
	}
	d.budget -= min(d.budget, elements(b.Dims(r))*int64(n))
	d.add(b.Mul(r, b.Like(r, 1/math.Sqrt(n))), false, 3*math.Sqrt(n))
}

// pool draws a reduction over windows.
func (d *drawer) pool() {
	b := d.b
	v, ok := d.pick(func(v drawn) bool { r := len(b.Dims(v.n)); return r > 0 && r < 6 && elements(b.Dims(v.n)) > 0 })
	if !ok {
		return
	}
	dt, dims := b.Dtype(v.n), b.Dims(v.n)
	ws := make([]graph.Window, len(dims))
	work := int64(1)
	for i := range ws {
		ws[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
		if d.coin("window") {
			w := &ws[i]
			w.Size = pickOf(d, "size", 1, 2, 3, 4, 7, dims[i])
			w.Stride = pickOf(d, "stride", int64(1), 1, 2, 3, w.Size)
			w.PadLow, w.PadHigh = d.n64(0, min(w.Size-1, 3), "pad low"), d.n64(0, min(w.Size-1, 3), "pad high")
			w.RhsDilate = pickOf(d, "dilation", int64(1), 1, 1, 2)
			if d.n(0, 9, "dilate base") == 0 {
				w.LhsDilate = 2
			}
		}
		n, ok := ws[i].Out(dims[i])
		if !ok || n < 1 {
			ws[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
			n = dims[i]
		}
		work *= n * ws[i].Size
	}
	if work > 1000000 {
		return
	}
	count := 1.0
	for _, w := range ws {
		count *= float64(w.Size)
	}
	if dt.IsFloat() && !d.special && d.n(0, 2, "average") == 0 {
		for i := range ws {
			ws[i].LhsDilate = 1
			if n, _ := ws[i].Out(dims[i]); n < 1 {
				return
			}
		}
		d.add(b.AvgPool(v.n, ws, d.coin("count padding")), false, v.mag)
		return
	}
	kind := pickOf(d, "kind", graph.ReduceSum, graph.ReduceMax, graph.ReduceMin)
	if kind == graph.ReduceSum && (dt == graph.Bool || dt.IsFloat() && dt != graph.F32 && count > 16) {
		kind = graph.ReduceMax
	}
	r := b.ReduceWindow(kind, v.n, ws)
	if kind == graph.ReduceSum {
		d.add(r, !dt.IsFloat(), v.mag*count)
		return
	}
	d.add(r, v.exact, v.mag)
}

// drawModel draws a model and its outputs, which may be inputs, constants or twice the same.
func drawModel(t *rapid.T) (*graph.Graph, bool) {
	g := new(graph.Graph)
	g.Name = "m"
	d := &drawer{t: t, g: g, b: graph.Begin(g, "main"), budget: 1 << 20}
	d.special = rapid.IntRange(0, 7).Draw(t, "special") == 0
	for range d.n(1, 2, "leaves") {
		d.leaf(d.dtype(), d.shape(0, 5, 30000)...)
	}
	for range d.n(1, 6, "operators") {
		d.step()
		if d.b.Err() != nil {
			t.Fatal(d.b.Err())
		}
	}
	last := d.vals[len(d.vals)-1].n
	outs := []graph.Node{last}
	for range d.n(0, 3, "more outputs") {
		outs = append(outs, d.any().n)
	}
	for i, o := range outs {
		d.b.Output("out"+string(rune('0'+i)), o)
	}
	c, err := d.b.End(last)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	return g, d.special
}

// drawnInputs are random inputs over the whole range of narrow integers, and with special values where the model takes them.
func drawnInputs(g *graph.Graph, special bool, seed uint64) []NamedTensor {
	ins := graph.RandomInputs(g, seed)
	r := rand.New(rand.NewPCG(seed, 99))
	var out []NamedTensor
	for i, p := range g.Params(g.Entry) {
		x := ins[i]
		d := x.Dtype
		for k := range x.Len() {
			put := func(bits uint64) {
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], bits)
				copy(x.Data[k*d.Size():(k+1)*d.Size()], b[:])
			}
			switch {
			case d.IsInt() && d.Bits() <= 16:
				put(r.Uint64())
			case d.IsInt() && seed%2 == 0:
				put(graph.EncodeInt(d, r.Int64N(201)-100*int64(b2i(d.Signed()))))
			case d.IsFloat() && special && r.IntN(4) == 0:
				v := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0}[r.IntN(5)]
				bits, _ := graph.EncodeFloat(d, v)
				put(bits)
			}
		}
		out = append(out, NamedTensor{g.NodeName(p), x})
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// street takes models through worker and machine that are kept, as a batch does.
type street struct {
	w     Worker
	r     Runner
	seeds int // interleavings, one at least
}

// check compiles a model with every checker on, runs the package and compares it with the interpreter. It returns why the
// model was refused, if so: only by name or by a limit.
func (s *street) check(t rapid.TB, g *graph.Graph, ins []NamedTensor, o Options) error {
	var buf neff.Buffer
	p := &Program{Name: "m", Graph: g}
	defer func() {
		if t.Failed() {
			var text bytes.Buffer
			if err := hlo.Write(&text, g); err == nil {
				t.Logf("%s", text.Bytes())
			}
		}
	}()
	_, err := s.w.Compile(context.Background(), p, &o, &buf)
	if err != nil {
		// What the tail cannot encode should have been split, or refused by the name of an operator.
		if c := target.ClassOf(err); c != target.Unsupported && c != target.Limit || strings.HasPrefix(err.Error(), "codegen: ") {
			t.Fatalf("%s: %v", o.Target, err)
		}
		return err
	}
	tensors := make([]graph.Tensor, len(ins))
	for i := range ins {
		tensors[i] = ins[i].Tensor
		ins[i].Name = ""
	}
	want, err := graph.Eval(g, tensors)
	if err != nil {
		t.Fatalf("interpreter: %v", err)
	}
	res, err := s.r.Execute(context.Background(), bytes.Clone(buf.Bytes()), &RunOptions{Inputs: ins, Weights: p, Seeds: max(1, s.seeds), Rtol: -1, Atol: -1})
	if err != nil {
		t.Fatalf("%s: %v", o.Target, err)
	}
	tol := graph.Tolerance(g)
	for i, x := range want {
		got := res.Outputs[i].Tensor
		if got.Dtype == graph.U8 && x.Dtype == graph.Bool {
			got.Dtype = graph.Bool
		}
		atol := tol.Of(x)
		if tol.ATolRMS > 0 || tol.By != graph.F32 {
			// A few roundings of values of the size of one: an operator in between may make their difference large.
			atol += 0.05
		} else {
			atol += 1e-4
		}
		if !x.Dtype.IsFloat() {
			tol.RTol, atol = 0, 0
		}
		d, err := graph.Compare(got, x, tol.RTol, atol)
		if err != nil || !d.OK() {
			t.Fatalf("%s: output %d (%s): %v %v", o.Target, i, g.TypeString(g.Nodes.At(g.Outputs[i].Node).Type), d, err)
		}
	}
	return nil
}

// A dense tensor of 127 rows of 257 elements has no divisor that cuts it into long runs, and more rows than a block has
// descriptors.
func TestRunsOfPrimes(t *testing.T) {
	g := new(graph.Graph)
	g.Name = "m"
	b := graph.Begin(g, "main")
	y := b.Dot(b.Param("x", graph.F32, 127), b.Param("w", graph.F32, 257), nil, nil, nil, nil)
	b.Output("y", y)
	c, err := b.End(y)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	var s street
	for _, target := range targets {
		if err := s.check(t, g, drawnInputs(g, false, 1), verified(target)); err != nil {
			t.Fatal(err)
		}
	}
}

// Random models, over shapes, layouts, types and operators, give the interpreter's numbers through the package on every target.
func TestRandomModels(t *testing.T) {
	var s street
	refused, ran := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		g, special := drawModel(t)
		o := verified(rapid.SampledFrom(targets).Draw(t, "target"))
		o.MaxInstructions = 60000
		if rapid.IntRange(0, 3).Draw(t, "tight") == 0 {
			o.TileSBBytes = rapid.SampledFrom([]int{2048, 16384}).Draw(t, "tile bytes")
		}
		if rapid.IntRange(0, 3).Draw(t, "little memory") == 0 {
			o.SBBytes = rapid.SampledFrom([]int{0, 16640, 17408, 18432, 20480, 24576, 40960}).Draw(t, "SBUF bytes")
			o.PSUMBanks = rapid.IntRange(0, 3).Draw(t, "PSUM banks")
		}
		ins := drawnInputs(g, special, rapid.Uint64Range(1, 1000).Draw(t, "input seed"))
		if err := s.check(t, g, ins, o); err != nil {
			refused[err.Error()]++
			return
		}
		ran++
	})
	t.Logf("%d ran, %d refusals", ran, len(refused))
	if testing.Verbose() {
		for k, n := range refused {
			t.Logf("refused %d: %s", n, k)
		}
	}
}

// On the last generation the pointer scalars of an activation lie in the quadrant of its input. Tiles of few rows could lie in
// any.
func TestScalarQuadrants(t *testing.T) {
	var s street
	for _, rows := range []int64{1, 3, 33, 65} {
		g := new(graph.Graph)
		g.Name = "m"
		b := graph.Begin(g, "main")
		x := b.Param("x", graph.F32, rows, 3)
		mean := b.Mul(b.ReduceKeep(graph.ReduceSum, x, 1), b.Scalar(graph.F32, 1.0/3))
		c := b.Sub(x, mean)
		v := b.Mul(b.ReduceKeep(graph.ReduceSum, b.Mul(c, c), 1), b.Scalar(graph.F32, 1.0/3))
		y := b.Mul(c, b.Unary(graph.OpRsqrt, b.Add(v, b.Scalar(graph.F32, 0.25))))
		y = b.Unary(graph.OpAbs, b.Unary(graph.OpRelu, y))
		b.Output("y", y)
		comp, err := b.End(y)
		if err != nil {
			t.Fatal(err)
		}
		g.Entry = comp
		for _, bytes := range []int{0, 16512, 24576} {
			for _, target := range targets {
				o := verified(target)
				o.SBBytes = bytes
				if err := s.check(t, g, drawnInputs(g, false, 1), o); err != nil {
					t.Errorf("%d rows on %s: %v", rows, target, err)
				}
			}
		}
	}
}
