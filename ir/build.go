package ir

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Builder appends to one block of one function. Sets and blocks of the function are gathered while building and laid down
// by Close.
type Builder struct {
	M     *Module
	Func  Func
	Block Block
	// Source is stamped on every instruction: the model operator being lowered.
	Source arena.Name

	sets   []Set
	blocks []Block
	order  []Inst
	recent [recentAPs]AP // patterns that were made lately, by a hash
}

// recentAPs is how many patterns may be found again. A tile that is multiplied is the operand of many instructions: on
// zoo:llama3-8b?layers=1&seq=2048 sharing takes the patterns from 2.8 to 1.6 an instruction.
const (
	recentBits = 10
	recentAPs  = 1 << recentBits
)

// NewFunc starts a function with one open block.
func (b *Builder) NewFunc(m *Module, name, block string) {
	b.M = m
	b.sets, b.blocks, b.order, b.Source = b.sets[:0], b.blocks[:0], b.order[:0], 0
	b.Func = m.Funcs.Add(FuncRow{Name: m.Names.Intern(name)})
	b.Block = m.Blocks.Add(BlockRow{Name: m.Names.Intern(block), Func: b.Func})
	b.blocks = append(b.blocks, b.Block)
	if m.Entry == 0 {
		m.Entry = b.Func
	}
}

// Close lays down the program order and the lists of the function.
func (b *Builder) Close() {
	m := b.M
	m.Blocks.At(b.Block).Order = m.Order.AddSlice(b.order)
	f := m.Funcs.At(b.Func)
	f.Blocks = m.BlockList.AddSlice(b.blocks)
	f.Sets = m.SetList.AddSlice(b.sets)
}

// Tensor adds a logical tensor without placements.
func (b *Builder) Tensor(name arena.Name, kind TensorKind, class TensorClass, d target.Dtype, shape ...int64) Set {
	s := b.M.Sets.Add(SetRow{
		Name: name, Kind: kind, Class: class, Dtype: d, Func: b.Func, Shape: b.M.Ints.AddSlice(shape),
	})
	b.sets = append(b.sets, s)
	return s
}

// Place adds the next placement of the set that was added last.
func (b *Builder) Place(s Set, name arena.Name, space target.Space, parts uint32, bytes int64) Loc {
	m := b.M
	l := m.Locs.Add(LocRow{Name: name, Set: s, Space: space, Parts: parts, Bytes: bytes, Pack: -1, ID: -1})
	r := m.Sets.At(s)
	if r.Count == 0 {
		r.First = l
	}
	r.Count++
	return l
}

// SB adds an SBUF tensor of parts partitions × elems elements with one placement.
func (b *Builder) SB(name arena.Name, d target.Dtype, parts int, elems int64) Loc {
	s := b.Tensor(name, KindInternal, ClassNeuronSBTensor, d, int64(parts), elems)
	return b.Place(s, name, target.SpaceSB, uint32(parts), elems*int64(d.Size()))
}

// PSUM adds a PSUM tensor of parts partitions × elems elements with one placement.
func (b *Builder) PSUM(name arena.Name, d target.Dtype, parts int, elems int64) Loc {
	s := b.Tensor(name, KindInternal, ClassNeuronPSUMTensor, d, int64(parts), elems)
	return b.Place(s, name, target.SpacePSUM, uint32(parts), elems*int64(d.Size()))
}

// DRAM adds a DRAM tensor with one placement of its dense row-major size.
func (b *Builder) DRAM(name arena.Name, kind TensorKind, d target.Dtype, shape ...int64) Loc {
	s := b.Tensor(name, kind, ClassTensor, d, shape...)
	b.M.Sets.At(s).PartDim = -1
	n := int64(d.Size())
	for _, x := range shape {
		n *= x
	}
	return b.Place(s, name, target.SpaceDRAM, 1, n)
}

// Chip makes an operand on an SBUF or PSUM location: partitions [start, start+parts), elements from off on, free axes
// outermost first.
func (b *Builder) Chip(l Loc, d target.Dtype, start, parts int, off int64, free ...Pair) Arg {
	r := APRow{Loc: l, Dtype: d, Start: uint8(start), Parts: uint16(parts), Off: off}
	r.Pairs[0] = Pair{int32(b.M.Pitch(l, d)), uint32(parts)}
	copy(r.Pairs[1:], free)
	return Arg{Kind: ArgAP, Dtype: d, Ref: uint32(b.pattern(&r))}
}

// Mem makes an operand on a DRAM location: axes outermost first.
func (b *Builder) Mem(l Loc, d target.Dtype, off int64, axes ...Pair) Arg {
	r := APRow{Loc: l, Dtype: d, Off: off}
	copy(r.Pairs[:], axes)
	return Arg{Kind: ArgAP, Dtype: d, Ref: uint32(b.pattern(&r))}
}

// pattern is the row of an access pattern: one that was made lately, if it is equal, or a new one.
func (b *Builder) pattern(r *APRow) AP {
	h := uint64(r.Loc)<<32 ^ uint64(r.Off) ^ uint64(r.Parts)<<20 ^ uint64(r.Start)<<48
	for _, p := range r.Pairs[1:3] {
		h = h*0x9e3779b97f4a7c15 ^ uint64(p.Num)<<32 ^ uint64(uint32(p.Step))
	}
	at := &b.recent[h*0x9e3779b97f4a7c15>>(64-recentBits)]
	if int(*at) >= b.M.APs.Len() || *at == 0 || *b.M.APs.At(*at) != *r {
		*at = b.M.APs.Add(*r)
	}
	return *at
}

// Emit appends an instruction to the open block.
func (b *Builder) Emit(op Opcode, e target.Engine, ins, outs []Arg, attrs ...Attr) Inst {
	i := b.M.NewInst(b.Block, op, e, ins, outs, attrs...)
	if b.Source != 0 {
		b.M.Source.Set(i, b.Source)
	}
	b.order = append(b.order, i)
	return i
}

// NewInst adds an instruction row that belongs to a block but is not yet in its order: an Edits places it.
func (m *Module) NewInst(blk Block, op Opcode, e target.Engine, ins, outs []Arg, attrs ...Attr) Inst {
	mark := m.Args.Mark()
	for _, a := range ins {
		m.Args.Push(a)
	}
	for _, a := range outs {
		m.Args.Push(a)
	}
	at := m.Attrs.Mark()
	for _, a := range attrs {
		m.Attrs.Push(a)
	}
	return m.Insts.Add(InstRow{
		Op: op, Engine: e, NIn: uint8(len(ins)), NOut: uint8(len(outs)), NAttr: uint16(len(attrs)),
		Block: blk, Args: mark, Attrs: at,
	})
}
