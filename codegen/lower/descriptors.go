package lower

import (
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// walkAxes is the axes of one side of a transfer, innermost first: counts, and steps in bytes.
type walkAxes struct {
	n    int
	num  [maxAxes]int64
	step [maxAxes]int64
	off  int64
	size int64 // bytes of an element
	row  uint32
}

const (
	maxAxes  = 12
	maxPairs = 4
)

// cutter turns transfers into descriptors.
type cutter struct {
	a, b walkAxes
}

// side lists the axes of a pattern without unit axes, adjacent axes merged, and the variable that holds it.
func (t *Tail) side(w *walkAxes, row *ir.APRow) error {
	m := t.m
	l := m.Locs.At(row.Loc)
	*w = walkAxes{size: int64(row.Dtype.Size())}
	pitch := int64(0)
	switch l.Space {
	case target.SpaceSB, target.SpacePSUM:
		addr, err := t.address(row)
		if err != nil {
			return err
		}
		w.off = int64(addr)
		w.row, pitch = sbRow, target.SBPartitionPitch
		if l.Space == target.SpacePSUM {
			w.row, pitch = psumRow, target.PSUMPartitionPitch
		}
	default:
		w.row = t.varRow.Get(row.Loc)
		w.off = row.Off * w.size
		if w.row == 0 {
			return target.Errorf(target.Bug, "%s has no variable", m.LocName(row.Loc))
		}
		if w.row == t.scratch {
			if l.Flags&ir.LocAllocated == 0 {
				return target.Errorf(target.Bug, "%s has no address in the scratch", m.LocName(row.Loc))
			}
			w.off += l.Addr
		}
	}
	for k := row.NPairs() - 1; k >= 0; k-- {
		p := row.Pairs[k]
		if p.Num == 1 {
			continue
		}
		step := int64(p.Step) * w.size
		if k == 0 && pitch != 0 {
			step = pitch
		}
		w.push(int64(p.Num), step)
	}
	return nil
}

// push adds the next outer axis, or lets the last one grow when it goes on in step.
func (w *walkAxes) push(num, step int64) {
	if num == 1 {
		return
	}
	if k := w.n - 1; k >= 0 && step == w.step[k]*w.num[k] {
		// A run that is too long stays in the parts that it has when it cannot be cut well into others.
		limit := neff.MaxRun / w.size
		if n := w.num[k] * num; k > 0 || w.step[k] != w.size || n <= limit || w.num[k] > limit || runOf(n, limit) != 0 {
			w.num[k] = n
			return
		}
	}
	w.num[w.n], w.step[w.n] = num, step
	w.n++
}

// pack spells a walk as at most four pairs; ok is false when that does not do. A contiguous inner part becomes the run of
// bytes; what passes the longest run stays an axis above it when its count allows.
func (w *walkAxes) pack(s *neff.Side) (ok bool) {
	*s = neff.Side{Var: w.row, Off: w.off, N: 1}
	s.Step[0] = 1
	run := w.size
	k := 0
	if w.n > 0 && w.step[0] == run {
		total := w.num[0] * run
		if total > neff.MaxRun {
			d := runOf(w.num[0], neff.MaxRun/run)
			if d == 0 {
				return false
			}
			s.Size[1], s.Step[1] = uint32(w.num[0]/d), d*run
			s.N = 2
			total = d * run
		}
		run = total
		k = 1
	}
	s.Size[0] = uint32(run)
	for ; k < w.n; k++ {
		if s.N == maxPairs || w.num[k] > 1<<32-1 {
			return false
		}
		s.Size[s.N], s.Step[s.N] = uint32(w.num[k]), w.step[k]
		s.N++
	}
	return true
}

// runOf is the greatest divisor of n up to limit, 0 when it is less than a quarter of the limit.
func runOf(n, limit int64) int64 {
	for k := (n + limit - 1) / limit; k <= 4*((n+limit-1)/limit); k++ {
		if n%k == 0 {
			return n / k
		}
	}
	return 0
}

// descriptors appends the block of one transfer: a single descriptor where both sides need at most four pairs, otherwise as
// few as do, by fixing axes that both sides share.
func (t *Tail) descriptors(dst []neff.Desc, i ir.Inst, block uint32) ([]neff.Desc, error) {
	m := t.m
	src, out := m.APs.At(m.Ins(i)[0].AP()), m.APs.At(m.Outs(i)[0].AP())
	c := &t.cut
	if err := t.side(&c.a, src); err != nil {
		return dst, err
	}
	if err := t.side(&c.b, out); err != nil {
		return dst, err
	}
	base := neff.Desc{ID: block, Queue: t.queueRow.Get(m.Insts.At(i).Queue)}
	if src.Dtype != out.Dtype {
		base.Op = neff.DMACast
		base.From.Dtype, base.To.Dtype = src.Dtype, out.Dtype
	}
	mark := len(dst)
	d := base
	if c.set(&d, &c.a, &c.b) {
		dst = append(dst, d)
	} else {
		var err error
		if dst, err = c.split(dst, &base); err != nil {
			return dst, err
		}
	}
	n := len(dst) - mark
	if n > neff.MaxBlock {
		return dst, target.Errorf(target.Limit, "the transfer needs %d descriptors, a block holds %d: split it", n, neff.MaxBlock)
	}
	up := m.SyncOps.Of(m.Syncs.Get(i).Updates)
	if len(up) != 1 {
		return dst, target.Errorf(target.Bug, "the transfer has %d completion updates, want 1", len(up))
	}
	for k := range n {
		d := &dst[mark+k]
		if d.SemInc = neff.Share(k, n, int(up[0].Value)); d.SemInc > 0 {
			d.Sem = uint8(up[0].Sem)
		}
	}
	return dst, nil
}

// set spells both sides of a descriptor; false when one does not fit.
func (c *cutter) set(d *neff.Desc, a, b *walkAxes) bool {
	ft, tt := d.From.Dtype, d.To.Dtype
	ok := a.pack(&d.From) && b.pack(&d.To)
	d.From.Dtype, d.To.Dtype = ft, tt
	return ok
}

// split cuts both walks into common axes and fixes some of them, those that give the fewest descriptors.
func (c *cutter) split(dst []neff.Desc, base *neff.Desc) ([]neff.Desc, error) {
	var a, b walkAxes
	if !common(&c.a, &c.b, &a, &b) {
		return dst, target.Errorf(target.Limit, "the two sides of the transfer cross each other's axes and need more than %d pairs", maxPairs)
	}
	// A run that passes the limit and has no good divisor is cut in two: whole runs and the rest.
	if limit := neff.MaxRun / max(a.size, b.size); a.n > 0 && a.num[0] > limit && runOf(a.num[0], limit) == 0 {
		whole := a.num[0] / limit * limit
		rest := a.num[0] - whole
		a2, b2 := a, b
		a.num[0], b.num[0] = whole, whole
		a2.num[0], b2.num[0] = rest, rest
		a2.off += whole * a.step[0]
		b2.off += whole * b.step[0]
		dst, err := c.fix(dst, base, &a, &b)
		if err != nil {
			return dst, err
		}
		return c.fix(dst, base, &a2, &b2)
	}
	return c.fix(dst, base, &a, &b)
}

// fix appends one descriptor for each combination of the fixed axes.
func (c *cutter) fix(dst []neff.Desc, base *neff.Desc, a, b *walkAxes) ([]neff.Desc, error) {
	best, count := -1, int64(neff.MaxBlock)+1
	for mask := range 1 << a.n {
		n := int64(1)
		for k := range a.n {
			if mask>>k&1 != 0 {
				n *= a.num[k]
			}
		}
		if n >= count {
			continue
		}
		d := *base
		if c.set(&d, a.without(mask, a.off), b.without(mask, b.off)) {
			best, count = mask, n
		}
	}
	if best < 0 {
		return dst, target.Errorf(target.Limit, "the transfer needs more than %d descriptors of %d pairs: split it", neff.MaxBlock, maxPairs)
	}
	var idx [maxAxes]int64
	for {
		ao, bo := a.off, b.off
		for k := range a.n {
			ao += idx[k] * a.step[k]
			bo += idx[k] * b.step[k]
		}
		d := *base
		c.set(&d, a.without(best, ao), b.without(best, bo))
		dst = append(dst, d)
		k := 0
		for ; k < a.n; k++ {
			if best>>k&1 == 0 {
				continue
			}
			if idx[k]++; idx[k] < a.num[k] {
				break
			}
			idx[k] = 0
		}
		if k == a.n {
			return dst, nil
		}
	}
}

// without is the walk over the axes that mask leaves, from a new start.
func (w *walkAxes) without(mask int, off int64) *walkAxes {
	out := walkAxes{off: off, size: w.size, row: w.row}
	for k := range w.n {
		if mask>>k&1 == 0 {
			out.push(w.num[k], w.step[k])
		}
	}
	return &out
}

// common cuts two walks into axes of equal counts; false when an axis of one crosses an axis of the other.
func common(x, y, a, b *walkAxes) bool {
	*a, *b = walkAxes{off: x.off, size: x.size, row: x.row}, walkAxes{off: y.off, size: y.size, row: y.row}
	i, j := 0, 0
	rx, ry := int64(1), int64(1)
	var sx, sy int64
	for {
		if rx == 1 && i < x.n {
			rx, sx = x.num[i], x.step[i]
			i++
			continue
		}
		if ry == 1 && j < y.n {
			ry, sy = y.num[j], y.step[j]
			j++
			continue
		}
		if rx == 1 || ry == 1 {
			return rx == ry
		}
		c := min(rx, ry)
		if rx%c != 0 || ry%c != 0 || a.n == maxAxes {
			return false
		}
		a.num[a.n], a.step[a.n] = c, sx
		b.num[b.n], b.step[b.n] = c, sy
		a.n++
		b.n++
		rx, ry, sx, sy = rx/c, ry/c, sx*c, sy*c
	}
}
