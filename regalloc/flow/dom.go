package flow

import "github.com/rosmar-compiler/rosmar/arena"

// Doms is the dominator tree of the blocks that control reaches. A second Build of the same size allocates nothing.
type Doms struct {
	Idom         []uint32 // by block: immediate dominator, NoBlock for the entry and for blocks that control never reaches
	enter, leave []uint32 // by block: its number in preorder, and past those of what it dominates
	next         []uint32

	// By number in preorder of a walk in depth.
	block []uint32
	up    []uint32 // the block that the walk came from, later one farther up
	semi  []uint32 // semidominator
	best  []uint32 // of the blocks on the way to up, the one whose semidominator is least
	first []uint32 // the blocks whose semidominator it is, chained by chain; 0 none
	chain []uint32
	stack []step
	path  []uint32
}

// Build finds dominators by way of semidominators (Lengauer and Tarjan, "A fast algorithm for finding dominators in a flowgraph", 1979, with
// their simple linking), in m log n for m edges. Meeting predecessors along the tree until nothing changes is half as long, and takes
// the square of the tests of a chain that all leave to one block.
func (d *Doms) Build(f *Func, l *Loops) {
	n := len(f.Blocks)
	d.Idom, d.next = arena.Resized(d.Idom, n), arena.Resized(d.next, n)
	d.enter, d.leave = arena.Resized(d.enter, n), arena.Resized(d.leave, n)
	for b := range n {
		d.Idom[b], d.enter[b] = NoBlock, NoBlock
	}
	d.walk(f, len(l.Order))
	idom := d.next // by number
	for i := uint32(len(l.Order)) - 1; i > 0; i-- {
		p := f.Blocks[d.block[i]].Preds
		for _, e := range f.Preds[p.From:p.To] {
			if from := d.enter[f.Edges[e].From]; from != NoBlock {
				d.semi[i] = min(d.semi[i], d.semi[d.least(from, i+1)])
			}
		}
		d.chain[i], d.first[d.semi[i]] = d.first[d.semi[i]], i
		up := d.up[i]
		for k := d.first[up]; k > 0; k = d.chain[k] {
			idom[k] = up
			if x := d.least(k, i); d.semi[x] < up {
				idom[k] = x // whose dominator is that of k too
			}
		}
		d.first[up] = 0
	}
	for i := 1; i < len(l.Order); i++ {
		if idom[i] != d.semi[i] {
			idom[i] = idom[idom[i]]
		}
		d.Idom[d.block[i]] = d.block[idom[i]]
	}
	// Numbers in preorder: sizes of subtrees from the bottom up, then places from the top down.
	size := d.leave
	for b := range size {
		size[b] = 1
		d.enter[b] = NoBlock
	}
	for i := len(l.Order) - 1; i > 0; i-- {
		size[d.Idom[l.Order[i]]] += size[l.Order[i]]
	}
	for i, b := range l.Order {
		at := uint32(0)
		if i > 0 {
			at = d.next[d.Idom[b]]
			d.next[d.Idom[b]] += size[b]
		}
		d.enter[b], d.leave[b], d.next[b] = at, at+size[b], at+1
	}
}

// walk numbers the n blocks that control reaches.
func (d *Doms) walk(f *Func, n int) {
	d.block, d.up = arena.Resized(d.block, n), arena.Resized(d.up, n)
	d.semi, d.best = arena.Resized(d.semi, n), arena.Resized(d.best, n)
	d.first, d.chain = arena.Zeroed(d.first, n), arena.Resized(d.chain, n)
	at := uint32(0)
	visit := func(b, from uint32) {
		d.enter[b] = at
		d.block[at], d.up[at], d.semi[at], d.best[at] = b, from, at, at
		at++
		d.stack = append(d.stack, step{b, f.Blocks[b].Succs.From})
	}
	d.stack = d.stack[:0]
	for visit(0, 0); len(d.stack) > 0; {
		top := &d.stack[len(d.stack)-1]
		if top.edge == f.Blocks[top.block].Succs.To {
			d.stack = d.stack[:len(d.stack)-1]
			continue
		}
		to := f.Edges[top.edge].To
		top.edge++
		if d.enter[to] == NoBlock {
			visit(to, d.enter[top.block])
		}
	}
}

// least is the block with the least semidominator on the way from v up to the first block that is not linked; those from number linked on are. What
// has no link is the way's end. The way gets shorter.
func (d *Doms) least(v, linked uint32) uint32 {
	if v < linked {
		return v
	}
	d.path = d.path[:0]
	for x := v; d.up[x] >= linked; x = d.up[x] {
		d.path = append(d.path, x)
	}
	for k := len(d.path) - 1; k >= 0; k-- {
		x := d.path[k]
		up := d.up[x]
		if d.semi[d.best[up]] < d.semi[d.best[x]] {
			d.best[x] = d.best[up]
		}
		d.up[x] = d.up[up]
	}
	return d.best[v]
}

// Dominates reports whether every way to b goes through a; a block dominates itself. Both must be reachable.
func (d *Doms) Dominates(a, b uint32) bool {
	return d.enter[a] <= d.enter[b] && d.enter[b] < d.leave[a]
}

// Preorder numbers blocks so that each comes before what it dominates, and all that it dominates in one run.
func (d *Doms) Preorder(b uint32) uint32 { return d.enter[b] }
