package zoo

import (
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// mlp is a stack of dense layers: y = act(x·W + b), the last without act.
var mlp = model{
	name:  "mlp",
	dtype: "f32",
	doc:   "dense layers with biases: in → width → … → width → out",
	keys: []key{
		{name: "layers", doc: "dense layers", def: "2", low: 1, high: 4096},
		{name: "batch", doc: "rows of the input", def: "4", low: 1, high: 1 << 16},
		{name: "width", doc: "features between layers", def: "256", low: 1, high: 1 << 16},
		{name: "in", doc: "features of the input", def: "128", low: 1, high: 1 << 16},
		{name: "out", doc: "features of the output", def: "64", low: 1, high: 1 << 16},
		{name: "act", doc: "what follows every layer but the last", def: "relu", choices: []string{"relu", "gelu", "silu", "tanh", "sigmoid", "none"}},
	},
	build: buildMLP,
	count: func(a args) Counts {
		in, width, out, layers := a.num("in"), a.num("width"), a.num("out"), a.num("layers")
		matrices := product(in, out)
		if layers > 1 {
			matrices = sum(product(in, width), product(layers-2, width, width), product(width, out))
		}
		return Counts{
			Inputs: 1, Outputs: 1,
			Weights: sum(matrices, product(layers-1, width), out),
			MACs:    product(a.num("batch"), matrices),
		}
	},
}

var activations = map[string]graph.Op{
	"relu": graph.OpRelu, "gelu": graph.OpGelu, "silu": graph.OpSilu, "tanh": graph.OpTanh, "sigmoid": graph.OpSigmoid,
}

func buildMLP(m *maker, a args) {
	x := m.Param("x", m.dtype(), a.num("batch"), a.num("in"))
	layers := a.num("layers")
	for i := range layers {
		name := fmt.Sprintf("layer%d", i)
		if i == layers-1 {
			m.Output("y", m.linear(name, x, a.num("out"), 2, true))
			return
		}
		x = m.linear(name, x, a.num("width"), 2, true)
		if op, ok := activations[a["act"]]; ok {
			m.SetLabel(name + "/" + a["act"])
			x = m.Unary(op, x)
		}
	}
}
