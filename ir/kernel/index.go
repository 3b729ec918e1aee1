package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

// Affine is base + Mult·p + Σ i[d]·Steps[d], where p counts partitions from the first of the view and index 0 is the
// fastest. Its shape may differ from that of the view; the number of elements may not. Values are int64 and wrap.
type Affine struct {
	Base, Mult int64
	Steps      [Axes]int64
	Nums       [Axes]int
	N          int
}

func (a *Affine) check(op string, out *View) error {
	if a.N < 0 || a.N > Axes {
		return target.Errorf(target.User, "%s: pattern has %d axes; at most %d", op, a.N, Axes)
	}
	n := 1
	for d := range a.N {
		if a.Nums[d] < 1 || a.Nums[d] > maxRow/n {
			return target.Errorf(target.User, "%s: pattern axis %d has count %d", op, d, a.Nums[d])
		}
		n *= a.Nums[d]
	}
	if n != out.Elems() {
		return target.Errorf(target.User, "%s: pattern has %d elements, out has %d a partition", op, n, out.Elems())
	}
	return nil
}

// row writes the value of each element of partition 0 as two's complement.
func (a *Affine) row(dst []uint64) {
	var idx [Axes]int
	v := a.Base
	for i := range dst {
		dst[i] = uint64(v)
		for d := range a.N {
			idx[d]++
			v += a.Steps[d]
			if idx[d] < a.Nums[d] {
				break
			}
			v -= int64(idx[d]) * a.Steps[d]
			idx[d] = 0
		}
	}
}

// Iota writes the affine values: exact (saturating) into integer types of any width, rounded once into floats.
func Iota(s *Scratch, out *View, a *Affine) error {
	const op = "Iota"
	if err := out.checkRows(op, "out"); err != nil {
		return err
	}
	if out.Dtype.Class() == target.ClassPacked {
		return target.NotSupported(out.Dtype.String(), "%s: cannot write %s", op, out.Dtype)
	}
	if err := a.check(op, out); err != nil {
		return err
	}
	n, dt := out.Elems(), out.Dtype
	x, y := s.u64(0, n), s.u64(1, n)
	a.row(x)
	var c cursor
	c.start(out)
	for p := range out.Parts {
		shift := uint64(a.Mult * int64(p))
		for i, u := range x {
			u += shift
			if dt.IsInteger() {
				y[i] = castInt(dt, target.Int64, u)
			} else {
				y[i] = Encode(dt, float32(int64(u)))
			}
		}
		c.storeBits(y)
	}
	return nil
}

// compare applies a comparison operator to the sign of v against 0.
func compare(o target.AluOp, v int64) bool {
	switch o {
	case target.AluEqual:
		return v == 0
	case target.AluNotEqual:
		return v != 0
	case target.AluGT:
		return v > 0
	case target.AluGE:
		return v >= 0
	case target.AluLT:
		return v < 0
	}
	return v <= 0
}

func checkCompare(op string, o target.AluOp) error {
	if o < target.AluEqual || o > target.AluLE {
		return target.Errorf(target.User, "%s: %s is not a comparison", op, o)
	}
	return nil
}

// AffineSelect is out = in where affine ⟨cmp⟩ 0, else fill rounded to the type of out.
func AffineSelect(s *Scratch, out, in *View, a *Affine, cmp target.AluOp, fill float32) error {
	const op = "TensorScalarAffineSelect"
	if err := checkCompare(op, cmp); err != nil {
		return err
	}
	if err := checkOps(op, classArith, out, in, nil, nil); err != nil {
		return err
	}
	if err := a.check(op, out); err != nil {
		return err
	}
	n := out.Elems()
	x, q := s.f32(0, n), s.u64(0, n)
	a.row(q)
	var ci, co cursor
	ci.start(in)
	co.start(out)
	for p := range out.Parts {
		ci.load(x)
		shift := a.Mult * int64(p)
		for i, u := range q {
			if !compare(cmp, int64(u)+shift) {
				x[i] = fill
			}
		}
		co.store(x)
	}
	return nil
}

// RangeOps is the test of RangeSelect: Cmp0(base+i, Lo) and Cmp1(base+i, Hi) keep element i.
type RangeOps struct {
	Lo, Hi     Scalar
	Cmp0, Cmp1 target.AluOp
	Base       int
	Fill       float32
}

// RangeSelect is out = in where the index of the element passes both tests, else fill. Indices count from Base along the
// partition and compare as float32. The accumulator folds the resulting row.
func RangeSelect(s *Scratch, out, in *View, r *RangeOps, acc *Acc) error {
	const op = "RangeSelect"
	for _, o := range [2]target.AluOp{r.Cmp0, r.Cmp1} {
		if err := checkCompare(op, o); err != nil {
			return err
		}
	}
	err := checkOps(op, classArith, out, in, nil, acc)
	if err == nil {
		err = r.Lo.check(op, "lower bound", out)
	}
	if err == nil {
		err = r.Hi.check(op, "upper bound", out)
	}
	if err != nil {
		return err
	}
	x := s.f32(0, out.Elems())
	var ci, co cursor
	ci.start(in)
	co.start(out)
	for p := range out.Parts {
		ci.load(x)
		lo, hi := r.Lo.at(p), r.Hi.at(p)
		for i := range x {
			at := float32(r.Base + i)
			if arith(r.Cmp0, at, lo) == 0 || arith(r.Cmp1, at, hi) == 0 {
				x[i] = r.Fill
			}
		}
		acc.row(p, x)
		co.store(x)
	}
	return nil
}
