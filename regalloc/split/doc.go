// Package split is the register allocator for functions in SSA form that spends time on having few moves. It decides in two steps: first which
// values are in registers at each point, splitting live ranges, then in which registers.
//
//	Allocator   the storage, Run                                    split.go
//	spill       what is in registers where                          spill.go
//	enter       the same at heads of blocks                         enter.go
//	join        which stays in registers are wanted, and are one    webs.go
//	colour      registers as wishes                                 colour.go
//	place       registers as they come, places of operands          place.go
//	emit        moves along edges, moves in order                   edges.go
//	slots       places in the frame                                 slots.go
//
// # The algorithm
//
// Spilling follows Braun and Hack, "Register Spilling and Live-Range Splitting for SSA-Form Programs" (CC 2009): a walk over the
// blocks in reverse postorder that loads what an instruction wants and evicts what costs least for the time that its register is free; across a call
// only what surviving registers hold remains. Where blocks meet, a value is in a register if the ways that must load it are fewer than the loads
// behind that it saves (flow.Ranges counts them). What comes along back edges is known from the walk before: where there are loops, there are two.
//
// A stay of a value in a register, from a definition, a load, a call or the head of a block on, is a piece. A piece is wanted if an instruction
// reads it, if it passes into one that is wanted, or if its value is in no slot; the others get no register, and their loads and copies are not
// made. Pieces that pass into each other along edges are a part, parts on both sides of calls a web. Webs that meet calls are coloured first, from the
// registers that survive; those that find none are coloured part by part; then the rest, in the order of their beginnings.
//
// Placing walks the same way and gives each piece the register of its part if it is free, else that of its family (flow.Families), else one
// that nobody else wants meanwhile. Whatever does not fit is mended by copies along edges and before calls.
//
// # Invariants
//
//   - After spilling no more values of a class are in registers at a point than there are registers, nor across a call than survive it.
//   - A value that is ever loaded, or that is not in a register where it lives on, is in the slot of its family from its definition on: one store
//     behind the definition, or none where it is written to the slot at once, or all its arguments are there already.
//   - place meets pieces in the order in which spill began them.
//   - No work is more than proportional to the instructions, operands and live-in lists, but for sorting: candidates at a head, families for
//     their slots.
//   - Equal functions and files give equal answers.
package split
