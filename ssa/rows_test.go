package ssa

import (
	"testing"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir"
)

// Rows have the sizes that comments and Bytes say.
func TestRowSizes(t *testing.T) {
	for _, r := range []struct {
		name       string
		size, want uintptr
	}{
		{"Access", unsafe.Sizeof(Access{}), 16},
		{"Unit", unsafe.Sizeof(Unit{}), 28},
		{"Loop", unsafe.Sizeof(Loop{}), 32},
		{"frame", unsafe.Sizeof(frame{}), 20},
		{"heldSym", unsafe.Sizeof(heldSym{}), 8},
		{"Footprint", unsafe.Sizeof(ir.Footprint{}), 120},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
