package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// A load that can be made again at any time is pinned: it is a bet that it can stay in SB once it is there. The bet is made when
// something finds no place, since until then every load stays anyway, and only on as much as a share of the memory, the most used
// bytes first. What finds no place un-pins the loads that are live with it, and these are candidates for spilling like all others:
// they need no save, since their source is their home.

// pinShare is the part of SB that pinned loads may add up to, whether live together or not.
const pinShare = 0.5

// unpinRounds is how often neighbours of what found no place are un-pinned before all the rest is.
const unpinRounds = 3

type pinState uint8

const (
	neverPinned pinState = iota
	pinned
	unpinned
)

// pins are the loads that this call of SB bets on, across its rounds.
type pins struct {
	bet    bool
	rounds int
	state  arena.Column[ir.Set, pinState]
	loads  []pinLoad
	cost   []int64 // by unit, of pinned ones: what spilling it would cost
}

type pinLoad struct {
	unit   uint32
	bytes  int64 // a partition
	weight int64 // bytes × uses
}

func (p *pins) begin() {
	p.bet, p.rounds = false, 0
	p.state.Reset()
}

// pinning says why loads are not pinned, "" when they are.
func (o *Options) pinning(level int) string {
	switch {
	case o.FastContextSwitch:
		return "fast context switching"
	case o.UnpinGen2 && level == 20:
		return "this generation"
	}
	return ""
}

// pinAgain pins in the units of a new round what the rounds before left pinned.
func (ws *Workspace) pinAgain() {
	p := &ws.pins
	if !p.bet {
		return
	}
	p.cost = arena.Resized(p.cost, len(ws.ranges.Units))
	for i := range ws.ranges.Units {
		if p.state.Get(ws.ranges.Units[i].Set) == pinned {
			ws.pin(uint32(i))
		}
	}
}

func (ws *Workspace) pin(i uint32) {
	n := &ws.solver.Nodes[i]
	ws.pins.cost[i], n.Cost = n.Cost, regalloc.Infinite
}

// bet pins loads, once a call.
func (ws *Workspace) bet(m *ir.Module, opt *Options, mt *Metrics) {
	p := &ws.pins
	if p.bet {
		return
	}
	p.bet = true
	if why := opt.pinning(m.Gen.Level); why != "" {
		if opt.Log != nil {
			opt.Log.Info("pinning of loads is off for " + why)
		}
		return
	}
	p.loads = p.loads[:0]
	for i := range ws.ranges.Units {
		u := &ws.ranges.Units[i]
		if c := ws.solver.Nodes[i].Cost; c == regalloc.Infinite || ws.solver.Nodes[i].Fixed {
			continue
		}
		if _, ok := ws.remat(m, u); !ok {
			continue
		}
		bytes := m.Locs.At(u.First).Bytes
		mt.PinTried += bytes
		p.loads = append(p.loads, pinLoad{uint32(i), bytes, bytes * int64(len(ws.lin.Of(u.First))-1)})
	}
	slices.SortFunc(p.loads, func(a, b pinLoad) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.unit, b.unit))
	})
	p.cost = arena.Resized(p.cost, len(ws.ranges.Units))
	limit := int64(pinShare * float64(ws.sb.n*granule))
	for _, l := range p.loads {
		if mt.Pinned+l.bytes > limit {
			continue
		}
		mt.Pinned += l.bytes
		p.state.Set(ws.ranges.Units[l.unit].Set, pinned)
		ws.pin(l.unit)
	}
}

// unpin gives up the bet on the loads that are live with what found no place, or are that themselves, and reports whether there
// were any. After a few rounds it gives up on all.
func (ws *Workspace) unpin(m *ir.Module, mt *Metrics) (any bool) {
	p := &ws.pins
	if mt.Pinned == mt.Unpinned {
		return false
	}
	free := func(i uint32) {
		u := &ws.ranges.Units[i]
		if p.state.Get(u.Set) != pinned {
			return
		}
		p.state.Set(u.Set, unpinned)
		ws.solver.Nodes[i].Cost = p.cost[i]
		mt.Unpinned += m.Locs.At(u.First).Bytes
		any = true
	}
	p.rounds++
	for _, left := range [2][]uint32{ws.result.Unplaced, ws.result.Stuck} {
		for _, i := range left {
			free(i)
			for _, j := range ws.solver.Graph.Neighbours(i) {
				free(j)
			}
		}
	}
	if any && p.rounds > unpinRounds {
		for i := range ws.ranges.Units {
			free(uint32(i))
		}
	}
	return any
}

// stillPinned is the error of a defect: something pinned among what is to be spilled.
func (ws *Workspace) stillPinned(m *ir.Module) error {
	if ws.pins.bet {
		for _, i := range ws.result.Unplaced {
			if u := &ws.ranges.Units[i]; ws.pins.state.Get(u.Set) == pinned {
				return target.Errorf(target.Bug, "%s is to be spilled and still pinned", m.LocName(u.First))
			}
		}
	}
	return nil
}
