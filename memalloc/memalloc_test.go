package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// Programs that fit: every placement is disjoint, in bounds, and the program computes the same on physical bytes.
func TestRandomProgramsFit(t *testing.T) {
	var ws Workspace
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 60).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		placeAll(t, p, &ws, Options{})
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	})
}

// placeAll runs the three allocators and checks what they leave.
func placeAll(t interface{ Fatal(...any) }, p *program, ws *Workspace, opt Options) (psum, sb, dram Metrics) {
	var err error
	if psum, err = PSUM(&p.m, p.f, ws, opt); err != nil {
		t.Fatal(err)
	}
	if sb, err = SB(&p.m, p.f, ws, opt); err != nil {
		t.Fatal(err)
	}
	if dram, err = DRAM(&p.m, p.f, ws, opt); err != nil {
		t.Fatal(err)
	}
	if err := overlaps(&p.m, p.f); err != nil {
		t.Fatal(err)
	}
	if err := bounds(&p.m, p.f, opt.sbBytes(p.m.Gen), opt.strip(p.m.Gen), opt.banks(p.m.Gen)); err != nil {
		t.Fatal(err)
	}
	return psum, sb, dram
}

// The published cells of the neighbour weights.
func TestWeightTable(t *testing.T) {
	want := [sbClasses][sbClasses]int32{
		{1, 1, 1, 1, 1, 1, 1, 1, 1},
		{1, 1, 0, 0, 0, 1, 1, 0, 1},
		{1, 0, 1, 0, 0, 1, 1, 0, 1},
		{1, 0, 0, 1, 0, 1, 0, 1, 1},
		{1, 0, 0, 0, 1, 1, 0, 1, 1},
		{2, 1, 1, 1, 1, 1, 1, 1, 1},
		{2, 1, 1, 0, 0, 1, 1, 0, 1},
		{2, 0, 0, 1, 1, 1, 0, 1, 1},
		{4, 1, 1, 1, 1, 2, 1, 1, 1},
	}
	for j := range sbClasses {
		for i := range sbClasses {
			if got := sbWeight[j*sbClasses+i]; got != want[j][i] {
				t.Errorf("W[%d][%d] = %d, want %d", j, i, got, want[j][i])
			}
		}
		if n := int64(len(bandsOf(j))); n != bandCount[j] {
			t.Errorf("class %d has %d bands, bandCount says %d", j, n, bandCount[j])
		}
		for k, b := range candidates(uint8(j)) {
			if b != bandsOf(j)[k] {
				t.Errorf("class %d: candidate %d is %b, want %b", j, k, b, bandsOf(j)[k])
			}
		}
	}
}

// Searching bits against looking at every start.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		w := make([]uint64, (n+63)/64)
		taken := make([]bool, n)
		for range rapid.IntRange(0, 8).Draw(t, "marks") {
			lo := rapid.IntRange(0, n).Draw(t, "lo")
			hi := rapid.IntRange(lo, min(n, lo+100)).Draw(t, "hi")
			on := rapid.Bool().Draw(t, "on")
			if on {
				mark(w, lo, hi)
			} else {
				unmark(w, lo, hi)
			}
			for k := lo; k < hi; k++ {
				taken[k] = on
			}
		}
		length := rapid.IntRange(1, 70).Draw(t, "length")
		shift := uint8(rapid.IntRange(0, 5).Draw(t, "shift"))
		up, down := -1, -1
		for p := 0; p+length <= n; p += 1 << shift {
			free := true
			for k := p; k < p+length; k++ {
				free = free && !taken[k]
			}
			if free {
				if up < 0 {
					up = p
				}
				down = p
			}
			if clash(w, p, p+length) == free {
				t.Fatalf("clash of [%d, %d) is %v", p, p+length, !free)
			}
		}
		if got := fitUp(w, n, length, shift); got != up {
			t.Fatalf("fitUp = %d, want %d", got, up)
		}
		if got := fitDown(w, n, length, shift); got != down {
			t.Fatalf("fitDown = %d, want %d", got, down)
		}
	})
}

// The gap rule of DRAM: within one page, or a page and more at the start of the gap.
func TestFirstGap(t *testing.T) {
	for _, c := range []struct {
		name        string
		busy        []span
		floor, size int64
		want        int64
	}{
		{"empty", nil, 0, 4096, 0},
		{"above the floor", nil, 8192, 100, 8192},
		{"first gap that fits", []span{{lo: 0, hi: 4096}, {lo: 8192, hi: 12288}}, 0, 4096, 4096},
		{"gap too small", []span{{lo: 0, hi: 4096}, {lo: 8192, hi: 12288}}, 0, 8192, 12288},
		{"no straddling", []span{{lo: 0, hi: 100}}, 0, 4096, 4096},
		{"small one after a small one", []span{{lo: 0, hi: 100}}, 0, 3996, 100},
		{"large ones may", []span{{lo: 0, hi: 100}}, 0, 5000, 100},
		{"nested ranges", []span{{lo: 0, hi: 8192}, {lo: 4096, hi: 4200}}, 0, 4096, 8192},
	} {
		if got := firstGap(c.busy, c.floor, c.size); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A program of n locations of which width are live at a time.
func chain(t interface{ Fatal(...any) }, n, width int) *program {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	ring := make([]value, width)
	for k := range n {
		v := value{parts: []int{128, 64, 32, 128}[k%4], words: int64(16 + 8*(k%7))}
		v.loc = b.SB(0, target.Float32, v.parts, v.words)
		old := ring[k%width]
		if old.loc == 0 {
			b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&b, v)})
		} else {
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, old)}, []ir.Arg{whole(&b, v)})
		}
		ring[k%width] = v
	}
	b.Close()
	return p
}

// unplace takes back all placements, so that the same module can be placed again.
func unplace(p *program) {
	for i := 1; i < p.m.Locs.Len(); i++ {
		p.m.Locs.At(ir.Loc(i)).Flags &^= ir.LocAllocated
	}
}

// A second run through one workspace allocates nothing.
func TestSteadyState(t *testing.T) {
	var ws Workspace
	p := chain(t, 3000, 50)
	pass := func() {
		unplace(p)
		if _, err := PSUM(&p.m, p.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := DRAM(&p.m, p.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
	if err := overlaps(&p.m, p.f); err != nil {
		t.Error(err)
	}
}

// What nothing wrote may not be read.
func TestUndefinedUse(t *testing.T) {
	var m ir.Module
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(&m, "main", "Block1")
	x := value{parts: 128, words: 8}
	x.loc = b.SB(m.Names.Intern("x"), target.Float32, 128, 8)
	y := x
	y.loc = b.SB(m.Names.Intern("y"), target.Float32, 128, 8)
	b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{whole(&b, y)})
	b.Close()
	var ws Workspace
	_, err := SB(&m, b.Func, &ws, Options{})
	if err == nil || !strings.Contains(err.Error(), "%x") || target.ClassOf(err) != target.User {
		t.Errorf("error %v, want one of class user that names %%x", err)
	}
	if _, err = SB(&m, b.Func, &ws, Options{Strict: true}); err == nil || !strings.Contains(err.Error(), "unused: %y") {
		t.Errorf("error %v, want one that names the unused %%y", err)
	}
}

func BenchmarkSB(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run("locs="+map[int]string{10_000: "10k", 100_000: "100k", 1_000_000: "1M"}[n], func(b *testing.B) {
			p := chain(b, n, 100)
			var ws Workspace
			b.ReportAllocs()
			for b.Loop() {
				unplace(p)
				if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/loc")
		})
	}
}

// The runtime's strip as a location: reserved once, kept, and clear of everything else.
func TestReserve(t *testing.T) {
	p := chain(t, 200, 20)
	l := Reserve(&p.m, p.f, Options{})
	if again := Reserve(&p.m, p.f, Options{}); again != l {
		t.Errorf("a second call reserved %s beside %s", again, l)
	}
	var ws Workspace
	if _, err := SB(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	if r := p.m.Locs.At(l); r.Addr != 0 || r.Bytes != int64(p.m.Gen.SBReserved) || r.Flags&ir.LocReserved == 0 {
		t.Errorf("the strip became %+v", *r)
	}
	if err := bounds(&p.m, p.f, int64(p.m.Gen.SBBytes), int64(p.m.Gen.SBReserved), 8); err != nil {
		t.Error(err)
	}
}
