package bestfit

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

func sizeKey(lo, hi uint32) uint64 { return pack(hi-lo, lo) }

func (s *span) dropSize(key uint64) {
	i := lowerBound(s.size, key)
	s.size = s.size[:i+copy(s.size[i:], s.size[i+1:])]
}

func (s *span) addSize(key uint64) {
	i := lowerBound(s.size, key)
	s.size = append(s.size, 0)
	copy(s.size[i+1:], s.size[i:])
	s.size[i] = key
}

// resize turns one key into another, moving only what lies between them.
func (s *span) resize(from, to uint64) {
	i := lowerBound(s.size, from)
	if to < from {
		j := lowerBound(s.size[:i], to)
		copy(s.size[j+1:i+1], s.size[j:i])
		s.size[j] = to
		return
	}
	j := i + lowerBound(s.size[i+1:], to)
	copy(s.size[i:j], s.size[i+1:j+1])
	s.size[j] = to
}

// cut takes [lo, hi) out of every interval that meets it.
func (s *span) cut(lo, hi uint32) {
	i := s.after(lo)
	for i < len(s.addr) {
		a, b := unpack(s.addr[i])
		switch {
		case a >= hi:
			return
		case a < lo && hi < b:
			s.resize(sizeKey(a, b), sizeKey(a, lo))
			s.addSize(sizeKey(hi, b))
			s.addr = append(s.addr, 0)
			copy(s.addr[i+1:], s.addr[i:])
			s.addr[i], s.addr[i+1] = pack(a, lo), pack(hi, b)
			return
		case a < lo:
			s.resize(sizeKey(a, b), sizeKey(a, lo))
			s.addr[i] = pack(a, lo)
			i++
		case hi < b:
			s.resize(sizeKey(a, b), sizeKey(hi, b))
			s.addr[i] = pack(hi, b)
			return
		default:
			s.dropSize(sizeKey(a, b))
			s.addr = s.addr[:i+copy(s.addr[i:], s.addr[i+1:])]
		}
	}
}

// join adds [lo, hi), which is in no interval yet, and merges it with what touches it.
func (s *span) join(lo, hi uint32) {
	i := lowerBound(s.addr, pack(lo, 0))
	left, right := false, false
	var a, b uint32
	if i > 0 {
		var end uint32
		a, end = unpack(s.addr[i-1])
		left = end == lo
	}
	if i < len(s.addr) {
		var start uint32
		start, b = unpack(s.addr[i])
		right = start == hi
	}
	switch {
	case left && right:
		s.dropSize(sizeKey(hi, b))
		s.resize(sizeKey(a, lo), sizeKey(a, b))
		s.addr[i-1] = pack(a, b)
		s.addr = s.addr[:i+copy(s.addr[i:], s.addr[i+1:])]
	case left:
		s.resize(sizeKey(a, lo), sizeKey(a, hi))
		s.addr[i-1] = pack(a, hi)
	case right:
		s.resize(sizeKey(hi, b), sizeKey(lo, b))
		s.addr[i] = pack(lo, b)
	default:
		s.addSize(sizeKey(lo, hi))
		s.addr = append(s.addr, 0)
		copy(s.addr[i+1:], s.addr[i:])
		s.addr[i] = pack(lo, hi)
	}
}
