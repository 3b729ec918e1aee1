package ir

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Module is a program in flat tables. Usable as its zero value; Reset keeps all capacity, so one Module serves a worker for
// its whole life.
type Module struct {
	Names arena.Names
	Gen   *target.Generation
	Name  arena.Name

	Funcs  arena.Table[Func, FuncRow]
	Blocks arena.Table[Block, BlockRow]
	Insts  arena.Table[Inst, InstRow]
	APs    arena.Table[AP, APRow]
	Syms   arena.Table[Sym, SymRow]
	Sets   arena.Table[Set, SetRow]
	Locs   arena.Table[Loc, LocRow]
	Regs   arena.Table[Reg, RegRow]
	Queues arena.Table[Queue, QueueRow]
	Axes   arena.Table[Axis, AxisRow]
	Exprs  arena.Table[Expr, ExprRow]
	Consts arena.Table[Const, ConstRow]

	// Source is the provenance of an instruction: the model operator that it computes, as a name.
	Source arena.Column[Inst, arena.Name]
	// Regions are the loops: instruction -> axis and body.
	Regions arena.Column[Inst, RegionRow]
	// Syncs are waits and updates after synchronisation: instruction -> spans of SyncOps.
	Syncs arena.Column[Inst, SyncRow]

	// Pools of variable-length lists.
	Args      arena.Pool[Arg]
	Attrs     arena.Pool[Attr]
	Deps      arena.Pool[Dep]
	Order     arena.Pool[Inst] // program order of blocks
	BlockList arena.Pool[Block]
	SetList   arena.Pool[Set]
	RegList   arena.Pool[Reg]
	Ints      arena.Pool[int64]
	NameList  arena.Pool[arena.Name]
	SyncOps   arena.Pool[SyncOp]
	Terms     arena.Pool[Term]
	Wide      arena.Pool[uint64] // 64-bit immediates and immediate arrays
	Bytes     arena.Pool[byte]   // data of embedded constants
	Aliases   arena.Pool[AliasRow]

	// Entry is the function that runs.
	Entry Func
	// Attributes of the module that no table explains, as `"key":value` JSON text.
	Extra arena.Span // in NameList
	// SemaphoresPerQueue is the ring length of a queue set, 0 before queue allocation.
	SemaphoresPerQueue int32
}

// FuncRow is one function.
type FuncRow struct {
	Name   arena.Name
	Blocks arena.Span // top-level blocks in order, in BlockList
	Sets   arena.Span // allocations in order, in SetList
	Regs   arena.Span // in RegList
	Flags  FuncFlag
	Extra  arena.Span // attributes of the JSON form, in NameList
}

// FuncFlag is what passes tell each other about a function.
type FuncFlag uint32

const (
	FuncPsumPlaced FuncFlag = 1 << iota
	FuncSBPlaced
	FuncDRAMPlaced
	FuncHasDeps
	FuncScheduled
	FuncGroupsLegal // accumulation groups have final flags
	FuncQueued
	FuncSynced
	FuncExplicitFlags // the producer's accumulation flags are final
	FuncNKI           // a kernel function: JSON lists it under nki_functions
)

// BlockRow is one basic block. Order is its program order: rows of Insts never move, only this list changes.
type BlockRow struct {
	Name   arena.Name
	Func   Func
	Parent Inst // the region instruction that holds it, none at top level
	Order  arena.Span
}

// InstRow is one instruction. 40 bytes. Operands lie in Args: NIn inputs (immediates among them), then NInd index
// operands, then NOut outputs.
type InstRow struct {
	Op     Opcode
	Engine target.Engine
	NIn    uint8
	NOut   uint8
	NInd   uint8
	Origin Origin
	NAttr  uint16
	Name   arena.Name
	Block  Block
	Args   uint32
	Attrs  uint32
	Queue  Queue
	Deps   arena.Span
	Flags  InstFlag
}

// InstFlag marks instructions for later passes.
type InstFlag uint32

const (
	// InstSpill and InstReload mark copies that an allocator inserted, both together one from a place on chip to another.
	InstSpill InstFlag = 1 << iota
	InstReload
	// InstUnit ties an instruction to its predecessor in the block: schedulers keep the pair adjacent.
	InstUnit
)

// RegionRow is the body of a loop instruction.
type RegionRow struct {
	Axis   Axis
	Blocks arena.Span // in BlockList
}

// SetRow is one logical tensor.
type SetRow struct {
	Name    arena.Name
	Shape   arena.Span // in Ints
	First   Loc        // placements are rows First … First+Count-1 of Locs
	Count   uint32
	Const   Const
	Func    Func
	Kind    TensorKind
	Class   TensorClass
	Dtype   target.Dtype
	Addr    AddrSpace
	PartDim int8 // logical dim on partitions, -1 none
	Origin  Origin
	Flags   SetFlag
	LiveN   uint32     // live blocks after shrinking, 0 = Count
	File    arena.Name // backing file of a constant
	Extra   arena.Span // unknown JSON keys, in NameList
}

// SetFlag is a property of a logical tensor.
type SetFlag uint8

const (
	SetNoSpill SetFlag = 1 << iota
	SetVolatile
	SetVirtual
	SetNoRotate
	SetSpillHome // the DRAM home of a spilled value
	SetReload    // a short-lived reload copy: never a spill victim
)

// LocRow is one placement. For SB and PSUM, Parts and Bytes are partitions and bytes a partition; for DRAM their product is
// the size.
type LocRow struct {
	Name  arena.Name
	Set   Set
	Addr  int64 // SB: byte in partition; PSUM: byte in bank; DRAM: linear byte offset
	Bytes int64
	Parts uint32
	Space target.Space
	Flags LocFlag
	Base  uint8 // start partition: 0, 32, 64 or 96
	Bank  int8  // first PSUM bank
	Pack  int16 // pack hint, -1 none
	ID    int32 // tensor id, -1 unset
	Extra arena.Span
}

// LocFlag is a property of a placement.
type LocFlag uint8

const (
	LocAllocated LocFlag = 1 << iota
	LocUserAllocated
	LocPinned
	LocReserved // reserved for the runtime
	LocRemoteWriter
)

// AliasRow says that two DRAM placements share bytes.
type AliasRow struct {
	A, B Loc
	Kind uint8
}

// Kinds of an AliasRow; other values stand for may.
const (
	AliasMay  = 1
	AliasMust = 3 // the two are the same bytes
)

// AliasRows are the alias relations of the module. Not to be written.
func (m *Module) AliasRows() []AliasRow {
	return m.Aliases.Of(arena.Span{Len: uint32(m.Aliases.Len())})
}

// RegRow is one scalar register.
type RegRow struct {
	Name   arena.Name
	Dtype  target.Dtype
	Width  uint8 // 1, or 2 for 64 bits
	Engine target.Engine
	Phys   int8 // first physical id, -1 unassigned
}

// QueueRow is one DMA queue set.
type QueueRow struct {
	Name      arena.Name
	Owner     target.Engine
	Dir       QueueDir
	NumQueues uint8
	SemBase   uint8 // first semaphore of its ring
	Extra     arena.Span
}

// QueueDir is what a queue set carries.
type QueueDir uint8

const (
	QueueLoad QueueDir = iota
	QueueStore
	QueueCopy
)

// Dep is an edge: the owner depends on Inst.
type Dep struct {
	Inst Inst
	Kind DepKind
}

// SyncRow is the waits and updates of one instruction, in SyncOps.
type SyncRow struct {
	Waits   arena.Span
	Updates arena.Span
}

// SyncOp is one wait (semaphore ≥ Value) or one update (semaphore += Value).
type SyncOp struct {
	Sem   uint16
	Value int32
	From  Inst // of a wait: the producer, for messages
}

// AxisRow is a loop axis: Lo ≤ i < Hi by Step.
type AxisRow struct {
	Name   arena.Name
	Lo, Hi int64
	Step   int64
}

// ExprKind is a node kind of an affine expression.
type ExprKind uint8

const (
	ExprAffine   ExprKind = iota + 1 // C + Σ coeff·term
	ExprSum                          // Σ terms
	ExprMul                          // A · C
	ExprFloorDiv                     // A div C
	ExprMod                          // A mod C
	ExprAxis                         // loop axis Ref
	ExprReg                          // register Ref
	ExprShard                        // shard id below C
	ExprIndirect                     // indirect argument C
	ExprCCDiv                        // A div C over the replica groups Ref
	ExprCCRank                       // rank in channel C at iteration Ref
)

// ExprRow is one expression; children are rows with smaller numbers.
type ExprRow struct {
	Kind  ExprKind
	A     Expr
	Ref   uint32
	C     int64
	Terms arena.Span
}

// Term is one summand of an affine expression.
type Term struct {
	Expr  Expr
	Coeff int64
}

// ConstKind says where the bytes of a constant tensor come from.
type ConstKind uint8

const (
	// ConstEmbedded: Data holds the bytes.
	ConstEmbedded ConstKind = iota + 1
	// ConstModel: the model's tensor Tensor after Recipe; the package refers to it by name and digest.
	ConstModel
)

// ConstRow is the data of a constant set. Recipe is the steps from the model's row-major tensor to the set's row-major
// bytes, "; " separated: `reshape 4,128,512`, `permute 1,0,2`, `slice lo:hi,…`, `pad lo:hi,…` (zeros), `cast bfloat16`;
// empty for none.
type ConstRow struct {
	Kind   ConstKind
	Dtype  target.Dtype // of the source tensor, before any cast
	Data   arena.Span   // in Bytes
	Tensor arena.Name
	Recipe arena.Name
	Shape  arena.Span // of the source tensor, in Ints
}

// Reset empties the module and keeps its memory.
func (m *Module) Reset() {
	m.Names.Reset()
	m.Funcs.Reset()
	m.Blocks.Reset()
	m.Insts.Reset()
	m.APs.Reset()
	m.Syms.Reset()
	m.Sets.Reset()
	m.Locs.Reset()
	m.Regs.Reset()
	m.Queues.Reset()
	m.Axes.Reset()
	m.Exprs.Reset()
	m.Consts.Reset()
	m.Source.Reset()
	m.Regions.Reset()
	m.Syncs.Reset()
	m.Args.Reset()
	m.Attrs.Reset()
	m.Deps.Reset()
	m.Order.Reset()
	m.BlockList.Reset()
	m.SetList.Reset()
	m.RegList.Reset()
	m.Ints.Reset()
	m.NameList.Reset()
	m.SyncOps.Reset()
	m.Terms.Reset()
	m.Wide.Reset()
	m.Bytes.Reset()
	m.Aliases.Reset()
	m.Gen, m.Name, m.Entry, m.Extra, m.SemaphoresPerQueue = nil, 0, 0, arena.Span{}, 0
}

// OrderOf is the program order of a block.
func (m *Module) OrderOf(b Block) []Inst { return m.Order.Of(m.Blocks.At(b).Order) }

// BlocksOf are the top-level blocks of a function.
func (m *Module) BlocksOf(f Func) []Block { return m.BlockList.Of(m.Funcs.At(f).Blocks) }

// SetsOf are the allocations of a function.
func (m *Module) SetsOf(f Func) []Set { return m.SetList.Of(m.Funcs.At(f).Sets) }

// Ins are the inputs of an instruction.
func (m *Module) Ins(i Inst) []Arg {
	r := m.Insts.At(i)
	return m.Args.Of(arena.Span{Off: r.Args, Len: uint32(r.NIn)})
}

// Indices are the index operands of a gather or scatter.
func (m *Module) Indices(i Inst) []Arg {
	r := m.Insts.At(i)
	return m.Args.Of(arena.Span{Off: r.Args + uint32(r.NIn), Len: uint32(r.NInd)})
}

// Outs are the outputs of an instruction.
func (m *Module) Outs(i Inst) []Arg {
	r := m.Insts.At(i)
	return m.Args.Of(arena.Span{Off: r.Args + uint32(r.NIn) + uint32(r.NInd), Len: uint32(r.NOut)})
}

// AllArgs are all operands of an instruction: inputs, indices, outputs.
func (m *Module) AllArgs(i Inst) []Arg {
	r := m.Insts.At(i)
	return m.Args.Of(arena.Span{Off: r.Args, Len: uint32(r.NIn) + uint32(r.NInd) + uint32(r.NOut)})
}

// DepsOf are the instructions that i depends on.
func (m *Module) DepsOf(i Inst) []Dep { return m.Deps.Of(m.Insts.At(i).Deps) }

// LocsOf are the placements of a set, first and count.
func (m *Module) LocsOf(s Set) (first Loc, n int) {
	r := m.Sets.At(s)
	return r.First, int(r.Count)
}

// LocName is the name of a location for messages.
func (m *Module) LocName(l Loc) string {
	if l == 0 {
		return "%none"
	}
	if n := m.Locs.At(l).Name; n != 0 {
		return "%" + m.Names.String(n)
	}
	return l.String()
}

// RegName is the name of a register for messages.
func (m *Module) RegName(r Reg) string {
	if r != 0 {
		if n := m.Regs.At(r).Name; n != 0 {
			return "%" + m.Names.String(n)
		}
	}
	return r.String()
}

// InstName is the name of an instruction for messages.
func (m *Module) InstName(i Inst) string {
	if i == 0 {
		return "none"
	}
	if n := m.Insts.At(i).Name; n != 0 {
		return m.Names.String(n)
	}
	return i.String()
}

// Bits of a matmul's accumulation flag.
const (
	GroupStart      = 1 // overwrites, and opens a group
	GroupStop       = 2 // closes the group
	GroupAccumulate = 4 // adds to what the destination holds
)

// ReadsDst reports an instruction whose destination is also an input: the opcode says so, or a matmul adds to what stands
// there.
func (m *Module) ReadsDst(i Inst) bool {
	f := m.Insts.At(i).Op.Info().Flags
	return f&FlagReadsDst != 0 || f&FlagMatmul != 0 && m.Attr(i, KeyAccumulationFlag)&(GroupStart|GroupAccumulate) == GroupAccumulate
}

// StateOf is the engine state that an instruction reads and writes.
func (m *Module) StateOf(i Inst) (reads, writes State) {
	r := m.Insts.At(i)
	in := r.Op.Info()
	reads, writes = in.Reads, in.Writes
	var acc State
	switch r.Op {
	case OpActivation:
		if f := target.ActFunc(m.Attr(i, KeyFunc)); f.TableSet() != 0 {
			reads |= StateActTable
		}
		acc = accState(target.AccCmd(m.Attr(i, KeyAcc)), StateActAcc)
	case OpTensorScalarPtr, OpTensorScalarCache, OpTensorTensor:
		acc = accState(target.AccCmd(m.Attr(i, KeyAcc)), StateDVEAcc)
	case OpCopyPredicated:
		acc = accState(target.AccCmd(m.Attr(i, KeyAccumulatorCmd)), StateDVEAcc)
	case OpRangeSelect, OpExponential:
		acc = accState(target.AccCmd(m.Attr(i, KeyReduceCmd)), StateDVEAcc)
	case OpMemset:
		if MemsetMode(m.Attr(i, KeyMemsetMode)) == MemsetRandom {
			reads, writes = reads|StateRNG, writes|StateRNG
		}
	}
	if acc != 0 {
		reads, writes = reads|acc, writes|acc
	}
	return reads, writes
}

func accState(c target.AccCmd, s State) State {
	if c == target.AccIdle {
		return 0
	}
	return s
}
