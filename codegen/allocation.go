package codegen

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

// Allocation is what the allocators may be told beside the sizes of the memories. NewOptions gives the defaults; zero alignments
// are the defaults too.
type Allocation struct {
	AXIThreshold int    // bytes a partition below which an SBUF tensor starts on a 256-byte boundary; -1 never
	RMWAlign     int    // start alignment of SBUF tensors from RMWTarget on, a power of two; -1 never
	RMWTarget    string // the first machine that needs it
	DMAPage      int    // bytes of a page: SBUF tensors of whole pages that are transferred start on one; -1 never
	APAlign      int    // largest start alignment that access patterns ask for; -1 never

	DMALevel    int  // -1 auto, 0 off, 1, 2 aggressive: effort for few reloads
	NoSpillHint bool // tensors that say so are not spilled

	Partners          bool // operands that are used alike are laid out alike in SBUF
	FastContextSwitch bool // no loads are pinned
	UnpinGen2         bool // nor on the second generation
}

// Defaults of the allocators' options.
const (
	DefaultAXIThreshold = 512
	DefaultRMWAlign     = 32
	DefaultRMWTarget    = "core_v4"
	DefaultDMAPage      = 512
	DefaultAPAlign      = 64
	DefaultDMALevel     = 1
)

func newAllocation() Allocation {
	return Allocation{
		AXIThreshold: DefaultAXIThreshold, RMWAlign: DefaultRMWAlign, RMWTarget: DefaultRMWTarget, DMAPage: DefaultDMAPage,
		APAlign: DefaultAPAlign, DMALevel: DefaultDMALevel,
	}
}

// dmaLevels are the allocator's words for -1 to 2. Nothing is known that would tell when another level than the default is
// better, so auto is the default.
var dmaLevels = [...]memalloc.DMALevel{memalloc.DMADefault, memalloc.DMAOff, memalloc.DMADefault, memalloc.DMAAggressive}

// check refuses what no allocator could follow.
func (a *Allocation) check() error {
	for _, v := range []struct {
		flag  string
		value int
	}{{"RMW-alignment", a.RMWAlign}, {"dram-page-size", a.DMAPage}, {"AP-alignment", a.APAlign}} {
		if v.value < -1 || v.value > 1<<16 || v.value > 0 && bits.OnesCount(uint(v.value)) != 1 {
			return target.Errorf(target.User, "--%s %d: a power of two up to 65536, or -1 for never", v.flag, v.value)
		}
	}
	if a.AXIThreshold < -1 {
		return target.Errorf(target.User, "--AXI-alignment-size-thres %d: bytes, or -1 for never", a.AXIThreshold)
	}
	if a.RMWTarget != "" {
		if _, err := target.Lookup(a.RMWTarget); err != nil {
			return target.Errorf(target.User, "--RMW-alignment-target-arch: %v", err)
		}
	}
	if a.DMALevel < -1 || a.DMALevel > 2 {
		return target.Errorf(target.User, "--gca-dma-optlevel %d: -1 for auto, 0 off, 1 default, 2 aggressive", a.DMALevel)
	}
	return nil
}

// apply gives the allocators what was asked for.
func (a *Allocation) apply(o *memalloc.Options) {
	o.Align = memalloc.Alignments{
		AXIThreshold: int64(a.AXIThreshold), RMW: int64(a.RMWAlign), Page: int64(a.DMAPage), AP: int64(a.APAlign),
	}
	if g, err := target.Lookup(a.RMWTarget); err == nil {
		o.Align.RMWLevel = g.Level
	}
	o.DMALevel = dmaLevels[a.DMALevel+1]
	o.NoSpillHint = a.NoSpillHint
	o.Partners = a.Partners
	o.FastContextSwitch, o.UnpinGen2 = a.FastContextSwitch, a.UnpinGen2
}
