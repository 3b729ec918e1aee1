package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// The attempts of one round to place what Simplify stacked. The first follows the rules of the geometry. Only where it leaves
// something over do the others run, before anything is spilled, and with what the geometry gives up when it must.
const (
	attemptRules   = iota // as the rules say
	attemptTight          // the same order, where the geometry has something to give up
	attemptBySize         // largest first: packs best, but knows no cost, so it counts only if it places everything
	attemptPinched        // the first order, but the largest first among what must not be spilled
	attempts
)

// geometry is what the attempts need to know of a memory.
type geometry interface {
	regalloc.Geometry
	// again forgets the places of the nodes that are not fixed, and says whether a tight attempt is another one than the first.
	again(nodes []regalloc.Node, tight bool) (differs bool)
	// bad is 1 + the first node that should never have come to Place, 0 none.
	bad() uint32
}

// colourSB colours the units of a round. What loses its bet is coloured anew only when nothing else can make room: the next round
// has it among its candidates anyway.
func (ws *Workspace) colourSB(m *ir.Module, opt *Options, mt *Metrics) error {
	for {
		ws.solver.Simplify()
		if opt.Partners {
			ws.partners.restack(ws.solver.Order)
		}
		if err := ws.selectSB(m); err != nil {
			return err
		}
		if len(ws.result.Unplaced)+len(ws.result.Stuck) == 0 {
			return nil
		}
		ws.bet(m, opt, mt)
		if freed := ws.unpin(m, mt); !freed || len(ws.result.Unplaced) > 0 {
			return ws.stillPinned(m)
		}
	}
}

// selectSB gives places in SB: after a round that spilled, those that its walk has found.
func (ws *Workspace) selectSB(m *ir.Module) error {
	if ws.selectHinted() {
		return nil
	}
	if i := attempt(ws, &ws.sb); i != 0 {
		return ws.sb.fault(m, ws.ranges.Units[i-1].First, i-1)
	}
	return nil
}

// selectPSUM gives places in PSUM.
func (ws *Workspace) selectPSUM(m *ir.Module) error {
	if i := attempt(ws, &ws.psum); i != 0 {
		return ws.psum.fault(m, ws.ranges.Units[i-1].First, i-1)
	}
	return nil
}

// attempt gives places, or leaves in the result what the attempt that costs least left over. It returns what the geometry found bad.
func attempt[G geometry](ws *Workspace, geo G) (bad uint32) {
	s, r, best := &ws.solver, &ws.result, &ws.best
	for k := range attempts {
		switch k {
		case attemptTight:
			// In straight-line code gaps are cut by what is live, whichever values are left over.
			if ws.full && len(ws.lin.Loops) == 0 && len(best.Stuck) == 0 {
				continue
			}
		case attemptBySize:
			ws.order = append(ws.order[:0], s.Order...)
			if ws.full { // it would be in vain
				continue
			}
			s.BySize()
		case attemptPinched:
			s.Order = append(s.Order[:0], ws.order...)
			if len(best.Stuck) == 0 {
				continue
			}
			s.InfiniteBySize()
		}
		if differs := geo.again(s.Nodes, k > attemptRules); k == attemptTight && !differs {
			continue
		}
		regalloc.Select(s, geo, r)
		if i := geo.bad(); i != 0 {
			return i
		}
		if len(r.Stuck) == 0 && len(r.Unplaced) == 0 {
			return 0
		}
		if k == attemptRules || k != attemptBySize && r.Score < best.Score {
			*r, *best = *best, *r
		}
	}
	*r, *best = *best, *r
	return 0
}
