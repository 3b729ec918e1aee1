package codegen

import (
	"bytes"
	"context"
	"slices"
	"testing"
)

// Seed 47: lsa puts linear scan where PSUM is coloured, drops the colouring of PSUM and SBUF, and leaves the rest as it is.
func TestSeed47LinearScanInThePlane(t *testing.T) {
	for _, level := range []int{-1, 2} {
		o := NewOptions()
		o.OptLevel, o.Allocator = level, "lsa"
		got, err := o.Passes()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, n := range plane2 {
			switch n {
			case "coloring_allocator_psum":
				n = "linear_scan_allocator"
			case "coloring_allocator_sb":
				continue
			}
			want = append(want, n)
		}
		if !slices.Equal(got, want) || slices.Contains(plane2, "linear_scan_allocator") {
			t.Errorf("level %d: %v", level, got)
		}
		at := map[string]int{}
		for i, n := range got {
			at[n] = i + 1
		}
		for _, r := range rules {
			if a, b := at[r.Before], at[r.After]; a != 0 && b != 0 && a >= b {
				t.Errorf("%s must come before %s: %s", r.Before, r.After, r.Because)
			}
		}
	}
	// An explicit list is taken as it is, and colouring is the default.
	o := NewOptions()
	o.Allocator, o.Pass = "lsa", []string{"coloring_allocator_psum"}
	if got, err := o.Passes(); err != nil || !slices.Equal(got, o.Pass) {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"", "coloring"} {
		o := NewOptions()
		o.Allocator = name
		if got, err := o.Passes(); err != nil || !slices.Equal(got, plane2) {
			t.Errorf("allocator %q: %v, %v", name, got, err)
		}
	}
}

// The published example in tiles, whose placements of its own linear scan leaves where they are.
func TestLinearScanOfTiles(t *testing.T) {
	for _, tg := range targets {
		src := bytes.Replace(reluJSON, []byte(`"gen3"`), []byte(map[string]string{"trn1": `"sunda"`, "trn2": `"gen3"`, "trn3": `"core_v4"`}[tg]), 1)
		p, err := Parse(src, "relu.json", "")
		if err != nil {
			t.Fatal(err)
		}
		o := verified(tg)
		o.Allocator, o.Simulate = "lsa", true
		pkg, _ := compile(t, p, o)
		in, want := reluData()
		res, err := Execute(context.Background(), pkg, &RunOptions{Inputs: in, Expect: want, Seeds: 5, Rtol: 1e-5, Atol: 1e-5})
		if err != nil {
			t.Fatal(err)
		}
		if f := res.Failed(); f != nil {
			t.Errorf("%s: output %s", tg, f.Diff)
		}
	}
}
