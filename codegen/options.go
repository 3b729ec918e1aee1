package codegen

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/tile"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/memalloc/rotate"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// Options is everything that a compile depends on beside its input. The zero value of a field means its default.
type Options struct {
	Target    string // product or arch name; "" is that of a module in tiles that says its own, else trn2
	OptLevel  int    // -1 or 2; other levels are refused by name
	Allocator string // "" or "coloring", or "lsa" for linear scan

	Pass      []string // replaces the level's list
	SkipPass  []string
	StartPass string

	// Limits. SBBytes, PSUMBanks and HBMGiB bind the allocators only; the tile planner takes TileSBBytes.
	SBBytes         int
	PSUMBanks       int
	HBMGiB          int
	TileSBBytes     int
	TileLevel       int // data reuse of products: 0 loads operands at use, 1 keeps rows, 2 keeps blocks
	MaxInstructions int64
	NumSemaphores   int // ring length of a queue set
	AllreduceMiB    int // DRAM for operands of collectives; 0 is DefaultAllreduceMiB, -1 what they add up to
	Watchdog        time.Duration

	DRAMRotationGiB int // window of DRAM rotation; 0 is the default, 8, -1 no more than is in use

	// Gates of the level's list.
	NoDRAMAllocation bool // without coloring_allocator_dram
	NoDRAMRotation   bool // without address_rotation_dram
	NoHBMCheck       bool // hbm_usage warns and does not refuse

	Alloc Allocation

	// Checking and looking.
	Verify        bool // the verifier after every pass that changes the module
	Simulate      bool // the IR simulator after every pass that changes the module, compared with the run before the first
	PrintBefore   []string
	PrintAfter    []string
	PrintAfterAll bool
	PrintFormat   string // "rir" (default) or "json"
	DumpDir       string // where prints go, one numbered file each; standard error when empty

	// Memory is what the snapshots of memory show, and behind which passes of the level they are taken.
	Memory MemoryAnalysis

	Debug      bool // names and provenance in the package (-g)
	Compressed bool // gzip the archive; default on, see NewOptions
	SeedWeight uint64
}

// Defaults of the options that have one.
const (
	DefaultTarget          = "trn2"
	DefaultOptLevel        = 2
	DefaultTileLevel       = 2
	DefaultMaxInstructions = 4_000_000
	DefaultNumSemaphores   = 16
	DefaultAllreduceMiB    = memalloc.DefaultAllreduceMiB
	DefaultWatchdog        = regalloc.DefaultWatchdog
)

var tileLevels = [...]tile.Level{tile.L0, tile.L1, tile.L2}

// NewOptions gives the defaults.
func NewOptions() Options {
	return Options{
		Target: DefaultTarget, OptLevel: -1, MaxInstructions: DefaultMaxInstructions, NumSemaphores: DefaultNumSemaphores,
		Watchdog: DefaultWatchdog, Compressed: true, TileLevel: DefaultTileLevel, AllreduceMiB: DefaultAllreduceMiB,
		DRAMRotationGiB: rotate.DefaultWindowGiB,
		Alloc:           newAllocation(),
	}
}

// Generation is the machine to compile for. own is that of a module in tiles, nil for a model.
func (o *Options) Generation(own *target.Generation) (*target.Generation, error) {
	switch {
	case o.Target != "":
		return target.ForCodeGen(o.Target)
	case own != nil:
		return target.ForCodeGen(own.Name)
	}
	return target.ForCodeGen(DefaultTarget)
}

// resolve checks the options that need no module and gives the generation and the pass list.
func (o *Options) resolve(own *target.Generation) (*target.Generation, []string, error) {
	g, err := o.Generation(own)
	if err != nil {
		return nil, nil, err
	}
	names, err := o.passes()
	if err != nil {
		return nil, nil, err
	}
	if o.SBBytes < 0 || o.SBBytes > g.SBBytes {
		return nil, nil, target.Errorf(target.User, "--sb-bytes %d: %s has %d bytes a partition", o.SBBytes, g.Name, g.SBBytes)
	}
	if o.PSUMBanks < 0 || o.PSUMBanks > g.PSUMBanks {
		return nil, nil, target.Errorf(target.User, "--psum-banks %d: %s has %d banks", o.PSUMBanks, g.Name, g.PSUMBanks)
	}
	if o.HBMGiB < 0 || o.HBMGiB > g.HBMGiB {
		return nil, nil, target.Errorf(target.User, "--hbm-gib %d: %s has a window of %d GiB a core", o.HBMGiB, g.Name, g.HBMGiB)
	}
	if o.Watchdog <= 0 {
		return nil, nil, target.Errorf(target.User, "--allocation-timeout %v: more than no time", o.Watchdog)
	}
	if o.TileSBBytes < 0 || o.TileSBBytes > g.SBBytes {
		return nil, nil, target.Errorf(target.User, "--tile-sb-bytes %d: %s has %d bytes a partition", o.TileSBBytes, g.Name, g.SBBytes)
	}
	if o.TileLevel < 0 || o.TileLevel >= len(tileLevels) {
		return nil, nil, target.Errorf(target.User, "--tile-level %d: 0 loads operands at use, 1 keeps rows, 2 keeps blocks", o.TileLevel)
	}
	if o.MaxInstructions < 1 {
		return nil, nil, target.Errorf(target.User, "--max-instruction-limit %d: at least one", o.MaxInstructions)
	}
	if err := errors.Join(o.Alloc.check(), o.Memory.check()); err != nil {
		return nil, nil, err
	}
	switch o.PrintFormat {
	case "", "rir", "json":
	default:
		return nil, nil, target.Errorf(target.User, "--print-format %s: rir or json", o.PrintFormat)
	}
	if o.NumSemaphores < 1 || o.NumSemaphores > 16 {
		return nil, nil, target.Errorf(target.User, "--num-semaphores-per-queue %d: a queue set's ring has 1 to 16", o.NumSemaphores)
	}
	if o.DRAMRotationGiB < -1 || o.DRAMRotationGiB > rotate.DefaultWindowGiB {
		return nil, nil, target.Errorf(target.User, "--dram-rotation-size %d: -1, or GiB up to %d, beyond which the runtime can object", o.DRAMRotationGiB, rotate.DefaultWindowGiB)
	}
	if o.AllreduceMiB < -1 || int64(o.AllreduceMiB) > g.HBMBytes()>>20 {
		return nil, nil, target.Errorf(target.User, "--allreduce-buffer-size %d: -1, or MiB up to the window of %s, %d GiB", o.AllreduceMiB, g.Name, g.HBMGiB)
	}
	return g, names, nil
}

// gated is the list of a level with the allocator that was asked for and without the passes that flags switch off. Linear scan
// places PSUM and SBUF in one pass, where PSUM is coloured otherwise.
func (o *Options) gated(plane []string) []string {
	plane = slices.Clone(plane)
	if k := slices.Index(plane, "coloring_allocator_psum"); o.Allocator == "lsa" && k >= 0 {
		plane[k] = "linear_scan_allocator"
		plane = slices.DeleteFunc(plane, func(n string) bool { return n == "coloring_allocator_sb" })
	}
	return slices.DeleteFunc(plane, func(n string) bool {
		return o.NoDRAMAllocation && n == "coloring_allocator_dram" || o.NoDRAMRotation && n == "address_rotation_dram"
	})
}

// Check finds what is wrong with the options themselves, before any input is read.
func (o *Options) Check() error {
	_, _, err := o.resolve(nil)
	return err
}

// Passes is the list that the options select, in order: the level's plane or the explicit list, then the filters. Every
// name is checked against the registry first.
func (o *Options) Passes() ([]string, error) { return o.passes() }

// Idle says what valid options ask for that will not happen, a sentence each: prints around passes that are not selected, and
// snapshots of memory where no selected pass takes any.
func (o *Options) Idle() []string {
	names, err := o.passes()
	if err != nil {
		return nil
	}
	var idle []string
	for _, p := range []struct {
		flag   string
		passes []string
	}{{"--print-before", o.PrintBefore}, {"--print-after", o.PrintAfter}} {
		for _, n := range p.passes {
			if n != "" && !slices.Contains(names, n) {
				idle = append(idle, fmt.Sprintf("%s %s: nothing to print, the pass is not selected (--dry-run prints the selection)", p.flag, n))
			}
		}
	}
	for _, key := range o.Memory.After {
		switch {
		case slices.Contains(names, snapshotPrefix+key):
		case len(o.Pass) > 0:
			idle = append(idle, fmt.Sprintf("--memory-analysis-after %s: no report, since --pass runs exactly its list; %s… are passes to put into it", key, snapshotPrefix))
		default:
			all := MemoryAnalysis{After: SnapshotKeys()}
			there := slices.DeleteFunc(SnapshotKeys(), func(k string) bool { return !slices.Contains(all.withSnapshots(o.gated(plane2)), snapshotPrefix+k) })
			idle = append(idle, fmt.Sprintf("--memory-analysis-after %s: no report; there is one behind %s", key, strings.Join(there, ", ")))
		}
	}
	return idle
}

func (o *Options) passes() ([]string, error) {
	switch o.Allocator {
	case "", "coloring", "lsa":
	default:
		return nil, target.Errorf(target.User, "--allocator=%s: must be empty, coloring or lsa", o.Allocator)
	}
	for _, l := range []struct {
		flag  string
		names []string
	}{{"pass", o.Pass}, {"skip-pass", o.SkipPass}, {"print-before", o.PrintBefore}, {"print-after", o.PrintAfter}} {
		for k, n := range l.names {
			if n == "" {
				return nil, target.Errorf(target.User, "--%s: name %d of %d is empty; separate names by one comma", l.flag, k+1, len(l.names))
			}
			if _, ok := passByName[n]; !ok {
				return nil, unknownPass(n)
			}
		}
	}
	if _, ok := passByName[o.StartPass]; !ok && o.StartPass != "" {
		return nil, unknownPass(o.StartPass)
	}
	names := o.Pass
	if len(names) == 0 {
		switch o.OptLevel {
		case -1, DefaultOptLevel:
			names = o.Memory.withSnapshots(o.gated(plane2))
		default:
			return nil, target.NotSupported("optlevel", "--optlevel=%d: only the plane of level 2 is built; leave the flag out or give 2", o.OptLevel)
		}
	}
	written := 0
	for _, n := range names {
		if n == "codegen" {
			written++
		}
	}
	if written > 1 {
		return nil, target.Errorf(target.User, "--pass: codegen writes the package; the list holds it %d times", written)
	}
	var out []string
	started := o.StartPass == ""
	for _, n := range names {
		if n == o.StartPass {
			started = true
		}
		if started && !slices.Contains(o.SkipPass, n) {
			out = append(out, n)
		}
	}
	if !started {
		return nil, target.Errorf(target.User, "--start-pass=%s: the selected list does not contain it", o.StartPass)
	}
	return out, nil
}

// unknownPass refuses a name that the registry does not have, with the nearest that it has.
func unknownPass(name string) error {
	near, best := "", 4 // a guess that is further away is no guess
	for i := range registry {
		if d := distance(name, registry[i].Name); d < best {
			near, best = registry[i].Name, d
		}
	}
	if near != "" {
		return target.Errorf(target.User, "Backend pass: %s is not registered! Did you mean %s? --list-passes prints all", name, near)
	}
	return target.Errorf(target.User, "Backend pass: %s is not registered! --list-passes prints all", name)
}

// distance is how many bytes have to be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// TimedOut reports that an error is the allocator's watchdog, which has an exit code of its own.
func TimedOut(err error) bool {
	var e *regalloc.TimeoutError
	return errors.As(err, &e)
}

// Version is what the build knows of itself, for the package header and --version.
func Version() string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return "rosmar " + bi.Main.Version
	}
	return "rosmar devel"
}
