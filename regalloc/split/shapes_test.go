package split

import (
	"errors"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc/check"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// proved allocates f and has the answer checked.
func proved(t testing.TB, f *flow.Func, regs flow.File) flow.Counts {
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

func ints(k, saved int) flow.File { return flow.File{N: [2]int{k, 4}, Saved: [2]int{saved, 0}} }

// What fits needs no move; what crosses a call with no register that survives is stored once and loaded where it is read.
func TestNoMoveWithoutNeed(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		k    int
		want flow.Counts
	}{
		"straight":        {flowtest.Ints(1, 4, "b 0\na 0,1 <\ni 2 <0,1\ni 3 <2,0\nr 3\n"), 3, flow.Counts{}},
		"swap in a loop":  {flowtest.Ints(4, 5, "b 0\na 0,1 <\nj  >1:0,1\nb 1 2 3\ni 4 <2,3\nj 4 >3: >2:\nb 2\nr 2\nb 3\nj  >1:3,2\n"), 4, flow.Counts{Copies: 3}},
		"loop":            {flowtest.Ints(4, 4, "b 0\na 0 <\nj  >1:0\nb 1 1\ni 2 <1\nj 2 >2: >3:\nb 2\nj  >1:2\nb 3\nr 2\n"), 2, flow.Counts{}},
		"across a call":   {flowtest.Ints(1, 3, "b 0\na 0 <\ni 1 <0\nc 2 <\ni  <1,2\ni  <1\nr\n"), 2, flow.Counts{Stores: 1, Loads: 1}},
		"only for a call": {flowtest.Ints(1, 2, "b 0\na 0 <\nc 1 <\nc  <0,1\nr 0\n"), 2, flow.Counts{}},
		"a diamond that meets a call on one side": {flowtest.Ints(4, 3, "b 0\na 0 <\ni 1 <0\nj 1 >1: >2:\nb 1\nc  <\nj  >3:\nb 2\nj  >3:\nb 3\ni  <1\nr\n"), 2,
			flow.Counts{Stores: 1, Loads: 1}},
	} {
		f := flowtest.Parse(t, c.text)
		if got := proved(t, f, ints(c.k, 0)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	f := flowtest.Parse(t, flowtest.Ints(1, 5, "b 0\na 0,1,2 <\ni 3,4 <0,1,2\nr\n"))
	var a Allocator
	var ans flow.Answer
	for _, c := range []struct {
		regs  flow.File
		class target.Class
		want  string
	}{
		{ints(2, 0), target.Limit, "instruction 1 needs 3 integer registers at once and there are 2"},
		{ints(65, 0), target.User, "65 integer registers"},
		{ints(3, 4), target.User, "no more survivors than registers"},
	} {
		err := a.Run(f, c.regs, &ans)
		var is *target.Error
		if !errors.As(err, &is) || is.Class != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.regs, err, c.want)
		}
	}
	proved(t, f, ints(3, 0))
	f = flowtest.Parse(t, flowtest.Ints(1, 3, "b 0\ni 0,1,2 <\nr\n"))
	if err := a.Run(f, ints(2, 0), &ans); err == nil || !strings.Contains(err.Error(), "instruction 0 needs 3") {
		t.Error(err)
	}
	// The workspace is good after a refusal.
	if err := a.Run(f, ints(3, 0), &ans); err != nil {
		t.Error(err)
	}
}

func TestCases(t *testing.T) {
	for _, c := range append(flowtest.Cases(), flowtest.Large()...) {
		t.Run(c.Name, func(t *testing.T) {
			f := flowtest.Parse(t, c.Text)
			for _, regs := range c.Files {
				proved(t, f, regs)
			}
		})
	}
}

// BenchmarkShapes says whether a shape costs more for each instruction than ordinary code does.
func BenchmarkShapes(b *testing.B) {
	for _, c := range flowtest.Large() {
		f := flowtest.Parse(b, c.Text)
		b.Run(c.Name, func(b *testing.B) {
			var a Allocator
			var ans flow.Answer
			for b.Loop() {
				if err := a.Run(f, ints(14, 5), &ans); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(f.Insts)+len(f.Ops)), "ns/row")
		})
	}
}
