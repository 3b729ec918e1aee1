package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// The attempts of one round to place what Simplify stacked. The first follows the cascade of rects.go. Only where it leaves
// something over do the others run, before anything is spilled: all from the bottom up, without the alignments that only save bus
// cycles, and without keeping heights whole.
const (
	attemptRules   = iota // as the rules say
	attemptTight          // the same order
	attemptBySize         // largest first: packs best, but knows no cost, so it counts only if it places everything
	attemptPinched        // the first order, but the largest first among what must not be spilled
	attempts
)

// colourSB colours the units of a round. What loses its bet is coloured anew only when nothing else can make room: the next round
// has it among its candidates anyway.
func (ws *Workspace) colourSB(m *ir.Module, opt *Options, mt *Metrics) error {
	for {
		ws.solver.Simplify()
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

// selectSB gives places, or leaves in the result what the attempt that costs least left over.
func (ws *Workspace) selectSB(m *ir.Module) error {
	s, r, best := &ws.solver, &ws.result, &ws.best
	for k := range attempts {
		switch k {
		case attemptBySize:
			ws.order = append(ws.order[:0], s.Order...)
			s.BySize()
		case attemptPinched:
			s.Order = append(s.Order[:0], ws.order...)
			if len(best.Stuck) == 0 {
				continue
			}
			s.InfiniteBySize()
		}
		ws.resetRects()
		ws.sb.tight = k > attemptRules
		regalloc.Select(s, &ws.sb, r)
		if err := ws.sb.fault(ws, m); err != nil {
			return err
		}
		if len(r.Stuck) == 0 && len(r.Unplaced) == 0 {
			return nil
		}
		if k == attemptRules || k != attemptBySize && r.Score < best.Score {
			*r, *best = *best, *r
		}
	}
	*r, *best = *best, *r
	return nil
}

// resetRects forgets the places of a failed attempt.
func (ws *Workspace) resetRects() {
	for i := range ws.sb.at {
		if !ws.solver.Nodes[i].Fixed {
			ws.sb.at[i].quads = 0
		}
	}
}

// fault is what Place found to be wrong with the problem itself: a defect of ours, not of the program.
func (r *rects) fault(ws *Workspace, m *ir.Module) error {
	if r.bad == 0 {
		return nil
	}
	l, p := ws.ranges.Units[r.bad-1].First, &r.at[r.bad-1]
	if p.class >= sbClasses {
		return target.Errorf(target.Bug, "%s has the unknown height class %d", m.LocName(l), p.class)
	}
	return target.Errorf(target.Bug, "%s is already allocated when its turn comes, at quadrants %04b and byte %d", m.LocName(l), p.quads, int64(p.lo)*granule)
}
