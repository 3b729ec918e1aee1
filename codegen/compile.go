package codegen

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/tile"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/ssa/sched"
)

// Result is what a compile reports beside the package.
type Result struct {
	Name   string           `json:"name"`
	Target string           `json:"target"`
	Bytes  int64            `json:"package_bytes"`
	Insts  int              `json:"instructions"` // entering the plane
	Tile   tile.Stats       `json:"tile"`
	PSUM   memalloc.Metrics `json:"-"`
	SB     memalloc.Metrics `json:"-"`
	HBM    HBM              `json:"-"`
	// DRAM is by address space.
	DRAM    [ir.NumAddrSpaces]memalloc.Metrics `json:"-"`
	Metrics []Metric                           `json:"metrics"` // of a compile that came to its end
	Timing  []PassTiming                       `json:"passes"`
	Elapsed time.Duration                      `json:"ns"`
	Plane   time.Duration                      `json:"plane_ns"` // from the module to the package
}

// Compile runs the passes that the options select on a program and writes the package to out. A module that came as such
// is changed in place. The result is valid also beside an error, as far as the compile went.
func (w *Worker) Compile(ctx context.Context, p *Program, opt *Options, out io.WriteSeeker) (*Result, error) {
	start := time.Now()
	gen, names, err := opt.resolve(p.generation())
	if err != nil {
		return nil, err
	}
	w.gen, w.opt, w.out, w.model = gen, opt, out, nil
	w.Timing, w.counters, w.want, w.reports, w.schedule = w.Timing[:0], nil, nil, memReports{}, sched.Result{}
	res := &Result{Name: p.Name, Target: gen.Name}
	defer func() {
		res.Timing, res.Elapsed = w.Timing, time.Since(start)
		res.PSUM, res.SB, res.DRAM, res.HBM = w.reports.psum, w.reports.sb, w.reports.dram, w.reports.hbm
	}()
	if err := w.begin(p, res); err != nil {
		return res, err
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	res.Insts = w.instCount()
	if res.Insts > 0 && int64(res.Insts) > opt.MaxInstructions {
		return res, target.Errorf(target.Limit, "the module has %d instructions; --max-instruction-limit is %d", res.Insts, opt.MaxInstructions)
	}
	w.transfersBefore = w.countTransfers()
	w.fixed.Remember(w.m)
	if p.Module != nil {
		if err := w.checkClaims(); err != nil {
			return res, err
		}
	}
	if opt.Verify {
		if err := w.verifyNow(); err != nil {
			return res, err
		}
	}
	if opt.Simulate {
		if err := w.simulateNow(); err != nil {
			return res, err
		}
	}
	plane := time.Now()
	if err := w.runPlane(ctx, names); err != nil {
		return res, err
	}
	res.Plane = time.Since(plane)
	w.addMetrics(res)
	res.Bytes, err = out.Seek(0, io.SeekEnd)
	return res, err
}

// generation is what a module in tiles says it is for, nil for a model.
func (p *Program) generation() *target.Generation {
	if p.Module == nil {
		return nil
	}
	return p.Module.Gen
}

// begin makes the module of the program: tiles from a graph, or the module as it is. It has a row of its own in the timing.
func (w *Worker) begin(p *Program, res *Result) error {
	if p.Module != nil {
		w.m = p.Module
		if w.m.Entry == 0 {
			return target.Errorf(target.User, "the module has no function")
		}
		if w.m.Gen == nil {
			w.m.Gen = w.gen
		}
		if w.m.Gen != w.gen {
			return target.Errorf(target.User, "the tiles are for %s, and --target is %s; leave --target out or give %s", w.m.Gen.Name, w.gen.Name, w.m.Gen.Name)
		}
		if w.m.Name == 0 {
			w.m.Name = w.m.Names.Intern(p.Name)
		}
		return nil
	}
	if w.Progress != nil {
		w.Progress(Event{Pass: "tile"})
	}
	start, before := time.Now(), allocated()
	err := w.guarded(&Pass{Name: "tile", Run: func(w *Worker) error {
		g := p.Graph
		p.Seed(w.opt.SeedWeight)
		canon, err := graph.Canonical(g)
		if err != nil {
			return err
		}
		w.m = &w.own
		w.model = canon
		hbm := w.gen.HBMBytes()
		if w.opt.HBMGiB > 0 {
			hbm = int64(w.opt.HBMGiB) << 30
		}
		w.tile, err = w.tiles.Lower(canon, w.gen, tile.Options{
			TileSBBytes: int64(w.opt.TileSBBytes), MaxInstructions: w.opt.MaxInstructions, HBMBytes: hbm,
			Level: tileLevels[w.opt.TileLevel],
		}, w.m)
		return err
	}})
	w.Timing = append(w.Timing, PassTiming{Name: "tile", Time: time.Since(start), Bytes: allocated() - before, Insts: w.instCount()})
	res.Tile = w.tile
	if err == nil && w.m.Name == 0 {
		w.m.Name = w.m.Names.Intern(p.Name)
	}
	return err
}

// emit encodes and packages.
func emit(w *Worker) error {
	_, st, err := lower.Write(w.m, w.m.Entry, lower.Options{Build: Version(), Plain: !w.opt.Compressed, Debug: w.opt.Debug}, &w.tail, w.out)
	if err != nil {
		return err
	}
	bundles := int64(0)
	for _, n := range st.Bundles {
		bundles += n
	}
	w.reports.hbm.Code = bundles * bundleBytes
	w.Count("bundles", bundles)
	w.Count("descriptors", st.Descriptors)
	w.Count("weight_loads_saved", st.Weights)
	return nil
}

// simInput is the data of an input of the IR simulator: small values of the set's type, integers below top, the same for the
// same name and size.
func simInput(m *ir.Module, name string, size, top int64) ([]byte, error) {
	for _, r := range m.Sets.All() {
		if r.Kind.IsInput() && m.Names.String(r.Name) == name {
			return patternBytes(r.Dtype, size, top), nil
		}
	}
	return nil, fmt.Errorf("no input %q", name)
}

// simTop is how many values the integers of each input may take in the IR simulator: few, and as indices only those that are in
// range for the model. A module says nothing of what its integers are for; where it gathers rows all are 0.
func (w *Worker) simTop() func(name string) int64 {
	const few = 7
	if w.model == nil {
		top := int64(few)
		for _, r := range w.m.Insts.All() {
			if r.Op == ir.OpIndirectLoad {
				top = 1
			}
		}
		return func(string) int64 { return top }
	}
	tops := map[string]int64{}
	for p, b := range graph.IndexBounds(w.model) {
		tops[w.model.NodeName(p)] = min(b, few)
	}
	return func(name string) int64 {
		if t, ok := tops[name]; ok {
			return t
		}
		return few
	}
}

// patternBytes fills size bytes with a pattern that is finite in every float type and small in every integer type.
func patternBytes(d target.Dtype, size, top int64) []byte {
	out := make([]byte, size)
	gd, ok := machineTypes[d.String()]
	if !ok {
		return out
	}
	n := gd.Size()
	for i := int64(0); (i+1)*int64(n) <= size; i++ {
		v := float64((i*7+3)%13) / 4
		if gd.IsFloat() && i%2 == 1 {
			v = -v
		}
		if !gd.IsFloat() {
			v = float64(i % top)
		}
		bits, _ := graph.EncodeFloat(gd, v)
		for b := range n {
			out[i*int64(n)+int64(b)] = byte(bits >> (8 * b))
		}
	}
	return out
}

// Seed gives weights that the model's file does not hold the seeded values of a compile with the same seed; 0 leaves them.
func (p *Program) Seed(seed uint64) {
	if seed != 0 && p.Graph != nil {
		graph.SeedWeights(p.Graph, seed)
	}
}
