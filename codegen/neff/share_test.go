package neff

import "testing"

// The shares of a block add up to its queues, runs are even, and the last descriptor ends one.
func TestShare(t *testing.T) {
	for q := 1; q <= 16; q++ {
		for n := 1; n <= MaxBlock; n++ {
			sum, run := 0, 0
			for k := range n {
				s := int(Share(k, n, q))
				sum += s
				run++
				if s == 0 {
					continue
				}
				if n >= q && (s != 1 || run < n/q || run > (n+q-1)/q) || n < q && (s < q/n || s > (q+n-1)/n) {
					t.Fatalf("%d descriptors on %d queues: a run of %d counts %d", n, q, run, s)
				}
				run = 0
			}
			if sum != q || run != 0 {
				t.Fatalf("%d descriptors on %d queues add %d, and %d after the last count", n, q, sum, run)
			}
		}
	}
}
