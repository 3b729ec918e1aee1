package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/ssa/deps"
	"github.com/rosmar-compiler/rosmar/ssa/sched"
)

// BenchmarkPass runs single passes on the modules that the passes before them leave. What a pass changes is put back outside
// the clock.
func BenchmarkPass(b *testing.B) {
	for _, model := range []string{big, "zoo:resnet50"} {
		for _, p := range []struct {
			pass  string
			start func(m *ir.Module, f ir.Func) (run func() error)
		}{
			{"birverifier", func(m *ir.Module, _ ir.Func) func() error {
				return func() error { return verify.Module(m, target.Bug) }
			}},
			{"build_fdeps", func(m *ir.Module, f ir.Func) func() error {
				var w deps.Workspace
				return func() error { return deps.Build(m, f, &w) }
			}},
			{"post_sched", func(m *ir.Module, f ir.Func) func() error {
				var w sched.Workspace
				return func() error { _, err := sched.Schedule(m, f, &w); return err }
			}},
			{"legalize_mm_accumulation_groups", func(m *ir.Module, f ir.Func) func() error {
				var w sched.Workspace
				return func() error { return sched.LegalizeGroups(m, f, &w) }
			}},
			{"alloc_queues", func(m *ir.Module, f ir.Func) func() error {
				var w dma.Workspace
				return func() error { return dma.AssignQueues(m, f, dma.Options{}, &w) }
			}},
			{"lower_sync", func(m *ir.Module, f ir.Func) func() error {
				var w lower.SyncSpace
				return func() error { _, err := lower.Sync(m, f, &w); return err }
			}},
		} {
			b.Run(p.pass+"/"+spell(model), func(b *testing.B) {
				c, n := until(b, model, p.pass)
				m := &c.module
				undo := remember(m)
				run := p.start(m, m.Entry)
				must(b, run())
				b.ReportAllocs()
				var cpu cpuMeter
				for b.Loop() {
					b.StopTimer()
					undo()
					b.StartTimer()
					cpu.begin()
					must(b, run())
					cpu.end()
				}
				cpu.report(b, n)
				rate(b, float64(n), "inst/s")
			})
		}
	}
}

// BenchmarkAllocate places every location of a memory anew; over-bound is the highest byte or bank in use over the most that
// is live at once.
func BenchmarkAllocate(b *testing.B) {
	type place = func(*ir.Module, ir.Func, *memalloc.Workspace, memalloc.Options) (memalloc.Metrics, error)
	for _, model := range []string{big, "zoo:resnet50"} {
		for _, p := range []struct {
			pass string
			run  place
		}{{"coloring_allocator_psum", memalloc.PSUM}, {"coloring_allocator_sb", memalloc.SB}, {"coloring_allocator_dram", memalloc.DRAM}} {
			b.Run(p.pass+"/"+spell(model), func(b *testing.B) {
				c, n := until(b, model, p.pass)
				m := &c.module
				undo := remember(m)
				var w memalloc.Workspace
				r, err := p.run(m, m.Entry, &w, memalloc.Options{})
				must(b, err)
				if r.Spilled > 0 {
					b.Fatalf("%d spilled: a second run would meet another module", r.Spilled)
				}
				b.ReportAllocs()
				var cpu cpuMeter
				for b.Loop() {
					b.StopTimer()
					undo()
					b.StartTimer()
					cpu.begin()
					_, err := p.run(m, m.Entry, &w, memalloc.Options{})
					must(b, err)
					cpu.end()
				}
				cpu.report(b, n)
				rate(b, float64(r.Nodes), "locs/s")
				if bound := r.PeakDemand / 100 * float64(r.Capacity); bound > 0 {
					b.ReportMetric(float64(r.HighWater)/bound, "over-bound")
				}
			})
		}
	}
}

// BenchmarkSpill places PSUM and SBUF of models by colouring and by linear scan, with all of the memory and with less than the
// program wants. moved-bytes is what all transfers of the program move afterwards; the other figures are those of one run too.
func BenchmarkSpill(b *testing.B) {
	by := []struct {
		name string
		run  func(*ir.Module, *memalloc.Workspace, memalloc.Options) (sb, psum memalloc.Metrics, err error)
	}{
		{"coloring", func(m *ir.Module, w *memalloc.Workspace, o memalloc.Options) (sb, psum memalloc.Metrics, err error) {
			if psum, err = memalloc.PSUM(m, m.Entry, w, o); err == nil {
				sb, err = memalloc.SB(m, m.Entry, w, o)
			}
			return sb, psum, err
		}},
		{"lsa", func(m *ir.Module, w *memalloc.Workspace, o memalloc.Options) (sb, psum memalloc.Metrics, err error) {
			psum, sb, err = memalloc.LinearScan(m, m.Entry, w, o)
			return sb, psum, err
		}},
	}
	for _, c := range []struct {
		model string
		bytes []int64
	}{{big, []int64{0, 140_000, 110_000}}, {"zoo:resnet50", []int64{0, 90_000, 76_458}}, {"zoo:gpt2?layers=1&seq=128", []int64{0, 40_000, 26_000}}} {
		for _, size := range c.bytes {
			for _, a := range by {
				b.Run(fmt.Sprintf("%s/%s/bytes=%d", a.name, spell(c.model), size), func(b *testing.B) {
					var w memalloc.Workspace
					var cpu cpuMeter
					var sb, psum memalloc.Metrics
					n, bytes := 0, int64(0)
					first, _ := until(b, c.model, "coloring_allocator_psum")
					_, _, err := a.run(&first.module, &w, memalloc.Options{SBBytes: size})
					must(b, err)
					for b.Loop() {
						b.StopTimer()
						from, insts := until(b, c.model, "coloring_allocator_psum")
						n = insts
						b.StartTimer()
						cpu.begin()
						sb, psum, err = a.run(&from.module, &w, memalloc.Options{SBBytes: size})
						must(b, err)
						cpu.end()
						b.StopTimer()
						bytes = moved(&from.module)
						b.StartTimer()
					}
					cpu.report(b, n)
					b.ReportMetric(float64(bytes), "moved-bytes")
					b.ReportMetric(float64(sb.SpilledBytes+psum.SpilledBytes), "spilled-bytes")
					b.ReportMetric(float64(sb.Reloads), "reloads")
					b.ReportMetric(float64(sb.Saves+psum.Saves), "saves")
				})
			}
		}
	}
}

// moved is the bytes that the transfers of a module write.
func moved(m *ir.Module) (n int64) {
	for k := range m.Blocks.All() {
		for _, i := range m.OrderOf(k) {
			if r := m.Insts.At(i); r.Op.IsDMA() && r.NOut > 0 {
				a := m.APs.At(m.Outs(i)[0].AP())
				n += a.Elems() * int64(a.Dtype.Size())
			}
		}
	}
	return n
}

// BenchmarkVerify runs the checkers behind --enable-verifier on a finished module: after scheduling they run behind every
// pass that changes something.
func BenchmarkVerify(b *testing.B) {
	for _, model := range []string{big, "zoo:resnet50"} {
		c, n := until(b, model, "codegen")
		m, f := &c.module, c.module.Entry
		for _, v := range []struct {
			name string
			run  func() error
		}{
			{"module", func() error { return verify.Module(m, target.Bug) }},
			{"bounds", func() error { return verify.Bounds(m, f, target.SpaceSB, target.SpacePSUM, target.SpaceDRAM) }},
			{"reads", func() error { return verify.Reads(m, f) }},
			{"groups", func() error { return verify.Groups(m, f) }},
			{"sync", func() error { return verify.Sync(m, f) }},
		} {
			b.Run(v.name+"/"+spell(model), func(b *testing.B) { verified(b, n, v.run) })
		}
		placed, n := until(b, model, "build_fdeps")
		b.Run("placement/"+spell(model), func(b *testing.B) {
			verified(b, n, func() error {
				return verify.Placement(&placed.module, placed.module.Entry, target.SpaceSB, target.SpacePSUM, target.SpaceDRAM)
			})
		})
	}
}

func verified(b *testing.B, n int, run func() error) {
	must(b, run())
	b.ReportAllocs()
	var cpu cpuMeter
	for b.Loop() {
		cpu.begin()
		must(b, run())
		cpu.end()
	}
	rate(b, float64(n), "inst/s")
	cpu.report(b, n)
}

// remember gives a function that puts back what passes change in place: placements, engines, queues, flags and orders.
// Attributes that become final only once (group flags) come out the same again.
func remember(m *ir.Module) func() {
	locs, insts, blocks, funcs := slices.Clone(m.Locs.Rows()), slices.Clone(m.Insts.Rows()), slices.Clone(m.Blocks.Rows()), slices.Clone(m.Funcs.Rows())
	orders := make([][]ir.Inst, len(blocks))
	for b := 1; b < len(blocks); b++ {
		orders[b] = slices.Clone(m.OrderOf(ir.Block(b)))
	}
	return func() {
		copy(m.Locs.Rows(), locs)
		copy(m.Insts.Rows(), insts)
		copy(m.Blocks.Rows(), blocks)
		copy(m.Funcs.Rows(), funcs)
		for b := 1; b < len(blocks); b++ {
			copy(m.OrderOf(ir.Block(b)), orders[b])
		}
	}
}
