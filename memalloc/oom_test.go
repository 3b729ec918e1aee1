package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// allFit runs an allocator of SBUF and PSUM, and DRAM's.
func allFit(p *program, ws *Workspace, opt Options, with string) (err error) {
	switch with {
	case "linear scan":
		_, _, err = LinearScan(&p.m, p.f, ws, opt)
	case "with loop":
		_, _, err = WithLoop(&p.m, p.f, ws, opt)
	default:
		if _, err = PSUM(&p.m, p.f, ws, opt); err == nil {
			_, err = SB(&p.m, p.f, ws, opt)
		}
	}
	if err == nil {
		_, err = DRAM(&p.m, p.f, ws, opt)
	}
	return err
}

// fitsOrRefused draws a program and a memory from too small to enough, and fails if an allocator places what CheckFits refuses.
func fitsOrRefused(t *rapid.T, ws *Workspace) (refused, placed bool) {
	with := rapid.SampledFrom([]string{"colouring", "linear scan", "with loop"}).Draw(t, "with")
	var p *program
	if with == "with loop" {
		p = randomLoops(t, rapid.IntRange(8, 30).Draw(t, "n"))
	} else {
		p = random(t, rapid.IntRange(1, 60).Draw(t, "n"))
	}
	opt := Options{StripBytes: 64, PsumBanks: rapid.IntRange(1, 8).Draw(t, "banks"), RunGap: rapid.SampledFrom([]int{-1, 0, 40}).Draw(t, "gap")}
	opt.SBBytes = 64 + 8*int64(rapid.IntRange(1, 90).Draw(t, "bytes"))
	if rapid.IntRange(0, 3).Draw(t, "hint") == 0 {
		opt.NoSpillHint = true
		for s := ir.Set(1); int(s) < p.m.Sets.Len(); s++ {
			if s%5 == 0 {
				p.m.Sets.At(s).Flags |= ir.SetNoSpill
			}
		}
	}
	if rapid.Bool().Draw(t, "window") {
		opt.HBMBytes = int64(rapid.IntRange(1, 8).Draw(t, "pages")) * pageBytes
	}
	refuse := CheckFits(&p.m, p.f, ws, opt)
	if refuse != nil && target.ClassOf(refuse) != target.Limit {
		t.Fatal(refuse)
	}
	err := allFit(p, ws, opt, with)
	if err == nil && refuse != nil {
		t.Fatalf("it fits by %s, and was refused: %v", with, refuse)
	}
	return refuse != nil, err == nil
}

// What CheckFits refuses no allocator places.
func TestCheckFitsRefusesNothingThatFits(t *testing.T) {
	var ws Workspace
	refused, placed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		no, yes := fitsOrRefused(t, &ws)
		if no {
			refused++
		}
		if yes {
			placed++
		}
	})
	if !testing.Short() && (refused == 0 || placed == 0) {
		t.Errorf("%d programs refused, %d placed: nothing is shown", refused, placed)
	}
	t.Logf("%d refused, %d placed", refused, placed)
}

func FuzzCheckFits(f *testing.F) {
	var ws Workspace
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { fitsOrRefused(t, &ws) }))
}

// The message names tensor, need, limit, instruction and the largest that are live there.
func TestCheckFitsMessages(t *testing.T) {
	x := newTraffic(t, 8)
	m, b := &x.m, &x.b
	tile := func(name string, parts int, words int64) value {
		v := value{parts: parts, words: words, space: target.SpaceSB}
		v.loc = b.SB(m.Names.Intern(name), target.Float32, parts, words)
		b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(b, v)})
		return v
	}
	wide, low, half := tile("wide", 128, 100), tile("low", 32, 60), tile("half", 64, 60)
	kept := tile("kept", 128, 100)
	m.Sets.At(m.Locs.At(kept.loc).Set).Flags |= ir.SetNoSpill
	i := b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(b, wide), whole(b, low)}, []ir.Arg{part(b, half, 0, 50)})
	m.Insts.At(i).Name = m.Names.Intern("sum")
	acc := value{parts: 128, words: 1500}
	acc.loc = b.PSUM(m.Names.Intern("acc"), target.Float32, 128, 1500)
	i = b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(b, wide), part(b, wide, 0, 8)}, []ir.Arg{whole(b, acc)}, ir.Int(ir.KeyAccumulationFlag, 3))
	m.Insts.At(i).Name = m.Names.Intern("product")
	d := x.tensor("big", 9000)
	x.save(d, 0, 8)
	b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(b, kept)}, []ir.Arg{whole(b, low)})
	b.Close()
	var ws Workspace
	for _, c := range []struct {
		opt  Options
		want string
	}{
		// All of wide, and the taller of the rest beside it; low and half may share bytes in other quadrants.
		{Options{SBBytes: 16392 + 640}, ""},
		{Options{SBBytes: 16392 + 632}, "SB overflow: %wide needs 400 bytes a partition of 17024, of which the runtime has 16392, and nothing here can be spilled; 640 are live at sum, the largest of them: %wide 400, %half 200, %low 240;"},
		// With the hint honoured, kept is in the way throughout.
		{Options{SBBytes: 16392 + 1040, NoSpillHint: true}, ""},
		{Options{SBBytes: 16392 + 1032, NoSpillHint: true}, "1040 are live at sum, the largest of them: %kept 400, %wide 400, %half 200, %low 240;"},
		{Options{PsumBanks: 3}, ""},
		{Options{PsumBanks: 2}, "PSUM overflow: %acc needs 3 banks of 2, at one instruction; 3 are live at product, the largest of them: %acc 3;"},
		{Options{HBMBytes: 36864}, ""},
		{Options{HBMBytes: 32768}, "DRAM overflow: %big needs 36864 bytes of 32768, and DRAM does not spill; 36864 are live at I-9, the largest of them: %big 36864;"},
	} {
		err := CheckFits(m, x.f, &ws, c.opt)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.opt, err)
		}
	}
}

// The size that the message asks for is what the neediest instruction takes, and is asked for only where the machine has it.
func TestCheckFitsAsksForEnough(t *testing.T) {
	for _, last := range []int64{400, 1 << 20} {
		p := newSheet(t, 30)
		for _, size := range []int64{200, last, 300} {
			l := p.b.SB(p.m.Names.Intern("t"), target.Uint8, 128, size)
			p.b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{p.b.Chip(l, target.Uint8, 0, 128, 0, ir.Pair{Step: 1, Num: uint32(size)})})
		}
		p.b.Close()
		var ws Workspace
		opt := Options{StripBytes: 64, SBBytes: 128}
		err := CheckFits(&p.m, p.f, &ws, opt)
		want := "--sb-bytes, 464 at least"
		if last > 400 {
			want = "; this takes 1048640, and trn2 has 229376"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
		if opt.SBBytes = 464; last == 400 {
			if err := CheckFits(&p.m, p.f, &ws, opt); err != nil {
				t.Errorf("with what was asked for: %v", err)
			}
		}
	}
}
