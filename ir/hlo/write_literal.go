package hlo

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// literal prints the value of a constant in one line.
func (p *printer) literal(n graph.Node) error {
	g := p.g
	row := g.Nodes.At(n)
	k := g.Consts.At(row.Const)
	dt, dims := g.Dtype(n), g.Dims(n)
	if k.Kind == graph.ConstElided {
		p.str("{...}")
		return nil
	}
	size := dt.Size()
	if size == 0 {
		return target.NotSupported("constant of type "+dt.String(), "%s: a constant of type %s", g.NodeName(n), dt)
	}
	count := g.Elements(row.Type)
	var data []byte
	if k.Kind != graph.ConstSplat {
		if k.Kind == graph.ConstBlob && dt.Bits() < 8 {
			return target.NotSupported("packed "+dt.String(), "%s: a constant of packed %s from a file", g.NodeName(n), dt)
		}
		if data = g.ConstBytes(row.Const); int64(len(data)) != count*int64(size) {
			return target.Errorf(target.User, "%s: the constant has %d bytes, its type %s takes %d", g.NodeName(n), len(data),
				g.TypeString(row.Type), count*int64(size))
		}
	}
	if count == 0 {
		if len(dims) > 0 {
			p.str("{}")
		}
		return nil
	}
	inner := int64(1) // elements of what closes after element i
	if len(dims) > 0 {
		inner = dims[len(dims)-1]
	}
	for i := range count {
		opens := 0
		if len(dims) > 0 && i%inner == 0 {
			if opens = braces(dims, i); i > 0 {
				p.str(", ")
			}
			for range opens {
				p.b = append(p.b, '{')
			}
		} else if i > 0 {
			p.b = append(p.b, ',')
		}
		if data == nil {
			p.element(dt, k.Bits, 0)
		} else {
			e := data[i*int64(size):]
			hi := uint64(0)
			if size == 16 {
				hi = leBits(e[8:], 8)
			}
			p.element(dt, leBits(e, size), hi)
		}
		if len(dims) > 0 && (i+1)%inner == 0 {
			for range braces(dims, i+1) {
				p.b = append(p.b, '}')
			}
		}
		if len(p.b) >= flushAt {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// braces counts the dimensions that begin, or end, at element i.
func braces(dims []int64, i int64) int {
	n, size := 0, int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		if size *= dims[d]; i%size != 0 {
			break
		}
		n++
	}
	return n
}

func leBits(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// element prints one value from its bits; hi is the second half of a c128.
func (p *printer) element(dt graph.Dtype, lo, hi uint64) {
	switch {
	case dt == graph.C64:
		p.pair(graph.F32, lo&math.MaxUint32, lo>>32)
	case dt == graph.C128:
		p.pair(graph.F64, lo, hi)
	case dt == graph.Bool:
		p.b = strconv.AppendBool(p.b, lo&0xff != 0)
	case dt.Signed():
		shift := 64 - uint(dt.Bits())
		p.int(int64(lo<<shift) >> shift)
	case dt.IsInt():
		p.b = strconv.AppendUint(p.b, lo&mask(dt.Bits()), 10)
	default:
		p.float(dt, lo)
	}
}

func (p *printer) pair(part graph.Dtype, re, im uint64) {
	p.str("(")
	p.float(part, re)
	p.str(", ")
	p.float(part, im)
	p.str(")")
}

// float prints the shortest decimal that reads back to the same bits.
func (p *printer) float(dt graph.Dtype, bits uint64) {
	v := graph.DecodeFloat(dt, bits)
	switch {
	case v != v:
		if hasNegNaN(dt) && bits>>(dt.Bits()-1)&1 != 0 {
			p.str("-")
		}
		p.str("nan")
		if man := nanBits[dt]; man > 0 && bits&mask(man) != 1<<(man-1) {
			p.str("(0x")
			p.b = strconv.AppendUint(p.b, bits&mask(man), 16)
			p.str(")")
		}
	case math.IsInf(v, 1):
		p.str("inf")
	case math.IsInf(v, -1):
		p.str("-inf")
	case dt == graph.F64:
		p.b = strconv.AppendFloat(p.b, v, 'g', -1, 64)
	default:
		p.b = strconv.AppendFloat(p.b, v, 'g', -1, 32)
	}
}
