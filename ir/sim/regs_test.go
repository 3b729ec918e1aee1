package sim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// scalarProgram parses instructions on registers between a head with one input x, one output y and tiles of eight words of SB, s.
func scalarProgram(t *testing.T, regs, body string) *ir.Module {
	t.Helper()
	text := `rir 1
module "m" gen3
func "main" entry {
  set "x" ExternalInput Tensor int32 [8] part -1
  %1 "x" DRAM 1 x 32 at 0
  set "y" ExternalOutput Tensor int32 [8] part -1
  %2 "y" DRAM 1 x 32 at 0
  set "s" Internal NeuronSBTensor int32 [1 8] part 0
  %3 "s" SB 1 x 32 at 0
` + regs + body + `}
`
	m := &ir.Module{}
	if err := ir.Parse([]byte(text), m); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

func runScalar(m *ir.Module, x []int32, steps int) ([]int32, error) {
	var s Sim
	s.Steps = steps
	env := Env{Input: func(string, int64) ([]byte, error) {
		var d []byte
		for k := range 8 {
			v := int32(0)
			if k < len(x) {
				v = x[k]
			}
			d = binary.LittleEndian.AppendUint32(d, uint32(v))
		}
		return d, nil
	}}
	if err := s.Run(m, env); err != nil {
		return nil, err
	}
	var out []int32
	for k, d := 0, s.Bytes(m, 2); k < len(d); k += 4 {
		out = append(out, int32(binary.LittleEndian.Uint32(d[k:])))
	}
	return out, nil
}

// x[0]! by a loop of branches, with each placement of its registers, right and wrong.
func TestBranchesAndRegisters(t *testing.T) {
	factorial := func(n, f int) *ir.Module {
		return scalarProgram(t, fmt.Sprintf(`  reg r1 "n" int32 1 SP phys %d
  reg r2 "f" int32 1 SP phys %d
`, n, f), `  block "a" {
    I-1 "load" TensorLoad SP (%1 @0 1*1:int32) -> (r1:int32)
    I-2 "one" RegisterMove SP (1:int32) -> (r2:int32)
    I-3 "skip" CompareAndBranch SP (r1:int32, 1:int32) -> () comp_op=IS_LEIMM on_true="done" on_false="loop"
  }
  block "loop" {
    I-4 "mul" RegisterAlu SP (r2:int32, r1:int32) -> (r2:int32) op=mult
    I-5 "dec" RegisterAlu SP (r1:int32, 1:int32) -> (r1:int32) op=subtract
    I-6 "again" CompareAndBranch SP (r1:int32, 1:int32) -> () comp_op=IS_GTIMM on_true="loop" on_false="done"
  }
  block "done" {
    I-7 "save" TensorSave SP (r2:int32) -> (%2 @0 1*1:int32)
    I-8 "end" Return SP () -> ()
    I-9 "never" RegisterAlu SP (r2:int32, 1:int32) -> (r2:int32) op=divide
  }
`)
	}
	for _, c := range []struct {
		x, want int32
	}{{5, 120}, {1, 1}, {-3, 1}, {12, 479001600}} {
		for _, phys := range [][2]int{{-1, -1}, {0, 1}, {61, 3}} {
			y, err := runScalar(factorial(phys[0], phys[1]), []int32{c.x}, 0)
			if err != nil || y[0] != c.want {
				t.Errorf("%d! with registers at %v: %v, %v", c.x, phys, y, err)
			}
		}
	}
	if y, err := runScalar(factorial(4, 4), []int32{5}, 1000); err == nil && y[0] == 120 {
		t.Error("two live registers in one lane went unseen")
	}
	_, err := runScalar(factorial(0, 1), []int32{1000}, 100)
	if target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "100 instructions") {
		t.Errorf("beyond the limit of steps: %v", err)
	}
}

func TestScalarOperators(t *testing.T) {
	for _, c := range []struct {
		op, typ string
		a, b    string
		want    int32
	}{
		{"add", "int32", "7", "-9", -2}, {"subtract", "int32", "7", "9", -2}, {"mult", "int32", "70000", "70000", 605032704},
		{"max", "int32", "-1", "1", 1}, {"max", "uint32", "4294967295", "1", -1}, {"min", "int32", "-1", "1", -1},
		{"bitwise_not", "int32", "5", "0", -6}, {"bitwise_and", "int32", "12", "10", 8}, {"bitwise_or", "int32", "12", "10", 14},
		{"bitwise_xor", "int32", "12", "10", 6}, {"logical_shift_left", "int32", "3", "30", -1073741824},
		{"logical_shift_right", "int32", "-1", "28", 15}, {"arith_shift_right", "uint32", "4294967280", "2", -4},
		{"is_lt", "int32", "-1", "0", 1}, {"is_lt", "uint32", "4294967295", "0", 0}, {"is_equal", "int32", "3", "3", 1},
		{"not_equal", "int32", "3", "3", 0}, {"is_ge", "int32", "3", "3", 1}, {"is_gt", "int32", "3", "3", 0}, {"is_le", "int32", "4", "3", 0},
		{"bypass", "int32", "4", "3", 4},
	} {
		m := scalarProgram(t, "  reg r1 \"a\" int32 1 SP phys -1\n  reg r2 \"b\" int32 1 SP phys -1\n", fmt.Sprintf(`  block "a" {
    I-1 "" RegisterMove SP (%[1]s:%[3]s) -> (r1:%[3]s)
    I-2 "" RegisterMove SP (%[2]s:%[3]s) -> (r2:%[3]s)
    I-3 "" RegisterAlu SP (r1:%[3]s, r2:%[3]s) -> (r2:%[3]s) op=%[4]s
    I-4 "" TensorSave SP (r2:%[3]s) -> (%%2 @0 1*1:int32)
  }
`, c.a, c.b, c.typ, c.op))
		if y, err := runScalar(m, nil, 0); err != nil || y[0] != c.want {
			t.Errorf("%s %s %s of %s: %v, %v; want %d", c.a, c.op, c.b, c.typ, y, err, c.want)
		}
	}
}

// 64-bit registers: two lanes, two words or one wide element of memory, arithmetic with carry.
func TestWideRegisters(t *testing.T) {
	body := `  block "a" {
    I-1 "" TensorLoad SP (%1 @0 1*2:int32) -> (r1:int64)
    I-2 "" RegisterMove SP (4294967296:int64) -> (r2:int64)
    I-3 "" RegisterAlu SP (r1:int64, r2:int64) -> (r1:int64) op=add is_64bit=true
    I-4 "" TensorSave SP (r1:int64) -> (%3 0+1 @1 1*1:int64)
    I-5 "" TensorLoad SP (%3 0+1 @2 1*2:int32) -> (r3:int32, r4:int32)
    I-6 "" TensorSave SP (r4:int32, r3:int32) -> (%2 @0 1*2:int32)
    I-7 "" TensorLoad SP (%1 @4 1*1:int8) -> (r3:int32)
    I-8 "" TensorSave SP (r3:int32) -> (%2 @2 1*1:int32)
  }
`
	for _, phys := range [][4]int{{-1, -1, -1, -1}, {1, 3, 5, 6}} {
		m := scalarProgram(t, fmt.Sprintf(`  reg r1 "a" int64 2 SP phys %d
  reg r2 "b" int64 2 SP phys %d
  reg r3 "lo" int32 1 SP phys %d
  reg r4 "hi" int32 1 SP phys %d
`, phys[0], phys[1], phys[2], phys[3]), body)
		y, err := runScalar(m, []int32{-1, 6}, 0)
		if err != nil || y[0] != 7 || y[1] != -1 || y[2] != 6 {
			t.Errorf("registers at %v: %v, %v; want 7 -1 6", phys, y[:3], err)
		}
	}
}

func TestScalarErrors(t *testing.T) {
	regs := "  reg r1 \"a\" int32 1 SP phys -1\n  reg r2 \"w\" int64 2 SP phys -1\n  reg r3 \"out\" int64 2 SP phys 63\n"
	for _, c := range []struct{ inst, want string }{
		{`RegisterMove SP (r1:int32) -> (r2:int64)`, "register %a, which nothing wrote"},
		{`RegisterMove SP (r2:int64) -> (r1:int32)`, "64-bit register %w"},
		{`RegisterMove SP (1:int64) -> (r3:int64)`, "register %out is at lanes 63 to 64"},
		{`TensorLoad SP (%1 @0 1*3:int32) -> (r1:int32)`, "moves 3 elements of int32; the registers take 1"},
		{`TensorLoad SP (%1 @0 1*1:int64) -> (r1:int32)`, "register %a of 32 bits"},
		{`TensorLoad SP (%3 0+1 @0 1*1:int32) -> (r1:int32)`, "%s, which nothing wrote"},
		{`RegisterAlu SP (1:float32, 2:float32) -> (r1:float32) op=add`, "float32"},
		{`RegisterAlu SP (1:int32, 2:int32) -> (r1:int32) op=divide`, "divide"},
		{`UnconditionalBranch SP () -> ()`, "has no target"},
	} {
		m := scalarProgram(t, regs, "  block \"a\" {\n    I-1 \"i\" "+c.inst+"\n  }\n")
		if _, err := runScalar(m, nil, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.inst, err, c.want)
		}
	}
}
