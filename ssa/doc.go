// Package ssa puts a function in one linear order and says what reads and writes each location where.
//
// # Tables
//
//	Linear   program points of a function, and per location its accesses in program order (compressed rows)   linear.go
//	Ranges   the units that an allocator places, numbered in order of first definition, with live ranges      ranges.go
//
// # Invariants
//
// A point is the position of a top-level instruction, from 0. A region instruction (a loop) is one opaque point: whatever its
// body touches is touched at that point, so a value that is defined before the loop and used in it is live across all of it.
//
// A live range is half open, [first access, last access + 1): an instruction's results are live while its operands still
// are, so no result shares bytes with an operand.
//
// Everything is rebuilt into the same storage: a second build of the same size allocates nothing.
package ssa
