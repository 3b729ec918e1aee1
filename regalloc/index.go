package regalloc

import "github.com/rosmar-compiler/rosmar/arena"

// Seg is one live segment of a node: points Start ≤ p < End.
type Seg struct {
	Start, End uint32
	Node       uint32
}

// leafSegs is the number of segments under one leaf of the index tree: few enough to scan, many enough to keep the tree small.
const leafSegs = 16

// Index answers which segments overlap a stretch of time: a static tree over the segments in order of start, each node of
// which knows the latest end below it. A query takes O((1 + k) log n) for k answers. The index borrows the segments.
type Index struct {
	segs   []Seg
	latest []uint32 // heap order; leaves are groups of leafSegs segments
	leaves int
}

// Build takes segments in ascending order of Start.
func (x *Index) Build(segs []Seg) {
	x.segs = segs
	groups := (len(segs) + leafSegs - 1) / leafSegs
	x.leaves = 1
	for x.leaves < groups {
		x.leaves *= 2
	}
	x.latest = arena.Zeroed(x.latest, 2*x.leaves)
	for i := range segs {
		leaf := &x.latest[x.leaves+i/leafSegs]
		*leaf = max(*leaf, segs[i].End)
	}
	for i := x.leaves - 1; i > 0; i-- {
		x.latest[i] = max(x.latest[2*i], x.latest[2*i+1])
	}
}

// Append adds to dst the positions of the segments that overlap [lo, hi), ascending.
func (x *Index) Append(dst []uint32, lo, hi uint32) []uint32 {
	if lo >= hi || len(x.segs) == 0 {
		return dst
	}
	// Segments from n on start too late.
	n, end := 0, len(x.segs)
	for n < end {
		mid := int(uint(n+end) >> 1)
		if x.segs[mid].Start < hi {
			n = mid + 1
		} else {
			end = mid
		}
	}
	// Depth-first through the subtrees that end late enough, left to right. node+1 is the next subtree to the right of a right
	// child's parent chain once trailing ones are stripped.
	node := 1
	for {
		if x.latest[node] > lo {
			if node < x.leaves {
				node *= 2
				continue
			}
			from := (node - x.leaves) * leafSegs
			if from >= n {
				return dst
			}
			for i := from; i < min(from+leafSegs, n); i++ {
				if x.segs[i].End > lo {
					dst = append(dst, uint32(i))
				}
			}
		}
		for node&1 == 1 {
			if node == 1 {
				return dst
			}
			node >>= 1
		}
		node++
	}
}
