package hlo

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// TestFloatCodes takes every code of the small formats to a number and back, and checks that numbers between two neighbours round to
// the nearer one, ties to the even code.
func TestFloatCodes(t *testing.T) {
	for d, f := range floatFormats {
		if f.kind == 0 || f.man > 10 {
			continue
		}
		dt := graph.Dtype(d)
		for code := range uint64(1) << dt.Bits() {
			v := f.decode(code)
			got := f.encode(v)
			if v != v {
				if back := f.decode(got); back == back {
					t.Errorf("%v: NaN %#x becomes %v", dt, code, back)
				}
				continue
			}
			if got != code {
				t.Errorf("%v: code %#x is %v, which encodes to %#x", dt, code, v, got)
			}
			next := f.decode(code + 1)
			if code+1 >= uint64(1)<<(dt.Bits()-1) || next != next || math.IsInf(next, 0) || math.IsInf(v, 0) || f.kind == kindPower {
				continue
			}
			mid := (v + next) / 2
			even := code + code&1
			for _, c := range []struct {
				x    float64
				want uint64
			}{{mid, even}, {math.Nextafter(mid, v), code}, {math.Nextafter(mid, next), code + 1}} {
				if got := f.encode(c.x); got != c.want {
					t.Errorf("%v: %v between codes %#x and %#x encodes to %#x, want %#x", dt, c.x, code, code+1, got, c.want)
				}
			}
		}
	}
	f32 := floatFormats[graph.F32]
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100000 {
		bits := rng.Uint32()
		if v := math.Float32frombits(bits); v == v {
			if got := f32.encode(float64(v)); got != uint64(bits) {
				t.Fatalf("f32 %#x encodes to %#x", bits, got)
			}
			if got := f32.decode(uint64(bits)); got != float64(v) {
				t.Fatalf("f32 %#x decodes to %v, want %v", bits, got, v)
			}
		}
		x := math.Float64frombits(rng.Uint64())
		if x == x && f32.encode(x) != uint64(math.Float32bits(float32(x))) {
			t.Fatalf("%v rounds to %#x, want %#x", x, f32.encode(x), math.Float32bits(float32(x)))
		}
	}
}

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
