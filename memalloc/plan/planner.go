package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Mode is how hard to try.
type Mode uint8

const (
	// Fast makes a bounded number of passes and looks at no clock.
	Fast Mode = iota
	// Improve searches for lower layouts until its time or work is used up: a work of DefaultImprove when neither is given.
	Improve
	// Exact searches until the layout fits the capacity or is known not to, and without a capacity until no lower layout exists. Without
	// limits that can take for ever, except for problems that the search does not take, where it gives up after some rounds.
	Exact
)

// DefaultImprove is the work of Improve: some 10 ms for hundreds of buffers, but the same layout on every machine.
const DefaultImprove = 2_000_000

func (m Mode) String() string {
	switch m {
	case Fast:
		return "fast"
	case Improve:
		return "improve"
	case Exact:
		return "exact"
	}
	return "?"
}

// ParseMode is the mode of a name.
func ParseMode(s string) (Mode, error) {
	for m := Fast; m <= Exact; m++ {
		if m.String() == s {
			return m, nil
		}
	}
	return Fast, target.Errorf(target.User, "mode %q: use fast, improve or exact", s)
}

// Options says what is wanted of a plan. The zero value is a fast plan without a capacity.
type Options struct {
	Mode Mode
	// Capacity is what the layout must fit in; 0 for any. Exact stops as soon as it fits.
	Capacity int64
	// TimeLimit ends Improve and Exact; 0 for none. Where it ends depends on the machine, so two runs may differ; see Work.
	TimeLimit time.Duration
	// Work ends Improve and Exact after so many steps, some nanoseconds each; 0 for no limit. Without a time limit, two runs with the same
	// problem and options give the same bytes. Result.Work of a run that a clock ended, given here, repeats it.
	Work int64
	// Seed varies the orders that are tried after the first ones.
	Seed uint64
	// Stop, once it is closed, ends every mode with the best layout known by then. It may be nil.
	Stop <-chan struct{}
	// Progress is told of each lower layout while the plan is being made. It may be nil.
	Progress func(peak, bound int64)
}

// Result is a layout. It is valid until the Planner's next Plan.
type Result struct {
	Offsets    []int64 // by row of the problem
	Peak       int64   // highest end of a buffer that is ever live
	LowerBound int64   // no layout is lower: largest sum of live bytes, largest buffer, highest end of a fixed one
	Ratio      float64 // Peak over LowerBound; 1 when both are 0
	Optimal    bool    // no layout is lower than Peak: it is the bound, or the search saw all
	Impossible bool    // no layout fits the capacity: the search saw all
	Hints      int     // buffers with a hint and without a fixed offset
	Hinted     int     // of them, those whose hint was granted
	Work       int64
	Seconds    float64
}

// Planner makes plans. It keeps its storage from one to the next, and is not for use by several goroutines at once. The zero value is
// ready to use.
type Planner struct {
	model   model
	order   orderer
	diver   diver
	parts   partDiver
	search  search
	clock   clock
	sweeper sweeper // of fixed offsets
	sort    arena.Sorter
	offsets []int64
	best    []int64 // offsets of movable buffers in the best layout
	peak    int64
	lost    int64 // no layout has its end at or below it
	opt     Options
	atOnce  int  // movable buffers live at once, in the mean over sections, rounded up
	ready   bool // search is prepared
	usable  bool

	hints hinter
}

// Plan finds a layout. The problem is validated first, and not written. When the layout found does not fit the capacity, the error is of
// class target.Limit and the result is valid all the same: the best layout known. On any other error there is no result.
func (pl *Planner) Plan(p *Problem, opt Options) (Result, error) {
	if opt.Mode > Exact || opt.Capacity < 0 || opt.TimeLimit < 0 || opt.Work < 0 {
		return Result{}, target.Errorf(target.User, "options: mode %d, capacity %d, time limit %v, work %d: none may be negative, and modes end at %d",
			opt.Mode, opt.Capacity, opt.TimeLimit, opt.Work, Exact)
	}
	if opt.Mode == Improve && opt.TimeLimit == 0 && opt.Work == 0 {
		opt.Work = DefaultImprove
	}
	if opt.Mode == Fast {
		opt.TimeLimit, opt.Work = 0, 0
	}
	pl.opt = opt
	pl.clock.begin(opt.TimeLimit, opt.Stop)
	if err := p.Validate(); err != nil {
		return Result{}, err
	}
	fixed, hints := 0, 0
	for i := range p.Size {
		if p.Fixed[i] != None {
			fixed++
		} else if p.Hint[i] != None {
			hints++
		}
	}
	if fixed > 1 {
		if err := pl.sweeper.disjoint(p, p.Fixed); err != nil {
			return Result{}, target.Errorf(target.User, "fixed offsets: %w", err)
		}
	}
	pl.order.work, pl.diver.work, pl.parts.work, pl.search.work = 0, 0, 0, 0
	pl.solve(p, 0)
	pl.spread(p)
	res := Result{
		Offsets: pl.offsets, Peak: pl.peak, LowerBound: pl.model.bound, Ratio: 1,
		Optimal: pl.lost >= pl.peak-1, Impossible: opt.Capacity > 0 && pl.lost >= opt.Capacity,
	}
	if hints > 0 {
		res.Hints, res.Hinted = hints, pl.grant(p, &res)
	}
	if res.LowerBound > 0 {
		res.Ratio = float64(res.Peak) / float64(res.LowerBound)
	}
	res.Work = pl.work()
	res.Seconds = pl.clock.seconds()
	if opt.Capacity > 0 && res.Peak > opt.Capacity {
		return res, pl.misfit(p, &res)
	}
	return res, nil
}

func (pl *Planner) work() int64 {
	return pl.order.work + pl.diver.work + pl.parts.work + pl.search.work
}

// over reports whether time or work is used up.
func (pl *Planner) over() bool {
	return pl.opt.Work > 0 && pl.work() >= pl.opt.Work || pl.clock.over()
}

// misfit says what is needed, what there is, and whether more search could help.
func (pl *Planner) misfit(p *Problem, res *Result) error {
	at := FindPeak(p, res.Offsets)
	big := uint32(0)
	for i, u := range at.Buffers {
		if i == 0 || p.Size[u] > p.Size[big] {
			big = u
		}
	}
	c := pl.opt.Capacity
	largest := ""
	if len(at.Buffers) > 0 {
		largest = p.Name(int(big))
	}
	i := beyondFixed(p, c)
	why := "a longer search may find a lower layout"
	switch {
	case i >= 0:
		why = fmt.Sprintf("no layout can fit: buffer %s is fixed at [%d, %d)", p.label(i), p.Fixed[i], p.Fixed[i]+p.Size[i])
	case res.LowerBound > c:
		why = "no layout can fit: raise the capacity or shorten lifetimes"
	case res.Impossible:
		why = "no layout can fit, the search saw all: raise the capacity"
	case pl.opt.Mode != Exact:
		why = "mode exact may find a lower layout"
	}
	return target.Errorf(target.Limit, "the layout needs %d, which is %d more than the capacity %d (lower bound %d); it is highest at moment %d with %d buffers, the largest %.60q of %d; %s",
		res.Peak, res.Peak-c, c, res.LowerBound, at.Moment, len(at.Buffers), largest, p.Size[big], why)
}

// beyondFixed is the first buffer that is fixed above the capacity, or -1.
func beyondFixed(p *Problem, capacity int64) int {
	for i, off := range p.Fixed {
		if off != None && p.Lower[i] < p.Upper[i] && p.Size[i] > 0 && off+p.Size[i] > capacity {
			return i
		}
	}
	return -1
}

// goal is the highest end that ends the search: below it nothing is asked for.
func (pl *Planner) goal() int64 {
	g := max(pl.model.bound, pl.lost+1)
	if pl.opt.Mode == Exact {
		g = max(g, pl.opt.Capacity)
	}
	return g
}

// solve finds a layout of the movable buffers into best and peak, as the mode says; atMost is a peak that is good enough.
func (pl *Planner) solve(p *Problem, atMost int64) {
	m := &pl.model
	m.sort, pl.order.sort = &pl.sort, &pl.sort
	m.build(p)
	pl.peak, pl.best = inf, pl.best[:0]
	pl.lost = m.bound - 1
	pl.ready, pl.usable = false, false
	pl.search.clock = &pl.clock
	if m.n == 0 {
		pl.peak = m.fixedTop
		return
	}
	span := 0
	for u := range m.n {
		span += int(m.hi[u] - m.lo[u])
	}
	pl.atOnce = (span + int(m.s) - 1) / int(m.s)
	pl.order.prepare(m)
	pl.fast(atMost)
	if pl.opt.Mode != Fast {
		pl.hunt(atMost)
	}
}

// spread sets the offsets of all rows from the best layout.
func (pl *Planner) spread(p *Problem) {
	pl.offsets = append(slices.Grow(pl.offsets[:0], len(p.Fixed)), p.Fixed...)
	for i, o := range pl.offsets {
		if o == None {
			pl.offsets[i] = 0
		}
	}
	for u, r := range pl.model.row {
		pl.offsets[r] = pl.best[u]
	}
}

// keep takes a layout when it is the best so far.
func (pl *Planner) keep(off []int64, peak int64) {
	if peak < pl.peak {
		pl.peak = peak
		pl.best = append(pl.best[:0], off...)
		if pl.opt.Progress != nil {
			pl.opt.Progress(peak, pl.model.bound)
		}
	}
}
