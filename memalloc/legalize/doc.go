// Package legalize gives tensors the shapes and types that their memory can hold, before anything is placed.
//
//	PSUM   four-byte cells: narrower accumulators become fp32   psum.go
//
// A pass here changes types, sizes and access patterns in place and inserts nothing. Running it twice changes nothing more.
package legalize
