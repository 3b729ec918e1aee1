// Package rotate spreads what is already placed over the memory, so that what comes next does not have to wait for the place
// of what was before.
//
//	PSUM(m, f, ws, alloc, opt)   banks                   psum.go
//	SB(m, f, ws, alloc, opt)     bytes within a band     sb.go
//	DRAM(m, f, ws, alloc, …)     pages of a window       dram.go
//	Workspace, and what stays                            units.go
//
// The colouring allocators look for the lowest or highest free place, so tiles that follow each other get the same bytes: the
// load of the next tile then waits for the last reader of the one before, and nothing overlaps. Rotation visits the tiles in
// order of first definition and takes, among the places that are free over a tile's whole life, the one that has been idle
// for longest. It is not modulo scheduling: it computes no initiation interval, the schedule emerges from the edges that are
// gone.
//
// # Invariants
//
// Rotation is lossless and needs no more memory than there is: a tile that finds no better place keeps its own, and at any
// moment all live tiles are disjoint if they were before. Pinned, user-allocated and reserved placements, tensors marked
// no-rotate, and placements that lie on each other by intent of their producer stay where they are. Partitions, bands,
// alignments and the bank runs of a tensor's blocks are kept. Points are those of package ssa; the order of the
// instructions does not change.
package rotate
