package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// everywhere gives each value a slot of its own, loads what an instruction reads and stores what it writes. Arguments of edges go to a
// second set of slots, from which the target's head fetches its parameters, so that none is overwritten before it was read.
func everywhere(f *flow.Func) *flow.Answer {
	a := &flow.Answer{Place: make([]flow.Place, len(f.Ops)), Slots: 2 * f.Values()}
	slot := func(v flow.Value) flow.Place { return flow.Slot(int(v)) }
	pass := func(v flow.Value) flow.Place { return flow.Slot(f.Values() + int(v)) }
	move := func(at uint32, v flow.Value, from, to flow.Place) {
		a.Moves = append(a.Moves, flow.Move{At: at, Class: f.Class[v], From: from, To: to})
	}
	var pending []flow.Value // results of the instruction before, by register
	var regs []int
	for b := range f.Blocks {
		blk := &f.Blocks[b]
		for row := blk.Params.From; row < blk.Params.To; row++ {
			a.Place[row] = pass(f.Ops[row])
		}
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			in := &f.Insts[i]
			if i == blk.Insts.From {
				for _, v := range f.Of(blk.Params) {
					move(i, v, pass(v), flow.Reg(0))
					move(i, v, flow.Reg(0), slot(v))
				}
			}
			for k, v := range pending {
				move(i, v, flow.Reg(regs[k]), slot(v))
			}
			pending, regs = pending[:0], regs[:0]
			if in.Kind == flow.Branch {
				for e := blk.Succs.From; e < blk.Succs.To; e++ {
					to := f.Edges[e].To
					for k := range uint32(f.Edges[e].Args.Len()) {
						v, p := f.Ops[f.Edges[e].Args.From+k], f.Ops[f.Blocks[to].Params.From+k]
						move(i, v, slot(v), flow.Reg(0))
						move(i, v, flow.Reg(0), pass(p))
						a.Place[f.Edges[e].Args.From+k] = pass(p)
					}
				}
			}
			next := [flow.NumClasses]int{}
			for row := in.Uses.From; row < in.Uses.To; row++ {
				v := f.Ops[row]
				if in.Kind == flow.Call || in.Kind == flow.Return {
					a.Place[row] = slot(v)
					continue
				}
				r := next[f.Class[v]]
				next[f.Class[v]]++
				move(i, v, slot(v), flow.Reg(r))
				a.Place[row] = flow.Reg(r)
			}
			next = [flow.NumClasses]int{}
			for row := in.Uses.To; row < in.To; row++ {
				v := f.Ops[row]
				if in.Kind != flow.Op {
					a.Place[row] = slot(v)
					continue
				}
				a.Place[row] = flow.Reg(next[f.Class[v]])
				pending, regs = append(pending, v), append(regs, next[f.Class[v]])
				next[f.Class[v]]++
			}
		}
	}
	return a
}

// agree runs the function and its answer side by side along one path and compares what every use reads. Values are numbers that
// tell instruction and iteration apart; a destroyed register holds rubbish.
func agree(f *flow.Func, regs flow.File, a *flow.Answer, steps int, rng *rand.Rand) error {
	vals := make([]uint64, f.Values())
	mem := map[string]uint64{}
	at := func(p flow.Place, c flow.Class) string {
		if p.IsSlot() {
			return p.String()
		}
		return fmt.Sprintf("%d%s", c, p)
	}
	k, tick := 0, uint64(0)
	for b := uint32(0); steps > 0; {
		blk := &f.Blocks[b]
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			steps--
			k, _ = slices.BinarySearchFunc(a.Moves, i, func(m flow.Move, i uint32) int { return int(m.At) - int(i) })
			for ; k < len(a.Moves) && a.Moves[k].At == i; k++ {
				m := &a.Moves[k]
				mem[at(m.To, m.Class)] = mem[at(m.From, m.Class)]
			}
			in := &f.Insts[i]
			for row := in.Uses.From; row < in.Uses.To; row++ {
				v := f.Ops[row]
				if got := mem[at(a.Place[row], f.Class[v])]; got != vals[v] {
					return fmt.Errorf("instruction %d reads %x for value %d, which is %x", i, got, v, vals[v])
				}
			}
			if in.Kind == flow.Call {
				for c := range flow.Class(flow.NumClasses) {
					for r := range regs.N[c] - regs.Saved[c] {
						delete(mem, at(flow.Reg(r), c))
					}
				}
			}
			for row := in.Uses.To; row < in.To; row++ {
				tick++
				vals[f.Ops[row]] = tick
				if a.Place[row] != flow.NoPlace {
					mem[at(a.Place[row], f.Class[f.Ops[row]])] = tick
				}
			}
		}
		if blk.Succs.Len() == 0 {
			return nil
		}
		e := blk.Succs.From + uint32(rng.IntN(blk.Succs.Len()))
		args, params := f.Of(f.Edges[e].Args), f.Blocks[f.Edges[e].To].Params
		passed := make([]uint64, len(args))
		for j, v := range args {
			passed[j] = vals[v]
			row := params.From + uint32(j)
			if p := a.Place[row]; p != flow.NoPlace && mem[at(p, f.Class[v])] != vals[v] {
				return fmt.Errorf("parameter %d of block %d finds %x, not %x", j, f.Edges[e].To, mem[at(p, f.Class[v])], vals[v])
			}
		}
		for j := range passed {
			vals[f.Ops[params.From+uint32(j)]] = passed[j]
		}
		b = f.Edges[e].To
	}
	return nil
}

const loop = `f loop 4 8 iiiiiiii
b 0
a 0,1 <
i 2 <
j  >1:2,0
b 1 3 4
i 5 <3,4
c 6 <5
j 6 >2: >3:
b 2
j  >1:4,3
b 3
i 7 <3,6
r 7,1
`

var file = flow.File{N: [2]int{8, 8}, Saved: [2]int{5, 0}}

func TestAcceptsSlots(t *testing.T) {
	f := flowtest.Parse(t, loop)
	if err := Answer(f, file, everywhere(f)); err != nil {
		t.Fatal(err)
	}
}

// TestStaleCopies are answers that only a careless checker takes: a copy of the value of the iteration before.
func TestStaleCopies(t *testing.T) {
	f := flowtest.Parse(t, loop)
	// Parameter 3 in the slot of value 3 in both ways, but the back edge leaves the old one there.
	a := everywhere(f)
	last := f.Last(2)
	a.Moves = slices.DeleteFunc(a.Moves, func(m flow.Move) bool { return m.At == last && m.To == a.Place[f.Blocks[1].Params.From] })
	if err := Answer(f, file, a); err == nil || !strings.Contains(err.Error(), "value 3 is expected") {
		t.Errorf("a parameter that keeps its value around the loop: %v", err)
	}
}

// mutate changes one thing.
func mutate(a *flow.Answer, regs flow.File, rng *rand.Rand) *flow.Answer {
	m := &flow.Answer{Place: slices.Clone(a.Place), Moves: slices.Clone(a.Moves), Slots: a.Slots}
	pick := func() flow.Place {
		if rng.IntN(2) == 0 {
			return flow.Reg(rng.IntN(regs.N[0]))
		}
		return flow.Slot(rng.IntN(a.Slots))
	}
	switch k := rng.IntN(len(m.Moves)); rng.IntN(5) {
	case 0:
		m.Moves = slices.Delete(m.Moves, k, k+1)
	case 1:
		m.Moves[k].From = pick()
	case 2:
		m.Moves[k].To = pick()
	case 3:
		m.Place[rng.IntN(len(m.Place))] = pick()
	case 4:
		if k > 0 && m.Moves[k].At == m.Moves[k-1].At {
			m.Moves[k], m.Moves[k-1] = m.Moves[k-1], m.Moves[k]
		}
	}
	return m
}

// TestMutations holds the checker against running the answer: what it takes must run, and most of what is broken it must refuse.
func TestMutations(t *testing.T) {
	f := flowtest.Parse(t, loop)
	good := everywhere(f)
	rng := rand.New(rand.NewPCG(1, 2))
	var c Checker
	refused := 0
	const tries = 3000
	for range tries {
		a := mutate(good, file, rng)
		err := c.Answer(f, file, a)
		if err != nil {
			refused++
			continue
		}
		for range 5 {
			if err := agree(f, file, a, 60, rng); err != nil {
				t.Fatalf("taken, but %v", err)
			}
		}
	}
	if refused < tries/2 {
		t.Errorf("%d of %d broken answers refused", refused, tries)
	}
}

func TestRefusesShapes(t *testing.T) {
	f := flowtest.Parse(t, loop)
	for name, broken := range map[string]func(*flow.Answer){
		"operands":      func(a *flow.Answer) { a.Place = a.Place[1:] },
		"register 8":    func(a *flow.Answer) { a.Moves[0].To = flow.Reg(8) },
		"from s":        func(a *flow.Answer) { a.Moves[0].From, a.Moves[0].To = flow.Slot(0), flow.Slot(1) },
		"in a register": func(a *flow.Answer) { a.Place[f.Insts[1].Uses.To] = flow.Slot(0) },
		"of 1":          func(a *flow.Answer) { a.Slots = 1 },
		"after one":     func(a *flow.Answer) { a.Moves[0].At = 1000 },
		"both written":  func(a *flow.Answer) { d := f.Insts[0].Defs(); a.Place[d.From+1] = a.Place[d.From] },
	} {
		a := everywhere(f)
		broken(a)
		if err := Answer(f, file, a); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPublicFunctions proves the plainest answer on real functions and sees broken ones refused or harmless.
func TestPublicFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	wide := flow.File{N: [2]int{60, 60}}
	for _, name := range []string{"case.ssa", "zigcc.ssa"} {
		var c Checker
		for _, f := range flowtest.Public(t, name)[:60] {
			a := everywhere(f)
			if err := c.Answer(f, wide, a); err != nil {
				t.Fatal(err)
			}
			if err := agree(f, wide, a, 1000, rng); err != nil {
				t.Fatal(err)
			}
			for range min(5, len(a.Moves)) {
				m := mutate(a, wide, rng)
				if c.Answer(f, wide, m) != nil {
					continue
				}
				if err := agree(f, wide, m, 3000, rng); err != nil {
					t.Fatalf("%s %s: taken, but %v", name, f.Name, err)
				}
			}
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	fs := flowtest.Public(b, "gofmt8.ssa.gz")
	wide := flow.File{N: [2]int{60, 60}}
	answers := make([]*flow.Answer, len(fs))
	for k, f := range fs {
		answers[k] = everywhere(f)
	}
	var c Checker
	for b.Loop() {
		for k, f := range fs {
			if err := c.Answer(f, wide, answers[k]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flowtest.Insts(fs)), "ns/inst")
}
