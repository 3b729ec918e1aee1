package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/tile"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

// big is the model that the bounds are stated for.
const big = "zoo:llama3-8b?layers=1&seq=2048"

// spell turns a model name into the name of a sub-benchmark: benchstat takes key=value parts apart by itself.
func spell(model string) string {
	return strings.NewReplacer("?", "/", "&", "/").Replace(strings.TrimPrefix(model, zoo.Prefix))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// source is a model ready to be lowered again and again.
type source struct {
	name string
	g    *graph.Graph // canonical
	gen  *target.Generation
}

func load(tb testing.TB, model string) *source {
	tb.Helper()
	raw, err := zoo.New(model)
	must(tb, err)
	g, err := graph.Canonical(raw)
	must(tb, err)
	gen, err := target.ForCodeGen(codegen.DefaultTarget)
	must(tb, err)
	return &source{name: model, g: g, gen: gen}
}

// lower writes the module that enters the plane and gives its instructions.
func (s *source) lower(tb testing.TB, m *ir.Module) int {
	tb.Helper()
	_, err := tile.Lower(s.g, s.gen, tile.Options{}, m)
	must(tb, err)
	return instCount(m)
}

func instCount(m *ir.Module) (n int) {
	for _, r := range m.Blocks.All() {
		n += int(r.Order.Len)
	}
	return n
}

// compiler is what one goroutine keeps from compile to compile.
type compiler struct {
	worker  codegen.Worker
	module  ir.Module
	program codegen.Program
	opt     codegen.Options
	out     neff.Buffer
}

func newCompiler() *compiler {
	c := &compiler{opt: codegen.NewOptions()}
	c.program.Module = &c.module
	return c
}

// run compiles the module at hand to a package in memory.
func (c *compiler) run(tb testing.TB) {
	c.out.Reset()
	_, err := c.worker.Compile(context.Background(), &c.program, &c.opt, &c.out)
	must(tb, err)
}

// until prepares a module as pass would meet it.
func until(tb testing.TB, model, pass string) (*compiler, int) {
	tb.Helper()
	c := newCompiler()
	n := load(tb, model).lower(tb, &c.module)
	all, err := c.opt.Passes()
	must(tb, err)
	at := slices.Index(all, pass)
	if at < 0 {
		tb.Fatalf("the plane has no pass %s", pass)
	}
	if c.opt.Pass = all[:at]; at > 0 {
		c.run(tb)
	}
	return c, n
}

// compiled is the package of a model.
func compiled(tb testing.TB, model string) []byte {
	tb.Helper()
	c := newCompiler()
	load(tb, model).lower(tb, &c.module)
	c.run(tb)
	return c.out.Bytes()
}

// live is the bytes on the heap that something still holds. The second collection takes what finalizers and pools let go
// of in the first.
func live() int64 {
	var ms runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&ms)
	return int64(ms.HeapAlloc)
}

// cpuMeter adds up the processor time of the parts of an iteration that are inside the clock.
type cpuMeter struct{ sum, start time.Duration }

func (c *cpuMeter) begin() { c.start = cpuTime() }
func (c *cpuMeter) end()   { c.sum += cpuTime() - c.start }

// report gives the processor time of one instruction.
func (c *cpuMeter) report(b *testing.B, insts int) {
	if c.sum > 0 {
		b.ReportMetric(float64(c.sum.Nanoseconds())/float64(b.N)/float64(insts), "cpu-ns/inst")
	}
}

// rate reports work done a second.
func rate(b *testing.B, perOp float64, unit string) {
	b.ReportMetric(perOp*float64(b.N)/b.Elapsed().Seconds(), unit)
}

// cpuRate reports work done a second of processor time since start.
func cpuRate(b *testing.B, start time.Duration, perOp float64, unit string) {
	if spent := cpuTime() - start; spent > 0 {
		b.ReportMetric(perOp*float64(b.N)/spent.Seconds(), "cpu-"+unit)
	}
}

// shared reads a file of the public test data beside the module, unpacked, and skips the benchmark when there is none.
func shared(tb testing.TB, path ...string) []byte {
	tb.Helper()
	dir, err := os.Getwd()
	must(tb, err)
	for {
		data, err := os.ReadFile(filepath.Join(append([]string{dir, "shared", "data"}, path...)...))
		if err == nil {
			return unpack(tb, data)
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Skipf("no shared/data/%s beside the module", filepath.Join(path...))
		}
		dir = up
	}
}

func unpack(tb testing.TB, data []byte) []byte {
	tb.Helper()
	if !bytes.HasPrefix(data, []byte{0x1F, 0x8B}) {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	must(tb, err)
	data, err = io.ReadAll(z)
	must(tb, err)
	return data
}
