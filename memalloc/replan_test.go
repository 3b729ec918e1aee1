package memalloc

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// ragged is a program of n values beside one of which accesses touch so many different partitions that copies on chip cannot move it.
func ragged(k *maker, n int) *program {
	vs := []value{k.load(128, 100), k.load(128, 100)}
	long := k.op(128, 150, vs[0])
	for i := range n {
		a, b := vs[k.rng.IntN(len(vs))], vs[k.rng.IntN(len(vs))]
		vs = append(vs, k.op(128, k.words(20, 600), a, b))
		if len(vs) > 12 {
			x := k.rng.IntN(len(vs))
			vs[x] = vs[len(vs)-1]
			vs = vs[:len(vs)-1]
		}
		if i%8 == 0 {
			rows := k.b.Chip(long.loc, target.Float32, 0, 1+k.rng.IntN(40), 0, ir.Pair{Step: 1, Num: 150})
			k.b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{rows}, []ir.Arg{rows})
		}
	}
	k.save(long)
	return k.close()
}

// A value that leaves where copies on chip cannot take it still goes where the plan has it: the next round places everything.
func TestPlanHolds(t *testing.T) {
	var ws Workspace
	for seed := range uint64(40) {
		p := ragged(newMaker(t, seed), 2000)
		size := peakSB(&p.m, p.f) * 85 / 100
		sb, err := SB(&p.m, p.f, &ws, Options{StripBytes: 64, SBBytes: 64 + (size+granule-1)&^(granule-1)})
		if err != nil {
			t.Fatal(err)
		}
		if sb.Moves == 0 || sb.Iterations != 2 {
			t.Errorf("seed %d: %d moves on chip, %d rounds, want 2", seed, sb.Moves, sb.Iterations)
		}
	}
}
