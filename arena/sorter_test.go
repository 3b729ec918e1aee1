package arena

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSorter: two keys, the lesser first, sort as comparing both and then the number does.
func TestSorter(t *testing.T) {
	var s Sorter
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 5, 32, 33, 600}).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		keep := [2]uint64{rapid.Uint64().Draw(t, "bits"), rapid.Uint64().Draw(t, "bits")}
		keys := make([][2]uint64, n)
		want := make([]uint32, n)
		for i := range keys {
			keys[i] = [2]uint64{rng.Uint64() & keep[0], rng.Uint64() & keep[1]}
			want[i] = uint32(i)
		}
		slices.SortFunc(want, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(keys[a][0], keys[b][0]), cmp.Compare(keys[a][1], keys[b][1]), cmp.Compare(a, b))
		})
		s.Start(n)
		s.By(func(id uint32) uint64 { return keys[id][1] })
		s.By(func(id uint32) uint64 { return keys[id][0] })
		for i, it := range s.Items {
			if it.ID != want[i] {
				t.Fatalf("place %d has %d, want %d", i, it.ID, want[i])
			}
		}
	})
}
