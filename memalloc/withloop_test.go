package memalloc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/ssa"
	"pgregory.net/rapid"
)

// loopFloor is the least SBUF that the operands of any one instruction need, at full height.
func loopFloor(m *ir.Module, f ir.Func) (need int64) {
	grain := int64(8)
	if m.Gen.Level >= 40 {
		grain = 32
	}
	var lin ssa.Linear
	lin.Flatten(m, f)
	for _, i := range lin.Insts {
		n := int64(0)
		for _, a := range m.AllArgs(i) {
			var l *ir.LocRow
			switch a.Kind {
			case ir.ArgAP:
				l = m.Locs.At(m.LocOf(a))
			case ir.ArgSym:
				l = m.Locs.At(m.Sets.At(m.Syms.At(ir.Sym(a.Ref)).Set).First)
			default:
				continue
			}
			if l.Space == target.SpaceSB {
				n += (l.Bytes + grain - 1) / grain * grain
			}
		}
		need = max(need, n)
	}
	return need
}

// sameWithLoops places a program in what the options leave, and compares what it computes before and after.
func sameWithLoops(t interface {
	Helper()
	Fatalf(string, ...any)
}, p *program, ws *Workspace, opt Options) (psum, sb Metrics) {
	t.Helper()
	want, err := simulate(&p.m)
	if err != nil {
		t.Fatalf("%v\n%s", err, ir.Append(nil, &p.m))
	}
	text := ir.Append(nil, &p.m)
	psum, sb, err = WithLoop(&p.m, p.f, ws, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got, err := simulate(&p.m)
	if err != nil || !bytes.Equal(want, got) {
		t.Fatalf("the placed program computes something else, %v\n%s\n%s", err, text, ir.Append(nil, &p.m))
	}
	// Homes are placed by the plain family, in which a loop is one point.
	if _, err := DRAM(&p.m, p.f, ws, opt); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got, err = simulate(&p.m); err != nil || !bytes.Equal(want, got) {
		t.Fatalf("with addresses in DRAM the program computes something else, %v\n%s\n%s", err, text, ir.Append(nil, &p.m))
	}
	if err := verify.Module(&p.m, target.Bug); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := verify.Placement(&p.m, p.f, target.SpaceSB, target.SpacePSUM, target.SpaceDRAM); err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, ir.Append(nil, &p.m))
	}
	if err := verify.Reads(&p.m, p.f); err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, ir.Append(nil, &p.m))
	}
	return psum, sb
}

// drawLoops draws a program with loops and little memory for it.
func drawLoops(t *rapid.T) (*program, Options) {
	p := randomLoops(t, rapid.IntRange(8, 40).Draw(t, "n"))
	opt := Options{StripBytes: 64, PsumBanks: 2, RunGap: rapid.SampledFrom([]int{-1, 0, 2, 4, 40}).Draw(t, "gap")}
	if rapid.IntRange(0, 9).Draw(t, "room") > 0 {
		opt.SBBytes = 64 + loopFloor(&p.m, p.f) + 8*int64(rapid.IntRange(0, 100).Draw(t, "slack"))
	}
	return p, opt
}

// Programs with loops compute the same after placement as before, in all of the memory and in the least.
func TestRandomLoops(t *testing.T) {
	var ws Workspace
	rapid.Check(t, func(t *rapid.T) {
		p, opt := drawLoops(t)
		sameWithLoops(t, p, &ws, opt)
	})
}

func FuzzWithLoop(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		var ws Workspace
		p, opt := drawLoops(t)
		sameWithLoops(t, p, &ws, opt)
	}))
}

// The same programs in each run exercise every way of spilling.
func TestLoopsSpill(t *testing.T) {
	var ws Workspace
	var sum [5]int
	for seed := range 40 {
		p, opt := (*program)(nil), Options{}
		rapid.Custom(func(t *rapid.T) int { p, opt = drawLoops(t); return 0 }).Example(seed)
		ps, sb := sameWithLoops(t, p, &ws, opt)
		for k, n := range []int{sb.Spilled, sb.Saves, sb.Reloads, sb.Remats, ps.Spilled} {
			sum[k] += n
		}
	}
	t.Logf("SB: %d spilled, %d saves, %d reloads, %d rematerialised; PSUM: %d spilled", sum[0], sum[1], sum[2], sum[3], sum[4])
	for k, n := range sum {
		if n == 0 {
			t.Errorf("the programs exercise too little: figure %d is 0 of %v", k, sum)
		}
	}
}

// Programs with loops compute the same by the allocators for which a loop is one point as by the loop-aware one, in all of the memory and
// in little. What the first two refuse there they refuse as a limit, by name, and the third places.
func TestLoopsByAllAllocators(t *testing.T) {
	var ws Workspace
	programs := 40
	if testing.Short() {
		programs = 10
	}
	refused, placed := 0, 0
	for seed := range programs {
		p, little := (*program)(nil), Options{}
		rapid.Custom(func(t *rapid.T) int { p, little = drawLoops(t); return 0 }).Example(seed)
		want, err := simulate(&p.m)
		if err != nil {
			t.Fatal(err)
		}
		text := ir.Append(nil, &p.m)
		for _, opt := range []Options{{StripBytes: 64}, little} {
			for k, place := range []func(*program) error{
				func(p *program) error { _, _, err := WithLoop(&p.m, p.f, &ws, opt); return err },
				func(p *program) error { _, _, err := LinearScan(&p.m, p.f, &ws, opt); return err },
				func(p *program) error {
					_, err := PSUM(&p.m, p.f, &ws, opt)
					if err == nil {
						_, err = SB(&p.m, p.f, &ws, opt)
					}
					return err
				},
			} {
				var p program
				if err := ir.Parse(text, &p.m); err != nil {
					t.Fatal(err)
				}
				p.f = p.m.Entry
				if err := place(&p); err != nil {
					if k == 0 || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), " overflow: %") {
						t.Fatalf("program %d, allocator %d: %v\n%s", seed, k, err, text)
					}
					refused++
					continue
				}
				placed++
				if err := verify.Placement(&p.m, p.f, target.SpaceSB, target.SpacePSUM); err != nil {
					t.Fatalf("program %d, allocator %d: %v\n%s", seed, k, err, text)
				}
				if err := verify.Reads(&p.m, p.f); err != nil {
					t.Fatalf("program %d, allocator %d: %v\n%s", seed, k, err, text)
				}
				if got, err := simulate(&p.m); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("program %d, allocator %d: other numbers, %v\n%s", seed, k, err, text)
				}
			}
		}
	}
	if refused == 0 || placed < 4*programs {
		t.Errorf("%d placed and %d refused of %d programs: too little is shown", placed, refused, programs)
	}
}

// Without loops the loop-aware driver is the two of the plain family one after the other, byte for byte.
func TestStraightLineIsASpecialCase(t *testing.T) {
	var ws Workspace
	compare := func(t interface{ Fatalf(string, ...any) }, opt Options, build func() *program) {
		a, b := build(), build()
		_, _, err := WithLoop(&a.m, a.f, &ws, opt)
		_, other := PSUM(&b.m, b.f, &ws, opt)
		if other == nil {
			_, other = SB(&b.m, b.f, &ws, opt)
		}
		if (err == nil) != (other == nil) || err == nil && !bytes.Equal(ir.Append(nil, &a.m), ir.Append(nil, &b.m)) {
			t.Fatalf("another program, or another error: %v and %v", err, other)
		}
	}
	for seed := range 30 {
		opt := Options{StripBytes: 64, PsumBanks: 2}
		gen := rapid.Custom(func(t *rapid.T) *program { return random(t, 10+seed) })
		opt.SBBytes = 64 + 2*floorOf(&gen.Example(seed).m, gen.Example(seed).f)
		compare(t, opt, func() *program { return gen.Example(seed) })
	}
	g := zooModel(t, "zoo:mlp?layers=3&width=256&batch=128&in=256")
	for _, opt := range []Options{{}, {SBBytes: 16392 + 5000, PsumBanks: 2}} {
		compare(t, opt, func() *program { return lowerModel(t, g, 30) })
	}
}

// loopChain is a nest of loops with n tiles in the innermost body, of which width are live at a time.
func loopChain(t interface{ Fatal(...any) }, n, depth, width int) *program {
	p := chain(t, n, width)
	m := &p.m
	inner := m.BlocksOf(p.f)[0]
	for range depth {
		a := m.Axes.Add(ir.AxisRow{Hi: 2, Step: 1})
		outer := m.Blocks.Add(ir.BlockRow{Func: p.f})
		i := m.NewInst(outer, ir.OpLoop, target.EngineUnassigned, nil, nil)
		m.Blocks.At(outer).Order = m.Order.Add(i)
		m.Blocks.At(inner).Parent = i
		m.Regions.Set(i, ir.RegionRow{Axis: a, Blocks: m.BlockList.Add(inner)})
		inner = outer
	}
	m.Funcs.At(p.f).Blocks = m.BlockList.Add(inner)
	return p
}

// A thousand loops around a body, and one more run through the workspace, which allocates nothing.
func TestDeepLoops(t *testing.T) {
	p := loopChain(t, 2000, 1000, 20)
	var ws Workspace
	pass := func() {
		unplace(p)
		if _, _, err := WithLoop(&p.m, p.f, &ws, Options{NoSpill: true}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if err := verify.Placement(&p.m, p.f, target.SpaceSB); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(2, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
	// To the plain family all of it is live at one point.
	unplace(p)
	if _, err := SB(&p.m, p.f, &ws, Options{}); target.ClassOf(err) != target.Limit {
		t.Errorf("2,000 tiles at one point: %v", err)
	}
}

func BenchmarkWithLoop(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run("locs="+map[int]string{10_000: "10k", 100_000: "100k", 1_000_000: "1M"}[n], func(b *testing.B) {
			p := loopChain(b, n, 10, 100)
			var ws Workspace
			b.ReportAllocs()
			for b.Loop() {
				unplace(p)
				if _, _, err := WithLoop(&p.m, p.f, &ws, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/loc")
		})
	}
}
