package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// oddLoops has a hole for what is odd about it.
const oddLoops = `rir 1
module "m" trn2
axis i1 "i" AXIS
expr e1 axis i1
expr e2 EXPR
func "sg0000" entry {
  set "B" ExternalOutput Tensor float32 [4 128 8] part -1
    %1 "B" DRAM 1 x 16384 at 0
  set "x" Internal NeuronSBTensor float32 [128 8] part 0
    %2 "x" SB 128 x 32 at 0
  set "r" Internal NeuronBlockTensor float32 [4 128 8] part 1 live LIVE
    %3 "r0" SB 128 x 32 at 0
    %4 "r1" SB 128 x 32 at 0
    %5 "r2" SB 128 x 32 at 0
    %6 "r3" SB 128 x 32 at 0
  set "y" Internal NeuronSBTensor float32 [128 8] part 0
    %7 "y" SB 128 x 32 at 0
  reg r1 "n" int32 1 SP phys -1
  block "Block1" {
    I-# "x" Memset DVE () -> (%2 0+128 @0 1*8:float32) constant=1065353216
    I-# "r" TensorCopy DVE (%2 0+128 @0 1*8:float32) -> (%3 0+128 @0 1*8:float32)
    I-# "L" LOOP {
      block "body" {
        I-# "w" TensorCopy DVE (%2 0+128 @0 1*8:float32) -> (OPERAND:float32)
        I-# "y" TensorTensor DVE (OPERAND:float32, %2 0+128 @0 1*8:float32) -> (%7 0+128 @0 1*8:float32) op=add
        I-# "x" TensorTensor DVE (%7 0+128 @0 1*8:float32, %2 0+128 @0 1*8:float32) -> (%2 0+128 @0 1*8:float32) op=max
      }
    }
    I-# "s" Save SP (%2 0+128 @0 1*8:float32) -> (%1 @0 8*128 1*8:float32)
  }
}
`

// Loops that nobody can count, that turn never or for ever, indices that only the machine knows, blocks that do not divide: placed
// soundly, or refused, with room and without.
func TestOddLoops(t *testing.T) {
	const loop, sym = "Loop Unassigned () -> () axis i1", "sym(set 3 0+128 @0 8*128 1*8 addr e2)"
	for _, c := range []struct{ name, axis, expr, live, loop, operand string }{
		{"plain", "0 4 1", "mul e1 1024", "2", loop, sym},
		{"three of four live", "0 4 1", "mul e1 1024", "3", loop, sym},
		{"backwards", "3 -1 -1", "mul e1 1024", "2", loop, sym},
		{"no turn", "4 0 1", "mul e1 1024", "2", loop, sym},
		{"one turn", "2 3 1", "mul e1 1024", "2", loop, sym},
		{"one turn behind the live blocks", "3 4 1", "mul e1 1024", "1", loop, sym},
		{"endless", "0 4 0", "mul e1 1024", "2", loop, sym},
		{"dynamic", "0 4 1", "mul e1 1024", "2", "DynamicForLoop Unassigned () -> ()", sym},
		{"do while", "0 4 1", "affine 0", "2", "DoWhile Unassigned () -> ()", sym},
		{"register", "0 4 1", "reg r1", "2", loop, sym},
		{"register pattern", "0 4 1", "reg r1", "2", loop, "regap(set 3 0+128 @0 8*128 1*8 reg r1 sub -1)"},
		{"division by nothing", "0 4 1", "mod e1 0", "2", loop, sym},
		{"no axis", "0 4 1", "mul e1 1024", "2", "Loop Unassigned () -> ()", sym},
		{"constant", "0 4 1", "affine 3072", "2", loop, sym},
		{"out of the tensor", "0 4 1", "mul e1 4096", "2", loop, sym},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer("AXIS", c.axis, "EXPR", c.expr, "LIVE", c.live, "LOOP", c.loop, "OPERAND", c.operand).Replace(oddLoops)
			for _, room := range []int64{0, 8 + 4*32} {
				p := parsed(t, text)
				want, before := simulate(&p.m)
				var ws Workspace
				_, sb, err := WithLoop(&p.m, p.f, &ws, Options{StripBytes: 8, SBBytes: room})
				if err != nil {
					if target.ClassOf(err) != target.Limit && target.ClassOf(err) != target.User {
						t.Fatal(err)
					}
					if room == 0 && c.name != "three of four live" {
						t.Errorf("refused with room for all: %v", err)
					}
					continue
				}
				if err := verify.Placement(&p.m, p.f, target.SpaceSB); err != nil {
					t.Fatal(err)
				}
				got, after := simulate(&p.m)
				if (before == nil) != (after == nil) || string(want) != string(got) {
					t.Errorf("%d bytes: %v before, %v after, %d spilled\n%s", room, before, after, sb.Spilled, ir.Append(nil, &p.m))
				}
				if again := parsed(t, string(ir.Append(nil, &p.m))); string(ir.Append(nil, &again.m)) != string(ir.Append(nil, &p.m)) {
					t.Error("prints differently after parsing")
				}
			}
		})
	}
}
