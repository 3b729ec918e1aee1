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
	return new(Workspace).Lower(g, gen, opt, m)
}

// Workspace is the storage of lowerings, one after the other: the second of a kind allocates next to nothing. It serves one
// goroutine. The zero value is ready.
type Workspace struct {
	l lowering
}

// Lower is the function Lower in the storage of w.
func (w *Workspace) Lower(g *graph.Graph, gen *target.Generation, opt Options, m *ir.Module) (Stats, error) {
	if !gen.CodeGen {
		return Stats{}, target.NotSupported(gen.Name, "target %s has no code generator", gen.Name)
	}
	l := &w.l
	l.start(g, gen, opt, m)
	l.planAll()
	if l.err == nil {
		l.declare()
		l.emitUnits()
		for i := range l.outs {
			l.finishOutput(&l.outs[i])
		}
	}
	l.b.Close()
	l.g, l.m = nil, nil
	if l.err != nil {
		m.Reset()
		return Stats{}, l.err
	}
	l.finishStats(m)
	return l.stats, nil
}

// start makes everything empty, and keeps the storage.
func (l *lowering) start(g *graph.Graph, gen *target.Generation, opt Options, m *ir.Module) {
	l.g, l.gen, l.opt, l.m, l.err = g, gen, opt, m, nil
	l.vals.Reset()
	l.args.Reset()
	l.ints.Reset()
	l.own.Reset()
	l.nodes.Reset()
	l.wraps.Reset()
	clear(l.tuples)
	l.consts, l.dots, l.convs, l.wins, l.pieces, l.takes = l.consts[:0], l.dots[:0], l.convs[:0], l.wins[:0], l.pieces[:0], l.takes[:0]
	l.homes.Reset()
	l.outs, l.params = l.outs[:0], l.params[:0]
	l.stats, l.opCount = Stats{}, [graph.NumOps]int64{}
	l.cur = 0

	l.taken.Reset()
	l.sources.Reset()
	l.ext.Reset()
	l.homed.Reset()
	l.stays.Reset()
	l.seq, l.flip, l.counting = 0, false, false
	l.identities = [target.NumDtypes]ir.Loc{}
	l.kept.Reset()
	l.keptAxes.Reset()
	l.keptWindows.Reset()
	l.keptPieces.Reset()

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

func (l *lowering) finishStats(m *ir.Module) {
	for _, r := range m.Locs.Rows() {
		if r.Space == target.SpaceDRAM {
			l.stats.DRAM += r.Bytes * int64(r.Parts)
		}
	}
	kinds := 0
	for _, n := range l.opCount {
		if n > 0 {
			kinds++
		}
	}
	l.stats.ByOp = make([]OpCount, 0, kinds) // belongs to the caller
	for op := graph.Op(0); op < graph.NumOps; op++ {
		if n := l.opCount[op]; n > 0 {
			l.stats.ByOp = append(l.stats.ByOp, OpCount{op, n})
		}
	}
}
