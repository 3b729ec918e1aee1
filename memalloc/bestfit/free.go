package bestfit

import "slices"

// MaxRows is the most rows that a grid may have.
const MaxRows = 4

// maxSpans is the number of stretches of neighbouring rows among MaxRows.
const maxSpans = MaxRows * (MaxRows + 1) / 2

// span is a stretch of neighbouring rows and its free intervals. An interval is one number, so that sorted lists compare fast:
// by address first<<32|end, by size length<<32|first.
type span struct {
	row, rows uint8
	// taller are the stretches with one row more above or below, -1 none.
	taller [2]int8
	addr   []uint64
	size   []uint64
}

func pack(hi, lo uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }

func unpack(x uint64) (hi, lo uint32) { return uint32(x >> 32), uint32(x) }

// lowerBound is the first entry that is at least key.
func lowerBound(list []uint64, key uint64) int {
	lo, n := 0, len(list)
	for n > 0 {
		half := n / 2
		if list[lo+half] < key {
			lo, n = lo+half+1, n-half-1
		} else {
			n = half
		}
	}
	return lo
}

// lay makes the stretches of a grid of n rows, single rows first, all free.
func lay(s []span, n int, size uint32) []span {
	s = s[:0]
	at := [MaxRows + 1][MaxRows]int8{}
	for rows := 1; rows <= n; rows++ {
		for row := 0; row+rows <= n; row++ {
			at[rows][row] = int8(len(s))
			s = s[:len(s)+1]
			x := &s[len(s)-1]
			x.row, x.rows = uint8(row), uint8(rows)
			x.addr, x.size = x.addr[:0], x.size[:0]
			if size > 0 {
				x.addr = append(x.addr, pack(0, size))
				x.size = append(x.size, pack(size, 0))
			}
		}
	}
	for i := range s {
		x := &s[i]
		x.taller = [2]int8{-1, -1}
		if x.row > 0 {
			x.taller[0] = at[x.rows+1][x.row-1]
		}
		if int(x.row)+int(x.rows) < n {
			x.taller[1] = at[x.rows+1][x.row]
		}
	}
	return s
}

// after is the first interval that ends beyond unit x.
func (s *span) after(x uint32) int {
	i := lowerBound(s.addr, pack(x+1, 0))
	if i > 0 {
		if _, hi := unpack(s.addr[i-1]); hi > x {
			return i - 1
		}
	}
	return i
}

// holds reports that all of [lo, hi) is free.
func (s *span) holds(lo, hi uint32) bool {
	i := s.after(lo)
	if i == len(s.addr) {
		return false
	}
	a, b := unpack(s.addr[i])
	return a <= lo && hi <= b
}

func (s *span) dropSize(lo, hi uint32) {
	i := lowerBound(s.size, pack(hi-lo, lo))
	s.size = slices.Delete(s.size, i, i+1)
}

func (s *span) addSize(lo, hi uint32) {
	i := lowerBound(s.size, pack(hi-lo, lo))
	s.size = slices.Insert(s.size, i, pack(hi-lo, lo))
}

// cut takes [lo, hi) out of every interval that meets it.
func (s *span) cut(lo, hi uint32) {
	i := s.after(lo)
	j := i
	var keep [2]uint64
	n := 0
	for ; j < len(s.addr); j++ {
		a, b := unpack(s.addr[j])
		if a >= hi {
			break
		}
		s.dropSize(a, b)
		if a < lo {
			keep[n] = pack(a, lo)
			n++
			s.addSize(a, lo)
		}
		if hi < b {
			keep[n] = pack(hi, b)
			n++
			s.addSize(hi, b)
		}
	}
	s.addr = slices.Replace(s.addr, i, j, keep[:n]...)
}

// join adds [lo, hi), which is in no interval yet, and merges it with what touches it.
func (s *span) join(lo, hi uint32) {
	i := lowerBound(s.addr, pack(lo, 0))
	from, to := i, i
	if i > 0 {
		if a, b := unpack(s.addr[i-1]); b == lo {
			s.dropSize(a, b)
			lo, from = a, i-1
		}
	}
	if i < len(s.addr) {
		if a, b := unpack(s.addr[i]); a == hi {
			s.dropSize(a, b)
			hi, to = b, i+1
		}
	}
	s.addSize(lo, hi)
	s.addr = slices.Replace(s.addr, from, to, pack(lo, hi))
}
