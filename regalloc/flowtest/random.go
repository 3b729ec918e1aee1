package flowtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// Shape bounds a function.
type Shape struct {
	Blocks   int // before critical edges are split
	Insts    int // in a block, at most
	Operands int // of one class that an instruction has in registers at once, at most
	Calls    int // of 100 instructions
	Floats   int // of 100 values
	Params   int // of a block where control meets, at most
	Far      int // of 100 uses that take any value there is, not a recent one
	Results  int // of a call, at most; at least two
	Lost     int // of 100 blocks that are not made sure to be reached
}

// Random gives a function of the shape as text and in tables.
func Random(rng *rand.Rand, s Shape) (*flow.Func, string) {
	g := gen{rng: rng, s: s}
	g.graph()
	g.dominators()
	text := g.text()
	var f flow.Func
	if err := flow.NewReader(strings.NewReader(text)).Next(&f); err != nil {
		panic(fmt.Sprintf("flowtest: %v in\n%s", err, text))
	}
	return &f, text
}

// Try is a random function of any shape with a register file for it: the least that holds its instructions, a few registers more, or
// the largest.
func Try(seed uint64) (f *flow.Func, text string, regs flow.File) {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := Shape{Blocks: 1 + rng.IntN(30), Insts: rng.IntN(16), Operands: 1 + rng.IntN(3), Calls: rng.IntN(40), Floats: rng.IntN(60),
		Params: rng.IntN(6), Far: rng.IntN(100), Results: rng.IntN(8), Lost: rng.IntN(2) * rng.IntN(30)}
	f, text = Random(rng, s)
	for k := range regs.N {
		regs.N[k] = s.Operands + rng.IntN(2)*rng.IntN(12)
		if rng.IntN(20) == 0 {
			regs.N[k] = flow.MaxRegs
		}
		regs.Saved[k] = rng.IntN(2) * rng.IntN(regs.N[k]+1)
	}
	return f, text, regs
}

type gen struct {
	rng   *rand.Rand
	s     Shape
	succs [][]int
	preds [][]int
	dom   [][]bool // dom[b][d]: d dominates b
	class []byte
}

// graph draws edges, forwards to keep blocks reachable and in any direction, and splits the critical ones.
func (g *gen) graph() {
	n := max(1, g.s.Blocks)
	g.succs = make([][]int, n)
	add := func(a, b int) {
		for _, x := range g.succs[a] {
			if x == b {
				return
			}
		}
		g.succs[a] = append(g.succs[a], b)
	}
	for b := 1; b < n; b++ {
		if g.s.Lost == 0 || g.rng.IntN(100) >= g.s.Lost {
			add(max(0, b-1-g.rng.IntN(3)), b)
		}
	}
	for range g.rng.IntN(n + 1) {
		if n > 1 {
			add(g.rng.IntN(n), 1+g.rng.IntN(n-1))
		}
	}
	g.link()
	for a := range n {
		for k, b := range g.succs[a] {
			if len(g.succs[a]) > 1 && len(g.preds[b]) > 1 {
				g.succs = append(g.succs, []int{b})
				g.succs[a][k] = len(g.succs) - 1
			}
		}
	}
	g.link()
}

func (g *gen) link() {
	g.preds = make([][]int, len(g.succs))
	for a, ss := range g.succs {
		for _, b := range ss {
			g.preds[b] = append(g.preds[b], a)
		}
	}
}

// dominators is the textbook fixpoint.
func (g *gen) dominators() {
	n := len(g.succs)
	g.dom = make([][]bool, n)
	for b := range g.dom {
		g.dom[b] = make([]bool, n)
		for d := range g.dom[b] {
			g.dom[b][d] = b > 0 || d == 0
		}
	}
	for again := true; again; {
		again = false
		for b := 1; b < n; b++ {
			for d := range n {
				if d == b || !g.dom[b][d] {
					continue
				}
				for _, p := range g.preds[b] {
					if !g.dom[p][d] {
						g.dom[b][d], again = false, true
						break
					}
				}
			}
		}
	}
}

func (g *gen) text() string {
	n := len(g.succs)
	lines := make([][]string, n)
	defs := make([][]int, n)
	params := make([][]int, n)
	fresh := func(b int) int {
		c := byte('i')
		if g.rng.IntN(100) < g.s.Floats {
			c = 'f'
		}
		g.class = append(g.class, c)
		v := len(g.class) - 1
		defs[b] = append(defs[b], v)
		return v
	}
	// The definitions come first, so that a use may take any value that a dominating block defines.
	type rec struct {
		kind byte
		defs []int
		seen int // definitions of the block that stand before it
	}
	recs := make([][]rec, n)
	for b := range n {
		if len(g.preds[b]) > 0 {
			for range g.rng.IntN(g.s.Params + 1) {
				params[b] = append(params[b], fresh(b))
			}
		}
		if b == 0 {
			r := rec{kind: 'a'}
			for range g.rng.IntN(6) {
				r.defs = append(r.defs, fresh(b))
			}
			recs[b] = append(recs[b], r)
		}
		for range g.rng.IntN(g.s.Insts + 1) {
			r := rec{kind: 'i', seen: len(defs[b])}
			most := min(2, g.s.Operands)
			if g.rng.IntN(100) < g.s.Calls {
				r.kind, most = 'c', max(2, g.s.Results)
			}
			for range g.rng.IntN(most + 1) {
				r.defs = append(r.defs, fresh(b))
			}
			recs[b] = append(recs[b], r)
		}
	}
	pick := func(b, seen int, class byte) (int, bool) {
		var all []int
		for d := range n {
			if g.dom[b][d] && d != b {
				all = append(all, defs[d]...)
			}
		}
		all = append(all, defs[b][:seen]...)
		kept := all[:0]
		for _, v := range all {
			if class == 0 || g.class[v] == class {
				kept = append(kept, v)
			}
		}
		if len(kept) == 0 {
			return 0, false
		}
		if g.rng.IntN(100) >= g.s.Far {
			kept = kept[max(0, len(kept)-6):]
		}
		return kept[g.rng.IntN(len(kept))], true
	}
	uses := func(b, seen, most int) []int {
		var us []int
		var of [2]int
		for range g.rng.IntN(most + 1) {
			if v, ok := pick(b, seen, 0); ok {
				for len(us) > 0 && g.rng.IntN(5) == 0 {
					us = append(us, us[g.rng.IntN(len(us))]) // again, which wants no other register
				}
				k := 0
				if g.class[v] == 'f' {
					k = 1
				}
				if of[k]++; of[k] <= g.s.Operands {
					us = append(us, v)
				}
			}
		}
		return us
	}
	for b := range n {
		for _, r := range recs[b] {
			var us []int
			if r.kind != 'a' {
				most := 3
				if r.kind == 'c' {
					most = 8
				}
				us = uses(b, r.seen, most)
			}
			lines[b] = append(lines[b], fmt.Sprintf("%c %s <%s", r.kind, list(r.defs), list(us)))
		}
		if len(g.succs[b]) == 0 {
			lines[b] = append(lines[b], "r "+list(uses(b, len(defs[b]), 4)))
		}
	}
	// A branch passes values of the right class; where there is none, the parameter's block gets no such parameter.
	for b := range n {
		kept := params[b][:0]
		for _, p := range params[b] {
			ok := true
			for _, q := range g.preds[b] {
				if _, found := pick(q, len(defs[q]), g.class[p]); !found {
					ok = false
				}
			}
			if ok {
				kept = append(kept, p)
			} else {
				// It becomes a constant.
				lines[b] = append([]string{fmt.Sprintf("i %d <", p)}, lines[b]...)
			}
		}
		params[b] = kept
	}
	for b := range n {
		if len(g.succs[b]) == 0 {
			continue
		}
		var w strings.Builder
		tests := 0
		if len(g.succs[b]) > 1 || g.rng.IntN(4) == 0 {
			tests = 1 + g.rng.IntN(2)
		}
		fmt.Fprintf(&w, "j %s ", list(uses(b, len(defs[b]), tests)))
		for _, s := range g.succs[b] {
			fmt.Fprintf(&w, ">%d:", s)
			var as []int
			for _, p := range params[s] {
				v, _ := pick(b, len(defs[b]), g.class[p])
				as = append(as, v)
			}
			w.WriteString(list(as) + " ")
		}
		lines[b] = append(lines[b], w.String())
	}
	var w strings.Builder
	fmt.Fprintf(&w, "f random %d %d %s\n", n, len(g.class), g.class)
	for b := range n {
		fmt.Fprintf(&w, "b %d", b)
		for _, p := range params[b] {
			fmt.Fprintf(&w, " %d", p)
		}
		w.WriteString("\n")
		for _, l := range lines[b] {
			w.WriteString(l + "\n")
		}
	}
	return w.String()
}

func list(vs []int) string {
	var w strings.Builder
	for k, v := range vs {
		if k > 0 {
			w.WriteByte(',')
		}
		fmt.Fprint(&w, v)
	}
	return w.String()
}
