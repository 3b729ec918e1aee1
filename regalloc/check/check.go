package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// held says that a place holds a value. Places are numbered: the registers of each class, then the slots.
type held struct {
	place uint32
	value flow.Value
}

func (h held) key() uint64 { return uint64(h.place)<<32 | uint64(h.value) }

// firstSlot is the number of slot 0.
const firstSlot = flow.NumClasses * flow.MaxRegs

// Checker is the storage of a check. The zero value is ready.
type Checker struct {
	f    *flow.Func
	regs flow.File
	ans  *flow.Answer

	entry   []span // by block: what is held at its head, in pool
	pool    []held
	moves   []uint32 // by instruction: its first move
	now     [][]flow.Value
	wrote   []uint32 // by place: 1 + the last row that the proof saw written to it
	out     []held
	queue   arena.Queue
	waiting []bool
	param   []uint32 // by value: 1 + the edge whose target defines it
	first   []uint32 // by value: 1 + the last argument of the edge at hand that is it, chained on by argument
	chain   []uint32
}

type span struct {
	off, n  int
	visited bool
}

// Answer checks one answer.
func Answer(f *flow.Func, regs flow.File, a *flow.Answer) error {
	var c Checker
	return c.Answer(f, regs, a)
}

// Answer checks one answer; the error names the function, the block, the instruction and the operand.
func (c *Checker) Answer(f *flow.Func, regs flow.File, a *flow.Answer) error {
	c.f, c.regs, c.ans = f, regs, a
	if err := c.shape(); err != nil {
		return fmt.Errorf("function %s: %w", f.Name, err)
	}
	c.start()
	for c.queue.Len() > 0 {
		b, _ := c.queue.Pop()
		c.waiting[b] = false
		c.enter(b)
		if err := c.walk(b, false); err != nil {
			return fmt.Errorf("function %s: block %d: %w", f.Name, b, err)
		}
		for e := f.Blocks[b].Succs.From; e < f.Blocks[b].Succs.To; e++ {
			c.leave(e)
		}
	}
	for b := range f.Blocks {
		if !c.entry[b].visited {
			continue
		}
		c.enter(uint32(b))
		if err := c.walk(uint32(b), true); err != nil {
			return fmt.Errorf("function %s: block %d: %w", f.Name, b, err)
		}
	}
	return nil
}

// shape checks what needs no data flow.
func (c *Checker) shape() error {
	f, a := c.f, c.ans
	if len(a.Place) != len(f.Ops) {
		return fmt.Errorf("%d places for %d operands", len(a.Place), len(f.Ops))
	}
	for row, p := range a.Place {
		if p == flow.NoPlace {
			continue
		}
		if err := c.exists(p, f.Class[f.Ops[row]]); err != nil {
			return fmt.Errorf("value %d: %w", f.Ops[row], err)
		}
	}
	c.moves = arena.Resized(c.moves, len(f.Insts)+1)
	k := 0
	for i := range c.moves {
		c.moves[i] = uint32(k)
		for k < len(a.Moves) && a.Moves[k].At == uint32(i) {
			k++
		}
	}
	if k < len(a.Moves) {
		return fmt.Errorf("move %d is before instruction %d of %d, after one before instruction %d", k, a.Moves[k].At, len(f.Insts), a.Moves[max(k, 1)-1].At)
	}
	for k := range a.Moves {
		m := &a.Moves[k]
		if m.From == flow.NoPlace || m.To == flow.NoPlace || m.Class >= flow.NumClasses || m.From.IsSlot() && m.To.IsSlot() {
			return fmt.Errorf("move %d from %s to %s", k, m.From, m.To)
		}
		for _, p := range [2]flow.Place{m.From, m.To} {
			if err := c.exists(p, m.Class); err != nil {
				return fmt.Errorf("move %d: %w", k, err)
			}
		}
	}
	for e := range f.Edges {
		args, params := f.Edges[e].Args, f.Blocks[f.Edges[e].To].Params
		for k := range uint32(args.Len()) {
			if a.Place[args.From+k] != a.Place[params.From+k] {
				return fmt.Errorf("edge from block %d to block %d: value %d stands at %s and its parameter at %s", f.Edges[e].From, f.Edges[e].To,
					f.Ops[args.From+k], a.Place[args.From+k], a.Place[params.From+k])
			}
		}
	}
	return nil
}

// exists reports a place that the file or the frame does not have.
func (c *Checker) exists(p flow.Place, class flow.Class) error {
	switch {
	case p.IsSlot() && p.Index() >= c.ans.Slots:
		return fmt.Errorf("slot %d of %d", p.Index(), c.ans.Slots)
	case !p.IsSlot() && p.Index() >= c.regs.N[class]:
		return fmt.Errorf("register %d of %d", p.Index(), c.regs.N[class])
	}
	return nil
}

// apart reports two values that are written to one place at once.
func (c *Checker) apart(s flow.Span) error {
	for i := s.From; i < s.To; i++ {
		if c.ans.Place[i] == flow.NoPlace {
			continue
		}
		w := &c.wrote[c.place(i)]
		if *w > s.From && *w <= i {
			return fmt.Errorf("values %d and %d are both written to %s", c.f.Ops[*w-1], c.f.Ops[i], c.ans.Place[i])
		}
		*w = i + 1
	}
	return nil
}

func (c *Checker) place(row uint32) uint32 { return number(c.ans.Place[row], c.f.Class[c.f.Ops[row]]) }

func number(p flow.Place, class flow.Class) uint32 {
	if p.IsSlot() {
		return firstSlot + uint32(p.Index())
	}
	return uint32(class)*flow.MaxRegs + uint32(p.Index())
}

// start forgets the function before and puts the entry into the queue.
func (c *Checker) start() {
	n := len(c.f.Blocks)
	c.entry = arena.Zeroed(c.entry, n)
	c.waiting = arena.Zeroed(c.waiting, n)
	c.param = arena.Zeroed(c.param, c.f.Values())
	c.first = arena.Zeroed(c.first, c.f.Values())
	c.wrote = arena.Zeroed(c.wrote, firstSlot+c.ans.Slots)
	c.pool = c.pool[:0]
	for len(c.now) < firstSlot+c.ans.Slots {
		c.now = append(c.now, nil)
	}
	c.queue.Reset()
	c.entry[0].visited = true
	c.queue.Push(0, 0)
}

// enter loads what is held at the head of a block.
func (c *Checker) enter(b uint32) {
	for p := range c.now {
		c.now[p] = c.now[p][:0]
	}
	e := c.entry[b]
	for _, h := range c.pool[e.off : e.off+e.n] {
		c.now[h.place] = append(c.now[h.place], h.value)
	}
}

// walk goes through a block. With prove it holds operands against what is known.
func (c *Checker) walk(b uint32, prove bool) error {
	f, a := c.f, c.ans
	blk := &f.Blocks[b]
	for i := blk.Insts.From; i < blk.Insts.To; i++ {
		for k := c.moves[i]; k < c.moves[i+1]; k++ {
			m := &a.Moves[k]
			from, to := number(m.From, m.Class), number(m.To, m.Class)
			if from != to {
				c.now[to] = append(c.now[to][:0], c.now[from]...)
			}
		}
		in := &f.Insts[i]
		if prove {
			if err := c.prove(in, i); err != nil {
				return fmt.Errorf("instruction %d: %w", i, err)
			}
		}
		if in.Kind == flow.Call {
			for class := range flow.Class(flow.NumClasses) {
				for r := range c.regs.N[class] - c.regs.Saved[class] {
					p := number(flow.Reg(r), class)
					c.now[p] = c.now[p][:0]
				}
			}
		}
		d := in.Defs()
		for row := d.From; row < d.To; row++ {
			if a.Place[row] != flow.NoPlace {
				p := c.place(row)
				c.now[p] = append(c.now[p][:0], f.Ops[row])
			}
		}
	}
	if !prove {
		return nil
	}
	for e := blk.Succs.From; e < blk.Succs.To; e++ {
		args := f.Edges[e].Args
		for row := args.From; row < args.To; row++ {
			if a.Place[row] == flow.NoPlace {
				continue
			}
			if err := c.finds(row); err != nil {
				return fmt.Errorf("edge to block %d: %w", f.Edges[e].To, err)
			}
		}
	}
	return nil
}

// prove checks the operands of one instruction.
func (c *Checker) prove(in *flow.Inst, i uint32) error {
	anywhere := in.Kind == flow.Args || in.Kind == flow.Call || in.Kind == flow.Return
	for row := in.Uses.From; row < in.To; row++ {
		p := c.ans.Place[row]
		if row >= in.Uses.To && p == flow.NoPlace && in.Kind == flow.Args {
			continue // an argument that nobody wants
		}
		if p == flow.NoPlace || p.IsSlot() && !anywhere {
			return fmt.Errorf("value %d is at %s and must be in a register", c.f.Ops[row], p)
		}
		if row < in.Uses.To {
			if err := c.finds(row); err != nil {
				return err
			}
		}
	}
	return c.apart(in.Defs())
}

// finds reports an operand whose place does not hold its value.
func (c *Checker) finds(row uint32) error {
	v := c.f.Ops[row]
	if slices.Contains(c.now[c.place(row)], v) {
		return nil
	}
	return fmt.Errorf("value %d is expected in %s, which holds %s", v, c.ans.Place[row], list(c.now[c.place(row)]))
}

func list(vs []flow.Value) string {
	if len(vs) == 0 {
		return "nothing that is known on every way there"
	}
	var b strings.Builder
	for k, v := range vs {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "value %d", v)
	}
	return b.String()
}

// leave brings what is held at the end of a block along edge e and queues the target when it learns something.
func (c *Checker) leave(e uint32) {
	f := c.f
	to := f.Edges[e].To
	params := f.Blocks[to].Params
	for _, p := range f.Of(params) {
		c.param[p] = e + 1
	}
	c.out = c.out[:0]
	for p := range firstSlot + c.ans.Slots {
		for _, v := range c.now[p] {
			if c.param[v] != e+1 {
				c.out = append(c.out, held{uint32(p), v})
			}
		}
	}
	if params.Len() > 0 {
		c.feed(e)
	}
	slices.SortFunc(c.out, func(a, b held) int {
		if a.key() < b.key() {
			return -1
		}
		return 1
	})
	t := &c.entry[to]
	changed := !t.visited
	if changed {
		*t = span{off: len(c.pool), n: len(c.out), visited: true}
		c.pool = append(c.pool, c.out...)
	} else {
		changed = t.meet(c.pool[t.off:t.off+t.n], c.out)
	}
	if changed && !c.waiting[to] {
		c.waiting[to] = true
		c.queue.Push(to, 0)
	}
}

// feed gives each parameter of edge e's target to every place that holds its argument: the edge gives the value a second name.
func (c *Checker) feed(e uint32) {
	f := c.f
	params, args := f.Of(f.Blocks[f.Edges[e].To].Params), f.Of(f.Edges[e].Args)
	for _, v := range args {
		c.first[v] = 0
	}
	c.chain = arena.Resized(c.chain, len(args))
	for k, v := range args {
		c.chain[k], c.first[v] = c.first[v], uint32(k)+1
	}
	for p := range firstSlot + c.ans.Slots {
		for _, v := range c.now[p] {
			for k := c.first[v]; k > 0; k = c.chain[k-1] {
				c.out = append(c.out, held{uint32(p), params[k-1]})
			}
		}
	}
	for _, v := range args {
		c.first[v] = 0
	}
}

// meet keeps of have what is also in come, and reports whether anything went. Both are sorted.
func (s *span) meet(have, come []held) bool {
	n, k := 0, 0
	for _, h := range have {
		for k < len(come) && come[k].key() < h.key() {
			k++
		}
		if k < len(come) && come[k] == h {
			have[n] = h
			n++
		}
	}
	gone := n < s.n
	s.n = n
	return gone
}
