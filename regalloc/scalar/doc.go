// Package scalar gives the scalar registers of a function their numbers, by the colouring core of regalloc: the allocator behind
// coloring_allocator_reg. It works on ir, after everything else is lowered.
//
// # Tables
//
//	flow     the flat order, its nodes and edges, how often they run   flow.go
//	uses     the operands that are registers, by register              uses.go
//	lives    webs, and the segments over which they live               live.go
//	joins    webs that moves make one                                  coalesce.go
//	home     a value that goes to memory, and its slot                 spill.go, slots.go
//
// # One round
//
// The control flow is laid out flat; a loop's body is spliced in. Each register falls into webs, pieces that no path connects, and
// webs live over segments of the flat order: reads stand at even slots and writes at odd ones, so a value may leave its lane to
// the result of the instruction that reads it last. Overlap of segments is interference, and the rest is regalloc's: simplify by
// cost over the lanes that lack, select once, lowest lane first, one score. What finds no lane goes to memory: saved
// behind each write and reloaded in front of each read, both into registers that live for nothing else and are never spilled
// again, so that rounds come to an end. Then the next round begins from the flat order.
//
// Only registers are candidates. Files are of one engine each; a register of 64 bits takes two lanes side by side, at any lane.
// The cost of a register is its lanes for every write and every read, times ten for each loop around it, at most three of them.
//
// # Invariants
//
// A register that keeps its name keeps its first web; others become registers of their own, if their lane differs. Numbers that
// the producer gave stay. Spill slots are of one engine, and in SBUF while it has a gap. Right behind each save and reload stands a
// wait of the same engine, which takes back what it waited for: it is right on any path and in every turn of a loop.
package scalar
