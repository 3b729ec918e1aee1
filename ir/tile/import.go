package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// importGraph turns every operator of the entry computation into values and views. The graph must be canonical: no calls or
// tuples among what is lowered, operands before users.
func (l *lowering) importGraph() {
	g := l.g
	c := g.Comps.At(g.Entry)
	l.findWraps()
	for i := range c.Count {
		n := c.First + graph.Node(i)
		l.cur = n
		if g.IsTuple(g.Nodes.At(n).Type) {
			l.several(n)
			if l.err != nil {
				return
			}
			continue
		}
		if len(g.Dims(n)) > maxRank {
			l.unsupported(n, "rank %d is above %d", len(g.Dims(n)), maxRank)
			return
		}
		var v view
		if w := l.wraps.Get(n); w.d != 0 {
			v = l.wrapNode(w)
		} else {
			v = l.importNode(n)
		}
		if l.err != nil {
			return
		}
		l.nodes.Set(n, v)
	}
	for _, o := range g.Outputs {
		l.cur = o.Node
		d := g.Dtype(o.Node)
		dt, ok := machineType(d)
		if !ok {
			l.badType(o.Node, d, "is not a type of the machine")
			return
		}
		v := l.nodes.Get(o.Node)
		if v.root != 0 {
			v = l.stored(v, dt)
			l.vals.At(v.root).uses++
		}
		l.outs = append(l.outs, output{name: o.Name, v: v, dt: dt, node: o.Node})
	}
}

// several imports an operator with several results.
func (l *lowering) several(n graph.Node) {
	switch l.g.Op(n) {
	case graph.OpTopK:
		vals, idx := l.topK(n)
		l.setTuple(n, []view{vals, idx})
	case graph.OpBatchNormTraining:
		if l.in(n, 0).root != 0 {
			l.setTuple(n, l.batchNormTraining(n))
		}
	default:
		l.unsupported(n, "several results are not lowered")
	}
}

func (l *lowering) setTuple(n graph.Node, parts []view) {
	if l.tuples == nil {
		l.tuples = map[graph.Node][]view{}
	}
	l.tuples[n] = parts
}

// stored is v in storage type dt: values live in the narrowest type that holds them, 64-bit integers as int32 and widened
// floats as they were.
func (l *lowering) stored(v view, dt target.Dtype) view {
	r := l.vals.At(v.root)
	if r.dt == dt {
		return v
	}
	if r.op == vSplat {
		return l.splat(dt, r.encoded(dt), r.c0, r.lo, r.hi, v.shape())
	}
	return l.add(valueRow{op: vCopy, dt: dt, lo: r.lo, hi: r.hi}, v.shape(), v)
}

// common is one storage type for operands of n that are put side by side: theirs if they share it, else that of n's own type.
func (l *lowering) common(n graph.Node, vs ...view) target.Dtype {
	dt := l.vals.At(vs[0].root).dt
	for _, v := range vs[1:] {
		if l.vals.At(v.root).dt != dt {
			return l.typeOf(n)
		}
	}
	return dt
}

// typeOf is the storage type of n's own element type, which must be one of the machine.
func (l *lowering) typeOf(n graph.Node) target.Dtype {
	dt, ok := machineType(l.g.Dtype(n))
	if !ok {
		l.badType(n, l.g.Dtype(n), "is not a type of the machine")
	}
	return dt
}

// in is the view of operand i of n.
func (l *lowering) in(n graph.Node, i int) view { return l.nodes.Get(l.g.Operands(n)[i]) }

// importNode makes the result of one operator. A result without elements is the zero view.
func (l *lowering) importNode(n graph.Node) view {
	g := l.g
	op := g.Op(n)
	if op == graph.OpParameter {
		return l.parameter(n)
	}
	if op.Class() == graph.ClassOpaque || op.Class() == graph.ClassCollective {
		l.unsupported(n, "the operator is not lowered")
		return view{}
	}
	if op != graph.OpTopK && product(g.Dims(n)) == 0 {
		return view{}
	}
	switch op.Class() {
	case graph.ClassLeaf:
		if op == graph.OpIota {
			return l.iota(n)
		}
		return l.constant(n)
	case graph.ClassUnary:
		return l.narrow(n, l.unary(n))
	case graph.ClassBinary:
		return l.narrow(n, l.binary(n))
	case graph.ClassTernary:
		return l.narrow(n, l.ternary(n))
	case graph.ClassMove:
		return l.move(n)
	case graph.ClassReduce:
		return l.narrow(n, l.reduction(n))
	case graph.ClassContract:
		if op == graph.OpDot {
			return l.narrow(n, l.dot(n))
		}
		return l.narrow(n, l.conv(n))
	case graph.ClassNorm:
		return l.narrow(n, l.norm(n))
	}
	switch op {
	case graph.OpGetTupleElement:
		parts := l.tuples[g.Operands(n)[0]]
		if k := g.Int(n, graph.AttrIndex, 0); k < int64(len(parts)) {
			return parts[k]
		}
	case graph.OpAddDependency, graph.OpDomain:
		return l.in(n, 0)
	case graph.OpCustomCall:
		switch g.Str(n, graph.AttrTarget) {
		case "AwsNeuronTransferWithStaticRing", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape":
			return l.in(n, 0)
		}
	}
	l.unsupported(n, "the operator is not lowered")
	return view{}
}

func (l *lowering) parameter(n graph.Node) view {
	d := l.g.Dtype(n)
	dt, ok := machineType(d)
	if !ok {
		l.badType(n, d, "is not a type of the machine")
		return view{}
	}
	dims := l.g.Dims(n)
	if product(dims) == 0 {
		l.params = append(l.params, 0)
		return view{}
	}
	lo, hi := typeRange(d)
	v := l.add(valueRow{op: vInput, dt: dt, lo: lo, hi: hi}, dims)
	l.params = append(l.params, v.root)
	return v
}

func (l *lowering) constant(n graph.Node) view {
	g := l.g
	d := g.Dtype(n)
	dt, ok := machineType(d)
	if !ok {
		l.badType(n, d, "is not a type of the machine")
		return view{}
	}
	dims := g.Dims(n)
	c := g.Consts.At(g.Nodes.At(n).Const)
	switch {
	case c.Kind == graph.ConstSplat:
		return l.splatOf(d, dt, c.Bits, dims)
	case product(dims) == 1 && c.Kind != graph.ConstElided:
		return l.splatOf(d, dt, bytesWord(g.ConstBytes(g.Nodes.At(n).Const)), dims)
	}
	lo, hi := typeRange(d)
	if data := g.ConstBytes(g.Nodes.At(n).Const); data != nil && (d.IsInt() || d == graph.Bool) {
		lo, hi = intsRange(d, data)
	}
	l.consts = append(l.consts, constant{node: n})
	return l.add(valueRow{op: vConst, dt: dt, lo: lo, hi: hi, aux: uint32(len(l.consts) - 1)}, dims)
}

func (l *lowering) splatOf(d graph.Dtype, dt target.Dtype, bits uint64, dims []int64) view {
	lo, hi := int64(0), int64(0)
	if d.IsInt() || d == graph.Bool {
		lo = decodeInt(d, bits)
		hi = lo
		if d.Bits() == 64 && lo >= math.MinInt32 && lo <= math.MaxInt32 {
			dt, bits = target.Int32, uint64(uint32(lo))
		}
	}
	return l.splat(dt, bits, decodeSplat(d, bits), lo, hi, dims)
}

// bytesWord is the little-endian value of up to eight bytes.
func bytesWord(b []byte) uint64 {
	var w uint64
	for i := len(b) - 1; i >= 0; i-- {
		w = w<<8 | uint64(b[i])
	}
	return w
}

// intsRange scans the elements of an integer constant.
func intsRange(d graph.Dtype, data []byte) (lo, hi int64) {
	size := d.Size()
	lo, hi = math.MaxInt64, math.MinInt64
	for i := 0; i+size <= len(data); i += size {
		x := decodeInt(d, bytesWord(data[i:i+size]))
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// iota is 0, 1, 2… along one axis: made once as a vector, and repeated along the others by its view.
func (l *lowering) iota(n graph.Node) view {
	g := l.g
	d := g.Dtype(n)
	dt, ok := machineType(d)
	if !ok {
		l.badType(n, d, "is not a type of the machine")
		return view{}
	}
	if dt.Size() == 8 {
		dt = target.Int32
	}
	dims := g.Dims(n)
	at := g.Int(n, graph.AttrDim, 0)
	k := dims[at]
	if k > math.MaxInt32 {
		l.unsupported(n, "counts to %d", k)
		return view{}
	}
	v := l.add(valueRow{op: vIota, dt: dt, hi: k - 1}, []int64{k})
	return v.broadcast([]int64{at}, dims)
}

// norm expands the normalisation composites.
func (l *lowering) norm(n graph.Node) view {
	g := l.g
	x := l.in(n, 0)
	dims := g.Dims(n)
	dt := floatType(l.typeOf(n))
	switch g.Op(n) {
	case graph.OpBatchNormInference:
		at := g.Int(n, graph.AttrFeature, 1)
		vec := []int64{dims[at]}
		eps := float32(g.Float(n, graph.AttrEpsilon, 1e-5))
		mean, variance := l.in(n, 3), l.in(n, 4)
		r := l.act(target.ActRsqrt, target.Float32, vec, variance, 1, eps)
		scale := l.tt(target.AluMult, target.Float32, vec, l.in(n, 1), r)
		shift := l.tt(target.AluMult, target.Float32, vec, mean, scale)
		shift = l.tt(target.AluSub, target.Float32, vec, l.in(n, 2), shift)
		y := l.tt(target.AluMult, target.Float32, dims, x, scale.broadcast([]int64{at}, dims))
		return l.tt(target.AluAdd, dt, dims, y, shift.broadcast([]int64{at}, dims))
	case graph.OpLRN:
		size := g.Int(n, graph.AttrSize, 1)
		sq := l.act(target.ActSquare, target.Float32, dims, x, 1, 0)
		ws := l.keptWindows.TakeDirty(len(dims))
		for i := range ws {
			ws[i] = graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}
		}
		ws[1].Size = size
		ws[1].PadLow = (size - 1) / 2
		ws[1].PadHigh = size - 1 - ws[1].PadLow
		sum := l.window(target.AluAdd, target.Float32, 0, sq, ws, dims)
		alpha := float32(g.Float(n, graph.AttrAlpha, 1e-4) / float64(size))
		// (bias + alpha·sum)^-beta as one logarithm and one exponential.
		ln := l.act(target.ActLn, target.Float32, dims, sum, alpha, float32(g.Float(n, graph.AttrBias, 1)))
		w := l.act(target.ActExp, target.Float32, dims, ln, -float32(g.Float(n, graph.AttrBeta, 0.75)), 0)
		return l.tt(target.AluMult, dt, dims, x, w)
	}
	l.unsupported(n, "the operator is not lowered")
	return view{}
}
