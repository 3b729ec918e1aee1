package graph

import "github.com/rosmar-compiler/rosmar/arena"

// Dtype is an element type of a model. It is wider than the machine's: a model may carry what no engine computes in.
type Dtype uint8

const (
	DtypeNone Dtype = iota
	Bool
	S2
	S4
	S8
	S16
	S32
	S64
	U2
	U4
	U8
	U16
	U32
	U64
	F4E2M1
	F8E3M4
	F8E4M3
	F8E4M3FN
	F8E4M3FNUZ
	F8E4M3B11FNUZ
	F8E5M2
	F8E5M2FNUZ
	F8E8M0
	BF16
	F16
	F32
	F64
	C64
	C128
	String
	Token
	Opaque
	Tuple
	NumDtypes
)

var dtypes = [NumDtypes]struct {
	name string
	bits uint8
}{
	Bool: {"pred", 8}, S2: {"s2", 2}, S4: {"s4", 4}, S8: {"s8", 8}, S16: {"s16", 16}, S32: {"s32", 32}, S64: {"s64", 64},
	U2: {"u2", 2}, U4: {"u4", 4}, U8: {"u8", 8}, U16: {"u16", 16}, U32: {"u32", 32}, U64: {"u64", 64},
	F4E2M1: {"f4e2m1fn", 4}, F8E3M4: {"f8e3m4", 8}, F8E4M3: {"f8e4m3", 8}, F8E4M3FN: {"f8e4m3fn", 8},
	F8E4M3FNUZ: {"f8e4m3fnuz", 8}, F8E4M3B11FNUZ: {"f8e4m3b11fnuz", 8}, F8E5M2: {"f8e5m2", 8}, F8E5M2FNUZ: {"f8e5m2fnuz", 8},
	F8E8M0: {"f8e8m0fnu", 8}, BF16: {"bf16", 16}, F16: {"f16", 16}, F32: {"f32", 32}, F64: {"f64", 64}, C64: {"c64", 64},
	C128: {"c128", 128}, String: {"string", 0}, Token: {"token", 0}, Opaque: {"opaque", 0}, Tuple: {"tuple", 0},
}

// String is the HLO spelling.
func (d Dtype) String() string {
	if d < NumDtypes && dtypes[d].name != "" {
		return dtypes[d].name
	}
	return "dtype?"
}

// Bits is the width of an element; sub-byte elements are packed only in a constant's file form. 0 for types without elements.
func (d Dtype) Bits() int {
	if d < NumDtypes {
		return int(dtypes[d].bits)
	}
	return 0
}

// Size is the bytes of an element in memory: a sub-byte element takes a whole byte.
func (d Dtype) Size() int { return (d.Bits() + 7) / 8 }

// IsFloat reports a real floating-point type.
func (d Dtype) IsFloat() bool { return d >= F4E2M1 && d <= F64 }

// IsInt reports a signed or unsigned integer type, without Bool.
func (d Dtype) IsInt() bool { return d >= S2 && d <= U64 }

// Signed reports a signed integer type.
func (d Dtype) Signed() bool { return d >= S2 && d <= S64 }

var dtypeByName = func() map[string]Dtype {
	m := map[string]Dtype{}
	for d := Bool; d < NumDtypes; d++ {
		m[dtypes[d].name] = d
	}
	return m
}()

// ParseDtype finds a type by its HLO spelling, without allocating.
func ParseDtype(b []byte) (Dtype, bool) {
	d, ok := dtypeByName[string(b)]
	return d, ok
}

// Type is an interned tensor or tuple type of one graph: two values have the same shape and element type exactly when their
// Types are equal.
type Type uint32

// TypeRow is one type. A tensor has Dims (a scalar has none); a tuple has Elems, and Dtype Tuple.
type TypeRow struct {
	Dtype Dtype
	Dims  arena.Span // in Graph.Ints
	Elems arena.Span // in Graph.Types list pool
}

// MaxElements bounds the elements of one tensor: beyond it byte sizes and element offsets could overflow.
const MaxElements = 1 << 46
