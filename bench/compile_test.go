package bench

import (
	"runtime"
	"testing"
)

var models = []string{
	"zoo:llama3-8b?layers=1&seq=512",
	"zoo:llama3-8b?layers=2&seq=512",
	"zoo:llama3-8b?layers=4&seq=512",
	big,
	"zoo:llama3-8b?layers=2&seq=2048",
	"zoo:llama3-8b?layers=4&seq=2048",
	"zoo:gpt2",
	"zoo:resnet50",
	"zoo:mlp",
}

// BenchmarkCompile is the way from ir.Module to the finished package, compressed and hashed: one worker, nothing checked and
// no debug data, the second and later modules through it. inst/s counts the instructions that enter the plane. B/inst is
// what is live on the heap afterwards beside the model: module, workspaces and package.
func BenchmarkCompile(b *testing.B) {
	for _, model := range models {
		b.Run(spell(model), func(b *testing.B) {
			s := load(b, model)
			before := live()
			c := newCompiler()
			n := s.lower(b, &c.module)
			c.run(b)
			b.ReportAllocs()
			var cpu cpuMeter
			for b.Loop() {
				b.StopTimer()
				s.lower(b, &c.module)
				b.StartTimer()
				cpu.begin()
				c.run(b)
				cpu.end()
			}
			cpu.report(b, n)
			rate(b, float64(n), "inst/s")
			b.ReportMetric(float64(live()-before)/float64(n), "B/inst")
			b.ReportMetric(float64(len(c.out.Bytes()))/float64(n), "package-B/inst")
			runtime.KeepAlive(c)
			runtime.KeepAlive(s)
		})
	}
}

// BenchmarkModel is a whole compile from the graph, as a batch of models meets it: canonical form, tiles, plane, package.
func BenchmarkModel(b *testing.B) {
	for _, model := range []string{"zoo:llama3-8b?layers=1&seq=512", "zoo:gpt2", "zoo:resnet50", "zoo:mlp"} {
		b.Run(spell(model), func(b *testing.B) {
			s := load(b, model)
			c := newCompiler()
			c.program.Module, c.program.Graph = nil, s.g
			c.run(b)
			b.ReportAllocs()
			for b.Loop() {
				c.run(b)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "models/s")
		})
	}
}
