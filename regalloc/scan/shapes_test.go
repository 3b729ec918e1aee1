package scan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

func prove(t *testing.T, f *flow.Func, regs flow.File) *flow.Answer {
	t.Helper()
	var a Allocator
	var ans flow.Answer
	if err := a.Run(f, regs, &ans); err != nil {
		t.Fatal(err)
	}
	if err := check.Answer(f, regs, &ans); err != nil {
		t.Fatal(err)
	}
	return &ans
}

func TestTooFewRegisters(t *testing.T) {
	f := flowtest.Parse(t, "f three 1 4 iiif\nb 0\na 0,1,2 <\ni  <0,1,2\ni 3 <\nr 3\n")
	var a Allocator
	var ans flow.Answer
	for _, c := range []struct {
		ints, floats int
		want         string
	}{{2, 1, "instruction 1 needs more than the 2 integer registers"}, {3, 0, "more than the 0 float registers"}, {3, 1, ""}, {65, 1, "0 to 64"}} {
		err := a.Run(f, flow.File{N: [2]int{c.ints, c.floats}}, &ans)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d integer and %d float registers: %v, want %q", c.ints, c.floats, err, c.want)
		}
	}
}

// What the machine never needs in a register needs no register.
func TestNoRegisters(t *testing.T) {
	prove(t, flowtest.Parse(t, "f calls 1 3 iif\nb 0\na 0 <\nc 1,2 <0,0\nr 1,2,0\n"), flow.File{})
}

// TestSwap goes around a loop in which two parameters change places, in registers and in slots.
func TestSwap(t *testing.T) {
	const swap = "f swap 4 4 iiii\nb 0\na 0,1 <\nj  >1:0,1\nb 1 2 3\n%sj 2 >2: >3:\nb 2\nj  >1:3,2\nb 3\nr 2,3\n"
	for _, inside := range []string{"", "c  <\n", "c  <2,3\ni  <2\n"} {
		for k := 1; k < 5; k++ {
			prove(t, flowtest.Parse(t, fmt.Sprintf(swap, inside)), flow.File{N: [2]int{k, 0}})
		}
	}
}

// TestArgumentsInTurn passes one value as first, second, first … argument of many calls: a store and no load.
func TestArgumentsInTurn(t *testing.T) {
	var w strings.Builder
	w.WriteString("f turns 1 2 ii\nb 0\ni 0,1 <\n")
	for range 50_000 {
		w.WriteString("c  <0,1\nc  <1,0\n")
	}
	w.WriteString("r 0\n")
	if n := prove(t, flowtest.Parse(t, w.String()), flow.File{N: [2]int{8, 0}}).Count(); n.Loads != 0 || n.Total() > 2 {
		t.Errorf("%+v", n)
	}
}

// TestWideBranch is a jump table.
func TestWideBranch(t *testing.T) {
	const ways = 1000
	var w strings.Builder
	fmt.Fprintf(&w, "f table %d %d %s\nb 0\na 0,1 <\nj 0 ", ways+2, 2+2*ways, strings.Repeat("i", 2+2*ways))
	for k := range ways {
		fmt.Fprintf(&w, ">%d:1 ", k+1)
	}
	for k := range ways {
		fmt.Fprintf(&w, "\nb %d %d\ni %d <0,%d\nj  >%d:", k+1, 2+2*k, 3+2*k, 2+2*k, ways+1)
	}
	fmt.Fprintf(&w, "\nb %d\nr 0,1\n", ways+1)
	prove(t, flowtest.Parse(t, w.String()), flow.File{N: [2]int{3, 0}})
}

// long is one block of n instructions, each of which reads the two before it, with one value that is read all the way.
func long(n int) string {
	var w strings.Builder
	fmt.Fprintf(&w, "f long 1 %d %s\nb 0\na 0,1,2 <\n", n+3, strings.Repeat("i", n+3))
	for k := range n {
		fmt.Fprintf(&w, "i %d <%d,%d,0\n", k+3, k+1, k+2)
	}
	fmt.Fprintf(&w, "r %d\n", n+2)
	return w.String()
}

func TestLongBlock(t *testing.T) {
	if n := prove(t, flowtest.Parse(t, long(100_000)), flow.File{N: [2]int{4, 0}}).Count(); n.Total() != 0 {
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
