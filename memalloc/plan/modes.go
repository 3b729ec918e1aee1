package plan

import "math"

// dives are the orders of the single passes, best first in the mean.
var dives = [...][2]key{
	{byLoad, byLength}, {byLength, byArea}, {byLoad, byArea}, {byArea, byLength}, {bySize, byLength}, {byLength, byLoad},
}

const (
	// fastWork is what fast may spend on searching, in steps of some 4 ns: half of its half millisecond.
	fastWork = 66_000
	// fastDives is how many passes there are at least where the searches found nothing; more follow in the first order, shuffled
	// a little, while fastTotal is not used up.
	fastDives    = 3
	fastTotal    = 80_000
	maxFastDives = 24
	// meetWork is what the first descent of a search costs for each pair of a buffer and another that is live with it.
	meetWork = 6
	// fastFails is how often a search may fail in fast.
	fastFails = 25
	// huntFails is how often a search may fail in the first round of a hunt, and how much more in each further one.
	huntFails = 128
	// partDiveWork bounds a pass over buffers with gaps.
	partDiveWork = 1 << 24
	// unprovenRounds bounds the rounds where no search can see everything.
	unprovenRounds = 12
	// longChain is the number of buffers for each one live at a time from which a problem is a chain: many that follow on one another.
	longChain = 16
)

// tries are the searches of a round, for chains from the second on. On rectangles cut at random, at a few hundred failures each,
// these solve the most, and each solves some that the others do not; orders by area solve next to none. Of the published instances,
// large first does best on all but chains.
var tries = [...]struct {
	keys   [2]key
	lowest bool
}{
	{[2]key{bySize, byLength}, false}, {[2]key{byLoad, byLength}, false}, {[2]key{byLength, byArea}, false},
	{[2]key{byLoad, bySize}, false}, {[2]key{byLength, byArea}, true},
}

// windows is how far a round shuffles, as the shift of the number of buffers; the first round does not. Small is best, but not alone.
var windows = [...]int{4, 6, 4, 2, 5}

// orderOf sets the order of try i, counted on from the one that suits the problem, and returns whether only the lowest valley is asked.
func (pl *Planner) orderOf(i int) (lowest bool) {
	if pl.model.n > longChain*pl.atOnce {
		i++
	}
	t := &tries[i%len(tries)]
	pl.order.by(&pl.model, t.keys[0], t.keys[1])
	return t.lowest
}

// fast tries searches for the bound, cut short, where one is likely to be over in time; then it makes single passes.
func (pl *Planner) fast(atMost int64) {
	m := &pl.model
	enough := max(m.bound, atMost)
	if pl.pair() {
		return
	}
	start := pl.work()
	if nodeWork*m.n+meetWork*m.n*pl.atOnce <= fastWork && pl.preparable() {
		limit := int64(fastWork)
		for i := 0; i < 3 && pl.work()-start < limit/2; i++ {
			lowest := pl.orderOf(i)
			pl.attempt(enough, lowest, fastFails, pl.search.work+limit-(pl.work()-start))
			if pl.peak <= enough {
				return
			}
			limit = fastWork * 3 / 4 // what is left is for the passes
		}
	}
	pl.diver.prepare(m)
	rng := splitmix(0)
	for i := range maxFastDives {
		if i >= fastDives && pl.work()-start >= fastTotal || i > 0 && pl.over() {
			break
		}
		k := dives[0]
		if i < fastDives {
			k = dives[i]
		}
		pl.order.by(m, k[0], k[1])
		if i >= fastDives {
			pl.order.shuffle(m.n>>(4+i%2), &rng)
		}
		pl.dive()
		if pl.peak <= enough {
			return
		}
	}
}

// dive makes one pass in the current order, and with gaps two more that use them.
func (pl *Planner) dive() {
	m := &pl.model
	peak := pl.diver.dive(pl.order.rank)
	pl.keep(pl.diver.off, peak)
	if m.gapped || m.windowed {
		if peak, ok := pl.parts.dive(m, pl.order.rank, partDiveWork); ok {
			pl.keep(pl.parts.off, peak)
		}
		if peak, ok := pl.parts.first(m, pl.order.rank, partDiveWork); ok {
			pl.keep(pl.parts.off, peak)
		}
	}
}

// preparable prepares the search once a problem, if it takes it.
func (pl *Planner) preparable() bool {
	if !pl.ready {
		pl.ready = true
		if pl.usable = pl.search.usable(&pl.model); pl.usable {
			pl.search.prepare(&pl.model)
		}
	}
	return pl.usable
}

// attempt searches for a layout with its end at or below the ceiling, in the current order.
func (pl *Planner) attempt(ceiling int64, lowest bool, maxFails, maxWork int64) {
	s := &pl.search
	s.lowestOnly = lowest
	switch s.run(ceiling, pl.order.rank, maxFails, maxWork) {
	case solved:
		pl.keep(s.off, s.found)
	case exhausted:
		// The search sees buffers that keep some bytes in a gap as whole, so for them it proves nothing.
		if !pl.model.windowed {
			pl.lost = max(pl.lost, ceiling)
		}
	}
}

// hunt searches for lower and lower layouts until the goal is met, there is none left to find, or the limits are reached. Searches restart
// with all orders in turn, and may fail more often each round, so one of them sees everything in the end. Improve asks
// for the goal and for a part of the way to it in turn, a half at first and less after each failure. So does exact without a
// capacity; with one, it asks for a part once a round, and twice for the bound: less room is less to try, and some are found sooner.
func (pl *Planner) hunt(atMost int64) {
	m := &pl.model
	rng, dabbles := splitmix(pl.opt.Seed), splitmix(^pl.opt.Seed)
	grain := pl.grain()
	usable := pl.preparable()
	step := 1
	rounds := math.MaxInt
	if !usable || m.windowed {
		rounds = unprovenRounds // without a proof in reach, something must end it
	}
	for round := range rounds {
		fails := int64(huntFails*(round+1)) << min(round/16, 30)
		for i := range 2 * len(tries) { // each for the goal, then partly
			partly := i&1 == 1
			tight := partly && i > 1 && pl.opt.Mode == Exact && pl.opt.Capacity > 0
			if tight && i > 5 {
				continue
			}
			pl.dabble(&dabbles, atMost)
			goal := max(pl.goal(), atMost)
			if pl.peak <= goal || pl.lost >= pl.peak-grain {
				pl.lost = (pl.lost+grain)/grain*grain - 1 // up to where the next end could be
				return
			}
			if pl.over() || pl.hopeless() {
				return
			}
			lowest := pl.orderOf(i / 2)
			if round > 0 {
				pl.order.shuffle(m.n>>windows[(round-1)%len(windows)], &rng)
			}
			if usable {
				ceiling := goal
				switch {
				case tight:
					ceiling = max(m.bound, pl.lost+1)
					if ceiling >= goal {
						continue
					}
				case partly:
					ceiling = min(max((pl.peak-(pl.peak-goal)>>step)/grain*grain, goal), pl.peak-1)
				}
				maxWork := int64(math.MaxInt64)
				if pl.opt.Work > 0 {
					maxWork = pl.search.work + pl.opt.Work - pl.work()
				}
				before := pl.peak
				pl.attempt(ceiling, lowest, fails, maxWork)
				switch {
				case pl.peak < before:
					step = max(step-1, 1)
				case partly && !tight:
					step = min(step+1, 4)
				}
			}
			if !usable {
				pl.dive()
			}
		}
	}
}

// hopeless reports whether the capacity is known to be too small and nothing would end the search for the lowest layout above it.
func (pl *Planner) hopeless() bool {
	o := &pl.opt
	return o.Mode == Exact && o.Capacity > 0 && pl.lost >= o.Capacity && o.TimeLimit == 0 && o.Work == 0
}

// dabble makes single passes in shuffled orders for a fourth of the work of the searches: on large problems they are the better half.
func (pl *Planner) dabble(rng *splitmix, atMost int64) {
	m := &pl.model
	enough := max(m.bound, atMost)
	for pl.diver.work <= pl.search.work/4 && pl.peak > enough && !pl.over() {
		k := dives[rng.next()%uint64(len(dives))]
		pl.order.by(m, k[0], k[1])
		pl.order.shuffle(m.n>>(3+rng.next()%3), rng)
		pl.dive()
	}
}

// grain divides every offset and end of a layout that is pushed down.
func (pl *Planner) grain() int64 {
	m := &pl.model
	if m.windowed {
		return 1 // offsets then come from windows too
	}
	g := int64(0)
	for u := range m.n {
		g = gcd(g, m.size[u])
		if m.align[u] > 1 {
			g = gcd(g, m.align[u])
		}
	}
	for i := range m.obs {
		g = gcd(gcd(g, m.obs[i].a), m.obs[i].b)
	}
	return max(g, 1)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
