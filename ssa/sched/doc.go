// Package sched orders the instructions of straight-line blocks and settles what depends on the order.
//
//	Schedule        list scheduler over the cost oracle: a new program order of every block      list.go
//	Simulate        what an order costs, without changing it                                     list.go
//	Cost            ns of one instruction                                                        cost.go
//	LegalizeGroups  final START, STOP, ACCUMULATE flags and zero-region codes                    groups.go
//
// # Tables
//
//	node      one scheduling unit: an instruction and those tied to it by InstUnit
//	timeline  one resource that runs one thing at a time: the five sequencers and the DMA rings
//
// # Invariants
//
// A schedule is a topological order of InstRow.Deps inside each block, keeps the members of a unit adjacent, and depends on
// nothing but the module: equal priorities go by the old position. It never costs more than the order it was given, which
// stays when the scheduler finds nothing better. Blocks are scheduled one by one and keep their order.
package sched
