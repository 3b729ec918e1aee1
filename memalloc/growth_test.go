package memalloc

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// growthWidth is how many locations are live at a time where growth is measured.
const growthWidth = 100

// growthCase is one way of filling a memory with n locations.
type growthCase struct {
	name string
	// fill makes the module anew, in the storage that it has.
	fill func(t testing.TB, p *program, n int)
	run  func(p *program, ws *Workspace) (Metrics, error)
	// spills: the module is not as it was afterwards.
	spills bool
}

func growthCases() []growthCase {
	sb := func(opt Options) func(p *program, ws *Workspace) (Metrics, error) {
		return func(p *program, ws *Workspace) (Metrics, error) { return SB(&p.m, p.f, ws, opt) }
	}
	psum := func(opt Options) func(p *program, ws *Workspace) (Metrics, error) {
		return func(p *program, ws *Workspace) (Metrics, error) { return PSUM(&p.m, p.f, ws, opt) }
	}
	wide := func(t testing.TB, p *program, n int) { fillChain(t, p, n, growthWidth) }
	scan := func(banks int) func(p *program, ws *Workspace) (Metrics, error) {
		return func(p *program, ws *Workspace) (Metrics, error) {
			mt, _, err := LinearScan(&p.m, p.f, ws, Options{PsumBanks: banks})
			return mt, err
		}
	}
	// 100 live locations of chain take 11,000 bytes.
	return []growthCase{
		{"sb", wide, sb(Options{}), false},
		{"sb-spill", wide, sb(Options{StripBytes: 8, SBBytes: 8000}), true},
		{"sb-victim", longUse, sb(Options{StripBytes: 8, SBBytes: 10000}), true},
		{"psum", psumChain, psum(Options{}), false},
		{"psum-spill", psumChain, psum(Options{PsumBanks: 4}), true},
		{"psum-cut", twoSums, psum(Options{PsumBanks: 1}), true},
		{"lsa-psum", openChain, scan(2), true},
		{"lsa-psum-cut", twoSums, scan(1), true},
	}
}

// longUse is a program of n small locations, and one that is live throughout and used by one instruction in ten.
func longUse(t testing.TB, p *program, n int) {
	m := &p.m
	m.Reset()
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	tile := func(words int64) value {
		return value{parts: 128, words: words, loc: b.SB(0, target.Float32, 128, words)}
	}
	long := tile(1000)
	b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&b, long)})
	x := tile(100)
	b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&b, x)})
	for k := range n {
		words := int64(100)
		if k%20 == 10 { // too much for the two to stay
			words = 1500
		}
		y := tile(words)
		if k%20 == 10 {
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{whole(&b, y)})
		} else if k%10 == 0 {
			b.Emit(ir.OpTensorTensor, target.EngineDVE, []ir.Arg{whole(&b, x), part(&b, long, 0, 100)}, []ir.Arg{whole(&b, y)})
		} else {
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, x)}, []ir.Arg{whole(&b, y)})
		}
		x = y
	}
	b.Close()
}

// psumChain is a program of n PSUM locations, eight of which are live at a time.
func psumChain(t testing.TB, p *program, n int) {
	m := &p.m
	m.Reset()
	m.Gen = generation(t, 30)
	var b ir.Builder
	b.NewFunc(m, "main", "Block1")
	p.f = b.Func
	x := value{parts: 128, words: 64, loc: b.SB(0, target.Float32, 128, 64)}
	b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{whole(&b, x)})
	var ring [8]value
	for k := range n {
		if old := ring[k%8]; old.loc != 0 {
			y := value{parts: 128, words: 64, loc: b.SB(0, target.Float32, 128, 64)}
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&b, old)}, []ir.Arg{whole(&b, y)})
		}
		v := value{parts: 128, words: 64, loc: b.PSUM(0, target.Float32, 128, 64)}
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&b, x), whole(&b, x)}, []ir.Arg{whole(&b, v)}, ir.Int(ir.KeyAccumulationFlag, 3))
		ring[k%8] = v
	}
	b.Close()
}

// openChain is a program of n PSUM locations, two of which are live at a time beside one whose accumulation group is open then.
func openChain(t testing.TB, p *program, n int) {
	p.m.Reset()
	s := sheetOn(t, p, 30)
	x, y, sum := s.sb("x", 128, 64), s.sb("y", 128, 64), s.psum("sum", 64)
	s.set(x)
	var before value
	for k := range n {
		s.matmul(x, sum, ir.GroupStart)
		v := s.psum(fmt.Sprintf("v%d", k), 64)
		s.matmul(x, v, ir.GroupStart|ir.GroupStop)
		if k > 0 {
			s.act(before, y)
		}
		if k > 0 && k < 20 {
			s.save(y, 0, 64)
		}
		before = v
		s.matmul(x, sum, ir.GroupAccumulate|ir.GroupStop)
		s.act(sum, y)
	}
	s.save(y, 0, 64)
	s.b.Close()
}

// twoSums is a program of n matmuls that add to two sums in turns.
func twoSums(t testing.TB, p *program, n int) {
	p.m.Reset()
	s := sheetOn(t, p, 30)
	x, y := s.sb("x", 128, 64), s.sb("y", 128, 64)
	s.set(x)
	sums := [2]value{s.psum("a", 64), s.psum("b", 64)}
	for k := range n {
		flags := int64(ir.GroupAccumulate)
		if k < 2 {
			flags = ir.GroupStart
		} else if k >= n-2 {
			flags |= ir.GroupStop
		}
		s.matmul(x, sums[k%2], flags)
	}
	for _, v := range sums {
		s.act(v, y)
		s.save(y, 0, 64)
	}
	s.b.Close()
}

// held is the heap in use.
func held() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func sizeName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%dk", n/1000)
}

// BenchmarkGrowthAlloc is the least time of the processor and the bytes of workspace and spill code for each location, from 10,000 to 1,000,000.
// Module and workspace have been there before, as those of a worker after its first input have.
func BenchmarkGrowthAlloc(b *testing.B) {
	for _, c := range growthCases() {
		for _, n := range []int{10_000, 100_000, 1_000_000} {
			b.Run(c.name+"/locs="+sizeName(n), func(b *testing.B) {
				var ws Workspace
				p := new(program)
				c.fill(b, p, n)
				before := held()
				if _, err := c.run(p, &ws); err != nil {
					b.Fatal(err)
				}
				bytes := held() - before
				least := time.Duration(1<<63 - 1)
				for b.Loop() {
					b.StopTimer()
					if c.spills {
						c.fill(b, p, n)
					} else {
						unplace(p)
					}
					runtime.GC()
					b.StartTimer()
					start, cpu := time.Now(), cpuTime()
					if _, err := c.run(p, &ws); err != nil {
						b.Fatal(err)
					}
					spent := cpuTime() - cpu
					if spent == 0 {
						spent = time.Since(start)
					}
					least = min(least, spent)
				}
				b.ReportMetric(float64(least)/float64(n), "ns/loc")
				b.ReportMetric(float64(bytes)/float64(n), "B/loc")
				runtime.KeepAlive(p)
			})
		}
	}
}

// The second module through one workspace costs no allocation more than building it, also where it spills.
func TestSteadyStateSpilling(t *testing.T) {
	for _, c := range growthCases() {
		p := new(program)
		c.fill(t, p, 3000)
		var text bytes.Buffer
		if err := ir.Print(&text, &p.m); err != nil {
			t.Fatal(err)
		}
		p.m = ir.Module{}
		var ws Workspace
		spilled := 0
		pass := func(place bool) func() {
			return func() {
				p.m.Reset()
				if err := ir.Parse(text.Bytes(), &p.m); err != nil {
					t.Fatal(err)
				}
				p.f = p.m.Entry
				if !place {
					return
				}
				mt, err := c.run(p, &ws)
				if err != nil {
					t.Fatal(err)
				}
				spilled = mt.Spilled
			}
		}
		pass(true)()
		build := testing.AllocsPerRun(3, pass(false))
		if n := testing.AllocsPerRun(3, pass(true)); n > build {
			t.Errorf("%s: %v allocations a run, %v of them to build the module", c.name, n, build)
		}
		if c.spills != (spilled > 0) {
			t.Errorf("%s: %d spilled", c.name, spilled)
		}
	}
}

// Workspace and spill code for a location stay the same from 10,000 to 100,000 of them. BenchmarkGrowthAlloc goes on to a million,
// and to time.
func TestGrowthBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("places 100,000 locations in each of its cases")
	}
	for _, c := range growthCases() {
		var per [2]float64
		for k, n := range []int{10_000, 100_000} {
			p := new(program)
			c.fill(t, p, n)
			ws := new(Workspace)
			before := held()
			mt, err := c.run(p, ws)
			if err != nil {
				t.Fatal(err)
			}
			per[k] = float64(held()-before) / float64(n)
			if mt.Iterations > 5 {
				t.Errorf("%s: %d rounds for %d locations", c.name, mt.Iterations, n)
			}
			runtime.KeepAlive(p)
			runtime.KeepAlive(ws)
		}
		t.Logf("%s: %.0f and %.0f bytes a location", c.name, per[0], per[1])
		if per[1] > 1.2*per[0] {
			t.Errorf("%s: %.0f bytes a location among 10,000, %.0f among 100,000", c.name, per[0], per[1])
		}
	}
}
