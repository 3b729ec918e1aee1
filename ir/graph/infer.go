package graph

import (
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// InferType returns the result type of n from its operands' types, attributes and called computations.
//
// Where the operands leave the result open, n's own type is the request and is checked instead of computed: the whole type
// of parameter, constant, iota, reshape, bitcast, broadcast, custom-call, collectives and every opaque operator; the element
// type of convert, bitcast-convert, dot, convolution (zero type: that of the first operand), argmax and argmin (zero: s64).
//
// An error is of class User and gives the node, the operator and the operand types.
func InferType(g *Graph, n Node) (Type, error) {
	row := g.Nodes.At(n)
	if row.Op == OpNone || row.Op >= NumOps {
		return 0, g.nodeErr(n, "operator %d is not in the table", row.Op)
	}
	ins := g.Operands(n)
	if a := row.Op.Arity(); a >= 0 && len(ins) != a && row.Op.Class() != ClassOpaque {
		return 0, g.nodeErr(n, "%d operands, the operator takes %d", len(ins), a)
	}
	for i, x := range ins {
		if x == 0 || int(x) >= g.Nodes.Len() {
			return 0, g.nodeErr(n, "operand %d is missing", i)
		}
		if g.Nodes.At(x).Type == 0 {
			return 0, g.nodeErr(n, "operand %d (%s) has no type yet", i, g.NodeName(x))
		}
	}
	v := inference{g: g, n: n, ins: ins, op: row.Op, want: row.Type}
	t, err := v.infer()
	if err != nil {
		return 0, err
	}
	if !g.IsTuple(t) && !CheckDims(g.TypeDims(t)) {
		return 0, g.classErr(target.Limit, n, "result %s has a negative dimension or more than %d elements", g.TypeString(t), int64(MaxElements))
	}
	return t, nil
}

// inference is the state of one InferType.
type inference struct {
	g    *Graph
	n    Node
	ins  []Node
	op   Op
	want Type // the node's own type, 0 when it has none
}

func (v *inference) errf(format string, args ...any) (Type, error) {
	return 0, v.g.nodeErr(v.n, format, args...)
}

// dims and dtype are those of operand i; a tuple operand reads as no dims and dtype Tuple, which every rule rejects.
func (v *inference) dims(i int) []int64   { return v.g.Dims(v.ins[i]) }
func (v *inference) dtype(i int) Dtype    { return v.g.Dtype(v.ins[i]) }
func (v *inference) inType(i int) Type    { return v.g.Nodes.At(v.ins[i]).Type }
func (v *inference) list(k Key) []int64   { return v.g.IntList(v.n, k) }
func (v *inference) calls() []Comp        { return v.g.Calls(v.n) }
func (v *inference) rootType(c Comp) Type { return v.g.Nodes.At(v.g.Comps.At(c).Root).Type }

// wanted is the element type that the node asks for, or def.
func (v *inference) wanted(def Dtype) Dtype {
	if v.want == 0 {
		return def
	}
	return v.g.Types.At(v.want).Dtype
}

// dimList reads an attribute that lists distinct dimensions in [0, rank).
func (v *inference) dimList(k Key, what string, rank int) ([]int64, error) {
	l := v.list(k)
	seen := make([]bool, rank)
	for _, d := range l {
		if d < 0 || d >= int64(rank) || seen[d] {
			return nil, v.g.nodeErr(v.n, "%s %v are not distinct dimensions below %d", what, l, rank)
		}
		seen[d] = true
	}
	return l, nil
}

// dim reads a single-dimension attribute in [0, rank).
func (v *inference) dim(k Key, rank int) (int, error) {
	d := v.g.Int(v.n, k, -1)
	if d < 0 || d >= int64(rank) {
		return 0, v.g.nodeErr(v.n, "dimension %d is not in [0,%d)", d, rank)
	}
	return int(d), nil
}

func (v *inference) infer() (Type, error) {
	class := v.op.Class()
	switch class {
	case ClassUnary, ClassBinary, ClassTernary, ClassMove, ClassReduce, ClassContract, ClassNorm:
		for i := range v.ins {
			if d := v.dtype(i); d >= String && !(d == Tuple && v.op == OpBarrier) && !(v.op == OpCopy) {
				return v.errf("operand %d is not a tensor", i)
			}
		}
	}
	switch class {
	case ClassLeaf:
		return v.leaf()
	case ClassUnary:
		return v.unary()
	case ClassBinary:
		return v.binary()
	case ClassTernary:
		return v.ternary()
	case ClassMove:
		return v.move()
	case ClassReduce:
		return v.reduce()
	case ClassContract:
		if v.op == OpDot {
			return v.dot()
		}
		return v.conv()
	case ClassNorm:
		return v.norm()
	case ClassControl:
		return v.control()
	}
	if v.want == 0 {
		return v.errf("the operator's result type must be given")
	}
	return v.want, nil
}

func (v *inference) leaf() (Type, error) {
	g := v.g
	if v.want == 0 {
		return v.errf("a %s needs a type", v.op)
	}
	switch v.op {
	case OpIota:
		if d := g.Types.At(v.want).Dtype; !d.IsInt() && !d.IsFloat() && d != C64 && d != C128 {
			return v.errf("iota of %s", d)
		}
		if _, err := v.dim(AttrDim, len(g.TypeDims(v.want))); err != nil {
			return 0, err
		}
	case OpConstant:
		row := g.Nodes.At(v.n)
		if row.Const == 0 {
			return v.errf("constant without a value")
		}
		if g.IsTuple(v.want) {
			return v.errf("constant of tuple type")
		}
		c := g.Consts.At(row.Const)
		if c.Kind == ConstDense || c.Kind == ConstBlob {
			if c.Kind == ConstBlob && (int(c.Blob) >= len(g.Blobs) || c.Off < 0 || c.Len < 0 || c.Len > int64(len(g.Blobs[c.Blob])) || c.Off > int64(len(g.Blobs[c.Blob]))-c.Len) {
				return v.errf("constant bytes [%d,+%d) are outside their file", c.Off, c.Len)
			}
			if !CheckDims(g.TypeDims(v.want)) {
				return v.want, nil // reported by the caller
			}
			if need, have := g.TypeBytes(v.want), int64(len(g.ConstBytes(row.Const))); need != have {
				return v.errf("constant has %d bytes, its type takes %d", have, need)
			}
		}
	}
	return v.want, nil
}

// numeric kinds that operators accept.
type accept uint8

const (
	accFloat accept = 1 << iota
	accInt
	accBool
	accComplex
	accAny = accFloat | accInt | accBool | accComplex
)

func (a accept) has(d Dtype) bool {
	switch {
	case d.IsFloat():
		return a&accFloat != 0
	case d.IsInt():
		return a&accInt != 0
	case d == Bool:
		return a&accBool != 0
	case d == C64 || d == C128:
		return a&accComplex != 0
	}
	return false
}

// accepts is the element types of each elementwise operator. Integers in abs, negate, relu… keep their type.
var accepts = [NumOps]accept{
	OpAbs: accFloat | accInt | accComplex, OpNeg: accFloat | accInt | accComplex, OpExp: accFloat | accComplex, OpExpm1: accFloat | accComplex,
	OpLog: accFloat | accComplex, OpLog1p: accFloat | accComplex, OpSqrt: accFloat | accComplex, OpRsqrt: accFloat | accComplex,
	OpCbrt: accFloat | accComplex, OpTanh: accFloat | accComplex, OpSigmoid: accFloat | accComplex, OpSin: accFloat | accComplex,
	OpCos: accFloat | accComplex, OpTan: accFloat | accComplex, OpErf: accFloat, OpFloor: accFloat, OpCeil: accFloat,
	OpRoundEven: accFloat, OpRoundAway: accFloat, OpSign: accFloat | accInt | accComplex, OpNot: accInt | accBool, OpIsFinite: accFloat,
	OpPopcnt: accInt, OpClz: accInt, OpRelu: accFloat | accInt, OpLeakyRelu: accFloat, OpGelu: accFloat, OpGeluTanh: accFloat,
	OpSilu: accFloat, OpSoftplus: accFloat, OpMish: accFloat, OpConvert: accAny, OpBitcastConvert: accAny, OpReducePrecision: accFloat,
	OpCopy: accAny, OpBarrier: accAny,
	OpAdd: accAny, OpSub: accFloat | accInt | accComplex, OpMul: accAny, OpDiv: accFloat | accInt | accComplex,
	OpMax: accFloat | accInt | accBool, OpMin: accFloat | accInt | accBool, OpPow: accFloat | accInt | accComplex, OpRem: accFloat | accInt,
	OpAnd: accInt | accBool, OpOr: accInt | accBool, OpXor: accInt | accBool, OpShl: accInt, OpShrLogical: accInt, OpShrArith: accInt,
	OpAtan2: accFloat | accComplex, OpCompare: accAny, OpComplex: accFloat,
	OpSelect: accAny, OpClamp: accFloat | accInt,
}

func (v *inference) unary() (Type, error) {
	g := v.g
	d, dims := v.dtype(0), v.dims(0)
	if v.op == OpBarrier || v.op == OpCopy {
		return v.inType(0), nil
	}
	if !accepts[v.op].has(d) {
		return v.errf("%s does not take %s", v.op, d)
	}
	switch v.op {
	case OpIsFinite:
		return g.Tensor(Bool, dims...), nil
	case OpAbs:
		switch d {
		case C64:
			return g.Tensor(F32, dims...), nil
		case C128:
			return g.Tensor(F64, dims...), nil
		}
	case OpConvert:
		to := v.wanted(DtypeNone)
		if !accAny.has(to) {
			return v.errf("convert to %s", to)
		}
		return g.Tensor(to, dims...), nil
	case OpBitcastConvert:
		return v.bitcastConvert()
	case OpReducePrecision:
		e, m := g.Int(v.n, AttrExponent, 0), g.Int(v.n, AttrMantissa, -1)
		if e < 1 || e > 11 || m < 0 || m > 52 {
			return v.errf("reduce-precision to e%d m%d is not a format", e, m)
		}
	}
	return v.inType(0), nil
}

// bitcastConvert: equal widths keep the shape; a narrower result has a new last dimension, a wider one absorbs the last.
func (v *inference) bitcastConvert() (Type, error) {
	from, to := v.dtype(0), v.wanted(DtypeNone)
	dims := v.dims(0)
	fb, tb := from.Bits(), to.Bits()
	if tb == 0 || from == Bool || to == Bool {
		return v.errf("bitcast-convert from %s to %s", from, to)
	}
	switch {
	case fb == tb:
		return v.g.Tensor(to, dims...), nil
	case fb > tb:
		return v.g.Tensor(to, append(append([]int64(nil), dims...), int64(fb/tb))...), nil
	}
	if len(dims) == 0 || dims[len(dims)-1] != int64(tb/fb) {
		return v.errf("bitcast-convert from %s to %s needs a last dimension of %d", from, to, tb/fb)
	}
	return v.g.Tensor(to, dims[:len(dims)-1]...), nil
}

func (v *inference) binary() (Type, error) {
	g := v.g
	if a, b := v.inType(0), v.inType(1); a != b {
		return v.errf("operand types %s and %s differ", g.TypeString(a), g.TypeString(b))
	}
	d, dims := v.dtype(0), v.dims(0)
	if !accepts[v.op].has(d) {
		return v.errf("%s does not take %s", v.op, d)
	}
	switch v.op {
	case OpCompare:
		if dir := g.Int(v.n, AttrDirection, -1); dir < int64(DirEQ) || dir > int64(DirGE) {
			return v.errf("compare without a direction")
		}
		return g.Tensor(Bool, dims...), nil
	case OpComplex:
		switch d {
		case F32:
			return g.Tensor(C64, dims...), nil
		case F64:
			return g.Tensor(C128, dims...), nil
		}
		return v.errf("complex of %s", d)
	}
	return v.inType(0), nil
}

func (v *inference) ternary() (Type, error) {
	g := v.g
	if v.op == OpSelect {
		a, b := v.inType(1), v.inType(2)
		if v.dtype(0) != Bool {
			return v.errf("the selector is %s, not pred", v.dtype(0))
		}
		if a != b {
			return v.errf("the alternatives %s and %s differ", g.TypeString(a), g.TypeString(b))
		}
		if p := v.dims(0); len(p) != 0 && !sameDims(p, v.dims(1)) {
			return v.errf("the selector's shape is neither scalar nor that of the alternatives")
		}
		return a, nil
	}
	x := v.inType(1)
	if !accepts[v.op].has(v.dtype(1)) {
		return v.errf("%s does not take %s", v.op, v.dtype(1))
	}
	for _, i := range []int{0, 2} {
		if v.dtype(i) != v.dtype(1) || len(v.dims(i)) != 0 && v.inType(i) != x {
			return v.errf("bound %s is neither a scalar nor of the type %s", g.TypeString(v.inType(i)), g.TypeString(x))
		}
	}
	return x, nil
}

func (v *inference) control() (Type, error) {
	g := v.g
	need := func(k int) error {
		if len(v.calls()) < k {
			return g.nodeErr(v.n, "%d called computations, the operator takes %d", len(v.calls()), k)
		}
		for _, c := range v.calls() {
			if c == 0 || int(c) >= g.Comps.Len() {
				return g.nodeErr(v.n, "a called computation is missing")
			}
			if v.rootType(c) == 0 {
				return g.nodeErr(v.n, "called computation %s has no typed root", g.Names.String(g.Comps.At(c).Name))
			}
		}
		return nil
	}
	params := func(c Comp, args []Node) error {
		ps := g.Params(c)
		if len(ps) != len(args) {
			return g.nodeErr(v.n, "%d operands for %d parameters of %s", len(args), len(ps), g.Names.String(g.Comps.At(c).Name))
		}
		for i, p := range ps {
			if a, b := g.Nodes.At(args[i]).Type, g.Nodes.At(p).Type; a != b {
				return g.nodeErr(v.n, "operand %d is %s, parameter %s is %s", i, g.TypeString(a), g.NodeName(p), g.TypeString(b))
			}
		}
		return nil
	}
	switch v.op {
	case OpTuple:
		elems := make([]Type, len(v.ins))
		for i := range elems {
			elems[i] = v.inType(i)
		}
		return g.TupleOf(elems...), nil
	case OpGetTupleElement:
		elems := g.Elems(v.inType(0))
		i := g.Int(v.n, AttrIndex, -1)
		if !g.IsTuple(v.inType(0)) || i < 0 || i >= int64(len(elems)) {
			return v.errf("no element %d in %s", i, g.TypeString(v.inType(0)))
		}
		return elems[i], nil
	case OpCall, OpFusion:
		if err := need(1); err != nil {
			return 0, err
		}
		c := v.calls()[0]
		if err := params(c, v.ins); err != nil {
			return 0, err
		}
		return v.rootType(c), nil
	case OpWhile:
		if err := need(2); err != nil {
			return 0, err
		}
		cond, body := v.calls()[0], v.calls()[1]
		for _, c := range []Comp{cond, body} {
			if err := params(c, v.ins); err != nil {
				return 0, err
			}
		}
		if t := v.rootType(cond); t != g.Tensor(Bool) {
			return v.errf("the condition gives %s, not pred[]", g.TypeString(t))
		}
		if t := v.rootType(body); t != v.inType(0) {
			return v.errf("the body gives %s for a state of %s", g.TypeString(t), g.TypeString(v.inType(0)))
		}
		return v.inType(0), nil
	case OpConditional:
		return v.conditional(need, params)
	case OpAddDependency, OpDomain:
		return v.inType(0), nil
	case OpAfterAll:
		return g.Tensor(Token), nil
	case OpPartitionID, OpReplicaID:
		return g.Tensor(U32), nil
	case OpGetDimensionSize:
		if _, err := v.dim(AttrDim, len(v.dims(0))); err != nil {
			return 0, err
		}
		return g.Tensor(S32), nil
	}
	if v.want == 0 {
		return v.errf("the operator's result type must be given")
	}
	return v.want, nil
}

// conditional: a pred selector has two branches, true first; an s32 selector any number. Branch i takes operand i+1.
func (v *inference) conditional(need func(int) error, params func(Comp, []Node) error) (Type, error) {
	g := v.g
	if err := need(1); err != nil {
		return 0, err
	}
	cs := v.calls()
	if len(v.ins) != len(cs)+1 {
		return v.errf("%d branches need as many operands after the selector, there are %d", len(cs), len(v.ins)-1)
	}
	if t := v.inType(0); !(t == g.Tensor(Bool) && len(cs) == 2) && t != g.Tensor(S32) {
		return v.errf("selector %s for %d branches", g.TypeString(t), len(cs))
	}
	t := v.rootType(cs[0])
	for i, c := range cs {
		if err := params(c, v.ins[i+1:i+2]); err != nil {
			return 0, err
		}
		if u := v.rootType(c); u != t {
			return v.errf("branches give %s and %s", g.TypeString(t), g.TypeString(u))
		}
	}
	return t, nil
}

// Check verifies the whole graph: operands belong to the same computation, no cycles, and every node's type is what
// InferType says. It is meant for readers of formats that carry types. It changes nothing but may intern types.
func Check(g *Graph) error { return g.inferAll(true) }

// Infer fills in every node's type, callees before callers, and checks those that have one, as Check does. Nodes whose type
// cannot be computed (see InferType) must have it.
func Infer(g *Graph) error { return g.inferAll(false) }

func (g *Graph) inferAll(checkOnly bool) error {
	comps, err := CompOrder(g)
	if err != nil {
		return err
	}
	var o Orderer
	for _, c := range comps {
		order, err := o.All(g, c)
		if err != nil {
			return err
		}
		for _, n := range order {
			have := g.Nodes.At(n).Type
			if checkOnly && have == 0 {
				return g.nodeErr(n, "the node has no type")
			}
			t, err := InferType(g, n)
			if err != nil {
				return err
			}
			if have != 0 && have != t && !g.looseType(n, have, t) {
				return g.nodeErr(n, "the type given is %s, the operands say %s", g.TypeString(have), g.TypeString(t))
			}
			if have == 0 {
				g.Nodes.At(n).Type = t
			}
		}
		r := g.Comps.At(c)
		if r.Root == 0 && c != g.Entry {
			return target.Errorf(target.User, "computation %s has no root", g.Names.String(r.Name))
		}
		for i, p := range g.Params(c) {
			if g.Op(p) != OpParameter || g.Int(p, AttrIndex, -1) != int64(i) {
				return target.Errorf(target.User, "computation %s: parameter %d is %s", g.Names.String(r.Name), i, g.NodeString(p))
			}
		}
	}
	for _, o := range g.Outputs {
		if o.Node == 0 || g.Nodes.At(o.Node).Comp != g.Entry {
			return target.Errorf(target.User, "output %s is not a node of the entry computation", g.Names.String(o.Name))
		}
	}
	return nil
}

// looseType accepts a given type that differs from the inferred one where producers differ: the integer type of argmax, and
// the element type that a reduction or a scatter accumulates in.
func (g *Graph) looseType(n Node, have, want Type) bool {
	switch g.Op(n) {
	case OpGetDimensionSize, OpPartitionID, OpReplicaID:
		return sameDims(g.TypeDims(have), g.TypeDims(want)) && g.Types.At(have).Dtype.IsInt()
	}
	return false
}

// CompOrder lists the computations, each after those it calls. An error names a computation that calls itself.
func CompOrder(g *Graph) ([]Comp, error) {
	const white, grey, black = 0, 1, 2
	state := make([]uint8, g.Comps.Len())
	order := make([]Comp, 0, g.Comps.Len())
	type frame struct {
		c    Comp
		next Node // the node to look at
		call int  // and its call
	}
	var stack []frame
	for root := Comp(1); int(root) < g.Comps.Len(); root++ {
		if state[root] != white {
			continue
		}
		stack = append(stack[:0], frame{c: root, next: g.Comps.At(root).First})
		state[root] = grey
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			r := g.Comps.At(f.c)
			if uint32(f.next)-uint32(r.First) >= r.Count {
				state[f.c] = black
				order = append(order, f.c)
				stack = stack[:len(stack)-1]
				continue
			}
			calls := g.Calls(f.next)
			if f.call >= len(calls) {
				f.next, f.call = f.next+1, 0
				continue
			}
			callee := calls[f.call]
			f.call++
			if callee == 0 || int(callee) >= g.Comps.Len() {
				return nil, g.nodeErr(f.next, "a called computation is missing")
			}
			switch state[callee] {
			case grey:
				return nil, g.nodeErr(f.next, "computation %s calls itself", g.Names.String(g.Comps.At(callee).Name))
			case white:
				state[callee] = grey
				stack = append(stack, frame{c: callee, next: g.Comps.At(callee).First})
			}
		}
	}
	return order, nil
}

// Orderer finds topological orders, reusing its memory.
type Orderer struct {
	state []uint8
	order []Node
	stack []orderFrame
}

type orderFrame struct {
	n    Node
	next uint32
}

// All lists every node of c after its operands, otherwise in table order. The result is valid until the next call.
func (o *Orderer) All(g *Graph, c Comp) ([]Node, error) { return o.run(g, c, nil) }

// From lists the nodes of c that roots need, and the parameters, each after its operands.
func (o *Orderer) From(g *Graph, c Comp, roots []Node) ([]Node, error) {
	if roots == nil {
		roots = []Node{}
	}
	return o.run(g, c, roots)
}

func (o *Orderer) run(g *Graph, c Comp, roots []Node) ([]Node, error) {
	const white, grey, black = 0, 1, 2
	r := g.Comps.At(c)
	o.state = append(o.state[:0], make([]uint8, r.Count)...)
	o.order, o.stack = o.order[:0], o.stack[:0]
	visit := func(root Node) error {
		if uint32(root)-uint32(r.First) >= r.Count {
			return g.nodeErr(root, "not a node of computation %s", g.Names.String(r.Name))
		}
		if o.state[root-r.First] != white {
			return nil
		}
		o.state[root-r.First] = grey
		o.stack = append(o.stack, orderFrame{n: root})
		for len(o.stack) > 0 {
			f := &o.stack[len(o.stack)-1]
			ins := g.Operands(f.n)
			if int(f.next) >= len(ins) {
				o.state[f.n-r.First] = black
				o.order = append(o.order, f.n)
				o.stack = o.stack[:len(o.stack)-1]
				continue
			}
			x := ins[f.next]
			f.next++
			if uint32(x)-uint32(r.First) >= r.Count {
				return g.nodeErr(f.n, "operand %d is not a node of computation %s", f.next-1, g.Names.String(r.Name))
			}
			switch o.state[x-r.First] {
			case grey:
				return g.nodeErr(f.n, "the node depends on itself through %s", g.NodeName(x))
			case white:
				o.state[x-r.First] = grey
				o.stack = append(o.stack, orderFrame{n: x})
			}
		}
		return nil
	}
	if roots == nil {
		for i := range r.Count {
			if err := visit(r.First + Node(i)); err != nil {
				return nil, err
			}
		}
		return o.order, nil
	}
	for _, p := range g.Params(c) {
		if err := visit(p); err != nil {
			return nil, err
		}
	}
	for _, n := range roots {
		if err := visit(n); err != nil {
			return nil, err
		}
	}
	return o.order, nil
}
