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
	"pgregory.net/rapid"
)

// alike is a program for looking at partners: tiles by name, written at the start.
type alike struct {
	program
	b ir.Builder
	t map[string]value
}

func newAlike(t *testing.T, tiles map[string]int, words int64) *alike {
	a := &alike{t: map[string]value{}}
	a.m.Gen = generation(t, 30)
	a.b.NewFunc(&a.m, "main", "Block1")
	a.f = a.b.Func
	var names []string
	for n := range tiles {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		v := value{parts: tiles[n], words: words, loc: a.b.SB(a.m.Names.Intern(n), target.Float32, tiles[n], words)}
		a.t[n] = v
		a.b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&a.b, v)})
	}
	return a
}

// rows is a pattern over some partitions of a tile.
func (a *alike) rows(n string, start, parts int) ir.Arg {
	return a.b.Chip(a.t[n].loc, target.Float32, start, parts, 0, ir.Pair{Step: 1, Num: uint32(a.t[n].words)})
}

func (a *alike) copy(from string, start int, to string, at, parts int) {
	a.b.Emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{a.rows(from, start, parts)}, []ir.Arg{a.rows(to, at, parts)})
}

func (a *alike) multiply(into value, flags int64, x, w string) {
	a.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&a.b, a.t[x]), whole(&a.b, a.t[w])}, []ir.Arg{whole(&a.b, into)}, ir.Int(ir.KeyAccumulationFlag, flags))
}

// group finds the partners and returns those of a tile, with their classes.
func (a *alike) group(t *testing.T, ws *Workspace, opt Options, of string) (names []string, classes []uint8) {
	t.Helper()
	if _, err := ws.linearise(&a.m, a.f, &opt); err != nil {
		t.Fatal(err)
	}
	ws.ranges.Build(&a.m, &ws.lin, target.SpaceSB, ssa.BySlot, nil)
	if err := ws.sbProblem(&a.m, opt.Raw(a.m.Gen), &opt); err != nil {
		t.Fatal(err)
	}
	ws.findPartners(&a.m, &opt)
	u := ws.ranges.UnitOf(a.t[of].loc)
	for j := u; ; {
		names = append(names, strings.TrimPrefix(a.m.LocName(ws.ranges.Units[j].First), "%"))
		if j = ws.partners.next[j]; j == u {
			break
		}
	}
	slices.Sort(names)
	for _, n := range names {
		classes = append(classes, ws.sb.at[ws.ranges.UnitOf(a.t[n].loc)].class)
	}
	return names, classes
}

func TestPartners(t *testing.T) {
	var ws Workspace
	tiles := map[string]int{"a": 32, "b": 32, "c": 64, "d": 128, "e": 32, "k": 32, "w": 32, "x": 64, "y": 64, "z": 32}
	opt := Options{Align: Alignments{AXIThreshold: -1}}
	for _, c := range []struct {
		name    string
		build   func(a *alike)
		of      string
		want    string
		classes []uint8
	}{
		{"none", func(*alike) {}, "a", "a", []uint8{class32}},
		{"both sides of a copy", func(a *alike) { a.copy("a", 0, "b", 0, 32) }, "b", "a b", []uint8{class32, class32}},
		{"also from the middle of both", func(a *alike) { a.copy("c", 32, "x", 32, 32) }, "x", "c x", []uint8{class64, class64}},
		{"not at different offsets", func(a *alike) { a.copy("c", 32, "a", 0, 32) }, "a", "a", []uint8{class32}},
		{"closed over copies", func(a *alike) { a.copy("a", 0, "b", 0, 32); a.copy("b", 0, "e", 0, 32) }, "a", "a b e", []uint8{class32, class32, class32}},
		{"what is tall fixes the rest", func(a *alike) { a.copy("d", 0, "c", 0, 64); a.copy("c", 0, "a", 0, 32) }, "a", "a c d", []uint8{1, 6, class128}},
		{"a chain", func(a *alike) {
			v := value{parts: 128, words: 8, loc: a.b.PSUM(a.m.Names.Intern("p"), target.Float32, 128, 8)}
			a.multiply(v, ir.GroupStart, "w", "x")
			a.multiply(v, ir.GroupAccumulate, "y", "z")
			a.multiply(v, ir.GroupAccumulate|ir.GroupStop, "w", "k")
		}, "z", "k w y z", []uint8{1, 1, 6, 1}},
		{"two chains in one place", func(a *alike) {
			v := value{parts: 128, words: 8, loc: a.b.PSUM(a.m.Names.Intern("p"), target.Float32, 128, 8)}
			a.multiply(v, ir.GroupStart|ir.GroupStop, "w", "x")
			a.multiply(v, ir.GroupStart|ir.GroupStop, "y", "z")
		}, "z", "z", []uint8{1}},
		{"a copy of an operand", func(a *alike) {
			v := value{parts: 128, words: 8, loc: a.b.PSUM(a.m.Names.Intern("p"), target.Float32, 128, 8)}
			a.copy("a", 0, "w", 0, 32)
			a.multiply(v, ir.GroupStart|ir.GroupStop, "w", "x")
		}, "a", "a w", []uint8{1, 1}},
		{"what is placed fixes the rest", func(a *alike) {
			l := a.m.Locs.At(a.t["b"].loc)
			l.Flags, l.Addr, l.Base = ir.LocAllocated|ir.LocUserAllocated, 20000, 64
			a.copy("a", 0, "b", 0, 32)
		}, "a", "a b", []uint8{1 + 2, class32}},
	} {
		a := newAlike(t, tiles, 8)
		c.build(a)
		a.b.Close()
		names, classes := a.group(t, &ws, opt, c.of)
		if got := strings.Join(names, " "); got != c.want || !slices.Equal(classes, c.classes) {
			t.Errorf("%s: %s with classes %v, want %s with %v", c.name, got, classes, c.want, c.classes)
		}
	}
}

// A group that SB cannot hold is dropped and named, and the others stay.
func TestPartnersTooLarge(t *testing.T) {
	a := newAlike(t, map[string]int{"a": 32, "b": 32, "c": 32, "x": 32, "y": 32}, 64)
	a.copy("a", 0, "b", 0, 32)
	a.copy("b", 0, "c", 0, 32)
	a.copy("x", 0, "y", 0, 32)
	a.b.Close()
	var ws Workspace
	var log bytes.Buffer
	opt := Options{StripBytes: 8, SBBytes: 8 + 2*256, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if names, _ := a.group(t, &ws, opt, "b"); len(names) != 1 || ws.partners.groups != 2 || ws.partners.dropped != 1 {
		t.Errorf("%v of %d groups, %d dropped", names, ws.partners.groups, ws.partners.dropped)
	}
	for _, want := range []string{"a group is too large for SB", "bytes=768", "largest=%a", "of=256"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %q lacks %q", log.String(), want)
		}
	}
	if names, _ := a.group(t, &ws, opt, "x"); !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("the other group became %v", names)
	}
}

// Members of a group follow the first of them that is popped; what is not stacked is not stacked by that.
func TestRestack(t *testing.T) {
	p := partners{next: []uint32{2, 1, 4, 3, 0, 5}, groups: 1} // 0, 2 and 4 are partners
	order := []uint32{0, 1, 3, 2, 5}                           // 4 has a place already
	p.restack(order)
	if want := []uint32{1, 3, 0, 2, 5}; !slices.Equal(order, want) {
		t.Errorf("stack %v, want %v", order, want)
	}
}

// Near a partner means its band, and its place with the length of the newcomer on both sides.
func TestNear(t *testing.T) {
	at := func(lo, hi int32, quads uint8) place { return place{lo: lo, hi: hi, quads: quads} }
	for _, c := range []struct {
		name    string
		partner place
		other   place
		class   uint8
		lo      int32
		quads   uint8
	}{
		{"below it", at(20, 30, 2), at(0, 5, 15), class32, 10, 2},
		{"above it", at(20, 30, 2), at(5, 20, 15), class32, 30, 2},
		{"in a fixed band", at(20, 30, 4), at(0, 10, 4), 3, 10, 4},
		{"not in another fixed band", at(20, 30, 4), at(0, 10, 4), 1, -1, 0},
		{"of its height", at(20, 30, 3), at(0, 5, 15), class64, 10, 3},
		{"nowhere", at(20, 30, 15), at(5, 40, 15), class32, -1, 0},
		{"no place, no neighbourhood", place{}, at(0, 5, 15), class32, -1, 0},
	} {
		r, obstacles := board(96, c.partner, c.other)
		r.at[0] = place{hi: 10, class: c.class}
		r.partners = []uint32{1, 0, 2}
		r.draw(obstacles)
		if ok := r.near(0); ok != (c.lo >= 0) || ok && (r.at[0].lo != c.lo || r.at[0].quads != c.quads) {
			t.Errorf("%s: %v at %d of %04b", c.name, ok, r.at[0].lo, r.at[0].quads)
		}
	}
}

// With partners programs compute the same, in much memory and in little, and nothing is allocated in the steady state.
func TestPartnersRandomPrograms(t *testing.T) {
	var ws Workspace
	groups := 0
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 60).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{Partners: true}
		if rapid.Bool().Draw(t, "little") {
			opt.StripBytes = 64
			opt.SBBytes = 64 + floorOf(&p.m, p.f) + 8*int64(rapid.IntRange(0, 100).Draw(t, "slack"))
		}
		placeAll(t, p, &ws, opt)
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		groups += ws.partners.groups
	})
	if groups == 0 && !testing.Short() {
		t.Error("no program had partners")
	}
	a := newAlike(t, map[string]int{"a": 32, "b": 32, "c": 64}, 8)
	for range 100 {
		a.copy("a", 0, "b", 0, 32)
		a.copy("b", 0, "c", 0, 32)
	}
	a.b.Close()
	pass := func() {
		unplace(&a.program)
		if _, err := SB(&a.m, a.f, &ws, Options{Partners: true}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}
