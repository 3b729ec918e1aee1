package flow

import "github.com/rosmar-compiler/rosmar/arena"

// Doms is the dominator tree of the blocks that control reaches. A second Build of the same size allocates nothing.
type Doms struct {
	Idom         []uint32 // by block: immediate dominator, NoBlock for the entry and for blocks that control never reaches
	enter, leave []uint32 // by block: its number in preorder, and past those of what it dominates
	next         []uint32
}

// Build finds dominators by meeting predecessors along the tree until nothing changes (Cooper, Harvey and Kennedy, "A Simple, Fast
// Dominance Algorithm", 2001): two walks over a reducible function.
func (d *Doms) Build(f *Func, l *Loops) {
	n := len(f.Blocks)
	d.Idom, d.next = arena.Resized(d.Idom, n), arena.Resized(d.next, n)
	d.enter, d.leave = arena.Resized(d.enter, n), arena.Resized(d.leave, n)
	for b := range d.Idom {
		d.Idom[b] = NoBlock
	}
	for again := true; again; {
		again = false
		for _, b := range l.Order[1:] {
			idom := NoBlock
			p := f.Blocks[b].Preds
			for _, e := range f.Preds[p.From:p.To] {
				switch from := f.Edges[e].From; {
				case from != 0 && d.Idom[from] == NoBlock:
				case idom == NoBlock:
					idom = from
				default:
					for idom != from {
						if l.Rank[idom] > l.Rank[from] {
							idom = d.Idom[idom]
						} else {
							from = d.Idom[from]
						}
					}
				}
			}
			if d.Idom[b] != idom {
				d.Idom[b], again = idom, true
			}
		}
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

// Dominates reports whether every way to b goes through a; a block dominates itself. Both must be reachable.
func (d *Doms) Dominates(a, b uint32) bool {
	return d.enter[a] <= d.enter[b] && d.enter[b] < d.leave[a]
}

// Preorder numbers blocks so that each comes before what it dominates, and all that it dominates in one run.
func (d *Doms) Preorder(b uint32) uint32 { return d.enter[b] }
