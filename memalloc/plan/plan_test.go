package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// planChecked plans and proves the layout and the figures of the result.
func planChecked(t testing.TB, pl *Planner, p *Problem, opt Options) Result {
	t.Helper()
	r, err := pl.Plan(p, opt)
	if err != nil && target.ClassOf(err) != target.Limit {
		t.Fatalf("%+v: %v", opt, err)
	}
	peak, cerr := Check(p, r.Offsets, 0)
	if cerr != nil {
		t.Fatalf("%+v: %v", opt, cerr)
	}
	if peak != r.Peak || r.LowerBound != slowBound(p) || r.Peak < r.LowerBound {
		t.Fatalf("%+v: peak %d, checked as %d; bound %d, checked as %d", opt, r.Peak, peak, r.LowerBound, slowBound(p))
	}
	if r.Peak == r.LowerBound && !r.Optimal {
		t.Fatalf("%+v: peak %d is the bound but not called optimal", opt, r.Peak)
	}
	if fits := opt.Capacity == 0 || r.Peak <= opt.Capacity; fits != (err == nil) {
		t.Fatalf("%+v: peak %d with error %v", opt, r.Peak, err)
	}
	return r
}

// slowBound is the lower bound by its definition, moment by moment.
func slowBound(p *Problem) int64 {
	bound := int64(0)
	for i := range p.Size {
		if p.Lower[i] == p.Upper[i] || p.Size[i] == 0 {
			continue
		}
		if !slices.ContainsFunc(stretches(p, i, 0), func(s stretch) bool { return true }) {
			continue
		}
		bound = max(bound, p.Size[i], p.Fixed[i]+p.Size[i])
		moments := []int64{p.Lower[i]}
		for _, g := range p.gaps(i) {
			moments = append(moments, g.Lower, g.Upper)
		}
		for _, at := range moments {
			load := int64(0)
			for j := range p.Size {
				for _, s := range stretches(p, j, 0) {
					if s.start <= at && at < s.end {
						load += s.b - s.a
					}
				}
			}
			bound = max(bound, load)
		}
	}
	return bound
}

func stretches(p *Problem, i int, off int64) (out []stretch) {
	add := func(start, end, a, b int64) {
		if start < end && a < b {
			out = append(out, stretch{start: start, end: end, a: off + a, b: off + b})
		}
	}
	at := p.Lower[i]
	for _, g := range p.gaps(i) {
		add(at, g.Lower, 0, p.Size[i])
		add(g.Lower, g.Upper, g.Lo, g.Hi)
		at = g.Upper
	}
	add(at, p.Upper[i], 0, p.Size[i])
	return out
}

// slowClash compares all pairs.
func slowClash(p *Problem, off []int64) bool {
	for i := range off {
		for j := range i {
			for _, x := range stretches(p, i, off[i]) {
				for _, y := range stretches(p, j, off[j]) {
					if x.start < y.end && y.start < x.end && x.a < y.b && y.a < x.b {
						return true
					}
				}
			}
		}
	}
	return false
}

// slowBest is the least peak: every order, each buffer at the first offset that is free, in holes too. Some order gives an
// optimal layout, that of its offsets, as each buffer then finds its own place or a lower one.
func slowBest(p *Problem) int64 {
	n := p.Len()
	off := make([]int64, n)
	placed := make([]bool, n)
	peak := int64(0)
	free := 0
	for i := range n {
		if p.Fixed[i] != None {
			off[i], placed[i] = p.Fixed[i], true
			if len(stretches(p, i, 0)) > 0 {
				peak = max(peak, p.Fixed[i]+p.Size[i])
			}
		} else if len(stretches(p, i, 0)) > 0 {
			free++
		}
	}
	best := int64(math.MaxInt64)
	var rec func(left int, peak int64)
	rec = func(left int, peak int64) {
		if peak >= best {
			return
		}
		if left == 0 {
			best = peak
			return
		}
		for i := range n {
			if placed[i] || len(stretches(p, i, 0)) == 0 {
				continue
			}
			for off[i] = 0; ; off[i] += p.Align[i] {
				ok := true
				for j := range n {
					for _, x := range stretches(p, i, off[i]) {
						for _, y := range stretches(p, j, off[j]) {
							ok = ok && !(placed[j] && x.start < y.end && y.start < x.end && x.a < y.b && y.a < x.b)
						}
					}
				}
				if ok {
					break
				}
			}
			placed[i] = true
			rec(left-1, max(peak, off[i]+p.Size[i]))
			placed[i] = false
		}
	}
	rec(free, peak)
	return best
}

// drawProblem draws a small problem with everything that a row can have; fixed offsets never clash.
func drawProblem(t *rapid.T, maxN int, windows bool) *Problem {
	p := &Problem{}
	n := rapid.IntRange(0, maxN).Draw(t, "n")
	small := func(lo, hi int, what string) int64 { return int64(rapid.IntRange(lo, hi).Draw(t, what)) }
	features := small(0, 15, "features")
	for i := range n {
		lower := small(0, 6, "lower")
		p.Add(fmt.Sprintf("b%d", i), lower, lower+small(0, 5, "length"), small(0, 6, "size"))
		if features&1 != 0 {
			p.Align[i] = small(1, 4, "align")
		}
		if features&2 != 0 && p.Upper[i]-lower > 2 {
			g := Gap{Lower: lower + 1, Upper: p.Upper[i] - 1}
			if windows && p.Size[i] > 1 {
				g.Lo = small(0, int(p.Size[i])-1, "lo")
				g.Hi = small(int(g.Lo), int(p.Size[i]), "hi")
			}
			p.SetGaps(i, g)
		}
		if features&4 != 0 && small(0, 2, "fix") == 0 {
			p.Fixed[i] = small(0, 5, "offset") * p.Align[i]
			for j := range i {
				if p.Fixed[j] != None && clashes(p, i, p.Fixed[i], j, p.Fixed[j]) {
					p.Fixed[i] = None
					break
				}
			}
		}
		if features&8 != 0 && small(0, 1, "wish") == 0 {
			p.Hint[i] = small(0, 8, "hint")
		}
	}
	return p
}

func dump(p *Problem) string {
	var b strings.Builder
	if err := WriteCSV(&b, p, p.Fixed); err != nil {
		return err.Error()
	}
	return b.String()
}

// TestExactIsOptimal compares with trying all orders: what exact calls optimal is, and what it calls impossible is. It always
// decides on problems of this size, for the search takes everything but buffers that keep some bytes in a gap.
func TestExactIsOptimal(t *testing.T) {
	var pl Planner
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 6, false)
		want := slowBest(p)
		r, err := pl.Plan(p, Options{Mode: Exact})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Check(p, r.Offsets, 0); err != nil {
			t.Fatal(err)
		}
		if r.Peak != want || !r.Optimal {
			t.Fatalf("peak %d, optimal %t; the least is %d\n%s", r.Peak, r.Optimal, want, dump(p))
		}
		if want < 2 {
			return
		}
		r, err = pl.Plan(p, Options{Mode: Exact, Capacity: want - 1})
		if target.ClassOf(err) != target.Limit || !r.Impossible {
			t.Fatalf("capacity %d: impossible %t, error %v\n%s", want-1, r.Impossible, err, dump(p))
		}
		if r, err = pl.Plan(p, Options{Mode: Exact, Capacity: want}); err != nil || r.Peak != want || r.Impossible {
			t.Fatalf("capacity %d: peak %d, error %v\n%s", want, r.Peak, err, dump(p))
		}
	})
}

// TestNoFalseProof: with buffers that keep some bytes in a gap exact may not decide, but what it claims is true. Trying all orders
// then gives a layout, not always the lowest.
func TestNoFalseProof(t *testing.T) {
	var pl Planner
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProblem(rt, 6, true)
		known := slowBest(p)
		r := planChecked(t, &pl, p, Options{Mode: Exact, Work: 20_000})
		if r.Optimal && r.Peak > known {
			rt.Fatalf("peak %d is called optimal; %d is known\n%s", r.Peak, known, dump(p))
		}
		if known < 1 {
			return
		}
		if r := planChecked(t, &pl, p, Options{Mode: Exact, Capacity: known, Work: 20_000}); r.Impossible {
			rt.Fatalf("capacity %d is called impossible\n%s", known, dump(p))
		}
	})
}

// TestModesKeepRules runs every mode over everything that a problem can have, with one planner.
func TestModesKeepRules(t *testing.T) {
	var pl Planner
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProblem(rt, 12, true)
		opt := Options{
			Mode:     Mode(rapid.IntRange(0, 2).Draw(rt, "mode")),
			Capacity: int64(rapid.IntRange(0, 30).Draw(rt, "capacity")),
			Work:     50_000,
			Seed:     rapid.Uint64().Draw(rt, "seed"),
		}
		r := planChecked(t, &pl, p, opt)
		if slowClash(p, r.Offsets) {
			rt.Fatalf("clash that Check missed\n%s", dump(p))
		}
		hinted := 0
		for i := range p.Size {
			if p.Fixed[i] == None && p.Hint[i] != None && p.Hint[i] == r.Offsets[i] {
				hinted++
			}
		}
		if p.Len() > 0 && hinted != r.Hinted {
			rt.Fatalf("%d hints hold, the result says %d\n%s", hinted, r.Hinted, dump(p))
		}
	})
}

// TestCutsAreFound: rectangles cut at random have a layout without any waste. Exact must find one of that height, also when a part of
// the known layout is fixed.
func TestCutsAreFound(t *testing.T) {
	var pl Planner
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "n")
		unit := int64(rapid.IntRange(1, 64).Draw(rt, "unit"))
		p, off := cutProblem(n, 200, 200, rapid.IntRange(10, 90).Draw(rt, "stack"), 0, rapid.Uint64().Draw(rt, "seed"))
		fix := rapid.IntRange(0, 4).Draw(rt, "fix")
		for i := range p.Size {
			p.Size[i] *= unit
			off[i] *= unit
			p.Align[i] = unit
			if fix > 0 && i%(2*fix) == 0 {
				p.Fixed[i] = off[i]
			}
		}
		if peak, err := Check(p, off, 0); err != nil || peak != 200*unit {
			rt.Fatalf("the known layout: peak %d, %v", peak, err)
		}
		// Cut at random, some take longer than a test has: what is said of them must be right, and small ones must all be found. With the rest
		// fixed the few that move must fill holes to the byte, which has taken 5,000,000 steps for 18 of them.
		r := planChecked(t, &pl, p, Options{Mode: Exact, Capacity: 200 * unit, Work: 30_000_000})
		if r.Impossible || n <= 40 && r.Peak > 200*unit {
			rt.Fatalf("n %d: peak %d of %d, impossible %t\n%s", n, r.Peak, 200*unit, r.Impossible, dump(p))
		}
	})
}

// TestGapsAreUsed joins two cut rectangles in time: a buffer with a gap can only fit when others use its bytes in the gap.
func TestGapsAreUsed(t *testing.T) {
	p := &Problem{}
	i := p.Add("outer", 0, 30, 100)
	p.SetGaps(i, Gap{Lower: 10, Upper: 20})
	p.Add("inner", 10, 20, 100)
	j := p.Add("half", 30, 60, 100)
	p.SetGaps(j, Gap{Lower: 40, Upper: 50, Lo: 60, Hi: 100})
	p.Add("under", 40, 50, 60)
	var pl Planner
	for m := Fast; m <= Exact; m++ {
		if r := planChecked(t, &pl, p, Options{Mode: m, Work: 1_000_000}); r.Peak != 100 || !r.Optimal {
			t.Errorf("%v: peak %d, optimal %t", m, r.Peak, r.Optimal)
		}
	}
}

func TestFixedOffsets(t *testing.T) {
	var pl Planner
	p := &Problem{}
	p.Add("a", 0, 10, 8)
	p.Add("b", 0, 10, 8)
	p.Add("c", 5, 15, 4)
	p.Fixed[0], p.Fixed[1] = 4, 14
	r := planChecked(t, &pl, p, Options{})
	if r.Peak != 22 || !r.Optimal || r.Offsets[2] != 0 {
		t.Errorf("peak %d, offsets %v", r.Peak, r.Offsets)
	}
	p.Fixed[1] = 8
	if _, err := pl.Plan(p, Options{}); err == nil || !strings.Contains(err.Error(), `"a" [4, 12) and "b" [8, 16)`) || target.ClassOf(err) != target.User {
		t.Errorf("clashing fixed offsets: %v", err)
	}
	p.Fixed[1] = 24
	_, err := pl.Plan(p, Options{Capacity: 31})
	if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "needs 32, which is 1 more than the capacity 31") || !strings.Contains(err.Error(), `"b" is fixed at [24, 32)`) {
		t.Errorf("fixed beyond the capacity: %v", err)
	}
}

func TestHints(t *testing.T) {
	var pl Planner
	p := &Problem{}
	for i := range 4 {
		p.Add(string(rune('a'+i)), 0, 10, 8)
	}
	p.Hint[0], p.Hint[1], p.Hint[2], p.Hint[3] = 24, 8, 12, 64
	r := planChecked(t, &pl, p, Options{})
	if r.Peak != 32 || r.Hinted != 2 || r.Offsets[0] != 24 || r.Offsets[1] != 8 {
		t.Errorf("peak %d, %d hints, offsets %v; want the hints of a and b, and no higher peak", r.Peak, r.Hinted, r.Offsets)
	}
}

// TestWishesEnd: hints that cannot be met do not keep a plan without limits from ending.
func TestWishesEnd(t *testing.T) {
	var pl Planner
	p, _ := cutProblem(150, 1024, 1024, 85, 0, 3)
	for i := range p.Size {
		p.Hint[i] = int64(i * 37 % 900)
	}
	r := planChecked(t, &pl, p, Options{Mode: Exact, Capacity: 1024})
	if r.Peak != 1024 {
		t.Errorf("peak %d", r.Peak)
	}
}

func TestNothingToPlace(t *testing.T) {
	var pl Planner
	p := &Problem{}
	if r := planChecked(t, &pl, p, Options{Mode: Exact}); r.Peak != 0 || r.Ratio != 1 || !r.Optimal {
		t.Errorf("empty problem: %+v", r)
	}
	p.Add("never", 3, 3, 100)
	p.Add("nothing", 0, 9, 0)
	p.Fixed[p.Add("fixed", 3, 3, 5)] = 40
	if r := planChecked(t, &pl, p, Options{Mode: Improve, Capacity: 1}); r.Peak != 0 || r.Offsets[2] != 40 {
		t.Errorf("nothing live: %+v", r)
	}
	p.Add("one", 0, math.MaxInt64>>2, 1<<59)
	if r := planChecked(t, &pl, p, Options{Mode: Exact}); r.Peak != 1<<59 || !r.Optimal {
		t.Errorf("one huge: %+v", r)
	}
	if _, err := pl.Plan(p, Options{Capacity: -1}); err == nil {
		t.Error("negative capacity was taken")
	}
	p.Size = p.Size[:1]
	if _, err := pl.Plan(p, Options{}); err == nil {
		t.Error("ragged columns were taken")
	}
}

// TestSameBytes: the layout depends on problem and options alone, and a run that the clock ended is repeated by its work.
func TestSameBytes(t *testing.T) {
	p, _ := cutProblem(400, 1024, 1024, 50, 30, 7)
	var used Planner
	for _, opt := range []Options{{}, {Mode: Improve, Work: 2_000_000, Seed: 3}, {Mode: Exact, Capacity: 1024, Work: 2_000_000}} {
		first := planChecked(t, new(Planner), p, opt)
		again := planChecked(t, &used, p, opt)
		if !slices.Equal(first.Offsets, again.Offsets) || first.Work != again.Work {
			t.Errorf("%+v: two runs differ", opt)
		}
	}
	for _, limit := range []time.Duration{time.Microsecond, time.Millisecond, 7 * time.Millisecond} {
		timed := planChecked(t, new(Planner), p, Options{Mode: Improve, TimeLimit: limit})
		again := planChecked(t, &used, p, Options{Mode: Improve, Work: timed.Work})
		if !slices.Equal(timed.Offsets, again.Offsets) {
			t.Errorf("limit %v: work %d does not repeat it (%d)", limit, timed.Work, again.Work)
		}
	}
}

// TestStop: a plan that is told to stop gives a layout in every mode; on the way it tells of ever lower ones.
func TestStop(t *testing.T) {
	p := chainProblem(2000, 1)
	var pl Planner
	stopped := make(chan struct{})
	close(stopped)
	for m := Fast; m <= Exact; m++ {
		planLarge(t, &pl, p, Options{Mode: m, Stop: stopped})
	}
	stop := make(chan struct{})
	last, told := inf, 0
	r := planLarge(t, &pl, p, Options{Mode: Exact, Stop: stop, Progress: func(peak, bound int64) {
		if peak >= last || bound < 1 || bound > peak {
			t.Errorf("told of %d of %d after %d", peak, bound, last)
		}
		last = peak
		if told++; told == 3 {
			close(stop)
		}
	}})
	if told < 3 || r.Peak != last {
		t.Errorf("told of %d layouts, the last %d; the result has %d", told, last, r.Peak)
	}
}

// TestSteadyState: a planner that has seen a problem allocates nothing for it.
func TestSteadyState(t *testing.T) {
	plain, _ := cutProblem(300, 1024, 1024, 50, 0, 1)
	odd, off := cutProblem(200, 1024, 1024, 60, 0, 2)
	for i := range odd.Size {
		switch i % 7 {
		case 1:
			odd.Fixed[i] = off[i]
		case 2:
			odd.Hint[i] = off[i]
		case 3:
			if odd.Upper[i]-odd.Lower[i] > 2 {
				odd.SetGaps(i, Gap{Lower: odd.Lower[i] + 1, Upper: odd.Upper[i] - 1})
			}
		}
	}
	for _, p := range []*Problem{plain, odd} {
		for _, opt := range []Options{{}, {Mode: Improve, Work: 1_000_000}, {Mode: Exact, Work: 1_000_000}} {
			var pl Planner
			run := func() {
				if _, err := pl.Plan(p, opt); err != nil {
					t.Fatal(err)
				}
			}
			run()
			if n := testing.AllocsPerRun(2, run); n != 0 {
				t.Errorf("%v, %d buffers: %v allocations in steady state", opt.Mode, p.Len(), n)
			}
		}
	}
}

// chainProblem has n buffers, some 100 live at once, and one that is live throughout.
func chainProblem(n int, seed uint64) *Problem {
	p := &Problem{}
	rng := splitmix(seed)
	p.Add("all", 0, int64(n), 64)
	for i := range n - 1 {
		at := int64(i)
		p.Add(fmt.Sprint(i), at, min(at+1+int64(rng.next()%200), int64(n)), 1+int64(rng.next()%4096))
	}
	return p
}

// TestGrowth: the work of a buffer does not grow with the number of buffers.
func TestGrowth(t *testing.T) {
	var pl Planner
	small := planLarge(t, &pl, chainProblem(10_000, 1), Options{})
	n := 300_000
	if testing.Short() {
		n = 50_000
	}
	large := planLarge(t, &pl, chainProblem(n, 1), Options{})
	if a, b := float64(small.Work)/10_000, float64(large.Work)/float64(n); b > 1.2*a {
		t.Errorf("work a buffer: %.1f of 10,000, %.1f of %d", a, b, n)
	}
}

// planLarge plans and proves the layout of a problem that is too large for slowBound.
func planLarge(t *testing.T, pl *Planner, p *Problem, opt Options) Result {
	t.Helper()
	r, err := pl.Plan(p, opt)
	if err != nil {
		t.Fatal(err)
	}
	if peak, err := Check(p, r.Offsets, 0); err != nil || peak != r.Peak {
		t.Fatalf("peak %d of %d: %v", peak, r.Peak, err)
	}
	return r
}

// TestManyFixed: obstacles do not make planning quadratic, and every other buffer finds the hole that was left for it.
func TestManyFixed(t *testing.T) {
	n := 20_000
	p, off := cutProblem(n, 1<<30, 1<<30, 50, 0, 5)
	for i := range p.Size {
		if i%2 == 0 {
			p.Fixed[i] = off[i]
		}
	}
	var pl Planner
	r := planLarge(t, &pl, p, Options{})
	if r.Work > int64(n)*5_000 {
		t.Errorf("%d steps for %d buffers", r.Work, n)
	}
}

// TestFewAmongFixed: what the search would keep for each section stays bounded when nearly all is fixed.
func TestFewAmongFixed(t *testing.T) {
	p := &Problem{}
	n := 100_000
	for i := range n {
		at := int64(i)
		p.Fixed[p.Add(fmt.Sprint(i), at, at+1, 8)] = 8 * (at % 3)
	}
	p.Add("all", 0, int64(n), 8)
	p.Add("some", 10, int64(n)-10, 16)
	var pl Planner
	r, err := pl.Plan(p, Options{Mode: Exact, Capacity: 47, Work: 10_000_000})
	if target.ClassOf(err) != target.Limit || r.Peak != 48 || r.LowerBound != 32 {
		t.Errorf("peak %d, bound %d: %v", r.Peak, r.LowerBound, err)
	}
	if _, err := Check(p, r.Offsets, 0); err != nil {
		t.Error(err)
	}
}

func TestParseMode(t *testing.T) {
	for m := Fast; m <= Exact; m++ {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("quick"); err == nil {
		t.Error("mode quick was taken")
	}
}
