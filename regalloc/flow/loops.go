package flow

import "github.com/rosmar-compiler/rosmar/arena"

// Loops is the order in which control reaches the blocks, and the loops that it goes around in. One walk finds both (Wei, Mao, Zou
// and Chen, "A new algorithm for identifying loops in decompilation", 2007), irreducible loops too: such a loop is headed by the block
// that the walk entered it by. A second Build of the same size allocates nothing.
type Loops struct {
	Order  []uint32 // reachable blocks in reverse postorder
	Rank   []uint32 // by block: its place in Order, NoBlock if control never gets there
	Header []uint32 // by block: the header of the innermost loop around it, a header's own loop not counted; NoBlock none
	Depth  []uint32 // by block: loops around it, a header's own counted
	Heads  []bool   // by block: it heads a loop

	path  []uint32 // by block: 1 + place on the walk's path, 0 off it
	stack []step
}

type step struct{ block, edge uint32 }

// Build walks f.
func (l *Loops) Build(f *Func) {
	n := len(f.Blocks)
	l.Rank, l.Header = arena.Resized(l.Rank, n), arena.Resized(l.Header, n)
	l.Depth, l.Heads = arena.Resized(l.Depth, n), arena.Resized(l.Heads, n)
	l.path = arena.Resized(l.path, n)
	for b := range n {
		l.Rank[b], l.Header[b] = NoBlock, NoBlock
	}
	clear(l.Heads)
	clear(l.path)
	l.Order = arena.Resized(l.Order, n)
	at := n // Order is filled from its end
	const entered = NoBlock - 1
	l.Rank[0] = entered
	l.path[0] = 1
	l.stack = append(l.stack[:0], step{0, f.Blocks[0].Succs.From})
	for len(l.stack) > 0 {
		top := &l.stack[len(l.stack)-1]
		if top.edge == f.Blocks[top.block].Succs.To {
			at--
			l.Order[at] = top.block
			l.path[top.block] = 0
			done := top.block
			l.stack = l.stack[:len(l.stack)-1]
			if len(l.stack) > 0 {
				l.inside(l.stack[len(l.stack)-1].block, l.Header[done])
			}
			continue
		}
		b, to := top.block, f.Edges[top.edge].To
		top.edge++
		switch {
		case l.Rank[to] == NoBlock:
			l.Rank[to] = entered
			l.stack = append(l.stack, step{to, f.Blocks[to].Succs.From})
			l.path[to] = uint32(len(l.stack))
		case l.path[to] > 0:
			l.Heads[to] = true
			l.inside(b, to)
		default:
			// A block that is done: the loops around it that are still open are around b too.
			h := l.Header[to]
			for h != NoBlock && l.path[h] == 0 {
				h = l.Header[h]
			}
			l.inside(b, h)
		}
	}
	l.Order = l.Order[:copy(l.Order, l.Order[at:])]
	for r, b := range l.Order {
		l.Rank[b] = uint32(r)
	}
	clear(l.Depth)
	for _, b := range l.Order {
		d := uint32(0)
		if h := l.Header[b]; h != NoBlock {
			d = l.Depth[h] // h comes before b in the order
		}
		if l.Heads[b] {
			d++
		}
		l.Depth[b] = d
	}
}

// inside notes that b is in the loop of h, and sorts the loops around b from the inside out.
func (l *Loops) inside(b, h uint32) {
	if b == h || h == NoBlock {
		return
	}
	for l.Header[b] != NoBlock {
		around := l.Header[b]
		if around == h {
			return
		}
		if l.path[around] < l.path[h] {
			l.Header[b] = h
			b, h = h, around
		} else {
			b = around
		}
		if b == h {
			return
		}
	}
	l.Header[b] = h
}

// Loop is the header of the innermost loop that b is in, b itself when it heads one; NoBlock outside of loops.
func (l *Loops) Loop(b uint32) uint32 {
	if l.Heads[b] {
		return b
	}
	return l.Header[b]
}
