package graph

import (
	"hash/maphash"
	"slices"
)

// typeIndex finds the Type of a shape: open addressing with linear probing over hash<<32 | Type, 0 = free, at most 3/4 full. The
// shapes themselves stay in the graph's tables, so a look-up allocates nothing. Type numbers ascend in the order of creation and do
// not depend on the hash, which is salted so that no input can be made to collide.
type typeIndex struct {
	slots []uint64
}

const minTypeSlots = 64

var typeSalt = maphash.String(maphash.MakeSeed(), "")

func (x *typeIndex) reset() { clear(x.slots) }

// mix is one step of the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0xbf58476d1ce4e5b9
	return h ^ h>>29
}

// Tensor interns a tensor type. dims is copied.
func (g *Graph) Tensor(d Dtype, dims ...int64) Type {
	h := mix(typeSalt, uint64(d)<<32|uint64(len(dims)))
	for _, v := range dims {
		h = mix(h, uint64(v))
	}
	slot, t := g.findType(h, func(r *TypeRow) bool {
		return r.Dtype == d && int(r.Dims.Len) == len(dims) && slices.Equal(g.Ints.Of(r.Dims), dims)
	})
	if t != 0 {
		return t
	}
	return g.addType(slot, h, TypeRow{Dtype: d, Dims: g.Ints.AddSlice(dims)})
}

// TupleOf interns a tuple type. elems is copied.
func (g *Graph) TupleOf(elems ...Type) Type {
	h := mix(typeSalt, uint64(Tuple)<<32|uint64(len(elems)))
	for _, e := range elems {
		h = mix(h, uint64(e))
	}
	slot, t := g.findType(h, func(r *TypeRow) bool {
		return r.Dtype == Tuple && int(r.Elems.Len) == len(elems) && slices.Equal(g.TypeLists.Of(r.Elems), elems)
	})
	if t != 0 {
		return t
	}
	return g.addType(slot, h, TypeRow{Dtype: Tuple, Elems: g.TypeLists.AddSlice(elems)})
}

// findType returns the type of hash h that same accepts, or 0 and the slot where it belongs.
func (g *Graph) findType(h uint64, same func(*TypeRow) bool) (slot int, t Type) {
	x := &g.types
	if x.slots == nil {
		x.slots = make([]uint64, minTypeSlots)
	}
	mask := len(x.slots) - 1
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		e := x.slots[i]
		if e == 0 {
			return i, 0
		}
		if e>>32 == h>>32 && same(g.Types.At(Type(e))) {
			return i, Type(e)
		}
	}
}

func (g *Graph) addType(slot int, h uint64, r TypeRow) Type {
	x := &g.types
	t := g.Types.Add(r)
	x.slots[slot] = h>>32<<32 | uint64(t)
	if g.Types.Len() > len(x.slots)/4*3 {
		old := x.slots
		x.slots = make([]uint64, 2*len(old))
		mask := len(x.slots) - 1
		for _, e := range old {
			if e == 0 {
				continue
			}
			i := int(e>>32) & mask
			for x.slots[i] != 0 {
				i = (i + 1) & mask
			}
			x.slots[i] = e
		}
	}
	return t
}
