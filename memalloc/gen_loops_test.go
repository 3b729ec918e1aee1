package memalloc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// loopGen draws programs with loops that are right by construction: what is read was written before, in this turn, an earlier one
// or outside. Tiles come in three shapes, so that operands match and the simulator can compute.
type loopGen struct {
	*program
	b     ir.Builder
	t     *rapid.T
	open  []genLoop
	live  [shapes][]ir.Loc // written in full, by shape
	homes [shapes][]ir.Loc // in DRAM, written in full
	psum  []ir.Loc         // 32 × 16, written in full
	n     int              // of names
}

type genLoop struct {
	inst  ir.Inst
	axis  ir.Axis
	block ir.Block
	order []ir.Inst
	index ir.Expr // number of the turn, counting those of the loops around
	turns int     // of all loops around and this one together
}

const shapes = 3

var genShape = [shapes]struct {
	parts int
	words int64
}{{32, 16}, {64, 40}, {128, 16}}

func (g *loopGen) num(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(g.t, label) }

func (g *loopGen) name(s string) string { g.n++; return fmt.Sprintf("%s%d", s, g.n) }

func (g *loopGen) top() *genLoop { return &g.open[len(g.open)-1] }

func (g *loopGen) emit(op ir.Opcode, e target.Engine, ins, outs []ir.Arg, attrs ...ir.Attr) ir.Inst {
	i := g.m.NewInst(g.top().block, op, e, ins, outs, attrs...)
	g.top().order = append(g.top().order, i)
	return i
}

func (g *loopGen) tile(shape int) ir.Loc {
	return g.b.SB(g.m.Names.Intern(g.name("t")), target.Float32, genShape[shape].parts, genShape[shape].words)
}

func (g *loopGen) all(shape int, l ir.Loc) ir.Arg {
	return g.some(shape, l, 0, genShape[shape].words, 1)
}

// some is words lo, lo+step, … below hi of every partition.
func (g *loopGen) some(shape int, l ir.Loc, lo, hi, step int64) ir.Arg {
	return g.b.Chip(l, target.Float32, 0, genShape[shape].parts, lo, ir.Pair{Step: int32(step), Num: uint32((hi - lo + step - 1) / step)})
}

// dense is a DRAM location as rows of a shape, from row lo on.
func (g *loopGen) dense(shape int, l ir.Loc) ir.Arg {
	p, w := genShape[shape].parts, genShape[shape].words
	return g.b.Mem(l, target.Float32, 0, ir.Pair{Step: int32(w), Num: uint32(p)}, ir.Pair{Step: 1, Num: uint32(w)})
}

// scaled is e·by + add.
func (g *loopGen) scaled(e ir.Expr, by, add int64) ir.Expr {
	return g.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAffine, C: add, Terms: g.m.Terms.Add(ir.Term{Expr: e, Coeff: by})})
}

// indexed is words [off, off+n) of every partition of block e of a set.
func (g *loopGen) indexed(shape int, s ir.Set, e ir.Expr, off, n int64) ir.Arg {
	w := genShape[shape].words
	row := ir.SymRow{Set: s, Addr: e, AP: ir.APRow{Dtype: target.Float32, Parts: uint16(genShape[shape].parts), Off: off}}
	row.AP.Pairs = [5]ir.Pair{{Step: int32(w), Num: uint32(genShape[shape].parts)}, {Step: 1, Num: uint32(n)}}
	if !g.m.Locs.At(g.m.Sets.At(s).First).Space.OnChip() {
		row.AP.Parts = 0
	}
	return ir.Arg{Kind: ir.ArgSym, Dtype: target.Float32, Ref: uint32(g.m.Syms.Add(row))}
}

func (g *loopGen) begin() {
	turns := g.num("turns", 1, 3)
	lo, step := int64(g.num("lo", -2, 2)), int64(g.num("step", 1, 2))
	a := g.m.Axes.Add(ir.AxisRow{Name: g.m.Names.Intern(g.name("i")), Lo: lo, Hi: lo + step*int64(turns), Step: step})
	up := *g.top()
	i := g.emit(ir.OpLoop, target.EngineUnassigned, nil, nil)
	e := g.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAxis, Ref: uint32(a)})
	e = g.scaled(e, 1, -lo)
	e = g.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprFloorDiv, A: e, C: step})
	if up.index != 0 {
		e = g.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprSum, Terms: g.m.Terms.Add(ir.Term{Expr: up.index, Coeff: int64(turns)}, ir.Term{Expr: e, Coeff: 1})})
	}
	g.open = append(g.open, genLoop{inst: i, axis: a, block: g.m.Blocks.Add(ir.BlockRow{Name: g.m.Names.Intern(g.name("body")), Func: g.f, Parent: i}), index: e, turns: turns * max(1, up.turns)})
}

func (g *loopGen) end() {
	top := *g.top()
	g.open = g.open[:len(g.open)-1]
	g.m.Blocks.At(top.block).Order = g.m.Order.AddSlice(top.order)
	g.m.Regions.Set(top.inst, ir.RegionRow{Axis: top.axis, Blocks: g.m.BlockList.Add(top.block)})
}

// pick is a tile that was written.
func (g *loopGen) pick(shape int) ir.Loc {
	if len(g.live[shape]) == 0 {
		g.load(shape)
	}
	return g.live[shape][g.num("pick", 0, len(g.live[shape])-1)]
}

func (g *loopGen) add(shape int, l ir.Loc) { g.live[shape] = append(g.live[shape], l) }

// load brings a tile of an input: in a loop another one in each turn.
func (g *loopGen) load(shape int) {
	x := g.tile(shape)
	top := g.top()
	p, w := int64(genShape[shape].parts), genShape[shape].words
	in := g.b.DRAM(g.m.Names.Intern(g.name("in")), ir.KindExternalInput, target.Float32, int64(max(1, top.turns)), p, w)
	src := g.dense(shape, in)
	if top.index != 0 && g.num("indexed", 0, 1) == 0 {
		src = g.indexed(shape, g.m.Locs.At(in).Set, g.scaled(top.index, p*w, 0), 0, w)
	}
	g.emit(ir.OpLoad, target.EngineSP, []ir.Arg{src}, []ir.Arg{g.all(shape, x)})
	g.add(shape, x)
}

func (g *loopGen) save(shape int, l ir.Loc) {
	top := g.top()
	p, w := int64(genShape[shape].parts), genShape[shape].words
	out := g.b.DRAM(g.m.Names.Intern(g.name("out")), ir.KindExternalOutput, target.Float32, int64(max(1, top.turns)), p, w)
	dst := g.dense(shape, out)
	if top.index != 0 {
		dst = g.indexed(shape, g.m.Locs.At(out).Set, g.scaled(top.index, p*w, 0), 0, w)
	}
	g.emit(ir.OpSave, target.EngineAct, []ir.Arg{g.all(shape, l)}, []ir.Arg{dst})
}

// ring runs a loop over a tensor of blocks of which few are live: each turn writes a block and reads it, or the one before.
func (g *loopGen) ring(shape int) {
	p, w := int64(genShape[shape].parts), genShape[shape].words
	ahead := g.num("ahead", 0, 2) // 1: writes the next block and reads this one; 2: reads first
	src, sum := g.pick(shape), g.pick(shape)
	at := g.num("blocks", 1, 4)
	s := g.b.Tensor(g.m.Names.Intern(g.name("ring")), ir.KindInternal, ir.ClassNeuronBlockTensor, target.Float32, 0, p, w)
	size := func(n int) {
		for range n {
			g.b.Place(s, g.m.Names.Intern(g.name("r")), target.SpaceSB, uint32(p), w*4)
		}
		g.m.Ints.Of(g.m.Sets.At(s).Shape)[0] = int64(n)
		live := min(n, at+ahead&1)
		for n%live != 0 {
			live++
		}
		g.m.Sets.At(s).LiveN = uint32(live)
	}
	block := func(k int64) ir.Arg {
		return g.indexed(shape, s, g.scaled(g.top().index, p*w, k*p*w), 0, w)
	}
	turns := g.num("ring turns", 1, 3) * max(1, g.top().turns)
	if ahead == 0 || g.top().index != 0 { // what one run of the loop leaves, the next does not find
		ahead = 0
	}
	if ahead > 0 {
		size(turns*3 + 1)
		g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.all(shape, src)}, []ir.Arg{g.some(shape, g.m.Sets.At(s).First, 0, w, 1)})
	}
	g.begin()
	if ahead == 0 {
		size(g.top().turns)
	}
	write := func(k int64) {
		g.emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{g.all(shape, src), g.all(shape, sum)}, []ir.Arg{block(k)}, ir.Enum(ir.KeyOp, target.AluAdd))
	}
	read := func() {
		g.emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{block(0), g.all(shape, sum)}, []ir.Arg{g.all(shape, sum)}, ir.Enum(ir.KeyOp, target.AluMax))
	}
	switch ahead {
	case 0:
		write(0)
		g.steps(g.num("between", 0, 2))
		read()
	case 1:
		write(1)
		g.steps(g.num("between", 0, 2))
		read()
	case 2:
		read()
		g.steps(g.num("between", 0, 2))
		write(1)
	}
	g.end()
}

// accumulator adds products up in PSUM over the turns of a loop.
func (g *loopGen) accumulator() {
	y := g.matmulTile()
	x, w := g.pick(0), g.pick(0)
	product := func(fl int64) {
		g.emit(ir.OpMatmult, target.EnginePE, []ir.Arg{g.all(0, x), g.all(0, w)}, []ir.Arg{g.product(y)}, ir.Int(ir.KeyAccumulationFlag, fl))
	}
	product(1)
	g.begin()
	g.steps(g.num("before", 0, 2))
	product(4)
	g.end()
	product(6)
	g.psum = append(g.psum, y)
}

func (g *loopGen) matmulTile() ir.Loc {
	return g.b.PSUM(g.m.Names.Intern(g.name("p")), target.Float32, 16, 16)
}

func (g *loopGen) product(l ir.Loc) ir.Arg {
	return g.b.Chip(l, target.Float32, 0, 16, 0, ir.Pair{Step: 1, Num: 16})
}

// steps emits n instructions or loops.
func (g *loopGen) steps(n int) {
	for range n {
		g.step()
	}
}

func (g *loopGen) step() {
	shape := g.num("shape", 0, shapes-1)
	w := genShape[shape].words
	switch g.num("step", 0, 16) {
	case 0:
		g.load(shape)
	case 1:
		x := g.tile(shape)
		g.emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{g.all(shape, x)}, ir.Int(ir.KeyConstant, int64(math.Float32bits(float32(g.num("c", -3, 3))))))
		g.add(shape, x)
	case 2, 3: // a value of this turn
		x, y, z := g.pick(shape), g.pick(shape), g.tile(shape)
		g.emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{g.all(shape, x), g.all(shape, y)}, []ir.Arg{g.all(shape, z)}, ir.Enum(ir.KeyOp, target.AluSub))
		g.add(shape, z)
	case 4: // in pieces, one of them with gaps
		x, y, z := g.pick(shape), g.pick(shape), g.tile(shape)
		g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.some(shape, x, 0, w/2, 1)}, []ir.Arg{g.some(shape, z, 0, w/2, 1)})
		for k := range int64(2) {
			g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.some(shape, y, w/2, w/2+w/4, 1)}, []ir.Arg{g.some(shape, z, w/2+k, w, 2)})
		}
		g.add(shape, z)
	case 5: // carried: changed in part or as a whole
		x, y := g.pick(shape), g.pick(shape)
		g.emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{g.some(shape, x, 0, w/2, 1), g.some(shape, y, w/2, w, 1)}, []ir.Arg{g.some(shape, x, 0, w/2, 1)}, ir.Enum(ir.KeyOp, target.AluAdd))
	case 6:
		x, y := g.pick(shape), g.pick(shape)
		g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.all(shape, y)}, []ir.Arg{g.all(shape, x)})
	case 7:
		x, y := g.pick(shape), g.pick(shape)
		g.emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{g.all(shape, y), g.all(shape, y)}, []ir.Arg{g.all(shape, x)})
	case 8:
		g.save(shape, g.pick(shape))
	case 9: // a column by the number of the turn
		if e := g.top().index; e != 0 {
			x, y := g.pick(shape), g.pick(shape)
			col := g.m.Exprs.Add(ir.ExprRow{Kind: ir.ExprMod, A: e, C: w / 4})
			e = g.scaled(col, 4, 0)
			s := g.m.Locs.At(x).Set
			if g.num("read", 0, 1) == 0 {
				g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.indexed(shape, s, e, 0, 4)}, []ir.Arg{g.some(shape, y, 4, 8, 1)})
			} else {
				g.emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{g.some(shape, y, 4, 8, 1), g.indexed(shape, s, e, 0, 4)}, []ir.Arg{g.indexed(shape, s, e, 0, 4)},
					ir.Enum(ir.KeyOp, target.AluAdd))
			}
		}
	case 10, 16: // through DRAM, whose tensor may be written again while others have its bytes
		x, y := g.pick(shape), g.tile(shape)
		if ds := g.homes[shape]; len(ds) > 0 && g.num("again", 0, 2) > 0 {
			d := ds[g.num("dram", 0, len(ds)-1)]
			if g.num("read", 0, 1) == 0 {
				g.emit(ir.OpLoad, target.EngineSP, []ir.Arg{g.dense(shape, d)}, []ir.Arg{g.all(shape, y)})
				g.add(shape, y)
			} else {
				g.emit(ir.OpSave, target.EngineAct, []ir.Arg{g.all(shape, x)}, []ir.Arg{g.dense(shape, d)})
			}
			return
		}
		d := g.b.DRAM(g.m.Names.Intern(g.name("d")), ir.KindInternal, target.Float32, int64(genShape[shape].parts), w)
		g.homes[shape] = append(g.homes[shape], d)
		g.emit(ir.OpSave, target.EngineAct, []ir.Arg{g.all(shape, x)}, []ir.Arg{g.dense(shape, d)})
		g.emit(ir.OpLoad, target.EngineSP, []ir.Arg{g.dense(shape, d)}, []ir.Arg{g.all(shape, y)})
		g.add(shape, y)
	case 11: // a product of this turn
		y, x, w := g.matmulTile(), g.pick(0), g.pick(0)
		g.emit(ir.OpMatmult, target.EnginePE, []ir.Arg{g.all(0, x), g.all(0, w)}, []ir.Arg{g.product(y)}, ir.Int(ir.KeyAccumulationFlag, 3))
		g.psum = append(g.psum, y)
	case 12:
		if len(g.psum) > 0 {
			p, x := g.psum[g.num("psum", 0, len(g.psum)-1)], g.tile(0)
			g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.all(0, g.pick(0))}, []ir.Arg{g.all(0, x)})
			to := g.b.Chip(x, target.Float32, 0, 16, 0, ir.Pair{Step: 1, Num: 16})
			g.emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{g.product(p)}, []ir.Arg{to})
			g.add(0, x)
		}
	case 13:
		if len(g.open) < 4 {
			switch g.num("loop", 0, 3) {
			case 0:
				g.ring(shape)
			case 1:
				g.accumulator()
			default:
				g.begin()
				g.steps(g.num("body", 1, 6))
				g.end()
			}
		}
	case 15: // products that are all open or unread at once
		for k := range g.num("products", 2, 4) {
			y, x, w := g.matmulTile(), g.pick(0), g.pick(0)
			g.emit(ir.OpMatmult, target.EnginePE, []ir.Arg{g.all(0, x), g.all(0, w)}, []ir.Arg{g.product(y)}, ir.Int(ir.KeyAccumulationFlag, 3))
			g.psum = append(g.psum[:min(k, len(g.psum))], y)
		}
	case 14:
		if k := len(g.live[shape]); k > 4 {
			at := g.num("forget", 0, k-1)
			g.live[shape] = append(g.live[shape][:at:at], g.live[shape][at+1:]...)
		}
	}
}

// randomLoops draws a program of about n instructions or more.
func randomLoops(t *rapid.T, n int) *program {
	g := &loopGen{program: &program{}, t: t}
	g.m.Gen = generation(t, rapid.SampledFrom([]int{20, 30, 40}).Draw(t, "level"))
	g.b.NewFunc(&g.m, "main", "Block1")
	g.f = g.b.Func
	g.open = []genLoop{{block: g.b.Block}}
	g.steps(n / 4)
	g.begin()
	g.steps(n / 2)
	g.end()
	g.steps(n / 4)
	for shape, ls := range g.live {
		for _, l := range ls {
			if g.num("out", 0, 1) == 0 {
				g.save(shape, l)
			}
		}
	}
	g.b.Close()
	g.m.Blocks.At(g.open[0].block).Order = g.m.Order.AddSlice(g.open[0].order)
	return g.program
}

// simulator keeps its memory from one run to the next.
var simulator sim.Sim

// simulate runs a program on made-up numbers and returns the bytes of its outputs.
func simulate(m *ir.Module) (out []byte, err error) {
	s := &simulator
	err = s.Run(m, sim.Env{Input: func(name string, size int64) ([]byte, error) {
		b := make([]byte, 0, size)
		h := uint64(1)
		for _, c := range name {
			h = hash(h, uint64(c))
		}
		for i := range size / 4 {
			h = hash(h, uint64(i))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(int8(h>>17))/16))
		}
		return b, nil
	}})
	if err != nil {
		return nil, err
	}
	for set, r := range m.Sets.All() {
		if r.Kind.IsOutput() {
			l, _ := m.LocsOf(set)
			out = append(out, s.Bytes(m, l)...)
		}
	}
	return out, nil
}
