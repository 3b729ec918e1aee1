package scan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

func prove(t *testing.T, f *flow.Func, regs flow.File) flow.Counts {
	t.Helper()
	var a Allocator
	var ans flow.Answer
	if err := a.Run(f, regs, &ans); err != nil {
		t.Fatalf("%+v: %v", regs, err)
	}
	if err := check.Answer(f, regs, &ans); err != nil {
		t.Fatalf("%+v: %v\n%v", regs, err, ans.Moves)
	}
	return ans.Count()
}

func TestCases(t *testing.T) {
	for _, c := range append(flowtest.Cases(), flowtest.Large()...) {
		t.Run(c.Name, func(t *testing.T) {
			f := flowtest.Parse(t, c.Text)
			for _, regs := range c.Files {
				prove(t, f, regs)
			}
		})
	}
}

func TestTooFewRegisters(t *testing.T) {
	f := flowtest.Parse(t, "f three 1 4 iiif\nb 0\na 0,1,2 <\ni  <0,1,2\ni 3 <\nr 3\n")
	var a Allocator
	var ans flow.Answer
	for _, c := range []struct {
		ints, floats int
		want         string
	}{{2, 1, "instruction 1 needs more than the 2 integer registers"}, {3, 0, "more than the 0 float registers"}, {3, 1, ""}, {65, 1, "65 integer registers"}} {
		err := a.Run(f, flow.File{N: [2]int{c.ints, c.floats}}, &ans)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d integer and %d float registers: %v, want %q", c.ints, c.floats, err, c.want)
		}
	}
}

// The first instruction that wants too much is named, though the scan goes on to the end of the block.
func TestTooFewRegistersTwice(t *testing.T) {
	f := flowtest.Parse(t, flowtest.Ints(1, 2, "b 0\na 0,1 <\ni  <0,1\ni  <1,0\nr\n"))
	var a Allocator
	var ans flow.Answer
	if err := a.Run(f, flow.File{N: [2]int{1, 0}}, &ans); err == nil || !strings.Contains(err.Error(), "instruction 1 ") {
		t.Errorf("%v", err)
	}
}

// One value as first, second, first … argument of many calls needs a store and no load.
func TestArgumentsInTurn(t *testing.T) {
	f := flowtest.Parse(t, flowtest.Ints(1, 2, "b 0\ni 0,1 <\n"+strings.Repeat("c  <0,1\nc  <1,0\n", 50_000)+"r 0\n"))
	if n := prove(t, f, flow.File{N: [2]int{8, 0}}); n.Loads != 0 || n.Total() > 2 {
		t.Errorf("%+v", n)
	}
}

// long is one block of n instructions, each of which reads the two before it, with one value that is read all the way.
func long(n int) string {
	var w strings.Builder
	w.WriteString("b 0\na 0,1,2 <\n")
	for k := range n {
		fmt.Fprintf(&w, "i %d <%d,%d,0\n", k+3, k+1, k+2)
	}
	fmt.Fprintf(&w, "r %d\n", n+2)
	return flowtest.Ints(1, n+3, w.String())
}

func TestLongBlock(t *testing.T) {
	if n := prove(t, flowtest.Parse(t, long(100_000)), flow.File{N: [2]int{4, 0}}); n.Total() != 0 {
		t.Errorf("%+v", n)
	}
}

func BenchmarkGrowthScan(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := flowtest.Parse(b, long(n))
			var a Allocator
			var ans flow.Answer
			b.ReportAllocs()
			for b.Loop() {
				if err := a.Run(f, flow.File{N: [2]int{4, 0}}, &ans); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/inst")
		})
	}
}
