package target

// Dtype is one of the 20 element types, by the ordinal of the public notes.
type Dtype uint8

const (
	Uint8 Dtype = iota
	Int8
	Float4E2M1x4
	Float8E3
	Float8E4
	Float8E4M3FN
	Float8E8M0
	Float8E5
	Float8E4M3FNx4
	Float8E5M2x4
	Uint16
	Int16
	BFloat16
	Float16
	Uint32
	Int32
	Float32
	Float32R
	Uint64
	Int64
	NumDtypes
)

// DtypeClass groups element types by how engines treat them.
type DtypeClass uint8

const (
	ClassUint DtypeClass = iota + 1
	ClassInt
	ClassFloat
	ClassPacked // four elements in one word, PE operands only
)

type dtypeInfo struct {
	name  string
	size  uint8
	align uint8
	class DtypeClass
}

var dtypes = [NumDtypes]dtypeInfo{
	Uint8:          {"uint8", 1, 1, ClassUint},
	Int8:           {"int8", 1, 1, ClassInt},
	Float4E2M1x4:   {"float4_e2m1fn_x4", 2, 1, ClassPacked},
	Float8E3:       {"float8e3", 1, 1, ClassFloat},
	Float8E4:       {"float8e4", 1, 1, ClassFloat},
	Float8E4M3FN:   {"float8_e4m3fn", 1, 1, ClassFloat},
	Float8E8M0:     {"float8_e8m0fnu", 1, 1, ClassFloat},
	Float8E5:       {"float8e5", 1, 1, ClassFloat},
	Float8E4M3FNx4: {"float8_e4m3fn_x4", 4, 1, ClassPacked},
	Float8E5M2x4:   {"float8_e5m2_x4", 4, 1, ClassPacked},
	Uint16:         {"uint16", 2, 2, ClassUint},
	Int16:          {"int16", 2, 2, ClassInt},
	BFloat16:       {"bfloat16", 2, 2, ClassFloat},
	Float16:        {"float16", 2, 2, ClassFloat},
	Uint32:         {"uint32", 4, 4, ClassUint},
	Int32:          {"int32", 4, 4, ClassInt},
	Float32:        {"float32", 4, 4, ClassFloat},
	Float32R:       {"float32r", 4, 4, ClassFloat},
	Uint64:         {"uint64", 8, 8, ClassUint},
	Int64:          {"int64", 8, 8, ClassInt},
}

// String is the JSON name.
func (d Dtype) String() string {
	if d < NumDtypes {
		return dtypes[d].name
	}
	return "dtype?"
}

// Size is the bytes of one element (of one packed word for the x4 types), 0 for an unknown ordinal.
func (d Dtype) Size() int {
	if d < NumDtypes {
		return int(dtypes[d].size)
	}
	return 0
}

// Align is the natural alignment of an element in bytes.
func (d Dtype) Align() int {
	if d < NumDtypes {
		return int(dtypes[d].align)
	}
	return 0
}

// Class tells integers, floats and packed words apart.
func (d Dtype) Class() DtypeClass {
	if d < NumDtypes {
		return dtypes[d].class
	}
	return 0
}

// IsFloat reports an unpacked floating-point type.
func (d Dtype) IsFloat() bool { return d.Class() == ClassFloat }

// IsInteger reports a signed or unsigned integer type.
func (d Dtype) IsInteger() bool { c := d.Class(); return c == ClassUint || c == ClassInt }

// ParseDtype finds a type by its JSON name.
func ParseDtype(s string) (Dtype, bool) {
	for d := Uint8; d < NumDtypes; d++ {
		if dtypes[d].name == s {
			return d, true
		}
	}
	return 0, false
}
