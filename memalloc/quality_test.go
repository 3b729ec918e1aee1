package memalloc

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// measureSpill places a program in half the SBUF that it needs, and says what that cost beside what the oracle pays.
func measureSpill(t *testing.T, p *program, ws *Workspace, name string) (got, want spilled, mt Metrics) {
	size := max((peakSB(&p.m, p.f)/2+granule-1)&^(granule-1), floorOf(&p.m, p.f))
	want = belady(&p.m, p.f, size)
	got.moved = -moved(&p.m, p.f)
	opt := Options{StripBytes: 8, SBBytes: 8 + size}
	mt, err := SB(&p.m, p.f, ws, opt)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got.moved += moved(&p.m, p.f)
	got.values = mt.SpilledBytes - mt.LateBytes
	if got.moved != mt.MovedBytes {
		t.Errorf("%s: %d bytes moved, the metrics say %d", name, got.moved, mt.MovedBytes)
	}
	if n, bytes := movesOnChip(&p.m, p.f); n != mt.Moves || bytes != mt.MoveBytes {
		t.Errorf("%d moves of %d bytes on chip, the metrics say %d of %d", n, bytes, mt.Moves, mt.MoveBytes)
	}
	ratio := func(a, b int64) float64 { return float64(a) / float64(b) }
	t.Logf("%-12s size %6d, floor %6d: moved %9d of %9d, %.2f; values %9d of %9d, %.2f; %d moves of %d; %d rounds, %v", name, size, floorOf(&p.m, p.f),
		got.moved, want.moved, ratio(got.moved, want.moved), got.values, want.values, ratio(got.values, want.values), mt.Moves, mt.MoveBytes,
		mt.Iterations, mt.SpillTime)
	return got, want, mt
}

// Programs that need twice the memory: each within its bound, and together within 1.05 of furthest next use, in bytes moved.
func TestSpillQuality(t *testing.T) {
	var ws Workspace
	var all, least int64
	moves := 0
	for _, s := range spillShapes {
		for seed := range uint64(3) {
			k := newMaker(t, seed)
			s.make(k)
			got, want, mt := measureSpill(t, k.close(), &ws, s.name)
			if float64(got.moved) > s.most*float64(want.moved) || float64(got.values) > s.most*float64(want.values) {
				t.Errorf("%s: moved %d bytes of %d, furthest next use %d of %d", s.name, got.moved, got.values, want.moved, want.values)
			}
			if mt.Iterations > 3 {
				t.Errorf("%s: %d rounds", s.name, mt.Iterations)
			}
			moves += mt.Moves
			all, least = all+got.moved, least+want.moved
		}
	}
	if float64(all) > 1.05*float64(least) {
		t.Errorf("all together moved %d bytes, furthest next use %d", all, least)
	}
	if moves == 0 {
		t.Error("nothing moved on chip")
	}
	t.Logf("all together %.2f", float64(all)/float64(least))
}

// Models in half of what they need. The bound of furthest next use splits tensors at any byte and lets their parts lie anywhere, so
// where a few large ones are read whole nothing can reach it.
func TestSpillQualityOfModels(t *testing.T) {
	var ws Workspace
	for _, c := range []struct {
		name  string
		graph func(testing.TB) *graph.Graph
		most  float64
	}{
		{"mlp", func(t testing.TB) *graph.Graph { return zooModel(t, "zoo:mlp?layers=3&width=1024&batch=256&in=1024") }, 1.25},
		{"gpt2", func(t testing.TB) *graph.Graph { return zooModel(t, "zoo:gpt2?layers=1&seq=256") }, 1.35},
		{"llama", func(t testing.TB) *graph.Graph { return zooModel(t, "zoo:llama3-8b?layers=1&seq=256") }, 1.75},
		{"resnet", func(t testing.TB) *graph.Graph { return zooModel(t, "zoo:resnet50?size=64") }, 1.6},
		{"mha", func(t testing.TB) *graph.Graph { return hloFile(t, "openxla/mha_block_1x12x128x64_bf16.hlo") }, 2.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := lowerModel(t, c.graph(t), 30)
			if _, err := PSUM(&p.m, p.f, &ws, Options{}); err != nil {
				t.Fatal(err)
			}
			got, want, _ := measureSpill(t, p, &ws, c.name)
			if float64(got.moved) > c.most*float64(want.moved) {
				t.Errorf("moved %d bytes, furthest next use %d", got.moved, want.moved)
			}
		})
	}
}

// The programs on which spilling is measured compute the same after it, and every read finds its bytes.
func TestSpillShapesCompute(t *testing.T) {
	if testing.Short() {
		t.Skip("executes some hundred megabytes of symbols")
	}
	var ws Workspace
	for _, s := range spillShapes {
		k := newMaker(t, 5)
		s.make(k)
		p := k.close()
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		size := max((peakSB(&p.m, p.f)/2+granule-1)&^(granule-1), floorOf(&p.m, p.f))
		_, mt, _ := placeAll(t, p, &ws, Options{StripBytes: 8, SBBytes: 8 + size})
		if err := verify.Placement(&p.m, p.f, target.SpaceSB, target.SpaceDRAM); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := verify.Reads(&p.m, p.f); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		same(t, before, after)
		if mt.Spilled == 0 {
			t.Errorf("%s: nothing was spilled", s.name)
		}
	}
}
