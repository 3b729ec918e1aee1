// Package arena holds the flat data structures that every floor of the compiler is built on. It knows nothing of compilers.
//
// A thing is a row, a reference is a named uint32, and zero means none. Rows hold no pointers, so the garbage collector never
// scans them, and every structure is reset between functions and never freed: a second run over input of the same size
// allocates nothing.
//
//	structure    promises                                            do not use it for
//	Table        the only thing that hands out IDs of a kind         side data: that is a Column
//	Column       a value for every ID, zero until set                keys spread thinly over a wide range
//	Pool, Span   variable-length lists behind an 8-byte handle       lists that grow after others were added
//	Names        text to number, derived names spelled on demand     text that is used once
//	SparseSet    add, remove, has and clear in constant time         unions and intersections: that is a bitset
//	BitMatrix    unordered pairs, one bit each                       more than some 16,000 nodes
//	Adjacency    the neighbours of a node, side by side              graphs that change after Finish
//	Heap         priorities that change while queued                 a fixed set: sort once instead
//	Queue        numbers by priority, costs what is queued           priorities that change: that is a Heap
//	Sorter       numbers by 64-bit keys, stable, in linear time      orders that no such key expresses
//	Scratch      slices that live until the next Reset               anything that outlives the pass
//	Report       bytes and rows by table name                        anything hot
//
// # Invariants
//
//   - The zero value of every type is ready to use; SparseSet, BitMatrix and Heap then have an empty universe.
//   - Row 0 of a Table is reserved, and Len counts it: the IDs of a table t are 1 to t.Len()-1. Names count alike.
//   - A pointer or slice into a structure is good until the next call that can grow or reset it.
//   - Nothing here iterates over a map or reads a clock: the same calls give the same IDs, orders and sizes.
//   - Nothing here locks. Readers may share a structure once the last write is over.
//   - Misuse (a foreign ID, a count that does not add up, more than 2^32 rows) is a broken invariant and panics.
package arena
