package codegen

import (
	"context"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Support is one operator or element type and what became of a small program that uses it: nil, or why it is refused.
type Support struct {
	Name string
	Err  error
}

// probe builds a small use of an operator. x and y are f32[4,8], v is f32[1,2,6,6].
type probe func(b *graph.Builder, op graph.Op, x, y, v graph.Node) graph.Node

// probes are the operators that a class alone does not say how to use.
var probes = map[graph.Op]probe{
	graph.OpParameter: func(_ *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return x },
	graph.OpConstant: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Add(x, b.Floats(graph.F32, []int64{8}, 1, 2, 3, 4, 5, 6, 7, 8))
	},
	graph.OpIota: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Add(x, b.Iota(graph.F32, []int64{4, 8}, 1))
	},
	graph.OpConvert:   func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return b.Convert(x, graph.BF16) },
	graph.OpLeakyRelu: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return b.LeakyRelu(x, 0.1) },
	graph.OpBitcastConvert: func(b *graph.Builder, op graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Node(op, b.G.Tensor(graph.S32, 4, 8), []graph.Node{x})
	},
	graph.OpReducePrecision: func(b *graph.Builder, op graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Node(op, 0, []graph.Node{x}, b.G.IntsAttr(graph.AttrExponent, 8), b.G.IntsAttr(graph.AttrMantissa, 7))
	},
	graph.OpNot: bitwise, graph.OpPopcnt: bitwise, graph.OpClz: bitwise, graph.OpAnd: bitwise, graph.OpOr: bitwise, graph.OpXor: bitwise,
	graph.OpShl: bitwise, graph.OpShrLogical: bitwise, graph.OpShrArith: bitwise,
	graph.OpCompare: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node { return b.Compare(graph.DirLT, x, y) },
	graph.OpSelect: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node {
		return b.Select(b.Compare(graph.DirLT, x, y), x, y)
	},
	graph.OpClamp: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Clamp(b.Scalar(graph.F32, 0), x, b.Scalar(graph.F32, 1))
	},
	graph.OpBroadcast: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Broadcast(x, []int64{1, 2}, []int64{3, 4, 8})
	},
	graph.OpReshape: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return b.Reshape(x, 2, 16) },
	graph.OpBitcast: func(b *graph.Builder, op graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Node(op, b.G.Tensor(graph.F32, 2, 16), []graph.Node{x})
	},
	graph.OpTranspose: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return b.Transpose(x, 1, 0) },
	graph.OpSlice: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Slice(x, []int64{1, 0}, []int64{3, 8}, []int64{1, 2})
	},
	graph.OpConcat: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node { return b.Concat(1, x, y) },
	graph.OpPad: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Pad(x, b.Scalar(graph.F32, 0), []int64{1, 0}, []int64{0, 2}, []int64{0, 0})
	},
	graph.OpReverse: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return b.Reverse(x, 1) },
	graph.OpDynamicSlice: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		i := b.Param("i", graph.S32)
		return b.DynamicSlice(x, []graph.Node{i, i}, 2, 4)
	},
	graph.OpDynamicUpdateSlice: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node {
		i := b.Param("i", graph.S32)
		return b.DynamicUpdateSlice(x, b.SliceDim(y, 0, 0, 2), i, i)
	},
	graph.OpTake: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Take(x, b.Param("i", graph.S32, 3), 0)
	},
	graph.OpTakeAlong: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.TakeAlong(x, b.Param("i", graph.S32, 2, 8), 0)
	},
	graph.OpGather: func(b *graph.Builder, op graph.Op, x, _, _ graph.Node) graph.Node {
		g := b.G
		return b.Node(op, g.Tensor(graph.F32, 3, 8), []graph.Node{x, b.Param("i", graph.S32, 3, 1)},
			g.IntsAttr(graph.AttrOffsetDims, 1), g.IntsAttr(graph.AttrCollapsedDims, 0), g.IntsAttr(graph.AttrStartIndexMap, 0),
			g.IntsAttr(graph.AttrIndexVectorDim, 1), g.IntsAttr(graph.AttrSliceSizes, 1, 8))
	},
	graph.OpReduce: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.Reduce(graph.ReduceSum, x, 1)
	},
	graph.OpReduceWindow: func(b *graph.Builder, _ graph.Op, _, _, v graph.Node) graph.Node {
		return b.ReduceWindow(graph.ReduceMax, v, window)
	},
	graph.OpAvgPool: func(b *graph.Builder, _ graph.Op, _, _, v graph.Node) graph.Node { return b.AvgPool(v, window, true) },
	graph.OpArgMax: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.ArgMax(x, 1, false, graph.S32)
	},
	graph.OpArgMin: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		return b.ArgMin(x, 1, false, graph.S32)
	},
	graph.OpCumSum: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node { return b.CumSum(x, 1, false, false) },
	graph.OpTopK: func(b *graph.Builder, _ graph.Op, x, _, _ graph.Node) graph.Node {
		v, _ := b.TopK(x, 2, true, graph.S32)
		return v
	},
	graph.OpDot: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node {
		return b.MatMul(x, b.Transpose(y, 1, 0))
	},
	graph.OpConv: func(b *graph.Builder, _ graph.Op, _, _, v graph.Node) graph.Node {
		return b.Conv(v, b.Weight(graph.F32, []int64{4, 2, 3, 3}, 1, 1), []graph.Window{{}, {}}, 1)
	},
	graph.OpBatchNormInference: func(b *graph.Builder, _ graph.Op, _, _, v graph.Node) graph.Node {
		p := func(n string) graph.Node { return b.Param(n, graph.F32, 2) }
		return b.BatchNorm(v, p("scale"), p("offset"), p("mean"), p("variance"), 1, 1e-5)
	},
	graph.OpLRN: func(b *graph.Builder, _ graph.Op, _, _, v graph.Node) graph.Node { return b.LRN(v, 3, 1e-4, 0.75, 1) },
	graph.OpGetTupleElement: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node {
		return b.Elem(b.Tuple(x, y), 1)
	},
	graph.OpTuple: func(b *graph.Builder, _ graph.Op, x, y, _ graph.Node) graph.Node { return b.Elem(b.Tuple(x, y), 0) },
}

var window = []graph.Window{{Size: 1}, {Size: 1}, {Size: 2, Stride: 2}, {Size: 2, Stride: 2}}

// bitwise uses an operator on integers.
func bitwise(b *graph.Builder, op graph.Op, _, _, _ graph.Node) graph.Node {
	i := b.Param("i", graph.S32, 4, 8)
	if op.Class() == graph.ClassUnary {
		return b.Unary(op, i)
	}
	return b.Binary(op, i, b.Param("j", graph.S32, 4, 8))
}

// Operators compiles a small float32 program (integers where it is bitwise) for every operator of the tensor graph and says
// which a generation takes. Operators of several cores and those that only carry control are left out where there is no
// program to try.
func Operators(g *target.Generation) []Support {
	var out []Support
	t := newTrier(g)
	for op := graph.OpNone + 1; op < graph.NumOps; op++ {
		if op == graph.OpOther {
			continue
		}
		use := probes[op]
		if use == nil {
			switch op.Class() {
			case graph.ClassUnary:
				use = func(b *graph.Builder, op graph.Op, x, _, _ graph.Node) graph.Node { return b.Unary(op, x) }
			case graph.ClassBinary:
				use = func(b *graph.Builder, op graph.Op, x, y, _ graph.Node) graph.Node { return b.Binary(op, x, y) }
			default:
				continue
			}
		}
		out = append(out, Support{op.String(), t.try(func(b *graph.Builder) graph.Node {
			x, y := b.Param("x", graph.F32, 4, 8), b.Param("y", graph.F32, 4, 8)
			return use(b, op, x, y, b.Param("v", graph.F32, 1, 2, 6, 6))
		})})
	}
	return out
}

// Untried are the operators that Operators leaves out: they are refused unless they vanish before lowering, as calls and
// loops of a known length may.
func Untried() []string {
	var out []string
	for op := graph.OpNone + 1; op < graph.NumOps; op++ {
		if c := op.Class(); op != graph.OpOther && probes[op] == nil && c != graph.ClassUnary && c != graph.ClassBinary {
			out = append(out, op.String())
		}
	}
	return out
}

// Types tries every element type: as data that is moved, and in an addition.
func Types(g *target.Generation) (moves, adds []Support) {
	t := newTrier(g)
	for d := graph.Bool; d <= graph.C128; d++ {
		moves = append(moves, Support{d.String(), t.try(func(b *graph.Builder) graph.Node {
			return b.Transpose(b.Param("x", d, 4, 8), 1, 0)
		})})
		adds = append(adds, Support{d.String(), t.try(func(b *graph.Builder) graph.Node {
			return b.Add(b.Param("x", d, 4, 8), b.Param("y", d, 4, 8))
		})})
	}
	return moves, adds
}

// trier compiles programs of one operator, with one worker.
type trier struct {
	w   Worker
	opt Options
	buf neff.Buffer
}

func newTrier(gen *target.Generation) *trier {
	t := &trier{opt: NewOptions()}
	t.opt.Target = gen.Name
	return t
}

// try compiles what build makes, down to the package.
func (t *trier) try(build func(*graph.Builder) graph.Node) error {
	var g graph.Graph
	g.Name = "probe"
	b := graph.Begin(&g, "probe")
	r := build(b)
	b.Output("out", r)
	c, err := b.End(r)
	if err != nil {
		return err
	}
	g.Entry = c
	t.buf.Reset()
	_, err = t.w.Compile(context.Background(), &Program{Name: "probe", Graph: &g}, &t.opt, &t.buf)
	return err
}
