package deps

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// byteSet is every byte that a pattern touches, by enumeration: (region, byte) -> partitions.
type byteSet map[[2]int64][2]uint64

func touch(m *ir.Module, a ir.Arg, set byteSet) {
	if a.Kind == ir.ArgReg {
		set[[2]int64{-1, int64(a.Ref)}] = [2]uint64{1}
		return
	}
	if a.Kind != ir.ArgAP {
		return
	}
	row := m.APs.At(a.AP())
	l := m.Locs.At(row.Loc)
	esz := int64(row.Dtype.Size())
	region, base := int64(l.Space), int64(0)
	if l.Flags&ir.LocAllocated != 0 {
		base = l.Addr + int64(l.Bank)*target.PSUMBankPitch
	} else {
		region = 1000 + int64(row.Loc)
	}
	if k := m.Sets.At(l.Set).Kind; k != ir.KindInternal {
		region = 1000 + int64(row.Loc)
	}
	pairs := row.Pairs[:row.NPairs()]
	mask := [2]uint64{1}
	if l.Space.OnChip() {
		pairs = pairs[1:]
		mask = [2]uint64{}
		for p := range int(row.Parts) {
			s := int(row.Start) + p
			if l.Flags&ir.LocAllocated != 0 {
				s += int(l.Base)
			}
			mask[s/64] |= 1 << (s % 64)
		}
	}
	at := []int64{row.Off}
	for _, p := range pairs {
		var next []int64
		for _, o := range at {
			for k := range int64(p.Num) {
				next = append(next, o+k*int64(p.Step))
			}
		}
		at = next
	}
	for _, o := range at {
		for b := range esz {
			k := [2]int64{region, base + o*esz + b}
			set[k] = [2]uint64{set[k][0] | mask[0], set[k][1] | mask[1]}
		}
	}
}

func meet(a, b byteSet) bool {
	for k, x := range a {
		if y := b[k]; x[0]&y[0]|x[1]&y[1] != 0 {
			return true
		}
	}
	return false
}

// gen makes a program whose operands collide often: few locations, small patterns of every shape.
func gen(t *rapid.T, m *ir.Module) ir.Func {
	m.Reset()
	m.Gen, _ = target.ByLevel(30)
	var b ir.Builder
	b.NewFunc(m, "f", "Block1")
	var sb, psum, dram, tall []ir.Loc
	for k := range 5 {
		l := b.SB(m.Names.Intern(fmt.Sprintf("s%d", k)), target.Uint8, 128, 64)
		if k < 4 {
			r := m.Locs.At(l)
			r.Flags |= ir.LocAllocated
			r.Addr = int64(rapid.IntRange(0, 3).Draw(t, "addr") * 24)
		}
		sb = append(sb, l)
	}
	for k := range 2 {
		l := b.PSUM(m.Names.Intern(fmt.Sprintf("p%d", k)), target.Uint8, 128, 64)
		r := m.Locs.At(l)
		r.Flags |= ir.LocAllocated
		r.Bank = int8(rapid.IntRange(0, 1).Draw(t, "bank"))
		psum = append(psum, l)
	}
	for k, kind := range []ir.TensorKind{ir.KindExternalInput, ir.KindInternal, ir.KindInternal, ir.KindExternalOutput} {
		l := b.DRAM(m.Names.Intern(fmt.Sprintf("d%d", k)), kind, target.Uint8, 96)
		if kind == ir.KindInternal {
			r := m.Locs.At(l)
			r.Flags |= ir.LocAllocated
			r.Addr = int64(rapid.IntRange(0, 2).Draw(t, "addr") * 40)
		}
		dram = append(dram, l)
	}
	// Matrices of 300 rows of 8 bytes, two of which share bytes, mostly accessed as tiles of rows.
	for k, kind := range []ir.TensorKind{ir.KindInternal, ir.KindInternal, ir.KindExternalOutput} {
		l := b.DRAM(m.Names.Intern(fmt.Sprintf("t%d", k)), kind, target.Uint8, 300*8)
		if kind == ir.KindInternal {
			r := m.Locs.At(l)
			r.Flags |= ir.LocAllocated
			r.Addr = 4096 + int64(rapid.SampledFrom([]int{0, 100 * 8, 100*8 + 4}).Draw(t, "addr"))
		}
		tall = append(tall, l)
	}
	rows := func() ir.Arg {
		row := rapid.IntRange(0, 150).Draw(t, "row")
		n := rapid.IntRange(1, 150).Draw(t, "rows")
		col := rapid.IntRange(0, 6).Draw(t, "col")
		width := rapid.IntRange(1, 8-col).Draw(t, "width")
		off := int64(8*row + col)
		ps := []ir.Pair{{Step: 8, Num: uint32(n)}, {Step: 1, Num: uint32(width)}}
		switch rapid.IntRange(0, 19).Draw(t, "tile") {
		case 0: // across the end of rows
			off += 5
		case 1: // a run of whole and broken rows
			ps = []ir.Pair{{Step: 1, Num: uint32(8*n - 3)}}
		case 2: // one row
			ps = ps[1:]
		case 3: // rows of another length
			ps[0].Step, ps[0].Num = 12, uint32(n/2+1)
		case 4: // every other element, more pieces than are entered singly when tall
			ps = []ir.Pair{{Step: 16, Num: uint32(n/2 + 1)}, {Step: 2, Num: 3}}
			off = int64(8 * row)
		case 5: // upwards
			off, ps[0].Step = off+int64(8*(n-1)), -8
		case 6: // two columns
			off, ps = int64(8*row), []ir.Pair{{Step: 8, Num: uint32(n)}, {Step: 4, Num: 2}, {Step: 1, Num: 2}}
		}
		return b.Mem(rapid.SampledFrom(tall).Draw(t, "loc"), target.Uint8, off, ps...)
	}
	var regs []ir.Reg
	for k := range 2 {
		regs = append(regs, m.Regs.Add(ir.RegRow{Name: m.Names.Intern(fmt.Sprintf("r%d", k)), Dtype: target.Int32, Width: 1}))
	}
	free := func(limit int) (off int64, ps []ir.Pair) {
		switch rapid.IntRange(0, 4).Draw(t, "shape") {
		case 0:
			return 0, []ir.Pair{{Step: 1, Num: uint32(limit)}}
		case 1:
			n := rapid.IntRange(1, 16).Draw(t, "n")
			return int64(rapid.IntRange(0, limit-n).Draw(t, "off")), []ir.Pair{{Step: 1, Num: uint32(n)}}
		case 2:
			return int64(rapid.IntRange(0, 2).Draw(t, "off")), []ir.Pair{{Step: 3, Num: uint32(limit/3 - 1)}}
		case 3:
			return int64(rapid.IntRange(0, 8).Draw(t, "off")), []ir.Pair{{Step: 12, Num: 4}, {Step: 1, Num: 4}}
		}
		return int64(rapid.IntRange(20, 40).Draw(t, "off")), []ir.Pair{{Step: -2, Num: 8}}
	}
	chip := func(ls []ir.Loc) ir.Arg {
		l := rapid.SampledFrom(ls).Draw(t, "loc")
		off, ps := free(64)
		var s, n int
		switch rapid.IntRange(0, 5).Draw(t, "parts") {
		case 0, 1:
			s, n = 0, 128
		case 2:
			s, n = 64*rapid.IntRange(0, 1).Draw(t, "start"), 64
		case 3:
			s, n = 32*rapid.IntRange(0, 3).Draw(t, "start"), 32
		case 4: // a start that only a DMA may have
			s = rapid.IntRange(0, 100).Draw(t, "start")
			n = rapid.IntRange(1, 128-s).Draw(t, "n")
		default:
			s, n = 32*rapid.IntRange(0, 3).Draw(t, "start"), rapid.IntRange(1, 31).Draw(t, "n")
		}
		return b.Chip(l, target.Uint8, s, n, off, ps...)
	}
	mem := func(ls []ir.Loc) ir.Arg {
		off, ps := free(96)
		return b.Mem(rapid.SampledFrom(ls).Draw(t, "loc"), target.Uint8, off, ps...)
	}
	for range rapid.IntRange(1, 60).Draw(t, "insts") {
		switch rapid.IntRange(0, 15).Draw(t, "op") {
		case 10, 11, 12:
			b.Emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{rows()}, []ir.Arg{rows()})
		case 0:
			b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(dram)}, []ir.Arg{chip(sb)})
		case 1:
			b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{chip(sb)}, []ir.Arg{mem(dram[1:])})
		case 2:
			b.Emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{mem(dram)}, []ir.Arg{mem(dram[1:])})
		case 3:
			b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{chip(sb), chip(psum)}, []ir.Arg{chip(sb)})
		case 4:
			b.Emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{chip(sb), chip(sb)}, []ir.Arg{chip(sb)})
		case 5:
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{chip(psum)}, []ir.Arg{chip(sb)},
				ir.Int(ir.KeyAcc, rapid.Int64Range(0, 1).Draw(t, "acc")))
		case 6:
			b.Emit(ir.OpRegisterAlu, target.EngineSP, []ir.Arg{ir.RegArg(rapid.SampledFrom(regs).Draw(t, "r"), target.Int32)},
				[]ir.Arg{ir.RegArg(rapid.SampledFrom(regs).Draw(t, "r"), target.Int32)})
		case 7:
			if rapid.IntRange(0, 5).Draw(t, "fence") == 0 {
				b.Emit(ir.OpAllEngineBarrier, target.EngineAll, nil, nil)
			}
		case 13: // the index as an input, or as an index operand
			i := b.Emit(ir.OpIndirectLoad, target.EnginePool, []ir.Arg{mem(dram), chip(sb)}, []ir.Arg{chip(sb)})
			if r := m.Insts.At(i); rapid.Bool().Draw(t, "index operand") {
				r.NIn, r.NInd = 1, 1
			}
		case 8, 9:
			n := rapid.IntRange(1, 3).Draw(t, "group")
			dst := chip(psum)
			for k := range n {
				flag := int64(ir.GroupAccumulate)
				if k == 0 {
					flag = ir.GroupStart
				}
				if k == n-1 {
					flag |= ir.GroupStop
				}
				b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{chip(sb), chip(sb)}, []ir.Arg{dst}, ir.Int(ir.KeyAccumulationFlag, flag))
			}
		default:
			if rapid.IntRange(0, 2).Draw(t, "to psum") == 0 {
				b.Emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{chip(sb)}, []ir.Arg{chip(psum)})
			} else {
				b.Emit(ir.OpTensorCopy, target.EnginePool, []ir.Arg{chip(sb)}, []ir.Arg{chip(sb)})
			}
		}
	}
	b.Close()
	return b.Func
}

// conflicts are the kinds, as bits, of the conflicts between j and a later i, by enumeration of bytes and states.
func conflicts(m *ir.Module, reads, writes map[ir.Inst]byteSet, j, i ir.Inst) (kinds int) {
	rj, wj := m.StateOf(j)
	ri, wi := m.StateOf(i)
	const no = ir.StatePEW
	if meet(writes[j], reads[i]) || wj&ri&^no != 0 {
		kinds |= 1 << ir.DepFlow
	}
	if meet(writes[j], writes[i]) || wj&wi&^no != 0 {
		kinds |= 1 << ir.DepOutput
	}
	if meet(reads[j], writes[i]) || rj&wi&^no != 0 {
		kinds |= 1 << ir.DepAnti
	}
	return kinds
}

// The closure of the edges covers every conflicting pair, and every edge that is not Ordered is a conflict of its kind.
func TestAgainstEnumeration(t *testing.T) {
	var m ir.Module
	var w Workspace
	rapid.Check(t, func(t *rapid.T) {
		f := gen(t, &m)
		if err := Build(&m, f, &w); err != nil {
			t.Fatal(err)
		}
		order := m.OrderOf(m.BlocksOf(f)[0])
		reads, writes := map[ir.Inst]byteSet{}, map[ir.Inst]byteSet{}
		at := map[ir.Inst]int{}
		for k, i := range order {
			at[i] = k
			reads[i], writes[i] = byteSet{}, byteSet{}
			for _, a := range m.Ins(i) {
				touch(&m, a, reads[i])
			}
			for _, a := range m.Indices(i) {
				touch(&m, a, reads[i])
			}
			for _, a := range m.Outs(i) {
				touch(&m, a, writes[i])
				if op := m.Insts.At(i).Op; op.Is(ir.FlagReadsDst) || op.Is(ir.FlagMatmul) && m.AttrInt(i, ir.KeyAccumulationFlag)&4 != 0 {
					touch(&m, a, reads[i])
				}
			}
		}
		closure := make([][]bool, len(order))
		for k, i := range order {
			closure[k] = make([]bool, len(order))
			var last ir.Inst
			for _, d := range m.DepsOf(i) {
				p, ok := at[d.Inst]
				if !ok || p >= k {
					t.Fatalf("%s depends on %s, which is not earlier", m.InstName(i), m.InstName(d.Inst))
				}
				if d.Inst <= last {
					t.Fatalf("%s: edges %v are not ascending", m.InstName(i), m.DepsOf(i))
				}
				last = d.Inst
				closure[k][p] = true
				for q := range p {
					closure[k][q] = closure[k][q] || closure[p][q]
				}
				if d.Kind == ir.DepOrdered {
					if op, po := m.Insts.At(i).Op, m.Insts.At(d.Inst).Op; !op.Is(ir.FlagBarrier) && !po.Is(ir.FlagBarrier) &&
						!(writesPSUM(&m, i) && writesPSUM(&m, d.Inst)) {
						t.Fatalf("%s (%s) is ordered after %s (%s) for no reason", m.InstName(i), op, m.InstName(d.Inst), po)
					}
					continue
				}
				if kinds := conflicts(&m, reads, writes, d.Inst, i); kinds>>d.Kind&1 == 0 {
					t.Fatalf("%s -> %s is %s; the conflicts there are %b", m.InstName(d.Inst), m.InstName(i), d.Kind, kinds)
				}
			}
		}
		lastFence := -1
		for k, i := range order {
			for p := range k {
				if kind := conflicts(&m, reads, writes, order[p], i); kind != 0 && !closure[k][p] {
					t.Fatalf("no path from %s to %s, which conflict (%b)", m.InstName(order[p]), m.InstName(i), kind)
				}
			}
			if m.Insts.At(i).Op.Is(ir.FlagBarrier) {
				for p := range k {
					if !closure[k][p] {
						t.Fatalf("fence %s is not after %s", m.InstName(i), m.InstName(order[p]))
					}
				}
				lastFence = k
			} else if lastFence >= 0 && !closure[k][lastFence] {
				t.Fatalf("%s is not after fence %s", m.InstName(i), m.InstName(order[lastFence]))
			}
		}
		// Groups in one bank: the head of one comes after the tail of the one before.
		groups(t, &m, order, closure)
	})
}

func writesPSUM(m *ir.Module, i ir.Inst) bool {
	outs := m.Outs(i)
	return len(outs) > 0 && outs[0].Kind == ir.ArgAP && m.Locs.At(m.LocOf(outs[0])).Space == target.SpacePSUM
}

func groups(t *rapid.T, m *ir.Module, order []ir.Inst, closure [][]bool) {
	type bq struct{ b, q int64 }
	last := map[bq]int{}
	for k, i := range order {
		if !writesPSUM(m, i) {
			continue
		}
		fp := m.FootprintOf(m.Outs(i)[0].AP())
		for q := int64(fp.P0) / 32; q*32 < int64(fp.P1); q++ {
			key := bq{fp.Lo / 2048, q}
			if p, ok := last[key]; ok && !closure[k][p] {
				t.Fatalf("%s is not after %s, both writing bank %d, quadrant %d", m.InstName(i), m.InstName(order[p]), key.b, key.q)
			}
			last[key] = k
		}
	}
}

// Histories that no write covers are bundled: the closure still holds, and edges stay linear.
func TestBundles(t *testing.T) {
	var m ir.Module
	var w Workspace
	var b ir.Builder
	b.NewFunc(&m, "f", "Block1")
	l := b.SB(m.Names.Intern("x"), target.Uint8, 128, 4096)
	m.Locs.At(l).Flags |= ir.LocAllocated
	const n = 2000
	for k := range n {
		// At least 66 runs each, interleaved: no two of any 32 in a row touch, and those over the same bytes differ in length.
		num := uint32(66 + k/32%62)
		b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{b.Chip(l, target.Uint8, 0, 128, int64(k%32), ir.Pair{Step: 32, Num: num})})
	}
	b.Close()
	if err := Build(&m, b.Func, &w); err != nil {
		t.Fatal(err)
	}
	edges := 0
	reach := make([]map[ir.Inst]bool, n)
	order := m.OrderOf(b.Block)
	at := map[ir.Inst]int{}
	for k, i := range order {
		at[i] = k
		edges += len(m.DepsOf(i))
		reach[k] = map[ir.Inst]bool{}
		if k >= 200 {
			continue
		}
		for _, d := range m.DepsOf(i) {
			reach[k][d.Inst] = true
			for x := range reach[at[d.Inst]] {
				reach[k][x] = true
			}
		}
		for p := k - 32; p >= 0; p -= 32 {
			if !reach[k][order[p]] {
				t.Fatalf("no path from %s to %s over the same bytes", m.InstName(order[p]), m.InstName(i))
			}
		}
	}
	if edges > 5*n {
		t.Errorf("%d edges for %d writes", edges, n)
	}
}

// A pattern that comes again hides itself: however often two interleaved halves are written and read, edges do not grow.
func TestRepeatedPatterns(t *testing.T) {
	var m ir.Module
	var w Workspace
	var b ir.Builder
	b.NewFunc(&m, "f", "Block1")
	l := b.DRAM(m.Names.Intern("x"), ir.KindExternalOutput, target.Uint8, 1000*8)
	s := b.SB(m.Names.Intern("s"), target.Uint8, 1, 4000)
	half := func(k int) ir.Arg {
		return b.Mem(l, target.Uint8, int64(4*k), ir.Pair{Step: 8, Num: 1000}, ir.Pair{Step: 1, Num: 4})
	}
	chip := b.Chip(s, target.Uint8, 0, 1, 0, ir.Pair{Step: 1, Num: 4000})
	for range 200 {
		for k := range 2 {
			b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{chip}, []ir.Arg{half(k)})
			b.Emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{half(k)}, []ir.Arg{b.Mem(b.DRAM(0, ir.KindExternalOutput, target.Uint8, 4000), target.Uint8, 0, ir.Pair{Step: 1, Num: 4000})})
		}
	}
	b.Close()
	if err := Build(&m, b.Func, &w); err != nil {
		t.Fatal(err)
	}
	order := m.OrderOf(b.Block)
	for k, i := range order[4:] {
		// A save: the save and the copy of this half one round before. A copy: the save just before.
		want := fmt.Sprint([]ir.Dep{{Inst: order[k], Kind: ir.DepOutput}, {Inst: order[k+1], Kind: ir.DepAnti}})
		if k%2 == 1 {
			want = fmt.Sprint([]ir.Dep{{Inst: order[k+3], Kind: ir.DepFlow}})
		}
		if got := fmt.Sprint(m.DepsOf(i)); got != want {
			t.Fatalf("edges of %s: %s, want %s", m.InstName(i), got, want)
		}
	}
}

func TestAliasesShareBytes(t *testing.T) {
	var m ir.Module
	var w Workspace
	var b ir.Builder
	b.NewFunc(&m, "f", "Block1")
	x := b.DRAM(m.Names.Intern("in"), ir.KindExternalInput, target.Uint8, 64)
	y := b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Uint8, 64)
	s := b.SB(m.Names.Intern("s"), target.Uint8, 1, 64)
	all := ir.Pair{Step: 1, Num: 64}
	load := b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{b.Mem(x, target.Uint8, 0, all)}, []ir.Arg{b.Chip(s, target.Uint8, 0, 1, 0, all)})
	t2 := b.SB(m.Names.Intern("t"), target.Uint8, 1, 64)
	set := b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{b.Chip(t2, target.Uint8, 0, 1, 0, all)})
	save := b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{b.Chip(t2, target.Uint8, 0, 1, 0, all)}, []ir.Arg{b.Mem(y, target.Uint8, 0, all)})
	b.Close()
	want := func(ds ...ir.Dep) {
		t.Helper()
		if err := Build(&m, b.Func, &w); err != nil {
			t.Fatal(err)
		}
		got := m.DepsOf(save)
		if fmt.Sprint(got) != fmt.Sprint(ds) {
			t.Errorf("edges of the save: %v, want %v", got, ds)
		}
	}
	want(ir.Dep{Inst: set, Kind: ir.DepFlow})
	m.Aliases.Add(ir.AliasRow{A: x, B: y, Kind: 3})
	want(ir.Dep{Inst: load, Kind: ir.DepAnti}, ir.Dep{Inst: set, Kind: ir.DepFlow})
}

func TestRefusesLoops(t *testing.T) {
	var m ir.Module
	var w Workspace
	var b ir.Builder
	b.NewFunc(&m, "f", "Block1")
	b.Emit(ir.OpLoop, target.EngineAll, nil, nil)
	b.Close()
	if err := Build(&m, b.Func, &w); target.ClassOf(err) != target.Unsupported {
		t.Errorf("a loop: %v", err)
	}
}

// chain is a program of n tiles: load, matmul, activation, save through rotating buffers.
func chain(m *ir.Module, n int) ir.Func {
	m.Reset()
	var b ir.Builder
	b.NewFunc(m, "f", "Block1")
	in := b.DRAM(m.Names.Intern("in"), ir.KindExternalInput, target.Float32, int64(n), 128, 512)
	out := b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, int64(n), 128, 512)
	var sb, ps []ir.Loc
	for k := range 8 {
		l := b.SB(m.Names.Intern(fmt.Sprintf("s%d", k)), target.Float32, 128, 512)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Addr = int64(16384 + 2048*k)
		sb = append(sb, l)
		l = b.PSUM(m.Names.Intern(fmt.Sprintf("p%d", k)), target.Float32, 128, 512)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Bank = int8(k)
		ps = append(ps, l)
	}
	row := ir.Pair{Step: 1, Num: 512}
	for k := range n {
		tile := func(l ir.Loc) ir.Arg { return b.Chip(l, target.Float32, 0, 128, 0, row) }
		x, y, z := sb[k%4], ps[k%8], sb[4+k%4]
		mem := []ir.Pair{{Step: 512, Num: 128}, row}
		b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{b.Mem(in, target.Float32, int64(k)*128*512, mem...)}, []ir.Arg{tile(x)})
		w := b.Chip(x, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 128})
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{tile(x), w}, []ir.Arg{tile(y)}, ir.Int(ir.KeyAccumulationFlag, 3))
		b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{tile(y)}, []ir.Arg{tile(z)}, ir.Int(ir.KeyFunc, int64(target.ActRelu)))
		b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{tile(z)}, []ir.Arg{b.Mem(out, target.Float32, int64(k)*128*512, mem...)})
	}
	b.Close()
	return b.Func
}

func TestSecondRunAllocatesNothing(t *testing.T) {
	var m ir.Module
	var w Workspace
	f := chain(&m, 500)
	if n := testing.AllocsPerRun(3, func() {
		if err := Build(&m, f, &w); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBuild(b *testing.B) {
	var m ir.Module
	var w Workspace
	const n = 5000
	f := chain(&m, n)
	b.ReportAllocs()
	for b.Loop() {
		if err := Build(&m, f, &w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*n)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}

// BenchmarkRows is a matrix of 3,136 rows that is written in bands of columns, each with a pattern of its own, over rows that were saved 128 at
// a time: every band meets every row.
func BenchmarkRows(b *testing.B) {
	var m ir.Module
	var w Workspace
	var k ir.Builder
	const rows, bands = 3136, 100
	k.NewFunc(&m, "f", "Block1")
	l := k.DRAM(m.Names.Intern("x"), ir.KindExternalOutput, target.Uint8, rows*bands*4)
	s := k.SB(m.Names.Intern("s"), target.Uint8, 128, 2*rows)
	save := func(from, n int64, first, width uint32) {
		chip := k.Chip(s, target.Uint8, 0, 128, 0, ir.Pair{Step: 1, Num: uint32(n) * width / 128})
		mem := k.Mem(l, target.Uint8, from*bands*4+int64(first), ir.Pair{Step: bands * 4, Num: uint32(n)}, ir.Pair{Step: 1, Num: width})
		k.Emit(ir.OpSave, target.EngineSP, []ir.Arg{chip}, []ir.Arg{mem})
	}
	for at := int64(0); at+128 <= rows; at += 128 {
		save(at, 128, 0, 2*bands)
	}
	for band := range uint32(bands) {
		save(0, rows, 4*band, 4)
	}
	k.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := Build(&m, k.Func, &w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(w.entries)), "entries")
}
