package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

// groups gives how many consecutive elements of in fold into one of out.
func groups(op string, out, in *View) (int, error) {
	n, m := in.Elems(), out.Elems()
	if n%m != 0 {
		return 0, target.Errorf(target.User, "%s: in has %d elements a partition, out has %d; out must divide in", op, n, m)
	}
	return n / m, nil
}

// checkReduce is what the reductions ask; they fold along the fastest axes, so only counts matter.
func checkReduce(op string, o target.AluOp, out, in *View, negate bool) (opClass, error) {
	class, err := classify(op, o, target.AluBypass)
	if err != nil {
		return 0, err
	}
	if class == classMove {
		return 0, target.Errorf(target.User, "%s: bypass does not reduce", op)
	}
	if class == classBits {
		if negate {
			return 0, target.Errorf(target.User, "%s: %s cannot be negated", op, o)
		}
		if o == target.AluBitNot {
			return 0, target.Errorf(target.User, "%s: %s has one operand and does not reduce", op, o)
		}
		if err := checkBits(op, "out", out, out); err != nil {
			return 0, err
		}
		return class, checkBits(op, "in", in, out)
	}
	if err := out.checkNum(op, "out"); err != nil {
		return 0, err
	}
	return class, in.checkNum(op, "in")
}

// TensorReduce folds each run of in.Elems()/out.Elems() consecutive elements (the innermost axes, in order, starting from the
// first) into one of out, and negates it on demand. The in.Inner(k) elements of k axes are such a run.
func TensorReduce(s *Scratch, o target.AluOp, out, in *View, negate bool) error {
	const op = "TensorReduce"
	class, err := checkReduce(op, o, out, in, negate)
	if err != nil {
		return err
	}
	g, err := groups(op, out, in)
	if err != nil {
		return err
	}
	if in.Parts != out.Parts {
		return target.Errorf(target.User, "%s: in has %d partitions, out has %d", op, in.Parts, out.Parts)
	}
	n, m := in.Elems(), out.Elems()
	var ci, co cursor
	ci.start(in)
	co.start(out)
	if class == classBits {
		x, w := s.u64(0, n), uint(8*out.Dtype.Size())
		for range out.Parts {
			ci.loadBits(x)
			foldBits(o, x[:m], x, g, w)
			co.storeBits(x[:m])
		}
		return nil
	}
	x := s.f32(0, n)
	for range out.Parts {
		ci.load(x)
		foldGroups(o, x[:m], x, g)
		if negate {
			negateRow(x[:m])
		}
		co.store(x[:m])
	}
	return nil
}

// foldGroups is dst[i] = fold of x[i·g : (i+1)·g]; dst may be the head of x.
func foldGroups(o target.AluOp, dst, x []float32, g int) {
	for i := range dst {
		r := x[i*g : (i+1)*g]
		dst[i] = foldRow(o, r[0], r[1:])
	}
}

func foldBits(o target.AluOp, dst, x []uint64, g int, w uint) {
	for i := range dst {
		r := x[i*g]
		for _, y := range x[i*g+1 : (i+1)*g] {
			r = bitwise(o, r, y, w) & (^uint64(0) >> (64 - w))
		}
		dst[i] = r
	}
}

func negateRow(x []float32) {
	for i, v := range x {
		x[i] = -v
	}
}

// PartitionReduce folds across partitions (axis C): out has one partition. Each partition is first folded along its innermost
// axes as in TensorReduce, then partition by partition in ascending order.
func PartitionReduce(s *Scratch, o target.AluOp, out, in *View, negate bool) error {
	const op = "PartitionReduce"
	class, err := checkReduce(op, o, out, in, negate)
	if err != nil {
		return err
	}
	g, err := groups(op, out, in)
	if err != nil {
		return err
	}
	if out.Parts != 1 {
		return target.Errorf(target.User, "%s: out has %d partitions; it must have 1", op, out.Parts)
	}
	n, m := in.Elems(), out.Elems()
	var ci, co cursor
	ci.start(in)
	co.start(out)
	if class == classBits {
		x, r, w := s.u64(0, n), s.u64(1, m), uint(8*out.Dtype.Size())
		for p := range in.Parts {
			ci.loadBits(x)
			foldBits(o, x[:m], x, g, w)
			if p == 0 {
				copy(r, x)
			} else {
				rowBits(o, r, r, x[:m], 0, false, w)
			}
		}
		co.storeBits(r)
		return nil
	}
	x, r := s.f32(0, n), s.f32(1, m)
	for p := range in.Parts {
		ci.load(x)
		foldGroups(o, x[:m], x, g)
		if p == 0 {
			copy(r, x)
		} else {
			rowVV(o, r, r, x[:m])
		}
	}
	if negate {
		negateRow(r)
	}
	co.store(r)
	return nil
}

// Pool folds each window, the innermost in.Elems()/out.Elems() elements: their maximum, or their sum divided by their
// number.
func Pool(s *Scratch, avg bool, out, in *View) error {
	const op = "Pool"
	o := target.AluMax
	if avg {
		o = target.AluAdd
	}
	if _, err := checkReduce(op, o, out, in, false); err != nil {
		return err
	}
	g, err := groups(op, out, in)
	if err != nil {
		return err
	}
	if in.Parts != out.Parts {
		return target.Errorf(target.User, "%s: in has %d partitions, out has %d", op, in.Parts, out.Parts)
	}
	m := out.Elems()
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, in.Elems())
	for range out.Parts {
		ci.load(x)
		foldGroups(o, x[:m], x, g)
		if avg {
			for i := range m {
				x[i] /= float32(g)
			}
		}
		co.store(x[:m])
	}
	return nil
}

// BNStatValues is how many statistics BNStats writes a partition.
const BNStatValues = 6

// BNStats writes six values a partition: count, mean and Σ(x-mean)² of the elements at even positions, then the same of those
// at odd positions (count 0 and zeros when there are none). Sums are made in float64 and rounded once.
func BNStats(s *Scratch, out, in *View) error {
	const op = "BNStats"
	if err := out.checkNum(op, "out"); err != nil {
		return err
	}
	if err := in.checkNum(op, "in"); err != nil {
		return err
	}
	if out.Parts != in.Parts || out.Elems() != BNStatValues {
		return target.Errorf(target.User, "%s: out is %s; it must be %d×%d", op, out.shape(), in.Parts, BNStatValues)
	}
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, in.Elems())
	for range out.Parts {
		ci.load(x)
		var st [BNStatValues]float32
		for h := range 2 {
			var n, sum, m2 float64
			for i := h; i < len(x); i += 2 {
				sum += float64(x[i])
				n++
			}
			if n == 0 {
				continue
			}
			mean := sum / n
			for i := h; i < len(x); i += 2 {
				d := float64(x[i]) - mean
				m2 += float64(d * d)
			}
			st[3*h], st[3*h+1], st[3*h+2] = float32(n), float32(mean), float32(m2)
		}
		co.store(st[:])
	}
	return nil
}

// BNAggregate merges groups of (count, mean, Σ(x-mean)²) into the mean and the population variance of all: in is [p, 3g], out
// is [p, 2]. With no elements at all both are NaN.
func BNAggregate(s *Scratch, out, in *View) error {
	const op = "BNStatsAggregate"
	if err := out.checkNum(op, "out"); err != nil {
		return err
	}
	if err := in.checkNum(op, "in"); err != nil {
		return err
	}
	if in.Elems()%3 != 0 || out.Parts != in.Parts || out.Elems() != 2 {
		return target.Errorf(target.User, "%s: in is %s, out is %s; they must be p×3g and p×2", op, in.shape(), out.shape())
	}
	var ci, co cursor
	ci.start(in)
	co.start(out)
	x := s.f32(0, in.Elems())
	for range out.Parts {
		ci.load(x)
		var n, sum, m2 float64
		for i := 0; i < len(x); i += 3 {
			n += float64(x[i])
			sum += float64(float64(x[i]) * float64(x[i+1]))
		}
		mean := sum / n
		for i := 0; i < len(x); i += 3 {
			d := float64(x[i+1]) - mean
			m2 += float64(x[i+2]) + float64(float64(x[i])*float64(d*d))
		}
		r := [2]float32{float32(mean), float32(m2 / n)}
		co.store(r[:])
	}
	return nil
}
