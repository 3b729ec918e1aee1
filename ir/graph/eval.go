package graph

import (
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// DefaultMaxMemory bounds the live values of an interpreter that does not say otherwise: 2 GiB.
const DefaultMaxMemory = 2 << 30

// Interp is the reference interpreter: what a model without published numbers should compute. It is written to be read and
// shares no code with the lowering or the simulators.
//
// Numbers: float types up to 32 bits compute in float32 (functions in float64, rounded), F64 in float64, integers and Bool in
// int64; the result is rounded to the node's type after every operator, to nearest even. Dot, convolution, reduce,
// reduce-window, avg-pool and cumsum accumulate in float32 whatever the float type (F64: float64; integers: int64) and are
// rounded once at the end; a product is rounded to float32 before it is added. Normalisation composites compute in float64
// and round once. Integers wrap. Division of integers by zero gives all ones, remainder the dividend.
//
// The zero value is ready to use. An Interp may be used again and by one goroutine at a time.
type Interp struct {
	// MaxMemory bounds the bytes of live values, temporaries of an operator included, constants and inputs that are used in
	// place excluded; 0 is DefaultMaxMemory.
	MaxMemory int64
	// Weights supplies the bytes of a constant without any (row-major little-endian). It returns nil for a constant it does not
	// know, which is then generated from its seed, or refused if it has none.
	Weights func(g *Graph, n Node) ([]byte, error)
	// MaxSteps bounds the operators that are evaluated, each turn of a loop counted; 0 is unbounded.
	MaxSteps int64

	lanes lanes
}

// Eval runs the graph on a fresh interpreter.
func Eval(g *Graph, inputs []Tensor) ([]Tensor, error) { return new(Interp).Run(g, inputs) }

// value is a tensor with its storage, or a tuple of values.
type value struct {
	t     Tensor
	b     *block // nil for bytes that are not the interpreter's
	elems []value
	tuple bool
}

// block is counted storage. Reshapes, tuples and calls share it.
type block struct {
	size int64
	refs int
}

// run is the state of one Run.
type run struct {
	in     *Interp
	g      *Graph
	lanes  *lanes
	limit  int64
	live   int64
	steps  int64
	plans  []*plan
	frames []*frame
}

// plan is the order of one computation and how often each node is used.
type plan struct {
	order []Node
	uses  []int32
}

type phase uint8

const (
	phaseCall phase = iota
	phaseCond
	phaseBody
)

// frame is one computation being evaluated. caller is the node of the frame below that waits for its result.
type frame struct {
	comp   Comp
	plan   *plan
	pos    int
	vals   []value
	uses   []int32
	args   []value
	caller Node
	phase  phase
	state  value // of a while: the state under test
}

// Run evaluates the entry computation and returns its outputs in order; a tuple-typed output gives its elements in order.
// inputs are the parameters by number and are not changed; outputs may share their bytes.
//
// An error of class Limit names the node that would pass MaxMemory, with need and limit; class Unsupported an operator or
// type that is not evaluated; class User an input of the wrong type, or an index out of range.
func (in *Interp) Run(g *Graph, inputs []Tensor) ([]Tensor, error) {
	r := &run{in: in, g: g, lanes: &in.lanes, limit: in.MaxMemory, plans: make([]*plan, g.Comps.Len())}
	if r.limit <= 0 {
		r.limit = DefaultMaxMemory
	}
	if g.Entry == 0 {
		return nil, target.Errorf(target.User, "the model %s has no entry computation", g.Name)
	}
	params := g.Params(g.Entry)
	if len(params) != len(inputs) {
		return nil, target.Errorf(target.User, "%d inputs for the %d parameters of %s", len(inputs), len(params), g.Name)
	}
	args := make([]value, len(inputs))
	for i, t := range inputs {
		if g.IsTuple(g.Nodes.At(params[i]).Type) {
			return nil, g.unsupported(params[i], "a parameter of tuple type")
		}
		if err := t.check("input "+g.NodeName(params[i]), g.Dtype(params[i]), g.Dims(params[i])); err != nil {
			return nil, err
		}
		t.Data = aligned(t.Data, t.Dtype.Size())
		args[i] = value{t: t}
	}
	outs, err := r.loop(args)
	if err != nil {
		return nil, err
	}
	var flat []Tensor
	for _, v := range outs {
		flat = v.flatten(flat)
	}
	return flat, nil
}

// flatten appends the leaves of v in order.
func (v value) flatten(dst []Tensor) []Tensor {
	stack := []value{v}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !v.tuple {
			dst = append(dst, v.t)
			continue
		}
		for i := len(v.elems) - 1; i >= 0; i-- {
			stack = append(stack, v.elems[i])
		}
	}
	return dst
}

// outputNodes are the nodes whose values a run of the entry returns: Outputs, or the root.
func outputNodes(g *Graph) []Node {
	if len(g.Outputs) == 0 {
		return []Node{g.Comps.At(g.Entry).Root}
	}
	ns := make([]Node, len(g.Outputs))
	for i, o := range g.Outputs {
		ns[i] = o.Node
	}
	return ns
}

func (r *run) plan(c Comp) (*plan, error) {
	if p := r.plans[c]; p != nil {
		return p, nil
	}
	g := r.g
	roots := []Node{g.Comps.At(c).Root}
	if c == g.Entry {
		roots = outputNodes(g)
	}
	var o Orderer
	order, err := o.From(g, c, roots)
	if err != nil {
		return nil, err
	}
	first := g.Comps.At(c).First
	p := &plan{order: order, uses: make([]int32, g.Comps.At(c).Count)}
	for _, n := range order {
		for _, x := range g.Operands(n) {
			p.uses[x-first]++
		}
	}
	for _, n := range roots {
		p.uses[n-first]++
	}
	r.plans[c] = p
	return p, nil
}

// push starts a computation. It takes over the references of args.
func (r *run) push(c Comp, caller Node, ph phase, args []value, state value) error {
	p, err := r.plan(c)
	if err != nil {
		return err
	}
	if len(args) != len(r.g.Params(c)) {
		return r.g.nodeErr(caller, "%d values for %d parameters", len(args), len(r.g.Params(c)))
	}
	r.frames = append(r.frames, &frame{
		comp: c, plan: p, vals: make([]value, len(p.uses)), uses: append([]int32(nil), p.uses...),
		args: args, caller: caller, phase: ph, state: state,
	})
	return nil
}

// loop runs frames until the entry's is done.
func (r *run) loop(args []value) ([]value, error) {
	g := r.g
	if err := r.push(g.Entry, 0, phaseCall, args, value{}); err != nil {
		return nil, err
	}
	for {
		f := r.frames[len(r.frames)-1]
		first := g.Comps.At(f.comp).First
		if f.pos == len(f.plan.order) {
			if len(r.frames) == 1 {
				var outs []value
				for _, n := range outputNodes(g) {
					outs = append(outs, f.vals[n-first])
				}
				return outs, nil
			}
			result := f.vals[g.Comps.At(f.comp).Root-first]
			r.frames = r.frames[:len(r.frames)-1]
			if err := r.deliver(f, result); err != nil {
				return nil, err
			}
			continue
		}
		n := f.plan.order[f.pos]
		if r.steps++; r.in.MaxSteps > 0 && r.steps > r.in.MaxSteps {
			return nil, g.classErr(target.Limit, n, "more than %d steps", r.in.MaxSteps)
		}
		ins := make([]value, len(g.Operands(n)))
		for i, x := range g.Operands(n) {
			ins[i] = f.vals[x-first]
		}
		started, err := r.control(f, n, ins)
		if err != nil {
			return nil, err
		}
		if started {
			continue // the result is delivered later
		}
		v, err := r.eval(f, n, ins)
		if err != nil {
			return nil, err
		}
		r.finish(f, n, v)
	}
}

// finish stores the result of n and drops operands that no one needs any more.
func (r *run) finish(f *frame, n Node, v value) {
	first := r.g.Comps.At(f.comp).First
	f.vals[n-first] = v
	if f.uses[n-first] == 0 {
		r.release(v)
		f.vals[n-first] = value{}
	}
	for _, x := range r.g.Operands(n) {
		k := x - first
		if f.uses[k]--; f.uses[k] == 0 {
			r.release(f.vals[k])
			f.vals[k] = value{}
		}
	}
	f.pos++
}

// control starts the computation that n calls, if it calls one to run.
func (r *run) control(f *frame, n Node, ins []value) (bool, error) {
	g := r.g
	switch g.Op(n) {
	case OpCall, OpFusion:
		for _, v := range ins {
			r.retain(v)
		}
		return true, r.push(g.Calls(n)[0], n, phaseCall, ins, value{})
	case OpWhile:
		r.retain(ins[0]) // as the argument
		r.retain(ins[0]) // as the state under test
		return true, r.push(g.Calls(n)[0], n, phaseCond, ins, ins[0])
	case OpConditional:
		branches := g.Calls(n)
		s := ins[0].t
		k := indexAt(s, 0)
		if s.Dtype == Bool {
			k = 1 - int64(s.Data[0])
		} else if k < 0 || k >= int64(len(branches)) {
			k = int64(len(branches)) - 1
		}
		r.retain(ins[k+1])
		return true, r.push(branches[k], n, phaseCall, []value{ins[k+1]}, value{})
	}
	return false, nil
}

// deliver gives the result of a finished computation to the node that waits for it, or continues its while.
func (r *run) deliver(done *frame, result value) error {
	g := r.g
	f := r.frames[len(r.frames)-1]
	switch done.phase {
	case phaseCond:
		more := result.t.Data[0] != 0
		r.release(result)
		if more {
			return r.push(g.Calls(done.caller)[1], done.caller, phaseBody, []value{done.state}, value{})
		}
		r.finish(f, done.caller, done.state)
		return nil
	case phaseBody:
		r.retain(result)
		return r.push(g.Calls(done.caller)[0], done.caller, phaseCond, []value{result}, result)
	}
	r.finish(f, done.caller, result)
	return nil
}

// retain and release count the references of every leaf.
func (r *run) retain(v value) { r.count(v, 1) }

func (r *run) release(v value) { r.count(v, -1) }

func (r *run) count(v value, by int) {
	if !v.tuple {
		r.countBlock(v.b, by)
		return
	}
	stack := [][]value{v.elems}
	for len(stack) > 0 {
		es := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range es {
			if e.tuple {
				stack = append(stack, e.elems)
			} else {
				r.countBlock(e.b, by)
			}
		}
	}
}

func (r *run) countBlock(b *block, by int) {
	if b == nil {
		return
	}
	if b.refs += by; b.refs == 0 {
		r.live -= b.size
	}
}

// need counts size more live bytes, or refuses.
func (r *run) need(n Node, size int64) error {
	if r.live+size > r.limit || r.live+size < 0 {
		return r.g.classErr(target.Limit, n, "evaluating it takes %d more bytes of live values, %d are in use and the limit is %d; raise the memory limit or make the model smaller",
			size, r.live, r.limit)
	}
	r.live += size
	return nil
}

// alloc is a new counted tensor of zeros.
func (r *run) alloc(n Node, t Type) (value, error) {
	g := r.g
	d := g.Types.At(t).Dtype
	if d.Size() == 0 || d == String {
		return value{}, g.unsupported(n, "a value of %s", d)
	}
	size := g.TypeBytes(t)
	if err := r.need(n, size); err != nil {
		return value{}, err
	}
	return value{t: Tensor{d, g.TypeDims(t), alignedBytes(int(size))}, b: &block{size: size, refs: 1}}, nil
}

// temp is counted scratch of k elements, zero; done gives it back.
func temp[T number](r *run, n Node, k int) (s []T, done func(), err error) {
	var t T
	size := int64(k) * int64(unsafe.Sizeof(t))
	if err := r.need(n, size); err != nil {
		return nil, nil, err
	}
	return make([]T, k), func() { r.live -= size }, nil
}

// bytesOf is the storage of s.
func bytesOf[T number](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// floats32, floats64 and ints are the elements of t in a wide type: t's own bytes, or a counted copy that done gives back.
func (r *run) floats32(n Node, t Tensor) ([]float32, func(), error) {
	if t.Dtype == F32 {
		return view[float32](t.Data), func() {}, nil
	}
	buf, done, err := temp[float32](r, n, t.Len())
	if err != nil {
		return nil, nil, err
	}
	return loadF32(t.Dtype, t.Data, 0, len(buf), buf), done, nil
}

func (r *run) floats64(n Node, t Tensor) ([]float64, func(), error) {
	if t.Dtype == F64 {
		return view[float64](t.Data), func() {}, nil
	}
	buf, done, err := temp[float64](r, n, t.Len())
	if err != nil {
		return nil, nil, err
	}
	return loadF64(t.Dtype, t.Data, 0, len(buf), buf), done, nil
}

func (r *run) ints(n Node, t Tensor) ([]int64, func(), error) {
	if t.Dtype == S64 || t.Dtype == U64 {
		return view[int64](t.Data), func() {}, nil
	}
	buf, done, err := temp[int64](r, n, t.Len())
	if err != nil {
		return nil, nil, err
	}
	return loadInts(t.Dtype, t.Data, 0, len(buf), buf), done, nil
}

// share is the tensor of v under another type, without copying.
func (r *run) share(v value, t Type) value {
	r.retain(v)
	if v.tuple {
		return v
	}
	v.t.Dims = r.g.TypeDims(t)
	return v
}

// eval evaluates one operator that calls nothing to run.
func (r *run) eval(f *frame, n Node, ins []value) (value, error) {
	g := r.g
	row := g.Nodes.At(n)
	switch row.Op {
	case OpParameter:
		v := f.args[g.Int(n, AttrIndex, 0)] // the frame holds the reference
		return v, nil
	case OpConstant:
		return r.constant(n)
	case OpReshape, OpBitcast, OpCopy, OpBarrier, OpDomain, OpAddDependency:
		return r.share(ins[0], row.Type), nil
	case OpTuple:
		for _, v := range ins {
			r.retain(v)
		}
		return value{tuple: true, elems: ins}, nil
	case OpGetTupleElement:
		i := g.Int(n, AttrIndex, 0)
		if !ins[0].tuple || int(i) >= len(ins[0].elems) {
			return value{}, g.nodeErr(n, "no element %d", i)
		}
		return r.share(ins[0].elems[i], row.Type), nil
	case OpCustomCall:
		if IsIdentity(g, n) {
			return r.share(ins[0], row.Type), nil
		}
		return value{}, g.unsupported(n, "custom call %s is not evaluated", g.Str(n, AttrTarget))
	case OpAfterAll:
		return value{}, nil
	}
	switch row.Op.Class() {
	case ClassOpaque, ClassCollective:
		return value{}, g.unsupported(n, "not evaluated")
	}
	// Results: one tensor, or the elements of a tuple of tensors.
	var outs []value
	types := []Type{row.Type}
	if g.IsTuple(row.Type) {
		types = g.Elems(row.Type)
	}
	for _, t := range types {
		v, err := r.alloc(n, t)
		if err != nil {
			return value{}, err
		}
		outs = append(outs, v)
	}
	ts := make([]Tensor, len(ins))
	for i, v := range ins {
		if v.tuple {
			return value{}, g.unsupported(n, "an operand of tuple type")
		}
		ts[i] = v.t
	}
	os := make([]Tensor, len(outs))
	for i, v := range outs {
		os[i] = v.t
	}
	if err := r.compute(n, os, ts); err != nil {
		return value{}, err
	}
	if g.IsTuple(row.Type) {
		return value{tuple: true, elems: outs}, nil
	}
	return outs[0], nil
}

// constant gives the value of a constant: a view of its bytes, or counted bytes when they must be made.
func (r *run) constant(n Node) (value, error) {
	g := r.g
	row := g.Nodes.At(n)
	d, dims := g.Dtype(n), g.Dims(n)
	c := g.Consts.At(row.Const)
	if c.Kind == ConstDense || c.Kind == ConstBlob {
		t := Tensor{d, dims, aligned(g.ConstBytes(row.Const), d.Size())}
		return value{t: t}, t.check("constant "+g.NodeName(n), d, dims)
	}
	if c.Kind == ConstElided && r.in.Weights != nil {
		b, err := r.in.Weights(g, n)
		if err != nil {
			return value{}, err
		}
		if b != nil {
			t := Tensor{d, dims, aligned(b, d.Size())}
			return value{t: t}, t.check("weight "+g.NodeName(n), d, dims)
		}
	}
	v, err := r.alloc(n, row.Type)
	if err != nil {
		return value{}, err
	}
	return v, MaterialiseRange(g, n, 0, v.t.Data)
}

// compute dispatches an operator of tensors. outs are zero.
func (r *run) compute(n Node, outs, ins []Tensor) error {
	g := r.g
	op := g.Op(n)
	switch op.Class() {
	case ClassUnary, ClassBinary, ClassTernary:
		return r.elementwise(n, outs[0], ins)
	}
	switch op {
	case OpIota:
		return r.iota(n, outs[0])
	case OpScatter:
		return r.scatter(n, outs, ins)
	case OpReduce, OpReduceWindow:
		kind := KindOf(g, n)
		switch {
		case len(outs) == 1 && kind != ReduceOther && op == OpReduce:
			return r.reduce(n, kind, outs[0], ins[0], ins[1])
		case len(outs) == 1 && kind != ReduceOther:
			return r.reduceWindow(n, kind, outs[0], ins[0], ins[1])
		case op == OpReduce:
			return r.reduceGeneral(n, outs, ins[:len(outs)], ins[len(outs):])
		}
		return g.unsupported(n, "a window combined by other than one plain operator is not evaluated")
	case OpArgMax, OpArgMin:
		return r.arg(n, outs[0], ins[0], op == OpArgMax)
	case OpAvgPool:
		return r.avgPool(n, outs[0], ins[0])
	case OpCumSum:
		return r.cumSum(n, outs[0], ins[0])
	case OpSort:
		return r.sort(n, outs, ins)
	case OpTopK:
		return r.topK(n, outs[0], outs[1], ins[0])
	case OpDot:
		return r.dot(n, outs[0], ins[0], ins[1])
	case OpConv:
		return r.conv(n, outs[0], ins[0], ins[1])
	case OpBatchNormInference:
		r.batchNormInference(n, outs[0], ins[0], ins[1], ins[2], ins[3], ins[4])
	case OpBatchNormTraining:
		r.batchNormTraining(n, outs, ins[0], ins[1], ins[2])
	case OpBatchNormGrad:
		r.batchNormGrad(n, outs, ins[0], ins[1], ins[2], ins[3], ins[4])
	case OpLRN:
		r.lrn(n, outs[0], ins[0])
	case OpPartitionID, OpReplicaID: // one device: 0
	case OpGetDimensionSize:
		putElem(outs[0].Dtype, outs[0].Data, 0, uint64(ins[0].Dims[g.Int(n, AttrDim, 0)]))
	default:
		if op.Class() == ClassMove {
			return r.move(n, outs[0], ins)
		}
		return g.unsupported(n, "not evaluated")
	}
	return nil
}

func (r *run) iota(n Node, out Tensor) error {
	dim := int(r.g.Int(n, AttrDim, 0))
	line := NewTensor(out.Dtype, out.Dims[dim])
	for i := range line.Len() {
		bits, ok := EncodeFloat(out.Dtype, float64(i))
		if !ok {
			return r.g.unsupported(n, "iota of %s is not evaluated", out.Dtype)
		}
		if out.Dtype.IsInt() {
			bits = EncodeInt(out.Dtype, int64(i))
		}
		putElem(out.Dtype, line.Data, i, bits)
	}
	from := make([]int64, len(out.Dims))
	from[dim] = 1
	copyND(out.Data, 0, rowMajor(out.Dims), line.Data, 0, from, out.Dims, out.Dtype.Size())
	return nil
}

// identityTargets are custom calls that say where a value lives, not what it is.
var identityTargets = map[string]bool{
	"Sharding": true, "SPMDFullToShardShape": true, "SPMDShardToFullShape": true, "AwsNeuronTransferWithStaticRing": true,
	"annotate_device_placement": true, "MoveToDevice": true, "MoveToHost": true, "xla.sdy.FuncResultSharding": true, "LayoutConstraint": true,
}

// IsIdentity reports a node whose value is its first operand's: copies, barriers, domains, dependencies, placement custom
// calls of unchanged type, and moves that change nothing.
func IsIdentity(g *Graph, n Node) bool {
	ins := g.Operands(n)
	if len(ins) == 0 || g.Nodes.At(ins[0]).Type != g.Nodes.At(n).Type {
		return false
	}
	switch g.Op(n) {
	case OpCopy, OpBarrier, OpDomain, OpAddDependency, OpReshape, OpBitcast, OpConvert, OpBitcastConvert, OpSlice, OpDynamicSlice:
		return true
	case OpBroadcast, OpTranspose:
		for i, d := range g.IntList(n, AttrDims) {
			if int64(i) != d {
				return false
			}
		}
		return true
	case OpConcat:
		return len(ins) == 1
	case OpReverse:
		for _, d := range g.IntList(n, AttrDims) {
			if g.Dims(n)[d] > 1 {
				return false
			}
		}
		return true
	case OpPad:
		for i := range g.Dims(n) {
			if g.IntList(n, AttrLow)[i] != 0 || g.IntList(n, AttrHigh)[i] != 0 {
				return false
			}
		}
		return true // equal shapes without edges: no interior either, or one element
	case OpCustomCall:
		return len(ins) == 1 && identityTargets[g.Str(n, AttrTarget)]
	}
	return false
}
