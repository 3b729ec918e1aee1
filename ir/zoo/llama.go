package zoo

import (
	"errors"
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// llamaDims are the published dimensions of a model of the Llama family.
type llamaDims struct {
	name                                               string
	layers, width, heads, kv, headDim, ffn, vocabulary int64
	theta                                              float64 // base of the rotary frequencies
	eps                                                float64 // of the norms
}

var llamas = []llamaDims{
	{"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000, 1e4, 1e-5},
	{"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256, 5e5, 1e-5},
	{"llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256, 5e5, 1e-5},
	{"llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256, 5e5, 1e-5},
	{"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000, 1e6, 1e-5},
}

func llamaModels() []model {
	var ms []model
	for _, d := range llamas {
		ms = append(ms, model{
			name: d.name, family: "llama", dtype: "bf16",
			doc: fmt.Sprintf("prefill: RMS norm, rotary positions, %d query heads on %d key heads, gated unit of width %d", d.heads, d.kv, d.ffn),
			keys: []key{
				dim("layers", "decoder layers", d.layers, 1, 4096),
				{name: "seq", doc: "tokens of a sequence", def: "2048", low: 1, high: 1 << 20},
				{name: "batch", doc: "sequences", def: "1", low: 1, high: 1 << 16},
				flag("ids", "start from token ids and an embedding table, not from hidden states"),
				flag("head", "final norm, and logits of the last token of each sequence"),
				{name: "rope", doc: "rotary tables as constants or as parameters cos and sin", def: "const", choices: []string{"const", "param"}},
				dim("width", "width of the hidden states", d.width, 1, 1<<16),
				dim("heads", "query heads", d.heads, 1, 1<<12),
				dim("kv", "key and value heads; divides heads", d.kv, 1, 1<<12),
				dim("headdim", "elements of a head; even", d.headDim, 2, 1<<12),
				dim("ffn", "width of the gated unit", d.ffn, 1, 1<<18),
				dim("vocab", "rows of the embedding and of the head", d.vocabulary, 1, 1<<20),
			},
			check: checkLlama,
			build: func(m *maker, a args) { buildLlama(m, a, d.theta, d.eps) },
			count: countLlama,
		})
	}
	return ms
}

// maxRope bounds the elements of a rotary table, which is built when the model is.
const maxRope = 1 << 22

func checkLlama(a args) error {
	if a.num("heads")%a.num("kv") != 0 {
		return fmt.Errorf("%d query heads cannot share %d key heads: heads must be a multiple of kv", a.num("heads"), a.num("kv"))
	}
	if a.num("headdim")%2 != 0 {
		return errors.New("headdim is even: rotary positions turn pairs of elements")
	}
	if n := a.num("seq") * a.num("headdim") / 2; n > maxRope && a["rope"] == "const" {
		return fmt.Errorf("rotary tables of %d elements are above %d: say rope=param, or a smaller seq", n, maxRope)
	}
	return nil
}

func llamaTokens(a args) tokens {
	return tokens{batch: a.num("batch"), seq: a.num("seq"), heads: a.num("heads"), kv: a.num("kv"), width: a.num("headdim")}
}

func buildLlama(m *maker, a args, theta, eps float64) {
	t, width, vocab := llamaTokens(a), a.num("width"), a.num("vocab")
	x, _ := m.embed(t, vocab, width, 0.5)
	cos, sin := m.ropeTables(t.seq, t.width, theta)
	mask := m.causalMask(t.seq)
	for i := range a.num("layers") {
		x = m.llamaLayer(fmt.Sprintf("layer%d", i), x, cos, sin, mask, t, a.num("ffn"), eps)
	}
	if !a.on("head") {
		m.Output("y", x)
		return
	}
	x = m.rmsNorm("head/norm", m.lastTokens(x, t), eps)
	m.Output("logits", m.linear("head", x, vocab, 1, false))
}

func (m *maker) llamaLayer(name string, x, cos, sin, mask graph.Node, t tokens, ffn int64, eps float64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	width := m.Dims(x)[1]
	n := m.rmsNorm(name+"/attention/norm", x, eps)
	q := m.split(m.linear(name+"/attention/query", n, t.heads*t.width, 1, false), t, t.heads)
	k := m.split(m.linear(name+"/attention/key", n, t.kv*t.width, 1, false), t, t.kv)
	v := m.split(m.linear(name+"/attention/value", n, t.kv*t.width, 1, false), t, t.kv)
	q = m.rotate(name+"/attention/query/rope", q, cos, sin)
	k = m.rotate(name+"/attention/key/rope", k, cos, sin)
	o := m.attention(name+"/attention", q, k, v, mask, t)
	o = m.linear(name+"/attention/output", o, width, 1, false)
	m.SetLabel(name + "/attention/residual")
	x = m.Add(x, o)

	n = m.rmsNorm(name+"/mlp/norm", x, eps)
	gate := m.linear(name+"/mlp/gate", n, ffn, 1, false)
	up := m.linear(name+"/mlp/up", n, ffn, 1, false)
	m.SetLabel(name + "/mlp/act")
	h := m.Mul(m.Unary(graph.OpSilu, gate), up)
	h = m.linear(name+"/mlp/down", h, width, 1, false)
	m.SetLabel(name + "/mlp/residual")
	return m.Add(x, h)
}

func countLlama(a args) Counts {
	t, width, vocab := llamaTokens(a), a.num("width"), a.num("vocab")
	matrices := sum(product(width, t.width, 2*t.heads+2*t.kv), product(3, width, a.num("ffn")))
	c := Counts{
		Inputs: 1, Outputs: 1,
		Weights: product(a.num("layers"), sum(matrices, 2*width)),
		MACs:    product(a.num("layers"), sum(product(t.rows(), matrices), attentionMACs(t))),
	}
	if a["rope"] == "param" {
		c.Inputs += 2
	}
	if a.on("ids") {
		c.Weights = sum(c.Weights, vocab*width)
	}
	if a.on("head") {
		c.Weights = sum(c.Weights, width, vocab*width)
		c.MACs = sum(c.MACs, product(t.batch, vocab, width))
	}
	return c
}
