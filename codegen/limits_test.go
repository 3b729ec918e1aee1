package codegen

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

// With SBUF and PSUM shrunk the numbers stay those of the interpreter, and megabytes are spilled.
func TestSpilling(t *testing.T) {
	if testing.Short() {
		t.Skip("a transformer layer, compiled twice for three targets")
	}
	for _, c := range []struct {
		model     string
		sb, banks int
		least     int64 // bytes that must be spilled at least: the case is one of spilling
	}{
		{"zoo:mlp?layers=3&width=512&in=512&batch=256", 25000, 1, 2 << 20},
		{"zoo:gpt2?layers=1&seq=128", 26000, 4, 16 << 20},
	} {
		for _, tg := range targets {
			o := verified(tg)
			o.SBBytes, o.PSUMBanks = c.sb, c.banks
			pkg, res := compile(t, load(t, c.model), o)
			t.Logf("%s for %s: %d bytes of %d values spilled in %d rounds", c.model, tg, res.SB.SpilledBytes, res.SB.Spilled, res.SB.Iterations)
			if res.SB.SpilledBytes < c.least {
				t.Errorf("%s for %s: %d bytes spilled, expected %d at least", c.model, tg, res.SB.SpilledBytes, c.least)
			}
			match(t, pkg, c.model, 0, 2)
			free := verified(tg)
			whole, _ := compile(t, load(t, c.model), free)
			if !bytes.Equal(outputs(t, pkg, c.model), outputs(t, whole, c.model)) {
				t.Errorf("%s for %s: spilling changed the numbers", c.model, tg)
			}
		}
	}
}

// outputs are the bytes of all outputs on random inputs.
func outputs(t *testing.T, pkg []byte, model string) []byte {
	t.Helper()
	res, err := Execute(context.Background(), pkg, &RunOptions{Random: 3, HasRand: true, Weights: load(t, model)})
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, o := range res.Outputs {
		all = append(all, o.Data...)
	}
	return all
}

// Below the possible the compile ends as a limit that names the tensor, its need and the limit.
func TestDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name  string
		model string
		set   func(*Options)
		words []string
	}{
		{"SBUF", "zoo:gpt2?layers=1&seq=128", func(o *Options) { o.SBBytes = 20000 }, []string{"SB overflow", "needs", "of 20000"}},
		{"instructions", "zoo:llama3-8b?layers=1&seq=512", func(o *Options) { o.MaxInstructions = 1000 }, []string{"1000"}},
		{"HBM", "zoo:llama3-8b?layers=32&seq=512&weights=param", func(o *Options) { o.HBMGiB = 1 }, []string{"1073741824"}},
	} {
		o := NewOptions()
		c.set(&o)
		var w Worker
		var buf neff.Buffer
		_, err := w.Compile(context.Background(), load(t, c.model), &o, &buf)
		if target.ClassOf(err) != target.Limit || err == nil {
			t.Errorf("%s: %v, want a limit", c.name, err)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", c.name, err, word)
			}
		}
	}
}

// A package runs to the same bits without its debug members and with every name in it replaced.
func TestPackageStandsAlone(t *testing.T) {
	const model = "zoo:gpt2?layers=1&seq=40&width=32&heads=2&ffn=64&vocab=64&positions=64"
	o := verified("trn2")
	o.Debug = true
	data, _ := compile(t, load(t, model), o)
	p, err := neff.ReadBytes(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	debug := len(p.Files)
	kept := p.Files[:0]
	for _, f := range p.Files {
		if f.Path != neff.DebugPath {
			kept = append(kept, f)
		}
	}
	p.Files = kept
	if len(p.Files) == debug {
		t.Error("the package has no debug member to strip")
	}
	p.Header.Name = "x"
	renamed := map[string]string{}
	for i := range p.Def.Vars {
		if v := &p.Def.Vars[i]; v.Name != "" && v.Type != neff.VarStateBuffer {
			renamed[v.Name] = "v" + strings.Repeat("i", i)
			v.Name = renamed[v.Name]
		}
	}
	for _, list := range [][]neff.Tensor{p.Tensors.Inputs, p.Tensors.Outputs} {
		for i := range list {
			list[i].Name = renamed[list[i].Name]
		}
	}
	for i := range p.Weights {
		p.Weights[i].Var = renamed[p.Weights[i].Var]
	}
	for i := range p.Tensors.Aliases {
		a := &p.Tensors.Aliases[i]
		a.Input, a.Output = renamed[a.Input], renamed[a.Output]
	}
	var buf neff.Buffer
	if _, err := p.Write(&buf, true); err != nil {
		t.Fatal(err)
	}
	for old := range renamed {
		if strings.Contains(string(buf.Bytes()), old) && len(old) > 8 {
			t.Errorf("the name %q is still in the package", old)
		}
	}
	if !bytes.Equal(outputs(t, data, model), outputs(t, buf.Bytes(), model)) {
		t.Error("names or debug members change the numbers")
	}
}

// What no allocator could follow is refused by the name of the flag.
func TestAllocationOptions(t *testing.T) {
	for _, c := range []struct {
		set  func(*Allocation)
		want string
	}{
		{func(a *Allocation) { a.RMWAlign = 48 }, "--RMW-alignment 48: a power of two"},
		{func(a *Allocation) { a.DMAPage = -2 }, "--dram-page-size -2: a power of two"},
		{func(a *Allocation) { a.APAlign = 1 << 17 }, "--AP-alignment 131072: a power of two"},
		{func(a *Allocation) { a.AXIThreshold = -2 }, "--AXI-alignment-size-thres -2: bytes"},
		{func(a *Allocation) { a.RMWTarget = "trn9" }, "--RMW-alignment-target-arch: "},
		{func(a *Allocation) { a.DMALevel = 3 }, "--gca-dma-optlevel 3: -1 for auto"},
	} {
		o := NewOptions()
		c.set(&o.Alloc)
		if err := o.Check(); err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	o := NewOptions()
	o.Alloc = Allocation{AXIThreshold: -1, RMWAlign: 64, RMWTarget: "trn2", DMAPage: 256, APAlign: 8, DMALevel: -1, NoSpillHint: true, Partners: true, FastContextSwitch: true, UnpinGen2: true}
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	var m memalloc.Options
	o.Alloc.apply(&m)
	want := memalloc.Options{Align: memalloc.Alignments{AXIThreshold: -1, RMW: 64, RMWLevel: 30, Page: 256, AP: 8}, NoSpillHint: true, Partners: true, FastContextSwitch: true, UnpinGen2: true}
	if m != want {
		t.Errorf("the allocators get %+v, want %+v", m, want)
	}
}
