package rotate

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

// stream is n tiles, each written, multiplied into a bank of its own, copied out and never used again, so that few are live
// together and the allocator gives all of them the same few places.
func stream(t testing.TB, n, words int) (*ir.Module, ir.Func) {
	t.Helper()
	m := new(ir.Module)
	g, ok := target.ByLevel(30)
	if !ok {
		t.Fatal("no generation")
	}
	m.Gen = g
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	pair := ir.Pair{Step: 1, Num: 64}
	out := b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, int64(n), 128, 64)
	for k := range n {
		x := b.SB(0, target.Float32, 128, int64(words))
		s := b.SB(0, target.Float32, 128, 64)
		y := b.PSUM(0, target.Float32, 128, 64)
		sum := b.Chip(y, target.Float32, 0, 128, 0, pair)
		b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{b.Chip(x, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: uint32(words)})})
		tile := b.Chip(x, target.Float32, 0, 128, 0, pair)
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{tile, tile}, []ir.Arg{sum}, ir.Int(ir.KeyAccumulationFlag, 3))
		b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{sum}, []ir.Arg{b.Chip(s, target.Float32, 0, 128, 0, pair)})
		b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{b.Chip(s, target.Float32, 0, 128, 0, pair)},
			[]ir.Arg{b.Mem(out, target.Float32, int64(k)*128*64, ir.Pair{Step: 64, Num: 128}, pair)})
	}
	b.Close()
	var ws memalloc.Workspace
	if _, err := memalloc.PSUM(m, b.Func, &ws, memalloc.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := memalloc.SB(m, b.Func, &ws, memalloc.Options{}); err != nil {
		t.Fatal(err)
	}
	return m, b.Func
}

// Tiles that follow each other take every bank, and every byte of their window, before any is taken again.
func TestStreamsTakeTurns(t *testing.T) {
	const n, words = 60, 8192 / 4
	m, f := stream(t, n, words)
	var ws Workspace
	var alloc memalloc.Workspace
	if st := PSUM(m, f, &ws, &alloc, memalloc.Options{}); st.Units != n || st.Moved < n/2 {
		t.Errorf("PSUM: %+v of %d tiles", st, n)
	}
	if st := SB(m, f, &ws, &alloc, memalloc.Options{}); st.Units != 2*n || st.Moved < n {
		t.Errorf("SB: %+v of %d tiles", st, 2*n)
	}
	banks := map[int8]int{}
	var recent []int64
	slots := (m.Gen.SBBytes - m.Gen.SBReserved) * (lowPart - 1) / lowPart / (4 * words)
	for _, r := range m.Locs.All() {
		switch {
		case r.Space == target.SpacePSUM:
			banks[r.Bank]++
		case r.Space == target.SpaceSB && r.Bytes == 4*words:
			for _, a := range recent {
				if a < r.Addr+r.Bytes && r.Addr < a+r.Bytes {
					t.Fatalf("byte %d is used again within %d tiles", r.Addr, slots)
				}
			}
			if recent = append(recent, r.Addr); len(recent) >= slots-1 {
				recent = recent[1:]
			}
		}
	}
	for b := range int8(8) {
		if banks[b] < n/8 || banks[b] > n/8+1 {
			t.Errorf("bank %d has %d of %d tiles", b, banks[b], n)
		}
	}
}

// Tensors that must not move do not, whoever says so.
func TestFixedStay(t *testing.T) {
	m, f := stream(t, 40, 100)
	var before []ir.LocRow
	for l, r := range m.Locs.All() {
		switch int(l) % 8 {
		case 0:
			r.Flags |= ir.LocUserAllocated
		case 1:
			m.Sets.At(r.Set).Flags |= ir.SetNoRotate
		}
		before = append(before, *r)
	}
	var ws Workspace
	var alloc memalloc.Workspace
	moved := PSUM(m, f, &ws, &alloc, memalloc.Options{}).Moved + SB(m, f, &ws, &alloc, memalloc.Options{}).Moved
	changed := 0
	for l, r := range m.Locs.All() {
		was := before[l-1]
		if r.Addr == was.Addr && r.Bank == was.Bank {
			continue
		}
		changed++
		if was.Flags&ir.LocUserAllocated != 0 || m.Sets.At(r.Set).Flags&ir.SetNoRotate != 0 {
			t.Errorf("%s moved from bank %d byte %d to bank %d byte %d", m.LocName(l), was.Bank, was.Addr, r.Bank, r.Addr)
		}
	}
	if moved == 0 || changed != moved {
		t.Errorf("%d placements changed, %d reported", changed, moved)
	}
}

// Tiles that are live together and lie on each other were put so by their producer, and stay; others move.
func TestSharedStay(t *testing.T) {
	m, f := stream(t, 20, 100)
	var b ir.Builder
	b.M, b.Func, b.Block = m, f, m.BlocksOf(f)[0]
	pat := func(l ir.Loc) ir.Arg {
		return b.Chip(l, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 64})
	}
	order := append([]ir.Inst(nil), m.OrderOf(b.Block)...)
	var shared []ir.Loc
	for _, space := range []target.Space{target.SpaceSB, target.SpacePSUM} {
		x, y := b.SB(0, target.Float32, 128, 64), b.SB(0, target.Float32, 128, 64)
		if space == target.SpacePSUM {
			x, y = b.PSUM(0, target.Float32, 128, 64), b.PSUM(0, target.Float32, 128, 64)
		}
		for range 2 {
			for _, l := range []ir.Loc{x, y} {
				order = append(order, m.NewInst(b.Block, ir.OpActivation, target.EngineAct, []ir.Arg{pat(x)}, []ir.Arg{pat(l)}))
			}
		}
		for _, l := range []ir.Loc{x, y} {
			r := m.Locs.At(l)
			r.Flags |= ir.LocAllocated
			r.Addr, r.Bank = 0, 0
			if space == target.SpaceSB {
				r.Addr = int64(m.Gen.SBBytes) - 4096
			}
		}
		shared = append(shared, x, y)
	}
	m.SetOrder(b.Block, order)
	sets := append([]ir.Set(nil), m.SetsOf(f)...)
	for _, l := range shared {
		sets = append(sets, m.Locs.At(l).Set)
	}
	m.Funcs.At(f).Sets = m.SetList.AddSlice(sets)
	var ws Workspace
	var alloc memalloc.Workspace
	if st := PSUM(m, f, &ws, &alloc, memalloc.Options{}); st.Units != 22 || st.Moved == 0 {
		t.Errorf("PSUM: %+v", st)
	}
	if st := SB(m, f, &ws, &alloc, memalloc.Options{}); st.Units != 42 || st.Moved == 0 {
		t.Errorf("SB: %+v", st)
	}
	for _, l := range shared {
		if r := m.Locs.At(l); r.Bank != 0 || r.Space == target.SpaceSB && r.Addr != int64(m.Gen.SBBytes)-4096 {
			t.Errorf("%s moved to bank %d byte %d", m.LocName(l), r.Bank, r.Addr)
		}
	}
}

// A second rotation through one workspace allocates nothing.
func TestSteadyState(t *testing.T) {
	m, f := stream(t, 500, 300)
	var ws Workspace
	var alloc memalloc.Workspace
	pass := func() {
		PSUM(m, f, &ws, &alloc, memalloc.Options{})
		SB(m, f, &ws, &alloc, memalloc.Options{})
	}
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

func BenchmarkSB(b *testing.B) {
	const n = 10000
	m, f := stream(b, n, 300)
	var ws Workspace
	var alloc memalloc.Workspace
	b.ReportAllocs()
	for b.Loop() {
		SB(m, f, &ws, &alloc, memalloc.Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*n), "ns/loc")
}
