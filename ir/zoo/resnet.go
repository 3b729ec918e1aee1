package zoo

import (
	"fmt"
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// resnetDims are the published dimensions of a residual network of bottleneck blocks: how many blocks each of the four
// stages has. Channels double a stage, and a block's output has four times its inner channels. The stride of a stage is in
// its first 3×3 convolution, as in the versions that most programs publish.
type resnetDims struct {
	name   string
	blocks [4]int64
}

var resnets = []resnetDims{
	{"resnet50", [4]int64{3, 4, 6, 3}},
	{"resnet101", [4]int64{3, 4, 23, 3}},
	{"resnet152", [4]int64{3, 8, 36, 3}},
}

const expansion = 4

func resnetModels() []model {
	var ms []model
	for _, d := range resnets {
		n := 1
		for _, k := range d.blocks {
			n += int(3*k) + 1
		}
		ms = append(ms, model{
			name: d.name, family: "resnet", dtype: "f32",
			doc: fmt.Sprintf("image classifier: %d convolutions with batch norm, bottleneck blocks %v, softmax", n, d.blocks),
			keys: []key{
				{name: "batch", doc: "images", def: "1", low: 1, high: 1 << 16},
				{name: "size", doc: "rows and columns of an image", def: "224", low: 1, high: 1 << 14},
				{name: "classes", doc: "classes", def: "1000", low: 1, high: 1 << 20},
				{name: "width", doc: "channels of the first stage", def: "64", low: 1, high: 1 << 12},
			},
			build: func(m *maker, a args) { buildResnet(m, a, d.blocks) },
			count: func(a args) Counts { return countResnet(a, d.blocks) },
		})
	}
	return ms
}

// convNorm is a convolution with square kernels, padded so that a stride of 1 keeps the size, and batch norm. gain is the mean
// square of the result over that of the input; scale is the mean of the norm's scale. The norm's variance is that of weights
// drawn as they should be, and is corrected where they are parameters.
func (m *maker) convNorm(name string, x graph.Node, out, kernel, stride int64, gain, scale float64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	in := m.Dims(x)[1]
	std := math.Sqrt(gain / float64(in*kernel*kernel))
	w := m.weight(name+"/weight", std, out, in, kernel, kernel)
	variance := m.gain(std)
	gamma := m.around(name+"/norm/scale", scale, scale/10, out)
	beta := m.around(name+"/norm/offset", 0, 0.1, out)
	mean := m.around(name+"/norm/mean", 0, 0.1*math.Sqrt(variance), out)
	vary := m.around(name+"/norm/variance", variance, variance/5, out)
	m.SetLabel(name)
	pad := kernel / 2
	win := graph.Window{Size: kernel, Stride: stride, PadLow: pad, PadHigh: pad}
	y := m.Conv(x, w, []graph.Window{win, win}, 1)
	m.SetLabel(name + "/norm")
	return m.BatchNorm(y, gamma, beta, mean, vary, 1, 1e-5)
}

func (m *maker) relu(name string, x graph.Node) graph.Node {
	m.SetLabel(name)
	return m.Unary(graph.OpRelu, x)
}

func buildResnet(m *maker, a args, blocks [4]int64) {
	x := m.Param("x", m.dtype(), a.num("batch"), 3, a.num("size"), a.num("size"))
	x = m.relu("stem/relu", m.convNorm("stem", x, a.num("width"), 7, 2, 2, 1))
	m.SetLabel("stem/pool")
	pool := graph.Window{Size: 3, Stride: 2, PadLow: 1, PadHigh: 1}
	x = m.ReduceWindow(graph.ReduceMax, x, []graph.Window{{Size: 1}, {Size: 1}, pool, pool})
	// The branches of all blocks together add a fixed multiple to what the stem gives, however many there are.
	scale := 2 / math.Sqrt(float64(sum(blocks[:]...)))
	for s, n := range blocks {
		for i := range n {
			stride := int64(1)
			if s > 0 && i == 0 {
				stride = 2
			}
			x = m.bottleneck(fmt.Sprintf("stage%d/block%d", s+1, i), x, a.num("width")<<s, stride, scale)
		}
	}
	m.SetLabel("pool")
	x = m.linear("classifier", m.Mean(x, 2, 3), a.num("classes"), 1, true)
	m.SetLabel("softmax")
	m.Output("y", m.Convert(m.Softmax(m.Convert(x, graph.F32), 1), m.dtype()))
}

// bottleneck adds three convolutions to a shortcut, which is a convolution where the shape changes. scale is that of the last
// norm: it is small, so that values grow slowly through the sums.
func (m *maker) bottleneck(name string, x graph.Node, width, stride int64, scale float64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	y := m.relu(name+"/a/relu", m.convNorm(name+"/a", x, width, 1, 1, 2, 1))
	y = m.relu(name+"/b/relu", m.convNorm(name+"/b", y, width, 3, stride, 2, 1))
	y = m.convNorm(name+"/c", y, width*expansion, 1, 1, 1, scale)
	if stride != 1 || m.Dims(x)[1] != width*expansion {
		x = m.convNorm(name+"/shortcut", x, width*expansion, 1, stride, 1, 1)
	}
	m.SetLabel(name + "/add")
	return m.relu(name+"/relu", m.Add(y, x))
}

func countResnet(a args, blocks [4]int64) Counts {
	c := Counts{Inputs: 1, Outputs: 1}
	half := func(n int64) int64 { return (n + 1) / 2 }
	conv := func(in, out, taps, size int64) {
		c.Weights = sum(c.Weights, product(in, out, taps), 4*out)
		c.Statistics = sum(c.Statistics, 2*out)
		c.MACs = sum(c.MACs, product(a.num("batch"), in, out, taps, size, size))
	}
	size, width := half(a.num("size")), a.num("width")
	conv(3, width, 49, size)
	size = half(size)
	in := width
	for s, n := range blocks {
		w := width << s
		from := size
		if s > 0 {
			size = half(size)
		}
		for i := range n {
			conv(in, w, 1, from)
			conv(w, w, 9, size)
			conv(w, w*expansion, 1, size)
			if i == 0 {
				conv(in, w*expansion, 1, size)
			}
			in, from = w*expansion, size
		}
	}
	c.Weights = sum(c.Weights, product(in, a.num("classes")), a.num("classes"))
	c.MACs = sum(c.MACs, product(a.num("batch"), in, a.num("classes")))
	return c
}
