// Package deps finds the dependence edges of straight-line functions: which instruction must wait for which.
//
// # Edges
//
//	Flow     a read of bytes, a register or engine state that the other wrote
//	Output   a write over what the other wrote
//	Anti     a write over what the other read
//	Ordered  no data: fences, accumulation groups that share a PSUM bank, and the coarse edges named below
//
// Edges point backwards in program order and land in InstRow.Deps, ascending by instruction, one edge a pair (the larger
// kind wins). The transitive closure of the edges covers every conflicting pair; a pair that a later full overwrite
// hides gets no edge of its own.
//
// # Tables
//
//	segment   maximal interval of bytes with equal history: per partition quadrant the writers that still show and the
//	          readers since; kept in order in chunks                                                    segments.go
//	entry     one access in such a history. Lists are never changed after they are made, so that segments that split
//	          and quadrants that saw the same accesses share them                                       segments.go
//
// Physical addresses after allocation share one key space; a location without an address, and DRAM that the caller owns,
// has an interval of its own in it. Aliased locations share one.
//
// # Invariants and bounds
//
// An access costs the segments that it meets, not the accesses before it. Writes of up to maxRuns runs, in DRAM accesses of
// up to maxRunsDRAM, split segments, so that what they leave is exact; otherwise the bounding interval is entered with its
// pattern and compared exactly on a hit. When a history grows past maxHistory entries that nothing covers, the next write takes edges to all
// of them and replaces them: the only place where an edge may join two accesses that do not touch.
//
// The stationary operand in the array (%pe.w) makes no edges: a matmul loads and uses it in one instruction, so that
// nothing flows through it from one matmul to the next.
package deps
