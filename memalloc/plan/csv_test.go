package plan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

func TestReadCSV(t *testing.T) {
	const all = "\xef\xbb\xbfgaps, buffer ,size,end,begin,hint,offset,alignment\r\n" +
		"3-4 8-9@16:32,a b,64,19,0,,,\r\n" +
		",\"q,8,5,5,128,256,16\r\n" +
		"7-8 2-3,third,4,9,1,-1,-1,2\r\n" +
		"\r\n" +
		"not read\n"
	p, err := ReadCSV([]byte(all))
	if err != nil {
		t.Fatal(err)
	}
	if p.Unread() != 5 {
		t.Errorf("unread from line %d, want 5", p.Unread())
	}
	got := ""
	for i := range p.Size {
		got += fmt.Sprintf("%s [%d %d) %d align %d hint %d fixed %d %v\n", p.Name(i), p.Lower[i], p.Upper[i], p.Size[i], p.Align[i], p.Hint[i], p.Fixed[i], p.gaps(i))
	}
	want := `a b [0 20) 64 align 1 hint -1 fixed -1 [{3 5 0 0} {8 10 16 32}]
"q [5 6) 8 align 16 hint 128 fixed 256 []
third [1 10) 4 align 2 hint -1 fixed -1 [{2 4 0 0} {7 9 0 0}]
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var out bytes.Buffer
	if err := WriteOffsets(&out, []byte(all), []int64{0, 256, 64}); err != nil {
		t.Fatal(err)
	}
	wantOut := `gaps, buffer ,size,end,begin,hint,offset,alignment
3-4 8-9@16:32,a b,64,19,0,,0,
,"q,8,5,5,128,256,16
7-8 2-3,third,4,9,1,-1,64,2
`
	if out.String() != wantOut {
		t.Errorf("written\n%swant\n%s", out.String(), wantOut)
	}
	if err := WriteOffsets(&out, []byte(all), []int64{0, 256}); err == nil {
		t.Error("too few offsets were written")
	}
}

// TestOtherColumns: columns that are not ours are named and copied, and an offset column is added where there is none.
func TestOtherColumns(t *testing.T) {
	const text = "\xef\xbb\xbf,id,note,lower,upper, size,note\r\n1,a,\"x\",0,4, 8,\r\n,b,,2,6,8,y z\r\n"
	p, err := ReadCSV([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%q", p.Unknown()); got != `["" "note" "note"]` || p.Len() != 2 || p.Size[1] != 8 {
		t.Errorf("unknown %s, %d buffers", got, p.Len())
	}
	var out bytes.Buffer
	if err := WriteOffsets(&out, []byte(text), []int64{8, 0}); err != nil {
		t.Fatal(err)
	}
	const want = ",id,note,lower,upper, size,note,offset\n1,a,\"x\",0,4, 8,,8\n,b,,2,6,8,y z,0\n"
	if out.String() != want {
		t.Errorf("written %q, want %q", out.String(), want)
	}
}

func TestReadCSVErrors(t *testing.T) {
	const head = "id,lower,upper,size,alignment,hint,gaps,offset\n"
	for _, c := range []struct{ in, want string }{
		{"", "1:1: no header"},
		{"\n", "1:1: no header"},
		{"id,lower,upper\n", `1:1: no column "size" in the header "id,lower,upper"; needed are`},
		{"id,lower,upper,size\n" + strings.Repeat("n", 1000) + ",0,0,1\n", `2:1004: buffer "` + strings.Repeat("n", 60) + `": lower is 0 and so`},
		{"id;lower;upper;size\n", `1:1: no column "id" in the header "id;lower;upper;size"`},
		{"\xff\xfei\x00d\x00,\x00", `1:1: no column "id" in the header "\xff\xfei\x00d\x00,\x00"; needed are id, lower, upper (or end) and size, separated by commas, in ASCII`},
		{"id,lower,upper,size\na,-9223372036854775808,1,1\n", `2:3: buffer "a": lower is -9223372036854775808, must be 0 to`},
		{"id,lower,upper,size\na,-9223372036854775809,1,1\n", `2:3: "-9223372036854775809" is not a whole number of 64 bits`},
		{"id,lower,upper,size,start\n", `1:21: column "start" is the second one`},
		{"id,lower,upper,end,size\n", `1:16: column "end" is the second one`},
		{"id,lower,upper,size\na,1,2,0\n", `2:7: buffer "a": size is 0`},
		{"id,lower,upper,size\na,2,2,1\n", `2:5: buffer "a": lower is 2 and so is upper`},
		{"id,lower,end,size\na,3,1,3\n", `2:5: buffer "a": upper is 2, before lower 3`},
		{"id,lower,upper,size\na,1,2\n", "2:6: 3 fields where the header has 4"},
		{"id,lower,upper,size\na,1,2,3,4\n", "2:9: more fields than the 4 of the header"},
		{"id,lower,upper,size\na\rb,1,2,3\n", "2:1: carriage return"},
		{"id,lower,upper,size\na,1,2,\n", `2:7: "" is not a whole number`},
		{"id,lower,upper,size\na,x,2,3\n", `2:3: "x" is not a whole number`},
		{"id,lower,upper,size\na,1,2,9223372036854775808\n", `2:7: "9223372036854775808" is not a whole number`},
		{"id,lower,upper,size\na,1,2,1e3\n", `2:7: "1e3" is not`},
		{"id,lower,upper,size\na,-1,2,3\n", `2:3: buffer "a": lower is -1`},
		{"id,lower,upper,size\na,3,2,3\n", `2:5: buffer "a": upper is 2, before lower 3`},
		{"id,lower,upper,size\na,1,2,-3\n", `2:7: buffer "a": size is -3`},
		{"id,lower,upper,size\na,1,9223372036854775807,3\n", `2:5: buffer "a": upper is`},
		{"id,lower,end,size\na,1,9223372036854775807,3\n", `2:5: buffer "a": upper is`},
		{"id,lower,upper,size\na,1,2,3\nb,1,2,3\na,1,2,3\n", `4:1: buffer "a" was already given at line 2`},
		{"id,lower,upper,size\na,1,2,1152921504606846975\nb,1,2,3\n", `3:7: buffer "b": sizes and alignments up to it sum to`},
		{head + "a,1,2,3,0,,,\n", `2:9: buffer "a": alignment is 0`},
		{head + "a,1,2,3,1,-2,,\n", `2:11: buffer "a": hint is -2`},
		{head + "a,1,2,3,4,,,6\n", `2:13: buffer "a": offset is 6, not a multiple of the alignment 4`},
		{head + "a,1,9,3,1,,5,\n", `2:12: "5" is not a gap`},
		{head + "a,1,9,3,1,,2-3 4-5@1,\n", `2:16: "4-5@1" is not a gap`},
		{head + "a,1,9,3,1,,4-4,\n", `2:12: buffer "a": gap 4-4 is empty`},
		{head + "a,1,9,3,1,,4-10,\n", `2:12: buffer "a": gap 4-10 leaves the lifetime [1, 9)`},
		{head + "a,1,9,3,1,,4-6 5-7,\n", `2:12: buffer "a": gap 5-7 overlaps one that ends at 6`},
		{head + "a,1,9,3,1,,4-6@2:4,\n", `2:12: buffer "a": gap 4-6 occupies the bytes 2:4 of a buffer of 3`},
		{head + "a,1,9,3,1,,4-6@2:1,\n", `2:12: buffer "a": gap 4-6 occupies the bytes 2:1`},
	} {
		_, err := ReadCSV([]byte(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.in, err, c.want)
		}
	}
	_, err := ReadCSV([]byte("id,lower,upper,size\na,1,2,1152921504606846976\nb,0,1,1\n"))
	if target.ClassOf(err) != target.Limit {
		t.Errorf("sizes beyond the limit are class %v", target.ClassOf(err))
	}
}

func TestWriteCSVByHand(t *testing.T) {
	p := &Problem{}
	p.Add("x", 0, 4, 8)
	i := p.Add("y", 2, 9, 8)
	p.Align[i] = 8
	p.SetGaps(i, Gap{Lower: 5, Upper: 6}, Gap{Lower: 3, Upper: 4, Lo: 2, Hi: 4})
	var out bytes.Buffer
	if err := WriteCSV(&out, p, []int64{8, 0}); err != nil {
		t.Fatal(err)
	}
	const want = "id,lower,upper,size,alignment,gaps,offset\nx,0,4,8,1,,8\ny,2,9,8,8,3-4@2:4 5-6,0\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := WriteCSV(&out, p, []int64{8}); err == nil {
		t.Error("too few offsets were written")
	}
	p.Add("a,b", 0, 1, 1)
	if err := WriteCSV(&out, p, []int64{8, 0, 0}); err == nil || !strings.Contains(err.Error(), `"a,b"`) {
		t.Errorf("a name with a comma: error %v", err)
	}
}

// FuzzReadCSV: no text makes the reader panic; what it takes is valid, plans, and comes back from its own output.
func FuzzReadCSV(f *testing.F) {
	for _, s := range []string{
		"id,lower,upper,size\na,0,3,4\nb,3,9,4\n",
		"buffer,start,end,size,alignment,hint,gaps,offset\na,0,3,4,2,6,1-2,\nb,3,9,4,1,,4-5@1:2 7-8,8\n",
		"size,upper,lower,buffer_id\r\n1,2,3,4\r\n",
		"id,lower,upper,size\na,0,1,1152921504606846975\n",
		"id,lower,upper,size,gaps\na,0,9,4,9-1 -1--1@:\n",
		"id,lower,upper,size,gaps,offset\na,0,1,1,,\nb,0,8,1,0-8,1\n",
		",,,,\n", "id,id\n", "\xef\xbb\xbf", "id,lower,upper,size\n\n\n",
	} {
		f.Add([]byte(s))
	}
	var pl Planner
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadCSV(data)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("read but not valid: %v", err)
		}
		r, err := pl.Plan(p, Options{Mode: Improve, Work: 100_000})
		if err != nil {
			if target.ClassOf(err) == target.Bug {
				t.Fatal(err)
			}
			return
		}
		if peak, err := Check(p, r.Offsets, 0); err != nil || peak != r.Peak {
			t.Fatalf("peak %d checked as %d: %v", r.Peak, peak, err)
		}
		var out, svg bytes.Buffer
		for _, write := range []func() error{
			func() error { return WriteOffsets(&out, data, r.Offsets) },
			func() error { return WriteCSV(&out, p, r.Offsets) },
		} {
			out.Reset()
			if err := write(); err != nil {
				t.Fatal(err)
			}
			q, err := ReadCSV(out.Bytes())
			if err != nil || q.Len() != p.Len() {
				t.Fatalf("%d rows came back as %v: %v\n%s", p.Len(), q, err, out.Bytes())
			}
			for i := range p.Size {
				if q.Fixed[i] != r.Offsets[i] || q.Lower[i] != p.Lower[i] || q.Upper[i] != p.Upper[i] || q.Size[i] != p.Size[i] ||
					q.Align[i] != p.Align[i] || q.Hint[i] != p.Hint[i] || q.Name(i) != p.Name(i) || fmt.Sprint(q.gaps(i)) != fmt.Sprint(p.gaps(i)) {
					t.Fatalf("row %d changed:\n%s", i, out.Bytes())
				}
			}
		}
		if err := WriteSVG(&svg, p, r); err != nil || !utf8.Valid(svg.Bytes()) {
			t.Fatalf("picture: %v", err)
		}
	})
}
