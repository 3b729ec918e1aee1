package flow

import (
	"io"
	"slices"
	"strings"
	"testing"
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

		"f a 1 2 ii\nb 0\ni 0 <1\ni 1 <\nr\n":                                            "block 0 uses value 1, which is not defined on every way",
		"f a 1 1 i\nb 0\ni 0 <0\nr\n":                                                    "block 0 uses value 0",
		"f a 4 2 ii\nb 0\ni 0 <\nj 0 >1: >2:\nb 1\ni 1 <\nj >3:\nb 2\nj >3:\nb 3\nr 1\n": "block 3 uses value 1",
		"f a 3 2 ii\nb 0\ni 0 <\nj >2:1\nb 1\ni 1 <\nr\nb 2\nr 0\n":                      "parameters",
		"f a 3 1 i\nb 0\nj >2:\nb 1\ni 0 <\nj >2:\nb 2\nr 0\n":                           "block 2 uses value 0",
	} {
		var f Func
		if err := NewReader(strings.NewReader(text)).Next(&f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
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
