package ssa

import (
	"testing"
	"unsafe"
)

// Rows have the sizes that their comments say.
func TestRowSizes(t *testing.T) {
	for _, r := range []struct {
		name       string
		size, want uintptr
	}{
		{"Access", unsafe.Sizeof(Access{}), 16},
		{"Unit", unsafe.Sizeof(Unit{}), 28},
		{"Loop", unsafe.Sizeof(Loop{}), 32},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
