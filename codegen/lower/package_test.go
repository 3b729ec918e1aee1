package lower

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// patternWalk lists the byte offset of every element of a pattern in order, by the rules of the IR.
func patternWalk(m *ir.Module, a ir.Arg) (at []int64) {
	row := m.APs.At(a.AP())
	l := m.Locs.At(row.Loc)
	es := int64(row.Dtype.Size())
	start, pitch := row.Off*es, int64(0)
	switch l.Space {
	case target.SpaceSB:
		start = target.SBAddress(int(l.Base)+int(row.Start), l.Addr+row.Off*es)
		pitch = target.SBPartitionPitch
	case target.SpacePSUM:
		start = target.PSUMAddress(int(l.Base)+int(row.Start), int(l.Bank), l.Addr+row.Off*es)
		pitch = target.PSUMPartitionPitch
	default:
		if l.Flags&ir.LocAllocated != 0 {
			start += l.Addr
		}
	}
	at = []int64{start}
	for k, p := range row.Pairs[:row.NPairs()] {
		step := int64(p.Step) * es
		if k == 0 && pitch != 0 {
			step = pitch
		}
		var next []int64
		for _, o := range at {
			for j := range int64(p.Num) {
				next = append(next, o+j*step)
			}
		}
		at = next
	}
	return at
}

// sideWalk lists the byte offset of every element of a descriptor side in order, by the rules of the container.
func sideWalk(s *neff.Side, es int64) (at []int64) {
	n := [4]int64{1, 1, 1, 1}
	for k := range int(s.N) {
		n[k] = int64(s.Size[k])
	}
	for i3 := range n[3] {
		for i2 := range n[2] {
			for i1 := range n[1] {
				for b := int64(0); b < n[0]; b += es {
					at = append(at, s.Off+i3*s.Step[3]+i2*s.Step[2]+i1*s.Step[1]+b)
				}
			}
		}
	}
	return at
}

// Transfers of random shapes: the descriptors move exactly the elements that the patterns pair up, and obey the container.
func TestDescriptorsMoveWhatPatternsSay(t *testing.T) {
	var p prog
	most := 0
	rapid.Check(t, func(t *rapid.T) {
		p.init(30, 2)
		m, b := &p.m, &p.b
		from := rapid.SampledFrom([]target.Dtype{target.Float32, target.BFloat16, target.Uint8}).Draw(t, "from")
		to := rapid.SampledFrom([]target.Dtype{from, target.Float32}).Draw(t, "to")
		// Common axes, outermost first; each side then merges neighbours or leaves gaps.
		var counts []int64
		total := int64(1)
		for range rapid.IntRange(1, 5).Draw(t, "axes") {
			c := int64(rapid.SampledFrom([]int{4, 2, 3, 2, 5, 1}).Draw(t, "count"))
			counts = append(counts, c)
			total *= c
		}
		if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
			counts = counts[:min(len(counts), 2)]
			if total > 4 {
				counts = counts[:0]
			}
			counts = append(counts, int64(rapid.SampledFrom([]int{65537, 131072, 70000}).Draw(t, "run")))
		}
		axes := func(name string) []ir.Pair {
			var ps []ir.Pair
			step := int64(1)
			gaps := rapid.IntRange(0, 3).Draw(t, name+" gaps")
			for k := len(counts) - 1; k >= 0; k-- {
				if n := len(ps) - 1; n >= 0 && step == int64(ps[n].Step)*int64(ps[n].Num) && rapid.Bool().Draw(t, name+" merge") {
					ps[n].Num *= uint32(counts[k])
				} else {
					ps = append(ps, ir.Pair{Step: int32(step), Num: uint32(counts[k])})
				}
				step = int64(ps[len(ps)-1].Step) * int64(ps[len(ps)-1].Num)
				if rapid.IntRange(1, 3).Draw(t, name+" gap") <= gaps {
					step += int64(rapid.IntRange(1, 3).Draw(t, name+" hole"))
				}
			}
			slices.Reverse(ps)
			return ps
		}
		sp, dp := axes("from"), axes("to")
		big := int64(1 << 22)
		src := b.DRAM(m.Names.Intern("src"), ir.KindExternalInput, from, big)
		in := b.Mem(src, from, int64(rapid.IntRange(0, 9).Draw(t, "off")), sp...)
		var out ir.Arg
		if chip := rapid.Bool().Draw(t, "chip"); chip && dp[0].Num <= 32 && dp[0].Num*uint32(dp[0].Step) < 1<<14 && len(dp) > 1 {
			// The outermost axis goes to partitions.
			l := b.SB(m.Names.Intern("dst"), to, 128, 1<<14)
			m.Locs.At(l).Flags |= ir.LocAllocated
			m.Locs.At(l).Addr = 16400
			out = b.Chip(l, to, 32, int(dp[0].Num), 3, dp[1:]...)
		} else {
			dst := b.DRAM(m.Names.Intern("dst"), ir.KindInternal, to, big)
			m.Locs.At(dst).Flags |= ir.LocAllocated
			m.Locs.At(dst).Addr = 4096
			out = b.Mem(dst, to, 7, dp...)
		}
		i := b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{in}, []ir.Arg{out})
		p.tail(t, false, dma.Options{})
		pkg, _, err := Package(m, b.Func, Options{}, &p.enc)
		if err != nil {
			t.Fatal(err)
		}
		descs := pkg.Engine(m.Insts.At(i).Engine).Descs
		if err := neff.CheckBlocks(descs, &pkg.Def); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(descs))
		want := map[[2]int64]bool{}
		a, z := patternWalk(m, in), patternWalk(m, out)
		for k := range a {
			want[[2]int64{a[k], z[k]}] = true
		}
		moved, inc := 0, 0
		for k := range descs {
			x, y := sideWalk(&descs[k].From, int64(from.Size())), sideWalk(&descs[k].To, int64(to.Size()))
			if len(x) != len(y) {
				t.Fatalf("descriptor %d reads %d elements and writes %d", k, len(x), len(y))
			}
			for j := range x {
				if !want[[2]int64{x[j], y[j]}] {
					t.Fatalf("descriptor %d moves byte %d to %d, which the patterns do not pair", k, x[j], y[j])
				}
			}
			moved += len(x)
			inc += int(descs[k].SemInc)
		}
		if moved != len(a) {
			t.Fatalf("%d elements moved, want %d", moved, len(a))
		}
		if q := m.Queues.At(m.Insts.At(i).Queue); inc != int(q.NumQueues) {
			t.Fatalf("the block adds %d, its set has %d queues", inc, q.NumQueues)
		}
	})
	if most < 2 && !testing.Short() {
		t.Errorf("no transfer took more than %d descriptor", most)
	}
}

func TestDescriptorsRefuse(t *testing.T) {
	var p prog
	p.init(30, 2)
	m, b := &p.m, &p.b
	src := b.DRAM(m.Names.Intern("src"), ir.KindExternalInput, target.Uint8, 1<<20)
	dst := b.DRAM(m.Names.Intern("dst"), ir.KindExternalOutput, target.Uint8, 1<<20)
	// Five separate axes of 100 on one side: a fixed one would need 100 descriptors.
	five := []ir.Pair{{Step: 9, Num: 100}, {Step: 2000, Num: 100}, {Step: 3, Num: 100}, {Step: 700, Num: 100}, {Step: 1111, Num: 100}}
	b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{b.Mem(src, target.Uint8, 0, five...)}, []ir.Arg{b.Mem(dst, target.Uint8, 0, five...)})
	p.tail(t, false, dma.Options{})
	_, _, err := Package(m, b.Func, Options{}, &p.enc)
	if target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "I-1") {
		t.Errorf("error %v, want a limit that names I-1", err)
	}
}

// Constants, scratch, aliases and recipes end up where a loader looks for them.
func TestPackageTables(t *testing.T) {
	var p prog
	p.init(30, 2)
	m, b := &p.m, &p.b
	name := m.Names.Intern
	constant := func(n string, data []byte, shape ...int64) ir.Loc {
		l := b.DRAM(name(n), ir.KindConst, target.Uint8, shape...)
		m.Sets.At(m.Locs.At(l).Set).Const = m.Consts.Add(ir.ConstRow{Kind: ir.ConstEmbedded, Dtype: target.Uint8, Data: m.Bytes.AddSlice(data)})
		return l
	}
	one, two, other := []byte{1, 2, 3, 4}, []byte{1, 2, 3, 4}, []byte{4, 3, 2, 1}
	c1, c2, c3 := constant("c1", one, 4), constant("c2", two, 4), constant("c3", other, 2, 2)
	w := b.DRAM(name("w"), ir.KindConst, target.BFloat16, 128, 4, 512)
	m.Sets.At(m.Locs.At(w).Set).Const = m.Consts.Add(ir.ConstRow{
		Kind: ir.ConstModel, Dtype: target.Float32, Tensor: name("layer.0/weight"), Shape: m.Ints.Add(512, 512),
		Recipe: name("reshape 4,128,512; permute 1,0,2; slice 0:128,0:4,0:512; pad 0:0,0:0,0:0; cast bfloat16"),
	})
	h := b.DRAM(name("h"), ir.KindInternal, target.Uint8, 100)
	m.Locs.At(h).Flags |= ir.LocAllocated
	m.Locs.At(h).Addr = 512
	m.Aliases.Add(ir.AliasRow{A: p.in, B: p.out, Kind: 1})
	pair := ir.Pair{Step: 1, Num: 4}
	for k, l := range []ir.Loc{c1, c2, c3} {
		b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{b.Mem(l, target.Uint8, 0, pair)}, []ir.Arg{b.Mem(h, target.Uint8, int64(4*k), pair)})
	}
	b.Emit(ir.OpDMACopy, target.EngineDMA, []ir.Arg{b.Mem(w, target.BFloat16, 0, pair)}, []ir.Arg{b.Mem(h, target.Uint16, 8, pair)})
	m.APs.At(m.Outs(ir.Inst(m.Insts.Len() - 1))[0].AP()).Dtype = target.BFloat16
	p.tail(t, false, dma.Options{})
	sum := [32]byte{9}
	data, pkg, st := p.pack(t, Options{Build: "test", Digest: func(s string) ([32]byte, bool) { return sum, s == "layer.0/weight" }})
	if again, _, _ := p.pack(t, Options{Build: "test", Digest: func(s string) ([32]byte, bool) { return sum, true }}); !bytes.Equal(data, again) {
		t.Error("a second package differs")
	}
	if len(pkg.Files) != 2 {
		t.Errorf("%d files for two different constants", len(pkg.Files))
	}
	for n, want := range map[string][]byte{"c1": one, "c2": one, "c3": other} {
		v := &pkg.Def.Vars[pkg.Def.VarRow(n)]
		if got, err := pkg.Const(v); err != nil || !bytes.Equal(got, want) {
			t.Errorf("constant %s is %v (%v), want %v", n, got, err, want)
		}
	}
	if s := pkg.Def.Vars[pkg.Def.VarRow(scratchVar)]; s.Size != 612 || s.Type != neff.VarTmpBuf {
		t.Errorf("scratch %+v, want 612 bytes", s)
	}
	if len(pkg.Tensors.Aliases) != 1 || pkg.Tensors.Aliases[0] != (neff.Alias{Input: "in", Output: "out"}) {
		t.Errorf("aliases %v", pkg.Tensors.Aliases)
	}
	if len(pkg.Weights) != 1 {
		t.Fatalf("%d weights, want 1", len(pkg.Weights))
	}
	got := pkg.Weights[0]
	want := "w layer.0/weight [512 512] float32 9 [{reshape [4 128 512] [] [] } {permute [1 0 2] [] [] } {slice [0 0 0] [128 4 512] [1 1 1] } {pad [0 0 0] [0 0 0] [] } {cast [] [] [] bfloat16}]"
	if s := fmt.Sprintf("%s %s %v %s %d %v", got.Var, got.Tensor, got.Shape, got.Dtype, got.SHA256[0], got.Recipe); s != want {
		t.Errorf("weight\n%s\nwant\n%s", s, want)
	}
	if st.Descriptors != 4 || st.Bundles[target.EngineSP.SeqIndex()] != 4 {
		t.Errorf("stats %+v", st)
	}
}

func TestRecipeRefuses(t *testing.T) {
	for _, s := range []string{"twist 1", "reshape 1:2", "slice 3", "cast float99", "permute x"} {
		if _, err := ParseRecipe(s); target.ClassOf(err) != target.Bug {
			t.Errorf("recipe %q: %v", s, err)
		}
	}
}

// The provenance table leads from each bundle to the instruction and the model operator.
func TestDebugTable(t *testing.T) {
	var p prog
	p.example(30, target.BFloat16)
	p.tail(t, true, dma.Options{})
	_, plain, _ := p.pack(t, Options{})
	if plain.File(neff.DebugPath) != nil {
		t.Error("a table without being asked")
	}
	_, pkg, _ := p.pack(t, Options{Debug: true})
	b := pkg.File(neff.DebugPath)
	if len(b) < 8 || string(b[:4]) != "RDBG" {
		t.Fatalf("debug table of %d bytes", len(b))
	}
	b = b[8:]
	u32 := func() uint32 {
		v := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return v
	}
	col := func(n uint32) (out []uint32) {
		for range n {
			out = append(out, u32())
		}
		return out
	}
	var rows [numEngines][]uint32
	for k := range rows {
		rows[k] = col(u32())
		if want := len(pkg.Engines[k].Stream) / 64; len(rows[k]) != want {
			t.Errorf("%s: %d rows for %d bundles", target.Sequencers[k], len(rows[k]), want)
		}
	}
	n := u32()
	names, opcodes, sources := col(n), col(n), col(n)
	var texts []string
	for range u32() {
		k := u32()
		texts = append(texts, string(b[:k]))
		b = b[k:]
	}
	got := ""
	for _, r := range rows[target.EnginePE.SeqIndex()] {
		got += texts[names[r]] + " " + texts[opcodes[r]] + " " + texts[sources[r]] + "; "
	}
	if want := strings.Repeat("I-3 Matmult dot; ", 3); got != want || len(b) != 0 {
		t.Errorf("PE bundles %q, want %q; %d bytes left", got, want, len(b))
	}
}

func TestPackageWantsEarlierPasses(t *testing.T) {
	var p prog
	p.example(30, target.BFloat16)
	p.b.Close()
	if _, _, err := Package(&p.m, p.b.Func, Options{}, &p.enc); target.ClassOf(err) != target.Bug {
		t.Errorf("without synchronisation: %v", err)
	}
}
