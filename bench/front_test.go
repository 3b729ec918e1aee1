package bench

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/tile"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

// BenchmarkTile lowers a canonical graph into a module and a workspace that are used again.
func BenchmarkTile(b *testing.B) {
	for _, model := range []string{"zoo:llama3-8b?layers=1&seq=512", big, "zoo:gpt2", "zoo:resnet50"} {
		b.Run(spell(model), func(b *testing.B) {
			s := load(b, model)
			var m ir.Module
			var w tile.Workspace
			n := s.lower(b, &m)
			_, err := w.Lower(s.g, s.gen, tile.Options{}, &m)
			must(b, err)
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				_, err := w.Lower(s.g, s.gen, tile.Options{}, &m)
				must(b, err)
			}
			rate(b, float64(n), "inst/s")
			cpuRate(b, start, float64(n), "inst/s")
		})
	}
}

// BenchmarkCanonical brings graphs into the form that lowering takes.
func BenchmarkCanonical(b *testing.B) {
	for _, model := range []string{"zoo:llama3-8b?layers=4&seq=512", "zoo:resnet50"} {
		b.Run(spell(model), func(b *testing.B) {
			g, err := zoo.New(model)
			must(b, err)
			b.ReportAllocs()
			for b.Loop() {
				_, err := graph.Canonical(g)
				must(b, err)
			}
			rate(b, float64(g.Nodes.Len()-1), "nodes/s")
		})
	}
}

// BenchmarkReadHLO reads text that hlo.Write spelled, and public modules, into a graph that is used again.
func BenchmarkReadHLO(b *testing.B) {
	read := func(b *testing.B, data []byte) {
		var r hlo.Reader
		var g graph.Graph
		must(b, r.Read(data, &g))
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		start := cpuTime()
		for b.Loop() {
			must(b, r.Read(data, &g))
		}
		rate(b, float64(g.Nodes.Len()-1), "nodes/s")
		cpuRate(b, start, float64(len(data))/1e6, "MB/s")
	}
	for _, model := range []string{"zoo:llama3-8b?layers=4&seq=512", "zoo:resnet50"} {
		b.Run(spell(model), func(b *testing.B) {
			g, err := zoo.New(model)
			must(b, err)
			var text bytes.Buffer
			must(b, hlo.Write(&text, g))
			read(b, text.Bytes())
		})
	}
	for _, f := range [][]string{{"mixtral", "hlo", "openxla", "hlo_mixtral_8x7b_bf16_1x8.hlo.gz"}, {"bert-train", "hlo", "neuron", "bert_train_step.hlo.txt.gz"}} {
		b.Run(f[0], func(b *testing.B) { read(b, shared(b, f[1:]...)) })
	}
}

// BenchmarkReadONNX reads wire format: a model whose weights are in the file, and one that is all nodes.
func BenchmarkReadONNX(b *testing.B) {
	read := func(b *testing.B, data []byte) {
		var g graph.Graph
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		start := cpuTime()
		for b.Loop() {
			must(b, onnx.Read(data, "", &g))
		}
		rate(b, float64(g.Nodes.Len()-1), "nodes/s")
		cpuRate(b, start, float64(len(data))/1e6, "MB/s")
	}
	b.Run("mlp/layers=512/width=16/weights=param", func(b *testing.B) {
		g, err := zoo.New("zoo:mlp?layers=512&width=16&weights=param")
		must(b, err)
		var file bytes.Buffer
		must(b, onnx.Write(&file, g))
		read(b, file.Bytes())
	})
	for _, name := range []string{"light_densenet121", "light_resnet50"} {
		b.Run(name, func(b *testing.B) { read(b, shared(b, "onnx", "light", name+".onnx")) })
	}
}

// BenchmarkReadIR reads a finished module, placements, edges and semaphores included: BIR JSON and text IR.
func BenchmarkReadIR(b *testing.B) {
	c, _ := until(b, "zoo:llama3-8b?layers=1&seq=512", "codegen")
	var json, text bytes.Buffer
	must(b, bir.Write(&json, &c.module))
	must(b, ir.Print(&text, &c.module))
	var r bir.Reader
	for _, f := range []struct {
		name string
		data []byte
		read func([]byte, *ir.Module) error
	}{{"bir", json.Bytes(), r.Read}, {"rir", text.Bytes(), ir.Parse}} {
		b.Run(fmt.Sprintf("format=%s", f.name), func(b *testing.B) {
			var m ir.Module
			must(b, f.read(f.data, &m))
			n := instCount(&m)
			b.SetBytes(int64(len(f.data)))
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				must(b, f.read(f.data, &m))
			}
			rate(b, float64(n), "inst/s")
			cpuRate(b, start, float64(len(f.data))/1e6, "MB/s")
		})
	}
}

// BenchmarkWriteIR writes the same module.
func BenchmarkWriteIR(b *testing.B) {
	c, n := until(b, "zoo:llama3-8b?layers=1&seq=512", "codegen")
	for _, f := range []struct {
		name  string
		write func(*bytes.Buffer) error
	}{
		{"bir", func(w *bytes.Buffer) error { return bir.Write(w, &c.module) }},
		{"rir", func(w *bytes.Buffer) error { return ir.Print(w, &c.module) }},
	} {
		b.Run(fmt.Sprintf("format=%s", f.name), func(b *testing.B) {
			var out bytes.Buffer
			must(b, f.write(&out))
			b.SetBytes(int64(out.Len()))
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				must(b, f.write(&out))
			}
			rate(b, float64(n), "inst/s")
		})
	}
}
