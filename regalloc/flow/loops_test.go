package flow

import (
	"slices"
	"testing"
)

// graph makes a function of empty blocks from successor lists.
func graph(succs ...[]uint32) *Func {
	f := &Func{}
	for b, ss := range succs {
		blk := Block{Insts: Span{uint32(b), uint32(b + 1)}}
		blk.Succs.From = uint32(len(f.Edges))
		for _, s := range ss {
			f.Edges = append(f.Edges, Edge{From: uint32(b), To: s})
		}
		blk.Succs.To = uint32(len(f.Edges))
		in := Inst{Kind: Branch}
		if len(ss) == 0 {
			in.Kind = Return
		}
		f.Blocks, f.Insts = append(f.Blocks, blk), append(f.Insts, in)
	}
	f.linkPreds()
	return f
}

func TestLoops(t *testing.T) {
	const no = NoBlock
	for name, c := range map[string]struct {
		f      *Func
		header []uint32
		depth  []uint32
	}{
		"straight": {graph([]uint32{1}, []uint32{2}, nil), []uint32{no, no, no}, []uint32{0, 0, 0}},
		"one":      {graph([]uint32{1}, []uint32{2, 3}, []uint32{1}, nil), []uint32{no, no, 1, no}, []uint32{0, 1, 1, 0}},
		"self":     {graph([]uint32{1}, []uint32{1, 2}, nil), []uint32{no, no, no}, []uint32{0, 1, 0}},
		"nested": {graph([]uint32{1}, []uint32{2, 6}, []uint32{3}, []uint32{4, 5}, []uint32{2}, []uint32{1}, nil),
			[]uint32{no, no, 1, 2, 2, 1, no}, []uint32{0, 1, 2, 2, 2, 1, 0}},
		"two back edges": {graph([]uint32{1}, []uint32{2, 3}, []uint32{1}, []uint32{1, 4}, nil),
			[]uint32{no, no, 1, 1, no}, []uint32{0, 1, 1, 1, 0}},
		"irreducible": {graph([]uint32{1, 2}, []uint32{2}, []uint32{1, 3}, nil), []uint32{no, no, 1, no}, []uint32{0, 1, 1, 0}},
		"unreachable": {graph([]uint32{1}, nil, []uint32{1}), []uint32{no, no, no}, []uint32{0, 0, 0}},
	} {
		var l Loops
		l.Build(c.f)
		if !slices.Equal(l.Header, c.header) || !slices.Equal(l.Depth, c.depth) {
			t.Errorf("%s: headers %d, want %d; depths %v, want %v", name, l.Header, c.header, l.Depth, c.depth)
		}
		if l.Order[0] != 0 {
			t.Errorf("%s: order %v", name, l.Order)
		}
		if n := testing.AllocsPerRun(5, func() { l.Build(c.f) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A nest of 100,000 loops, each with a body block behind the inner loop.
func TestDeepLoops(t *testing.T) {
	const depth = 100_000
	succs := make([][]uint32, 2*depth+1)
	for d := range uint32(depth) {
		succs[d] = []uint32{d + 1}
		succs[depth+1+d] = []uint32{depth - 1 - d}
		if d+1 < depth {
			succs[depth+1+d] = append(succs[depth+1+d], depth+2+d)
		}
	}
	succs[depth] = []uint32{depth + 1}
	var l Loops
	f := graph(succs...)
	f.Blocks[0].Preds = Span{}
	l.Build(f)
	if d := l.Depth[depth]; d != depth {
		t.Errorf("depth %d", d)
	}
}
