package kernel

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Top is how many values the top-k instructions handle at a time.
const Top = 8

// Max8 writes the 8 largest values of each partition in descending order, equal values as often as they occur. NaN is never
// chosen; where fewer than 8 values remain, -Inf is.
func Max8(s *Scratch, out, in *View) error {
	const op = "Max"
	if err := checkTop(op, "out", out, in, nil); err != nil {
		return err
	}
	x := s.f32(0, in.Elems())
	var ci, co cursor
	ci.start(in)
	co.start(out)
	for range in.Parts {
		ci.load(x)
		var top [Top]float32
		for i := range top {
			top[i] = float32(math.Inf(-1))
		}
		for _, v := range x {
			if !(v > top[Top-1]) {
				continue
			}
			i := Top - 1
			for ; i > 0 && v > top[i-1]; i-- {
				top[i] = top[i-1]
			}
			top[i] = v
		}
		co.store(top[:])
	}
	return nil
}

// checkTop checks in (p×n), the 8-wide operand called role, and an output of the shape of in when it is given.
func checkTop(op, role string, eight, in, out *View) error {
	if err := in.checkNum(op, "in"); err != nil {
		return err
	}
	if err := eight.checkNum(op, role); err != nil {
		return err
	}
	if eight.Parts != in.Parts || eight.Elems() != Top {
		return target.Errorf(target.User, "%s: %s is %s; it must be %d×%d", op, role, eight.shape(), in.Parts, Top)
	}
	if out == nil {
		return nil
	}
	if err := out.checkNum(op, "out"); err != nil {
		return err
	}
	return sameShape(op, "in", in, out)
}

// match finds, for each of the 8 values in order, its first position in x that no earlier equal value of the 8 took, or -1.
// Values that occur twice among the 8 so take successive positions, which keeps the rounds of a top-k distinct.
func match(at *[Top]int, vals *[Top]float32, x []float32) {
	for i, v := range vals {
		from := 0
		for j := range i {
			if vals[j] == v {
				from = at[j] + 1
				if at[j] < 0 {
					from = len(x)
				}
			}
		}
		at[i] = -1
		for k := from; k < len(x); k++ {
			if x[k] == v {
				at[i] = k
				break
			}
		}
	}
}

// MaxIndex8 writes the position of each of the 8 values in its partition (see match); a value that is not there gives the
// largest value of an unsigned type, -1 otherwise.
func MaxIndex8(s *Scratch, out, in, vals *View) error {
	const op = "MaxIndex"
	if err := checkTop(op, "values", vals, in, nil); err != nil {
		return err
	}
	if err := checkTop(op, "out", out, in, nil); err != nil {
		return err
	}
	x := s.f32(0, in.Elems())
	var ci, cv, co cursor
	ci.start(in)
	cv.start(vals)
	co.start(out)
	for range in.Parts {
		ci.load(x)
		var v [Top]float32
		var at [Top]int
		cv.load(v[:])
		match(&at, &v, x)
		var bits [Top]uint64
		for i, k := range at {
			switch {
			case k < 0 && out.Dtype.Class() == target.ClassUint:
				bits[i] = math.MaxUint64
			case out.Dtype.IsInteger():
				bits[i] = castInt(out.Dtype, target.Int64, uint64(k))
			default:
				bits[i] = Encode(out.Dtype, float32(k))
			}
		}
		co.storeBits(bits[:])
	}
	return nil
}

// MatchReplace8 is out = in with the position of each of the 8 values (see match) replaced by imm.
func MatchReplace8(s *Scratch, out, in, vals *View, imm float32) error {
	const op = "MatchReplace"
	if err := checkTop(op, "values", vals, in, out); err != nil {
		return err
	}
	x := s.f32(0, in.Elems())
	var ci, cv, co cursor
	ci.start(in)
	cv.start(vals)
	co.start(out)
	for range in.Parts {
		ci.load(x)
		var v [Top]float32
		var at [Top]int
		cv.load(v[:])
		match(&at, &v, x)
		for _, k := range at {
			if k >= 0 {
				x[k] = imm
			}
		}
		co.store(x)
	}
	return nil
}
