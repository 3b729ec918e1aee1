package ir

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Every form of the text, written by hand, prints back to the same bytes.
func TestTextRoundTrip(t *testing.T) {
	src, err := os.ReadFile("testdata/all.rir")
	if err != nil {
		t.Fatal(err)
	}
	var m Module
	for range 2 { // the second time through a used module
		if err := Parse(src, &m); err != nil {
			t.Fatal(err)
		}
		if got := Append(nil, &m); !bytes.Equal(got, src) {
			gl, sl := strings.Split(string(got), "\n"), strings.Split(string(src), "\n")
			for i := range min(len(gl), len(sl)) {
				if gl[i] != sl[i] {
					t.Fatalf("line %d\n got %s\nwant %s", i+1, gl[i], sl[i])
				}
			}
			t.Fatalf("%d lines, want %d", len(gl), len(sl))
		}
	}
	var w bytes.Buffer
	if err := Print(&w, &m); err != nil || !bytes.Equal(w.Bytes(), src) {
		t.Errorf("Print differs from Append: %v", err)
	}
	if !IsText(src) || IsText([]byte("HloModule x")) || IsText(nil) {
		t.Error("text is not told from other input")
	}
}

// Numbers in the text are dense whatever rows the module skips.
func TestPrintIsDense(t *testing.T) {
	var m Module
	var b Builder
	b.NewFunc(&m, "f", "Block1")
	m.NewInst(b.Block, OpNoOp, target.EngineSP, nil, nil) // in no order
	l := b.SB(m.Names.Intern("x"), target.Float32, 4, 4)
	arg := b.Chip(l, target.Float32, 0, 4, 0, Pair{1, 4})
	b.Emit(OpMemset, target.EngineDVE, nil, []Arg{arg}, Int(KeyConstant, 0))
	b.Close()
	text := Append(nil, &m)
	var n Module
	if err := Parse(text, &n); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := Append(nil, &n); !bytes.Equal(text, again) {
		t.Errorf("first print\n%s\nsecond print\n%s", text, again)
	}
	if !bytes.Contains(text, []byte(`I-1 "" Memset`)) {
		t.Errorf("the only printed instruction is not I-1:\n%s", text)
	}
}

func TestParseErrors(t *testing.T) {
	const head = "rir 1\nmodule \"m\" trn2\n"
	for _, c := range []struct{ src, want string }{
		{"", "empty text"},
		{"rir 2\n", "outside 1 to 1"},
		{"rir 1\nmodule \"m\" trn9\n", "unknown target"},
		{head + "expr e2 axis i1\n", "e2 is defined where e1 is next"},
		{head + "func \"f\" {\n  block \"b\" {\n    I-1 \"\" Frob SP () -> ()\n", `unknown opcode "Frob"`},
		{head + "func \"f\" {\n  block \"b\" {\n    I-1 \"\" NoOp SP (%1 @0:float32) -> ()\n", "1 is outside 1 to 0"},
		{head + "func \"f\" {\n  block \"b\" {\n    I-1 \"\" NoOp SP () -> () dep I-9 Flow\n  }\n}\n", "I-9 is not in the text"},
		{head + "func \"f\" {\n  block \"b\" {\n    I-1 \"\" NoOp SP () -> () frob=1\n", `NoOp has no attribute "frob"`},
		{head + "func \"f\" {\n", "is not closed"},
		{head + "func \"f\" {\n  block \"b\" {\n    I-1 \"\" UnconditionalBranch SP () -> () target=\"c\"\n  }\n}\n", `no block "c"`},
		{head + "func \"f\" {\n  set \"s\" Internal Tensor float99 [] part 0\n", `unknown element type "float99"`},
	} {
		var m Module
		err := Parse([]byte(c.src), &m)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.src, err, c.want)
		} else if target.ClassOf(err) != target.User {
			t.Errorf("%q: class %v", c.src, target.ClassOf(err))
		}
	}
}

// damaged parses every prefix of a text, and copies with random bytes changed: an error or a module that prints and parses
// again, never a panic.
func TestDamagedText(t *testing.T) {
	src, err := os.ReadFile("testdata/all.rir")
	if err != nil {
		t.Fatal(err)
	}
	var m Module
	for n := range src {
		if err := Parse(src[:n], &m); err == nil {
			stable(t, &m)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		d := bytes.Clone(src)
		for range 1 + r.IntN(3) {
			d[r.IntN(len(d))] = src[r.IntN(len(src))]
		}
		if err := Parse(d, &m); err == nil {
			stable(t, &m)
		}
	}
}

func stable(t *testing.T, m *Module) {
	t.Helper()
	a := Append(nil, m)
	var n Module
	if err := Parse(a, &n); err != nil {
		t.Fatalf("printed text does not parse: %v\n%s", err, a)
	}
	if b := Append(nil, &n); !bytes.Equal(a, b) {
		t.Fatalf("print is not stable:\n%s\n%s", a, b)
	}
}

func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("testdata/all.rir")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Module
		if Parse(data, &m) == nil {
			stable(t, &m)
		}
	})
}
