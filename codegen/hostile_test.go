package codegen

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// samples are one small input of each format, as bytes.
func samples(t *testing.T) map[string][]byte {
	t.Helper()
	const model = "zoo:mlp?layers=1&width=8&in=6&out=4&batch=3"
	var h, o, r bytes.Buffer
	if err := hlo.Write(&h, load(t, model).Graph); err != nil {
		t.Fatal(err)
	}
	if err := onnx.Write(&o, load(t, model).Graph); err != nil {
		t.Fatal(err)
	}
	m, err := Parse(reluJSON, "relu.json", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Print(&r, m.Module); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"x.hlo": h.Bytes(), "x.onnx": o.Bytes(), "x.json": reluJSON, "x.rir": r.Bytes()}
}

// feed takes one damaged input through the whole street: it ends as a package or as an error that is not a bug.
func feed(t *testing.T, w *Worker, name string, data []byte) {
	t.Helper()
	p, err := Parse(data, name, "")
	if err == nil {
		o := NewOptions()
		o.MaxInstructions, o.HBMGiB = 20000, 1
		var buf neff.Buffer
		_, err = w.Compile(context.Background(), p, &o, &buf)
	}
	if err != nil && target.ClassOf(err) == target.Bug {
		t.Fatalf("%s: %v\n%q", name, err, data)
	}
}

// Every prefix of a small file of each format, and copies with random bytes changed: a clear error or a package, no panic,
// no bug, memory bounded.
func TestDamagedInputs(t *testing.T) {
	var w Worker
	for name, src := range samples(t) {
		stride := 1
		if testing.Short() {
			stride = 7
		}
		for n := 0; n < len(src); n += stride {
			feed(t, &w, name, src[:n])
		}
		r := rand.New(rand.NewPCG(11, uint64(len(src))))
		for range 4000 / stride {
			d := bytes.Clone(src)
			for range 1 + r.IntN(3) {
				d[r.IntN(len(d))] = byte(r.Uint32())
			}
			feed(t, &w, name, d)
		}
	}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	if s.Sys > 4<<30 {
		t.Errorf("the process holds %d bytes", s.Sys)
	}
}

// The same for packages, which the machine runs as far as they go.
func TestDamagedPackages(t *testing.T) {
	const model = "zoo:mlp?layers=1&width=8&in=6&out=4&batch=3"
	pkg, _ := compile(t, load(t, model), NewOptions())
	var runner Runner
	weights := load(t, model)
	run := func(d []byte) {
		_, err := runner.Execute(context.Background(), d, &RunOptions{Random: 1, HasRand: true, Weights: weights})
		if err != nil && target.ClassOf(err) == target.Bug {
			t.Fatalf("%v", err)
		}
	}
	stride := 1
	if testing.Short() {
		stride = 13
	}
	for n := 0; n < len(pkg); n += stride {
		run(pkg[:n])
	}
	// Bytes of the archive, unsealed and sealed again: damage behind the digest.
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 / stride {
		p, err := neff.ReadBytes(pkg, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := &p.Engines[r.IntN(len(p.Engines))]
		if len(e.Stream) == 0 {
			continue
		}
		e.Stream = bytes.Clone(e.Stream)
		e.Stream[r.IntN(len(e.Stream))] = byte(r.Uint32())
		var buf neff.Buffer
		if _, err := p.Write(&buf, true); err == nil {
			run(buf.Bytes())
		}
	}
}
