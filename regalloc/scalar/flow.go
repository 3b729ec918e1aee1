package scalar

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// A program point is the position of an instruction in the flat order. Its reads stand at slot 2p and its writes at 2p+1, so that
// a value that is read last may leave its lane to the result.
type slot = uint32

func readAt(p uint32) slot  { return 2 * p }
func writeAt(p uint32) slot { return 2*p + 1 }

// none is no node.
const none = ^uint32(0)

// node is a stretch of instructions that run one after another: insts[lo:hi], perhaps none.
type node struct {
	lo, hi uint32
	succ   [2]uint32
}

// flow is the flat order of a function and the control flow in it. Regions are spliced in: the body of a loop that may make no
// turn stands behind the loop instruction, which is its head; the body of one that makes a turn before it asks stands in front of
// it. Blocks that nothing reaches have nodes too, since their instructions want registers all the same.
type flow struct {
	insts  []ir.Inst
	nodes  []node
	weight []int64 // by node: how often it counts as run, 10 to the power of the loops around it, at most 1000

	nodeOf   []uint32 // by point
	blockAt  []uint32 // by block: its first node
	predOff  []uint32
	preds    []uint32
	calls    []uint32 // points of calls
	branches []branch
	breaks   []uint32 // nodes that leave the loops that are open
	stack    []frame
	open     bool // the last node takes further instructions
}

// branch waits until its targets have nodes.
type branch struct {
	node uint32
	inst ir.Inst
	keys [2]ir.Key
}

// frame is a place in the walk over nested blocks.
type frame struct {
	blocks arena.Span // left of the list
	order  arena.Span // left of the block
	within bool       // in a block
	region ir.Inst    // whose body it is
	head   uint32     // node of the region when it stands in front of its body
	body   uint32     // first node of the body
	breaks int        // those from here on leave this region
}

const maxWeight = 1000

// build lays out the function. Errors: User for a branch that goes nowhere in the function.
func (f *flow) build(m *ir.Module, fn ir.Func) error {
	f.insts, f.nodes, f.nodeOf, f.branches, f.breaks, f.calls = f.insts[:0], f.nodes[:0], f.nodeOf[:0], f.branches[:0], f.breaks[:0], f.calls[:0]
	f.blockAt = arena.Resized(f.blockAt, m.Blocks.Len())
	for i := range f.blockAt {
		f.blockAt[i] = none
	}
	f.open = false
	f.stack = append(f.stack[:0], frame{blocks: m.Funcs.At(fn).Blocks, head: none})
	for len(f.stack) > 0 {
		top := &f.stack[len(f.stack)-1]
		switch {
		case top.within && top.order.Len > 0:
			i := m.Order.Of(top.order)[0]
			top.order.Off++
			top.order.Len--
			if err := f.inst(m, i); err != nil {
				return err
			}
		case top.within:
			top.within = false
			f.fall()
		case top.blocks.Len > 0:
			b := m.BlockList.Of(top.blocks)[0]
			top.blocks.Off++
			top.blocks.Len--
			top.within, top.order = true, m.Blocks.At(b).Order
			f.blockAt[b] = f.begin()
		default:
			f.leave(top)
			f.stack = f.stack[:len(f.stack)-1]
		}
	}
	if err := f.resolve(m, fn); err != nil {
		return err
	}
	f.link()
	f.weigh()
	return nil
}

// begin opens a node.
func (f *flow) begin() uint32 {
	at := uint32(len(f.insts))
	f.nodes = append(f.nodes, node{lo: at, hi: at, succ: [2]uint32{none, none}})
	f.open = true
	return uint32(len(f.nodes) - 1)
}

// add appends an instruction to the last node.
func (f *flow) add(i ir.Inst) {
	n := uint32(len(f.nodes) - 1)
	f.insts = append(f.insts, i)
	f.nodeOf = append(f.nodeOf, n)
	f.nodes[n].hi++
}

// fall closes the open node: the next one of the flat order follows it.
func (f *flow) fall() {
	if f.open {
		f.nodes[len(f.nodes)-1].succ[0] = uint32(len(f.nodes))
		f.open = false
	}
}

func (f *flow) inst(m *ir.Module, i ir.Inst) error {
	op := m.Insts.At(i).Op
	if op.Is(ir.FlagRegion) {
		body := m.Regions.Get(i)
		inner := frame{blocks: body.Blocks, region: i, head: none, breaks: len(f.breaks)}
		f.fall()
		if !turnsFirst(m, op, body) {
			inner.head = f.begin()
			f.add(i)
			f.fall()
		}
		inner.body = uint32(len(f.nodes))
		f.stack = append(f.stack, inner)
		return nil
	}
	if !f.open {
		f.begin() // behind a branch: nothing comes here
	}
	f.add(i)
	n := uint32(len(f.nodes) - 1)
	switch op {
	case ir.OpCall:
		f.calls = append(f.calls, uint32(len(f.insts)-1))
	case ir.OpCompareAndBranch:
		f.branches = append(f.branches, branch{n, i, [2]ir.Key{ir.KeyOnTrue, ir.KeyOnFalse}})
		f.open = false
	case ir.OpUnconditionalBranch:
		f.branches = append(f.branches, branch{n, i, [2]ir.Key{ir.KeyTarget}})
		f.open = false
	case ir.OpBreak:
		if len(f.stack) == 1 {
			return target.Errorf(target.User, "%s breaks out of no loop", m.InstName(i))
		}
		f.breaks = append(f.breaks, n)
		f.open = false
	case ir.OpReturn, ir.OpExit, ir.OpHalt:
		f.open = false
	}
	return nil
}

// leave ends a list of blocks: a loop goes back, and what follows it begins.
func (f *flow) leave(top *frame) {
	next := uint32(len(f.nodes))
	if next > 0 && f.nodes[next-1].succ[0] == next && (top.region == 0 || top.head != none) {
		// The end of the function, or back to the head. A head without a body only goes on.
		f.nodes[next-1].succ[0] = none
		if top.head != none && top.head != next-1 {
			f.nodes[next-1].succ[0] = top.head
		}
	}
	if top.region == 0 {
		return
	}
	from := top.head
	if from == none {
		from = f.begin()
		f.add(top.region)
		f.nodes[from].succ[0] = top.body
	}
	after := f.begin() // the rest of the block around
	f.nodes[from].succ[1] = after
	for _, n := range f.breaks[top.breaks:] {
		f.nodes[n].succ[0] = after
	}
	f.breaks = f.breaks[:top.breaks]
}

// turnsFirst reports a loop whose body runs before its instruction reads anything: a do-while, and a counted loop of at least one
// turn. For any other the body may not run at all.
func turnsFirst(m *ir.Module, op ir.Opcode, r ir.RegionRow) bool {
	switch {
	case op == ir.OpDoWhile:
		return true
	case op == ir.OpLoop && r.Axis != 0:
		n, ok := m.Axes.At(r.Axis).Trips()
		return ok && n > 0
	}
	return false
}

// resolve gives branches the nodes of their targets.
func (f *flow) resolve(m *ir.Module, fn ir.Func) error {
	for _, t := range f.branches {
		s := &f.nodes[t.node].succ
		for k, key := range t.keys {
			if key == ir.KeyNone {
				continue
			}
			b := m.Attr(t.inst, key)
			if b == 0 || b >= uint64(len(f.blockAt)) || f.blockAt[b] == none {
				return target.Errorf(target.User, "%s (%s): %s is no block of function %s", m.InstName(t.inst), m.Insts.At(t.inst).Op, key, m.Names.String(m.Funcs.At(fn).Name))
			}
			s[k] = f.blockAt[b]
		}
		if s[0] == s[1] {
			s[1] = none
		}
	}
	return nil
}

// link lists the predecessors.
func (f *flow) link() {
	f.predOff = arena.Zeroed(f.predOff, len(f.nodes)+2)
	edges := 0
	for i := range f.nodes {
		for _, s := range f.nodes[i].succ {
			if s != none {
				f.predOff[s+2]++
				edges++
			}
		}
	}
	for i := 2; i < len(f.predOff); i++ {
		f.predOff[i] += f.predOff[i-1]
	}
	f.preds = arena.Resized(f.preds, edges)
	for i := range f.nodes {
		for _, s := range f.nodes[i].succ {
			if s != none {
				f.preds[f.predOff[s+1]] = uint32(i)
				f.predOff[s+1]++
			}
		}
	}
	f.predOff = f.predOff[:len(f.nodes)+1]
}

func (f *flow) predsOf(n uint32) []uint32 { return f.preds[f.predOff[n]:f.predOff[n+1]] }

// weigh guesses how often nodes run: an edge that goes back makes a loop of what stands between its ends, once for each target.
// Exact for the layouts that compilers make; a guess for a tangle, which makes code slower and never wrong.
func (f *flow) weigh() {
	f.weight = arena.Zeroed(f.weight, len(f.nodes)+1)
	for to := range f.nodes {
		last, back := uint32(0), false
		for _, from := range f.predsOf(uint32(to)) {
			if from >= uint32(to) {
				last, back = max(last, from), true
			}
		}
		if back {
			f.weight[to]++
			f.weight[last+1]--
		}
	}
	depth := int64(0)
	for n := range f.nodes {
		depth += f.weight[n]
		w := int64(1)
		for d := int64(0); d < depth && w < maxWeight; d++ {
			w *= 10
		}
		f.weight[n] = w
	}
	f.weight = f.weight[:len(f.nodes)]
}
