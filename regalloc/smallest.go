package regalloc

import "github.com/rosmar-compiler/rosmar/arena"

// SmallestLast orders the nodes for colouring with few lanes, where nothing spills and no number of lanes is given: nodes with few
// neighbours left go first, so that Select meets the dense core first (Matula and Beck, "Smallest-last ordering and clustering and
// graph coloring algorithms", JACM 1983). It returns the degeneracy, the most neighbours that a node has left when it goes: one
// lane more always suffices for nodes of one lane.
// Nodes need only be described where Select may fail.
//
// All nodes of at most k neighbours go before k grows, the one found last first. So an edge costs one decrement a side and
// nothing moves between buckets; a level looks at the nodes that have more than k neighbours left, which is at most twice the
// edges over all levels. Once all that are left may go, no degree matters any more: that saves the edges of the last k + 1 nodes
// at least, which often have the most.
func (s *Solver) SmallestLast() (degeneracy int) {
	n := s.Graph.Len()
	s.Order = arena.Resized(s.Order, n)
	s.degree = arena.Resized(s.degree, n)
	s.byRank = arena.Resized(s.byRank, n)
	s.left = arena.Resized(s.left, n)
	const gone = 1<<31 - 1 // bit 30 tells it from a degree, however often it is decremented
	deg, stack, left, order := s.degree, s.byRank, s.left, s.Order
	// Nodes without neighbours go at once.
	done, kept := 0, 0
	for i := range deg {
		d := uint32(len(s.Graph.Neighbours(uint32(i))))
		deg[i], order[done], left[kept] = d, uint32(i), uint32(i)
		some := int((0 - d) >> 31)
		kept += some
		done += 1 - some
	}
	left = left[:kept]
	for done < n {
		if alive := n - done; len(left) > alive+alive/4 {
			kept := 0
			for _, i := range left {
				left[kept] = i
				kept += int(1 - deg[i]>>30)
			}
			left = left[:kept]
		}
		k, top := uint32(gone>>1), 0
		for _, i := range left {
			d := deg[i]
			if d > k {
				continue
			}
			if d < k {
				k, top = d, 0
			}
			stack[top] = i
			top++
		}
		degeneracy = int(k)
		for top > 0 && done+top < n {
			top--
			i := stack[top]
			deg[i] = gone
			order[done] = i
			done++
			for _, j := range s.Graph.Neighbours(i) {
				d := deg[j] - 1
				deg[j] = d
				if d == k {
					stack[top] = j
					top++
				}
			}
		}
		for top > 0 { // what is left, if anything
			top--
			order[done] = stack[top]
			done++
		}
	}
	s.Certain = n
	return degeneracy
}
