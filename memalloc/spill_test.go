package memalloc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// floorOf is the least SBUF that the operands of any one instruction need, at full height.
func floorOf(m *ir.Module, f ir.Func) (need int64) {
	grain := int64(8)
	if m.Gen.Level >= 40 {
		grain = 32
	}
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			seen := map[ir.Loc]bool{}
			n := int64(0)
			for _, a := range m.AllArgs(i) {
				if l := m.LocOf(a); l != 0 && m.Locs.At(l).Space == target.SpaceSB && !seen[l] {
					seen[l] = true
					n += (m.Locs.At(l).Bytes + grain - 1) / grain * grain
				}
			}
			need = max(need, n)
		}
	}
	return need
}

// With just the memory that the largest instruction needs, and two banks, programs still compute the same.
func TestRandomProgramsSpill(t *testing.T) {
	var ws Workspace
	var spilledSB, spilledPSUM, reloads, remats int
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 80).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{StripBytes: 64, PsumBanks: 2}
		if p.m.Gen.Level < 40 && rapid.Bool().Draw(t, "three banks") {
			opt.PsumBanks = 3
		}
		opt.RunGap = rapid.SampledFrom([]int{-1, 0, 3, 40}).Draw(t, "gap")
		ps, err := PSUM(&p.m, p.f, &ws, opt)
		if err != nil {
			t.Fatal(err)
		}
		opt.SBBytes = 64 + floorOf(&p.m, p.f) + 8*int64(rapid.IntRange(0, 100).Draw(t, "slack"))
		sb, err := SB(&p.m, p.f, &ws, opt)
		if err != nil {
			t.Fatal(err)
		}
		placeRest(t, p, &ws, opt)
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		spilledSB += sb.Spilled
		spilledPSUM += ps.Spilled
		reloads += sb.Reloads
		remats += sb.Remats
	})
	if !testing.Short() && (spilledSB == 0 || spilledPSUM == 0 || reloads == 0 || remats == 0) { // in short mode a fifth of the programs is drawn
		t.Errorf("the programs exercised too little: %d SB and %d PSUM spills, %d reloads, %d rematerialised", spilledSB, spilledPSUM, reloads, remats)
	}
	t.Logf("%d SB and %d PSUM spills, %d reloads, %d rematerialised", spilledSB, spilledPSUM, reloads, remats)
}

// Below the possible the error names the tensor, its need, the limit, the instruction and what lives there.
func TestOverflow(t *testing.T) {
	var m ir.Module
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(&m, "main", "Block1")
	tile := func(n string, words int64) value {
		v := value{parts: 128, words: words}
		v.loc = b.SB(m.Names.Intern(n), target.Float32, 128, words)
		return v
	}
	x, y, z := tile("x", 100), tile("y", 100), tile("z", 100)
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, x)})
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, y)})
	add := b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&b, x), whole(&b, y)}, []ir.Arg{whole(&b, z)})
	m.Insts.At(add).Name = m.Names.Intern("add_1")
	b.Close()
	var ws Workspace
	_, err := SB(&m, b.Func, &ws, Options{StripBytes: 8, SBBytes: 8 + 1199&^7})
	if err == nil || target.ClassOf(err) != target.Limit {
		t.Fatalf("error %v, want one of class limit", err)
	}
	for _, want := range []string{"400 bytes a partition", "of 1192", "add_1", "400,"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if _, err := SB(&m, b.Func, &ws, Options{StripBytes: 8, SBBytes: 1208}); err != nil {
		t.Errorf("it does not fit where it just should: %v", err)
	}
}

// A tile wider than all banks together.
func TestPsumTooWide(t *testing.T) {
	var m ir.Module
	m.Gen = generation(t, 20)
	var b ir.Builder
	b.NewFunc(&m, "main", "Block1")
	b.PSUM(m.Names.Intern("acc"), target.Float32, 128, 5*512)
	b.Close()
	var ws Workspace
	_, err := PSUM(&m, b.Func, &ws, Options{PsumBanks: 4})
	if err == nil || !strings.Contains(err.Error(), "PSUM overflow: %acc needs 5 banks of 4") || target.ClassOf(err) != target.Limit {
		t.Errorf("error %v", err)
	}
}

// Two runs on equal modules, one through a used workspace, leave the same text.
func TestSpillingIsDeterministic(t *testing.T) {
	var used Workspace
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 60).Draw(t, "n")
		seed := rapid.IntRange(0, 1000).Draw(t, "seed")
		var texts [2]bytes.Buffer
		for k, ws := range []*Workspace{&used, new(Workspace)} {
			p := rapid.Custom(func(t *rapid.T) *program { return random(t, n) }).Example(seed)
			opt := Options{StripBytes: 64, SBBytes: 64 + floorOf(&p.m, p.f) + 64, PsumBanks: 4}
			if _, err := PSUM(&p.m, p.f, ws, opt); err != nil {
				t.Fatal(err)
			}
			if _, err := SB(&p.m, p.f, ws, opt); err != nil && target.ClassOf(err) != target.Limit {
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
