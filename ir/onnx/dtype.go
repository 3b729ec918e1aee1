package onnx

import (
	"fmt"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// dtypes maps TensorProto.DataType numbers to element types; DtypeNone marks UNDEFINED.
var dtypes = [...]graph.Dtype{
	1: graph.F32, 2: graph.U8, 3: graph.S8, 4: graph.U16, 5: graph.S16, 6: graph.S32, 7: graph.S64, 8: graph.String,
	9: graph.Bool, 10: graph.F16, 11: graph.F64, 12: graph.U32, 13: graph.U64, 14: graph.C64, 15: graph.C128, 16: graph.BF16,
	17: graph.F8E4M3FN, 18: graph.F8E4M3FNUZ, 19: graph.F8E5M2, 20: graph.F8E5M2FNUZ, 21: graph.U4, 22: graph.S4,
	23: graph.F4E2M1, 24: graph.F8E8M0, 25: graph.U2, 26: graph.S2,
}

// dtypeOf is the element type of a DataType number.
func dtypeOf(code int64) (graph.Dtype, error) {
	if code > 0 && code < int64(len(dtypes)) {
		return dtypes[code], nil
	}
	return 0, target.NotSupported(fmt.Sprintf("DataType(%d)", code),
		"onnx: element type %d is not one of 1 (FLOAT) to %d", code, len(dtypes)-1)
}

// codeOf is the DataType number of an element type, 0 for one that ONNX lacks.
func codeOf(d graph.Dtype) int64 {
	for code, e := range dtypes {
		if e == d && e != graph.DtypeNone {
			return int64(code)
		}
	}
	return 0
}

// elements is the product of dims, with ok false when a dimension is negative or the product is beyond graph.MaxElements.
func elements(dims []int64) (n int64, ok bool) {
	if !graph.CheckDims(dims) {
		return 0, false
	}
	n = 1
	for _, d := range dims {
		n *= d
	}
	return n, true
}

// packedSize is the bytes that n elements take in raw_data, where types under a byte are packed low bits first.
func packedSize(d graph.Dtype, n int64) int64 {
	if b := int64(d.Bits()); b < 8 {
		per := 8 / b
		return (n + per - 1) / per
	}
	return n * int64(d.Size())
}

// unpack spreads the elements of a type under a byte to one a byte: signed integers are sign-extended, others zero-extended.
func unpack(d graph.Dtype, packed []byte, n int64) []byte {
	bits := uint(d.Bits())
	per := int64(8 / bits)
	out := make([]byte, n)
	for i := range out {
		v := packed[int64(i)/per] >> (uint(int64(i)%per) * bits) & (1<<bits - 1)
		if d.Signed() {
			v = byte(int8(v<<(8-bits)) >> (8 - bits))
		}
		out[i] = v
	}
	return out
}

// pack is the inverse of unpack.
func pack(d graph.Dtype, data []byte) []byte {
	bits := uint(d.Bits())
	per := int(8 / bits)
	out := make([]byte, (len(data)+per-1)/per)
	for i, v := range data {
		out[i/per] |= v & (1<<bits - 1) << (uint(i%per) * bits)
	}
	return out
}
