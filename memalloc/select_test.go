package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// board is an SB of a few granules with obstacles, for looking at single placements.
func board(granules int, placed ...place) (*rects, []uint32) {
	r := new(rects)
	r.reset(len(placed)+1, int64(granules)*granule, 0)
	var all []uint32
	for k, p := range placed {
		r.at[k+1] = p
		all = append(all, uint32(k+1))
	}
	return r, all
}

// The pools in their order: what only a half offers, what the whole height offers, any band; long tall ones from the top.
func TestCascade(t *testing.T) {
	at := func(lo, hi int32, quads uint8) place { return place{lo: lo, hi: hi, quads: quads} }
	for _, c := range []struct {
		name   string
		placed []place
		class  uint8
		length int32
		tight  bool
		lo     int32
		quads  uint8
	}{
		{"a quarter goes where only a half is free", []place{at(0, 10, 1)}, class32, 10, false, 0, 4},
		{"also when it stands further up", []place{at(20, 30, 8)}, class32, 10, false, 20, 1},
		{"else where the whole height is free", []place{at(0, 10, 5)}, class32, 10, false, 10, 1},
		{"else into any quarter", []place{at(0, 96, 7)}, class32, 10, false, 0, 8},
		{"when tight the lowest of any quarter", []place{at(0, 10, 1), at(0, 5, 2)}, class32, 10, true, 0, 4},
		{"a fixed quarter stays in it", []place{at(0, 10, 4)}, 1 + 2, 10, false, 10, 4},
		{"a half goes where the whole height is free", []place{at(0, 10, 3)}, class64, 10, false, 10, 3},
		{"else into any half", []place{at(0, 96, 3)}, class64, 10, false, 0, 12},
		{"a fixed half stays in it", []place{at(0, 50, 12)}, 6 + 1, 10, false, 50, 12},
		{"a long tall one from the top", []place{at(90, 96, 1)}, class128, 10, false, 80, 15},
		{"a short tall one from the bottom", []place{at(0, 7, 2)}, class128, 1, false, 7, 15},
		{"when tight all from the bottom", []place{at(90, 96, 1)}, class128, 10, true, 0, 15},
		{"a tall one needs all quarters", []place{at(0, 90, 1), at(90, 96, 8)}, class128, 1, false, -1, 0},
		{"longer than what is left", []place{at(40, 50, 15)}, class32, 60, false, -1, 0},
	} {
		r, obstacles := board(96, c.placed...)
		r.tight = c.tight
		r.at[0] = place{hi: c.length, class: c.class}
		if ok := r.Place(0, obstacles); ok != (c.lo >= 0) {
			t.Errorf("%s: placed %v", c.name, ok)
		} else if p := r.at[0]; ok && (p.lo != c.lo || p.hi != c.lo+c.length || p.quads != c.quads) {
			t.Errorf("%s: at %d of quadrants %04b, want %d of %04b", c.name, p.lo, p.quads, c.lo, c.quads)
		}
	}
}

// A start alignment that only saves bus cycles holds while there is room for it.
func TestAlignmentGivesWay(t *testing.T) {
	place32 := func(at0 place, placed ...place) place {
		r, obstacles := board(96, placed...)
		r.at[0] = at0
		if !r.Place(0, obstacles) {
			t.Fatal("no place")
		}
		return r.at[0]
	}
	want := place{hi: 10, class: class128, shift: 5}
	if p := place32(want, place{hi: 3, quads: 15}); p.lo != 64 {
		t.Errorf("at %d, want the highest boundary, 64", p.lo)
	}
	if p := place32(want, place{hi: 3, quads: 15}, place{lo: 33, hi: 34, quads: 1}, place{lo: 66, hi: 67, quads: 1}); p.lo != 86 {
		t.Errorf("at %d, want 86: no boundary has room", p.lo)
	}
}

// Nodes that should never have come to Place are reported as defects, by name.
func TestInternalErrors(t *testing.T) {
	p := chain(t, 20, 5)
	var ws Workspace
	if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	unplace(p)
	again := func(spoil func()) error {
		if _, err := ws.linearise(&p.m, p.f, &Options{}); err != nil {
			t.Fatal(err)
		}
		if err := ws.sbProblem(&p.m, int64(p.m.Gen.SBBytes), &Options{}); err != nil {
			t.Fatal(err)
		}
		ws.solver.Simplify()
		spoil()
		return ws.selectSB(&p.m)
	}
	if err := again(func() {}); err != nil {
		t.Fatal(err)
	}
	name := p.m.LocName(ws.ranges.Units[7].First)
	err := again(func() { ws.sb.at[7].class = sbClasses })
	if err == nil || target.ClassOf(err) != target.Bug || !strings.Contains(err.Error(), name+" has the unknown height class 9") {
		t.Errorf("error %v", err)
	}
	err = again(func() { ws.solver.Order = append(ws.solver.Order, 7) })
	if err == nil || target.ClassOf(err) != target.Bug || !strings.Contains(err.Error(), name+" is already allocated") {
		t.Errorf("error %v", err)
	}
	// Two neighbours on one another are found after select, by the sweep that shares nothing with it.
	if err := again(func() {}); err != nil {
		t.Fatal(err)
	}
	ws.sb.at[7].lo, ws.sb.at[7].hi, ws.sb.at[7].quads = ws.sb.at[8].lo, ws.sb.at[8].hi, ws.sb.at[8].quads
	if err := ws.check.rects(&p.m, ws.ranges.Units, &ws.sb, 0); err == nil || target.ClassOf(err) != target.Bug {
		t.Errorf("error %v", err)
	}
}

// sbBound is the least SB that a program could do with if nothing spilled: the most bytes that are live together at partition 0,
// where all tall locations are and what matmuls read, or a quarter of what is live in all quadrants.
func sbBound(t testing.TB, p *program) int64 {
	var ws Workspace
	if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	points := ws.lin.Points()
	all, first := make([]int64, points+1), make([]int64, points+1)
	for i := range ws.ranges.Units {
		u, at := &ws.ranges.Units[i], &ws.sb.at[i]
		n := int64(at.hi-at.lo) * granule
		quads := int64(target.BandHeight(int(p.m.Locs.At(u.First).Parts)) / 32)
		for q := u.Start; q < u.End; q++ {
			all[q] += quads * n
			if at.class == 1 || at.class == 6 || at.class == class128 {
				first[q] += n
			}
		}
	}
	bound := int64(0)
	for q := range all {
		bound = max(bound, (all[q]+3)/4, first[q])
	}
	unplace(p)
	return bound + int64(p.m.Gen.SBReserved)
}

// Programs fit without spilling into little more than their largest live set.
func TestPacksToTheBound(t *testing.T) {
	for _, name := range []string{"zoo:llama3-8b?layers=1&seq=512", "zoo:resnet50", "zoo:gpt2?layers=2&seq=128", "zoo:mlp?layers=3&width=2048&batch=256&in=2048"} {
		for _, level := range []int{20, 30, 40} {
			p := lowerModel(t, zooModel(t, name), level)
			var ws Workspace
			if _, err := PSUM(&p.m, p.f, &ws, Options{}); err != nil {
				t.Fatal(err)
			}
			bound := sbBound(t, p)
			if _, err := SB(&p.m, p.f, &ws, Options{SBBytes: bound + bound/50, NoSpill: true}); err != nil {
				t.Errorf("%s, level %d: not in %d bytes a partition and 2 %%: %v", name, level, bound, err)
			}
		}
	}
}

// Also where the first attempts leave something over, a second run through one workspace allocates nothing.
func TestSteadyStateOfAttempts(t *testing.T) {
	p := lowerModel(t, zooModel(t, "zoo:resnet50"), 30)
	bound := sbBound(t, p)
	var ws Workspace
	run := func(opt Options) error {
		unplace(p)
		_, err := SB(&p.m, p.f, &ws, opt)
		return err
	}
	tight := Options{SBBytes: bound + bound/50, NoSpill: true}
	if err := run(tight); err != nil {
		t.Fatal(err)
	}
	if !ws.sb.tight {
		t.Fatal("the first attempt was enough")
	}
	if n := testing.AllocsPerRun(3, func() { run(tight) }); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

// BenchmarkSBTight places a model in its largest live set and 2 %, where the first attempts leave something over.
func BenchmarkSBTight(b *testing.B) {
	p := lowerModel(b, zooModel(b, "zoo:resnet50"), 30)
	bound := sbBound(b, p)
	var ws Workspace
	b.ReportAllocs()
	for b.Loop() {
		unplace(p)
		if _, err := SB(&p.m, p.f, &ws, Options{SBBytes: bound + bound/50, NoSpill: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ws.ranges.Units)), "ns/loc")
}
