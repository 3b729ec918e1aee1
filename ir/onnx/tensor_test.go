package onnx

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

func TestTensorRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kinds []graph.Dtype
		for _, d := range dtypes {
			if d != graph.DtypeNone && d != graph.String {
				kinds = append(kinds, d)
			}
		}
		d := rapid.SampledFrom(kinds).Draw(t, "dtype")
		dims := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 4).Draw(t, "dims")
		n, _ := elements(dims)
		data := make([]byte, n*int64(d.Size()))
		for i := range data {
			b := rapid.Byte().Draw(t, "b")
			switch bits := d.Bits(); {
			case d == graph.Bool:
				b &= 1
			case bits < 8 && d.Signed():
				b = byte(int8(b<<(8-bits)) >> (8 - bits))
			case bits < 8:
				b &= 1<<bits - 1
			}
			data[i] = b
		}
		in := Tensor{Name: rapid.String().Draw(t, "name"), Dtype: d, Dims: dims, Data: data}
		var w bytes.Buffer
		if err := WriteTensor(&w, in); err != nil {
			t.Fatal(err)
		}
		out, err := ReadTensor(w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if out.Name != in.Name || out.Dtype != d || !slices.Equal(out.Dims, dims) || !bytes.Equal(out.Data, data) {
			t.Fatalf("%+v came back as %+v", in, out)
		}
	})
}

func TestTensorTypedData(t *testing.T) {
	head := func(code int64, dims ...int64) []byte { return putInt(putInts(nil, 1, dims), 2, code) }
	floats := func(field uint32, b []byte, vals ...float32) []byte {
		var p []byte
		for _, v := range vals {
			p = binary.LittleEndian.AppendUint32(p, math.Float32bits(v))
		}
		return putBytes(b, field, p)
	}
	doubles := func(b []byte, vals ...float64) []byte {
		var p []byte
		for _, v := range vals {
			p = binary.LittleEndian.AppendUint64(p, math.Float64bits(v))
		}
		return putBytes(b, 10, p)
	}
	for _, x := range []struct {
		name string
		msg  []byte
		want []byte
	}{
		{"float", floats(4, head(1, 2), 1, -2), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{"float, one a field", putFloat(putFloat(head(1, 2), 4, 1), 4, -2), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{"int32", putInts(head(6, 2), 5, []int64{1, -1}), []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}},
		{"int64", putInts(head(7, 1), 7, []int64{-2}), []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{"uint8", putInts(head(2, 3), 5, []int64{1, 2, 255}), []byte{1, 2, 255}},
		{"bool", putInts(head(9, 2), 5, []int64{1, 0}), []byte{1, 0}},
		{"float16", putInts(head(10, 1), 5, []int64{0x3c00}), []byte{0, 0x3c}},
		{"bfloat16", putInts(head(16, 1), 5, []int64{0x3f80}), []byte{0x80, 0x3f}},
		{"uint64", putInts(head(13, 1), 11, []int64{-1}), bytes.Repeat([]byte{255}, 8)},
		{"uint32", putInts(head(12, 1), 11, []int64{5}), []byte{5, 0, 0, 0}},
		{"double", doubles(head(11, 1), 1), []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{"complex64", floats(4, head(14, 1), 1, 2), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
		{"int4", putInts(head(22, 3), 5, []int64{0x8f, 0x07}), []byte{0xff, 0xf8, 7}},
		{"uint4 raw", putBytes(head(21, 3), 9, []byte{0x21, 0x0f}), []byte{1, 2, 15}},
		{"int2 raw", putBytes(head(26, 4), 9, []byte{0xe4}), []byte{0, 1, 0xfe, 0xff}},
		{"empty", head(1, 0), []byte{}},
	} {
		got, err := ReadTensor(x.msg)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
		} else if !bytes.Equal(got.Data, x.want) {
			t.Errorf("%s: %x, want %x", x.name, got.Data, x.want)
		}
	}
}

func TestTensorRejects(t *testing.T) {
	head := func(code int64, dims ...int64) []byte { return putInt(putInts(nil, 1, dims), 2, code) }
	for _, x := range []struct {
		name, part string
		class      target.Class
		msg        []byte
	}{
		{"raw too short", "raw_data has 3 bytes", target.User, putBytes(head(1, 1), 9, []byte{1, 2, 3})},
		{"no data", "cannot hold", target.User, head(1, 1<<40)},
		{"overflow", "2^46", target.User, putBytes(head(1, 1<<40, 1<<40), 9, []byte{1})},
		{"negative dim", "negative", target.User, head(1, -1)},
		{"typed too short", "1 elements, dims [2] need 2", target.User, putInts(head(6, 2), 5, []int64{1})},
		{"string", "string", target.Unsupported, putBytes(head(8, 1), 6, "x")},
		{"unknown type", "element type 99", target.Unsupported, head(99, 1)},
		{"undefined type", "element type 0", target.Unsupported, head(0, 1)},
		{"ragged floats", "not a multiple", target.User, putBytes(head(1, 1), 4, []byte{1, 2, 3})},
		{"external", "another file", target.User, putInt(head(1, 1), 14, 1)},
	} {
		_, err := ReadTensor(x.msg)
		if err == nil || target.ClassOf(err) != x.class || !strings.Contains(err.Error(), x.part) {
			t.Errorf("%s: %v (class %v)", x.name, err, target.ClassOf(err))
		}
	}
}
