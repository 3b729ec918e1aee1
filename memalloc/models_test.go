package memalloc

import (
	"bytes"
	"os"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/publicdata"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/tile"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
	"github.com/rosmar-compiler/rosmar/memalloc/legalize"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// hloFile is a published module, skipped where the data is absent.
func hloFile(t testing.TB, name string) *graph.Graph {
	t.Helper()
	data, err := os.ReadFile(publicdata.Path(t, "hlo", name))
	if err != nil {
		t.Fatal(err)
	}
	g := new(graph.Graph)
	if err := hlo.Read(data, g); err != nil {
		t.Fatal(err)
	}
	return g
}

func zooModel(t testing.TB, name string) *graph.Graph {
	t.Helper()
	g, err := zoo.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lowerModel is the program of a model.
func lowerModel(t testing.TB, g *graph.Graph, level int) *program {
	t.Helper()
	c, err := graph.Canonical(g)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{}
	if _, err := tile.Lower(c, generation(t, level), tile.Options{}, &p.m); err != nil {
		t.Fatal(err)
	}
	p.f = p.m.Entry
	var lin ssa.Linear
	if _, err := legalize.PSUM(&p.m, p.f, &lin); err != nil {
		t.Fatal(err)
	}
	return p
}

// outputs runs the program on made-up data and returns the bytes of all outputs. Every 16 bits of the data are a small number
// as bfloat16, and every 32 as fp32.
func outputs(t testing.TB, p *program) (out []byte) {
	t.Helper()
	fill := func(name string, size int64) ([]byte, error) {
		b := make([]byte, size)
		h := uint64(len(name))
		for i := range b {
			if i%2 == 0 {
				h = hash(h, uint64(i))
				b[i] = byte(h >> 20)
			} else {
				b[i] = 0x3c | byte(h>>40)&0x80
			}
		}
		return b, nil
	}
	var s sim.Sim
	err := s.Run(&p.m, sim.Env{Input: fill, Const: func(_ ir.Const, name string, size int64) ([]byte, error) { return fill(name, size) }})
	if err != nil {
		t.Fatal(err)
	}
	for set, r := range p.m.Sets.All() {
		if r.Kind.IsOutput() {
			l, _ := p.m.LocsOf(set)
			out = append(out, s.Bytes(&p.m, l)...)
		}
	}
	return out
}

// Lowered models keep every bit of their result under placement and under spilling, and the independent checkers agree.
func TestModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		graph func(testing.TB) *graph.Graph
		long  bool
		least int // values spilled where memory is least
	}{
		{"linear", func(t testing.TB) *graph.Graph { return hloFile(t, "neuron/linear_forward.hlo.txt") }, false, 0},
		{"mlp", func(t testing.TB) *graph.Graph { return zooModel(t, "zoo:mlp?layers=3&width=512&batch=64&in=512") }, false, 2},
		{"mha", func(t testing.TB) *graph.Graph { return hloFile(t, "openxla/mha_block_1x12x128x64_bf16.hlo") }, true, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("simulates a larger model")
			}
			for _, level := range []int{20, 30, 40} {
				p := lowerModel(t, c.graph(t), level)
				want := outputs(t, p)
				var ws Workspace
				full := check(t, p, &ws, Options{}, want)
				t.Logf("level %d: %d nodes, %d edges, demand %.1f %%, high water %d", level, full.Nodes, full.Edges, full.PeakDemand, full.HighWater)
				// The least memory that does, by bisection; then that and a little more. Too little must be refused as a limit.
				opt := Options{PsumBanks: 2, StripBytes: 32}
				fits := func(size int64) bool {
					p := lowerModel(t, c.graph(t), level)
					opt.SBBytes = size
					if _, err := PSUM(&p.m, p.f, &ws, opt); err != nil {
						t.Fatal(err)
					}
					_, err := SB(&p.m, p.f, &ws, opt)
					if err != nil && target.ClassOf(err) != target.Limit {
						t.Fatal(err)
					}
					return err == nil
				}
				lo, hi := int64(32), full.HighWater
				for hi-lo > granule {
					if mid := (lo + hi) / 2 &^ (granule - 1); fits(mid) {
						hi = mid
					} else {
						lo = mid
					}
				}
				spilled := 0
				for _, size := range []int64{hi, hi + hi/8, hi + hi/2} {
					p := lowerModel(t, c.graph(t), level)
					opt.SBBytes = size
					mt := check(t, p, &ws, opt, want)
					t.Logf("level %d, %d bytes: %d values spilled (%d bytes), %d remat, %d saves, %d reloads, %d rounds",
						level, size, mt.Spilled, mt.SpilledBytes, mt.Remats, mt.Saves, mt.Reloads, mt.Iterations)
					spilled = max(spilled, mt.Spilled)
				}
				if spilled < c.least {
					t.Errorf("level %d: at most %d values spilled, want %d", level, spilled, c.least)
				}
			}
		})
	}
}

// check places a program, asks the verifier, and compares what it computes.
func check(t testing.TB, p *program, ws *Workspace, opt Options, want []byte) Metrics {
	t.Helper()
	_, sb, _ := placeAll(t, p, ws, opt)
	if err := verify.Module(&p.m, target.Bug); err != nil {
		t.Fatal(err)
	}
	if err := verify.Placement(&p.m, p.f, target.SpacePSUM, target.SpaceSB, target.SpaceDRAM); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(outputs(t, p), want) {
		t.Fatal("the placed program computes something else")
	}
	// Derived names and dropped sets survive the text form.
	var text, again bytes.Buffer
	if err := ir.Print(&text, &p.m); err != nil {
		t.Fatal(err)
	}
	var m ir.Module
	if err := ir.Parse(text.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if err := ir.Print(&again, &m); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text.Bytes(), again.Bytes()) {
		t.Fatal("the placed program prints differently after parsing")
	}
	return sb
}
