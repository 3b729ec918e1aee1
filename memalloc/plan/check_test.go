package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCheckAgainstPairs: the sweep finds a clash exactly when comparing all pairs does.
func TestCheckAgainstPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 8, true)
		off := make([]int64, p.Len())
		for i := range off {
			p.Align[i], p.Fixed[i] = 1, None
			off[i] = int64(rapid.IntRange(0, 24).Draw(t, "at"))
		}
		_, err := Check(p, off, 0)
		if clash := slowClash(p, off); clash != (err != nil) {
			t.Fatalf("clash %t, but Check says %v at %v\n%s", clash, err, off, dump(p))
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	p := &Problem{}
	p.Add("a", 0, 4, 8)
	p.Add("b", 3, 6, 8)
	p.Add("c", 4, 9, 8)
	p.Align[2], p.Fixed[1] = 4, 8
	for _, c := range []struct {
		off      []int64
		capacity int64
		want     string
	}{
		{[]int64{0, 8, 0}, 16, ""},
		{[]int64{0, 8, 0}, 0, ""},
		{[]int64{0, 8, 0}, 15, `"b": [8, 16) ends beyond the capacity 15`},
		{[]int64{-1, 8, 0}, 16, `"a": offset -1 is out of range`},
		{[]int64{0, 9, 0}, 0, `"b": offset 9 where 8 is fixed`},
		{[]int64{0, 8, 2}, 0, `"c": offset 2 is not a multiple of the alignment 4`},
		{[]int64{1, 8, 0}, 0, `"a" [1, 9) and "b" [8, 16) share bytes at moment 3`},
		{[]int64{16, 8, 12}, 0, `"b" [8, 16) and "c" [12, 20) share bytes at moment 4`},
		{[]int64{0, 8}, 0, "2 offsets for 3 buffers"},
	} {
		_, err := Check(p, c.off, c.capacity)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v in %d: %v, want %q", c.off, c.capacity, err, c.want)
		}
	}
}

func TestRankSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300_000).Draw(t, "n")
		var s rankSet
		s.reset(n)
		in := map[int]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			k := rapid.IntRange(0, n-1).Draw(t, "k")
			if in[k] = !in[k]; in[k] {
				s.add(k)
			} else {
				s.remove(k)
			}
			q := rapid.IntRange(0, n-1).Draw(t, "q")
			below, above := -1, -1
			for x, is := range in {
				if is && x < q && x > below {
					below = x
				}
				if is && x > q && (above < 0 || x < above) {
					above = x
				}
			}
			if s.below(q) != below || s.above(q) != above {
				t.Fatalf("around %d: %d and %d, want %d and %d", q, s.below(q), s.above(q), below, above)
			}
		}
	})
}
