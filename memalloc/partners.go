package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Partners are SB units that should share a layout: the operands of the matmuls of one accumulation chain, and both sides of a copy
// from SB to SB, as far as they start at the same partition of their locations. The relation is closed: partners of partners are
// partners. What one member of a group must start at, all do; a group is stacked as one; and a unit that finds no place as it would
// like is tried near its partners before it gives up alignments.
//
// A group that does not fit into SB as a whole is no group: it could never lie together. The reference drops all groups then.
type partners struct {
	root  []uint32 // union-find by unit
	next  []uint32 // by unit: the next of its group, around; itself when it is alone
	start []int16  // by root: where all members start, anyStart, or mixedStart
	need  []int64  // by root: granules of all members
	chain arena.Column[ir.Loc, uint32]
	order []uint32
	todo  []bool

	groups, dropped int // of more than one member; those of them that are too large
}

const (
	anyStart   = -1
	mixedStart = -2
)

// findPartners groups the units of a round.
func (ws *Workspace) findPartners(m *ir.Module, opt *Options) {
	p := &ws.partners
	n := len(ws.ranges.Units)
	p.root, p.next = arena.Resized(p.root, n), arena.Resized(p.next, n)
	p.start, p.need = arena.Resized(p.start, n), arena.Resized(p.need, n)
	for i := range n {
		p.root[i], p.next[i] = uint32(i), uint32(i)
	}
	p.chain.Reset()
	for _, i := range ws.lin.Insts {
		switch r := m.Insts.At(i); {
		case r.Op == ir.OpTensorCopy && r.NIn == 1 && r.NOut == 1:
			p.pair(ws.sbOperand(m, m.Ins(i)[0]), ws.sbOperand(m, m.Outs(i)[0]))
		case r.Op.Is(ir.FlagMatmul) && r.NOut == 1:
			ws.chainPartners(m, i)
		}
	}
	ws.boundGroups(m, opt)
	ws.fixClasses()
}

// operand is a unit, 1 + its number or 0, and the partition of it at which an access starts.
type operand struct {
	unit  uint32
	start uint8
}

func (ws *Workspace) sbOperand(m *ir.Module, a ir.Arg) operand {
	if a.AP() == 0 {
		return operand{}
	}
	row := m.APs.At(a.AP())
	u := ws.ranges.UnitOf(row.Loc)
	if u == ssa.NoUnit {
		return operand{}
	}
	return operand{u + 1, row.Start}
}

// pair makes two operands partners if their offsets from the start of the group are the same.
func (p *partners) pair(a, b operand) {
	if a.unit != 0 && b.unit != 0 && a.start == b.start {
		p.union(a.unit-1, b.unit-1)
	}
}

// chainPartners makes the operands of a matmul partners of those of the matmul before it in its accumulation chain.
func (ws *Workspace) chainPartners(m *ir.Module, i ir.Inst) {
	p := &ws.partners
	to := m.LocOf(m.Outs(i)[0])
	first := p.chain.Get(to)
	if m.AttrInt(i, ir.KeyAccumulationFlag)&ir.GroupStart != 0 {
		first = 0
	}
	for _, a := range m.Ins(i) {
		o := ws.sbOperand(m, a)
		if o.unit == 0 || o.start != 0 {
			continue
		}
		if first == 0 {
			first = o.unit
		} else if m.AttrInt(i, ir.KeyAccumulationFlag)&ir.GroupStart == 0 {
			p.union(first-1, o.unit-1)
		}
	}
	p.chain.Set(to, first)
}

func (p *partners) find(i uint32) uint32 {
	for p.root[i] != i {
		p.root[i] = p.root[p.root[i]]
		i = p.root[i]
	}
	return i
}

// union joins two groups. The older root stays, and the rings of members are spliced.
func (p *partners) union(a, b uint32) {
	ra, rb := p.find(a), p.find(b)
	if ra == rb {
		return
	}
	p.root[max(ra, rb)] = min(ra, rb)
	p.next[a], p.next[b] = p.next[b], p.next[a]
}

// boundGroups adds up the groups and takes those apart that SB could not hold.
func (ws *Workspace) boundGroups(m *ir.Module, opt *Options) {
	p, g := &ws.partners, &ws.sb
	p.groups, p.dropped = 0, 0
	clear(p.need)
	for i := range p.root {
		p.need[p.find(uint32(i))] += int64(g.at[i].hi - g.at[i].lo)
	}
	for i := range p.root {
		if p.root[i] != uint32(i) || p.next[i] == uint32(i) {
			continue
		}
		p.groups++
		if p.need[i] <= int64(g.n-g.floor) {
			continue
		}
		p.dropped++
		largest := uint32(i)
		for j := p.next[i]; j != uint32(i); {
			if g.at[j].hi-g.at[j].lo > g.at[largest].hi-g.at[largest].lo {
				largest = j
			}
			p.next[j], j = j, p.next[j]
		}
		p.next[i] = uint32(i)
		if opt.Log != nil {
			opt.Log.Info("a group is too large for SB, its members are no partners", "group", m.LocName(ws.ranges.Units[i].First),
				"bytes", p.need[i]*granule, "largest", m.LocName(ws.ranges.Units[largest].First), "of", m.Locs.At(ws.ranges.Units[largest].First).Bytes)
		}
	}
}

// fixClasses gives all members of a group the start that one of them must have.
func (ws *Workspace) fixClasses() {
	p, g, nodes := &ws.partners, &ws.sb, ws.solver.Nodes
	for i := range p.start {
		p.start[i] = anyStart
	}
	for i := range p.root {
		c, band := g.at[i].class, g.at[i].quads
		if band == 0 {
			band = candidates(c)[0]
		}
		if p.next[i] == uint32(i) || !nodes[i].Fixed && (c == class32 || c == class64) {
			continue
		}
		at := int16(lowest(band) * target.QuadrantPartitions)
		if s := &p.start[p.find(uint32(i))]; *s == anyStart {
			*s = at
		} else if *s != at {
			*s = mixedStart
		}
	}
	for i := range p.root {
		c := g.at[i].class
		at := p.start[p.find(uint32(i))]
		if p.next[i] == uint32(i) || at < 0 || nodes[i].Fixed {
			continue
		}
		fixed := c
		if q := uint8(at / target.QuadrantPartitions); c == class32 {
			fixed = 1 + q
		} else if c == class64 && q%2 == 0 {
			fixed = class64 + 1 + q/2
		}
		if fixed != c {
			g.at[i].class, nodes[i].Class = fixed, fixed
			nodes[i].Room = nodes[i].Room / bandCount[c] * bandCount[fixed]
		}
	}
}

// restack puts the members of each group next to each other, where the first of them is popped.
func (p *partners) restack(order []uint32) {
	if p.groups == p.dropped {
		return
	}
	p.todo = arena.Resized(p.todo, len(p.next))
	clear(p.todo)
	for _, i := range order {
		p.todo[i] = true
	}
	p.order = append(p.order[:0], order...)
	to := len(order)
	for k := len(p.order) - 1; k >= 0; k-- {
		i := p.order[k]
		if !p.todo[i] {
			continue
		}
		for j := i; ; {
			if p.todo[j] {
				p.todo[j] = false
				to--
				order[to] = j
			}
			if j = p.next[j]; j == i {
				break
			}
		}
	}
}

// near tries the band of each partner that has a place, from its length below that place to its length above.
func (r *rects) near(n uint32) bool {
	p := &r.at[n]
	length := int(p.hi - p.lo)
	for j := r.partners[n]; j != n; j = r.partners[j] {
		o := &r.at[j]
		if o.quads == 0 {
			continue
		}
		for _, band := range candidates(p.class) {
			if band&o.quads == 0 || lowest(band) != lowest(o.quads) {
				continue
			}
			from, to := max(r.floor, int(o.lo)-length), min(r.n, int(o.hi)+length)
			w := r.whole
			if p.class != class128 {
				w = r.taken(band, to)
			}
			if at := Fit(w, from, to, length, p.least); at >= 0 {
				return p.put(at, length, band)
			}
		}
	}
	return false
}
