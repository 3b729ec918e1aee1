package memalloc

import (
	"testing"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"pgregory.net/rapid"
)

// scanAll places a program by linear scan, DRAM too, and holds the result to all checkers.
func scanAll(t interface{ Fatal(...any) }, p *program, ws *Workspace, opt Options) (psum, sb Metrics) {
	psum, sb, err := LinearScan(&p.m, p.f, ws, opt)
	if err != nil {
		t.Fatal(err)
	}
	placeRest(t, p, ws, opt)
	if err := verify.Placement(&p.m, p.f, target.SpacePSUM, target.SpaceSB, target.SpaceDRAM); err != nil {
		t.Fatal(err)
	}
	const placed = ir.FuncPsumPlaced | ir.FuncSBPlaced
	if p.m.Funcs.At(p.f).Flags&placed != placed {
		t.Fatal("the function does not say that it is placed")
	}
	return psum, sb
}

// With just the memory that the largest instruction needs, and two or three banks, programs still compute the same.
func TestLinearScanRandomPrograms(t *testing.T) {
	var ws Workspace
	var spilledSB, spilledPSUM, reloads, remats, evictions int
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 80).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{StripBytes: 64, PsumBanks: 2}
		if p.m.Gen.Level < 40 && rapid.Bool().Draw(t, "three banks") {
			opt.PsumBanks = 3
		}
		opt.RunGap = rapid.SampledFrom([]int{-1, 0, 3, 40}).Draw(t, "gap")
		// The copies of what leaves PSUM are operands in SB, as wide as a tile.
		need := floorOf(&p.m, p.f)
		opt.SBBytes = 64 + need + 8*int64(rapid.IntRange(0, 100).Draw(t, "slack"))
		psum, sb, err := LinearScan(&p.m, p.f, &ws, opt)
		if err != nil && floorOf(&p.m, p.f) > need {
			// What left PSUM is an operand in SB now.
			opt.SBBytes += floorOf(&p.m, p.f) - need
			_, sb, err = LinearScan(&p.m, p.f, &ws, opt)
		}
		if err != nil {
			t.Fatal(err)
		}
		placeRest(t, p, &ws, opt)
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		spilledSB += sb.Spilled
		spilledPSUM += psum.Spilled
		reloads += sb.Reloads
		remats += sb.Remats
		evictions += sb.Evictions
	})
	if !testing.Short() && (spilledSB == 0 || spilledPSUM == 0 || reloads == 0 || remats == 0 || evictions <= spilledSB) {
		t.Errorf("the programs exercised too little")
	}
	t.Logf("%d SB and %d PSUM values spilled, %d reloads, %d rematerialised, %d evictions in SB", spilledSB, spilledPSUM, reloads, remats, evictions)
}

// Programs that fit are placed without spilling by all of the checkers.
func TestLinearScanFits(t *testing.T) {
	var ws Workspace
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 60).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		scanAll(t, p, &ws, Options{})
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	})
}

func BenchmarkLinearScan(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run("locs="+map[int]string{10_000: "10k", 100_000: "100k", 1_000_000: "1M"}[n], func(b *testing.B) {
			p := chain(b, n, 100)
			var ws Workspace
			b.ReportAllocs()
			for b.Loop() {
				unplace(p)
				if _, _, err := LinearScan(&p.m, p.f, &ws, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/loc")
		})
	}
}

// The rows of a scan, of which there are as many as locations.
func TestScanRows(t *testing.T) {
	if p := unsafe.Sizeof(piece{}); p != 60 {
		t.Errorf("a piece has %d bytes, not 60", p)
	}
}
