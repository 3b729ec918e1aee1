package graph

import (
	"hash/fnv"
	"math"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// splitmix64 is the generator of everything random here (Steele, Lea, Flood 2014): a bijection of its argument, so that
// element i of a stream is splitmix64(seed + i·golden) and any slice can be made without the elements before it.
func splitmix64(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const golden = 0x9e3779b97f4a7c15

// uniform is element i of the stream of a seed, in [-1, 1), a multiple of 2^-23.
func uniform(seed, i uint64) float64 {
	return float64(splitmix64(seed+i*golden)>>40)/(1<<23) - 1
}

// stream derives a seed from a seed and a name.
func stream(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return splitmix64(seed ^ h.Sum64())
}

// Materialise gives the bytes of a constant, row-major little-endian: those it has, a splat written out, or a weight
// generated from its seed. It fails for an elided constant without a seed.
func Materialise(g *Graph, n Node) ([]byte, error) {
	if g.Op(n) != OpConstant {
		return nil, g.classErr(target.Bug, n, "not a constant")
	}
	if b := g.ConstBytes(g.Nodes.At(n).Const); b != nil {
		return b, nil
	}
	b := alignedBytes(int(g.TypeBytes(g.Nodes.At(n).Type)))
	return b, MaterialiseRange(g, n, 0, b)
}

// MaterialiseRange fills dst with the bytes of a constant from element lo on; dst is whole elements. Element i of a seeded
// weight is uniform with mean Mean and deviation Std, drawn from splitmix64 by i alone.
func MaterialiseRange(g *Graph, n Node, lo int64, dst []byte) error {
	d := g.Dtype(n)
	size := d.Size()
	if size == 0 {
		return g.unsupported(n, "a constant of %s", d)
	}
	k := int64(len(dst) / size)
	if lo < 0 || lo+k > g.Elements(g.Nodes.At(n).Type) {
		return g.classErr(target.Bug, n, "elements [%d,%d) of the constant", lo, lo+k)
	}
	c := g.Consts.At(g.Nodes.At(n).Const)
	switch c.Kind {
	case ConstDense, ConstBlob:
		copy(dst, g.ConstBytes(g.Nodes.At(n).Const)[lo*int64(size):])
	case ConstSplat:
		if k == 0 || c.Bits == 0 {
			clear(dst)
			return nil
		}
		if size > 8 {
			return g.unsupported(n, "a splat of %s", d)
		}
		putElem(d, dst, 0, c.Bits)
		for have := size; have < len(dst); have *= 2 {
			copy(dst[have:], dst[:have])
		}
	case ConstElided:
		if c.Seed == 0 {
			return g.nodeErr(n, "the file has no bytes for this constant: supply the weights, or ask for seeded ones")
		}
		if !d.IsFloat() {
			for i := range k {
				bits, _ := EncodeFloat(d, float64(splitmix64(c.Seed+uint64(lo+i)*golden)>>61&uint64(1<<min(3, d.Bits()-1)-1)))
				putElem(d, dst, int(i), bits)
			}
			return nil
		}
		amp, mean := float64(c.Std)*math.Sqrt(3), float64(c.Mean)
		for i := range k {
			v := float64(uniform(c.Seed, uint64(lo+i))*amp) + mean
			if d == F32 {
				putElem(d, dst, int(i), uint64(math.Float32bits(float32(v))))
				continue
			}
			bits, _ := EncodeFloat(d, v)
			putElem(d, dst, int(i), bits)
		}
	default:
		return g.classErr(target.Bug, n, "constant of kind %d", c.Kind)
	}
	return nil
}

// seedMin is the size from which a splat is taken for a weight that was stripped from the file.
const seedMin = 1024

// SeedWeights turns weights that the file does not hold into seeded ones, and returns how many: float constants of at least
// 1,024 elements that are one repeated value, and elided constants of any size, when they feed a dot or convolution directly
// or through reshape, transpose, convert or copy. Their deviation is √(2/fan-in), so that values keep their size through
// layers with a ReLU. Other elided float constants get deviation 0.5 (integers: 0 to 7), but scales and variances of a batch
// norm lie around 1. The seed of a weight derives from seed and the node's name and number. Nothing is materialised.
func SeedWeights(g *Graph, seed uint64) int {
	fan := fanIn(g)
	unit := map[Node]bool{}
	for n := Node(1); int(n) < g.Nodes.Len(); n++ {
		switch g.Op(n) {
		case OpBatchNormInference:
			unit[g.Operands(n)[4]] = true
			fallthrough
		case OpBatchNormTraining:
			unit[g.Operands(n)[1]] = true
		}
	}
	k := 0
	for n := Node(1); int(n) < g.Nodes.Len(); n++ {
		row := g.Nodes.At(n)
		if row.Op != OpConstant {
			continue
		}
		c := *g.Consts.At(row.Const)
		float := g.Dtype(n).IsFloat()
		switch {
		case c.Kind == ConstElided && c.Seed == 0:
		case c.Kind == ConstSplat && float && fan[n] > 0 && g.Elements(row.Type) >= seedMin:
		default:
			continue
		}
		c.Kind, c.Bits, c.Std, c.Mean = ConstElided, 0, 0.5, 0
		if fan[n] > 0 {
			c.Std = float32(math.Sqrt(2 / float64(fan[n])))
		} else if unit[n] {
			c.Std, c.Mean = 0.2, 1
		}
		c.Seed = stream(seed, g.NodeName(n)+n.String()) | 1
		row.Const = g.Consts.Add(c)
		k++
	}
	return k
}

// fanIn is, for every node that reaches a dot or convolution through moves alone, the number of products a result sums.
func fanIn(g *Graph) []int64 {
	fan := make([]int64, g.Nodes.Len())
	var work []Node
	mark := func(n Node, k int64) {
		if k > fan[n] {
			fan[n] = k
			work = append(work, n)
		}
	}
	for n := Node(1); int(n) < g.Nodes.Len(); n++ {
		ins := g.Operands(n)
		switch g.Op(n) {
		case OpDot:
			k := int64(1)
			for _, d := range g.IntList(n, AttrLhsContract) {
				k *= g.Dims(ins[0])[d]
			}
			mark(ins[0], k)
			mark(ins[1], k)
		case OpConv:
			w := g.Dims(ins[1])
			if c, ok := g.ConvLabels(n, len(w)); ok && w[c.RhsOut] > 0 {
				mark(ins[1], g.Elements(g.Nodes.At(ins[1]).Type)/w[c.RhsOut])
			}
		}
	}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		switch g.Op(n) {
		case OpReshape, OpBitcast, OpTranspose, OpConvert, OpCopy, OpBarrier:
			mark(g.Operands(n)[0], fan[n])
		}
	}
	return fan
}
