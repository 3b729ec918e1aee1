package graph

import "github.com/rosmar-compiler/rosmar/arena"

// BeginComp opens a computation: nodes added until EndComp belong to it.
func (g *Graph) BeginComp(name string) Comp {
	return g.Comps.Add(CompRow{Name: g.Names.Intern(name), First: Node(g.Nodes.Len())})
}

// EndComp closes a computation. params are its parameters by number.
func (g *Graph) EndComp(c Comp, root Node, params []Node) {
	r := g.Comps.At(c)
	r.Count = uint32(g.Nodes.Len()) - uint32(r.First)
	r.Root = root
	r.Params = g.NodeLists.AddSlice(params)
}

// AddNode appends an operator to the open computation. ins and attrs are copied.
func (g *Graph) AddNode(c Comp, op Op, t Type, name arena.Name, ins []Node, attrs ...Attr) Node {
	return g.Nodes.Add(NodeRow{
		Op: op, Type: t, Name: name, Comp: c,
		Ins: g.NodeLists.AddSlice(ins), Attrs: g.AttrRows.AddSlice(attrs),
	})
}

// AddParam appends parameter number i.
func (g *Graph) AddParam(c Comp, i int, t Type, name string) Node {
	return g.AddNode(c, OpParameter, t, g.Names.Intern(name), nil, g.IntsAttr(AttrIndex, int64(i)))
}

// AddSplat appends a constant of one repeated element whose little-endian bytes are bits.
func (g *Graph) AddSplat(c Comp, t Type, bits uint64, name arena.Name) Node {
	n := g.AddNode(c, OpConstant, t, name, nil)
	k := g.Consts.Add(ConstRow{Kind: ConstSplat, Bits: bits})
	g.Nodes.At(n).Const = k
	return n
}

// AddDense appends a constant with its own bytes, row-major little-endian; data is copied.
func (g *Graph) AddDense(c Comp, t Type, data []byte, name arena.Name) Node {
	n := g.AddNode(c, OpConstant, t, name, nil)
	k := g.Consts.Add(ConstRow{Kind: ConstDense, Data: g.Bytes.AddSlice(data)})
	g.Nodes.At(n).Const = k
	return n
}

// AddBlob appends a constant whose bytes are somebody else's: blob[off:off+size].
func (g *Graph) AddBlob(c Comp, t Type, blob uint32, off, size int64, name arena.Name) Node {
	n := g.AddNode(c, OpConstant, t, name, nil)
	k := g.Consts.Add(ConstRow{Kind: ConstBlob, Blob: blob, Off: off, Len: size})
	g.Nodes.At(n).Const = k
	return n
}

// AddElided appends a constant without bytes: supplied by name, or generated from seed (0: none) with deviation std.
func (g *Graph) AddElided(c Comp, t Type, seed uint64, std float32, name arena.Name) Node {
	n := g.AddNode(c, OpConstant, t, name, nil)
	k := g.Consts.Add(ConstRow{Kind: ConstElided, Seed: seed, Std: std})
	g.Nodes.At(n).Const = k
	return n
}
