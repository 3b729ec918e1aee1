package memalloc

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"pgregory.net/rapid"
)

// traffic is a program that saves and loads DRAM tensors through one tile.
type traffic struct {
	*program
	b    ir.Builder
	tile value
}

func newTraffic(t interface{ Fatal(...any) }, words int64) *traffic {
	x := &traffic{program: &program{}}
	x.m.Gen = generation(t, 30)
	x.b.NewFunc(&x.m, "main", "Block1")
	x.f = x.b.Func
	x.tile = value{parts: 1, words: words}
	x.tile.loc = x.b.SB(x.m.Names.Intern("tile"), target.Float32, 1, words)
	x.b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&x.b, x.tile)})
	return x
}

func (x *traffic) tensor(name string, words int64) ir.Loc {
	return x.b.DRAM(x.m.Names.Intern(name), ir.KindInternal, target.Float32, 1, words)
}

func (x *traffic) words(l ir.Loc, lo, hi int64) ir.Arg {
	return x.b.Mem(l, target.Float32, lo, ir.Pair{Step: 1, Num: uint32(hi - lo)})
}

func (x *traffic) save(l ir.Loc, lo, hi int64) {
	x.b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&x.b, x.tile)}, []ir.Arg{whole(&x.b, x.tile)})
	x.b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{part(&x.b, x.tile, 0, hi-lo)}, []ir.Arg{x.words(l, lo, hi)})
}

func (x *traffic) load(l ir.Loc, lo, hi int64) {
	x.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{x.words(l, lo, hi)}, []ir.Arg{part(&x.b, x.tile, 0, hi-lo)})
}

func (x *traffic) at(l ir.Loc) int64 { return x.m.Locs.At(l).Addr }

func (x *traffic) dram(t testing.TB, opt Options) Metrics {
	t.Helper()
	var ws Workspace
	mt, err := DRAM(&x.m, x.f, &ws, opt)
	if err != nil {
		t.Fatal(err)
	}
	return mt
}

// A tensor that is written over as a whole is dead before that, and others use its bytes meanwhile; one of whose bytes any is
// read again is not.
func TestDRAMHoles(t *testing.T) {
	for _, c := range []struct {
		name  string
		again func(x *traffic, a ir.Loc)
		share bool
	}{
		{"whole", func(x *traffic, a ir.Loc) { x.save(a, 0, 1024) }, true},
		{"in two pieces", func(x *traffic, a ir.Loc) { x.save(a, 512, 1024); x.save(a, 0, 512) }, true},
		{"not whole", func(x *traffic, a ir.Loc) { x.save(a, 0, 512); x.save(a, 513, 1024) }, false},
		{"may not run", func(x *traffic, a ir.Loc) {
			x.b.Emit(ir.OpUnconditionalBranch, target.EngineSP, nil, nil)
			x.save(a, 0, 1024)
		}, false},
		{"read first", func(x *traffic, a ir.Loc) { x.load(a, 0, 1); x.save(a, 0, 1024) }, false},
	} {
		x := newTraffic(t, 1024)
		a, b := x.tensor("a", 1024), x.tensor("b", 1024)
		x.save(a, 0, 1024)
		x.load(a, 0, 1024)
		x.save(b, 0, 1024)
		x.load(b, 0, 1024)
		c.again(x, a)
		x.load(a, 0, 1024)
		x.b.Close()
		mt := x.dram(t, Options{})
		if share := x.at(a) == x.at(b); share != c.share {
			t.Errorf("%s: at %d and %d", c.name, x.at(a), x.at(b))
		}
		if want := map[bool]int64{true: 4096, false: 8192}[c.share]; mt.HighWater != want || mt.PeakBytes != want || mt.Total != 8192 {
			t.Errorf("%s: high water %d, peak %d, total %d", c.name, mt.HighWater, mt.PeakBytes, mt.Total)
		}
	}
}

// randomTraffic draws a program over a few tensors, whose lives end and begin again.
func randomTraffic(t *rapid.T) (*traffic, []ir.Loc) {
	const top = 1200
	x := newTraffic(t, top)
	var locs []ir.Loc
	var sizes []int64
	for k := range rapid.IntRange(1, 8).Draw(t, "tensors") {
		n := int64(rapid.IntRange(1, top).Draw(t, "words"))
		locs, sizes = append(locs, x.tensor(fmt.Sprintf("d%d", k), n)), append(sizes, n)
	}
	written := make([]bool, len(locs))
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		k := rapid.IntRange(0, len(locs)-1).Draw(t, "tensor")
		lo, hi := int64(0), sizes[k]
		if written[k] && rapid.Bool().Draw(t, "part") {
			lo = int64(rapid.IntRange(0, int(hi-1)).Draw(t, "lo"))
			hi = int64(rapid.IntRange(int(lo+1), int(hi)).Draw(t, "hi"))
		}
		if written[k] && rapid.Bool().Draw(t, "load") {
			x.load(locs[k], lo, hi)
			out := x.b.DRAM(0, ir.KindExternalOutput, target.Float32, 1, hi-lo)
			x.b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{part(&x.b, x.tile, 0, hi-lo)}, []ir.Arg{x.words(out, 0, hi-lo)})
			continue
		}
		x.save(locs[k], lo, hi)
		written[k] = true
	}
	x.b.Close()
	return x, locs
}

// placesRandomTraffic places a random program: it computes the same on physical bytes, and the independent checker agrees.
func placesRandomTraffic(t *rapid.T, ws *Workspace) Metrics {
	x, _ := randomTraffic(t)
	before, err := execute(&x.m, x.f)
	if err != nil {
		t.Fatal(err)
	}
	mt, err := DRAM(&x.m, x.f, ws, Options{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := execute(&x.m, x.f)
	if err != nil {
		t.Fatal(err)
	}
	same(t, before, after)
	if err := verify.Placement(&x.m, x.f, target.SpaceDRAM); err != nil {
		t.Fatal(err)
	}
	if mt.HighWater < mt.PeakBytes {
		t.Fatalf("high water %d below the %d that are live at once", mt.HighWater, mt.PeakBytes)
	}
	return mt
}

// Random programs are placed right, and bytes are shared at all.
func TestDRAMRandom(t *testing.T) {
	var ws Workspace
	shared := 0
	rapid.Check(t, func(t *rapid.T) {
		if mt := placesRandomTraffic(t, &ws); mt.HighWater < mt.Total {
			shared++
		}
	})
	if shared == 0 && !testing.Short() {
		t.Error("no program shared bytes")
	}
}

// A placement that is spoilt so that the program computes something else does not pass the checker.
func TestDRAMCorruptionIsCaught(t *testing.T) {
	var ws Workspace
	wrong, caught := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		x, locs := randomTraffic(t)
		before, err := execute(&x.m, x.f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DRAM(&x.m, x.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, whom := range locs {
			l := x.m.Locs.At(whom)
			right := l.Addr
			for _, other := range locs {
				l.Addr = x.at(other)
				finding := verify.Placement(&x.m, x.f, target.SpaceDRAM)
				if finding != nil {
					caught++
				}
				after, err := execute(&x.m, x.f)
				differs := err != nil
				for r, v := range before {
					differs = differs || !slices.Equal(v, after[r])
				}
				if differs {
					wrong++
					if finding == nil {
						t.Fatalf("%s at the place of %s makes another program, and the checker is content", x.m.LocName(whom), x.m.LocName(other))
					}
				}
				l.Addr = right
			}
		}
	})
	if !testing.Short() && (wrong == 0 || caught == 0) {
		t.Errorf("%d programs spoilt, %d findings: nothing is shown", wrong, caught)
	}
}

// Kept live over the whole function: what a call refers to, what another core writes, interfaces, debug and volatile tensors.
func TestDRAMKept(t *testing.T) {
	for name, keep := range map[string]func(x *traffic, l ir.Loc){
		"call": func(x *traffic, l ir.Loc) {
			x.b.Emit(ir.OpCall, target.EngineSP, []ir.Arg{x.words(l, 0, 16)}, nil)
		},
		"remote":    func(x *traffic, l ir.Loc) { x.m.Locs.At(l).Flags |= ir.LocRemoteWriter },
		"interface": func(x *traffic, l ir.Loc) { x.m.Sets.At(x.m.Locs.At(l).Set).Kind = ir.KindInternalInterface },
		"volatile":  func(x *traffic, l ir.Loc) { x.m.Sets.At(x.m.Locs.At(l).Set).Flags |= ir.SetVolatile },
	} {
		x := newTraffic(t, 16)
		a, b := x.tensor("a", 16), x.tensor("b", 16)
		x.save(a, 0, 16)
		keep(x, a)
		x.load(a, 0, 16)
		x.save(b, 0, 16)
		x.load(b, 0, 16)
		x.b.Close()
		if x.dram(t, Options{}); x.at(a) == x.at(b) {
			t.Errorf("%s: another tensor has its bytes", name)
		}
	}
}

// The address spaces lie one above the other, each placed by its own call, and the function is placed when all are. A further
// call has nothing to place, which is no failure, and moves nothing.
func TestSeed36AddressSpaces(t *testing.T) {
	x := newTraffic(t, 16)
	var d [6]ir.Loc
	for k := range d {
		d[k] = x.tensor(fmt.Sprintf("d%d", k), 16)
		x.m.Sets.At(x.m.Locs.At(d[k]).Set).Addr = ir.AddrSpace(k % 3)
		x.save(d[k], 0, 16)
		x.load(d[k], 0, 16)
	}
	x.b.Close()
	var ws Workspace
	for k, name := range []string{"coloring_allocator_dram", "coloring_allocator_dram_shared", "coloring_allocator_dram_debug"} {
		mt := allocate(t, name, x.program, &ws)
		placed := x.m.Funcs.At(x.f).Flags&ir.FuncDRAMPlaced != 0
		if placed != (k == 2) || mt.Placed != 2 || mt.Nodes != 2 {
			t.Errorf("%s: %d of %d placed, function placed %v", name, mt.Placed, mt.Nodes, placed)
		}
	}
	// Local and Shared share within, Debug keeps both, since somebody reads them later.
	want := [6]int64{0, 4096, 8192, 0, 4096, 12288}
	for k, w := range want {
		if x.at(d[k]) != w {
			t.Errorf("d%d at %d, want %d", k, x.at(d[k]), w)
		}
	}
	for _, r := range registrations {
		if r.Type != TypeDRAM {
			continue
		}
		before := slices.Clone(x.m.Locs.Rows())
		if mt := allocate(t, r.Name, x.program, &ws); mt.Placed != 0 || !slices.Equal(before, x.m.Locs.Rows()) {
			t.Errorf("%s placed %d a second time", r.Name, mt.Placed)
		}
	}
}

// allocate runs one of the registered allocators.
func allocate(t testing.TB, name string, p *program, ws *Workspace) Metrics {
	t.Helper()
	r, ok := Registered(name)
	if !ok {
		t.Fatalf("%s is not registered", name)
	}
	a, err := NewAllocator(r)
	if err != nil {
		t.Fatal(err)
	}
	mt, err := a.Run(&p.m, p.f, ws, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return mt
}

// After linking: what has an address stays, what the linker added goes above it, PSUM and SB are not touched.
func TestSeed50PostLink(t *testing.T) {
	x := newTraffic(t, 1024)
	a, b := x.tensor("a", 1024), x.tensor("b", 1024)
	x.save(a, 0, 1024)
	x.load(a, 0, 1024)
	x.b.Close()
	var ws Workspace
	x.m.Locs.At(x.tile.loc).Flags, x.m.Locs.At(x.tile.loc).Addr = ir.LocAllocated|ir.LocPinned, 16896
	allocate(t, "coloring_allocator_psum", x.program, &ws)
	allocate(t, "coloring_allocator_sb", x.program, &ws)
	x.m.Locs.At(b).Flags, x.m.Locs.At(b).Addr = ir.LocAllocated|ir.LocPinned, 20000
	allocate(t, "coloring_allocator_dram", x.program, &ws)
	linked, tile := x.at(a), *x.m.Locs.At(x.tile.loc)
	// The linker adds a tensor; a and it are not live together, so that the first pass would have shared.
	c := x.m.Locs.Add(ir.LocRow{Name: x.m.Names.Intern("c"), Space: target.SpaceDRAM, Parts: 1, Bytes: 4096, Pack: -1, ID: -1})
	s := x.m.Sets.Add(ir.SetRow{Name: x.m.Names.Intern("c"), Kind: ir.KindInternal, Dtype: target.Float32, Func: x.f, First: c, Count: 1, PartDim: -1})
	x.m.Locs.At(c).Set = s
	addSets(&x.m, x.f, []ir.Set{s})
	save := x.m.NewInst(x.b.Block, ir.OpSave, target.EngineAct, []ir.Arg{whole(&x.b, x.tile)}, []ir.Arg{x.words(c, 0, 1024)})
	load := x.m.NewInst(x.b.Block, ir.OpLoad, target.EngineSP, []ir.Arg{x.words(c, 0, 1024)}, []ir.Arg{whole(&x.b, x.tile)})
	x.m.SetOrder(x.b.Block, append(slices.Clone(x.m.OrderOf(x.b.Block)), save, load))
	if mt := allocate(t, "coloring_allocator_dram_post_lnk", x.program, &ws); mt.Placed != 1 {
		t.Errorf("placed %d", mt.Placed)
	}
	if x.at(a) != linked || x.at(b) != 20000 || x.at(c) < linked+4096 || x.at(c)%4096 != 0 || *x.m.Locs.At(x.tile.loc) != tile {
		t.Errorf("a at %d (was %d), b at %d, c at %d", x.at(a), linked, x.at(b), x.at(c))
	}
	// SB placed the tile for the uses that it had then.
	if err := verify.Placement(&x.m, x.f, target.SpaceDRAM); err != nil {
		t.Error(err)
	}
}

// The eight registrations, literally.
func TestSeed36Registrations(t *testing.T) {
	want := []string{
		"coloring_allocator_dram 2 false Local", "coloring_allocator_dram_debug 2 false Debug", "coloring_allocator_dram_post_lnk 2 true Local",
		"coloring_allocator_dram_shared 2 false Shared", "coloring_allocator_dram_shared_post_lnk 2 true Shared", "coloring_allocator_psum 1 false Local",
		"coloring_allocator_reg 3 false Local", "coloring_allocator_sb 0 false Local",
	}
	var got []string
	for _, r := range registrations {
		got = append(got, fmt.Sprintf("%s %d %v %s", r.Name, r.Type, r.AfterLinking, r.Space))
		if _, err := NewAllocator(r); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, ok := Registered("coloring_allocator_with_loop"); ok {
		t.Error("the ninth name has a driver of its own")
	}
}

func TestSeed37SecondSpaceLocal(t *testing.T) {
	for _, r := range registrations {
		if r.Second != ir.AddrLocal {
			t.Errorf("%s: second address space %s", r.Name, r.Second)
		}
	}
}

// Only DRAM may be placed after linking or in another address space.
func TestSeed38ConstructorAssertions(t *testing.T) {
	for _, c := range []struct {
		r    Registration
		code string
	}{
		{Registration{"x", TypePSUM, true, ir.AddrLocal, ir.AddrLocal}, "508"},
		{Registration{"x", TypePSUM, false, ir.AddrShared, ir.AddrLocal}, "509"},
		{Registration{"x", TypeSB, true, ir.AddrLocal, ir.AddrLocal}, "510"},
		{Registration{"x", TypeSB, false, ir.AddrDebug, ir.AddrLocal}, "511"},
		{Registration{"x", TypeDRAM, true, ir.AddrShared, ir.AddrLocal}, ""},
		{Registration{"x", TypeDRAM, false, ir.AddrDebug, ir.AddrLocal}, ""},
	} {
		_, err := NewAllocator(c.r)
		if c.code == "" && err != nil || c.code != "" && (err == nil || !strings.Contains(err.Error(), "internal error "+c.code+":") || target.ClassOf(err) != target.Bug) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}

// The codes of memories, and how each is addressed: PSUM by banks of 2 KiB, SB by partition and byte.
func TestSeed92MemoryTypes(t *testing.T) {
	if target.SpaceDRAM != 8 || target.SpaceSB != 16 || target.SpacePSUM != 32 {
		t.Errorf("codes %d, %d, %d", target.SpaceDRAM, target.SpaceSB, target.SpacePSUM)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, 20)
		var ws Workspace
		placeAll(t, p, &ws, Options{})
		for l, r := range p.m.Locs.All() {
			switch {
			case r.Flags&ir.LocAllocated == 0:
			case r.Space == target.SpacePSUM && (r.Addr != 0 || r.Base != 0), r.Space == target.SpaceSB && r.Bank != 0,
				r.Space == target.SpaceDRAM && (r.Bank != 0 || r.Base != 0):
				t.Fatalf("%s in %s: bank %d, partition %d, byte %d", p.m.LocName(l), r.Space, r.Bank, r.Base, r.Addr)
			}
		}
	})
}

// PSUM and SB differ in geometry: the same tensors, whole banks each in one, bytes of a band each in the other.
func TestSeed63GeometryDiffers(t *testing.T) {
	for _, space := range []target.Space{target.SpacePSUM, target.SpaceSB} {
		x := newTraffic(t, 4)
		var d [3]ir.Loc
		for k := range d {
			name := x.m.Names.Intern(fmt.Sprintf("d%d", k))
			if d[k] = x.b.SB(name, target.Float32, 32, 4); space == target.SpacePSUM {
				d[k] = x.b.PSUM(name, target.Float32, 32, 4)
			}
			x.b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&x.b, value{d[k], 32, 4, space})})
		}
		for _, l := range d {
			x.b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&x.b, value{l, 32, 4, space})}, []ir.Arg{whole(&x.b, value{l, 32, 4, space})})
		}
		x.b.Close()
		var ws Workspace
		name := map[target.Space]string{target.SpacePSUM: "coloring_allocator_psum", target.SpaceSB: "coloring_allocator_sb"}[space]
		if mt := allocate(t, name, x.program, &ws); mt.Iterations != 1 || mt.Edges < 3 {
			t.Errorf("%s: %d rounds, %d edges", space, mt.Iterations, mt.Edges)
		}
		for k, l := range d {
			for _, o := range d[:k] {
				a, b := x.m.Locs.At(l), x.m.Locs.At(o)
				apart := a.Bank != b.Bank
				if space == target.SpaceSB {
					apart = a.Base != b.Base || a.Addr+a.Bytes <= b.Addr || b.Addr+b.Bytes <= a.Addr
				}
				if !apart {
					t.Errorf("%s: %s and %s share bytes", space, x.m.LocName(l), x.m.LocName(o))
				}
			}
		}
	}
}

// Every home of a spilled value is a DRAM tensor without an address after SB, and has one after DRAM.
func TestSeed44SpillHomes(t *testing.T) {
	p := chain(t, 400, 40)
	var ws Workspace
	opt := Options{SBBytes: int64(p.m.Gen.SBReserved) + 4096, Align: Alignments{AXIThreshold: -1}}
	sb, err := SB(&p.m, p.f, &ws, opt)
	if err != nil {
		t.Fatal(err)
	}
	homes, bytes := 0, int64(0)
	count := func(placed bool) {
		homes, bytes = 0, 0
		for l, r := range p.m.Locs.All() {
			if p.m.Sets.At(r.Set).Flags&ir.SetSpillHome == 0 {
				continue
			}
			homes++
			bytes += dramBytes(r)
			if r.Space != target.SpaceDRAM || r.Flags&ir.LocAllocated != 0 != placed {
				t.Errorf("home %s in %s, placed %v", p.m.LocName(l), r.Space, r.Flags&ir.LocAllocated != 0)
			}
		}
	}
	count(false)
	if homes == 0 || homes != sb.Spilled-sb.Remats || bytes != sb.HomeBytes {
		t.Fatalf("%d homes of %d bytes; %d values spilled, %d bytes", homes, bytes, sb.Spilled, sb.HomeBytes)
	}
	mt := allocate(t, "coloring_allocator_dram", p, &ws)
	count(true)
	if mt.HomeBytes != bytes || mt.HomeAligned < bytes || mt.HomeAligned%4096 != 0 || mt.Placed != homes {
		t.Errorf("%d placed, spill bytes %d, aligned %d; want %d, %d", mt.Placed, mt.HomeBytes, mt.HomeAligned, homes, bytes)
	}
}

// Operands of collectives have a region of their own: side by side while the limit permits, then sharing, then an error that
// names the flag. With -1 it holds them all side by side.
func TestCollectives(t *testing.T) {
	build := func() (*traffic, []ir.Loc) {
		x := newTraffic(t, 1<<18)
		plain := x.tensor("plain", 1<<18)
		d := []ir.Loc{plain}
		x.save(plain, 0, 1<<18)
		for k := range 3 {
			a, b := x.tensor(fmt.Sprintf("in%d", k), 1<<18), x.tensor(fmt.Sprintf("out%d", k), 1<<17)
			x.save(a, 0, 1<<18)
			x.b.Emit(ir.OpCollectiveCompute, target.EnginePool, []ir.Arg{x.words(a, 0, 1<<18)}, []ir.Arg{x.words(b, 0, 1<<17)})
			x.load(b, 0, 1<<17)
			d = append(d, a, b)
		}
		x.load(plain, 0, 1<<18)
		x.b.Close()
		return x, d
	}
	const mib = 1 << 20
	for _, c := range []struct {
		flag             int
		limit, high, top int64
	}{
		{0, 500 * mib, 4.5 * mib, 5.5 * mib},
		{-1, 4.5 * mib, 4.5 * mib, 5.5 * mib},
		{2, 2 * mib, 2 * mib, 3 * mib},
		{3, 3 * mib, 3 * mib, 4 * mib},
	} {
		x, d := build()
		mt := x.dram(t, Options{AllreduceMiB: c.flag})
		if mt.CollectiveBytes != 4.5*mib || mt.CollectiveLimit != c.limit || mt.CollectiveHigh != c.high || mt.HighWater != c.top {
			t.Errorf("limit %d: %d bytes of operands, high water %d of %d, %d in all", c.flag, mt.CollectiveBytes, mt.CollectiveHigh, mt.CollectiveLimit, mt.HighWater)
		}
		if x.at(d[0]) < c.high {
			t.Errorf("limit %d: the plain tensor at %d of the region of %d", c.flag, x.at(d[0]), c.high)
		}
		var attrs []string
		for _, n := range x.m.NameList.Of(x.m.Funcs.At(x.f).Extra) {
			attrs = append(attrs, x.m.Names.String(n))
		}
		if want := []string{`"allreduce_buffer_size":4718592`, fmt.Sprintf(`"allreduce_buffer_high_water":%d`, c.high)}; !slices.Equal(attrs, want) {
			t.Errorf("attributes %q", attrs)
		}
		if err := verify.Placement(&x.m, x.f, target.SpaceDRAM); err != nil {
			t.Error(err)
		}
	}
	// A second run replaces the attributes, and both forms of the program keep them.
	x, _ := build()
	x.dram(t, Options{AllreduceMiB: 2})
	unplace(x.program)
	x.dram(t, Options{})
	var text, json bytes.Buffer
	high := regexp.MustCompile(`allreduce_buffer_high_water\W+(\d+)`)
	if err := errors.Join(ir.Print(&text, &x.m), bir.Write(&json, &x.m)); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{text.String(), json.String()} {
		if all := high.FindAllStringSubmatch(form, -1); len(all) != 1 || all[0][1] != "4718592" {
			t.Errorf("%q", all)
		}
	}
	x, _ = build()
	var ws Workspace
	_, err := DRAM(&x.m, x.f, &ws, Options{AllreduceMiB: 1})
	for _, want := range []string{"DRAM overflow: %out", "needs 524288 bytes of 1048576", "--allreduce-buffer-size", "the largest of them: %in"} {
		if err == nil || !strings.Contains(err.Error(), want) || target.ClassOf(err) != target.Limit {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// A tensor placed outside of the window is the producer's mistake, and named.
func TestDRAMPlacedOutside(t *testing.T) {
	for _, at := range []int64{-4096, 24 << 30} {
		x := newTraffic(t, 16)
		a, b := x.tensor("a", 16), x.tensor("b", 16)
		x.save(a, 0, 16)
		x.save(b, 0, 16)
		x.b.Close()
		x.m.Locs.At(a).Flags, x.m.Locs.At(a).Addr = ir.LocAllocated, at
		var ws Workspace
		if _, err := DRAM(&x.m, x.f, &ws, Options{}); err == nil || !strings.Contains(err.Error(), "%a is placed") || target.ClassOf(err) != target.Limit {
			t.Errorf("error %v", err)
		}
	}
}

// dramChain is a program of n DRAM tensors of which width are live at a time.
func dramChain(t interface{ Fatal(...any) }, n, width int) *traffic {
	x := newTraffic(t, 64)
	ring := make([]ir.Loc, width)
	names := [7]int64{3, 5000, 1024, 64, 9000, 2048, 700}
	for k := range n {
		l := x.b.DRAM(0, ir.KindInternal, target.Float32, 1, names[k%7])
		if old := ring[k%width]; old != 0 {
			x.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{x.words(old, 0, 3)}, []ir.Arg{part(&x.b, x.tile, 0, 3)})
		}
		x.b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{part(&x.b, x.tile, 0, 3)}, []ir.Arg{x.words(l, 0, 3)})
		ring[k%width] = l
	}
	for _, old := range ring {
		x.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{x.words(old, 0, 3)}, []ir.Arg{part(&x.b, x.tile, 0, 3)})
	}
	x.b.Close()
	return x
}

// A second run of the same size allocates nothing.
func TestDRAMSteadyState(t *testing.T) {
	var ws Workspace
	x := dramChain(t, 3000, 100)
	pass := func() {
		unplace(x.program)
		if _, err := DRAM(&x.m, x.f, &ws, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
	if err := verify.Placement(&x.m, x.f, target.SpaceDRAM); err != nil {
		t.Error(err)
	}
}

// Sorting and counting bits find the same place.
func TestLowestPage(t *testing.T) {
	var g pages
	rapid.Check(t, func(t *rapid.T) {
		g.keys, g.size, g.busy = g.keys[:0], g.size[:0], g.busy[:0]
		top := 0
		for k := range rapid.IntRange(0, 30).Draw(t, "busy") {
			at, n := rapid.IntRange(0, 200).Draw(t, "at"), rapid.IntRange(1, 90).Draw(t, "pages")
			g.keys, g.size = append(g.keys, uint64(at)<<32|uint64(k)), append(g.size, int64(n)*pageBytes)
			g.busy = append(g.busy, span{int64(at) * pageBytes, int64(at+n) * pageBytes, uint32(k)})
			top = max(top, at+n)
		}
		slices.SortFunc(g.busy, func(a, b span) int { return int(a.lo - b.lo) })
		size := rapid.IntRange(1, 70).Draw(t, "size")
		if got, want := g.lowestPage(top, size)*pageBytes, firstGap(g.busy, 0, int64(size)*pageBytes); got != want {
			t.Fatalf("byte %d by bits, %d by sorting", got, want)
		}
	})
}

// BenchmarkDRAM places locations of which 100 are live at a time, 10,000 to 1,000,000 of them: ns and bytes a location should not
// grow; and some that are all live at once, each of which must look at all others.
func BenchmarkDRAM(b *testing.B) {
	for _, c := range []struct {
		name     string
		n, width int
	}{{"10k", 10_000, 100}, {"100k", 100_000, 100}, {"1M", 1_000_000, 100}, {"10k/live=all", 10_000, 10_000}} {
		b.Run("locs="+c.name, func(b *testing.B) {
			x := dramChain(b, c.n, c.width)
			var ws Workspace
			place := func() {
				unplace(x.program)
				if _, err := DRAM(&x.m, x.f, &ws, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			place()
			b.ReportAllocs()
			for b.Loop() {
				place()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.n), "ns/loc")
			b.ReportMetric(float64(arena.Held(&ws))/float64(c.n), "B/loc")
		})
	}
}

// FuzzDRAM places random traffic, and holds it to the symbols that it saves and to the checker.
func FuzzDRAM(f *testing.F) {
	var ws Workspace
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { placesRandomTraffic(t, &ws) }))
}
