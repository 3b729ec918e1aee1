package memalloc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// kilobyte is an SB of 1,000 bytes a partition beside a strip of 8.
func kilobyte() Options { return Options{StripBytes: 8, SBBytes: 1008} }

// expect runs SB and asks that it either fits, in few rounds, or fails with a limit that says all of want.
func expect(t *testing.T, p *program, opt Options, want ...string) Metrics {
	t.Helper()
	opt.Watchdog = time.Minute
	before, err := execute(&p.m, p.f)
	if err != nil {
		t.Fatal(err)
	}
	mt, err := SB(&p.m, p.f, new(Workspace), opt)
	if len(want) == 0 {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DRAM(&p.m, p.f, new(Workspace), opt); err != nil {
			t.Fatal(err)
		}
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		if err := errors.Join(overlaps(&p.m, p.f), bounds(&p.m, p.f, opt.Raw(p.m.Gen), opt.Strip(p.m.Gen), 8)); err != nil {
			t.Error(err)
		}
		return mt
	}
	if target.ClassOf(err) != target.Limit {
		t.Fatalf("error %v, want a limit", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
	if mt.Iterations > 40 {
		t.Errorf("%d rounds to find that out", mt.Iterations)
	}
	return mt
}

// A tensor that can be neither placed nor spilled ends the loop, naming itself, its need, the limit, the worst instruction and the
// largest tensors there.
func TestSpillHasLimits(t *testing.T) {
	t.Run("nothing fits", func(t *testing.T) {
		k := newMaker(t, 1)
		x := k.load(128, 300)
		y := k.load(128, 301)
		k.save(k.op(128, 302, x, y))
		expect(t, k.close(), kilobyte(), "SB overflow", "bytes a partition of 1000", "spilling cannot help", "live at I-", "the largest of them", " 1208")
	})
	t.Run("all pinned down", func(t *testing.T) {
		k := newMaker(t, 1)
		var vs []value
		for range 6 {
			v := k.op(128, 50, k.load(128, 10))
			k.p.m.Sets.At(k.p.m.Locs.At(v.loc).Set).Flags |= ir.SetReload
			vs = append(vs, v)
		}
		for _, v := range vs {
			k.save(v)
		}
		expect(t, k.close(), kilobyte(), "needs 200 bytes a partition of 1000", "spilling cannot help", "the largest of them", " 200,")
	})
	t.Run("operands of one instruction", func(t *testing.T) {
		for extra, want := range map[int64][]string{0: nil, 2: {"spilling cannot help", "of 1000"}} {
			k := newMaker(t, 1)
			x, y := k.load(128, 100), k.load(128, 100)
			z := k.op(128, 100, x, y) // not all three and what waits
			k.save(k.op(128, 50+extra, y, z))
			k.save(x)
			// 400 + 400 + 400 do not fit into 1,000.
			opt := kilobyte()
			opt.SBBytes = 8 + 1200
			expect(t, k.close(), opt)
			k = newMaker(t, 1)
			x, y = k.load(128, 100), k.load(128, 100)
			k.save(k.op(128, 50+extra, x, y))
			k.save(k.op(128, 10, x))
			expect(t, k.close(), kilobyte(), want...)
		}
	})
}

// One tensor as large as the memory takes it alone, again and again.
func TestSpillWholeMemory(t *testing.T) {
	k := newMaker(t, 1)
	big := k.tile(128, 250)
	k.b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&k.b, big)})
	var outs []value
	for range 20 {
		v := k.tile(128, 20)
		k.b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&k.b, v)})
		outs = append(outs, v)
		k.save(big)
	}
	for _, v := range outs {
		k.save(v)
	}
	if mt := expect(t, k.close(), kilobyte()); mt.Spilled < 19 || mt.Iterations > 4 {
		t.Errorf("%d spilled in %d rounds", mt.Spilled, mt.Iterations)
	}
}

// Thousands of equal tensors that are live together, ten of which fit.
func TestSpillThousandsOfEquals(t *testing.T) {
	k := newMaker(t, 1)
	var vs []value
	for range 3000 {
		v := k.tile(128, 2)
		k.b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&k.b, v)})
		vs = append(vs, v)
	}
	for _, v := range vs {
		k.save(v)
	}
	if mt := expect(t, k.close(), Options{StripBytes: 8, SBBytes: 88}); mt.Spilled < 2985 || mt.Spilled > 2995 || mt.Iterations > 3 {
		t.Errorf("%d spilled in %d rounds", mt.Spilled, mt.Iterations)
	}
}

// Rounds that bring nothing end; here each instruction needs all the memory, in pieces that fit only in one order.
func TestSpillTightOperands(t *testing.T) {
	for seed := range uint64(20) {
		k := newMaker(t, seed)
		var vs []value
		for range 12 {
			vs = append(vs, k.load([]int{32, 64, 128}[k.rng.IntN(3)], 2*k.words(10, 40)))
		}
		for range 60 {
			x, y := vs[k.rng.IntN(len(vs))], vs[k.rng.IntN(len(vs))]
			vs[k.rng.IntN(len(vs))] = k.op(x.parts, y.words, x, y)
		}
		for _, v := range vs {
			k.save(v)
		}
		p := k.close()
		expect(t, p, Options{StripBytes: 8, SBBytes: 8 + floorOf(&p.m, p.f)})
	}
}

// The limit on the clock, lowered, ends an allocation as what it is.
func TestSpillWatchdog(t *testing.T) {
	k := newMaker(t, 1)
	dag(128)(k)
	p := k.close()
	size := peakSB(&p.m, p.f) / 2 &^ (granule - 1)
	_, err := SB(&p.m, p.f, new(Workspace), Options{StripBytes: 8, SBBytes: 8 + size, Watchdog: 1})
	var late *regalloc.TimeoutError
	if !errors.As(err, &late) || late.Limit != 1 {
		t.Errorf("error %v", err)
	}
}
