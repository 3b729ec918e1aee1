package memalloc

import (
	"log/slog"
	"time"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Options bound the allocators. The zero value is the machine as it is.
type Options struct {
	// SBBytes is the raw bytes of a partition, the runtime's strip included; 0 is the generation's.
	SBBytes int64
	// PsumBanks is the number of banks; 0 is the generation's.
	PsumBanks int
	// PsumReserved is a mask of banks that stay free.
	PsumReserved uint64
	// HBMBytes is the window of DRAM addresses; 0 is the generation's.
	HBMBytes int64
	// AddrSpace is the DRAM address space that DRAM places.
	AddrSpace ir.AddrSpace
	// AllreduceMiB limits the DRAM region of collectives' operands; 0 is DefaultAllreduceMiB, negative is what they add up to.
	AllreduceMiB int
	// NoStrip gives the runtime's strip to tensors.
	NoStrip bool
	// StripBytes is the strip's size a partition where no location reserves it; 0 is the generation's.
	StripBytes int64
	// Align are the rules for the starts of SB locations.
	Align Alignments
	// Partners lays operands of accumulation chains and both sides of copies out alike in SB.
	Partners bool
	// FastContextSwitch pins no loads, since another program may want the memory; UnpinGen2 pins none on generation level 20.
	FastContextSwitch bool
	UnpinGen2         bool
	// NoSpillHint honours SetNoSpill.
	NoSpillHint bool
	// NoSpill makes the first overflow an error.
	NoSpill bool
	// DMALevel is how hard SB works for few spill transfers.
	DMALevel DMALevel
	// RunGap is how many points apart two accesses may be to share a reload where nearness decides, over flattened loops and in a linear
	// scan; 0 is what DMALevel says, negative never shares, anywhere.
	RunGap int
	// MaxReloads is how many reloads SB may insert before it stops optimising them; 0 is DefaultMaxReloads.
	MaxReloads int
	// Strict refuses values that nothing reads.
	Strict bool
	// Manager is the memory in which a linear scan places; nil is best fit. It is reset for each space.
	Manager Manager
	// Watchdog is the wall-clock limit; 0 is regalloc.DefaultWatchdog.
	Watchdog time.Duration
	// Log hears of attempts at debug level and of what is unusual as warnings; nil is silent.
	Log *slog.Logger

	flat bool // live ranges over flattened loops: the family of WithLoop
}

// DefaultRunGap is how far apart in points accesses may be that share one reload, as long as the memory has room for it.
const DefaultRunGap = 16

// Raw is the bytes of a partition of SBUF that may be used, the strip included.
func (o *Options) Raw(g *target.Generation) int64 {
	if o.SBBytes > 0 {
		return min(o.SBBytes, int64(g.SBBytes))
	}
	return int64(g.SBBytes)
}

// Strip is the bytes at the bottom of them that belong to the runtime.
func (o *Options) Strip(g *target.Generation) int64 {
	switch {
	case o.NoStrip:
		return 0
	case o.StripBytes > 0:
		return o.StripBytes
	}
	return int64(g.SBReserved)
}

// Banks is the number of PSUM banks that may be used.
func (o *Options) Banks(g *target.Generation) int {
	if o.PsumBanks > 0 {
		return min(o.PsumBanks, g.PSUMBanks)
	}
	return g.PSUMBanks
}

func (o *Options) window(g *target.Generation) int64 {
	if o.HBMBytes > 0 {
		return o.HBMBytes
	}
	return g.HBMBytes()
}

// Metrics is what one allocator did to one function. Bytes of PSUM and SB are bytes a partition unless said otherwise.
type Metrics struct {
	Space      target.Space
	Nodes      int // units in the last round, obstacles included
	Placed     int // DRAM: locations that got an address
	Edges      int // interfering pairs in the last round
	Iterations int // rounds, 1 when nothing spilled
	Unused     int // values that nothing reads

	Shrunk      int   // sets whose blocks were found to take turns
	ShrinkSaved int64 // bytes a partition that they need less

	Splittable int // locations that held several values one after the other
	Split      int // locations made for their second values and those after

	Spilled        int   // values sent home
	SpilledBytes   int64 // their bytes, all partitions; of values that stay in part, those that leave
	SpilledPerPart int64 // the same a partition
	Saves          int   // inserted save or copy-out instructions
	Reloads        int   // inserted reloads
	Remats         int   // values among Spilled that had a home already
	MovedBytes     int64 // SB: bytes by the spill code to and from DRAM, less by loads that it made needless
	LateBytes      int64 // SB: of SpilledBytes, those of values whose loads were only made later or in parts
	Moves          int   // SB: inserted copies on chip, to where a value finds room
	MoveBytes      int64 // SB: their bytes
	HomeBytes      int64 // SB, PSUM: DRAM bytes of new homes; DRAM: bytes of all homes
	HomeAligned    int64 // DRAM: the same, each in whole pages
	PinTried       int64 // bytes a partition of loads that could be made again, where something found no place
	Pinned         int64 // of these, pinned
	Unpinned       int64 // of these, un-pinned under pressure
	SpillCost      int64 // estimated ns of the spill code by itself
	Score          int64 // of the last attempt: cost of what found no place, 0 when all did; lower is better
	TooManyReloads bool  // optimisations of reloads went off at MaxReloads

	PeakDemand  float64 // percent of the memory that is live at the worst point before placement
	PeakInst    ir.Inst // the instruction there
	PeakBytes   int64   // DRAM: the bytes that are live there
	HighWater   int64   // end of the highest placement: bytes of a partition, banks for PSUM, bytes of DRAM
	Quadrants   [4]int64
	Utilisation float64 // percent of the memory below or in placements at the worst point
	Capacity    int64   // bytes a partition, banks, or bytes of DRAM

	// DRAM only. Total is what all locations of the address space would take side by side, in whole pages. The operands of
	// collectives take CollectiveBytes, and the first CollectiveHigh of the CollectiveLimit bytes of their region.
	Total           int64
	CollectiveBytes int64
	CollectiveHigh  int64
	CollectiveLimit int64

	// Linear scan only. Evictions counts the times that a value left its place early; the fragmentation is the part of the free space
	// outside of the largest free rectangle, its median and 90th percentile over all placements.
	Evictions            int
	FragMedian, FragTail float64

	SpillTime time.Duration // spent on rounds that did not place everything
}
