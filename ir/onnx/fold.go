package onnx

import (
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// maxFold bounds the elements of what is folded: shape arithmetic and small tables, never weights.
const maxFold = 1 << 16

// maxFoldWork bounds the elements of any intermediate value of a folded node.
const maxFoldWork = 1 << 20

// fold computes a node whose inputs are all constant, by spelling it into a scratch graph and interpreting that, and reports
// whether it did. Where it cannot (too large, an operator or type that the interpreter lacks, a wrong node) the node goes into
// the graph as any other and errors come up there.
func (r *reader) fold(e *emit, h handler) bool {
	total := int64(0)
	for _, v := range e.ins {
		if v.node != 0 || v.missing != 0 {
			return false
		}
		if v.konst != 0 {
			k := &r.konsts[v.konst]
			n, _ := elements(k.dims)
			if total += n; total > maxFold {
				return false
			}
		}
	}
	g := &r.scratch
	g.Reset()
	s := *e
	s.g, s.b, s.nodes = g, nil, nil
	s.comp = g.BeginComp("fold")
	s.outs = make([]value, len(e.outs))
	g.Entry = s.comp
	mark := len(r.konsts)
	if s.call(h) != nil {
		r.konsts = r.konsts[:mark]
		return false
	}
	var want []N
	for _, o := range s.outs {
		if o.node != 0 {
			want = append(want, o.node)
		}
	}
	if len(want) == 0 { // shapes and constants: nothing to compute
		e.outs = s.outs
		return true
	}
	for _, row := range g.Nodes.Rows()[1:] {
		if g.IsTuple(row.Type) {
			continue
		}
		if g.Elements(row.Type) > maxFoldWork {
			return false
		}
	}
	for _, n := range want {
		if g.Elements(g.Nodes.At(n).Type) > maxFold {
			return false
		}
	}
	vals, err := r.evaluate(g, s.comp, want, s.replace)
	if err != nil {
		return false
	}
	j := 0
	for i, o := range s.outs {
		e.outs[i] = o
		if o.node != 0 {
			e.outs[i] = r.addKonst(konst{dtype: g.Dtype(o.node), dims: append([]int64(nil), g.Dims(o.node)...), data: vals[j],
				name: r.m.lists.Of(e.n.Outs)[i]})
			j++
		}
	}
	return true
}

// evaluate interprets the scratch graph and gives the bytes of the nodes wanted.
func (r *reader) evaluate(g *graph.Graph, c graph.Comp, want, scatters []N) ([][]byte, error) {
	g.EndComp(c, want[0], nil)
	if err := addReplacers(g, scatters); err != nil {
		return nil, err
	}
	g.Outputs = g.Outputs[:0]
	for _, n := range want {
		g.Outputs = append(g.Outputs, graph.Output{Node: n})
	}
	r.interp.MaxMemory = 64 * maxFoldWork
	out, err := r.interp.Run(g, nil)
	if err != nil {
		return nil, err
	}
	data := make([][]byte, len(out))
	for i, t := range out {
		data[i] = t.Data
	}
	return data, nil
}
