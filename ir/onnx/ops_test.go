package onnx

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// opCase is one operator with numbers worked out by hand or by Go's math package.
type opCase struct {
	op     string
	opset  int64
	attrs  [][]byte
	inputs []graph.Tensor
	known  []int // inputs that are initializers
	want   []graph.Tensor
}

func f32(dims []int64, vals ...float64) graph.Tensor { return graph.TensorOf(graph.F32, dims, vals...) }

func vec(vals ...float64) graph.Tensor { return f32([]int64{int64(len(vals))}, vals...) }

func s64(vals ...int64) graph.Tensor {
	return graph.TensorOfInts(graph.S64, []int64{int64(len(vals))}, vals...)
}

func mapped(f func(float64) float64, vals ...float64) (in, out graph.Tensor) {
	y := make([]float64, len(vals))
	for i, v := range vals {
		y[i] = f(v)
	}
	return vec(vals...), vec(y...)
}

// unaryCase checks an elementwise operator on a few points.
func unaryCase(op string, f func(float64) float64, attrs [][]byte, vals ...float64) opCase {
	in, out := mapped(f, vals...)
	return opCase{op: op, attrs: attrs, inputs: []graph.Tensor{in}, want: []graph.Tensor{out}}
}

func opCases() []opCase {
	inf := math.Inf(1)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	gelu := func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }
	geluTanh := func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	cases := []opCase{
		unaryCase("Tan", math.Tan, nil, -1, 0, 0.5),
		unaryCase("Sign", func(x float64) float64 { return math.Copysign(1, x) }, nil, -3, 2),
		unaryCase("Round", math.RoundToEven, nil, -1.5, 0.5, 2.5, 1.7),
		unaryCase("Floor", math.Floor, nil, -1.5, 0.5),
		unaryCase("Sinh", math.Sinh, nil, -3, -1e-4, 0, 1e-4, 2),
		unaryCase("Cosh", math.Cosh, nil, -3, 0, 2),
		unaryCase("Asin", math.Asin, nil, -1, -0.5, 1e-4, 0.99609375, 1),
		unaryCase("Acos", math.Acos, nil, -1, -0.5, 0, 0.99609375, 1),
		unaryCase("Atan", math.Atan, nil, -1e6, -1, 1e-4, 3),
		unaryCase("Asinh", math.Asinh, nil, -100, -1, -1e-4, 0, 1e-4, 5),
		unaryCase("Acosh", math.Acosh, nil, 1, 1.5, 100),
		unaryCase("Atanh", math.Atanh, nil, -0.9, -1e-4, 0, 0.5),
		unaryCase("Softsign", func(x float64) float64 { return x / (1 + math.Abs(x)) }, nil, -3, 0, 2),
		unaryCase("Celu", func(x float64) float64 { return math.Max(0, x) + math.Min(0, 2*math.Expm1(x/2)) }, [][]byte{attrF("alpha", 2)}, -3, 0, 200),
		unaryCase("Elu", func(x float64) float64 {
			if x < 0 {
				return 2 * math.Expm1(x)
			}
			return x
		}, [][]byte{attrF("alpha", 2)}, -3, 0, 200),
		unaryCase("HardSigmoid", func(x float64) float64 { return min(max(0.25*x+0.5, 0), 1) }, [][]byte{attrF("alpha", 0.25)}, -5, -1, 0, 1, 5),
		unaryCase("HardSwish", func(x float64) float64 { return x * min(max(x/6+0.5, 0), 1) }, nil, -5, -1, 0, 1, 5),
		unaryCase("Mish", func(x float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) }, nil, -5, 0, 3),
		unaryCase("ThresholdedRelu", func(x float64) float64 {
			if x > 2 {
				return x
			}
			return 0
		}, [][]byte{attrF("alpha", 2)}, -1, 2, 3),
		unaryCase("Shrink", func(x float64) float64 {
			switch {
			case x < -1:
				return x + 0.5
			case x > 1:
				return x - 0.5
			}
			return 0
		}, [][]byte{attrF("lambd", 1), attrF("bias", 0.5)}, -3, -1, 0, 1, 3),
		unaryCase("Swish", func(x float64) float64 { return x * sigmoid(2*x) }, [][]byte{attrF("alpha", 2)}, -3, 0, 2),
		unaryCase("com.microsoft.Gelu", gelu, nil, -2, 0, 1),
		unaryCase("com.microsoft.FastGelu", geluTanh, nil, -2, 0, 1),
		unaryCase("com.microsoft.QuickGelu", func(x float64) float64 { return x * sigmoid(1.702*x) }, nil, -2, 0, 1),
		{op: "com.microsoft.BiasGelu", inputs: []graph.Tensor{vec(1, -1), vec(1, 0)}, want: []graph.Tensor{vec(gelu(2), gelu(-1))}},
		{op: "PRelu", inputs: []graph.Tensor{f32([]int64{2, 2}, -1, 2, -3, 4), vec(0.5, 0.1)}, want: []graph.Tensor{f32([]int64{2, 2}, -0.5, 2, -1.5, 4)}},
		{op: "IsInf", attrs: [][]byte{attrI("detect_negative", 0)}, inputs: []graph.Tensor{vec(inf, -inf, 1)}, want: []graph.Tensor{graph.TensorOfInts(graph.Bool, []int64{3}, 1, 0, 0)}},
		{op: "IsInf", inputs: []graph.Tensor{vec(inf, -inf, 1)}, want: []graph.Tensor{graph.TensorOfInts(graph.Bool, []int64{3}, 1, 1, 0)}},
		{op: "Pow", inputs: []graph.Tensor{vec(2, 3), vec(0.5)}, known: []int{1}, want: []graph.Tensor{vec(math.Sqrt2, math.Sqrt(3))}},
		{op: "Pow", inputs: []graph.Tensor{vec(2, 3), vec(3)}, known: []int{1}, want: []graph.Tensor{vec(8, 27)}},
		{op: "Pow", inputs: []graph.Tensor{vec(2, 3), vec(2.5)}, known: []int{1}, want: []graph.Tensor{vec(math.Pow(2, 2.5), math.Pow(3, 2.5))}},
		{op: "Mod", attrs: [][]byte{attrI("fmod", 1)}, inputs: []graph.Tensor{vec(-5, 5), vec(3, -3)}, want: []graph.Tensor{vec(-2, 2)}},
		{op: "Mod", inputs: []graph.Tensor{s64(-5, 5), s64(3, -3)}, want: []graph.Tensor{s64(1, -1)}},
		{op: "BitShift", attrs: [][]byte{attrS("direction", "RIGHT")}, inputs: []graph.Tensor{graph.TensorOfInts(graph.U8, []int64{2}, 255, 8), graph.TensorOfInts(graph.U8, []int64{2}, 4, 1)},
			want: []graph.Tensor{graph.TensorOfInts(graph.U8, []int64{2}, 15, 4)}},
		{op: "BitShift", attrs: [][]byte{attrS("direction", "LEFT")}, inputs: []graph.Tensor{graph.TensorOfInts(graph.U8, []int64{2}, 255, 8), graph.TensorOfInts(graph.U8, []int64{2}, 4, 1)},
			want: []graph.Tensor{graph.TensorOfInts(graph.U8, []int64{2}, 240, 16)}},
		{op: "BitwiseAnd", inputs: []graph.Tensor{s64(12, 7), s64(10, 1)}, want: []graph.Tensor{s64(8, 1)}},
		{op: "BitwiseOr", inputs: []graph.Tensor{s64(12, 7), s64(10, 1)}, want: []graph.Tensor{s64(14, 7)}},
		{op: "BitwiseXor", inputs: []graph.Tensor{s64(12, 7), s64(10, 1)}, want: []graph.Tensor{s64(6, 6)}},
		{op: "BitwiseNot", inputs: []graph.Tensor{s64(0, -1)}, want: []graph.Tensor{s64(-1, 0)}},
		{op: "Xor", inputs: []graph.Tensor{graph.TensorOfInts(graph.Bool, []int64{2}, 1, 1), graph.TensorOfInts(graph.Bool, []int64{2}, 1, 0)},
			want: []graph.Tensor{graph.TensorOfInts(graph.Bool, []int64{2}, 0, 1)}},
		{op: "Add", opset: 6, attrs: [][]byte{attrI("broadcast", 1), attrI("axis", 0)}, inputs: []graph.Tensor{f32([]int64{2, 2}, 1, 2, 3, 4), vec(10, 20)},
			want: []graph.Tensor{f32([]int64{2, 2}, 11, 12, 23, 24)}},
		{op: "Clip", opset: 6, attrs: [][]byte{attrF("min", -1), attrF("max", 1)}, inputs: []graph.Tensor{vec(-2, 0, 2)}, want: []graph.Tensor{vec(-1, 0, 1)}},

		{op: "DepthToSpace", attrs: [][]byte{attrI("blocksize", 2)}, inputs: []graph.Tensor{f32([]int64{1, 4, 1, 1}, 1, 2, 3, 4)}, want: []graph.Tensor{f32([]int64{1, 1, 2, 2}, 1, 2, 3, 4)}},
		{op: "DepthToSpace", attrs: [][]byte{attrI("blocksize", 2), attrS("mode", "CRD")}, inputs: []graph.Tensor{f32([]int64{1, 8, 1, 1}, 1, 2, 3, 4, 5, 6, 7, 8)},
			want: []graph.Tensor{f32([]int64{1, 2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)}},
		{op: "DepthToSpace", attrs: [][]byte{attrI("blocksize", 2)}, inputs: []graph.Tensor{f32([]int64{1, 8, 1, 1}, 1, 2, 3, 4, 5, 6, 7, 8)},
			want: []graph.Tensor{f32([]int64{1, 2, 2, 2}, 1, 3, 5, 7, 2, 4, 6, 8)}},
		{op: "SpaceToDepth", attrs: [][]byte{attrI("blocksize", 2)}, inputs: []graph.Tensor{f32([]int64{1, 2, 2, 2}, 1, 3, 5, 7, 2, 4, 6, 8)},
			want: []graph.Tensor{f32([]int64{1, 8, 1, 1}, 1, 2, 3, 4, 5, 6, 7, 8)}},
		{op: "Tile", opset: 5, inputs: []graph.Tensor{f32([]int64{1, 2}, 1, 2), s64(2), s64(1)}, known: []int{1, 2}, want: []graph.Tensor{f32([]int64{1, 4}, 1, 2, 1, 2)}},
		{op: "Pad", inputs: []graph.Tensor{vec(1, 2, 3), s64(2, 1)}, known: []int{1}, attrs: [][]byte{attrS("mode", "wrap")}, want: []graph.Tensor{vec(2, 3, 1, 2, 3, 1)}},
		{op: "Pad", inputs: []graph.Tensor{vec(1, 2, 3), s64(-1, 2)}, known: []int{1}, attrs: [][]byte{attrS("mode", "reflect")}, want: []graph.Tensor{vec(2, 3, 2)}, opset: -1},
		{op: "Pad", inputs: []graph.Tensor{vec(1, 2, 3), s64(-1, 2)}, known: []int{1}, want: []graph.Tensor{vec(2, 3, 0, 0)}},
		{op: "EyeLike", attrs: [][]byte{attrI("k", 1)}, inputs: []graph.Tensor{f32([]int64{2, 3}, 9)}, want: []graph.Tensor{f32([]int64{2, 3}, 0, 1, 0, 0, 0, 1)}},
		{op: "Gather", inputs: []graph.Tensor{vec(1, 2, 3), s64(-1)}, known: []int{1}, want: []graph.Tensor{vec(3)}},
		{op: "Gather", inputs: []graph.Tensor{vec(1, 2, 3), s64(2, 0)}, known: []int{1}, want: []graph.Tensor{vec(3, 1)}},

		{op: "ReduceProd", inputs: []graph.Tensor{vec(2, 3, 4)}, want: []graph.Tensor{vec(24)}},
		{op: "ReduceL1", inputs: []graph.Tensor{vec(2, -3, 4)}, want: []graph.Tensor{vec(9)}},
		{op: "ReduceLogSum", inputs: []graph.Tensor{vec(2, 3, 4)}, want: []graph.Tensor{vec(math.Log(9))}},
		{op: "ReduceLogSumExp", inputs: []graph.Tensor{f32([]int64{2, 2}, 500, 501, -inf, -inf), s64(1)}, known: []int{1}, attrs: [][]byte{attrI("keepdims", 0)},
			want: []graph.Tensor{vec(501+math.Log1p(math.Exp(-1)), -inf)}},
		{op: "ReduceSum", opset: 11, attrs: [][]byte{attrL("axes", []int64{-1}), attrI("keepdims", 0)}, inputs: []graph.Tensor{f32([]int64{2, 2}, 1, 2, 3, 4)}, want: []graph.Tensor{vec(3, 7)}},
		{op: "ArgMin", attrs: [][]byte{attrI("axis", 1), attrI("keepdims", 0)}, inputs: []graph.Tensor{f32([]int64{2, 2}, 1, 2, 4, 3)}, want: []graph.Tensor{s64(0, 1)}},
		{op: "Hardmax", inputs: []graph.Tensor{f32([]int64{2, 3}, 1, 3, 3, 2, 1, 0)}, want: []graph.Tensor{f32([]int64{2, 3}, 0, 1, 0, 1, 0, 0)}},
		{op: "Softmax", opset: 11, inputs: []graph.Tensor{f32([]int64{1, 2, 2}, 0)}, want: []graph.Tensor{f32([]int64{1, 2, 2}, 0.25)}},
		{op: "TopK", opset: 9, attrs: [][]byte{attrI("k", 1)}, inputs: []graph.Tensor{f32([]int64{2, 2}, 1, 2, 4, 3)}, want: []graph.Tensor{f32([]int64{2, 1}, 2, 4)}},

		{op: "MatMulInteger", inputs: []graph.Tensor{graph.TensorOfInts(graph.U8, []int64{1, 2}, 11, 7), graph.TensorOfInts(graph.U8, []int64{2, 1}, 1, 4), graph.TensorOfInts(graph.U8, nil, 12)},
			want: []graph.Tensor{graph.TensorOfInts(graph.S32, []int64{1, 1}, -21)}},
		{op: "com.microsoft.FusedMatMul", attrs: [][]byte{attrI("transB", 1), attrF("alpha", 0.5)}, inputs: []graph.Tensor{f32([]int64{1, 2}, 1, 2), f32([]int64{1, 2}, 3, 4)},
			want: []graph.Tensor{f32([]int64{1, 1}, 5.5)}},
		{op: "com.microsoft.FusedMatMul", attrs: [][]byte{attrI("transA", 1)}, inputs: []graph.Tensor{f32([]int64{2, 1}, 1, 2), f32([]int64{2, 1}, 3, 4)}, want: []graph.Tensor{f32([]int64{1, 1}, 11)}},
		{op: "SimplifiedLayerNormalization", attrs: [][]byte{attrF("epsilon", 0)}, inputs: []graph.Tensor{vec(3, 4), vec(1, 2)}, want: []graph.Tensor{vec(3/math.Sqrt(12.5), 8/math.Sqrt(12.5))}},
		{op: "com.microsoft.SkipSimplifiedLayerNormalization", attrs: [][]byte{attrF("epsilon", 0)}, inputs: []graph.Tensor{vec(1, 2), vec(2, 2), vec(1, 2)},
			want: []graph.Tensor{vec(3/math.Sqrt(12.5), 8/math.Sqrt(12.5))}},
		{op: "com.microsoft.SkipLayerNormalization", attrs: [][]byte{attrF("epsilon", 0)}, inputs: []graph.Tensor{vec(1, 2), vec(2, 3), vec(1, 2), vec(0, 1)}, want: []graph.Tensor{vec(-1, 3)}},
		{op: "MeanVarianceNormalization", attrs: [][]byte{attrL("axes", []int64{0})}, inputs: []graph.Tensor{vec(1, 3)}, want: []graph.Tensor{vec(-1, 1)}},
		{op: "LpNormalization", inputs: []graph.Tensor{vec(3, 4)}, want: []graph.Tensor{vec(0.6, 0.8)}},
		{op: "LpNormalization", attrs: [][]byte{attrI("p", 1)}, inputs: []graph.Tensor{vec(-1, 3)}, want: []graph.Tensor{vec(-0.25, 0.75)}},
		{op: "DynamicQuantizeLinear", inputs: []graph.Tensor{vec(0, 2, -3, -2.5, 1.34, 0.5)},
			want: []graph.Tensor{graph.TensorOfInts(graph.U8, []int64{6}, 153, 255, 0, 26, 221, 179), f32(nil, 0.0196078438), graph.TensorOfInts(graph.U8, nil, 153)}},
		{op: "Einsum", attrs: [][]byte{attrS("equation", "ij,jk,k->i")}, inputs: []graph.Tensor{f32([]int64{1, 2}, 1, 2), f32([]int64{2, 2}, 1, 2, 3, 4), vec(1, 10)}, want: []graph.Tensor{vec(21 + 2*43)}},
		{op: "Einsum", attrs: [][]byte{attrS("equation", "...i, ...i")}, inputs: []graph.Tensor{f32([]int64{2, 2}, 1, 2, 3, 4), f32([]int64{1, 2}, 1, 10)}, want: []graph.Tensor{vec(21, 43)}},
	}
	return cases
}

// model spells a case as a model.
func (c *opCase) model(t *testing.T) []byte {
	w := wireGraph{opset: c.opset}
	if w.opset <= 0 {
		w.opset = 24
	}
	var ins []string
	for i, v := range c.inputs {
		name := "x" + string(rune('0'+i))
		ins = append(ins, name)
		if slices.Contains(c.known, i) {
			w.inits = append(w.inits, wireTensor(t, name, v.Dtype, v.Dims, v.Data))
			continue
		}
		var dims []any
		for _, d := range v.Dims {
			dims = append(dims, int(d))
		}
		w.inputs = append(w.inputs, wireInput(name, codeOf(v.Dtype), dims...))
	}
	for i := range c.want {
		w.outputs = append(w.outputs, "y"+string(rune('0'+i)))
	}
	domain, op := "", c.op
	if s, ok := strings.CutPrefix(op, "com.microsoft."); ok {
		domain, op = "com.microsoft", s
	}
	w.nodes = [][]byte{wireNode(op, domain, ins, w.outputs, c.attrs...)}
	return w.bytes()
}

// TestOperators interprets the table, once as it stands and once with all inputs constant, so that folding is checked by it too.
func TestOperators(t *testing.T) {
	var g graph.Graph
	for _, c := range opCases() {
		for _, folded := range []bool{false, true} {
			var params []graph.Tensor
			d := c
			if folded {
				d.known = nil
				for i := range c.inputs {
					d.known = append(d.known, i)
				}
			}
			for i, v := range c.inputs {
				if !slices.Contains(d.known, i) {
					params = append(params, v)
				}
			}
			err := Read(d.model(t), "", &g)
			if c.opset == -1 { // refused
				if err == nil {
					t.Errorf("%s went through", c.op)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", c.op, err)
				continue
			}
			if folded {
				for _, o := range g.Outputs {
					if g.Op(o.Node) != graph.OpCopy {
						t.Errorf("%s of constants is a %v", c.op, g.Op(o.Node))
					}
				}
			}
			outs, err := graph.Eval(&g, params)
			if err != nil {
				t.Errorf("%s: %v", c.op, err)
				continue
			}
			for i, o := range outs {
				w := c.want[i]
				if err := compare(o, Tensor{Dtype: w.Dtype, Dims: w.Dims, Data: w.Data}, 2e-6, 1e-7); err != nil {
					t.Errorf("%s %v (folded %v): output %d: %v", c.op, c.inputs[0].Floats(), folded, i, err)
				}
			}
		}
	}
}

// TestEveryOperatorIsTested looks for each supported operator in the table above and in the published data.
func TestEveryOperatorIsTested(t *testing.T) {
	seen := map[string]bool{"RMSNorm": true}
	for _, c := range opCases() {
		seen[c.op] = true
	}
	models := [][]byte{}
	for _, c := range allZipCases(t) {
		models = append(models, c.model)
	}
	files, _ := filepath.Glob(filepath.Join(dataDir(t), "*", "*", "*.onnx"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, b)
	}
	for _, b := range models {
		var m model
		var names arena.Names
		if err := m.parse(b, &names); err != nil {
			t.Fatal(err)
		}
		for _, n := range m.nodes.All() {
			op := names.String(n.Op)
			if d := names.String(n.Domain); d != "" && d != "ai.onnx" {
				op = d + "." + op
			}
			seen[op] = true
		}
	}
	for _, op := range SupportedOps() {
		if !seen[op] {
			t.Errorf("nothing tests %s", op)
		}
	}
}
