package bestfit

import (
	"math"
	"slices"
	"testing"
)

// The worked example of the paper: twenty values, whose median it estimates at 4.44.
func TestQuantileOfThePaper(t *testing.T) {
	var q Quantile
	q.Reset(0.5)
	for _, x := range []float64{0.02, 0.15, 0.74, 3.39, 0.83, 22.37, 10.15, 15.43, 38.62, 15.92, 34.60, 10.28, 1.47, 0.40, 0.05, 11.39, 0.27, 0.42, 0.09, 11.37} {
		q.Add(x)
	}
	if v := q.Value(); math.Abs(v-4.44) > 0.005 {
		t.Errorf("median %v, want 4.44", v)
	}
}

// Long streams of several shapes, against the sorted stream.
func TestQuantileConverges(t *testing.T) {
	streams := map[string]func(u float64) float64{
		"uniform":     func(u float64) float64 { return u },
		"exponential": func(u float64) float64 { return -math.Log(1 - u) },
		"steps":       func(u float64) float64 { return math.Floor(8 * u) },
		"constant":    func(float64) float64 { return 0.25 },
	}
	for name, f := range streams {
		for _, p := range []float64{0.5, 0.9} {
			var q Quantile
			q.Reset(p)
			var all []float64
			h := uint64(1)
			for range 20_000 {
				h = h*6364136223846793005 + 1442695040888963407
				x := f(float64(h>>11) / (1 << 53))
				q.Add(x)
				all = append(all, x)
			}
			slices.Sort(all)
			// Between the exact quantiles two percent to either side, or within a step of them.
			lo, hi := all[int((p-0.02)*20_000)], all[int((p+0.02)*20_000)]
			if name == "steps" {
				lo, hi = lo-1, hi+1
			}
			if v := q.Value(); v < lo || v > hi {
				t.Errorf("%s: the %v quantile is estimated at %v, exact ones are %v to %v", name, p, v, lo, hi)
			}
		}
	}
}

// Up to five values the estimate is a value of the stream: the one in the middle for the median.
func TestQuantileOfFew(t *testing.T) {
	var q Quantile
	q.Reset(0.5)
	if q.Value() != 0 {
		t.Error("a quantile of nothing")
	}
	for k, want := range []float64{5, 5, 3, 4, 4} {
		q.Add([]float64{5, 3, 1, 4, 9}[k])
		if v := q.Value(); v != want {
			t.Errorf("after %d values %v, want %v", k+1, v, want)
		}
	}
}
