package scalar

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// page is the granule of DRAM addresses.
const page = 4096

// place finds memory for the homes of one engine in one round: as many slots as are live together, side by side in a tensor of
// their own. Engines share none, since nothing orders them. homes come in order of their first write.
func (ws *Workspace) place(m *ir.Module, homes []home) error {
	sp := &ws.spill
	e := homes[0].engine
	if err := ws.semaphore(m, e); err != nil {
		return err
	}
	sp.ends.Reset()
	sp.free.Reset()
	slots := uint32(0)
	for k := range homes {
		h := &homes[k]
		for sp.ends.Len() > 0 {
			s, end := sp.ends.Peek()
			if end > int64(h.first) {
				break
			}
			sp.ends.Pop()
			sp.free.Push(s, 0)
		}
		if sp.free.Len() > 0 {
			h.slot, _ = sp.free.Pop()
		} else {
			h.slot = slots
			slots++
		}
		sp.ends.Push(h.slot, int64(h.last))
	}
	loc, err := ws.tensor(m, e, int64(slots)*slotBytes)
	if err != nil {
		return err
	}
	ws.mt.SlotBytes += int64(slots) * slotBytes
	onChip := m.Locs.At(loc).Space.OnChip()
	for k := range homes {
		h := &homes[k]
		d := target.Uint32
		if h.width == 2 {
			d = target.Uint64
		}
		size := int64(d.Size())
		ap := ir.APRow{Loc: loc, Dtype: d, Off: int64(h.slot) * slotBytes / size}
		at := 0
		if onChip {
			ap.Parts = 1
			ap.Pairs[0] = ir.Pair{Step: int32(int64(slots) * slotBytes / size), Num: 1}
			at = 1
		}
		ap.Pairs[at] = ir.Pair{Step: 1, Num: 1}
		h.ap = m.APs.Add(ap)
	}
	return nil
}

// tensor adds the tensor of the slots: in SBUF, or in DRAM when SBUF has no gap left. Where the function's tensors have no
// addresses yet, neither has this one.
func (ws *Workspace) tensor(m *ir.Module, e target.Engine, bytes int64) (ir.Loc, error) {
	sp := &ws.spill
	name := m.Names.Derived(m.Names.Intern("registers."+e.String()), arena.DeriveHome, sp.round+1)
	row := ir.LocRow{Name: name, Space: target.SpaceSB, Parts: 1, Bytes: bytes, Pack: -1, ID: -1}
	set := ir.SetRow{
		Name: name, Kind: ir.KindInternal, Class: ir.ClassNeuronSBTensor, Dtype: target.Uint32, Func: sp.f, Count: 1,
		Flags: ir.SetNoSpill | ir.SetNoRotate,
	}
	flags := m.Funcs.At(sp.f).Flags
	if flags&ir.FuncSBPlaced != 0 {
		addr, ok := ws.gap(m, bytes)
		if ok {
			row.Addr, row.Flags = addr, ir.LocAllocated
		} else {
			row.Space = target.SpaceDRAM
		}
	}
	if row.Space == target.SpaceDRAM {
		set.Class, set.PartDim = ir.ClassTensor, -1
		set.Flags = ir.SetSpillHome
		set.Shape = m.Ints.Add(bytes / 4)
		if flags&ir.FuncDRAMPlaced != 0 {
			row.Addr, row.Flags = dramEnd(m), ir.LocAllocated
			if end := row.Addr + bytes; end > m.Gen.HBMBytes() {
				return 0, target.Errorf(target.Limit, "%d bytes for spilled registers of %s end at byte %d of DRAM; the window of %s is %d", bytes, e, end, m.Gen.Name, m.Gen.HBMBytes())
			}
		}
	} else {
		set.Shape = m.Ints.Add(1, bytes/4)
	}
	s := m.Sets.Add(set)
	row.Set = s
	l := m.Locs.Add(row)
	m.Sets.At(s).First = l
	sp.sets = append(sp.sets, s)
	return l, nil
}

// gap is the lowest address in partition 0 of SBUF where nothing ever lies.
func (ws *Workspace) gap(m *ir.Module, bytes int64) (addr int64, ok bool) {
	sp := &ws.spill
	limit := int64(m.Gen.SBBytes)
	if sp.opt.SBBytes > 0 {
		limit = min(limit, sp.opt.SBBytes)
	}
	sp.busy = append(sp.busy[:0], stretch{0, int64(m.Gen.SBReserved)})
	for _, l := range m.Locs.All() {
		if l.Space == target.SpaceSB && l.Flags&ir.LocAllocated != 0 && l.Base == 0 {
			sp.busy = append(sp.busy, stretch{l.Addr, l.Addr + l.Bytes})
		}
	}
	slices.SortFunc(sp.busy, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	for _, b := range sp.busy {
		if addr+bytes <= b.lo {
			break
		}
		addr = max(addr, (b.hi+slotBytes-1)/slotBytes*slotBytes)
	}
	return addr, addr+bytes <= limit
}

// dramEnd is the first page behind everything in the arena of Internal tensors.
func dramEnd(m *ir.Module) (end int64) {
	for _, l := range m.Locs.All() {
		if l.Space == target.SpaceDRAM && l.Flags&ir.LocAllocated != 0 && m.Sets.At(l.Set).Kind.IsInternal() {
			end = max(end, l.Addr+l.Bytes*int64(l.Parts))
		}
	}
	return (end + page - 1) / page * page
}

// semaphore lends an engine a semaphore that nothing in the function uses.
func (ws *Workspace) semaphore(m *ir.Module, e target.Engine) error {
	sp := &ws.spill
	if sp.sem[e] != 0 {
		return nil
	}
	if !sp.scan {
		sp.scan = true
		for _, i := range ws.flow.insts {
			s := m.Syncs.Get(i)
			for _, list := range [2][]ir.SyncOp{m.SyncOps.Of(s.Waits), m.SyncOps.Of(s.Updates)} {
				for _, o := range list {
					if int(o.Sem) < len(sp.used) {
						sp.used[o.Sem] = true
					}
				}
			}
		}
	}
	for s := firstFreeSem; s <= lastFreeSem; s++ {
		if !sp.used[s] {
			sp.used[s], sp.sem[e] = true, uint16(s)
			return nil
		}
	}
	return target.Errorf(target.Limit, "no semaphore is left to order the spilled registers of %s: %d to %d are in use", e, firstFreeSem, lastFreeSem)
}
