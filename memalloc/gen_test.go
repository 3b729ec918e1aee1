package memalloc

import (
	"fmt"
	"hash/fnv"
	"testing"

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
	var psum []value
	for range n {
		op := num("op", 0, 11)
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
		if len(psum) > 3 {
			psum = psum[1:]
		}
	}
	for _, x := range live { // keep something alive to the end
		if num("out", 0, 1) == 0 {
			b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{mem(dram(ir.KindExternalOutput, x), x)})
		}
	}
	b.Close()
	return p
}

// cell is one 4-byte word of one partition: of a location where it has no address yet or its own address space, else of the
// memory.
type cell struct {
	region ir.Loc
	space  target.Space
	part   int32
	word   int64
}

// machine executes a program on symbols: a computed word is a hash of the instruction and of all its operands' words, a copied
// word is itself. Two programs that save the same symbols compute the same. Words are 4 bytes; patterns must be whole words.
type machine struct {
	m   *ir.Module
	mem map[cell]uint64
	err error
}

// cells are the words that a pattern touches, in pattern order.
func (x *machine) cells(ap ir.AP) []cell {
	m := x.m
	a := m.APs.At(ap)
	l := m.Locs.At(a.Loc)
	c := cell{region: a.Loc, space: l.Space}
	base := int64(0)
	if k := m.Sets.At(l.Set).Kind; l.Flags&ir.LocAllocated != 0 {
		base = l.Addr
		if l.Space != target.SpaceDRAM || k == ir.KindInternal {
			c.region = 0
		}
		c.part = int32(l.Base)
		base += int64(l.Bank) * target.PSUMBankPitch
	}
	esz := int64(a.Dtype.Size())
	if esz != 4 {
		panic("the test machine knows words only")
	}
	free := a.Free(l.Space)
	offs := []int64{base + a.Off*esz}
	for _, p := range free {
		var next []int64
		for _, o := range offs {
			for k := range int64(p.Num) {
				next = append(next, o+k*int64(p.Step)*esz)
			}
		}
		offs = next
	}
	parts := 1
	if l.Space.OnChip() {
		parts = int(a.Parts)
		if int64(a.Pairs[0].Step)*esz != l.Bytes || int(a.Pairs[0].Num) != parts {
			x.fail("%s: partition axis %v of a row of %d bytes", m.LocName(a.Loc), a.Pairs[0], l.Bytes)
		}
		if int(a.Start)+parts > int(l.Parts) {
			x.fail("%s: partitions [%d, %d) of %d", m.LocName(a.Loc), a.Start, int(a.Start)+parts, l.Parts)
		}
	}
	var out []cell
	for p := range parts {
		for _, o := range offs {
			rel, size := o-base, l.Bytes
			if !l.Space.OnChip() {
				size *= int64(max(1, l.Parts))
			}
			if rel < 0 || rel+esz > size || o%4 != 0 {
				x.fail("%s: byte %d of %d", m.LocName(a.Loc), rel, size)
			}
			d := c
			if l.Space.OnChip() {
				d.part += int32(a.Start) + int32(p)
			}
			d.word = o / 4
			out = append(out, d)
		}
	}
	return out
}

func (x *machine) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

func (x *machine) read(i ir.Inst, a ir.Arg) []uint64 {
	if a.AP() == 0 {
		return nil
	}
	var out []uint64
	for _, c := range x.cells(a.AP()) {
		v, ok := x.mem[c]
		if !ok {
			if l := x.m.Locs.At(c.region); c.region != 0 && x.m.Sets.At(l.Set).Kind.IsInput() {
				v = hash(uint64(c.region), uint64(c.word))
			} else {
				x.fail("%s reads %s, which nothing wrote (partition %d word %d)", x.m.InstName(i), x.m.LocName(x.m.LocOf(a)), c.part, c.word)
			}
		}
		out = append(out, v)
	}
	return out
}

func hash(vs ...uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, v := range vs {
		for k := range b {
			b[k] = byte(v >> (8 * k))
		}
		h.Write(b[:])
	}
	return h.Sum64()
}

// run executes the function and returns what it leaves in the outputs.
func run(m *ir.Module, f ir.Func) (map[cell]uint64, error) {
	x := &machine{m: m, mem: map[cell]uint64{}}
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			r := m.Insts.At(i)
			var in []uint64
			for _, a := range m.Ins(i) {
				in = append(in, x.read(i, a)...)
			}
			copies := r.Op.IsDMA() || r.Op == ir.OpTensorCopy
			for _, a := range m.Outs(i) {
				if r.Op.Is(ir.FlagReadsDst) || r.Op.Is(ir.FlagMatmul) && m.AttrInt(i, ir.KeyAccumulationFlag)&1 == 0 {
					in = append(in, x.read(i, a)...)
				}
			}
			h := hash(append([]uint64{uint64(i)}, in...)...)
			for _, a := range m.Outs(i) {
				cs := x.cells(a.AP())
				if copies && len(cs) != len(in) {
					x.fail("%s copies %d words to %d", m.InstName(i), len(in), len(cs))
					break
				}
				for k, c := range cs {
					if copies {
						x.mem[c] = in[k]
					} else {
						x.mem[c] = hash(h, uint64(k))
					}
				}
			}
			if x.err != nil {
				return nil, x.err
			}
		}
	}
	out := map[cell]uint64{}
	for c, v := range x.mem {
		if c.region != 0 && c.space == target.SpaceDRAM && m.Sets.At(m.Locs.At(c.region).Set).Kind.IsOutput() {
			out[c] = v
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

func same(t interface{ Fatalf(string, ...any) }, a, b map[cell]uint64) {
	if len(a) != len(b) {
		t.Fatalf("%d words of output, %d after allocation", len(a), len(b))
	}
	for c, v := range a {
		if b[c] != v {
			t.Fatalf("output word %+v differs after allocation", c)
		}
	}
}

var _ = testing.Short
