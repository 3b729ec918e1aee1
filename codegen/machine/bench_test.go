package machine

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// tiny is a program of n additions of one element each, a semaphore every eighth, and a transfer of 64 bytes every sixteenth:
// what is left is the cost of a bundle.
func tiny(tb testing.TB, n int) *asm {
	a := newAsm(tb, 30)
	vy := a.variable("y", neff.VarOutput, 64)
	a.emit(dve, isa.Inst{Opcode: isa.OpMemset, Dst: desc(sbA, 16), DtDst: target.Float32, Parts: 1})
	for k := range n {
		s := isa.Sync{}
		if k%8 == 0 {
			s = inc(s, semDVE)
		}
		a.add(dve, s, sbA, sbA, sbA, 1, 1)
		if k%16 == 15 {
			if k > 16 {
				a.wait(sp, semY, uint32(k/16*4))
			}
			a.dma(sp, waitGE(semDVE, uint32(k/8)), semY, neff.Side{Var: 1, Off: int64(sbA), N: 1, Size: [4]uint32{64}, Step: [4]int64{1}},
				neff.Side{Var: vy, N: 1, Size: [4]uint32{64}, Step: [4]int64{1}})
		}
	}
	return a
}

// A run allocates nothing once a run before it has sized its buffers.
func TestRunAllocatesNothing(t *testing.T) {
	_, _, in := exampleInputs()
	for name, m := range map[string]*Machine{"example": example(t, 30, nil).machine(in), "tiny": tiny(t, 200).machine(nil)} {
		seed := uint64(0)
		if n := testing.AllocsPerRun(numOrders, func() {
			if err := m.Run(seed % numOrders); err != nil {
				t.Fatal(err)
			}
			seed++
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkBundle(b *testing.B) {
	const n = 10_000
	m := tiny(b, n).machine(nil)
	for _, c := range []struct {
		name string
		seed uint64
	}{{"bursts", orderBursts}, {"single", orderSingle}, {"priority", orderPriority}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := m.Run(c.seed); err != nil {
					b.Fatal(err)
				}
			}
			s := m.Stats()
			total := s.Transfers
			for _, k := range s.Bundles {
				total += k
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*total), "ns/bundle")
		})
	}
}

func BenchmarkExample(b *testing.B) {
	_, _, in := exampleInputs()
	m := example(b, 30, nil).machine(in)
	for b.Loop() {
		if err := m.Run(0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(m.Stats().MACs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
}
