package memalloc

import (
	"fmt"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// program is a straight-line function that is right by construction: every read finds bytes that something wrote.
type program struct {
	m ir.Module
	f ir.Func
}

// value is a tile that the generator may read: nparts × words of fp32, all written.
type value struct {
	loc   ir.Loc
	parts int
	words int64
	space target.Space
}

func generation(t interface{ Fatal(...any) }, level int) *target.Generation {
	g, ok := target.ByLevel(level)
	if !ok {
		t.Fatal("no generation")
	}
	return g
}

// whole is a pattern over all of a tile.
func whole(b *ir.Builder, v value) ir.Arg { return part(b, v, 0, v.words) }

// part is a pattern over words [lo, hi) of every partition of a tile.
func part(b *ir.Builder, v value, lo, hi int64) ir.Arg {
	return b.Chip(v.loc, target.Float32, 0, v.parts, lo, ir.Pair{Step: 1, Num: uint32(hi - lo)})
}

// random draws a program of about n instructions.
func random(t *rapid.T, n int) *program {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, rapid.SampledFrom([]int{20, 30, 40}).Draw(t, "level"))
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	num := func(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, label) }
	name := func(s string) func() (x string) {
		k := 0
		return func() string { k++; return fmt.Sprintf("%s_%d", s, k) }
	}
	sbName, psName, drName := name("t"), name("p"), name("d")
	partsOf := []int{1, 16, 32, 48, 64, 100, 128}
	var live []value // in SB
	sb := func() value {
		v := value{parts: rapid.SampledFrom(partsOf).Draw(t, "parts"), words: int64(num("words", 1, 40)), space: target.SpaceSB}
		v.loc = b.SB(m.Names.Intern(sbName()), target.Float32, v.parts, v.words)
		return v
	}
	like := func(v value) value {
		v.loc = b.SB(m.Names.Intern(sbName()), target.Float32, v.parts, v.words)
		return v
	}
	dram := func(k ir.TensorKind, v value) ir.Loc {
		return b.DRAM(m.Names.Intern(drName()), k, target.Float32, int64(v.parts), v.words)
	}
	mem := func(l ir.Loc, v value) ir.Arg {
		return b.Mem(l, target.Float32, 0, ir.Pair{Step: int32(v.words), Num: uint32(v.parts)}, ir.Pair{Step: 1, Num: uint32(v.words)})
	}
	pick := func(label string) value { return live[num(label, 0, len(live)-1)] }
	var psum, open []value
	// multiply adds to an open group, and closes it or leaves it open.
	multiply := func(k int, stop bool) {
		fl := int64(ir.GroupAccumulate)
		if stop {
			fl |= ir.GroupStop
		}
		x, w, v := pick("mov"), pick("sta"), open[k]
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, w)}, []ir.Arg{whole(&b, v)}, ir.Int(ir.KeyAccumulationFlag, fl))
		if stop {
			psum, open = append(psum, v), append(open[:k], open[k+1:]...)
		}
	}
	for range n {
		op := num("op", 0, 14)
		if len(live) == 0 {
			op = op % 2
		}
		switch op {
		case 0: // load of an input
			v := sb()
			b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(dram(ir.KindExternalInput, v), v)}, []ir.Arg{whole(&b, v)})
			live = append(live, v)
		case 1:
			v := sb()
			b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, v)})
			live = append(live, v)
		case 2: // elementwise
			x := pick("x")
			y := like(x)
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{whole(&b, y)})
			live = append(live, y)
		case 3: // several operands
			x, z := pick("x"), pick("z")
			y := like(x)
			b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&b, x), part(&b, z, 0, 1+z.words/2)}, []ir.Arg{whole(&b, y)})
			live = append(live, y)
		case 4: // written piecewise, strided for the second half
			x := pick("x")
			y := like(x)
			cut := y.words / 2
			if cut > 0 {
				b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{part(&b, y, 0, cut)})
			}
			z := pick("z")
			for k := range min(2, y.words-cut) {
				a := b.Chip(y.loc, target.Float32, 0, y.parts, cut+k, ir.Pair{Step: 2, Num: uint32((y.words - cut - k + 1) / 2)})
				b.Emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{part(&b, z, z.words/2, z.words)}, []ir.Arg{a})
			}
			live = append(live, y)
		case 5: // in place on a part
			x, y := pick("x"), pick("y")
			b.Emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{whole(&b, x), part(&b, x, 0, 1)}, []ir.Arg{part(&b, y, y.words/2, y.words)})
		case 6: // in place on the whole, reading itself
			x := pick("x")
			b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&b, x)}, []ir.Arg{whole(&b, x)})
		case 7: // save an output
			x := pick("x")
			b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{mem(dram(ir.KindExternalOutput, x), x)})
		case 8: // through internal DRAM
			x := pick("x")
			d := dram(ir.KindInternal, x)
			b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{mem(d, x)})
			y := like(x)
			b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{mem(d, x)}, []ir.Arg{whole(&b, y)})
			live = append(live, y)
		case 9, 10: // matmul groups into one PSUM tile
			banks := 1
			if num("wide", 0, 5) == 0 {
				banks = 2
			}
			v := value{parts: 128, words: int64(512*(banks-1) + num("n", 1, 64)), space: target.SpacePSUM}
			v.loc = b.PSUM(m.Names.Intern(psName()), target.Float32, v.parts, v.words)
			pieces := num("pieces", 1, 3)
			if int64(pieces) > v.words {
				pieces = 1
			}
			for k := range pieces {
				lo, hi := v.words*int64(k)/int64(pieces), v.words*int64(k+1)/int64(pieces)
				steps := num("k", 1, 3)
				for s := range steps {
					fl := int64(4)
					if s == 0 {
						fl = 1
					}
					if s == steps-1 {
						fl |= 2
						if s > 0 {
							fl = 6
						}
					}
					x, w := pick("mov"), pick("sta")
					b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, w)}, []ir.Arg{part(&b, v, lo, hi)},
						ir.Int(ir.KeyAccumulationFlag, fl))
				}
			}
			psum = append(psum, v)
		case 13, 14: // groups that are open together
			if len(open) == 0 || len(open) < 3 && num("begin", 0, 2) == 0 {
				v := value{parts: 128, words: int64(num("n", 1, 64)), space: target.SpacePSUM}
				v.loc = b.PSUM(m.Names.Intern(psName()), target.Float32, v.parts, v.words)
				x, w := pick("mov"), pick("sta")
				b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, w)}, []ir.Arg{whole(&b, v)},
					ir.Int(ir.KeyAccumulationFlag, ir.GroupStart))
				open = append(open, v)
				continue
			}
			multiply(num("which", 0, len(open)-1), num("stop", 0, 2) == 0)
		case 12: // gather rows by a column of a tile, as an input or as an index operand
			x := pick("x")
			y := like(x)
			table := dram(ir.KindExternalInput, x)
			i := b.Emit(ir.OpIndirectLoad, target.EnginePool, []ir.Arg{mem(table, x), part(&b, x, x.words-1, x.words)}, []ir.Arg{whole(&b, y)})
			if num("index operand", 0, 1) == 1 {
				m.Insts.At(i).NIn, m.Insts.At(i).NInd = 1, 1
			}
			live = append(live, y)
		case 11: // read a PSUM tile
			if len(psum) == 0 {
				continue
			}
			k := num("psum", 0, len(psum)-1)
			v := psum[k]
			y := value{parts: v.parts, words: min(v.words, 40), space: target.SpaceSB}
			y.loc = b.SB(m.Names.Intern(sbName()), target.Float32, y.parts, y.words)
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, v)}, []ir.Arg{whole(&b, y)})
			live = append(live, y)
			if num("drop", 0, 1) == 0 {
				psum = append(psum[:k], psum[k+1:]...)
			}
		}
		for len(live) > 12 {
			k := num("forget", 0, len(live)-1)
			live = append(live[:k], live[k+1:]...)
		}
		if len(psum) > 0 && len(psum)+len(open) > 3 {
			psum = psum[1:]
		}
	}
	for len(open) > 0 {
		multiply(0, true)
	}
	for _, x := range live { // keep something alive to the end
		if num("out", 0, 1) == 0 {
			b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{mem(dram(ir.KindExternalOutput, x), x)})
		}
	}
	b.Close()
	return p
}

// row is one partition of a location that has no address yet or an address space of its own, else of the memory.
type row struct {
	region ir.Loc
	space  target.Space
	part   int32
}

// machine executes a program on symbols: a computed word is a hash of the instruction and of all its operands' words, a copied
// word is itself. Two programs that save the same symbols compute the same. Words are 4 bytes, 0 is one that nothing wrote;
// patterns must be whole words.
type machine struct {
	m   *ir.Module
	mem map[row][]uint64
	err error

	offs, next []int64
	words      []uint64
}

// pattern splits an access into rows and the words in each, in pattern order.
func (x *machine) pattern(ap ir.AP) (first row, parts int, offs []int64) {
	m := x.m
	a := m.APs.At(ap)
	l := m.Locs.At(a.Loc)
	first = row{region: a.Loc, space: l.Space}
	base := int64(0)
	if k := m.Sets.At(l.Set).Kind; l.Flags&ir.LocAllocated != 0 {
		base = l.Addr
		if l.Space != target.SpaceDRAM || k == ir.KindInternal {
			first.region = 0
		}
		first.part = int32(l.Base)
		base += int64(l.Bank) * target.PSUMBankPitch
	}
	esz := int64(a.Dtype.Size())
	if esz != 4 {
		panic("the test machine knows words only")
	}
	parts = 1
	size := l.Bytes
	if l.Space.OnChip() {
		parts = int(a.Parts)
		first.part += int32(a.Start)
		if int64(a.Pairs[0].Step)*esz != l.Bytes || int(a.Pairs[0].Num) != parts {
			x.fail("%s: partition axis %v of a row of %d bytes", m.LocName(a.Loc), a.Pairs[0], l.Bytes)
		}
		if int(a.Start)+parts > int(l.Parts) {
			x.fail("%s: partitions [%d, %d) of %d", m.LocName(a.Loc), a.Start, int(a.Start)+parts, l.Parts)
		}
	} else {
		size *= int64(max(1, l.Parts))
	}
	x.offs = append(x.offs[:0], a.Off)
	for _, p := range a.Free(l.Space) {
		x.next = x.next[:0]
		for _, o := range x.offs {
			for k := range int64(p.Num) {
				x.next = append(x.next, o+k*int64(p.Step))
			}
		}
		x.offs, x.next = x.next, x.offs
	}
	for k, o := range x.offs {
		if o < 0 || (o+1)*4 > size {
			x.fail("%s: word %d of %d bytes", m.LocName(a.Loc), o, size)
			return first, 0, nil
		}
		x.offs[k] = o + base/4
	}
	return first, parts, x.offs
}

func (x *machine) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// read appends the words of an operand to the instruction's.
func (x *machine) read(i ir.Inst, a ir.Arg) {
	if a.AP() == 0 {
		return
	}
	r, parts, offs := x.pattern(a.AP())
	input := r.region != 0 && x.m.Sets.At(x.m.Locs.At(r.region).Set).Kind.IsInput()
	for range parts {
		mem := x.mem[r]
		for _, o := range offs {
			v := uint64(0)
			if input {
				v = hash(uint64(r.region), uint64(o))
			} else if o < int64(len(mem)) {
				v = mem[o]
			}
			if v == 0 {
				x.fail("%s reads %s, which nothing wrote (partition %d word %d)", x.m.InstName(i), x.m.LocName(x.m.LocOf(a)), r.part, o)
			}
			x.words = append(x.words, v)
		}
		r.part++
	}
}

func hash(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return (h ^ h>>29) | 1
}

// execute runs the function and returns what it leaves in the outputs.
func execute(m *ir.Module, f ir.Func) (map[row][]uint64, error) {
	x := &machine{m: m, mem: map[row][]uint64{}}
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			r := m.Insts.At(i)
			x.words = x.words[:0]
			for _, a := range m.Ins(i) {
				x.read(i, a)
			}
			for _, a := range m.Indices(i) {
				x.read(i, a)
			}
			copies := r.Op.IsDMA() && r.Op != ir.OpIndirectLoad || r.Op == ir.OpTensorCopy
			for _, a := range m.Outs(i) {
				if r.Op.Is(ir.FlagReadsDst) || r.Op.Is(ir.FlagMatmul) && m.AttrInt(i, ir.KeyAccumulationFlag)&1 == 0 {
					x.read(i, a)
				}
			}
			h := uint64(i)
			for _, v := range x.words {
				h = hash(h, v)
			}
			for _, a := range m.Outs(i) {
				to, parts, offs := x.pattern(a.AP())
				if copies && parts*len(offs) != len(x.words) {
					x.fail("%s copies %d words to %d", m.InstName(i), len(x.words), parts*len(offs))
					break
				}
				k := 0
				for range parts {
					mem := x.mem[to]
					for _, o := range offs {
						for int64(len(mem)) <= o {
							mem = append(mem, 0)
						}
						if copies {
							mem[o] = x.words[k]
						} else {
							mem[o] = hash(h, uint64(k))
						}
						k++
					}
					x.mem[to] = mem
					to.part++
				}
			}
			if x.err != nil {
				return nil, x.err
			}
		}
	}
	out := map[row][]uint64{}
	for r, v := range x.mem {
		if r.region != 0 && r.space == target.SpaceDRAM && m.Sets.At(m.Locs.At(r.region).Set).Kind.IsOutput() {
			out[r] = v
		}
	}
	return out, nil
}

// overlaps checks all pairs of placed locations by brute force over the accesses of the final order.
func overlaps(m *ir.Module, f ir.Func) error {
	type life struct {
		loc        ir.Loc
		first, end int
	}
	var lives []life
	index := map[ir.Loc]int{}
	at := 0
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			for _, a := range m.AllArgs(i) {
				l := m.LocOf(a)
				if l == 0 {
					continue
				}
				k, ok := index[l]
				if !ok {
					k = len(lives)
					index[l] = k
					lives = append(lives, life{loc: l, first: at})
				}
				lives[k].end = at
			}
			at++
		}
	}
	for i, x := range lives {
		a := m.Locs.At(x.loc)
		if kind := m.Sets.At(a.Set).Kind; kind != ir.KindInternal {
			continue
		}
		if a.Flags&ir.LocAllocated == 0 {
			return fmt.Errorf("%s has no place", m.LocName(x.loc))
		}
		for _, y := range lives[:i] {
			b := m.Locs.At(y.loc)
			if a.Space != b.Space || m.Sets.At(b.Set).Kind != ir.KindInternal || x.first > y.end || y.first > x.end {
				continue
			}
			aw, bw := int64(a.Addr), int64(b.Addr)
			ae, be := aw+a.Bytes, bw+b.Bytes
			parts := true
			if homes := m.Sets.At(a.Set).Flags | m.Sets.At(b.Set).Flags; a.Space == target.SpaceDRAM && homes&ir.SetSpillHome != 0 {
				continue // a home is dead between a last load and the next save; what the program computes tells
			}
			switch a.Space {
			case target.SpacePSUM: // whole banks
				aw, bw = int64(a.Bank), int64(b.Bank)
				ae, be = aw+(a.Bytes+2047)/2048, bw+(b.Bytes+2047)/2048
			case target.SpaceSB:
				parts = int(a.Base) < int(b.Base)+int(b.Parts) && int(b.Base) < int(a.Base)+int(a.Parts)
			}
			if parts && aw < be && bw < ae {
				return fmt.Errorf("%s and %s overlap in %s", m.LocName(x.loc), m.LocName(y.loc), a.Space)
			}
		}
	}
	return nil
}

// bounds checks alignment and limits of every placement.
func bounds(m *ir.Module, f ir.Func, sbBytes, strip int64, banks int) error {
	for _, s := range m.SetsOf(f) {
		first, n := m.LocsOf(s)
		for k := range n {
			l := m.Locs.At(first + ir.Loc(k))
			if l.Flags&ir.LocAllocated == 0 || l.Flags&ir.LocReserved != 0 {
				continue
			}
			name := m.LocName(first + ir.Loc(k))
			switch l.Space {
			case target.SpaceSB:
				if l.Addr%8 != 0 || l.Addr < strip || l.Addr+l.Bytes > sbBytes || !target.LegalStart(int(l.Base), int(l.Parts)) {
					return fmt.Errorf("%s at partition %d byte %d of %d", name, l.Base, l.Addr, sbBytes)
				}
			case target.SpacePSUM:
				if int(l.Bank)+int(l.Bytes+2047)/2048 > banks || l.Bytes > 2048 && l.Bank%2 != 0 {
					return fmt.Errorf("%s at bank %d of %d", name, l.Bank, banks)
				}
			case target.SpaceDRAM:
				if l.Addr%4096 != 0 {
					return fmt.Errorf("%s at DRAM byte %d", name, l.Addr)
				}
			}
		}
	}
	return nil
}

func same(t interface{ Fatalf(string, ...any) }, a, b map[row][]uint64) {
	if len(a) != len(b) {
		t.Fatalf("%d outputs, %d after allocation", len(a), len(b))
	}
	for r, v := range a {
		if !slices.Equal(v, b[r]) {
			t.Fatalf("output %s differs after allocation", r.region)
		}
	}
}
