// Package ssa puts a function in one linear order and says what reads and writes each location where.
//
// # Tables
//
//	Linear   program points of a function, and per location its accesses in program order (compressed rows)   linear.go
//	Ranges   the units that an allocator places, numbered in order of first definition, with live ranges      ranges.go, carried.go
//	Loop     one region of a flattened order                                                                  loops.go
//
// # Invariants
//
// There are two orders. In the plain one a point is a top-level instruction and a region instruction (a loop) is opaque: whatever
// its body touches is touched at its one point, so a value that is defined before the loop and used in it is live across all
// of it. In the flattened one every instruction is a point, the body of a loop comes right after the loop's own point, and
// a point's number is nothing but its place in that chain.
//
// A live range is half open, [first access, last access + 1): an instruction's results are live while its operands still
// are, so no result shares bytes with an operand. In the flattened order a range that leaves a loop on one side is extended to the
// loop's head or end, and one within a loop covers it whole when a read may find what an earlier turn wrote; so a value of one
// turn ends with its last use, and one that is carried to the next turn has its place to itself in between.
//
// Everything is rebuilt into the same storage: a second build of the same size allocates nothing.
package ssa
