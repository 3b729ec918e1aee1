package scan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// TestPublicFunctions proves every answer and holds the moves of each file to a third of the local allocator's.
func TestPublicFunctions(t *testing.T) {
	var a Allocator
	var ans flow.Answer
	var c check.Checker
	for _, p := range flowtest.Published {
		if testing.Short() && p.Name == "gofmt8.ssa.gz" {
			continue
		}
		var n flow.Counts
		for _, f := range flowtest.Public(t, p.Name) {
			if err := a.Run(f, flowtest.Machine(p.K), &ans); err != nil {
				t.Fatal(err)
			}
			if err := c.Answer(f, flowtest.Machine(p.K), &ans); err != nil {
				t.Fatal(err)
			}
			n.Add(ans.Count())
		}
		t.Logf("%s, %d registers: %d moves, %.3f of the backtracking allocator's, %+v", p.Name, p.K, n.Total(), float64(n.Total())/float64(p.Ion.Total()), n)
		if 3*n.Total() >= p.Fastalloc {
			t.Errorf("%s, %d registers: %d moves are not under a third of %d", p.Name, p.K, n.Total(), p.Fastalloc)
		}
	}
}

// BenchmarkScan allocates whole files, liveness included, through one workspace.
func BenchmarkScan(b *testing.B) {
	for _, p := range flowtest.Published {
		b.Run(fmt.Sprintf("%s/%d", strings.TrimSuffix(strings.TrimSuffix(p.Name, ".gz"), ".ssa"), p.K), func(b *testing.B) {
			fs := flowtest.Public(b, p.Name)
			var a Allocator
			var ans flow.Answer
			moves := 0
			run := func() {
				moves = 0
				for _, f := range fs {
					if err := a.Run(f, flowtest.Machine(p.K), &ans); err != nil {
						b.Fatal(err)
					}
					moves += len(ans.Moves)
				}
			}
			run()
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flowtest.Insts(fs)), "ns/inst")
			b.ReportMetric(float64(moves), "moves")
		})
	}
}

func TestAllocatesNothingAgain(t *testing.T) {
	fs := flowtest.Public(t, "case.ssa")
	var a Allocator
	var ans flow.Answer
	run := func() {
		for _, f := range fs {
			if err := a.Run(f, flowtest.Machine(8), &ans); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
