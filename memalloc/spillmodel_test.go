package memalloc

import (
	"testing"
	"time"
)

// BenchmarkSpillModel is SB on a layer in a part of the machine's memory, a third for gpt2, and for llama, two of whose operands fill a
// third, two fifths: time of the processor, rounds, and what is moved.
func BenchmarkSpillModel(b *testing.B) {
	for _, c := range []struct {
		name    string
		percent int64
	}{{"zoo:gpt2?layers=1&seq=1024", 33}, {"zoo:llama3-8b?layers=1&seq=2048", 40}} {
		name := c.name
		b.Run(name, func(b *testing.B) {
			var ws Workspace
			least := time.Duration(1<<63 - 1)
			var mt Metrics
			var bytes int64
			for b.Loop() {
				b.StopTimer()
				p := lowerModel(b, zooModel(b, name), 30)
				if _, err := PSUM(&p.m, p.f, &ws, Options{}); err != nil {
					b.Fatal(err)
				}
				bytes = -moved(&p.m, p.f)
				b.StartTimer()
				start, cpu := time.Now(), cpuTime()
				var err error
				if mt, err = SB(&p.m, p.f, &ws, Options{SBBytes: int64(p.m.Gen.SBBytes) * c.percent / 100}); err != nil {
					b.Fatal(err)
				}
				spent := cpuTime() - cpu
				if spent == 0 {
					spent = time.Since(start)
				}
				least = min(least, spent)
				bytes += moved(&p.m, p.f)
			}
			b.ReportMetric(float64(least)/1e6, "ms")
			b.ReportMetric(float64(mt.Iterations), "rounds")
			b.ReportMetric(float64(bytes)/1e6, "MB-moved")
			b.ReportMetric(float64(mt.Nodes), "nodes")
		})
	}
}
