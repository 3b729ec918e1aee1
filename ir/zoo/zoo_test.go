package zoo

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// examples are settings that every test goes through.
var examples = []string{
	"zoo:mlp",
	"zoo:mlp?layers=1",
	"zoo:mlp?layers=5&batch=3&width=17&in=9&out=2&act=gelu&dtype=bf16",
	"zoo:mlp?weights=param&act=none&layers=3",
	"zoo:mlp?seed=77",
	"zoo:gpt2?layers=2&seq=9&width=48&heads=3&ffn=64&vocab=50&positions=16",
	"zoo:gpt2?layers=1&seq=5&batch=3&width=32&heads=4&ffn=40&vocab=50&positions=5&ids=1&head=1&dtype=bf16",
	"zoo:gpt2?layers=1&seq=4&width=32&heads=2&ffn=64&vocab=30&positions=4&head=1&weights=param",
	"zoo:gpt2-xl?layers=1&seq=6&width=64&heads=4&ffn=64&vocab=30&positions=8&ids=1&dtype=f16",
	"zoo:llama3-8b?layers=2&seq=10&width=64&heads=4&kv=2&headdim=16&ffn=96&vocab=70",
	"zoo:llama3-8b?layers=1&seq=7&batch=2&width=32&heads=6&kv=2&headdim=8&ffn=48&vocab=70&ids=1&head=1&dtype=f32",
	"zoo:llama3-8b?layers=2&seq=8&width=64&heads=4&kv=1&headdim=16&ffn=96&rope=param&dtype=f16",
	"zoo:llama2-7b?layers=1&seq=8&width=64&heads=4&kv=4&headdim=16&ffn=96&vocab=20&head=1&weights=param",
	"zoo:resnet50?size=33&width=4&classes=7&batch=2",
	"zoo:resnet50?size=32&width=8&classes=10&weights=param",
	"zoo:resnet101?size=17&width=2&classes=3&dtype=bf16",
	"zoo:resnet152?size=1&width=1&classes=1&dtype=f16",
}

// tally counts a graph as Counts does.
func tally(t *testing.T, g *graph.Graph) Counts {
	var c Counts
	c.Outputs = int64(len(g.Outputs))
	for n := graph.Node(1); int(n) < g.Nodes.Len(); n++ {
		switch op := g.Op(n); op {
		case graph.OpConstant:
			if g.Consts.At(g.Nodes.At(n).Const).Kind == graph.ConstElided {
				c.Weights += g.Elements(g.Nodes.At(n).Type)
			}
		case graph.OpBatchNormInference:
			for _, x := range g.Operands(n)[3:] {
				c.Statistics += g.Elements(g.Nodes.At(x).Type)
			}
		case graph.OpParameter:
			if strings.Contains(g.NodeName(n), "/") {
				c.Weights += g.Elements(g.Nodes.At(n).Type)
			} else {
				c.Inputs++
			}
		case graph.OpDot, graph.OpConv:
			w, ok := graph.NodeWork(g, n)
			if !ok {
				t.Fatalf("work of %s overflows", g.NodeString(n))
			}
			c.MACs += w
		}
	}
	return c
}

func TestModels(t *testing.T) {
	g := new(graph.Graph)
	for _, name := range examples {
		t.Run(name, func(t *testing.T) {
			if err := Build(g, name); err != nil {
				t.Fatal(err)
			}
			if err := graph.Check(g); err != nil {
				t.Fatal(err)
			}
			want, err := Count(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := tally(t, g); got != want {
				t.Errorf("the graph holds %+v, the formula says %+v", got, want)
			}
			c, err := graph.Canonical(g)
			if err != nil {
				t.Fatal(err)
			}
			ins := graph.RandomInputs(g, 1)
			a, err := graph.Eval(g, ins)
			if err != nil {
				t.Fatal(err)
			}
			b, err := graph.Eval(c, ins)
			if err != nil || !bytes.Equal(a[0].Data, b[0].Data) {
				t.Errorf("the canonical form differs (%v)", err)
			}
			// Values neither die out nor explode.
			sum := 0.0
			for _, v := range a[0].Floats() {
				sum += v * v
			}
			if rms := math.Sqrt(sum / float64(a[0].Len())); !(rms > 1e-3 && rms < 1e6) {
				t.Errorf("output of size %g", rms)
			}
		})
	}
}

func TestSameNameSameGraph(t *testing.T) {
	run := func(name string) []byte {
		g, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := graph.Eval(g, graph.RandomInputs(g, 1))
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Data
	}
	if !bytes.Equal(run("zoo:mlp"), run("zoo:mlp?seed=1")) {
		t.Error("two builds differ")
	}
	if bytes.Equal(run("zoo:mlp"), run("zoo:mlp?seed=2")) {
		t.Error("the seed changes nothing")
	}
}

// TestLargeIsCheap: the largest settings build without their weights.
func TestLargeIsCheap(t *testing.T) {
	name := "zoo:mlp?layers=4096&batch=65536&width=65536&in=65536&out=65536"
	c, err := Count(name)
	if err != nil || c.MACs != 4096<<48 {
		t.Fatalf("%+v %v", c, err)
	}
	g, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := tally(t, g); got != c {
		t.Errorf("the graph holds %+v, the formula says %+v", got, c)
	}
	if g.Bytes.Len() > 0 {
		t.Errorf("%d bytes of constants", g.Bytes.Len())
	}
	if _, err := graph.Eval(g, nil); err == nil {
		t.Error("a run without inputs is accepted")
	}
}

func TestRefusals(t *testing.T) {
	for name, want := range map[string]string{
		"mlp":                          "is no generated model",
		"zoo:":                         "there are mlp",
		"zoo:resnet":                   `no generated model "resnet"; there are mlp`,
		"zoo:mlp?depth=3":              `no setting "depth=3"; there are layers, batch, width, in, out, act, dtype, weights, seed`,
		"zoo:mlp?layers":               `no setting "layers"`,
		"zoo:mlp?layers=0":             `layers is a number from 1 to 4096, not "0"`,
		"zoo:mlp?layers=9999999999999": "layers is a number",
		"zoo:mlp?layers=x":             "layers is a number",
		"zoo:mlp?act=swish":            "act is relu or gelu",
		"zoo:mlp?layers=1&layers=2":    "layers is given twice",
		"zoo:mlp?dtype=f64":            "dtype is f32 or bf16",
	} {
		_, err := New(name)
		if err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestTable: every default passes its own check, and names are given once.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range models {
		if seen[m.name] {
			t.Errorf("%s is there twice", m.name)
		}
		seen[m.name] = true
		keys := map[string]bool{}
		for _, k := range m.allKeys() {
			if keys[k.name] {
				t.Errorf("%s: key %s is there twice", m.name, k.name)
			}
			keys[k.name] = true
			if err := k.check(k.def); err != nil {
				t.Errorf("%s: default: %v", m.name, err)
			}
		}
		if !strings.Contains(Help(), Prefix+m.name+" ") || !strings.Contains(Help(), "  "+m.doc+"\n") {
			t.Errorf("%s is missing from the help", m.name)
		}
	}
}
