// Command rosmar compiles models for Trainium-class accelerators and runs what it compiled. This package is flags and
// printing; the work is in package codegen.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
)

func main() { os.Exit(run(os.Args[1:])) }

// grace is how long an interrupted command may take to stop on its own: a pass or an operator of the interpreter is not
// cut short, and nobody who pressed ctrl-C wants to wait for it.
const grace = time.Second

// run is the command: it returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := newApp(os.Stdout, os.Stderr)
	done := make(chan error, 1)
	go func() { done <- codegen.Guard(func() error { return a.execute(ctx, args) }) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		stop() // a second ctrl-C ends the process at once
		select {
		case err = <-done:
		case <-time.After(grace):
			err = context.Canceled
			cutShort()
		}
	}
	a.progress.close()
	removeTemps()
	return a.report(err)
}

// app is what the verbs share: where they write, and how much.
type app struct {
	out      *product
	progress *progress // everything else: it owns standard error
	verbose  bool
	quiet    bool
	started  bool // a verb began: what fails before is a usage error
}

func newApp(out io.Writer, errOut *os.File) *app {
	p := newProgress(errOut)
	return &app{out: &product{out, p}, progress: p}
}

// product is standard output; the progress line, which may be on the same terminal, makes way.
type product struct {
	io.Writer
	progress *progress
}

func (p *product) Write(b []byte) (int, error) {
	p.progress.mu.Lock()
	defer p.progress.mu.Unlock()
	p.progress.clear()
	return p.Writer.Write(b)
}

// talk is standard error, with the progress line out of the way.
func (a *app) talk() io.Writer { return a.progress }

// log is for what passes say of their work: warnings unless -q, everything with -v.
func (a *app) log(input string) *slog.Logger {
	if a.quiet {
		return nil
	}
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	h := slog.NewTextHandler(a.talk(), &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, at slog.Attr) slog.Attr {
		if at.Key == slog.TimeKey && len(groups) == 0 {
			return slog.Attr{}
		}
		return at
	}})
	return slog.New(h).With("input", input)
}

func (a *app) execute(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		return usageError{err, cmd.CommandPath()}
	}
	return err
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rosmar",
		Short: "A compiler back end for Trainium-class accelerators, and a simulator that proves its numbers",
		Long: `rosmar reads a model (XLA HLO text, ONNX) or tiles (BIR JSON, .rir), places and schedules them on one NeuronCore and
writes a package. Its simulator decodes the package from its bytes and computes the model's numbers.

An input is a file, told apart by its content; - for standard input; or a generated model, zoo:NAME?key=value&key=value.
Standard output carries the product only; everything else goes to standard error.

Exit codes: 0 fine; 1 wrong or unsupported input, or numbers that differ; 2 usage, or the allocator took too long;
3 does not fit or a limit was hit; 4 a bug in rosmar; 130 interrupted.`,
		Example: `  rosmar run zoo:mlp --random-inputs 1 --against zoo:mlp --timing
  rosmar compile model.onnx -o model.neff --target trn1
  rosmar run model.neff --random-inputs 1 --against model.onnx --interleavings 20`,
		Version:       codegen.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
			a.progress.enable(!a.quiet)
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.out)
	root.SetErr(a.talk())
	pf := root.PersistentFlags()
	pf.BoolVarP(&a.verbose, "verbose", "v", false, "say what is written, how long it took and what the allocators tried; errors in full")
	pf.BoolVarP(&a.quiet, "quiet", "q", false, "no progress line, no summary")
	root.AddCommand(a.compileCmd(), a.runCmd(), a.testCmd(), a.inspectCmd(), a.disasmCmd(), a.planCmd(), a.genCmd(), a.operatorsCmd())
	completionUsage(root)
	return root
}

// completionUsage makes the library's completion command refuse a missing or unknown shell like every other usage error.
func completionUsage(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no shell: give bash, zsh, fish or powershell")
			}
			return fmt.Errorf("unknown shell %q: there are bash, zsh, fish and powershell", args[0])
		}
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		c.Example = "  rosmar completion bash > ~/.local/share/bash-completion/completions/rosmar"
	}
}

// unknownVerb refuses arguments of the root, with a guess at what was meant.
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown verb %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown verb %q", args[0])
}

// inputsArg wants at least n inputs.
func inputsArg(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("no input: give %s", what)
		}
		return nil
	}
}

// oneArg wants exactly one input.
func oneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%d inputs: give one, %s", len(args), what)
		}
		return nil
	}
}
