package kernel

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// WeightMode is what LoadWeights keeps of the stationary operand.
type WeightMode uint8

const (
	WeightsFull WeightMode = iota // the values: types other than fp32
	WeightsLo                     // fp32, first pass: value minus its upper 16 bits, 0 where it is not finite
	WeightsHi                     // fp32, second pass: the upper 16 bits
	WeightsMove                   // raw bits, for the exact transpose
)

// Weights is the content of the PE array: K rows (contraction) by M columns. It is a copy: later writes to the operand do
// not reach it. The zero value is an empty array; Load reuses its memory.
type Weights struct {
	K, M  int
	Dtype target.Dtype
	Mode  WeightMode
	vals  []float32 // [k][m]
	raw   []uint64  // [k][m], WeightsMove
	zeros []int32   // WeightsLo: zeros of each row, to skip whole rows and to know the rows that need no test
}

// SplitHiLo splits w exactly into its upper 16 bits (a bf16 value) and the rest; the rest of a non-finite w is 0, and the
// upper half of a NaN stays a NaN.
func SplitHiLo(w float32) (hi, lo float32) {
	u := math.Float32bits(w)
	if u&0x7F800000 == 0x7F800000 {
		return w, 0
	}
	hi = math.Float32frombits(u &^ 0xFFFF)
	return hi, w - hi
}

// Load fills the array from a stationary operand, [K partitions, M elements].
func (w *Weights) Load(stationary *View, mode WeightMode) error {
	const op = "LoadWeights"
	if mode > WeightsMove {
		return target.Errorf(target.User, "%s: unknown mode %d", op, mode)
	}
	if err := checkOperand(op, "stationary operand", stationary, mode == WeightsMove); err != nil {
		return err
	}
	w.K, w.M, w.Dtype, w.Mode = stationary.Parts, stationary.Elems(), stationary.Dtype, mode
	n := w.K * w.M
	var c cursor
	c.start(stationary)
	if mode == WeightsMove {
		if cap(w.raw) < n {
			w.raw = make([]uint64, n)
		}
		w.raw = w.raw[:n]
		c.loadBits(w.raw)
		return nil
	}
	if cap(w.vals) < n {
		w.vals = make([]float32, n)
	}
	w.vals = w.vals[:n]
	c.load(w.vals)
	switch mode {
	case WeightsHi:
		for i, x := range w.vals {
			if x-x == 0 {
				w.vals[i] = math.Float32frombits(math.Float32bits(x) &^ 0xFFFF)
			}
		}
	case WeightsLo:
		w.zeros = w.zeros[:0]
		for k := range w.K {
			zeros := int32(0)
			row := w.vals[k*w.M : (k+1)*w.M]
			for i, x := range row {
				_, lo := SplitHiLo(x)
				row[i] = lo
				if lo == 0 {
					zeros++
				}
			}
			w.zeros = append(w.zeros, zeros)
		}
	}
	return nil
}

// maxTile bounds K·M and K·N of a matmul; the largest legal operand is 128 × 8192.
const maxTile = 1 << 20

func checkOperand(op, role string, v *View, raw bool) error {
	if v.Dtype.Class() == target.ClassPacked {
		return target.NotSupported(v.Dtype.String(), "%s: %s is %s; block-scaled matmul is not implemented", op, role, v.Dtype)
	}
	var err error
	if raw {
		err = v.checkRows(op, role)
	} else {
		err = v.checkNum(op, role)
	}
	if err == nil && v.Elems() > maxTile/v.Parts {
		err = target.Errorf(target.Limit, "%s: %s is %s; at most %d elements", op, role, v.shape(), maxTile)
	}
	return err
}

// Matmul is psum[m,n] = Σk w[k,m]·moving[k,n], or += when accumulate is set. Every product is rounded to float32 and added in
// ascending k to the value in float32, which starts at the old psum or at +0; the sum is rounded to the type of psum once at
// the end. In mode WeightsLo a zero weight adds nothing, so 0·Inf makes no NaN. Mode WeightsMove is the exact transpose: one
// operand must be a selection (each column at most one element, equal to 1, the rest 0), and psum[m,n] takes the bits of
// the element of the other that it selects, 0 where it selects none; it cannot accumulate.
// Which operand streams through which loop depends on N; the bits do not.
func Matmul(s *Scratch, psum, moving *View, w *Weights, accumulate bool) error {
	const op = "Matmul"
	move := w.Mode == WeightsMove
	if err := checkOperand(op, "moving operand", moving, move); err != nil {
		return err
	}
	if err := checkOperand(op, "psum", psum, move); err != nil {
		return err
	}
	n := moving.Elems()
	if moving.Parts != w.K || psum.Parts != w.M || psum.Elems() != n {
		return target.Errorf(target.User, "%s: weights are %d×%d, moving is %s, psum is %s; want K×M, K×N, M×N",
			op, w.K, w.M, moving.shape(), psum.shape())
	}
	if move {
		if accumulate {
			return target.Errorf(target.User, "%s: an exact transpose cannot accumulate", op)
		}
		return s.transpose(op, psum, moving, w)
	}
	if cap(s.scratchB) < w.K*n {
		s.scratchB = make([]float32, w.K*n)
	}
	b := s.scratchB[:w.K*n]
	var c cursor
	c.start(moving)
	c.load(b)
	if n < minStream && n < w.M {
		s.matmulDot(psum, b, w, n, accumulate)
	} else {
		s.matmulStream(psum, b, w, n, accumulate)
	}
	return nil
}

// minStream is the N from which rows of moving are streamed even where rows of weights are longer. Measured with bf16 and
// K = M = 128: at N = 8 rows of weights give 2.9 GMAC/s against 1.8, at N = 31 3.75 against 3.4.
const minStream = 48

// matmulStream makes one row of psum at a time, over all n columns.
func (s *Scratch) matmulStream(psum *View, b []float32, w *Weights, n int, accumulate bool) {
	var cr, cw cursor
	cr.start(psum)
	cw.start(psum)
	acc, a := s.f32(0, n), s.f32(1, w.K)
	if cap(s.scratchK) < w.K {
		s.scratchK = make([]int32, w.K)
	}
	rows := s.scratchK[:0]
	for k := range w.K {
		rows = append(rows, int32(k*n))
	}
	for m := range w.M {
		if accumulate {
			cr.load(acc)
		} else {
			clear(acc)
		}
		if w.Mode == WeightsLo {
			rows = rows[:0]
			for k := range w.K {
				if x := w.vals[k*w.M+m]; x != 0 {
					a[len(rows)] = x
					rows = append(rows, int32(k*n))
				}
			}
		} else {
			for k := range a {
				a[k] = w.vals[k*w.M+m]
			}
		}
		axpyRows(acc, b, rows, a)
		cw.store(acc)
	}
}

// matmulDot serves few columns: it makes one column of psum at a time, over all m, which is the same sums in the same order.
func (s *Scratch) matmulDot(psum *View, b []float32, w *Weights, n int, accumulate bool) {
	m := w.M
	tile, acc, a := s.f32(0, m*n), s.f32(1, m), s.f32(2, w.K)
	var c cursor
	c.start(psum)
	if accumulate {
		c.load(tile)
	} else {
		clear(tile)
	}
	if cap(s.scratchK) < w.K {
		s.scratchK = make([]int32, w.K)
	}
	rows := s.scratchK[:0]
	for k := range w.K {
		if w.Mode != WeightsLo || int(w.zeros[k]) < m {
			rows = append(rows, int32(k*m))
		}
	}
	for j := range n {
		plain := true
		for i := range acc {
			acc[i] = tile[i*n+j]
			plain = plain && math.Float32bits(acc[i]) != 1<<31
		}
		for i, r := range rows {
			x := b[int(r)/m*n+j]
			a[i] = x
			plain = plain && x-x == 0
		}
		if w.Mode == WeightsLo && !plain {
			// A zero weight times Inf is NaN, and +0 added to -0 is +0: here the zeros have to be skipped one by one.
			for i, r := range rows {
				for j, x := range w.vals[int(r) : int(r)+m] {
					if x != 0 {
						acc[j] += float32(x * a[i])
					}
				}
			}
		} else {
			axpyRows(acc, w.vals, rows, a)
		}
		for i, x := range acc {
			tile[i*n+j] = x
		}
	}
	c.start(psum)
	c.store(tile)
}

// axpyRows adds a[i]·b[rows[i]:] to acc for each i in order. Four rows a pass keep each sum in a register for four products;
// the order of the additions is that of one row a pass.
func axpyRows(acc, b []float32, rows []int32, a []float32) {
	n := len(acc)
	i := 0
	for ; i+4 <= len(rows); i += 4 {
		r, q := rows[i:i+4], a[i:i+4]
		axpy4(acc, b[r[0]:][:n], b[r[1]:][:n], b[r[2]:][:n], b[r[3]:][:n], q[0], q[1], q[2], q[3])
	}
	for ; i < len(rows); i++ {
		x := a[i]
		row := b[rows[i]:][:n]
		for j := range acc {
			acc[j] += float32(x * row[j])
		}
	}
}

func axpy4(acc, b0, b1, b2, b3 []float32, x0, x1, x2, x3 float32) {
	b0, b1, b2, b3 = b0[:len(acc)], b1[:len(acc)], b2[:len(acc)], b3[:len(acc)]
	for j, y := range acc {
		y += float32(x0 * b0[j])
		y += float32(x1 * b1[j])
		y += float32(x2 * b2[j])
		y += float32(x3 * b3[j])
		acc[j] = y
	}
}

// MatmulFull is one IR Matmult: the array is loaded from stationary and multiplied, in two passes (lo, then hi, the second
// accumulating onto the first) when the stationary operand is fp32. The array used is the scratch's own.
func MatmulFull(s *Scratch, psum, moving, stationary *View, accumulate bool) error {
	w := &s.weights
	if stationary.Dtype.Size() == 4 && stationary.Dtype.IsFloat() {
		if err := w.Load(stationary, WeightsLo); err != nil {
			return err
		}
		if err := Matmul(s, psum, moving, w, accumulate); err != nil {
			return err
		}
		if err := w.Load(stationary, WeightsHi); err != nil {
			return err
		}
		return Matmul(s, psum, moving, w, true)
	}
	if err := w.Load(stationary, WeightsFull); err != nil {
		return err
	}
	return Matmul(s, psum, moving, w, accumulate)
}

// Transpose is one IR Matmult with is_transpose on a generation whose transposes are exact.
func Transpose(s *Scratch, psum, moving, stationary *View) error {
	w := &s.weights
	if err := w.Load(stationary, WeightsMove); err != nil {
		return err
	}
	return Matmul(s, psum, moving, w, false)
}

// selection reads a K×N matrix of raw elements as a selection: pick[n] is the row of the 1 in column n, -1 if there is none.
// It reports false when an element is neither 0 nor 1 or a column has two ones.
func selection(pick []int32, x []uint64, dt target.Dtype) bool {
	one, zero, n := Encode(dt, 1), truthMask(dt), len(pick)
	for j := range pick {
		pick[j] = -1
	}
	for i, u := range x {
		if u&zero == 0 {
			continue
		}
		if u != one || pick[i%n] >= 0 {
			return false
		}
		pick[i%n] = int32(i / n)
	}
	return true
}

func (s *Scratch) transpose(op string, psum, moving *View, w *Weights) error {
	n := moving.Elems()
	x := s.u64(0, w.K*n)
	var c cursor
	c.start(moving)
	c.loadBits(x)
	if cap(s.scratchK) < n+w.M {
		s.scratchK = make([]int32, n+w.M)
	}
	pick := s.scratchK[:n]
	dt := w.Dtype
	byMoving := selection(pick, x, moving.Dtype)
	if !byMoving {
		pick, dt = s.scratchK[:w.M], moving.Dtype
		if !selection(pick, w.raw, w.Dtype) {
			return target.Errorf(target.User, "%s: an exact transpose needs one operand with at most a single 1 a column, and 0 elsewhere", op)
		}
	}
	if !sameBits(dt, psum.Dtype) && !(numeric(dt) && numeric(psum.Dtype)) {
		return target.NotSupported(dt.String(), "%s: no transpose of %s into %s", op, dt, psum.Dtype)
	}
	row := s.u64(1, n)
	var co cursor
	co.start(psum)
	for m := range w.M {
		for j := range row {
			row[j] = 0
			switch {
			case byMoving && pick[j] >= 0:
				row[j] = w.raw[int(pick[j])*w.M+m]
			case !byMoving && pick[m] >= 0:
				row[j] = x[int(pick[m])*n+j]
			}
			if !sameBits(dt, psum.Dtype) {
				row[j] = Encode(psum.Dtype, Decode(dt, row[j]))
			}
		}
		co.storeBits(row)
	}
	return nil
}
