package hlo

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/publicdata"
)

// dataDir finds the folder of HLO modules beside the module's root, or skips.
func dataDir(tb testing.TB) string {
	tb.Helper()
	return publicdata.Path(tb, "hlo")
}

func load(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			tb.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

// TestData reads every module there is through one workspace and compares what the manifest counts.
func TestData(t *testing.T) {
	dir := dataDir(t)
	var r Reader
	var g graph.Graph
	for _, row := range manifest(t, dir) {
		data := load(t, filepath.Join(dir, row["file"]))
		if !IsHLO(data) {
			t.Errorf("%s: not recognised", row["file"])
		}
		if err := r.Read(data, &g); err != nil {
			t.Errorf("%s: %v", row["file"], err)
			continue
		}
		checkTables(t, row["file"], &g)
		count := map[string]int{"computations": g.Comps.Len() - 1, "entry_params": len(g.Params(g.Entry))}
		targets := map[string]bool{}
		for n, nr := range g.Nodes.All() {
			if nr.Name != 0 { // the reader's own get-tuple-elements have none
				count["instructions"]++
			}
			switch nr.Op {
			case graph.OpDot:
				count["dots"]++
			case graph.OpConv:
				count["convs"]++
			case graph.OpWhile:
				count["whiles"]++
			case graph.OpCustomCall:
				targets[g.Str(n, graph.AttrTarget)] = true
			case graph.OpOther:
				t.Errorf("%s: operator %s has no number", row["file"], g.Str(n, graph.AttrTarget))
			}
		}
		for _, k := range []string{"computations", "instructions", "entry_params", "dots", "convs", "whiles"} {
			if want := row[k]; want != strconv.Itoa(count[k]) {
				t.Errorf("%s: %d %s, the manifest says %s", row["file"], count[k], k, want)
			}
		}
		want := row["custom_call_targets"]
		if got := strings.Join(slices.Sorted(maps.Keys(targets)), ","); got != want && !(got == "" && want == "-") {
			t.Errorf("%s: custom calls %q, the manifest says %q", row["file"], got, want)
		}
	}
}

// checkTables checks what every consumer relies on: references in range, operands and parameters in their own computation, rows of a
// computation contiguous, outputs in the entry.
func checkTables(t *testing.T, name string, g *graph.Graph) {
	t.Helper()
	next := graph.Node(1)
	for c, row := range g.Comps.All() {
		if row.First != next {
			t.Errorf("%s: computation %d starts at %d, want %d", name, c, row.First, next)
		}
		next = row.First + graph.Node(row.Count)
		in := func(n graph.Node) bool { return n >= row.First && n < next }
		if !in(row.Root) {
			t.Errorf("%s: the root of computation %d is elsewhere", name, c)
		}
		for i, p := range g.Params(c) {
			if !in(p) || g.Op(p) != graph.OpParameter || g.Int(p, graph.AttrIndex, -1) != int64(i) {
				t.Errorf("%s: parameter %d of computation %d is %v", name, i, c, p)
			}
		}
		for n := row.First; n < next; n++ {
			if g.Nodes.At(n).Comp != c {
				t.Errorf("%s: %v is not in computation %d", name, n, c)
			}
			for _, in2 := range g.Operands(n) {
				if !in(in2) {
					t.Errorf("%s: operand %v of %s is outside its computation", name, in2, g.NodeName(n))
				}
			}
			for _, callee := range g.Calls(n) {
				if callee == 0 || int(callee) >= g.Comps.Len() {
					t.Errorf("%s: %s calls computation %d", name, g.NodeName(n), callee)
				}
			}
			switch g.Op(n) {
			case graph.OpWhile, graph.OpSelectAndScatter:
				if len(g.Calls(n)) != 2 {
					t.Errorf("%s: %s has %d calls", name, g.NodeName(n), len(g.Calls(n)))
				}
			case graph.OpConstant:
				if g.Nodes.At(n).Const == 0 {
					t.Errorf("%s: constant %s has no value", name, g.NodeName(n))
				}
			}
		}
	}
	if int(next) != g.Nodes.Len() {
		t.Errorf("%s: %d nodes, computations hold %d", name, g.Nodes.Len(), next)
	}
	for i, o := range g.Outputs {
		if g.Nodes.At(o.Node).Comp != g.Entry || g.Dtype(o.Node) == graph.Tuple || o.Name == 0 {
			t.Errorf("%s: output %d is %v named %q", name, i, o.Node, g.Names.String(o.Name))
		}
	}
	for _, a := range g.Aliases {
		if int(a.Output) >= len(g.Outputs) || int(a.Input) >= len(g.Params(g.Entry)) {
			t.Errorf("%s: alias of output %d to input %d", name, a.Output, a.Input)
			continue
		}
		out, in := g.Outputs[a.Output].Node, g.Params(g.Entry)[a.Input]
		if g.Nodes.At(out).Type != g.Nodes.At(in).Type {
			t.Errorf("%s: output %d and input %d are aliases of different types", name, a.Output, a.Input)
		}
	}
}

// TestDataChecks asks shape inference whether it agrees with every type that the modules give.
func TestDataChecks(t *testing.T) {
	dir := dataDir(t)
	var r Reader
	var g graph.Graph
	for _, row := range manifest(t, dir) {
		if err := r.Read(load(t, filepath.Join(dir, row["file"])), &g); err != nil {
			t.Errorf("%s: %v", row["file"], err)
			continue
		}
		if err := graph.Check(&g); err != nil {
			t.Errorf("%s: %v", row["file"], err)
		}
	}
}

func manifest(tb testing.TB, dir string) (rows []map[string]string) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	head := strings.Split(lines[0], "\t")
	for _, l := range lines[1:] {
		row := map[string]string{}
		for i, v := range strings.Split(l, "\t") {
			row[head[i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

// benchFiles are the largest modules: both operand spellings, with and without debug tables, with and without metadata.
var benchFiles = []string{
	"openxla/hlo_mixtral_8x7b_bf16_1x8.hlo.gz",
	"openxla/hlo_llama31_8b_bf16_1x8.hlo.gz",
	"openxla/nv_maxtext_deepseek_1n4g_jit_train_step_before_optimization.hlo.gz",
	"openxla/gemma3_1b_flax_call.hlo.gz",
	"rocm/stable_diffusion_1_5.infer.1gpu.jit__fun.hlo.txt.gz",
	"neuron/bert_train_step.hlo.txt.gz",
}

// BenchmarkRead reads into a graph that is reused; BenchmarkReadCold into a new one each time, as a single compile does.
func BenchmarkRead(b *testing.B) {
	var r Reader
	var g graph.Graph
	benchmark(b, func(data []byte) (*graph.Graph, error) { return &g, r.Read(data, &g) })
}

func BenchmarkReadCold(b *testing.B) {
	benchmark(b, func(data []byte) (*graph.Graph, error) {
		g := new(graph.Graph)
		return g, Read(data, g)
	})
}

func benchmark(b *testing.B, read func([]byte) (*graph.Graph, error)) {
	dir := dataDir(b)
	for _, f := range benchFiles {
		name, _, _ := strings.Cut(filepath.Base(f), ".")
		b.Run(name, func(b *testing.B) {
			data := load(b, filepath.Join(dir, f))
			g, err := read(data)
			if err != nil {
				b.Fatal(err)
			}
			nodes := g.Nodes.Len() - 1
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(nodes)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	dir := dataDir(b)
	data := load(b, filepath.Join(dir, benchFiles[0]))
	var g graph.Graph
	if err := Read(data, &g); err != nil {
		b.Fatal(err)
	}
	var n countWriter
	if err := Write(&n, &g); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(&n, &g); err != nil {
			b.Fatal(err)
		}
	}
}

type countWriter int64

func (c *countWriter) Write(p []byte) (int, error) {
	*c += countWriter(len(p))
	return len(p), nil
}
