package memalloc

import (
	"fmt"
	"math/rand/v2"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maker builds straight-line programs of one shape for measuring how well values are spilled.
type maker struct {
	p   *program
	b   ir.Builder
	rng *rand.Rand
	n   int
}

func newMaker(t interface{ Fatal(...any) }, seed uint64) *maker {
	k := &maker{p: &program{}, rng: rand.New(rand.NewPCG(seed, 1))}
	k.p.m.Gen = generation(t, 30)
	k.b.NewFunc(&k.p.m, "main", "Block1")
	k.p.f = k.b.Func
	return k
}

func (k *maker) close() *program {
	k.b.Close()
	return k.p
}

func (k *maker) name(s string) string { k.n++; return fmt.Sprintf("%s_%d", s, k.n) }

func (k *maker) tile(parts int, words int64) value {
	v := value{parts: parts, words: words, space: target.SpaceSB}
	v.loc = k.b.SB(k.p.m.Names.Intern(k.name("t")), target.Float32, parts, words)
	return v
}

func (k *maker) mem(v value, kind ir.TensorKind) ir.Arg {
	l := k.b.DRAM(k.p.m.Names.Intern(k.name("d")), kind, target.Float32, int64(v.parts), v.words)
	return k.b.Mem(l, target.Float32, 0, ir.Pair{Step: int32(v.words), Num: uint32(v.parts)}, ir.Pair{Step: 1, Num: uint32(v.words)})
}

func (k *maker) load(parts int, words int64) value {
	v := k.tile(parts, words)
	k.b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{k.mem(v, ir.KindExternalInput)}, []ir.Arg{whole(&k.b, v)})
	return v
}

func (k *maker) save(v value) {
	k.b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&k.b, v)}, []ir.Arg{k.mem(v, ir.KindExternalOutput)})
}

// op computes a tile from one or two.
func (k *maker) op(parts int, words int64, in ...value) value {
	v := k.tile(parts, words)
	k.into(v, in...)
	return v
}

func (k *maker) into(v value, in ...value) {
	args := make([]ir.Arg, len(in))
	for i, x := range in {
		args[i] = whole(&k.b, x)
	}
	if len(in) == 1 {
		k.b.Emit(ir.OpActivation, target.EngineAct, args, []ir.Arg{whole(&k.b, v)})
		return
	}
	k.b.Emit(ir.OpTensorTensor, target.EngineDVE, args, []ir.Arg{whole(&k.b, v)})
}

func (k *maker) words(lo, hi int64) int64 { return 2 * (lo/2 + k.rng.Int64N((hi-lo)/2+1)) }

// dag: each operation takes two values, mostly late ones, one in eight any.
func dag(heights ...int) func(*maker) {
	return func(k *maker) {
		height := func() int { return heights[k.rng.IntN(len(heights))] }
		var vs []value
		for range 40 {
			vs = append(vs, k.load(height(), k.words(40, 400)))
		}
		pick := func() value {
			if k.rng.IntN(8) == 0 {
				return vs[k.rng.IntN(len(vs))]
			}
			return vs[len(vs)-1-k.rng.IntN(40)]
		}
		for range 600 {
			vs = append(vs, k.op(height(), k.words(40, 400), pick(), pick()))
		}
		for _, v := range vs[len(vs)-40:] {
			k.save(v)
		}
	}
}

// periodic: weights that are loaded once and used in turn by every step of a chain.
func periodic(k *maker) {
	var ws []value
	for range 60 {
		ws = append(ws, k.load(128, k.words(40, 400)))
	}
	x := k.load(128, 200)
	for range 12 {
		for _, w := range ws {
			x = k.op(128, 200, x, w)
		}
	}
	k.save(x)
}

// layered: activations of a forward pass that the backward pass uses in reverse, beside weights that both use.
func layered(k *maker) {
	x := k.load(128, 200)
	var xs, ws []value
	for range 80 {
		w := k.load(128, k.words(40, 200))
		ws, xs = append(ws, w), append(xs, x)
		h := k.op(128, k.words(40, 400), x, w)
		x = k.op(128, k.words(40, 400), h)
	}
	for i := len(xs) - 1; i >= 0; i-- {
		g := k.op(128, ws[i].words, x, xs[i])
		k.save(g)
		x = k.op(128, xs[i].words, x, ws[i])
	}
	k.save(x)
}

// product: C[i][j] += A[i][k]·B[k][j] in tiles, sums kept in memory, k outermost in blocks of four.
func product(k *maker) {
	const n = 12
	var a, b, c [n][n]value
	for i := range n {
		for j := range n {
			a[i][j], b[i][j] = k.load(128, 128), k.load(128, 200)
		}
	}
	for kk := 0; kk < n; kk += 4 {
		for i := range n {
			for j := range n {
				for s := kk; s < kk+4; s++ {
					if s == 0 {
						c[i][j] = k.op(128, 200, a[i][s], b[s][j])
					} else {
						k.b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&k.b, c[i][j]), whole(&k.b, a[i][s]), whole(&k.b, b[s][j])},
							[]ir.Arg{whole(&k.b, c[i][j])})
					}
				}
			}
		}
	}
	for i := range n {
		for j := range n {
			k.save(c[i][j])
		}
	}
}

// sliced: weights that one load brings whole and that are used slice by slice, in turn, by a few passes.
func sliced(k *maker) {
	const slices = 8
	var ws []value
	for range 16 {
		ws = append(ws, k.load(128, slices*k.words(20, 100)))
	}
	x := k.load(128, 200)
	for range 3 {
		for _, w := range ws {
			for s := range int64(slices) {
				y := k.tile(128, 200)
				n := w.words / slices
				k.b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&k.b, x), part(&k.b, w, s*n, (s+1)*n)}, []ir.Arg{whole(&k.b, y)})
				x = y
			}
		}
	}
	k.save(x)
}

// pieces: tiles that are written piece by piece, wait, and are read piece by piece.
func pieces(k *maker) {
	const slices = 4
	var vs []value
	x := k.load(128, 100)
	for range 60 {
		v := k.tile(128, slices*k.words(20, 80))
		n := v.words / slices
		for s := range int64(slices) {
			k.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&k.b, x)}, []ir.Arg{part(&k.b, v, s*n, (s+1)*n)})
		}
		vs = append(vs, v)
	}
	for range 3 {
		for range 60 {
			v := vs[k.rng.IntN(len(vs))]
			n := v.words / slices
			for s := range int64(slices) {
				y := k.tile(128, 100)
				k.b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&k.b, x), part(&k.b, v, s*n, (s+1)*n)}, []ir.Arg{whole(&k.b, y)})
				x = y
			}
		}
	}
	k.save(x)
}

// heavy: few values, each a tenth of the memory.
func heavy(k *maker) {
	var vs []value
	for range 20 {
		vs = append(vs, k.load(128, k.words(400, 600)))
	}
	for range 200 {
		i, j := k.rng.IntN(len(vs)), k.rng.IntN(len(vs))
		vs = append(vs, k.op(128, k.words(400, 600), vs[i], vs[j]))
		if len(vs) > 20 {
			d := k.rng.IntN(len(vs) - 1)
			vs = append(vs[:d], vs[d+1:]...)
		}
	}
	for _, v := range vs {
		k.save(v)
	}
}

// spillShapes are what spilling is measured on, with the most that it may move beside furthest next use. Values of many sizes leave
// holes, and heights more of them.
var spillShapes = []struct {
	name string
	make func(*maker)
	most float64
}{
	{"dag", dag(128), 1.15},
	{"dag-mixed", dag(32, 64, 128), 1.25},
	{"periodic", periodic, 1.15},
	{"layered", layered, 1.05},
	{"product", product, 0.55},
	{"sliced", sliced, 1.2},
	{"pieces", pieces, 1.05},
	{"heavy", heavy, 1.15},
}
