package regalloc

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/publicdata"
)

// dimacs is one graph of the second DIMACS challenge's register allocation family, with its chromatic number.
type dimacs struct {
	name  string
	chi   int
	n     int
	edges [][2]uint32
}

// chromatic numbers, proved on the data: a clique and a colouring of that size exist.
var chromatic = []struct {
	name string
	chi  int
}{
	{"fpsol2.i.1", 65}, {"fpsol2.i.2", 30}, {"fpsol2.i.3", 30}, {"inithx.i.1", 54}, {"inithx.i.2", 31}, {"inithx.i.3", 31},
	{"mulsol.i.1", 49}, {"mulsol.i.2", 31}, {"mulsol.i.3", 31}, {"mulsol.i.4", 31}, {"mulsol.i.5", 31},
	{"zeroin.i.1", 49}, {"zeroin.i.2", 30}, {"zeroin.i.3", 30},
}

func readDimacs(tb testing.TB) (graphs []dimacs) {
	tb.Helper()
	dir := publicdata.Path(tb, "dimacs")
	for _, c := range chromatic {
		f, err := os.Open(filepath.Join(dir, c.name+".col"))
		if err != nil {
			tb.Skip(err)
		}
		g := dimacs{name: c.name, chi: c.chi}
		for in := bufio.NewScanner(f); in.Scan(); {
			w := strings.Fields(in.Text())
			switch {
			case len(w) == 4 && w[0] == "p":
				g.n, _ = strconv.Atoi(w[2])
			case len(w) == 3 && w[0] == "e":
				a, _ := strconv.Atoi(w[1])
				b, _ := strconv.Atoi(w[2])
				g.edges = append(g.edges, [2]uint32{uint32(a - 1), uint32(b - 1)})
			}
		}
		f.Close()
		graphs = append(graphs, g)
	}
	return graphs
}

// painter colours graphs of one-lane nodes.
type painter struct {
	s     Solver
	lanes Lanes
	r     Result
}

// fewest colours with as many lanes as smallest-last asks for and returns how many were used.
func (p *painter) fewest(g *dimacs) int {
	p.s.Graph.BuildEdges(g.n, g.edges)
	k := p.s.SmallestLast() + 1
	p.lanes.Reset(g.n, k)
	Select(&p.s, &p.lanes, &p.r)
	top := int32(-1)
	for _, at := range p.lanes.At {
		top = max(top, at)
	}
	return int(top) + 1
}

// with colours with k lanes, at equal costs, and returns how many nodes find none.
func (p *painter) with(g *dimacs, k int, m Metric) int {
	p.s.Graph.BuildEdges(g.n, g.edges)
	p.lanes.Reset(g.n, k)
	p.s.Weight, p.s.Classes, p.s.Metric = weight1[:], 1, m
	p.s.Nodes = p.s.Nodes[:0]
	for range g.n {
		p.s.Nodes = append(p.s.Nodes, p.lanes.Node(1, 1))
	}
	p.s.Simplify()
	Select(&p.s, &p.lanes, &p.r)
	return len(p.r.Unplaced)
}

func (p *painter) proper(t *testing.T, g *dimacs) (unplaced int) {
	t.Helper()
	for _, e := range g.edges {
		if a, b := p.lanes.At[e[0]], p.lanes.At[e[1]]; a >= 0 && a == b {
			t.Fatalf("%s: neighbours %d and %d share lane %d", g.name, e[0], e[1], a)
		}
	}
	for _, at := range p.lanes.At {
		if at < 0 {
			unplaced++
		}
	}
	return unplaced
}

func TestDIMACS(t *testing.T) {
	var p painter
	for _, g := range readDimacs(t) {
		if got := p.fewest(&g); got != g.chi || p.proper(t, &g) != 0 {
			t.Errorf("%s: %d colours, chromatic number %d", g.name, got, g.chi)
		}
		for m := MetricCap; m < NumMetrics; m++ {
			// With ties by number, as an allocator must break them, one node may miss an optimal colouring.
			if got := p.with(&g, g.chi, m); got > 1 || p.proper(t, &g) != got {
				t.Errorf("%s, metric %d: %d of %d nodes find none of %d lanes", g.name, m, got, g.n, g.chi)
			}
			last := 0
			for _, k := range []int{24, 16, 8} {
				got := p.with(&g, k, m)
				if p.proper(t, &g) != got {
					t.Errorf("%s: %d lanes: %d reported without one, %d have none", g.name, k, got, p.proper(t, &g))
				}
				// A clique of chi nodes leaves at least chi-k without a lane.
				if got < g.chi-k || got < last {
					t.Errorf("%s: %d lanes leave %d nodes without, %d of a clique cannot have one", g.name, k, got, g.chi-k)
				}
				last = got
				t.Logf("%s, metric %d: %d lanes leave %d of %d nodes without one", g.name, m, k, got, g.n)
			}
		}
	}
}

func TestDIMACSSteadyState(t *testing.T) {
	graphs := readDimacs(t)
	var p painter
	pass := func() {
		for i := range graphs {
			p.fewest(&graphs[i])
			p.with(&graphs[i], 16, MetricCap)
		}
	}
	pass()
	if n := testing.AllocsPerRun(3, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

// BenchmarkDIMACS colours each graph from its list of edges: adjacency, order and lanes.
func BenchmarkDIMACS(b *testing.B) {
	graphs := readDimacs(b)
	var p painter
	for i := range graphs {
		g := &graphs[i]
		b.Run(g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.fewest(g)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.edges)), "ns/edge")
		})
	}
	b.Run("all", func(b *testing.B) {
		edges := 0
		for i := range graphs {
			edges += len(graphs[i].edges)
		}
		b.ReportAllocs()
		for b.Loop() {
			for i := range graphs {
				p.fewest(&graphs[i])
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(edges), "ns/edge")
	})
}
