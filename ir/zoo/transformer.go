package zoo

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// Parts of transformers, spelled in operators that every reader of the graph knows. Norms, scores and softmax compute in f32
// whatever the element type, as the published models do; a residual stream is [tokens, width] with tokens = batch·seq.

// tokens are the shape of an attention.
type tokens struct {
	batch, seq       int64
	heads, kv, width int64 // query heads, key and value heads, elements of a head
}

func (t tokens) rows() int64 { return t.batch * t.seq }

// perRow broadcasts a value of each row of x over its elements.
func (m *maker) perRow(v, x graph.Node) graph.Node { return m.Broadcast(v, []int64{0}, m.Dims(x)) }

// perColumn broadcasts a vector over the rows of x.
func (m *maker) perColumn(v, x graph.Node) graph.Node { return m.Broadcast(v, []int64{1}, m.Dims(x)) }

// rmsNorm is x·rsqrt(mean(x²)+eps), rounded to the model's type, times gamma.
func (m *maker) rmsNorm(name string, x graph.Node, eps float64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	gamma := m.around(name+"/gamma", 1, 0.1, m.Dims(x)[1])
	m.SetLabel(name)
	f := m.Convert(x, graph.F32)
	r := m.Unary(graph.OpRsqrt, m.Add(m.Mean(m.Mul(f, f), 1), m.Like(f, eps)))
	y := m.Convert(m.Mul(f, m.perRow(r, f)), m.dtype())
	return m.Mul(y, m.perColumn(gamma, y))
}

// layerNorm is (x−mean)·rsqrt(variance+eps)·gamma + beta, rounded to the model's type at the end.
func (m *maker) layerNorm(name string, x graph.Node, eps float64) graph.Node {
	if m.Err() != nil {
		return 0
	}
	gamma := m.around(name+"/gamma", 1, 0.1, m.Dims(x)[1])
	beta := m.around(name+"/beta", 0, 0.1, m.Dims(x)[1])
	m.SetLabel(name)
	f := m.Convert(x, graph.F32)
	c := m.Sub(f, m.perRow(m.Mean(f, 1), f))
	r := m.Unary(graph.OpRsqrt, m.Add(m.Mean(m.Mul(c, c), 1), m.Like(f, eps)))
	y := m.Mul(c, m.perRow(r, c))
	y = m.Mul(y, m.perColumn(m.Convert(gamma, graph.F32), y))
	y = m.Add(y, m.perColumn(m.Convert(beta, graph.F32), y))
	return m.Convert(y, m.dtype())
}

// ropeTables are cos and sin of position·theta^(−2i/width), [seq, width/2] each, in the model's type.
func (m *maker) ropeTables(seq, width int64, theta float64) (cos, sin graph.Node) {
	half := width / 2
	if m.args["rope"] == "param" {
		return m.Param("cos", m.dtype(), seq, half), m.Param("sin", m.dtype(), seq, half)
	}
	freq := make([]float64, half)
	for i := range freq {
		freq[i] = math.Pow(theta, -2*float64(i)/float64(width))
	}
	c, s := make([]float64, 0, seq*half), make([]float64, 0, seq*half)
	for p := range seq {
		for _, f := range freq {
			y, x := math.Sincos(float64(p) * f)
			c, s = append(c, x), append(s, y)
		}
	}
	m.SetLabel("rope/cos")
	cos = m.Floats(m.dtype(), []int64{seq, half}, c...)
	m.SetLabel("rope/sin")
	return cos, m.Floats(m.dtype(), []int64{seq, half}, s...)
}

// rotate turns each pair (x[i], x[i+width/2]) of x [batch, seq, heads, width] by the angle of its position.
func (m *maker) rotate(name string, x, cos, sin graph.Node) graph.Node {
	if m.Err() != nil {
		return 0
	}
	m.SetLabel(name)
	width := m.Dims(x)[3]
	lo, hi := m.SliceDim(x, 3, 0, width/2), m.SliceDim(x, 3, width/2, width)
	dims := m.Dims(lo)
	cos, sin = m.Broadcast(cos, []int64{1, 3}, dims), m.Broadcast(sin, []int64{1, 3}, dims)
	return m.Concat(3, m.Sub(m.Mul(lo, cos), m.Mul(hi, sin)), m.Add(m.Mul(hi, cos), m.Mul(lo, sin)))
}

// causalMask is [seq, seq]: whether the query of a row sees the key of a column.
func (m *maker) causalMask(seq int64) graph.Node {
	m.SetLabel("mask")
	dims := []int64{seq, seq}
	return m.Compare(graph.DirGE, m.Iota(graph.S32, dims, 0), m.Iota(graph.S32, dims, 1))
}

// masked is the score of a key that a query does not see. Finite, so that no row maximum makes it not a number.
const masked = -0.7 * math.MaxFloat32

// attention is softmax(q·kᵀ/√width, masked)·v for q [batch, seq, heads, width] and k, v [batch, seq, kv, width]; the result is
// [rows, heads·width]. Where consecutive query heads share a key head, the queries get an axis for it, and keys and values are
// not repeated: scores are [batch, kv, heads/kv, query, key].
func (m *maker) attention(name string, q, k, v, mask graph.Node, t tokens) graph.Node {
	group := t.heads / t.kv
	m.SetLabel(name)
	k, v = m.Transpose(k, 0, 2, 1, 3), m.Transpose(v, 0, 2, 1, 3)
	if group == 1 {
		q = m.Transpose(q, 0, 2, 1, 3)
	} else {
		q = m.Transpose(m.Reshape(q, t.batch, t.seq, t.kv, group, t.width), 0, 2, 3, 1, 4)
	}
	if m.Err() != nil {
		return 0
	}
	last := int64(len(m.Dims(q)) - 1)
	heads := []int64{0, 1}
	m.SetLabel(name + "/scores")
	s := m.dotF32(q, k, heads, heads, []int64{last}, []int64{3})
	s = m.Mul(s, m.Like(s, 1/math.Sqrt(float64(t.width))))
	s = m.Select(m.Broadcast(mask, []int64{last - 1, last}, m.Dims(s)), s, m.Like(s, masked))
	m.SetLabel(name + "/softmax")
	p := m.Convert(m.Softmax(s, last), m.dtype())
	m.SetLabel(name + "/values")
	o := m.Dot(p, v, heads, heads, []int64{last}, []int64{2})
	if group == 1 {
		o = m.Transpose(o, 0, 2, 1, 3)
	} else {
		o = m.Transpose(o, 0, 3, 1, 2, 4)
	}
	return m.Reshape(o, t.rows(), t.heads*t.width)
}

// dotF32 is Dot with a result in f32: the sums as they are.
func (m *maker) dotF32(x, y graph.Node, lhsBatch, rhsBatch, lhsContract, rhsContract []int64) graph.Node {
	g := m.G
	return m.Node(graph.OpDot, g.Tensor(graph.F32), []graph.Node{x, y}, g.IntsAttr(graph.AttrLhsBatch, lhsBatch...),
		g.IntsAttr(graph.AttrRhsBatch, rhsBatch...), g.IntsAttr(graph.AttrLhsContract, lhsContract...), g.IntsAttr(graph.AttrRhsContract, rhsContract...))
}

// split gives [rows, heads·width] as [batch, seq, heads, width].
func (m *maker) split(x graph.Node, t tokens, heads int64) graph.Node {
	return m.Reshape(x, t.batch, t.seq, heads, t.width)
}

// embed is the hidden state that the layers start from: the parameter x, or with ids=1 rows of a table of standard deviation
// std, by the parameter ids. The table is 0 without ids.
func (m *maker) embed(t tokens, vocab, width int64, std float64) (x, table graph.Node) {
	if !m.on("ids") {
		return m.Param("x", m.dtype(), t.rows(), width), 0
	}
	ids := m.Param("ids", graph.S32, t.rows())
	table = m.weight("embedding/weight", std, vocab, width)
	m.SetLabel("embedding")
	return m.Take(table, ids, 0), table
}

// lastTokens are the rows of the last token of each sequence.
func (m *maker) lastTokens(x graph.Node, t tokens) graph.Node {
	if m.Err() != nil {
		return 0
	}
	m.SetLabel("head/last")
	width := m.Dims(x)[1]
	return m.Reshape(m.SliceDim(m.Reshape(x, t.batch, t.seq, width), 1, t.seq-1, t.seq), t.batch, width)
}

// attentionMACs are the multiply-adds of scores and values.
func attentionMACs(t tokens) int64 { return product(2, t.batch, t.heads, t.seq, t.seq, t.width) }
