// Package verify checks modules and repairs nothing. Its checkers share no code with what they check:
//
//	Module     legality of every instruction, after any pass                     module.go, operand.go, shape.go, gather.go
//	Placement  no two locations that are live at once overlap; bounds, alignment  placement.go, lives.go
//	Reads      every read finds the bytes that were written for it                reads.go
//	Written    every byte that is read was written before                         written.go
//	Order      accumulation groups and synchronisation in the final order         order.go
//	Registers  each register is read where its value is, on every path            registers.go
//
// Placement, Reads and Written know loops: loops.go lays bodies out and finds what turns have in common, turns.go walks the turns.
//
// # Invariants that Module checks
//
//  1. The opcode exists on the generation, its engine may issue it, its operand counts are those of the opcode table, and it
//     is neither abstract nor a container.
//  2. Every access pattern lies inside its location: partitions, row, and in DRAM the whole walk. On chip the start partition
//     is legal for the partition count and partitions are consecutive; what engines touch is placed on a multiple of its
//     element type's alignment.
//  3. Engine operands fit a wire slot: free axes, int16 steps, uint16 counts, element counts.
//  4. Memory spaces: a matmul reads SBUF and writes PSUM inside one bank window; a two-input operator has at most one
//     operand in PSUM; Pool has none; loads, saves and copies move between the spaces of their name. A gather reads rows of
//     a table in DRAM by one index a partition in SB and writes them to SB, without gaps and not over the indices.
//  5. Element types: PSUM is written in four-byte types (transposes and bfloat16 by generation excepted); 32-bit floats pair
//     only with 32-bit floats in a matmul; 64-bit and packed types are only moved.
//  6. Shapes: elementwise operands have equal partitions and elements; a reduction folds the axes that it names; a matmul's
//     K, M and N agree and are within the array.
//  7. Accumulation flags are in {0, 1, 2, 3, 4, 6}; operators have a byte on the generation.
//  8. Dependences name instructions of the module.
//
// Not checked here: races (codegen/machine does, on the package).
package verify
