package plan

import "math/bits"

// maxWindowBits is the number of movable buffers up to which windowSet answers instead of kdTree: its rows are built for each order,
// in the time of buffers times sections over 64.
const maxWindowBits = 1536

// windowSet answers what kdTree does for few buffers: one row of bits a section for those that start there or later, one for
// those that end there or before, in the order of rank. What is in both and queued is in the window; the first bit comes first. There
// is next to nothing to mispredict.
type windowSet struct {
	words  int
	starts []uint64 // by section x, those with lo >= x
	ends   []uint64 // by section y, those with hi <= y
	queued []uint64
	byRank []uint32
}

// queue puts every buffer in, with its rank: a permutation.
func (w *windowSet) queue(m *model, rank []uint32) {
	n, s := m.n, int(m.s)
	w.words = (n + 63) / 64
	w.starts, w.ends = sized(w.starts, (s+1)*w.words), sized(w.ends, (s+1)*w.words)
	w.queued, w.byRank = sized(w.queued, w.words), sized(w.byRank, n)
	for u, r := range rank {
		w.byRank[r] = uint32(u)
		word, bit := int(r>>6), uint64(1)<<(r&63)
		w.queued[word] |= bit
		w.starts[int(m.lo[u])*w.words+word] |= bit
		w.ends[int(m.hi[u])*w.words+word] |= bit
	}
	for i := s*w.words - 1; i >= 0; i-- {
		w.starts[i] |= w.starts[i+w.words]
	}
	for i := w.words; i < len(w.ends); i++ {
		w.ends[i] |= w.ends[i-w.words]
	}
}

// take removes the buffer of a rank.
func (w *windowSet) take(r uint32) {
	w.queued[r>>6] &^= 1 << (r & 63)
}

// first is kdTree.first.
func (w *windowSet) first(x, y int32, fits func(buf uint32) bool) (buf, rank uint32) {
	starts := w.starts[int(x)*w.words:][:w.words]
	ends := w.ends[int(y)*w.words:][:w.words]
	for i, q := range w.queued {
		for set := q & starts[i] & ends[i]; set != 0; set &= set - 1 {
			r := uint32(i<<6 + bits.TrailingZeros64(set))
			if u := w.byRank[r]; fits == nil || fits(u) {
				return u, r
			}
		}
	}
	return notQueued, notQueued
}
