package tile

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Options of Lower. The zero value is the default of each.
type Options struct {
	// TileSBBytes is the bytes a partition of SBUF that plans may use; 0 is 90 % of what the generation offers.
	TileSBBytes int64
	// MaxInstructions refuses larger programs before anything is emitted; 0 is 4,000,000.
	MaxInstructions int64
	// HBMBytes is the DRAM window of a core; 0 is the generation's.
	HBMBytes int64
	// Level is the data reuse of products.
	Level Level
}

// DefaultMaxInstructions is the bound that an Options without one has.
const DefaultMaxInstructions = 4_000_000

// Stats is what a lowering emitted.
type Stats struct {
	Insts      int64
	Matmuls    int64
	Transposes int64 // products with the identity, not among Matmuls
	Loaded     int64 // DRAM bytes read, copies included
	Saved      int64 // DRAM bytes written
	DRAM       int64 // bytes of all DRAM tensors

	// Descriptors is the element descriptors of all transfers; one holds four axes a side.
	Descriptors int64
	// Counted is the instructions that the closed form foretold.
	Counted  int64
	ByOpcode [ir.NumOpcodes]int64
	ByOp     []OpCount // model operators in order of their number
}

// OpCount is the instructions of one kind of model operator.
type OpCount struct {
	Op    graph.Op
	Insts int64
}

// Lower writes the program of a canonical graph for one generation into m, which it resets: one function of one straight
// block. What it cannot lower it refuses by the operator's or type's name (class Unsupported); what would be too large, by
// need and limit (class Limit), before it emits anything.
func Lower(g *graph.Graph, gen *target.Generation, opt Options, m *ir.Module) (Stats, error) {
	if !gen.CodeGen {
		return Stats{}, target.NotSupported(gen.Name, "target %s has no code generator", gen.Name)
	}
	l := newLowering(g, gen, opt, m)
	l.planAll()
	if l.err == nil {
		l.declare()
		l.emitUnits()
		for i := range l.outs {
			l.finishOutput(&l.outs[i])
		}
	}
	l.b.Close()
	if l.err != nil {
		m.Reset()
		return Stats{}, l.err
	}
	l.finishStats()
	return l.stats, nil
}

func newLowering(g *graph.Graph, gen *target.Generation, opt Options, m *ir.Module) *lowering {
	l := &lowering{g: g, gen: gen, opt: opt, m: m}
	l.byView = map[inputKey]int{}
	l.tuples = map[graph.Node][]view{}
	l.budget = opt.TileSBBytes
	if l.budget <= 0 {
		l.budget = int64(gen.SBUsable()) * 9 / 10
	}
	if opt.MaxInstructions <= 0 {
		l.opt.MaxInstructions = DefaultMaxInstructions
	}
	if opt.HBMBytes <= 0 {
		l.opt.HBMBytes = gen.HBMBytes()
	}
	m.Reset()
	m.Gen = gen
	m.Name = m.Names.Intern(g.Name)
	l.b.NewFunc(m, "sg0000", "Block1")
	return l
}

// planAll does everything up to the first instruction.
func (l *lowering) planAll() {
	l.importGraph()
	if l.err != nil {
		return
	}
	l.dropDead()
	l.formUnits()
	l.markExternal()
	l.claimOutputs()
	l.chooseResidents()
	if l.err == nil {
		l.refuse()
	}
}

func (l *lowering) finishStats() {
	for _, r := range l.m.Locs.Rows() {
		if r.Space == target.SpaceDRAM {
			l.stats.DRAM += r.Bytes * int64(r.Parts)
		}
	}
	for op := graph.Op(0); op < graph.NumOps; op++ {
		if n := l.opCount[op]; n > 0 {
			l.stats.ByOp = append(l.stats.ByOp, OpCount{op, n})
		}
	}
}
