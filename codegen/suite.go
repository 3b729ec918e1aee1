package codegen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Verdict is the end of one test case.
type Verdict uint8

const (
	Passed Verdict = iota + 1
	Fail
	Unsupported
)

// Case is one model with inputs and published outputs.
type Case struct {
	Name    string
	Model   string // file
	Inputs  []string
	Outputs []string
	// Ramp says that the input is x[i] = i/N, as for networks that come with outputs only.
	Ramp bool
}

// CaseResult is what a case gave.
type CaseResult struct {
	Verdict Verdict
	Detail  string // the operator or type of an unsupported case, the difference of a failed one
	Err     error
	Run     *RunResult // what the package gave, nil when it did not run
}

// FindCases looks for cases in a folder: model.onnx, network.onnx or the only .onnx file, with input_*.pb and output_*.pb
// beside it or in test_data_set_*, or inputs.npz and outputs.npz, or NAME_output_N.pb beside NAME.onnx. A folder without a
// model is searched, in name order, one level at a time.
func FindCases(dir string) ([]Case, error) {
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, target.Errorf(target.User, "%s is a file; give the folder that holds the model and its published tensors", dir)
	}
	var out []Case
	todo := []string{dir}
	for len(todo) > 0 {
		d := todo[0]
		todo = todo[1:]
		entries, err := os.ReadDir(d)
		if err != nil {
			return nil, target.Errorf(target.User, "%v", err)
		}
		var models, subs []string
		for _, e := range entries {
			switch {
			case e.IsDir():
				subs = append(subs, filepath.Join(d, e.Name()))
			case strings.HasSuffix(e.Name(), ".onnx"):
				models = append(models, filepath.Join(d, e.Name()))
			}
		}
		found := casesOf(d, models, subs)
		if len(found) == 0 && len(models) == 0 {
			todo = append(todo, subs...)
			continue
		}
		out = append(out, found...)
	}
	return out, nil
}

func casesOf(dir string, models, subs []string) []Case {
	var out []Case
	pick := models
	if len(models) > 1 {
		for _, m := range models {
			if b := filepath.Base(m); b == "model.onnx" || b == "network.onnx" {
				pick = []string{m}
			}
		}
	}
	for _, m := range pick {
		stem := strings.TrimSuffix(m, ".onnx")
		if outs := sorted(stem + "_output_*.pb"); len(outs) > 0 {
			out = append(out, Case{Name: filepath.Base(stem), Model: m, Outputs: outs, Ramp: true})
			continue
		}
		if len(pick) > 1 {
			continue
		}
		places := []string{dir}
		for _, s := range subs {
			if strings.HasPrefix(filepath.Base(s), "test_data_set_") {
				places = append(places, s)
			}
		}
		for _, p := range places {
			name := filepath.Base(dir)
			if p != dir && len(places) > 2 {
				name += "/" + filepath.Base(p)
			}
			c := Case{Name: name, Model: m, Inputs: sorted(filepath.Join(p, "input_*.pb")), Outputs: sorted(filepath.Join(p, "output_*.pb"))}
			if npz := filepath.Join(p, "outputs.npz"); len(c.Outputs) == 0 && exists(npz) {
				c.Inputs, c.Outputs = []string{filepath.Join(p, "inputs.npz")}, []string{npz}
			}
			if len(c.Outputs) > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

func exists(p string) bool { _, err := os.Stat(p); return err == nil }

// sorted are the files of a pattern by the number in their name, then by name.
func sorted(pattern string) []string {
	files, _ := filepath.Glob(pattern)
	slices.SortFunc(files, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return files
}

// RunCase compiles a case, runs the package and compares with the published outputs. Inputs that shapes depend on are fixed
// at compile time.
func (w *Worker) RunCase(ctx context.Context, c *Case, opt *Options, ropt *RunOptions) CaseResult {
	run, err := w.runCase(ctx, c, opt, ropt)
	if err == nil {
		return CaseResult{Verdict: Passed, Run: run}
	}
	var e *target.Error
	if errors.As(err, &e) && e.Class == target.Unsupported {
		subject := e.Subject
		if subject == "" {
			subject = err.Error()
		}
		return CaseResult{Verdict: Unsupported, Detail: subject, Err: err}
	}
	return CaseResult{Verdict: Fail, Detail: err.Error(), Err: err, Run: run}
}

func (w *Worker) runCase(ctx context.Context, c *Case, opt *Options, ropt *RunOptions) (*RunResult, error) {
	data, err := ReadInput(c.Model)
	if err != nil {
		return nil, err
	}
	names, err := onnx.Inputs(data)
	if err != nil {
		return nil, err
	}
	// The inputs are read when a shape asks for one, or after the model: an operator that is not supported comes before data
	// that is not.
	var inputs []NamedTensor
	var inputErr error
	readInputs := sync.OnceFunc(func() {
		inputs, inputErr = readTensors(c.Inputs)
		for i := range inputs {
			if i < len(names) && !slices.Contains(names, inputs[i].Name) {
				inputs[i].Name = names[i]
			}
		}
	})
	given := func(name string) (onnx.Tensor, bool) {
		readInputs()
		for _, t := range inputs {
			if t.Name == name {
				return onnx.Tensor{Name: name, Dtype: t.Dtype, Dims: t.Dims, Data: t.Data}, true
			}
		}
		return onnx.Tensor{}, false
	}
	p := &Program{Name: c.Name, Format: FormatONNX, Graph: &graph.Graph{}}
	if _, err := onnx.ReadSpecialised(data, onnx.Options{Dir: filepath.Dir(c.Model)}, given, p.Graph); err != nil {
		return nil, err
	}
	if readInputs(); inputErr != nil {
		return nil, inputErr
	}
	var buf neff.Buffer
	if _, err := w.Compile(ctx, p, opt, &buf); err != nil {
		return nil, err
	}
	r := *ropt
	r.Weights, r.Progress = p, w.Progress
	r.Inputs, r.Spare = inputs, true // a shape that was fixed when the model was read is no input any more
	if c.Ramp {
		r.Inputs = rampInputs(p.Graph)
	}
	if r.Expect, err = readTensors(c.Outputs); err != nil {
		return nil, err
	}
	for i := range r.Expect {
		r.Expect[i].Name = ""
	}
	res, err := w.runner.Execute(ctx, buf.Bytes(), &r)
	if err != nil {
		return nil, err
	}
	if f := res.Failed(); f != nil {
		return res, fmt.Errorf("output %q: %s", f.Name, f.Diff)
	}
	return res, nil
}

// rampInputs are the inputs x[i] = i/N.
func rampInputs(g *graph.Graph) []NamedTensor {
	var out []NamedTensor
	for _, n := range g.Params(g.Entry) {
		k := g.Elements(g.Nodes.At(n).Type)
		vals := make([]float64, k)
		for i := range vals {
			vals[i] = float64(float32(i) / float32(k))
		}
		out = append(out, NamedTensor{g.NodeName(n), graph.TensorOf(g.Dtype(n), g.Dims(n), vals...)})
	}
	return out
}
