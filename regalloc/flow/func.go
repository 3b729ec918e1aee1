package flow

// Value is an SSA value, numbered from 0 in its function.
type Value = uint32

// NoBlock is the block of nothing.
const NoBlock = ^uint32(0)

// Class is a kind of register.
type Class uint8

const (
	Int Class = iota
	Float
	NumClasses = 2
)

func (c Class) String() string { return [NumClasses]string{"integer", "float"}[c] }

// Kind is what an instruction asks of its operands.
type Kind uint8

const (
	Op     Kind = iota // uses and results in registers
	Args               // defines the arguments of the function, anywhere; the first instruction of block 0, if at all
	Call               // operands anywhere; destroys registers
	Branch             // the last of its block: tests in registers, then the values passed along the edges
	Return             // the last of its block: uses anywhere
)

// Span is a run of rows of a table.
type Span struct{ From, To uint32 }

// Len is the number of rows.
func (s Span) Len() int { return int(s.To - s.From) }

// Inst is one instruction. Its operands are rows Uses.From … of Func.Ops, its results the rows Uses.To … To. 16 bytes.
type Inst struct {
	Uses Span
	To   uint32
	Kind Kind
}

// Defs are the rows of the results.
func (i *Inst) Defs() Span { return Span{i.Uses.To, i.To} }

// Block is one basic block. 32 bytes.
type Block struct {
	Insts  Span // the last is a Branch or a Return
	Params Span // in Ops
	Succs  Span // in Edges
	Preds  Span // in Preds
}

// Edge is one way from a block to another. Args are the rows of Ops that feed the parameters of To, in order.
type Edge struct {
	From, To uint32
	Args     Span
}

// Func is one function in flat tables. The zero value is empty; Reset keeps the memory.
type Func struct {
	Name   string
	Blocks []Block
	Insts  []Inst
	Ops    []Value // operands, results, parameters and arguments of edges
	Edges  []Edge
	Preds  []uint32 // edges by their target
	Class  []Class  // by value
}

// Reset empties the function.
func (f *Func) Reset() {
	f.Name = ""
	f.Blocks, f.Insts, f.Ops = f.Blocks[:0], f.Insts[:0], f.Ops[:0]
	f.Edges, f.Preds, f.Class = f.Edges[:0], f.Preds[:0], f.Class[:0]
}

// Values is the number of values.
func (f *Func) Values() int { return len(f.Class) }

// Of are the values in a run of rows. Not to be written.
func (f *Func) Of(s Span) []Value { return f.Ops[s.From:s.To] }

// Last is the instruction that ends a block.
func (f *Func) Last(b uint32) uint32 { return f.Blocks[b].Insts.To - 1 }

// linkPreds lists the edges into each block, in order of edges.
func (f *Func) linkPreds() {
	for b := range f.Blocks {
		f.Blocks[b].Preds = Span{}
	}
	for i := range f.Edges {
		f.Blocks[f.Edges[i].To].Preds.To++
	}
	at := uint32(0)
	for b := range f.Blocks {
		p := &f.Blocks[b].Preds
		at, *p = at+p.To, Span{at, at}
	}
	if cap(f.Preds) < len(f.Edges) {
		f.Preds = make([]uint32, len(f.Edges))
	}
	f.Preds = f.Preds[:len(f.Edges)]
	for i := range f.Edges {
		p := &f.Blocks[f.Edges[i].To].Preds
		f.Preds[p.To] = uint32(i)
		p.To++
	}
}
