package scan

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// tryRandom allocates one random function and proves the answer.
func tryRandom(t *testing.T, a *Allocator, ans *flow.Answer, c *check.Checker, seed uint64) {
	t.Helper()
	f, text, regs := flowtest.Try(seed)
	if err := a.Run(f, regs, ans); err != nil {
		t.Fatalf("seed %d: %+v: %v\n%s", seed, regs, err, text)
	}
	if err := c.Answer(f, regs, ans); err != nil {
		t.Fatalf("seed %d: %+v: %v\n%s%v", seed, regs, err, text, ans.Moves)
	}
}

func TestRandomFunctions(t *testing.T) {
	var a Allocator
	var ans flow.Answer
	var c check.Checker
	n := uint64(3000)
	if testing.Short() {
		n = 300
	}
	for seed := range n {
		tryRandom(t, &a, &ans, &c, seed)
	}
}

func FuzzRandomFunctions(f *testing.F) {
	f.Add(uint64(1))
	var a Allocator
	var ans flow.Answer
	var c check.Checker
	f.Fuzz(func(t *testing.T, seed uint64) { tryRandom(t, &a, &ans, &c, seed) })
}
