package rotate

import "github.com/rosmar-compiler/rosmar/memalloc"

// fit is the lowest multiple of align in [lo, hi) from which length bits below hi are clear, -1 if there is none.
func fit(w []uint64, lo, hi, length, align int) int {
	for p := lo; ; {
		p = (memalloc.NextClear(w, p, hi) + align - 1) / align * align
		if p+length > hi {
			return -1
		}
		end := memalloc.NextSet(w, p, p+length)
		if end == p+length {
			return p
		}
		p = end
	}
}
