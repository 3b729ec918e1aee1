package neff

import "testing"

// The shares of a block add up to its queues, and nothing is left to do on a queue once its share is in.
func TestShare(t *testing.T) {
	for q := 1; q <= 16; q++ {
		for n := 1; n <= MaxBlock; n++ {
			sum := 0
			last := map[int]uint8{}
			for k := range n {
				s := Share(k, n, q)
				sum += int(s)
				last[Part(k, q)] = s
			}
			if sum != q {
				t.Fatalf("%d descriptors on %d queues add %d", n, q, sum)
			}
			for p, s := range last {
				if s == 0 {
					t.Fatalf("%d descriptors on %d queues: the last one on queue %d does not count", n, q, p)
				}
			}
		}
	}
}
