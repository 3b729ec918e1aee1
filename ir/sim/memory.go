package sim

import (
	"bytes"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const poison = 0xFF

// store is one byte space: data, and a shadow that is 1 where data was written.
type store struct {
	data, shadow []byte
	pitch        int // bytes a partition
}

func (s *store) resize(parts, pitch int) {
	n := parts * pitch
	if cap(s.data) < n {
		s.data, s.shadow = make([]byte, n), make([]byte, n)
	}
	s.data, s.shadow, s.pitch = s.data[:n], s.shadow[:n], pitch
	for i := range s.data {
		s.data[i] = poison
	}
	clear(s.shadow)
}

// MaxMemory bounds the bytes that one simulation may hold, data and shadow.
const MaxMemory = 12 << 30

// layout gives every location its store and the offset of its first byte there.
func (s *Sim) layout(m *ir.Module) error {
	total, dram := int64(0), int64(0)
	hasSB, hasPSUM := false, false
	for l, r := range m.Locs.All() {
		if r.Flags&ir.LocAllocated != 0 {
			switch {
			case r.Space == target.SpaceSB:
				hasSB = true
			case r.Space == target.SpacePSUM:
				hasPSUM = true
			case internal(m, r):
				dram = max(dram, r.Addr+r.Bytes*int64(r.Parts))
			}
			if err := s.inBounds(m, l, r); err != nil {
				return err
			}
			if r.Space.OnChip() || internal(m, r) {
				continue
			}
		}
		total += r.Bytes * int64(r.Parts)
		if total < 0 || total > MaxMemory/2 {
			return target.Errorf(target.Limit, "simulation needs more than %d bytes of memory at %s", int64(MaxMemory), m.LocName(l))
		}
	}
	if dram > MaxMemory/2-total {
		return target.Errorf(target.Limit, "simulation needs %d bytes of DRAM; limit %d", dram, int64(MaxMemory/2))
	}
	g := m.Gen
	s.sb.resize(bool2int(hasSB)*g.SBPartitions, g.SBBytes)
	s.psum.resize(bool2int(hasPSUM)*g.PSUMParts, g.PSUMBanks*g.BankBytes)
	s.dram.resize(1, int(dram))
	for len(s.own) < m.Locs.Len() {
		s.own = append(s.own, store{})
	}
	for l, r := range m.Locs.All() {
		if r.Flags&ir.LocAllocated == 0 || !(r.Space.OnChip() || internal(m, r)) {
			s.own[l].resize(int(r.Parts), int(r.Bytes))
		}
	}
	return nil
}

func (s *Sim) inBounds(m *ir.Module, l ir.Loc, r *ir.LocRow) error {
	g := m.Gen
	switch r.Space {
	case target.SpaceSB:
		if r.Addr < 0 || r.Addr+r.Bytes > int64(g.SBBytes) || int(r.Base)+int(r.Parts) > g.SBPartitions {
			return target.Errorf(target.Bug, "%s is placed at partitions %d+%d, bytes %d+%d, outside SBUF (%d × %d)",
				m.LocName(l), r.Base, r.Parts, r.Addr, r.Bytes, g.SBPartitions, g.SBBytes)
		}
	case target.SpacePSUM:
		at := int64(r.Bank)*int64(g.BankBytes) + r.Addr
		if r.Bank < 0 || at < 0 || at+r.Bytes > int64(g.PSUMBanks*g.BankBytes) || int(r.Base)+int(r.Parts) > g.PSUMParts {
			return target.Errorf(target.Bug, "%s is placed at partitions %d+%d, bank %d, bytes %d+%d, outside PSUM (%d banks)",
				m.LocName(l), r.Base, r.Parts, r.Bank, r.Addr, r.Bytes, g.PSUMBanks)
		}
	default:
		if r.Addr < 0 {
			return target.Errorf(target.Bug, "%s is placed at DRAM byte %d", m.LocName(l), r.Addr)
		}
	}
	return nil
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

// internal reports DRAM locations that live in the arena of the allocator.
func internal(m *ir.Module, r *ir.LocRow) bool {
	return r.Space == target.SpaceDRAM && m.Sets.At(r.Set).Kind.IsInternal()
}

// home is the store of a location and the byte there of (partition 0 of the location, byte 0).
func (s *Sim) home(m *ir.Module, l ir.Loc) (*store, int) {
	r := m.Locs.At(l)
	if r.Flags&ir.LocAllocated != 0 {
		switch {
		case r.Space == target.SpaceSB:
			return &s.sb, int(r.Base)*s.sb.pitch + int(r.Addr)
		case r.Space == target.SpacePSUM:
			return &s.psum, int(r.Base)*s.psum.pitch + int(r.Bank)*m.Gen.BankBytes + int(r.Addr)
		case internal(m, r):
			return &s.dram, int(r.Addr)
		}
	}
	return &s.own[l], 0
}

// view turns an access pattern into a window on its store.
func (s *Sim) view(m *ir.Module, a ir.Arg) (kernel.View, *store, error) {
	ap, err := s.pattern(m, a)
	if err != nil {
		return kernel.View{}, nil, err
	}
	st, base := s.home(m, ap.Loc)
	esz := ap.Dtype.Size()
	v := kernel.View{Data: st.data, Off: base + int(ap.Off)*esz, Dtype: ap.Dtype, Parts: 1}
	space := m.Locs.At(ap.Loc).Space
	free := ap.Free(space)
	if space.OnChip() {
		v.Off += int(ap.Start) * st.pitch
		v.Parts, v.PStep = int(ap.Parts), st.pitch
	} else if len(free) > kernel.Axes {
		v.Parts, v.PStep = int(free[0].Num), int(free[0].Step)*esz
		free = free[1:]
	}
	v.N = len(free)
	for i, p := range free {
		d := len(free) - 1 - i
		v.Steps[d], v.Nums[d] = int(p.Step)*esz, int(p.Num)
	}
	return v, st, nil
}

// checkRead demands that every byte of the pattern was written; checkRead and mark walk the runs of the footprint.
func (s *Sim) checkRead(v *kernel.View, st *store) (off int, ok bool) {
	for p := range v.Parts {
		_, ok := walk(v, p, func(lo, n int) bool {
			k := bytes.IndexByte(st.shadow[lo:lo+n], 0)
			off = lo + k
			return k < 0
		})
		if !ok {
			return off, false
		}
	}
	return 0, true
}

func (s *Sim) mark(v *kernel.View, st *store) {
	for p := range v.Parts {
		walk(v, p, func(lo, n int) bool {
			run := st.shadow[lo : lo+n]
			for i := range run {
				run[i] = 1
			}
			return true
		})
	}
}

// walk calls f for each contiguous run of partition p until it says no, and returns where it did.
func walk(v *kernel.View, p int, f func(lo, n int) bool) (int, bool) {
	size := v.Dtype.Size()
	run, first := size, 0
	for first < v.N && (v.Nums[first] == 1 || v.Steps[first] == run) {
		run *= v.Nums[first]
		first++
	}
	var idx [kernel.Axes]int
	for {
		at := v.Off + p*v.PStep
		for d := first; d < v.N; d++ {
			at += idx[d] * v.Steps[d]
		}
		if !f(at, run) {
			return at, false
		}
		d := first
		for ; d < v.N; d++ {
			if idx[d]++; idx[d] < v.Nums[d] {
				break
			}
			idx[d] = 0
		}
		if d >= v.N {
			return 0, true
		}
	}
}
