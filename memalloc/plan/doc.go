// Package plan is static memory planning: given buffers with known lifetimes and sizes, it finds an offset for each so that no
// two that are live at once share a byte, and the highest byte used is as low as it can make it. It knows nothing of the
// compiler around it, so any planner may use it: the exchange format is MiniMalloc's CSV.
//
//	fast     a few searches cut short and a few skyline dives, half a millisecond on hundreds of buffers; looks at no clock
//	improve  fast, then searches for ever lower targets: 2,000,000 steps, some 10 ms, unless told otherwise
//	exact    the same searches until the layout fits a capacity, until a proof, or until a limit of time or work; for some rounds
//	         only where no search can prove anything
//
// # Tables
//
//	Problem    what is asked: columns by row, rows in the order of the input, gaps in a pool          problem.go, csv.go
//	Planner    the modes: which searches and passes run, in what order, how long                       planner.go, modes.go, clock.go
//	model      the same for the machine: sections for moments, movable buffers only, fixed obstacles   model.go
//	kdTree     movable buffers as points (first section, end section): the best inside a window        kdtree.go, windows.go
//	diver      the skyline as a list of segments; one pass places everything                           dive.go, order.go
//	partDiver  passes for buffers with gaps, whose bytes others may use for a while                    partdive.go
//	search     branch and bound on the skyline, with a trail; exact proves by it                       search.go, searchprep.go
//	pair       chains, which reach the bound without a search                                          pair.go
//	hinter     offsets that were wished for                                                            hints.go
//	PeakReport figures and a drawing of a layout; Check proves it                                      report.go, check.go
//
// # Sections
//
// Time is cut where a lifetime ends after one has begun since the last cut: the sections are the maximal sets of buffers that
// are live at once, in order of time. Two buffers meet in time exactly when they share a section, so sections are all that
// placement needs, and there are fewer of them than moments. The largest load of a section is the lower bound of the peak.
//
// # Invariants
//
//   - Lifetimes are half-open: a buffer that starts when another ends does not meet it.
//   - The work of a plan is counted in steps that depend on the input alone. A limit of work ends at the same step on every
//     machine; a limit of time ends at some step of that same sequence, and Result.Work says which.
//   - No list of overlapping pairs is ever made. The search keeps one bit a pair, and takes no more than maxSearch buffers.
//   - A layout that is called optimal is: its peak is the lower bound, or the search saw everything below it. The search takes
//     buffers that keep some of their bytes in a gap as whole there, so for those only the bound is a proof.
//   - Check builds on the problem and the offsets alone; the planner uses its sweep to refuse fixed offsets that clash, never to place.
//   - A Planner that has seen a problem plans one of the same size without allocating.
package plan
