package plan

import (
	"math"
	"math/bits"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
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
	wide bool // some area may need more than 64 bits
	sort *arena.Sorter

	scratchMax []int64
}

// prepare computes what byLoad needs, with a tree of maxima: a query takes the logarithm of the buffer's own sections.
func (o *orderer) prepare(m *model) {
	s := int(m.s)
	o.scratchMax = slices.Grow(o.scratchMax[:0], 2*s)[:2*s]
	most := o.scratchMax
	copy(most[s:], m.load)
	for k := s - 1; k > 0; k-- {
		most[k] = max(most[2*k], most[2*k+1])
	}
	o.load = slices.Grow(o.load[:0], m.n)
	length, size := int64(0), int64(0)
	for u := range m.n {
		length, size = max(length, m.length[u]), max(size, m.size[u])
		load := int64(0)
		for a, b := int(m.lo[u])+s, int(m.hi[u])+s; a < b; a, b = a>>1, b>>1 {
			if a&1 == 1 {
				load = max(load, most[a])
				a++
			}
			if b&1 == 1 {
				b--
				load = max(load, most[b])
			}
		}
		o.load = append(o.load, load)
	}
	high, _ := bits.Mul64(uint64(length), uint64(size))
	o.wide = high > 0
	o.rank = slices.Grow(o.rank[:0], m.n)[:m.n]
}

// sortWork is what sorting counts for a buffer.
const sortWork = 8

// by sets rank to the place of each buffer in the order of the keys.
func (o *orderer) by(m *model, keys ...key) {
	o.work += int64(m.n) * sortWork
	o.sort.Start(m.n)
	for i := len(keys) - 1; i >= 0; i-- {
		switch keys[i] {
		case byLoad:
			o.sort.By(func(u uint32) uint64 { return ^uint64(o.load[u]) })
		case byLength:
			o.sort.By(func(u uint32) uint64 { return ^uint64(m.length[u]) })
		case bySize:
			o.sort.By(func(u uint32) uint64 { return ^uint64(m.size[u]) })
		case byArea:
			o.sort.By(func(u uint32) uint64 { return ^(uint64(m.length[u]) * uint64(m.size[u])) })
			if o.wide {
				o.sort.By(func(u uint32) uint64 {
					high, _ := bits.Mul64(uint64(m.length[u]), uint64(m.size[u]))
					return ^high
				})
			}
		}
	}
	o.setRank()
}

func (o *orderer) setRank() {
	for r, it := range o.sort.Items {
		o.rank[it.ID] = uint32(r)
	}
}

// shuffle disturbs the rank: each buffer moves by less than window places, more or less, as the generator says.
func (o *orderer) shuffle(window int, rng *splitmix) {
	n := len(o.rank)
	o.work += int64(n) * sortWork
	for u, r := range o.rank {
		o.rank[u] = uint32(min(uint64(r)+rng.next()%uint64(max(window, 1)), math.MaxUint32))
	}
	o.sort.Start(n)
	o.sort.By(func(u uint32) uint64 { return uint64(o.rank[u]) })
	o.setRank()
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
