package hlo

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// cases is what one fuzzing worker reuses.
type cases struct {
	r       Reader
	g, h    graph.Graph
	a, b    bytes.Buffer
	good    int
	refused int
}

// try reads data. An error must carry a position and not blame rosmar. What reads must have sound tables, and its text must read back
// and then stay as it is.
func (c *cases) try(t *testing.T, data []byte) {
	if err := c.r.Read(data, &c.g); err != nil {
		if target.ClassOf(err) == target.Bug || !strings.Contains(err.Error(), ":") {
			t.Fatalf("%q: %v", data, err)
		}
		return
	}
	c.good++
	checkTables(t, "case", &c.g)
	if t.Failed() {
		t.Fatalf("case %q", data)
	}
	c.a.Reset()
	if err := Write(&c.a, &c.g); err != nil {
		if target.ClassOf(err) == target.Bug {
			t.Fatalf("%q: %v", data, err)
		}
		c.refused++
		return
	}
	if err := c.r.Read(c.a.Bytes(), &c.h); err != nil {
		t.Fatalf("%q\nis written as\n%s\nwhich does not read: %v", data, c.a.Bytes(), err)
	}
	c.b.Reset()
	if err := Write(&c.b, &c.h); err != nil {
		t.Fatalf("%q\nis written as\n%s\nwhich is not written: %v", data, c.a.Bytes(), err)
	}
	if !bytes.Equal(c.a.Bytes(), c.b.Bytes()) {
		t.Fatalf("%q\nis written as\n%s\nand then as\n%s", data, c.a.Bytes(), c.b.Bytes())
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(goodSink()))
	f.Add(module("p = f32[2] parameter(0)\nROOT q = f32[2] add(p, p)"))
	f.Add(module("p = ((f32[], s32[]), pred[4]) parameter(0)"))
	var c cases
	f.Fuzz(func(t *testing.T, data []byte) { c.try(t, data) })
}

// TestMutations is a second of fuzzing with fixed seeds: bytes changed, pieces of the text moved, doubled and dropped.
func TestMutations(t *testing.T) {
	seeds := [][]byte{
		[]byte(goodSink()),
		module("p = ((f32[], s32[]), pred[4]) parameter(0)"),
		module("c = s32[2,2] constant({{1,2},{3,4}})\nROOT w = (s32[2,2], f32[]) custom-call(c), custom_call_target=\"x\""),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var c cases
	n := 0
	for start := time.Now(); n < 2000 || time.Since(start) < time.Second; n++ {
		text := seeds[n%len(seeds)]
		b := slices.Clone(text)
		for range 1 + rng.IntN(3) {
			i, j := rng.IntN(len(b)), rng.IntN(len(text))
			k := min(j+1+rng.IntN(30), len(text))
			switch rng.IntN(5) {
			case 0:
				b[i] = byte(rng.Uint32())
			case 1:
				b[i] = text[j]
			case 2:
				b = slices.Insert(b, i, text[j:k]...)
			case 3:
				b = slices.Delete(b, i, min(i+1+rng.IntN(10), len(b)-1))
			default:
				copy(b[i:], text[j:k])
			}
			if len(b) < 2 {
				b = slices.Clone(text)
			}
		}
		c.try(t, b)
	}
	if c.good < n/100 || c.good == n || c.refused > c.good/2 {
		t.Errorf("of %d cases %d read, %d of them cannot be written", n, c.good, c.refused)
	}
}
