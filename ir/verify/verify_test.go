package verify

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const legal = `rir 1
module "m" trn2
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [8 4] part 0
    %1 "A" DRAM 1 x 128 at 0
  set "B" ExternalInput Tensor float32 [8 6] part 0
    %2 "B" DRAM 1 x 192 at 0
  set "C" ExternalOutput Tensor float32 [4 6] part 0
    %3 "C" DRAM 1 x 96 at 0
  set "a" Internal NeuronSBTensor float32 [8 4] part 0
    %4 "a" SB 8 x 16 at 16640 allocated
  set "b" Internal NeuronSBTensor float32 [8 6] part 0
    %5 "b" SB 8 x 24 at 16896 allocated
  set "acc" Internal NeuronPSUMTensor float32 [4 6] part 0
    %6 "acc" PSUM 4 x 24 at 0 bank 1 allocated
  set "c" Internal NeuronSBTensor float32 [4 6] part 0
    %7 "c" SB 4 x 24 at 16640 allocated
  block "Block1" {
    I-1 "la" Load SP (%1 @0 4*8 1*4:float32) -> (%4 0+8 @0 1*4:float32) update s16 16
    I-2 "lb" Load SP (%2 @0 6*8 1*6:float32) -> (%5 0+8 @0 1*6:float32) update s17 16
    I-3 "mm" Matmult PE (%5 0+8 @0 1*6:float32, %4 0+8 @0 1*4:float32) -> (%6 0+4 @0 1*6:float32) accumulation_flag=3 dep I-1 Flow dep I-2 Flow wait s16 16 I-1 wait s17 16 I-2 update s5 1
    I-4 "relu" Activation Activation (%6 0+4 @0 1*6:float32, 0:float32, 1:float32, 0:float32) -> (%7 0+4 @0 1*6:float32) func=Relu dep I-3 Flow wait s5 1 I-3 update s4 1
    I-5 "sv" Save Activation (%7 0+4 @0 1*6:float32) -> (%3 @0 6*4 1*6:float32) dep I-4 Flow wait s4 1 I-4 update s18 16
  }
}
`

func all(m *ir.Module) error {
	for _, f := range []func() error{
		func() error { return Module(m, target.Bug) },
		func() error { return Placement(m, m.Entry, target.SpaceSB, target.SpacePSUM, target.SpaceDRAM) },
		func() error { return Groups(m, m.Entry) },
		func() error { return Sync(m, m.Entry) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func TestLegal(t *testing.T) {
	var m ir.Module
	if err := ir.Parse([]byte(legal), &m); err != nil {
		t.Fatal(err)
	}
	if err := all(&m); err != nil {
		t.Error(err)
	}
}

// Each row damages the legal program in one place; the finding must name it.
func TestFindings(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"engine", `"mm" Matmult PE`, `"mm" Matmult Pool`, "cannot run on Pool"},
		{"row", `%4 0+8 @0 1*4:float32)`, `%4 0+8 @1 1*4:float32)`, "elements 1 to 4 of a row of 16 bytes"},
		{"dram", `(%1 @0 4*8 1*4:float32)`, `(%1 @0 5*8 1*4:float32)`, "of 128 bytes"},
		{"partitions", `%5 0+8 @0 1*6:float32) u`, `%5 0+9 @0 1*6:float32) u`, "partitions 0 to 8 of 8"},
		{"start", `-> (%7 0+4 @0 1*6`, `-> (%7 2+2 @0 1*6`, "may not start at partition 2"},
		{"move count", `(%2 @0 6*8 1*6:float32)`, `(%2 @0 6*8 1*5:float32)`, "moves 40 elements to 48"},
		{"matmul K", `(%5 0+8 @0 1*6:float32, %4`, `(%5 0+4 @0 1*6:float32, %4`, "contracts 4 moving rows with 8"},
		{"matmul N", `-> (%6 0+4 @0 1*6:float32) acc`, `-> (%6 0+4 @0 1*5:float32) acc`, "6 moving columns give 5"},
		{"flag", `accumulation_flag=3`, `accumulation_flag=5`, "accumulation_flag 5"},
		{"psum type", `-> (%6 0+4 @0 1*6:float32) acc`, `-> (%6 0+4 @0 1*6:bfloat16) acc`, "writes bfloat16 to PSUM"},
		{"pair", `(%5 0+8 @0 1*6:float32, %4`, `(%5 0+8 @0 1*6:bfloat16, %4`, "32-bit floats pair only"},
		{"alu", `func=Relu`, `func=Relu op0=average`, "op0=average cannot be encoded"},
		{"level", `"relu" Activation Activation (%6 0+4 @0 1*6:float32, 0:float32, 1:float32, 0:float32)`, `"relu" Exponential DVE (%6 0+4 @0 1*6:float32, 0:float32)`, "needs generation level 40"},
		{"overlap", `%5 "b" SB 8 x 24 at 16896`, `%5 "b" SB 8 x 24 at 16648`, "%b and %a are live at once"},
		{"strip bank", `%6 "acc" PSUM 4 x 24 at 0 bank 1`, `%6 "acc" PSUM 4 x 24 at 0 bank 8`, "of 8 banks"},
		{"granule", `%4 "a" SB 8 x 16 at 16640`, `%4 "a" SB 8 x 16 at 16644`, "no multiple of 8"},
		{"element", `%4 "a" SB 8 x 16 at 16640`, `%4 "a" SB 8 x 16 at 16642 pinned`, "%a: placed at byte 16642; float32 needs a multiple of 4"},
		{"not placed", `%4 "a" SB 8 x 16 at 16640 allocated`, `%4 "a" SB 8 x 16 at 16640`, "is used and not placed"},
		{"group open", `accumulation_flag=3`, `accumulation_flag=1`, "that nothing closes"},
		{"group not started", `accumulation_flag=3`, `accumulation_flag=6`, "that no START opened"},
		{"late producer", `wait s16 16 I-1 wait`, `wait s16 16 I-4 wait`, "waits for relu, which is not earlier"},
		{"value", `wait s5 1 I-3`, `wait s5 2 I-3`, "to reach 2; everything earlier adds up to 1"},
		{"two producers", `update s4 1`, `update s5 1`, "a semaphore has one producer"},
	} {
		src := strings.Replace(legal, c.old, c.new, 1)
		if src == legal {
			t.Fatalf("%s: the program does not contain %q", c.name, c.old)
		}
		var m ir.Module
		if err := ir.Parse([]byte(src), &m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err := all(&m)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %q", c.name, err, c.want)
		}
	}
}

func TestFixed(t *testing.T) {
	var m ir.Module
	if err := ir.Parse([]byte(strings.Replace(legal, "at 16640 allocated", "at 16640 allocated pinned", 1)), &m); err != nil {
		t.Fatal(err)
	}
	var f Fixed
	f.Remember(&m)
	if err := f.Check(&m); err != nil {
		t.Error(err)
	}
	m.Locs.At(4).Addr += 8
	if err := f.Check(&m); err == nil || !strings.Contains(err.Error(), "%a is fixed") {
		t.Errorf("a pinned location moved: %v", err)
	}
}

// What a loop reads from outside is live through all of it: its body may not write over it further down, because the next turn
// reads it again.
func TestLoopReadsInEveryTurn(t *testing.T) {
	text := strings.Replace(legal, `    I-5 "sv"`, `    I-5 "L" Loop Unassigned () -> () {
      block "body" {
        I-6 "use" TensorCopy DVE (%5 0+8 @0 1*6:float32) -> (%8 0+8 @0 1*6:float32)
        I-7 "set" Memset DVE () -> (%9 0+8 @0 1*6:float32) constant=0
      }
    }
    I-8 "sv"`, 1)
	for _, c := range []struct {
		at   string
		want string
	}{{"17024", ""}, {"16896", "%over and %b are live at once"}} {
		var m ir.Module
		src := strings.Replace(text, `  block "Block1"`, `  set "copy" Internal NeuronSBTensor float32 [8 6] part 0
    %8 "copy" SB 8 x 24 at 16960 allocated
  set "over" Internal NeuronSBTensor float32 [8 6] part 0
    %9 "over" SB 8 x 24 at `+c.at+` allocated
  block "Block1"`, 1)
		if err := ir.Parse([]byte(src), &m); err != nil {
			t.Fatal(err)
		}
		err := Placement(&m, m.Entry, target.SpaceSB)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("at %s: %v\nwant %q", c.at, err, c.want)
		}
	}
}

// A legal module is checked without an allocation.
func TestLegalAllocatesNothing(t *testing.T) {
	var m ir.Module
	if err := ir.Parse([]byte(legal), &m); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := Module(&m, target.Bug); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
