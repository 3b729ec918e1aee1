package onnx

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

type (
	nodeID   uint32
	tensorID uint32
	valueID  uint32
	funcID   uint32
)

// nodeRow is one NodeProto. Names are of model.names.
type nodeRow struct {
	Name, Op, Domain, Overload arena.Name
	Ins, Outs                  arena.Span // in model.lists
	Attrs                      arena.Span // in model.attrs
}

// Kinds of attributes: AttributeProto.AttributeType.
const (
	attrFloat   = 1
	attrInt     = 2
	attrString  = 3
	attrTensor  = 4
	attrGraph   = 5
	attrFloats  = 6
	attrInts    = 7
	attrStrings = 8
	attrGraphs  = 10
)

// attrRow is one AttributeProto. Which fields count depends on Kind.
type attrRow struct {
	Name   arena.Name
	Ref    arena.Name // in a function body: the function's attribute that this one takes its value from
	Kind   int32
	Tensor tensorID   // attrTensor
	Num    uint64     // attrInt: the value; attrFloat: bits of the float32
	Str    arena.Span // attrString: range of the file
	List   arena.Span // attrInts, in model.ints; attrFloats, bits in model.ints; attrStrings, ranges in model.texts
}

// valueRow is one ValueInfoProto.
type valueRow struct {
	Name  arena.Name
	Code  int32 // DataType, 0 when not a tensor or not said
	Kind  uint8 // field number of the TypeProto's choice: 1 tensor, 4 sequence, 5 map, 8 sparse tensor, 9 optional, 0 none
	Shape bool  // a shape is given
	Dims  arena.Span
	// Params are the names of symbolic dimensions, one an entry of Dims, 0 for a number. Dims has 0 there.
	Params arena.Span // in model.lists
}

// funcRow is one FunctionProto.
type funcRow struct {
	Name, Domain, Overload arena.Name
	Ins, Outs              arena.Span // in model.lists
	Nodes                  arena.Span // node ids [Off, Off+Len)
	Attrs                  arena.Span // attributes with default values, in model.attrs
	Opsets                 arena.Span // in model.opsets
}

// opsetRow is one OperatorSetIdProto.
type opsetRow struct {
	Domain  arena.Name
	Version int64
}

// model is an ONNX file as flat tables. Strings, bytes and tensors stay in the file: rows hold ranges of it.
type model struct {
	data  []byte
	names *arena.Names

	nodes   arena.Table[nodeID, nodeRow]
	tensors arena.Table[tensorID, tensorRow]
	values  arena.Table[valueID, valueRow]
	funcs   arena.Table[funcID, funcRow]
	attrs   arena.Pool[attrRow]
	lists   arena.Pool[arena.Name]
	ints    arena.Pool[int64]
	texts   arena.Pool[arena.Span]
	opsets  arena.Pool[opsetRow]

	irVersion int64
	name      arena.Span // range
	hasGraph  bool
	graphOps  arena.Span // opset imports, in opsets
	main      arena.Span // node ids of the graph
	inits     arena.Span // tensor ids of the initializers
	inputs    arena.Span // value ids
	outputs   arena.Span // value ids
	sparse    int        // sparse initializers

	scratchInts  []int64
	scratchNames []arena.Name
	scratchAttrs []attrRow
	scratchTexts []arena.Span
	scratchIns   []arena.Name
	scratchOuts  []arena.Name
}

// text is a range of the file.
func (m *model) text(s arena.Span) []byte {
	return m.data[s.Off : uint64(s.Off)+uint64(s.Len)]
}

// parse decodes a ModelProto. names receives every name of the model.
func (m *model) parse(data []byte, names *arena.Names) error {
	if len(data) > math.MaxInt32 {
		return target.Errorf(target.Limit, "onnx: the file has %d bytes; a protobuf message has at most %d: keep the weights in external data",
			len(data), math.MaxInt32)
	}
	m.data, m.names = data, names
	c := cursor{b: data}
	var ops []opsetRow
	for c.next() {
		switch c.field {
		case 1:
			m.irVersion = c.int64()
		case 7:
			if m.hasGraph {
				c.fail("the model has two graphs")
			}
			m.hasGraph = true
			sub := c.message()
			m.graph(&sub)
			c.join(&sub)
		case 8:
			ops = append(ops, m.opset(&c))
		case 25:
			sub := c.message()
			m.function(&sub)
			c.join(&sub)
		default:
			c.skip()
		}
	}
	if c.err != nil {
		return c.err
	}
	if !m.hasGraph {
		return target.Errorf(target.User, "onnx: the file has no graph: it is not an ONNX model")
	}
	m.graphOps = m.opsets.AddSlice(ops)
	return nil
}

func (m *model) intern(c *cursor) arena.Name { return m.names.InternBytes(c.bytes()) }

func (m *model) opset(c *cursor) opsetRow {
	var o opsetRow
	s := c.message()
	for s.next() {
		switch s.field {
		case 1:
			o.Domain = m.intern(&s)
		case 2:
			o.Version = s.int64()
		default:
			s.skip()
		}
	}
	c.join(&s)
	return o
}

// graph reads the GraphProto of the model. Nodes, initializers, inputs and outputs each get consecutive ids.
func (m *model) graph(c *cursor) {
	m.main.Off = uint32(m.nodes.Len())
	m.inits.Off = uint32(m.tensors.Len())
	var inits, ins, outs []arena.Span // ranges: read after the nodes, so that each kind has consecutive ids
	for c.next() {
		switch c.field {
		case 1:
			m.node(c)
		case 2:
			m.name = c.span()
		case 5:
			inits = append(inits, c.span())
		case 11:
			ins = append(ins, c.span())
		case 12:
			outs = append(outs, c.span())
		case 15:
			m.sparse++
			c.skip()
		default:
			c.skip()
		}
	}
	m.main.Len = uint32(m.nodes.Len()) - m.main.Off
	m.inits = arena.Span{Off: uint32(m.tensors.Len()), Len: uint32(len(inits))}
	for _, r := range inits {
		sub := cursor{b: m.text(r), base: int(r.Off), err: c.err}
		m.tensors.Add(m.tensor(&sub))
		c.join(&sub)
	}
	infos := func(rs []arena.Span) arena.Span {
		s := arena.Span{Off: uint32(m.values.Len()), Len: uint32(len(rs))}
		for _, r := range rs {
			sub := cursor{b: m.text(r), base: int(r.Off), err: c.err}
			m.values.Add(m.valueInfo(&sub))
			c.join(&sub)
		}
		return s
	}
	m.inputs = infos(ins)
	m.outputs = infos(outs)
}

func (m *model) node(c *cursor) {
	var n nodeRow
	s := c.message()
	m.scratchIns, m.scratchOuts, m.scratchAttrs = m.scratchIns[:0], m.scratchOuts[:0], m.scratchAttrs[:0]
	for s.next() {
		switch s.field {
		case 1:
			m.scratchIns = append(m.scratchIns, m.intern(&s))
		case 2:
			m.scratchOuts = append(m.scratchOuts, m.intern(&s))
		case 3:
			n.Name = m.intern(&s)
		case 4:
			n.Op = m.intern(&s)
		case 5:
			m.scratchAttrs = append(m.scratchAttrs, m.attr(&s))
		case 7:
			n.Domain = m.intern(&s)
		case 8:
			n.Overload = m.intern(&s)
		default:
			s.skip()
		}
	}
	if !c.join(&s) {
		return
	}
	n.Ins, n.Outs = m.lists.AddSlice(m.scratchIns), m.lists.AddSlice(m.scratchOuts)
	n.Attrs = m.attrs.AddSlice(m.scratchAttrs)
	m.nodes.Add(n)
}

// attr reads an AttributeProto. Subgraphs stay undecoded: the operators that have them are refused by name.
func (m *model) attr(c *cursor) attrRow {
	var a attrRow
	s := c.message()
	m.scratchInts, m.scratchTexts = m.scratchInts[:0], m.scratchTexts[:0]
	seen := int32(0) // what files without a type field mean
	var tensor arena.Span
	for s.next() {
		switch s.field {
		case 1:
			a.Name = m.intern(&s)
		case 2:
			a.Num, seen = uint64(math.Float32bits(s.float())), attrFloat
		case 3:
			a.Num, seen = uint64(s.int64()), attrInt
		case 4:
			a.Str, seen = s.span(), attrString
		case 5:
			tensor, seen = s.span(), attrTensor
		case 6:
			s.skip()
			seen = attrGraph
		case 7:
			s.fixed(4, func(b []byte) {
				m.scratchInts = append(m.scratchInts, int64(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
			})
			seen = attrFloats
		case 8:
			m.scratchInts = s.ints(m.scratchInts)
			seen = attrInts
		case 9:
			m.scratchTexts = append(m.scratchTexts, s.span())
			seen = attrStrings
		case 11:
			s.skip()
			seen = attrGraphs
		case 20:
			a.Kind = s.int32()
		case 21:
			a.Ref = m.intern(&s)
		default:
			s.skip()
		}
	}
	if !c.join(&s) {
		return a
	}
	if a.Kind == 0 {
		a.Kind = seen
	}
	switch a.Kind {
	case attrFloats, attrInts:
		a.List = m.ints.AddSlice(m.scratchInts)
	case attrStrings:
		a.List = m.texts.AddSlice(m.scratchTexts)
	case attrTensor:
		sub := cursor{b: m.text(tensor), base: int(tensor.Off)}
		a.Tensor = m.tensors.Add(m.tensor(&sub))
		c.join(&sub)
	}
	return a
}

// valueInfo reads a ValueInfoProto: a name and, for tensors, element type and shape.
func (m *model) valueInfo(c *cursor) valueRow {
	var v valueRow
	for c.next() {
		switch c.field {
		case 1:
			v.Name = m.intern(c)
		case 2:
			t := c.message()
			for t.next() {
				switch t.field {
				case 1, 8:
					v.Kind = uint8(t.field)
					s := t.message()
					m.tensorType(&s, &v)
					t.join(&s)
				case 4, 5, 9:
					v.Kind = uint8(t.field)
					t.skip()
				default:
					t.skip()
				}
			}
			c.join(&t)
		default:
			c.skip()
		}
	}
	return v
}

func (m *model) tensorType(c *cursor, v *valueRow) {
	m.scratchInts, m.scratchNames = m.scratchInts[:0], m.scratchNames[:0]
	for c.next() {
		switch c.field {
		case 1:
			v.Code = c.int32()
		case 2:
			v.Shape = true
			s := c.message()
			for s.next() {
				if s.field != 1 {
					s.skip()
					continue
				}
				d := s.message()
				size, param := int64(0), m.names.Intern("?")
				for d.next() {
					switch d.field {
					case 1:
						size, param = d.int64(), 0
					case 2:
						size = 0
						if p := m.intern(&d); p != 0 {
							param = p
						}
					default:
						d.skip()
					}
				}
				s.join(&d)
				m.scratchInts = append(m.scratchInts, size)
				m.scratchNames = append(m.scratchNames, param)
			}
			c.join(&s)
		default:
			c.skip()
		}
	}
	v.Dims, v.Params = m.ints.AddSlice(m.scratchInts), m.lists.AddSlice(m.scratchNames)
}

// function reads a FunctionProto.
func (m *model) function(c *cursor) {
	var f funcRow
	var ins, outs []arena.Name
	var attrs []attrRow
	var ops []opsetRow
	f.Nodes.Off = uint32(m.nodes.Len())
	for c.next() {
		switch c.field {
		case 1:
			f.Name = m.intern(c)
		case 4:
			ins = append(ins, m.intern(c))
		case 5:
			outs = append(outs, m.intern(c))
		case 7:
			m.node(c)
		case 9:
			ops = append(ops, m.opset(c))
		case 10:
			f.Domain = m.intern(c)
		case 11:
			attrs = append(attrs, m.attr(c))
		case 13:
			f.Overload = m.intern(c)
		default:
			c.skip()
		}
	}
	if c.err != nil {
		return
	}
	f.Nodes.Len = uint32(m.nodes.Len()) - f.Nodes.Off
	f.Ins, f.Outs = m.lists.AddSlice(ins), m.lists.AddSlice(outs)
	f.Attrs, f.Opsets = m.attrs.AddSlice(attrs), m.opsets.AddSlice(ops)
	m.funcs.Add(f)
}

// IsONNX reports whether data looks like an ONNX model: the fields of a ModelProto, in a well-formed message, with a graph.
// It reads the top level only.
func IsONNX(data []byte) bool {
	c := cursor{b: data}
	graph, version := false, false
	for c.next() {
		switch c.field {
		case 1, 5:
			if c.wire != wireVarint {
				return false
			}
			version = true
			c.skip()
		case 7:
			sub := c.message()
			graph = sub.err == nil && (len(sub.b) == 0 || sub.next())
		case 2, 3, 4, 6, 8, 14, 20, 25, 26:
			c.bytes()
		default:
			return false
		}
	}
	return c.err == nil && graph && version
}
