package codegen

import (
	"context"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// A program in tiles that reads bytes which nothing wrote is wrong, and is told so before any pass: afterwards other tensors lie there. With
// can_read_uninit it compiles, and no checker takes what is found there for a fault of a pass.
func TestUnwrittenBytes(t *testing.T) {
	const program = `rir 1
module "m" trn2
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [128 32] part -1
    %1 "A" DRAM 1 x 16384 at 0
  set "B" ExternalOutput Tensor float32 [128 32] part -1
    %2 "B" DRAM 1 x 16384 at 0
  set "x" Internal NeuronSBTensor float32 [128 32] part 0
    %3 "x" SB 128 x 128 at 0
  set "y" Internal NeuronSBTensor float32 [128 32] part 0
    %4 "y" SB 128 x 128 at 0
  set "half" Internal NeuronSBTensor float32 [128 32] part 0
    %5 "half" SB 128 x 128 at 0
  block "Block1" {
    I-1 "load" Load SP (%1 @0 32*128 1*32:float32) -> (%3 0+128 @0 1*32:float32)
    I-2 "copy" TensorCopy DVE (%3 0+128 @0 1*32:float32) -> (%4 0+128 @0 1*32:float32)
    I-3 "some" TensorCopy DVE (%4 0+128 @0 1*16:float32) -> (%5 0+128 @0 1*16:float32)
    I-4 "save" Save SP (%5 0+128 @0 1*32:float32) -> (%2 @0 32*128 1*32:float32)
  }
}
`
	for _, verify := range []bool{false, true} {
		for _, by := range placers {
			run := func(text string) error {
				p, err := Parse([]byte(text), "half.rir", "")
				if err != nil {
					t.Fatal(err)
				}
				o := NewOptions()
				o.Target, o.Verify, o.SBBytes = "", verify, 16392+2*128 // half lies where x was
				by.use(&o)
				var w Worker
				_, err = w.Compile(context.Background(), p, &o, &neff.Buffer{})
				return err
			}
			err := run(program)
			if err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "save (Save): reads bytes 0 to 127 of %half, partitions 0 to 127") {
				t.Errorf("by %s, verifier %v: %v", by.name, verify, err)
			}
			if err := run(strings.Replace(program, "1*32:float32)\n  }", "1*32:float32) can_read_uninit=true\n  }", 1)); err != nil {
				t.Errorf("by %s, verifier %v, with can_read_uninit: %v", by.name, verify, err)
			}
		}
	}
}

// Allocators give aliases common bytes in DRAM only: elsewhere they are refused, not placed apart.
func TestAliasesOnChip(t *testing.T) {
	const program = `rir 1
module "m" trn2
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [128 32] part -1
    %1 "A" DRAM 1 x 16384 at 0
  set "B" ExternalOutput Tensor float32 [128 32] part -1
    %2 "B" DRAM 1 x 16384 at 0
  set "x" Internal NeuronSBTensor float32 [128 32] part 0
    %3 "x" SB 128 x 128 at 0
  set "y" Internal NeuronSBTensor float32 [128 32] part 0
    %4 "y" SB 128 x 128 at 0
  alias %3 %4 3
  block "Block1" {
    I-1 "load" Load SP (%1 @0 32*128 1*32:float32) -> (%3 0+128 @0 1*32:float32)
    I-2 "save" Save SP (%4 0+128 @0 1*32:float32) -> (%2 @0 32*128 1*32:float32)
  }
}
`
	for alias, want := range map[string]string{"alias %3 %4 3": "%x and %y are aliases; only tensors in DRAM", "alias %1 %2 2": "%A and %B are aliases of kind 2"} {
		p, err := Parse([]byte(strings.Replace(program, "alias %3 %4 3", alias, 1)), "alias.rir", "")
		if err != nil {
			t.Fatal(err)
		}
		o := NewOptions()
		o.Target = ""
		var w Worker
		if _, err = w.Compile(context.Background(), p, &o, &neff.Buffer{}); err == nil || target.ClassOf(err) != target.Unsupported || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", alias, err, want)
		}
	}
}

// Tensors in DRAM that may share bytes are read through each other, and the checkers know.
func TestMayAliasesInDRAM(t *testing.T) {
	const program = `rir 1
module "m" trn2
func "sg0000" entry {
  set "A" ExternalInput Tensor uint8 [16384] part -1
    %1 "A" DRAM 1 x 16384 at 0
  set "B" ExternalOutput Tensor uint8 [16384] part -1
    %2 "B" DRAM 1 x 16384 at 0
  set "x" Internal Tensor uint8 [16384] part -1
    %3 "x" DRAM 1 x 16384 at 0
  set "y" Internal Tensor uint8 [16384] part -1
    %4 "y" DRAM 1 x 16384 at 0
  alias %3 %4 1
  block "Block1" {
    I-1 "load" DMACopy SP (%1 @0 128*128 1*128:uint8) -> (%3 @0 128*128 1*128:uint8)
    I-2 "save" DMACopy SP (%4 @0 128*128 1*128:uint8) -> (%2 @0 128*128 1*128:uint8)
  }
}
`
	p, err := Parse([]byte(program), "alias.rir", "")
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.Target, o.Verify = "", true
	var w Worker
	if _, err = w.Compile(context.Background(), p, &o, &neff.Buffer{}); err != nil {
		t.Error(err)
	}
}
