package regalloc

import (
	"testing"
	"unsafe"
)

// Rows have the sizes that comments and Bytes say.
func TestRowSizes(t *testing.T) {
	for _, r := range []struct {
		name       string
		size, want uintptr
	}{
		{"Seg", unsafe.Sizeof(Seg{}), 12},
		{"Node", unsafe.Sizeof(Node{}), 40},
		{"hot", unsafe.Sizeof(hot{}), 24},
		{"monotoneEntry", unsafe.Sizeof(monotoneEntry{}), 16},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
