package scalar

import (
	"testing"
	"unsafe"
)

// What there is one of an instruction, an operand or a value stays small.
func TestRowSizes(t *testing.T) {
	for _, r := range []struct {
		name       string
		size, want uintptr
	}{
		{"node", unsafe.Sizeof(node{}), 16},
		{"branch", unsafe.Sizeof(branch{}), 12},
		{"frame", unsafe.Sizeof(frame{}), 40},
		{"occ", unsafe.Sizeof(occ{}), 16},
		{"move", unsafe.Sizeof(move{}), 12},
		{"web", unsafe.Sizeof(web{}), 32},
		{"rated", unsafe.Sizeof(rated{}), 24},
		{"home", unsafe.Sizeof(home{}), 20},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
