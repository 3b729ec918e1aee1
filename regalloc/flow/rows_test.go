package flow

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
		{"Inst", unsafe.Sizeof(Inst{}), 16},
		{"Block", unsafe.Sizeof(Block{}), 32},
		{"Move", unsafe.Sizeof(Move{}), 16},
		{"Ahead", unsafe.Sizeof(Ahead{}), 8},
		{"ahead", unsafe.Sizeof(ahead{}), 16},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
