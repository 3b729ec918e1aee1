package ir

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// ArgKind is the form of an operand.
type ArgKind uint8

const (
	ArgNone     ArgKind = iota
	ArgAP               // physical_ap: Ref is an AP
	ArgSym              // symbolic_ap: Ref is a Sym
	ArgSymPW            // symbolic_pwap: Ref is a Sym
	ArgRegAP            // register_ap: Ref is a Sym with a register
	ArgImm              // imm_value: Ref is the bits: float32 bits for floats, the value for integers up to 32 bits
	ArgImmWide          // imm_value of a 64-bit integer: Ref indexes Wide
	ArgSymImm           // symbolic_imm_value: Ref is a Sym whose Addr is the expression
	ArgImmArray         // imm_array: Ref is the offset in Wide of a count and then the values' bits
	ArgReg              // register_access: Ref is a Reg
)

// Arg is one operand. 8 bytes. Dtype is the operand's own element type, also for access patterns.
type Arg struct {
	Kind  ArgKind
	Dtype target.Dtype
	_     uint16
	Ref   uint32
}

// ImmF32 makes a float immediate.
func ImmF32(v float32) Arg {
	return Arg{Kind: ArgImm, Dtype: target.Float32, Ref: math.Float32bits(v)}
}

// ImmI32 makes an int32 immediate.
func ImmI32(v int32) Arg { return Arg{Kind: ArgImm, Dtype: target.Int32, Ref: uint32(v)} }

// RegArg makes a register operand.
func RegArg(r Reg, d target.Dtype) Arg { return Arg{Kind: ArgReg, Dtype: d, Ref: uint32(r)} }

// AP is the access pattern of the operand, none for other kinds.
func (a Arg) AP() AP {
	if a.Kind == ArgAP {
		return AP(a.Ref)
	}
	return 0
}

// Imm is the value of an immediate up to 32 bits, as the engines see it.
func (a Arg) Imm() float32 {
	if a.Dtype.IsFloat() {
		return math.Float32frombits(a.Ref)
	}
	if a.Dtype.Class() == target.ClassUint {
		return float32(a.Ref)
	}
	return float32(int32(a.Ref))
}

// WideAt is the bits of a 64-bit immediate.
func (m *Module) WideAt(a Arg) uint64 { return m.Wide.Of(arena.Span{Off: a.Ref, Len: 1})[0] }

// Pair is one axis of an access pattern: num accesses, step elements apart.
type Pair struct {
	Step int32
	Num  uint32
}

// APRow is a physical access pattern. 56 bytes. Operands of several instructions may share a row: a pass that changes one
// instruction adds a row. Pairs are outermost first, a pair with Num 0 is absent; steps and Off are
// in elements of Dtype, which need not be the location's.
//
// On chip, Pairs[0] is the partition axis (Num == Parts, Step == the row pitch in elements), Start is the first partition
// relative to the location's base, Off the first element in a partition's row. In DRAM every pair is an ordinary axis and
// Off is linear; Start and Parts are 0.
type APRow struct {
	Loc   Loc
	Dtype target.Dtype
	Start uint8
	Parts uint16
	Off   int64
	Pairs [5]Pair
}

// NPairs is the number of axes, partitions included on chip.
func (a *APRow) NPairs() int {
	n := 0
	for n < len(a.Pairs) && a.Pairs[n].Num != 0 {
		n++
	}
	return n
}

// Free are the axes beside the partitions, outermost first.
func (a *APRow) Free(space target.Space) []Pair {
	n := a.NPairs()
	if space.OnChip() {
		return a.Pairs[min(1, n):n]
	}
	return a.Pairs[:n]
}

// FreeElems is the number of elements a partition (on chip), or of the whole pattern (DRAM).
func (a *APRow) FreeElems(space target.Space) int64 {
	n := int64(1)
	for _, p := range a.Free(space) {
		n *= int64(p.Num)
	}
	return n
}

// Elems is the number of elements of the whole pattern.
func (a *APRow) Elems() int64 {
	n := int64(1)
	for _, p := range a.Pairs[:a.NPairs()] {
		n *= int64(p.Num)
	}
	return n
}

// SymRow is a symbolic or register-addressed access pattern on a set: the physical pattern AP plus Addr (an affine
// expression in loop axes, in elements) or the value of Reg.
type SymRow struct {
	Set  Set
	AP   APRow
	Addr Expr
	Reg  Reg
	// Flags of the JSON form.
	RegLocOffset bool
	APOffset     int64 // const_ap_offset
	SubTensor    int32 // const_sub_tensor_id, -1 none
	SubReg       Reg   // reg_sub_tensor_id
}

// LocOf is the location that an operand touches, none for immediates, registers and symbolic operands.
func (m *Module) LocOf(a Arg) Loc {
	if a.Kind == ArgAP {
		return m.APs.At(AP(a.Ref)).Loc
	}
	return 0
}

// Pitch is the elements of dtype d in one row of a location: in one partition on chip.
func (m *Module) Pitch(l Loc, d target.Dtype) int64 { return m.Locs.At(l).Bytes / int64(d.Size()) }

// Footprint is the bytes that an access touches: partitions [P0,P1) × Num runs of Run bytes from Lo on. Byte coordinates
// are inside a partition (PSUM: bank·2048 + byte) or linear (DRAM). Region is 0 for addresses in the shared address space
// of Space, and the location for one that has an address space of its own: unallocated, or DRAM outside the Internal arena.
type Footprint struct {
	Space  target.Space
	N      uint8 // axes kept in Step and Num; 0 means one dense run
	Region Loc
	P0, P1 int32
	Lo, Hi int64 // bounding interval
	Run    int64
	Step   [5]int64 // ascending
	Num    [5]int64
}

// FootprintOf is the footprint of a physical access pattern. One function for verifier, dependences, simulators, rotation
// and DMA, so that all agree.
func (m *Module) FootprintOf(ap AP) Footprint { return m.Footprint(m.APs.At(ap)) }

// Footprint is FootprintOf for a pattern that is not in the table.
func (m *Module) Footprint(a *APRow) Footprint {
	l := m.Locs.At(a.Loc)
	f := Footprint{Space: l.Space, P1: 1}
	lo, allocated := int64(0), l.Flags&LocAllocated != 0
	switch l.Space {
	case target.SpaceSB, target.SpacePSUM:
		f.P0 = int32(a.Start)
		if allocated {
			f.P0 += int32(l.Base)
			lo = l.Addr
			if l.Space == target.SpacePSUM {
				lo += int64(l.Bank) * target.PSUMBankPitch
			}
		}
		f.P1 = f.P0 + int32(a.Parts)
	default:
		if allocated {
			lo = l.Addr
		}
		if !m.Sets.At(l.Set).Kind.IsInternal() {
			f.Region = a.Loc
		}
	}
	if !allocated {
		f.Region = a.Loc
	}
	esz := int64(a.Dtype.Size())
	lo += a.Off * esz
	run := esz
	// Insertion sort of at most five axes by absolute step, negative steps turned around.
	var step, num [5]int64
	n := 0
	for _, p := range a.Free(l.Space) {
		s, c := int64(p.Step)*esz, int64(p.Num)
		if s < 0 {
			lo += s * (c - 1)
			s = -s
		}
		if s == 0 || c == 1 {
			continue
		}
		j := n
		for j > 0 && step[j-1] > s {
			step[j], num[j] = step[j-1], num[j-1]
			j--
		}
		step[j], num[j] = s, c
		n++
	}
	hi := lo
	for i := 0; i < n; i++ {
		hi += step[i] * (num[i] - 1)
		if f.N == 0 && step[i] <= run {
			run += step[i] * (num[i] - 1)
			continue
		}
		f.Step[f.N], f.Num[f.N] = step[i], num[i]
		f.N++
	}
	f.Lo, f.Hi, f.Run = lo, hi+esz, run
	return f
}

// Runs is the number of runs of the footprint.
func (f *Footprint) Runs() int64 {
	n := int64(1)
	for i := 0; i < int(f.N); i++ {
		n *= f.Num[i]
	}
	return n
}

// Contains reports whether the footprint covers every byte of the other's bounding box: only a dense one does.
func (f *Footprint) Contains(g *Footprint) bool {
	return f.Space == g.Space && f.Region == g.Region && f.N == 0 &&
		f.P0 <= g.P0 && g.P1 <= f.P1 && f.Lo <= g.Lo && g.Hi <= f.Hi
}

// maxRunPairs bounds the exact overlap test; beyond it the bounding boxes answer, which can only add conflicts.
const maxRunPairs = 1 << 14

// Overlaps reports whether two accesses touch a common byte. Exact up to maxRunPairs runs, conservative beyond.
func (f *Footprint) Overlaps(g *Footprint) bool {
	if f.Space != g.Space || f.Region != g.Region || f.P0 >= g.P1 || g.P0 >= f.P1 || f.Lo >= g.Hi || g.Lo >= f.Hi {
		return false
	}
	if f.N == 0 && g.N == 0 {
		return true
	}
	if f.N == 1 && g.N == 1 && f.Step[0] == g.Step[0] {
		return f.meetsGrid(g)
	}
	if f.Runs() > g.Runs() {
		f, g = g, f
	}
	// Walk the runs of the footprint that has fewer, and ask the other for each.
	if f.Runs()*int64(g.N+1) > maxRunPairs {
		return true
	}
	var idx [5]int64
	for {
		at := f.Lo
		for i := 0; i < int(f.N); i++ {
			at += idx[i] * f.Step[i]
		}
		if g.touches(at, at+f.Run, int(g.N)-1, g.Lo) {
			return true
		}
		i := 0
		for ; i < int(f.N); i++ {
			if idx[i]++; idx[i] < f.Num[i] {
				break
			}
			idx[i] = 0
		}
		if i == int(f.N) {
			return false
		}
	}
}

// Touches reports whether the access touches any of the bytes [lo, hi) of its partitions. Exact.
func (f *Footprint) Touches(lo, hi int64) bool {
	return lo < f.Hi && f.Lo < hi && f.touches(lo, hi, int(f.N)-1, f.Lo)
}

// meetsGrid is the overlap of two rows of runs at the same distance, tiles of one matrix for instance: run i of f meets run j
// of g exactly if t = i-j satisfies t·step < d + g.Run and d < t·step + f.Run, d being the distance of their starts.
func (f *Footprint) meetsGrid(g *Footprint) bool {
	step, d := f.Step[0], g.Lo-f.Lo
	lo := floorDiv(d-f.Run, step) + 1
	hi := -floorDiv(-(d+g.Run), step) - 1
	return max(lo, 1-g.Num[0]) <= min(hi, f.Num[0]-1)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// touches reports whether any run of axes 0…axis from base on meets [lo, hi). The depth is at most five axes.
func (f *Footprint) touches(lo, hi int64, axis int, base int64) bool {
	if axis < 0 {
		return base < hi && lo < base+f.Run
	}
	// The inner axes span ext bytes; only those indices of this axis matter whose span meets [lo, hi).
	ext := f.Run
	for i := 0; i < axis; i++ {
		ext += f.Step[i] * (f.Num[i] - 1)
	}
	first := (lo - ext - base) / f.Step[axis]
	if first < 0 {
		first = 0
	}
	for k := first; k < f.Num[axis]; k++ {
		at := base + k*f.Step[axis]
		if at >= hi {
			return false
		}
		if at+ext > lo && f.touches(lo, hi, axis-1, at) {
			return true
		}
	}
	return false
}
