package scan

import (
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// tryRandom allocates one random function for one random file and proves the answer.
func tryRandom(t *testing.T, a *Allocator, ans *flow.Answer, c *check.Checker, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	k := 3 + rng.IntN(14)
	regs := flow.File{N: [2]int{k, 3 + rng.IntN(14)}, Saved: [2]int{rng.IntN(k + 1), 0}}
	f, text := flowtest.Random(rng, flowtest.Shape{
		Blocks: 1 + rng.IntN(20), Insts: rng.IntN(12), Operands: 3, Calls: rng.IntN(30), Floats: rng.IntN(60), Params: rng.IntN(5), Far: rng.IntN(100),
	})
	if err := a.Run(f, regs, ans); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	if err := c.Answer(f, regs, ans); err != nil {
		t.Fatalf("seed %d: %v\n%s%v", seed, err, text, ans.Moves)
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
