package opt

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
)

const deadProgram = `rir 1
module "m" trn2
func "f" entry {
  set "A" ExternalInput Tensor float32 [8 4] part 0
    %1 "A" DRAM 1 x 128 at 0
  set "C" ExternalOutput Tensor float32 [8 4] part 0
    %2 "C" DRAM 1 x 128 at 0
  set "a" Internal NeuronSBTensor float32 [8 4] part 0
    %3 "a" SB 8 x 16 at 0
  set "b" Internal NeuronSBTensor float32 [8 4] part 0
    %4 "b" SB 8 x 16 at 0
  set "c" Internal NeuronSBTensor float32 [8 4] part 0
    %5 "c" SB 8 x 16 at 0
  set "p" Internal NeuronPSUMTensor float32 [4 4] part 0
    %6 "p" PSUM 4 x 16 at 0
  set "h" Internal Tensor float32 [8 4] part -1
    %7 "h" DRAM 1 x 128 at 0
  block "b" {
    I-1 "load" Load SP (%1 @0 4*8 1*4:float32) -> (%3 0+8 @0 1*4:float32)
    I-2 "dead chain 1" TensorCopy DVE (%3 0+8 @0 1*4:float32) -> (%4 0+8 @0 1*4:float32)
    I-3 "dead chain 2" TensorCopy DVE (%4 0+8 @0 1*4:float32) -> (%5 0+8 @0 1*4:float32)
    I-4 "dead group" Matmult PE (%3 0+8 @0 1*4:float32, %3 0+8 @0 1*4:float32) -> (%6 0+4 @0 1*4:float32) accumulation_flag=1
    I-5 "dead group" Matmult PE (%3 0+8 @0 1*4:float32, %3 0+8 @0 1*4:float32) -> (%6 0+4 @0 1*4:float32) accumulation_flag=6
    I-6 "dead home" Save SP (%3 0+8 @0 1*4:float32) -> (%7 @0 4*8 1*4:float32)
    I-7 "state" Activation Activation (%3 0+8 @0 1*4:float32) -> (%5 0+8 @0 1*4:float32) func=Square acc=ZeroAccumulate reduce_op=add
    I-8 "save" Save SP (%3 0+8 @0 1*4:float32) -> (%2 @0 4*8 1*4:float32)
  }
}
`

func TestDeadCode(t *testing.T) {
	var m ir.Module
	var d Dead
	for range 2 { // the second time through used storage
		if err := ir.Parse([]byte(deadProgram), &m); err != nil {
			t.Fatal(err)
		}
		if n := DeadCode(&m, m.Entry, &d); n != 5 {
			t.Errorf("deleted %d instructions, want 5", n)
		}
		var left []string
		for _, i := range m.OrderOf(1) {
			left = append(left, m.InstName(i))
		}
		if len(left) != 3 || left[0] != "load" || left[1] != "state" || left[2] != "save" {
			t.Errorf("left %q, want load, state, save", left)
		}
		if n := DeadCode(&m, m.Entry, &d); n != 0 {
			t.Errorf("a second run deleted %d", n)
		}
	}
	if n := testing.AllocsPerRun(10, func() { DeadCode(&m, m.Entry, &d) }); n != 0 {
		t.Errorf("%v allocations in the steady state", n)
	}
}
