package plan

import (
	"math"
	"math/bits"
	"slices"
)

// key is a property that buffers are ordered by, greatest first. An order is a list of keys, then the number.
type key uint8

const (
	byLoad   key = iota // the greatest load of a section that the buffer lives in
	byLength            // moments from the first to the last
	byArea              // length times size
	bySize
)

// orderer ranks movable buffers.
type orderer struct {
	load []int64 // by buffer
	rank []uint32
	work int64

	scratchSorted []uint32
	scratchTable  []int64
}

// prepare computes what byLoad needs: a range maximum by doubling (a sparse table).
func (o *orderer) prepare(m *model) {
	s := int(m.s)
	levels := max(bits.Len(uint(s)), 1)
	o.scratchTable = append(slices.Grow(o.scratchTable[:0], levels*s), m.load...)
	for k := 1; k < levels; k++ {
		below := o.scratchTable[(k-1)*s:]
		for i := range s {
			o.scratchTable = append(o.scratchTable, max(below[i], below[min(i+1<<(k-1), s-1)]))
		}
	}
	o.load = slices.Grow(o.load[:0], m.n)
	for u := range m.n {
		k := bits.Len(uint(m.hi[u]-m.lo[u])) - 1
		row := o.scratchTable[k*s : (k+1)*s]
		o.load = append(o.load, max(row[m.lo[u]], row[int(m.hi[u])-1<<k]))
	}
	o.rank = slices.Grow(o.rank[:0], m.n)[:m.n]
}

// sortWork is what sorting counts for a buffer.
const sortWork = 8

// by sets rank to the place of each buffer in the order of the keys.
func (o *orderer) by(m *model, keys ...key) {
	o.work += int64(m.n) * sortWork
	o.scratchSorted = slices.Grow(o.scratchSorted[:0], m.n)
	for u := range m.n {
		o.scratchSorted = append(o.scratchSorted, uint32(u))
	}
	slices.SortFunc(o.scratchSorted, func(a, b uint32) int {
		for _, k := range keys {
			var c int
			switch k {
			case byLoad:
				c = cmpInt64(o.load[b], o.load[a])
			case byLength:
				c = cmpInt64(m.length[b], m.length[a])
			case bySize:
				c = cmpInt64(m.size[b], m.size[a])
			case byArea:
				c = cmpArea(m.length[b], m.size[b], m.length[a], m.size[a])
			}
			if c != 0 {
				return c
			}
		}
		return int(a) - int(b)
	})
	for r, u := range o.scratchSorted {
		o.rank[u] = uint32(r)
	}
}

// cmpArea compares products that may need 128 bits.
func cmpArea(l1, s1, l2, s2 int64) int {
	h1, w1 := bits.Mul64(uint64(l1), uint64(s1))
	h2, w2 := bits.Mul64(uint64(l2), uint64(s2))
	switch {
	case h1 < h2 || h1 == h2 && w1 < w2:
		return -1
	case h1 == h2 && w1 == w2:
		return 0
	}
	return 1
}

// shuffle disturbs the rank: each buffer moves by less than window places, more or less, as the generator says.
func (o *orderer) shuffle(window int, rng *splitmix) {
	n := len(o.rank)
	o.work += int64(n) * sortWork
	for u, r := range o.rank {
		o.scratchSorted[u] = uint32(u)
		o.rank[u] = uint32(min(uint64(r)+rng.next()%uint64(max(window, 1)), math.MaxUint32))
	}
	slices.SortFunc(o.scratchSorted[:n], func(a, b uint32) int {
		if o.rank[a] != o.rank[b] {
			return int(o.rank[a]) - int(o.rank[b])
		}
		return int(a) - int(b)
	})
	for r, u := range o.scratchSorted[:n] {
		o.rank[u] = uint32(r)
	}
}

// splitmix is a small generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), the same everywhere.
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
