// Package regalloc is the colouring core that every allocator shares: interference, simplify, select and the spill fixpoint.
// It knows nothing of memories. A caller describes its nodes in numbers and brings a geometry that finds a place.
//
// # Tables
//
//	Seg      a live segment of a node                              index.go
//	Index    segments by time, answers "what overlaps [lo, hi)"    index.go
//	Graph    interference: adjacency, matrix or index, of segments
//	         or of a list of edges                                 graph.go
//	Node     what colouring needs to know of a node                simplify.go
//	Solver   simplify and select                                   simplify.go, select.go
//	         a queue of what is not certain to find a place        monotone.go
//	         smallest-last, where no number of lanes is given      smallest.go
//	Lanes    the geometry of a register file                       lanes.go
//	Guard    the limits of a spill fixpoint                        fixpoint.go
//
// # The algorithm
//
// Briggs' optimistic colouring with weights (Briggs, Cooper, Torczon, "Improvements to graph coloring register allocation",
// TOPLAS 1994; for nodes of different size Smith, Ramsey, Holloway, PLDI 2004). A node has Room places it could take; a
// neighbour j denies it at most
//
//	Weight[class j][class i] · ((Own i + Len j) >> Shift i)
//
// of them. While Room less the denials of all remaining neighbours is positive a place is certain to be left, whatever the
// neighbours take. Banks, rectangles, register lanes differ in the numbers, not in the code, so the loops over edges call
// nothing; only finding a place, once a node, goes through the geometry.
//
// # Invariants
//
// Node numbers come from program order and every tie is broken by them, so equal inputs give equal placements. Nodes number
// from 0. Fixed nodes are obstacles: they are never stacked, never placed, never reported.
package regalloc
