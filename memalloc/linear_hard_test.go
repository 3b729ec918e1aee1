package memalloc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"pgregory.net/rapid"
)

// Tensors that take the whole memory each: one after the other they fit, and one that is needed later waits at home.
func TestLinearScanWholeMemory(t *testing.T) {
	s := newSheet(t, 30)
	x, y := s.sb("x", 128, 100), s.sb("y", 1, 100)
	s.set(x)
	s.save(x, 0, 100)
	s.set(y)
	s.save(y, 0, 100)
	s.save(x, 0, 100)
	want := s.done(t)
	_, sb := s.place(t, words(100), want)
	if sb.Spilled != 1 {
		t.Errorf("%d spilled", sb.Spilled)
	}
	s = newSheet(t, 30)
	x, y = s.sb("x", 128, 100), s.sb("y", 128, 100)
	s.set(x)
	s.act(x, y) // both at once
	s.save(y, 0, 100)
	s.done(t)
	s.refused(t, words(100), target.Limit, "%y needs 400 bytes a partition of 400", "no victim is left to spill", "800 are live", "--allocator=coloring")
	s = newSheet(t, 30)
	x = s.sb("x", 128, 101)
	s.set(x)
	s.save(x, 0, 101)
	s.done(t)
	s.refused(t, words(100), target.Limit, "%x needs 408 bytes", "of 400")
}

// Four tiles of 32 partitions, or two of 64, beside each other are as good as one of 128.
func TestLinearScanQuadrants(t *testing.T) {
	s := newSheet(t, 30)
	var v []value
	for k, parts := range []int{32, 16, 64, 48, 1, 32, 64, 64} {
		v = append(v, s.sb(fmt.Sprintf("v%d", k), parts, 100))
		s.set(v[k])
	}
	for _, x := range v {
		s.save(x, 0, 100)
	}
	want := s.done(t)
	if _, sb := s.place(t, words(300), want); sb.Evictions != 0 || sb.Quadrants != [4]int64{1208, 1208, 1208, 1208} {
		t.Errorf("%d evictions, quadrants up to %v", sb.Evictions, sb.Quadrants)
	}
}

// What may not be moved stays, and is named when it leaves no room: pinned, marked no-spill where marks hold, or spilling switched off.
func TestLinearScanUnspillable(t *testing.T) {
	build := func() (*sheet, value, map[row][]uint64) {
		s := newSheet(t, 30)
		x, y := s.sb("x", 128, 60), s.sb("y", 128, 60)
		s.set(x)
		s.set(y)
		s.save(y, 0, 60)
		s.save(x, 0, 60)
		want := s.done(t)
		return s, x, want
	}
	s, x, want := build()
	s.m.Sets.At(s.m.Locs.At(x.loc).Set).Flags |= ir.SetNoSpill
	if _, sb := s.place(t, words(100), want); sb.Spilled != 1 {
		t.Errorf("%d spilled where marks do not hold", sb.Spilled)
	}
	s, x, _ = build()
	s.m.Sets.At(s.m.Locs.At(x.loc).Set).Flags |= ir.SetNoSpill
	held := words(100)
	held.NoSpillHint = true
	s.refused(t, held, target.Limit, "%y needs 240 bytes a partition of 400", "no victim is left", "%x 240")
	s, x, _ = build()
	s.m.Locs.At(x.loc).Flags |= ir.LocPinned | ir.LocAllocated
	s.m.Locs.At(x.loc).Addr = 80
	s.refused(t, words(100), target.Limit, "%y needs 240 bytes a partition of 400", "%x 240")
	s, _, _ = build()
	opt := words(100)
	opt.NoSpill = true
	s.refused(t, opt, target.Limit, "%y needs 240 bytes", "spilling is off")
	// A placement outside of the memory.
	s, x, _ = build()
	s.m.Locs.At(x.loc).Flags |= ir.LocUserAllocated | ir.LocAllocated
	s.m.Locs.At(x.loc).Addr = 400
	s.refused(t, words(100), target.Limit, "%x is placed at")
}

// Accumulation groups that are open stay where they are; those that have stopped make room; too many open ones are refused.
func TestLinearScanGroups(t *testing.T) {
	build := func(banks int) (*sheet, map[row][]uint64) {
		s := newSheet(t, 30)
		x := s.sb("x", 128, 8)
		s.set(x)
		var acc []value
		for k := range banks {
			acc = append(acc, s.psum(fmt.Sprintf("acc%d", k), 8))
			s.matmul(x, acc[k], 1) // START
		}
		done := s.psum("done", 8)
		s.matmul(x, done, 3)
		again := s.psum("again", 8)
		s.matmul(x, again, 3)
		for k := range acc {
			s.matmul(x, acc[k], 6) // ACCUMULATE, STOP
		}
		for k, v := range append(acc, done, again) {
			y := s.sb(fmt.Sprintf("y%d", k), 128, 8)
			s.act(v, y)
			s.save(y, 0, 8)
		}
		return s, s.done(t)
	}
	s, want := build(2)
	psum, _ := s.place(t, Options{PsumBanks: 3}, want)
	if psum.Spilled == 0 || psum.Reloads != 0 {
		t.Errorf("%d values left PSUM, %d reloads", psum.Spilled, psum.Reloads)
	}
	s, want = build(3) // no bank is left for done and again, nor for the second sum that must wait
	if psum, _ = s.place(t, Options{PsumBanks: 3}, want); psum.Spilled == 0 || psum.Reloads == 0 {
		t.Errorf("%d values left PSUM, %d sums came back", psum.Spilled, psum.Reloads)
	}
	s, _ = build(3)
	for i, r := range s.m.Insts.All() {
		if r.Op == ir.OpMatmult {
			s.m.SetAttr(i, ir.Int(ir.KeyAccumulationFlag, 0))
		}
	}
	s.refused(t, Options{PsumBanks: 3}, target.Limit, "PSUM overflow: %done needs 1 banks of 3", "no victim is left", "--psum-banks")
}

// A location that nothing uses, one that is written and never read, and one that is read and never written.
func TestLinearScanUnused(t *testing.T) {
	s := newSheet(t, 30)
	x := s.sb("x", 128, 8)
	idle, dead := s.sb("idle", 64, 8), s.sb("dead", 32, 8)
	s.set(x)
	s.set(dead)
	s.save(x, 0, 8)
	want := s.done(t)
	s.place(t, Options{}, want)
	if s.m.Locs.At(idle.loc).Flags&ir.LocAllocated == 0 {
		t.Error("a location without a use has no place")
	}
	s = newSheet(t, 30)
	x, y := s.sb("x", 128, 8), s.sb("y", 128, 8)
	s.act(x, y)
	s.b.Close()
	s.refused(t, Options{}, target.User, "%x")
	s = newSheet(t, 30) // no instruction at all
	s.sb("lonely", 128, 8)
	s.b.Close()
	s.place(t, Options{}, nil)
}

// A value that is made in pieces, each of which fits where the whole does not, and a load that is wanted in slices only.
func TestLinearScanLargerThanMemory(t *testing.T) {
	s := newSheet(t, 30)
	x, z := s.sb("x", 128, 160), s.sb("z", 128, 40)
	s.set(z)
	for k := range int64(4) {
		s.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&s.b, z)}, []ir.Arg{part(&s.b, x, 40*k, 40*k+40)})
	}
	w := s.sb("w", 128, 400)
	d := s.b.DRAM(s.m.Names.Intern("weights"), ir.KindExternalInput, target.Float32, 128, 400)
	s.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{s.b.Mem(d, target.Float32, 0, ir.Pair{Step: 400, Num: 128}, ir.Pair{Step: 1, Num: 400})}, []ir.Arg{whole(&s.b, w)})
	for k := range int64(4) {
		s.save(x, 40*k, 40*k+40)
		s.save(w, 100*k+30, 100*k+60)
	}
	want := s.done(t)
	_, sb := s.place(t, words(100), want)
	if sb.Spilled < 2 || sb.Remats != 1 {
		t.Errorf("%d spilled, %d of them loads", sb.Spilled, sb.Remats)
	}
}

// Marks that do not hold are wishes: with the least memory in which colouring places a program, linear scan does too.
func TestLinearScanMarks(t *testing.T) {
	var ws Workspace
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 60).Draw(t, "n"))
		every := rapid.IntRange(1, 9).Draw(t, "every")
		for s := ir.Set(1); int(s) < p.m.Sets.Len(); s++ {
			if int(s)%every == 0 {
				p.m.Sets.At(s).Flags |= ir.SetNoSpill
			}
		}
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		scanAll(t, p, &ws, Options{StripBytes: 64, SBBytes: 64 + floorOf(&p.m, p.f) + 8*int64(rapid.IntRange(0, 60).Draw(t, "slack"))})
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	})
}

// What is placed before the scan stays, obstructs and is overlapped by nothing, also where such placements lie on each other at
// different times.
func TestLinearScanAroundPlaced(t *testing.T) {
	var ws Workspace
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 60).Draw(t, "n"))
		m := &p.m
		before, err := execute(m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := PSUM(m, p.f, &ws, Options{}); err != nil {
			t.Skip(err)
		}
		if _, err := SB(m, p.f, &ws, Options{}); err != nil {
			t.Skip(err)
		}
		for l := ir.Loc(1); int(l) < m.Locs.Len(); l++ {
			switch r := m.Locs.At(l); {
			case r.Flags&ir.LocAllocated == 0:
			case rapid.IntRange(0, 3).Draw(t, "keep") == 0:
				r.Flags |= ir.LocUserAllocated
				kept++
			default:
				r.Flags &^= ir.LocAllocated
			}
		}
		var fixed verify.Fixed
		fixed.Remember(m)
		if _, _, err := LinearScan(m, p.f, &ws, Options{}); err != nil {
			if target.ClassOf(err) == target.Limit {
				t.Skip(err) // placements obstruct before their time
			}
			t.Fatal(err)
		}
		if err := fixed.Check(m); err != nil {
			t.Fatal(err)
		}
		if _, err := DRAM(m, p.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := overlaps(m, p.f); err != nil {
			t.Fatal(err)
		}
		after, err := execute(m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	})
	if kept == 0 && !testing.Short() {
		t.Error("nothing was placed before")
	}
}

// Equal programs through a used workspace and a new one leave the same text.
func TestLinearScanIsDeterministic(t *testing.T) {
	var used Workspace
	rapid.Check(t, func(t *rapid.T) {
		n, seed := rapid.IntRange(20, 60).Draw(t, "n"), rapid.IntRange(0, 1000).Draw(t, "seed")
		var texts [2]bytes.Buffer
		for k, ws := range []*Workspace{&used, new(Workspace)} {
			p := rapid.Custom(func(t *rapid.T) *program { return random(t, n) }).Example(seed)
			opt := Options{StripBytes: 64, SBBytes: 64 + floorOf(&p.m, p.f) + 64, PsumBanks: 4}
			if _, _, err := LinearScan(&p.m, p.f, ws, opt); err != nil && target.ClassOf(err) != target.Limit {
				t.Fatal(err)
			}
			if err := ir.Print(&texts[k], &p.m); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) {
			t.Fatal("the second run left another program")
		}
	})
}

// The second module through a workspace allocates nothing, as long as nothing is spilled.
func TestLinearScanSteadyState(t *testing.T) {
	var ws Workspace
	p, q := chain(t, 3000, 50), chain(t, 2500, 50)
	run := func(p *program) {
		unplace(p)
		if _, _, err := LinearScan(&p.m, p.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	run(p)
	if n := testing.AllocsPerRun(3, func() { run(q) }); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
	if err := overlaps(&q.m, q.f); err != nil {
		t.Error(err)
	}
}

// A load that can only be made again in whole rows of its source: the copy holds the rows, not just the words that are read.
func TestLinearScanReloadsRows(t *testing.T) {
	s := newSheet(t, 30)
	x, y := s.sb("x", 128, 400), s.sb("y", 128, 300)
	d := s.b.DRAM(s.m.Names.Intern("rows"), ir.KindExternalInput, target.Float32, 128, 600)
	from := s.b.Mem(d, target.Float32, 0, ir.Pair{Step: 600, Num: 128}, ir.Pair{Step: 150, Num: 4}, ir.Pair{Step: 1, Num: 100})
	s.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{from}, []ir.Arg{whole(&s.b, x)})
	s.save(x, 0, 50)
	s.set(y)
	s.save(y, 0, 300)
	z := s.sb("z", 128, 50) // live beside the copy, right behind it if that were too small
	s.set(z)
	s.save(x, 90, 110)
	s.save(z, 0, 50)
	want := s.done(t)
	_, sb := s.place(t, words(420), want)
	if sb.Remats != 1 || sb.Reloads != 1 || sb.Saves != 0 {
		t.Errorf("%d loads made again by %d reloads, %d saves", sb.Remats, sb.Reloads, sb.Saves)
	}
	for l := ir.Loc(1); int(l) < s.m.Locs.Len(); l++ {
		if r := s.m.Locs.At(l); r.Space == target.SpaceSB && strings.Contains(s.m.LocName(l), "x.reload") && r.Bytes != 800 {
			t.Errorf("the copy has %d bytes, not the 800 of two rows", r.Bytes)
		}
	}
}

// A unit whose group is open each time that banks are short keeps its bank, and the others go.
func TestLinearScanOpenGroups(t *testing.T) {
	p := new(program)
	openChain(t, p, 50)
	want, err := execute(&p.m, p.f)
	if err != nil {
		t.Fatal(err)
	}
	psum, _ := scanAll(t, p, new(Workspace), Options{PsumBanks: 2})
	got, err := execute(&p.m, p.f)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got)
	if psum.Spilled != 49 {
		t.Errorf("%d spilled, want all but the last", psum.Spilled)
	}
}
