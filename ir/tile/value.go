package tile

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// val is a value of the lowering: a tensor that some operator makes, or that comes from outside.
type val uint32

// unitID is a unit; 0 stands for values that no unit makes (inputs, constants, splats).
type unitID uint32

// vop says how a value is made.
type vop uint8

const (
	vNone vop = iota

	// From outside.
	vInput // parameter
	vConst // dense constant
	vSplat // one element repeated: bits

	// Element by element, over the axes of the value.
	vAct  // fn(x·c1 + c0), alpha: c2
	vTS   // op1(op0(x, c0), c1)
	vTT   // a op0 b
	vSel  // p ? t : f
	vCopy // x, with a cast
	vIota // 0, 1, 2… along the only axis

	// The roots of units of their own.
	vReduce // folds axes of x with op0
	vDot
	vConv
	vWindow // folds windows of x with op0, sorts or sums its rows
	vPieces // written piece by piece
	vTake   // rows of a table, by an index

	vTopIndex // where the elements of a sorted row were: made with the row
)

// elementwise reports values that may join any unit over the same elements.
func (o vop) elementwise() bool { return o >= vAct && o <= vIota }

// valueRow is one value. Its storage type may be narrower than the model's: 64-bit integers of small range live as int32.
type valueRow struct {
	op         vop
	dt         target.Dtype
	fn         target.ActFunc
	op0, op1   target.AluOp
	rev0, rev1 bool
	row        bool // in a unit with reductions: one element a row
	c0, c1, c2 float32
	unit       unitID
	uses       uint32     // operands that refer to it, outputs included
	src        graph.Node // what it computes
	args       arena.Span // operand views
	dims       arena.Span // shape, in ints
	aux        uint32     // row of the side table of its operator
	bits       uint64     // of vSplat
	lo, hi     int64      // range of an integer value
}

// machineType is the storage type of each element type of a model; ok is false for those that no engine and no copy takes.
// f8e4m3 is among them: its wire tag means f8e4m3fn.
func machineType(d graph.Dtype) (target.Dtype, bool) {
	t := machineTypes[d]
	return t.dt, t.ok
}

var machineTypes = [graph.NumDtypes]struct {
	dt target.Dtype
	ok bool
}{
	graph.Bool: {target.Uint8, true}, graph.S8: {target.Int8, true}, graph.U8: {target.Uint8, true},
	graph.S16: {target.Int16, true}, graph.U16: {target.Uint16, true}, graph.S32: {target.Int32, true},
	graph.U32: {target.Uint32, true}, graph.S64: {target.Int64, true}, graph.U64: {target.Uint64, true},
	graph.BF16: {target.BFloat16, true}, graph.F16: {target.Float16, true}, graph.F32: {target.Float32, true},
	graph.F8E4M3FN: {target.Float8E4M3FN, true}, graph.F8E5M2: {target.Float8E5, true},
	graph.F8E3M4: {target.Float8E3, true},
}

// exactLimit bounds the integers that fp32 arithmetic keeps exact.
const exactLimit = 1 << 24

// typeRange is the range of an integer type.
func typeRange(d graph.Dtype) (lo, hi int64) {
	switch {
	case d == graph.Bool:
		return 0, 1
	case d == graph.U64:
		return 0, math.MaxInt64
	case !d.IsInt():
		return math.MinInt64, math.MaxInt64
	case d.Signed():
		return -1 << (d.Bits() - 1), 1<<(d.Bits()-1) - 1
	}
	return 0, 1<<d.Bits() - 1
}

func isSmall(lo, hi int64) bool { return lo >= -exactLimit && hi <= exactLimit }

// decodeSplat is the value of a repeated element.
func decodeSplat(d graph.Dtype, bits uint64) float32 {
	if d.IsInt() || d == graph.Bool {
		return float32(decodeInt(d, bits))
	}
	return float32(graph.DecodeFloat(d, bits))
}

func decodeInt(d graph.Dtype, bits uint64) int64 {
	w := uint(d.Bits())
	if w == 0 || w >= 64 {
		return int64(bits)
	}
	if d.Signed() {
		return int64(bits<<(64-w)) >> (64 - w)
	}
	return int64(bits & (1<<w - 1))
}
