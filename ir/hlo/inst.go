package hlo

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// needs is the attribute without which an operator means nothing.
var needs = [graph.NumOps]struct {
	key  graph.Key
	text string
}{
	graph.OpCompare:         {graph.AttrDirection, "direction"},
	graph.OpGetTupleElement: {graph.AttrIndex, "index"},
	graph.OpSlice:           {graph.AttrStart, "slice"},
	graph.OpDynamicSlice:    {graph.AttrSizes, "dynamic_slice_sizes"},
	graph.OpPad:             {graph.AttrLow, "padding"},
	graph.OpTranspose:       {graph.AttrDims, "dimensions"},
	graph.OpReverse:         {graph.AttrDims, "dimensions"},
	graph.OpReduce:          {graph.AttrDims, "dimensions"},
	graph.OpConcat:          {graph.AttrDim, "dimensions"},
	graph.OpSort:            {graph.AttrDim, "dimensions"},
	graph.OpIota:            {graph.AttrDim, "iota_dimension"},
	graph.OpConv:            {graph.AttrDimLabels, "dim_labels"},
	graph.OpReduceWindow:    {graph.AttrWindowSize, "window"},
	graph.OpGather:          {graph.AttrSliceSizes, "slice_sizes"},
	graph.OpCustomCall:      {graph.AttrTarget, "custom_call_target"},
}

// callsNeeded is how many computations an operator refers to; conditional has as many as it has branches.
var callsNeeded = [graph.NumOps]uint8{
	graph.OpReduce: 1, graph.OpReduceWindow: 1, graph.OpScatter: 1, graph.OpSort: 1, graph.OpMap: 1, graph.OpCall: 1, graph.OpFusion: 1,
	graph.OpWhile: 2, graph.OpSelectAndScatter: 2, graph.OpAllReduce: 1, graph.OpReduceScatter: 1,
}

// isHLO tells HLO's operators from the graph's own composites, which HLO text cannot name.
var isHLO = func() (t [graph.NumOps]bool) {
	for op := graph.OpParameter; op < graph.OpOther; op++ {
		t[op] = true
	}
	for _, op := range composites {
		t[op] = false
	}
	return t
}()

var composites = []graph.Op{
	graph.OpRelu, graph.OpLeakyRelu, graph.OpGelu, graph.OpGeluTanh, graph.OpSilu, graph.OpSoftplus, graph.OpMish, graph.OpTake,
	graph.OpTakeAlong, graph.OpArgMax, graph.OpArgMin, graph.OpAvgPool, graph.OpCumSum, graph.OpLRN,
}

// instruction = name "=" type opcode "(" operands ")" {"," attribute}.
func (r *Reader) instruction(depth int) (graph.Node, bool) {
	g := r.g
	start := r.p
	name, ok := r.name("an instruction or '}'")
	if !ok {
		return 0, false
	}
	r.inst = name
	r.space()
	if !r.take('=') {
		return 0, r.expected(r.p, "'=' after the name of an instruction")
	}
	r.space()
	t, ok := r.shape()
	if !ok {
		return 0, false
	}
	r.space()
	opStart := r.p
	word := r.ident()
	if len(word) == 0 {
		return 0, r.expected(opStart, "an operator")
	}
	op, known := graph.ParseOp(word)
	if !known || !isHLO[op] {
		op = graph.OpOther
	}
	r.space()
	if !r.take('(') {
		return 0, r.expected(r.p, "'(' after operator "+string(clip(word, 40)))
	}
	id := g.Names.InternBytes(name)
	n := graph.Node(g.Nodes.Len())
	if l := r.local.Ptr(id); l.comp == r.comp {
		return 0, r.errorf(start, "a second instruction of this name")
	} else {
		*l = local{r.comp, n}
	}
	r.op, r.attrs, r.seenKeys, r.seenCalls, r.calls, r.raw = op, r.attrs[:0], 0, 0, r.calls[:0], r.raw[:0]
	r.row = graph.NodeRow{Op: op, Type: t, Name: id, Comp: r.comp}
	switch op {
	case graph.OpParameter:
		r.space()
		off := r.p
		num, ok := r.integer("the number of a parameter")
		if !ok {
			return 0, false
		}
		if num < 0 {
			return 0, r.errorf(off, "parameter number %d is negative", num)
		}
		r.params = append(r.params, param{num, n, uint32(off)})
		r.addInt(graph.AttrIndex, num, off)
	case graph.OpConstant:
		if r.row.Const, ok = r.literal(t); !ok {
			return 0, false
		}
	default:
		if !r.operandList(n) {
			return 0, false
		}
	}
	r.space()
	if !r.take(')') {
		return 0, r.expected(r.p, "')'")
	}
	if op == graph.OpOther {
		r.attrs = append(r.attrs, graph.NameAttr(graph.AttrTarget, g.Names.InternBytes(word)))
	}
	if !r.attributes(n) || !r.checkInst(n, opStart, word) {
		return 0, false
	}
	if len(r.calls) > 0 {
		if !r.placeCalls(n, depth) {
			return 0, false
		}
	}
	if len(r.raw) > 0 {
		r.attrs = append(r.attrs, graph.NameAttr(graph.AttrRaw, g.Names.InternBytes(r.raw)))
	}
	switch op {
	case graph.OpReduce, graph.OpReduceWindow, graph.OpScatter, graph.OpSelectAndScatter, graph.OpAllReduce, graph.OpAllReduceStart,
		graph.OpReduceScatter:
		r.attrs = append(r.attrs, graph.Attr{Key: graph.AttrKind, Span: g.Ints.Add(int64(graph.ReduceOther))})
		r.combiners = append(r.combiners, n)
	}
	r.row.Attrs = g.AttrRows.AddSlice(r.attrs)
	g.Nodes.Add(r.row)
	return n, true
}

// operandList reads the operands up to the closing bracket: names, each after its type or alone.
func (r *Reader) operandList(n graph.Node) bool {
	g := r.g
	mark := g.NodeLists.Mark()
	r.space()
	if r.peek() != ')' {
		for {
			off := r.p
			var name []byte
			ok := true
			switch c := r.peek(); {
			case c == '%':
				r.p++
				name = r.ident()
			case c == '(':
				if !r.balanced() || !r.layout() {
					return false
				}
				r.space()
				name, ok = r.name("an operand after its type")
			default:
				name = r.ident()
				if r.peek() == '[' {
					if !r.skipDims(off) {
						return false
					}
					r.space()
					name, ok = r.name("an operand after its type")
				}
			}
			if !ok {
				return false
			}
			if len(name) == 0 {
				return r.expected(off, "an operand")
			}
			id := g.Names.InternBytes(name)
			l := r.local.Get(id)
			if l.comp != r.comp || l.node == n {
				r.operands = append(r.operands, operandFix{g.NodeLists.Mark(), uint32(off), id, n})
				l.node = 0
			}
			g.NodeLists.Push(l.node)
			r.space()
			if r.take(',') {
				r.space()
				continue
			}
			if r.peek() == ')' {
				break
			}
			return r.expected(r.p, "',' or ')' after an operand")
		}
	}
	r.row.Ins = g.NodeLists.Since(mark)
	return true
}

// checkInst checks what the operator demands: its number of operands, the attribute and the computations it cannot do without.
func (r *Reader) checkInst(n graph.Node, opStart int, word []byte) bool {
	op, ins := r.op, int(r.row.Ins.Len)
	if a := op.Arity(); a >= 0 && op != graph.OpOther && ins != a {
		return r.errorf(opStart, "%s takes %d operands, found %d", op, a, ins)
	}
	if k := needs[op]; k.key != 0 && r.seenKeys>>k.key&1 == 0 {
		return r.errorf(opStart, "%s needs the attribute %s", op, k.text)
	}
	if c := int(callsNeeded[op]); c > 0 && len(r.calls) != c {
		return r.errorf(opStart, "%s needs %d computations, found %d", op, c, len(r.calls))
	}
	switch op {
	case graph.OpTuple:
		row := r.g.Types.At(r.row.Type)
		if row.Dtype != graph.Tuple || int(row.Elems.Len) != ins {
			return r.errorf(opStart, "tuple of %d operands has another type", ins)
		}
	case graph.OpConditional:
		if len(r.calls) == 0 || ins != len(r.calls)+1 {
			return r.errorf(opStart, "conditional of %d branches takes as many operands and a selector, found %d operands", len(r.calls), ins)
		}
	case graph.OpReduce:
		if ins == 0 || ins%2 != 0 {
			return r.errorf(opStart, "reduce takes operands and as many initial values, found %d", ins)
		}
	}
	return true
}

// placeCalls lists the called computations in the order of their slots.
func (r *Reader) placeCalls(n graph.Node, depth int) bool {
	g := r.g
	for i := 1; i < len(r.calls); i++ {
		// At most three attributes give computations, each once, so few of a long list can be out of order.
		for j := i; j > 0 && r.calls[j].slot < r.calls[j-1].slot; j-- {
			r.calls[j], r.calls[j-1] = r.calls[j-1], r.calls[j]
		}
	}
	mark := g.CompLists.Mark()
	for i := range r.calls {
		c := &r.calls[i]
		pos := g.CompLists.Mark()
		if c.inline {
			if depth >= maxInline {
				return r.fail(target.Limit, "", int(c.off), "computations are printed inside each other deeper than %d", maxInline)
			}
			r.inlines = append(r.inlines, inline{int(c.off), depth + 1, c.name, pos})
			g.CompLists.Push(0)
			continue
		}
		comp := r.compOf.Get(c.name)
		if comp == 0 || comp == r.comp {
			r.compFixes = append(r.compFixes, compFix{pos, c.off, c.name, n})
		}
		g.CompLists.Push(comp)
	}
	r.row.Calls = g.CompLists.Since(mark)
	return true
}

func (r *Reader) addInt(k graph.Key, v int64, off int) bool {
	mark := r.g.Ints.Mark()
	r.g.Ints.Push(v)
	return r.addInts(k, r.g.Ints.Since(mark), off)
}

func (r *Reader) addInts(k graph.Key, s arena.Span, off int) bool {
	return r.add(graph.Attr{Key: k, Span: s}, off)
}

func (r *Reader) add(a graph.Attr, off int) bool {
	if r.seenKeys>>a.Key&1 != 0 {
		return r.errorf(off, "the attribute is given twice: %s", r.found(off))
	}
	r.seenKeys |= 1 << a.Key
	r.attrs = append(r.attrs, a)
	return true
}
