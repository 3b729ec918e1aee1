package codegen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// checkAfter runs the checkers that the options ask for behind a pass that may have changed the module.
func (w *Worker) checkAfter(p *Pass) error {
	if !p.Real {
		return nil
	}
	if w.opt.Verify {
		if err := w.verifyNow(); err != nil {
			return fmt.Errorf("after %s: %w", p.Name, err)
		}
	}
	if w.opt.Simulate {
		if err := w.simulateNow(); err != nil {
			return fmt.Errorf("after %s: %w", p.Name, err)
		}
	}
	return nil
}

// verifyNow runs legality and every checker whose subject exists by now.
func (w *Worker) verifyNow() error {
	if err := verify.Module(w.m, target.Bug); err != nil {
		return err
	}
	if err := w.fixed.Check(w.m); err != nil {
		return err
	}
	return w.eachFunc(func(f ir.Func) error {
		flags := w.m.Funcs.At(f).Flags
		var spaces []target.Space
		for _, s := range [...]struct {
			flag  ir.FuncFlag
			space target.Space
		}{{ir.FuncPsumPlaced, target.SpacePSUM}, {ir.FuncSBPlaced, target.SpaceSB}, {ir.FuncDRAMPlaced, target.SpaceDRAM}} {
			if flags&s.flag != 0 {
				spaces = append(spaces, s.space)
			}
		}
		if flags&ir.FuncScheduled == 0 {
			if err := verify.Placement(w.m, f, spaces...); err != nil {
				return err
			}
		} else {
			// The order is no longer the one in which locations were placed: bytes decide, not lifetimes.
			if err := verify.Bounds(w.m, f, spaces...); err != nil {
				return err
			}
			if err := verify.Reads(w.m, f); err != nil {
				return err
			}
		}
		if flags&ir.FuncGroupsLegal != 0 {
			if err := verify.Groups(w.m, f); err != nil {
				return err
			}
		}
		if flags&ir.FuncSynced != 0 {
			return verify.Sync(w.m, f)
		}
		return nil
	})
}

// simulateNow runs the module and compares its outputs, bit by bit, with those of the first run.
func (w *Worker) simulateNow() error {
	if err := w.sim.Run(w.m, w.simEnv()); err != nil {
		return err
	}
	k := 0
	for s, r := range w.m.Sets.All() {
		if !r.Kind.IsOutput() || r.Count == 0 {
			continue
		}
		got := w.sim.Bytes(w.m, r.First)
		if k == len(w.want) {
			w.want = append(w.want, bytes.Clone(got))
		} else if !bytes.Equal(got, w.want[k]) {
			at := 0
			for at < len(got) && got[at] == w.want[k][at] {
				at++
			}
			return target.Errorf(target.Bug, "output %q (%s) differs from byte %d on", w.m.Names.String(r.Name), s, at)
		}
		k++
	}
	return nil
}

// simEnv feeds the simulator the same random inputs each time, and the model's constants.
func (w *Worker) simEnv() sim.Env {
	top := w.simTop()
	return sim.Env{
		Input: func(name string, size int64) ([]byte, error) { return simInput(w.m, name, size, top(name)) },
		Const: func(c ir.Const, name string, _ int64) ([]byte, error) {
			if w.model == nil {
				return nil, target.Errorf(target.User, "constant %q: its data is in a model that was not given", name)
			}
			r := w.m.Consts.At(c)
			steps, err := lower.ParseRecipe(w.m.Names.String(r.Recipe))
			if err != nil {
				return nil, err
			}
			return ModelConstant(w.model, w.m.Names.String(r.Tensor), steps)
		},
	}
}

// dump writes the module before or after a pass when the options name it.
func (w *Worker) dump(pass string, index int, before bool) error {
	o := w.opt
	if before && !slices.Contains(o.PrintBefore, pass) || !before && !o.PrintAfterAll && !slices.Contains(o.PrintAfter, pass) {
		return nil
	}
	when := "after"
	if before {
		when = "before"
	}
	format := o.PrintFormat
	if format == "" {
		format = "rir"
	}
	if o.DumpDir != "" {
		return w.dumpFile(fmt.Sprintf("%02d.%s.%s.%s", index, when, pass, format), func(out io.Writer) error { return w.write(out, format) })
	}
	if w.Talk == nil {
		return nil
	}
	fmt.Fprintf(w.Talk, "# %s %s\n", when, pass)
	return w.write(w.Talk, format)
}

// dumpFile writes a file of the dump folder.
func (w *Worker) dumpFile(name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(w.opt.DumpDir, 0o755); err != nil {
		return target.Errorf(target.User, "--dump-dir: %v", err)
	}
	f, err := os.Create(filepath.Join(w.opt.DumpDir, name))
	if err != nil {
		return target.Errorf(target.User, "--dump-dir: %v", err)
	}
	return errors.Join(write(f), f.Close())
}

func (w *Worker) write(out io.Writer, format string) error {
	if format == "json" {
		return bir.Write(out, w.m)
	}
	return ir.Print(out, w.m)
}
