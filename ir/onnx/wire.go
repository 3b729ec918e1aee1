package onnx

import (
	"encoding/binary"
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Wire types of the protobuf encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireGroup   = 3
	wireEnd     = 4
	wireFixed32 = 5
)

// cursor walks the fields of one message. It never reads outside b, allocates nothing and keeps the first error: after it,
// next returns false and every getter zero, so that a message's loop needs one check at its end.
//
//	for c.next() {
//		switch c.field {
//		case 1:
//			name = c.bytes()
//		default:
//			c.skip()
//		}
//	}
//	if c.err != nil …
type cursor struct {
	b     []byte
	at    int // next byte of b
	base  int // offset of b in the file, for messages
	field uint32
	wire  uint8
	err   error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = target.Errorf(target.User, "onnx: byte %d: "+format, append([]any{c.base + c.at}, args...)...)
	}
	c.at = len(c.b)
}

// next reads the key of the following field, false at the end of the message or after an error.
func (c *cursor) next() bool {
	if c.err != nil || c.at >= len(c.b) {
		return false
	}
	key := c.varint()
	if c.err != nil {
		return false
	}
	field, wire := key>>3, uint8(key&7)
	if field == 0 || field > 1<<29-1 {
		c.fail("field number %d is outside 1 to 2^29-1", field)
		return false
	}
	if wire > wireFixed32 {
		c.fail("field %d has wire type %d, which does not exist", field, wire)
		return false
	}
	c.field, c.wire = uint32(field), wire
	return true
}

// varint reads a base-128 number of at most ten bytes.
func (c *cursor) varint() uint64 {
	v, n := binary.Uvarint(c.b[c.at:])
	if n <= 0 {
		if n == 0 {
			c.fail("the message ends inside a number")
		} else {
			c.fail("a number has more than 64 bits")
		}
		return 0
	}
	c.at += n
	return v
}

func (c *cursor) is(wire uint8) bool {
	if c.wire != wire {
		c.fail("field %d has wire type %d, expected %d", c.field, c.wire, wire)
		return false
	}
	return true
}

// int64 is the value of a varint field.
func (c *cursor) int64() int64 {
	if !c.is(wireVarint) {
		return 0
	}
	return int64(c.varint())
}

// int32 is the value of a varint field that must fit 32 bits.
func (c *cursor) int32() int32 {
	v := c.int64()
	if v != int64(int32(v)) {
		c.fail("field %d is %d, which does not fit 32 bits", c.field, v)
		return 0
	}
	return int32(v)
}

// float is the value of a 32-bit field.
func (c *cursor) float() float32 {
	if !c.is(wireFixed32) {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(c.take(4, 4)))
}

// take returns the next n bytes, or zeros of size spare when they are not there.
func (c *cursor) take(n uint64, spare int) []byte {
	if n > uint64(len(c.b)-c.at) {
		c.fail("field %d wants %d bytes and %d are left", c.field, n, len(c.b)-c.at)
		return make([]byte, spare)
	}
	s := c.b[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return s
}

// bytes is the payload of a length-delimited field. It is a slice of the file.
func (c *cursor) bytes() []byte {
	if !c.is(wireBytes) {
		return nil
	}
	n := c.varint()
	if c.err != nil {
		return nil
	}
	return c.take(n, 0)
}

// span is the payload of a length-delimited field as a range of the file.
func (c *cursor) span() arena.Span {
	b := c.bytes()
	if len(b) == 0 {
		return arena.Span{}
	}
	return arena.Span{Off: uint32(c.base + c.at - len(b)), Len: uint32(len(b))}
}

// message is a cursor over the embedded message of a length-delimited field.
func (c *cursor) message() cursor {
	b := c.bytes()
	return cursor{b: b, base: c.base + c.at - len(b), err: c.err}
}

// join takes over the error of a sub-message and reports whether all is well.
func (c *cursor) join(sub *cursor) bool {
	if c.err == nil && sub.err != nil {
		c.err = sub.err
		c.at = len(c.b)
	}
	return c.err == nil
}

// ints appends a repeated integer field, packed or not, to dst. A packed number takes at least a byte, so dst never grows by
// more than the bytes that are there.
func (c *cursor) ints(dst []int64) []int64 {
	if c.wire == wireVarint {
		return append(dst, c.int64())
	}
	sub := c.message()
	for sub.at < len(sub.b) && sub.err == nil {
		dst = append(dst, int64(sub.varint()))
	}
	c.join(&sub)
	return dst
}

// fixed calls f with each little-endian number of a repeated 4- or 8-byte field, packed or not.
func (c *cursor) fixed(size int, f func([]byte)) {
	if c.wire == wireFixed32 && size == 4 || c.wire == wireFixed64 && size == 8 {
		f(c.take(uint64(size), size))
		return
	}
	b := c.bytes()
	if len(b)%size != 0 {
		c.fail("field %d has %d bytes, not a multiple of %d", c.field, len(b), size)
		return
	}
	for ; len(b) > 0; b = b[size:] {
		f(b[:size])
	}
}

// skip passes over the value of the field. Groups, which no ONNX message uses, may nest: their depth is counted, not recursed.
func (c *cursor) skip() {
	depth := 0
	for {
		switch c.wire {
		case wireVarint:
			c.varint()
		case wireFixed64:
			c.take(8, 0)
		case wireFixed32:
			c.take(4, 0)
		case wireBytes:
			c.bytes()
		case wireGroup:
			depth++
		case wireEnd:
			depth--
			if depth < 0 {
				c.fail("field %d ends a group that was not begun", c.field)
			}
		}
		if c.err != nil || depth == 0 {
			return
		}
		if !c.next() {
			c.fail("the message ends inside a group")
			return
		}
	}
}

// Encoding, for the writers. Each appends one field to dst.

func putKey(dst []byte, field uint32, wire uint8) []byte {
	return binary.AppendUvarint(dst, uint64(field)<<3|uint64(wire))
}

func putInt(dst []byte, field uint32, v int64) []byte {
	return binary.AppendUvarint(putKey(dst, field, wireVarint), uint64(v))
}

func putFloat(dst []byte, field uint32, v float32) []byte {
	return binary.LittleEndian.AppendUint32(putKey(dst, field, wireFixed32), math.Float32bits(v))
}

func putBytes[T ~string | ~[]byte](dst []byte, field uint32, v T) []byte {
	dst = binary.AppendUvarint(putKey(dst, field, wireBytes), uint64(len(v)))
	return append(dst, v...)
}

func putInts(dst []byte, field uint32, vals []int64) []byte {
	n := 0
	for _, v := range vals {
		n += sizeVarint(uint64(v))
	}
	dst = binary.AppendUvarint(putKey(dst, field, wireBytes), uint64(n))
	for _, v := range vals {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	return dst
}

func sizeVarint(v uint64) int {
	n := 1
	for ; v >= 128; v >>= 7 {
		n++
	}
	return n
}
