package plan

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"
)

// benchPlan reports the ratio, and best-ns: the least time of a plan, which a shared machine disturbs least.
func benchPlan(b *testing.B, p *Problem, opt Options) {
	var pl Planner
	best := time.Duration(math.MaxInt64)
	var r Result
	plan := func() {
		start := time.Now()
		var err error
		if r, err = pl.Plan(p, opt); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	plan()
	b.ReportAllocs()
	for b.Loop() {
		plan()
	}
	if _, err := Check(p, r.Offsets, opt.Capacity); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(r.Ratio, "ratio")
	b.ReportMetric(float64(best), "best-ns")
	b.ReportMetric(float64(r.Work), "steps")
}

func BenchmarkFast(b *testing.B) {
	for _, c := range published {
		b.Run(c.name, func(b *testing.B) { benchPlan(b, challenge(b, c.name), Options{}) })
	}
}

func BenchmarkImprove10ms(b *testing.B) {
	for _, c := range published {
		b.Run(c.name, func(b *testing.B) {
			benchPlan(b, challenge(b, c.name), Options{Mode: Improve, TimeLimit: 10 * time.Millisecond})
		})
	}
}

// BenchmarkExact also reports how many times MiniMalloc's own time the best run takes.
func BenchmarkExact(b *testing.B) {
	for _, c := range published {
		b.Run(c.name, func(b *testing.B) {
			benchPlan(b, challenge(b, c.name), Options{Mode: Exact, Capacity: publishedCapacity})
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/c.seconds, "of-minimalloc")
		})
	}
}

func BenchmarkLarge(b *testing.B) {
	for _, name := range []string{"G_1", "resnet50", "Y_1"} {
		b.Run(name, func(b *testing.B) { benchPlan(b, shared(b, "idealloc/"+name+".csv"), Options{}) })
	}
}

// BenchmarkCold plans with a new planner each time: allocated bytes are all that the plan needs.
func BenchmarkCold(b *testing.B) {
	for _, path := range []string{"minimalloc/A.1048576.csv", "idealloc/Y_1.csv"} {
		b.Run(path, func(b *testing.B) {
			p := shared(b, path)
			b.ReportAllocs()
			for b.Loop() {
				var pl Planner
				if _, err := pl.Plan(p, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGrowth: nanoseconds a buffer, flat from 10,000 to 1,000,000 buffers with some 100 live at once.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := chainProblem(n, 1)
			benchPlan(b, p, Options{})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/buffer")
		})
	}
}

func BenchmarkReadCSV(b *testing.B) {
	p := shared(b, "idealloc/Y_1.csv")
	var text bytes.Buffer
	if err := WriteCSV(&text, p, make([]int64, p.Len())); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadCSV(text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	p := shared(b, "idealloc/Y_1.csv")
	var pl Planner
	r, err := pl.Plan(p, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Check(p, r.Offsets, 0); err != nil {
			b.Fatal(err)
		}
	}
}
