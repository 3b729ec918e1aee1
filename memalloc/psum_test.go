package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// The smallest aligned window of banks over a tile, by looking at all.
func TestZeroWindow(t *testing.T) {
	for lo := range 12 {
		for span := 1; lo+span <= 16; span++ {
			want := 0
			for w := 1; want == 0; w *= 2 {
				if at := lo / w * w; at+w >= lo+span {
					want = w
				}
			}
			if got := zeroWindow(lo, span); got != want {
				t.Errorf("banks %d to %d: %d, want %d", lo, lo+span-1, got, want)
			}
		}
	}
}

// products is a program of n matmuls into PSUM tiles of a bank each, all read at the end in the order of their making. With open, the
// groups are all started before any stops.
func products(t *testing.T, level, n int, open bool) *program {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, level)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	x := value{parts: 128, words: 16, loc: b.SB(m.Names.Intern("x"), target.Float32, 128, 16)}
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, x)})
	var tiles []value
	multiply := func(v value, flags int64) {
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, x)}, []ir.Arg{whole(&b, v)}, ir.Int(ir.KeyAccumulationFlag, flags))
	}
	for k := range n {
		v := value{parts: 128, words: 16, space: target.SpacePSUM}
		v.loc = b.PSUM(m.Names.Intern("p"+string(rune('a'+k))), target.Float32, 128, 16)
		tiles = append(tiles, v)
		if multiply(v, ir.GroupStart); !open {
			multiply(v, ir.GroupStop|ir.GroupAccumulate)
		}
	}
	for _, v := range tiles {
		if open {
			multiply(v, ir.GroupStop|ir.GroupAccumulate)
		}
	}
	for k, v := range tiles {
		y := value{parts: 128, words: 16, loc: b.SB(m.Names.Intern("y"+string(rune('a'+k))), target.Float32, 128, 16)}
		b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, v)}, []ir.Arg{whole(&b, y)})
		out := b.DRAM(m.Names.Intern("o"+string(rune('a'+k))), ir.KindExternalOutput, target.Float32, 128, 16)
		b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, y)}, []ir.Arg{b.Mem(out, target.Float32, 0, ir.Pair{Step: 16, Num: 128}, ir.Pair{Step: 1, Num: 16})})
	}
	b.Close()
	return p
}

// What finds no bank is copied to SBUF, and on to DRAM where SBUF has no room for the copies.
func TestPsumSpillsOn(t *testing.T) {
	for _, c := range []struct {
		sb   int64 // bytes a partition beside the strip, for values of 64 bytes
		dram bool
	}{{4096, false}, {4 * 64, true}} {
		p := products(t, 30, 12, false)
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		psum, sb, _ := placeAll(t, p, new(Workspace), Options{PsumBanks: 2, StripBytes: 8, SBBytes: 8 + c.sb})
		if psum.Spilled < 10 || psum.Saves != psum.Spilled || psum.SpillCost <= 0 || psum.PeakDemand > 100 {
			t.Errorf("%d spilled, %d copies of %d ns, demand %v %%", psum.Spilled, psum.Saves, psum.SpillCost, psum.PeakDemand)
		}
		if (sb.Spilled > 0) != c.dram || (sb.HomeBytes > 0) != c.dram {
			t.Errorf("SBUF of %d bytes: %d spilled on", c.sb, sb.Spilled)
		}
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	}
}

// Groups that are open together and more than there are banks take turns: the sum of one waits in SBUF, and every matmul adds to what it
// would have added to. Without flags nobody can say that it adds.
func TestPsumGroupsTakeTurns(t *testing.T) {
	for _, level := range []int{20, 30, 40} {
		for banks := 1; banks <= 5; banks++ {
			for _, linear := range []bool{false, true} {
				p := products(t, level, 5, true)
				before, err := execute(&p.m, p.f)
				if err != nil {
					t.Fatal(err)
				}
				var psum Metrics
				if linear {
					psum, _, err = LinearScan(&p.m, p.f, new(Workspace), Options{PsumBanks: banks})
				} else {
					psum, err = PSUM(&p.m, p.f, new(Workspace), Options{PsumBanks: banks})
				}
				if err != nil {
					t.Fatalf("level %d, %d banks: %v", level, banks, err)
				}
				// What is not in a bank when its second matmul comes has been brought back.
				if least := 5 - banks; psum.Reloads < least || psum.Reloads > 5 || (psum.Reloads > 0) != (least > 0) {
					t.Errorf("level %d, %d banks: %d sums came back", level, banks, psum.Reloads)
				}
				after, err := execute(&p.m, p.f)
				if err != nil {
					t.Fatal(err)
				}
				same(t, before, after)
			}
		}
	}
	p := products(t, 30, 3, true)
	for i, r := range p.m.Insts.All() {
		if r.Op == ir.OpMatmult {
			p.m.SetAttr(i, ir.Int(ir.KeyAccumulationFlag, 0))
		}
	}
	_, err := PSUM(&p.m, p.f, new(Workspace), Options{PsumBanks: 2})
	if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "too many reloads needed") || !strings.Contains(err.Error(), "needs 1 banks of 2") {
		t.Errorf("error %v", err)
	}
}

// A tile whose window is wider than an instruction can name.
func TestPsumZeroRegion(t *testing.T) {
	wide := *generation(t, 30)
	wide.PSUMBanks = 16
	p := products(t, 30, 1, false)
	p.m.Gen = &wide
	l := ir.Loc(2)
	p.m.Locs.At(l).Bytes = 9 * 2048
	_, err := PSUM(&p.m, p.f, new(Workspace), Options{})
	if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "%pa takes 9 PSUM banks from bank 0 on, and a matmul can clear a window of at most 8") {
		t.Errorf("error %v", err)
	}
	p.m.Locs.At(l).Bytes, p.m.Locs.At(l).Bank = 2*2048, 7
	p.m.Locs.At(l).Flags |= ir.LocAllocated | ir.LocUserAllocated
	if _, err = PSUM(&p.m, p.f, new(Workspace), Options{}); err == nil || !strings.Contains(err.Error(), "%pa takes 2 PSUM banks from bank 7 on") {
		t.Errorf("error %v", err)
	}
	p.m.Locs.At(l).Bank = 8
	if _, err = PSUM(&p.m, p.f, new(Workspace), Options{}); err != nil {
		t.Error(err)
	}
}

// Nodes that should never have come to Place are reported as defects, by name.
func TestPsumInternalErrors(t *testing.T) {
	p := products(t, 30, 3, false)
	var ws Workspace
	again := func(spoil func()) error {
		if _, err := ws.linearise(&p.m, p.f, &Options{}); err != nil {
			t.Fatal(err)
		}
		ws.ranges.Build(&p.m, &ws.lin, target.SpacePSUM, 1, nil)
		if err := ws.psumProblem(&p.m, 8, &Options{}); err != nil {
			t.Fatal(err)
		}
		ws.solver.Simplify()
		spoil()
		return ws.selectPSUM(&p.m)
	}
	if err := again(func() {}); err != nil {
		t.Fatal(err)
	}
	err := again(func() { ws.solver.Order = append(ws.solver.Order, ws.solver.Order[0]) })
	if err == nil || target.ClassOf(err) != target.Bug || !strings.Contains(err.Error(), "%pa is already allocated") {
		t.Errorf("error %v", err)
	}
	err = again(func() { ws.solver.Nodes[1].Fixed, ws.psum.base[1], ws.psum.mask[1] = true, 8, 1<<8 })
	if err == nil || target.ClassOf(err) != target.Bug || !strings.Contains(err.Error(), "%pb is recorded in bank 8 of 8") {
		t.Errorf("error %v", err)
	}
}

// Two tiles of two banks, which start on even ones, and three of one fill seven banks without a hole.
func TestPsumPacks(t *testing.T) {
	for _, level := range []int{20, 30, 40} {
		p := products(t, level, 5, false)
		for k, l := 0, ir.Loc(2); k < 5; k, l = k+1, l+1 {
			if p.m.Locs.At(l).Space != target.SpacePSUM {
				t.Fatal("the tiles are elsewhere")
			}
			if k%2 == 1 {
				p.m.Locs.At(l).Bytes = 2 * 2048
			}
		}
		for i := 1; i < p.m.APs.Len(); i++ {
			if a := p.m.APs.At(ir.AP(i)); a.Loc >= 2 && a.Loc < 7 {
				a.Pairs[0].Step = int32(p.m.Locs.At(a.Loc).Bytes / 4)
			}
		}
		if mt, err := PSUM(&p.m, p.f, new(Workspace), Options{PsumBanks: 7}); err != nil || mt.Spilled > 0 || mt.PeakDemand != 100 {
			t.Errorf("level %d: %d spilled at a demand of %v %%, error %v", level, mt.Spilled, mt.PeakDemand, err)
		}
	}
}

// Pinned banks are gone around or refused by name, and a tile that is changed in place moves out like any other.
func TestPsumAdversarial(t *testing.T) {
	pin := func(p *program, name string, bank int8, banks int64) {
		m := &p.m
		n := m.Names.Intern(name)
		s := m.Sets.Add(ir.SetRow{Name: n, Kind: ir.KindInternal, Class: ir.ClassNeuronPSUMTensor, Dtype: target.Float32, Func: p.f, Count: 1, Shape: m.Ints.Add(128, 512*banks)})
		m.Sets.At(s).First = m.Locs.Add(ir.LocRow{Name: n, Set: s, Space: target.SpacePSUM, Parts: 128, Bytes: 2048 * banks, Bank: bank, Pack: -1, ID: -1,
			Flags: ir.LocAllocated | ir.LocPinned})
		addSets(m, p.f, []ir.Set{s})
	}
	for _, c := range []struct {
		name    string
		tiles   int
		open    bool
		bank    int8
		banks   int64
		refused string
	}{
		{"one bank is pinned, and the rest suffices", 7, false, 3, 1, ""},
		{"one bank is pinned, and the rest does not", 12, false, 3, 1, ""},
		{"all groups open around it", 7, true, 3, 1, ""},
		{"more groups are open than there are banks", 9, true, 3, 1, ""},
		{"all but one are pinned", 6, false, 0, 7, ""},
		{"all but one are pinned, and all groups open", 6, true, 0, 7, ""},
		{"all are pinned", 1, false, 0, 8, "PSUM overflow: %pa"},
	} {
		for _, level := range []int{20, 30} {
			p := products(t, level, c.tiles, c.open)
			before, err := execute(&p.m, p.f)
			if err != nil {
				t.Fatal(err)
			}
			pin(p, "pinned", c.bank, c.banks)
			if c.refused != "" {
				_, err := PSUM(&p.m, p.f, new(Workspace), Options{})
				if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%s, level %d: error %v", c.name, level, err)
				}
				continue
			}
			psum, _, _ := placeAll(t, p, new(Workspace), Options{})
			for i := 1; i < p.m.Locs.Len(); i++ {
				l := p.m.Locs.At(ir.Loc(i))
				if l.Space == target.SpacePSUM && l.Flags&ir.LocPinned == 0 && int64(l.Bank) >= int64(c.bank) && int64(l.Bank) < int64(c.bank)+c.banks {
					t.Errorf("%s, level %d: %s is in the pinned bank %d", c.name, level, p.m.LocName(ir.Loc(i)), l.Bank)
				}
			}
			if spills := c.tiles > 8-int(c.banks); spills != (psum.Spilled > 0) || psum.Iterations > 7 {
				t.Errorf("%s, level %d: %d spilled in %d rounds", c.name, level, psum.Spilled, psum.Iterations)
			}
			after, err := execute(&p.m, p.f)
			if err != nil {
				t.Fatal(err)
			}
			same(t, before, after)
		}
	}
}
