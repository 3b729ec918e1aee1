package hlo

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestParseFloat compares with strconv on numbers as they are printed, short and long.
func TestParseFloat(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50000 {
		var text string
		switch x := math.Float64frombits(rng.Uint64()); rng.IntN(4) {
		case 0:
			text = strconv.FormatFloat(x, 'g', -1, 64)
		case 1:
			text = strconv.FormatFloat(x, 'g', 1+rng.IntN(9), 64)
		case 2:
			text = strconv.FormatFloat(float64(rng.IntN(100000000))/1e4, 'f', -1, 32)
		default:
			text = strconv.FormatInt(rng.Int64()>>rng.IntN(63), 10) + "e" + strconv.Itoa(rng.IntN(60)-30)
		}
		for _, size := range []int{32, 64} {
			want, err := strconv.ParseFloat(text, size)
			if err != nil && !math.IsInf(want, 0) {
				t.Fatal(err)
			}
			got, ok := parseFloat([]byte(text), size)
			if !ok || math.Float64bits(got) != math.Float64bits(want) && want == want {
				t.Fatalf("%s to %d bits: %v, %v, want %v", text, size, got, ok, want)
			}
		}
	}
	for _, bad := range []string{"", "-", ".", "1e", "e5", "1.2.3", "0x", "0x1", "1_0", "0x1_0p0", "ten", "1e+", "- 1"} {
		if v, ok := parseFloat([]byte(bad), 64); ok {
			t.Errorf("%q reads as %v", bad, v)
		}
	}
}
