package isa

import "github.com/rosmar-compiler/rosmar/ir/target"

// ADDR4 flags. Bits 0..28 are a global on-chip byte address.
const (
	AddrIndirect = 1 << 29 // the word addresses an index list
	AddrRegister = 1 << 31 // the word is AddrRegister | register number

	psumEnd = target.PSUMBase + 128*target.PSUMPartitionPitch
)

// SBAddr is the address word of a byte of an SBUF partition: the start partition sits in the address at a pitch of 256 KiB,
// which for a legal start is the published quadrant * 8 MiB + offset.
func SBAddr(partition int, off uint32) uint32 {
	return uint32(partition)*target.SBPartitionPitch + off
}

// PSUMAddr is the address word of a byte of a PSUM bank.
func PSUMAddr(partition, bank int, off uint32) uint32 {
	return target.PSUMBase + uint32(partition)*target.PSUMPartitionPitch + uint32(bank)*target.PSUMBankPitch + off
}

// RegAddr is the address word that takes its address from a scalar register.
func RegAddr(reg uint8) uint32 { return AddrRegister | uint32(reg) }

// Place is an address word taken apart. For SBUF, Off is the byte in the partition and Bank is 0; for PSUM, Off is the byte
// in the partition, banks counted through (Off / 2048 = Bank).
type Place struct {
	Space     target.Space
	Partition int
	Bank      int
	Off       uint32
}

// PlaceOf takes apart a direct address word; ok is false for register words, flags and addresses outside both windows.
func PlaceOf(addr uint32) (p Place, ok bool) {
	switch {
	case addr < target.PSUMBase:
		return Place{target.SpaceSB, int(addr / target.SBPartitionPitch), 0, addr % target.SBPartitionPitch}, true
	case addr < psumEnd:
		a := addr - target.PSUMBase
		off := a % target.PSUMPartitionPitch
		return Place{target.SpacePSUM, int(a / target.PSUMPartitionPitch), int(off / target.PSUMBankPitch), off}, true
	}
	return Place{}, false
}

// Pack drops unit axes of a pattern and merges each axis that continues the one below it, so that fewer slots are needed.
// The order of the elements is unchanged. A pattern of one element becomes N = 1, Step 1, Num 1.
func Pack(d Desc) Desc {
	out := Desc{Addr: d.Addr}
	for i := uint32(0); i < d.N && i < 4; i++ {
		if d.Num[i] == 1 {
			continue
		}
		if k := out.N; k > 0 && int64(d.Step[i]) == int64(out.Step[k-1])*int64(out.Num[k-1]) &&
			uint64(out.Num[k-1])*uint64(d.Num[i]) <= 0xFFFF {
			out.Num[k-1] *= d.Num[i]
			continue
		}
		out.Step[out.N], out.Num[out.N] = d.Step[i], d.Num[i]
		out.N++
	}
	if out.N == 0 {
		out.N, out.Step[0], out.Num[0] = 1, 1, 1
	}
	return out
}

// Elems is the element count of the pattern, saturated at 2^32-1; 0 when the operand is absent.
func (d *Desc) Elems() uint32 {
	if d.N == 0 || d.N > 4 {
		return 0
	}
	n := uint64(1)
	for i := uint32(0); i < d.N; i++ {
		n *= uint64(d.Num[i])
		if n > 0xFFFFFFFF {
			return 0xFFFFFFFF
		}
	}
	return uint32(n)
}

// Span is the least and greatest element offset that the pattern visits.
func (d *Desc) Span() (lo, hi int64) {
	for i := uint32(0); i < d.N && i < 4; i++ {
		w := int64(d.Step[i]) * (int64(d.Num[i]) - 1)
		if w < 0 {
			lo += w
		} else {
			hi += w
		}
	}
	return lo, hi
}
