package scalar

import (
	"log/slog"
	"time"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// Options bound the allocator. The zero value is the machine as it is.
type Options struct {
	// Lanes is the size of an engine's register file; 0 is the generation's.
	Lanes int
	// SBBytes is the bytes of a partition of SBUF that spill slots may lie in; 0 is the generation's.
	SBBytes int64
	// Watchdog is the wall-clock limit; 0 is regalloc.DefaultWatchdog.
	Watchdog time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log hears of attempts at debug level; nil is silent.
	Log *slog.Logger
}

// Metrics is what the allocator did to one function. The Scores are the workspace's.
type Metrics struct {
	Registers int // that were named by an instruction, after spilling
	Values    int // pieces of them that got a lane of their own choice
	Coalesced int // moves whose ends were made one
	Dropped   int // of them, moves that are gone
	Rounds    int // of spilling, 0 when everything found a lane at once

	Scores      []int64 // of each select, the last is 0: summed cost of what found no lane, lower is better
	Spilled     int     // values sent to memory
	Stores      int
	Reloads     int
	SlotBytes   int64 // memory for them
	SpillCycles int64 // what stores and reloads cost, each as often as its loops turn
	SpillTime   time.Duration

	HighWater   int     // lanes of the fullest engine
	Utilisation float64 // percent of a file that they are
}

// Workspace is the storage of one worker's allocator. The zero value is ready; a second function of the same size on it allocates
// nothing unless it spills. Not for concurrent use.
type Workspace struct {
	flow   flow
	uses   uses
	lives  lives
	solver regalloc.Solver
	lanes  regalloc.Lanes
	result regalloc.Result
	guard  regalloc.Guard
	joins  joins

	segs    []regalloc.Seg
	nodeWeb []uint32 // by node of the engine at hand: its web
	webNode []uint32 // by web
	laneOf  []int32  // by web
	homeOf  []uint32 // by web: 1 + its home, when it is to be spilled
	homes   []home
	spill   spiller
	edits   ir.Edits
	mt      Metrics
}

// Colour gives every register that an instruction of the function names a place in its engine's file, RegRow.Phys. Where the lanes
// do not suffice, registers live in memory between a write and a read. What a register holds at different times without a path
// between may get registers of its own; a move between two that share a lane is dropped.
//
// Errors: User for a register that may be read before it is written, that two engines name or that has no engine, and for physical
// numbers of the producer that contradict each other; Unsupported for a register across a call; Limit when an instruction needs
// more lanes than there are, by the name of a register; regalloc.TimeoutError.
func Colour(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (Metrics, error) {
	mt := &ws.mt
	*mt = Metrics{Scores: mt.Scores[:0]}
	if m.Regs.Len() == 1 {
		return *mt, nil
	}
	lanes := m.Gen.Registers
	if opt.Lanes > 0 {
		lanes = min(opt.Lanes, lanes)
	}
	temps := uint32(m.Regs.Len())
	ws.guard = regalloc.Guard{What: "registers", Limit: opt.Watchdog, Now: opt.Now}
	ws.guard.Start()
	began := ws.guard.Now()
	ws.spill.begin(m, f, opt)
	if opt.Log != nil {
		opt.Log.Debug("allocating registers", "function", m.Names.String(m.Funcs.At(f).Name))
	}
	for {
		if err := ws.analyse(m, f, temps); err != nil {
			return *mt, err
		}
		score, lacking := int64(0), int64(0)
		ws.homes = ws.homes[:0]
		mt.HighWater, mt.Coalesced = 0, 0
		for _, e := range target.Sequencers {
			if err := ws.engine(m, e, lanes); err != nil {
				return *mt, err
			}
			if ws.result.Score > regalloc.Infinite-score {
				score = regalloc.Infinite
			} else {
				score += ws.result.Score
			}
			for _, n := range ws.result.Unplaced {
				lacking += int64(ws.lanes.Width(n))
			}
		}
		mt.Scores = append(mt.Scores, score)
		if opt.Log != nil {
			opt.Log.Debug("registers attempt", "iteration", mt.Rounds, "score", score, "values", len(ws.lives.webs), "unplaced", len(ws.homes))
		}
		if len(ws.homes) == 0 {
			break
		}
		if err := ws.guard.Next(4*lacking, true); err != nil {
			return *mt, err
		}
		if err := ws.spillHomes(m); err != nil {
			return *mt, err
		}
		mt.Rounds++
		mt.SpillTime = ws.guard.Now().Sub(began)
	}
	ws.commit(m, f, lanes)
	if opt.Log != nil {
		opt.Log.Debug("registers placed", "spill_cycles", mt.SpillCycles, "spilled", mt.Spilled, "used_percent", mt.Utilisation,
			"coalesced", mt.Coalesced, "spill_time", mt.SpillTime)
	}
	return *mt, nil
}

// analyse finds the values of the function and where they are live.
func (ws *Workspace) analyse(m *ir.Module, f ir.Func, temps uint32) error {
	if err := ws.flow.build(m, f); err != nil {
		return err
	}
	if err := ws.uses.build(m, &ws.flow); err != nil {
		return err
	}
	if err := ws.lives.build(m, &ws.flow, &ws.uses, temps); err != nil {
		return err
	}
	n := len(ws.lives.webs)
	ws.webNode = arena.Resized(ws.webNode, n)
	ws.laneOf = arena.Resized(ws.laneOf, n)
	ws.homeOf = arena.Resized(ws.homeOf, n)
	for w := range n {
		ws.webNode[w], ws.laneOf[w], ws.homeOf[w] = none, -1, 0
	}
	return nil
}

var weight1 = [1]int32{1}

// engine colours the values of one engine. Those that find no lane and may be spilled get a home.
func (ws *Workspace) engine(m *ir.Module, e target.Engine, lanes int) error {
	ws.number(e)
	ws.result.Unplaced, ws.result.Stuck, ws.result.Score = ws.result.Unplaced[:0], ws.result.Stuck[:0], 0
	if len(ws.nodeWeb) == 0 {
		return nil
	}
	s := &ws.solver
	s.Weight, s.Classes, s.Metric = weight1[:], 1, regalloc.MetricCap
	s.Graph.Stored = len(ws.uses.moves) > 0 // joining asks for neighbours again and again
	s.Graph.Build(len(ws.nodeWeb), ws.segs)
	ws.lanes.Reset(len(ws.nodeWeb), lanes)
	if err := ws.describe(m); err != nil {
		return err
	}
	ws.coalesce(m, e, lanes)
	s.Simplify()
	regalloc.Select(s, &ws.lanes, &ws.result)
	if len(ws.result.Stuck) > 0 {
		ws.lanes.Forget(s.Nodes)
		s.InfiniteBySize()
		regalloc.Select(s, &ws.lanes, &ws.result)
	}
	if len(ws.result.Stuck) > 0 && len(ws.result.Unplaced) == 0 {
		return ws.exhausted(m, e, lanes)
	}
	if err := ws.contradiction(m); err != nil {
		return err
	}
	j := &ws.joins
	for n, w := range ws.nodeWeb {
		at := ws.lanes.At[j.class[n]]
		ws.laneOf[w] = at
		if at >= 0 {
			ws.mt.HighWater = max(ws.mt.HighWater, min(lanes, int(at)+ws.lanes.Width(j.class[n])))
		}
	}
	ws.sendHome(e)
	return nil
}

// number makes nodes of the webs of an engine, in order of their first write.
func (ws *Workspace) number(e target.Engine) {
	ws.segs, ws.nodeWeb = ws.segs[:0], ws.nodeWeb[:0]
	for _, s := range ws.lives.segs {
		if ws.uses.engine[ws.lives.webs[s.Node].reg] != e {
			continue
		}
		n := &ws.webNode[s.Node]
		if *n == none {
			*n = uint32(len(ws.nodeWeb))
			ws.nodeWeb = append(ws.nodeWeb, s.Node)
		}
		ws.segs = append(ws.segs, regalloc.Seg{Start: s.Start, End: s.End, Node: *n})
	}
}

// describe tells the solver about the nodes, each a web.
func (ws *Workspace) describe(m *ir.Module) error {
	s := &ws.solver
	s.Nodes = arena.Resized(s.Nodes, len(ws.nodeWeb))
	kinds := [3]regalloc.Node{1: ws.lanes.Node(1, 0), 2: ws.lanes.Node(2, 0)}
	for n, w := range ws.nodeWeb {
		d := &ws.lives.webs[w]
		width := m.Regs.At(ir.Reg(d.reg)).Width
		s.Nodes[n] = kinds[width]
		s.Nodes[n].Cost = d.cost
		if d.hard || d.short() {
			s.Nodes[n].Cost = regalloc.Infinite
		}
		ws.lanes.SetWidth(uint32(n), int(width))
		if d.fixed >= 0 {
			if int(d.fixed)+int(width) > 64 {
				return target.Errorf(target.User, "register %s is at lane %d and takes %d; the last one is 63", m.RegName(ir.Reg(d.reg)), d.fixed, width)
			}
			s.Nodes[n].Fixed = true
			ws.lanes.Fix(uint32(n), int(d.fixed))
		}
	}
	return nil
}

// contradiction is the error for two registers that the producer gave a common lane while both are live.
func (ws *Workspace) contradiction(m *ir.Module) error {
	s := &ws.solver
	for n := range s.Nodes {
		if !s.Nodes[n].Fixed {
			continue
		}
		at, w := ws.lanes.At[n], int32(ws.lanes.Width(uint32(n)))
		for _, o := range s.Graph.Neighbours(uint32(n)) {
			if b := ws.lanes.At[o]; s.Nodes[o].Fixed && at < b+int32(ws.lanes.Width(o)) && b < at+w {
				return target.Errorf(target.User, "registers %s and %s are live together and the input puts both in lane %d of %s; leave the number of one open",
					ws.classReg(m, uint32(n)), ws.classReg(m, o), max(at, b), ws.uses.engine[ws.reg(uint32(n))])
			}
		}
	}
	return nil
}

// exhausted is the error for registers that find no lane and cannot be spilled.
func (ws *Workspace) exhausted(m *ir.Module, e target.Engine, lanes int) error {
	n := ws.result.Stuck[0]
	w := ws.firstMember(n)
	d := &ws.lives.webs[w]
	i := ws.flow.insts[d.first/2]
	return target.Errorf(target.Limit, "not enough spilling candidates for the registers of %s: %s (%d lanes) finds no place at %s (%s), and everything else that is live there is needed there; the file has %d lanes, so use fewer registers in one instruction",
		e, m.RegName(ir.Reg(d.reg)), ws.lanes.Width(n), m.InstName(i), m.Insts.At(i).Op, lanes)
}

// firstMember is the earliest web of a class.
func (ws *Workspace) firstMember(class uint32) uint32 {
	for n, c := range ws.joins.class {
		if c == class {
			return ws.nodeWeb[n]
		}
	}
	return ws.nodeWeb[0]
}

func (ws *Workspace) reg(class uint32) uint32 { return ws.lives.webs[ws.firstMember(class)].reg }

func (ws *Workspace) classReg(m *ir.Module, class uint32) string {
	return m.RegName(ir.Reg(ws.reg(class)))
}
