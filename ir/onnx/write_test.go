package onnx

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// TestWriteCases writes every case that reads, reads it back and compares with the published outputs again.
func TestWriteCases(t *testing.T) {
	cases := allZipCases(t)
	var g, back graph.Graph
	written, refused := 0, 0
	for i := range cases {
		c := cases[i]
		known, err := readCase(&c, &g)
		if err != nil || len(known) > 0 {
			continue
		}
		var buf, again bytes.Buffer
		err = Write(&buf, &g)
		var te *target.Error
		if errors.As(err, &te) && te.Class == target.Unsupported && te.Subject != "" {
			refused++
			t.Logf("UNSUPPORTED %s: %v", c.name, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := Write(&again, &g); err != nil || !bytes.Equal(buf.Bytes(), again.Bytes()) {
			t.Errorf("%s: written twice, the bytes differ (%v)", c.name, err)
		}
		c.model = buf.Bytes()
		if !IsONNX(c.model) {
			t.Errorf("%s: the result is not recognised", c.name)
		}
		if _, err := runCase(&c, &back); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		written++
	}
	t.Logf("%d models written and read back with the same numbers, %d refused by name", written, refused)
	if written < 500 {
		t.Errorf("only %d models were written", written)
	}
}

// TestWriteWeights writes seeded, dense, shared and splat constants and finds the same bytes after reading.
func TestWriteWeights(t *testing.T) {
	var g graph.Graph
	b := graph.Begin(&g, "main")
	x := b.Param("x", graph.F32, 4, 8)
	b.SetLabel("w")
	w := b.Weight(graph.F32, []int64{8, 3}, 5, 0.1)
	big := b.Splat(graph.F32, []int64{300, 300}, 2)
	small := b.Splat(graph.F32, []int64{3}, 4)
	y := b.Add(b.MatMul(x, w), small)
	z := b.Reduce(graph.ReduceSum, big, 0)
	b.Output("y", y)
	b.Output("z", z)
	b.Output("x again", x)
	var err error
	if g.Entry, err = b.End(y); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := Write(&buf, &g); err != nil {
		t.Fatal(err)
	}
	if buf.Len() > 2000 {
		t.Errorf("%d bytes: the splat was written out", buf.Len())
	}
	var back graph.Graph
	if err := Read(buf.Bytes(), "", &back); err != nil {
		t.Fatal(err)
	}
	in := []graph.Tensor{graph.NewTensor(graph.F32, 4, 8)}
	for i := range in[0].Data {
		in[0].Data[i] = byte(i % 61)
	}
	want, err := graph.Eval(&g, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := graph.Eval(&back, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if back.Names.String(back.Outputs[i].Name) != g.Names.String(g.Outputs[i].Name) {
			t.Errorf("output %d is called %q", i, back.Names.String(back.Outputs[i].Name))
		}
		if !bytes.Equal(got[i].Data, want[i].Data) {
			t.Errorf("output %d differs", i)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	var g graph.Graph
	b := graph.Begin(&g, "main")
	x := b.Param("x", graph.F32, 4)
	y := b.Unary(graph.OpCbrt, x)
	b.Output("y", y)
	var err error
	if g.Entry, err = b.End(y); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, Write(new(bytes.Buffer), &g), target.Unsupported, "cbrt")
}
