package tile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// gens are the generations that have a code generator.
func gens() (out []*target.Generation) {
	for _, level := range []int{20, 30, 40} {
		g, _ := target.ByLevel(level)
		out = append(out, g)
	}
	return out
}

// model builds a graph of one computation; build returns its outputs.
func model(t testing.TB, build func(b *graph.Builder) []graph.Node) *graph.Graph {
	t.Helper()
	g := new(graph.Graph)
	g.Name = "m"
	b := graph.Begin(g, "main")
	outs := build(b)
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	c, err := b.End(outs[len(outs)-1])
	if err != nil {
		t.Fatal(err)
	}
	g.Entry = c
	for i, o := range outs {
		g.Outputs = append(g.Outputs, graph.Output{Name: g.Names.Intern(fmt.Sprintf("out%d", i)), Node: o})
	}
	return g
}

// lowered is a canonical graph and its program.
type lowered struct {
	g     *graph.Graph
	m     *ir.Module
	stats Stats
}

func lowerFor(g *graph.Graph, gen *target.Generation, opt Options) (*lowered, error) {
	c, err := graph.Canonical(g)
	if err != nil {
		return nil, err
	}
	m := new(ir.Module)
	st, err := Lower(c, gen, opt, m)
	if err != nil {
		return nil, err
	}
	// What was counted before holds for full tiles; the last tile of a loop may take a few instructions less or more.
	if lo, hi := st.Insts*7/10-20, st.Insts*14/10+40; st.Counted < lo || st.Counted > hi {
		return nil, fmt.Errorf("%d instructions were counted before emission, %d emitted", st.Counted, st.Insts)
	}
	if err := verify.Module(m, target.Bug); err != nil {
		return nil, fmt.Errorf("not legal: %w", err)
	}
	return &lowered{c, m, st}, nil
}

// simulate runs the program on the inputs and gives its outputs.
func (lo *lowered) simulate(ins []graph.Tensor) ([]graph.Tensor, error) {
	byName := map[string][]byte{}
	for i, p := range lo.g.Params(lo.g.Entry) {
		byName[lo.g.NodeName(p)] = ins[i].Data
	}
	var s sim.Sim
	err := s.Run(lo.m, sim.Env{
		Input: func(name string, size int64) ([]byte, error) {
			if b, ok := byName[name]; ok {
				return b, nil
			}
			return nil, fmt.Errorf("no input %q", name)
		},
		Const: func(c ir.Const, name string, size int64) ([]byte, error) {
			n, ok := lo.g.FindConst(lo.m.Names.String(lo.m.Consts.At(c).Tensor))
			if !ok {
				return nil, fmt.Errorf("no constant %q", name)
			}
			data, err := graph.Materialise(lo.g, n)
			if err != nil {
				return nil, err
			}
			return recipe(lo.m, lo.m.Consts.At(c), data)
		},
	})
	if err != nil {
		return nil, err
	}
	var outs []graph.Tensor
	at := 0
	for set, r := range lo.m.Sets.All() {
		if !r.Kind.IsOutput() {
			continue
		}
		o := lo.g.Outputs[at]
		at++
		loc, _ := lo.m.LocsOf(set)
		if !s.Written(lo.m, loc) {
			return nil, fmt.Errorf("output %d is not written in full", at-1)
		}
		t := graph.Tensor{Dtype: lo.g.Dtype(o.Node), Dims: lo.g.Dims(o.Node)}
		t.Data = append(t.Data, s.Bytes(lo.m, loc)...)
		outs = append(outs, t)
	}
	return outs, nil
}

// agree lowers the graph for every generation, runs it and compares it with the reference interpreter.
func agree(t testing.TB, g *graph.Graph, opt Options) {
	t.Helper()
	agreeOn(t, g, opt, graph.RandomInputs(g, 1))
}

func agreeOn(t testing.TB, g *graph.Graph, opt Options, ins []graph.Tensor) {
	t.Helper()
	want, err := graph.Eval(g, ins)
	if err != nil {
		t.Fatalf("interpreter: %v", err)
	}
	tol := graph.Tolerance(g)
	for _, gen := range gens() {
		lo, err := lowerFor(g, gen, opt)
		if err != nil {
			t.Fatalf("%s: %v", gen.Name, err)
		}
		got, err := lo.simulate(ins)
		if err != nil {
			t.Fatalf("%s: simulation: %v", gen.Name, err)
		}
		for i := range want {
			d, err := graph.Compare(got[i], want[i], tol.RTol, tol.Of(want[i]))
			if err != nil {
				t.Fatalf("%s: output %d: %v", gen.Name, i, err)
			}
			if !d.OK() {
				t.Fatalf("%s: output %d: %v", gen.Name, i, d)
			}
		}
	}
}

// recipe applies the steps of a constant to the model's bytes, one element after the other.
func recipe(m *ir.Module, c *ir.ConstRow, data []byte) ([]byte, error) {
	shape := slices.Clone(m.Ints.Of(c.Shape))
	size := int64(c.Dtype.Size())
	for _, step := range strings.Split(m.Names.String(c.Recipe), "; ") {
		if step == "" {
			continue
		}
		word, rest, _ := strings.Cut(step, " ")
		var list []int64
		for _, f := range strings.Split(rest, ",") {
			x, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		switch word {
		case "reshape":
			if product(list) != product(shape) {
				return nil, fmt.Errorf("recipe %q on %v", step, shape)
			}
			shape = list
		case "permute":
			stride := make([]int64, len(shape))
			n := int64(1)
			for i := len(shape) - 1; i >= 0; i-- {
				stride[i] = n
				n *= shape[i]
			}
			to := make([]int64, len(list))
			for i, p := range list {
				to[i] = shape[p]
			}
			out := make([]byte, 0, len(data))
			for e := range n {
				at, left := int64(0), e
				for i := len(to) - 1; i >= 0; i-- {
					at += left % to[i] * stride[list[i]]
					left /= to[i]
				}
				out = append(out, data[at*size:(at+1)*size]...)
			}
			data, shape = out, to
		default:
			return nil, fmt.Errorf("recipe step %q", step)
		}
	}
	return data, nil
}
