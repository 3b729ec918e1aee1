package plan

import "slices"

// pair places chains: where at most two buffers are live at once, beside those that are live throughout, the bound is always reached. Those that
// are live throughout lie at the bottom; of the others, which form a forest by who meets whom, neighbours take turns, one resting on them,
// the next hanging from the bound. Searches and passes see only a floor, and leave holes in long chains. It reports whether it did.
func (pl *Planner) pair() bool {
	m := &pl.model
	if m.aligned || m.gapped || len(m.obs) > 0 {
		return false
	}
	base, all := int64(0), 0
	for u := range m.n {
		if m.lo[u] == 0 && m.hi[u] == m.s {
			base += m.size[u]
			all++
		}
	}
	if pl.atOnce > all+2 {
		return false
	}
	pl.order.work += int64(m.n) * sortWork
	off := slices.Grow(pl.diver.off[:0], m.n)[:m.n]
	pl.diver.off = off
	m.sort.Start(m.n)
	m.sort.By(func(u uint32) uint64 { return uint64(m.lo[u]) })
	stacked := int64(0)
	var resting, hanging int32 // the section at which the last one of each ends
	for _, it := range m.sort.Items {
		u := it.ID
		switch {
		case m.lo[u] == 0 && m.hi[u] == m.s:
			off[u] = stacked
			stacked += m.size[u]
		case resting <= m.lo[u]:
			off[u] = base
			resting = m.hi[u]
		case hanging <= m.lo[u]:
			off[u] = m.bound - m.size[u]
			hanging = m.hi[u]
		default:
			return false
		}
	}
	pl.keep(off, m.bound)
	return true
}
