package codegen

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/machine"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// mutant is a damaged program: what was done, and which oracle should see it.
type mutant struct {
	what   string
	oracle string // "race", "placement", "numbers"
	pkg    *neff.Package
	place  error // what the placement checker said of a mutant of the module
}

// The oracles can fail: seeded mutations of compiled programs, one kind after the other. At least 95 of 100 must be caught
// by the oracle that is there for their kind, and each survivor must be harmless: the same bits under 20 interleavings.
func TestOraclesCatchMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("300 mutants")
	}
	models := []string{"zoo:mlp?layers=3&width=256&in=200&batch=150", "zoo:gpt2?layers=1&seq=40&width=64&heads=2&vocab=64&positions=64", "zoo:resnet50?size=32&width=8&classes=10"}
	kinds := []struct {
		name string
		make func(*rand.Rand, *base) *mutant
	}{
		{"wait dropped", dropWait}, {"wait lowered by one", lowerWait}, {"location moved", moveLocation},
		{"START and ACCUMULATE flipped", flipStart}, {"descriptor addresses swapped", swapAddresses}, {"ring slot reused early", reuseSlot},
	}
	bases := make([]*base, len(models))
	for i, m := range models {
		bases[i] = newBase(t, m)
	}
	r := rand.New(rand.NewPCG(2026, 7))
	const each = 50
	caught, total := 0, 0
	for _, k := range kinds {
		got, made := 0, 0
		for n := 0; made < each; n++ {
			if n > 100*each {
				t.Fatalf("%s: %d mutants after %d draws", k.name, made, n)
			}
			b := bases[n%len(bases)]
			mu := k.make(r, b)
			if mu == nil {
				continue
			}
			made++
			seen, harmless := b.judge(mu)
			switch {
			case seen:
				got++
			case !harmless:
				t.Errorf("%s: %s: not caught by %s, and not harmless", k.name, mu.what, mu.oracle)
			default:
				t.Logf("%s: %s survives, with the same bits under 20 interleavings", k.name, mu.what)
			}
		}
		t.Logf("%-30s %d of %d caught", k.name, got, made)
		caught, total = caught+got, total+made
	}
	if caught*100 < total*95 {
		t.Errorf("%d of %d mutants caught; at least 95 of 100 must be", caught, total)
	}
}

// base is an unharmed program with its results.
type base struct {
	model   string
	prog    *Program
	weights constants
	pkg     []byte
	want    [][]byte
	inputs  []NamedTensor
	gen     *target.Generation
	sites   []site
	w       Worker // holds the module right after placement
	opt     Options
}

// site is a bundle of a stream.
type site struct{ engine, pc int }

func newBase(t *testing.T, model string) *base {
	b := &base{model: model, prog: load(t, model), opt: NewOptions()}
	b.weights.model = b.prog
	b.pkg, _ = compile(t, b.prog, b.opt)
	p := b.fresh()
	b.gen, _ = target.ByLevel(p.Level)
	var err error
	if b.inputs, err = bindInputs(p, &RunOptions{Random: 5, HasRand: true, Weights: b.prog}); err != nil {
		t.Fatal(err)
	}
	outs, err := b.run(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.want = outs
	for e := range p.Engines {
		for pc := range len(p.Engines[e].Stream) / isa.BundleSize {
			b.sites = append(b.sites, site{e, pc})
		}
	}
	// A second compile stops behind placement: its module is what location mutants start from.
	o := b.opt
	o.Pass = plane2[:11]
	var buf neff.Buffer
	if _, err := b.w.Compile(context.Background(), load(t, model), &o, &buf); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *base) fresh() *neff.Package {
	p, err := neff.ReadBytes(b.pkg, nil)
	if err != nil {
		panic(err)
	}
	for e := range p.Engines {
		p.Engines[e].Stream = bytes.Clone(p.Engines[e].Stream)
	}
	return p
}

// run executes a package over one interleaving.
func (b *base) run(p *neff.Package, seed uint64) ([][]byte, error) {
	m, err := machine.New(b.gen)
	if err != nil {
		return nil, err
	}
	m.Weights(func(w *neff.Weight, _ *neff.Var) ([]byte, error) { return b.weights.bytes(w) })
	if err := m.Load(p); err != nil {
		return nil, err
	}
	for _, in := range b.inputs {
		if err := m.SetInput(in.Name, in.Data); err != nil {
			return nil, err
		}
	}
	if err := m.Run(seed); err != nil {
		return nil, err
	}
	var out [][]byte
	for _, t := range p.Tensors.Outputs {
		out = append(out, bytes.Clone(m.Output(t.Name)))
	}
	return out, nil
}

// same runs a package over n interleavings and reports whether all give the unharmed results.
func (b *base) same(p *neff.Package, n uint64) bool {
	for seed := range n {
		out, err := b.run(p, seed)
		if err != nil {
			return false
		}
		for i := range out {
			if !bytes.Equal(out[i], b.want[i]) {
				return false
			}
		}
	}
	return true
}

// judge asks the oracle that is there for the mutant, and, when it saw nothing, whether the mutant is harmless.
func (b *base) judge(mu *mutant) (seen, harmless bool) {
	switch mu.oracle {
	case "placement":
		return mu.place != nil, false
	case "race":
		rep, err := machine.Race(mu.pkg)
		if err != nil || rep.Err() != nil {
			return true, false
		}
	case "numbers":
		if !b.same(mu.pkg, 1) {
			return true, false
		}
	}
	return false, b.same(mu.pkg, 20)
}

// bundle decodes a bundle of p.
func (b *base) bundle(p *neff.Package, s site) (in isa.Inst, at []byte) {
	at = p.Engines[s.engine].Stream[s.pc*isa.BundleSize:][:isa.BundleSize]
	if err := isa.Decode(p.Level, (*isa.Bundle)(at), &in); err != nil {
		panic(err)
	}
	return in, at
}

// patch draws bundles until edit changes one, and writes it back.
func (b *base) patch(r *rand.Rand, oracle, what string, edit func(*isa.Inst) bool) *mutant {
	p := b.fresh()
	for range 200 {
		s := b.sites[r.IntN(len(b.sites))]
		in, at := b.bundle(p, s)
		if !edit(&in) {
			continue
		}
		if err := isa.Encode(p.Level, &in, (*isa.Bundle)(at)); err != nil {
			continue
		}
		return &mutant{what: fmt.Sprintf("%s: %s of %s bundle %d", b.model, what, target.Sequencers[s.engine], s.pc), oracle: oracle, pkg: p}
	}
	return nil
}

func dropWait(r *rand.Rand, b *base) *mutant {
	return b.patch(r, "race", "wait", func(in *isa.Inst) bool {
		switch {
		case in.Wait1Mode != isa.WaitNone && r.IntN(2) == 0:
			in.Wait1Mode, in.Wait1Sem, in.Wait1Value = 0, 0, 0
		case in.Sync.WaitMode == isa.WaitGE:
			in.Sync.WaitMode, in.Sync.WaitSem, in.Sync.Value = 0, 0, 0
		default:
			return false
		}
		return true
	})
}

func lowerWait(r *rand.Rand, b *base) *mutant {
	return b.patch(r, "race", "value of a wait", func(in *isa.Inst) bool {
		switch {
		case in.Wait1Mode == isa.WaitGE && r.IntN(2) == 0:
			in.Wait1Value--
		case in.Sync.WaitMode == isa.WaitGE:
			in.Sync.Value--
		default:
			return false
		}
		return true
	})
}

func flipStart(r *rand.Rand, b *base) *mutant {
	return b.patch(r, "numbers", "accumulation flags", func(in *isa.Inst) bool {
		if in.Opcode != isa.OpMatmul || in.Flags&(isa.FlagStart|isa.FlagAccumulate) == 0 {
			return false
		}
		in.Flags ^= isa.FlagStart | isa.FlagAccumulate
		return true
	})
}

// swapAddresses exchanges where two descriptors of equal shape read or write.
func swapAddresses(r *rand.Rand, b *base) *mutant {
	p := b.fresh()
	for range 400 {
		ds := p.Engines[r.IntN(len(p.Engines))].Descs
		if len(ds) < 2 {
			continue
		}
		i, j := r.IntN(len(ds)), r.IntN(len(ds))
		x, y := &ds[i].To, &ds[j].To
		if r.IntN(2) == 0 {
			x, y = &ds[i].From, &ds[j].From
		}
		if x.Var != y.Var || x.Off == y.Off || x.Size != y.Size || x.Step != y.Step || x.Dtype != y.Dtype {
			continue
		}
		x.Off, y.Off = y.Off, x.Off
		return &mutant{what: fmt.Sprintf("%s: addresses of blocks %d and %d", b.model, ds[i].ID, ds[j].ID), oracle: "numbers", pkg: p}
	}
	return nil
}

// reuseSlot lets a transfer complete on the ring slot of the transfer before it in its queue set.
func reuseSlot(r *rand.Rand, b *base) *mutant {
	p := b.fresh()
	for range 100 {
		ds := p.Engines[r.IntN(len(p.Engines))].Descs
		if len(ds) == 0 {
			continue
		}
		d := ds[r.IntN(len(ds))]
		prev := uint8(0)
		for k := range ds {
			if ds[k].Queue == d.Queue && ds[k].ID < d.ID && ds[k].Sem != 0 {
				prev = ds[k].Sem
			}
		}
		own := uint8(0)
		for k := range ds {
			if ds[k].ID == d.ID && ds[k].Sem != 0 {
				own = ds[k].Sem
			}
		}
		if prev == 0 || own == 0 || prev == own {
			continue
		}
		for k := range ds {
			if ds[k].ID == d.ID && ds[k].Sem != 0 {
				ds[k].Sem = prev
			}
		}
		return &mutant{what: fmt.Sprintf("%s: block %d on semaphore %d instead of %d", b.model, d.ID, prev, own), oracle: "race", pkg: p}
	}
	return nil
}

// moveLocation puts an SBUF location on top of another that is live at the same time.
func moveLocation(r *rand.Rand, b *base) *mutant {
	m := b.w.m
	first, last := map[ir.Loc]int{}, map[ir.Loc]int{}
	var locs []ir.Loc
	at := 0
	for _, blk := range m.BlocksOf(m.Entry) {
		for _, i := range m.OrderOf(blk) {
			at++
			for _, a := range m.AllArgs(i) {
				if l := m.LocOf(a); l != 0 && m.Locs.At(l).Space == target.SpaceSB {
					if first[l] == 0 {
						first[l] = at
						locs = append(locs, l)
					}
					last[l] = at
				}
			}
		}
	}
	for range 200 {
		x, y := locs[r.IntN(len(locs))], locs[r.IntN(len(locs))]
		rx, ry := m.Locs.At(x), m.Locs.At(y)
		if x == y || first[x] > last[y] || first[y] > last[x] || rx.Base >= ry.Base+uint8(ry.Parts) || ry.Base >= rx.Base+uint8(rx.Parts) {
			continue
		}
		old := rx.Addr
		rx.Addr = ry.Addr
		if rx.Addr+rx.Bytes > int64(b.gen.SBBytes) {
			rx.Addr = old
			continue
		}
		mu := &mutant{what: fmt.Sprintf("%s: %s over %s", b.model, m.LocName(x), m.LocName(y)), oracle: "placement"}
		mu.place = verify.Placement(m, m.Entry, target.SpaceSB)
		rx.Addr = old
		return mu
	}
	return nil
}
