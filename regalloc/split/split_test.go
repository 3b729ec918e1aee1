package split

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

// file is the register file of the public figures: k integer registers of which five at most survive calls.
func file(k int) flow.File {
	return flow.File{N: [2]int{k, 15}, Saved: [2]int{min(5, k), 0}}
}

func public(t testing.TB, name string) (fs []*flow.Func) {
	in, err := os.Open(publicdata.Path(t, "regalloc-ssa", name))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var r io.Reader = in
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	}
	rd := flow.NewReader(r)
	var f flow.Func
	for {
		if err := rd.Next(&f); err == io.EOF {
			return fs
		} else if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f.Clone())
	}
}

// reference are the moves of regalloc2's ion on the public functions, by file and number of integer registers.
var reference = []struct {
	name string
	k    int
	flow.Counts
}{
	{"case.ssa", 14, flow.Counts{Stores: 295, Loads: 1656, Copies: 107}},
	{"case.ssa", 8, flow.Counts{Stores: 611, Loads: 2775, Copies: 120}},
	{"greet.ssa", 14, flow.Counts{Stores: 625, Loads: 3021, Copies: 214}},
	{"greet.ssa", 8, flow.Counts{Stores: 1246, Loads: 5543, Copies: 241}},
	{"zigcc.ssa", 14, flow.Counts{Stores: 417, Loads: 1685, Copies: 135}},
	{"zigcc.ssa", 8, flow.Counts{Stores: 637, Loads: 2887, Copies: 97}},
	{"gofmt8.ssa.gz", 14, flow.Counts{Stores: 5830, Loads: 33932, Copies: 7270}},
	{"gofmt8.ssa.gz", 8, flow.Counts{Stores: 10847, Loads: 59018, Copies: 2040}},
}

// TestPublicFunctions proves every answer and holds the moves of each file to 0.6 of the reference's: none needs a half.
func TestPublicFunctions(t *testing.T) {
	var a Allocator
	var ans flow.Answer
	var c check.Checker
	for _, ref := range reference {
		if testing.Short() && ref.name == "gofmt8.ssa.gz" {
			continue
		}
		var sum flow.Counts
		slots := 0
		for _, f := range public(t, ref.name) {
			if err := a.Run(f, file(ref.k), &ans); err != nil {
				t.Fatal(err)
			}
			if err := c.Answer(f, file(ref.k), &ans); err != nil {
				t.Fatalf("%s, %d registers: %v", ref.name, ref.k, err)
			}
			n := ans.Count()
			sum.Stores += n.Stores
			sum.Loads += n.Loads
			sum.Copies += n.Copies
			slots += ans.Slots
		}
		t.Logf("%s, %d registers: %d moves, %.3f of the reference, %+v, %d slots", ref.name, ref.k, sum.Total(),
			float64(sum.Total())/float64(ref.Total()), sum, slots)
		if 10*sum.Total() > 6*ref.Total() {
			t.Errorf("%s, %d registers: %d moves, the reference has %d", ref.name, ref.k, sum.Total(), ref.Total())
		}
	}
}

func TestAllocatesNothingAgain(t *testing.T) {
	fs := public(t, "case.ssa")
	var a Allocator
	var ans flow.Answer
	run := func() {
		for _, f := range fs {
			if err := a.Run(f, file(8), &ans); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
