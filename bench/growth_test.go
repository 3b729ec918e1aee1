package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// maxGrowth is what twice the layers may hold.
const maxGrowth = 2.2

// cost of one compile: the cheapest of some in processor time, which the machine's other work disturbs least (on the clock
// where that is unknown), and the heap that stays.
type cost struct {
	time time.Duration
	held int64
}

// measure compiles models turn by turn, so that a busy moment of the machine falls on all of them.
func measure(tb testing.TB, rounds int, models ...string) []cost {
	out := make([]cost, len(models))
	src := make([]*source, len(models))
	all := make([]*compiler, len(models))
	for k, model := range models {
		src[k] = load(tb, model)
		before := live()
		all[k] = newCompiler()
		src[k].lower(tb, &all[k].module)
		all[k].run(tb)
		out[k].held = live() - before
	}
	times := make([][]time.Duration, len(models))
	for range rounds {
		for k, c := range all {
			src[k].lower(tb, &c.module)
			runtime.GC()
			start, cpu := time.Now(), cpuTime()
			c.run(tb)
			spent := cpuTime() - cpu
			if spent == 0 {
				spent = time.Since(start)
			}
			times[k] = append(times[k], spent)
		}
	}
	for k := range out {
		out[k].time = slices.Min(times[k])
	}
	runtime.KeepAlive(all)
	return out
}

func layers(n, seq int) string { return fmt.Sprintf("zoo:llama3-8b?layers=%d&seq=%d", n, seq) }

// BenchmarkGrowth reports what each doubling of the layers costs, as a factor.
func BenchmarkGrowth(b *testing.B) {
	for _, seq := range []int{512, 2048} {
		b.Run(fmt.Sprintf("llama3-8b/seq=%d", seq), func(b *testing.B) {
			var c []cost
			for b.Loop() {
				c = measure(b, 3, layers(1, seq), layers(2, seq), layers(4, seq))
			}
			for k, name := range []string{"1to2", "2to4"} {
				b.ReportMetric(float64(c[k+1].time)/float64(c[k].time), "x-time-"+name)
				b.ReportMetric(float64(c[k+1].held)/float64(c[k].held), "x-B-"+name)
			}
		})
	}
}

// Twice the layers hold at most 2.2 times the memory. The time is for BenchmarkGrowth to show: a busy machine spoils it.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles transformers of 1, 2 and 4 layers")
	}
	c := measure(t, 1, layers(1, 512), layers(2, 512), layers(4, 512))
	for k := range c[1:] {
		mem := float64(c[k+1].held) / float64(c[k].held)
		t.Logf("%d to %d layers: %.2f times the time, %.2f times the memory", 1<<k, 2<<k, float64(c[k+1].time)/float64(c[k].time), mem)
		if mem > maxGrowth {
			t.Errorf("%d to %d layers: memory grows %.2f times", 1<<k, 2<<k, mem)
		}
	}
}
