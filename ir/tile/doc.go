// Package tile lowers a model's operators on whole tensors (ir/graph) to instructions on tiles (ir).
//
// # Way of the data
//
//	graph nodes ─ import ─ values and views ─ form units ─ plan ─ instructions
//
//	val      a tensor that one machine operation makes a tile of                       value.go, lowering.go
//	view     a strided window on a value; what moves without arithmetic is a view      view.go
//	unit     values that share one pass over the tiles of one domain                   unit.go
//	domain   the axes of a unit and which loop each belongs to                         view.go
//	plan     tile height, chunk width                                                  budget.go
//
// Import: import.go (leaves, norms), elementwise.go, integers.go, numbers.go, moves.go, reductions.go, contractions.go.
// Emission: emit.go (tiles of a unit), instr.go (instructions), matmul.go, conv.go, assemble.go, transfer.go (DMA), homes.go (DRAM).
//
// # Invariants
//
// A view's root is a value; its steps count elements of the root in row-major order, which is how the root lies in DRAM.
// Values are numbered in topological order, and units run in order: a unit reads only values of itself and earlier units.
// Repeated elements are never stored as data: they are immediates, or a Memset where a tile is needed.
// Every value is rounded to its storage type where the model says, except that what reads a product straight from PSUM sees
// its float32 sum.
// No axis of an engine operand exceeds the wire's slots, and no transfer five axes a side.
package tile
