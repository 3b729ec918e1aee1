package onnx

import (
	"fmt"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Options say how to read a model.
type Options struct {
	// Dir is the folder of the model, where external data is looked for; "" refuses external data.
	Dir string
	// Dims gives sizes to symbolic dimensions by name.
	Dims map[string]int64
	// DefaultDim is the size of symbolic dimensions that Dims does not name; 0 refuses them.
	DefaultDim int64
	// Known fixes graph inputs at compile time: such an input is a constant and no parameter of the graph.
	Known map[string]Tensor
	// Lenient takes what exporters to embedded targets write outside the standard, and means what they mean: RMSNorm is
	// RMSNormalization, and a softmax of opset 12 or less without an axis runs over the last dimension, not over all from 1 on.
	Lenient bool
}

// NeedsValueError reports a node whose result shape depends on values that are not known when the model is read.
type NeedsValueError struct {
	// Inputs are the graph inputs from which the value is computed, in order. Fixing them by Options.Known helps.
	Inputs []string
	Err    error
}

func (e *NeedsValueError) Error() string { return e.Err.Error() }

// Unwrap gives the classified error.
func (e *NeedsValueError) Unwrap() error { return e.Err }

// Read decodes an ONNX model into g, which is reset first. Constants of g refer to data, so data must stay as it is while g
// is in use. dir is the folder for external data, "" for none.
func Read(data []byte, dir string, g *graph.Graph) error {
	return ReadOptions(data, Options{Dir: dir}, g)
}

// ReadOptions is Read with all options.
func ReadOptions(data []byte, opt Options, g *graph.Graph) error {
	g.Reset()
	r := &reader{g: g, opt: opt}
	if err := r.m.parse(data, &g.Names); err != nil {
		return err
	}
	if r.m.sparse > 0 {
		return target.NotSupported("SparseTensor", "onnx: the graph has %d sparse initializers", r.m.sparse)
	}
	g.Name = string(r.m.text(r.m.name))
	r.blob = uint32(len(g.Blobs))
	g.Blobs = append(g.Blobs, data)
	return r.read()
}

// maxOpset is the newest version of the default domain whose operators were read when this package was written.
const maxOpset = 26

// frame is one level of inlining: the graph, or a function body.
type frame struct {
	fn     funcID // 0 the graph
	next   uint32 // next node
	end    uint32
	values map[arena.Name]value
	attrs  []attrRow // attributes of the call, resolved
	opsets []opsetRow
	outs   []arena.Name // names of the call's results in the frame below
	prefix string       // for messages
}

type reader struct {
	m       model
	g       *graph.Graph
	opt     Options
	comp    graph.Comp
	blob    uint32 // the file
	files   externalFiles
	konsts  []konst // row 0 reserved
	frames  []frame
	funcs   map[funcKey]funcID
	inlined int
	missing []error      // why a result has no value
	replace []graph.Node // scatters that need a replacing computation

	scratch graph.Graph // where constants are folded
	interp  graph.Interp
}

type funcKey struct{ domain, name, overload arena.Name }

// maxInline bounds the nodes that functions expand to: functions that call each other in a row double with each.
const maxInline = 1 << 18

func (r *reader) read() (err error) {
	defer func() {
		if p := recover(); p != nil {
			b, ok := p.(bail)
			if !ok {
				panic(p)
			}
			err = b.err
		}
	}()
	m, g := &r.m, r.g
	r.konsts = append(r.konsts[:0], konst{})
	r.funcs = make(map[funcKey]funcID, m.funcs.Len())
	for id, f := range m.funcs.All() {
		r.funcs[funcKey{r.domain(f.Domain), f.Name, f.Overload}] = id
	}
	name := g.Name
	if name == "" {
		name = "main"
	}
	r.comp = g.BeginComp(name)
	g.Entry = r.comp
	ops := m.opsets.Of(m.graphOps)
	r.frames = append(r.frames[:0], frame{next: m.main.Off, end: m.main.End(), values: map[arena.Name]value{}, opsets: ops})
	if err := r.bind(); err != nil {
		return err
	}
	if err := r.run(); err != nil {
		return err
	}
	return r.finish()
}

// bind gives values to initializers and inputs, in this order: an input with an initializer is a constant.
func (r *reader) bind() error {
	m, g := &r.m, r.g
	values := r.frames[0].values
	for i := m.inits.Off; i < m.inits.End(); i++ {
		t := m.tensors.At(tensorID(i))
		name := m.names.InternBytes(m.text(t.Name))
		if name == 0 {
			return target.Errorf(target.User, "onnx: initializer %d has no name", i-m.inits.Off)
		}
		k, err := r.tensorKonst(t, name)
		if err != nil {
			return err
		}
		values[name] = k
	}
	var params []graph.Node
	for i := m.inputs.Off; i < m.inputs.End(); i++ {
		in := *m.values.At(valueID(i))
		name := g.Names.String(in.Name)
		if _, ok := values[in.Name]; ok {
			continue
		}
		if in.Name == 0 {
			return target.Errorf(target.User, "onnx: input %d has no name", i-m.inputs.Off)
		}
		if t, ok := r.opt.Known[name]; ok {
			v, err := r.knownInput(&in, name, t)
			if err != nil {
				return err
			}
			values[in.Name] = v
			continue
		}
		typ, err := r.inputType(&in, name)
		if err != nil {
			return err
		}
		p := g.AddParam(r.comp, len(params), typ, name)
		params = append(params, p)
		values[in.Name] = value{node: p}
	}
	g.Comps.At(r.comp).Params = g.NodeLists.AddSlice(params)
	return nil
}

func (r *reader) knownInput(in *valueRow, name string, t Tensor) (value, error) {
	n, ok := elements(t.Dims)
	if !ok || n*int64(t.Dtype.Size()) != int64(len(t.Data)) {
		return value{}, target.Errorf(target.User, "onnx: the value given for input %q has %d bytes, dims %v of %v", name, len(t.Data), t.Dims, t.Dtype)
	}
	if d, err := dtypeOf(int64(in.Code)); err == nil && d != t.Dtype {
		return value{}, target.Errorf(target.User, "onnx: input %q is %v, the value given is %v", name, d, t.Dtype)
	}
	return r.addKonst(konst{dtype: t.Dtype, dims: t.Dims, data: t.Data, name: in.Name}), nil
}

var kindNames = [...]string{4: "sequence", 5: "map", 8: "sparse_tensor", 9: "optional"}

// inputType is the tensor type of a graph input.
func (r *reader) inputType(in *valueRow, name string) (graph.Type, error) {
	if in.Kind != 1 {
		if in.Kind == 0 {
			return 0, target.Errorf(target.User, "onnx: input %q has no type", name)
		}
		return 0, target.NotSupported(kindNames[in.Kind], "onnx: input %q is a %s, only tensors are read", name, kindNames[in.Kind])
	}
	d, err := dtypeOf(int64(in.Code))
	if err != nil {
		return 0, fmt.Errorf("input %q: %w", name, err)
	}
	if !in.Shape {
		return 0, target.NotSupported("unknown shape", "onnx: input %q has no shape: give the model one, or fix the input's value", name)
	}
	dims := append([]int64(nil), r.m.ints.Of(in.Dims)...)
	for i, p := range r.m.lists.Of(in.Params) {
		if p == 0 {
			continue
		}
		sym := r.g.Names.String(p)
		size, ok := r.opt.Dims[sym]
		if !ok {
			size = r.opt.DefaultDim
		}
		if size <= 0 {
			return 0, target.NotSupported("dimension "+sym, "onnx: input %q: dimension %d is symbolic (%s): give it a size", name, i, sym)
		}
		dims[i] = size
	}
	if !graph.CheckDims(dims) {
		return 0, target.Errorf(target.Limit, "onnx: input %q: dims %v are negative or hold more than 2^46 elements", name, dims)
	}
	return r.g.Tensor(d, dims...), nil
}

// run converts nodes in order, entering functions where a node names one. The frames are the stack.
func (r *reader) run() error {
	m := &r.m
	for len(r.frames) > 0 {
		f := &r.frames[len(r.frames)-1]
		if f.next == f.end {
			if f.fn == 0 {
				return nil
			}
			r.leave()
			continue
		}
		id := nodeID(f.next)
		f.next++
		n := m.nodes.At(id)
		if fn, ok := r.funcs[funcKey{r.domain(n.Domain), n.Op, n.Overload}]; ok {
			if err := r.enter(n, fn); err != nil {
				return err
			}
			continue
		}
		if err := r.convert(n); err != nil {
			return err
		}
	}
	return nil
}

// domain folds the two spellings of the default domain.
func (r *reader) domain(d arena.Name) arena.Name {
	if d != 0 && r.g.Names.String(d) == "ai.onnx" {
		return 0
	}
	return d
}

// version is the opset that the current frame imports for a domain; 0 when it imports none.
func (r *reader) version(f *frame, d arena.Name) int64 {
	for _, o := range f.opsets {
		if r.domain(o.Domain) == d {
			return o.Version
		}
	}
	return 0
}

// nodeLabel is how messages name a node: by its name, else by its first result.
func (r *reader) nodeLabel(n *nodeRow) string {
	label := r.g.Names.String(n.Name)
	if label == "" {
		for _, o := range r.m.lists.Of(n.Outs) {
			if label = r.g.Names.String(o); label != "" {
				break
			}
		}
	}
	return r.frames[len(r.frames)-1].prefix + label
}

// enter opens the body of a function for a node that calls it.
func (r *reader) enter(n *nodeRow, id funcID) error {
	m := &r.m
	fn := m.funcs.At(id)
	for i := range r.frames {
		if r.frames[i].fn == id {
			return target.Errorf(target.User, "onnx: node %q: function %s calls itself", r.nodeLabel(n), r.g.Names.String(fn.Name))
		}
	}
	if r.inlined += int(fn.Nodes.Len); r.inlined > maxInline {
		return target.Errorf(target.Limit, "onnx: node %q: functions expand to more than %d nodes", r.nodeLabel(n), maxInline)
	}
	up := &r.frames[len(r.frames)-1]
	ins, params := m.lists.Of(n.Ins), m.lists.Of(fn.Ins)
	if len(ins) > len(params) {
		return target.Errorf(target.User, "onnx: node %q: %d inputs for function %s of %d", r.nodeLabel(n), len(ins), r.g.Names.String(fn.Name), len(params))
	}
	f := frame{fn: id, next: fn.Nodes.Off, end: fn.Nodes.End(), values: map[arena.Name]value{}, opsets: m.opsets.Of(fn.Opsets),
		outs: m.lists.Of(n.Outs), prefix: r.nodeLabel(n) + "/"}
	for i, x := range ins {
		if x == 0 {
			continue
		}
		v, ok := up.values[x]
		if !ok {
			return r.unknownValue(n, x)
		}
		f.values[params[i]] = v
	}
	for _, a := range m.attrs.Of(n.Attrs) {
		if a.Ref != 0 {
			b, ok := findAttr(up.attrs, a.Ref)
			if !ok {
				continue
			}
			b.Name = a.Name
			a = b
		}
		f.attrs = append(f.attrs, a)
	}
	for _, a := range m.attrs.Of(fn.Attrs) {
		if _, ok := findAttr(f.attrs, a.Name); !ok {
			f.attrs = append(f.attrs, a)
		}
	}
	r.frames = append(r.frames, f)
	return nil
}

// leave closes the innermost function body and hands its results to the caller.
func (r *reader) leave() {
	f := r.frames[len(r.frames)-1]
	r.frames = r.frames[:len(r.frames)-1]
	up := &r.frames[len(r.frames)-1]
	results := r.m.lists.Of(r.m.funcs.At(f.fn).Outs)
	for i, o := range f.outs {
		if o == 0 || i >= len(results) {
			continue
		}
		if v, ok := f.values[results[i]]; ok {
			up.values[o] = v
		}
	}
}

func findAttr(as []attrRow, name arena.Name) (attrRow, bool) {
	for _, a := range as {
		if a.Name == name {
			return a, true
		}
	}
	return attrRow{}, false
}

func (r *reader) unknownValue(n *nodeRow, x arena.Name) error {
	return target.Errorf(target.User, "onnx: node %q: input %q is neither an input, an initializer nor the result of an earlier node",
		r.nodeLabel(n), r.g.Names.String(x))
}

// convert turns one node into graph operators, folding it when all it reads is constant.
func (r *reader) convert(n *nodeRow) error {
	f := &r.frames[len(r.frames)-1]
	op := r.g.Names.String(n.Op)
	dom := r.domain(n.Domain)
	key, subject := op, op
	if dom != 0 {
		subject = r.g.Names.String(dom) + "." + op
		key = subject
	}
	e := emit{r: r, g: r.g, comp: r.comp, n: n, frame: f, op: subject, ver: r.version(f, dom)}
	h, ok := opTable[key]
	if !ok {
		return target.NotSupported(subject, "onnx: node %q: operator %s is not supported", r.nodeLabel(n), subject)
	}
	if dom == 0 {
		if e.ver == 0 { // files of IR version 1 and 2 import nothing and mean 1
			e.ver = 1
		}
		if e.ver > maxOpset {
			return target.NotSupported(fmt.Sprintf("opset %d", e.ver), "onnx: node %q: opset %d is newer than %d", r.nodeLabel(n), e.ver, int64(maxOpset))
		}
	}
	for _, x := range r.m.lists.Of(n.Ins) {
		var v value
		if x != 0 {
			if v, ok = f.values[x]; !ok {
				return r.unknownValue(n, x)
			}
		}
		e.ins = append(e.ins, v)
	}
	outs := r.m.lists.Of(n.Outs)
	if len(outs) == 0 {
		return target.Errorf(target.User, "onnx: node %q (%s) has no results", r.nodeLabel(n), subject)
	}
	e.outs = make([]value, len(outs))
	if !r.fold(&e, h) {
		if err := e.call(h); err != nil {
			return err
		}
		r.replace = append(r.replace, e.replace...)
	}
	for i, o := range outs {
		if o == 0 {
			continue
		}
		v := e.outs[i]
		if v == (value{}) { // an error only for those who read it
			r.missing = append(r.missing, target.NotSupported(subject, "onnx: node %q: result %d (%s) of %s is not supported",
				r.nodeLabel(n), i, r.g.Names.String(o), subject))
			v.missing = uint32(len(r.missing))
		}
		if v.node >= e.begin && e.begin != 0 && f.fn == 0 {
			r.g.Nodes.At(v.node).Name = o
		}
		f.values[o] = v
	}
	return nil
}

// finish names the outputs and closes the computation.
func (r *reader) finish() error {
	m, g := &r.m, r.g
	values := r.frames[0].values
	if m.outputs.Len == 0 {
		return target.Errorf(target.User, "onnx: the graph has no outputs")
	}
	seen := map[graph.Node]bool{}
	roots := make([]graph.Node, 0, m.outputs.Len)
	for i := m.outputs.Off; i < m.outputs.End(); i++ {
		name := m.values.At(valueID(i)).Name
		v, ok := values[name]
		if !ok {
			return target.Errorf(target.User, "onnx: output %q is not the result of any node", g.Names.String(name))
		}
		e := emit{r: r, g: g, comp: r.comp, op: "output", label: g.Names.String(name)}
		e.start()
		x := e.node(v)
		// An output has a node of its own, so that each is written by one operator.
		if c := g.Op(x); c == graph.OpParameter || c == graph.OpConstant || seen[x] {
			x = e.add(graph.OpCopy, 0, []graph.Node{x})
			g.Nodes.At(x).Name = name
		}
		seen[x] = true
		g.Outputs = append(g.Outputs, graph.Output{Name: name, Node: x})
		roots = append(roots, x)
	}
	root := roots[0]
	if len(roots) > 1 {
		e := emit{r: r, g: g, comp: r.comp, op: "output", label: "outputs"}
		e.start()
		root = e.add(graph.OpTuple, 0, roots)
	}
	g.EndComp(r.comp, root, g.Params(r.comp))
	return addReplacers(g, r.replace)
}

// bail carries an error out of an operator's function; only emit throws it, and only call and read catch it.
type bail struct{ err error }

func (e *emit) call(h handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b, ok := p.(bail)
			if !ok {
				panic(p)
			}
			err = b.err
		}
	}()
	e.start()
	h(e)
	return nil
}
