package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

func (a *app) compileCmd() *cobra.Command {
	opt := codegen.NewOptions()
	var (
		output, timing string
		list, dry      bool
		jobs           int
		prof           profiles
	)
	cmd := &cobra.Command{
		Use: "compile IN… [-o OUT]",

		ValidArgsFunction: completeModels,
		Short:             "Compile models or tiles into packages",
		Long: `compile reads each input and writes its package: to the file or folder that -o names; without -o beside the input as IN.neff,
for a generated model in the working folder, for - to standard output. Several inputs are compiled in parallel; the bytes of a
package do not depend on -j. A compile that fails leaves no file. Nothing is printed when all is well; -v says what was written.

Options select passes as a list: the level's, or exactly that of --pass; then --skip-pass and --start-pass take some away. A list
without codegen writes no package; it is for looking, with --print-after, --memory-analysis-after or --timing.`,
		Example: `  rosmar compile model.onnx -o model.neff
  rosmar compile model.hlo.txt --target trn1 --timing
  rosmar compile a.onnx b.hlo c.json -o out/ -j 4
  rosmar gen zoo:mlp -o - --format hlo | rosmar compile - -o - | rosmar inspect -
  rosmar compile zoo:mlp -o /dev/null --print-after coloring_allocator_sb
  rosmar compile zoo:mlp --pass coloring_allocator_with_loop --timing
  rosmar compile --list-passes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listPasses()
			}
			ownTarget(cmd, &opt.Target)
			if err := errors.Join(usage("compile", opt.Check()), checkTiming("compile", timing), checkJobs("compile", jobs)); err != nil {
				return err
			}
			a.sayIdle(&opt)
			if dry {
				names, err := opt.Passes()
				if err == nil {
					_, err = fmt.Fprintln(a.out, strings.Join(names, "\n"))
				}
				return err
			}
			outs, err := outputs(args, output)
			if err != nil {
				return err
			}
			return prof.during(func() error {
				return a.compileAll(cmd.Context(), args, outs, &opt, jobs, timing)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&output, "output", "o", "", "`FILE` of the package, - for standard output; a folder (a name that ends in /) for several")
	compileFlags(cmd, &opt)
	seedFlag(fs, &opt.SeedWeight)
	fs.BoolVarP(&opt.Debug, "debug", "g", false, "put names of instructions and tensors into the package")
	fs.BoolVar(&list, "list-passes", false, "print the registered passes and stop")
	fs.BoolVar(&dry, "dry-run", false, "print the selected passes in order and stop")
	fs.IntVarP(&jobs, "jobs", "j", runtime.GOMAXPROCS(0), "`N` inputs that are compiled at the same time; each takes memory of its own")
	timingFlag(cmd, &timing)
	prof.flags(fs)
	return cmd
}

// sayIdle says what of the options has no effect.
func (a *app) sayIdle(opt *codegen.Options) {
	for _, s := range opt.Idle() {
		if !a.quiet {
			fmt.Fprintln(a.talk(), s)
		}
	}
}

func (a *app) listPasses() error {
	width := 0
	for _, p := range codegen.Registry() {
		width = max(width, len(p.Name))
	}
	for _, p := range codegen.Registry() {
		if _, err := fmt.Fprintf(a.out, "%-*s  %s\n", width, p.Name, p.Doc); err != nil {
			return err
		}
	}
	return nil
}

// outputs names the package of each input.
func outputs(ins []string, o string) ([]string, error) {
	if len(ins) == 0 {
		return nil, usagef("compile", "no input: give a model, tiles, zoo:NAME or -")
	}
	folder := strings.HasSuffix(o, "/")
	if st, err := os.Stat(o); err == nil && st.IsDir() {
		folder = true
	}
	if folder {
		if err := os.MkdirAll(o, 0o755); err != nil {
			return nil, err
		}
	} else if o != "" && len(ins) > 1 {
		return nil, usagef("compile", "-o %s is one file for %d inputs; give a folder, with a / at its end", o, len(ins))
	}
	outs := make([]string, len(ins))
	from := map[string]string{}
	for i, in := range ins {
		switch name := codegen.ModelName(in) + ".neff"; {
		case folder:
			outs[i] = filepath.Join(o, name)
		case o != "":
			outs[i] = o
		case in == "-":
			outs[i] = "-"
		case zoo.Is(in):
			outs[i] = name
		default:
			outs[i] = filepath.Join(filepath.Dir(in), name)
		}
		if twin, ok := from[outs[i]]; ok {
			return nil, usagef("compile", "%s and %s would both be written to %s", twin, in, outs[i])
		}
		from[outs[i]] = in
	}
	return outs, nil
}

func (a *app) compileAll(ctx context.Context, ins, outs []string, opt *codegen.Options, jobs int, timing string) error {
	results := make([]*codegen.Result, len(ins))
	profiles := make([]*codegen.Profile, len(ins))
	a.progress.expect(len(ins))
	worst := exitFine
	start := time.Now()
	work := func(w *codegen.Worker, i int) (err error) {
		w.Talk, w.Progress, w.Log = a.talk(), a.progress.begin(i, ins[i]), a.log(ins[i])
		defer a.progress.end(i)
		results[i], err = a.compileOne(ctx, w, ins[i], outs[i], opt)
		if timing != "" && results[i] != nil {
			profiles[i] = w.Profile(results[i])
		}
		return err
	}
	emit := func(i int, err error) {
		if ctx.Err() != nil {
			return // said once, at the end
		}
		if err != nil {
			worst = max(worst, a.report(named(ins[i], err)))
		} else if results[i].Bytes == 0 && !a.quiet {
			fmt.Fprintf(a.talk(), "%s: no package: codegen is not among the selected passes\n", ins[i])
		} else if a.verbose {
			fmt.Fprintf(a.talk(), "%s: %d bytes, %d instructions, %v\n", outs[i], results[i].Bytes, results[i].Insts, results[i].Elapsed.Round(time.Microsecond))
		}
		if profiles[i] != nil {
			a.printTiming(timing, profiles[i])
		}
	}
	err := codegen.InOrder(ctx, len(ins), jobs, work, emit)
	if a.verbose && len(ins) > 1 {
		fmt.Fprintf(a.talk(), "%d inputs in %v\n", len(ins), time.Since(start).Round(time.Millisecond))
	}
	if err == nil && worst != exitFine {
		return told{worst}
	}
	return err
}

// compileOne compiles one input into its file.
func (a *app) compileOne(ctx context.Context, w *codegen.Worker, in, out string, opt *codegen.Options) (*codegen.Result, error) {
	p, err := codegen.Load(in)
	if err != nil {
		return nil, err
	}
	o, err := a.create(out)
	if err != nil {
		return nil, err
	}
	defer o.discard()
	res, err := w.Compile(ctx, p, opt, o)
	if err != nil || res.Bytes == 0 { // no bytes: the selected passes end before the package
		return res, err
	}
	return res, o.commit()
}
