package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc/plan"
)

// exactLimit ends a search that nobody gave a limit.
const exactLimit = 10 * time.Second

// listedColumns bounds the unknown columns that are named.
const listedColumns = 20

// planFlags is what the verb plan was asked for.
type planFlags struct {
	mode     string
	capacity int64
	limit    time.Duration
	asJSON   bool
	out, svg string
}

func (a *app) planCmd() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan FILE.csv",
		Short: "Give buffers with known lifetimes offsets in one memory, as low as they go",
		Long: `plan reads MiniMalloc's CSV: a header and a buffer a line. Columns are found by name: id, lower, upper, size; or start or begin for lower, end (the last
moment, inclusive) for upper. It may have alignment, hint (an offset wished for), gaps (a-b, the buffer is absent in [a, b); a-b@lo:hi, it keeps
only bytes lo to hi of its own; several with a space between) and offset (one that must be kept; empty or -1 for none). Other columns are copied.
The first empty line ends the file.

Two buffers may share bytes when their lifetimes [lower, upper) do not meet. The highest byte used is the peak; the bytes of all that are
live at one moment bound it from below. The lowest layout known is always reported and written, also when it is above the capacity,
which is exit code 3; the message says by how much, and whether it is proven that no layout fits. Ctrl-C ends the search the same way, with code 130.

Modes: fast takes a bounded number of tries; improve goes on for a fixed number of steps, some 10 ms for hundreds of buffers; exact searches
until the layout fits the capacity, is proven lowest, or the time is up; where some buffers keep bytes in a gap, or thousands are to be placed, no proof
is in reach unless the peak meets the lower bound, and exact ends when its tries are used up. Without --time-limit the layout of fast and improve depends on the file alone.`,
		Example: `  rosmar plan buffers.csv
  rosmar plan buffers.csv --capacity 1048576 -o placed.csv
  rosmar plan buffers.csv --mode exact --time-limit 5s --json
  cat buffers.csv | rosmar plan - -o - --svg layout.svg`,
		Args: oneArg("a CSV file, or -"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := f.options(cmd)
			if err != nil {
				return err
			}
			return named(args[0], a.plan(cmd.Context(), args[0], &f, opt))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.mode, "mode", "", "how hard to try, `MODE` fast, improve or exact; improve is the default, exact where a capacity is given")
	fs.Int64Var(&f.capacity, "capacity", 0, "`BYTES` that the layout must fit in, in the unit of the sizes; exact stops as soon as it fits")
	fs.DurationVar(&f.limit, "time-limit", 0, "end improve and exact after this `TIME` (10ms, 5s); exact has 10s, 0 lifts it")
	fs.BoolVar(&f.asJSON, "json", false, "one JSON object: peak, lower_bound, ratio, seconds, optimal")
	fs.StringVarP(&f.out, "output", "o", "", "`FILE` for the input with the offsets in a column offset, - for standard output")
	fs.StringVar(&f.svg, "svg", "", "`FILE` for a drawing: time to the right, offsets upwards")
	completeFlag(cmd, "mode", "fast", "improve", "exact")
	return cmd
}

// options checks the flags.
func (f *planFlags) options(cmd *cobra.Command) (plan.Options, error) {
	byDefault := plan.Improve
	if cmd.Flags().Changed("capacity") {
		byDefault = plan.Exact
		if f.capacity < 1 {
			return plan.Options{}, usagef("plan", "--capacity %d: at least 1", f.capacity)
		}
	}
	mode, err := plan.ParseMode(cmp.Or(f.mode, byDefault.String()))
	switch limited := cmd.Flags().Changed("time-limit"); {
	case err != nil:
		return plan.Options{}, usagef("plan", "--%v", err)
	case f.limit < 0:
		return plan.Options{}, usagef("plan", "--time-limit %v: not below 0", f.limit)
	case limited && mode == plan.Fast:
		return plan.Options{}, usagef("plan", "--time-limit: fast looks at no clock; it is for improve and exact")
	case !limited && mode == plan.Exact:
		f.limit = exactLimit
	}
	if f.out == "-" && (f.svg == "-" || f.asJSON) || f.svg == "-" && f.asJSON {
		return plan.Options{}, usagef("plan", "standard output takes one of -o -, --svg - and --json")
	}
	return plan.Options{Mode: mode, Capacity: f.capacity, TimeLimit: f.limit}, nil
}

func (a *app) plan(ctx context.Context, in string, f *planFlags, opt plan.Options) error {
	data, err := codegen.ReadInput(in)
	if err != nil {
		return err
	}
	if data, _, err = codegen.Unpack(data); err != nil {
		return err
	}
	p, err := plan.ReadCSV(data)
	if err != nil {
		return err
	}
	if others := p.Unknown(); len(others) > 0 && !a.quiet {
		more := ""
		if n := len(others) - listedColumns; n > 0 {
			others, more = others[:listedColumns], fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(a.talk(), "%s: columns that say nothing to plan: %.400q%s\n", in, strings.Join(others, ","), more)
	}
	if at := p.Unread(); at > 0 && !a.quiet {
		fmt.Fprintf(a.talk(), "%s: line %d is empty and ends the buffers; what follows is not read\n", in, at)
	}
	// What cannot be written is found out before the search.
	layout, err := a.createText(f.out)
	if err != nil {
		return err
	}
	defer layout.discard()
	drawing, err := a.createText(f.svg)
	if err != nil {
		return err
	}
	defer drawing.discard()

	tell := a.progress.begin(0, in)
	opt.Stop = ctx.Done()
	opt.Progress = func(peak, bound int64) {
		tell(codegen.Event{Pass: fmt.Sprintf("%v, peak %d of at least %d", opt.Mode, peak, bound)})
	}
	var pl plan.Planner
	r, misfit := pl.Plan(p, opt)
	a.progress.end(0)
	if misfit != nil && target.ClassOf(misfit) != target.Limit {
		return misfit
	}
	err = errors.Join(
		layout.finish(func(w io.Writer) error { return plan.WriteOffsets(w, data, r.Offsets) }),
		drawing.finish(func(w io.Writer) error { return plan.WriteSVG(w, p, r) }))
	if err != nil {
		return err
	}
	switch {
	case f.asJSON:
		err = plan.WriteJSON(a.out, r)
	case f.out != "-" && f.svg != "-":
		err = plan.WriteText(a.out, p, r, opt.Capacity)
	case !a.quiet:
		err = plan.WriteText(a.talk(), p, r, opt.Capacity)
	}
	if err == nil && ctx.Err() != nil {
		a.report(misfit)
		fmt.Fprintf(a.talk(), "rosmar: interrupted; this is the lowest layout found by then\n")
		return told{exitInterrupted}
	}
	return errors.Join(err, misfit)
}

// text is a product that may also stand on a terminal; one without a name is none.
type text struct{ *output }

func (a *app) createText(name string) (text, error) {
	switch name {
	case "":
		return text{}, nil
	case "-":
		o := &output{to: a.out}
		o.WriteSeeker = &o.buf
		return text{o}, nil
	}
	o, err := a.create(name)
	return text{o}, err
}

func (t text) discard() {
	if t.output != nil {
		t.output.discard()
	}
}

func (t text) finish(emit func(io.Writer) error) error {
	if t.output == nil {
		return nil
	}
	if err := emit(t.output); err != nil {
		return err
	}
	return t.output.commit()
}
