package codegen

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// tiles is a program in text form, compiled by some passes.
func tiles(t testing.TB, text string, o Options, passes ...string) (*Worker, *Result, error) {
	t.Helper()
	m := new(ir.Module)
	if err := ir.Parse([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	o.Pass = passes
	var w Worker
	var buf neff.Buffer
	res, err := w.Compile(context.Background(), &Program{Name: "tiles", Module: m}, &o, &buf)
	return &w, res, err
}

// before reports names that do not come in this order in a list.
func before(t testing.TB, plane []string, names ...string) {
	t.Helper()
	last := -1
	for _, n := range names {
		at := slices.Index(plane, n)
		if at < 0 {
			t.Errorf("%s is not in the list", n)
			continue
		}
		if at < last {
			t.Errorf("%s comes before what should precede it", n)
		}
		last = at
	}
}

func TestSeed40AllocatorOrder(t *testing.T) {
	before(t, plane2, "coloring_allocator_psum", "coloring_allocator_sb", "coloring_allocator_dram", "coloring_allocator_dram_shared", "coloring_allocator_dram_debug")
}

// Of the two passes behind a colouring the plane has rotation: it is done before the next memory is coloured.
func TestSeed41RotationBeforeNextSpace(t *testing.T) {
	before(t, plane2, "coloring_allocator_psum", "address_rotation_psum", "coloring_allocator_sb", "address_rotation_sb", "coloring_allocator_dram")
}

func TestSeed42NoDRAMOptimizer(t *testing.T) {
	o := NewOptions()
	o.Pass = []string{"dma_optimization_dram"}
	if _, err := o.Passes(); err == nil || !strings.Contains(err.Error(), "Backend pass: dma_optimization_dram is not registered!") {
		t.Error(err)
	}
	before(t, plane2, "coloring_allocator_dram", "build_fdeps")
}

// SB colouring leaves every PSUM placement as it was, also when it spills.
func TestSeed43PsumFixed(t *testing.T) {
	before(t, plane2, "psum_legalization", "coloring_allocator_psum")
	var w Worker
	o := verified("trn2")
	o.SBBytes = 24 << 10
	upto := func(pass string) []ir.LocRow {
		o.Pass = plane2[:slices.Index(plane2, pass)+1]
		w.compileOnly(t, "zoo:mlp?layers=3&width=512&batch=64&in=512", &o)
		var rows []ir.LocRow
		for _, r := range w.m.Locs.All() {
			if r.Space == target.SpacePSUM {
				rows = append(rows, *r)
			}
		}
		return rows
	}
	psum := upto("address_rotation_psum")
	sb := upto("coloring_allocator_sb")
	if len(psum) == 0 || w.reports.sb.Spilled == 0 {
		t.Fatalf("%d PSUM tensors, %d SB spills: nothing is shown", len(psum), w.reports.sb.Spilled)
	}
	if n := len(psum); !slices.Equal(psum, sb[:n]) {
		t.Error("SB colouring moved a PSUM tensor")
	}
}

// Each flag takes its own pass out of the level's list, and none out of an explicit one.
func TestSeed46DRAMGates(t *testing.T) {
	full := []string{"birverifier", "coloring_allocator_dram", "address_rotation_dram", "build_fdeps"}
	for _, c := range []struct {
		o    Options
		gone string
	}{{Options{NoDRAMAllocation: true}, "coloring_allocator_dram"}, {Options{NoDRAMRotation: true}, "address_rotation_dram"}} {
		want := slices.DeleteFunc(slices.Clone(full), func(n string) bool { return n == c.gone })
		if got := c.o.gated(full); !slices.Equal(got, want) {
			t.Errorf("%s: %q", c.gone, got)
		}
	}
	for _, c := range []struct {
		alloc, rotate bool
	}{{false, false}, {true, false}, {false, true}, {true, true}} {
		o := NewOptions()
		o.NoDRAMAllocation, o.NoDRAMRotation = c.alloc, c.rotate
		names, err := o.Passes()
		if err != nil || slices.Contains(names, "coloring_allocator_dram") == c.alloc || slices.Contains(names, "address_rotation_dram") == c.rotate ||
			!slices.Contains(names, "coloring_allocator_dram_shared") {
			t.Error(names, err)
		}
	}
	o := NewOptions()
	o.NoDRAMAllocation = true
	o.Pass = []string{"coloring_allocator_dram"}
	names, err := o.Passes()
	if err != nil || !slices.Equal(names, o.Pass) {
		t.Error(names, err)
	}
	// Without it, intermediates are missed by the name of the pass.
	o = NewOptions()
	o.NoDRAMAllocation = true
	_, _, err = tiles(t, sharedDRAM, o)
	if err == nil || !strings.Contains(err.Error(), "address_rotation_dram needs coloring_allocator_dram ") {
		t.Error(err)
	}
	o = NewOptions()
	o.DRAMRotationGiB = 9
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "--dram-rotation-size 9: -1, or GiB up to 8") {
		t.Error(err)
	}
}

// Two address spaces, in a program that compiles to the end. The tensors come through DRAM, shared and for debugging.
const sharedDRAM = `rir 1
module "m" trn2
func "sg0000" entry {
  set "x" ExternalInput Tensor float32 [8 16] part -1
    %1 "x" DRAM 1 x 512 at 0
  set "y" ExternalOutput Tensor float32 [8 16] part -1
    %2 "y" DRAM 1 x 512 at 0
  set "s" Internal Tensor float32 [8 16] part -1 Shared
    %3 "s" DRAM 1 x 512 at 0
  set "d" Internal Tensor float32 [8 16] part -1 Debug
    %4 "d" DRAM 1 x 512 at 0
  set "l" Internal Tensor float32 [8 16] part -1
    %5 "l" DRAM 1 x 512 at 0
  set "a" Internal NeuronSBTensor float32 [8 16] part 0
    %6 "a" SB 8 x 64 at 0
  set "b" Internal NeuronSBTensor float32 [8 16] part 0
    %7 "b" SB 8 x 64 at 0
  set "c" Internal NeuronSBTensor float32 [8 16] part 0
    %8 "c" SB 8 x 64 at 0
  block "Block1" {
    I-1 "la" Load SP (%1 @0 16*8 1*16:float32) -> (%6 0+8 @0 1*16:float32)
    I-2 "sl" Save Activation (%6 0+8 @0 1*16:float32) -> (%5 @0 16*8 1*16:float32)
    I-3 "ll" Load SP (%5 @0 16*8 1*16:float32) -> (%7 0+8 @0 1*16:float32)
    I-4 "ss" Save Activation (%7 0+8 @0 1*16:float32) -> (%3 @0 16*8 1*16:float32)
    I-5 "sd" Save Activation (%7 0+8 @0 1*16:float32) -> (%4 @0 16*8 1*16:float32)
    I-6 "ls" Load SP (%3 @0 16*8 1*16:float32) -> (%8 0+8 @0 1*16:float32)
    I-7 "sy" Save Activation (%8 0+8 @0 1*16:float32) -> (%2 @0 16*8 1*16:float32)
  }
}
`

// Shared DRAM is placed when the private is, above it; on one core nothing has to be told to others. Debug tensors come last, and
// are written although nothing reads them.
func TestSeed48SharedAfterPrivate(t *testing.T) {
	o := verified("trn2")
	o.Simulate = true
	w, res, err := tiles(t, sharedDRAM, o)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int64{}
	for _, r := range w.m.Locs.All() {
		if r.Space == target.SpaceDRAM && r.Flags&ir.LocAllocated != 0 {
			at[w.m.Names.String(r.Name)] = r.Addr
		}
	}
	if len(at) != 3 || at["l"] != 0 || at["s"] != 4096 || at["d"] != 8192 {
		t.Errorf("placed at %v", at)
	}
	for s, want := range [ir.NumAddrSpaces]int64{4096, 8192, 12288} {
		if mt := res.DRAM[s]; mt.HighWater != want || mt.Total != 4096 {
			t.Errorf("%s: high water %d of %d", ir.AddrSpace(s), mt.HighWater, mt.Total)
		}
	}
	// What is missing is missed by name.
	for skip, user := range map[string]string{
		"coloring_allocator_dram": "address_rotation_dram", "coloring_allocator_dram_shared": "hbm_usage", "coloring_allocator_dram_debug": "hbm_usage",
	} {
		o := NewOptions()
		o.SkipPass = []string{skip}
		if _, _, err := tiles(t, sharedDRAM, o); err == nil || !strings.Contains(err.Error(), user+" needs "+skip+" ") {
			t.Errorf("without %s: %v", skip, err)
		}
	}
}

func TestSeed49PostLinkOrder(t *testing.T) {
	before(t, plane2, "coloring_allocator_dram", "coloring_allocator_dram_post_lnk", "coloring_allocator_dram_shared_post_lnk", "lower_sync", "codegen")
}

// After linking nothing is left to place here: they leave the module as it was, and where they find something what was known of
// bytes is no longer relied on.
func TestSeed50PostLinkNothingToPlace(t *testing.T) {
	upto := slices.Index(plane2, "coloring_allocator_dram_post_lnk")
	w, _, err := tiles(t, sharedDRAM, NewOptions(), plane2[:upto]...)
	if err != nil {
		t.Fatal(err)
	}
	var was, is bytes.Buffer
	if err := ir.Print(&was, w.m); err != nil {
		t.Fatal(err)
	}
	for _, n := range plane2[upto : upto+2] {
		if err := passByName[n].Run(w); err != nil {
			t.Error(err)
		}
	}
	if err := ir.Print(&is, w.m); err != nil || !bytes.Equal(was.Bytes(), is.Bytes()) {
		t.Errorf("they changed the module (%v)", err)
	}
	for _, r := range w.m.Locs.All() {
		if w.m.Names.String(r.Name) == "s" {
			r.Flags &^= ir.LocAllocated
		}
	}
	for _, n := range plane2[upto : upto+2] {
		if err := passByName[n].Run(w); err != nil {
			t.Error(err)
		}
	}
	if w.m.Funcs.At(w.m.Entry).Flags&late != 0 {
		t.Error("the dependences are taken to know a tensor that was placed after them")
	}
}

// Above the window hbm_usage refuses, and a tenth above it names the largest tensors; switched off it warns.
func TestHBMUsage(t *testing.T) {
	for _, c := range []struct {
		bytes   string
		refused bool
		named   bool
	}{{"1000000000", false, false}, {"1080000000", true, false}, {"1300000000", true, true}} {
		text := strings.Replace(sharedDRAM, `"x" DRAM 1 x 512`, `"x" DRAM 1 x `+c.bytes, 1)
		text = strings.Replace(text, `set "x" ExternalInput Tensor float32 [8 16]`, `set "x" ExternalInput Tensor uint8 [`+c.bytes+`]`, 1)
		o := NewOptions()
		o.HBMGiB = 1
		list := plane2[:slices.Index(plane2, "hbm_usage")+1]
		_, res, err := tiles(t, text, o, list...)
		if !c.refused {
			if err != nil {
				t.Fatal(err)
			}
			h := res.HBM
			// Seven transfers of eight rows, a descriptor each.
			if h.Allocated != 8192+512 || h.Runtime != 1000000512 || h.Descriptors != 7*8*slotBytes || h.Code != 7*64 {
				t.Errorf("%+v", h)
			}
			continue
		}
		if err == nil || target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "the window of trn2 is 1073741824") ||
			strings.Contains(err.Error(), "%x "+c.bytes) != c.named {
			t.Errorf("%s: %v", c.bytes, err)
		}
		o.NoHBMCheck = true
		var talk bytes.Buffer
		w := &Worker{Talk: &talk}
		m := new(ir.Module)
		if err := ir.Parse([]byte(text), m); err != nil {
			t.Fatal(err)
		}
		o.Pass = list
		var buf neff.Buffer
		if _, err := w.Compile(context.Background(), &Program{Name: "tiles", Module: m}, &o, &buf); err != nil || !strings.HasPrefix(talk.String(), "warning: the program needs ") {
			t.Errorf("%s: %v, said %q", c.bytes, err, talk.String())
		}
	}
}

// The key of SB's colouring stands for linear scan and for the loop-aware allocator where they place SB, although its own pass is not there.
func TestSeed17SnapshotBehindWithLoop(t *testing.T) {
	a := MemoryAnalysis{After: []string{"coloring_allocator_sb"}}
	list := []string{"pre_sched", "pre_sched", "coloring_allocator_with_loop", "address_tensor_insertion"}
	want := []string{"pre_sched", "pre_sched", "coloring_allocator_with_loop", "memory_analysis_after_coloring_allocator_sb", "address_tensor_insertion"}
	if got := a.withSnapshots(slices.Clone(list)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	list[2], want[2] = "linear_scan_allocator", "linear_scan_allocator"
	if got := a.withSnapshots(slices.Clone(list)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	list[2] = "coloring_allocator_with_loop"
	a.After = []string{"pre_sched"}
	want = []string{"pre_sched", "pre_sched", "memory_analysis_after_pre_sched", "coloring_allocator_with_loop", "address_tensor_insertion"}
	if got := a.withSnapshots(slices.Clone(list)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// What is asked for and will not happen is said, and nothing else is.
func TestIdleOptions(t *testing.T) {
	all := SnapshotKeys()
	for _, c := range []struct {
		set  func(*Options)
		want []string // one part of each sentence
	}{
		{func(o *Options) {}, nil},
		{func(o *Options) {
			o.Memory.After, o.PrintAfter, o.PrintBefore = []string{"post_sched"}, []string{"codegen"}, []string{"birverifier"}
		}, nil},
		{func(o *Options) { o.Allocator, o.Memory.After = "lsa", []string{"coloring_allocator_sb"} }, nil},
		{func(o *Options) {
			o.Allocator, o.PrintAfter = "lsa", []string{"coloring_allocator_sb", "linear_scan_allocator"}
		},
			[]string{"--print-after coloring_allocator_sb: nothing to print"}},
		{func(o *Options) { o.SkipPass, o.PrintBefore = []string{"codegen"}, []string{"codegen"} }, []string{"--print-before codegen: nothing to print"}},
		{func(o *Options) { o.Memory.After = []string{"coloring_allocator_psum", "unroll"} },
			[]string{"--memory-analysis-after coloring_allocator_psum: no report; there is one behind address_rotation_dram, ", "unroll: no report"}},
		{func(o *Options) { o.Memory.After, o.Pass = []string{"post_sched"}, []string{"birverifier"} },
			[]string{"post_sched: no report, since --pass runs exactly its list"}},
		{func(o *Options) { o.Memory.After, o.Pass = all[:1], []string{snapshotPrefix + all[0]} }, nil},
	} {
		o := NewOptions()
		c.set(&o)
		got := o.Idle()
		if len(got) != len(c.want) {
			t.Errorf("want %q, said %q", c.want, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("want %q, said %q", c.want[i], got[i])
			}
		}
	}
}

// A snapshot is in the list exactly when its key is in the set: none for an empty set, for other keys, or for passes that are no keys.
func TestSeed21SnapshotKeys(t *testing.T) {
	plain := func(after ...string) []string {
		o := NewOptions()
		o.Memory.After = after
		names, err := o.Passes()
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	bare := plain()
	for _, n := range bare {
		if strings.HasPrefix(n, snapshotPrefix) {
			t.Errorf("%s without being asked for", n)
		}
	}
	if got := plain("coloring_allocator_psum", "coloring_allocator_dram"); !slices.Equal(got, bare) {
		t.Errorf("passes that are no keys added %q", got)
	}
	for _, key := range SnapshotKeys() {
		if passByName[snapshotPrefix+key] == nil {
			t.Errorf("%s is not registered", snapshotPrefix+key)
		}
		got := plain(key)
		at := slices.Index(bare, key)
		if at < 0 {
			if !slices.Equal(got, bare) {
				t.Errorf("%s: %q", key, got)
			}
			continue
		}
		if want := slices.Insert(slices.Clone(bare), at+1, snapshotPrefix+key); !slices.Equal(got, want) {
			t.Errorf("%s: %q", key, got)
		}
	}
	o := NewOptions()
	for _, c := range []struct {
		set  MemoryAnalysis
		want string
	}{
		{MemoryAnalysis{After: []string{"nobody"}}, "Backend pass: nobody is not registered!"},
		{MemoryAnalysis{Dump: []string{"pressure"}}, "--memory-analysis-dump pressure: spilling, live-range or memory-pressure"},
		{MemoryAnalysis{Types: []string{"hbm"}}, "--memory-analysis-mem-types hbm: dram, sb or psum"},
	} {
		o.Memory = c.set
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), c.want) || target.ClassOf(err) != target.User {
			t.Errorf("%+v: %v", c.set, err)
		}
	}
}

// Snapshots change neither package nor plan, and are written where passes print.
func TestSnapshots(t *testing.T) {
	want, _ := compile(t, load(t, "zoo:mlp"), NewOptions())
	o := NewOptions()
	o.Memory.After = []string{"coloring_allocator_sb", "post_sched"}
	var talk bytes.Buffer
	w := &Worker{Talk: &talk}
	var buf neff.Buffer
	if _, err := w.Compile(context.Background(), load(t, "zoo:mlp"), &o, &buf); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buf.Bytes(), want) {
		t.Error("another package")
	}
	if s := talk.String(); strings.Count(s, "# memory after ") != 2 || strings.Count(s, "memory-pressure SB") != 2 {
		t.Error(s)
	}
}
