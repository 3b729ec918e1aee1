package plan

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPeakBuffers: where it is highest, who lives there, gaps counted out.
func TestPeakBuffers(t *testing.T) {
	p := &Problem{}
	p.Add("low", 0, 10, 4)
	p.Add("high", 2, 8, 6)
	p.Add("late", 6, 9, 3)
	gone := p.Add("gone", 0, 10, 5)
	p.SetGaps(gone, Gap{Lower: 3, Upper: 8})
	off := []int64{0, 12, 4, 7}
	r := FindPeak(p, off)
	got := fmt.Sprint(r.Peak, r.Moment, r.Load)
	for _, u := range r.Buffers {
		got += " " + p.Name(int(u))
	}
	// From 2 to 3 there are 4+6+5 bytes, from 6 to 8 only 4+6+3.
	if want := "18 2 15 low gone high"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r := FindPeak(&Problem{}, nil); r.Buffers != nil || r.Peak != 0 {
		t.Errorf("nothing live: %+v", r)
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, Result{Peak: 12, LowerBound: 9, Ratio: 12.0 / 9, Seconds: 1e-9, Optimal: true}); err != nil {
		t.Fatal(err)
	}
	const want = `{"peak":12,"lower_bound":9,"ratio":1.3333333333333333,"seconds":0.000000001,"optimal":true}` + "\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("not JSON")
	}
}

func TestSVG(t *testing.T) {
	p := &Problem{}
	p.Add("a<&>\x01\xff", 0, 4, 4)
	p.Add("b", 2, 12, 4)
	p.SetGaps(1, Gap{Lower: 4, Upper: 6}, Gap{Lower: 8, Upper: 9, Lo: 1, Hi: 2})
	p.Add("never", 3, 3, 9)
	var pl Planner
	r := planChecked(t, &pl, p, Options{})
	var out bytes.Buffer
	if err := WriteSVG(&out, p, r); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	const file = "testdata/small.svg"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the picture changed:\n%s", out.String())
	}
}
