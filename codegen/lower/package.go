package lower

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Options are what the caller decides about a package.
type Options struct {
	Build string // build string of the header
	Debug bool   // add the tables that lead from bundles to instructions and model operators
	Plain bool   // no compression
	// Digest gives the SHA-256 of a model tensor's bytes where they are at hand; nil or false leaves it zero.
	Digest func(tensor string) ([32]byte, bool)
}

// Stats is the size of what was written.
type Stats struct {
	Bundles     [numEngines]int64 // in the order of target.Sequencers
	Descriptors int64
	Weights     int64 // loads of the stationary operand that were left out
}

const (
	scratchVar = "scratch"
	sbRow      = 1 // rows that neff.NewDef makes
	psumRow    = 2
)

// Package makes the package of a synchronised function. Its streams are encoded when it is written, a section at a time, so
// module, Tail and package must stay as they are until then. Equal modules give equal bytes.
func Package(m *ir.Module, f ir.Func, opt Options, t *Tail) (*neff.Package, Stats, error) {
	var st Stats
	if err := t.begin(m, f); err != nil {
		return nil, st, err
	}
	p := &t.pkg
	*p = neff.Package{Level: m.Gen.Level, Header: neff.NewHeader(headerName(m.Names.String(m.Name)), opt.Build, 0), Files: p.Files[:0]}
	if err := t.define(p, opt); err != nil {
		return nil, st, err
	}
	t.trace = nil
	if opt.Debug {
		t.trace = newTracer(m)
	}
	if err := t.blocksOf(&st); err != nil {
		return nil, st, err
	}
	for k, e := range target.Sequencers {
		n, err := t.walk(e, nil)
		if err != nil {
			return nil, st, err
		}
		st.Bundles[k] = n
		st.Weights += t.weights.saved
		p.Engines[k] = neff.Program{Bundles: n, Descs: t.descs[k], Emit: func(w io.Writer) error {
			got, err := t.walk(e, w)
			if err == nil && got != n {
				err = target.Errorf(target.Bug, "%s: %d bundles were counted and %d written", e, n, got)
			}
			return err
		}}
		st.Descriptors += int64(len(t.descs[k]))
	}
	if t.trace != nil {
		p.Files = append(p.Files, neff.Member{Path: neff.DebugPath, Data: t.trace.bytes()})
	}
	return p, st, nil
}

// Write makes the package of a synchronised function and writes it to out, a temporary file or buffer.
func Write(m *ir.Module, f ir.Func, opt Options, t *Tail, out io.WriteSeeker) (neff.Header, Stats, error) {
	p, st, err := Package(m, f, opt, t)
	if err != nil {
		return neff.Header{}, st, err
	}
	h, err := p.Write(out, opt.Plain)
	return h, st, err
}

// headerName fits a name into the 255 bytes of the header, at the end of a character.
func headerName(s string) string {
	if len(s) <= 255 {
		return s
	}
	n := 255
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// blocksOf makes the descriptor blocks of all engines, in schedule order.
func (t *Tail) blocksOf(st *Stats) error {
	m := t.m
	var blocks [numEngines]uint32
	for k := range t.descs {
		t.descs[k] = t.descs[k][:0]
	}
	for _, b := range m.BlocksOf(t.f) {
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			if !r.Op.IsDMA() || r.Op == ir.OpIndirectLoad {
				continue
			}
			k := r.Engine.SeqIndex()
			blocks[k]++
			var err error
			if t.descs[k], err = t.descriptors(t.descs[k], i, blocks[k]); err != nil {
				c := target.ClassOf(err)
				return target.Errorf(c, "%s (%s): %w", m.InstName(i), r.Op, err)
			}
		}
	}
	return nil
}

// define fills queue sets, variables, tensor map, constants and weights.
func (t *Tail) define(p *neff.Package, opt Options) error {
	m := t.m
	p.Def = neff.NewDef(m.Gen)
	t.queueRow.Reset()
	t.varRow.Reset()
	t.scratch = 0

	// Queue sets in the order that a reader restores: by name.
	queues := make([]ir.Queue, 0, m.Queues.Len())
	for q := ir.Queue(1); int(q) < m.Queues.Len(); q++ {
		queues = append(queues, q)
	}
	slices.SortFunc(queues, func(a, b ir.Queue) int {
		return cmp.Compare(m.Names.String(m.Queues.At(a).Name), m.Names.String(m.Queues.At(b).Name))
	})
	for _, q := range queues {
		r := m.Queues.At(q)
		row := neff.Queue{Name: m.Names.String(r.Name), NumQueues: int(r.NumQueues), Owner: r.Owner}
		switch r.Dir {
		case ir.QueueLoad:
			row.Type = neff.QueueIn
		case ir.QueueStore:
			row.Type = neff.QueueOut
		default:
			row.Type = neff.QueueData
		}
		for s := range int(m.SemaphoresPerQueue) {
			row.Semaphores = append(row.Semaphores, r.SemBase+uint8(s))
		}
		t.queueRow.Set(q, uint32(len(p.Def.Queues)))
		p.Def.Queues = append(p.Def.Queues, row)
	}

	var scratch int64
	for _, s := range m.SetsOf(t.f) {
		r := m.Sets.At(s)
		first, n := m.LocsOf(s)
		if n == 0 || m.Locs.At(first).Space.OnChip() {
			continue
		}
		if m.Locs.At(first).Space != target.SpaceDRAM {
			continue
		}
		if err := t.variable(p, s, r, first, n, &scratch, opt); err != nil {
			return err
		}
	}
	if scratch > 0 {
		t.scratch = uint32(len(p.Def.Vars))
		p.Def.Vars = append(p.Def.Vars, neff.Var{Name: scratchVar, Type: neff.VarTmpBuf, ID: t.scratch, Size: scratch})
		for _, s := range m.SetsOf(t.f) {
			first, n := m.LocsOf(s)
			for l := first; n > 0 && l < first+ir.Loc(n); l++ {
				if m.Locs.At(l).Space == target.SpaceDRAM && t.varRow.Get(l) == 0 {
					t.varRow.Set(l, t.scratch)
				}
			}
		}
	}
	for _, a := range m.AliasRows() {
		in, out := m.Sets.At(m.Locs.At(a.A).Set), m.Sets.At(m.Locs.At(a.B).Set)
		if in.Kind.IsOutput() {
			in, out = out, in
		}
		if !in.Kind.IsInput() || !out.Kind.IsOutput() {
			continue
		}
		p.Tensors.Aliases = append(p.Tensors.Aliases, neff.Alias{Input: t.varName(in), Output: t.varName(out)})
	}
	return nil
}

// variable defines the variable of one DRAM tensor; Internal ones share the scratch.
func (t *Tail) variable(p *neff.Package, s ir.Set, r *ir.SetRow, first ir.Loc, n int, scratch *int64, opt Options) error {
	m := t.m
	bytes := func(l ir.Loc) int64 { return m.Locs.At(l).Bytes * int64(max(1, m.Locs.At(l).Parts)) }
	name := t.varName(r)
	v := neff.Var{Name: name, ID: uint32(len(p.Def.Vars)), Size: bytes(first)}
	list := &p.Tensors.Inputs
	switch {
	case r.Kind.IsInternal():
		for l := first; l < first+ir.Loc(n); l++ {
			if lr := m.Locs.At(l); lr.Flags&ir.LocAllocated != 0 {
				*scratch = max(*scratch, lr.Addr+bytes(l))
			}
		}
		return nil
	case r.Kind.IsInput():
		v.Type = neff.VarInput
	case r.Kind.IsOutput():
		v.Type = neff.VarOutput
		list = &p.Tensors.Outputs
	case r.Kind == ir.KindConst:
		if err := t.constant(p, &v, s, r, opt); err != nil {
			return err
		}
		list = nil
	default:
		return target.NotSupported(r.Kind.String(), "%s: tensors of kind %s have no place in a package", name, r.Kind)
	}
	if n != 1 {
		return target.NotSupported(r.Kind.String(), "%s: a tensor of kind %s with %d placements; one is possible", name, r.Kind, n)
	}
	if list != nil {
		*list = append(*list, neff.Tensor{Name: name, Dtype: r.Dtype.String(), Shape: slices.Clone(m.Ints.Of(r.Shape)), Size: v.Size})
	}
	t.varRow.Set(first, v.ID)
	p.Def.Vars = append(p.Def.Vars, v)
	return nil
}

// varName is the variable of a DRAM tensor: the name of its placement, by which instructions refer to it, or the tensor's own.
func (t *Tail) varName(r *ir.SetRow) string {
	if r.Count > 0 {
		if n := t.m.Locs.At(r.First).Name; n != 0 {
			return t.m.Names.String(n)
		}
	}
	return t.m.Names.String(r.Name)
}

// constant is a file variable: its bytes when the module has them, else an entry of weights.json.
func (t *Tail) constant(p *neff.Package, v *neff.Var, s ir.Set, r *ir.SetRow, opt Options) error {
	m := t.m
	v.Type = neff.VarFile
	if r.Const == 0 {
		return target.Errorf(target.User, "constant %s has no data", v.Name)
	}
	c := m.Consts.At(r.Const)
	if c.Kind == ir.ConstEmbedded {
		data := m.Bytes.Of(c.Data)
		if int64(len(data)) != v.Size {
			return target.Errorf(target.Bug, "constant %s of %d bytes has %d bytes of data", v.Name, v.Size, len(data))
		}
		descr, ok := neff.NPYDescr(r.Dtype)
		if !ok {
			return target.NotSupported(r.Dtype.String(), "constant %s: type %s cannot be stored", v.Name, r.Dtype)
		}
		shape := slices.Clone(m.Ints.Of(r.Shape))
		elems := int64(r.Dtype.Size())
		for _, d := range shape {
			elems *= d
		}
		if elems != v.Size {
			shape = []int64{v.Size / int64(r.Dtype.Size())}
		}
		return p.AddConst(v, neff.Array{Descr: descr, Shape: shape, Data: data})
	}
	w := neff.Weight{Var: v.Name, Tensor: m.Names.String(c.Tensor), Shape: slices.Clone(m.Ints.Of(c.Shape)), Dtype: c.Dtype.String()}
	if opt.Digest != nil {
		if d, ok := opt.Digest(w.Tensor); ok {
			w.SHA256 = d
		}
	}
	steps, err := ParseRecipe(m.Names.String(c.Recipe))
	if err != nil {
		return target.Errorf(target.Bug, "constant %s (%s): %w", v.Name, s, err)
	}
	w.Recipe = steps
	p.Weights = append(p.Weights, w)
	return nil
}

// ParseRecipe reads the steps of a constant: `reshape 4,128`, `permute 1,0`, `slice lo:hi,…`, `pad lo:hi,…`, `cast bfloat16`, joined by
// "; ".
func ParseRecipe(s string) ([]neff.RecipeStep, error) {
	if s == "" {
		return nil, nil
	}
	var out []neff.RecipeStep
	for text := range strings.SplitSeq(s, "; ") {
		word, rest, _ := strings.Cut(text, " ")
		var step neff.RecipeStep
		pairs := false
		switch word {
		case "reshape":
			step.Op = neff.RecipeReshape
		case "permute":
			step.Op = neff.RecipePermute
		case "slice":
			step.Op, pairs = neff.RecipeSlice, true
		case "pad":
			step.Op, pairs = neff.RecipePad, true
		case "cast":
			step.Op, step.Dtype = neff.RecipeCast, rest
			if _, ok := target.ParseDtype(rest); !ok {
				return nil, target.Errorf(target.Bug, "recipe step %q: unknown type", text)
			}
			out = append(out, step)
			continue
		default:
			return nil, target.Errorf(target.Bug, "recipe step %q is unknown", text)
		}
		for item := range strings.SplitSeq(rest, ",") {
			lo, hi, ok := strings.Cut(item, ":")
			if ok != pairs {
				return nil, target.Errorf(target.Bug, "recipe step %q: bad entry %q", text, item)
			}
			n, err := strconv.ParseInt(lo, 10, 64)
			if err != nil {
				return nil, target.Errorf(target.Bug, "recipe step %q: %w", text, err)
			}
			step.A = append(step.A, n)
			if !pairs {
				continue
			}
			if n, err = strconv.ParseInt(hi, 10, 64); err != nil {
				return nil, target.Errorf(target.Bug, "recipe step %q: %w", text, err)
			}
			step.B = append(step.B, n)
			if step.Op == neff.RecipeSlice {
				step.C = append(step.C, 1)
			}
		}
		out = append(out, step)
	}
	return out, nil
}
