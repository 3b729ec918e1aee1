package scalar

import (
	"bytes"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"pgregory.net/rapid"
)

// checked colours a module and proves the result: by the checker of registers, the verifier, the order of waits, and the numbers.
func checked(t interface {
	Helper()
	Fatalf(string, ...any)
}, m *ir.Module, ws *Workspace, s *sim.Sim, lanes int) (mt Metrics, err error) {
	t.Helper()
	before := printed(m)
	want, err := run(m, s)
	if err != nil {
		t.Fatalf("before: %v\n%s", err, before)
	}
	var g verify.Registers
	g.Remember(m, m.Entry)
	mt, err = Colour(m, m.Entry, ws, Options{Lanes: lanes})
	if err != nil {
		return mt, err
	}
	if err := g.Check(m, lanes); err != nil {
		t.Fatalf("%d lanes: %v\nbefore:\n%s\nafter:\n%s", lanes, err, before, printed(m))
	}
	if err := verify.Module(m, target.Bug); err != nil {
		t.Fatalf("%v\n%s", err, printed(m))
	}
	got, err := run(m, s)
	if err != nil {
		t.Fatalf("%d lanes: after: %v\nbefore:\n%s\nafter:\n%s", lanes, err, before, printed(m))
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%d lanes: the numbers changed\nbefore:\n%s\nafter:\n%s", lanes, before, printed(m))
	}
	back, err := parse(printed(m))
	if err != nil {
		t.Fatalf("text does not parse again: %v", err)
	}
	if a, b := printed(m), printed(back); a != b {
		t.Fatalf("text changes on the way:\n%s\n%s", a, b)
	}
	return mt, nil
}

func property(t *rapid.T) {
	text := random(t)
	var ws Workspace
	var s sim.Sim
	for _, lanes := range []int{62, rapid.IntRange(6, 16).Draw(t, "lanes"), 5} {
		m, err := parse(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		mt, err := checked(t, m, &ws, &s, lanes)
		if err != nil {
			t.Fatalf("%d lanes: %v\n%s", lanes, err, text)
		}
		if mt.Rounds > 0 != (mt.Spilled > 0) || mt.HighWater > lanes || len(mt.Scores) != mt.Rounds+1 || mt.Scores[mt.Rounds] != 0 {
			t.Fatalf("%d lanes: %+v", lanes, mt)
		}
	}
}

func TestRandomPrograms(t *testing.T) { rapid.Check(t, property) }

func FuzzColour(f *testing.F) { f.Fuzz(rapid.MakeFuzz(property)) }
