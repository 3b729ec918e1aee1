package split

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// BenchmarkSplit allocates whole files, liveness included, through one workspace.
func BenchmarkSplit(b *testing.B) {
	for _, ref := range flowtest.Published {
		b.Run(fmt.Sprintf("%s/%d", strings.TrimSuffix(strings.TrimSuffix(ref.Name, ".gz"), ".ssa"), ref.K), func(b *testing.B) {
			fs := flowtest.Public(b, ref.Name)
			var a Allocator
			var ans flow.Answer
			insts, moves := 0, 0
			for _, f := range fs {
				if err := a.Run(f, flowtest.Machine(ref.K), &ans); err != nil {
					b.Fatal(err)
				}
				insts += len(f.Insts)
				moves += ans.Count().Total()
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range fs {
					if err := a.Run(f, flowtest.Machine(ref.K), &ans); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(insts), "ns/inst")
			b.ReportMetric(float64(moves), "moves")
		})
	}
}
