// Package scan is the fast register allocator for functions in SSA form: one walk over the instructions, in the order in
// which control reaches them, that gives registers, evicts and goes along edges at once.
//
// Before it, one walk against the order finds what is live and when it is next needed in a register, so that the value needed last is
// the one that leaves (Belady, 1966; for control flow Braun and Hack, "Register spilling and live-range splitting for SSA-form programs",
// 2009). A value that leaves costs a load where it is needed again and a store behind its definition, once, if it is needed again at all;
// it never moves back by itself.
//
//	Allocator   the storage, Run, instructions                  scan.go
//	when        liveness and next uses                          next.go
//	enter       registers where blocks begin                    merge.go
//	leave       registers where they end, copies along edges    copies.go
//	finish      stores, order of moves                          finish.go
//
// # Invariants
//
// A block with one predecessor starts with the registers of its end. Where several meet, the first to be scanned decide and the later
// ones follow by moves before their branch. A slot is written once, by the definition of its value, so it holds the value wherever the
// value is live: a value may leave its register at any point, and liveness decides what is a good answer, never whether it is a right one. Only a
// parameter that counts as dead must be: it has no place.
package scan
