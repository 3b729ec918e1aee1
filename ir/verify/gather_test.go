package verify

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const gathers = `rir 1
module "m" trn2
func "sg0000" entry {
  set "T" ExternalInput Tensor bfloat16 [10 6] part 0
    %1 "T" DRAM 1 x 120 at 0
  set "ids" ExternalInput Tensor int64 [4] part 0
    %2 "ids" DRAM 1 x 32 at 0
  set "C" ExternalOutput Tensor bfloat16 [4 5] part 0
    %3 "C" DRAM 1 x 40 at 0
  set "i" Internal NeuronSBTensor int64 [4 1] part 0
    %4 "i" SB 4 x 8 at 16640 allocated
  set "r" Internal NeuronSBTensor bfloat16 [4 5] part 0
    %5 "r" SB 4 x 10 at 16896 allocated
  set "p" Internal NeuronPSUMTensor float32 [4 5] part 0
    %6 "p" PSUM 4 x 20 at 0 bank 1 allocated
  block "Block1" {
    I-1 "li" Load SP (%2 @0 1*4:int64) -> (%4 0+4 @0 1*1:int64)
    I-2 "g" IndirectLoad Pool (%1 @1 6*10 1*5:bfloat16, %4 0+4 @0 1*1:int32) -> (%5 0+4 @0 1*5:bfloat16)
    I-3 "sv" Save SP (%5 0+4 @0 1*5:bfloat16) -> (%3 @0 5*4 1*5:bfloat16)
  }
}
`

// A gather of five columns of a table by the low words of 64-bit indices is legal; each row damages it in one place.
func TestGather(t *testing.T) {
	var m ir.Module
	if err := ir.Parse([]byte(gathers), &m); err != nil {
		t.Fatal(err)
	}
	if err := Module(&m, target.Bug); err != nil {
		t.Fatal(err)
	}
	in, out := `%4 0+4 @0 1*1:int32)`, `-> (%5 0+4 @0 1*5:bfloat16)`
	for _, c := range []struct{ name, old, new, want string }{
		{"engine", "IndirectLoad Pool", "IndirectLoad SP", "cannot run on SP"},
		{"operands", ", " + in, ")", "takes a table and one index operand"},
		{"immediate", in, "3:int32)", "it has an immediate operand"},
		{"table on chip", "(%1 @1 6*10 1*5:bfloat16", "(%5 0+4 @0 1*5:bfloat16", "the table is in DRAM"},
		{"index type", in, `%4 0+4 @0 1*1:int64)`, "1 indices of int64 a partition"},
		{"indices", in, `%4 0+4 @0 1*2:int32)`, "2 indices of int32 a partition"},
		{"partitions", in, `%4 0+3 @0 1*1:int32)`, "indices on 3 partitions for rows on 4"},
		{"cast", "(%1 @1 6*10 1*5:bfloat16", "(%1 @1 6*10 1*5:float16", "a gather does not cast"},
		{"row", "(%1 @1 6*10 1*5:bfloat16", "(%1 @1 6*10 1*4:bfloat16", "rows of 4 elements into 5"},
		{"table", "(%1 @1 6*10 1*5:bfloat16", "(%1 @1 6*11 1*5:bfloat16", "of 120 bytes"},
		{"axes", "(%1 @1 6*10 1*5:bfloat16", "(%1 @0 6*10 5*2 1*1:bfloat16", "rows of 2 axes"},
		{"gaps", out, `-> (%5 0+4 @4 -1*5:bfloat16)`, "laid down without gaps"},
		{"own indices", out, `-> (%4 0+4 @0 1*4:bfloat16)`, "writes rows over its own indices at %i"},
		{"PSUM", out, `-> (%6 0+4 @0 1*5:bfloat16)`, "index and output in SB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(gathers, c.old) != 1 {
				t.Fatalf("%q occurs %d times", c.old, strings.Count(gathers, c.old))
			}
			if err := ir.Parse([]byte(strings.Replace(gathers, c.old, c.new, 1)), &m); err != nil {
				t.Fatal(err)
			}
			if err := Module(&m, target.Bug); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
