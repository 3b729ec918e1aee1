package zoo

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/publicdata"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// TestPublished holds the sizes against those that the models' authors and others publish. The graphs hold what the
// formulas say (TestModels, TestLargeIsCheap).
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		name                  string
		weights, trained, mac int64 // mac: hundredths of a giga multiply-add, 0 where none is published
	}{
		{"zoo:gpt2?ids=1&head=1", 124439808, 0, 0},
		{"zoo:gpt2-medium?ids=1&head=1", 354823168, 0, 0},
		{"zoo:gpt2-large?ids=1&head=1", 774030080, 0, 0},
		{"zoo:gpt2-xl?ids=1&head=1", 1557611200, 0, 0},
		{"zoo:llama3-8b?layers=1", 218112000, 0, 0}, // 218.1 M a layer
		{"zoo:llama3-8b?ids=1&head=1", 8030261248, 0, 0},
		{"zoo:llama3-70b?ids=1&head=1", 70553706496, 0, 0},
		{"zoo:llama3.1-405b?ids=1&head=1", 405853388800, 0, 0},
		{"zoo:llama2-7b?ids=1&head=1", 6738415616, 0, 0},
		{"zoo:mistral-7b?ids=1&head=1", 7241732096, 0, 0},
		{"zoo:resnet50", 0, 25557032, 409},
		{"zoo:resnet101", 0, 44549160, 780},
		{"zoo:resnet152", 0, 60192808, 1151},
	} {
		got, err := Count(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if c.weights > 0 && got.Weights != c.weights {
			t.Errorf("%s: %d weights, published %d", c.name, got.Weights, c.weights)
		}
		if n := got.Weights - got.Statistics; c.trained > 0 && n != c.trained {
			t.Errorf("%s: %d trained weights, published %d", c.name, n, c.trained)
		}
		if mac := (got.MACs + 5e6) / 1e7; c.mac > 0 && mac != c.mac {
			t.Errorf("%s: %d hundredths of a giga multiply-add, published %d", c.name, mac, c.mac)
		}
	}
}

// TestConfigs holds the tables against the published configurations, where these are at hand.
func TestConfigs(t *testing.T) {
	data, err := os.ReadFile(publicdata.Path(t, "configs", "models.json"))
	if err != nil {
		t.Fatal(err)
	}
	type config struct {
		Name       string
		Layers     int64
		Hidden     int64
		Heads      int64
		KV         int64 `json:"kv_heads"`
		HeadDim    int64 `json:"head_dim"`
		FFN        int64
		Vocabulary int64   `json:"vocab"`
		Positions  int64   `json:"max_positions"`
		Eps        float64 `json:"norm_eps"`
		Theta      float64 `json:"rope_theta"`
	}
	var list []config
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	by := map[string]config{}
	for _, c := range list {
		by[c.Name] = c
	}
	for _, d := range llamas {
		c := by[d.name]
		if got := (llamaDims{c.Name, c.Layers, c.Hidden, c.Heads, c.KV, c.HeadDim, c.FFN, c.Vocabulary, c.Theta, c.Eps}); got != d {
			t.Errorf("the table says %+v, the configuration %+v", d, got)
		}
	}
	for _, d := range gpt2s {
		c := by[d.name]
		if got := (gpt2Dims{c.Name, c.Layers, c.Hidden, c.Heads, c.FFN, c.Vocabulary, c.Positions, c.Eps}); got != d {
			t.Errorf("the table says %+v, the configuration %+v", d, got)
		}
	}
}

// opCount counts the live operators of a canonical graph.
func opCount(t *testing.T, name string) (map[graph.Op]int, *graph.Graph) {
	g, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := graph.Canonical(g)
	if err != nil {
		t.Fatal(err)
	}
	ops := map[graph.Op]int{}
	for n := graph.Node(1); int(n) < c.Nodes.Len(); n++ {
		ops[c.Op(n)]++
	}
	return ops, c
}

// TestStructure pins what a lowering looks for, at true size and after canonicalisation.
func TestStructure(t *testing.T) {
	type want map[graph.Op]int
	for _, c := range []struct {
		name string
		want want
	}{
		{"zoo:resnet50", want{graph.OpConv: 53, graph.OpBatchNormInference: 53, graph.OpRelu: 49, graph.OpReduceWindow: 1, graph.OpDot: 1, graph.OpExp: 1, graph.OpParameter: 1}},
		{"zoo:resnet101", want{graph.OpConv: 104, graph.OpBatchNormInference: 104, graph.OpRelu: 100}},
		{"zoo:resnet152", want{graph.OpConv: 155, graph.OpBatchNormInference: 155, graph.OpRelu: 151}},
		// A layer: 7 projections, scores and values; 2 norms; 2 rotations; 1 softmax; 1 unit; 2 residuals.
		{"zoo:llama3-8b?layers=3", want{graph.OpDot: 27, graph.OpRsqrt: 6, graph.OpConcat: 6, graph.OpExp: 3, graph.OpSilu: 3, graph.OpSelect: 3, graph.OpCompare: 1, graph.OpIota: 2, graph.OpParameter: 1}},
		{"zoo:llama3-8b?layers=2&weights=param&rope=param&seq=64", want{graph.OpDot: 18, graph.OpParameter: 2*7 + 3}},
		// A layer: 6 projections, scores and values.
		{"zoo:gpt2?layers=3&seq=512", want{graph.OpDot: 24, graph.OpRsqrt: 6, graph.OpExp: 3, graph.OpGeluTanh: 3, graph.OpSelect: 3, graph.OpCompare: 1, graph.OpTake: 0}},
		{"zoo:gpt2?ids=1&head=1", want{graph.OpDot: 8*12 + 1, graph.OpTake: 1, graph.OpGeluTanh: 12}},
	} {
		ops, _ := opCount(t, c.name)
		for op, n := range c.want {
			if ops[op] != n {
				t.Errorf("%s: %d %s, want %d", c.name, ops[op], op, n)
			}
		}
	}
	// Tokens reach the projections as rows of a matrix, in the model's type; scores are f32, one batch entry a key head.
	_, g := opCount(t, "zoo:llama3-8b?layers=1")
	seen := map[string]bool{}
	for n := graph.Node(1); int(n) < g.Nodes.Len(); n++ {
		if g.Op(n) == graph.OpDot {
			ins := g.Operands(n)
			typ := func(n graph.Node) string { return g.TypeString(g.Nodes.At(n).Type) }
			seen[strings.Join([]string{g.NodeName(n), typ(ins[0]), typ(ins[1]), typ(n)}, " ")] = true
		}
	}
	for _, w := range []string{
		"layer0/attention/query bf16[2048,4096] bf16[4096,4096] bf16[2048,4096]",
		"layer0/attention/key bf16[2048,4096] bf16[4096,1024] bf16[2048,1024]",
		"layer0/attention/value bf16[2048,4096] bf16[4096,1024] bf16[2048,1024]",
		"layer0/attention/scores bf16[1,8,4,2048,128] bf16[1,8,2048,128] f32[1,8,4,2048,2048]",
		"layer0/attention/values bf16[1,8,4,2048,2048] bf16[1,8,2048,128] bf16[1,8,4,2048,128]",
		"layer0/attention/output bf16[2048,4096] bf16[4096,4096] bf16[2048,4096]",
		"layer0/mlp/gate bf16[2048,4096] bf16[4096,14336] bf16[2048,14336]",
		"layer0/mlp/up bf16[2048,4096] bf16[4096,14336] bf16[2048,14336]",
		"layer0/mlp/down bf16[2048,14336] bf16[14336,4096] bf16[2048,4096]",
	} {
		if !seen[w] {
			t.Errorf("no product %s; there are %v", w, seen)
		}
	}
}

// TestProjections: the products of one layer over 2,048 tokens, cut into stationary tiles of 128×128 and moving tiles of
// 512 columns, are the 53,248 matmuls that the lowering must reach.
func TestProjections(t *testing.T) {
	_, g := opCount(t, "zoo:llama3-8b?layers=1&seq=2048")
	total := int64(0)
	for n := graph.Node(1); int(n) < g.Nodes.Len(); n++ {
		if g.Op(n) != graph.OpDot || len(g.Dims(n)) != 2 {
			continue
		}
		k := g.Dims(g.Operands(n)[0])[1]
		total += k / 128 * (g.Dims(n)[0] / 128) * (g.Dims(n)[1] / 512)
	}
	if total != 53248 {
		t.Errorf("%d matmuls, want 53248", total)
	}
}

// TestConvolutions: cut into 128 channels in, 128 channels out and banks of 512 pixels, the convolutions of ResNet-50 are 1,986
// matmuls. The first one multiplies a row of the window and its three channels at once.
func TestConvolutions(t *testing.T) {
	_, g := opCount(t, "zoo:resnet50")
	up := func(a, b int64) int64 { return (a + b - 1) / b }
	total := int64(0)
	for n := graph.Node(1); int(n) < g.Nodes.Len(); n++ {
		if g.Op(n) != graph.OpConv {
			continue
		}
		w, out := g.Dims(g.Operands(n)[1]), g.Dims(n)
		steps := up(w[1], 128) * w[2] * w[3]
		if w[1] == 3 {
			steps = w[2]
		}
		total += up(w[0], 128) * up(out[2], 512/out[3]) * steps
	}
	if total != 1986 {
		t.Errorf("%d matmuls, want 1986", total)
	}
}

// TestMagnitude: at the true depth, values neither die out nor explode, and a softmax over classes does not settle on one.
func TestMagnitude(t *testing.T) {
	for name, bounds := range map[string][2]float64{ // of the root mean square
		"zoo:gpt2?seq=12&width=96&heads=3&ffn=384":                                                     {0.5, 10},
		"zoo:gpt2-xl?seq=8&width=40&heads=5&ffn=160&vocab=64&ids=1&head=1&dtype=f16":                   {0.1, 10},
		"zoo:llama3-8b?seq=12&width=64&heads=8&kv=2&headdim=8&ffn=128":                                 {0.5, 20},
		"zoo:llama3-70b?seq=8&width=64&heads=8&kv=1&headdim=8&ffn=128&vocab=64&ids=1&head=1&dtype=f16": {0.1, 10},
		"zoo:resnet50?size=64&width=8&classes=10":                                                      {0.105, 0.25}, // 0.1 is even, 0.316 one class
		"zoo:resnet152?size=48&width=8&classes=10&dtype=bf16":                                          {0.105, 0.25}, // 0.1 is even, 0.316 one class
	} {
		g, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := graph.Eval(g, graph.RandomInputs(g, 1))
		if err != nil {
			t.Fatal(err)
		}
		square := 0.0
		for _, v := range out[0].Floats() {
			square += v * v
		}
		if rms := math.Sqrt(square / float64(out[0].Len())); !(rms >= bounds[0] && rms <= bounds[1]) {
			t.Errorf("%s: output of size %g, want %v", name, rms, bounds)
		}
	}
}

// TestSameGraph: a name gives the same graph in a new and in a used table, and every weight of a model has its own seed.
func TestSameGraph(t *testing.T) {
	used := new(graph.Graph)
	text := func(g *graph.Graph) string {
		var w bytes.Buffer
		if err := hlo.Write(&w, g); err != nil {
			t.Fatal(err)
		}
		return w.String()
	}
	for _, name := range examples {
		g, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Build(used, name); err != nil {
			t.Fatal(err)
		}
		if text(g) != text(used) {
			t.Errorf("%s: two builds differ", name)
		}
		seeds := map[uint64]bool{}
		for n := graph.Node(1); int(n) < g.Nodes.Len(); n++ {
			if g.Op(n) != graph.OpConstant {
				continue
			}
			if c := g.Consts.At(g.Nodes.At(n).Const); c.Kind == graph.ConstElided {
				if c.Seed == 0 || seeds[c.Seed] {
					t.Errorf("%s: %s has seed %d, which is none or another's", name, g.NodeName(n), c.Seed)
				}
				seeds[c.Seed] = true
			}
		}
	}
}

// TestCausal: a token's output depends on the tokens before it and on no later one; and the heads of a group share keys that
// differ from those of the next group.
func TestCausal(t *testing.T) {
	for _, name := range []string{
		"zoo:llama3-8b?layers=2&seq=6&width=32&heads=4&kv=2&headdim=8&ffn=48&dtype=f32",
		"zoo:gpt2?layers=2&seq=6&width=32&heads=4&ffn=64&positions=8",
	} {
		g, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		in := graph.RandomInputs(g, 1)
		run := func() []float64 {
			out, err := graph.Eval(g, in)
			if err != nil {
				t.Fatal(err)
			}
			return out[0].Floats()
		}
		a := run()
		const row, width = 3, 32
		changed := graph.TensorOf(graph.F32, []int64{1}, 0.75)
		copy(in[0].Data[row*width*4:], changed.Data)
		b := run()
		for r := range 6 {
			same := true
			for i := range width {
				same = same && a[r*width+i] == b[r*width+i]
			}
			if same != (r < row) {
				t.Errorf("%s: row %d equal: %v after a change of row %d", name, r, same, row)
			}
		}
	}
}

// TestBatch: sequences and images of a batch do not see each other.
func TestBatch(t *testing.T) {
	for _, name := range []string{
		"zoo:llama3-8b?layers=1&seq=5&width=32&heads=4&kv=2&headdim=8&ffn=48&dtype=f32",
		"zoo:gpt2?layers=1&seq=5&width=32&heads=4&ffn=64&positions=8&vocab=40&ids=1&head=1",
		"zoo:resnet50?size=32&width=4&classes=5",
	} {
		one, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		two, err := New(name + "&batch=2")
		if err != nil {
			t.Fatal(err)
		}
		in := graph.RandomInputs(two, 1)[0]
		half := len(in.Data) / 2
		both, err := graph.Eval(two, []graph.Tensor{in})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			own := graph.Tensor{Dtype: in.Dtype, Dims: one.Dims(one.Params(one.Entry)[0]), Data: in.Data[i*half : (i+1)*half]}
			out, err := graph.Eval(one, []graph.Tensor{own})
			if err != nil {
				t.Fatal(err)
			}
			part := both[0]
			size := len(part.Data) / 2
			part.Dims, part.Data = out[0].Dims, part.Data[i*size:(i+1)*size]
			if d, err := graph.Compare(part, out[0], 1e-5, 1e-6); err != nil || !d.OK() {
				t.Errorf("%s: entry %d of the batch: %v %v", name, i, d, err)
			}
		}
	}
}

// TestRotation: the rotary tables turn pairs by position·theta^(−2i/width), so that the product of two rotated vectors depends
// on the difference of their positions alone.
func TestRotation(t *testing.T) {
	g := new(graph.Graph)
	m := &maker{Builder: graph.Begin(g, "rope"), args: args{"dtype": "f32", "rope": "const"}}
	const seq, width = 12, 8
	q, k := m.Param("q", graph.F32, 1, 1, 1, width), m.Param("k", graph.F32, 1, 1, 1, width)
	cos, sin := m.ropeTables(seq, width, 100)
	all := func(x graph.Node) graph.Node {
		return m.rotate("r", m.BroadcastTo(x, []int64{1, seq, 1, width}), cos, sin)
	}
	s := m.Dot(all(q), all(k), []int64{0, 2}, []int64{0, 2}, []int64{3}, []int64{3})
	m.Output("s", s)
	g.Entry, _ = m.End(s)
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	in := graph.RandomInputs(g, 3)
	out, err := graph.Eval(g, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range seq {
		for j := range seq {
			want := 0.0
			for p := range width / 2 {
				a := float64(i-j) * math.Pow(100, -float64(2*p)/width)
				q0, q1, k0, k1 := in[0].Float(p), in[0].Float(p+width/2), in[1].Float(p), in[1].Float(p+width/2)
				want += math.Cos(a)*(q0*k0+q1*k1) + math.Sin(a)*(q0*k1-q1*k0)
			}
			if got := out[0].Float(i*seq + j); math.Abs(got-want) > 1e-5 {
				t.Fatalf("positions %d and %d: %g, want %g", i, j, got, want)
			}
		}
	}
}

// TestRoundTrips writes models as HLO text and as ONNX, reads them back, and runs both.
func TestRoundTrips(t *testing.T) {
	for _, name := range examples {
		g, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		ins := graph.RandomInputs(g, 5)
		want, err := graph.Eval(g, ins)
		if err != nil {
			t.Fatal(err)
		}
		tol := graph.Tolerance(g)
		for form, trip := range map[string]func(w *bytes.Buffer, back *graph.Graph) error{
			"HLO": func(w *bytes.Buffer, back *graph.Graph) error {
				if err := hlo.Write(w, g); err != nil {
					return err
				}
				return hlo.Read(w.Bytes(), back)
			},
			"ONNX": func(w *bytes.Buffer, back *graph.Graph) error {
				if err := onnx.Write(w, g); err != nil {
					return err
				}
				return onnx.Read(w.Bytes(), "", back)
			},
		} {
			var w bytes.Buffer
			back := new(graph.Graph)
			if err := trip(&w, back); err != nil {
				t.Errorf("%s as %s: %v", name, form, err)
				continue
			}
			got, err := graph.Eval(back, ins)
			if err != nil {
				t.Errorf("%s as %s: %v", name, form, err)
				continue
			}
			for i := range want {
				// Composites are spelled out on the way, so that a few sums round elsewhere: bits agree only without them.
				exact := g.Dtype(g.Outputs[i].Node) == graph.F32 && strings.Contains(name, "resnet") && form == "HLO"
				rtol, atol := tol.RTol/10, tol.Of(want[i])/10+1e-6
				if tol.By != graph.F32 {
					rtol, atol = tol.RTol, tol.Of(want[i])+4e-3
				}
				if exact {
					rtol, atol = 0, 0
				}
				d, err := graph.Compare(got[i], want[i], rtol, atol)
				if err != nil || !d.OK() {
					t.Errorf("%s as %s: %v %v", name, form, d, err)
				}
			}
		}
	}
}

// TestTrueSizes: models of any size are built in milliseconds and hold no weights, and accept their canonical form.
func TestTrueSizes(t *testing.T) {
	for _, name := range []string{
		"zoo:llama3-8b", "zoo:llama3.1-405b?ids=1&head=1&seq=8192", "zoo:gpt2-xl?ids=1&head=1&seq=1024&batch=64", "zoo:resnet152?batch=256",
		"zoo:llama3-8b?layers=4096&batch=256&rope=param",
	} {
		start := time.Now()
		g, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s takes %v to build", name, took)
		}
		want, err := Count(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := tally(t, g); got != want {
			t.Errorf("%s: the graph holds %+v, the formula says %+v", name, got, want)
		}
		if n := g.Bytes.Len(); n > 2*2*maxRope {
			t.Errorf("%s: %d bytes of constants", name, n)
		}
		if testing.Short() && strings.Contains(name, "4096") {
			continue
		}
		if _, err := graph.Canonical(g); err != nil {
			t.Error(err)
		}
	}
}

func TestLimits(t *testing.T) {
	for name, want := range map[string]struct {
		class target.Class
		text  string
	}{
		"zoo:llama3-8b?heads=32&kv=5":         {target.User, "heads must be a multiple of kv"},
		"zoo:llama3-8b?headdim=7":             {target.User, "headdim is even"},
		"zoo:llama3-8b?seq=1048576":           {target.User, "rope=param"},
		"zoo:llama3-8b?head=yes":              {target.User, `head is 0 or 1, not "yes"`},
		"zoo:llama3-8b?size=3":                {target.User, `no setting "size=3"; there are layers, seq, batch, ids, head, rope, width, heads, kv, headdim, ffn, vocab, dtype, weights, seed`},
		"zoo:gpt2?seq=1025":                   {target.User, "above the model's 1024 positions"},
		"zoo:gpt2?width=100":                  {target.User, "no multiple of 12 heads"},
		"zoo:resnet50?size=0":                 {target.User, "size is a number from 1 to 16384"},
		"zoo:resnet50?seq=4":                  {target.User, `no setting "seq=4"; there are batch, size, classes, width, dtype, weights, seed`},
		"zoo:resnet50?batch=20000&size=16384": {target.Limit, "elements"},
		"zoo:llama3-8b?seq=1048576&rope=param&batch=65536&layers=4096&width=65536&heads=4096&headdim=4096&ffn=262144": {target.Limit, "more than 2^60 multiply-adds"},
		"zoo:llama3-8b?seq=1048576&rope=param&batch=4&layers=1":                                                       {target.Limit, "elements"},
	} {
		_, err := New(name)
		if err == nil || target.ClassOf(err) != want.class || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v, want %q", name, err, want.text)
		}
	}
}

func TestDescribe(t *testing.T) {
	es := Describe()
	if len(es) != len(Names()) {
		t.Fatalf("%d entries for %d models", len(es), len(Names()))
	}
	for _, e := range es {
		// What is described can be said: every setting at its default gives the model.
		query := "?"
		for _, s := range e.Settings {
			if s.Doc == "" || s.Values == "" {
				t.Errorf("%s: %s has no description", e.Name, s.Name)
			}
			query += s.Name + "=" + s.Default + "&"
		}
		a, err := Count(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Count(e.Name + strings.TrimSuffix(query, "&")); err != nil || a != b {
			t.Errorf("%s%s: %+v, %v", e.Name, query, b, err)
		}
	}
	if n := strings.Count(Help(), "    layers  "); n != 3 {
		t.Errorf("layers is described %d times, once a family would be 3:\n%s", n, Help())
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, name := range []string{"zoo:resnet50", "zoo:gpt2", "zoo:llama3-8b?seq=512", "zoo:llama3-8b?rope=param"} {
		b.Run(strings.TrimPrefix(name, Prefix), func(b *testing.B) {
			g := new(graph.Graph)
			b.ReportAllocs()
			for b.Loop() {
				if err := Build(g, name); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(g.Nodes.Len()), "nodes")
		})
	}
}
