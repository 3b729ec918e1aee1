package graph

import "github.com/rosmar-compiler/rosmar/arena"

// ConstKind says where the bytes of a constant are.
type ConstKind uint8

const (
	// ConstSplat is one element repeated: Bits holds its little-endian bytes (real types up to 8 bytes).
	ConstSplat ConstKind = iota + 1
	// ConstDense has Data in Graph.Bytes, row-major little-endian, sub-byte elements one a byte.
	ConstDense
	// ConstBlob has its bytes at [Off, Off+Len) of Graph.Blobs[Blob]: never copied.
	ConstBlob
	// ConstElided has no bytes: HLO text wrote {...}, or a weight that is supplied or seeded later.
	ConstElided
)

// ConstRow is one constant. Its type is its node's.
type ConstRow struct {
	Kind ConstKind
	Blob uint32
	Bits uint64
	Data arena.Span
	Off  int64
	Len  int64
	Seed uint64  // of ConstElided: what a seeded filling starts from; 0 none
	Std  float32 // deviation of the seeded filling
	Mean float32 // its mean, which is rarely other than 0: scales around one, variances
}

// ConstBytes are the bytes of a dense or blob constant, nil for the other kinds. The slice is read-only.
func (g *Graph) ConstBytes(c Const) []byte {
	r := g.Consts.At(c)
	switch r.Kind {
	case ConstDense:
		return g.Bytes.Of(r.Data)
	case ConstBlob:
		return g.Blobs[r.Blob][r.Off : r.Off+r.Len]
	}
	return nil
}
