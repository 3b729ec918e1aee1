package codegen

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/machine"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// drawGather draws a model that takes rows, elements or windows of a table by indices that are inputs: tables of every width
// of element and of odd sizes, from outside, constant or computed; one index to more than a tile of them, with the first and
// the last row, repeated rows and negative indices among them.
func drawGather(t *rapid.T) (*graph.Graph, []NamedTensor) {
	g := new(graph.Graph)
	g.Name = "m"
	b := graph.Begin(g, "main")
	d := rapid.SampledFrom([]graph.Dtype{graph.F32, graph.F32, graph.BF16, graph.F16, graph.S8, graph.U8, graph.S16, graph.S64, graph.Bool}).Draw(t, "dtype")
	id := rapid.SampledFrom([]graph.Dtype{graph.S32, graph.S64, graph.S16}).Draw(t, "index dtype")
	dims := make([]int64, rapid.IntRange(1, 3).Draw(t, "rank"))
	total := int64(1)
	for i := range dims {
		if dims[i] = rapid.SampledFrom([]int64{1, 2, 3, 7, 16, 33, 129, 200}).Draw(t, "dim"); total*dims[i] > 40000 {
			dims[i] = 2
		}
		total *= dims[i]
	}
	table := b.Param("table", d, dims...)
	switch rapid.IntRange(0, 3).Draw(t, "source") {
	case 0:
		if d.IsFloat() {
			table = b.Weight(d, dims, 7, 1)
		}
	case 1:
		if d == graph.F32 {
			table = b.Unary(graph.OpTanh, table)
		}
	case 2:
		perm := make([]int64, len(dims))
		for i := range perm {
			perm[i] = int64(len(dims) - 1 - i)
		}
		table = b.Transpose(table, perm...)
		slices.Reverse(dims)
	}
	at := rapid.IntRange(0, len(dims)-1).Draw(t, "at")
	n := dims[at]
	idims := []int64{rapid.SampledFrom([]int64{1, 2, 9, 127, 128, 129, 300}).Draw(t, "indices")}
	if total/n*idims[0] > 40000 {
		idims[0] = 5
	}
	var y graph.Node
	clamps := false
	switch rapid.IntRange(0, 3).Draw(t, "op") {
	case 0, 1:
		if rapid.Bool().Draw(t, "plane of indices") {
			idims = append(idims, 2)
		}
		y = b.Take(table, b.Param("i", id, idims...), at)
	case 2:
		k := min(idims[0], 9)
		idims = slices.Clone(dims)
		if idims[at] = k; elements(idims) > 4000 {
			for i := range idims {
				idims[i] = min(idims[i], 5)
			}
		}
		y = b.TakeAlong(table, b.Param("i", id, idims...), at)
	default:
		clamps = true
		sizes, offset := slices.Clone(dims), []int64{}
		sizes[at] = rapid.Int64Range(1, n).Draw(t, "window")
		for i := range sizes {
			offset = append(offset, int64(i)+1)
		}
		if idims = append(idims, 1); elements(sizes)*idims[0] > 40000 {
			idims[0] = 3
		}
		y = b.Node(graph.OpGather, 0, []graph.Node{table, b.Param("i", id, idims...)}, g.IntsAttr(graph.AttrOffsetDims, offset...), g.IntsAttr(graph.AttrCollapsedDims),
			g.IntsAttr(graph.AttrStartIndexMap, int64(at)), g.IntsAttr(graph.AttrIndexVectorDim, 1), g.IntsAttr(graph.AttrSliceSizes, sizes...))
	}
	b.Output("rows", y)
	if d == graph.F32 && rapid.Bool().Draw(t, "consumer") {
		y = b.Mul(y, b.Like(y, 0.5))
		b.Output("halves", y)
	}
	c, err := b.End(y)
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	ins := drawnInputs(g, false, rapid.Uint64Range(1, 1000).Draw(t, "seed"))
	x := &ins[len(ins)-1]
	for k := range x.Len() {
		v := rapid.SampledFrom([]int64{0, n - 1, -1, -n, n / 2, int64(k) % n, int64(k*7) % n}).Draw(t, "index")
		if clamps && k%5 == 4 {
			v = []int64{-1 << 15, 1<<15 - 1}[k/5%2]
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], uint64(v))
		copy(x.Data[k*id.Size():(k+1)*id.Size()], w[:])
	}
	return g, ins
}

// Gathers give the interpreter's rows through the package on every target, with the same bits under 20 interleavings and no
// race, also where so little memory is left that what they touch is spilled.
func TestRandomGathers(t *testing.T) {
	s := street{seeds: 20}
	gathers := 0
	rapid.Check(t, func(t *rapid.T) {
		g, ins := drawGather(t)
		o := verified(rapid.SampledFrom(targets).Draw(t, "target"))
		o.Simulate = rapid.IntRange(0, 3).Draw(t, "simulate") == 0
		if rapid.IntRange(0, 2).Draw(t, "tight") == 0 {
			o.SBBytes = 16392 + rapid.SampledFrom([]int{2048, 8192}).Draw(t, "SBUF")
			o.TileSBBytes = 8192
		}
		if err := s.check(t, g, ins, o); err != nil {
			if target.ClassOf(err) == target.Limit && o.SBBytes > 0 {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		gathers++
	})
	t.Logf("%d models", gathers)
}

const embedding = "zoo:gpt2?ids=1&layers=1&seq=40&width=64&heads=2&vocab=64&positions=64"

// A transformer that starts from token ids, on every target.
func TestEmbedding(t *testing.T) {
	for _, name := range targets {
		pkg, _ := compile(t, load(t, embedding), verified(name))
		match(t, pkg, embedding, 0, 20)
	}
	long := "zoo:llama3-8b?ids=1&layers=1&seq=70&batch=2&width=64&heads=4&kv=2&headdim=16&ffn=48&vocab=300&dtype=f32"
	pkg, _ := compile(t, load(t, long), verified("trn2")) // more ids than a tile has partitions
	match(t, pkg, long, 0, 3)
}

// Each wait of a gather, and of what reads its rows, is needed: without it the race check names the gather.
func TestGatherWaits(t *testing.T) {
	b := newBase(t, embedding)
	dropped := 0
	for k, s := range b.sites {
		p := b.fresh()
		in, at := b.bundle(p, s)
		if in.Opcode != isa.OpIndirectDMA {
			continue
		}
		if in.Sync.WaitMode != isa.WaitGE {
			t.Fatalf("the gather at %v does not wait for its indices", s)
		}
		sem := in.Sem
		in.Sync = isa.Sync{}
		if err := isa.Encode(p.Level, &in, (*isa.Bundle)(at)); err != nil {
			t.Fatal(err)
		}
		rep, err := machine.Race(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := rep.Err(); err == nil || !strings.Contains(err.Error(), "rows of Pool") {
			t.Errorf("site %d: the wait for the indices dropped: %v", k, err)
		}
		dropped++
		for _, r := range b.sites {
			p := b.fresh()
			in, at := b.bundle(p, r)
			switch {
			case in.Sync.WaitMode == isa.WaitGE && in.Sync.WaitSem == sem:
				in.Sync.WaitMode, in.Sync.WaitSem, in.Sync.Value = 0, 0, 0
			case in.Wait1Mode == isa.WaitGE && in.Wait1Sem == sem:
				in.Wait1Mode, in.Wait1Sem, in.Wait1Value = 0, 0, 0
			default:
				continue
			}
			if err := isa.Encode(p.Level, &in, (*isa.Bundle)(at)); err != nil {
				t.Fatal(err)
			}
			rep, err := machine.Race(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := rep.Err(); err == nil || !strings.Contains(err.Error(), "rows of Pool") {
				t.Errorf("the wait for rows at %v dropped: %v", r, err)
			}
			dropped++
		}
	}
	if dropped < 2 {
		t.Errorf("%d waits were dropped; at least one for indices and one for rows are there", dropped)
	}
}

// An index outside of the table stops the run and names the word; a disassembly names the table.
func TestGatherNames(t *testing.T) {
	pkg, _ := compile(t, load(t, embedding), verified("trn2"))
	p := load(t, embedding)
	ids := graph.NewTensor(graph.S32, 40)
	binary.LittleEndian.PutUint32(ids.Data[4*39:], 64)
	_, err := Execute(context.Background(), pkg, &RunOptions{Inputs: []NamedTensor{{Name: "ids", Tensor: ids}}, Random: 1, HasRand: true, Weights: p})
	if target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "indirect_dma") || !strings.Contains(err.Error(), "index 64 of partition 39 is out of [0, 64)") {
		t.Errorf("%v", err)
	}
	var text bytes.Buffer
	if err := Disassemble(&text, pkg, nil, "pool"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "; rows of ") || !strings.Contains(text.String(), "data_count_1=64") {
		t.Errorf("%s", text.Bytes())
	}
}
