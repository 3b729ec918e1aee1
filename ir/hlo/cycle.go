package hlo

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// A graph whose operands all point backwards has no cycle, and neither have calls that all point backwards. Only where the text used
// something before it was defined does a depth-first search look for one.

// visit is a node or computation on the search's stack and the edge to follow next.
type visit struct{ id, next, sub uint32 }

const (
	unseen uint8 = iota
	open
	done
)

func (r *Reader) marksFor(n int) []uint8 {
	r.state = slices.Grow(r.state[:0], n)[:n]
	clear(r.state)
	return r.state
}

// acyclicNodes checks the operands of one computation that is complete but for its row.
func (r *Reader) acyclicNodes(first graph.Node) bool {
	g := r.g
	end := graph.Node(g.Nodes.Len())
	state := r.marksFor(int(end - first))
	for n := first; n < end; n++ {
		if state[n-first] != unseen {
			continue
		}
		state[n-first] = open
		r.stack = append(r.stack[:0], visit{id: uint32(n)})
		for len(r.stack) > 0 {
			top := &r.stack[len(r.stack)-1]
			ins := g.Operands(graph.Node(top.id))
			if int(top.next) == len(ins) {
				state[graph.Node(top.id)-first] = done
				r.stack = r.stack[:len(r.stack)-1]
				continue
			}
			in := ins[top.next]
			top.next++
			switch state[in-first] {
			case open:
				r.inst = g.Names.Append(nil, g.Nodes.At(in).Name)
				return r.errorf(r.p, "the instruction depends on its own result")
			case unseen:
				state[in-first] = open
				r.stack = append(r.stack, visit{id: uint32(in)})
			}
		}
	}
	return true
}

// acyclicComps checks that no computation calls itself, directly or through others.
func (r *Reader) acyclicComps() bool {
	g := r.g
	state := r.marksFor(g.Comps.Len())
	for c := 1; c < g.Comps.Len(); c++ {
		if state[c] != unseen {
			continue
		}
		state[c] = open
		r.stack = append(r.stack[:0], visit{id: uint32(c)})
		for len(r.stack) > 0 {
			top := &r.stack[len(r.stack)-1]
			row := g.Comps.At(graph.Comp(top.id))
			if top.next == row.Count {
				state[top.id] = done
				r.stack = r.stack[:len(r.stack)-1]
				continue
			}
			calls := g.Calls(row.First + graph.Node(top.next))
			if int(top.sub) == len(calls) {
				top.next++
				top.sub = 0
				continue
			}
			callee := calls[top.sub]
			top.sub++
			switch state[callee] {
			case open:
				return r.errorf(len(r.d), "computation %%%s calls itself", r.compName(callee))
			case unseen:
				state[callee] = open
				r.stack = append(r.stack, visit{id: uint32(callee)})
			}
		}
	}
	return true
}
