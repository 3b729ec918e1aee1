// Package scan is the fast register allocator for functions in SSA form: one walk over the instructions, in the order in
// which control reaches them, that gives registers, evicts and goes along edges at once.
//
// Before it, one walk against the order finds when each value is next needed in a register, so that the value needed last is the one
// that leaves (Belady, 1966; for control flow Braun and Hack, "Register spilling and live-range splitting for SSA-form programs",
// 2009). A value that leaves costs a store behind its definition, once, and a load where it is needed again; it never moves back by
// itself.
//
//	Allocator   the storage, Run, instructions              scan.go
//	when        next uses                                   next.go
//	enter       registers where blocks begin and end        merge.go
//	resolve     parallel copies along edges                 copies.go
//	finish      stores, numbers of slots, order of moves    finish.go
//
// # Invariants
//
// A block with one predecessor starts with the registers of its end. Where several meet, the first to be scanned decide and the later
// ones follow by moves before their branch. A slot is written once, by the definition of its value, so it holds the value wherever the
// value is live.
package scan
