package flow

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
