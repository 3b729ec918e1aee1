package memalloc

import "math/bits"

// Occupancy of one strip of memory, one bit a granule; a set bit is taken. Marking costs a word per 64 granules, so neither
// the number of obstacles nor their order matters, and nothing is sorted.

// Mark sets the bits [lo, hi).
func Mark(w []uint64, lo, hi int) {
	if lo >= hi {
		return
	}
	a, b := lo>>6, (hi-1)>>6
	first, last := ^uint64(0)<<(lo&63), ^uint64(0)>>(63-(hi-1)&63)
	if a == b {
		w[a] |= first & last
		return
	}
	w[a] |= first
	for i := a + 1; i < b; i++ {
		w[i] = ^uint64(0)
	}
	w[b] |= last
}

// unmark clears the bits [lo, hi).
func unmark(w []uint64, lo, hi int) {
	if lo >= hi {
		return
	}
	a, b := lo>>6, (hi-1)>>6
	first, last := ^uint64(0)<<(lo&63), ^uint64(0)>>(63-(hi-1)&63)
	if a == b {
		w[a] &^= first & last
		return
	}
	w[a] &^= first
	for i := a + 1; i < b; i++ {
		w[i] = 0
	}
	w[b] &^= last
}

// clash reports whether any bit of [lo, hi) is set.
func clash(w []uint64, lo, hi int) bool {
	return lo < hi && NextSet(w, lo, hi) < hi
}

// NextSet is the first set bit from lo on, n if there is none below n.
func NextSet(w []uint64, lo, n int) int {
	for lo < n {
		if x := w[lo>>6] >> (lo & 63); x != 0 {
			return min(n, lo+bits.TrailingZeros64(x))
		}
		lo = lo&^63 + 64
	}
	return n
}

// NextClear is the first clear bit from lo on, n if there is none below n.
func NextClear(w []uint64, lo, n int) int {
	for lo < n {
		if x := ^w[lo>>6] >> (lo & 63); x != 0 {
			return min(n, lo+bits.TrailingZeros64(x))
		}
		lo = lo&^63 + 64
	}
	return n
}

// prevSet is the last set bit below hi, -1 if there is none.
func prevSet(w []uint64, hi int) int {
	for hi > 0 {
		if x := w[(hi-1)>>6] << (63 - (hi-1)&63); x != 0 {
			return hi - 1 - bits.LeadingZeros64(x)
		}
		hi = (hi - 1) &^ 63
	}
	return -1
}

// prevClear is the last clear bit below hi, -1 if there is none.
func prevClear(w []uint64, hi int) int {
	for hi > 0 {
		if x := ^w[(hi-1)>>6] << (63 - (hi-1)&63); x != 0 {
			return hi - 1 - bits.LeadingZeros64(x)
		}
		hi = (hi - 1) &^ 63
	}
	return -1
}

// Fit is the lowest multiple of 1<<shift in [lo, hi) from which length bits below hi are clear, -1 if there is none.
func Fit(w []uint64, lo, hi, length int, shift uint8) int {
	round := 1<<shift - 1
	for p := lo; ; {
		p = (NextClear(w, p, hi) + round) &^ round
		if p+length > hi {
			return -1
		}
		end := NextSet(w, p, p+length)
		if end == p+length {
			return p
		}
		p = end
	}
}

// fitDown is the highest multiple of 1<<shift from which length bits below n are clear, -1 if there is none.
func fitDown(w []uint64, n, length int, shift uint8) int {
	round := 1<<shift - 1
	for hi := n; hi >= length; {
		end := prevClear(w, hi) + 1
		if end < length {
			return -1
		}
		below := prevSet(w, end)
		if p := (end - length) &^ round; p > below {
			return p
		}
		hi = below
	}
	return -1
}
