package plan

// hinter is the storage of grant.
type hinter struct {
	p        Problem // the problem with hints made fixed: columns are shared but for Fixed
	fixed    []int64
	rows     []uint32
	settled  []uint32 // rows with a fixed offset
	unhinted []int64
}

// maxHintTests bounds how often hints are compared with each other and with fixed offsets; hints beyond it are not looked at.
const maxHintTests = 1 << 24

// hintWork is what a plan without limits may spend on each set of hints.
const hintWork = 1 << 20

// grant plans again with hints as fixed offsets, and takes that layout into the result when it is not higher. Hints off their
// alignment, above the peak, or in the way of fixed buffers or of hints before them are dropped; while the rest is still too high, so
// is its second half. It returns how many buffers without a fixed offset lie where their hint says.
func (pl *Planner) grant(p *Problem, res *Result) int {
	h := &pl.hints
	h.rows, h.settled = h.rows[:0], h.settled[:0]
	for i := range p.Size {
		if p.Fixed[i] != None && p.Lower[i] < p.Upper[i] {
			h.settled = append(h.settled, uint32(i))
		}
	}
	tests := 0
	for i := range p.Size {
		at := p.Hint[i]
		if p.Fixed[i] != None || at == None || p.Size[i] == 0 || p.Lower[i] == p.Upper[i] || at%p.Align[i] != 0 || at+p.Size[i] > res.Peak {
			continue
		}
		if tests += len(h.settled) + len(h.rows); tests > maxHintTests {
			break
		}
		free := true
		for _, j := range h.settled {
			free = free && !clashes(p, i, at, int(j), p.Fixed[j])
		}
		for _, j := range h.rows {
			free = free && !clashes(p, i, at, int(j), p.Hint[j])
		}
		if free {
			h.rows = append(h.rows, uint32(i))
		}
	}
	h.unhinted = append(h.unhinted[:0], pl.offsets...)
	asked := pl.opt
	pl.opt.Progress = nil // what is asked for now is not lower
	held := false
	for rows := h.rows; len(rows) > 0 && !held; rows = rows[:len(rows)/2] {
		h.fixed = append(h.fixed[:0], p.Fixed...)
		for _, i := range rows {
			h.fixed[i] = p.Hint[i]
		}
		h.p = *p
		h.p.Fixed = h.fixed
		switch {
		case pl.over():
			pl.opt.Mode = Fast
		case asked.Work == 0 && asked.TimeLimit == 0:
			// Nobody waits for a proof that wishes cannot be met.
			pl.opt.Work = pl.work() + hintWork
		}
		pl.solve(&h.p, res.Peak)
		if held = pl.peak <= res.Peak; held {
			res.Optimal = res.Optimal && pl.peak == res.Peak || pl.peak == res.LowerBound
			res.Peak = pl.peak
			pl.spread(&h.p)
		}
	}
	pl.opt = asked
	if !held {
		pl.offsets = append(pl.offsets[:0], h.unhinted...)
	}
	res.Offsets = pl.offsets
	granted := 0
	for i := range p.Size {
		if p.Fixed[i] == None && p.Hint[i] != None && pl.offsets[i] == p.Hint[i] {
			granted++
		}
	}
	return granted
}

// clashes reports whether i at offset x and j at y meet in time and bytes, gaps left aside.
func clashes(p *Problem, i int, x int64, j int, y int64) bool {
	return p.Lower[i] < p.Upper[j] && p.Lower[j] < p.Upper[i] && x < y+p.Size[j] && y < x+p.Size[i]
}
