package hlo

import (
	"io"
	"sort"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Write prints g as HLO text, callees before callers. The text reads back to an equal graph if g is one that Expand leaves alone; else
// to the graph that Expand gives. Names that HLO text cannot spell, or that are used twice in a computation, are changed; the names
// of inputs and outputs are kept in neff_input_names and neff_output_names. Types must be inferred.
func Write(w io.Writer, g *graph.Graph) error {
	g, err := Expand(g)
	if err != nil {
		return err
	}
	p := printer{w: w, g: g}
	p.skip, _ = textOutputs(g)
	order, err := graph.CompOrder(g)
	if err != nil {
		return err
	}
	p.nameComps(order)
	p.header()
	for _, c := range order {
		if err := p.comp(c); err != nil {
			return err
		}
	}
	return p.flush()
}

// printer holds the text that is not written yet, and the names that were given out.
type printer struct {
	w    io.Writer
	g    *graph.Graph
	b    []byte
	err  error
	skip map[graph.Node]bool

	names  arena.Names // as printed
	taken  arena.Column[arena.Name, graph.Comp]
	nodes  []arena.Name // printed name of each node, of the computation being printed
	comps  []arena.Name
	suffix uint64
	stack  []typeStep
}

type typeStep struct {
	t    graph.Type
	next int
}

const flushAt = 1 << 16

func (p *printer) flush() error {
	if p.err == nil && len(p.b) > 0 {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
	return p.err
}

func (p *printer) str(ss ...string) {
	for _, s := range ss {
		p.b = append(p.b, s...)
	}
}

func (p *printer) int(v int64) { p.b = strconv.AppendInt(p.b, v, 10) }

func (p *printer) ref(n arena.Name) { p.b = p.names.Append(append(p.b, '%'), n) }

// isPlain reports a name that every HLO parser takes.
func isPlain(b []byte) bool {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c-'0' >= 10 && c != '.' && c != '-') {
			return false
		}
	}
	return len(b) > 0 && string(b) != "ROOT" && string(b) != "ENTRY"
}

// claim gives out name, or nothing if another has it in this scope.
func (p *printer) claim(name []byte, scope graph.Comp) arena.Name {
	id := p.names.InternBytes(name)
	if t := p.taken.Ptr(id); *t != scope {
		*t = scope
		return id
	}
	return 0
}

// invent makes a free name from a name that cannot be printed, or from a word.
func (p *printer) invent(name []byte, word string, scope graph.Comp) arena.Name {
	base := make([]byte, 0, len(name)+24)
	for _, c := range name {
		if !isPlain([]byte{'a', c}) {
			c = '_'
		}
		base = append(base, c)
	}
	if len(base) == 0 {
		base = append(base, word...)
	} else if !isPlain(base) {
		base = append([]byte{'_'}, base...)
		if id := p.claim(base, scope); id != 0 {
			return id
		}
	} else if id := p.claim(base, scope); id != 0 {
		return id
	}
	for n := len(base); ; {
		p.suffix++
		base = appendUint(append(base[:n], '.'), p.suffix)
		if id := p.claim(base, scope); id != 0 {
			return id
		}
	}
}

// anyComp is the scope of computations' names: no node is in it.
const anyComp = ^graph.Comp(0)

func (p *printer) nameComps(order []graph.Comp) {
	g := p.g
	p.comps = make([]arena.Name, g.Comps.Len())
	var buf []byte
	for _, c := range order {
		if buf = g.Names.Append(buf[:0], g.Comps.At(c).Name); isPlain(buf) {
			p.comps[c] = p.claim(buf, anyComp)
		}
	}
	for _, c := range order {
		if p.comps[c] == 0 {
			p.comps[c] = p.invent(g.Names.Append(buf[:0], g.Comps.At(c).Name), "computation", anyComp)
		}
	}
}

// nameNodes gives every node of c the name it has if that is possible, then invents the others.
func (p *printer) nameNodes(c graph.Comp) {
	g := p.g
	row := g.Comps.At(c)
	p.nodes = append(p.nodes[:0], make([]arena.Name, row.Count)...)
	p.suffix = 0
	var buf []byte
	for i := range p.nodes {
		if buf = g.Names.Append(buf[:0], g.Nodes.At(row.First+graph.Node(i)).Name); isPlain(buf) {
			p.nodes[i] = p.claim(buf, c)
		}
	}
	for i := range p.nodes {
		if p.nodes[i] == 0 {
			n := row.First + graph.Node(i)
			p.nodes[i] = p.invent(g.Names.Append(buf[:0], g.Nodes.At(n).Name), g.Op(n).String(), c)
		}
	}
}

// moduleName is a word that may stand after HloModule.
func moduleName(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !isPlain([]byte{'a', c}) {
			b[i] = '_'
		}
	}
	if !isPlain(b) {
		b = append([]byte("m_"), b...)
	}
	return string(b)
}

func (p *printer) header() {
	g := p.g
	p.str("HloModule ", moduleName(g.Name))
	if len(g.Aliases) > 0 {
		var buf []int64
		before := leafCounts(g, &buf)
		p.str(", input_output_alias={ ")
		for i, a := range g.Aliases {
			if i > 0 {
				p.str(", ")
			}
			p.str("{")
			p.outputPath(int64(a.Output), before)
			p.str("}: (")
			p.int(int64(a.Input))
			if a.Must {
				p.str(", {}, must-alias)")
			} else {
				p.str(", {}, may-alias)")
			}
		}
		p.str(" }")
	}
	p.str("\n")
}

// outputPath prints the shape index of an output in the root's type.
func (p *printer) outputPath(ordinal int64, before []int64) {
	g := p.g
	t := g.Nodes.At(g.Comps.At(g.Entry).Root).Type
	for first := true; g.IsTuple(t); first = false {
		elems := g.Types.At(t).Elems
		l := before[elems.Off:elems.End()]
		i := sort.Search(len(l), func(i int) bool { return l[i] > ordinal }) - 1
		if !first {
			p.str(", ")
		}
		p.int(int64(i))
		ordinal -= l[i]
		t = g.TypeLists.Of(elems)[i]
	}
}

// typ prints a type without layout. Tuples may nest; an explicit stack holds the open ones.
func (p *printer) typ(t graph.Type) {
	g := p.g
	p.stack = append(p.stack[:0], typeStep{t: t})
	for len(p.stack) > 0 {
		top := &p.stack[len(p.stack)-1]
		row := g.Types.At(top.t)
		if row.Dtype != graph.Tuple {
			p.str(row.Dtype.String(), "[")
			p.list(g.Ints.Of(row.Dims))
			p.str("]")
			p.stack = p.stack[:len(p.stack)-1]
			continue
		}
		if top.next == 0 {
			p.str("(")
		}
		elems := g.TypeLists.Of(row.Elems)
		if top.next == len(elems) {
			p.str(")")
			p.stack = p.stack[:len(p.stack)-1]
			continue
		}
		if top.next > 0 {
			p.str(", ")
		}
		e := elems[top.next]
		top.next++
		p.stack = append(p.stack, typeStep{t: e})
	}
}

// list prints 1,2,3.
func (p *printer) list(l []int64) {
	for i, v := range l {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.int(v)
	}
}

func (p *printer) comp(c graph.Comp) error {
	g := p.g
	row := g.Comps.At(c)
	p.nameNodes(c)
	p.str("\n")
	if c == g.Entry {
		p.str("ENTRY ")
	}
	p.ref(p.comps[c])
	p.str(" (")
	for i, n := range g.Params(c) {
		if i > 0 {
			p.str(", ")
		}
		p.b = p.names.Append(p.b, p.nodes[n-row.First])
		p.str(": ")
		p.typ(g.Nodes.At(n).Type)
	}
	p.str(") -> ")
	p.typ(g.Nodes.At(row.Root).Type)
	p.str(" {\n")
	for n := row.First; n < row.First+graph.Node(row.Count); n++ {
		if p.skip[n] {
			continue
		}
		if err := p.node(c, n); err != nil {
			return err
		}
		if len(p.b) >= flushAt {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	p.str("}\n")
	return p.flush()
}

func (p *printer) node(c graph.Comp, n graph.Node) error {
	g := p.g
	comp, row := g.Comps.At(c), g.Nodes.At(n)
	if n == comp.Root {
		p.str("  ROOT ")
	} else {
		p.str("  ")
	}
	p.ref(p.nodes[n-comp.First])
	p.str(" = ")
	p.typ(row.Type)
	p.str(" ")
	op := row.Op.String()
	if row.Op == graph.OpOther {
		if op = g.Str(n, graph.AttrTarget); !isPlain([]byte(op)) {
			return target.Errorf(target.User, "%s: operator %q cannot be written as HLO", g.NodeName(n), op)
		}
	}
	p.str(op, "(")
	switch row.Op {
	case graph.OpParameter:
		p.int(g.Int(n, graph.AttrIndex, 0))
	case graph.OpConstant:
		if err := p.literal(n); err != nil {
			return err
		}
	}
	for i, x := range g.Operands(n) {
		if i > 0 {
			p.str(", ")
		}
		if x < comp.First || x >= comp.First+graph.Node(comp.Count) || p.skip[x] {
			return target.Errorf(target.Bug, "%s: operand %d (%v) is not in its computation", g.NodeName(n), i, x)
		}
		p.ref(p.nodes[x-comp.First])
	}
	p.str(")")
	p.attrs(n)
	p.called(n)
	p.frontend(c, n)
	p.str("\n")
	return nil
}

// lists are the attributes that are a list in braces under one name.
var lists = [graph.NumKeys]string{
	graph.AttrDims: "dimensions", graph.AttrSizes: "dynamic_slice_sizes", graph.AttrSliceSizes: "slice_sizes",
	graph.AttrLhsBatch: "lhs_batch_dims", graph.AttrRhsBatch: "rhs_batch_dims",
	graph.AttrLhsContract: "lhs_contracting_dims", graph.AttrRhsContract: "rhs_contracting_dims",
	graph.AttrOffsetDims: "offset_dims", graph.AttrCollapsedDims: "collapsed_slice_dims", graph.AttrStartIndexMap: "start_index_map",
	graph.AttrUpdateWindowDims: "update_window_dims", graph.AttrInsertedDims: "inserted_window_dims",
	graph.AttrScatterDims: "scatter_dims_to_operand_dims",
}

// numbers are the attributes that are one number under one name.
var numbers = [graph.NumKeys]string{
	graph.AttrIndexVectorDim: "index_vector_dim", graph.AttrGroups: "feature_group_count", graph.AttrBatchGroups: "batch_group_count",
	graph.AttrFeature: "feature_index", graph.AttrExponent: "exponent_bits", graph.AttrMantissa: "mantissa_bits", graph.AttrK: "k",
}

var dirNames = [...]string{graph.DirEQ: "EQ", graph.DirNE: "NE", graph.DirLT: "LT", graph.DirLE: "LE", graph.DirGT: "GT", graph.DirGE: "GE"}

func (p *printer) attrs(n graph.Node) {
	g := p.g
	op := g.Op(n)
	for _, a := range g.AttrRows.Of(g.Nodes.At(n).Attrs) {
		l := g.IntList(n, a.Key)
		first := int64(0)
		if len(l) > 0 {
			first = l[0]
		}
		if s := lists[a.Key]; s != "" {
			if len(l) == 0 && (a.Key == graph.AttrLhsBatch || a.Key == graph.AttrRhsBatch) {
				continue
			}
			p.str(", ", s, "={")
			p.list(l)
			p.str("}")
			continue
		}
		if s := numbers[a.Key]; s != "" {
			p.str(", ", s, "=")
			p.int(first)
			continue
		}
		switch a.Key {
		case graph.AttrIndex:
			if op != graph.OpParameter {
				p.str(", index=")
				p.int(first)
			}
		case graph.AttrDim:
			if op == graph.OpIota {
				p.str(", iota_dimension=")
				p.int(first)
			} else {
				p.str(", dimensions={")
				p.int(first)
				p.str("}")
			}
		case graph.AttrDirection:
			if first >= 0 && first < int64(len(dirNames)) {
				p.str(", direction=", dirNames[first])
			}
		case graph.AttrTotal:
			if first != 0 {
				p.str(", type=TOTALORDER")
			}
		case graph.AttrStart:
			p.slices(l, g.IntList(n, graph.AttrLimit), g.IntList(n, graph.AttrStride))
		case graph.AttrLow:
			p.padding(l, g.IntList(n, graph.AttrHigh), g.IntList(n, graph.AttrInterior))
		case graph.AttrWindowSize:
			p.window(n)
		case graph.AttrDimLabels:
			p.dimLabels(n, l)
		case graph.AttrOperandBatch, graph.AttrIndicesBatch:
			p.batching(op, a.Key, l)
		case graph.AttrLargest:
			p.str(", largest=", strconv.FormatBool(first != 0))
		case graph.AttrStable:
			p.str(", is_stable=", strconv.FormatBool(first != 0))
		case graph.AttrEpsilon:
			p.str(", epsilon=")
			p.b = strconv.AppendFloat(p.b, g.Float(n, a.Key, 0), 'g', -1, 64)
		case graph.AttrTarget:
			if op != graph.OpOther {
				p.str(", custom_call_target=")
				p.quote(g.Str(n, a.Key))
			}
		case graph.AttrTripCount:
			p.str(`, backend_config={"known_trip_count":{"n":"`)
			p.int(first)
			p.str(`"}}`)
		case graph.AttrBackend:
			p.str(", backend_config=")
			p.quote(g.Str(n, a.Key))
		case graph.AttrRaw:
			p.str(", ", g.Str(n, a.Key))
		}
	}
}

func (p *printer) batching(op graph.Op, k graph.Key, l []int64) {
	if len(l) == 0 {
		return
	}
	s := ", operand_batching_dims={"
	switch {
	case op == graph.OpScatter && k == graph.AttrOperandBatch:
		s = ", input_batching_dims={"
	case op == graph.OpScatter:
		s = ", scatter_indices_batching_dims={"
	case k == graph.AttrIndicesBatch:
		s = ", start_indices_batching_dims={"
	}
	p.str(s)
	p.list(l)
	p.str("}")
}

// at is l[i], or def in a list that was left out.
func at(l []int64, i int, def int64) int64 {
	if i < len(l) {
		return l[i]
	}
	return def
}

func (p *printer) slices(lo, hi, step []int64) {
	p.str(", slice={")
	for i, v := range lo {
		if i > 0 {
			p.str(", ")
		}
		p.str("[")
		p.int(v)
		p.str(":")
		p.int(at(hi, i, 0))
		if s := at(step, i, 1); s != 1 {
			p.str(":")
			p.int(s)
		}
		p.str("]")
	}
	p.str("}")
}

func (p *printer) padding(lo, hi, in []int64) {
	p.str(", padding=")
	for i, v := range lo {
		if i > 0 {
			p.str("x")
		}
		p.int(v)
		p.str("_")
		p.int(at(hi, i, 0))
		if x := at(in, i, 0); x != 0 {
			p.str("_")
			p.int(x)
		}
	}
}

var windowWords = [...]string{"stride", "pad", "", "lhs_dilate", "rhs_dilate", "rhs_reversal"}

// window prints the lists of windowKeys that are not all default.
func (p *printer) window(n graph.Node) {
	g := p.g
	size := g.IntList(n, graph.AttrWindowSize)
	by := func(word string, l []int64, high []int64) {
		p.str(word, "=")
		for i, v := range l {
			if i > 0 {
				p.str("x")
			}
			p.int(v)
			if high != nil {
				p.str("_")
				p.int(high[i])
			}
		}
	}
	p.str(", window={")
	if len(size) > 0 {
		by("size", size, nil)
	}
	for k, key := range windowKeys {
		l := g.IntList(n, key)
		plain := true
		for i := range size {
			plain = plain && at(l, i, windowDefaults[k]) == windowDefaults[k]
		}
		switch key {
		case graph.AttrWindowPadHigh:
			continue
		case graph.AttrWindowPadLow:
			high := make([]int64, len(size))
			low := make([]int64, len(size))
			for i := range size {
				low[i] = at(l, i, 0)
				high[i] = at(g.IntList(n, graph.AttrWindowPadHigh), i, 0)
				plain = plain && high[i] == 0
			}
			if !plain {
				p.str(" ")
				by("pad", low, high)
			}
			continue
		}
		if !plain {
			p.str(" ")
			by(windowWords[k], l, nil)
		}
	}
	p.str("}")
}

// dimLabels prints b01f_01io->b01f. A dimension without a role is a ?.
func (p *printer) dimLabels(n graph.Node, l []int64) {
	g := p.g
	rank := len(l) / 3
	p.str(", dim_labels=")
	for side, between := range [...]string{"_", "->", ""} {
		roles := "bf"
		if side == 1 {
			roles = "io"
		}
		labels := make([]byte, maxRank)
		top := int64(0)
		for i, d := range l[side*rank : side*rank+rank] {
			if d < 0 || d >= maxRank {
				continue
			}
			c := byte('0' + i - 2)
			if i < 2 {
				c = roles[i]
			}
			labels[d] = c
			top = max(top, d+1)
		}
		switch ins := g.Operands(n); {
		case side == 2:
			top = max(top, int64(len(g.Dims(n))))
		case side < len(ins):
			top = max(top, int64(len(g.Dims(ins[side]))))
		}
		for _, c := range labels[:min(top, maxRank)] {
			if c == 0 {
				c = '?'
			}
			p.b = append(p.b, c)
		}
		p.str(between)
	}
}

func (p *printer) called(n graph.Node) {
	g := p.g
	calls := g.Calls(n)
	if len(calls) == 0 {
		return
	}
	one := func(word string, c graph.Comp) {
		p.str(", ", word, "=")
		p.ref(p.comps[c])
	}
	op := g.Op(n)
	ins := g.Operands(n)
	switch {
	case op == graph.OpWhile && len(calls) == 2:
		one("condition", calls[0])
		one("body", calls[1])
	case op == graph.OpSelectAndScatter && len(calls) == 2:
		one("select", calls[0])
		one("scatter", calls[1])
	case op == graph.OpConditional && len(calls) == 2 && g.Dtype(ins[0]) == graph.Bool:
		one("true_computation", calls[0])
		one("false_computation", calls[1])
	case op == graph.OpConditional:
		p.compList("branch_computations", calls)
	case op == graph.OpFusion && len(calls) == 1:
		p.str(", kind=kLoop")
		one("calls", calls[0])
	case len(calls) > 1 || op == graph.OpCustomCall:
		p.compList("called_computations", calls)
	case op == graph.OpOther || op.Class() == graph.ClassOpaque && op != graph.OpMap:
		one("calls", calls[0])
	default:
		one("to_apply", calls[0])
	}
}

func (p *printer) compList(word string, calls []graph.Comp) {
	p.str(", ", word, "={")
	for i, c := range calls {
		if i > 0 {
			p.str(", ")
		}
		p.ref(p.comps[c])
	}
	p.str("}")
}

// frontend prints what HLO has no attribute for: the names of inputs and outputs, where the text does not give them already, and the
// seed of an elided constant.
func (p *printer) frontend(c graph.Comp, n graph.Node) {
	g := p.g
	row := g.Nodes.At(n)
	comp := g.Comps.At(c)
	start := len(p.b)
	add := func(word string) {
		if len(p.b) == start {
			p.str(", frontend_attributes={")
		} else {
			p.str(",")
		}
		p.str(word, "=")
	}
	if row.Op == graph.OpConstant {
		if k := g.Consts.At(row.Const); k.Kind == graph.ConstElided && (k.Seed != 0 || k.Std != 0 || k.Mean != 0) {
			add("rosmar_seed")
			p.str(`"`, strconv.FormatUint(k.Seed, 10), `"`)
			add("rosmar_std")
			p.str(`"`, strconv.FormatFloat(float64(k.Std), 'g', -1, 32), `"`)
			if k.Mean != 0 {
				add("rosmar_mean")
				p.str(`"`, strconv.FormatFloat(float64(k.Mean), 'g', -1, 32), `"`)
			}
		}
	}
	if c == g.Entry && row.Op == graph.OpParameter && row.Name != 0 {
		if name := g.Names.String(row.Name); p.names.String(p.nodes[n-comp.First]) != name {
			add("neff_input_names")
			p.str(`"`)
			p.escape(name)
			p.str(`"`)
		}
	}
	if c == g.Entry && n == comp.Root && p.oddOutputs() {
		add("neff_output_names")
		p.str(`"`)
		for i, o := range g.Outputs {
			if i > 0 {
				p.str(",")
			}
			p.escape(g.Names.String(o.Name))
		}
		p.str(`"`)
	}
	if len(p.b) > start {
		p.str("}")
	}
}

func (p *printer) oddOutputs() bool {
	for i, o := range p.g.Outputs {
		if p.g.Names.String(o.Name) != "output"+strconv.Itoa(i) {
			return true
		}
	}
	return false
}

func (p *printer) quote(s string) {
	p.str(`"`)
	for i := range len(s) {
		p.escapeByte(s[i], false)
	}
	p.str(`"`)
}

// escape prints a name for a list that is split at commas.
func (p *printer) escape(s string) {
	for i := range len(s) {
		p.escapeByte(s[i], true)
	}
}

func (p *printer) escapeByte(c byte, comma bool) {
	switch {
	case c == '"' || c == '\\':
		p.b = append(p.b, '\\', c)
	case c == '\n':
		p.str(`\n`)
	case c < ' ' || c == 0x7f || c == ',' && comma:
		p.b = append(p.b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
	default:
		p.b = append(p.b, c)
	}
}
