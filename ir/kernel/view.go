package kernel

import (
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Axes is how many free axes a view has.
const Axes = 4

// maxRow bounds the elements a partition of an operation that stages rows: 16 Mi, 64 MiB of scratch. Copy streams and has
// no such bound.
const maxRow = 1 << 24

// maxParts bounds the partitions of the same operations: those of the machine.
const maxParts = 128

// View is a strided window on raw little-endian bytes. Element (p, i) lies at byte Off + p·PStep + Σ i[d]·Steps[d], where
// index 0 is the fastest axis, steps count bytes and may be zero (broadcast) or negative. Order of elements: partition
// outermost, axis 0 innermost. A DMA descriptor side is a View with Parts 1.
type View struct {
	Data  []byte
	Off   int
	Dtype target.Dtype
	Parts int
	PStep int
	Steps [Axes]int
	Nums  [Axes]int
	N     int // axes in use; the others count as one element
}

// Dense is a view of n contiguous elements on each of parts partitions, pitch bytes apart.
func Dense(data []byte, off int, dt target.Dtype, parts, pitch, n int) View {
	return View{Data: data, Off: off, Dtype: dt, Parts: parts, PStep: pitch,
		Steps: [Axes]int{dt.Size()}, Nums: [Axes]int{n}, N: 1}
}

// Elems is the number of elements a partition.
func (v *View) Elems() int {
	n := 1
	for d := 0; d < v.N; d++ {
		n *= v.Nums[d]
	}
	return n
}

// Total is the number of elements on all partitions.
func (v *View) Total() int { return v.Elems() * v.Parts }

// Inner is the product of the k fastest counts: the group that a reduction over k axes folds.
func (v *View) Inner(k int) int {
	n := 1
	for d := 0; d < k && d < v.N; d++ {
		n *= v.Nums[d]
	}
	return n
}

// Check proves that the view is well formed and every element lies inside Data. op and role name it in the error.
func (v *View) Check(op, role string) error {
	size := v.Dtype.Size()
	if size == 0 {
		return target.Errorf(target.User, "%s: %s has unknown element type %d", op, role, v.Dtype)
	}
	if v.N < 0 || v.N > Axes {
		return target.Errorf(target.User, "%s: %s has %d free axes; at most %d", op, role, v.N, Axes)
	}
	if v.Parts < 1 {
		return target.Errorf(target.User, "%s: %s has %d partitions; at least 1", op, role, v.Parts)
	}
	if v.Off < 0 || v.Off > len(v.Data)-size {
		return target.Errorf(target.User, "%s: %s begins at byte %d of %d", op, role, v.Off, len(v.Data))
	}
	lo, hi, total := v.Off, v.Off, 1
	for d := -1; d < v.N; d++ {
		num, step := v.Parts, v.PStep
		if d >= 0 {
			num, step = v.Nums[d], v.Steps[d]
		}
		if num < 1 {
			return target.Errorf(target.User, "%s: %s axis %d has count %d; at least 1", op, role, d, num)
		}
		if num > (1<<48)/total {
			return target.Errorf(target.Limit, "%s: %s has more than 2^48 elements", op, role)
		}
		total *= num
		if num == 1 || step == 0 {
			continue
		}
		// Compared by division: the product of a hostile step and count may not fit an int.
		mag := step
		if mag < 0 {
			mag = -mag
		}
		if mag < 0 || num-1 > len(v.Data)/mag {
			return v.outside(op, role, d, step, num)
		}
		if span := (num - 1) * step; span < 0 {
			lo += span
		} else {
			hi += span
		}
		if lo < 0 || hi > len(v.Data) {
			return v.outside(op, role, d, step, num)
		}
	}
	if lo < 0 || hi > len(v.Data)-size {
		return target.Errorf(target.User, "%s: %s reaches bytes %d to %d of %d", op, role, lo, hi+size, len(v.Data))
	}
	return nil
}

func (v *View) outside(op, role string, axis, step, num int) error {
	return target.Errorf(target.User, "%s: %s leaves its %d bytes: offset %d, axis %d steps %d bytes %d times",
		op, role, len(v.Data), v.Off, axis, step, num)
}

// checkRows is Check, and the bound on staged rows.
func (v *View) checkRows(op, role string) error {
	if err := v.Check(op, role); err != nil {
		return err
	}
	if n := v.Elems(); n > maxRow || v.Parts > maxParts {
		return target.Errorf(target.Limit, "%s: %s is %s; at most %d×%d", op, role, v.shape(), maxParts, maxRow)
	}
	return nil
}

// checkOut is Check for the output of a streaming operation. An output with more elements than its bytes hold writes some
// twice; refusing it bounds the work by the size of the memory.
func (v *View) checkOut(op, role string) error {
	if err := v.Check(op, role); err != nil {
		return err
	}
	if n := v.Total(); n > len(v.Data)/v.Dtype.Size() {
		return target.Errorf(target.User, "%s: %s writes %d elements of %s into %d bytes", op, role, n, v.Dtype, len(v.Data))
	}
	return nil
}

// checkNum is checkRows for an operand that is read or written as numbers.
func (v *View) checkNum(op, role string) error {
	if err := v.checkRows(op, role); err != nil {
		return err
	}
	if !numeric(v.Dtype) {
		return target.NotSupported(v.Dtype.String(), "%s: %s is %s; arithmetic takes types of up to 32 bits that are not packed",
			op, role, v.Dtype)
	}
	return nil
}

// numeric reports the types that load as float32.
func numeric(dt target.Dtype) bool { return dt.Size() <= 4 && dt.Class() != target.ClassPacked }

// sameShape demands equal partitions and elements.
func sameShape(op, role string, v, out *View) error {
	if v.Parts != out.Parts || v.Elems() != out.Elems() {
		return target.Errorf(target.User, "%s: %s is %s, out is %s; they must agree", op, role, v.shape(), out.shape())
	}
	return nil
}

func (v *View) shape() string { return fmt.Sprintf("%d×%d", v.Parts, v.Elems()) }

// row is a view of partition p alone.
func (v *View) row(p int) View {
	r := *v
	r.Off += p * v.PStep
	r.Parts, r.PStep = 1, 0
	return r
}

// cursor walks the elements of a view in order. Unit axes are dropped and neighbours merged where they form one run, so
// that the run loops of row.go see the longest runs there are.
type cursor struct {
	data  []byte
	off   int
	left  int // elements left in the current run
	step  int // bytes between elements of a run
	size  int
	n     int // axes
	dt    target.Dtype
	steps [Axes + 1]int
	nums  [Axes + 1]int
	idx   [Axes + 1]int
}

// start places the cursor on the first element of v.
func (c *cursor) start(v *View) {
	c.data, c.off, c.dt, c.size = v.Data, v.Off, v.Dtype, v.Dtype.Size()
	c.n = 0
	for d := 0; d <= v.N; d++ {
		num, step := v.Parts, v.PStep
		if d < v.N {
			num, step = v.Nums[d], v.Steps[d]
		}
		if num == 1 {
			continue
		}
		if c.n > 0 && step == c.steps[c.n-1]*c.nums[c.n-1] {
			c.nums[c.n-1] *= num
			continue
		}
		c.steps[c.n], c.nums[c.n], c.idx[c.n] = step, num, 0
		c.n++
	}
	if c.n == 0 {
		c.steps[0], c.nums[0], c.idx[0] = c.size, 1, 0
		c.n = 1
	}
	c.step, c.left = c.steps[0], c.nums[0]
}

// take moves past k ≤ left elements of the run.
func (c *cursor) take(k int) {
	c.off += k * c.step
	c.left -= k
	if c.left == 0 {
		c.wrap()
	}
}

// wrap moves to the start of the next run; after the last element the walk begins again.
func (c *cursor) wrap() {
	c.off -= c.nums[0] * c.step
	c.left = c.nums[0]
	for d := 1; d < c.n; d++ {
		c.off += c.steps[d]
		c.idx[d]++
		if c.idx[d] < c.nums[d] {
			return
		}
		c.idx[d] = 0
		c.off -= c.nums[d] * c.steps[d]
	}
}

// load reads the next len(dst) elements as float32.
func (c *cursor) load(dst []float32) {
	for len(dst) > 0 {
		k := min(c.left, len(dst))
		loadRun(dst[:k], c.data, c.off, c.step, c.dt)
		dst = dst[k:]
		c.take(k)
	}
}

// store rounds src into the next len(src) elements.
func (c *cursor) store(src []float32) {
	for len(src) > 0 {
		k := min(c.left, len(src))
		storeRun(src[:k], c.data, c.off, c.step, c.dt)
		src = src[k:]
		c.take(k)
	}
}

// loadBits reads the next len(dst) elements as raw bits, zero-extended.
func (c *cursor) loadBits(dst []uint64) {
	for len(dst) > 0 {
		k := min(c.left, len(dst))
		loadBitsRun(dst[:k], c.data, c.off, c.step, c.size)
		dst = dst[k:]
		c.take(k)
	}
}

// storeBits writes the low bits of src into the next len(src) elements.
func (c *cursor) storeBits(src []uint64) {
	for len(src) > 0 {
		k := min(c.left, len(src))
		storeBitsRun(src[:k], c.data, c.off, c.step, c.size)
		src = src[k:]
		c.take(k)
	}
}

// LoadRow reads partition p of v, which must have passed Check, into dst as float32. len(dst) is at most v.Elems().
func LoadRow(dst []float32, v *View, p int) {
	r := v.row(p)
	var c cursor
	c.start(&r)
	c.load(dst)
}

// StoreRow rounds src into partition p of v, which must have passed Check.
func StoreRow(v *View, p int, src []float32) {
	r := v.row(p)
	var c cursor
	c.start(&r)
	c.store(src)
}

// Scratch is the row buffers of one simulator. Its zero value is ready; it may not be shared by two goroutines.
type Scratch struct {
	scratchF [4][]float32
	scratchU [4][]uint64
	scratchI []int32
	scratchK []int32
	scratchB []float32
	weights  Weights
}

// f32 gives buffer i with room for n values; its content is undefined.
func (s *Scratch) f32(i, n int) []float32 {
	if cap(s.scratchF[i]) < n {
		s.scratchF[i] = make([]float32, n)
	}
	return s.scratchF[i][:n]
}

// u64 gives raw buffer i with room for n values; its content is undefined.
func (s *Scratch) u64(i, n int) []uint64 {
	if cap(s.scratchU[i]) < n {
		s.scratchU[i] = make([]uint64, n)
	}
	return s.scratchU[i][:n]
}
