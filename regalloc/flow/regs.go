package flow

import "github.com/rosmar-compiler/rosmar/ir/target"

// File is the register file: N registers of each class, the last Saved of which survive a call.
type File struct {
	N, Saved [NumClasses]int
}

// MaxRegs is the largest register file of a class, so that a set of registers fits in a word.
const MaxRegs = 64

// Destroyed is the set of registers of a class that a call destroys.
func (r *File) Destroyed(c Class) uint64 { return mask(r.N[c] - r.Saved[c]) }

// All is the set of registers of a class.
func (r *File) All(c Class) uint64 { return mask(r.N[c]) }

func mask(n int) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// Check refuses a register file that no set of registers can stand for.
func (r *File) Check() error {
	for c, n := range r.N {
		if saved := r.Saved[c]; n < 0 || n > MaxRegs || saved < 0 || saved > n {
			return target.Errorf(target.User, "%d %s registers, of which %d survive calls: give 0 to %d, and no more survivors than registers", n, Class(c), saved, MaxRegs)
		}
	}
	return nil
}
