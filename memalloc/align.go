package memalloc

import (
	"cmp"
	"math/bits"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Where an SB location may start. Every offset is a multiple of the granule. Read-modify-write engines need 32 bytes from level
// 40 on. The other rules only save cycles of the bus, and are given up before a place is: small locations start on a 256-byte
// boundary, what a transfer fills or empties in whole pages starts on a page, and what is accessed in rows of its own pitch
// starts on what all rows have in common, from level 30 on. Each rule can be switched off by a negative option.
//
// The reference names the options and their defaults; what the page size and the patterns do with a start is our reading.
const (
	defaultAXIThreshold = 512
	axiAlign            = 256
	defaultRMWAlign     = 32
	defaultRMWLevel     = 40
	defaultDMAPage      = 512
	defaultAPAlign      = 64
	apLevel             = 30
	// pitchAccesses is how many accesses speak for a location: reading the patterns of all costs 4 % of the pass.
	pitchAccesses = 4
)

// Alignments are options of the rules. Zero values are the defaults, negative ones switch a rule off.
type Alignments struct {
	// AXIThreshold: locations of fewer bytes a partition start on a 256-byte boundary; 512.
	AXIThreshold int64
	// RMW is the start alignment of all locations from generation level RMWLevel on, a power of two; 32 from level 40 on.
	RMW      int64
	RMWLevel int
	// Page is the unit of transfers, a power of two: a location that is moved and whose bytes a partition are a multiple of it
	// starts on a multiple of it; 512.
	Page int64
	// AP is the largest start alignment that is derived from access patterns, a power of two; 64.
	AP int64
}

// aligner is the rules as they stand for one machine, powers of two in granules; 0 is never.
type aligner struct {
	axi  int64 // bytes
	must uint8
	page uint8
	ap   uint8
}

func (a *Alignments) aligner(g *target.Generation) (r aligner) {
	r.axi = max(0, cmp.Or(a.AXIThreshold, defaultAXIThreshold))
	if a.RMWLevel >= 0 && g.Level >= cmp.Or(a.RMWLevel, defaultRMWLevel) {
		r.must = log2granules(cmp.Or(a.RMW, defaultRMWAlign))
	}
	r.page = log2granules(cmp.Or(a.Page, defaultDMAPage))
	if g.Level >= apLevel {
		r.ap = log2granules(cmp.Or(a.AP, defaultAPAlign))
	}
	return r
}

func log2granules(bytes int64) uint8 {
	if bytes <= granule {
		return 0
	}
	return uint8(bits.Len64(uint64(bytes/granule)) - 1)
}

// shifts are the start alignment of a location while there is room for it, and the one that it needs.
func (r *aligner) shifts(l *ir.LocRow, use *sbUse) (want, least uint8) {
	want = r.must
	if l.Bytes < r.axi {
		want = max(want, log2granules(axiAlign))
	}
	if use.moved && r.page > want && l.Bytes&(granule<<r.page-1) == 0 {
		want = r.page
	}
	if use.pitch != 0 {
		want = max(want, min(r.ap, uint8(bits.TrailingZeros64(use.pitch))))
	}
	return want, r.must
}

// pitchOf is what the rows of an access are apart, in granules, as a number whose lowest bit counts; 0 when it touches one run
// from byte 0 on. Rows that do not start on granules give 1.
func pitchOf(a *ir.APRow) uint64 {
	esz := uint64(a.Dtype.Size())
	x := uint64(a.Off) * esz
	// The innermost axis of neighbouring elements is the row itself.
	for k := 1; k < len(a.Pairs) && a.Pairs[k].Num != 0; k++ {
		if p := &a.Pairs[k]; p.Num > 1 && p.Step != 1 {
			x |= uint64(int64(p.Step)) * esz
		}
	}
	if x&(granule-1) != 0 {
		return 1
	}
	return x / granule
}
