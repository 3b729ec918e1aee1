package opt

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
)

// Dead is the storage of DeadCode: how many living instructions read each location, and who writes it. The zero value is
// ready; one serves one worker.
type Dead struct {
	edits  ir.Edits
	reads  []uint32 // by location
	alive  []uint32 // by instruction: outputs that somebody needs
	first  []uint32 // writers of location l are writer[first[l]:first[l+1]]
	writer []ir.Inst
	queue  []ir.Loc
}

// DeadCode deletes instructions of f that write only locations which nothing reads, until none is left, and returns how
// many. It looks at locations as wholes: a tile that is partly read keeps all its writers. Outputs, tensors that another core or a
// debugger may read, instructions without outputs, and those that change engine state stay, and so does everything in and around
// regions. An instruction that adds to its own destination does not keep it alive.
func DeadCode(m *ir.Module, f ir.Func, d *Dead) int {
	d.count(m, f)
	n := 0
	for len(d.queue) > 0 {
		l := d.queue[len(d.queue)-1]
		d.queue = d.queue[:len(d.queue)-1]
		for _, i := range d.writer[d.first[l]:d.first[l+1]] {
			if d.alive[i] == 0 {
				continue
			}
			if d.alive[i]--; d.alive[i] > 0 {
				continue
			}
			d.edits.Delete(i)
			n++
			for _, a := range m.AllArgs(i)[:len(m.AllArgs(i))-len(m.Outs(i))] {
				d.drop(m, a)
			}
		}
	}
	d.edits.Apply(m)
	return n
}

func (d *Dead) drop(m *ir.Module, a ir.Arg) {
	l := m.LocOf(a)
	if l == 0 || d.reads[l] == 0 {
		return
	}
	if d.reads[l]--; d.reads[l] == 0 {
		d.queue = append(d.queue, l)
	}
}

// forever is a count that no deletion brings to zero.
const forever = 1 << 30

func (d *Dead) count(m *ir.Module, f ir.Func) {
	nl, ni := m.Locs.Len(), m.Insts.Len()
	d.reads, d.alive = arena.Zeroed(d.reads, nl), arena.Zeroed(d.alive, ni)
	d.first, d.queue = arena.Zeroed(d.first, nl+1), d.queue[:0]
	writes := 0
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			outs := m.Outs(i)
			ins := m.AllArgs(i)
			ins = ins[:len(ins)-len(outs)]
			_, state := m.StateOf(i)
			needed := len(outs) == 0 || state&^ir.StatePEW != 0 || m.Insts.At(i).Op.Is(ir.FlagRegion|ir.FlagControl|ir.FlagContainer)
			for _, a := range ins {
				if l := m.LocOf(a); l != 0 {
					d.reads[l]++
				} else if a.Kind == ir.ArgSym || a.Kind == ir.ArgSymPW || a.Kind == ir.ArgRegAP {
					d.keepSet(m, m.Syms.At(ir.Sym(a.Ref)).Set)
				}
			}
			for _, a := range outs {
				l := m.LocOf(a)
				if l == 0 {
					needed = true
					continue
				}
				d.first[l+1]++
				writes++
			}
			d.alive[i] = uint32(len(outs))
			if needed {
				d.alive[i] = forever
			}
		}
	}
	for l, r := range m.Locs.All() {
		if s := m.Sets.At(r.Set); s.Kind != ir.KindInternal || s.Addr != ir.AddrLocal || s.Flags&ir.SetVolatile != 0 {
			d.reads[l] += forever
		}
	}
	for _, a := range m.AliasRows() {
		d.reads[a.A], d.reads[a.B] = forever, forever
	}
	for l := range nl {
		d.first[l+1] += d.first[l]
	}
	if cap(d.writer) < writes {
		d.writer = make([]ir.Inst, writes)
	}
	d.writer = d.writer[:writes]
	// Fill from the back of each range, which leaves first at the starts.
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			for _, a := range m.Outs(i) {
				if l := m.LocOf(a); l != 0 {
					d.first[l+1]--
					d.writer[d.first[l+1]] = i
				}
			}
		}
	}
	for l := ir.Loc(1); int(l) < nl; l++ {
		d.first[l] = d.first[l+1]
	}
	d.first[nl] = uint32(writes)
	for l := ir.Loc(1); int(l) < nl; l++ {
		if d.reads[l] == 0 && d.first[l] < d.first[l+1] {
			d.queue = append(d.queue, l)
		}
	}
}

func (d *Dead) keepSet(m *ir.Module, s ir.Set) {
	first, n := m.LocsOf(s)
	for l := first; l < first+ir.Loc(n); l++ {
		d.reads[l] = forever
	}
}
