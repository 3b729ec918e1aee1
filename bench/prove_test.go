package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/codegen/machine"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

func random(dt target.Dtype, parts, n int) kernel.View {
	r := rand.New(rand.NewPCG(1, 2))
	v := kernel.Dense(make([]byte, parts*n*dt.Size()), 0, dt, parts, n*dt.Size(), n)
	row := make([]float32, n)
	for p := range parts {
		for i := range row {
			row[i] = r.Float32()*2 - 1
		}
		kernel.StoreRow(&v, p, row)
	}
	return v
}

// BenchmarkKernel is the arithmetic that both simulators share, on full tiles.
func BenchmarkKernel(b *testing.B) {
	var s kernel.Scratch
	for _, dt := range []target.Dtype{target.BFloat16, target.Float32} {
		for _, n := range []int{1, 4, 64, 128, 512} {
			b.Run(fmt.Sprintf("matmul/type=%s/N=%d", dt, n), func(b *testing.B) {
				x, w, y := random(dt, 128, n), random(dt, 128, 128), random(target.Float32, 128, n)
				must(b, kernel.MatmulFull(&s, &y, &x, &w, false))
				start := cpuTime()
				for b.Loop() {
					must(b, kernel.MatmulFull(&s, &y, &x, &w, false))
				}
				rate(b, 128*128*float64(n)/1e9, "GMAC/s")
				cpuRate(b, start, 128*128*float64(n)/1e9, "GMAC/s")
			})
		}
	}
	const parts, n = 128, 2048
	x, y, z := random(target.Float32, parts, n), random(target.Float32, parts, n), random(target.Float32, parts, n)
	h, one := random(target.BFloat16, parts, n), random(target.Float32, parts, 1)
	act := func(f target.ActFunc) func() error {
		return func() error {
			return kernel.Activation(&s, &z, &x, &kernel.ActOps{Func: f, Scale: kernel.Imm(1), Bias: kernel.Ptr(&one)}, nil)
		}
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"add", func() error { return kernel.TensorTensor(&s, target.AluAdd, &z, &x, &y, nil) }},
		{"cast", func() error { return kernel.Copy(&s, &h, &x) }},
		{"reduce", func() error { return kernel.TensorReduce(&s, target.AluAdd, &one, &x, false) }},
		{"relu", act(target.ActRelu)},
		{"exp", act(target.ActExp)},
		{"gelu", act(target.ActGelu)},
	} {
		b.Run("elementwise/"+c.name, func(b *testing.B) {
			must(b, c.run())
			for b.Loop() {
				must(b, c.run())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(parts*n), "ns/elem")
		})
	}
}

// BenchmarkInterp is the reference interpreter, operator by operator.
func BenchmarkInterp(b *testing.B) {
	for _, c := range []struct {
		name string
		work float64 // multiply-adds, or elements
		unit string
		make func(bl *graph.Builder) graph.Node
	}{
		{"dot/f32", 128 * 512 * 512, "GMAC/s", func(bl *graph.Builder) graph.Node {
			return bl.MatMul(bl.Param("x", graph.F32, 128, 512), bl.Param("y", graph.F32, 512, 512))
		}},
		{"dot/bf16", 128 * 512 * 512, "GMAC/s", func(bl *graph.Builder) graph.Node {
			return bl.MatMul(bl.Param("x", graph.BF16, 128, 512), bl.Param("y", graph.BF16, 512, 512))
		}},
		{"conv/3x3", 64 * 64 * 28 * 28 * 9, "GMAC/s", func(bl *graph.Builder) graph.Node {
			w := graph.Window{Stride: 1, PadLow: 1, PadHigh: 1}
			return bl.Conv(bl.Param("x", graph.F32, 1, 64, 28, 28), bl.Param("w", graph.F32, 64, 64, 3, 3), []graph.Window{w, w}, 1)
		}},
		{"conv/7x7s2", 3 * 64 * 56 * 56 * 49, "GMAC/s", func(bl *graph.Builder) graph.Node {
			w := graph.Window{Stride: 2, PadLow: 3, PadHigh: 3}
			return bl.Conv(bl.Param("x", graph.F32, 1, 3, 112, 112), bl.Param("w", graph.F32, 64, 3, 7, 7), []graph.Window{w, w}, 1)
		}},
		{"add/f32", 1 << 16, "ns/elem", func(bl *graph.Builder) graph.Node {
			x := bl.Param("x", graph.F32, 256, 256)
			return bl.Add(x, x)
		}},
		{"exp/f32", 1 << 16, "ns/elem", func(bl *graph.Builder) graph.Node {
			return bl.Unary(graph.OpExp, bl.Param("x", graph.F32, 256, 256))
		}},
		{"sum/bf16", 1 << 16, "ns/elem", func(bl *graph.Builder) graph.Node {
			return bl.Reduce(graph.ReduceSum, bl.Param("x", graph.BF16, 256, 256), 1)
		}},
		{"transpose/bf16", 1 << 16, "ns/elem", func(bl *graph.Builder) graph.Node {
			return bl.Transpose(bl.Param("x", graph.BF16, 256, 256), 1, 0)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var g graph.Graph
			bl := graph.Begin(&g, "one")
			comp, err := bl.End(c.make(bl))
			must(b, err)
			g.Entry = comp
			in := graph.RandomInputs(&g, 1)
			var p graph.Interp
			_, err = p.Run(&g, in)
			must(b, err)
			start := cpuTime()
			for b.Loop() {
				_, err := p.Run(&g, in)
				must(b, err)
			}
			if c.unit == "ns/elem" {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/c.work, c.unit)
				return
			}
			rate(b, c.work/1e9, c.unit)
			cpuRate(b, start, c.work/1e9, c.unit)
		})
	}
}

// runnable is small enough to run in a moment and has every engine at work.
const runnable = "zoo:gpt2?layers=1&seq=64"

// BenchmarkMachine runs a package on the machine simulator.
func BenchmarkMachine(b *testing.B) {
	for _, model := range []string{"zoo:mlp", runnable} {
		b.Run(spell(model), func(b *testing.B) {
			m := loaded(b, model)
			must(b, m.Run(0))
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				must(b, m.Run(0))
			}
			st := m.Stats()
			total := st.Transfers
			for _, n := range st.Bundles {
				total += n
			}
			rate(b, float64(total), "bundles/s")
			rate(b, float64(st.MACs)/1e9, "GMAC/s")
			cpuRate(b, start, float64(st.MACs)/1e9, "GMAC/s")
		})
	}
}

// loaded is a machine with the package of a model, its weights and random inputs.
func loaded(b *testing.B, model string) *machine.Machine {
	b.Helper()
	s := load(b, model)
	c := newCompiler()
	s.lower(b, &c.module)
	c.run(b)
	p, err := neff.ReadBytes(c.out.Bytes(), nil)
	must(b, err)
	m, err := machine.New(s.gen)
	must(b, err)
	m.Weights(func(w *neff.Weight, _ *neff.Var) ([]byte, error) {
		return codegen.ModelConstant(s.g, w.Tensor, w.Recipe)
	})
	must(b, m.Load(p))
	in := graph.RandomInputs(s.g, 1)
	for i, t := range p.Tensors.Inputs {
		must(b, m.SetInput(t.Name, in[i].Data))
	}
	return m
}

// BenchmarkRace is the check for races, which needs no data and runs once a package.
func BenchmarkRace(b *testing.B) {
	for _, model := range []string{runnable, "zoo:llama3-8b?layers=1&seq=512"} {
		b.Run(spell(model), func(b *testing.B) {
			p, err := neff.ReadBytes(compiled(b, model), nil)
			must(b, err)
			var r *machine.Report
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				r, err = machine.Race(p)
				must(b, err)
				must(b, r.Err())
			}
			rate(b, float64(r.Accesses), "accesses/s")
			cpuRate(b, start, float64(r.Accesses), "accesses/s")
			rate(b, float64(r.Bundles), "bundles/s")
		})
	}
}

// BenchmarkSim runs a lowered module on the IR simulator, as the check after every pass does.
func BenchmarkSim(b *testing.B) {
	for _, model := range []string{"zoo:mlp", runnable} {
		b.Run(spell(model), func(b *testing.B) {
			s := load(b, model)
			var m ir.Module
			n := s.lower(b, &m)
			macs, err := zoo.Count(model)
			must(b, err)
			inputs := map[string][]byte{}
			for i, t := range graph.RandomInputs(s.g, 1) {
				inputs[inputName(&m, i)] = t.Data
			}
			weights := map[ir.Const][]byte{}
			env := sim.Env{
				Input: func(name string, _ int64) ([]byte, error) { return inputs[name], nil },
				Const: func(c ir.Const, _ string, _ int64) (_ []byte, err error) {
					if weights[c] == nil {
						weights[c], err = constant(s, &m, c)
					}
					return weights[c], err
				},
			}
			var w sim.Sim
			must(b, w.Run(&m, env))
			b.ReportAllocs()
			for b.Loop() {
				must(b, w.Run(&m, env))
			}
			rate(b, float64(n), "inst/s")
			rate(b, float64(macs.MACs)/1e9, "GMAC/s")
		})
	}
}

// inputName is the name of the input with a number.
func inputName(m *ir.Module, i int) string {
	for _, r := range m.Sets.All() {
		if r.Kind.IsInput() {
			if i == 0 {
				return m.Names.String(r.Name)
			}
			i--
		}
	}
	return ""
}

func constant(s *source, m *ir.Module, c ir.Const) ([]byte, error) {
	r := m.Consts.At(c)
	steps, err := lower.ParseRecipe(m.Names.String(r.Recipe))
	if err != nil {
		return nil, err
	}
	return codegen.ModelConstant(s.g, m.Names.String(r.Tensor), steps)
}
