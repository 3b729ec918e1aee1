package memalloc

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Each rule on its own, its limit, the machine from which it holds, and how to switch it off.
func TestAlignmentRules(t *testing.T) {
	off := Alignments{AXIThreshold: -1, RMW: -1, Page: -1, AP: -1}
	with := func(set func(*Alignments)) Alignments { a := off; set(&a); return a }
	for _, c := range []struct {
		name        string
		level       int
		rules       Alignments
		bytes       int64
		use         sbUse
		want, least int64
	}{
		{"none", 40, off, 24, sbUse{moved: true, pitch: 8}, 8, 8},
		{"small", 20, with(func(a *Alignments) { a.AXIThreshold = 0 }), 504, sbUse{}, 256, 8},
		{"not small", 20, with(func(a *Alignments) { a.AXIThreshold = 0 }), 512, sbUse{}, 8, 8},
		{"small by another limit", 20, with(func(a *Alignments) { a.AXIThreshold = 100 }), 104, sbUse{}, 8, 8},
		{"read-modify-write", 40, with(func(a *Alignments) { a.RMW = 0 }), 4096, sbUse{}, 32, 32},
		{"not before its machine", 30, with(func(a *Alignments) { a.RMW = 0 }), 4096, sbUse{}, 8, 8},
		{"unless that is said to be earlier", 30, with(func(a *Alignments) { a.RMW, a.RMWLevel = 0, 30 }), 4096, sbUse{}, 32, 32},
		{"by another size", 40, with(func(a *Alignments) { a.RMW = 128 }), 4096, sbUse{}, 128, 128},
		{"pages that move", 30, with(func(a *Alignments) { a.Page = 0 }), 1024, sbUse{moved: true}, 512, 8},
		{"pages that stay", 30, with(func(a *Alignments) { a.Page = 0 }), 1024, sbUse{}, 8, 8},
		{"no whole pages", 30, with(func(a *Alignments) { a.Page = 0 }), 1032, sbUse{moved: true}, 8, 8},
		{"smaller pages", 30, with(func(a *Alignments) { a.Page = 128 }), 384, sbUse{moved: true}, 128, 8},
		{"rows of 32 bytes", 30, with(func(a *Alignments) { a.AP = 0 }), 1024, sbUse{pitch: 4}, 32, 8},
		{"rows of 256 bytes", 30, with(func(a *Alignments) { a.AP = 0 }), 1024, sbUse{pitch: 32}, 64, 8},
		{"up to another limit", 30, with(func(a *Alignments) { a.AP = 128 }), 1024, sbUse{pitch: 32}, 128, 8},
		{"odd rows", 30, with(func(a *Alignments) { a.AP = 0 }), 1024, sbUse{pitch: 5}, 8, 8},
		{"not on the older machine", 20, with(func(a *Alignments) { a.AP = 0 }), 1024, sbUse{pitch: 4}, 8, 8},
		{"all", 40, Alignments{}, 1024, sbUse{moved: true, pitch: 8}, 512, 32},
	} {
		rules := c.rules.aligner(generation(t, c.level))
		want, least := rules.shifts(&ir.LocRow{Bytes: c.bytes}, &c.use)
		if granule<<want != c.want || granule<<least != c.least {
			t.Errorf("%s: %d, at least %d; want %d, at least %d", c.name, granule<<want, granule<<least, c.want, c.least)
		}
	}
}

// What the rows of a pattern have in common, in granules.
func TestPitch(t *testing.T) {
	for _, c := range []struct {
		name  string
		off   int64
		pairs []ir.Pair
		want  uint64
	}{
		{"a run", 0, []ir.Pair{{Step: 1, Num: 64}}, 0},
		{"a run further on", 16, []ir.Pair{{Step: 1, Num: 64}}, 8},
		{"rows", 0, []ir.Pair{{Step: 8, Num: 4}, {Step: 1, Num: 8}}, 4},
		{"rows further on", 2, []ir.Pair{{Step: 8, Num: 4}, {Step: 1, Num: 8}}, 5},
		{"rows backwards", 64, []ir.Pair{{Step: -8, Num: 4}, {Step: 1, Num: 8}}, 32 | uint64(1<<61-4)},
		{"off the granules", 1, []ir.Pair{{Step: 1, Num: 8}}, 1},
		{"every other element", 0, []ir.Pair{{Step: 2, Num: 8}}, 1},
	} {
		row := ir.APRow{Dtype: target.Float32, Off: c.off}
		copy(row.Pairs[1:], c.pairs)
		if got := pitchOf(&row); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// The rules reach the placements, and give way before anything is spilled.
func TestAlignmentOfPlacements(t *testing.T) {
	p := chain(t, 200, 20)
	var ws Workspace
	if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	aligned := func(to int64) (n int) {
		for i := 1; i < p.m.Locs.Len(); i++ {
			if p.m.Locs.At(ir.Loc(i)).Addr%to == 0 {
				n++
			}
		}
		return n
	}
	if n := aligned(256); n != p.m.Locs.Len()-1 {
		t.Errorf("%d of %d small locations start on 256 bytes", n, p.m.Locs.Len()-1)
	}
	unplace(p)
	// 20 locations of 64 to 256 bytes are live: on boundaries they need 5,120 bytes, without 4,096 do.
	mt, err := SB(&p.m, p.f, &ws, Options{StripBytes: 8, SBBytes: 4096})
	if err != nil || mt.Spilled > 0 {
		t.Fatalf("%d spilled, error %v", mt.Spilled, err)
	}
	if n := aligned(256); n == p.m.Locs.Len()-1 {
		t.Error("all on boundaries, where they have no room")
	}
}
