package tile

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// lowering is the state of one Lower. The first error sticks: after it, what is made is of no use and nobody looks at it.
type lowering struct {
	g   *graph.Graph
	gen *target.Generation
	opt Options
	m   *ir.Module
	b   ir.Builder
	err error

	vals   arena.Table[val, valueRow]
	args   arena.Pool[view]
	ints   arena.Pool[int64]
	own    arena.Pool[byte]               // data of constants made here
	nodes  arena.Column[graph.Node, view] // result of each model operator; root 0: it has no elements
	tuples map[graph.Node][]view          // results of operators that have several
	consts []constant
	dots   []dotInfo
	convs  []convInfo
	wins   []windowInfo
	pieces []piecesInfo
	takes  []takeInfo
	wraps  arena.Column[graph.Node, wrap]
	cur    graph.Node // the operator being imported or emitted

	units  []unit // units[0] is none
	order  []val  // values by unit, in order
	homes  arena.Column[val, home]
	outs   []output
	params []val

	emitter
	stats   Stats
	opCount [graph.NumOps]int64
}

// output is one result of the model.
type output struct {
	name arena.Name // in the graph
	v    view
	dt   target.Dtype
	node graph.Node
	loc  ir.Loc
	done bool
}

// constant is the data behind a vConst.
type constant struct {
	node   graph.Node // a constant of the model, or 0
	bytes  arena.Span // of one made here, in own
	dims   arena.Span // of one that is not as the model has it
	recipe arena.Name // in the module: how to make it from the model's
}

func (l *lowering) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// unsupported is about the operator of n, with its line.
func (l *lowering) unsupported(n graph.Node, format string, args ...any) {
	subject := l.g.Op(n).String()
	if t := l.g.Str(n, graph.AttrTarget); t != "" {
		subject = t
	}
	if l.g.Op(n).Class() == graph.ClassCollective {
		l.fail(target.NotSupported(subject, "%s: several cores work together in it, and one core is compiled for", l.g.NodeString(n)))
		return
	}
	l.fail(target.NotSupported(subject, "%s: "+format, append([]any{l.g.NodeString(n)}, args...)...))
}

// badType is about an element type that n needs.
func (l *lowering) badType(n graph.Node, d graph.Dtype, why string) {
	l.fail(target.NotSupported(d.String(), "%s: %s %s", l.g.NodeString(n), d, why))
}

func (l *lowering) shapeOf(v val) []int64 { return l.ints.Of(l.vals.At(v).dims) }
func (l *lowering) argsOf(v val) []view   { return l.args.Of(l.vals.At(v).args) }

// isSplat reports a view of one repeated element.
func (l *lowering) isSplat(v *view) bool { return v.root != 0 && l.vals.At(v.root).op == vSplat }

// keep copies a list for the whole lowering.
func (l *lowering) keep(xs []int64) []int64 {
	out := l.kept.TakeDirty(len(xs))
	copy(out, xs)
	return out
}

// add appends a value of the given shape, whose unit axes it drops, and returns a view of that shape on it.
func (l *lowering) add(r valueRow, dims []int64, args ...view) view {
	var shape view
	for _, d := range dims {
		if d != 1 && int(shape.n) < maxRank {
			shape.push(d, 0)
		}
	}
	r.dims = l.ints.AddSlice(shape.shape())
	mark := l.args.Mark()
	for _, a := range args {
		l.vals.At(a.root).uses++
		l.args.Push(a.squeezed())
	}
	r.args = l.args.Since(mark)
	r.src = l.cur
	v := dense(l.vals.Add(r), shape.shape())
	out, _ := v.reshaped(dims)
	return out
}

// splat is a view of the given shape of one element.
func (l *lowering) splat(dt target.Dtype, bits uint64, f float32, lo, hi int64, dims []int64) view {
	v := l.vals.Add(valueRow{op: vSplat, dt: dt, bits: bits, c0: f, lo: lo, hi: hi, src: l.cur})
	w := view{root: v}
	for _, d := range dims {
		w.push(d, 0)
	}
	return w
}
