// Package split is the register allocator for functions in SSA form that spends time on having few moves. It decides in two steps: first which
// values are in registers at each point, splitting live ranges, then in which registers.
//
//	Allocator   the storage, Run                            split.go
//	spill       what is in registers where                  spill.go
//	place       registers, places of operands               place.go
//	emit        moves along edges, moves in order           edges.go
//	slots       places in the frame                         slots.go
//
// # The algorithm
//
// Spilling follows Braun and Hack, "Register Spilling and Live-Range Splitting for SSA-Form Programs" (CC 2009): a walk over the
// blocks in reverse postorder that loads what an instruction wants and evicts what is used farthest ahead; across a call only what surviving registers hold
// remains. At the head of a block it keeps a value in a register where the predecessors that must load it cost less than the loads behind that it
// saves (flow.Ranges counts them). What comes along back edges it knows from the walk before.
//
// A stay of a value in a register, from a definition, a load or the head of a block on, is a piece. Pieces that meet along edges are a web. A web that
// no instruction reads and whose values are in memory is dropped: it needs no registers, and its loads and copies are not made.
//
// Placing walks the same way and gives each piece a register: that of its web, else that of its family (flow.Families), else one that
// survives calls if its web meets a call.
//
// # Invariants
//
//   - After spilling no more values of a class are in registers at a point than there are registers, nor across a call than survive it.
//   - A value that is ever loaded, or that is not in a register where it lives on, is in the slot of its family from its definition on: one store
//     behind the definition, or none where it is written to the slot at once, or all its arguments are there already.
//   - Equal functions and files give equal answers.
package split
