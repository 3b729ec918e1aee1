package zoo

import (
	"fmt"
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// mlp is a stack of dense layers: y = act(x·W + b), the last without act.
var mlp = model{
	name: "mlp",
	doc:  "dense layers with biases: in → width → … → width → out",
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
		c := Counts{Inputs: 1, Outputs: 1}
		if layers == 1 {
			c.Weights, c.MACs = in*out, in*out
		} else {
			c.MACs = in*width + (layers-2)*width*width + width*out
			c.Weights = c.MACs
		}
		c.MACs *= a.num("batch")
		c.Weights += (layers-1)*width + out
		return c
	},
}

var activations = map[string]graph.Op{
	"relu": graph.OpRelu, "gelu": graph.OpGelu, "silu": graph.OpSilu, "tanh": graph.OpTanh, "sigmoid": graph.OpSigmoid,
}

// dense is x·W + b with W [in, out], at the deviation that keeps the size of values through a ReLU.
func (m *maker) dense(name string, x graph.Node, out int64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	dims := m.Dims(x)
	in := dims[len(dims)-1]
	w := m.weight(name+"/weight", m.dtype(), math.Sqrt(2/float64(in)), in, out)
	b := m.weight(name+"/bias", m.dtype(), 0.1, out)
	m.SetLabel(name)
	return m.Add(m.MatMul(x, w), b)
}

func buildMLP(m *maker, a args) {
	x := m.Param("x", m.dtype(), a.num("batch"), a.num("in"))
	layers := a.num("layers")
	for i := range layers {
		name := fmt.Sprintf("layer%d", i)
		if i == layers-1 {
			m.Output("y", m.dense(name, x, a.num("out")))
			return
		}
		x = m.dense(name, x, a.num("width"))
		if op, ok := activations[a["act"]]; ok {
			m.SetLabel(name + "/" + a["act"])
			x = m.Unary(op, x)
		}
	}
}
