package memalloc

import (
	"bytes"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// A location that holds values one after the other is as many locations after SB; what reads what was there before is not cut.
func TestWebs(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps string // w and r: write, read all; W and R: half of it; x: in place, s: another instruction
		split int
	}{
		{"one value", "wrr", 0},
		{"three", "wrwrrwr", 2},
		{"without a gap between", "wrwr", 1},
		{"overwritten unread", "wwr", 0},
		{"in place", "wrxrxr", 0},
		{"in place and then anew", "wxrwxr", 1},
		{"half of it anew", "wrWr", 0},
		{"half of it anew, and only that is read", "wrWR", 1},
		{"both halves anew", "wrWVr", 1},
		{"both halves anew, one read between", "wrWRVr", 1},
		{"a half lives on", "wrWrVr", 0},
		{"one half twice is not both", "wrWWr", 0},
		{"no read at all", "w", 0},
	} {
		p := &program{}
		m := &p.m
		m.Gen = generation(t, 30)
		var b ir.Builder
		b.NewFunc(m, "main", "Block1")
		p.f = b.Func
		tile := func(name string, words int64) value {
			return value{parts: 128, words: words, loc: b.SB(m.Names.Intern(name), target.Float32, 128, words)}
		}
		x, src := tile("x", 8), tile("src", 8)
		b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&b, src)})
		for k, s := range c.steps {
			lo, hi := int64(0), int64(8)
			switch s {
			case 'W', 'R':
				hi = 4
			case 'V':
				lo = 4
			}
			xs := part(&b, x, lo, hi)
			switch s {
			case 'w', 'W', 'V':
				b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, src)}, []ir.Arg{xs})
			case 'x':
				b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{xs}, []ir.Arg{xs})
			default:
				out := b.DRAM(m.Names.Intern("out"+string(rune('a'+k))), ir.KindExternalOutput, target.Float32, 128, 8)
				b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{xs}, []ir.Arg{b.Mem(out, target.Float32, 0, ir.Pair{Step: 8, Num: 128}, ir.Pair{Step: 1, Num: uint32(hi - lo)})})
			}
		}
		b.Close()
		before, err := execute(m, p.f)
		if err != nil {
			t.Fatal(c.name, err)
		}
		_, mt, _ := placeAll(t, p, new(Workspace), Options{})
		after, err := execute(m, p.f)
		if err != nil {
			t.Fatal(c.name, err)
		}
		same(t, before, after)
		if mt.Split != c.split || mt.Splittable != min(1, c.split) || mt.Iterations != 1 {
			t.Errorf("%s: %d of %d locations split off in %d rounds, want %d", c.name, mt.Split, mt.Splittable, mt.Iterations, c.split)
		}
		if name := m.LocName(ir.Loc(m.Locs.Len() - 1)); c.split > 0 && name == "" {
			t.Errorf("%s: the last location has no name", c.name)
		}
	}
}

// reuse lays values with the same shape that are never live together into one location, as register reuse would.
func reuse(p *program) (merged int) {
	m := &p.m
	type life struct {
		loc        ir.Loc
		first, end int
	}
	var lives []life
	index := map[ir.Loc]int{}
	at := 0
	for _, i := range m.OrderOf(m.BlocksOf(p.f)[0]) {
		for _, a := range m.AllArgs(i) {
			l := m.LocOf(a)
			if l == 0 || m.Locs.At(l).Space != target.SpaceSB {
				continue
			}
			k, ok := index[l]
			if !ok {
				k = len(lives)
				index[l] = k
				lives = append(lives, life{l, at, at})
			}
			lives[k].end = at
		}
		at++
	}
	into := map[ir.Loc]ir.Loc{}
	for k := range lives {
		for j := range k {
			a, b := &lives[j], &lives[k]
			if x, y := m.Locs.At(a.loc), m.Locs.At(b.loc); into[a.loc] == 0 && a.end < b.first && x.Parts == y.Parts && x.Bytes == y.Bytes {
				into[b.loc] = a.loc
				a.end = b.end
				merged++
				break
			}
		}
	}
	for i := 1; i < m.APs.Len(); i++ {
		if to := into[m.APs.At(ir.AP(i)).Loc]; to != 0 {
			m.APs.At(ir.AP(i)).Loc = to
		}
	}
	return merged
}

// Programs whose values share locations compute the same after splitting, with and without spilling.
func TestSplitRandomPrograms(t *testing.T) {
	var ws Workspace
	merged, split, spilled := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 80).Draw(t, "n"))
		n := reuse(p)
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{StripBytes: 64, SBBytes: 64 + floorOf(&p.m, p.f) + 8*int64(rapid.IntRange(0, 200).Draw(t, "slack"))}
		_, sb, _ := placeAll(t, p, &ws, opt)
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
		merged, split, spilled = merged+n, split+sb.Split, spilled+sb.Spilled
	})
	if !testing.Short() && (split < merged/2 || merged == 0 || spilled == 0) { // in short mode a fifth of the programs is drawn
		t.Errorf("%d values laid into the location of another, %d split off again, %d spilled", merged, split, spilled)
	}
	t.Logf("%d values laid into the location of another, %d split off again, %d spilled", merged, split, spilled)
}

// The same of a model, by the simulator: bit for bit, and in no more memory than before its values shared locations.
func TestSplitModel(t *testing.T) {
	const model = "zoo:mlp?layers=3&width=256&batch=128&in=256"
	p := lowerModel(t, zooModel(t, model), 30)
	want := outputs(t, p)
	bound := sbBound(t, p)
	merged := reuse(p)
	if !bytes.Equal(outputs(t, p), want) {
		t.Fatal("the test laid values onto each other that are live together")
	}
	mt := check(t, p, new(Workspace), Options{SBBytes: bound + bound/50, NoSpill: true}, want)
	if merged == 0 || mt.Split != merged {
		t.Errorf("%d values laid into the location of another, %d split off again", merged, mt.Split)
	}
}

// What is written at the end of a turn and read at the start of the next is one value, though the write stands behind all reads.
func TestWebsOfLoops(t *testing.T) {
	p := &program{}
	m := &p.m
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	var tiles [3]value
	for k := range tiles {
		tiles[k] = value{parts: 32, words: 8, loc: b.SB(m.Names.Intern("t"+string(rune('a'+k))), target.Float32, 32, 8)}
	}
	x, y, carried := tiles[0], tiles[1], tiles[2]
	rows := []ir.Pair{{Step: 8, Num: 32}, {Step: 1, Num: 8}}
	in := b.DRAM(m.Names.Intern("in"), ir.KindExternalInput, target.Float32, 32, 8)
	out := b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, 32, 8)
	for _, v := range tiles {
		b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{b.Mem(in, target.Float32, 0, rows...)}, []ir.Arg{whole(&b, v)})
	}
	loop := b.Emit(ir.OpLoop, target.EngineUnassigned, nil, nil)
	b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&b, y)}, []ir.Arg{b.Mem(out, target.Float32, 0, rows...)})
	b.Close()
	add := func(blk ir.Block, p, q, to value) ir.Inst {
		return m.NewInst(blk, ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&b, p), whole(&b, q)}, []ir.Arg{whole(&b, to)}, ir.Int(ir.KeyOp, int64(target.AluAdd)))
	}
	body := m.Blocks.Add(ir.BlockRow{Name: m.Names.Intern("body"), Func: p.f, Parent: loop})
	order := []ir.Inst{add(body, carried, y, y), add(body, x, y, carried)}
	m.Blocks.At(body).Order = m.Order.AddSlice(order)
	axis := m.Axes.Add(ir.AxisRow{Name: m.Names.Intern("i"), Hi: 3, Step: 1})
	m.Regions.Set(loop, ir.RegionRow{Axis: axis, Blocks: m.BlockList.Add(body)})
	before, err := simulate(m)
	if err != nil {
		t.Fatal(err)
	}
	_, mt, err := WithLoop(m, p.f, new(Workspace), Options{})
	if err != nil || mt.Split != 0 {
		t.Fatalf("%d split off, error %v", mt.Split, err)
	}
	after, err := simulate(m)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("the placed loop computes something else")
	}
}
