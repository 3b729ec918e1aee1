package scalar

import (
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// web is a piece of a register that no path connects with the rest of it: a value of its own, that may have a lane of its own.
// All of a register that is live from one node into another is one web; what is written and read for the last time within a node
// is one each.
type web struct {
	cost        int64 // lanes times how often it is written or read
	reg         uint32
	first, last slot // it is live within [first, last)
	defs        uint32
	def         slot // of the last of them
	fixed       int8 // lane that the producer gave it, -1 none
	hard        bool
}

// short reports a web that is too short for spilling to make it shorter.
func (w *web) short() bool { return w.last-w.first <= 2 }

// lives finds out where registers are live.
type lives struct {
	webs []web
	segs []regalloc.Seg // Node is the web; in order of start

	// Sets of 64 registers at a time, by node: those live on entry, those written, those whose entry is news for the predecessors.
	in, written, news []uint64
	touched, work     []uint32
	batch             [64]uint32
	entries           []uint32 // nodes that a register is live into, register by register
	raw               []regalloc.Seg
	counts            []uint32
}

// build makes webs and segments. temps are the registers from that number on: no spilling them again. Errors: User for a register
// that may be read before it is written.
func (l *lives) build(m *ir.Module, f *flow, u *uses, temps uint32) error {
	l.webs, l.raw = l.webs[:0], l.raw[:0]
	n := len(f.nodes)
	for _, s := range []*[]uint64{&l.in, &l.written, &l.news} {
		*s = arena.Zeroed(*s, n)
	}
	batch := l.batch[:0]
	for r := uint32(1); int(r) < m.Regs.Len(); r++ {
		occs := u.of(r)
		if len(occs) == 0 {
			continue
		}
		if !exposed(f, occs) {
			l.pieces(m, f, r, occs, nil, 0, temps)
			continue
		}
		if batch = append(batch, r); len(batch) == 64 {
			if err := l.solve(m, f, u, batch, temps); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := l.solve(m, f, u, batch, temps); err != nil {
		return err
	}
	l.sort(f)
	return l.checkCalls(m, f)
}

// exposed reports a register that some node reads before it writes it: it is live from node to node.
func exposed(f *flow, occs []occ) bool {
	last := none
	for k := range occs {
		if n := f.nodeOf[occs[k].at]; occs[k].def {
			last = n
		} else if n != last {
			return true
		}
	}
	return false
}

// solve finds the nodes that up to 64 registers are live into, walking back from those that read them.
func (l *lives) solve(m *ir.Module, f *flow, u *uses, batch []uint32, temps uint32) error {
	if len(batch) == 0 {
		return nil
	}
	l.touched, l.work = l.touched[:0], l.work[:0]
	touch := func(n uint32) {
		if l.in[n]|l.written[n] == 0 {
			l.touched = append(l.touched, n)
		}
	}
	for k, r := range batch {
		bit, last := uint64(1)<<k, none
		for _, o := range u.of(r) {
			n := f.nodeOf[o.at]
			switch {
			case o.def:
				touch(n)
				l.written[n] |= bit
				last = n
			case n != last && l.in[n]&bit == 0:
				touch(n)
				l.in[n] |= bit
				if l.news[n] == 0 {
					l.work = append(l.work, n)
				}
				l.news[n] |= bit
			}
		}
	}
	for len(l.work) > 0 {
		n := l.work[len(l.work)-1]
		l.work = l.work[:len(l.work)-1]
		news := l.news[n]
		l.news[n] = 0
		for _, p := range f.predsOf(n) {
			more := news &^ l.written[p] &^ l.in[p]
			if more == 0 {
				continue
			}
			touch(p)
			l.in[p] |= more
			if l.news[p] == 0 {
				l.work = append(l.work, p)
			}
			l.news[p] |= more
		}
	}
	if b := l.in[0]; b != 0 {
		return l.undefined(m, f, u, batch[bits.TrailingZeros64(b)], b&-b)
	}
	slices.Sort(l.touched)
	// The nodes of each register side by side.
	var off [65]uint32
	for _, n := range l.touched {
		for b := l.in[n]; b != 0; b &= b - 1 {
			off[bits.TrailingZeros64(b)+1]++
		}
	}
	for k := range 64 {
		off[k+1] += off[k]
	}
	l.entries = arena.Resized(l.entries, int(off[64]))
	at := off
	for _, n := range l.touched {
		for b := l.in[n]; b != 0; b &= b - 1 {
			k := bits.TrailingZeros64(b)
			l.entries[at[k]] = n
			at[k]++
		}
	}
	for k, r := range batch {
		l.pieces(m, f, r, u.of(r), l.entries[off[k]:off[k+1]], uint64(1)<<k, temps)
	}
	for _, n := range l.touched {
		l.in[n], l.written[n] = 0, 0
	}
	return nil
}

// undefined is the error for a register that is live on entry to the function: it names a read that the entry reaches.
func (l *lives) undefined(m *ir.Module, f *flow, u *uses, r uint32, bit uint64) error {
	l.work = append(l.work[:0], 0)
	l.in[0] &^= bit
	for k := 0; k < len(l.work); k++ {
		n := l.work[k]
		for _, o := range u.of(r) {
			if f.nodeOf[o.at] != n {
				continue
			}
			if o.def {
				break
			}
			i := f.insts[o.at]
			return target.Errorf(target.User, "register %s may be read before anything writes it: %s (%s) reads it, and a path leads there from the beginning of the function without a write",
				m.RegName(ir.Reg(r)), m.InstName(i), m.Insts.At(i).Op)
		}
		for _, s := range f.nodes[n].succ {
			if s != none && l.in[s]&bit != 0 {
				l.in[s] &^= bit
				l.work = append(l.work, s)
			}
		}
	}
	return target.Errorf(target.Bug, "register %s is live on entry and nothing reads it", m.RegName(ir.Reg(r)))
}

// pieces cuts a register into webs and lays down their segments. entries are the nodes that it is live into, ascending; bit is its
// place in the sets by node, none for a register that is live within nodes only.
func (l *lives) pieces(m *ir.Module, f *flow, r uint32, occs []occ, entries []uint32, bit uint64, temps uint32) {
	row := m.Regs.At(ir.Reg(r))
	hard := r >= temps
	whole := row.Phys >= 0
	for k := range occs {
		if occs[k].hard {
			hard, whole = true, true // it keeps its name
		}
	}
	long := none // the web that is live from node to node, or all of a register that must not be cut
	open := none // its last segment
	newWeb := func() uint32 {
		l.webs = append(l.webs, web{reg: r, first: none, fixed: row.Phys, hard: hard})
		return uint32(len(l.webs) - 1)
	}
	put := func(start, end slot, local bool, occs []occ) {
		w := long
		if local && !whole {
			w = newWeb()
		} else if long == none {
			long = newWeb()
			w = long
		}
		d := &l.webs[w]
		for k := range occs {
			o := &occs[k]
			o.web = w
			d.cost += f.weight[f.nodeOf[o.at]] * int64(row.Width)
			if o.def {
				d.defs++
				d.def = writeAt(o.at)
			}
		}
		if start >= end {
			return
		}
		d.first, d.last = min(d.first, start), max(d.last, end)
		if w == long && open != none && l.raw[open].End == start {
			l.raw[open].End = end
			return
		}
		l.raw = append(l.raw, regalloc.Seg{Start: start, End: end, Node: w})
		if w == long {
			open = uint32(len(l.raw) - 1)
		}
	}
	for o, e := 0, 0; o < len(occs) || e < len(entries); {
		n := none
		if o < len(occs) {
			n = f.nodeOf[occs[o].at]
		}
		start, end, local, from := none, slot(0), false, o
		if e < len(entries) && entries[e] <= n {
			n = entries[e]
			start = readAt(f.nodes[n].lo)
			end = start
			e++
		}
		for ; o < len(occs) && f.nodeOf[occs[o].at] == n; o++ {
			if !occs[o].def {
				end = readAt(occs[o].at) + 1
				continue
			}
			if start != none {
				put(start, end, local, occs[from:o])
			}
			start, local, from = writeAt(occs[o].at), true, o
			end = start + 1
		}
		if bit != 0 && l.liveOut(f, n)&bit != 0 {
			end, local = readAt(f.nodes[n].hi), false
		}
		put(start, end, local, occs[from:o])
	}
}

func (l *lives) liveOut(f *flow, n uint32) (out uint64) {
	for _, s := range f.nodes[n].succ {
		if s != none {
			out |= l.in[s]
		}
	}
	return out
}

// sort puts the segments in order of start, by counting.
func (l *lives) sort(f *flow) {
	l.counts = arena.Zeroed(l.counts, 2*len(f.insts)+2)
	for i := range l.raw {
		l.counts[l.raw[i].Start+1]++
	}
	for i := 1; i < len(l.counts); i++ {
		l.counts[i] += l.counts[i-1]
	}
	l.segs = arena.Resized(l.segs, len(l.raw))
	for i := range l.raw {
		c := &l.counts[l.raw[i].Start]
		l.segs[*c] = l.raw[i]
		*c++
	}
}

// checkCalls refuses registers that live across a call: no convention says which of them the callee keeps.
func (l *lives) checkCalls(m *ir.Module, f *flow) error {
	if len(f.calls) == 0 {
		return nil
	}
	for i := range l.segs {
		s := &l.segs[i]
		k, _ := slices.BinarySearchFunc(f.calls, s.Start, func(p uint32, at slot) int { return int(writeAt(p)) - int(at) })
		if k < len(f.calls) && writeAt(f.calls[k]) < s.End && s.Start < writeAt(f.calls[k]) {
			call := f.insts[f.calls[k]]
			return target.NotSupported("register across a call", "register %s lives across %s (%s): nothing says that the callee keeps it; save it to memory, or inline the call",
				m.RegName(ir.Reg(l.webs[s.Node].reg)), m.InstName(call), m.Insts.At(call).Op)
		}
	}
	return nil
}
