package arena

import (
	"fmt"
	"math"
)

// Adjacency is an undirected graph over the nodes 0 to n-1 with the neighbours of each node side by side in one array (compressed
// rows). It is built in two passes over the edges, so that each list gets its exact size and nothing moves:
//
//	g.Begin(n)
//	for each edge a, b { g.Count(a, b) }
//	g.Fill()
//	for each edge a, b { g.Put(a, b) }
//	g.Finish()
//
// Both passes must give the same edges, in any order; Finish panics when a degree differs. Neighbours come in the order of
// Put. An edge given twice is stored twice (BitMatrix.Set tells), and an edge from a node to itself is dropped. The graph does not
// change after Finish: colouring removes nodes by lowering degrees of its own and skipping marked neighbours.
//
// It costs 8 bytes a node and 8 an edge, with at most 2^31-1 edges.
type Adjacency struct {
	deg []uint32
	// off has one entry more than there are nodes. Between Fill and Finish, off[a+1] is where the next neighbour of a goes; when
	// a's list is full that is where the list of a+1 starts, so that afterwards a has list[off[a]:off[a+1]].
	off  []uint32
	list []uint32
	done []uint32 // list once Finish has run, else nil: a list that is asked for too early is out of bounds
	seen []uint32 // of Unique: by node, 1 + the last list that it stood in
}

// Begin starts a graph of n nodes.
func (g *Adjacency) Begin(n int) {
	g.deg = Resized(g.deg, n)
	clear(g.deg)
	g.list, g.done = g.list[:0], nil
	g.off = Resized(g.off, n+1)
	g.off[0] = 0
}

// Count announces the edge a, b.
func (g *Adjacency) Count(a, b uint32) {
	if a != b {
		g.deg[a]++
		g.deg[b]++
	}
}

// Fill ends the counting and lays out the lists.
func (g *Adjacency) Fill() {
	sum := uint64(0)
	for a, d := range g.deg {
		g.off[a+1] = uint32(sum)
		sum += uint64(d)
		if sum > math.MaxUint32 {
			panic(fmt.Sprintf("arena: adjacency of %d nodes is full: more than %d edges", len(g.deg), math.MaxInt32))
		}
	}
	g.list = Resized(g.list, int(sum))
}

// Put stores the edge a, b, one of those counted.
func (g *Adjacency) Put(a, b uint32) {
	if a != b {
		i, j := g.off[a+1], g.off[b+1]
		g.off[a+1], g.off[b+1] = i+1, j+1
		g.list[i], g.list[j] = b, a
	}
}

// Finish ends the building. It panics when an edge was counted and not put, or the other way round.
func (g *Adjacency) Finish() {
	for a, d := range g.deg {
		if g.off[a+1]-g.off[a] != d {
			panic(fmt.Sprintf("arena: adjacency: near node %d of %d, neighbours put differ from the %d counted", a, len(g.deg), d))
		}
	}
	g.done = g.list
}

// Unique drops, after Finish, all but the first of equal neighbours of each node: for a builder that meets a pair more than once
// and need not remember which. It takes time in what was put.
func (g *Adjacency) Unique() {
	g.seen = Resized(g.seen, len(g.deg))
	clear(g.seen)
	at, from := uint32(0), uint32(0)
	for a := range g.deg {
		to := g.off[a+1]
		start := at
		for _, b := range g.list[from:to] {
			if g.seen[b] != uint32(a)+1 {
				g.seen[b] = uint32(a) + 1
				g.list[at] = b
				at++
			}
		}
		from = to
		g.off[a+1], g.deg[a] = at, at-start
	}
	g.list = g.list[:at]
	g.done = g.list
}

// Neighbours returns the neighbours of a, in the order of Put. Valid until the next Begin or Reset; not to be written.
func (g *Adjacency) Neighbours(a uint32) []uint32 {
	i, j := g.off[a], g.off[a+1]
	return g.done[i:j:j]
}

// Rows returns all neighbours: those of a are near[start[a]:start[a+1]]. Valid as Neighbours is; start is not nil.
func (g *Adjacency) Rows() (start, near []uint32) { return g.off, g.done }

// Degree returns the number of neighbours of a. It may be asked from Fill on.
func (g *Adjacency) Degree(a uint32) int { return int(g.deg[a]) }

// Len returns the number of nodes.
func (g *Adjacency) Len() int { return len(g.deg) }

// Edges returns the number of edges. It may be asked from Fill on.
func (g *Adjacency) Edges() int { return len(g.list) / 2 }

// Reset drops the graph and keeps the storage.
func (g *Adjacency) Reset() { g.deg, g.off, g.list, g.done = g.deg[:0], g.off[:0], g.list[:0], nil }

// Build makes the whole graph from a list of edges: both passes at once, for a caller that has the edges in memory. Edges that
// stand together by their first node cost less than mixed ones, since that node's counter stays in a register.
func (g *Adjacency) Build(n int, edges [][2]uint32) {
	g.Begin(n)
	deg := g.deg
	for i := 0; i < len(edges); {
		a, from := edges[i][0], i
		self := uint32(0)
		for ; i < len(edges) && edges[i][0] == a; i++ {
			b := edges[i][1]
			deg[b]++
			if a == b {
				self += 2
			}
		}
		deg[a] += uint32(i-from) - self
	}
	g.Fill()
	// next[a] is where the next neighbour of a goes.
	next, list := g.off[1:], g.list
	for i := 0; i < len(edges); {
		a := edges[i][0]
		at := next[a]
		for ; i < len(edges) && edges[i][0] == a; i++ {
			b := edges[i][1]
			if a == b {
				continue
			}
			to := next[b]
			next[b] = to + 1
			list[at], list[to] = b, a
			at++
		}
		next[a] = at
	}
	g.done = g.list
}
