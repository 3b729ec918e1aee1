package flowtest

import (
	"fmt"
	"strings"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// Case is a function as text, and register files that suffice for it.
type Case struct {
	Name, Text string
	Files      []flow.File
}

// Ints writes a function of integers around its records.
func Ints(blocks, values int, records string) string {
	return fmt.Sprintf("f t %d %d %s\n%s", blocks, values, strings.Repeat("i", values), records)
}

// files are files of from to to integer registers, and floats for those who want some, of which no register survives a call, half do and all do.
func files(from, to int) (fs []flow.File) {
	for k := from; k <= to; k++ {
		for _, saved := range [3]int{0, k / 2, k} {
			fs = append(fs, flow.File{N: [2]int{k, 4}, Saved: [2]int{saved, 0}})
		}
	}
	return fs
}

// Cases are small functions that allocators have got wrong.
func Cases() []Case {
	const swap = "b 0\na 0,1 <\nj  >1:0,1\nb 1 2 3\n%sj 2 >2: >3:\nb 2\nj  >1:3,2\nb 3\nr 2,3\n"
	return []Case{
		{"only calls, without any register", Ints(1, 4, "b 0\na 0,1 <\nc 2,3 <0,1\nc  <2,2\nr 3,0,2\n"), []flow.File{{}}},
		{"parameters change places around a loop", Ints(4, 4, fmt.Sprintf(swap, "")), files(1, 4)},
		{"and across a call", Ints(4, 4, fmt.Sprintf(swap, "c  <\n")), files(1, 4)},
		{"and from slots", Ints(4, 4, fmt.Sprintf(swap, "c  <2,3\ni  <2\n")), files(1, 4)},
		{"parameters fed by a value that lives on, and twice by one, where the branch has other ways out",
			Ints(3, 6, "b 0\na 0,1 <\ni 2 <0,1\nj 2 >1:0,0,1 >2:\nb 1 3 4 5\ni  <0,3\ni  <4,5\nr 3,4,5\nb 2\nr 1\n"), files(2, 7)},
		{"a branch that tests values and has one way out, along which all registers change",
			Ints(3, 8, "b 0\na 0,1,2 <\ni 6 <0\nj 6,1 >1:1,2,0\nb 1 3 4 5\ni 7 <3,4\nj 7 >2:\nb 2\nr 3,4,5,7\n"), files(2, 6)},
		{"a branch that tests one value twice, where blocks meet",
			Ints(4, 6, "b 0\na 0,1 <\nj 0 >1: >2:\nb 1\nj 0,0 >3:1,0\nb 2\ni 4 <1\nj 4,4 >3:4,1\nb 3 2 3\ni 5 <2,3\nr 5,2,0\n"), files(2, 5)},
		{"and three times, where all registers change",
			Ints(4, 5, "b 0\na 0,1 <\ni  <0,1\nj 0 >1: >2:\nb 1\nj 0,0,0 >3:1,0\nb 2\nj 1,1,1 >3:0,1\nb 3 2 3\ni 4 <2,3\nr 4\n"), files(2, 4)},
	}
}

// Large are functions whose shapes have made allocators quadratic.
func Large() []Case {
	var calls, long, table, jumps, phis strings.Builder
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
	jumps.WriteString("b 0\na 0,1 <\nj 0")
	for k := range ways {
		fmt.Fprintf(&jumps, " >%d:1", k+1)
	}
	for k := range ways {
		fmt.Fprintf(&jumps, "\nb %d %d\ni %d <0,%d\nj  >%d:", k+1, 2+2*k, 3+2*k, 2+2*k, ways+1)
	}
	fmt.Fprintf(&jumps, "\nb %d\nr 0,1\n", ways+1)
	const width = 1000
	list := func(from, turn int, sep string) string {
		var w strings.Builder
		for k := range width {
			if k > 0 {
				w.WriteString(sep)
			}
			fmt.Fprint(&w, from+(k+turn)%width)
		}
		return w.String()
	}
	fmt.Fprintf(&phis, "b 0\na 0 <\ni 1 <0\nc %s <\nj  >1:%s\nb 1 %s\nj 1 >2: >3:\nb 2\nj  >1:%s\nb 3\nr %s\n", list(2, 0, ","), list(2, 0, ","),
		list(2+width, 0, " "), list(2+width, 1, ","), list(2+width, 0, ","))
	fs := []flow.File{Machine(14), {N: [2]int{3, 4}, Saved: [2]int{1, 0}}, {N: [2]int{3, 4}}}
	return []Case{
		{"calls", Ints(1, 2, calls.String()), fs},             // one value as every argument in turn
		{"long", Ints(1, n+1, long.String()), fs},             // a block with many values live
		{"table", Ints(ways+2, ways+4, table.String()), fs},   // a jump table in a loop
		{"jumps", Ints(ways+2, 2+2*ways, jumps.String()), fs}, // one whose targets have parameters
		{"parameters", Ints(4, 2+2*width, phis.String()), fs}, // many, which change places around a loop
		{"lives", manyLive(20, 3000), fs},                     // more of them than there are registers, live where ways meet
		{"tests", oneTest(20_000), fs},                        // a branch of many operands
	}
}

// manyLive has values that live on where ways meet, more than registers and lists hold, and parameters that are read after all of them.
func manyLive(meets, live int) string {
	var w strings.Builder
	w.WriteString("b 0\n")
	for k := range live {
		fmt.Fprintf(&w, "i %d <\n", meets+k)
	}
	for k := range meets {
		b, v := 3*k+1, meets+k
		fmt.Fprintf(&w, "j %d >%d: >%d:\nb %d\nj  >%d:%d\nb %d\nj  >%d:%d\nb %d %d\n", v, b, b+1, b, b+2, meets+live-1-k, b+1, b+2, v, b+2, k)
	}
	for k := range meets + live {
		fmt.Fprintf(&w, "i  <%d\n", meets+live-1-k)
	}
	w.WriteString("r\n")
	return Ints(3*meets+1, meets+live, w.String())
}

// oneTest has a branch that tests one value again and again and whose moves overwrite it.
func oneTest(n int) string {
	return Ints(4, 4, "b 0\na 0,1 <\nj 0 >1: >2:\nb 1\nj "+strings.Repeat("0,", n)+"0 >3:1,0\nb 2\nj 1 >3:0,1\nb 3 2 3\ni  <2,3\nr\n")
}
