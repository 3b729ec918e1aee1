package sim

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Two nested loops over four tiles of two rows: x takes tile i, a ring of two blocks takes 2·x, acc adds up what the ring holds and
// the inner loop saves it at [i, j]. In the last column only every other row is touched.
const nested = `rir 1
module "m" trn2
axis i1 "i" 0 4 1
axis i2 "j" 2 -1 -1
expr e1 axis i1
expr e2 axis i2
expr e3 affine 0 e1*8
expr e4 affine 0 e1*24 e2*8
expr e5 mod e1 2
expr e6 mul e5 8
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [8 4] part -1
    %1 "A" DRAM 1 x 128 at 0
  set "B" ExternalOutput Tensor float32 [4 3 8] part -1
    %2 "B" DRAM 1 x 384 at 0
  set "x" Internal NeuronSBTensor float32 [2 4] part 0
    %3 "x" SB 2 x 16 at 0
  set "ring" Internal NeuronBlockTensor float32 [2 2 4] part 1
    %4 "r0" SB 2 x 16 at 0
    %5 "r1" SB 2 x 16 at 0
  set "acc" Internal NeuronSBTensor float32 [2 4] part 0
    %6 "acc" SB 2 x 16 at 0
  block "Block1" {
    I-1 "zero" Memset DVE () -> (%6 0+2 @0 1*4:float32) constant=0
    I-2 "L" Loop Unassigned () -> () axis i1 {
      block "body" {
        I-3 "ld" Load SP (sym(set 1 0+0 @0 4*2 1*4 addr e3):float32) -> (%3 0+2 @0 1*4:float32)
        I-4 "dbl" TensorTensor DVE (%3 0+2 @0 1*4:float32, %3 0+2 @0 1*4:float32) -> (sym(set 4 0+2 @0 4*2 1*4 addr e6):float32) op=add
        I-5 "sum" TensorTensor DVE (%6 0+2 @0 1*4:float32, sym(set 4 0+2 @0 4*2 1*4 addr e6):float32) -> (%6 0+2 @0 1*4:float32) op=add
        I-6 "M" Loop Unassigned () -> () axis i2 {
          block "inner" {
            I-7 "sv" Save SP (%6 0+2 @0 1*4:float32) -> (sym(set 2 0+0 @0 4*2 1*4 addr e4):float32)
          }
        }
      }
    }
  }
}
`

func TestLoops(t *testing.T) {
	in := func(i int) float32 { return float32(i + 1) }
	env := Env{Input: func(_ string, size int64) ([]byte, error) { return floats(int(size)/4, in), nil }}
	var s Sim
	for _, placed := range []bool{false, true} {
		var m ir.Module
		if err := ir.Parse([]byte(nested), &m); err != nil {
			t.Fatal(err)
		}
		if placed {
			for l, at := range map[ir.Loc]int64{3: 16640, 4: 16656, 5: 17000, 6: 16672} {
				place(&m, l, 0, at)
			}
		}
		if err := s.Run(&m, env); err != nil {
			t.Fatal(err)
		}
		out := s.Bytes(&m, 2)
		for i := range 4 {
			for j := range 3 {
				for k := range 8 {
					want := float32(0)
					for a := range i + 1 {
						want += 2 * in(8*a+k)
					}
					at := (i*3+j)*8 + k
					if got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*at:])); got != want {
						t.Fatalf("placed %v: B[%d %d %d] = %v, want %v", placed, i, j, k, got, want)
					}
				}
			}
		}
		if want := 1 + 1 + 4*(4+3); s.Executed != want {
			t.Errorf("executed %d instructions, want %d", s.Executed, want)
		}
	}
}

// What cannot run is refused by name.
func TestLoopErrors(t *testing.T) {
	env := Env{Input: func(_ string, size int64) ([]byte, error) { return make([]byte, size), nil }}
	for _, c := range []struct {
		name, old, new string
		class          target.Class
		want           string
	}{
		{"no turn", `"i" 0 4 1`, `"i" 4 4 1`, 0, ""},
		{"endless", `"i" 0 4 1`, `"i" 0 4 0`, target.User, `L (Loop): axis i steps by 0`},
		{"no axis", `() axis i1 {`, `() {`, target.User, "a loop without an axis"},
		{"outside", `addr e3`, `addr e4`, target.User, "ld (Load): an address depends on axis j outside of its loop"},
		{"leaves", `"i" 0 4 1`, `"i" 0 5 1`, target.User, "ld (Load): a pattern at element 32 leaves the blocks of A"},
		{"before", `"i" 0 4 1`, `"i" -1 4 1`, target.User, "leaves the blocks of A"},
		{"other block", `0+2 @0 4*2 1*4 addr e6):float32) op`, `0+2 @4 4*2 1*4 addr e6):float32) op`, target.User, "leaves the blocks of ring"},
		{"division", `mod e1 2`, `mod e1 0`, target.User, "an address is divided by 0"},
		{"rank", `mod e1 2`, `shard 2`, target.Unsupported, "an address depends on shard"},
		{"unwritten", `"zero" Memset DVE () -> (%6 0+2 @0 1*4`, `"zero" Memset DVE () -> (%6 0+2 @0 1*3`, target.User, "sum (TensorTensor): reads byte 12 of %acc, which nothing wrote"},
		{"dynamic", `"L" Loop Unassigned () -> () axis i1 {`, `"L" DynamicForLoop Unassigned () -> () {`, target.Unsupported, "DynamicForLoop cannot be simulated"},
	} {
		if strings.Count(nested, c.old) == 0 {
			t.Fatalf("%s: no %q", c.name, c.old)
		}
		var m ir.Module
		if err := ir.Parse([]byte(strings.Replace(nested, c.old, c.new, 1)), &m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var s Sim
		err := s.Run(&m, env)
		if c.want == "" {
			if err != nil || s.Executed != 2 {
				t.Errorf("%s: %v after %d instructions", c.name, err, s.Executed)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || target.ClassOf(err) != c.class {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A loop that goes on and on ends at the limit of a run, also one that does nothing, and says so.
func TestLoopLimit(t *testing.T) {
	for _, body := range []string{"", "    I-2 \"z\" Memset DVE () -> (%2 0+1 @0 1*4:float32) constant=0\n"} {
		var m ir.Module
		if err := ir.Parse([]byte(`rir 1
module "m" trn2
axis i1 "i" 0 4294967296 1
func "f" entry {
  set "B" ExternalOutput Tensor float32 [1 4] part -1
    %1 "B" DRAM 1 x 16 at 0
  set "a" Internal NeuronSBTensor float32 [1 4] part 0
    %2 "a" SB 1 x 16 at 0
  block "x" {
    I-1 "L" Loop Unassigned () -> () axis i1 {
      block "body" {
`+body+`      }
    }
  }
}
`), &m); err != nil {
			t.Fatal(err)
		}
		s := Sim{Steps: 1000}
		err := s.Run(&m, Env{})
		if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "a loop of more than 1000 turns and instructions") {
			t.Error(err)
		}
	}
}
