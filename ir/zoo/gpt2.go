package zoo

import (
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// gpt2Dims are the published dimensions of a model of the GPT-2 family. The inner width of the feed-forward unit is four
// times the width in all of them.
type gpt2Dims struct {
	name                                  string
	layers, width, heads, ffn, vocabulary int64
	positions                             int64
	eps                                   float64 // of the norms
}

var gpt2s = []gpt2Dims{
	{"gpt2", 12, 768, 12, 3072, 50257, 1024, 1e-5},
	{"gpt2-medium", 24, 1024, 16, 4096, 50257, 1024, 1e-5},
	{"gpt2-large", 36, 1280, 20, 5120, 50257, 1024, 1e-5},
	{"gpt2-xl", 48, 1600, 25, 6400, 50257, 1024, 1e-5},
}

func gpt2Models() []model {
	var ms []model
	for _, d := range gpt2s {
		ms = append(ms, model{
			name: d.name, family: "gpt2", dtype: "f32",
			doc: fmt.Sprintf("prefill: layer norm, learned positions, %d heads, gelu unit of width %d, biases, tied head", d.heads, d.ffn),
			keys: []key{
				dim("layers", "decoder layers", d.layers, 1, 4096),
				{name: "seq", doc: "tokens of a sequence, at most positions", def: "128", low: 1, high: 1 << 20},
				{name: "batch", doc: "sequences", def: "1", low: 1, high: 1 << 16},
				flag("ids", "start from token ids and an embedding table, not from embedded tokens"),
				flag("head", "final norm, and logits of the last token of each sequence"),
				dim("width", "width of the hidden states; a multiple of heads", d.width, 1, 1<<16),
				dim("heads", "attention heads", d.heads, 1, 1<<12),
				dim("ffn", "width of the feed-forward unit", d.ffn, 1, 1<<18),
				dim("vocab", "rows of the embedding", d.vocabulary, 1, 1<<20),
				dim("positions", "rows of the table of positions", d.positions, 1, 1<<20),
			},
			check: checkGPT2,
			build: func(m *maker, a args) { buildGPT2(m, a, d.eps) },
			count: countGPT2,
		})
	}
	return ms
}

func checkGPT2(a args) error {
	if a.num("width")%a.num("heads") != 0 {
		return fmt.Errorf("width %d is no multiple of %d heads", a.num("width"), a.num("heads"))
	}
	if a.num("seq") > a.num("positions") {
		return fmt.Errorf("seq %d is above the model's %d positions; positions=%d widens the table", a.num("seq"), a.num("positions"), a.num("seq"))
	}
	return nil
}

func gpt2Tokens(a args) tokens {
	heads := a.num("heads")
	return tokens{batch: a.num("batch"), seq: a.num("seq"), heads: heads, kv: heads, width: a.num("width") / heads}
}

// embeddingStd is about that of the trained table. The head is the same table.
const embeddingStd = 0.14

func buildGPT2(m *maker, a args, eps float64) {
	t, width, vocab := gpt2Tokens(a), a.num("width"), a.num("vocab")
	x, table := m.embed(t, vocab, width, embeddingStd)
	positions := m.weight("positions/weight", 0.02, a.num("positions"), width)
	if m.Err() != nil {
		return
	}
	m.SetLabel("positions")
	p := m.SliceDim(positions, 0, 0, t.seq)
	if t.batch == 1 {
		x = m.Add(x, p)
	} else {
		x = m.Reshape(m.Add(m.Reshape(x, t.batch, t.seq, width), p), t.rows(), width)
	}
	mask := m.causalMask(t.seq)
	for i := range a.num("layers") {
		x = m.gpt2Layer(fmt.Sprintf("layer%d", i), x, mask, t, a.num("ffn"), eps)
	}
	if !a.on("head") {
		m.Output("y", x)
		return
	}
	x = m.layerNorm("head/norm", m.lastTokens(x, t), eps)
	if table == 0 {
		table = m.weight("embedding/weight", embeddingStd, vocab, width)
	}
	m.SetLabel("head")
	m.Output("logits", m.Dot(x, table, nil, nil, []int64{1}, []int64{1}))
}

func (m *maker) gpt2Layer(name string, x, mask graph.Node, t tokens, ffn int64, eps float64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	width := m.Dims(x)[1]
	n := m.layerNorm(name+"/attention/norm", x, eps)
	part := func(s string) graph.Node {
		return m.split(m.linear(name+"/attention/"+s, n, width, 1, true), t, t.heads)
	}
	q, k, v := part("query"), part("key"), part("value")
	o := m.attention(name+"/attention", q, k, v, mask, t)
	o = m.linear(name+"/attention/output", o, width, 1, true)
	m.SetLabel(name + "/attention/residual")
	x = m.Add(x, o)

	n = m.layerNorm(name+"/mlp/norm", x, eps)
	h := m.linear(name+"/mlp/up", n, ffn, 1, true)
	m.SetLabel(name + "/mlp/gelu")
	h = m.Unary(graph.OpGeluTanh, h)
	h = m.linear(name+"/mlp/down", h, width, 1, true)
	m.SetLabel(name + "/mlp/residual")
	return m.Add(x, h)
}

func countGPT2(a args) Counts {
	t, width, ffn, vocab := gpt2Tokens(a), a.num("width"), a.num("ffn"), a.num("vocab")
	matrices := sum(product(4, width, width), product(2, width, ffn))
	vectors := sum(5*width, ffn, 4*width) // biases, norms
	c := Counts{
		Inputs: 1, Outputs: 1,
		Weights: sum(product(a.num("positions"), width), product(a.num("layers"), sum(matrices, vectors))),
		MACs:    product(a.num("layers"), sum(product(t.rows(), matrices), attentionMACs(t))),
	}
	if a.on("ids") || a.on("head") {
		c.Weights = sum(c.Weights, vocab*width)
	}
	if a.on("head") {
		c.Weights = sum(c.Weights, 2*width)
		c.MACs = sum(c.MACs, product(t.batch, vocab, width))
	}
	return c
}
