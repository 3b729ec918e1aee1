package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

// Scalar is an operand that is constant along a partition: a [p,1] view, or an immediate when Ptr is nil. Arithmetic reads
// Imm, the bitwise and shift class reads the low bits of Raw.
type Scalar struct {
	Ptr *View
	Imm float32
	Raw uint32
}

// Imm is an immediate that means the same to both classes of operators: as bits it is the integer that f truncates to.
func Imm(f float32) Scalar {
	return Scalar{Imm: f, Raw: uint32(toInt(f, -1<<31, 1<<32-1))}
}

// ImmBits is an immediate of raw bits for the bitwise class.
func ImmBits(u uint32) Scalar { return Scalar{Imm: float32(u), Raw: u} }

// Ptr is a scalar a partition, read from a [p,1] view.
func Ptr(v *View) Scalar { return Scalar{Ptr: v} }

func (s *Scalar) check(op, role string, out *View) error {
	if s.Ptr == nil {
		return nil
	}
	if err := s.Ptr.checkNum(op, role); err != nil {
		return err
	}
	if s.Ptr.Parts != out.Parts || s.Ptr.Elems() != 1 {
		return target.Errorf(target.User, "%s: %s is %s; a scalar operand is %d×1", op, role, s.Ptr.shape(), out.Parts)
	}
	return nil
}

// at is the value for partition p.
func (s *Scalar) at(p int) float32 {
	if s.Ptr == nil {
		return s.Imm
	}
	v := s.Ptr
	return Decode(v.Dtype, loadBitsAt(v.Data, v.Off+p*v.PStep, v.Dtype.Size()))
}

// bitsAt is the raw bits for partition p.
func (s *Scalar) bitsAt(p int) uint64 {
	if s.Ptr == nil {
		return uint64(s.Raw)
	}
	v := s.Ptr
	return loadBitsAt(v.Data, v.Off+p*v.PStep, v.Dtype.Size())
}

// Acc is the accumulator register of an engine, as one instruction uses it. Lanes holds one float32 a partition of the
// output, from its start partition on, and outlives the instruction. A nil *Acc, or Cmd Idle, leaves it alone.
//
//	Zero             becomes the identity of Op (0 for add, -Inf for max, +Inf for min, 1 for mult)
//	Accumulate       lane = Op(lane, x) for each x of the row in order; AddAccumulate is the same
//	ZeroAccumulate   identity, then Accumulate
//	LoadAccumulate   Init, then Accumulate
//
// x is the float32 result before it is rounded to the type of the output. Op bypass means add.
type Acc struct {
	Cmd   target.AccCmd
	Op    target.AluOp
	Lanes []float32
	Init  Scalar
}

// idle reports that the register is untouched.
func (a *Acc) idle() bool { return a == nil || a.Cmd == target.AccIdle }

func (a *Acc) op() target.AluOp {
	if a.Op == target.AluBypass {
		return target.AluAdd
	}
	return a.Op
}

func (a *Acc) check(op string, out *View) error {
	if a.idle() {
		return nil
	}
	if len(a.Lanes) < out.Parts {
		return target.Errorf(target.User, "%s: accumulator has %d lanes, out has %d partitions", op, len(a.Lanes), out.Parts)
	}
	if a.Cmd >= target.NumAccCmds {
		return target.Errorf(target.User, "%s: unknown accumulator command %d", op, a.Cmd)
	}
	if err := checkArith(op, a.op()); err != nil {
		return err
	}
	return a.Init.check(op, "accumulator start", out)
}

// begin gives the value that the row folds into, and whether it does fold.
func (a *Acc) begin(p int) (float32, bool) {
	switch a.Cmd {
	case target.AccZero:
		return identity(a.op()), false
	case target.AccZeroAccumulate:
		return identity(a.op()), true
	case target.AccLoadAccumulate:
		return a.Init.at(p), true
	}
	return a.Lanes[p], true
}

// row folds a row of results into the lane of partition p.
func (a *Acc) row(p int, row []float32) {
	if a.idle() {
		return
	}
	x, fold := a.begin(p)
	if fold {
		x = foldRow(a.op(), x, row)
	}
	a.Lanes[p] = x
}

// ReadAccumulator writes the lanes to a [p,1] view, negated on demand.
func ReadAccumulator(out *View, lanes []float32, negate bool) error {
	const op = "ReadAccumulator"
	if err := out.checkNum(op, "out"); err != nil {
		return err
	}
	if out.Elems() != 1 || out.Parts > len(lanes) {
		return target.Errorf(target.User, "%s: out is %s, accumulator has %d lanes; out must be p×1", op, out.shape(), len(lanes))
	}
	var c cursor
	c.start(out)
	for _, x := range lanes[:out.Parts] {
		if negate {
			x = -x
		}
		one := [1]float32{x}
		c.store(one[:])
	}
	return nil
}
