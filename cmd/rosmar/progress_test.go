package main

import (
	"os"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/codegen"
)

// The line says how many inputs are done, what the oldest does, and how many others are in work; it never wraps.
func TestProgressLine(t *testing.T) {
	p := newProgress(os.Stderr)
	now := time.Now()
	if got := p.line(now, 80); got != "" {
		t.Errorf("nothing to do: %q", got)
	}
	p.expect(3)
	hear := p.begin(0, "a.onnx")
	p.begin(1, "b.onnx")
	p.jobs[0].since = now.Add(-1500 * time.Millisecond)
	hear(codegen.Event{Pass: "tile"})
	if got, want := p.line(now, 80), "[0/3] a.onnx: tile, 1.5 s (+1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	hear(codegen.Event{Pass: "post_sched", Index: 10, Total: 17, Insts: 1234})
	if got, want := p.line(now, 80), "[0/3] a.onnx: pass 11/17 post_sched, 1234 instructions, 1.5 s (+1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	hear(codegen.Event{Pass: "simulate", Of: "interleaving", Index: 1, Total: 20})
	if got, want := p.line(now, 80), "[0/3] a.onnx: interleaving 2/20 simulate, 1.5 s (+1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := p.line(now, 20), "[0/3] a.onnx: inter"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.end(0)
	p.jobs[0].since = now
	if got, want := p.line(now, 80), "[1/3] b.onnx, 0.0 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Off a terminal nothing is drawn and writes pass through.
func TestProgressOffTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/err")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newProgress(f)
	p.enable(true)
	if p.on {
		t.Fatal("draws into a file")
	}
	p.begin(0, "a")
	p.start = time.Now().Add(-time.Hour)
	p.draw()
	p.Write([]byte("text\n"))
	p.close()
	b, err := os.ReadFile(f.Name())
	if err != nil || string(b) != "text\n" {
		t.Errorf("wrote %q, %v", b, err)
	}
}
