// Package memalloc places tensors in PSUM, SBUF and DRAM, and spills what does not fit until the rest does.
//
// PSUM comes first: it is the smallest, and what accumulates there is dear to move. SB comes next, DRAM last, because the spills of the one
// before need room in the one after. Each allocator is one call on one function:
//
//	Reserve(m, f, opt)           the runtime's strip of SBUF, as a placed location   reserve.go
//	PSUM(m, f, ws, opt)          banks                                               psum.go, shrink.go, spill_psum.go
//	SB(m, f, ws, opt)            rectangles: partition band × bytes                  sb.go, rects.go, select.go, align.go, pins.go, webs.go,
//	                                                                                 partners.go, spill_sb.go and what it calls, remat.go
//	LinearScan(m, f, ws, opt)    PSUM and SB by one walk each, in place of the two   linear.go, linear_psum.go, linear_sb.go
//	DRAM(m, f, ws, opt)          byte ranges in 4 KiB pages, no spilling             dram.go, lifetime.go, collective.go
//	WithLoop(m, f, ws, opt)      PSUM and then SB over flattened loops               withloop.go, spill_blocks.go
//	CheckFits(m, f, ws, opt)     refuses beforehand what none of them could place    oom.go
//
// Passes reach them by name through the registrations of the one colouring driver, registration.go.
//
// What they share, and what one looks for most:
//
//	spill costs             of units in the coloring: psumCost in spill_psum.go, sbCost in sb.go, blocksCost in spill_blocks.go;
//	                        of gaps in the life of an SB value: cost in cuts.go, price in walk.go, of moves: fare in moves.go
//	which SB values spill   spill_sb.go, and what it is made of: stays.go, cuts.go, walk.go, moves.go, fit.go
//	linear scan's victims   before and placeOrSpill in linear.go: an order, no costs
//	the spill code of SB    what: spill.go, cover.go, hops.go; the instructions: spill_code.go; without a save, remat.go
//	effort and its limits   effort.go, options.go; attempts of a round, select.go; bets on loads, pins.go
//	the DRAM floor          dramFloor in dram.go: new tensors lie above all that has an address
//	best fit                package bestfit, behind the interface Manager of linear.go
//	overflow messages       live.go, oom.go
//	the proof of a commit   check.go
//	tables, live ranges     workspace.go; the bits of a strip of memory, bits.go
//
// PSUM and SB are regalloc's coloring with a geometry each. A round numbers the units, colors them, and either commits or
// inserts spill code and starts over. LinearScan knows neither graph nor rounds: it places in package bestfit, or in whatever
// Manager it is given, and inserts all spill code at the end of a walk. DRAM is first fit over an interval index.
//
// # Invariants
//
// What is placed before the call keeps its place and obstructs the rest. A commit happens only after a sweep that shares
// nothing with the coloring has found all placements that are live together disjoint, in bounds and aligned. On error the
// function may hold spill code of the rounds before, but no location has been placed.
//
// # Spilling
//
// A value of SB leaves the memory in gaps between its uses, and what stays of it between them gets locations of its own, loaded
// before and saved after as far as that is needed: cover.go knows which bytes are valid where. A round decides that in the stays of
// all values (stays.go): cuts.go picks gaps until what is live fits by its bytes, fit.go lays out what is left, and walk.go goes through
// time with a picture of the memory. Where there is no hole that fits, it moves values on chip (moves.go, hops.go), whole or in
// pieces, and cuts further where that does not do. Its places are what the next round tries
// first. A stay for one scheduling unit cannot be spilled again, and every cut uses up a gap, so the rounds end. Parts of a tensor that
// no access joins are told apart when it is cut. A value that a plain load brought from DRAM that nobody changes meanwhile has a home
// already: it is never saved, and its load can be made later.
//
// PSUM values move to SBUF for good, and a sum that is still growing comes back for its next matmul if nothing else helps. Over
// flattened loops values are cut by nearness, in runs of accesses.
//
// In a loop all of that holds for one turn: what a run of accesses needs is loaded in each turn, and saved if any turn may load it.
package memalloc
