package rotate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

const passedOn = 12

// relay is a program in which each block reads what the one before saved, and saves something of its own; change edits its text.
func relay(t testing.TB, change func(string) string) *ir.Module {
	t.Helper()
	var b strings.Builder
	b.WriteString("rir 1\nmodule \"m\" trn2\nfunc \"main\" entry {\n")
	b.WriteString("  set \"t\" Internal NeuronSBTensor float32 [1 1024] part 0\n    %1 \"t\" SB 1 x 4096 at 16640 allocated\n")
	for k := range passedOn {
		fmt.Fprintf(&b, "  set \"d%d\" Internal Tensor float32 [1 1024] part -1\n    %%%d \"d%d\" DRAM 1 x 4096 at 0\n", k, k+2, k)
	}
	i := 0
	inst := func(format string, args ...any) {
		i++
		fmt.Fprintf(&b, "    I-%d "+format+"\n", append([]any{i}, args...)...)
	}
	for k := range passedOn {
		fmt.Fprintf(&b, "  block \"b%d\" {\n", k)
		if k == 0 {
			inst("\"zero\" Memset Pool () -> (%%1 0+1 @0 1*1024:float32)")
		}
		inst("\"save%d\" Save SP (%%1 0+1 @0 1*1024:float32) -> (%%%d @0 1*1024:float32)", k, k+2)
		if k > 0 {
			inst("\"load%d\" Load SP (%%%d @0 1*1024:float32) -> (%%1 0+1 @0 1*1024:float32)", k, k+1)
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	m := new(ir.Module)
	if err := ir.Parse([]byte(change(b.String())), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Buffers that go from block to block take the pages of the window in turn; those that must stay do, and nothing that is live
// together meets.
func TestDRAM(t *testing.T) {
	same := func(s string) string { return s }
	mark := func(set, flag string) func(string) string {
		return func(s string) string {
			return strings.Replace(s, set+"\" Internal Tensor float32 [1 1024] part -1", set+"\" Internal Tensor float32 [1 1024] part -1"+flag, 1)
		}
	}
	for _, c := range []struct {
		name   string
		change func(string) string
		gib    int
		opt    memalloc.Options
		moved  int
		top    int64 // end of the highest placement
	}{
		{"window", same, 0, memalloc.Options{}, passedOn - 2, passedOn * pageBytes},
		{"as much as is in use", same, -1, memalloc.Options{}, 0, 2 * pageBytes},
		{"core's window", same, 8, memalloc.Options{HBMBytes: 5 * pageBytes}, passedOn - 4, 5 * pageBytes},
		{"no rotate", mark("d3", " no_rotate"), 0, memalloc.Options{}, passedOn - 3, (passedOn - 1) * pageBytes},
		{"collective", func(s string) string {
			return strings.Replace(s, "\"load4\" Load SP (%5 @0 1*1024:float32) -> (%1 0+1 @0 1*1024:float32)", "\"load4\" CollectiveCompute Pool (%5 @0 1*1024:float32) -> (%5 @0 1*1024:float32)", 1)
		}, 0, memalloc.Options{}, passedOn - 3, (passedOn) * pageBytes},
		{"branch", func(s string) string {
			return strings.TrimSuffix(s, "}\n") + "  block \"end\" {\n    I-25 \"jump\" UnconditionalBranch SP () -> ()\n  }\n}\n"
		}, 0, memalloc.Options{}, 0, 2 * pageBytes},
		{"shared above", mark("d9", " Shared"), 0, memalloc.Options{}, 0, 2 * pageBytes},
	} {
		m := relay(t, c.change)
		var ws Workspace
		var alloc memalloc.Workspace
		for s := range ir.NumAddrSpaces {
			o := c.opt
			o.AddrSpace = s
			if _, err := memalloc.DRAM(m, m.Entry, &alloc, o); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		var fixed verify.Fixed
		fixed.Remember(m)
		was := *m.Locs.At(5)
		st, err := DRAM(m, m.Entry, &ws, &alloc, c.opt, c.gib)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		top := int64(0)
		for l, r := range m.Locs.All() {
			if r.Space == target.SpaceDRAM && m.Sets.At(r.Set).Addr == ir.AddrLocal {
				top = max(top, m.Locs.At(l).Addr+pageBytes)
			}
		}
		if st.Moved > 0 && st.High != top {
			t.Errorf("%s: says %d is the end, and it is %d", c.name, st.High, top)
		}
		if st.Units != passedOn || st.Moved != c.moved || top != c.top {
			t.Errorf("%s: %+v, up to byte %d; want %d moved, up to %d", c.name, st, top, c.moved, c.top)
		}
		if c.name == "no rotate" || c.name == "collective" {
			if *m.Locs.At(5) != was {
				t.Errorf("%s: moved from %d to %d", c.name, was.Addr, m.Locs.At(5).Addr)
			}
		}
		if err := verify.Placement(m, m.Entry, target.SpaceDRAM); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	m := relay(t, same)
	var ws Workspace
	var alloc memalloc.Workspace
	if _, err := DRAM(m, m.Entry, &ws, &alloc, memalloc.Options{}, 0); err == nil || target.ClassOf(err) != target.Bug || !strings.Contains(err.Error(), "%d0, which has no place") {
		t.Error(err)
	}
}

// A second run of the same size allocates nothing.
func TestDRAMSteadyState(t *testing.T) {
	m := relay(t, func(s string) string { return s })
	var ws Workspace
	var alloc memalloc.Workspace
	if _, err := memalloc.DRAM(m, m.Entry, &alloc, memalloc.Options{}); err != nil {
		t.Fatal(err)
	}
	pass := func() {
		if _, err := DRAM(m, m.Entry, &ws, &alloc, memalloc.Options{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}
