package hlo

import (
	"bytes"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// alias is one entry of input_output_alias; its output path is in Reader.aliasPath.
type alias struct {
	path  arena.Span
	param int64
	off   uint32
	must  bool
	whole bool // aliases the whole parameter, not an element of a tuple
}

// outStep is a node whose elements from next on are still to be listed.
type outStep struct {
	node graph.Node
	next uint32
}

func appendUint(dst []byte, v uint64) []byte { return strconv.AppendUint(dst, v, 10) }

// moduleAttrs reads what follows the name of the module; all but the aliases is skipped.
func (r *Reader) moduleAttrs() bool {
	for {
		r.space()
		if !r.take(',') {
			return true
		}
		r.space()
		start := r.p
		key := r.ident()
		if len(key) == 0 {
			return r.expected(start, "an attribute of the module after ','")
		}
		if !r.take('=') {
			return r.expected(r.p, "'=' after attribute "+string(clip(key, 40)))
		}
		ok := false
		if string(key) == "input_output_alias" {
			ok = r.aliasList()
		} else {
			ok = r.value()
		}
		if !ok {
			return false
		}
	}
}

// aliasList reads { {0}: (2, {}, must-alias), {1, 0}: 3 }.
func (r *Reader) aliasList() bool {
	if !r.take('{') {
		return r.expected(r.p, "'{' to open the aliases")
	}
	for {
		r.space()
		if r.take('}') {
			return true
		}
		a := alias{off: uint32(r.p), whole: true}
		first := len(r.aliasPath)
		if !r.path() {
			return false
		}
		a.path = arena.Span{Off: uint32(first), Len: uint32(len(r.aliasPath) - first)}
		r.space()
		if !r.take(':') {
			return r.expected(r.p, "':' in an alias")
		}
		r.space()
		tuple := r.take('(')
		r.space()
		var ok bool
		if a.param, ok = r.integer("a parameter number in an alias"); !ok {
			return false
		}
		r.space()
		if tuple {
			if r.take(',') {
				r.space()
				first := len(r.aliasPath)
				if !r.path() {
					return false
				}
				a.whole = len(r.aliasPath) == first
				r.aliasPath = r.aliasPath[:first]
				r.space()
				if r.take(',') {
					r.space()
					a.must = string(r.ident()) == "must-alias"
					r.space()
				}
			}
			if !r.take(')') {
				return r.expected(r.p, "')' in an alias")
			}
		}
		r.aliases = append(r.aliases, a)
		r.space()
		if !r.take(',') && r.peek() != '}' {
			return r.expected(r.p, "',' or '}' after an alias")
		}
	}
}

// path reads a shape index {1, 0} onto the end of aliasPath.
func (r *Reader) path() bool {
	if !r.take('{') {
		return r.expected(r.p, "a shape index such as {0}")
	}
	for {
		r.space()
		if r.take('}') {
			return true
		}
		v, ok := r.integer("a number or '}' in a shape index")
		if !ok {
			return false
		}
		r.aliasPath = append(r.aliasPath, v)
		r.space()
		if !r.take(',') && r.peek() != '}' {
			return r.expected(r.p, "',' or '}' in a shape index")
		}
	}
}

// outputs lists the results of the entry computation: the leaves of its root's tuple, nested tuples flattened. Leaves of a tuple that no
// tuple operator made are picked by get-tuple-element nodes, added unnamed at the end of the computation. What a tuple operator holds
// is checked against its type, so there are no more outputs than the text spells out, and no cycle.
func (r *Reader) outputs(c graph.Comp) bool {
	g := r.g
	root := g.Comps.At(c).Root
	r.walk = r.walk[:0]
	if g.Dtype(root) != graph.Tuple {
		g.Outputs = append(g.Outputs, graph.Output{Node: root})
	} else {
		r.walk = append(r.walk, outStep{node: root})
	}
	for len(r.walk) > 0 {
		top := &r.walk[len(r.walk)-1]
		elems := g.TypeLists.Of(g.Types.At(g.Nodes.At(top.node).Type).Elems)
		if int(top.next) == len(elems) {
			r.walk = r.walk[:len(r.walk)-1]
			continue
		}
		i := top.next
		top.next++
		t := elems[i]
		var n graph.Node
		if g.Op(top.node) == graph.OpTuple {
			n = g.Operands(top.node)[i]
			if g.Nodes.At(n).Type != t {
				r.inst = g.Names.Append(nil, g.Nodes.At(top.node).Name)
				return r.errorf(r.p, "operand %d of the tuple has another type than element %d of its result", i, i)
			}
		} else {
			n = g.Nodes.Add(graph.NodeRow{
				Op: graph.OpGetTupleElement, Type: t, Comp: c, Ins: g.NodeLists.Add(top.node),
				Attrs: g.AttrRows.Add(graph.Attr{Key: graph.AttrIndex, Span: g.Ints.Add(int64(i))}),
			})
		}
		if g.Dtype(n) == graph.Tuple {
			if len(r.walk) > maxDepth {
				return r.fail(target.Limit, "", r.p, "the tuple of the results nests deeper than %d", maxDepth)
			}
			r.walk = append(r.walk, outStep{node: n})
			continue
		}
		g.Outputs = append(g.Outputs, graph.Output{Node: n})
	}
	r.nameOutputs(root)
	return true
}

// nameOutputs takes the names that the root carries if there is one for each output, else output0, output1, ….
func (r *Reader) nameOutputs(root graph.Node) {
	g := r.g
	names := r.outNames.raw
	if r.outNames.node != root || bytes.Count(names, []byte{','})+1 != len(g.Outputs) {
		names = nil
	}
	for i := range g.Outputs {
		var name []byte
		if names != nil {
			name, names, _ = bytes.Cut(names, []byte{','})
		}
		if len(name) == 0 {
			r.text = appendUint(append(r.text[:0], "output"...), uint64(i))
			g.Outputs[i].Name = g.Names.InternBytes(r.text)
			continue
		}
		g.Outputs[i].Name = r.unquote(name)
	}
}

// linkAliases turns shape indices into ordinals of outputs. An alias of a part of a parameter cannot be kept; it is a permission to
// save memory, so leaving it out changes no result.
func (r *Reader) linkAliases() bool {
	if len(r.aliases) == 0 {
		return true
	}
	g := r.g
	entry := g.Comps.At(g.Entry)
	leaves := leafCounts(g, &r.prefix)
	r.inst = nil
	for _, a := range r.aliases {
		if a.param < 0 || a.param >= int64(entry.Params.Len) {
			return r.errorf(int(a.off), "the alias names parameter %d, there are %d", a.param, entry.Params.Len)
		}
		t := g.Nodes.At(entry.Root).Type
		ordinal := int64(0)
		for _, i := range r.aliasPath[a.path.Off:a.path.End()] {
			row := g.Types.At(t)
			if i < 0 || i >= int64(row.Elems.Len) {
				return r.errorf(int(a.off), "the alias names element %d of a result of %d elements", i, row.Elems.Len)
			}
			at := int64(row.Elems.Off) + i
			ordinal += leaves[at]
			t = g.TypeLists.Of(row.Elems)[i]
		}
		if !a.whole || g.Types.At(t).Dtype == graph.Tuple {
			continue
		}
		if g.Nodes.At(g.Params(g.Entry)[a.param]).Type != t {
			return r.errorf(int(a.off), "the alias joins an output and a parameter of different types")
		}
		g.Aliases = append(g.Aliases, graph.Alias{Output: uint32(ordinal), Input: uint32(a.param), Must: a.must})
	}
	return true
}

// leafCounts gives for each entry of TypeLists the tensors before it in its tuple. Elements are interned before their tuple, so one pass
// in order of number sees them first. Counts of types that are nobody's result may be huge and saturate.
func leafCounts(g *graph.Graph, buf *[]int64) []int64 {
	n := g.TypeLists.Len()
	all := *buf
	if cap(all) < n+g.Types.Len() {
		all = make([]int64, n+g.Types.Len())
	}
	all = all[:n+g.Types.Len()]
	*buf = all
	before, total := all[:n], all[n:]
	for t, row := range g.Types.All() {
		if row.Dtype != graph.Tuple {
			total[t] = 1
			continue
		}
		sum := int64(0)
		for i, e := range g.TypeLists.Of(row.Elems) {
			before[int(row.Elems.Off)+i] = sum
			sum = min(sum+total[e], 1<<40)
		}
		total[t] = sum
	}
	return before
}
