package regalloc

import "github.com/rosmar-compiler/rosmar/arena"

// GraphKind is how a graph holds its edges.
type GraphKind uint8

const (
	// GraphAdjacency keeps the neighbours of each node side by side.
	GraphAdjacency GraphKind = iota
	// GraphIndex keeps no edges: it finds a node's neighbours by time when asked.
	GraphIndex
)

// GraphLimits are the sizes at which a graph changes its representation; fields, so that a test can lower them.
type GraphLimits struct {
	// MatrixNodes is up to how many nodes a bit matrix keeps pairs apart that overlap more than once. 16,384 nodes take 16 MiB.
	MatrixNodes int
	// Edges is up to how many edges are stored, at 8 bytes each.
	Edges int
}

// DefaultLimits are the limits of a zero Graph.
var DefaultLimits = GraphLimits{MatrixNodes: 16384, Edges: 64 << 20}

// Graph is the interference of nodes that are live over segments of time: two nodes interfere when two of their segments
// overlap. Geometry is not in it.
// Where each node has one segment, asking the index costs about what reading edges does, and there is nothing to build.
type Graph struct {
	Limits GraphLimits
	// Stored keeps edges there too, for a caller that asks for the neighbours of a node many times.
	Stored bool
	Kind   GraphKind

	n      int
	segs   []Seg
	single bool // one segment a node, node k's at position k
	adj    arena.Adjacency
	start  []uint32 // of adj: node n has near[start[n]:start[n+1]]; nil when no edges are kept
	near   []uint32
	matrix arena.BitMatrix
	index  Index
	live   arena.SparseSet
	byEnd  []uint32 // positions in order of end
	counts []uint32
	off    []uint32 // by node: segments in segOf, when not single
	segOf  []uint32
	edges  int

	hits []uint32
	seen arena.SparseSet
}

// Build takes the segments of n nodes in ascending order of start; segments of one node are disjoint. It keeps segs.
func (g *Graph) Build(n int, segs []Seg) {
	if g.Limits == (GraphLimits{}) {
		g.Limits = DefaultLimits
	}
	g.n, g.segs = n, segs
	g.single = len(segs) == n
	for i := 0; g.single && i < n; i++ {
		g.single = segs[i].Node == uint32(i)
	}
	g.orderEnds()
	if pairs := g.countPairs(); g.single && !g.Stored || pairs > g.Limits.Edges {
		g.Kind, g.start = GraphIndex, nil
		g.index.Build(segs)
		if !g.single {
			g.groupSegs()
			g.seen.Resize(n)
		}
		g.edges = pairs
		return
	}
	g.Kind = GraphAdjacency
	g.live.Resize(len(segs))
	matrix := !g.single && n <= g.Limits.MatrixNodes
	g.adj.Begin(n)
	if matrix {
		g.matrix.Resize(n)
	}
	g.sweep(matrix, false)
	g.adj.Fill()
	if matrix {
		g.matrix.Resize(n)
	}
	g.sweep(matrix, true)
	g.adj.Finish()
	if !g.single && !matrix {
		g.adj.Unique()
	}
	g.edges = g.adj.Edges()
	g.start, g.near = g.adj.Rows()
}

// BuildEdges takes the pairs of n nodes that interfere, each once, in any order. Pairs of a node with itself are dropped. There are
// no segments: a caller whose edges do not come from overlap in time has its own.
func (g *Graph) BuildEdges(n int, edges [][2]uint32) {
	g.n, g.segs, g.single, g.Kind = n, nil, false, GraphAdjacency
	g.adj.Build(n, edges)
	g.edges = g.adj.Edges()
	g.start, g.near = g.adj.Rows()
}

// orderEnds sorts the positions of the segments by end, by counting.
func (g *Graph) orderEnds() {
	last := uint32(0)
	for i := range g.segs {
		last = max(last, g.segs[i].End)
	}
	g.counts = arena.Zeroed(g.counts, int(last)+2)
	for i := range g.segs {
		g.counts[g.segs[i].End+1]++
	}
	for i := 1; i < len(g.counts); i++ {
		g.counts[i] += g.counts[i-1]
	}
	g.byEnd = arena.Resized(g.byEnd, len(g.segs))
	for i := range g.segs {
		e := g.segs[i].End
		g.byEnd[g.counts[e]] = uint32(i)
		g.counts[e]++
	}
}

// countPairs is the number of overlapping pairs of segments, without visiting them: at each start, as many as are open.
func (g *Graph) countPairs() int {
	pairs, gone, open := 0, 0, 0
	for i := range g.segs {
		s := &g.segs[i]
		for ; gone < len(g.byEnd) && g.segs[g.byEnd[gone]].End <= s.Start; gone++ {
			if e := &g.segs[g.byEnd[gone]]; e.Start < e.End {
				open--
			}
		}
		if s.Start < s.End {
			pairs += open
			open++
		}
	}
	return pairs
}

// groupSegs lists the segments of each node in order of time.
func (g *Graph) groupSegs() {
	g.off = arena.Zeroed(g.off, g.n+2)
	for i := range g.segs {
		g.off[g.segs[i].Node+2]++
	}
	for i := 2; i < len(g.off); i++ {
		g.off[i] += g.off[i-1]
	}
	g.segOf = arena.Resized(g.segOf, len(g.segs))
	for i := range g.segs {
		o := &g.off[g.segs[i].Node+1]
		g.segOf[*o] = uint32(i)
		*o++
	}
	g.off = g.off[:g.n+1]
}

// sweep walks through time with the set of open segments and hands over every interfering pair of nodes: once with the matrix or
// where nodes have one segment, else as often as their segments overlap.
func (g *Graph) sweep(matrix, put bool) {
	g.live.Clear()
	gone := 0
	for i := range g.segs {
		s := g.segs[i]
		for gone < len(g.byEnd) && g.segs[g.byEnd[gone]].End <= s.Start {
			g.live.Remove(g.byEnd[gone])
			gone++
		}
		if s.Start >= s.End {
			continue
		}
		for _, o := range g.live.Members() {
			a := g.segs[o].Node
			if matrix && !g.matrix.Set(a, s.Node) {
				continue
			}
			if put {
				g.adj.Put(a, s.Node)
			} else {
				g.adj.Count(a, s.Node)
			}
		}
		g.live.Add(uint32(i))
	}
}

func (g *Graph) segsOf(n uint32) []uint32 { return g.segOf[g.off[n]:g.off[n+1]] }

// Neighbours are the nodes that interfere with n, each once, in no order that matters. Not to be written; valid until the next call.
// Small enough to stand inline: colouring asks three times a node, for lists that are often short.
func (g *Graph) Neighbours(n uint32) []uint32 {
	if g.start == nil {
		return g.overlapping(n)
	}
	return g.near[g.start[n]:g.start[n+1]]
}

// overlapping is Neighbours by the index.
func (g *Graph) overlapping(n uint32) []uint32 {
	if g.single {
		g.hits = g.index.Around(g.hits[:0], n)
		return g.hits
	}
	g.seen.Clear()
	for _, p := range g.segsOf(n) {
		g.hits = g.index.Append(g.hits[:0], g.segs[p].Start, g.segs[p].End)
		for _, h := range g.hits {
			if o := g.segs[h].Node; o != n {
				g.seen.Add(o)
			}
		}
	}
	return g.seen.Members()
}

// Len is the number of nodes.
func (g *Graph) Len() int { return g.n }

// Edges is the number of interfering pairs; when the graph keeps no edges, of overlapping pairs of segments.
func (g *Graph) Edges() int { return g.edges }
