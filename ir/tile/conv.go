package tile

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// convTiles is the operands of the convolution that the current unit starts from. Input channels lie on partitions, each
// with its padded map; a tap of the window is an access pattern on the map, and no data is copied for it.
//
// Few input channels would leave most of the array idle: the window's positions along one axis are stacked on partitions as
// well, each with the rows of the map that it meets, so that a product folds them all and taps remain over the other axes.
//
// Groups are packed: pack of them share one product whose stationary operand is block diagonal. A group of one input channel
// is no product: the Vector engine multiplies and adds each tap.
type convTiles struct {
	spans     []span // images and spatial axes, in the order of the domain
	tap       []axis // the window in the weights, an axis a span: positions, step
	taps      int64
	ci, co    int64 // contracted rows and output channels of a group; rows are the input channels, times those of stack
	stack     stacked
	pack      int64
	kt        int64 // tiles of input channels
	depthwise bool
	splat     bool // the weights are one repeated element
	keep      bool // weights stay for all tiles of the unit
	maps      []mapTile
	stays     *reached // maps that stay in SBUF: at, or nil
	at        reached
	bytes     int64 // a partition, of maps and weights
	// Weights of row tiles, one location a K tile, and where those of a row tile begin; 0: they are not there.
	weights  []ir.Loc
	weightAt []uint32
	cuts     []convPiece // of the chunk
}

// fewChannels is the most input channels whose window is stacked. Above it, or beyond 128 partitions, the copies that stacking
// takes, one transfer a position, cost more than the matmuls that it saves.
const fewChannels = 8

// stacked is the window axis that lies on partitions beside the channels: position i on partitions i·channels. Positions that
// meet the same rows of the operand, only for later outputs, hold the same data shifted: the first fresh of them are loaded,
// with extra rows at the end, and the others copied from those on chip.
type stacked struct {
	on    bool
	span  int // of convTiles.spans; as a span it is the outputs and the extra rows, one step apart
	w     graph.Window
	wmem  int64 // from one position to the next in the weights
	fresh int64
}

// shift is the outputs by which position i is ahead of the one that it is copied from.
func (k *stacked) shift(i int64) int64 { return (i - i%k.fresh) * k.w.RhsDilate / k.w.Stride }

// stackWindow chooses the axis with the most positions that fit.
func (c *convTiles) stackWindow(info *convInfo) {
	c.stack = stacked{}
	k := &c.stack
	if info.groups != 1 || c.ci > fewChannels {
		return
	}
	best := int64(1)
	for i := range c.spans {
		if w := &c.spans[i].w; w.Size > best && w.Size*c.ci <= 128 && w.LhsDilate == 1 {
			*k = stacked{on: true, span: i, w: *w, wmem: c.tap[i].mem}
			best = w.Size
		}
	}
	if !k.on {
		return
	}
	g, r := k.w.Stride, k.w.RhsDilate
	for r != 0 {
		g, r = r, g%r
	}
	k.fresh = min(best, k.w.Stride/g)
	c.spans[k.span].w = graph.Window{Size: 1 + k.shift(best-1), Stride: 1, LhsDilate: 1, RhsDilate: 1}
	c.tap[k.span] = axis{n: 1}
	c.taps /= best
	c.ci *= best
}

// loadStacked makes the map of a chunk with the rows of each window position on partitions of its own.
func (l *lowering) loadStacked(info *convInfo) mapTile {
	c := &l.ct
	k := &c.stack
	r := l.vals.At(info.x.root)
	s := &c.spans[k.span]
	ch := info.x.dims[1]
	size := c.spans[0].pitch * c.spans[0].len
	loc := l.sb(l.tileName(r.src), r.dt, int(c.ci), size)

	// The walk of a fresh position: the same for all along the other axes.
	var free [maxRank]axis
	var first [maxRank]int64
	chip, whole := int64(0), true
	for i := range c.spans {
		o := &c.spans[i]
		o.walk = o.pitch
		if i == k.span {
			continue
		}
		start := o.o0*o.w.Stride - o.w.PadLow
		q0 := max(0, ceilDiv(start, o.w.LhsDilate))
		q1 := min(o.n-1, floorDiv(start+o.len-1, o.w.LhsDilate))
		free[i] = axis{n: max(0, q1-q0+1), mem: o.mem, chip: o.w.LhsDilate * o.pitch}
		first[i] = q0
		chip += (q0*o.w.LhsDilate - start) * o.pitch
		whole = whole && free[i].n == o.len
	}
	// Rows [h0, h1] of position i exist; row 0 is element at of the operand.
	bounds := func(i int64) (h0, h1, at int64) {
		at = s.o0*k.w.Stride + i*k.w.RhsDilate - k.w.PadLow
		return max(0, ceilDiv(-at, k.w.Stride)), min(s.len-1, floorDiv(s.n-1-at, k.w.Stride)), at
	}
	for i := range k.fresh {
		h0, h1, _ := bounds(i)
		whole = whole && h0 == 0 && h1 == s.len-1
	}
	if !whole {
		l.memset(l.cols(loc, r.dt, k.fresh*ch, 0, size), 0)
	}
	for i := range k.fresh {
		h0, h1, at := bounds(i)
		free[k.span] = axis{n: max(0, h1-h0+1), mem: k.w.Stride * s.mem, chip: s.pitch}
		first[k.span] = at + h0*k.w.Stride
		if !slices.ContainsFunc(free[:len(c.spans)], func(a axis) bool { return a.n == 0 }) {
			l.stackRow(info, free[:len(c.spans)], first[:len(c.spans)], side{loc: loc, dt: r.dt, start: i * ch, off: chip + h0*s.pitch})
		}
	}
	var buf [5]ir.Pair
	pairs := buf[:0]
	for i := range k.span {
		if o := &c.spans[i]; o.len > 1 {
			pairs = append(pairs, ir.Pair{Step: int32(o.pitch), Num: uint32(o.len)})
		}
	}
	pairs = append(pairs, ir.Pair{Step: 1, Num: uint32(s.on * s.pitch)})
	for i := k.fresh; i < k.w.Size; i++ {
		from := l.chip(loc, r.dt, int(i%k.fresh*ch), int(ch), k.shift(i)*s.pitch, pairs...)
		l.emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{from}, []ir.Arg{l.chip(loc, r.dt, int(i*ch), int(ch), 0, pairs...)})
	}
	return mapTile{loc, 0}
}

// stackRow moves the positions from first on along the axes free to the partitions of one window position: from DRAM, or from
// where the operand stays.
func (l *lowering) stackRow(info *convInfo, free []axis, first []int64, to side) {
	c := &l.ct
	x := &info.x
	ch := x.dims[1]
	if c.stays == nil {
		off := x.off
		for i := range free {
			off += first[i] * c.spans[i].mem
		}
		l.transfer(load, l.homeOf(x.root), to.dt, off, []axis{{n: ch, mem: x.step[1]}}, 0, ch, free, to)
		return
	}
	res := l.staysAt(x.root)
	off := c.stays.off + c.stays.tile0*res.tile
	var fromBuf, intoBuf [5]ir.Pair
	from, into := fromBuf[:0], intoBuf[:0]
	for i := range free {
		step := c.stays.step[i]
		off += first[i] * step
		if i == c.stack.span {
			step *= c.stack.w.Stride
		}
		if free[i].n > 1 {
			from = append(from, ir.Pair{Step: int32(step), Num: uint32(free[i].n)})
			into = append(into, ir.Pair{Step: int32(free[i].chip), Num: uint32(free[i].n)})
		}
	}
	if len(from) == 0 {
		from, into = append(from, ir.Pair{Step: 1, Num: 1}), append(into, ir.Pair{Step: 1, Num: 1})
	}
	l.emit(ir.OpDMACopy, target.EngineSP, []ir.Arg{l.chip(res.loc, to.dt, 0, int(ch), off, from...)},
		[]ir.Arg{l.chip(to.loc, to.dt, int(to.start), int(ch), to.off, into...)})
}

// startConv gives the width of a chunk and the height of a tile.
func (l *lowering) startConv(u *unit, width int64) (int64, int64) {
	d := &u.dom
	r := l.vals.At(u.root)
	info := &l.convs[r.aux]
	c := &l.ct
	*c = convTiles{spans: c.spans[:0], tap: c.tap[:0], maps: c.maps[:0], weights: c.weights[:0], weightAt: c.weightAt[:0], cuts: c.cuts[:0], taps: 1}
	var labelBuf [maxRank]int
	labels := labelBuf[:0]
	for i := range info.outAxes {
		if i != 1 {
			labels = append(labels, i)
		}
	}
	slices.SortFunc(labels, func(a, b int) int { return info.outAxes[a] - info.outAxes[b] })
	for _, k := range labels {
		s := span{w: graph.Window{Size: 1, Stride: 1, LhsDilate: 1, RhsDilate: 1}, n: info.x.dims[k], mem: info.x.step[k], at: info.outAxes[k]}
		tap := axis{n: 1}
		if k > 0 {
			s.w = info.ws[k-2]
			tap = axis{n: s.w.Size, mem: info.w.step[k]}
		}
		c.spans = append(c.spans, s)
		c.tap = append(c.tap, tap)
		c.taps *= tap.n
	}
	c.ci, c.co = info.w.dims[0], info.w.dims[1]/info.groups
	c.kt = (c.ci + 127) / 128
	c.splat = l.isSplat(&info.w)
	c.stackWindow(info)
	c.depthwise = c.ci == 1 && info.groups > 1
	height := int64(128)
	c.pack = 1
	if info.groups > 1 && !c.depthwise {
		switch {
		case c.co > 128:
			for height = 128; c.co%height != 0; height-- {
			}
		case c.ci > 128 || c.splat:
			height = c.co
		default:
			c.pack = min(info.groups, 128/max(c.ci, c.co))
			height = c.pack * c.co
		}
	}
	xs, wsz := int64(l.vals.At(info.x.root).dt.Size()), int64(l.vals.At(info.w.root).dt.Size())
	limit := min(maxMap, l.budget/4/c.kt/xs)
	if !u.fullRow {
		width = max(1, width/2)
	}
	got := mapWidth(d, c.spans, width, limit)
	if got == 0 || u.fullRow && got < d.freeElems() {
		l.unsupported(r.src, "windows of %d elements do not fit a partition (%d)", c.taps, limit)
		return 1, height
	}
	c.stays = nil
	if s := l.staysAt(info.x.root); s != nil {
		if at, ok := c.reach(s, info); ok {
			c.at, c.stays = at, &c.at
		}
	}
	var first tile
	p := planTiles(d, height, got, bankColumns)
	p.chunk(d, 0, &first)
	c.bytes = mapOf(c.spans, &first)*c.kt*xs + min(l.budget/4, c.kt*c.taps*min(c.co*info.groups, height*2)*wsz)
	c.keep = c.kt*c.taps*(c.co*info.groups)*wsz <= l.budget/4
	return got, height
}

// reach finds the operand in SBUF, its channels on partitions as one group's product or the Vector engine needs them.
func (c *convTiles) reach(s *resident, info *convInfo) (reached, bool) {
	n := info.x.dims[1]
	if info.groups > 1 && !(c.depthwise && c.co == 1) {
		return reached{}, false
	}
	part := []axis{{n: n, mem: info.x.step[1]}}
	return s.reachMap(info.x.off, part, c.spans, min(128, n))
}

// inputRow is the first input channel of the tile's rows, and how many it reads.
func (c *convTiles) inputRow(t *tile) (first, n int64) {
	g := t.p0 / c.co
	if c.pack > 1 {
		return g * c.ci, (t.pn + c.co - 1) / c.co * c.ci
	}
	return g * c.ci, c.ci
}

// convChunk loads the maps of a chunk: once for all tiles when there is one group, else for each tile.
func (l *lowering) convChunk(t *tile, fresh bool) {
	c := &l.ct
	info := &l.convs[l.vals.At(l.u.root).aux]
	if info.groups == 1 && !fresh {
		return
	}
	l.at(l.vals.At(l.u.root).src)
	mapOf(c.spans, t)
	x := &info.x
	off := x.off
	c.maps = c.maps[:0]
	stays := c.stays
	if c.depthwise {
		part := []axis{{n: info.groups, mem: x.step[1]}, {n: c.co}}
		c.maps = append(c.maps, l.loadMap(x.root, off, part, t.p0, t.pn, c.spans, 0, stays))
		return
	}
	if c.stack.on {
		c.maps = append(c.maps, l.loadStacked(info))
		return
	}
	first, n := c.inputRow(t)
	part := []axis{{n: x.dims[1], mem: x.step[1]}}
	l.repeat((n+127)/128, func(k int64) {
		c.maps = append(c.maps, l.loadMap(x.root, off, part, first+k*128, min(128, n-k*128), c.spans, 0, stays))
	})
}

// convWeights loads the stationary tiles of a tile's rows: one location a K tile, tap after tap, each with the tile's output
// channels.
func (l *lowering) convWeights(t *tile) []ir.Loc {
	c := &l.ct
	_, n := c.inputRow(t)
	kt := int((n + 127) / 128)
	at := int(t.p0 / l.plan.height)
	for len(c.weightAt) <= at {
		c.weightAt = append(c.weightAt, 0)
	}
	if i := int(c.weightAt[at]); i != 0 {
		return c.weights[i-1 : i-1+kt]
	}
	info := &l.convs[l.vals.At(l.u.root).aux]
	w := &info.w
	r := l.vals.At(w.root)
	if !c.keep {
		c.weights = c.weights[:0]
	}
	first := len(c.weights)
	l.repeat((n+127)/128, func(i int64) {
		k := i * 128
		var buf [maxRank + 1]axis
		var partBuf [2]axis
		parts := min(128, n-k)
		if c.splat {
			loc := l.sb(l.tileName(r.src), r.dt, int(parts), t.pn)
			l.memset(l.cols(loc, r.dt, parts, 0, t.pn), r.bits)
			c.weights = append(c.weights, loc)
			return
		}
		loc := l.sb(l.tileName(r.src), r.dt, int(parts), c.taps*t.pn)
		c.weights = append(c.weights, loc)
		h := l.homeOf(w.root)
		if c.pack == 1 {
			part := partBuf[:1]
			part[0] = axis{n: c.ci, mem: w.step[0]}
			if c.stack.on {
				part = append(partBuf[:0], axis{n: c.stack.w.Size, mem: c.stack.wmem}, axis{n: info.x.dims[1], mem: w.step[0]})
			}
			l.transfer(load, h, r.dt, w.off+t.p0*w.step[1], part, k, parts, c.tapAxes(buf[:0], w, t.pn, t.pn), side{loc: loc, dt: r.dt})
			return
		}
		l.memset(l.cols(loc, r.dt, parts, 0, c.taps*t.pn), 0)
		for g := int64(0); g*c.co < t.pn; g++ {
			l.transfer(load, h, r.dt, w.off+(t.p0+g*c.co)*w.step[1], []axis{{n: c.ci, mem: w.step[0]}}, 0, c.ci, c.tapAxes(buf[:0], w, c.co, t.pn),
				side{loc: loc, dt: r.dt, start: g * c.ci, off: g * c.co})
		}
	})
	if l.counting { // which may leave out some
		for len(c.weights) < first+kt {
			c.weights = append(c.weights, 0)
		}
	}
	if c.keep {
		c.weightAt[at] = uint32(first + 1)
	}
	return c.weights[first:]
}

// tapAxes appends the taps to free, pitch elements apart, and n output channels of each.
func (c *convTiles) tapAxes(free []axis, w *view, n, pitch int64) []axis {
	s := c.taps * pitch
	for _, a := range c.tap {
		s /= a.n
		free = append(free, axis{n: a.n, mem: a.mem, chip: s})
	}
	return append(free, axis{n: n, mem: w.step[1], chip: 1})
}

// pieces says which span one bank cuts, and how many of its outputs the bank holds; -1 when all of the chunk fits.
func (c *convTiles) pieces(t *tile) (split int, step int64) {
	inner, axes := int64(1), 0
	for i := len(c.spans) - 1; i >= 0; i-- {
		on := c.spans[i].on
		if on > 1 && axes == 3 { // what a moving operand walks
			return i, 1
		}
		if inner*on > bankColumns {
			return i, max(1, bankColumns/inner)
		}
		if on > 1 {
			axes++
		}
		inner *= on
	}
	return -1, 0
}

// piece is a box of the chunk that fits a bank.
type convPiece struct {
	c0, n int64
	at    [maxRank]int64
	num   [maxRank]int64
}

// cut lists the pieces of a chunk in column order.
func (c *convTiles) cut(t *tile) []convPiece {
	split, step := c.pieces(t)
	var buf [maxRank]axis
	outer := buf[:0]
	inner := int64(1)
	for i, s := range c.spans {
		switch {
		case i < split:
			outer = append(outer, axis{n: s.on})
		case i == split:
			outer = append(outer, axis{n: (s.on + step - 1) / step})
		default:
			inner *= s.on
		}
	}
	out := c.cuts[:0]
	var idx [maxRank]int64
	c0 := int64(0)
	for {
		p := convPiece{c0: c0, n: inner}
		for i, s := range c.spans {
			p.num[i] = s.on
			switch {
			case i < split:
				p.at[i], p.num[i] = idx[i], 1
			case i == split:
				p.at[i] = idx[i] * step
				p.num[i] = min(step, s.on-p.at[i])
				p.n *= p.num[i]
			}
		}
		out = append(out, p)
		c0 += p.n
		if !odometer(idx[:len(outer)], outer) {
			c.cuts = out
			return out
		}
	}
}

// window is the moving operand of a tap for a piece: where the tap's positions lie on the map.
func (l *lowering) tapPattern(m mapTile, dt target.Dtype, parts int64, p *convPiece, tap []int64) ir.Arg {
	c := &l.ct
	off := m.off
	var buf [5]ir.Pair
	pairs := buf[:0]
	for i := range c.spans {
		s := &c.spans[i]
		off += (p.at[i]*s.w.Stride + tap[i]*s.w.RhsDilate) * s.walk
		if p.num[i] > 1 {
			pairs = append(pairs, ir.Pair{Step: int32(s.w.Stride * s.walk), Num: uint32(p.num[i])})
		}
	}
	if len(pairs) == 0 {
		pairs = append(pairs, ir.Pair{Step: 1, Num: 1})
	}
	return l.chip(m.loc, dt, 0, int(parts), off, pairs...)
}

func (l *lowering) emitConv(t *tile, i, evictor int) {
	c := &l.ct
	info := &l.convs[l.vals.At(l.u.root).aux]
	if c.depthwise {
		l.emitDepthwise(t, i)
		return
	}
	if evictor >= 0 {
		l.newTile(evictor, t, t.w)
	} else {
		l.newTile(i, t, t.w)
	}
	src := l.vals.At(l.u.root).src
	pieces := c.cut(t)
	xt, wt := l.vals.At(info.x.root).dt, l.vals.At(info.w.root).dt
	_, rows := c.inputRow(t)
	steps := (rows + 127) / 128 * c.taps
	weights := l.convWeights(t)
	l.repeat(int64(len(pieces)+groupBanks-1)/groupBanks, func(set int64) {
		l.at(src)
		group := pieces[set*groupBanks : min(int(set+1)*groupBanks, len(pieces))]
		var banks [groupBanks]ir.Loc
		for b := range group {
			banks[b] = l.psum(l.tileName(src), f32, int(t.pn), group[b].n)
		}
		step := int64(0)
		maps := c.maps
		if l.counting {
			l.count.insts += steps * int64(len(group))
			maps = nil
		}
		for k, loc := range maps {
			parts := min(128, rows-int64(k)*128)
			var tapBuf [maxRank]int64
			tap := tapBuf[:len(c.tap)]
			for j := range c.taps {
				at := j * t.pn
				if c.splat {
					at = 0
				}
				st := l.chip(weights[k], wt, 0, int(parts), at, ir.Pair{Step: 1, Num: uint32(t.pn)})
				for b := range group {
					mv := l.tapPattern(loc, xt, parts, &group[b], tap)
					l.matmul(mv, st, l.cols(banks[b], f32, t.pn, 0, group[b].n), step, steps)
				}
				step++
				odometer(tap, c.tap)
			}
		}
		for b := range group {
			l.evict(t, i, evictor, l.cols(banks[b], f32, t.pn, 0, group[b].n), group[b].c0, group[b].n)
		}
	})
}

// emitDepthwise multiplies and adds tap by tap, channels on partitions: the sum stays in float32 until the last.
func (l *lowering) emitDepthwise(t *tile, i int) {
	c := &l.ct
	r := l.vals.At(l.u.root)
	info := &l.convs[r.aux]
	l.newTile(i, t, t.w)
	acc, base := l.locs[i].loc, l.locs[i].off
	if r.dt != f32 {
		base = 0
		acc = l.sb(l.tileName(r.src), f32, int(t.pn), t.w)
	}
	w := &info.w
	var wloc ir.Loc
	if !c.splat {
		wloc = l.sb(l.tileName(r.src), f32, int(t.pn), c.taps)
		var buf [maxRank]axis
		free := denseChip(append(buf[:0], c.tap...))
		l.transfer(load, l.homeOf(w.root), l.vals.At(w.root).dt, w.off, []axis{{n: w.dims[1], mem: w.step[1]}}, t.p0, t.pn, free, side{loc: wloc, dt: f32})
	}
	// A three-operand instruction walks two free axes: boxes of the last two.
	var outerBuf [maxRank]axis
	outer := outerBuf[:0]
	n := len(c.spans)
	inner := int64(1)
	for k, s := range c.spans {
		if k < n-2 {
			outer = append(outer, axis{n: s.on})
		} else {
			inner *= s.on
		}
	}
	xt := l.vals.At(info.x.root).dt
	var tapBuf [maxRank]int64
	tap := tapBuf[:n]
	taps := c.taps
	if l.counting {
		all := taps
		for _, a := range outer {
			all *= a.n
		}
		l.count.insts += all
		taps = 0
	}
	for j := range taps {
		scale := ir.ImmF32(l.vals.At(w.root).c0)
		if !c.splat {
			scale = l.cols(wloc, f32, t.pn, j, 1)
		}
		var idx [maxRank]int64
		p := convPiece{n: inner}
		for c0 := int64(0); ; c0 += inner {
			for k, s := range c.spans {
				p.at[k], p.num[k] = 0, s.on
				if k < len(outer) {
					p.at[k], p.num[k] = idx[k], 1
				}
			}
			x := l.tapPattern(c.maps[0], xt, t.pn, &p, tap)
			out := l.cols(acc, f32, t.pn, base+c0, inner)
			if j == 0 {
				l.ptr(target.AluMult, x, scale, false, out)
			} else {
				l.emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{x, scale, out}, []ir.Arg{out}, ir.Bool(ir.KeyIsScalarTensorTensor, true),
					ir.Enum(ir.KeyOp0, target.AluMult), ir.Bool(ir.KeyReverse0, false), ir.Enum(ir.KeyOp1, target.AluAdd), ir.Bool(ir.KeyReverse1, false))
			}
			if !odometer(idx[:len(outer)], outer) {
				break
			}
		}
		odometer(tap, c.tap)
	}
	if r.dt != f32 {
		l.copyTo(l.cols(acc, f32, t.pn, 0, t.w), l.made(i, t, 0, t.w), false)
	}
}
