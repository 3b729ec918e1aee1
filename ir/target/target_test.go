package target

import (
	"errors"
	"fmt"
	"testing"
)

func TestNamesRoundTrip(t *testing.T) {
	for d := Uint8; d < NumDtypes; d++ {
		if got, ok := ParseDtype(d.String()); !ok || got != d {
			t.Errorf("dtype %d prints %q and parses as %d, %v", d, d, got, ok)
		}
	}
	for o := AluBypass; o < NumAluOps; o++ {
		if got, ok := ParseAluOp(o.String()); !ok || got != o {
			t.Errorf("alu %d prints %q and parses as %d, %v", o, o, got, ok)
		}
	}
	for f := ActIdentity; f < NumActFuncs; f++ {
		if got, ok := ParseActFunc(f.String()); !ok || got != f {
			t.Errorf("act %d prints %q and parses as %d, %v", f, f, got, ok)
		}
		if f.TableSet() >= NumActTables {
			t.Errorf("%s needs table set %d of %d", f, f.TableSet(), NumActTables)
		}
	}
	for e := EngineUnassigned; e < NumEngines; e++ {
		if got, ok := ParseEngine(e.String()); !ok || got != e {
			t.Errorf("engine %d prints %q and parses as %d, %v", e, e, got, ok)
		}
	}
}

// The figures of the public notes, and the costs that follow from them.
func TestGeometryAndCost(t *testing.T) {
	for _, c := range []struct {
		name            string
		level, sb, used int
	}{{"trn1", 20, 196608, 180224}, {"gen3", 30, 229376, 212984}, {"core_v4", 40, 262144, 245752}, {"inf1", 10, 98304, 81920}} {
		g, err := Lookup(c.name)
		if err != nil || g.Level != c.level || g.SBBytes != c.sb || g.SBUsable() != c.used {
			t.Errorf("%s: %+v, %v", c.name, g, err)
		}
	}
	v2, _ := ByLevel(20)
	v3, _ := ByLevel(30)
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"matmul 512 on gen2", v2.MatmulCost(512, false), 325},
		{"DMA 128x2048B fp32 on gen3", v3.DMACost(128, 512, 4), 2012},
		{"DMA 128x2048B uint8 on gen3", v3.DMACost(128, 2048, 1), 2012},
		{"memset 512 on gen3", v3.EngineCost(CostMemset, EngineDVE, 512), 585},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d ns, want %d", c.what, c.got, c.want)
		}
	}
	if SBAddress(128, 0) != PSUMBase {
		t.Errorf("SBUF ends at %#x, PSUM begins at %#x", SBAddress(128, 0), PSUMBase)
	}
}

func TestRefusedTargets(t *testing.T) {
	if _, err := Lookup("core_v5"); ClassOf(err) != Unsupported {
		t.Errorf("core_v5: %v", err)
	}
	if _, err := ForCodeGen("inf1"); ClassOf(err) != Unsupported {
		t.Errorf("inf1: %v", err)
	}
	if _, err := Lookup("tpu"); ClassOf(err) != User {
		t.Errorf("tpu: %v", err)
	}
}

func TestLegalStart(t *testing.T) {
	legal := map[[2]int]bool{}
	for _, s := range []int{0, 32, 64, 96} {
		for n := 1; n <= 32; n++ {
			legal[[2]int{s, n}] = true
		}
	}
	for n := 33; n <= 64; n++ {
		legal[[2]int{0, n}], legal[[2]int{64, n}] = true, true
	}
	for n := 65; n <= 128; n++ {
		legal[[2]int{0, n}] = true
	}
	for s := -1; s < 130; s++ {
		for n := 0; n < 130; n++ {
			if got := LegalStart(s, n); got != legal[[2]int{s, n}] {
				t.Fatalf("start %d, %d partitions: %v", s, n, got)
			}
		}
	}
}

func TestErrorClass(t *testing.T) {
	err := fmt.Errorf("reading x: %w", NotSupported("Einsum", "node 3: Einsum with %d inputs", 3))
	var e *Error
	if !errors.As(err, &e) || e.Subject != "Einsum" || ClassOf(err) != Unsupported {
		t.Errorf("%v: class %v", err, ClassOf(err))
	}
}
