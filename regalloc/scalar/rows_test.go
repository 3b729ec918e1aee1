package scalar

import (
	"testing"
	"unsafe"
)

// Rows have the sizes that comments and Report say.
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
