package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

// runFlags are the flags of run that are no options of a compile.
type runFlags struct {
	inputs, expect   []string
	against, weights string
	random, seed     uint64
	seeds            int
	seedWeights      uint64
	rtol, atol       float64
	noRace           bool
	save, timing     string
}

func (a *app) runCmd() *cobra.Command {
	opt := codegen.NewOptions()
	var (
		f    runFlags
		prof profiles
	)
	cmd := &cobra.Command{
		Use: "run PACKAGE|MODEL|TILES",

		ValidArgsFunction: completeModels,
		Short:             "Run a package on the machine simulator and compare its numbers",
		Long: `run decodes a package and executes it: five engines and their transfers advance in an order drawn from --seed and meet only
at semaphores. A race check runs once a package. A model or tiles are compiled in memory first, with the options of compile.

Inputs come from files (.npy, .npz, ONNX TensorProto .pb) or from a seed. Outputs are held against files, or against the
reference interpreter on the same inputs (--against). The default tolerance is that of the model's narrowest float type.
A package that leaves its large weights in the model takes them from --weights, else from --against.`,
		Example: `  rosmar run zoo:mlp --random-inputs 1 --against zoo:mlp --timing
  rosmar run model.neff --random-inputs 1 --against model.onnx --interleavings 20
  rosmar run model.neff --input x=x.npy --expect y=y.npy --rtol 1e-3
  rosmar run model.neff --input x.pb --save out/ --weights model.onnx`,
		Args: oneArg("a package or a model"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ownTarget(cmd, &opt.Target)
			return prof.during(func() error {
				return named(args[0], a.runOne(cmd.Context(), args[0], &opt, &f, cmd.Flags().Changed("random-inputs")))
			})
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&f.inputs, "input", nil, "`NAME=FILE` of an input, or FILE alone by position; may be repeated")
	fs.Uint64Var(&f.random, "random-inputs", 0, "draw the inputs that are not given from this `SEED`")
	fs.StringArrayVar(&f.expect, "expect", nil, "`NAME=FILE` that an output must equal, or FILE alone by position; may be repeated")
	fs.StringVar(&f.against, "against", "", "`MODEL` whose reference interpretation the outputs must equal")
	fs.StringVar(&f.weights, "weights", "", "`MODEL` that weights come from which the package does not carry")
	seedFlag(fs, &f.seedWeights)
	fs.Float64Var(&f.rtol, "rtol", -1, "relative `TOLERANCE`; negative is the model's default")
	fs.Float64Var(&f.atol, "atol", -1, "absolute `TOLERANCE`; negative is the model's default")
	fs.Uint64Var(&f.seed, "seed", 0, "`SEED` of the first interleaving")
	fs.IntVar(&f.seeds, "interleavings", 1, "run `N` interleavings; all must give the same bits")
	fs.BoolVar(&f.noRace, "no-race-check", false, "leave the race check out")
	fs.StringVar(&f.save, "save", "", "write every output as .npy into this `FOLDER`")
	compileFlags(cmd, &opt)
	fs.BoolVarP(&opt.Debug, "debug", "g", false, "compile with names in the package")
	timingFlag(cmd, &f.timing)
	prof.flags(fs)
	return cmd
}

// models loads each model once, so that the model that is compiled and the one that is interpreted are the same.
type models struct {
	loaded map[string]*codegen.Program
	seed   uint64
}

func (m *models) load(name string) (*codegen.Program, error) {
	if p, ok := m.loaded[name]; ok {
		return p, nil
	}
	p, err := codegen.Load(name)
	if err != nil {
		return nil, err
	}
	return m.keep(name, p), nil
}

func (m *models) keep(name string, p *codegen.Program) *codegen.Program {
	p.Seed(m.seed)
	m.loaded[name] = p
	return p
}

func (a *app) runOne(ctx context.Context, name string, opt *codegen.Options, f *runFlags, random bool) error {
	want := opt.Target // "" takes a package for any target
	if err := errors.Join(usage("run", opt.Check()), checkTiming("run", f.timing)); err != nil {
		return err
	}
	a.sayIdle(opt)
	if f.seeds < 1 {
		return usagef("run", "--interleavings %d: at least one", f.seeds)
	}
	a.progress.expect(1)
	hear := a.progress.begin(0, name)
	defer a.progress.end(0)

	known := models{loaded: map[string]*codegen.Program{}, seed: f.seedWeights}
	worker := &codegen.Worker{Talk: a.talk(), Progress: hear, Log: a.log(name)}
	pkg, p, res, err := a.packageOf(ctx, worker, name, opt, &known)
	if err != nil {
		return err
	}
	ropt := codegen.RunOptions{
		Random: f.random, HasRand: random, Seed: f.seed, Seeds: f.seeds, NoRace: f.noRace, Rtol: f.rtol, Atol: f.atol, Target: want,
		Weights: p, Progress: hear,
	}
	if f.weights != "" {
		if ropt.Weights, err = known.load(f.weights); err != nil {
			return err
		}
	}
	if f.against != "" {
		if ropt.Against, err = known.load(f.against); err != nil {
			return err
		}
	}
	if ropt.Inputs, err = tensorArgs(f.inputs); err != nil {
		return err
	}
	if ropt.Expect, err = tensorArgs(f.expect); err != nil {
		return err
	}
	got, err := codegen.Execute(ctx, pkg, &ropt)
	if err != nil {
		return err
	}
	if f.save != "" {
		if err := a.save(f.save, got.Outputs); err != nil {
			return err
		}
	}
	if err := a.printRun(got, f); err != nil {
		return err
	}
	if f.timing != "" {
		if res == nil {
			res = &codegen.Result{Name: got.Name, Target: got.Target, Bytes: int64(len(pkg))}
		}
		prof := worker.Profile(res)
		prof.Run = got.Timing
		a.printTiming(f.timing, prof)
	}
	if got.Failed() != nil {
		return told{exitUser}
	}
	return nil
}

// packageOf is the package's bytes: the input itself, or what it compiles to; then its program and the compile's result come
// too.
func (a *app) packageOf(ctx context.Context, w *codegen.Worker, name string, opt *codegen.Options, known *models) ([]byte, *codegen.Program, *codegen.Result, error) {
	var p *codegen.Program
	var err error
	if zoo.Is(name) {
		p, err = known.load(name)
	} else {
		var data []byte
		if data, err = codegen.ReadInput(name); err != nil {
			return nil, nil, nil, err
		}
		if codegen.IsPackage(data) || strings.HasSuffix(name, ".neff") {
			return data, nil, nil, nil
		}
		if p, err = codegen.Parse(data, name, folderOf(name)); err == nil {
			known.keep(name, p)
		}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var buf neff.Buffer
	res, err := w.Compile(ctx, p, opt, &buf)
	if err == nil && res.Bytes == 0 {
		err = usagef("run", "the selected passes end before codegen: there is no package to run")
	}
	return buf.Bytes(), p, res, err
}

func folderOf(name string) string {
	if name == "-" {
		return ""
	}
	return filepath.Dir(name)
}

// tensorArgs reads NAME=FILE and FILE arguments. A file whose name has a = in it wins over the split.
func tensorArgs(args []string) ([]codegen.NamedTensor, error) {
	var out []codegen.NamedTensor
	for _, arg := range args {
		name, file, ok := strings.Cut(arg, "=")
		if _, err := os.Stat(arg); !ok || err == nil {
			name, file = "", arg
		}
		ts, err := codegen.ReadTensors(file)
		if err != nil {
			return nil, err
		}
		if ok && len(ts) > 1 {
			return nil, usagef("run", "%s holds %d tensors; give the file alone, they have names of their own", file, len(ts))
		}
		for _, t := range ts {
			if !strings.HasSuffix(file, ".npz") {
				t.Name = name
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// printRun prints one line a comparison and a summary.
func (a *app) printRun(r *codegen.RunResult, f *runFlags) error {
	var b bytes.Buffer
	width := 0
	for i := range r.Outputs {
		width = max(width, len(r.Outputs[i].Name))
	}
	bad := 0
	for _, c := range r.Comparisons {
		fmt.Fprintf(&b, "%-*s  %s\n", width, c.Name, c.Diff)
		if !c.Diff.OK() {
			bad++
		}
	}
	if len(r.Comparisons) == 0 {
		for _, t := range r.Outputs {
			fmt.Fprintf(&b, "%-*s  %s%s, not compared\n", width, t.Name, t.Dtype, strings.ReplaceAll(fmt.Sprint(t.Dims), " ", ","))
		}
	}
	if !a.quiet {
		var bundles int64
		for _, n := range r.Stats.Bundles {
			bundles += n
		}
		race := "no race"
		if f.noRace {
			race = "races not checked"
		}
		fmt.Fprintf(&b, "%s on %s: %d bundles, %d transfers of %d bytes, %d multiply-adds; %s, %s\n", r.Name, r.Target,
			bundles, r.Stats.Transfers, r.Stats.DMABytes, r.Stats.MACs, plural(f.seeds, "interleaving"), race)
		switch n := len(r.Comparisons); {
		case n == 0:
			fmt.Fprintf(&b, "nothing to compare with: give --expect FILE or --against MODEL\n")
		case bad > 0:
			fmt.Fprintf(&b, "%d of %s out of tolerance\n", bad, plural(n, "comparison"))
		default:
			fmt.Fprintf(&b, "%s within tolerance\n", plural(n, "comparison"))
		}
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// save writes outputs as NAME.npy.
func (a *app) save(dir string, ts []codegen.NamedTensor) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range ts {
		file := filepath.Join(dir, strings.NewReplacer("/", "_", "\\", "_", ":", "_").Replace(t.Name)+".npy")
		if err := a.write(file, func(w io.Writer) error { return codegen.WriteTensor(w, t.Tensor) }); err != nil {
			return err
		}
		if a.verbose {
			fmt.Fprintln(a.talk(), file)
		}
	}
	return nil
}
