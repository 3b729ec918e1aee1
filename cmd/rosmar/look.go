package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

func (a *app) inspectCmd() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "inspect X.neff…",
		Short: "Say what is in a package: header, members, sizes, features",
		Long: `inspect describes any file of the package's shape, ours or not, with or without the header, as far as it can be read. What is
wrong is listed as problems. A header whose digest does not match the content is an error (exit 1) after the description.`,
		Example: `  rosmar inspect model.neff
  rosmar inspect --json model.neff
  cat model.neff | rosmar inspect -`,
		Args: inputsArg(1, "a package"),
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, name := range args {
				if err := a.inspect(name, asJSON, len(args) > 1); err != nil {
					errs = append(errs, named(name, err))
				}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a file")
	return cmd
}

func (a *app) inspect(name string, asJSON, many bool) error {
	data, err := codegen.ReadInput(name)
	if err != nil {
		return err
	}
	r, err := neff.Inspect(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		return err
	}
	var b []byte
	if asJSON {
		b = append(r.AppendJSON(b, name, int64(len(data))), '\n')
	} else {
		if many {
			b = append(b, "== "+name+"\n"...)
		}
		b = r.AppendText(b)
	}
	if _, err := a.out.Write(b); err != nil {
		return err
	}
	if r.HasHeader && !r.HashOK {
		return target.Errorf(target.User, "the payload does not match the header's digest; the file is damaged or cut")
	}
	return nil
}

func (a *app) disasmCmd() *cobra.Command {
	var name, engine string
	cmd := &cobra.Command{
		Use:   "disasm X.neff",
		Short: "Print the engine streams of a package",
		Long: `disasm prints one line a bundle, engine by engine: index, instruction, operands, waits and updates of semaphores; labels
where a branch goes; under a DMA trigger the descriptors of its block. It reads any file of this shape as far as it goes, and
shows bundles that it cannot decode as raw bytes with the reason.`,
		Example: `  rosmar disasm model.neff
  rosmar disasm --engine PE model.neff
  rosmar disasm --target trn1 streams.tar`,
		Args: oneArg("a package"),
		RunE: func(_ *cobra.Command, args []string) error {
			var g *target.Generation
			if name != "" {
				var err error
				if g, err = target.Lookup(name); err != nil {
					return usage("disasm", err)
				}
			}
			if engine != "" {
				if e, ok := target.ParseEngine(engine); !ok || !e.HasStream() {
					return usagef("disasm", "--engine %s: Pool, Activation, PE, DVE or SP", engine)
				}
			}
			data, err := codegen.ReadInput(args[0])
			if err != nil {
				return err
			}
			w := bufio.NewWriterSize(a.out, 1<<16)
			err = named(args[0], codegen.Disassemble(w, data, g, engine))
			return errors.Join(err, w.Flush())
		},
	}
	targetFlag(cmd, &name, "", "`NAME` of the machine, for a file that does not say: trn1, trn2 or trn3")
	cmd.Flags().StringVar(&engine, "engine", "", "one `ENGINE` only: Pool, Activation, PE, DVE or SP")
	completeFlag(cmd, "engine", "Pool", "Activation", "PE", "DVE", "SP")
	return cmd
}

func (a *app) genCmd() *cobra.Command {
	opt := codegen.NewOptions()
	var out, format string
	var seed uint64
	cmd := &cobra.Command{
		Use: "gen [zoo:NAME|MODEL -o FILE]",

		ValidArgsFunction: completeModels,
		Short:             "Write a generated model, or any other model, in another format",
		Long: `gen writes a model as HLO text (.hlo), ONNX (.onnx), or the tiles that a target gets (.json, .rir), by the suffix of -o.
It takes files too, as a converter. Without an input it lists the generated models and their settings.`,
		Example: `  rosmar gen
  rosmar gen zoo:mlp -o mlp.hlo
  rosmar gen 'zoo:mlp?layers=3&width=512&dtype=bf16' -o mlp.onnx
  rosmar gen zoo:mlp --target trn1 -o mlp.rir
  rosmar gen model.onnx -o - --format hlo`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ownTarget(cmd, &opt.Target)
			switch {
			case len(args) == 0 && out == "":
				_, err := io.WriteString(a.out, zoo.Help())
				return err
			case len(args) != 1:
				return usagef("gen", "%d inputs: give one", len(args))
			case out == "":
				return usagef("gen", "give -o FILE (.hlo, .onnx, .json or .rir), or -o - with --format")
			}
			if _, err := opt.Generation(nil); err != nil {
				return usage("gen", err)
			}
			to := codegen.FormatOf(out)
			if format != "" {
				if to = codegen.FormatOf("." + format); to == 0 {
					return usagef("gen", "--format %s: hlo, onnx, json or rir", format)
				}
			}
			switch {
			case to == 0 && out == "-":
				return usagef("gen", "standard output has no suffix; --format says what to write: hlo, onnx, json or rir")
			case to == 0:
				return usagef("gen", "%q has none of the suffixes .hlo, .onnx, .json and .rir; --format says which it shall be", out)
			}
			p, err := codegen.Load(args[0])
			if err != nil {
				return err
			}
			p.Seed(seed)
			var w codegen.Worker
			return a.write(out, func(to2 io.Writer) error {
				b := bufio.NewWriterSize(to2, 1<<16)
				return errors.Join(w.Convert(p, to, &opt, b), b.Flush())
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&out, "output", "o", "", "`FILE` to write, - for standard output")
	fs.StringVar(&format, "format", "", "`FORM` to write, hlo, onnx, json or rir, where the name of -o does not say")
	targetFlag(cmd, &opt.Target, opt.Target, "`NAME` of the machine that tiles are for")
	fs.IntVar(&opt.TileSBBytes, "tile-sb-bytes", 0, "`BYTES` of SBUF a partition that tiles are planned for; 0 is 90 % of the machine's")
	fs.IntVar(&opt.TileLevel, "tile-level", opt.TileLevel, "`LEVEL` of data reuse in products: 0 loads operands at use, 1 keeps rows, 2 keeps blocks")
	seedFlag(fs, &seed)
	completeFlag(cmd, "format", "hlo", "onnx", "json", "rir")
	return cmd
}

func (a *app) operatorsCmd() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "list-operators",
		Short: "List the operators and types that are supported, and what is refused",
		Long: `list-operators tries every operator and element type on a small program and says what became of it. The README has the list of
the default target.`,
		Example: "  rosmar list-operators\n  rosmar list-operators --target trn1",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			g, err := target.ForCodeGen(name)
			if err != nil {
				return usage("list-operators", err)
			}
			_, err = io.WriteString(a.out, codegen.SupportMarkdown(g))
			return err
		},
	}
	targetFlag(cmd, &name, codegen.DefaultTarget, "`NAME` of the machine: trn1, trn2 or trn3")
	return cmd
}
