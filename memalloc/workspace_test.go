package memalloc

import (
	"reflect"
	"testing"

	"github.com/rosmar-compiler/rosmar/arena"
)

// sliceBytes adds up what the slices in v hold, each array once, however deep; pointers and interfaces lead to what others own.
func sliceBytes(v reflect.Value, seen map[uintptr]bool) (n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			n += sliceBytes(v.Field(i), seen)
		}
	case reflect.Array:
		for i := range v.Len() {
			n += sliceBytes(v.Index(i), seen)
		}
	case reflect.Slice:
		if v.Cap() == 0 || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		n = v.Cap() * int(v.Type().Elem().Size())
		if k := v.Type().Elem().Kind(); k == reflect.Struct || k == reflect.Slice {
			for i := range v.Len() {
				n += sliceBytes(v.Index(i), seen)
			}
		}
	}
	return n
}

// The report forgets no table of a workspace that all allocators have used.
func TestReportForgetsNothing(t *testing.T) {
	var ws Workspace
	for _, c := range growthCases() {
		if _, err := c.run(c.make(t, 2000), &ws); err != nil {
			t.Fatal(err)
		}
	}
	p := chain(t, 2000, growthWidth)
	scanAll(t, p, &ws, Options{StripBytes: 8, SBBytes: 8000})
	if _, err := DRAM(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	p = loopChain(t, 200, 2, 20)
	if _, _, err := WithLoop(&p.m, p.f, &ws, Options{Partners: true}); err != nil {
		t.Fatal(err)
	}
	if err := CheckFits(&p.m, p.f, &ws, Options{}); err != nil {
		t.Fatal(err)
	}
	var r arena.Report
	ws.Report(&r)
	got, want := r.Total(), sliceBytes(reflect.ValueOf(&ws).Elem(), map[uintptr]bool{})
	t.Logf("%d bytes\n%s", want, r.String())
	if 1000*(want-got) > want || got > want {
		t.Errorf("%d bytes are reported of %d", got, want)
	}
}
