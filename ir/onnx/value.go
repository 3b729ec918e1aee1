package onnx

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// value is what a name of the model stands for: a node of the graph or a constant that has no node yet. The zero value is an
// omitted optional input.
type value struct {
	node    graph.Node
	konst   uint32 // index of reader.konsts
	missing uint32 // 1 + index of reader.missing: a result that is not supported
}

// konst is a constant known while reading. It becomes a node of the graph when an operator of the graph reads it, so that
// shapes and folded intermediates leave no trace.
type konst struct {
	dtype graph.Dtype
	dims  []int64
	data  []byte // row-major little-endian, one byte for elements under a byte; nil when splat
	bits  uint64 // of a splat: the element
	splat bool
	blob  bool // data is g.Blobs[file][off:]
	file  uint32
	off   int64
	name  arena.Name
	node  graph.Node // in the model's graph, once there
}

// splatScan is the size up to which constants are checked for being one repeated element: scalars and small vectors, so that a
// broadcast of them can stay a splat, while the bytes of weights are not touched.
const splatScan = 4096

func (r *reader) addKonst(k konst) value {
	if n := int64(len(k.data)); !k.splat && n > 0 && n <= splatScan && k.dtype.Size() <= 8 {
		size := k.dtype.Size()
		if n == int64(size) || bytes.Equal(k.data[size:], k.data[:int(n)-size]) {
			var b [8]byte
			copy(b[:], k.data[:size])
			k.bits, k.splat, k.blob = binary.LittleEndian.Uint64(b[:]), true, false
			k.data = nil
		}
	}
	r.konsts = append(r.konsts, k)
	return value{konst: uint32(len(r.konsts) - 1)}
}

// tensorKonst is the constant that a tensor of the file holds.
func (r *reader) tensorKonst(t *tensorRow, name arena.Name) (value, error) {
	d, err := dtypeOf(int64(t.Code))
	if err != nil {
		return value{}, err
	}
	k := konst{dtype: d, dims: append([]int64(nil), r.m.ints.Of(t.Dims)...), name: name}
	if t.External {
		if err := r.external(t, &k); err != nil {
			return value{}, err
		}
		return r.addKonst(k), nil
	}
	var shared bool
	if k.data, shared, err = r.m.tensorBytes(t, d); err != nil {
		return value{}, err
	}
	if shared {
		k.blob, k.file, k.off = true, r.blob, int64(t.Raw.Off)
	}
	return r.addKonst(k), nil
}

// bytes is the whole contents of a constant: its own slice, or a splat written out.
func (k *konst) bytes() []byte {
	if !k.splat {
		return k.data
	}
	n, _ := elements(k.dims)
	size := k.dtype.Size()
	out := make([]byte, n*int64(size))
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], k.bits)
	for i := 0; i < len(out); i += size {
		copy(out[i:], b[:size])
	}
	return out
}

// ints are the elements of an integer or bool constant; floats are taken when they are whole numbers.
func (k *konst) ints() ([]int64, bool) {
	n, _ := elements(k.dims)
	if n > maxFold {
		return nil, false
	}
	data, out := k.bytes(), make([]int64, n)
	for i := range out {
		v, ok := elementInt(k.dtype, data[i*k.dtype.Size():])
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// elementInt reads one element as an integer.
func elementInt(d graph.Dtype, b []byte) (int64, bool) {
	bits := elementBits(d, b)
	switch {
	case d == graph.S64 || d == graph.U64:
		return int64(bits), true
	case d.IsInt() || d == graph.Bool:
		return int64(graph.DecodeFloat(d, bits)), true
	case !d.IsFloat():
		return 0, false
	}
	f := graph.DecodeFloat(d, bits)
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// elementBits are the little-endian bytes of one element.
func elementBits(d graph.Dtype, b []byte) uint64 {
	switch d.Size() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// intRange is the range of an integer type, U64 cut to what int64 holds.
func intRange(d graph.Dtype) (lo, hi int64) {
	b := uint(d.Bits())
	switch {
	case d.Signed():
		return math.MinInt64 >> (64 - b), math.MaxInt64 >> (64 - b)
	case b == 64:
		return 0, math.MaxInt64
	}
	return 0, 1<<b - 1
}

// materialise gives a constant a node of the model's graph.
func (r *reader) materialise(i uint32) graph.Node {
	k := &r.konsts[i]
	if k.node == 0 {
		k.node = addConstant(r.g, r.comp, k)
	}
	return k.node
}

func addConstant(g *graph.Graph, c graph.Comp, k *konst) graph.Node {
	t := g.Tensor(k.dtype, k.dims...)
	switch {
	case k.splat:
		return g.AddSplat(c, t, k.bits, k.name)
	case k.blob:
		return g.AddBlob(c, t, k.file, k.off, int64(len(k.data)), k.name)
	}
	return g.AddDense(c, t, k.data, k.name)
}

// external points k at its bytes in another file of the model's folder.
func (r *reader) external(t *tensorRow, k *konst) error {
	name, where := r.m.text(t.Name), string(r.m.text(t.Location))
	n, ok := elements(k.dims)
	if !ok {
		return target.Errorf(target.User, "onnx: tensor %q: dims %v are negative or hold more than 2^46 elements", name, k.dims)
	}
	if k.dtype.Bits() == 0 {
		return target.NotSupported(k.dtype.String(), "onnx: tensor %q: elements of type %v have no bytes", name, k.dtype)
	}
	if r.opt.Dir == "" {
		return target.Errorf(target.User, "onnx: tensor %q is in file %q, and the model has no folder: read it from a file", name, where)
	}
	file, err := r.files.open(r.g, r.opt.Dir, where)
	if err != nil {
		return target.Errorf(target.User, "onnx: tensor %q: %w", name, err)
	}
	data, need := r.g.Blobs[file], packedSize(k.dtype, n)
	if t.ExtLen >= 0 && t.ExtLen != need {
		return target.Errorf(target.User, "onnx: tensor %q: external data has %d bytes, dims %v of %v need %d", name, t.ExtLen, k.dims, k.dtype, need)
	}
	if t.ExtOff > int64(len(data)) || need > int64(len(data))-t.ExtOff {
		return target.Errorf(target.User, "onnx: tensor %q: bytes [%d,+%d) are outside file %q of %d bytes", name, t.ExtOff, need, where, len(data))
	}
	k.data = data[t.ExtOff : t.ExtOff+need]
	if k.dtype.Bits() < 8 {
		k.data = unpack(k.dtype, k.data, n)
		return nil
	}
	k.blob, k.file, k.off = true, file, t.ExtOff
	return nil
}
