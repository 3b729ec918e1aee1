package tile

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
)

// ordering is the storage of sequence.
type ordering struct {
	depth   arena.Scratch[int32]
	done    arena.Scratch[bool]
	seq     []val
	stack   []visited
	pending []val
}

// visited is a value whose operands are being ordered.
type visited struct {
	v    val
	at   uint32 // its operands in pending
	next uint32
}

// sequence orders the values that are computed: operands first, and each as late as its first reader allows. Of several
// operands, those that wait for no product, convolution or window come first, so that a product's own consumers follow it
// at once and join its unit; then the deepest, so that few results wait for others.
func (l *lowering) sequence() []val {
	rows := l.vals.Rows()
	o := &l.ordering
	o.depth.Reset()
	o.done.Reset()
	depth, done := o.depth.Take(len(rows)), o.done.Take(len(rows))
	for v := 1; v < len(rows); v++ {
		r := &rows[v]
		for _, a := range l.args.Of(r.args) {
			depth[v] = max(depth[v], depth[a.root])
		}
		if r.op > vReduce && r.op != vTopIndex {
			depth[v]++
		}
	}
	seq, stack, pending := o.seq[:0], o.stack[:0], o.pending[:0]
	open := func(v val) {
		done[v] = true
		at := uint32(len(pending))
		for _, a := range l.argsOf(v) {
			pending = append(pending, a.root)
		}
		slices.SortStableFunc(pending[at:], func(a, b val) int {
			da, db := depth[a], depth[b]
			switch {
			case da == db:
				return 0
			case da == 0:
				return -1
			case db == 0:
				return 1
			}
			return int(db - da)
		})
		stack = append(stack, visited{v, at, 0})
	}
	visit := func(root val) {
		if done[root] || rows[root].op < vAct {
			return
		}
		open(root)
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if i := f.at + f.next; i < uint32(len(pending)) {
				f.next++
				if x := pending[i]; !done[x] && rows[x].op >= vAct {
					open(x)
				}
				continue
			}
			pending = pending[:f.at]
			seq = append(seq, f.v)
			stack = stack[:len(stack)-1]
		}
	}
	for i := range l.outs {
		if v := l.outs[i].v.root; v != 0 {
			visit(v)
		}
	}
	o.seq, o.stack, o.pending = seq, stack, pending
	return seq
}
