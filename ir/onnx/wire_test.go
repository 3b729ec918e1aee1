package onnx

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCursorFields(t *testing.T) {
	var b []byte
	b = putInt(b, 1, -5)
	b = putBytes(b, 2, "name")
	b = putFloat(b, 3, 1.5)
	b = putInts(b, 4, []int64{0, 1, 127, 128, -1, math.MaxInt64})
	b = putInt(b, 4, 7) // the same field unpacked
	b = binary.LittleEndian.AppendUint64(putKey(b, 5, wireFixed64), 9)
	var ints []int64
	c := cursor{b: b}
	got := map[uint32]any{}
	for c.next() {
		switch c.field {
		case 1:
			got[1] = c.int64()
		case 2:
			got[2] = string(c.bytes())
		case 3:
			got[3] = c.float()
		case 4:
			ints = c.ints(ints)
		default:
			c.skip()
		}
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	if got[1] != int64(-5) || got[2] != "name" || got[3] != float32(1.5) {
		t.Errorf("fields %v", got)
	}
	if want := []int64{0, 1, 127, 128, -1, math.MaxInt64, 7}; !slices.Equal(ints, want) {
		t.Errorf("ints %v, want %v", ints, want)
	}
}

func TestCursorRejects(t *testing.T) {
	group := func(depth int) []byte {
		b := bytes.Repeat(putKey(nil, 3, wireGroup), depth)
		return append(b, bytes.Repeat(putKey(nil, 3, wireEnd), depth)...)
	}
	for _, x := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"empty", nil, true},
		{"field 0", []byte{0, 0}, false},
		{"field number beyond 2^29", append(binary.AppendUvarint(nil, 1<<32), 0), false},
		{"wire type 6", []byte{1<<3 | 6}, false},
		{"number cut off", []byte{8, 0x80}, false},
		{"number of 11 bytes", append([]byte{8}, bytes.Repeat([]byte{0x80}, 11)...), false},
		{"length beyond the end", []byte{18, 5, 1, 2}, false},
		{"length of 2^63", append([]byte{18}, binary.AppendUvarint(nil, 1<<63)...), false},
		{"fixed32 cut off", []byte{1<<3 | wireFixed32, 1, 2, 3}, false},
		{"fixed64 cut off", []byte{1<<3 | wireFixed64, 1, 2, 3, 4, 5, 6, 7}, false},
		{"group", group(1), true},
		{"deep group", group(1_000_000), true},
		{"group not ended", putKey(nil, 3, wireGroup), false},
		{"group not begun", putKey(nil, 3, wireEnd), false},
	} {
		c := cursor{b: x.b}
		for c.next() {
			c.skip()
		}
		if (c.err == nil) != x.ok {
			t.Errorf("%s: error %v", x.name, c.err)
		}
	}
}

func TestCursorWrongWireType(t *testing.T) {
	for _, f := range []func(c *cursor){
		func(c *cursor) { c.int64() }, func(c *cursor) { c.float() }, func(c *cursor) { c.fixed(4, func([]byte) {}) },
	} {
		c := cursor{b: putBytes(nil, 1, "x")}
		c.next()
		if f(&c); c.err == nil {
			t.Error("a wrong wire type went through")
		}
	}
	c := cursor{b: putInt(nil, 1, 5)}
	c.next()
	if c.bytes(); c.err == nil {
		t.Error("a number went through as bytes")
	}
}

func TestCursorRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vals := rapid.SliceOf(rapid.Int64()).Draw(t, "vals")
		field := rapid.Uint32Range(1, 1<<29-1).Draw(t, "field")
		c := cursor{b: putInts(nil, field, vals)}
		if !c.next() || c.field != field {
			t.Fatalf("field %d", c.field)
		}
		if got := c.ints(nil); !slices.Equal(got, vals) || c.err != nil || c.at != len(c.b) {
			t.Fatalf("%v, want %v (%v)", got, vals, c.err)
		}
	})
}

func TestCursorAllocatesNothing(t *testing.T) {
	var b []byte
	for i := range 100 {
		b = putInt(putBytes(b, 2, "some text"), 3, int64(i))
	}
	n := testing.AllocsPerRun(10, func() {
		c := cursor{b: b}
		for c.next() {
			c.skip()
		}
		if c.err != nil {
			t.Fatal(c.err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}
