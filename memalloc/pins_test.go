package memalloc

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// weights is a program that loads n weights and adds to them in turns, so that all are live together.
func weights(t *testing.T, level, n int) *program {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, level)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	mem := func(l ir.Loc) ir.Arg {
		return b.Mem(l, target.Float32, 0, ir.Pair{Step: 32, Num: 128}, ir.Pair{Step: 1, Num: 32})
	}
	var w []value
	for k := range n {
		v := value{parts: 128, words: 32}
		name := string(rune('a' + k))
		v.loc = b.SB(m.Names.Intern(name), target.Float32, 128, 32)
		b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(b.DRAM(m.Names.Intern("of_"+name), ir.KindExternalInput, target.Float32, 128, 32))}, []ir.Arg{whole(&b, v)})
		w = append(w, v)
	}
	sum := value{parts: 128, words: 32, loc: b.SB(m.Names.Intern("sum"), target.Float32, 128, 32)}
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, sum)})
	for range 3 {
		for _, v := range w {
			b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&b, v), whole(&b, sum)}, []ir.Arg{whole(&b, sum)})
			for range DefaultRunGap {
				b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&b, sum)}, []ir.Arg{whole(&b, sum)})
			}
		}
	}
	b.Emit(ir.OpSave, target.EngineDVE, []ir.Arg{whole(&b, sum)}, []ir.Arg{mem(b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, 128, 32))})
	b.Close()
	return p
}

// Loads are pinned within their share, un-pinned under pressure, and brought again from where they came from, never saved.
func TestPinnedLoads(t *testing.T) {
	place := func(level int, opt Options) (*program, Metrics) {
		p := weights(t, level, 8)
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		opt.StripBytes = 8
		_, mt, _ := placeAll(t, p, new(Workspace), opt)
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		return p, mt
	}
	if _, mt := place(30, Options{}); mt.PinTried != 0 || mt.Spilled != 0 {
		t.Errorf("with room for all: %+v", mt)
	}
	p, mt := place(30, Options{SBBytes: 6*128 + 8})
	if mt.PinTried != 8*128 || mt.Pinned != 3*128 || mt.Unpinned == 0 || mt.Unpinned > mt.Pinned {
		t.Errorf("tried %d, pinned %d, un-pinned %d of 768 bytes", mt.PinTried, mt.Pinned, mt.Unpinned)
	}
	if mt.Spilled == 0 || mt.Remats != mt.Spilled || mt.Saves != 0 {
		t.Errorf("%d spilled, %d of them loads, %d saves", mt.Spilled, mt.Remats, mt.Saves)
	}
	for _, i := range p.m.OrderOf(p.m.BlocksOf(p.f)[0]) {
		if p.m.Insts.At(i).Flags&ir.InstReload != 0 && p.m.Sets.At(p.m.Locs.At(p.m.LocOf(p.m.Ins(i)[0])).Set).Kind != ir.KindExternalInput {
			t.Errorf("%s does not load from a weight", p.m.InstName(i))
		}
	}
	// The switches, and what they say.
	for _, c := range []struct {
		level int
		opt   Options
		said  string
	}{
		{30, Options{FastContextSwitch: true}, "pinning of loads is off for fast context switching"},
		{20, Options{UnpinGen2: true}, "pinning of loads is off for this generation"},
		{30, Options{UnpinGen2: true}, ""},
		{20, Options{}, ""},
	} {
		var log bytes.Buffer
		c.opt.SBBytes, c.opt.Log = 6*128+8, slog.New(slog.NewTextHandler(&log, nil))
		_, mt := place(c.level, c.opt)
		if off := c.said != ""; off != (mt.Pinned == 0) || off && !strings.Contains(log.String(), c.said) {
			t.Errorf("level %d, %+v: pinned %d, log %q", c.level, c.opt, mt.Pinned, log.String())
		}
	}
}

// A pinned load among what is to be spilled is a defect.
func TestPinnedIsNoVictim(t *testing.T) {
	p := weights(t, 30, 8)
	var ws Workspace
	opt := Options{StripBytes: 8, SBBytes: 6*128 + 8, NoSpill: true}
	if _, err := SB(&p.m, p.f, &ws, opt); err == nil || target.ClassOf(err) != target.Limit {
		t.Fatalf("error %v", err)
	}
	k := slices.IndexFunc(ws.ranges.Units, func(u ssa.Unit) bool { return ws.pins.state.Get(u.Set) == pinned })
	if k < 0 {
		k = 0
		ws.pins.state.Set(ws.ranges.Units[k].Set, pinned)
	}
	ws.result.Unplaced = append(ws.result.Unplaced, uint32(k))
	err := ws.stillPinned(&p.m)
	if err == nil || target.ClassOf(err) != target.Bug || !strings.Contains(err.Error(), p.m.LocName(ws.ranges.Units[k].First)+" is to be spilled and still pinned") {
		t.Errorf("error %v", err)
	}
}
