package flowtest

import (
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/publicdata"
	"github.com/rosmar-compiler/rosmar/regalloc/flow"
)

// Public reads the functions of one of the public programs, and skips the test when they are not there.
func Public(tb testing.TB, name string) (fs []*flow.Func) {
	tb.Helper()
	file, err := os.Open(publicdata.Path(tb, "regalloc-ssa", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			tb.Fatal(err)
		}
	}
	r := flow.NewReader(in)
	for {
		f := new(flow.Func)
		if err := r.Next(f); err == io.EOF {
			return fs
		} else if err != nil {
			tb.Fatal(err)
		}
		fs = append(fs, f)
	}
}

// Published are the moves that two public allocators make on the public programs with K integer registers: one that backtracks, and one
// that looks at a block at a time.
var Published = []struct {
	Name      string
	K         int
	Ion       flow.Counts
	Fastalloc int
}{
	{"case.ssa", 14, flow.Counts{Stores: 295, Loads: 1656, Copies: 107}, 9248},
	{"case.ssa", 8, flow.Counts{Stores: 611, Loads: 2775, Copies: 120}, 11410},
	{"greet.ssa", 14, flow.Counts{Stores: 625, Loads: 3021, Copies: 214}, 17968},
	{"greet.ssa", 8, flow.Counts{Stores: 1246, Loads: 5543, Copies: 241}, 21622},
	{"zigcc.ssa", 14, flow.Counts{Stores: 417, Loads: 1685, Copies: 135}, 11661},
	{"zigcc.ssa", 8, flow.Counts{Stores: 637, Loads: 2887, Copies: 97}, 13627},
	{"gofmt8.ssa.gz", 14, flow.Counts{Stores: 5830, Loads: 33932, Copies: 7270}, 227304},
	{"gofmt8.ssa.gz", 8, flow.Counts{Stores: 10847, Loads: 59018, Copies: 2040}, 268147},
}

// Insts counts the instructions of functions.
func Insts(fs []*flow.Func) (n int) {
	for _, f := range fs {
		n += len(f.Insts)
	}
	return n
}

// Machine is the register file of the public figures: k integer registers, of which five at most survive calls, and 15 float registers,
// none of which does.
func Machine(k int) flow.File {
	return flow.File{N: [2]int{k, 15}, Saved: [2]int{min(5, k), 0}}
}

// Parse reads one function from its text.
func Parse(tb testing.TB, text string) *flow.Func {
	tb.Helper()
	var f flow.Func
	if err := flow.NewReader(strings.NewReader(text)).Next(&f); err != nil {
		tb.Fatal(err)
	}
	return &f
}
