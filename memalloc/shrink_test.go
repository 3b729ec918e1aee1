package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// ringOf is a program with a set of n blocks of a bank each: block b is written at turn b and read at turn b+stay-1.
func ringOf(t *testing.T, space target.Space, n, stay int) (*program, ir.Set) {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	class := ir.ClassNeuronPSUMTensor
	if space == target.SpaceSB {
		class = ir.ClassNeuronSBTensor
	}
	x := value{parts: 128, words: 8, loc: b.SB(m.Names.Intern("x"), target.Float32, 128, 8)}
	b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, x)})
	s := b.Tensor(m.Names.Intern("ring"), ir.KindInternal, class, target.Float32, int64(n), 128, 8)
	blocks := make([]value, n)
	for k := range blocks {
		blocks[k] = value{parts: 128, words: 8, loc: b.Place(s, m.Sets.At(s).Name, space, 128, 32)}
	}
	for k := range n + stay - 1 {
		if k < n {
			if space == target.SpacePSUM {
				b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, x)}, []ir.Arg{whole(&b, blocks[k])}, ir.Int(ir.KeyAccumulationFlag, ir.GroupStart|ir.GroupStop))
			} else {
				b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{whole(&b, blocks[k])})
			}
		}
		if r := k - stay + 1; r >= 0 {
			out := b.DRAM(m.Names.Intern("o"+string(rune('a'+r))), ir.KindExternalOutput, target.Float32, 128, 8)
			b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, blocks[r])}, []ir.Arg{b.Mem(out, target.Float32, 0, ir.Pair{Step: 8, Num: 128}, ir.Pair{Step: 1, Num: 8})})
		}
	}
	b.Close()
	return p, s
}

// Blocks that take turns share banks: as few as are live together and divide their number.
func TestShrinkBlocks(t *testing.T) {
	for _, c := range []struct{ n, stay, live int }{{12, 1, 1}, {12, 2, 2}, {12, 3, 3}, {12, 5, 6}, {6, 6, 6}, {8, 5, 8}, {7, 3, 7}} {
		p, s := ringOf(t, target.SpacePSUM, c.n, c.stay)
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		psum, _, _ := placeAll(t, p, new(Workspace), Options{})
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		set := p.m.Sets.At(s)
		shrunk, saved, liveN := 1, int64(c.n-c.live)*32, uint32(c.live)
		if c.live == c.n {
			shrunk, saved, liveN = 0, 0, 0
		}
		if psum.HighWater != int64(c.live) || psum.Shrunk != shrunk || psum.ShrinkSaved != saved || set.LiveN != liveN {
			t.Errorf("%d blocks, each live for %d turns: %d banks, %d shrunk, %d bytes saved, %d live", c.n, c.stay, psum.HighWater, psum.Shrunk, psum.ShrinkSaved, set.LiveN)
		}
		for k := range set.Count {
			if bank := p.m.Locs.At(set.First + ir.Loc(k)).Bank; int(bank) != int(k)%c.live {
				t.Errorf("block %d in bank %d, want %d", k, bank, int(k)%c.live)
			}
		}
	}
}

// In SB blocks have lives of their own: no more bytes than what is live together.
func TestBlocksInSB(t *testing.T) {
	p, _ := ringOf(t, target.SpaceSB, 12, 3)
	before, err := execute(&p.m, p.f)
	if err != nil {
		t.Fatal(err)
	}
	placeAll(t, p, new(Workspace), Options{StripBytes: 8, SBBytes: 8 + 4*32})
	after, err := execute(&p.m, p.f)
	if err != nil {
		t.Fatal(err)
	}
	same(t, before, after)
	// Too little for the blocks that are live: refused by name, and none of them keeps a place.
	p, s := ringOf(t, target.SpaceSB, 12, 3)
	_, err = SB(&p.m, p.f, new(Workspace), Options{StripBytes: 8, SBBytes: 8 + 2*32})
	if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "%ring") {
		t.Errorf("error %v", err)
	}
	for k := range p.m.Sets.At(s).Count {
		if p.m.Locs.At(p.m.Sets.At(s).First+ir.Loc(k)).Flags&ir.LocAllocated != 0 {
			t.Errorf("block %d kept its place", k)
		}
	}
}

// A number of live blocks that does not divide the blocks is refused in both memories.
func TestBlocksNotDivisible(t *testing.T) {
	for _, space := range []target.Space{target.SpacePSUM, target.SpaceSB} {
		p, s := ringOf(t, space, 6, 2)
		p.m.Sets.At(s).LiveN = 4
		alloc := PSUM
		if space == target.SpaceSB {
			alloc = SB
		}
		_, err := alloc(&p.m, p.f, new(Workspace), Options{})
		if err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "%ring has 6 blocks, which 4 live ones do not divide") {
			t.Errorf("%s: error %v", space, err)
		}
	}
}
