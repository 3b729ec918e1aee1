package graph

import (
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Tensor is a value: row-major little-endian elements, sub-byte elements one a byte (sign- or zero-extended), Bool as 0 or 1.
type Tensor struct {
	Dtype Dtype
	Dims  []int64
	Data  []byte
}

// NewTensor is a tensor of zeros. The shape must pass CheckDims.
func NewTensor(d Dtype, dims ...int64) Tensor {
	return Tensor{Dtype: d, Dims: dims, Data: alignedBytes(count(dims) * d.Size())}
}

// TensorOf makes a tensor of d from values; floats are rounded, integers truncated and saturated. One value fills all.
func TensorOf(d Dtype, dims []int64, vals ...float64) Tensor {
	t := NewTensor(d, dims...)
	for i := range count(dims) {
		v := vals[0]
		if len(vals) > 1 {
			v = vals[i]
		}
		bits, _ := EncodeFloat(d, v)
		putElem(d, t.Data, i, bits)
	}
	return t
}

// TensorOfInts is TensorOf for integers, which wrap to d.
func TensorOfInts(d Dtype, dims []int64, vals ...int64) Tensor {
	t := NewTensor(d, dims...)
	for i := range count(dims) {
		v := vals[0]
		if len(vals) > 1 {
			v = vals[i]
		}
		putElem(d, t.Data, i, EncodeInt(d, v))
	}
	return t
}

// Len is the number of elements.
func (t Tensor) Len() int { return count(t.Dims) }

// Float is element i as a float64.
func (t Tensor) Float(i int) float64 { return DecodeFloat(t.Dtype, elemBits(t.Dtype, t.Data, i)) }

// Floats are all elements as float64.
func (t Tensor) Floats() []float64 {
	f := make([]float64, t.Len())
	for i := range f {
		f[i] = t.Float(i)
	}
	return f
}

// Ints are all elements of an integer or Bool tensor.
func (t Tensor) Ints() []int64 {
	return loadInts(t.Dtype, t.Data, 0, t.Len(), make([]int64, t.Len()))
}

// check verifies that the tensor has the dtype and dims, and the bytes for it.
func (t Tensor) check(what string, d Dtype, dims []int64) error {
	if t.Dtype != d || !sameDims(t.Dims, dims) {
		return target.Errorf(target.User, "%s is %s%v, the model takes %s%v", what, t.Dtype, t.Dims, d, dims)
	}
	if len(t.Data) != count(dims)*d.Size() {
		return target.Errorf(target.User, "%s has %d bytes, %s%v takes %d", what, len(t.Data), d, dims, count(dims)*d.Size())
	}
	return nil
}

// count is the number of elements of a shape that passed CheckDims.
func count(dims []int64) int {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return int(n)
}

// alignedBytes is n zero bytes at an address that any element type may have.
func alignedBytes(n int) []byte { return make([]byte, (n+7)&^7)[:n:n] }

// rowMajor are the strides, in elements, of a row-major shape.
func rowMajor(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= dims[i]
	}
	return s
}

// view reinterprets bytes as elements, on a little-endian host. The bytes must be aligned (see aligned).
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// aligned is b, or a copy of it when elements of the size would straddle their alignment.
func aligned(b []byte, size int) []byte {
	if len(b) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(min(size, 8)) == 0 {
		return b
	}
	c := alignedBytes(len(b))
	copy(c, b)
	return c
}

// domain is the arithmetic that an element type is computed in.
type domain uint8

const (
	domNone domain = iota
	domF32         // every float type up to 32 bits: computed in float32
	domF64
	domInt // integers and Bool: computed in int64, wrapped on writing
)

func domainOf(d Dtype) domain {
	switch {
	case d == F64:
		return domF64
	case d.IsFloat():
		return domF32
	case d.IsInt() || d == Bool:
		return domInt
	}
	return domNone
}

// loadF32 reads elements [lo, lo+n) of a domF32 tensor: a view for F32, else decoded into buf.
func loadF32(d Dtype, data []byte, lo, n int, buf []float32) []float32 {
	switch d {
	case F32:
		return view[float32](data)[lo : lo+n]
	case BF16:
		buf = buf[:n]
		for i, h := range view[uint16](data)[lo : lo+n] {
			buf[i] = float32FromBF16(h)
		}
		return buf
	case F16:
		buf = buf[:n]
		for i, h := range view[uint16](data)[lo : lo+n] {
			buf[i] = float32FromF16(h)
		}
		return buf
	}
	buf = buf[:n]
	t := decode8[d]
	for i, b := range data[lo : lo+n] {
		buf[i] = t[b]
	}
	return buf
}

// storeF32 rounds src to the elements from lo on. For F32, src may be a view of data itself.
func storeF32(d Dtype, data []byte, lo int, src []float32) {
	switch d {
	case F32:
		copy(view[float32](data)[lo:], src)
	case BF16:
		dst := view[uint16](data)[lo : lo+len(src)]
		for i, f := range src {
			dst[i] = bf16FromFloat32(f)
		}
	case F16:
		dst := view[uint16](data)[lo : lo+len(src)]
		for i, f := range src {
			dst[i] = f16FromFloat32(f)
		}
	default:
		dst := data[lo : lo+len(src)]
		for i, f := range src {
			bits, _ := EncodeFloat(d, float64(f))
			dst[i] = byte(bits)
		}
	}
}

// loadF64 reads elements as float64 from any real type.
func loadF64(d Dtype, data []byte, lo, n int, buf []float64) []float64 {
	if d == F64 {
		return view[float64](data)[lo : lo+n]
	}
	buf = buf[:n]
	for i := range buf {
		buf[i] = DecodeFloat(d, elemBits(d, data, lo+i))
	}
	return buf
}

// storeF64 rounds src once to the float type d.
func storeF64(d Dtype, data []byte, lo int, src []float64) {
	if d == F64 {
		copy(view[float64](data)[lo:], src)
		return
	}
	for i, f := range src {
		bits, _ := EncodeFloat(d, f)
		putElem(d, data, lo+i, bits)
	}
}

// loadInts reads integers and Bool; a u64 keeps its bits.
func loadInts(d Dtype, data []byte, lo, n int, buf []int64) []int64 {
	switch d {
	case S64, U64:
		return view[int64](data)[lo : lo+n]
	case S32:
		return widen(buf, view[int32](data)[lo:lo+n])
	case U32:
		return widen(buf, view[uint32](data)[lo:lo+n])
	case S16:
		return widen(buf, view[int16](data)[lo:lo+n])
	case U16:
		return widen(buf, view[uint16](data)[lo:lo+n])
	case S8, S4, S2:
		buf = buf[:n]
		for i, b := range data[lo : lo+n] {
			buf[i] = wrap(d, int64(b))
		}
		return buf
	case Bool:
		buf = buf[:n]
		for i, b := range data[lo : lo+n] {
			buf[i] = 0
			if b != 0 {
				buf[i] = 1
			}
		}
		return buf
	case U4, U2:
		buf = buf[:n]
		for i, b := range data[lo : lo+n] {
			buf[i] = wrap(d, int64(b))
		}
		return buf
	}
	return widen(buf, data[lo:lo+n])
}

func widen[T int32 | uint32 | int16 | uint16 | uint8](buf []int64, src []T) []int64 {
	buf = buf[:len(src)]
	for i, x := range src {
		buf[i] = int64(x)
	}
	return buf
}

// storeInts wraps src to d; for Bool, any value but 0 is true.
func storeInts(d Dtype, data []byte, lo int, src []int64) {
	switch d.Size() {
	case 8:
		copy(view[int64](data)[lo:], src)
	case 4:
		narrow(view[uint32](data)[lo:], src)
	case 2:
		narrow(view[uint16](data)[lo:], src)
	default:
		dst := data[lo : lo+len(src)]
		switch {
		case d == Bool:
			for i, x := range src {
				dst[i] = 0
				if x != 0 {
					dst[i] = 1
				}
			}
		case d.Bits() < 8:
			for i, x := range src {
				dst[i] = byte(wrap(d, x))
			}
		default:
			narrow(dst, src)
		}
	}
}

func narrow[T uint32 | uint16 | uint8](dst []T, src []int64) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = T(x)
	}
}
