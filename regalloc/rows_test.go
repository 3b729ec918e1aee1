package regalloc

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
		{"Node", unsafe.Sizeof(Node{}), 40},
		{"hot", unsafe.Sizeof(hot{}), 24},
	} {
		if r.size != r.want {
			t.Errorf("%s takes %d bytes, not %d", r.name, r.size, r.want)
		}
	}
}
