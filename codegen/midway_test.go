package codegen

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// midway prints the program after every pass and gives the texts, in the order of the plane.
func midway(t *testing.T, format string) [][]byte {
	t.Helper()
	o := NewOptions()
	o.PrintAfterAll, o.DumpDir, o.PrintFormat = true, t.TempDir(), format
	var w Worker
	if _, err := w.Compile(context.Background(), activated(), &o, &neff.Buffer{}); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(o.DumpDir, "*."+format))
	if err != nil || len(names) != len(plane2) {
		t.Fatalf("%d dumps, %v", len(names), err)
	}
	slices.Sort(names)
	var out [][]byte
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// What is printed between passes goes on to the same bytes.
func TestMidwayRoundTrip(t *testing.T) {
	want, _ := compile(t, activated(), verified("trn2"))
	for _, format := range []string{"rir", "json"} {
		for i, text := range midway(t, format)[:len(plane2)-1] {
			p, err := Parse(text, "m."+format, "")
			if err != nil {
				t.Fatalf("after %s: %v", plane2[i], err)
			}
			o := verified("trn2")
			o.StartPass = plane2[i+1]
			if got, _ := compile(t, p, o); !bytes.Equal(got, want) {
				t.Errorf("%s after %s: other bytes", format, plane2[i])
			}
		}
	}
}

var number = regexp.MustCompile(`\d+`)

// Programs from the middle of the plane that were changed by hand: a package, or an error that does not blame rosmar.
func TestMidwayDamage(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 4
	}
	var w Worker
	r := rand.New(rand.NewPCG(3, 4))
	for _, format := range []string{"rir", "json"} {
		for i, text := range midway(t, format)[:len(plane2)-1] {
			for range rounds {
				d := damage(r, text)
				p, err := Parse(d, "m."+format, "")
				if err == nil {
					o := NewOptions()
					o.StartPass, o.MaxInstructions = plane2[i+1], 20000
					_, err = w.Compile(context.Background(), p, &o, &neff.Buffer{})
				}
				if err != nil && target.ClassOf(err) == target.Bug {
					t.Errorf("%s after %s: %.600v\n%s", format, plane2[i], err, difference(text, d))
				}
			}
		}
	}
}

// damage changes a number, drops or doubles a line, or swaps two.
func damage(r *rand.Rand, text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	k := r.IntN(len(lines))
	j := r.IntN(len(lines))
	switch r.IntN(8) {
	case 0:
		lines = slices.Delete(lines, k, k+1)
	case 1:
		lines = slices.Insert(lines, j, lines[k])
	case 2:
		lines[k], lines[j] = lines[j], lines[k]
	default:
		at := number.FindAllIndex(text, -1)
		for range 20 {
			p := at[r.IntN(len(at))]
			x, err := strconv.ParseInt(string(text[p[0]:p[1]]), 10, 64)
			if err != nil || p[1]-p[0] > 12 {
				continue
			}
			x = []int64{0, 1, x + 1, x - 1, x * 2, 128, 1 << 20, x + 64}[r.IntN(8)]
			return slices.Concat(text[:p[0]], strconv.AppendInt(nil, max(x, 0), 10), text[p[1]:])
		}
	}
	return bytes.Join(lines, nil)
}

// difference is the first line that differs, of both.
func difference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return "- " + string(x[i][:min(len(x[i]), 300)]) + "\n+ " + string(y[i][:min(len(y[i]), 300)])
		}
	}
	return "lengths differ"
}
