package kernel

import (
	"encoding/binary"
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

var le = binary.LittleEndian

// loadRun reads len(dst) elements that lie step bytes apart. Contiguous runs of the wide types have their own loops.
func loadRun(dst []float32, data []byte, off, step int, dt target.Dtype) {
	if step == 0 && len(dst) > 1 {
		loadRun(dst[:1], data, off, dt.Size(), dt)
		f := dst[0]
		for i := range dst {
			dst[i] = f
		}
		return
	}
	switch dt {
	case target.Float32, target.Float32R:
		if step == 4 {
			b := data[off : off+4*len(dst)]
			for i := range dst {
				dst[i] = math.Float32frombits(le.Uint32(b[4*i:]))
			}
			return
		}
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(data[off:]))
			off += step
		}
	case target.BFloat16:
		if step == 2 {
			b := data[off : off+2*len(dst)]
			for i := range dst {
				dst[i] = math.Float32frombits(uint32(le.Uint16(b[2*i:])) << 16)
			}
			return
		}
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(le.Uint16(data[off:])) << 16)
			off += step
		}
	case target.Float16:
		for i := range dst {
			dst[i] = f16(le.Uint16(data[off:]))
			off += step
		}
	case target.Uint8:
		for i := range dst {
			dst[i] = float32(data[off])
			off += step
		}
	case target.Int8:
		for i := range dst {
			dst[i] = float32(int8(data[off]))
			off += step
		}
	case target.Uint16:
		for i := range dst {
			dst[i] = float32(le.Uint16(data[off:]))
			off += step
		}
	case target.Int16:
		for i := range dst {
			dst[i] = float32(int16(le.Uint16(data[off:])))
			off += step
		}
	case target.Uint32:
		for i := range dst {
			dst[i] = float32(le.Uint32(data[off:]))
			off += step
		}
	case target.Int32:
		for i := range dst {
			dst[i] = float32(int32(le.Uint32(data[off:])))
			off += step
		}
	case target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E8M0, target.Float8E5:
		t := &decode8[dt]
		for i := range dst {
			dst[i] = t[data[off]]
			off += step
		}
	default:
		for i := range dst {
			dst[i] = Decode(dt, le.Uint64(data[off:]))
			off += step
		}
	}
}

// storeRun rounds src to elements that lie step bytes apart.
func storeRun(src []float32, data []byte, off, step int, dt target.Dtype) {
	switch dt {
	case target.Float32, target.Float32R:
		if step == 4 {
			b := data[off : off+4*len(src)]
			for i, f := range src {
				le.PutUint32(b[4*i:], f32bits(f))
			}
			return
		}
		for _, f := range src {
			le.PutUint32(data[off:], f32bits(f))
			off += step
		}
	case target.BFloat16:
		if step == 2 {
			b := data[off : off+2*len(src)]
			for i, f := range src {
				le.PutUint16(b[2*i:], bf16bits(f))
			}
			return
		}
		for _, f := range src {
			le.PutUint16(data[off:], bf16bits(f))
			off += step
		}
	case target.Float16:
		for _, f := range src {
			le.PutUint16(data[off:], f16bits(f))
			off += step
		}
	case target.Uint8, target.Int8, target.Float8E3, target.Float8E4, target.Float8E4M3FN, target.Float8E8M0, target.Float8E5:
		for _, f := range src {
			data[off] = uint8(Encode(dt, f))
			off += step
		}
	case target.Uint16, target.Int16:
		for _, f := range src {
			le.PutUint16(data[off:], uint16(Encode(dt, f)))
			off += step
		}
	case target.Uint32, target.Int32:
		for _, f := range src {
			le.PutUint32(data[off:], uint32(Encode(dt, f)))
			off += step
		}
	default:
		for _, f := range src {
			le.PutUint64(data[off:], Encode(dt, f))
			off += step
		}
	}
}

// loadBitsRun reads raw elements of size bytes, zero-extended.
func loadBitsRun(dst []uint64, data []byte, off, step, size int) {
	switch size {
	case 1:
		for i := range dst {
			dst[i] = uint64(data[off])
			off += step
		}
	case 2:
		for i := range dst {
			dst[i] = uint64(le.Uint16(data[off:]))
			off += step
		}
	case 4:
		for i := range dst {
			dst[i] = uint64(le.Uint32(data[off:]))
			off += step
		}
	default:
		for i := range dst {
			dst[i] = le.Uint64(data[off:])
			off += step
		}
	}
}

// storeBitsRun writes the low size bytes of each element.
func storeBitsRun(src []uint64, data []byte, off, step, size int) {
	switch size {
	case 1:
		for _, u := range src {
			data[off] = uint8(u)
			off += step
		}
	case 2:
		for _, u := range src {
			le.PutUint16(data[off:], uint16(u))
			off += step
		}
	case 4:
		for _, u := range src {
			le.PutUint32(data[off:], uint32(u))
			off += step
		}
	default:
		for _, u := range src {
			le.PutUint64(data[off:], u)
			off += step
		}
	}
}

// loadBitsAt and storeBitsAt move one raw element.

func loadBitsAt(data []byte, off, size int) uint64 {
	var one [1]uint64
	loadBitsRun(one[:], data, off, 0, size)
	return one[0]
}

func storeBitsAt(data []byte, off, size int, u uint64) {
	one := [1]uint64{u}
	storeBitsRun(one[:], data, off, 0, size)
}
