package onnx

import (
	"encoding/binary"
	"io"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Tensor is one tensor with its bytes: what the .pb files of ONNX test data hold.
type Tensor struct {
	Name  string
	Dtype graph.Dtype
	Dims  []int64
	// Data is row-major little-endian, with elements under a byte one a byte (signed ones sign-extended).
	Data []byte
}

// ReadTensor decodes a TensorProto. Strings and external data have no bytes here and are refused. Data may be a slice of data.
func ReadTensor(data []byte) (Tensor, error) {
	var m model
	m.data = data
	c := cursor{b: data}
	row := m.tensor(&c)
	if c.err != nil {
		return Tensor{}, c.err
	}
	t := Tensor{Name: string(m.text(row.Name)), Dims: append([]int64{}, m.ints.Of(row.Dims)...)}
	var err error
	if t.Dtype, err = dtypeOf(int64(row.Code)); err != nil {
		return Tensor{}, err
	}
	if row.External {
		return Tensor{}, target.Errorf(target.User, "onnx: tensor %q: its bytes are in another file", t.Name)
	}
	t.Data, _, err = m.tensorBytes(&row, t.Dtype)
	return t, err
}

// WriteTensor writes t as a TensorProto with raw_data. The bytes depend on t alone.
func WriteTensor(w io.Writer, t Tensor) error {
	n, ok := elements(t.Dims)
	if !ok || n*int64(t.Dtype.Size()) != int64(len(t.Data)) {
		return target.Errorf(target.User, "onnx: tensor %q: %d bytes do not fill dims %v of %v", t.Name, len(t.Data), t.Dims, t.Dtype)
	}
	msg, err := appendTensor(nil, t)
	if err != nil {
		return err
	}
	_, err = w.Write(msg)
	return err
}

func appendTensor(dst []byte, t Tensor) ([]byte, error) {
	code := codeOf(t.Dtype)
	if code == 0 || t.Dtype == graph.String {
		return nil, target.NotSupported(t.Dtype.String(), "onnx: tensor %q: type %v has no raw form in ONNX", t.Name, t.Dtype)
	}
	data := t.Data
	if t.Dtype.Bits() < 8 {
		data = pack(t.Dtype, data)
	}
	if len(t.Dims) > 0 {
		dst = putInts(dst, 1, t.Dims)
	}
	dst = putInt(dst, 2, code)
	if t.Name != "" {
		dst = putBytes(dst, 8, t.Name)
	}
	return putBytes(dst, 9, data), nil
}

// tensorRow is the head of one TensorProto. Ranges are of the file.
type tensorRow struct {
	Name     arena.Span // range
	Msg      arena.Span // range of the whole message, for typed data
	Raw      arena.Span // range of raw_data
	Location arena.Span // range of the external file's name
	Dims     arena.Span // in model.ints
	Code     int32      // DataType
	HasRaw   bool
	Typed    bool // some typed data field is present
	External bool
	ExtOff   int64
	ExtLen   int64 // -1 when the file does not say
}

// tensor reads the head of a TensorProto; typed data is passed over until tensorBytes wants it.
func (m *model) tensor(c *cursor) tensorRow {
	r := tensorRow{Msg: arena.Span{Off: uint32(c.base), Len: uint32(len(c.b))}, ExtLen: -1}
	m.scratchInts = m.scratchInts[:0]
	for c.next() {
		switch c.field {
		case 1:
			m.scratchInts = c.ints(m.scratchInts)
		case 2:
			r.Code = c.int32()
		case 4, 5, 6, 7, 10, 11:
			r.Typed = true
			c.skip()
		case 8:
			r.Name = c.span()
		case 9:
			r.Raw, r.HasRaw = c.span(), true
		case 13:
			m.external(c, &r)
		case 14:
			r.External = c.int64() == 1
		default:
			c.skip()
		}
	}
	r.Dims = m.ints.AddSlice(m.scratchInts)
	return r
}

// external reads one entry of external_data.
func (m *model) external(c *cursor, r *tensorRow) {
	e := c.message()
	var key, val arena.Span
	for e.next() {
		switch e.field {
		case 1:
			key = e.span()
		case 2:
			val = e.span()
		default:
			e.skip()
		}
	}
	if !c.join(&e) {
		return
	}
	number := func() int64 {
		n, ok := int64(0), val.Len > 0 && val.Len <= 18
		for _, d := range m.text(val) {
			if d < '0' || d > '9' || !ok {
				c.fail("external_data entry %q is %q, not a number of bytes", m.text(key), m.text(val))
				return 0
			}
			n = n*10 + int64(d-'0')
		}
		return n
	}
	switch string(m.text(key)) {
	case "location":
		r.Location = val
	case "offset":
		r.ExtOff = number()
	case "length":
		r.ExtLen = number()
	}
}

// tensorBytes are the elements of a tensor, row-major little-endian, and whether they are a slice of the file (raw_data) or
// were decoded. The element count is checked against the bytes that are there before anything is allocated.
func (m *model) tensorBytes(r *tensorRow, d graph.Dtype) (data []byte, shared bool, err error) {
	name, dims := m.text(r.Name), m.ints.Of(r.Dims)
	n, ok := elements(dims)
	if !ok {
		return nil, false, target.Errorf(target.User, "onnx: tensor %q: dims %v are negative or hold more than 2^46 elements", name, dims)
	}
	if d == graph.String || d.Bits() == 0 {
		return nil, false, target.NotSupported(d.String(), "onnx: tensor %q: elements of type %v have no bytes", name, d)
	}
	if r.HasRaw && (r.Raw.Len > 0 || !r.Typed) {
		raw := m.text(r.Raw)
		if packedSize(d, n) != int64(len(raw)) {
			return nil, false, target.Errorf(target.User, "onnx: tensor %q: raw_data has %d bytes, dims %v of %v need %d",
				name, len(raw), dims, d, packedSize(d, n))
		}
		if d.Bits() < 8 {
			return unpack(d, raw, n), false, nil
		}
		return raw, true, nil
	}
	if n > int64(r.Msg.Len)*int64(max(1, 8/d.Bits())) {
		return nil, false, target.Errorf(target.User, "onnx: tensor %q: %d bytes cannot hold dims %v of %v", name, r.Msg.Len, dims, d)
	}
	data, err = m.typedData(r, d, n)
	if err == nil && int64(len(data)) != n*int64(d.Size()) {
		err = target.Errorf(target.User, "onnx: tensor %q: %d elements, dims %v need %d", name, len(data)/d.Size(), dims, n)
	}
	return data, false, err
}

// typedData decodes the repeated field in which a type's elements stand.
func (m *model) typedData(r *tensorRow, d graph.Dtype, n int64) ([]byte, error) {
	field, width := uint32(5), d.Size() // int32_data
	switch d {
	case graph.F32, graph.C64:
		field = 4
	case graph.S64:
		field = 7
	case graph.F64, graph.C128:
		field = 10
	case graph.U32, graph.U64:
		field = 11
	}
	c := cursor{b: m.text(r.Msg), base: int(r.Msg.Off)}
	out := make([]byte, 0, n*int64(width))
	for c.next() {
		switch {
		case c.field != field:
			c.skip()
		case field == 4:
			c.fixed(4, func(b []byte) { out = append(out, b...) })
		case field == 10:
			c.fixed(8, func(b []byte) { out = append(out, b...) })
		default:
			m.scratchInts = c.ints(m.scratchInts[:0])
			for _, v := range m.scratchInts {
				switch width {
				case 1:
					out = append(out, byte(v))
				case 2:
					out = binary.LittleEndian.AppendUint16(out, uint16(v))
				case 4:
					out = binary.LittleEndian.AppendUint32(out, uint32(v))
				case 8:
					out = binary.LittleEndian.AppendUint64(out, uint64(v))
				}
			}
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	if d.Bits() < 8 { // packed in the low byte of each number
		if int64(len(out)) < packedSize(d, n) {
			return nil, target.Errorf(target.User, "onnx: tensor %q: %d packed bytes, %d elements of %v need %d",
				m.text(r.Name), len(out), n, d, packedSize(d, n))
		}
		return unpack(d, out, n), nil
	}
	return out, nil
}
