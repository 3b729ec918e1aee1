package split

import (
	"errors"
	"fmt"
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
		t.Fatal(err)
	}
	if err := check.Answer(f, regs, &ans); err != nil {
		t.Fatalf("%v\n%v", err, ans.Moves)
	}
	return ans.Count()
}

func ints(k, saved int) flow.File { return flow.File{N: [2]int{k, 4}, Saved: [2]int{saved, 0}} }

// function writes a function of integers around its records.
func function(blocks, values int, body string) string {
	return fmt.Sprintf("f t %d %d %s\n%s", blocks, values, strings.Repeat("i", values), body)
}

// What fits needs no move; what crosses a call with no register that survives is stored once and loaded where it is read.
func TestNoMoveWithoutNeed(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		k    int
		want flow.Counts
	}{
		"straight":        {function(1, 4, "b 0\na 0,1 <\ni 2 <0,1\ni 3 <2,0\nr 3\n"), 3, flow.Counts{}},
		"swap in a loop":  {function(4, 5, "b 0\na 0,1 <\nj  >1:0,1\nb 1 2 3\ni 4 <2,3\nj 4 >3: >2:\nb 2\nr 2\nb 3\nj  >1:3,2\n"), 4, flow.Counts{Copies: 3}},
		"loop":            {function(4, 4, "b 0\na 0 <\nj  >1:0\nb 1 1\ni 2 <1\nj 2 >2: >3:\nb 2\nj  >1:2\nb 3\nr 2\n"), 2, flow.Counts{}},
		"across a call":   {function(1, 3, "b 0\na 0 <\ni 1 <0\nc 2 <\ni  <1,2\ni  <1\nr\n"), 2, flow.Counts{Stores: 1, Loads: 1}},
		"only for a call": {function(1, 2, "b 0\na 0 <\nc 1 <\nc  <0,1\nr 0\n"), 2, flow.Counts{}},
		"a diamond that meets a call on one side": {function(4, 3, "b 0\na 0 <\ni 1 <0\nj 1 >1: >2:\nb 1\nc  <\nj  >3:\nb 2\nj  >3:\nb 3\ni  <1\nr\n"), 2,
			flow.Counts{Stores: 1, Loads: 1}},
	} {
		f := flowtest.Parse(t, c.text)
		if got := proved(t, f, ints(c.k, 0)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	f := flowtest.Parse(t, function(1, 5, "b 0\na 0,1,2 <\ni 3,4 <0,1,2\nr\n"))
	var a Allocator
	var ans flow.Answer
	for _, c := range []struct {
		regs  flow.File
		class target.Class
		want  string
	}{
		{ints(2, 0), target.Limit, "instruction 1 needs 3 integer registers at once and there are 2"},
		{ints(65, 0), target.User, "65 registers"},
		{ints(3, 4), target.User, "no more survivors than registers"},
	} {
		err := a.Run(f, c.regs, &ans)
		var is *target.Error
		if !errors.As(err, &is) || is.Class != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.regs, err, c.want)
		}
	}
	proved(t, f, ints(3, 0))
	f = flowtest.Parse(t, function(1, 3, "b 0\ni 0,1,2 <\nr\n"))
	if err := a.Run(f, ints(2, 0), &ans); err == nil || !strings.Contains(err.Error(), "instruction 0 needs 3") {
		t.Error(err)
	}
	// The workspace is good after a refusal.
	if err := a.Run(f, ints(3, 0), &ans); err != nil {
		t.Error(err)
	}
}

// No register at all is enough for a function that only calls.
func TestNoRegisters(t *testing.T) {
	proved(t, flowtest.Parse(t, function(1, 4, "b 0\na 0,1 <\nc 2,3 <0,1\nc  <2\nr 3,0\n")), flow.File{})
}

// A parameter fed by a value that lives on, and twice by one, where the branch has other ways out.
func TestSharedArguments(t *testing.T) {
	f := flowtest.Parse(t, function(3, 6, "b 0\na 0,1 <\ni 2 <0,1\nj 2 >1:0,0,1 >2:\nb 1 3 4 5\ni  <0,3\ni  <4,5\nr 3,4,5\nb 2\nr 1\n"))
	for k := 2; k < 8; k++ {
		proved(t, f, ints(k, k/2))
	}
}

// A branch that tests values and has one way out, along which all registers change.
func TestTestsBeforeMoves(t *testing.T) {
	f := flowtest.Parse(t, function(3, 8, "b 0\na 0,1,2 <\ni 6 <0\nj 6,1 >1:1,2,0\nb 1 3 4 5\ni 7 <3,4\nj 7 >2:\nb 2\nr 3,4,5,7\n"))
	for k := 2; k < 7; k++ {
		proved(t, f, ints(k, 0))
	}
}

type shape struct{ name, text string }

// The shapes that made other allocators quadratic.
func shapes() []shape {
	var calls, long, table, phis strings.Builder
	const n = 20_000
	calls.WriteString("b 0\na 0,1 <\n")
	for range n {
		calls.WriteString("c  <0\nc  <1,0\ni  <1\n")
	}
	calls.WriteString("r 0,1\n")
	long.WriteString("b 0\na 0 <\n")
	for k := range n {
		fmt.Fprintf(&long, "i %d <%d,%d\n", k+1, k, k/2)
	}
	long.WriteString("r\n")
	const ways = 1000
	table.WriteString("b 0\na 0,1 <\nj  >1:0,1\nb 1 2 3\nj 2")
	for k := range ways {
		fmt.Fprintf(&table, " >%d:", k+2)
	}
	table.WriteString("\n")
	for k := range ways {
		fmt.Fprintf(&table, "b %d\nc %d <3\nj  >1:%d,%d\n", k+2, k+4, k+4, 3-k%2)
	}
	const width = 3000
	phis.WriteString("b 0\na 0 <\n")
	list := func(from int, turn int) string {
		var w strings.Builder
		for k := range width {
			if k > 0 {
				w.WriteByte(',')
			}
			fmt.Fprint(&w, from+(k+turn)%width)
		}
		return w.String()
	}
	fmt.Fprintf(&phis, "i 1 <0\nc %s <\nj  >1:%s\nb 1 %s\nj 1 >2: >3:\nb 2\nj  >1:%s\nb 3\nr %s\n", list(2, 0), list(2, 0),
		strings.ReplaceAll(list(2+width, 0), ",", " "), list(2+width, 1), list(2+width, 0))
	return []shape{
		{"calls", function(1, 2, calls.String())},
		{"long", function(1, n+1, long.String())},
		{"table", function(ways+2, ways+4, table.String())},
		{"phis", function(4, 2+2*width, phis.String())},
	}
}

func TestLargeShapes(t *testing.T) {
	for _, s := range shapes() {
		name, f := s.name, flowtest.Parse(t, s.text)
		for _, regs := range []flow.File{ints(14, 5), ints(3, 1), ints(3, 0)} {
			var a Allocator
			var ans flow.Answer
			if err := a.Run(f, regs, &ans); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if name == "phis" {
				continue // more values in slots than the checker walks in a moment
			}
			if err := check.Answer(f, regs, &ans); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// BenchmarkShapes says whether a shape costs more for each instruction than ordinary code does.
func BenchmarkShapes(b *testing.B) {
	for _, s := range shapes() {
		f := flowtest.Parse(b, s.text)
		b.Run(s.name, func(b *testing.B) {
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
