package memalloc_test

import (
	"bytes"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/memalloc/rotate"
	"pgregory.net/rapid"
)

// Rotation after placement: what is fixed stays, all that is live together stays disjoint and legal, and the program computes
// the same on physical bytes. With little memory it moves less and breaks nothing.
func TestRotateRandomPrograms(t *testing.T) {
	var ws memalloc.Workspace
	var rw rotate.Workspace
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		m, f := memalloc.RandomProgram(t, rapid.IntRange(1, 60).Draw(t, "n"))
		opt := memalloc.Options{PsumBanks: rapid.IntRange(6, 8).Draw(t, "banks")}
		if rapid.Bool().Draw(t, "short") {
			opt.SBBytes = int64(m.Gen.SBReserved) + int64(rapid.IntRange(3000, 6000).Draw(t, "room"))
		}
		if _, err := memalloc.PSUM(m, f, &ws, opt); err != nil {
			if target.ClassOf(err) == target.Limit {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		if _, err := memalloc.SB(m, f, &ws, opt); err != nil {
			if target.ClassOf(err) == target.Limit {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		before, err := memalloc.Computes(m, f)
		if err != nil {
			t.Fatal(err)
		}
		for l := ir.Loc(1); int(l) < m.Locs.Len(); l++ {
			if rapid.IntRange(0, 9).Draw(t, "fix") == 0 && m.Locs.At(l).Flags&ir.LocAllocated != 0 {
				m.Locs.At(l).Flags |= ir.LocUserAllocated
			}
		}
		var fixed verify.Fixed
		fixed.Remember(m)
		moved += rotate.PSUM(m, f, &rw, &ws, opt).Moved
		moved += rotate.SB(m, f, &rw, &ws, opt).Moved
		if err := fixed.Check(m); err != nil {
			t.Fatal(err)
		}
		if _, err := memalloc.DRAM(m, f, &ws, opt); err != nil {
			t.Fatal(err)
		}
		if err := memalloc.Overlaps(m, f); err != nil {
			t.Fatal(err)
		}
		if err := memalloc.Within(m, f, opt); err != nil {
			t.Fatal(err)
		}
		if err := verify.Placement(m, f, target.SpacePSUM, target.SpaceSB); err != nil {
			t.Fatal(err)
		}
		after, err := memalloc.Computes(m, f)
		if err != nil {
			t.Fatal(err)
		}
		memalloc.Same(t, before, after)
	})
	if moved == 0 && !testing.Short() {
		t.Error("nothing moved in any program")
	}
}

// Programs with loops: rotation sees a loop as one point and so moves less, and breaks nothing.
func TestRotateRandomLoops(t *testing.T) {
	var ws memalloc.Workspace
	var rw rotate.Workspace
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		m, f, opt := memalloc.RandomLoops(t)
		if rapid.Bool().Draw(t, "room") {
			opt.SBBytes, opt.PsumBanks = 0, 0
		}
		want, err := memalloc.Simulate(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := memalloc.WithLoop(m, f, &ws, opt); err != nil {
			t.Fatal(err)
		}
		moved += rotate.PSUM(m, f, &rw, &ws, opt).Moved
		moved += rotate.SB(m, f, &rw, &ws, opt).Moved
		if err := verify.Placement(m, f, target.SpaceSB, target.SpacePSUM); err != nil {
			t.Fatal(err)
		}
		if err := verify.Reads(m, f); err != nil {
			t.Fatal(err)
		}
		if got, err := memalloc.Simulate(m); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("rotated, the program computes something else, %v\n%s", err, ir.Append(nil, m))
		}
	})
	if moved == 0 && !testing.Short() {
		t.Error("nothing moved")
	}
}
