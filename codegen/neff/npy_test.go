package neff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// npyFile is a version 1.0 file as numpy writes it: the header padded with spaces to a multiple of 64.
func npyFile(dict string, data []byte) []byte {
	for (10+len(dict)+1)%64 != 0 {
		dict += " "
	}
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)+1), byte((len(dict)+1)>>8))
	return append(append(b, dict+"\n"...), data...)
}

func TestNPYBytes(t *testing.T) {
	for _, c := range []struct {
		a    Array
		dict string
	}{
		{Array{"<f4", []int64{2, 1}, make([]byte, 8)}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"},
		{Array{"<V2", []int64{3}, make([]byte, 6)}, "{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }"},
		{Array{"|u1", nil, []byte{7}}, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }"},
		{Array{"<i8", []int64{0, 5}, nil}, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 5), }"},
	} {
		got, err := AppendNPY(nil, c.a)
		if err != nil || !bytes.Equal(got, npyFile(c.dict, c.a.Data)) {
			t.Errorf("%s: %q %v", c.dict, got, err)
		}
		back, err := ParseNPY(got)
		if err != nil || back.Descr != c.a.Descr || !slices.Equal(back.Shape, c.a.Shape) || !bytes.Equal(back.Data, c.a.Data) {
			t.Errorf("%s: %+v %v", c.dict, back, err)
		}
	}
}

func TestNPYForms(t *testing.T) {
	ok := func(name string, b []byte, want Array) {
		t.Helper()
		if got, err := ParseNPY(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, want)
		}
	}
	ok("other order of keys", npyFile(`{"shape": (2L,), "descr": "<u1", "fortran_order": False}`, []byte{1, 2}), Array{"|u1", []int64{2}, []byte{1, 2}})
	// [[1 2 3] [4 5 6]] column by column.
	ok("fortran", npyFile("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }", []byte{1, 4, 2, 5, 3, 6}),
		Array{"|i1", []int64{2, 3}, []byte{1, 2, 3, 4, 5, 6}})
	v2 := npyFile("{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }", []byte{9})
	n := binary.LittleEndian.Uint16(v2[8:])
	v2 = append(append([]byte("\x93NUMPY\x02\x00"), byte(n), byte(n>>8), 0, 0), v2[10:]...)
	ok("version 2", v2, Array{"|i1", []int64{1}, []byte{9}})
	for _, c := range []struct{ name, dict, want string }{
		{"big endian", "{'descr': '>f4', 'fortran_order': False, 'shape': (0,), }", "\">f4\" is not supported"},
		{"record", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,), }", "npy:"},
		{"overflow", "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "larger than 2^50"},
		{"negative", "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", "negative dimension"},
		{"short", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", "needs 8 bytes, the file has 0"},
		{"no shape", "{'descr': '<f8', 'fortran_order': False}", "bad header"},
		{"twice", "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (0,)}", "bad header"},
		{"code", "__import__('os')", "bad header"},
	} {
		if _, err := ParseNPY(npyFile(c.dict, nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	whole := npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", make([]byte, 8))
	for n := range whole {
		if _, err := ParseNPY(whole[:n]); err == nil {
			t.Fatalf("prefix of %d bytes reads", n)
		}
	}
	for d := target.Dtype(0); d < target.NumDtypes; d++ {
		if s, ok := NPYDescr(d); !ok || npyItem[s] != d.Size() {
			t.Errorf("%s is %q of %d bytes, want %d", d, s, npyItem[s], d.Size())
		}
	}
}

func FuzzNPY(f *testing.F) {
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", make([]byte, 8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseNPY(b)
		if err != nil {
			return
		}
		again, err := AppendNPY(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseNPY(again)
		if err != nil || !bytes.Equal(back.Data, a.Data) || !slices.Equal(back.Shape, a.Shape) {
			t.Fatalf("%+v %v", back, err)
		}
	})
}

// drawDescs draws a legal list over the sample's definition.
func drawDescs(t *rapid.T, def *Def) []Desc {
	side := func(name string, row uint32, elems int, dt target.Dtype, read bool) Side {
		s := Side{Var: row, Dtype: dt, N: 1, Step: [4]int64{1}}
		size := def.Vars[row].Size
		run := elems
		for _, p := range []int{2, 3, 5} {
			if run%p == 0 && s.N < 4 && rapid.Bool().Draw(t, name+" split") {
				s.Size[s.N] = uint32(p)
				run /= p
				s.N++
			}
		}
		s.Size[0] = uint32(run * dt.Size())
		span := int64(s.Size[0])
		for i := 1; i < int(s.N); i++ {
			s.Step[i] = span + rapid.Int64Range(0, 64).Draw(t, name+" gap")
			if read && rapid.IntRange(0, 4).Draw(t, name+" repeat") == 0 {
				s.Step[i] = 0
			}
			span += s.Step[i] * int64(s.Size[i]-1)
		}
		s.Off = rapid.Int64Range(0, size-span).Draw(t, name+" off")
		return s
	}
	types := []target.Dtype{target.Uint8, target.BFloat16, target.Float32, target.Int32}
	var out []Desc
	id, run := uint32(1), 0
	queue := uint32(1)
	for range rapid.IntRange(0, 100).Draw(t, "descs") {
		if run == MaxBlock || rapid.Bool().Draw(t, "next block") {
			id, run = id+rapid.Uint32Range(1, 1000).Draw(t, "id"), 0
			queue = rapid.Uint32Range(1, uint32(len(def.Queues)-1)).Draw(t, "queue")
		}
		run++
		d := Desc{ID: id, Queue: queue, Op: DMAOp(rapid.IntRange(0, int(numDMAOps)-1).Draw(t, "op"))}
		if rapid.Bool().Draw(t, "completes") {
			d.Sem, d.SemInc = uint8(rapid.IntRange(1, 255).Draw(t, "sem")), uint8(rapid.IntRange(1, 255).Draw(t, "inc"))
		}
		n := 30 * rapid.IntRange(1, 4).Draw(t, "elems")
		from := rapid.SampledFrom(types).Draw(t, "from type")
		to := from
		if d.Op != DMACopy {
			to = rapid.SampledFrom(types).Draw(t, "to type")
		}
		d.From = side("from", rapid.SampledFrom([]uint32{1, 3, 5}).Draw(t, "from var"), n, from, true)
		d.To = side("to", rapid.SampledFrom([]uint32{1, 4, 5}).Draw(t, "to var"), n, to, false)
		out = append(out, d)
	}
	return out
}

// TestDescRoundTrip: any legal list survives its JSON, which is well-formed, in sorted keys, and of the announced size.
func TestDescRoundTrip(t *testing.T) {
	def := sample(t, 30).Def
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(target.Sequencers[:]).Draw(t, "engine")
		want := drawDescs(t, &def)
		if err := CheckBlocks(want, &def); err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if err := WriteEngine(&buf, e, want, &def); err != nil {
			t.Fatal(err)
		}
		canon := jsontext.Value(bytes.Clone(buf.Bytes()))
		if err := canon.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		flat := bytes.ReplaceAll(buf.Bytes(), []byte("\n"), nil)
		if !bytes.Equal(flat, canon) {
			t.Fatalf("not in sorted keys:\n%s\n%s", flat, canon)
		}
		var got []Desc
		if err := ReadEngine(&buf, e, &def, func(d *Desc) error { got = append(got, *d); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d descriptors, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("descriptor %d:\n%+v\n%+v", i, got[i], want[i])
			}
		}
	})
}

func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(Desc{}); n != 160 {
		t.Errorf("Desc is %d bytes", n)
	}
	if n := unsafe.Sizeof(Side{}); n != 72 {
		t.Errorf("Side is %d bytes", n)
	}
}

// TestDescAllocs: the reader allocates for its tables, not for descriptors.
func TestDescAllocs(t *testing.T) {
	count := func(n int) float64 {
		p := many(t, n)
		var buf bytes.Buffer
		if err := WriteEngine(&buf, target.EnginePE, p.Engine(target.EnginePE).Descs, &p.Def); err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(5, func() {
			if err := ReadEngine(bytes.NewReader(buf.Bytes()), target.EnginePE, &p.Def, func(*Desc) error { return nil }); err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := count(100), count(1100); b > a+20 {
		t.Errorf("%v allocations for 100 descriptors, %v for 1100", a, b)
	}
}

// TestConstOnce: equal contents are stored once, and the order of the constants does not reach the file.
func TestConstOnce(t *testing.T) {
	build := func(order []int) []byte {
		p := sample(t, 30)
		vars := make([]Var, 3)
		for _, i := range order {
			vars[i] = Var{Name: fmt.Sprintf("c%d", i), ID: uint32(20 + i)}
			if err := p.AddConst(&vars[i], Array{"|u1", []int64{4}, []byte{1, 2, 3, byte(i / 2)}}); err != nil {
				t.Fatal(err)
			}
		}
		p.Def.Vars = append(p.Def.Vars, vars...)
		if len(p.Files) != 4 { // the sample's two, and two for three constants
			t.Errorf("%d files", len(p.Files))
		}
		return write(t, p, false)
	}
	if !bytes.Equal(build([]int{0, 1, 2}), build([]int{2, 1, 0})) {
		t.Error("the order of constants shows in the file")
	}
}
