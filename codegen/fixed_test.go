package codegen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// fixedTiles is a program of two tiles in SBUF, which are live together at I-3, with what stands behind their names.
func fixedTiles(a, b, more string) string {
	return `rir 1
module "m" trn2
func "f" entry {
  set "A" ExternalInput Tensor float32 [128 32] part -1
    %1 "A" DRAM 1 x 16384 at 0
  set "B" ExternalOutput Tensor float32 [128 32] part -1
    %2 "B" DRAM 1 x 16384 at 0
  set "a" Internal NeuronSBTensor float32 [128 32] part 0
    %3 "a" SB 128 x 128 at ` + a + `
  set "b" Internal NeuronSBTensor float32 [128 32] part 0
    %4 "b" SB 128 x 128 at ` + b + `
` + more + `  block "x" {
    I-1 "" Load SP (%1 @0 32*128 1*32:float32) -> (%3 0+128 @0 1*32:float32)
    I-2 "" Load SP (%1 @0 32*128 1*32:float32) -> (%4 0+128 @0 1*32:float32)
    I-3 "" TensorTensor DVE (%3 0+128 @0 1*32:float32, %4 0+128 @0 1*32:float32) -> (%4 0+128 @0 1*32:float32) op=add
    I-4 "" Save SP (%4 0+128 @0 1*32:float32) -> (%2 @0 32*128 1*32:float32)
  }
}
`
}

// What a program fixes itself is held against the memory, the runtime's strip and itself before an allocator builds on it: by each of
// the three the program is refused by name, as the program's fault, and what is right keeps its place.
func TestFixedPlacements(t *testing.T) {
	lists := map[string][]string{"coloring": plane2, "with loop": withLoop()}
	o := NewOptions()
	o.Allocator = "lsa"
	lists["lsa"], _ = o.Passes()
	const extra = "  set \"u\" Internal NeuronSBTensor uint8 [128 64] part 0\n    %%5 \"u\" SB 128 x %s\n"
	for _, c := range []struct{ name, a, b, more, want string }{
		{"apart", "20000 allocated pinned", "20128 allocated user_allocated", "", ""},
		{"for engines", "20004 allocated pinned", "0", "", ""},
		{"on each other", "20000 allocated pinned", "20064 allocated user_allocated", "", "%b and %a are live at once"},
		{"on each other, not pinned", "20000 allocated", "20064 allocated", "", "%b and %a are live at once"},
		{"on the strip", "16384 allocated pinned", "0", "", "%a and %dge_scratch are live at once"},
		{"off the end", "229320 allocated pinned", "0", "", "%a takes bytes 229320 to 229448 of a partition of 229376"},
		{"before the start", "-8 allocated", "0", "", "%a takes bytes -8 to 120"},
		{"off the granule", "20004 allocated", "0", "", "%a starts at byte 20004, which is no multiple of 8"},
		{"off the element", "20002 allocated pinned", "0", "", "%a: placed at byte 20002; float32 needs a multiple of 4"},
		{"without a place", "20000 user_allocated", "0", "", "%a (SB) is marked as fixed"},
		{"pinned without a place", "20000 pinned", "0", "", "%a (SB) is marked as fixed"},
		{"untouched off the end", "0", "0", fmt.Sprintf(extra, "64 at 229376 allocated pinned"), "%u takes bytes 229376 to 229440"},
		{"untouched anywhere", "20000 allocated", "0", fmt.Sprintf(extra, "64 at 20000 allocated pinned"), ""},
		{"strip off the end", "0", "0", fmt.Sprintf(extra, "329376 at 0 allocated pinned reserved"), "%u takes bytes 0 to 329376"},
	} {
		for name, list := range lists {
			o := verified("")
			o.Simulate = true
			text := fixedTiles(c.a, c.b, c.more)
			_, err := Parse([]byte(text), "fixed.rir", "")
			if err == nil {
				_, _, err = tiles(t, text, o, list...)
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s, %s: %v", c.name, name, err)
			case c.want != "" && (err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s, %s: %v, want %q", c.name, name, err, c.want)
			}
		}
	}
}

// A tensor that nothing touches and that is larger than the memory is refused as what it is.
func TestUntouchedOverflow(t *testing.T) {
	text := fixedTiles("0", "0", "  set \"u\" Internal NeuronSBTensor uint8 [128 9000000] part 0\n    %5 \"u\" SB 128 x 9000000 at 0\n")
	for _, list := range [][]string{plane2, withLoop(), {"linear_scan_allocator"}} {
		if _, _, err := tiles(t, text, NewOptions(), list...); err == nil || target.ClassOf(err) != target.Limit ||
			!strings.Contains(err.Error(), "%u needs 9000000 bytes a partition of") || !strings.Contains(err.Error(), "no instruction touches it") {
			t.Error(err)
		}
	}
}

// The machine is fed by shapes and types, and programs read bytes in DRAM: a module whose inputs and outputs are otherwise is refused.
func TestInputsAndOutputsOfTiles(t *testing.T) {
	whole := fixedTiles("0", "0", "")
	for _, c := range []struct {
		from, to, want string
		class          target.Class
	}{
		{`%1 "A" DRAM 1 x 16384`, `%1 "A" DRAM 1 x 32768`, "tensor A of 32768 bytes: its shape [128 32] of float32 has 16384", target.User},
		{`ExternalOutput Tensor float32 [128 32]`, `ExternalOutput Tensor float32 [128 9223372036854775807]`, "tensor B of 16384 bytes", target.User},
		{`set "b" Internal`, `set "b" ExternalOutput`, "tensor b is an ExternalOutput in SB", target.Unsupported},
	} {
		text := strings.Replace(whole, c.from, c.to, 1)
		if _, _, err := tiles(t, text, NewOptions(), plane2...); err == nil || target.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

// A register that a program fixes lies in its engine's file.
func TestFixedRegisterOffTheFile(t *testing.T) {
	text := strings.Replace(fixedTiles("0", "0", ""), "  block", "  reg r1 \"v\" int64 2 SP phys 63\n  block", 1)
	if _, _, err := tiles(t, text, NewOptions(), "coloring_allocator_reg"); err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "register %v is fixed at lane 63 and takes 2") {
		t.Error(err)
	}
}

// Once instructions have been scheduled, tensors may lie on each other's spent bytes; a pass that takes other results back does not bring
// the old order back, and the checker must not judge by it.
func TestCheckedBehindScheduling(t *testing.T) {
	for _, again := range []string{"dead_code_elim_o0", "lower_select", "coloring_allocator_sb", "address_rotation_sb"} {
		o := verified("")
		p := load(t, "zoo:gpt2?layers=1&seq=40&width=64&heads=2&vocab=64&positions=64")
		for _, n := range plane2 {
			o.Pass = append(o.Pass, n)
			if n == "post_sched" {
				o.Pass = append(o.Pass, again)
				break
			}
		}
		o.SBBytes = 32768
		compile(t, p, o)
	}
}

// A module that says that its transfers have queues is held to it.
func TestQueuedByAnotherEngine(t *testing.T) {
	o := NewOptions()
	o.Pass = plane2[:len(plane2)-1]
	var w Worker
	w.compileOnly(t, "zoo:mlp?layers=1&width=8&in=6&out=4&batch=3", &o)
	text := string(ir.Append(nil, w.m))
	at := strings.Index(text, " Load SP ")
	if at < 0 {
		t.Fatal("no load that SP triggers")
	}
	text = text[:at] + " Load Activation " + text[at+len(" Load SP "):]
	if _, _, err := tiles(t, text, NewOptions(), "lower_sync"); err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "which Activation triggers, has no queue set of that engine") {
		t.Error(err)
	}
}

// Nobody but the program says where a computation runs.
func TestComputationWithoutEngine(t *testing.T) {
	text := strings.Replace(fixedTiles("0", "0", ""), "TensorTensor DVE", "TensorTensor Unassigned", 1)
	for _, list := range [][]string{plane2, withLoop()} {
		if _, _, err := tiles(t, text, verified(""), list...); err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "I-3 (TensorTensor)") {
			t.Error(err)
		}
	}
}
