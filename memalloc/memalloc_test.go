package memalloc

import (
	"slices"
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
	return psum, sb, placeRest(t, p, ws, opt)
}

// placeRest places DRAM after PSUM and SB, and checks where everything lies.
func placeRest(t interface{ Fatal(...any) }, p *program, ws *Workspace, opt Options) Metrics {
	dram, err := DRAM(&p.m, p.f, ws, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := overlaps(&p.m, p.f); err != nil {
		t.Fatal(err)
	}
	if err := bounds(&p.m, p.f, opt.Raw(p.m.Gen), opt.Strip(p.m.Gen), opt.Banks(p.m.Gen)); err != nil {
		t.Fatal(err)
	}
	return dram
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
	bands := [sbClasses][]uint8{{1, 2, 4, 8}, {1}, {2}, {4}, {8}, {3, 12}, {3}, {12}, {15}}
	for j := range sbClasses {
		for i := range sbClasses {
			if got := sbWeight[j*sbClasses+i]; got != want[j][i] {
				t.Errorf("W[%d][%d] = %d, want %d", j, i, got, want[j][i])
			}
		}
		if got := candidates(uint8(j)); !slices.Equal(got, bands[j]) || int64(len(got)) != bandCount[j] {
			t.Errorf("class %d has bands %b, want %b; bandCount says %d", j, got, bands[j], bandCount[j])
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
				Mark(w, lo, hi)
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
		if got := Fit(w, 0, n, length, shift); got != up {
			t.Fatalf("Fit = %d, want %d", got, up)
		}
		if got := fitDown(w, n, length, shift); got != down {
			t.Fatalf("fitDown = %d, want %d", got, down)
		}
	})
}

// Ranges that begin and end anywhere.
func TestFitWithin(t *testing.T) {
	w := make([]uint64, 4)
	Mark(w, 0, 10)
	Mark(w, 60, 70)
	Mark(w, 128, 192)
	for _, c := range []struct{ lo, hi, length, shift, want int }{
		{0, 256, 50, 0, 10}, {0, 256, 51, 0, 70}, {0, 256, 50, 3, 72}, {0, 256, 58, 0, 70}, {0, 256, 59, 0, 192},
		{0, 256, 64, 6, 192}, {0, 256, 65, 0, -1}, {100, 256, 10, 0, 100}, {120, 256, 10, 0, 192}, {0, 64, 50, 4, -1}, {193, 256, 64, 0, -1},
	} {
		if got := Fit(w, c.lo, c.hi, c.length, uint8(c.shift)); got != c.want {
			t.Errorf("fit of %d at multiples of 1<<%d in [%d, %d) is %d, want %d", c.length, c.shift, c.lo, c.hi, got, c.want)
		}
	}
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
	fillChain(t, p, n, width)
	return p
}

// fillChain is chain in a module that is there already.
func fillChain(t interface{ Fatal(...any) }, p *program, n, width int) {
	m := &p.m
	m.Reset()
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

// What is placed before the call stays where it is, and the rest goes around it.
func TestPlacedStay(t *testing.T) {
	p := chain(t, 400, 40)
	m := &p.m
	var ws Workspace
	if _, err := SB(m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	fixed := map[ir.Loc]ir.LocRow{}
	for i := 1; i < m.Locs.Len(); i++ {
		l := m.Locs.At(ir.Loc(i))
		if i%3 == 0 {
			l.Flags |= ir.LocUserAllocated
			fixed[ir.Loc(i)] = *l
		} else {
			l.Flags &^= ir.LocAllocated
		}
	}
	if _, err := SB(m, p.f, &ws, Options{Align: Alignments{AXIThreshold: -1}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range fixed {
		if got := *m.Locs.At(i); got != want {
			t.Errorf("%s moved from %+v to %+v", i, want, got)
		}
	}
	if err := overlaps(m, p.f); err != nil {
		t.Error(err)
	}
	// A placement outside the memory is refused by name.
	l := m.Locs.At(3)
	l.Addr, l.Name = int64(m.Gen.SBBytes)-8, m.Names.Intern("far")
	m.Locs.At(4).Flags &^= ir.LocAllocated
	if _, err := SB(m, p.f, &ws, Options{}); err == nil || !strings.Contains(err.Error(), "%far") || target.ClassOf(err) != target.Limit {
		t.Errorf("error %v", err)
	}
}

// Blocks of a PSUM set stand side by side and take turns in the live ones.
func TestPsumBlocks(t *testing.T) {
	var m ir.Module
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(&m, "main", "Block1")
	x := value{parts: 128, words: 8}
	x.loc = b.SB(m.Names.Intern("x"), target.Float32, 128, 8)
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, x)})
	one := value{parts: 128, words: 4}
	one.loc = b.PSUM(m.Names.Intern("one"), target.Float32, 128, 4)
	s := b.Tensor(m.Names.Intern("ring"), ir.KindInternal, ir.ClassNeuronPSUMTensor, target.Float32, 4, 128, 1024)
	var ring [4]value
	for k := range ring {
		ring[k] = value{parts: 128, words: 1024, loc: b.Place(s, m.Sets.At(s).Name, target.SpacePSUM, 128, 4096)}
	}
	m.Sets.At(s).LiveN = 2
	for _, v := range append(ring[:], one) {
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, x)}, []ir.Arg{part(&b, v, 0, 4)}, ir.Int(ir.KeyAccumulationFlag, 3))
	}
	for _, v := range append(ring[:], one) {
		b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{part(&b, v, 0, 4)}, []ir.Arg{part(&b, x, 0, 4)})
	}
	b.Close()
	var ws Workspace
	mt, err := PSUM(&m, b.Func, &ws, Options{})
	if err != nil {
		t.Fatal(err)
	}
	bank := func(v value) int8 { return m.Locs.At(v.loc).Bank }
	if bank(ring[0])%2 != 0 || bank(ring[1]) != bank(ring[0])+2 || bank(ring[2]) != bank(ring[0]) || bank(ring[3]) != bank(ring[1]) {
		t.Errorf("ring in banks %d %d %d %d", bank(ring[0]), bank(ring[1]), bank(ring[2]), bank(ring[3]))
	}
	if o := bank(one); o >= bank(ring[0]) && o < bank(ring[0])+4 {
		t.Errorf("the other tile in bank %d of the ring's %d to %d", o, bank(ring[0]), bank(ring[0])+3)
	}
	if mt.HighWater > 6 || mt.PeakDemand != 62.5 {
		t.Errorf("high water %d, demand %v, want at most 6 banks and 62.5 %%", mt.HighWater, mt.PeakDemand)
	}
	if _, err := PSUM(&m, b.Func, &ws, Options{PsumReserved: 1 << 7}); err != nil {
		t.Errorf("placed as it is, with a reserved bank: %v", err)
	}
}

func TestBankAlign(t *testing.T) {
	for _, c := range []struct{ span, first, second int }{{1, 1, 1}, {2, 2, 2}, {3, 4, 3}, {4, 4, 4}, {5, 8, 8}, {8, 8, 8}} {
		if a, b := BankAlign(c.span); a != c.first || b != c.second {
			t.Errorf("span %d: %d, %d, want %d, %d", c.span, a, b, c.first, c.second)
		}
	}
}

// DRAM: sets that are not live together share bytes, must-aliases share always, and the window is kept.
func TestDRAM(t *testing.T) {
	var m ir.Module
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(&m, "main", "Block1")
	v := value{parts: 128, words: 8}
	v.loc = b.SB(m.Names.Intern("x"), target.Float32, 128, 8)
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, v)})
	var d [4]ir.Loc
	for k := range d {
		d[k] = b.DRAM(m.Names.Intern("d"+string(rune('0'+k))), ir.KindInternal, target.Float32, 128, int64(8*(k+1)))
	}
	mem := func(l ir.Loc) ir.Arg { return b.Mem(l, target.Float32, 0, ir.Pair{Step: 1, Num: 1024}) }
	save := func(l ir.Loc) { b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, v)}, []ir.Arg{mem(l)}) }
	load := func(l ir.Loc) { b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(l)}, []ir.Arg{whole(&b, v)}) }
	save(d[0])
	save(d[1])
	load(d[1])
	load(d[0])
	save(d[2])
	load(d[2])
	load(d[3]) // the twin of d2
	b.Close()
	m.Aliases.Add(ir.AliasRow{A: d[2], B: d[3], Kind: 3})
	var ws Workspace
	mt, err := DRAM(&m, b.Func, &ws, Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(k int) int64 { return m.Locs.At(d[k]).Addr }
	if at(2) != at(3) || at(2) != 0 || at(0) == at(1) || mt.HighWater != 16384 {
		t.Errorf("at %d %d %d %d, high water %d", at(0), at(1), at(2), at(3), mt.HighWater)
	}
	for i := range d {
		m.Locs.At(d[i]).Flags &^= ir.LocAllocated
	}
	if _, err := DRAM(&m, b.Func, &ws, Options{HBMBytes: 12288}); err == nil || !strings.Contains(err.Error(), "%d2 needs 16384 bytes of 12288") ||
		!strings.Contains(err.Error(), "largest of them: %d2 16384") || target.ClassOf(err) != target.Limit {
		t.Errorf("error %v", err)
	}
	// Addressed ones keep their place, and the rest goes above them.
	m.Locs.At(d[0]).Flags |= ir.LocAllocated | ir.LocUserAllocated
	m.Locs.At(d[0]).Addr = 100
	if _, err := DRAM(&m, b.Func, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	if at(0) != 100 || at(1) < 100+4096 || at(1)%4096 != 0 {
		t.Errorf("d0 at %d, d1 at %d", at(0), at(1))
	}
}
