package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// writeOpset is the opset of written models; every operator that the writer uses is in it.
const writeOpset = 21

// Write encodes g as an ONNX model of opset 21. Parameters keep their names and order, outputs their names; constants become
// initializers, large splats ConstantOfShape nodes. Seeded weights are generated while they are written and never held whole.
// Operators that ONNX cannot express are refused by name, models of 2 GiB or more as a limit. The bytes depend on g alone.
func Write(w io.Writer, g *graph.Graph) error {
	x := writer{g: g, names: make([]string, g.Nodes.Len()), used: map[string]bool{"": true}}
	if err := x.build(); err != nil {
		return err
	}
	return x.stream(w)
}

// writer is one Write. Nodes are encoded as they come; constants are streamed at the end.
type writer struct {
	g      *graph.Graph
	names  []string // value name of each graph node
	used   map[string]bool
	n      graph.Node // being written
	nodes  []byte     // NodeProto fields of the graph
	inits  []byte     // initializers made by the writer
	consts []graph.Node
	heads  [][]byte                 // of consts: the TensorProto up to its raw_data
	info   []byte                   // inputs and outputs
	ints   map[string]string        // initializers made by the writer, by contents
	pairs  map[graph.Node][2]string // results of operators with two
	serial int
}

// build encodes everything but the bytes of constants.
func (w *writer) build() error {
	g := w.g
	if g.Entry == 0 || len(g.Outputs) == 0 {
		return target.Errorf(target.User, "onnx: the graph %s has no entry computation or no outputs", g.Name)
	}
	w.ints, w.pairs = map[string]string{}, map[graph.Node][2]string{}
	for _, p := range g.Params(g.Entry) {
		w.names[p] = w.unique(g.NodeName(p))
		info, err := w.valueInfo(w.names[p], p)
		if err != nil {
			return err
		}
		w.info = putBytes(w.info, 11, info)
	}
	roots := make([]graph.Node, len(g.Outputs))
	alias := make([]string, len(g.Outputs)) // outputs that need a node of their own
	for i, o := range g.Outputs {
		roots[i] = o.Node
		name := g.Names.String(o.Name)
		if name == "" {
			name = "output_" + strconv.Itoa(i)
		}
		name = w.unique(name)
		if w.names[o.Node] != "" || g.Op(o.Node) == graph.OpConstant {
			alias[i] = name
		} else {
			w.names[o.Node] = name
		}
		info, err := w.valueInfo(name, o.Node)
		if err != nil {
			return err
		}
		w.info = putBytes(w.info, 12, info)
	}
	var ord graph.Orderer
	order, err := ord.From(g, g.Entry, roots)
	if err != nil {
		return err
	}
	for _, n := range order {
		if g.Op(n) == graph.OpParameter || g.IsTuple(g.Nodes.At(n).Type) && g.Op(n) != graph.OpTopK {
			continue
		}
		if w.names[n] == "" && g.Op(n) != graph.OpTopK {
			w.names[n] = w.unique(g.NodeName(n))
		}
		w.n = n
		if err := w.write(n); err != nil {
			return err
		}
	}
	for i, name := range alias {
		if name != "" {
			w.emit(name, "Identity", w.names[roots[i]])
		}
	}
	return nil
}

// unique makes a value name of s: s itself, or s with a number behind it.
func (w *writer) unique(s string) string {
	name := s
	for w.used[name] {
		w.serial++
		name = s + "_" + strconv.Itoa(w.serial)
	}
	w.used[name] = true
	return name
}

func (w *writer) valueInfo(name string, n graph.Node) ([]byte, error) {
	g := w.g
	code := codeOf(g.Dtype(n))
	if code == 0 {
		return nil, w.unsupportedType(n, g.Dtype(n))
	}
	var shape []byte
	for _, d := range g.Dims(n) {
		shape = putBytes(shape, 1, putInt(nil, 1, d))
	}
	return putBytes(putBytes(nil, 1, name), 2, putBytes(nil, 1, putBytes(putInt(nil, 1, code), 2, shape))), nil
}

func (w *writer) unsupportedType(n graph.Node, d graph.Dtype) error {
	return target.NotSupported(d.String(), "onnx: %s: ONNX has no element type %v", w.g.NodeName(n), d)
}

// refuse says that the node being written has no form in ONNX.
func (w *writer) refuse(format string, args ...any) error {
	op := w.g.Op(w.n).String()
	return target.NotSupported(op, "onnx: node %q: %s cannot be written: "+format, append([]any{w.g.NodeName(w.n), op}, args...)...)
}

// Attributes.

func attrI(name string, v int64) []byte {
	return putInt(putInt(putBytes(nil, 1, name), 3, v), 20, attrInt)
}

func attrF(name string, v float64) []byte {
	return putInt(putFloat(putBytes(nil, 1, name), 2, float32(v)), 20, attrFloat)
}

func attrS(name, v string) []byte {
	return putInt(putBytes(putBytes(nil, 1, name), 4, v), 20, attrString)
}

func attrL(name string, vals []int64) []byte {
	return putInt(putInts(putBytes(nil, 1, name), 8, vals), 20, attrInts)
}

func attrT(name string, t []byte) []byte {
	return putInt(putBytes(putBytes(nil, 1, name), 5, t), 20, attrTensor)
}

// emit appends a node with one result.
func (w *writer) emit(out, op string, ins ...string) { w.emitAttrs([]string{out}, op, ins) }

func (w *writer) emitAttrs(outs []string, op string, ins []string, attrs ...[]byte) {
	var b []byte
	for _, s := range ins {
		b = putBytes(b, 1, s)
	}
	for _, s := range outs {
		b = putBytes(b, 2, s)
	}
	b = putBytes(b, 3, outs[0])
	b = putBytes(b, 4, op)
	for _, a := range attrs {
		b = putBytes(b, 5, a)
	}
	w.nodes = putBytes(w.nodes, 1, b)
}

// temp appends a node and gives its result a new name.
func (w *writer) temp(op string, ins []string, attrs ...[]byte) string {
	base := w.names[w.n]
	if base == "" {
		base = w.g.NodeName(w.n)
	}
	out := w.unique(base + "/" + op)
	w.emitAttrs([]string{out}, op, ins, attrs...)
	return out
}

// vec is an initializer of int64, shared by all who need the same numbers.
func (w *writer) vec(vals ...int64) string {
	key := fmt.Sprint(vals)
	if s, ok := w.ints[key]; ok {
		return s
	}
	name := w.unique("ints" + strconv.Itoa(len(w.ints)))
	var data []byte
	for _, v := range vals {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	t, _ := appendTensor(nil, Tensor{Name: name, Dtype: graph.S64, Dims: []int64{int64(len(vals))}, Data: data})
	w.inits = putBytes(w.inits, 5, t)
	w.ints[key] = name
	return name
}

// scalar is an initializer of one element.
func (w *writer) scalar(d graph.Dtype, v float64) (string, error) {
	bits, ok := graph.EncodeFloat(d, v)
	if !ok || codeOf(d) == 0 {
		return "", w.unsupportedType(w.n, d)
	}
	key := fmt.Sprint(d, bits)
	if s, ok := w.ints[key]; ok {
		return s, nil
	}
	name := w.unique("scalar" + strconv.Itoa(len(w.ints)))
	t, err := appendTensor(nil, Tensor{Name: name, Dtype: d, Dims: []int64{}, Data: elementBytes(d, bits)})
	if err != nil {
		return "", err
	}
	w.inits = putBytes(w.inits, 5, t)
	w.ints[key] = name
	return name, nil
}

// elementBytes are the little-endian bytes of one element.
func elementBytes(d graph.Dtype, bits uint64) []byte {
	return binary.LittleEndian.AppendUint64(nil, bits)[:d.Size()]
}

// constant writes n as an initializer, or a large splat as ConstantOfShape.
func (w *writer) constant(n graph.Node) error {
	g := w.g
	d := g.Dtype(n)
	if codeOf(d) == 0 || d == graph.String || d.Size() == 0 {
		return w.unsupportedType(n, d)
	}
	row := g.Consts.At(g.Nodes.At(n).Const)
	count := g.Elements(g.Nodes.At(n).Type)
	if row.Kind == graph.ConstSplat && count > 64 && d.Size() <= 8 {
		t, err := appendTensor(nil, Tensor{Dtype: d, Dims: []int64{1}, Data: elementBytes(d, row.Bits)})
		if err != nil {
			return err
		}
		w.emitAttrs([]string{w.names[n]}, "ConstantOfShape", []string{w.vec(g.Dims(n)...)}, attrT("value", t))
		return nil
	}
	var head []byte
	if dims := g.Dims(n); len(dims) > 0 {
		head = putInts(head, 1, dims)
	}
	head = putInt(head, 2, codeOf(d))
	head = putBytes(head, 8, w.names[n])
	head = putKey(head, 9, wireBytes)
	head = binary.AppendUvarint(head, uint64(packedSize(d, count)))
	w.consts, w.heads = append(w.consts, n), append(w.heads, head)
	return nil
}

// stream writes the model: sizes first, then the pieces in order.
func (w *writer) stream(out io.Writer) error {
	g := w.g
	name := putBytes(nil, 2, g.Name)
	size := int64(len(w.nodes) + len(name) + len(w.inits) + len(w.info))
	msgs := make([]int64, len(w.consts))
	for i, n := range w.consts {
		msgs[i] = int64(len(w.heads[i])) + packedSize(g.Dtype(n), g.Elements(g.Nodes.At(n).Type))
		if size += 1 + int64(sizeVarint(uint64(msgs[i]))) + msgs[i]; size > math.MaxInt32-1024 {
			return target.Errorf(target.Limit, "onnx: the model takes more than 2 GiB, the most that a protobuf message holds; the constant %q is beyond it", g.NodeName(n))
		}
	}
	b := putInt(nil, 1, 10)
	b = putBytes(b, 2, "rosmar")
	b = putBytes(b, 8, putInt(putBytes(nil, 1, ""), 2, writeOpset))
	b = binary.AppendUvarint(putKey(b, 7, wireBytes), uint64(size))
	for _, p := range [][]byte{b, w.nodes, name, w.inits} {
		if _, err := out.Write(p); err != nil {
			return err
		}
	}
	for i, n := range w.consts {
		b = binary.AppendUvarint(putKey(b[:0], 5, wireBytes), uint64(msgs[i]))
		if _, err := out.Write(append(b, w.heads[i]...)); err != nil {
			return err
		}
		if err := w.data(out, n); err != nil {
			return err
		}
	}
	_, err := out.Write(w.info)
	return err
}

// data writes the bytes of a constant, a piece at a time.
func (w *writer) data(out io.Writer, n graph.Node) error {
	g := w.g
	d := g.Dtype(n)
	count := g.Elements(g.Nodes.At(n).Type)
	const piece = 1 << 17 // elements; a multiple of what shares a byte
	buf := make([]byte, min(count, piece)*int64(d.Size()))
	for at := int64(0); at < count; at += piece {
		b := buf[:min(count-at, piece)*int64(d.Size())]
		if err := graph.MaterialiseRange(g, n, at, b); err != nil {
			return err
		}
		if d.Bits() < 8 {
			b = pack(d, b)
		}
		if _, err := io.Copy(out, bytes.NewReader(b)); err != nil {
			return err
		}
	}
	return nil
}
