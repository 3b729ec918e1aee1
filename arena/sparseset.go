package arena

import "fmt"

// SparseSet is a set over the numbers 0 to n-1 with constant-time Add, Remove, Has and Clear, and iteration in time of its
// members rather than of its universe (Briggs and Torczon, "An efficient representation for sparse sets", ACM LOPLAS 2, 1993).
//
// dense lists the members; sparse says where in dense a number would be. A claim of sparse counts only if dense agrees, so sparse
// may hold rubbish and is never cleared.
//
// It costs 8 bytes for each number of the universe. Use it for the live set of a walk and for worklists, where it is cleared
// often or holds little of its universe. For unions and intersections, or many sets over one universe, a bitset is 64 times
// smaller and works by words.
type SparseSet struct {
	dense  []uint32
	sparse []uint32
}

// Resize makes the universe 0 to n-1 and the set empty.
func (s *SparseSet) Resize(n int) {
	s.sparse = Resized(s.sparse, n)
	s.dense = Resized(s.dense, n)[:0]
}

// Add puts x in and reports whether it was absent. It panics when x is outside the universe.
func (s *SparseSet) Add(x uint32) bool {
	if uint(x) >= uint(len(s.sparse)) {
		s.outside(x)
	}
	if i := s.sparse[x]; uint(i) < uint(len(s.dense)) && s.dense[i] == x {
		return false
	}
	s.sparse[x] = uint32(len(s.dense))
	s.dense = append(s.dense, x)
	return true
}

// Remove takes x out and reports whether it was in. The last member takes its place in the order.
func (s *SparseSet) Remove(x uint32) bool {
	if !s.Has(x) {
		return false
	}
	i, end := s.sparse[x], len(s.dense)-1
	last := s.dense[end]
	s.dense[i] = last
	s.sparse[last] = i
	s.dense = s.dense[:end]
	return true
}

// Pop takes out the last member in the order; ok is false when the set is empty.
func (s *SparseSet) Pop() (x uint32, ok bool) {
	end := len(s.dense) - 1
	if end < 0 {
		return 0, false
	}
	x = s.dense[end]
	s.dense = s.dense[:end]
	return x, true
}

// Has reports whether x is in. Numbers outside the universe are not.
func (s *SparseSet) Has(x uint32) bool {
	if uint(x) >= uint(len(s.sparse)) {
		return false
	}
	i := s.sparse[x]
	return uint(i) < uint(len(s.dense)) && s.dense[i] == x
}

// Clear empties the set and keeps the universe.
func (s *SparseSet) Clear() { s.dense = s.dense[:0] }

// Len returns the number of members.
func (s *SparseSet) Len() int { return len(s.dense) }

// Members returns the members in the order of Add, but for the swaps of Remove. Valid until the next change; not to be written.
// To remove while walking, walk from the end.
func (s *SparseSet) Members() []uint32 { return s.dense }

//go:noinline
func (s *SparseSet) outside(x uint32) {
	panic(fmt.Sprintf("arena: %d is outside the universe of %d numbers of this sparse set", x, len(s.sparse)))
}
