package arena

import "slices"

// Sorter sorts numbers by keys: bytes of the key, the least first, those in which all keys agree left out. It is stable, so sorting by the lesser
// key first and by the greater one after it sorts by both. Time and memory are linear, at a million items a third of what comparing takes.
type Sorter struct {
	// Items are the numbers in the order of the last sort. Keys are those of that sort.
	Items []SortItem
	spare []SortItem
}

// SortItem is a number with its key.
type SortItem struct {
	Key uint64
	ID  uint32
}

// fewItems is up to how many items are sorted by insertion: a digit costs as much as counting to 256, twice.
const fewItems = 32

func (s *Sorter) resize(n int) {
	s.Items, s.spare = slices.Grow(s.Items[:0], n)[:n], slices.Grow(s.spare[:0], n)[:n]
}

// Start takes the numbers below n, ascending.
func (s *Sorter) Start(n int) {
	s.resize(n)
	for i := range s.Items {
		s.Items[i].ID = uint32(i)
	}
}

// Take takes numbers in the order in which they are.
func (s *Sorter) Take(ids []uint32) {
	s.resize(len(ids))
	for i, id := range ids {
		s.Items[i].ID = id
	}
}

// By sorts by a key, least first; the complement of a key sorts greatest first.
func (s *Sorter) By(key func(id uint32) uint64) {
	if len(s.Items) == 0 {
		return
	}
	differ, first := uint64(0), key(s.Items[0].ID)
	for i := range s.Items {
		it := &s.Items[i]
		it.Key = key(it.ID)
		differ |= it.Key ^ first
	}
	if len(s.Items) <= fewItems {
		s.insert()
		return
	}
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var at [256]uint32
		for i := range s.Items {
			at[s.Items[i].Key>>shift&0xff]++
		}
		sum := uint32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, it := range s.Items {
			k := it.Key >> shift & 0xff
			s.spare[at[k]] = it
			at[k]++
		}
		s.Items, s.spare = s.spare, s.Items
	}
}

func (s *Sorter) insert() {
	for i, it := range s.Items {
		for ; i > 0 && s.Items[i-1].Key > it.Key; i-- {
			s.Items[i] = s.Items[i-1]
		}
		s.Items[i] = it
	}
}

// Put writes the numbers to ids, which has room for them all.
func (s *Sorter) Put(ids []uint32) {
	for i := range s.Items {
		ids[i] = s.Items[i].ID
	}
}
