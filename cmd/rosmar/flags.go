package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

// targetFlag is the one flag of every verb that needs a machine.
func targetFlag(cmd *cobra.Command, to *string, def, doc string) {
	cmd.Flags().StringVar(to, "target", def, doc)
	completeFlag(cmd, "target", "trn1", "trn2", "trn3")
}

// ownTarget leaves the machine to the input where no flag names it: tiles say what they are for, models take the default.
func ownTarget(cmd *cobra.Command, to *string) {
	if !cmd.Flags().Changed("target") {
		*to = ""
	}
}

// completeFlag gives the shells the closed set of a flag's values.
func completeFlag(cmd *cobra.Command, name string, values ...string) {
	cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeModels offers the generated models; files are the shell's own.
func completeModels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, n := range zoo.Names() {
		names = append(names, zoo.Prefix+n)
	}
	return names, cobra.ShellCompDirectiveDefault
}

// compileFlags are the options of a compile, for the verbs that compile.
func compileFlags(cmd *cobra.Command, o *codegen.Options) {
	fs := cmd.Flags()
	targetFlag(cmd, &o.Target, o.Target, "`NAME` of the machine: trn1, trn2 or trn3; tiles may say their own")
	fs.IntVar(&o.OptLevel, "optlevel", o.OptLevel, "`LEVEL` of optimisation; -1 is the default level, 2, the only one that is built")
	fs.StringVar(&o.Allocator, "allocator", o.Allocator, "`NAME` of the allocator of PSUM and SBUF: coloring, the default, or lsa, linear scan: faster, moves more bytes where memory is short")
	fs.StringSliceVar(&o.Pass, "pass", nil, "run exactly these passes, `a,b`")
	fs.StringSliceVar(&o.SkipPass, "skip-pass", nil, "leave these passes out, `a,b`")
	fs.StringVar(&o.StartPass, "start-pass", "", "skip every `PASS` before this one")
	fs.StringSliceVar(&o.PrintBefore, "print-before", nil, "print the program before these passes, `a,b`")
	fs.StringSliceVar(&o.PrintAfter, "print-after", nil, "print the program after these passes, `a,b`")
	fs.BoolVar(&o.PrintAfterAll, "print-after-all", false, "print the program after every pass")
	fs.StringVar(&o.PrintFormat, "print-format", "rir", "`FORM` of what is printed: rir or json")
	fs.StringVar(&o.DumpDir, "dump-dir", "", "print into numbered files of this `FOLDER`, not to standard error")
	fs.BoolVar(&o.Verify, "enable-verifier", false, "check the program after every pass")
	fs.BoolVar(&o.Simulate, "enable-birsim-after-all", false, "simulate the program after every pass: results must not change by a bit")
	fs.IntVar(&o.SBBytes, "sb-bytes", 0, "`BYTES` of SBUF a partition that the allocator may use, 16 KiB for the runtime among them; 0 is the machine's")
	fs.IntVar(&o.PSUMBanks, "psum-banks", 0, "`BANKS` of PSUM that the allocator may use; 0 is the machine's")
	fs.IntVar(&o.HBMGiB, "hbm-gib", 0, "`GiB` of HBM; 0 is the machine's")
	fs.DurationVar(&o.Watchdog, "allocation-timeout", o.Watchdog, "`TIME` after which an allocator that still spills gives up, with exit code 2")
	fs.IntVar(&o.TileSBBytes, "tile-sb-bytes", 0, "`BYTES` of SBUF a partition that tiles are planned for; 0 is 90 % of the machine's")
	fs.IntVar(&o.TileLevel, "tile-level", o.TileLevel, "`LEVEL` of data reuse in products: 0 loads operands at use, 1 keeps rows, 2 keeps blocks")
	fs.Int64Var(&o.MaxInstructions, "max-instruction-limit", o.MaxInstructions, "refuse programs of more than `N` instructions, before they are built")
	fs.IntVar(&o.NumSemaphores, "num-semaphores-per-queue", o.NumSemaphores, "`N` completion semaphores of a queue set, 1 to 16")
	memoryFlags(cmd, o)
	allocationFlags(cmd, &o.Alloc)
	completeFlag(cmd, "allocator", "coloring", "lsa")
	completeFlag(cmd, "print-format", "rir", "json")
	for _, name := range []string{"pass", "skip-pass", "start-pass", "print-before", "print-after"} {
		completeFlag(cmd, name, passNames()...)
	}
}

// allocationFlags are the allocators' own, under the names that the reference's driver has for them where it has any.
func allocationFlags(cmd *cobra.Command, o *codegen.Allocation) {
	fs := cmd.Flags()
	fs.IntVar(&o.AXIThreshold, "AXI-alignment-size-thres", o.AXIThreshold, "SBUF tensors of fewer `BYTES` a partition start on a 256-byte boundary while there is room; -1 never")
	fs.IntVar(&o.RMWAlign, "RMW-alignment", o.RMWAlign, "SBUF tensors start on a multiple of `BYTES` where read-modify-write needs it; -1 never")
	fs.StringVar(&o.RMWTarget, "RMW-alignment-target-arch", o.RMWTarget, "`NAME` of the first machine that needs --RMW-alignment")
	fs.IntVar(&o.DMAPage, "dram-page-size", o.DMAPage, "`BYTES` of a page: SBUF tensors of whole pages that transfers move start on one while there is room; -1 never")
	fs.IntVar(&o.APAlign, "AP-alignment", o.APAlign, "start SBUF tensors on what their access patterns have in common, up to `BYTES`, while there is room; -1 never")
	fs.IntVar(&o.DMALevel, "gca-dma-optlevel", o.DMALevel, "`LEVEL` of effort for few reloads of spilled tensors: 0 off, 1 default, 2 aggressive, -1 automatic")
	fs.BoolVar(&o.NoSpillHint, "gca-use-no-spill-hint", o.NoSpillHint, "do not spill tensors that the input marks do-not-spill")
	fs.BoolVar(&o.Partners, "sb-partners", o.Partners, "lay operands of accumulating products, and both sides of copies in SBUF, out alike")
	fs.BoolVar(&o.FastContextSwitch, "fast-context-switch", o.FastContextSwitch, "do not bet on loads staying in SBUF when it runs short")
	fs.BoolVar(&o.UnpinGen2, "gen2-unpin-loads", o.UnpinGen2, "like --fast-context-switch, for trn1 only")
	completeFlag(cmd, "gca-dma-optlevel", "-1", "0", "1", "2")
}

func passNames() []string {
	var names []string
	for _, p := range codegen.Registry() {
		names = append(names, p.Name)
	}
	return names
}

// seedFlag gives weights that a model's file leaves out.
func seedFlag(fs *pflag.FlagSet, to *uint64) {
	fs.Uint64Var(to, "seed-weights", 0, "generate the weights that the file does not hold from this `SEED`; 0 leaves them out")
}

// timingFlag is --timing, --timing=table or --timing=json.
func timingFlag(cmd *cobra.Command, to *string) {
	fs := cmd.Flags()
	fs.StringVar(to, "timing", "", "say where time and memory went, on standard error, in the `FORM` table or json: --timing, --timing=json")
	fs.Lookup("timing").NoOptDefVal = "table"
	completeFlag(cmd, "timing", "table", "json")
}

func checkTiming(verb, mode string) error {
	switch mode {
	case "", "table", "json":
		return nil
	}
	return usagef(verb, "--timing=%s: table or json", mode)
}

func checkJobs(verb string, jobs int) error {
	if jobs < 1 {
		return usagef(verb, "-j %d: at least one", jobs)
	}
	return nil
}

// printTiming prints a profile in the form that was asked for.
func (a *app) printTiming(mode string, p *codegen.Profile) {
	switch mode {
	case "json":
		p.WriteJSON(a.talk())
	case "table":
		p.WriteTable(a.talk())
	}
}
