package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// RandomInputs draws a value for every parameter of the entry: floats uniform in [−1, 1), rounded to the type; Bool 0 or 1;
// integers 0 to 7, but those that are used as indices over the whole range in which no index is clamped or refused. The
// draw of a parameter depends on seed, its number and its element index alone (splitmix64), not on other parameters.
//
// Parameters of tuple type, or of a type without numbers, get an empty tensor, which Run refuses.
func RandomInputs(g *Graph, seed uint64) []Tensor {
	params := g.Params(g.Entry)
	bounds := indexBounds(g)
	ins := make([]Tensor, len(params))
	for i, p := range params {
		d := g.Dtype(p)
		if domainOf(d) == domNone {
			continue
		}
		t := NewTensor(d, slices.Clone(g.Dims(p))...)
		s := stream(seed, fmt.Sprint("parameter ", i))
		top := int64(8)
		if b, ok := bounds[p]; ok {
			top = max(b, 1)
		}
		if w := d.Bits() - btoi(d.Signed()); d.IsInt() && w < 62 {
			top = min(top, 1<<w)
		}
		for k := range t.Len() {
			var bits uint64
			switch {
			case d.IsFloat():
				bits, _ = EncodeFloat(d, uniform(s, uint64(k)))
			case d == Bool:
				bits = splitmix64(s+uint64(k)*golden) >> 63
			default:
				bits = splitmix64(s+uint64(k)*golden) >> 1 % uint64(top)
			}
			putElem(d, t.Data, k, bits)
		}
		ins[i] = t
	}
	return ins
}

// IndexBounds is how many values each parameter of the entry may take whose elements are used as indices; others are missing.
func IndexBounds(g *Graph) map[Node]int64 {
	all := indexBounds(g)
	bounds := map[Node]int64{}
	for _, p := range g.Params(g.Entry) {
		if b, ok := all[p]; ok {
			bounds[p] = max(b, 1)
		}
	}
	return bounds
}

// indexBounds finds, for nodes whose elements reach an index operand through moves, conversions and the arithmetic that
// wraps negative indices, how many index values are in range: the least over all uses. It walks from the index operands
// back to the parameters, through calls, tuples and loops (element by element).
func indexBounds(g *Graph) map[Node]int64 {
	type place struct {
		n    Node
		elem int64 // of a tuple; -1 for a tensor
	}
	type seed struct {
		n     Node
		bound int64
	}
	var seeds []seed
	need := func(n Node, bound int64) { seeds = append(seeds, seed{n, bound}) }
	callers := map[Comp][]Node{}
	for n := Node(1); int(n) < g.Nodes.Len(); n++ {
		for _, c := range g.Calls(n) {
			callers[c] = append(callers[c], n)
		}
		ins := g.Operands(n)
		switch g.Op(n) {
		case OpTake, OpTakeAlong:
			need(ins[1], g.Dims(ins[0])[g.Int(n, AttrDim, 0)])
		case OpDynamicSlice:
			for i, s := range ins[1:] {
				need(s, g.Dims(ins[0])[i]-g.Dims(n)[i]+1)
			}
		case OpDynamicUpdateSlice:
			for i, s := range ins[2:] {
				need(s, g.Dims(ins[0])[i]-g.Dims(ins[1])[i]+1)
			}
		case OpGather:
			low := int64(MaxElements)
			sizes := g.IntList(n, AttrSliceSizes)
			for _, d := range g.IntList(n, AttrStartIndexMap) {
				low = min(low, g.Dims(ins[0])[d]-sizes[d]+1)
			}
			need(ins[1], low)
		case OpScatter:
			need(ins[len(ins)/2], scatterRange(g, n))
		}
	}
	// Tightest use first: a place is then visited once.
	slices.SortStableFunc(seeds, func(a, b seed) int { return cmp.Compare(a.bound, b.bound) })
	bounds := map[place]int64{}
	var work []place
	mark := func(n Node, elem, bound int64) {
		p := place{n, elem}
		if _, seen := bounds[p]; !seen {
			bounds[p] = bound
			work = append(work, p)
		}
	}
	next := 0
	for next < len(seeds) || len(work) > 0 {
		if len(work) == 0 {
			mark(seeds[next].n, -1, seeds[next].bound)
			next++
			continue
		}
		p := work[len(work)-1]
		work = work[:len(work)-1]
		b := bounds[p]
		ins := g.Operands(p.n)
		switch op := g.Op(p.n); op {
		case OpConvert, OpCopy, OpReshape, OpBitcast, OpBroadcast, OpTranspose, OpSlice, OpReverse, OpBarrier, OpDomain, OpAddDependency:
			if len(ins) > 0 {
				mark(ins[0], p.elem, b)
			}
		case OpDynamicSlice, OpPad, OpGather, OpTake, OpTakeAlong:
			mark(ins[0], -1, b)
		case OpConcat, OpMax, OpMin, OpAdd, OpSub, OpRem:
			for _, x := range ins {
				mark(x, -1, b)
			}
		case OpSelect:
			mark(ins[1], -1, b)
			mark(ins[2], -1, b)
		case OpClamp:
			mark(ins[1], -1, b)
		case OpTuple:
			if p.elem >= 0 && int(p.elem) < len(ins) {
				mark(ins[p.elem], -1, b)
			}
		case OpGetTupleElement:
			if p.elem < 0 {
				mark(ins[0], g.Int(p.n, AttrIndex, 0), b)
			}
		case OpCall, OpFusion, OpConditional:
			for _, c := range g.Calls(p.n) {
				mark(g.Comps.At(c).Root, p.elem, b)
			}
		case OpWhile:
			mark(ins[0], p.elem, b)
			mark(g.Comps.At(g.Calls(p.n)[1]).Root, p.elem, b)
		case OpParameter:
			c := g.Nodes.At(p.n).Comp
			i := int(g.Int(p.n, AttrIndex, 0))
			for _, caller := range callers[c] {
				args := g.Operands(caller)
				switch g.Op(caller) {
				case OpCall, OpFusion:
					if i < len(args) {
						mark(args[i], p.elem, b)
					}
				case OpWhile:
					mark(args[0], p.elem, b)
					mark(g.Comps.At(g.Calls(caller)[1]).Root, p.elem, b)
				case OpConditional:
					for k, branch := range g.Calls(caller) {
						if branch == c && k+1 < len(args) {
							mark(args[k+1], p.elem, b)
						}
					}
				}
			}
		}
	}
	tensors := map[Node]int64{}
	for p, b := range bounds {
		if p.elem < 0 {
			tensors[p.n] = b
		}
	}
	return tensors
}

// scatterRange is how many values every index of a scatter may take with its window inside.
func scatterRange(g *Graph, n Node) int64 {
	ins := g.Operands(n)
	dims, up := g.Dims(ins[0]), g.Dims(ins[len(ins)/2+1])
	extent := make([]int64, len(dims))
	window := g.IntList(n, AttrUpdateWindowDims)
	for d := range extent {
		extent[d] = 1
		if len(window) > 0 && !slices.Contains(g.IntList(n, AttrInsertedDims), int64(d)) && !slices.Contains(g.IntList(n, AttrOperandBatch), int64(d)) {
			extent[d], window = up[window[0]], window[1:]
		}
	}
	low := int64(MaxElements)
	for _, d := range g.IntList(n, AttrScatterDims) {
		low = min(low, dims[d]-extent[d]+1)
	}
	return low
}
