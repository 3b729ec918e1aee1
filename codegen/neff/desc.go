package neff

import (
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// DMAOp is what a descriptor does with the bytes it moves.
type DMAOp uint8

// Descriptor operations, spelled as in the engine JSON.
const (
	DMACopy DMAOp = iota // bytes as they are
	DMACast              // From.Dtype to To.Dtype through fp32
	DMAAdd               // to += from
	DMAMin
	DMAMax
	DMAFma
	DMATranspose
	numDMAOps
)

var dmaOps = [numDMAOps]string{"copy", "cast", "add", "min", "max", "fma", "transpose"}

// String is the JSON spelling.
func (o DMAOp) String() string {
	if o < numDMAOps {
		return dmaOps[o]
	}
	return "?"
}

// MaxBlock is the descriptors that one block, the unit of a trigger, may have.
const MaxBlock = 64

// MaxRun is the bytes of the innermost run of a side.
const MaxRun = 65536

// Side is one end of a descriptor: up to four (step, size) pairs in bytes, innermost first. Pair 0 is a contiguous run of
// Size[0] bytes with Step[0] = 1; Size[1..3] are counts and Step[1..3] byte distances, 0 for a repeated read. The byte at
// (i1, i2, i3, b) is Off + i1*Step[1] + i2*Step[2] + i3*Step[3] + b, in the variable's own bytes for DRAM, at a global
// address for SB and PSUM (the next partition is 256 KiB or 32 KiB away). Element order: b fastest, then i1, i2, i3.
type Side struct {
	Var   uint32 // row of Def.Vars
	Size  [4]uint32
	Off   int64
	Step  [4]int64
	N     uint8 // pairs in use, 1..4; the others are zero
	Dtype target.Dtype
	_     [6]uint8
}

// Desc is one element descriptor. Descriptors of equal ID form the block that one DMATrigger starts; a list holds blocks in
// ascending ID order. The two sides' shapes are independent; they hold the same number of elements. When the bytes of this
// descriptor are written, semaphore Sem goes up by SemInc; both 0 means no completion of its own.
//
// A queue set cuts a block into runs of neighbouring descriptors, one for each hardware queue. The descriptors of a run
// complete in order; different runs, and different blocks, in any order. So a run ends with the descriptor that counts for
// it (Share), and a whole block adds NumQueues.
type Desc struct {
	From, To Side
	ID       uint32 // block, from 1
	Queue    uint32 // row of Def.Queues
	Op       DMAOp
	Sem      uint8
	SemInc   uint8
	_        [5]uint8
}

// Share is what descriptor k of a block of n adds to the completion semaphore, so that the block adds numQueues in all and
// has added them only when every descriptor is complete: the last of each of numQueues even runs adds 1, and where there are
// fewer descriptors than queues, they share the count.
func Share(k, n, numQueues int) uint8 {
	if n >= numQueues {
		return uint8((k+1)*numQueues/n - k*numQueues/n)
	}
	if k < numQueues%n {
		return uint8(numQueues/n + 1)
	}
	return uint8(numQueues / n)
}

// Bytes is the byte count of a side.
func (s *Side) Bytes() int64 {
	n := int64(s.Size[0])
	for i := 1; i < int(s.N); i++ {
		n *= int64(s.Size[i])
	}
	return n
}

// Span is the least and the one-past-greatest byte offset that a side touches.
func (s *Side) Span() (lo, hi int64) {
	lo, hi = s.Off, s.Off+int64(s.Size[0])
	for i := 1; i < int(s.N); i++ {
		w := s.Step[i] * (int64(s.Size[i]) - 1)
		if w < 0 {
			lo += w
		} else {
			hi += w
		}
	}
	return lo, hi
}

// Limits of one descriptor, far above any real one and low enough that no sum overflows.
const (
	maxSideBytes = 1 << 40
	maxSideStep  = 1 << 40
)

// Check holds the rules of a descriptor against its definition.
func (d *Desc) Check(def *Def) error {
	if d.ID == 0 {
		return target.Errorf(target.User, "neff: descriptor with block id 0")
	}
	if d.Queue == 0 || int(d.Queue) >= len(def.Queues) {
		return target.Errorf(target.User, "neff: block %d names queue set %d of %d", d.ID, d.Queue, len(def.Queues)-1)
	}
	if d.Op >= numDMAOps {
		return target.Errorf(target.User, "neff: block %d has operation %d", d.ID, d.Op)
	}
	if (d.Sem != 0) != (d.SemInc != 0) {
		return target.Errorf(target.User, "neff: block %d has semaphore %d with increment %d; both or neither", d.ID, d.Sem, d.SemInc)
	}
	if err := d.From.check(d.ID, "from", def, true); err != nil {
		return err
	}
	if err := d.To.check(d.ID, "to", def, false); err != nil {
		return err
	}
	fs, ts := int64(1), int64(1)
	if d.Op != DMACopy { // elements matter, and none is torn between two runs
		fs, ts = int64(d.From.Dtype.Size()), int64(d.To.Dtype.Size())
	}
	fb, tb := d.From.Bytes(), d.To.Bytes()
	if int64(d.From.Size[0])%fs != 0 || int64(d.To.Size[0])%ts != 0 || fb/fs != tb/ts {
		return target.Errorf(target.User, "neff: block %d: %s of %d bytes of %s into %d bytes of %s", d.ID, d.Op, fb, d.From.Dtype, tb, d.To.Dtype)
	}
	return nil
}

func (s *Side) check(id uint32, name string, def *Def, read bool) error {
	if s.Var == 0 || int(s.Var) >= len(def.Vars) {
		return target.Errorf(target.User, "neff: block %d: %s names variable %d of %d", id, name, s.Var, len(def.Vars)-1)
	}
	if s.Dtype >= target.NumDtypes {
		return target.Errorf(target.User, "neff: block %d: %s has element type %d", id, name, s.Dtype)
	}
	if s.N < 1 || s.N > 4 {
		return target.Errorf(target.User, "neff: block %d: %s has %d pairs; 1..4 are possible", id, name, s.N)
	}
	if s.Step[0] != 1 || s.Size[0] < 1 || s.Size[0] > MaxRun {
		return target.Errorf(target.User, "neff: block %d: %s has an innermost run of %d bytes, step %d; 1..%d with step 1 are possible", id, name, s.Size[0], s.Step[0], MaxRun)
	}
	bytes := int64(s.Size[0])
	for i := 1; i < 4; i++ {
		if i >= int(s.N) {
			if s.Size[i] != 0 || s.Step[i] != 0 {
				return target.Errorf(target.User, "neff: block %d: %s has %d pairs, but pair %d is set", id, name, s.N, i)
			}
			continue
		}
		if s.Size[i] < 1 || s.Step[i] > maxSideStep || s.Step[i] < -maxSideStep {
			return target.Errorf(target.User, "neff: block %d: %s pair %d is (%d, %d)", id, name, i, s.Step[i], s.Size[i])
		}
		if s.Step[i] == 0 && !read && s.Size[i] > 1 {
			return target.Errorf(target.User, "neff: block %d: pair %d writes the same bytes %d times", id, i, s.Size[i])
		}
		if bytes *= int64(s.Size[i]); bytes > maxSideBytes {
			return target.Errorf(target.Limit, "neff: block %d: %s moves more than 2^40 bytes", id, name)
		}
	}
	v := &def.Vars[s.Var]
	if s.Off < 0 || s.Off > maxSideBytes {
		return target.Errorf(target.User, "neff: block %d: %s offset %d in %q", id, name, s.Off, v.Name)
	}
	lo, hi := s.span128()
	if v.Name == PSUMVar && lo < target.PSUMBase {
		return target.Errorf(target.User, "neff: block %d: %s address %.0f is below PSUM", id, name, lo)
	}
	if lo < 0 || hi > float64(v.Size) {
		return target.Errorf(target.User, "neff: block %d: %s walks bytes %.0f..%.0f of %q, which has %d", id, name, lo, hi, v.Name, v.Size)
	}
	if !read && (v.Type == VarInput || v.Type == VarFile) {
		return target.Errorf(target.User, "neff: block %d writes %s %q", id, v.Type, v.Name)
	}
	return nil
}

// span128 is Span for values that are not yet known to fit: 2^40 steps of 2^40 bytes overflow an int64, not a float64, and
// below 2^53, where legal spans lie, it is exact.
func (s *Side) span128() (lo, hi float64) {
	lo, hi = float64(s.Off), float64(s.Off)+float64(s.Size[0])
	for i := 1; i < int(s.N); i++ {
		w := float64(s.Step[i]) * (float64(s.Size[i]) - 1)
		if w < 0 {
			lo += w
		} else {
			hi += w
		}
	}
	return lo, hi
}

// CheckBlocks holds the rules of a list: every descriptor legal, ids ascending, at most MaxBlock descriptors a block and
// one queue set a block.
func CheckBlocks(descs []Desc, def *Def) error {
	run := 0
	for i := range descs {
		d := &descs[i]
		if err := d.Check(def); err != nil {
			return err
		}
		run++
		if i > 0 {
			switch p := &descs[i-1]; {
			case d.ID < p.ID:
				return target.Errorf(target.User, "neff: block %d comes after block %d; lists are in id order", d.ID, p.ID)
			case d.ID > p.ID:
				run = 1
			case d.Queue != p.Queue:
				return target.Errorf(target.User, "neff: block %d uses two queue sets", d.ID)
			}
		}
		if run > MaxBlock {
			return target.Errorf(target.Limit, "neff: block %d has more than %d descriptors", d.ID, MaxBlock)
		}
	}
	return nil
}
