package verify

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// a lives over all, b in the hole of it that c does not need, d and e are the same bytes.
const placedDRAM = `rir 1
module "m" trn2
func "sg0000" entry {
  set "t" Internal NeuronSBTensor float32 [1 1024] part 0
    %1 "t" SB 1 x 4096 at 16640 allocated
  set "a" Internal Tensor float32 [1 1024] part -1
    %2 "a" DRAM 1 x 4096 at 4096 allocated
  set "b" Internal Tensor float32 [1 1024] part -1
    %3 "b" DRAM 1 x 4096 at 4096 allocated
  set "c" Internal Tensor float32 [1 1024] part -1
    %4 "c" DRAM 1 x 4096 at 8192 allocated
  set "d" Internal Tensor float32 [1 1024] part -1
    %5 "d" DRAM 1 x 4096 at 12288 allocated
  set "e" Internal Tensor float32 [1 1024] part -1
    %6 "e" DRAM 1 x 4096 at 12288 allocated
  set "p" Internal Tensor float32 [1 1024] part -1
    %7 "p" DRAM 1 x 4096 at 0 allocated pinned
  alias %5 %6 3
  block "Block1" {
    I-1 "ta" Save SP (%1 0+1 @0 1*1024:float32) -> (%2 @0 1*1024:float32)
    I-2 "fa" Load SP (%2 @0 1*1024:float32) -> (%1 0+1 @0 1*1024:float32)
    I-3 "tb" Save SP (%1 0+1 @0 1*1024:float32) -> (%3 @0 1*1024:float32)
    I-4 "tc" Save SP (%1 0+1 @0 1*1024:float32) -> (%4 @0 1*1024:float32)
    I-5 "fb" Load SP (%3 @0 1*1024:float32) -> (%1 0+1 @0 1*1024:float32)
    I-6 "a1" Save SP (%1 0+1 @0 1*512:float32) -> (%2 @0 1*512:float32)
    I-7 "a2" Save SP (%1 0+1 @512 1*512:float32) -> (%2 @512 1*512:float32)
    I-8 "td" Save SP (%1 0+1 @0 1*1024:float32) -> (%5 @0 1*1024:float32)
    I-9 "fa2" Load SP (%2 @0 1*1024:float32) -> (%1 0+1 @0 1*1024:float32)
    I-10 "fe" Load SP (%6 @0 1*1024:float32) -> (%1 0+1 @0 1*1024:float32)
    I-11 "fc" Load SP (%4 @0 1*1024:float32) -> (%1 0+1 @0 1*1024:float32)
  }
}
`

// Each row spoils the placement in one way; the finding must name it.
func TestDRAMPlacement(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"as it is", "", "", ""},
		{"page", `%4 "c" DRAM 1 x 4096 at 8192`, `%4 "c" DRAM 1 x 4096 at 8200`, "not on a page of 4096"},
		{"window", `%4 "c" DRAM 1 x 4096 at 8192`, `%4 "c" DRAM 1 x 4096 at 25769803776`, "the window of trn2 is"},
		{"before the window", `%4 "c" DRAM 1 x 4096 at 8192`, `%4 "c" DRAM 1 x 4096 at -4096`, "%c takes DRAM bytes -4096 to -1; the window of trn2 is 0 to"},
		{"overlap", `%4 "c" DRAM 1 x 4096 at 8192`, `%4 "c" DRAM 1 x 4096 at 4096`, "%c and %b are live at once"},
		{"neighbour", `%4 "c" DRAM 1 x 4096`, `%4 "c" DRAM 1 x 4097`, "%d and %c are live at once"},
		{"no hole: part of a stays", `(%1 0+1 @512 1*512:float32) -> (%2 @512 1*512:float32)`, `(%1 0+1 @512 1*511:float32) -> (%2 @512 1*511:float32)`, "%b and %a are live at once"},
		{"no hole: a is read in it", `I-4 "tc" Save SP (%1 0+1 @0 1*1024:float32) -> (%4 @0 1*1024:float32)`, `I-4 "tc" Load SP (%2 @0 1*1:float32) -> (%1 0+1 @0 1*1:float32)`, "%b and %a are live at once"},
		{"no hole: its end may not run", `    I-11 "fc"`, `    I-11 "jump" UnconditionalBranch SP () -> ()
    I-12 "fc"`, "%b and %a are live at once"},
		{"aliases apart", `%6 "e" DRAM 1 x 4096 at 12288`, `%6 "e" DRAM 1 x 4096 at 16384`, "the same bytes by a must-alias"},
		{"between aliases", `%2 "a" DRAM 1 x 4096 at 4096`, `%2 "a" DRAM 1 x 4096 at 12288`, "%d and %a are live at once"},
		{"interface", `set "c" Internal Tensor`, `set "c" InternalInterface Tensor`, ""},
		{"interface is live throughout", `set "b" Internal Tensor`, `set "b" InternalInterface Tensor`, "%a and %b are live at once"},
		{"debug to the end", `set "b" Internal Tensor float32 [1 1024] part -1`, `set "b" Internal Tensor float32 [1 1024] part -1 Debug`, "%b and %a are live at once"},
		{"not placed", `%4 "c" DRAM 1 x 4096 at 8192 allocated`, `%4 "c" DRAM 1 x 4096 at 8192`, "%c (DRAM, 1 x 4096 bytes) is used and not placed"},
	} {
		var m ir.Module
		text := strings.Replace(placedDRAM, c.old, c.new, 1)
		if c.old != "" && text == placedDRAM {
			t.Fatalf("%s: nothing to replace", c.name)
		}
		if err := ir.Parse([]byte(text), &m); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		err := Placement(&m, m.Entry, target.SpaceSB, target.SpaceDRAM)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// What is placed after Remember goes above what was placed before, pinned or not; what was there before may lie anywhere.
func TestDRAMFloor(t *testing.T) {
	var m ir.Module
	if err := ir.Parse([]byte(placedDRAM), &m); err != nil {
		t.Fatal(err)
	}
	loc := func(name string) *ir.LocRow {
		for _, r := range m.Locs.All() {
			if m.Names.String(r.Name) == name {
				return r
			}
		}
		t.Fatal(name)
		return nil
	}
	loc("p").Addr = 40960
	loc("a").Flags &^= ir.LocAllocated
	var f Fixed
	f.Remember(&m)
	if err := f.Check(&m); err != nil {
		t.Error(err)
	}
	loc("a").Flags |= ir.LocAllocated
	if err := f.Check(&m); err == nil || !strings.Contains(err.Error(), "%a is at DRAM byte 4096, below byte 45056") {
		t.Error(err)
	}
	loc("a").Addr = 45056
	if err := f.Check(&m); err != nil {
		t.Error(err)
	}
	loc("p").Addr = 36864
	if err := f.Check(&m); err == nil || !strings.Contains(err.Error(), "%p is fixed at") {
		t.Error(err)
	}
}
