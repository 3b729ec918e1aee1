// Package bestfit hands out rectangles of a small grid: few rows, many units. SBUF is a grid of four quadrants by granules, PSUM one
// row of banks. It knows nothing of instructions or of time: what is placed stays until it is freed.
//
//	Manager    places, reserves and frees                      manager.go
//	spans      the free rectangles and their two orders        free.go
//	Quantile   an estimate of one quantile of a stream         quantile.go
//
// # Tables
//
// Free space is kept as maximal rectangles. Every stretch of neighbouring rows (ten of four rows) has the list of its free
// intervals, each as long as it can be; one that a taller stretch holds too is no maximal rectangle, and searches pass over it.
// Three indexes are kept through every call:
//
//	address    the free intervals of a stretch by first unit; they do not touch, so the last unit ascends too
//	size       the same by length, ties by first unit, so that every key is there once: best fit is the first that fits
//	location   what is taken, hashed by owner; an owner may have several blocks
//
// # Invariants
//
// Taken blocks are disjoint. An interval is in the list of a stretch exactly if all its rows are free over it and it can grow at
// neither end. Place fails only if no legal place exists.
//
// # Cost
//
// A call looks things up by bisection in sorted lists of the free intervals and moves their tails. Both grow with what is taken at
// one time, which the memory bounds, and not with how much was ever placed. Nothing is allocated once the lists have grown.
package bestfit
