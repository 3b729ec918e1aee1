package codegen

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rosmar-compiler/rosmar/codegen/machine"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// RunOptions say what a package is fed and what its results are held against. Tensors are matched to the package's by name,
// and those without a name by position.
type RunOptions struct {
	Inputs  []NamedTensor
	Spare   bool   // drop inputs that the package does not have, and do not refuse them
	Random  uint64 // seed of inputs that are not given, when HasRandom is set
	HasRand bool
	Expect  []NamedTensor
	Against *Program // compare with the reference interpreter on the same inputs
	Weights *Program // the model that large constants come from; Against when nil
	Seed    uint64   // first interleaving
	Seeds   int      // interleavings to run, at least one; all must give the same bits
	NoRace  bool     // leave the race check out
	Rtol    float64  // negative: the default of the model's narrowest float type
	Atol    float64
	Target  string // refuse a package for another target; "" takes the package's own
	// Progress, when set, hears what begins.
	Progress func(Event)
}

// NamedTensor is one input or output.
type NamedTensor struct {
	Name string
	graph.Tensor
}

// Comparison is one output held against a reference.
type Comparison struct {
	Name string
	Diff graph.Diff
}

// RunResult is what a run gave.
type RunResult struct {
	Name        string
	Target      string
	Outputs     []NamedTensor
	Comparisons []Comparison
	Stats       machine.Stats
	Timing      []PassTiming // where the time of the run went
}

// timed runs a part of a run, says so, and adds a row of the timing.
func (r *RunResult) timed(opt *RunOptions, e Event, run func() error) error {
	if opt.Progress != nil {
		opt.Progress(e)
	}
	start, before := time.Now(), allocated()
	err := run()
	r.Timing = append(r.Timing, PassTiming{Name: e.Pass, Time: time.Since(start), Bytes: allocated() - before})
	return err
}

// Failed is the first comparison out of tolerance, nil when all agree.
func (r *RunResult) Failed() *Comparison {
	for i := range r.Comparisons {
		if !r.Comparisons[i].Diff.OK() {
			return &r.Comparisons[i]
		}
	}
	return nil
}

// Runner keeps a machine a generation: its memory is poisoned once and not for every package. The zero value is ready; one
// serves one goroutine.
type Runner struct {
	machines map[int]*machine.Machine
}

func (r *Runner) machine(g *target.Generation) (*machine.Machine, error) {
	if m := r.machines[g.Level]; m != nil {
		return m, nil
	}
	m, err := machine.New(g)
	if err != nil {
		return nil, err
	}
	if r.machines == nil {
		r.machines = map[int]*machine.Machine{}
	}
	r.machines[g.Level] = m
	return m, nil
}

// Execute is Runner.Execute on a machine of its own.
func Execute(ctx context.Context, data []byte, opt *RunOptions) (*RunResult, error) {
	return new(Runner).Execute(ctx, data, opt)
}

// Execute runs a package on the machine simulator. The race check runs once and the values once an interleaving; outputs of
// different interleavings must agree in every bit.
func (r *Runner) Execute(ctx context.Context, data []byte, opt *RunOptions) (*RunResult, error) {
	pkg, err := neff.ReadBytes(data, nil)
	if err != nil {
		return nil, err
	}
	g, _ := target.ByLevel(pkg.Level)
	if opt.Target != "" {
		if g, err = target.ForCodeGen(opt.Target); err != nil {
			return nil, err
		}
	}
	mach, err := r.machine(g)
	if err != nil {
		return nil, err
	}
	source := &constants{model: opt.model()}
	mach.Weights(func(w *neff.Weight, _ *neff.Var) ([]byte, error) { return source.bytes(w) })
	res := &RunResult{Name: pkg.Header.Name, Target: g.Name}
	if err := res.timed(opt, Event{Pass: "load"}, func() error { return mach.Load(pkg) }); err != nil {
		return nil, err
	}
	inputs, err := bindInputs(pkg, opt)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		if err := mach.SetInput(in.Name, in.Data); err != nil {
			return nil, err
		}
	}
	if !opt.NoRace {
		err := res.timed(opt, Event{Pass: "race check"}, func() error {
			report, err := machine.Race(pkg)
			if err != nil {
				return err
			}
			return report.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for k := range max(1, opt.Seeds) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		seed := opt.Seed + uint64(k)
		if err := res.timed(opt, Event{Pass: "simulate", Of: "interleaving", Index: k, Total: max(1, opt.Seeds)}, func() error { return mach.Run(seed) }); err != nil {
			return nil, fmt.Errorf("interleaving %d: %w", seed, err)
		}
		for i, t := range pkg.Tensors.Outputs {
			got := mach.Output(t.Name)
			if k == 0 {
				res.Outputs = append(res.Outputs, NamedTensor{t.Name, graph.Tensor{Dtype: machineTypes[t.Dtype], Dims: t.Shape, Data: bytes.Clone(got)}})
			} else if !bytes.Equal(got, res.Outputs[i].Data) {
				return nil, target.Errorf(target.Bug, "output %q of interleaving %d differs from that of %d", t.Name, seed, opt.Seed)
			}
		}
	}
	res.Stats = mach.Stats()
	return res, compare(pkg, inputs, opt, res)
}

// bindInputs gives every input of the package its data: what was named, what stands at its position, or random values.
func bindInputs(pkg *neff.Package, opt *RunOptions) ([]NamedTensor, error) {
	known := map[string]bool{}
	for _, t := range pkg.Tensors.Inputs {
		known[t.Name] = true
	}
	byName := map[string]*NamedTensor{}
	for i := range opt.Inputs {
		byName[opt.Inputs[i].Name] = &opt.Inputs[i]
	}
	for i := range opt.Inputs {
		switch name := opt.Inputs[i].Name; {
		case opt.Spare:
		case name == "" && i >= len(pkg.Tensors.Inputs):
			return nil, target.Errorf(target.User, "%d inputs are given by position; the package has %s", len(opt.Inputs), ioList(pkg.Tensors.Inputs, "input"))
		case name != "" && !known[name]:
			return nil, target.Errorf(target.User, "the package has no input %q; it has %s", name, ioList(pkg.Tensors.Inputs, "input"))
		}
	}
	var random []graph.Tensor
	if opt.HasRand {
		random = randomInputs(pkg, opt)
	}
	var out []NamedTensor
	for i, t := range pkg.Tensors.Inputs {
		d, ok := machineTypes[t.Dtype]
		if !ok {
			return nil, target.NotSupported(t.Dtype, "input %q has element type %s", t.Name, t.Dtype)
		}
		x := NamedTensor{Name: t.Name, Tensor: graph.Tensor{Dtype: d, Dims: t.Shape}}
		given := byName[t.Name]
		if given == nil && i < len(opt.Inputs) && opt.Inputs[i].Name == "" {
			given = &opt.Inputs[i]
		}
		switch {
		case given != nil:
			x.Data = given.Data
		case random != nil:
			x.Data = random[i].Data
		default:
			return nil, target.Errorf(target.User, "input %q (%s) has no data; give --input %s=FILE or --random-inputs SEED", t.Name, shapeOf(t), t.Name)
		}
		switch {
		case int64(len(x.Data)) == t.Size:
		case given != nil:
			return nil, target.Errorf(target.User, "input %q takes %s, %d bytes; what is given is %s%s, %d bytes", t.Name, shapeOf(t), t.Size,
				given.Dtype, dims(given.Dims), len(x.Data))
		default:
			return nil, target.Errorf(target.User, "input %q: the package says %d bytes, and %s has %d", t.Name, t.Size, shapeOf(t), len(x.Data))
		}
		out = append(out, x)
	}
	return out, nil
}

// ioList names the inputs or outputs of a package with their shapes, for messages; a long list is cut.
func ioList(ts []neff.Tensor, what string) string {
	if len(ts) == 0 {
		return "no " + what + "s"
	}
	var b strings.Builder
	for i, t := range ts {
		if i == 8 {
			fmt.Fprintf(&b, " and %d more", len(ts)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", t.Name, shapeOf(t))
	}
	return b.String()
}

// shapeOf is a type as models spell it.
func shapeOf(t neff.Tensor) string {
	if d, ok := machineTypes[t.Dtype]; ok {
		return d.String() + dims(t.Shape)
	}
	return t.Dtype + dims(t.Shape)
}

func dims(d []int64) string {
	return strings.ReplaceAll(fmt.Sprint(d), " ", ",")
}

// randomInputs draws inputs; the model, when there is one, knows which integers are indices.
func randomInputs(pkg *neff.Package, opt *RunOptions) []graph.Tensor {
	if p := opt.model(); p != nil && p.Graph != nil {
		if in := graph.RandomInputs(p.Graph, opt.Random); len(in) == len(pkg.Tensors.Inputs) {
			return in
		}
	}
	var g graph.Graph
	b := graph.Begin(&g, "inputs")
	for _, t := range pkg.Tensors.Inputs {
		b.Param(t.Name, machineTypes[t.Dtype], t.Shape...)
	}
	c, err := b.End(0)
	if err != nil {
		return nil
	}
	g.Entry = c
	return graph.RandomInputs(&g, opt.Random)
}

// model is where large constants come from.
func (o *RunOptions) model() *Program {
	if o.Weights != nil {
		return o.Weights
	}
	return o.Against
}

// constants finds the weights of a package in its model, whose canonical form is made when the first one is asked for.
type constants struct {
	model *Program
	canon *graph.Graph
}

func (c *constants) bytes(w *neff.Weight) (_ []byte, err error) {
	if c.model == nil || c.model.Graph == nil {
		return nil, target.Errorf(target.User, "the package refers to the weight %q of its model; give --weights MODEL or --against MODEL", w.Tensor)
	}
	if c.canon == nil {
		if c.canon, err = graph.Canonical(c.model.Graph); err != nil {
			return nil, err
		}
	}
	return ModelConstant(c.canon, w.Tensor, w.Recipe)
}

// compare holds outputs against what was expected and against the interpreter.
func compare(pkg *neff.Package, inputs []NamedTensor, opt *RunOptions, res *RunResult) error {
	tol := opt.tolerance()
	for i, e := range opt.Expect {
		at := -1
		for k := range res.Outputs {
			if res.Outputs[k].Name == e.Name || e.Name == "" && k == i {
				at = k
			}
		}
		if at < 0 {
			if e.Name == "" {
				return target.Errorf(target.User, "%d outputs are expected by position; the package has %s", len(opt.Expect), ioList(pkg.Tensors.Outputs, "output"))
			}
			return target.Errorf(target.User, "the package has no output %q; it has %s", e.Name, ioList(pkg.Tensors.Outputs, "output"))
		}
		if err := res.hold(at, e.Tensor, tol); err != nil {
			return err
		}
	}
	if opt.Against == nil {
		return nil
	}
	if opt.Against.Graph == nil {
		return target.Errorf(target.User, "--against takes a model (HLO, ONNX or zoo:), not %s", opt.Against.Format)
	}
	in := make([]graph.Tensor, len(inputs))
	for i := range inputs {
		in[i] = inputs[i].Tensor
	}
	var want []graph.Tensor
	err := res.timed(opt, Event{Pass: "reference"}, func() (err error) {
		want, err = graph.Eval(opt.Against.Graph, in)
		return err
	})
	if err != nil {
		return fmt.Errorf("reference interpreter: %w", err)
	}
	if len(want) != len(res.Outputs) {
		return target.Errorf(target.User, "the model has %d outputs, the package %d; is it the model that the package was compiled from?", len(want), len(res.Outputs))
	}
	for i := range want {
		if err := res.hold(i, want[i], tol); err != nil {
			return err
		}
	}
	return nil
}

func (o *RunOptions) tolerance() graph.Tol {
	tol := graph.Tol{RTol: 1e-3, ATol: 1e-5}
	if p := o.model(); p != nil && p.Graph != nil {
		tol = graph.Tolerance(p.Graph)
	}
	if o.Rtol >= 0 {
		tol.RTol = o.Rtol
	}
	if o.Atol >= 0 {
		tol.ATol, tol.ATolRMS = o.Atol, 0
	}
	return tol
}

func (r *RunResult) hold(at int, want graph.Tensor, tol graph.Tol) error {
	got := r.Outputs[at]
	if got.Dtype == graph.U8 && want.Dtype == graph.Bool {
		got.Dtype = graph.Bool // the machine keeps truth values as bytes
	}
	d, err := graph.Compare(got.Tensor, want, tol.RTol, tol.Of(want))
	if err != nil {
		return fmt.Errorf("output %q: %w", got.Name, err)
	}
	r.Comparisons = append(r.Comparisons, Comparison{got.Name, d})
	return nil
}
