package neff

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Array is the content of a .npy file: little-endian elements in C order.
//
// Descr is numpy's type string. bfloat16 is written "<V2" and the one-byte floats "|V1", as numpy does for types that it
// does not know: the bytes are raw, and a reader must be told the type.
type Array struct {
	Descr string
	Shape []int64
	Data  []byte
}

// npyItem is the bytes of an element by type string.
var npyItem = map[string]int{
	"|b1": 1, "|u1": 1, "|i1": 1, "|V1": 1, "<u2": 2, "<i2": 2, "<f2": 2, "<V2": 2, "|V2": 2, "<u4": 4, "<i4": 4, "<f4": 4,
	"<V4": 4, "|V4": 4, "<u8": 8, "<i8": 8, "<f8": 8,
}

// NPYDescr is numpy's type string of an element type.
func NPYDescr(d target.Dtype) (string, bool) {
	switch d {
	case target.Uint8:
		return "|u1", true
	case target.Int8:
		return "|i1", true
	case target.Uint16:
		return "<u2", true
	case target.Int16:
		return "<i2", true
	case target.Float16:
		return "<f2", true
	case target.BFloat16, target.Float4E2M1x4:
		return "<V2", true
	case target.Uint32:
		return "<u4", true
	case target.Int32:
		return "<i4", true
	case target.Float32, target.Float32R:
		return "<f4", true
	case target.Uint64:
		return "<u8", true
	case target.Int64:
		return "<i8", true
	case target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E5, target.Float8E8M0:
		return "|V1", true
	case target.Float8E4M3FNx4, target.Float8E5M2x4:
		return "<V4", true
	}
	return "", false
}

const npyMagic = "\x93NUMPY"

// AppendNPY appends a version 1.0 file.
func AppendNPY(dst []byte, a Array) ([]byte, error) {
	size, err := a.check()
	if err != nil {
		return nil, err
	}
	if size != int64(len(a.Data)) {
		return nil, target.Errorf(target.Bug, "npy: %s of shape %v needs %d bytes, has %d", a.Descr, a.Shape, size, len(a.Data))
	}
	// The header is padded so that the data starts at a multiple of 64.
	dst = slices.Grow(dst, 192+20*len(a.Shape)+len(a.Data))
	start := len(dst)
	dst = append(dst, npyMagic...)
	dst = append(dst, 1, 0, 0, 0)
	dst = append(dst, "{'descr': '"...)
	dst = append(dst, a.Descr...)
	dst = append(dst, "', 'fortran_order': False, 'shape': ("...)
	for i, n := range a.Shape { // (2, 3) but (2,) for one dimension
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(dst, n, 10)
		if i < len(a.Shape)-1 || i == 0 {
			dst = append(dst, ',')
		}
	}
	dst = append(dst, "), }"...)
	for (len(dst)-start+1)%64 != 0 {
		dst = append(dst, ' ')
	}
	dst = append(dst, '\n')
	binary.LittleEndian.PutUint16(dst[start+len(npyMagic)+2:], uint16(len(dst)-start-len(npyMagic)-4))
	return append(dst, a.Data...), nil
}

// check is the data bytes that the shape asks for.
func (a *Array) check() (int64, error) {
	item, ok := npyItem[a.Descr]
	if !ok {
		return 0, target.NotSupported(a.Descr, "npy: element type %q is not supported; use little-endian integers or floats", a.Descr)
	}
	if len(a.Shape) > 32 {
		return 0, target.Errorf(target.Limit, "npy: %d dimensions; the limit is 32", len(a.Shape))
	}
	n := int64(item)
	for _, d := range a.Shape {
		if d < 0 {
			return 0, target.Errorf(target.User, "npy: negative dimension %d", d)
		}
		if d > 0 && n > (1<<50)/d {
			return 0, target.Errorf(target.Limit, "npy: shape %v is larger than 2^50 bytes", a.Shape)
		}
		n *= d
	}
	return n, nil
}

// ParseNPY reads versions 1.0 to 3.0. Data is a view of b, or a copy when the file is in Fortran order.
func ParseNPY(b []byte) (Array, error) {
	var a Array
	if len(b) < 10 || string(b[:6]) != npyMagic {
		return a, target.Errorf(target.User, "npy: no magic; not a .npy file")
	}
	var n, at int
	switch b[6] {
	case 1:
		n, at = int(binary.LittleEndian.Uint16(b[8:])), 10
	case 2, 3:
		if len(b) < 12 {
			return a, target.Errorf(target.User, "npy: header is cut off")
		}
		v := binary.LittleEndian.Uint32(b[8:])
		if v > 1<<16 {
			return a, target.Errorf(target.Limit, "npy: header of %d bytes; the limit is 65536", v)
		}
		n, at = int(v), 12
	default:
		return a, target.Errorf(target.Unsupported, "npy: version %d.%d", b[6], b[7])
	}
	if len(b)-at < n {
		return a, target.Errorf(target.User, "npy: header is cut off")
	}
	fortran, err := a.parseHead(string(bytes.TrimSpace(b[at : at+n])))
	if err != nil {
		return a, err
	}
	size, err := a.check()
	if err != nil {
		return a, err
	}
	a.Data = b[at+n:]
	if int64(len(a.Data)) != size {
		return a, target.Errorf(target.User, "npy: %s of shape %v needs %d bytes, the file has %d", a.Descr, a.Shape, size, len(a.Data))
	}
	if fortran && len(a.Shape) > 1 {
		a.Data = toC(a.Data, a.Shape, npyItem[a.Descr])
	}
	return a, nil
}

// parseHead reads the header's dict literal: the three known keys, in any order, each once.
func (a *Array) parseHead(s string) (fortran bool, err error) {
	bad := func() (bool, error) { return false, target.Errorf(target.User, "npy: bad header %q", clip(s)) }
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return bad()
	}
	rest := strings.TrimSpace(s[1 : len(s)-1])
	seen := 0
	for rest != "" {
		if rest[0] != '\'' && rest[0] != '"' {
			return bad()
		}
		key, after, ok := strings.Cut(rest[1:], rest[:1])
		after = strings.TrimSpace(after)
		if !ok || after == "" || after[0] != ':' {
			return bad()
		}
		after = strings.TrimSpace(after[1:])
		var val string
		switch {
		case after == "":
			return bad()
		case after[0] == '\'' || after[0] == '"':
			val, rest, ok = strings.Cut(after[1:], after[:1])
		case after[0] == '(':
			val, rest, ok = strings.Cut(after[1:], ")")
		default:
			if i := strings.IndexByte(after, ','); i >= 0 {
				val, rest, ok = strings.TrimSpace(after[:i]), after[i:], true
			} else {
				val, rest, ok = after, "", true
			}
		}
		if !ok {
			return bad()
		}
		bit := 0
		switch key {
		case "descr":
			a.Descr, bit = val, 1
			if strings.HasPrefix(val, "<") && npyItem["|"+val[1:]] == 1 {
				a.Descr = "|" + val[1:] // byte order of one byte
			}
		case "fortran_order":
			if val != "True" && val != "False" {
				return bad()
			}
			fortran, bit = val == "True", 2
		case "shape":
			bit = 4
			for _, part := range strings.Split(val, ",") {
				if part = strings.TrimSpace(part); part == "" {
					continue
				}
				n, err := strconv.ParseInt(strings.TrimSuffix(part, "L"), 10, 64)
				if err != nil {
					return bad()
				}
				a.Shape = append(a.Shape, n)
			}
		}
		if bit == 0 || seen&bit != 0 {
			return bad()
		}
		seen |= bit
		rest = strings.TrimSpace(rest)
		if rest != "" {
			if rest[0] != ',' {
				return bad()
			}
			rest = strings.TrimSpace(rest[1:])
		}
	}
	if seen != 7 {
		return bad()
	}
	return fortran, nil
}

func clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}

// toC reorders column-major elements.
func toC(in []byte, shape []int64, item int) []byte {
	out := make([]byte, len(in))
	stride := make([]int64, len(shape)) // of each dimension in the input
	s := int64(item)
	for i, n := range shape {
		stride[i] = s
		s *= n
	}
	idx := make([]int64, len(shape))
	from := int64(0)
	for at := 0; at < len(out); at += item {
		copy(out[at:at+item], in[from:])
		for d := len(shape) - 1; d >= 0; d-- {
			idx[d]++
			from += stride[d]
			if idx[d] < shape[d] {
				break
			}
			from -= stride[d] * shape[d]
			idx[d] = 0
		}
	}
	return out
}
