package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
)

func (a *app) testCmd() *cobra.Command {
	opt := codegen.NewOptions()
	ropt := codegen.RunOptions{}
	var (
		jobs int
		prof profiles
	)
	cmd := &cobra.Command{
		Use:   "test DIR…",
		Short: "Compile, run and compare folders of models with published outputs",
		Long: `test takes each folder with model.onnx, network.onnx or a single .onnx file, and input_*.pb with output_*.pb beside it or in
test_data_set_*; or inputs.npz with outputs.npz; or NAME_output_N.pb beside NAME.onnx, with the input x[i] = i/N. A folder
without a model is searched. Each case is compiled, its package run, and the outputs compared.

One line a case, and at the end "N passed, M failed, K skipped". A case whose operator or type rosmar does not take is skipped.`,
		Example: `  rosmar test onnx/node/test_relu
  rosmar test onnx/ -j 4 --target trn1
  rosmar test onnx/light --interleavings 3 -v`,
		Args: inputsArg(1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(usage("test", opt.Check()), checkJobs("test", jobs)); err != nil {
				return err
			}
			a.sayIdle(&opt)
			return prof.during(func() error { return a.testAll(cmd.Context(), args, &opt, &ropt, jobs) })
		},
	}
	fs := cmd.Flags()
	compileFlags(cmd, &opt)
	fs.Float64Var(&ropt.Rtol, "rtol", 1e-3, "relative `TOLERANCE`")
	fs.Float64Var(&ropt.Atol, "atol", 1e-5, "absolute `TOLERANCE`")
	fs.Uint64Var(&ropt.Seed, "seed", 0, "`SEED` of the first interleaving")
	fs.IntVar(&ropt.Seeds, "interleavings", 1, "run `N` interleavings; all must give the same bits")
	fs.BoolVar(&ropt.NoRace, "no-race-check", false, "leave the race check out")
	fs.IntVarP(&jobs, "jobs", "j", runtime.GOMAXPROCS(0), "`N` cases that run at the same time")
	prof.flags(fs)
	return cmd
}

func (a *app) testAll(ctx context.Context, dirs []string, opt *codegen.Options, ropt *codegen.RunOptions, jobs int) error {
	var cases []codegen.Case
	for _, d := range dirs {
		found, err := codegen.FindCases(d)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s: no case: no .onnx file with published outputs beside it or below", d)
		}
		cases = append(cases, found...)
	}
	results := make([]codegen.CaseResult, len(cases))
	var passed, failed, skipped int
	a.progress.expect(len(cases))
	work := func(w *codegen.Worker, i int) error {
		w.Talk, w.Progress, w.Log = a.talk(), a.progress.begin(i, cases[i].Name), a.log(cases[i].Name)
		defer a.progress.end(i)
		results[i] = w.RunCase(ctx, &cases[i], opt, ropt)
		return results[i].Err
	}
	emit := func(i int, err error) {
		if ctx.Err() != nil {
			return
		}
		switch name := cases[i].Name; {
		case results[i].Verdict == codegen.Passed:
			passed++
			fmt.Fprintf(a.out, "PASS %s\n", name)
		case results[i].Verdict == codegen.Unsupported:
			skipped++
			fmt.Fprintf(a.out, "UNSUPPORTED %s: %s\n", name, oneLine(results[i].Detail))
			if a.verbose {
				fmt.Fprintf(a.talk(), "%s: %v\n", name, err)
			}
		default: // also a panic, which leaves no verdict
			failed++
			fmt.Fprintf(a.out, "FAIL %s: %s\n", name, oneLine(err.Error()))
			if a.verbose {
				fmt.Fprintf(a.talk(), "%s: %v\n", name, err)
			}
		}
	}
	if err := codegen.InOrder(ctx, len(cases), jobs, work, emit); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return told{exitUser}
	}
	return nil
}

// oneLine keeps a line a line; a stack trace follows only with -v.
func oneLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		line += " …"
	}
	return line
}
