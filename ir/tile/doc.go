// Package tile lowers a model's operators on whole tensors (ir/graph) to instructions on tiles (ir).
//
// # Way of the data
//
//	graph nodes ─ import ─ values and views ─ order ─ units ─ layouts, residents, counts ─ instructions
//
//	val       a tensor that one machine operation makes tile by tile                    value.go, lowering.go
//	view      a strided window on a value; what moves without arithmetic is a view      view.go
//	unit      values that share one pass over the tiles of one domain                   unit.go, order.go
//	domain    the axes of a unit and which loop each belongs to                         view.go
//	plan      tile height, chunk width                                                  budget.go
//	blocking  the loop nest of a product: what stays on chip for how long               blocking.go
//	resident  a value that stays in SBUF between units, and who can read it there       resident.go, stay.go
//	form      a chain of values that one instruction computes                           fuse.go
//
// Import: import.go (leaves, norms), elementwise.go, integers.go, numbers.go (what is computed here), moves.go, take.go, wrap.go
// (indices), reductions.go, contractions.go, relay.go (constant operands), top.go (arg-max, top-k, running sums).
// A Workspace keeps the storage of all of it from one lowering to the next (lower.go).
// Emission: emit.go (tiles of a unit), instr.go (instructions), matmul.go, transpose.go, conv.go, window.go, assemble.go
// (concatenations, paddings), transfer.go (DMA), homes.go (DRAM). refuse.go counts what would be emitted, before it is.
//
// # Invariants
//
// A view's root is a value; its steps count elements of the root in row-major order, which is how the root lies in DRAM.
// An operand's value has a smaller number than its reader's. Units run in order of theirs: a unit reads only values of
// itself and of earlier units.
// Repeated elements are never stored as data: they are immediates, or a Memset where a tile is needed.
// Every value is rounded to its element type where the model says, except that what reads a product straight from PSUM sees
// its float32 sum. Values may be stored in a narrower type that holds them all.
// No axis of an engine operand exceeds the wire's slots, and no transfer five axes a side.
// A value lives in DRAM only when a reader cannot walk it in SBUF, or when it does not fit there beside the tiles of the
// units in between.
package tile
