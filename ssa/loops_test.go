package ssa

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// nest is a function with loops under construction: begin and end bracket a body, emit adds to the innermost open one.
type nest struct {
	*fixture
	open []openLoop
}

type openLoop struct {
	inst  ir.Inst
	axis  ir.Axis
	block ir.Block
	order []ir.Inst
}

func newNest() *nest {
	f := newFixture()
	return &nest{fixture: f, open: []openLoop{{block: f.b.Block}}}
}

func (n *nest) add(i ir.Inst) ir.Inst {
	top := &n.open[len(n.open)-1]
	top.order = append(top.order, i)
	return i
}

func (n *nest) inst(op ir.Opcode, ins, outs []ir.Arg, attrs ...ir.Attr) ir.Inst {
	return n.add(n.m.NewInst(n.open[len(n.open)-1].block, op, target.EngineDVE, ins, outs, attrs...))
}

// begin opens a loop of trips turns; its axis counts from 0.
func (n *nest) begin(trips int) ir.Axis {
	a := n.m.Axes.Add(ir.AxisRow{Hi: int64(trips), Step: 1})
	i := n.inst(ir.OpLoop, nil, nil)
	n.open = append(n.open, openLoop{inst: i, axis: a, block: n.m.Blocks.Add(ir.BlockRow{Func: n.b.Func, Parent: i})})
	return a
}

func (n *nest) end() {
	top := n.open[len(n.open)-1]
	n.open = n.open[:len(n.open)-1]
	n.m.Blocks.At(top.block).Order = n.m.Order.AddSlice(top.order)
	n.m.Regions.Set(top.inst, ir.RegionRow{Axis: top.axis, Blocks: n.m.BlockList.Add(top.block)})
}

func (n *nest) close() {
	n.b.Close()
	n.m.Blocks.At(n.open[0].block).Order = n.m.Order.AddSlice(n.open[0].order)
}

// flat gives the flattened order and the ranges of SB.
func (n *nest) flat() (*Linear, *Ranges) {
	l, r := &Linear{}, &Ranges{}
	l.Flatten(&n.m, n.b.Func)
	r.Build(&n.m, l, target.SpaceSB, BySlot, nil)
	return l, r
}

// A loop's body comes right after the loop's own point, recursively, and points are all instructions of all depths.
func TestSeed54BodiesFollowTheirLoop(t *testing.T) {
	n := newNest()
	x := n.sb("x")
	var want []ir.Inst
	in := func() { want = append(want, n.inst(ir.OpMemset, nil, n.ops(x))) }
	in() // 0
	n.begin(2)
	want = append(want, n.open[1].inst) // 1
	in()                                // 2
	n.begin(3)
	want = append(want, n.open[2].inst) // 3
	in()                                // 4
	in()                                // 5
	n.end()
	in() // 6
	n.end()
	n.begin(0)
	want = append(want, n.open[1].inst) // 7
	in()                                // 8
	n.end()
	in() // 9
	n.close()
	l, _ := n.flat()
	if fmt.Sprint(l.Insts) != fmt.Sprint(want) {
		t.Errorf("points %v, want %v", l.Insts, want)
	}
	var got []string
	for p := range l.Points() {
		x := &l.Loops[l.LoopOf(Point(p))]
		got = append(got, fmt.Sprintf("%d-%d%s", x.Head, x.End, map[bool]string{true: "", false: "?"}[x.Runs || x.End == 0]))
	}
	if g := strings.Join(got, " "); g != "0-0 0-0 1-7 1-7 3-6 3-6 1-7 0-0 7-9? 0-0" {
		t.Errorf("loops %s", g)
	}
	var plain Linear
	plain.Build(&n.m, n.b.Func)
	if plain.Points() != 4 || len(plain.Loops) != 0 || plain.LoopOf(2) != 0 {
		t.Errorf("the plain order has %d points and %d loops", plain.Points(), len(plain.Loops))
	}
}

// The number of an instruction is its place in the chain, whatever numbers its row, its block or its loop have.
func TestSeed55NumberIsThePlace(t *testing.T) {
	n := newNest()
	x := n.sb("x")
	late := n.m.NewInst(n.open[0].block, ir.OpMemset, target.EngineDVE, nil, n.ops(x))
	n.begin(2)
	n.inst(ir.OpMemset, nil, n.ops(x))
	n.end()
	n.add(late)
	n.close()
	l, _ := n.flat()
	for p, i := range l.Insts {
		for _, a := range l.Of(x) {
			if a.Inst == i && a.At != Point(p) {
				t.Errorf("%s is at %d of the chain and accesses at %d", i, p, a.At)
			}
		}
	}
	if l.Insts[2] != late || l.Of(x)[1].Inst != late {
		t.Errorf("chain %v", l.Insts)
	}
}

// Both halves: in the plain family what is defined before a loop and used in it is live over all of it, and so is all that the body
// holds; in the loop-aware one only what one turn takes from another, or from outside, is.
func TestSeed56LiveOverTheLoop(t *testing.T) {
	n := newNest()
	before, local, carried, after, pieces := n.sb("before"), n.sb("local"), n.sb("carried"), n.sb("after"), n.sb("pieces")
	half := func(k int64) []ir.Arg {
		return []ir.Arg{n.b.Chip(pieces, target.Float32, 0, 128, k, ir.Pair{Step: 2, Num: 4})}
	}
	op := ir.OpTensorTensor
	n.inst(ir.OpMemset, nil, n.ops(before))  // 0
	n.inst(ir.OpMemset, nil, n.ops(carried)) // 1
	n.begin(4)                               // 2
	n.inst(op, n.ops(before, carried), n.ops(local))
	n.inst(op, n.ops(local, local), n.ops(carried)) // 4
	n.inst(ir.OpMemset, nil, half(0))               // 5
	n.inst(ir.OpMemset, nil, half(1))
	n.inst(op, n.ops(pieces, pieces), n.ops(after)) // 7
	n.inst(ir.OpMemset, nil, n.ops(n.sb("end")))    // 8
	n.end()
	n.inst(op, n.ops(carried, after), n.ops(n.sb("out"))) // 9
	n.close()
	type span struct{ start, end Point }
	check := func(family string, r *Ranges, want map[ir.Loc]span) {
		for l, w := range want {
			if u := r.Units[r.UnitOf(l)]; u.Start != w.start || u.End != w.end {
				t.Errorf("%s: %s lives in [%d, %d), want [%d, %d)", family, n.m.LocName(l), u.Start, u.End, w.start, w.end)
			}
		}
	}
	_, r := n.flat()
	check("loop-aware", r, map[ir.Loc]span{before: {0, 9}, local: {3, 5}, carried: {1, 10}, pieces: {5, 8}, after: {2, 10}})
	var l Linear
	l.Build(&n.m, n.b.Func)
	r.Build(&n.m, &l, target.SpaceSB, BySlot, nil)
	check("plain", r, map[ir.Loc]span{before: {0, 3}, local: {2, 3}, carried: {1, 4}, pieces: {2, 3}, after: {2, 4}})
}

// What a turn reads before it writes comes from the turn before: live over the loop around all accesses, and over no more.
func TestCarriedWithinALoop(t *testing.T) {
	n := newNest()
	x, y := n.sb("x"), n.sb("y")
	part := func(l ir.Loc, k int64) []ir.Arg {
		return []ir.Arg{n.b.Chip(l, target.Float32, 0, 128, k, ir.Pair{Step: 1, Num: 4})}
	}
	n.inst(ir.OpMemset, nil, n.ops(y))          // 0
	n.begin(2)                                  // 1
	n.inst(ir.OpMemset, nil, n.ops(x))          // 2
	n.begin(2)                                  // 3
	n.inst(ir.OpMemset, nil, part(y, 0))        // 4
	n.inst(ir.OpTensorCopy, n.ops(x), n.ops(y)) // 5
	n.inst(ir.OpTensorCopy, n.ops(y), n.ops(x)) // 6
	n.inst(ir.OpMemset, nil, n.ops(n.sb("z")))  // 7
	n.end()
	n.inst(ir.OpMemset, nil, n.ops(n.sb("z"))) // 8
	n.end()
	n.close()
	_, r := n.flat()
	if u := r.Units[r.UnitOf(x)]; u.Start != 2 || u.End != 8 {
		t.Errorf("written in a turn and used in the inner loop: [%d, %d), want [2, 8)", u.Start, u.End)
	}

	n = newNest()
	x = n.sb("x")
	n.begin(2)                                                                              // 0
	n.begin(2)                                                                              // 1
	n.inst(ir.OpMemset, nil, part2(n, x, 0))                                                // 2
	n.inst(ir.OpTensorCopy, n.ops(x), n.ops(n.sb("y")), ir.Bool(ir.KeyCanReadUninit, true)) // 3
	n.inst(ir.OpMemset, nil, part2(n, x, 4))                                                // 4
	n.end()
	n.inst(ir.OpMemset, nil, n.ops(n.sb("z"))) // 5
	n.end()
	n.inst(ir.OpMemset, nil, n.ops(n.sb("z"))) // 6
	n.close()
	_, r = n.flat()
	if u := r.Units[r.UnitOf(x)]; u.Start != 0 || u.End != 6 {
		t.Errorf("half of it from the turn before: [%d, %d), want [0, 6)", u.Start, u.End)
	}
}

func part2(n *nest, l ir.Loc, k int64) []ir.Arg {
	return []ir.Arg{n.b.Chip(l, target.Float32, 0, 128, k, ir.Pair{Step: 1, Num: 4})}
}

// A use before any definition is rejected with both counts; outputs never count as unused, and in a loop the first turn counts.
func TestSeed57UndefinedUses(t *testing.T) {
	n := newNest()
	out := n.b.DRAM(n.m.Names.Intern("out"), ir.KindExternalOutput, target.Float32, 128, 8)
	x, y, ring := n.sb("x"), n.sb("y"), n.ring(3, 0)
	n.inst(ir.OpMemset, nil, []ir.Arg{n.sym(ring, 0)})
	i := n.begin(2)
	next := n.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAffine, C: 1024, Terms: n.m.Terms.Add(ir.Term{Expr: n.axis(i, 1024), Coeff: 1})})
	bad := n.inst(ir.OpTensorCopy, n.ops(x), n.ops(y)) // the turn before wrote x, but the first turn has none
	n.inst(ir.OpMemset, nil, n.ops(x))
	n.inst(ir.OpTensorCopy, []ir.Arg{n.sym(ring, n.axis(i, 1024))}, []ir.Arg{n.sym(ring, next)}) // block i was written outside, or in the turn before
	n.inst(ir.OpSave, n.ops(x), []ir.Arg{n.b.Mem(out, target.Float32, 0, ir.Pair{Step: 1, Num: 1024})})
	n.end()
	n.close()
	l, _ := n.flat()
	f := l.Check(&n.m)
	if f.Undefined != 1 || f.UndefinedAt[0] != bad || f.Unused != 1 || f.FirstUnused[0] != y {
		t.Errorf("faults %+v", f)
	}
	err := f.Err(&n.m, n.b.Func, false)
	if err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "1 undefined uses and 1 unused definitions") ||
		!strings.Contains(err.Error(), "%x at "+n.m.InstName(bad)) {
		t.Errorf("error %v", err)
	}
}

// ring adds a tensor of blocks of 128 × 8 words in SB, all live or liveN of them.
func (n *nest) ring(blocks, liveN int) ir.Set {
	s := n.b.Tensor(n.m.Names.Intern("ring"), ir.KindInternal, ir.ClassNeuronBlockTensor, target.Float32, int64(blocks), 128, 8)
	for range blocks {
		n.b.Place(s, n.m.Sets.At(s).Name, target.SpaceSB, 128, 32)
	}
	n.m.Sets.At(s).LiveN = uint32(liveN)
	return s
}

// axis is the expression of step times an axis.
func (n *nest) axis(a ir.Axis, step int64) ir.Expr {
	e := n.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAxis, Ref: uint32(a)})
	return n.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprMul, A: e, C: step})
}

// sym is the pattern of a whole block of a set at an address.
func (n *nest) sym(s ir.Set, e ir.Expr) ir.Arg {
	row := ir.SymRow{Set: s, Addr: e, AP: ir.APRow{Dtype: target.Float32, Parts: 128}}
	row.AP.Pairs = [5]ir.Pair{{Step: 8, Num: 128}, {Step: 1, Num: 8}}
	return ir.Arg{Kind: ir.ArgSym, Dtype: target.Float32, Ref: uint32(n.m.Syms.Add(row))}
}

// Random nests against a model that runs them: wherever, at run time, a byte lies between its write and a read of it, the location
// is live by its range.
func TestRangesHoldWhatIsLive(t *testing.T) {
	var l Linear
	var r Ranges
	local, extended := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := randomNest(t)
		m := &n.m
		l.Flatten(m, n.b.Func)
		r.Build(m, &l, target.SpaceSB, BySlot, nil)
		for k := 1; k < len(r.Units); k++ {
			if r.Units[k].Start < r.Units[k-1].Start {
				t.Fatalf("unit %d begins before unit %d", k, k-1)
			}
		}
		live := runNest(m, &l)
		for loc, points := range live {
			u := &r.Units[r.UnitOf(loc)]
			for p, yes := range points {
				if yes && (Point(p) < u.Start || Point(p) >= u.End) {
					t.Fatalf("%s is live at %d and its range is [%d, %d)\n%s", m.LocName(loc), p, u.Start, u.End, ir.Append(nil, m))
				}
			}
			acc := l.Of(loc)
			if lp := l.LoopOf(acc[0].At); lp != 0 && l.In(acc[len(acc)-1].At, lp) {
				if u.Start == acc[0].At && u.End == acc[len(acc)-1].At+1 {
					local++
				} else {
					extended++
				}
			}
		}
	})
	if !testing.Short() && (local == 0 || extended == 0) {
		t.Errorf("%d values local to a turn and %d that are not: the generator is lopsided", local, extended)
	}
}

// randomNest draws loops of up to four turns around reads and writes of parts of a few tensors, one of them a ring.
func randomNest(t *rapid.T) *nest {
	num := func(s string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, s) }
	n := newNest()
	var tiles []ir.Loc
	for k := range 4 {
		tiles = append(tiles, n.sb(fmt.Sprint("x", k)))
	}
	live := num("live", 1, 3)
	ring := n.ring(4, live)
	exprs := []ir.Expr{0}
	part := func(l ir.Loc) ir.Arg {
		q := num("quadrants", 1, 2)
		off := num("off", 0, 4)
		step := num("step", 1, 2)
		a := n.b.Chip(l, target.Float32, 32*num("start", 0, 2), 32*q, int64(off), ir.Pair{Step: int32(step), Num: uint32(num("num", 1, (8-off+step-1)/step))})
		if num("all", 0, 2) > 0 {
			a = n.op(l)
		}
		return a
	}
	operand := func() ir.Arg {
		switch num("operand", 0, 5) {
		case 0:
			return n.sym(ring, exprs[num("expr", 0, len(exprs)-1)])
		case 1:
			return n.op(n.m.Sets.At(ring).First + ir.Loc(num("block", 0, 3)))
		}
		return part(tiles[num("tile", 0, 3)])
	}
	n.begin(num("trips", 1, 4))
	exprs = append(exprs, n.axis(n.open[1].axis, 1024))
	for range num("n", 4, 30) {
		switch k := num("what", 0, 11); {
		case k == 0 && len(n.open) < 5:
			a := n.begin(num("trips", 0, 4))
			exprs = append(exprs, n.axis(a, 1024))
		case k == 1 && len(n.open) > 2:
			n.end()
			exprs = exprs[:len(exprs)-1]
		case k == 2: // a value of one turn, in two pieces
			x := n.sb("y")
			n.inst(ir.OpMemset, nil, part2(n, x, 0))
			n.inst(ir.OpMemset, nil, part2(n, x, 4))
			n.inst(ir.OpTensorCopy, []ir.Arg{part(x)}, []ir.Arg{operand()})
		case k < 5:
			n.inst(ir.OpMemset, nil, []ir.Arg{operand()})
		default:
			n.inst(ir.OpTensorCopy, []ir.Arg{operand()}, []ir.Arg{operand()})
		}
	}
	for len(n.open) > 1 {
		n.end()
	}
	n.close()
	return n
}

// runNest runs a nest and says for each location at which points a byte of it waits to be read. It recurses over the loops.
func runNest(m *ir.Module, l *Linear) map[ir.Loc][]bool {
	type cell struct {
		loc      ir.Loc
		part, at int64
	}
	var trace []Point // static points in the order in which they ran
	written := map[cell]int{}
	live := map[ir.Loc][]bool{}
	axes := map[ir.Axis]int64{}
	var eval ir.ExprEval
	touch := func(a ir.Arg, f func(cell)) {
		row := ir.APRow{}
		switch a.Kind {
		case ir.ArgAP:
			row = *m.APs.At(a.AP())
		case ir.ArgSym:
			s := m.Syms.At(ir.Sym(a.Ref))
			addr, _, err := eval.Bounds(m, s.Addr, func(x ir.Axis) (int64, int64, bool) { return axes[x], axes[x], true })
			ok := false
			if row, ok = m.Resolve(s, addr); err != nil || !ok {
				panic("bad pattern")
			}
		}
		for p := range int64(row.Parts) {
			for k := range int64(row.Pairs[1].Num) {
				f(cell{row.Loc, int64(row.Start) + p, row.Off + k*int64(row.Pairs[1].Step)})
			}
		}
	}
	var run func(p, end Point)
	run = func(p, end Point) {
		for p < end {
			i := l.Insts[p]
			now := len(trace)
			trace = append(trace, p)
			if m.Insts.At(i).Op.Is(ir.FlagRegion) {
				body := p + 1
				for _, x := range l.Loops {
					if x.Inst == i {
						body = x.End
					}
				}
				reg := m.Regions.Get(i)
				a := m.Axes.At(reg.Axis)
				for v := a.Lo; v < a.Hi; v++ {
					axes[reg.Axis] = v
					run(p+1, body)
				}
				p = body
				continue
			}
			for _, a := range m.Ins(i) {
				touch(a, func(c cell) {
					from, ok := written[c]
					if !ok {
						return
					}
					if live[c.loc] == nil {
						live[c.loc] = make([]bool, l.Points())
					}
					if c.part%32 == 0 { // all partitions of a quadrant do the same
						for t := from; t <= now; t++ {
							if t == now {
								live[c.loc][p] = true
							} else {
								live[c.loc][trace[t]] = true
							}
						}
					}
				})
			}
			for _, a := range m.Outs(i) {
				touch(a, func(c cell) { written[c] = now })
			}
			p++
		}
	}
	run(0, Point(l.Points()))
	return live
}

// Deep nests and long bodies need neither a stack of calls nor more than a step a point.
func TestDeepAndLong(t *testing.T) {
	const depth, long = 1000, 1_000_000
	n := newNest()
	x, y := n.sb("x"), n.sb("y")
	n.inst(ir.OpMemset, nil, n.ops(x))
	for range depth {
		n.begin(2)
	}
	for range long / 2 {
		n.inst(ir.OpTensorCopy, n.ops(x), n.ops(y))
		n.inst(ir.OpTensorCopy, n.ops(y), n.ops(n.sb("")))
	}
	for range depth {
		n.end()
	}
	n.close()
	l, r := n.flat()
	if l.Points() != 1+depth+long {
		t.Fatalf("%d points", l.Points())
	}
	if u := r.Units[r.UnitOf(x)]; u.Start != 0 || u.End != Point(l.Points()) {
		t.Errorf("x lives in [%d, %d)", u.Start, u.End)
	}
	if u := r.Units[r.UnitOf(y)]; u.Start != 1+depth {
		t.Errorf("y lives in [%d, %d)", u.Start, u.End)
	}
	if p := l.Leaving(Point(l.Points()-1), 0); l.Loops[p].depth != 1 {
		t.Errorf("the outermost loop left is at depth %d", l.Loops[p].depth)
	}
	if p := l.Leaving(Point(l.Points()-1), 500); l.Loops[p].depth != 500 {
		t.Errorf("the outermost loop left is at depth %d, want 500", l.Loops[p].depth)
	}
}

// A second round in the same storage allocates nothing, loops or not.
func TestFlatSteadyState(t *testing.T) {
	n := newNest()
	x := n.sb("x")
	n.inst(ir.OpMemset, nil, n.ops(x))
	for range 20 {
		n.begin(3)
		y, z := n.sb("y"), n.sb("z")
		n.inst(ir.OpMemset, nil, part2(n, y, 0))
		n.inst(ir.OpMemset, nil, part2(n, y, 4))
		n.inst(ir.OpTensorCopy, n.ops(y), n.ops(z))
		n.inst(ir.OpTensorTensor, n.ops(x, z), n.ops(x))
		n.end()
	}
	n.close()
	var l Linear
	var r Ranges
	pass := func() {
		l.Flatten(&n.m, n.b.Func)
		l.Check(&n.m)
		r.Build(&n.m, &l, target.SpaceSB, BySlot, nil)
	}
	pass()
	if a := testing.AllocsPerRun(10, pass); a != 0 {
		t.Errorf("%v allocations a run, want 0", a)
	}
}
