package plan

import (
	"math/big"
	"testing"

	"github.com/rosmar-compiler/rosmar/arena"
)

// TestAreaOrder: areas beyond 64 bits are ordered too.
func TestAreaOrder(t *testing.T) {
	p := &Problem{}
	for i, c := range [...][2]int64{{1 << 60, 3}, {1 << 30, 1 << 50}, {1 << 60, 1 << 40}, {5, 7}, {1 << 59, 6}, {1, 1 << 57}} {
		p.Add(string(rune('a'+i)), 0, c[0], c[1])
	}
	var m model
	var o orderer
	m.sort, o.sort = &arena.Sorter{}, &arena.Sorter{}
	m.build(p)
	o.prepare(&m)
	o.by(&m, byArea, bySize)
	area := func(u uint32) *big.Int { return new(big.Int).Mul(big.NewInt(m.length[u]), big.NewInt(m.size[u])) }
	last := uint32(0)
	for r := range uint32(m.n) {
		for u := range uint32(m.n) {
			if o.rank[u] != r {
				continue
			}
			if c := area(u).Cmp(area(last)); r > 0 && (c > 0 || c == 0 && m.size[u] > m.size[last]) {
				t.Errorf("%q comes after %q", p.Name(int(m.row[u])), p.Name(int(m.row[last])))
			}
			last = u
		}
	}
}
