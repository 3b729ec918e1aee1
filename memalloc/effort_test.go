package memalloc

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// share is a part of an SB of level 30 beside its strip.
func share(bytes, percent int64) int64 { return 16392 + (bytes-16392)*percent/100 }

// squeeze places a model in a part of the least SB that it needs without spilling.
func squeeze(t *testing.T, name string, percent int64, opt Options) (*program, Metrics) {
	t.Helper()
	p := lowerModel(t, zooModel(t, name), 30)
	opt.SBBytes = share(sbBound(t, p), percent)
	_, mt, _ := placeAll(t, p, new(Workspace), opt)
	return p, mt
}

const squeezed = "zoo:mlp?layers=3&width=1024&batch=32&in=1024"

// revisits is a program in which x makes room for y, and is then read at distances of a few points and of 30 points.
func revisits(t *testing.T) *program {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	tile := func(name string, words int64) value {
		return value{parts: 128, words: words, loc: b.SB(m.Names.Intern(name), target.Float32, 128, words)}
	}
	x, y, s := tile("x", 1000), tile("y", 1000), tile("s", 8)
	out := b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, 128, 8)
	read := func(v value) {
		b.Emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{whole(&b, v)}, []ir.Arg{whole(&b, s)})
		b.Emit(ir.OpSave, target.EngineDVE, []ir.Arg{whole(&b, s)}, []ir.Arg{b.Mem(out, target.Float32, 0, ir.Pair{Step: 8, Num: 128}, ir.Pair{Step: 1, Num: 8})})
	}
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, x)})
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, y)})
	for range 40 {
		read(y)
	}
	read(x)
	read(x)
	for range 15 {
		b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&b, s)}, []ir.Arg{whole(&b, s)})
		b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&b, s)}, []ir.Arg{whole(&b, s)})
	}
	read(x)
	b.Close()
	return p
}

// The level of effort changes how many transfers are inserted, not what is computed.
func TestDMALevels(t *testing.T) {
	for level, want := range map[DMALevel]int{DMAOff: 3, DMADefault: 1, DMAAggressive: 1} {
		p := revisits(t)
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		_, mt, _ := placeAll(t, p, new(Workspace), Options{StripBytes: 8, SBBytes: 5000, DMALevel: level})
		if mt.Spilled != 1 || mt.Reloads != want || mt.SpillCost <= 0 {
			t.Errorf("level %d: %d spilled, %d reloads of %d ns, want %d", level, mt.Spilled, mt.Reloads, mt.SpillCost, want)
		}
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	}
	if gap := (&Options{RunGap: 3, DMALevel: DMAOff}).runGap(); gap != 3 {
		t.Errorf("a given gap became %d", gap)
	}
}

// Too many reloads warn once, and the allocation goes on without optimising them.
func TestReloadCap(t *testing.T) {
	p := lowerModel(t, zooModel(t, squeezed), 30)
	want := outputs(t, p)
	var log bytes.Buffer
	p, mt := squeeze(t, squeezed, 25, Options{MaxReloads: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if !mt.TooManyReloads || strings.Count(log.String(), "too many spills are needed") != 1 || mt.Iterations < 2 {
		t.Errorf("%d rounds, capped %v, log %q", mt.Iterations, mt.TooManyReloads, log.String())
	}
	if !bytes.Equal(outputs(t, p), want) {
		t.Error("the program computes something else")
	}
	if _, mt := squeeze(t, squeezed, 25, Options{}); mt.TooManyReloads {
		t.Errorf("capped at %d reloads", mt.Reloads)
	}
}

// A value that says do-not-spill stays where the hint is honoured.
func TestNoSpillHint(t *testing.T) {
	for _, hint := range []bool{false, true} {
		p := revisits(t)
		x := ir.Loc(1)
		p.m.Sets.At(p.m.Locs.At(x).Set).Flags |= ir.SetNoSpill
		_, err := SB(&p.m, p.f, new(Workspace), Options{StripBytes: 8, SBBytes: 5000, NoSpillHint: hint})
		if hint && (err == nil || target.ClassOf(err) != target.Limit) || !hint && err != nil {
			t.Errorf("hint honoured: %v: error %v", hint, err)
		}
	}
}
