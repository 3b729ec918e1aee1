package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// TestPublicFunctions reads real functions and holds liveness against a plain fixpoint.
func TestPublicFunctions(t *testing.T) {
	var l flow.Live
	for _, name := range []string{"case.ssa", "greet.ssa", "zigcc.ssa", "gofmt8.ssa.gz"} {
		for _, f := range flowtest.Public(t, name) {
			l.Build(f)
			if n := len(l.In(0)); n != 0 {
				t.Fatalf("%s %s: %d values live into the entry", name, f.Name, n)
			}
			if f.Values()*len(f.Blocks) < 1<<16 {
				checkLive(t, f, &l)
			}
		}
	}
}

// checkLive is liveness as the textbooks define it.
func checkLive(t *testing.T, f *flow.Func, l *flow.Live) {
	in := make([]map[flow.Value]bool, len(f.Blocks))
	for b := range in {
		in[b] = map[flow.Value]bool{}
	}
	for again := true; again; {
		again = false
		for b := len(f.Blocks) - 1; b >= 0; b-- {
			blk := &f.Blocks[b]
			live := map[flow.Value]bool{}
			for e := blk.Succs.From; e < blk.Succs.To; e++ {
				for v := range in[f.Edges[e].To] {
					live[v] = true
				}
				for _, v := range f.Of(f.Edges[e].Args) {
					live[v] = true
				}
			}
			for i := int(blk.Insts.To) - 1; i >= int(blk.Insts.From); i-- {
				for _, v := range f.Of(f.Insts[i].Defs()) {
					delete(live, v)
				}
				for _, v := range f.Of(f.Insts[i].Uses) {
					live[v] = true
				}
			}
			for _, v := range f.Of(blk.Params) {
				delete(live, v)
			}
			if len(live) != len(in[b]) {
				in[b], again = live, true
			}
		}
	}
	for b := range in {
		got := l.In(uint32(b))
		if len(got) != len(in[b]) || !slices.IsSorted(got) {
			t.Fatalf("%s: %v live into block %d, want %v", f.Name, got, b, in[b])
		}
		for _, v := range got {
			if !in[b][v] {
				t.Fatalf("%s: value %d is not live into block %d", f.Name, v, b)
			}
		}
	}
}

func BenchmarkLive(b *testing.B) {
	for _, name := range []string{"case.ssa", "gofmt8.ssa.gz"} {
		b.Run(name, func(b *testing.B) {
			fs := flowtest.Public(b, name)
			var l flow.Live
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range fs {
					l.Build(f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flowtest.Insts(fs)), "ns/inst")
		})
	}
}

// TestLiveInAnyOrder gives blocks numbers against the order of control, so that the equations would take as many rounds as there are
// blocks, and values so many that there are no bits for them.
func TestLiveInAnyOrder(t *testing.T) {
	for _, values := range []int{3, 2000} {
		const blocks = 40
		var w strings.Builder
		fmt.Fprintf(&w, "f back %d %d %s\nb 0\na ", blocks, values, strings.Repeat("i", values))
		for v := range values {
			if v > 0 {
				w.WriteByte(',')
			}
			fmt.Fprint(&w, v)
		}
		fmt.Fprintf(&w, " <\nj  >%d:\n", blocks-1)
		for b := 1; b < blocks; b++ {
			fmt.Fprintf(&w, "b %d\n", b)
			if b == 1 {
				for v := range values {
					fmt.Fprintf(&w, "c  <%d\n", v)
				}
				w.WriteString("r \n")
			} else {
				fmt.Fprintf(&w, "j  >%d:\n", b-1)
			}
		}
		f := flowtest.Parse(t, w.String())
		var l flow.Live
		l.Build(f)
		checkLive(t, f, &l)
		if n := len(l.In(blocks - 1)); n != values {
			t.Errorf("%d of %d values are live into the first block reached", n, values)
		}
	}
}
