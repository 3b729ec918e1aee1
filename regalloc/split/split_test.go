package split

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// TestPublicFunctions proves every answer and holds the moves of each file to 0.6 of the backtracking allocator's: none needs a half.
func TestPublicFunctions(t *testing.T) {
	var a Allocator
	var ans flow.Answer
	var c check.Checker
	for _, ref := range flowtest.Published {
		if testing.Short() && ref.Name == "gofmt8.ssa.gz" {
			continue
		}
		var sum flow.Counts
		slots := 0
		for _, f := range flowtest.Public(t, ref.Name) {
			if err := a.Run(f, flowtest.Machine(ref.K), &ans); err != nil {
				t.Fatal(err)
			}
			if err := c.Answer(f, flowtest.Machine(ref.K), &ans); err != nil {
				t.Fatalf("%s, %d registers: %v", ref.Name, ref.K, err)
			}
			sum.Add(ans.Count())
			slots += ans.Slots
		}
		t.Logf("%s, %d registers: %d moves, %.3f of the backtracking allocator's, %+v, %d slots", ref.Name, ref.K, sum.Total(),
			float64(sum.Total())/float64(ref.Ion.Total()), sum, slots)
		if 10*sum.Total() > 6*ref.Ion.Total() {
			t.Errorf("%s, %d registers: %d moves, more than 0.6 of %d", ref.Name, ref.K, sum.Total(), ref.Ion.Total())
		}
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
