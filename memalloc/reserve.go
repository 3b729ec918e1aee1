package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// stripName is the name of the location that stands for the runtime's strip of SBUF.
const stripName = "dge_scratch"

// Reserve adds the strip of SBUF in which the runtime builds DMA descriptors, as a placed, pinned location of all partitions
// from byte 0 on, and returns it. A function that has a reserved SB location keeps it. Placements that run into the strip and
// are neither pinned nor user-allocated are taken back.
func Reserve(m *ir.Module, f ir.Func, opt Options) ir.Loc {
	sets := m.SetsOf(f)
	for _, s := range sets {
		first, n := m.LocsOf(s)
		for k := range n {
			if l := m.Locs.At(first + ir.Loc(k)); l.Space == target.SpaceSB && l.Flags&ir.LocReserved != 0 {
				return first + ir.Loc(k)
			}
		}
	}
	bytes := opt.Strip(m.Gen)
	if bytes == 0 {
		return 0
	}
	name := m.Names.Intern(stripName)
	s := m.Sets.Add(ir.SetRow{
		Name: name, Kind: ir.KindInternal, Class: ir.ClassNeuronSBTensor, Dtype: target.Uint8, Func: f, Count: 1,
		Shape: m.Ints.Add(int64(m.Gen.SBPartitions), bytes), Flags: ir.SetNoSpill | ir.SetNoRotate,
	})
	m.Sets.At(s).First = m.Locs.Add(ir.LocRow{
		Name: name, Set: s, Space: target.SpaceSB, Parts: uint32(m.Gen.SBPartitions), Bytes: bytes, Pack: -1, ID: -1,
		Flags: ir.LocAllocated | ir.LocPinned | ir.LocReserved,
	})
	strip := m.Sets.At(s).First
	release(m, f, bytes)
	addSets(m, f, []ir.Set{s})
	return strip
}

// release takes back placements of f that run into the strip and that nobody fixed: the strip differs from generation to
// generation, so a module that was placed for one may run into that of another. The allocator places them anew.
func release(m *ir.Module, f ir.Func, strip int64) {
	for _, s := range m.SetsOf(f) {
		first, n := m.LocsOf(s)
		for l := first; l < first+ir.Loc(n); l++ {
			const fixed = ir.LocPinned | ir.LocUserAllocated | ir.LocReserved
			if r := m.Locs.At(l); r.Space == target.SpaceSB && r.Flags&(ir.LocAllocated|fixed) == ir.LocAllocated && r.Addr < strip {
				r.Flags &^= ir.LocAllocated
			}
		}
	}
}

// addSets appends to the sets of a function.
func addSets(m *ir.Module, f ir.Func, more []ir.Set) {
	mark := m.SetList.Mark()
	for k := range m.SetsOf(f) {
		m.SetList.Push(m.SetsOf(f)[k])
	}
	for _, s := range more {
		m.SetList.Push(s)
	}
	m.Funcs.At(f).Sets = m.SetList.Since(mark)
}
