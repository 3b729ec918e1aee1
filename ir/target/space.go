package target

// Space is a memory space, by the code of the public notes: powers of two of which a location has exactly one.
type Space uint8

const (
	SpaceUnallocated Space = 1
	SpaceInput       Space = 2
	SpaceOutput      Space = 4
	SpaceDRAM        Space = 8
	SpaceSB          Space = 16
	SpacePSUM        Space = 32
	SpaceRNG         Space = 64
	SpaceREG         Space = 128
)

var spaces = [8]struct {
	s    Space
	name string
}{
	{SpaceUnallocated, "Unallocated"}, {SpaceInput, "Input"}, {SpaceOutput, "Output"}, {SpaceDRAM, "DRAM"},
	{SpaceSB, "SB"}, {SpacePSUM, "PSUM"}, {SpaceRNG, "RNGSTATE"}, {SpaceREG, "REG"},
}

// String is the JSON name.
func (s Space) String() string {
	for _, e := range spaces {
		if e.s == s {
			return e.name
		}
	}
	return "space?"
}

// OnChip reports SBUF or PSUM, the spaces with partitions.
func (s Space) OnChip() bool { return s == SpaceSB || s == SpacePSUM }

// ParseSpace finds a space by its JSON name.
func ParseSpace(name string) (Space, bool) {
	for _, e := range spaces {
		if e.name == name {
			return e.s, true
		}
	}
	return 0, false
}

// Address map of one core: the start of the PSUM window, and the distance between two partitions.
const (
	PSUMBase           = 0x2000000
	PSUMPartitionPitch = 1 << 15
	SBPartitionPitch   = 1 << 18
	PSUMBankPitch      = 1 << 11
	QuadrantPartitions = 32
)

// SBAddress is the global byte address of (partition, byte in partition).
func SBAddress(partition int, off int64) int64 { return int64(partition)*SBPartitionPitch + off }

// PSUMAddress is the global byte address of (partition, bank, byte in bank).
func PSUMAddress(partition, bank int, off int64) int64 {
	return PSUMBase + int64(partition)*PSUMPartitionPitch + int64(bank)*PSUMBankPitch + off
}

// LegalStart reports whether an access of n partitions may begin at partition start: more than 64 only at 0, more than 32
// at 0 or 64, up to 32 at any quadrant. As public notes have it.
func LegalStart(start, n int) bool {
	switch {
	case n < 1 || start < 0 || start+n > 128:
		return false
	case n > 64:
		return start == 0
	case n > 32:
		return start == 0 || start == 64
	}
	return start%QuadrantPartitions == 0
}

// BandHeight rounds a partition count up to the height that a placement occupies: 32, 64 or 128.
func BandHeight(n int) int {
	switch {
	case n <= 32:
		return 32
	case n <= 64:
		return 64
	}
	return 128
}
