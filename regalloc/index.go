package regalloc

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Seg is one live segment of a node: points Start ≤ p < End.
type Seg struct {
	Start, End uint32
	Node       uint32
}

// markStep is the least number of segments from one mark of an index to the next.
const markStep = 16

// Index answers which segments overlap a stretch of time. The segments are in order of start; in between stand marks, each with the
// list of those before it that are still open there. A query takes the list of the last mark that is not too late and then the
// segments behind it in their order, so it walks through memory and never far: a mark comes when as many segments have begun since
// the last one as its list is long. So all lists together are at most as long as twice the segments, and a query costs a few
// times the segments that are open where it begins, and its answers. What is empty overlaps nothing. The index borrows the segments.
type Index struct {
	segs  []Seg
	ends  []uint32 // of the segments, 0 of an empty one
	begun []uint32 // by point: how many segments start before it
	at    []uint32 // by mark: how many segments are before it
	first []uint32 // by mark, and one more: where its list begins in open
	open  []uint32
	last  []uint32 // by block of markStep segments: the last mark that is not behind its first one
}

// Build takes segments in ascending order of Start.
func (x *Index) Build(segs []Seg) {
	x.segs = segs
	x.ends = arena.Resized(x.ends, len(segs))
	x.begun = x.begun[:0]
	for i := range segs {
		s := &segs[i]
		x.ends[i] = s.End
		if s.Start >= s.End {
			x.ends[i] = 0
		}
		for len(x.begun) <= int(s.Start) {
			x.begun = append(x.begun, uint32(i))
		}
	}
	x.begun = append(x.begun, uint32(len(segs)))
	x.at, x.first, x.open = append(x.at[:0], 0), append(x.first[:0], 0), x.open[:0]
	for from, to := 0, markStep; to < len(segs); {
		late := segs[to-1].Start
		list := len(x.open)
		for _, i := range x.open[x.first[len(x.first)-1]:] {
			if x.ends[i] > late {
				x.open = append(x.open, i)
			}
		}
		for i := from; i < to; i++ {
			if x.ends[i] > late {
				x.open = append(x.open, uint32(i))
			}
		}
		x.at, x.first = append(x.at, uint32(to)), append(x.first, uint32(list))
		from, to = to, to+max(markStep, len(x.open)-list)
	}
	x.first = append(x.first, uint32(len(x.open)))
	x.last = arena.Resized(x.last, len(segs)/markStep+1)
	m := uint32(0)
	for b := range x.last {
		for int(m)+1 < len(x.at) && int(x.at[m+1]) <= b*markStep {
			m++
		}
		x.last[b] = m
	}
}

// Append adds to dst the positions of the segments that overlap [lo, hi), ascending.
func (x *Index) Append(dst []uint32, lo, hi uint32) []uint32 {
	if lo >= hi || len(x.segs) == 0 {
		return dst
	}
	m := x.mark(x.before(lo))
	dst = x.listed(dst, m, lo)
	return x.run(dst, x.at[m], x.before(hi), lo)
}

// Around adds to dst the positions of the segments that overlap the one at p, but for itself, ascending.
func (x *Index) Around(dst []uint32, p uint32) []uint32 {
	lo, hi := x.segs[p].Start, x.segs[p].End
	if lo >= hi {
		return dst
	}
	m := x.mark(x.before(lo))
	dst = x.listed(dst, m, lo)
	dst = x.run(dst, x.at[m], p, lo)
	return x.run(dst, p+1, x.before(hi), lo)
}

// before is how many segments start before a point.
func (x *Index) before(p uint32) uint32 { return x.begun[min(int(p), len(x.begun)-1)] }

// mark is the last one with no more than n segments before it.
func (x *Index) mark(n uint32) uint32 {
	m := x.last[n/markStep]
	if int(m)+1 < len(x.at) && x.at[m+1] <= n {
		m++
	}
	return m
}

// listed adds what ends after lo of the list of a mark. Half of what is looked at is an answer, in no pattern that a branch could be
// guessed by; so in run.
func (x *Index) listed(dst []uint32, m, lo uint32) []uint32 {
	list, ends, n := x.open[x.first[m]:x.first[m+1]], x.ends, len(dst)
	dst = slices.Grow(dst, len(list))
	dst = dst[:n+len(list)]
	for _, i := range list {
		dst[n] = i
		n += int((uint64(lo) - uint64(ends[i])) >> 63)
	}
	return dst[:n]
}

// run adds what ends after lo of the positions from to to-1.
func (x *Index) run(dst []uint32, from, to, lo uint32) []uint32 {
	ends, n := x.ends[from:to], len(dst)
	dst = slices.Grow(dst, len(ends))
	dst = dst[:n+len(ends)]
	for k, end := range ends {
		dst[n] = from + uint32(k)
		n += int((uint64(lo) - uint64(end)) >> 63)
	}
	return dst[:n]
}
