package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

// chunk is how many elements the streaming operations stage at a time.
const chunk = 1024

// sameBits reports that a copy between the types moves raw bits.
func sameBits(a, b target.Dtype) bool {
	return a == b || a.Size() == 4 && a.IsFloat() && b.Size() == 4 && b.IsFloat()
}

// checkCast demands that a copy between the types has a meaning.
func checkCast(op string, out, in *View) error {
	if sameBits(out.Dtype, in.Dtype) {
		return nil
	}
	for _, v := range [2]*View{out, in} {
		if v.Dtype.Class() == target.ClassPacked {
			return target.NotSupported(v.Dtype.String(), "%s: %s to %s; packed types are copied as they are only", op, in.Dtype, out.Dtype)
		}
	}
	return nil
}

// Copy moves the elements of in, in order, to those of out, in order; only their total must agree, so it is TensorCopy and also
// a DMA descriptor (two views with Parts 1, whose types give the cast). Equal types move raw bits; integers convert to
// integers exactly, saturating, 64-bit ones too; anything else goes through float32.
// Elements move in ascending order in pieces: in and out may be equal but must not overlap otherwise.
func Copy(s *Scratch, out, in *View) error {
	const op = "Copy"
	if err := out.checkOut(op, "out"); err != nil {
		return err
	}
	if err := in.Check(op, "in"); err != nil {
		return err
	}
	if err := checkCast(op, out, in); err != nil {
		return err
	}
	n := out.Total()
	if n != in.Total() {
		return target.Errorf(target.User, "%s: in is %s, out is %s; their totals must agree", op, in.shape(), out.shape())
	}
	var ci, co cursor
	ci.start(in)
	co.start(out)
	copyN(s, &co, &ci, n)
	return nil
}

// copyN moves n elements between two walks.
func copyN(s *Scratch, co, ci *cursor, n int) {
	raw := sameBits(co.dt, ci.dt)
	ints := !raw && co.dt.IsInteger() && ci.dt.IsInteger()
	for n > 0 {
		if raw && co.step == co.size && ci.step == ci.size {
			k := min(co.left, ci.left, n)
			copy(co.data[co.off:co.off+k*co.size], ci.data[ci.off:ci.off+k*ci.size])
			co.take(k)
			ci.take(k)
			n -= k
			continue
		}
		k := min(n, chunk)
		switch {
		case raw:
			x := s.u64(0, k)
			ci.loadBits(x)
			co.storeBits(x)
		case ints:
			x := s.u64(0, k)
			ci.loadBits(x)
			for i, u := range x {
				x[i] = castInt(co.dt, ci.dt, u)
			}
			co.storeBits(x)
		default:
			x := s.f32(0, k)
			ci.load(x)
			co.store(x)
		}
		n -= k
	}
}

// Accumulate is dst = o(dst, src) in place, elements in order, shapes free as in Copy: the accumulating DMA.
func Accumulate(s *Scratch, o target.AluOp, dst, src *View) error {
	const op = "Accumulate"
	if err := checkArith(op, o); err != nil {
		return err
	}
	if err := dst.checkOut(op, "dst"); err != nil {
		return err
	}
	if err := src.Check(op, "src"); err != nil {
		return err
	}
	for _, v := range [2]*View{dst, src} {
		if !numeric(v.Dtype) {
			return target.NotSupported(v.Dtype.String(), "%s: no arithmetic on %s", op, v.Dtype)
		}
	}
	n := dst.Total()
	if n != src.Total() {
		return target.Errorf(target.User, "%s: src is %s, dst is %s; their totals must agree", op, src.shape(), dst.shape())
	}
	var cs, cr, cw cursor
	cs.start(src)
	cr.start(dst)
	cw.start(dst)
	accumulateN(s, o, &cw, &cr, &cs, n)
	return nil
}

func accumulateN(s *Scratch, o target.AluOp, cw, cr, cs *cursor, n int) {
	for n > 0 {
		k := min(n, chunk)
		x, y := s.f32(0, k), s.f32(1, k)
		cr.load(x)
		cs.load(y)
		rowVV(o, x, x, y)
		cw.store(x)
		n -= k
	}
}

// truthMask is the bits of an element that make it true: the sign of a zero does not.
func truthMask(dt target.Dtype) uint64 {
	all := ^uint64(0) >> (64 - 8*dt.Size())
	if dt.IsFloat() && dt != target.Float8E8M0 {
		return all >> 1
	}
	return all
}

func checkPredicate(op string, pred, out *View) error {
	if err := pred.checkRows(op, "predicate"); err != nil {
		return err
	}
	if pred.Dtype.Class() == target.ClassPacked {
		return target.NotSupported(pred.Dtype.String(), "%s: a predicate cannot be %s", op, pred.Dtype)
	}
	return sameShape(op, "predicate", pred, out)
}

// CopyPredicated is dst = src where pred ≠ 0, else dst stays; reverse keeps where pred ≠ 0 instead. The accumulator folds the
// resulting row.
func CopyPredicated(s *Scratch, dst, src, pred *View, reverse bool, acc *Acc) error {
	return blend(s, "CopyPredicated", dst, src, dst, pred, reverse, acc)
}

// Select is out = pred ≠ 0 ? yes : no.
func Select(s *Scratch, out, pred, yes, no *View) error {
	return blend(s, "Select", out, yes, no, pred, false, nil)
}

func blend(s *Scratch, op string, out, yes, no, pred *View, reverse bool, acc *Acc) error {
	raw := acc.idle() && sameBits(out.Dtype, yes.Dtype) && sameBits(out.Dtype, no.Dtype)
	ops := [3]*View{out, yes, no}
	for i, role := range [3]string{"out", "source", "alternative"} {
		v := ops[i]
		var err error
		if raw {
			err = v.checkRows(op, role)
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
	if err := checkPredicate(op, pred, out); err != nil {
		return err
	}
	if err := acc.check(op, out); err != nil {
		return err
	}
	n, mask := out.Elems(), truthMask(pred.Dtype)
	var co, cy, cn, cp cursor
	co.start(out)
	cy.start(yes)
	cn.start(no)
	cp.start(pred)
	q := s.u64(2, n)
	if raw {
		x, y := s.u64(0, n), s.u64(1, n)
		for range out.Parts {
			cp.loadBits(q)
			cn.loadBits(x)
			cy.loadBits(y)
			for i, u := range q {
				if (u&mask != 0) != reverse {
					x[i] = y[i]
				}
			}
			co.storeBits(x)
		}
		return nil
	}
	x, y := s.f32(0, n), s.f32(1, n)
	for p := range out.Parts {
		cp.loadBits(q)
		cn.load(x)
		cy.load(y)
		for i, u := range q {
			if (u&mask != 0) != reverse {
				x[i] = y[i]
			}
		}
		acc.row(p, x)
		co.store(x)
	}
	return nil
}

// Memset writes the low bits of pattern into every element, whatever its type: fp32 takes the bits of a float32, bf16 the low
// 16, a 64-bit type all.
func Memset(out *View, pattern uint64) error {
	if err := out.checkOut("Memset", "out"); err != nil {
		return err
	}
	var c cursor
	c.start(out)
	var fill [64]uint64
	for i := range fill {
		fill[i] = pattern
	}
	for n := out.Total(); n > 0; {
		k := min(n, len(fill))
		c.storeBits(fill[:k])
		n -= k
	}
	return nil
}
