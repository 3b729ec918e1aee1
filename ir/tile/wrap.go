package tile

import "github.com/rosmar-compiler/rosmar/ir/graph"

// Front ends let negative indices count from the end by select(i < 0, i + d, i). Sums of 32-bit integers are not exact in
// fp32 over their whole range, but an index only needs to be exact where it can be in range: below 2^24, with d below it, the
// sum is; beyond, it stays on its side of every bound from 0 to 2^24, where it is clamped or refused all the same.

// wrap is what becomes of an operator of the idiom: the select gives i wrapped by d > 0; what only the select reads is left out,
// d < 0. Other operators have d = 0.
type wrap struct {
	from graph.Node // i
	d    int64
}

// offSide marks a value that something reads for more than an index, among the counts of readers.
const offSide = 1 << 31

// findWraps finds the idiom where all that read the select take its elements as indices or hold them against bounds.
func (l *lowering) findWraps() {
	g := l.g
	c := g.Comps.At(g.Entry)
	end := c.First + graph.Node(c.Count)
	takes := false
	for n := c.First; n < end && !takes; n++ {
		takes = g.Op(n) == graph.OpGather || g.Op(n) == graph.OpDynamicSlice || g.Op(n) == graph.OpTake || g.Op(n) == graph.OpTakeAlong
	}
	if !takes {
		return
	}
	l.scratchReaders.Reset()
	readers := l.scratchReaders.Take(int(c.Count))
	for _, o := range g.Outputs {
		readers[o.Node-c.First] |= offSide
	}
	for n := end - 1; n >= c.First && n > 0; n-- {
		for k, in := range g.Operands(n) {
			readers[in-c.First]++
			if !takesIndex(g, n, k) && (readers[n-c.First]&offSide != 0 || !movesIndex(g, n)) {
				readers[in-c.First] |= offSide
			}
		}
	}
	for n := c.First; n < end; n++ {
		if r := readers[n-c.First]; g.Op(n) != graph.OpSelect || r&offSide != 0 || r == 0 || !g.Dtype(n).IsInt() {
			continue
		}
		ins := g.Operands(n)
		cmp, sum := ins[0], ins[1]
		i, d := wrapOf(g, cmp, graph.DirLT, sum, ins[2])
		if i == 0 {
			sum = ins[2]
			if i, d = wrapOf(g, cmp, graph.DirGE, sum, ins[1]); i == 0 {
				continue
			}
		}
		l.wraps.Set(n, wrap{i, d})
		for _, x := range [2]graph.Node{cmp, sum} {
			if readers[x-c.First]&^offSide == 1 {
				l.wraps.Set(x, wrap{d: -1})
			}
		}
	}
}

// wrapOf is i and d where cmp is i dir 0 and sum is i + d, else 0.
func wrapOf(g *graph.Graph, cmp graph.Node, dir graph.Dir, sum, i graph.Node) (graph.Node, int64) {
	if g.Op(cmp) != graph.OpCompare || g.Op(sum) != graph.OpAdd || g.Int(cmp, graph.AttrDirection, 0) != int64(dir) {
		return 0, 0
	}
	a, b := g.Operands(cmp), g.Operands(sum)
	k := 1
	if b[0] != i {
		k = 0
	}
	zero, ok := repeatedInt(g, a[1])
	d, known := repeatedInt(g, b[k])
	if !ok || !known || zero != 0 || a[0] != i || b[1-k] != i || d < 1 || d >= exactLimit {
		return 0, 0
	}
	return i, d
}

// takesIndex reports that n only asks of operand k where it is in range: it is an index, or held against a known bound.
func takesIndex(g *graph.Graph, n graph.Node, k int) bool {
	switch g.Op(n) {
	case graph.OpGather, graph.OpTake, graph.OpTakeAlong:
		return k == 1
	case graph.OpDynamicSlice:
		return k >= 1
	case graph.OpCompare:
		bound, ok := repeatedInt(g, g.Operands(n)[1-k])
		return ok && bound >= 0 && bound < exactLimit
	}
	return false
}

// movesIndex reports operators whose elements are indices when their operands' are.
func movesIndex(g *graph.Graph, n graph.Node) bool {
	switch g.Op(n) {
	case graph.OpReshape, graph.OpBitcast, graph.OpBroadcast, graph.OpTranspose, graph.OpSlice, graph.OpReverse, graph.OpConcat, graph.OpCopy, graph.OpBarrier:
		return true
	case graph.OpConvert:
		return g.Dtype(n).IsInt() && g.Dtype(n).Bits() >= 32
	}
	return false
}

// repeatedInt is the element of an integer constant that repeats one.
func repeatedInt(g *graph.Graph, n graph.Node) (int64, bool) {
	for g.Op(n) == graph.OpBroadcast || g.Op(n) == graph.OpReshape || g.Op(n) == graph.OpCopy {
		n = g.Operands(n)[0]
	}
	d := g.Dtype(n)
	if g.Op(n) != graph.OpConstant || !d.IsInt() {
		return 0, false
	}
	c := g.Nodes.At(n).Const
	if row := g.Consts.At(c); row.Kind == graph.ConstSplat {
		return decodeInt(d, row.Bits), true
	}
	data := g.ConstBytes(c)
	if len(data) < d.Size() {
		return 0, false
	}
	lo, hi := intsRange(d, data)
	return lo, lo == hi
}

// wrapNode is the result of an operator that findWraps found.
func (l *lowering) wrapNode(w wrap) view {
	if w.d < 0 {
		return view{}
	}
	v := l.nodes.Get(w.from)
	if v.root == 0 {
		return v
	}
	n := l.cur
	v = l.lowWords(n, v, l.g.Dtype(w.from))
	if l.err != nil {
		return view{}
	}
	if l.isSplat(&v) {
		lo, _ := l.rangeOf(v)
		if lo < 0 {
			lo += w.d
		}
		return l.splatOf(l.g.Dtype(n), l.vals.At(v.root).dt, uint64(lo), v.shape())
	}
	return l.wrapped(n, v, w.d)
}
