package graph

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Key names an attribute.
type Key uint8

const (
	AttrNone Key = iota
	AttrIndex
	AttrDim
	AttrDims
	AttrDirection
	AttrKind
	AttrStart
	AttrLimit
	AttrStride
	AttrLow
	AttrHigh
	AttrInterior
	AttrSizes
	AttrLhsBatch
	AttrLhsContract
	AttrRhsBatch
	AttrRhsContract
	// Windows of OpConv, OpReduceWindow and OpAvgPool: one entry a dimension. For OpConv the spatial dimensions in label
	// order; for the others every dimension of the operand.
	AttrWindowSize
	AttrWindowStride
	AttrWindowPadLow
	AttrWindowPadHigh
	AttrWindowLhsDilate
	AttrWindowRhsDilate
	AttrWindowReverse
	// AttrDimLabels of OpConv is three lists back to back, each [batch or in-feature…]: lhs: batch dim, feature dim, spatial
	// dims…; rhs: input feature dim, output feature dim, spatial dims…; out: batch dim, feature dim, spatial dims….
	AttrDimLabels
	AttrGroups
	AttrBatchGroups
	AttrCountPad
	AttrEpsilon
	AttrFeature
	AttrAlpha
	AttrBeta
	AttrBias
	AttrSize
	AttrK
	AttrLargest
	AttrSelectLast
	AttrExclusive
	AttrReverse
	AttrExponent
	AttrMantissa
	AttrTarget
	AttrOffsetDims
	AttrCollapsedDims
	AttrStartIndexMap
	AttrIndexVectorDim
	AttrOperandBatch
	AttrIndicesBatch
	AttrUpdateWindowDims
	AttrInsertedDims
	AttrScatterDims
	AttrSliceSizes
	AttrTripCount // while: known trip count
	AttrBackend   // raw backend_config / frontend text, as a string
	AttrStable    // sort: 1 when equal elements keep their order
	AttrTotal     // compare: 1 for IEEE total order (-NaN < -inf … -0 < +0 … inf < NaN), absent for the usual order
	AttrRaw       // HLO attributes that have no key here, as text: kept for collectives and opaque operators
	NumKeys
)

type attrForm uint8

const (
	formInts attrForm = iota
	formFloat
	formString
)

// Attr is one attribute. A float keeps its bits in Off and Len of Span; a string is a Name in Off.
type Attr struct {
	Key  Key
	form attrForm
	Span arena.Span
}

func floatSpan(f float64) arena.Span {
	b := math.Float64bits(f)
	return arena.Span{Off: uint32(b), Len: uint32(b >> 32)}
}

// IntsAttr makes an integer-list attribute; vals is copied into the graph.
func (g *Graph) IntsAttr(k Key, vals ...int64) Attr {
	return Attr{Key: k, form: formInts, Span: g.Ints.AddSlice(vals)}
}

// FloatAttr makes a float attribute.
func (g *Graph) FloatAttr(k Key, f float64) Attr {
	return Attr{Key: k, form: formFloat, Span: floatSpan(f)}
}

// StrAttr makes a string attribute.
func (g *Graph) StrAttr(k Key, s string) Attr {
	return Attr{Key: k, form: formString, Span: arena.Span{Off: uint32(g.Names.Intern(s))}}
}

// NameAttr makes a string attribute from an interned text.
func NameAttr(k Key, n arena.Name) Attr {
	return Attr{Key: k, form: formString, Span: arena.Span{Off: uint32(n)}}
}

// CopyAttr makes in g an attribute equal to a, which belongs to from.
func (g *Graph) CopyAttr(from *Graph, a Attr) Attr {
	switch a.form {
	case formInts:
		a.Span = g.Ints.AddSlice(from.Ints.Of(a.Span))
	case formString:
		a.Span.Off = uint32(g.Names.Intern(from.Names.String(arena.Name(a.Span.Off))))
	}
	return a
}

func (g *Graph) find(n Node, k Key) *Attr {
	as := g.AttrRows.Of(g.Nodes.At(n).Attrs)
	for i := range as {
		if as[i].Key == k {
			return &as[i]
		}
	}
	return nil
}

// Has reports whether n carries the attribute.
func (g *Graph) Has(n Node, k Key) bool { return g.find(n, k) != nil }

// IntList is an integer-list attribute, nil when absent. The slice belongs to the graph.
func (g *Graph) IntList(n Node, k Key) []int64 {
	if a := g.find(n, k); a != nil && a.form == formInts {
		return g.Ints.Of(a.Span)
	}
	return nil
}

// Int is the first entry of an integer attribute, or def.
func (g *Graph) Int(n Node, k Key, def int64) int64 {
	if l := g.IntList(n, k); len(l) > 0 {
		return l[0]
	}
	return def
}

// Float is a float attribute, or def.
func (g *Graph) Float(n Node, k Key, def float64) float64 {
	if a := g.find(n, k); a != nil && a.form == formFloat {
		return math.Float64frombits(uint64(a.Span.Off) | uint64(a.Span.Len)<<32)
	}
	return def
}

// Str is a string attribute, or "".
func (g *Graph) Str(n Node, k Key) string {
	if a := g.find(n, k); a != nil && a.form == formString {
		return g.Names.String(arena.Name(a.Span.Off))
	}
	return ""
}
