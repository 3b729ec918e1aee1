package codegen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Seed item 12: registers are coloured exactly once in every list, behind what lowers and synchronises and in front of codegen.
func TestSeed12RegistersOnce(t *testing.T) {
	for _, allocator := range []string{"", "coloring", "lsa"} {
		o := NewOptions()
		o.Allocator = allocator
		names, err := o.passes()
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(names, "coloring_allocator_reg")
		if at < 0 || slices.Contains(names[at+1:], "coloring_allocator_reg") {
			t.Errorf("allocator %q: not exactly once in %v", allocator, names)
		}
		if slices.Index(names, "lower_act") > at || slices.Index(names, "lower_sync") > at || slices.Index(names, "codegen") < at {
			t.Errorf("allocator %q: number %d of %v", allocator, at, names)
		}
	}
}

// The pass spills, counts it, and is held by its checker; synchronising afterwards would lose the waits and is refused.
func TestColourRegistersPass(t *testing.T) {
	var b strings.Builder
	b.WriteString("rir 1\nmodule \"m\" trn2\nfunc \"main\" entry {\n  set \"y\" ExternalOutput Tensor int32 [1] part -1\n    %1 \"y\" DRAM 1 x 4 at 0\n")
	const n = 70
	for k := 1; k <= n; k++ {
		fmt.Fprintf(&b, "  reg r%d \"v%d\" int32 1 SP phys -1\n", k, k)
	}
	b.WriteString("  block \"a\" {\n")
	for k := 1; k <= n; k++ {
		fmt.Fprintf(&b, "    I-%d \"\" RegisterMove SP (%d:int32) -> (r%d:int32)\n", k, k, k)
	}
	for k := 2; k <= n; k++ {
		fmt.Fprintf(&b, "    I-%d \"\" RegisterAlu SP (r1:int32, r%d:int32) -> (r1:int32) op=add\n", n+k-1, k)
	}
	fmt.Fprintf(&b, "    I-%d \"\" TensorSave SP (r1:int32) -> (%%1 @0 1*1:int32)\n  }\n}\n", 2*n)
	m := &ir.Module{}
	if err := ir.Parse([]byte(b.String()), m); err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.Verify = true
	w := &Worker{m: m, gen: m.Gen, opt: &o}
	if err := colourRegisters(w); err != nil {
		t.Fatal(err)
	}
	counted := map[string]int64{}
	for _, c := range w.counters {
		counted[c.Name] = c.Value
	}
	if counted["registers"] <= n || counted["lanes"] != 62 || counted["spilled"] < n-62 || counted["rounds"] < 1 || counted["spill_cycles"] <= 0 || counted["used_percent"] != 100 {
		t.Errorf("%v", counted)
	}
	err := lowerSync(w)
	if target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "coloring_allocator_reg behind lower_sync") {
		t.Errorf("synchronising spilled registers: %v", err)
	}
}
