package flow

import (
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/publicdata"
)

const diamond = `f d 4 6 iiiifi
b 0
a 0 <
i 1 <0
j 1 >1: >2:
b 1
i 2 <0
j  >3:2
b 2
c 3,4 <0
j  >3:3
b 3 5
r 5,1
`

func TestReadAndLiveness(t *testing.T) {
	var f Func
	r := NewReader(strings.NewReader(diamond + diamond))
	for range 2 {
		if err := r.Next(&f); err != nil {
			t.Fatal(err)
		}
		if len(f.Blocks) != 4 || len(f.Insts) != 8 || f.Values() != 6 || f.Class[4] != Float {
			t.Fatalf("%d blocks, %d instructions, %d values", len(f.Blocks), len(f.Insts), f.Values())
		}
		var l Live
		l.Build(&f)
		for b, want := range [][]Value{nil, {0, 1}, {0, 1}, {1}} {
			if got := l.In(uint32(b)); !slices.Equal(got, want) {
				t.Errorf("live into block %d: %v, want %v", b, got, want)
			}
		}
	}
	if err := r.Next(&f); err != io.EOF {
		t.Error(err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"x":                            "line 1",
		"f a 1 1 i\nb 0\nr 0\n":        "never defined",
		"f a 1 1 i\nb 0\ni 0,0 <\nr\n": "twice",
		"f a 1 1 i\nb 0\ni 0 <\n":      "whole blocks",
		"f a 1 0\nb 0\nj >4:\n":        "block 4 of 1",
		"f a 1 0\nb 0\nj >0:\n":        "predecessors",
		"f a 2 2 if\nb 0\ni 0 <\nj >1:0\nb 1 1\nr\n": "other class",
	} {
		var f Func
		if err := NewReader(strings.NewReader(text)).Next(&f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestPublicFunctions reads real functions and holds liveness against a plain fixpoint.
func TestPublicFunctions(t *testing.T) {
	for _, name := range []string{"case.ssa", "greet.ssa", "zigcc.ssa", "gofmt8.ssa.gz"} {
		eachPublic(t, name, func(f *Func, l *Live) {
			l.Build(f)
			if n := len(l.In(0)); n != 0 {
				t.Fatalf("%s %s: %d values live into the entry", name, f.Name, n)
			}
			if f.Values()*len(f.Blocks) < 1<<16 {
				checkLive(t, f, l)
			}
		})
	}
}

func eachPublic(t testing.TB, name string, do func(*Func, *Live)) {
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
	var f Func
	var l Live
	r := NewReader(in)
	for n := 0; ; n++ {
		if err := r.Next(&f); err == io.EOF && n > 0 {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		do(&f, &l)
	}
}

// checkLive is liveness as the textbooks define it.
func checkLive(t *testing.T, f *Func, l *Live) {
	in := make([]map[Value]bool, len(f.Blocks))
	for b := range in {
		in[b] = map[Value]bool{}
	}
	for again := true; again; {
		again = false
		for b := len(f.Blocks) - 1; b >= 0; b-- {
			blk := &f.Blocks[b]
			live := map[Value]bool{}
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

func TestLiveAllocatesNothingAgain(t *testing.T) {
	var f Func
	if err := NewReader(strings.NewReader(diamond)).Next(&f); err != nil {
		t.Fatal(err)
	}
	var l Live
	l.Build(&f)
	if n := testing.AllocsPerRun(10, func() { l.Build(&f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLive(b *testing.B) {
	for _, name := range []string{"case.ssa", "gofmt8.ssa.gz"} {
		b.Run(name, func(b *testing.B) {
			var fs []*Func
			insts := 0
			eachPublic(b, name, func(f *Func, _ *Live) {
				c := *f
				c.Blocks, c.Insts, c.Ops = slices.Clone(f.Blocks), slices.Clone(f.Insts), slices.Clone(f.Ops)
				c.Edges, c.Preds, c.Class = slices.Clone(f.Edges), slices.Clone(f.Preds), slices.Clone(f.Class)
				fs = append(fs, &c)
				insts += len(f.Insts)
			})
			var l Live
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range fs {
					l.Build(f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(insts), "ns/inst")
		})
	}
}
