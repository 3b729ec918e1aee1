package bestfit

import "slices"

// Quantile estimates a quantile of a stream in constant space by the P² algorithm: five markers move towards the heights that
// the minimum, the quantile, the maximum and the two between should have, along a parabola through their neighbours (R. Jain and
// I. Chlamtac, Communications of the ACM 28(10), 1985). Up to five values it is exact.
type Quantile struct {
	p      float64
	n      int
	height [5]float64
	at     [5]int     // positions of the markers among the values seen, from 1
	want   [5]float64 // where they should be
}

// Reset forgets all values and asks for the quantile p, between 0 and 1.
func (q *Quantile) Reset(p float64) { *q = Quantile{p: p} }

// Add takes one value of the stream.
func (q *Quantile) Add(x float64) {
	if q.n < 5 {
		q.height[q.n] = x
		q.n++
		if q.n == 5 {
			slices.Sort(q.height[:])
			q.at = [5]int{1, 2, 3, 4, 5}
			q.want = [5]float64{1, 1 + 2*q.p, 1 + 4*q.p, 3 + 2*q.p, 5}
		}
		return
	}
	q.n++
	k := 0
	switch {
	case x < q.height[0]:
		q.height[0] = x
	case x >= q.height[4]:
		q.height[4], k = x, 3
	default:
		for k < 3 && x >= q.height[k+1] {
			k++
		}
	}
	for i := k + 1; i < 5; i++ {
		q.at[i]++
	}
	for i, d := range [5]float64{0, q.p / 2, q.p, (1 + q.p) / 2, 1} {
		q.want[i] += d
	}
	for i := 1; i < 4; i++ {
		d := q.want[i] - float64(q.at[i])
		switch {
		case d >= 1 && q.at[i+1]-q.at[i] > 1:
			q.move(i, 1)
		case d <= -1 && q.at[i-1]-q.at[i] < -1:
			q.move(i, -1)
		}
	}
}

// move shifts marker i by one position: along the parabola, or along a line where that would break the order of the heights.
func (q *Quantile) move(i, d int) {
	h, n := &q.height, &q.at
	left, right := float64(n[i]-n[i-1]), float64(n[i+1]-n[i])
	s := float64(d)
	y := h[i] + s/(left+right)*((left+s)*(h[i+1]-h[i])/right+(right-s)*(h[i]-h[i-1])/left)
	if y <= h[i-1] || y >= h[i+1] {
		y = h[i] + s*(h[i+d]-h[i])/float64(n[i+d]-n[i])
	}
	h[i] = y
	n[i] += d
}

// Value is the estimate, 0 before the first value.
func (q *Quantile) Value() float64 {
	switch {
	case q.n == 0:
		return 0
	case q.n > 5:
		return q.height[2]
	}
	h := q.height
	slices.Sort(h[:q.n])
	return h[int(q.p*float64(q.n-1)+0.5)]
}
