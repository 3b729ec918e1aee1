package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

// checkBits is what the raw class asks of an operand: an element as wide as the output's.
func checkBits(op, role string, v, out *View) error {
	if err := v.checkRows(op, role); err != nil {
		return err
	}
	if v.Dtype.Size() != out.Dtype.Size() {
		return target.Errorf(target.User, "%s: %s is %s, out is %s; bitwise operators take elements of one width",
			op, role, v.Dtype, out.Dtype)
	}
	return nil
}

// checkOps is what an elementwise operation asks of its operands. in1 may be nil.
func checkOps(op string, class opClass, out, in0, in1 *View, acc *Acc) error {
	if class == classBits {
		if err := checkBits(op, "out", out, out); err != nil {
			return err
		}
		if !acc.idle() {
			return target.Errorf(target.User, "%s: a bitwise operator cannot accumulate", op)
		}
	} else if err := out.checkNum(op, "out"); err != nil {
		return err
	}
	ins := [2]*View{in0, in1}
	for i, role := range [2]string{"in0", "in1"} {
		v := ins[i]
		if v == nil {
			continue
		}
		var err error
		if class == classBits {
			err = checkBits(op, role, v, out)
		} else {
			err = v.checkNum(op, role)
		}
		if err == nil {
			err = sameShape(op, role, v, out)
		}
		if err != nil {
			return err
		}
	}
	return acc.check(op, out)
}

// TensorTensor is out = o(in0, in1).
func TensorTensor(s *Scratch, o target.AluOp, out, in0, in1 *View, acc *Acc) error {
	const op = "TensorTensor"
	class, err := classify(op, o, target.AluBypass)
	if err == nil {
		err = checkOps(op, class, out, in0, in1, acc)
	}
	if err != nil {
		return err
	}
	n := out.Elems()
	var c0, c1, co cursor
	c0.start(in0)
	c1.start(in1)
	co.start(out)
	if class == classBits {
		a, b, w := s.u64(0, n), s.u64(1, n), uint(8*out.Dtype.Size())
		for range out.Parts {
			c0.loadBits(a)
			c1.loadBits(b)
			rowBits(o, a, a, b, 0, false, w)
			co.storeBits(a)
		}
		return nil
	}
	a, b := s.f32(0, n), s.f32(1, n)
	for p := range out.Parts {
		c0.load(a)
		c1.load(b)
		rowVV(o, a, a, b)
		acc.row(p, a)
		co.store(a)
	}
	return nil
}

// ScalarOps is the two operators of the tensor-scalar family. A reverse bit swaps the operands of its operator.
type ScalarOps struct {
	Op0, Op1   target.AluOp
	S0, S1     Scalar
	Rev0, Rev1 bool
}

func (a *ScalarOps) check(op string, out *View) error {
	if err := a.S0.check(op, "scalar 0", out); err != nil {
		return err
	}
	return a.S1.check(op, "scalar 1", out)
}

// TensorScalar is out = op1(op0(in, s0), s1). With both operators bypass it is Copy between equal shapes.
func TensorScalar(s *Scratch, out, in *View, a *ScalarOps, acc *Acc) error {
	const op = "TensorScalar"
	class, err := classify(op, a.Op0, a.Op1)
	if err == nil && class == classMove && acc.idle() {
		if err := out.checkRows(op, "out"); err != nil {
			return err
		}
		if err := in.checkRows(op, "in"); err != nil {
			return err
		}
		if err := sameShape(op, "in", in, out); err != nil {
			return err
		}
		return Copy(s, out, in)
	}
	if err == nil {
		err = checkOps(op, class, out, in, nil, acc)
	}
	if err == nil {
		err = a.check(op, out)
	}
	if err != nil {
		return err
	}
	n := out.Elems()
	var ci, co cursor
	ci.start(in)
	co.start(out)
	if class == classBits {
		x, w := s.u64(0, n), uint(8*out.Dtype.Size())
		for p := range out.Parts {
			ci.loadBits(x)
			rowBits(a.Op0, x, x, nil, a.S0.bitsAt(p), a.Rev0, w)
			rowBits(a.Op1, x, x, nil, a.S1.bitsAt(p), a.Rev1, w)
			co.storeBits(x)
		}
		return nil
	}
	x := s.f32(0, n)
	for p := range out.Parts {
		ci.load(x)
		rowVS(a.Op0, x, x, a.S0.at(p), a.Rev0)
		rowVS(a.Op1, x, x, a.S1.at(p), a.Rev1)
		acc.row(p, x)
		co.store(x)
	}
	return nil
}

// ScalarTensorTensor is out = op1(op0(in0, s0), in1). S1 is not read.
func ScalarTensorTensor(s *Scratch, out, in0, in1 *View, a *ScalarOps, acc *Acc) error {
	const op = "ScalarTensorTensor"
	class, err := classify(op, a.Op0, a.Op1)
	if err == nil {
		err = checkOps(op, class, out, in0, in1, acc)
	}
	if err == nil {
		err = a.S0.check(op, "scalar 0", out)
	}
	if err != nil {
		return err
	}
	n := out.Elems()
	var c0, c1, co cursor
	c0.start(in0)
	c1.start(in1)
	co.start(out)
	if class == classBits {
		x, y, w := s.u64(0, n), s.u64(1, n), uint(8*out.Dtype.Size())
		for p := range out.Parts {
			c0.loadBits(x)
			c1.loadBits(y)
			rowBits(a.Op0, x, x, nil, a.S0.bitsAt(p), a.Rev0, w)
			rowBits(a.Op1, x, x, y, 0, a.Rev1, w)
			co.storeBits(x)
		}
		return nil
	}
	x, y := s.f32(0, n), s.f32(1, n)
	for p := range out.Parts {
		c0.load(x)
		c1.load(y)
		rowVS(a.Op0, x, x, a.S0.at(p), a.Rev0)
		if a.Rev1 && !unary(a.Op1) {
			rowVV(a.Op1, x, y, x)
		} else {
			rowVV(a.Op1, x, x, y)
		}
		acc.row(p, x)
		co.store(x)
	}
	return nil
}

// TensorTensorScan is the recurrence r[i] = op1(op0(in0[i], r[i-1]), in1[i]) along each partition, r[-1] = s0; out = r. The
// state stays float32 whatever the type of out.
func TensorTensorScan(s *Scratch, out, in0, in1 *View, a *ScalarOps) error {
	const op = "TensorTensorScan"
	class, err := classify(op, a.Op0, a.Op1)
	if err == nil && class == classBits {
		err = checkArith(op, a.Op0)
		if err == nil {
			err = checkArith(op, a.Op1)
		}
	}
	if err == nil {
		err = checkOps(op, class, out, in0, in1, nil)
	}
	if err == nil {
		err = a.S0.check(op, "scalar 0", out)
	}
	if err != nil {
		return err
	}
	n := out.Elems()
	var c0, c1, co cursor
	c0.start(in0)
	c1.start(in1)
	co.start(out)
	x, y := s.f32(0, n), s.f32(1, n)
	for p := range out.Parts {
		c0.load(x)
		c1.load(y)
		r := a.S0.at(p)
		for i := range x {
			r = pair(a.Op0, x[i], r, a.Rev0)
			r = pair(a.Op1, r, y[i], a.Rev1)
			x[i] = r
		}
		co.store(x)
	}
	return nil
}

func pair(o target.AluOp, a, b float32, rev bool) float32 {
	if rev && !unary(o) {
		a, b = b, a
	}
	return arith(o, a, b)
}

// CacheMode is what TensorScalarCache writes.
type CacheMode uint8

const (
	CacheReduce     CacheMode = iota // out = op0(in, s0); the accumulator folds it
	CacheCumulative                  // out[i] = the accumulator after element i
)

// TensorScalarCache is x = op0(in, s0), folded into the accumulator with op1 by acc.Cmd. acc.Op and acc.Init are not read:
// the operator is op1 and LoadAccumulate starts from s1. Rev1 is ignored, as folding has no second tensor to swap with.
func TensorScalarCache(s *Scratch, out, in *View, a *ScalarOps, mode CacheMode, acc *Acc) error {
	const op = "TensorScalarCache"
	if mode > CacheCumulative {
		return target.Errorf(target.User, "%s: unknown mode %d", op, mode)
	}
	if acc.idle() {
		return target.Errorf(target.User, "%s: it needs an accumulator command other than Idle", op)
	}
	for _, o := range [2]target.AluOp{a.Op0, a.Op1} {
		if err := checkArith(op, o); err != nil {
			return err
		}
	}
	fold := Acc{Cmd: acc.Cmd, Op: a.Op1, Lanes: acc.Lanes, Init: a.S1}
	err := checkOps(op, classArith, out, in, nil, &fold)
	if err == nil {
		err = a.check(op, out)
	}
	if err != nil {
		return err
	}
	n := out.Elems()
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, n)
	for p := range out.Parts {
		ci.load(x)
		rowVS(a.Op0, x, x, a.S0.at(p), a.Rev0)
		if mode == CacheReduce {
			fold.row(p, x)
		} else {
			r, run := fold.begin(p)
			for i := range x {
				if run {
					r = arith(fold.op(), r, x[i])
				}
				x[i] = r
			}
			fold.Lanes[p] = r
		}
		co.store(x)
	}
	return nil
}

// Reciprocal is out = 1/in.
func Reciprocal(s *Scratch, out, in *View) error {
	const op = "Reciprocal"
	if err := checkOps(op, classArith, out, in, nil, nil); err != nil {
		return err
	}
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, out.Elems())
	for range out.Parts {
		ci.load(x)
		for i, f := range x {
			x[i] = 1 / f
		}
		co.store(x)
	}
	return nil
}
