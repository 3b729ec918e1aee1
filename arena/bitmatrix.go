package arena

import "fmt"

// BitMatrix is a symmetric relation without a diagonal over the nodes 0 to n-1, one bit for each unordered pair: the membership
// half of an interference graph (Chaitin et al., "Register allocation via coloring", 1981; the other half is Adjacency).
//
// The pair lo < hi has bit hi*(hi-1)/2 + lo, so the rows of low nodes stay put when n changes. Size and time of Resize go with
// the square of n: 16,384 nodes take 16 MiB. Above some such size, which the caller measures, the edges come from an interval sweep
// that meets each pair once and needs no membership test.
type BitMatrix struct {
	words []uint64
	nodes int
}

// MatrixBytes returns the storage that Resize(n) needs, for the caller that has to choose.
func MatrixBytes(n int) int { return 8 * matrixWords(n) }

func matrixWords(n int) int {
	if n < 2 {
		return 0
	}
	if uint64(n) > 1<<32 {
		panic(fmt.Sprintf("arena: bit matrix of %d nodes: nodes are uint32", n))
	}
	return int((uint64(n)*uint64(n-1)/2 + 63) / 64)
}

// Resize makes the nodes 0 to n-1 and the relation empty. It clears the words that n nodes use and no others: a small graph
// after a large one pays for the small one.
func (m *BitMatrix) Resize(n int) {
	if n < 0 {
		panic(fmt.Sprintf("arena: bit matrix size %d is negative", n))
	}
	need, had := matrixWords(n), cap(m.words)
	m.words = Resized(m.words, need)
	if need <= had {
		clear(m.words)
	}
	m.nodes = n
}

// Set relates a and b, in either order, and reports whether they were not related before. A node is never related to itself:
// Set(a, a) stores nothing and returns false.
func (m *BitMatrix) Set(a, b uint32) bool {
	hi, lo := max(a, b), min(a, b)
	if uint(hi) >= uint(m.nodes) {
		m.outside(hi)
	}
	if hi == lo {
		return false
	}
	i := pair(hi, lo)
	w, mask := &m.words[i>>6], uint64(1)<<(i&63)
	if *w&mask != 0 {
		return false
	}
	*w |= mask
	return true
}

// Has reports whether a and b are related.
func (m *BitMatrix) Has(a, b uint32) bool {
	hi, lo := max(a, b), min(a, b)
	if uint(hi) >= uint(m.nodes) {
		m.outside(hi)
	}
	i := pair(hi, lo)
	return hi != lo && m.words[i>>6]>>(i&63)&1 != 0
}

// Len returns the number of nodes.
func (m *BitMatrix) Len() int { return m.nodes }

// pair returns the bit of hi and lo.
func pair(hi, lo uint32) uint64 { return uint64(hi)*uint64(hi-1)/2 + uint64(lo) }

// outside panics for a node that is not below n. The bounds of words alone would let some through, into the spare bits of the last
// word.
//
//go:noinline
func (m *BitMatrix) outside(x uint32) {
	panic(fmt.Sprintf("arena: node %d is outside the bit matrix of %d nodes", x, m.nodes))
}
