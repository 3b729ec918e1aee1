package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// box is a rectangle of a location: partitions × bytes.
type box struct {
	p0, p1 int32
	lo, hi int64
}

func (b *box) add(o box) {
	if b.p0 == b.p1 {
		*b = o
		return
	}
	b.p0, b.p1, b.lo, b.hi = min(b.p0, o.p0), max(b.p1, o.p1), min(b.lo, o.lo), max(b.hi, o.hi)
}

// and is what two boxes share, which may be nothing.
func (b box) and(o box) box {
	return box{max(b.p0, o.p0), min(b.p1, o.p1), max(b.lo, o.lo), min(b.hi, o.hi)}
}

func (b *box) holds(o box) bool { return b.p0 <= o.p0 && o.p1 <= b.p1 && b.lo <= o.lo && o.hi <= b.hi }

func boxOf(f *ir.Footprint) box { return box{f.P0, f.P1, f.Lo, f.Hi} }

// dense is the footprint of a whole box.
func (b box) dense(like *ir.Footprint) ir.Footprint {
	return ir.Footprint{Space: like.Space, Region: like.Region, P0: b.p0, P1: b.p1, Lo: b.lo, Hi: b.hi, Run: b.hi - b.lo}
}

// shape widens a box so that a start partition stays legal relative to a location for it: as it is where all accesses share it
// (starts, else -1), else by halves. What the array reads starts at partition 0.
func (b *box) shape(matmul bool, starts int32) {
	switch {
	case matmul:
		b.p0 = 0
	case starts >= 0 && starts%target.QuadrantPartitions == 0 && b.p0 == starts:
	case b.p0 >= 64:
		b.p0 = 64
	default:
		b.p0 = 0
	}
	b.round()
}

// round widens a box to whole granules.
func (b *box) round() {
	b.lo &^= granule - 1
	b.hi = (b.hi + granule - 1) &^ (granule - 1)
}
