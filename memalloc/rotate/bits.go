package rotate

import "math/bits"

// mark sets the bits [lo, hi).
func mark(w []uint64, lo, hi int) {
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

// nextSet is the first set bit in [lo, n), n if there is none.
func nextSet(w []uint64, lo, n int) int {
	for lo < n {
		if x := w[lo>>6] >> (lo & 63); x != 0 {
			return min(n, lo+bits.TrailingZeros64(x))
		}
		lo = lo&^63 + 64
	}
	return n
}

// nextClear is the first clear bit in [lo, n), n if there is none.
func nextClear(w []uint64, lo, n int) int {
	for lo < n {
		if x := ^w[lo>>6] >> (lo & 63); x != 0 {
			return min(n, lo+bits.TrailingZeros64(x))
		}
		lo = lo&^63 + 64
	}
	return n
}

// fit is the lowest multiple of align in [lo, hi) from which length bits below hi are clear, -1 if there is none.
func fit(w []uint64, lo, hi, length, align int) int {
	for p := lo; ; {
		p = (nextClear(w, p, hi) + align - 1) / align * align
		if p+length > hi {
			return -1
		}
		end := nextSet(w, p, p+length)
		if end == p+length {
			return p
		}
		p = end
	}
}
