package flow

import "github.com/rosmar-compiler/rosmar/arena"

// Live is the values that are live into each block, parameters not among them. It is found use by use, walking up from each
// use to the definition (Boissinot and others, "Computing liveness sets for SSA-form programs", 2011), so it costs as much as the lists
// are long and needs no fixpoint. A second Build of the same size allocates nothing.
type Live struct {
	off  []uint32 // by block
	vals []Value  // ascending within a block

	home  []uint32 // by value: the block that defines it
	first []uint32 // by value: its uses in useAt
	useAt []uint32 // blocks at whose end or in whose middle the value is used
	seen  []uint32 // by value: 1 + the last block that was found to use it; then by block: 1 + the last value found live into it
	pairs []pair
}

type pair struct {
	block uint32
	value Value
}

// Build finds the live values of f.
func (l *Live) Build(f *Func) {
	l.locate(f)
	n := len(f.Blocks)
	l.seen = arena.Zeroed(l.seen, n)
	l.off = arena.Zeroed(l.off, n+2)
	seen, pairs, at := l.seen, l.pairs[:0], 0
	for v := range f.Class {
		uses := l.useAt[l.first[v]:l.first[v+1]]
		if len(uses) == 0 {
			continue
		}
		home, mark := l.home[v], uint32(v)+1
		for _, b := range uses {
			if b != home && seen[b] != mark {
				seen[b] = mark
				pairs = append(pairs, pair{b, Value(v)})
			}
		}
		// Live into a block is live at the end of those before it, and into them unless they define it.
		for ; at < len(pairs); at++ {
			p := f.Blocks[pairs[at].block].Preds
			for _, e := range f.Preds[p.From:p.To] {
				if b := f.Edges[e].From; b != home && seen[b] != mark {
					seen[b] = mark
					pairs = append(pairs, pair{b, Value(v)})
				}
			}
		}
	}
	l.pairs = pairs
	off := l.off
	for _, p := range pairs {
		off[p.block+2]++
	}
	for i := 2; i < len(off); i++ {
		off[i] += off[i-1]
	}
	l.vals = arena.Resized(l.vals, len(pairs))
	for _, p := range pairs {
		o := &off[p.block+1]
		l.vals[*o] = p.value
		*o++
	}
	l.off = off[:n+1]
}

// locate finds the block of each definition and lists the other blocks that use each value, most of them once.
func (l *Live) locate(f *Func) {
	n := f.Values()
	l.home = arena.Resized(l.home, n)
	for v := range l.home {
		l.home[v] = NoBlock
	}
	l.pairs = l.pairs[:0]
	l.first = arena.Zeroed(l.first, n+2)
	l.seen = arena.Zeroed(l.seen, n)
	home := l.home
	for b := range f.Blocks {
		blk := &f.Blocks[b]
		for _, v := range f.Of(blk.Params) {
			home[v] = uint32(b)
		}
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			in := &f.Insts[i]
			l.uses(f.Of(in.Uses), uint32(b))
			for _, v := range f.Ops[in.Uses.To:in.To] {
				home[v] = uint32(b)
			}
		}
		for e := blk.Succs.From; e < blk.Succs.To; e++ {
			l.uses(f.Of(f.Edges[e].Args), uint32(b))
		}
	}
	for i := 2; i < len(l.first); i++ {
		l.first[i] += l.first[i-1]
	}
	l.useAt = arena.Resized(l.useAt, len(l.pairs))
	for _, p := range l.pairs {
		o := &l.first[p.value+1]
		l.useAt[*o] = p.block
		*o++
	}
	l.first = l.first[:n+1]
}

// uses notes the values that block b uses and another defines. Its own were met before their uses.
func (l *Live) uses(vs []Value, b uint32) {
	for _, v := range vs {
		if l.home[v] == b || l.seen[v] == b+1 {
			continue
		}
		l.seen[v] = b + 1
		l.pairs = append(l.pairs, pair{b, v})
		l.first[v+2]++
	}
}

// In are the values that are live into block b, ascending. Not to be written.
func (l *Live) In(b uint32) []Value { return l.vals[l.off[b]:l.off[b+1]] }

// Row numbers what is live into blocks, for columns beside In: value In(b)[k] has row Row(b)+k, below Rows.
func (l *Live) Row(b uint32) uint32 { return l.off[b] }

// Rows is the number of rows.
func (l *Live) Rows() int { return len(l.vals) }

// Home is the block that defines v.
func (l *Live) Home(v Value) uint32 { return l.home[v] }
