package memalloc

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"pgregory.net/rapid"
)

// Programs whose values move on chip, whole, cut short and in several pieces, compute the same, and every read finds its bytes.
func TestMovesCompute(t *testing.T) {
	var ws Workspace
	var moves, short, pieces int
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(80, 160).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		least := floorOf(&p.m, p.f)
		size := least + max(0, peakSB(&p.m, p.f)-least)*int64(rapid.IntRange(0, 90).Draw(t, "percent"))/100
		_, sb, _ := placeAll(t, p, &ws, Options{StripBytes: 64, SBBytes: 64 + (size+granule-1)&^(granule-1)})
		if err := verify.Placement(&p.m, p.f, target.SpaceSB, target.SpaceDRAM); err != nil {
			t.Fatal(err)
		}
		if err := verify.Reads(&p.m, p.f); err != nil {
			t.Fatal(err)
		}
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		moves += sb.Moves
		for _, d := range ws.spill.walk.moves {
			if d.off > 0 {
				pieces++
			} else if d.len < ws.spill.stays.tenants[d.tenant].len {
				short++
			}
		}
	})
	if !testing.Short() && (moves == 0 || short == 0 || pieces == 0) {
		t.Errorf("the programs exercised too little: %d moves, %d of first bytes, %d of further pieces", moves, short, pieces)
	}
	t.Logf("%d moves, %d of first bytes, %d of further pieces", moves, short, pieces)
}
