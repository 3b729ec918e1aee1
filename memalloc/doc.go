// Package memalloc places tensors in PSUM, SBUF and DRAM, and spills what does not fit until the rest does.
//
// PSUM comes first: it is the smallest and accumulation pins it. SB comes next, DRAM last, because the spills of the one
// before need room in the one after. Each allocator is one call on one function:
//
//	Reserve(m, f)                the runtime's strip of SBUF, as a placed location
//	PSUM(m, f, ws, opt)          banks                                               psum.go, shrink.go, spill_psum.go
//	SB(m, f, ws, opt)            rectangles: partition band × bytes                  sb.go, rects.go, select.go, align.go, pins.go, webs.go,
//	                                                                                 partners.go, spill.go, remat.go
//	LinearScan(m, f, ws, opt)    PSUM and SB by one walk each, in place of the two   linear.go, linear_psum.go, linear_sb.go
//	DRAM(m, f, ws, opt)          byte ranges in 4 KiB pages, no spilling             dram.go, lifetime.go, collective.go
//	WithLoop(m, f, ws, opt)      PSUM and then SB over flattened loops               withloop.go, spill_blocks.go
//	CheckFits(m, f, ws, opt)     refuses beforehand what none of them could place    oom.go
//
// Passes reach them by name through the registrations of the one colouring driver, registration.go.
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
// A spilled value lives in its home and visits the memory: each access, or run of nearby accesses, gets a small location of its
// own that holds just the bytes it touches, loaded before and saved after. Copies for one access cannot be spilled again, and
// copies for a run are cut into copies for one access when they must be, so the rounds end. A value that a plain load brought
// from DRAM that nobody changes meanwhile has a home already and is never saved.
//
// In a loop all of that holds for one turn: what a run of accesses needs is loaded in each turn, and saved if any turn may load it.
package memalloc
