package memalloc

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// line is what an allocator said.
type line struct {
	text  string
	attrs map[string]int64
}

// hearing collects the lines of an allocator.
type hearing struct{ lines []line }

func (h *hearing) Enabled(context.Context, slog.Level) bool { return true }
func (h *hearing) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *hearing) WithGroup(string) slog.Handler            { return h }
func (h *hearing) Handle(_ context.Context, r slog.Record) error {
	l := line{r.Message, map[string]int64{}}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindInt64:
			l.attrs[a.Key] = a.Value.Int64()
		case slog.KindDuration:
			l.attrs[a.Key] = int64(a.Value.Duration())
		}
		return true
	})
	h.lines = append(h.lines, l)
	return nil
}

// of are the lines with a text.
func (h *hearing) of(text string) (out []line) {
	for _, l := range h.lines {
		if l.text == text {
			out = append(out, l)
		}
	}
	return out
}

// pressed places the squeezed model in a part of the SB that it needs and returns what was said.
func pressed(t *testing.T, percent int64) (*program, Metrics, *hearing) {
	h := &hearing{}
	p, mt := squeeze(t, squeezed, percent, Options{Log: slog.New(h)})
	return p, mt, h
}

// What fits at once takes one attempt; a fixpoint ends with the first that leaves nothing over.
func TestSeed58OneAttempt(t *testing.T) {
	_, mt, h := pressed(t, 110)
	if a := h.of("SB attempt"); mt.Iterations != 1 || len(a) != 1 || a[0].attrs["score"] != 0 || a[0].attrs["unplaced"] != 0 {
		t.Errorf("%d rounds, attempts %v", mt.Iterations, a)
	}
	_, mt, h = pressed(t, 25)
	a := h.of("SB attempt")
	if mt.Iterations < 2 || len(a) != mt.Iterations {
		t.Fatalf("%d rounds, %d attempts", mt.Iterations, len(a))
	}
	for k, l := range a {
		if last := k == len(a)-1; last != (l.attrs["unplaced"] == 0) || last != (l.attrs["score"] == 0) {
			t.Errorf("attempt %d of %d: %v", k+1, len(a), l.attrs)
		}
	}
}

// No count bounds the rounds: as long as they make progress the guard lets them go on.
func TestSeed59NoRoundBound(t *testing.T) {
	g := regalloc.Guard{What: "SBUF"}
	g.Start()
	for range 1 << 16 {
		if err := g.Next(1, true); err != nil {
			t.Fatal(err)
		}
	}
	if _, mt, _ := pressed(t, 25); mt.Iterations < 2 {
		t.Errorf("%d rounds", mt.Iterations)
	}
}

// Each further round colours a function that is larger by the last one's spill code, numbered anew.
func TestSeed60LargerEachRound(t *testing.T) {
	p, mt, h := pressed(t, 25)
	a := h.of("SB attempt")
	for k := 1; k < len(a); k++ {
		if a[k].attrs["instructions"] <= a[k-1].attrs["instructions"] || a[k].attrs["nodes"] <= a[k-1].attrs["nodes"] {
			t.Errorf("attempt %d on %v after %v", k+1, a[k].attrs, a[k-1].attrs)
		}
	}
	n := 0
	for _, b := range p.m.BlocksOf(p.f) {
		n += len(p.m.OrderOf(b))
	}
	if last := a[len(a)-1]; int(last.attrs["instructions"]) != n || int(last.attrs["nodes"]) != mt.Nodes {
		t.Errorf("the last attempt was on %v, and the function has %d instructions", last.attrs, n)
	}
	// Numbers come from program order: those of the last round as well.
	var ws Workspace
	unplace(p)
	if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(ws.ranges.Units, func(a, b ssa.Unit) int { return int(a.Start) - int(b.Start) }) {
		t.Error("units are not in order of their first definition")
	}
}

// Webs are split once, before the first round: what the rounds add is not split again.
func TestSeed61WebsOnce(t *testing.T) {
	p := lowerModel(t, zooModel(t, squeezed), 30)
	opt := Options{SBBytes: share(sbBound(t, p), 25)}
	merged := reuse(p)
	h := &hearing{}
	opt.Log = slog.New(h)
	_, mt, _ := placeAll(t, p, new(Workspace), opt)
	if merged == 0 || mt.Split != merged || mt.Iterations < 2 {
		t.Errorf("%d values laid into the location of another, %d split off in %d rounds", merged, mt.Split, mt.Iterations)
	}
	split := 0
	for _, r := range p.m.Sets.All() {
		if _, kind, _ := p.m.Names.Origin(r.Name); kind == arena.DeriveSplit {
			split++
		}
	}
	if split != mt.Split {
		t.Errorf("%d sets are called split, %d were split off", split, mt.Split)
	}
	// The first attempt sees them: it has a node for each value, not for each location.
	if a := h.of("SB attempt"); a[0].attrs["nodes"] <= int64(mt.Split) {
		t.Errorf("the first attempt had %d nodes", a[0].attrs["nodes"])
	}
}

// PSUM and SB go through the same rounds and say the same, each under its own name; SB has loads to bet on beside.
func TestSeed62SameRounds(t *testing.T) {
	var said [2][]string
	for k, run := range []func(*program, Options) error{
		func(p *program, opt Options) error { _, err := PSUM(&p.m, p.f, new(Workspace), opt); return err },
		func(p *program, opt Options) error { _, err := SB(&p.m, p.f, new(Workspace), opt); return err },
	} {
		h := &hearing{}
		p := products(t, 30, 12, false)
		opt := Options{PsumBanks: 2, StripBytes: 8, SBBytes: 8 + 8*64, Log: slog.New(h)}
		if k == 1 {
			if _, err := PSUM(&p.m, p.f, new(Workspace), Options{PsumBanks: 2}); err != nil {
				t.Fatal(err)
			}
		}
		if err := run(p, opt); err != nil {
			t.Fatal(err)
		}
		for _, l := range h.lines {
			said[k] = append(said[k], strings.ReplaceAll(strings.ReplaceAll(l.text, "PSUM", "X"), "SB", "X"))
		}
	}
	want := []string{"allocating X", "X attempt", "X attempt", "X placed"}
	if !slices.Equal(said[0], want) || !slices.Equal(said[1], want) {
		t.Errorf("PSUM says %q, SB %q, want %q", said[0], said[1], want)
	}
}

// A tensor that can neither be placed nor spilled.
func TestSeed64UnspillableIsFatal(t *testing.T) {
	h := newHard(t, 30)
	x, y := h.tile("x", 128, 20), h.tile("y", 128, 20)
	h.set(x)
	h.move(x, y)
	h.out(y)
	h.b.Close()
	_, err := SB(&h.m, h.f, new(Workspace), Options{StripBytes: 8, SBBytes: 8 + 32*granule})
	if err == nil || target.ClassOf(err) != target.Limit {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"SB overflow", "needs 160 bytes a partition of 256", "spilling cannot help"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	for i := 1; i < h.m.Locs.Len(); i++ {
		if l := h.m.Locs.At(ir.Loc(i)); l.Space == target.SpaceSB && l.Flags&ir.LocAllocated != 0 {
			t.Errorf("%s has a place after the error", h.m.LocName(ir.Loc(i)))
		}
	}
}

// What is said, in order: a banner, label and score of each attempt, and at the end the label that did it, the rounds, what spilling cost
// and how much was spilled. PSUM the same under its name.
func TestSeed65Lines(t *testing.T) {
	_, mt, h := pressed(t, 25)
	var psum, sb []line
	for _, l := range h.lines {
		if strings.Contains(l.text, "PSUM") {
			psum = append(psum, l)
		} else {
			sb = append(sb, l)
		}
	}
	if len(psum) != 3 || psum[0].text != "allocating PSUM" || psum[1].text != "PSUM attempt" || psum[2].text != "PSUM placed" {
		t.Errorf("PSUM says %v", psum)
	}
	if len(sb) != mt.Iterations+2 || sb[0].text != "allocating SB" || sb[len(sb)-1].text != "SB placed" {
		t.Fatalf("SB says %v in %d rounds", sb, mt.Iterations)
	}
	for k, l := range sb[1 : len(sb)-1] {
		if _, ok := l.attrs["score"]; l.text != "SB attempt" || l.attrs["heuristic"] != int64(k+1) || !ok {
			t.Errorf("line %d: %v", k+1, l)
		}
	}
	last := sb[len(sb)-1].attrs
	for key, want := range map[string]int64{
		"best_heuristic": int64(mt.Iterations), "iterations": int64(mt.Iterations), "spill_cycles": mt.SpillCost, "spilled": int64(mt.Spilled),
		"bytes_per_partition": mt.SpilledPerPart, "pinned": mt.Pinned, "unpinned": mt.Unpinned, "spill_time": int64(mt.SpillTime),
	} {
		if got, ok := last[key]; !ok || got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
	if mt.Spilled == 0 || mt.SpillCost == 0 || mt.SpilledPerPart == 0 {
		t.Errorf("nothing was spilled: %+v", mt)
	}
}
