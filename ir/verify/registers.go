package verify

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Registers proves an allocation of scalar registers against the program before it: Remember it, allocate, Check. It shares nothing
// with the allocator.
//
// Each lane of a file and each word of memory that spill code touches holds a set of values, a value being what a register of the
// program before holds now. An instruction of that program must find its registers' values in the lanes that it names now, on every
// path: where paths meet, a place holds what it holds on all of them. Instructions may only have gone when they moved one register
// to another, and only saves, reloads and waits may have come.
type Registers struct {
	f      ir.Func
	insts  int            // instructions before
	regs   int            // registers before
	rows   []ir.RegRow    // of them
	blocks []rememberedAt // of the function, those of regions too
	order  []ir.Inst
	ops    map[ir.Inst][]regOp
	moves  map[ir.Inst][2]ir.Reg
}

type rememberedAt struct {
	block  ir.Block
	parent ir.Inst
	lo, hi int // in order
}

// regOp is a register that an operand names: arg counts operands, part tells the registers of one operand apart.
type regOp struct {
	arg   int
	part  int
	reg   ir.Reg
	write bool
}

// Remember keeps the program as it is.
func (g *Registers) Remember(m *ir.Module, f ir.Func) {
	*g = Registers{f: f, insts: m.Insts.Len(), regs: m.Regs.Len(), ops: map[ir.Inst][]regOp{}, moves: map[ir.Inst][2]ir.Reg{}}
	g.rows = append(g.rows, m.Regs.Rows()...)
	todo := slices.Clone(m.BlocksOf(f))
	for k := 0; k < len(todo); k++ {
		b := todo[k]
		at := rememberedAt{block: b, parent: m.Blocks.At(b).Parent, lo: len(g.order)}
		for _, i := range m.OrderOf(b) {
			g.order = append(g.order, i)
			if l := regOps(m, i); len(l) > 0 {
				g.ops[i] = l
			}
			ins, outs := m.Ins(i), m.Outs(i)
			if m.Insts.At(i).Op == ir.OpRegisterMove && len(ins) == 1 && len(outs) == 1 && ins[0].Kind == ir.ArgReg && outs[0].Kind == ir.ArgReg {
				g.moves[i] = [2]ir.Reg{ir.Reg(ins[0].Ref), ir.Reg(outs[0].Ref)}
			}
			if m.Insts.At(i).Op.Is(ir.FlagRegion) {
				todo = append(todo, m.BlockList.Of(m.Regions.Get(i).Blocks)...)
			}
		}
		at.hi = len(g.order)
		g.blocks = append(g.blocks, at)
	}
}

// regOps lists the registers of an instruction, those in addresses too.
func regOps(m *ir.Module, i ir.Inst) (l []regOp) {
	all := m.AllArgs(i)
	outs := len(all) - len(m.Outs(i))
	for k, a := range all {
		switch a.Kind {
		case ir.ArgReg:
			l = append(l, regOp{arg: k, reg: ir.Reg(a.Ref), write: k >= outs})
		case ir.ArgSym, ir.ArgSymPW, ir.ArgRegAP, ir.ArgSymImm:
			s := m.Syms.At(ir.Sym(a.Ref))
			part := 0
			for _, r := range append([]ir.Reg{s.Reg, s.SubReg}, exprRegs(m, s.Addr)...) {
				if r != 0 {
					l = append(l, regOp{arg: k, part: part, reg: r})
				}
				part++
			}
		}
	}
	return l
}

func exprRegs(m *ir.Module, e ir.Expr) (l []ir.Reg) {
	seen := map[ir.Expr]bool{0: true}
	for todo := []ir.Expr{e}; len(todo) > 0; {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[e] {
			continue
		}
		seen[e] = true
		r := m.Exprs.At(e)
		if r.Kind == ir.ExprReg {
			l = append(l, ir.Reg(r.Ref))
		}
		todo = append(todo, r.A)
		for _, t := range m.Terms.Of(r.Terms) {
			todo = append(todo, t.Expr)
		}
	}
	return l
}

// item is an instruction of the merged program.
type item struct {
	inst ir.Inst
	gone bool // it was dropped
}

// regUnit is a stretch of the merged program.
type regUnit struct {
	items []item
	succ  []int
	in    []uint64 // place and value, ascending
	seen  bool
}

// regPlace is where a value can be: a lane of an engine's file, or a word of memory.
type regPlace struct {
	engine target.Engine
	lane   int
	loc    ir.Loc
	word   int64
}

// regState is what a walk through a unit knows.
type regState struct {
	holds   map[uint32][]heldValue // by place
	version map[uint32]uint32      // by value: absent is 0, as on entry
	next    uint32
}

type heldValue struct{ value, version uint32 }

type regCheck struct {
	g      *Registers
	m      *ir.Module
	p      *problems
	lanes  int
	units  []regUnit
	first  map[ir.Block]int
	places map[regPlace]uint32
	report bool
	st     regState
}

// Check holds the module, after allocation, against what was remembered. lanes is the size of a file. Error: Bug.
func (g *Registers) Check(m *ir.Module, lanes int) error {
	c := &regCheck{g: g, m: m, p: &problems{m: m}, lanes: lanes, first: map[ir.Block]int{}, places: map[regPlace]uint32{}}
	c.build()
	for u := range c.units {
		c.answered(c.units[u].items)
	}
	if c.p.count > 0 || len(c.units) == 0 || len(g.blocks) == 0 {
		return c.p.err(target.Bug)
	}
	start := c.first[g.blocks[0].block]
	c.units[start].seen = true
	work := []int{start}
	for len(work) > 0 {
		u := work[len(work)-1]
		work = work[:len(work)-1]
		out := c.walk(u)
		for _, s := range c.units[u].succ {
			n := &c.units[s]
			switch {
			case !n.seen:
				n.seen, n.in = true, out
			default:
				both := intersect(n.in, out)
				if len(both) == len(n.in) {
					continue
				}
				n.in = both
			}
			work = append(work, s)
		}
	}
	c.report = true
	for u := range c.units {
		if c.units[u].seen {
			c.walk(u)
		}
	}
	return c.p.err(target.Bug)
}

func intersect(a, b []uint64) []uint64 {
	var both []uint64
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both = append(both, a[i])
			i, j = i+1, j+1
		}
	}
	return both
}

// build merges the two programs block by block and cuts them into units: after a branch, and around a loop instruction.
func (c *regCheck) build() {
	g, m := c.g, c.m
	type region struct{ unit, after int }
	regions := map[ir.Inst]region{}
	type end struct {
		unit  int
		block int // of g.blocks
	}
	var falls []end             // units that fall out of their block
	jumps := map[int]ir.Inst{}  // unit -> branch at its end
	breaks := map[int]ir.Inst{} // unit -> the loop that it leaves
	enters := map[int]ir.Inst{} // unit -> the loop behind it
	add := func() int { c.units = append(c.units, regUnit{}); return len(c.units) - 1 }
	for k, b := range g.blocks {
		u := add()
		c.first[b.block] = u
		open := true
		for _, it := range c.merge(b) {
			op := m.Insts.At(it.inst).Op
			c.structure(it)
			if op.Is(ir.FlagRegion) {
				if open {
					enters[u] = it.inst
				}
				r := add()
				c.units[r].items = []item{it}
				u = add()
				regions[it.inst] = region{r, u}
				open = true
				continue
			}
			if !open {
				u, open = add(), true
			}
			c.units[u].items = append(c.units[u].items, it)
			switch op {
			case ir.OpCompareAndBranch, ir.OpUnconditionalBranch:
				jumps[u], open = it.inst, false
			case ir.OpBreak:
				breaks[u], open = b.parent, false
			case ir.OpReturn, ir.OpExit, ir.OpHalt:
				open = false
			}
		}
		if open {
			falls = append(falls, end{u, k})
		}
	}
	body := func(i ir.Inst) (first int, ok bool) {
		l := m.BlockList.Of(m.Regions.Get(i).Blocks)
		if len(l) == 0 {
			return 0, false
		}
		return c.first[l[0]], true
	}
	asksLast := func(i ir.Inst) bool {
		if m.Insts.At(i).Op == ir.OpDoWhile {
			return true
		}
		x := m.Regions.Get(i).Axis
		if m.Insts.At(i).Op != ir.OpLoop || x == 0 {
			return false
		}
		n, ok := m.Axes.At(x).Trips()
		return ok && n > 0
	}
	to := func(u, s int) { c.units[u].succ = append(c.units[u].succ, s) }
	for u, i := range enters {
		if b, ok := body(i); ok && asksLast(i) {
			to(u, b)
		} else {
			to(u, regions[i].unit)
		}
	}
	for i, r := range regions {
		to(r.unit, r.after)
		if b, ok := body(i); ok {
			to(r.unit, b)
		}
	}
	for u, i := range breaks {
		if i != 0 {
			to(u, regions[i].after)
		}
	}
	for u, i := range jumps {
		keys := []ir.Key{ir.KeyTarget}
		if m.Insts.At(i).Op == ir.OpCompareAndBranch {
			keys = []ir.Key{ir.KeyOnTrue, ir.KeyOnFalse}
		}
		for _, k := range keys {
			s, ok := c.first[ir.Block(m.Attr(i, k))]
			if !ok {
				c.p.inst(i, "branches to a block that is not in the function")
				continue
			}
			to(u, s)
		}
	}
	for _, f := range falls {
		b := &g.blocks[f.block]
		switch {
		case f.block+1 < len(g.blocks) && c.sibling(b.block, g.blocks[f.block+1].block, b.parent):
			to(f.unit, c.first[g.blocks[f.block+1].block])
		case b.parent != 0:
			to(f.unit, regions[b.parent].unit)
		}
	}
}

// sibling reports that next stands behind b in the same list of blocks.
func (c *regCheck) sibling(b, next ir.Block, parent ir.Inst) bool {
	l := c.m.BlocksOf(c.g.f)
	if parent != 0 {
		l = c.m.BlockList.Of(c.m.Regions.Get(parent).Blocks)
	}
	// Blocks of a list are remembered one after another.
	return c.m.Blocks.At(next).Parent == parent && len(l) > 0 && l[len(l)-1] != b
}

// merge lines the instructions of a block up: those that were there, those that are gone, those that came.
func (c *regCheck) merge(b rememberedAt) (l []item) {
	old := c.g.order[b.lo:b.hi]
	for _, i := range c.m.OrderOf(b.block) {
		if int(i) >= c.g.insts {
			l = append(l, item{inst: i})
			continue
		}
		for len(old) > 0 && old[0] != i {
			l = append(l, item{old[0], true})
			old = old[1:]
		}
		if len(old) == 0 {
			c.p.inst(i, "was not in block %q before registers had numbers, or not at this place", c.m.Names.String(c.m.Blocks.At(b.block).Name))
			return nil
		}
		l = append(l, item{inst: i})
		old = old[1:]
	}
	for _, i := range old {
		l = append(l, item{i, true})
	}
	return l
}

// structure checks what can be said of an instruction alone.
func (c *regCheck) structure(it item) {
	m, i := c.m, it.inst
	op := m.Insts.At(i).Op
	if it.gone {
		if _, ok := c.g.moves[i]; !ok {
			c.p.inst(i, "is gone; only moves from register to register may go")
		}
		return
	}
	ops := regOps(m, i)
	if int(i) >= c.g.insts {
		if op != ir.OpTensorLoad && op != ir.OpTensorSave && op != ir.OpEventSemaphore {
			c.p.inst(i, "came with the registers' numbers; only saves, reloads and waits may")
		}
	} else {
		before := c.g.ops[i]
		if len(ops) != len(before) {
			c.p.inst(i, "names %d registers; it named %d", len(ops), len(before))
			return
		}
		for k, o := range ops {
			w := before[k]
			a, b := m.Regs.At(o.reg), &c.g.rows[w.reg]
			if o.arg != w.arg || o.part != w.part || o.write != w.write || a.Width != b.Width {
				c.p.inst(i, "operand %d: register %s stands where %s stood", o.arg, m.RegName(o.reg), m.Names.String(b.Name))
			}
			if b.Phys >= 0 && a.Phys != b.Phys {
				c.p.inst(i, "register %s moved from lane %d to %d", m.RegName(o.reg), b.Phys, a.Phys)
			}
		}
	}
	for _, o := range ops {
		r := m.Regs.At(o.reg)
		fixed := int(o.reg) < c.g.regs && c.g.rows[o.reg].Phys >= 0
		if r.Phys < 0 || int(r.Phys)+int(r.Width) > c.lanes && !fixed {
			c.p.inst(i, "register %s is at lane %d and takes %d of a file of %d", m.RegName(o.reg), r.Phys, r.Width, c.lanes)
		}
		if e := m.Insts.At(i).Engine; e != target.EngineUnassigned && e != r.Engine {
			c.p.inst(i, "runs on %s and names register %s of %s", e, m.RegName(o.reg), r.Engine)
		}
	}
}

func (c *regCheck) place(p regPlace) uint32 {
	id, ok := c.places[p]
	if !ok {
		id = uint32(len(c.places))
		c.places[p] = id
	}
	return id
}

// lanesOf are the places of a register as it is now.
func (c *regCheck) lanesOf(r ir.Reg) (l []uint32) {
	row := c.m.Regs.At(r)
	for k := range int(row.Width) {
		l = append(l, c.place(regPlace{engine: row.Engine, lane: int(row.Phys) + k}))
	}
	return l
}

// wordsOf are the places of a spill slot.
func (c *regCheck) wordsOf(a ir.Arg) (l []uint32) {
	f := c.m.FootprintOf(a.AP())
	for at := f.Lo; at < f.Hi; at += 4 {
		l = append(l, c.place(regPlace{loc: c.m.LocOf(a), word: at}))
	}
	return l
}

// values of a register of the program before: one a lane.
func (c *regCheck) values(r ir.Reg) (l []uint32) {
	for k := range int(c.g.rows[r].Width) {
		l = append(l, 2*uint32(r)+uint32(k))
	}
	return l
}

// walk runs through a unit from what is known on entry and gives what is known at its end.
func (c *regCheck) walk(u int) (out []uint64) {
	c.st = regState{holds: map[uint32][]heldValue{}, version: map[uint32]uint32{}}
	for _, x := range c.units[u].in {
		p := uint32(x >> 32)
		c.st.holds[p] = append(c.st.holds[p], heldValue{value: uint32(x)})
	}
	for _, it := range c.units[u].items {
		if int(it.inst) >= c.g.insts {
			c.came(it.inst)
			continue
		}
		c.stayed(it)
	}
	for p, l := range c.st.holds {
		for _, h := range l {
			if h.version == c.st.version[h.value] {
				out = append(out, uint64(p)<<32|uint64(h.value))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// came executes a save, a reload or a wait.
func (c *regCheck) came(i ir.Inst) {
	m := c.m
	op := m.Insts.At(i).Op
	if op == ir.OpEventSemaphore {
		return
	}
	from, to := m.Ins(i)[0], m.Outs(i)[0]
	var src, dst []uint32
	if op == ir.OpTensorLoad {
		src, dst = c.wordsOf(from), c.lanesOf(ir.Reg(to.Ref))
	} else {
		src, dst = c.lanesOf(ir.Reg(from.Ref)), c.wordsOf(to)
	}
	if c.report && len(src) != len(dst) {
		c.p.inst(i, "moves %d words to %d", len(src), len(dst))
	}
	for k := range min(len(src), len(dst)) {
		now := c.current(c.st.holds[src[k]])
		if c.report && len(now) == 0 {
			c.p.inst(i, "moves a word that does not hold the value of any register on every path")
		}
		c.st.holds[dst[k]] = now
	}
}

// answered checks that right behind each save and reload of a unit something waits for it.
func (c *regCheck) answered(items []item) {
	for k, it := range items {
		if int(it.inst) < c.g.insts || c.m.Insts.At(it.inst).Op == ir.OpEventSemaphore {
			continue
		}
		if k+1 == len(items) || !c.waited(it.inst, items[k+1].inst) {
			c.p.inst(it.inst, "nothing waits right behind it until memory has answered")
		}
	}
}

// waited reports that next waits for the update of i.
func (c *regCheck) waited(i, next ir.Inst) bool {
	if c.m.Insts.At(next).Engine != c.m.Insts.At(i).Engine {
		return false
	}
	for _, u := range c.m.SyncOps.Of(c.m.Syncs.Get(i).Updates) {
		for _, w := range c.m.SyncOps.Of(c.m.Syncs.Get(next).Waits) {
			if w.Sem == u.Sem && w.From == i {
				return true
			}
		}
	}
	return false
}

// stayed executes an instruction of the program before.
func (c *regCheck) stayed(it item) {
	m, g := c.m, c.g
	before := g.ops[it.inst]
	if len(before) == 0 {
		return
	}
	var now []regOp
	if !it.gone {
		now = regOps(m, it.inst)
		for k, o := range now {
			if !o.write {
				c.find(it.inst, before[k].reg, o.reg)
			}
		}
	}
	if mv, ok := g.moves[it.inst]; ok {
		c.moved(mv, now)
		return
	}
	for k, o := range now {
		if !o.write {
			continue
		}
		to := c.lanesOf(o.reg)
		for j, v := range c.values(before[k].reg) {
			c.st.holds[to[j]] = []heldValue{{v, c.renew(v)}}
		}
	}
}

// renew makes all that is known of a value stale.
func (c *regCheck) renew(v uint32) uint32 {
	c.st.next++
	c.st.version[v] = c.st.next
	return c.st.next
}

// find demands that the lanes of now hold what was holds in the program before.
func (c *regCheck) find(i ir.Inst, was, now ir.Reg) {
	if !c.report {
		return
	}
	at := c.lanesOf(now)
	for k, v := range c.values(was) {
		if !slices.Contains(c.st.holds[at[k]], heldValue{v, c.st.version[v]}) {
			r := c.m.Regs.At(now)
			c.p.inst(i, "reads register %s at lane %d of %s, which does not hold it on every path", c.m.RegName(was), int(r.Phys)+k, r.Engine)
			return
		}
	}
}

// moved gives what holds the source the destination's value too.
func (c *regCheck) moved(mv [2]ir.Reg, now []regOp) {
	src, dst := c.values(mv[0]), c.values(mv[1])
	for k, v := range dst {
		var with []uint32
		var content []heldValue
		if k < len(src) {
			old := heldValue{src[k], c.st.version[src[k]]}
			for p, l := range c.st.holds {
				if slices.Contains(l, old) {
					with = append(with, p)
				}
			}
			if now != nil {
				content = c.st.holds[c.lanesOf(now[0].reg)[k]]
			}
		}
		fresh := heldValue{v, c.renew(v)}
		content = append(c.current(content), fresh)
		for _, p := range with {
			c.st.holds[p] = append(c.current(c.st.holds[p]), fresh)
		}
		if now != nil {
			c.st.holds[c.lanesOf(now[1].reg)[k]] = content
		}
	}
}

// current is a copy of what is not stale.
func (c *regCheck) current(l []heldValue) (fresh []heldValue) {
	for _, h := range l {
		if h.version == c.st.version[h.value] {
			fresh = append(fresh, h)
		}
	}
	return fresh
}
