package scan

import (
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/publicdata"
	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// public reads one of the public programs.
func public(t testing.TB, name string) (fs []*flow.Func, insts int) {
	file, err := os.Open(publicdata.Path(t, "regalloc-ssa", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	r := flow.NewReader(in)
	for {
		f := new(flow.Func)
		if err := r.Next(f); err == io.EOF {
			return fs, insts
		} else if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
		insts += len(f.Insts)
	}
}

// machine is K integer registers, of which the last five survive calls, and 15 float registers, none of which does.
func machine(k int) flow.File {
	return flow.File{N: [2]int{k, 15}, Saved: [2]int{min(5, k), 0}}
}

// fastalloc is what a public linear scan needs in moves for the same functions under the same rules, and ion what a public
// backtracking allocator does.
var published = []struct {
	name           string
	k              int
	fastalloc, ion int
}{
	{"case.ssa", 14, 9248, 2058}, {"case.ssa", 8, 11410, 3506},
	{"greet.ssa", 14, 17968, 3860}, {"greet.ssa", 8, 21622, 7030},
	{"zigcc.ssa", 14, 11661, 2237}, {"zigcc.ssa", 8, 13627, 3621},
	{"gofmt8.ssa.gz", 14, 227304, 47032}, {"gofmt8.ssa.gz", 8, 268147, 71905},
}

func TestPublicFunctions(t *testing.T) {
	var a Allocator
	var c check.Checker
	for _, p := range published {
		fs, _ := public(t, p.name)
		var n flow.Counts
		for _, f := range fs {
			ans, err := a.Run(f, machine(p.k))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Answer(f, machine(p.k), ans); err != nil {
				t.Fatal(err)
			}
			m := ans.Count()
			n.Stores, n.Loads, n.Copies = n.Stores+m.Stores, n.Loads+m.Loads, n.Copies+m.Copies
		}
		t.Logf("%s K=%d: %d moves, %.3f of fastalloc, %.3f of ion (%d stores, %d loads, %d copies)", p.name, p.k, n.Total(),
			float64(n.Total())/float64(p.fastalloc), float64(n.Total())/float64(p.ion), n.Stores, n.Loads, n.Copies)
		if 3*n.Total() >= p.fastalloc {
			t.Errorf("%s K=%d: %d moves are not under a third of fastalloc's %d", p.name, p.k, n.Total(), p.fastalloc)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for _, p := range published {
		b.Run(p.name+"/K="+map[int]string{14: "14", 8: "8"}[p.k], func(b *testing.B) {
			fs, insts := public(b, p.name)
			var a Allocator
			moves := 0
			run := func() {
				for _, f := range fs {
					ans, err := a.Run(f, machine(p.k))
					if err != nil {
						b.Fatal(err)
					}
					moves += len(ans.Moves)
				}
			}
			run()
			moves = 0
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(insts), "ns/inst")
			b.ReportMetric(float64(moves)/float64(b.N), "moves")
		})
	}
}

func TestAllocatesNothingAgain(t *testing.T) {
	fs, _ := public(t, "case.ssa")
	var a Allocator
	run := func() {
		for _, f := range fs {
			if _, err := a.Run(f, machine(8)); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
