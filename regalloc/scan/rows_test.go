package scan

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
		{"held", unsafe.Sizeof(held{}), 8},
		{"block", unsafe.Sizeof(block{}), 36},
		{"state", unsafe.Sizeof(state{}), 16},
		{"operand", unsafe.Sizeof(operand{}), 8},
		{"ahead", unsafe.Sizeof(ahead{}), 8},
		{"candidate", unsafe.Sizeof(candidate{}), 20},
		{"goal", unsafe.Sizeof(goal{}), 12},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
