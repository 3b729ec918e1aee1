package tile

import (
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxEmbedded is the largest constant that travels in the program; larger ones stay with the model and are named.
const maxEmbedded = 64 << 10

// uniqueName is base, or base with a number when a tensor has that name. base is a name of the module.
func (l *lowering) uniqueName(base arena.Name) arena.Name {
	if base == 0 {
		base = l.m.Names.Intern("t")
	}
	n := base
	for k := int64(2); l.taken.Get(n); k++ {
		l.spelled = append(l.m.Names.Append(l.spelled[:0], base), '_')
		l.spelled = strconv.AppendInt(l.spelled, k, 10)
		n = l.m.Names.InternBytes(l.spelled)
	}
	l.taken.Set(n, true)
	return n
}

// tileName is a fresh name for a location that serves the operator of v.
func (l *lowering) tileName(n graph.Node) arena.Name {
	if l.counting {
		return 0
	}
	l.seq++
	return l.m.Names.Derived(l.sourceName(n), arena.DeriveTile, l.seq)
}

// sourceName is the operator's name in the module.
func (l *lowering) sourceName(n graph.Node) arena.Name {
	if x := l.sources.Get(n); x != 0 {
		return x
	}
	x := l.renamed(l.g.Nodes.At(n).Name)
	if x == 0 {
		x = l.m.Names.Intern(n.String())
	}
	l.sources.Set(n, x)
	return x
}

// renamed is a name of the graph in the module.
func (l *lowering) renamed(x arena.Name) arena.Name {
	l.spelled = l.g.Names.Append(l.spelled[:0], x)
	return l.m.Names.InternBytes(l.spelled)
}

// declare makes the tensors of the model's inputs, and gives the values that are outputs the output's tensor.
func (l *lowering) declare() {
	g := l.g
	for i, p := range g.Params(g.Entry) {
		dt, _ := machineType(g.Dtype(p))
		loc := l.b.DRAM(l.uniqueName(l.sourceName(p)), ir.KindExternalInput, dt, g.Dims(p)...)
		if v := l.params[i]; v != 0 {
			l.homes.Set(v, home{loc: loc})
		}
	}
	for i := range l.outs {
		o := &l.outs[i]
		base := l.renamed(o.name)
		if base == 0 {
			base = l.m.Names.Intern("output" + strconv.Itoa(i))
		}
		dims := g.Dims(o.node)
		o.loc = l.b.DRAM(l.uniqueName(base), ir.KindExternalOutput, o.dt, dims...)
		if o.v.root == 0 {
			continue
		}
		if o.done {
			l.homes.Set(o.v.root, home{loc: o.loc})
		}
	}
}

// claimOutputs marks the outputs that are the home of the value that they show: the first of each value that a unit makes,
// if it shows the whole in order. The others are copied.
func (l *lowering) claimOutputs() {
	for i := range l.outs {
		o := &l.outs[i]
		if v := o.v.root; v != 0 && l.vals.At(v).unit != 0 && !l.homed.Get(v) && o.v.isDense(product(l.shapeOf(v))) {
			o.done = true
			l.homed.Set(v, true)
		}
	}
}

// homeOf is where a value lives in DRAM, made when first asked for.
func (l *lowering) homeOf(v val) home {
	if h := l.homes.Get(v); h.loc != 0 || l.counting {
		return h
	}
	r := l.vals.At(v)
	h := home{}
	if r.op == vConst {
		h.loc = l.declareConst(r)
	} else {
		shape := l.shapeOf(v)
		h.loc = l.b.DRAM(l.tileName(r.src), ir.KindInternal, r.dt, shape...)
	}
	l.homes.Set(v, h)
	return h
}

func (l *lowering) declareConst(r *valueRow) ir.Loc {
	c := &l.consts[r.aux]
	m := l.m
	row := ir.ConstRow{Dtype: r.dt}
	dims := l.ints.Of(c.dims)
	var name arena.Name
	if c.node == 0 {
		name = l.tileName(r.src)
		row.Kind, row.Data = ir.ConstEmbedded, m.Bytes.AddSlice(l.own.Of(c.bytes))
	} else {
		name = l.uniqueName(l.sourceName(c.node))
		row.Shape = m.Ints.AddSlice(l.g.Dims(c.node))
		if c.recipe == 0 {
			dims = l.g.Dims(c.node)
		} else {
			row.Recipe = c.recipe
		}
		if data := l.embeddable(c.node); data != nil && c.recipe == 0 {
			row.Kind, row.Data = ir.ConstEmbedded, m.Bytes.AddSlice(data)
		} else {
			row.Kind, row.Tensor = ir.ConstModel, m.Names.Intern(l.g.ConstRef(c.node))
		}
	}
	if c.node == 0 {
		row.Shape = m.Ints.AddSlice(dims)
	}
	loc := l.b.DRAM(name, ir.KindConst, r.dt, dims...)
	m.Sets.At(m.Locs.At(loc).Set).Const = m.Consts.Add(row)
	return loc
}

// embeddable is the data of a model constant that is small enough to travel in the package, nil for any other: large ones, and
// those that the model's file leaves out without a seed.
func (l *lowering) embeddable(n graph.Node) []byte {
	row := l.g.Nodes.At(n)
	if l.g.TypeBytes(row.Type) > maxEmbedded {
		return nil
	}
	if c := l.g.Consts.At(row.Const); c.Kind == graph.ConstElided && c.Seed == 0 {
		return nil
	}
	data, err := graph.Materialise(l.g, n)
	if err != nil {
		l.fail(err)
	}
	return data
}

// finishOutput copies what an output shares with an input, a constant or another output.
func (l *lowering) finishOutput(o *output) {
	if o.done || o.v.root == 0 {
		return
	}
	l.at(o.node)
	l.copyOut(o.v, home{loc: o.loc}, dense(0, o.v.shape()))
}

// copyOut writes the elements of src to dst, a view on a DRAM tensor: by one kind of transfer, or by filling from a tile.
func (l *lowering) copyOut(src view, to home, dst view) {
	r := l.vals.At(src.root)
	if r.op == vSplat {
		l.fillDRAM(r, to, dst)
		return
	}
	from := l.homeOf(src.root)
	// Axes of both sides together; chip stands for the destination.
	var buf [maxRank]axis
	axes := buf[:0]
	for i := range src.n {
		if src.dims[i] == 1 {
			continue
		}
		a := axis{n: src.dims[i], mem: src.step[i], chip: dst.step[i]}
		if k := len(axes) - 1; k >= 0 && axes[k].mem == a.mem*a.n && axes[k].chip == a.chip*a.n {
			axes[k].n *= a.n
			axes[k].mem, axes[k].chip = a.mem, a.chip
			continue
		}
		axes = append(axes, a)
	}
	outer := max(0, len(axes)-5)
	if l.counting {
		n := int64(1)
		for _, a := range axes[:outer] {
			n *= a.n
		}
		l.count.insts += n
		l.count.descriptors += n * descriptors(len(axes)-outer, axes[outer:])
		return
	}
	var idx [maxRank]int64
	for {
		so, do := from.off+src.off, to.off+dst.off
		for i := range outer {
			so += idx[i] * axes[i].mem
			do += idx[i] * axes[i].chip
		}
		var sp, dp [5]ir.Pair
		n := 0
		bytes := int64(r.dt.Size())
		for _, a := range axes[outer:] {
			if a.n > math.MaxUint32 || a.mem > math.MaxInt32 || a.mem < math.MinInt32 || a.chip > math.MaxInt32 {
				l.fail(target.Errorf(target.Limit, "%s: a copy steps %d elements %d times; a pattern holds 31 bits", l.g.NodeString(l.cur), a.mem, a.n))
				return
			}
			sp[n], dp[n] = ir.Pair{Step: int32(a.mem), Num: uint32(a.n)}, ir.Pair{Step: int32(a.chip), Num: uint32(a.n)}
			bytes *= a.n
			n++
		}
		if n == 0 {
			sp[0], dp[0] = ir.Pair{Step: 1, Num: 1}, ir.Pair{Step: 1, Num: 1}
			n = 1
		}
		l.emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{l.mem(from.loc, r.dt, so, sp[:n]...)}, []ir.Arg{l.mem(to.loc, r.dt, do, dp[:n]...)})
		l.stats.Loaded += bytes
		l.stats.Saved += bytes
		if !odometer(idx[:outer], axes[:outer]) {
			return
		}
	}
}

// fillDRAM stores a repeated element over dst from one tile that a Memset made.
func (l *lowering) fillDRAM(r *valueRow, to home, dst view) {
	d := newDomain(dst.shape())
	for i := range d.n {
		d.grp[i] = groupP
	}
	sq := dst.squeezed()
	// Long inner axes are walked along partitions' rows, so that few transfers are needed.
	if d.n > 0 && d.dims[d.n-1] <= maxColumns {
		d.grp[d.n-1] = groupF
	}
	p := planTiles(&d, 128, maxColumns, 0)
	v := d.conform(&sq, nil)
	var t tile
	p.chunk(&d, 0, &t)
	dt := r.dt
	loc := l.sb(l.tileName(l.cur), dt, int(p.height), t.w)
	l.memset(l.cols(loc, dt, p.height, 0, t.w), r.bits)
	l.repeat(p.tiles(), func(r int64) {
		p.row(&t, r)
		var partBuf, freeBuf [maxRank]axis
		part := axesOf(&d, &v, &t, partBuf[:0], groupP)
		free := denseChip(axesOf(&d, &v, &t, freeBuf[:0], groupF))
		l.transfer(store, to, dt, tileOff(&d, &v, &t), part, t.p0, t.pn, free, side{loc: loc, dt: dt})
	})
}
