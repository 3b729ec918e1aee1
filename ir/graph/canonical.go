package graph

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxInlined bounds the operators that Canonical visits with every call counted out: a chain of n computations that each call
// the next twice has 2^n.
const maxInlined = 1 << 22

// Canonical gives an equivalent graph in the form that the lowering takes; g is not changed and may be dropped.
//
// Calls and fusions are inlined and tuples taken apart; copies, barriers, domains, dependencies, placement custom calls and
// moves that change nothing are gone; bitcast is reshape; chains of reshape, transpose and broadcast are one node; what
// depends on small constants alone is a constant, and an elementwise function or move of splats is a splat; a select and a
// conditional on a constant are decided; equal operators on equal operands are one node; dead nodes and computations are
// dropped. Nodes keep their names and stand after their operands. All parameters of the entry stay.
//
// The argmax that XLA writes as a reduction of value and index is argmax and a plain reduction; the Neuron compiler's custom
// calls for gelu, silu, softmax and RMS norm are their formulas.
//
// While, conditional and operators that nothing evaluates or lowers stay where they are, with their computations in the same
// form, so that the lowering can refuse them by name: Entry has tensor-typed nodes only, but for such operators, for those
// with several results (sort, topk, batch-norm-training, variadic reduce) and what feeds a while its tuple. Entry's root is
// 0 when there are several outputs: Outputs says it all, tuple outputs as NAME.0, NAME.1, ….
func Canonical(g *Graph) (*Graph, error) {
	if g.Entry == 0 {
		return nil, target.Errorf(target.User, "the model %s has no entry computation", g.Name)
	}
	comps, err := CompOrder(g)
	if err != nil {
		return nil, err
	}
	w := &rewriter{src: g, dst: new(Graph), comps: make([]Comp, g.Comps.Len()), seen: map[string]Node{}}
	w.dst.Name = g.Name
	w.dst.Blobs = slices.Clone(g.Blobs)
	w.dst.Aliases = slices.Clone(g.Aliases)
	w.typesOf()
	needed := keptComps(g)
	if err := sizesInlined(g, comps, needed); err != nil {
		return nil, err
	}
	for _, c := range comps {
		if needed[c] && c != g.Entry {
			if err := w.computation(c); err != nil {
				return nil, err
			}
		}
	}
	if err := w.computation(g.Entry); err != nil {
		return nil, err
	}
	return Compact(w.dst)
}

// inlined reports an operator whose computation takes its place.
func inlined(op Op) bool { return op == OpCall || op == OpFusion }

// keptComps are the computations that stay computations: those that operators other than call and fusion refer to, wherever
// these stand once calls are inlined.
func keptComps(g *Graph) []bool {
	kept, scanned := make([]bool, g.Comps.Len()), make([]bool, g.Comps.Len())
	work := []Comp{g.Entry}
	scanned[g.Entry] = true
	for len(work) > 0 {
		c := g.Comps.At(work[len(work)-1])
		work = work[:len(work)-1]
		for i := range c.Count {
			n := c.First + Node(i)
			for _, callee := range g.Calls(n) {
				if !inlined(g.Op(n)) {
					kept[callee] = true
				}
				if !scanned[callee] {
					scanned[callee] = true
					work = append(work, callee)
				}
			}
		}
	}
	return kept
}

// sizesInlined refuses a graph with too many operators before any of them is copied. comps has callees before callers. Conditionals are
// counted as one operator, whether they can be decided or not.
func sizesInlined(g *Graph, comps []Comp, needed []bool) error {
	size := make([]uint32, g.Comps.Len()) // at most 1 + maxInlined
	for _, c := range comps {
		row := g.Comps.At(c)
		size[c] = min(row.Count, maxInlined+1)
		for n := row.First; n < row.First+Node(row.Count); n++ {
			if !inlined(g.Op(n)) || len(g.Calls(n)) == 0 {
				continue
			}
			if size[c] += size[g.Calls(n)[0]]; size[c] <= maxInlined {
				continue
			}
			if needed[c] || c == g.Entry {
				return g.tooManyInlined(n)
			}
			size[c] = maxInlined + 1
			break
		}
	}
	return nil
}

func (g *Graph) tooManyInlined(n Node) error {
	return g.classErr(target.Limit, n, "the model has more than %d operators once its calls are inlined", maxInlined)
}

// ref is a value during the rewriting: a node of the new graph, or with the top bit set an entry of rewriter.tuples.
type ref uint32

const tupleRef ref = 1 << 31

// rewriter builds dst from src.
type rewriter struct {
	src, dst *Graph
	types    []Type // of dst, by type of src
	comps    []Comp // of dst, by computation of src
	comp     Comp   // open in dst
	seen     map[string]Node
	key      []byte
	tuples   []arena.Span // of refs
	refs     arena.Pool[ref]
	frames   []inlineFrame
	order    Orderer
	steps    int
	interp   Interp
	name     []byte
}

// inlineFrame is a computation of src being copied. vals is by node, relative to the first.
type inlineFrame struct {
	comp   Comp
	order  []Node
	pos    int
	vals   []ref
	args   []ref // nil: parameters become parameters
	caller Node
}

// typesOf translates all types; an element type always precedes its tuple.
func (w *rewriter) typesOf() {
	w.types = make([]Type, w.src.Types.Len())
	for t := Type(1); int(t) < len(w.types); t++ {
		w.types[t] = w.copyType(t)
	}
}

func (w *rewriter) copyType(t Type) Type {
	if !w.src.IsTuple(t) {
		return w.dst.Tensor(w.src.Types.At(t).Dtype, w.src.TypeDims(t)...)
	}
	elems := slices.Clone(w.src.Elems(t))
	for i, e := range elems {
		elems[i] = w.types[e]
	}
	return w.dst.TupleOf(elems...)
}

func (w *rewriter) typeOf(n Node) Type { return w.types[w.src.Nodes.At(n).Type] }

// nameOf interns the name of a node of src in dst.
func (w *rewriter) nameOf(n arena.Name) arena.Name {
	if n == 0 {
		return 0
	}
	w.name = w.src.Names.Append(w.name[:0], n)
	return w.dst.Names.InternBytes(w.name)
}

func (w *rewriter) tuple(elems []ref) ref {
	w.tuples = append(w.tuples, w.refs.AddSlice(elems))
	return tupleRef | ref(len(w.tuples)-1)
}

// elements of a tuple reference.
func (w *rewriter) elements(r ref) []ref { return w.refs.Of(w.tuples[r&^tupleRef]) }

// node gives r as one node, making tuple operators for a tuple. Tuples nest no deeper than the types of src.
func (w *rewriter) node(r ref) Node {
	if r&tupleRef == 0 {
		return Node(r)
	}
	type part struct {
		r     ref
		nodes []Node
	}
	stack := []part{{r: r}}
	for {
		p := &stack[len(stack)-1]
		elems := w.elements(p.r)
		var done Node
		if len(p.nodes) < len(elems) {
			e := elems[len(p.nodes)]
			if e&tupleRef != 0 {
				stack = append(stack, part{r: e})
				continue
			}
			done = Node(e)
		} else {
			types := make([]Type, len(p.nodes))
			for i, n := range p.nodes {
				types[i] = w.dst.Nodes.At(n).Type
			}
			done = w.unique(w.dst.AddNode(w.comp, OpTuple, w.dst.TupleOf(types...), 0, p.nodes))
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				return done
			}
			p = &stack[len(stack)-1]
		}
		p.nodes = append(p.nodes, done)
	}
}

// computation rewrites c with everything it inlines.
func (w *rewriter) computation(c Comp) error {
	g := w.src
	row := g.Comps.At(c)
	w.comp = w.dst.BeginComp(g.Names.String(row.Name))
	w.comps[c] = w.comp
	clear(w.seen)
	var params []Node
	for i, p := range g.Params(c) {
		n := w.dst.AddNode(w.comp, OpParameter, w.typeOf(p), w.nameOf(g.Nodes.At(p).Name), nil, w.dst.IntsAttr(AttrIndex, int64(i)))
		params = append(params, n)
	}
	args := make([]ref, len(params))
	for i, p := range params {
		args[i] = ref(p)
	}
	if err := w.push(c, args, 0); err != nil {
		return err
	}
	vals, err := w.loop()
	if err != nil {
		return err
	}
	var root Node
	if c == g.Entry {
		if root, err = w.outputs(vals); err != nil {
			return err
		}
		w.dst.Entry = w.comp
	} else {
		root = w.node(vals[row.Root-row.First])
	}
	w.dst.EndComp(w.comp, root, params)
	return nil
}

// outputs flattens the outputs of src and gives the root, 0 unless there is exactly one.
func (w *rewriter) outputs(vals []ref) (Node, error) {
	g := w.src
	first := g.Comps.At(g.Entry).First
	outs := g.Outputs
	if len(outs) == 0 {
		root := g.Comps.At(g.Entry).Root
		outs = []Output{{Name: g.Nodes.At(root).Name, Node: root}}
	}
	type item struct {
		r    ref
		name string
	}
	for _, o := range outs {
		stack := []item{{vals[o.Node-first], g.Names.String(o.Name)}}
		for len(stack) > 0 {
			x := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if x.r&tupleRef == 0 {
				n := Node(x.r)
				if !w.dst.IsTuple(w.dst.Nodes.At(n).Type) {
					w.dst.Outputs = append(w.dst.Outputs, Output{Name: w.dst.Names.Intern(x.name), Node: n})
					continue
				}
				x.r = w.takeApart(n)
			}
			elems := w.elements(x.r)
			for i := len(elems) - 1; i >= 0; i-- {
				stack = append(stack, item{elems[i], x.name + "." + strconv.Itoa(i)})
			}
		}
	}
	if len(w.dst.Outputs) == 1 {
		return w.dst.Outputs[0].Node, nil
	}
	return 0, nil
}

// takeApart gives the elements of a node of tuple type.
func (w *rewriter) takeApart(n Node) ref {
	var elems []ref
	for i := range w.dst.Elems(w.dst.Nodes.At(n).Type) {
		elems = append(elems, ref(w.element(n, i, w.dst.Nodes.At(n).Name)))
	}
	return w.tuple(elems)
}

func (w *rewriter) element(n Node, i int, name arena.Name) Node {
	t := w.dst.Elems(w.dst.Nodes.At(n).Type)[i]
	return w.unique(w.dst.AddNode(w.comp, OpGetTupleElement, t, name, []Node{n}, w.dst.IntsAttr(AttrIndex, int64(i))))
}

func (w *rewriter) push(c Comp, args []ref, caller Node) error {
	order, err := w.order.All(w.src, c)
	if err != nil {
		return err
	}
	w.frames = append(w.frames, inlineFrame{
		comp: c, order: slices.Clone(order), vals: make([]ref, w.src.Comps.At(c).Count), args: args, caller: caller,
	})
	return nil
}

// loop rewrites the pushed frame and all that it inlines, and gives its values.
func (w *rewriter) loop() ([]ref, error) {
	g := w.src
	for {
		f := &w.frames[len(w.frames)-1]
		row := g.Comps.At(f.comp)
		if f.pos == len(f.order) {
			vals, caller := f.vals, f.caller
			w.frames = w.frames[:len(w.frames)-1]
			if len(w.frames) == 0 {
				return vals, nil
			}
			f = &w.frames[len(w.frames)-1]
			f.vals[caller-g.Comps.At(f.comp).First] = vals[row.Root-row.First]
			f.pos++
			continue
		}
		n := f.order[f.pos]
		if w.steps++; w.steps > maxInlined {
			return nil, g.tooManyInlined(n)
		}
		ins := make([]ref, len(g.Operands(n)))
		for i, x := range g.Operands(n) {
			ins[i] = f.vals[x-row.First]
		}
		callee := Comp(0)
		args := ins
		switch op := g.Op(n); {
		case inlined(op):
			if len(g.Calls(n)) == 0 {
				return nil, g.nodeErr(n, "nothing to call")
			}
			callee = g.Calls(n)[0]
		case op == OpConditional:
			if k, ok := w.branch(n, ins); ok {
				callee, args = g.Calls(n)[k], ins[k+1:k+2]
			}
		}
		if callee != 0 {
			if err := w.push(callee, args, n); err != nil {
				return nil, err
			}
			continue
		}
		r, err := w.rewrite(f, n, ins)
		if err != nil {
			return nil, err
		}
		f.vals[n-row.First] = r
		f.pos++
	}
}

// branch decides a conditional whose selector is constant.
func (w *rewriter) branch(n Node, ins []ref) (int, bool) {
	s := ins[0]
	if s&tupleRef != 0 {
		return 0, false
	}
	bits, ok := w.splat(Node(s))
	if !ok {
		return 0, false
	}
	k := len(w.src.Calls(n))
	if w.dst.Dtype(Node(s)) == Bool {
		return 1 - int(bits&1), k == 2
	}
	if i := int64(int32(bits)); i >= 0 && i < int64(k) {
		return int(i), true
	}
	return k - 1, k > 0
}

// rewrite gives the value of n, an operator that is not inlined.
func (w *rewriter) rewrite(f *inlineFrame, n Node, ins []ref) (ref, error) {
	g := w.src
	row := g.Nodes.At(n)
	switch row.Op {
	case OpParameter:
		i := g.Int(n, AttrIndex, -1)
		if i < 0 || i >= int64(len(f.args)) {
			return 0, g.nodeErr(n, "parameter %d of %d", i, len(f.args))
		}
		return f.args[i], nil
	case OpTuple:
		return w.tuple(ins), nil
	case OpGetTupleElement:
		i := g.Int(n, AttrIndex, -1)
		if ins[0]&tupleRef == 0 {
			t := w.dst.Nodes.At(Node(ins[0])).Type
			if i < 0 || i >= int64(len(w.dst.Elems(t))) {
				return 0, g.nodeErr(n, "no element %d", i)
			}
			return ref(w.element(Node(ins[0]), int(i), w.nameOf(row.Name))), nil
		}
		if i < 0 || i >= int64(len(w.elements(ins[0]))) {
			return 0, g.nodeErr(n, "no element %d", i)
		}
		return w.elements(ins[0])[i], nil
	case OpCopy, OpBarrier, OpDomain, OpAddDependency:
		return ins[0], nil
	case OpCustomCall:
		if IsIdentity(g, n) {
			return ins[0], nil
		}
		if m := w.customCall(n, ins); m != 0 {
			return ref(m), nil
		}
	case OpConstant:
		return ref(w.constant(n)), nil
	}
	nodes := make([]Node, len(ins))
	for i, r := range ins {
		nodes[i] = w.node(r)
	}
	op := row.Op
	if op == OpBitcast {
		op = OpReshape
	}
	d := w.dst
	m := d.AddNode(w.comp, op, w.typeOf(n), w.nameOf(row.Name), nodes, w.attrs(n)...)
	if calls := slices.Clone(g.Calls(n)); len(calls) > 0 {
		for i, c := range calls {
			calls[i] = w.comps[c]
		}
		d.Nodes.At(m).Calls = d.CompLists.AddSlice(calls)
	}
	if value, index := w.argReduce(m); value != 0 {
		return w.tuple([]ref{ref(value), ref(index)}), nil
	}
	return ref(w.settle(m)), nil
}

// settle simplifies, folds and merges a node that was just added; what it replaces is left dead.
func (w *rewriter) settle(m Node) Node {
	for {
		s := w.simplify(m)
		if s == 0 {
			break
		}
		if s < m {
			return s // an older node, settled before
		}
		m = s
	}
	if c := w.fold(m); c != 0 {
		return w.unique(c)
	}
	return w.unique(m)
}

func (w *rewriter) attrs(n Node) []Attr { return copyAttrs(w.dst, w.src, n) }

// copyAttrs copies the attributes of a node of src into dst's pools.
func copyAttrs(dst, src *Graph, n Node) []Attr {
	rows := slices.Clone(src.AttrRows.Of(src.Nodes.At(n).Attrs))
	for i, a := range rows {
		switch a.form {
		case formInts:
			rows[i].Span = dst.Ints.AddSlice(src.Ints.Of(a.Span))
		case formString:
			rows[i].Span.Off = uint32(dst.Names.Intern(src.Names.String(arena.Name(a.Span.Off))))
		}
	}
	return rows
}

func (w *rewriter) constant(n Node) Node {
	g, d := w.src, w.dst
	row := g.Nodes.At(n)
	return w.unique(copyConst(d, g, w.comp, n, w.types[row.Type], w.nameOf(row.Name)))
}

func copyConst(dst, src *Graph, c Comp, n Node, t Type, name arena.Name) Node {
	k := *src.Consts.At(src.Nodes.At(n).Const)
	if k.Kind == ConstDense {
		k.Data = dst.Bytes.AddSlice(src.Bytes.Of(k.Data))
	}
	m := dst.AddNode(c, OpConstant, t, name, nil)
	dst.Nodes.At(m).Const = dst.Consts.Add(k)
	return m
}

// mergeable reports an operator of which two with equal operands give equal values, and that nothing outside can see.
func mergeable(g *Graph, n Node) bool {
	op := g.Op(n)
	switch op.Class() {
	case ClassOpaque:
		return op == OpMap || op == OpSelectAndScatter || op == OpReal || op == OpImag
	case ClassCollective:
		return false
	}
	switch op {
	case OpParameter, OpCustomCall, OpAfterAll, OpWhile, OpConditional, OpSetDimensionSize:
		return false
	case OpConstant:
		c := g.Consts.At(g.Nodes.At(n).Const)
		return c.Kind != ConstElided || c.Seed != 0
	}
	return true
}

// unique gives an earlier node that equals m, or m.
func (w *rewriter) unique(m Node) Node {
	d := w.dst
	if !mergeable(d, m) {
		return m
	}
	row := d.Nodes.At(m)
	k := append(w.key[:0], byte(row.Op))
	u32 := func(x uint32) { k = binary.LittleEndian.AppendUint32(k, x) }
	u64 := func(x uint64) { k = binary.LittleEndian.AppendUint64(k, x) }
	u32(uint32(row.Type))
	for _, x := range d.Operands(m) {
		u32(uint32(x))
	}
	for _, a := range d.AttrRows.Of(row.Attrs) {
		k = append(k, byte(a.Key), byte(a.form))
		if a.form != formInts {
			u32(a.Span.Off)
			u32(a.Span.Len)
			continue
		}
		u32(a.Span.Len)
		for _, v := range d.Ints.Of(a.Span) {
			u64(uint64(v))
		}
	}
	for _, c := range d.Calls(m) {
		u32(uint32(c))
	}
	if row.Const != 0 {
		c := d.Consts.At(row.Const)
		k = append(k, byte(c.Kind))
		u64(c.Bits)
		u64(c.Seed)
		u32(math.Float32bits(c.Std))
		u32(math.Float32bits(c.Mean))
		if c.Kind == ConstBlob {
			u32(c.Blob)
			u64(uint64(c.Off))
			u64(uint64(c.Len))
		}
		if c.Kind == ConstDense {
			const most = 4096 // larger literals are compared by no one
			data := d.Bytes.Of(c.Data)
			if len(data) > most {
				return m
			}
			k = append(k, data...)
		}
	}
	w.key = k
	if old, ok := w.seen[string(k)]; ok {
		return old
	}
	w.seen[string(k)] = m
	return m
}

// observed reports an operator that must stay although nothing uses its value: dropping it would change what the program
// does, and nothing lowers it, so that the model is refused by its name.
func observed(op Op) bool {
	switch op {
	case OpOutfeed, OpSend, OpSendDone, OpInfeed, OpRecv, OpRecvDone:
		return true
	}
	return false
}

// Compact copies g without nodes that no output needs and computations that nothing calls, in an order where nodes follow
// their operands (table order where it is one already). Parameters stay.
func Compact(g *Graph) (*Graph, error) {
	comps, err := CompOrder(g)
	if err != nil {
		return nil, err
	}
	w := &rewriter{src: g, dst: new(Graph), comps: make([]Comp, g.Comps.Len())}
	d := w.dst
	d.Name, d.Blobs, d.Aliases = g.Name, slices.Clone(g.Blobs), slices.Clone(g.Aliases)
	w.typesOf()
	// Live nodes of every computation that the entry reaches, callers before callees.
	orders := make([][]Node, g.Comps.Len())
	reached := make([]bool, g.Comps.Len())
	reached[g.Entry] = true
	for _, c := range slices.Backward(comps) {
		if !reached[c] {
			continue
		}
		row := g.Comps.At(c)
		var roots []Node
		if c == g.Entry {
			roots = outputNodes(g)
		} else {
			roots = append(roots, row.Root)
		}
		for i := range row.Count {
			if n := row.First + Node(i); observed(g.Op(n)) {
				roots = append(roots, n)
			}
		}
		order, err := w.order.From(g, c, roots)
		if err != nil {
			return nil, err
		}
		order = slices.Clone(order)
		if topological := func() bool {
			for _, n := range order {
				for _, x := range g.Operands(n) {
					if x >= n {
						return false
					}
				}
			}
			return true
		}(); topological {
			slices.Sort(order)
		}
		orders[c] = order
		for _, n := range order {
			for _, callee := range g.Calls(n) {
				reached[callee] = true
			}
		}
	}
	at := make([]Node, g.Nodes.Len())
	for _, c := range comps {
		if !reached[c] {
			continue
		}
		row := g.Comps.At(c)
		w.comp = d.BeginComp(g.Names.String(row.Name))
		w.comps[c] = w.comp
		for _, n := range orders[c] {
			r := g.Nodes.At(n)
			if r.Op == OpConstant {
				at[n] = copyConst(d, g, w.comp, n, w.types[r.Type], w.nameOf(r.Name))
				continue
			}
			ins := slices.Clone(g.Operands(n))
			for i, x := range ins {
				ins[i] = at[x]
			}
			at[n] = d.AddNode(w.comp, r.Op, w.types[r.Type], w.nameOf(r.Name), ins, w.attrs(n)...)
			if calls := slices.Clone(g.Calls(n)); len(calls) > 0 {
				for i, callee := range calls {
					calls[i] = w.comps[callee]
				}
				d.Nodes.At(at[n]).Calls = d.CompLists.AddSlice(calls)
			}
		}
		params := slices.Clone(g.Params(c))
		for i, p := range params {
			params[i] = at[p]
		}
		d.EndComp(w.comp, at[row.Root], params)
	}
	d.Entry = w.comps[g.Entry]
	for _, o := range g.Outputs {
		d.Outputs = append(d.Outputs, Output{Name: w.nameOf(o.Name), Node: at[o.Node]})
	}
	return d, nil
}
