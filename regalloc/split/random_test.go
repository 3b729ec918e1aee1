package split

import (
	"math/rand/v2"
	"slices"
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
	n := uint64(4000)
	if testing.Short() {
		n = 400
	}
	for seed := range n {
		tryRandom(t, &a, &ans, &c, seed)
	}
}

// A workspace that has seen other functions gives the answer of a fresh one.
func TestSameAnswerAgain(t *testing.T) {
	var used Allocator
	var a flow.Answer
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f, _ := flowtest.Random(rng, flowtest.Shape{Blocks: 1 + rng.IntN(30), Insts: 12, Operands: 3, Calls: 20, Floats: 20, Params: 4, Far: 50})
		regs := flow.File{N: [2]int{3 + rng.IntN(6), 3}, Saved: [2]int{2, 1}}
		if err := used.Run(f, regs, &a); err != nil {
			t.Fatal(err)
		}
		var fresh Allocator
		var b flow.Answer
		if err := fresh.Run(f, regs, &b); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Place, b.Place) || !slices.Equal(a.Moves, b.Moves) || a.Slots != b.Slots {
			t.Fatalf("seed %d: two answers", seed)
		}
	}
}

func FuzzRandomFunctions(f *testing.F) {
	f.Add(uint64(1))
	var a Allocator
	var ans flow.Answer
	var c check.Checker
	f.Fuzz(func(t *testing.T, seed uint64) { tryRandom(t, &a, &ans, &c, seed) })
}
