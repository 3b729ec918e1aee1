package tile

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// An operand whose contraction axis is the contiguous one has its rows, not K, on partitions when it is loaded in long runs or
// when it stays in SBUF as its maker left it. The array turns it: a product with the identity, block by block. Generations
// from V3 on move the bits; V2 multiplies, which is exact for finite values.

// minTurn is the rows and the contraction from which the array turns an operand; smaller ones are gathered by transfers.
const minTurn = 32

// turns reports whether an operand is worth turning, and of a type that the array can turn without loss.
func (l *lowering) turns(d *domain, o *dotOperand, g group) bool {
	var buf [maxRank]axis
	k := joined(o.k, buf[:0])
	if len(k) != 1 || k[0].mem != 1 || k[0].n < minTurn || l.vals.At(o.root).op == vSplat {
		return false
	}
	switch o.dt {
	case target.Float32, target.BFloat16, target.Float16:
	default:
		return false
	}
	n := int64(1)
	for i := range d.n {
		if d.grp[i] == g {
			n *= d.dims[i]
		}
	}
	return n >= minTurn
}

// reachRows finds an operand that stays in SBUF with its own axes, those of group g, on partitions.
func (r *resident) reachRows(d *domain, o *dotOperand, g group, height int64) (reached, bool) {
	var partBuf, restBuf [maxRank + 1]axis
	part, rest := partBuf[:0], restBuf[:0]
	for i := range d.n {
		a := axis{n: d.dims[i], mem: o.v.step[i]}
		switch d.grp[i] {
		case g:
			part = append(part, a)
			a.n = 1
		case groupB:
		default:
			a.n = 1
		}
		rest = append(rest, a)
	}
	var buf [maxRank]axis
	rest = append(rest, joined(o.k, buf[:0])[0])
	w, ok := r.reach(o.v.off, part, rest, height)
	return w, ok && w.step[d.n] > 0 && w.step[d.n] <= maxMap
}

// identity is a square of ones on the diagonal, made when it is first needed.
func (l *lowering) identity(dt target.Dtype) ir.Loc {
	if l.counting {
		return 1
	}
	if loc := l.identities[dt]; loc != 0 {
		return loc
	}
	loc := l.sb(l.tileName(l.cur), dt, 128, 128)
	l.identities[dt] = loc
	all := l.cols(loc, dt, 128, 0, 128)
	l.memset(all, encode32(dt, 1))
	l.emit(ir.OpTensorScalarAffineSelect, target.EnginePool, []ir.Arg{all}, []ir.Arg{all}, ir.Int(ir.KeyBase, 0),
		l.m.IntsAttr(ir.KeyPattern, -1, 128), ir.Int(ir.KeyChannelMultiplier, 1), ir.Enum(ir.KeyCompareOp, target.AluEqual), ir.Float(ir.KeyFillValue, 0))
	return loc
}

// rowBlock is up to 128 rows of an operand on partitions: K runs along the free axis.
type rowBlock struct {
	loc  ir.Loc
	off  int64
	step int64
	n    int64
}

// turn writes a block's K tiles [0, kn) into the operand's location: tile k at off + k·cols.
func (l *lowering) turn(o *dotOperand, b rowBlock, k0, kn, off int64) {
	td := &l.dt
	id := l.identity(o.dt)
	pt := o.dt
	if !l.gen.ExactTranspose {
		pt = f32
	}
	per := min(bankColumns/b.n, 4)
	for k := int64(0); k < kn; {
		parts := min(128, td.k-(k0+k)*128)
		g := int64(1)
		for g < per && k+g < kn && min(128, td.k-(k0+k+g)*128) == parts {
			g++
		}
		bank := l.psum(l.tileName(l.cur), pt, int(parts), g*b.n)
		for j := range g {
			x := l.chip(b.loc, o.dt, 0, int(b.n), b.off+(k+j)*128*b.step, ir.Pair{Step: int32(b.step), Num: uint32(parts)})
			out := l.cols(bank, pt, parts, j*b.n, b.n)
			l.emit(ir.OpMatmult, target.EnginePE, []ir.Arg{l.cols(id, o.dt, b.n, 0, b.n), x}, []ir.Arg{out},
				ir.Int(ir.KeyAccumulationFlag, 3), ir.Bool(ir.KeyIsTranspose, l.gen.ExactTranspose))
			if !l.counting {
				l.stats.Transposes++
			}
		}
		dst := l.chip(o.loc, o.dt, 0, int(parts), off+k*o.cols, ir.Pair{Step: int32(o.cols), Num: uint32(g)}, ir.Pair{Step: 1, Num: uint32(b.n)})
		l.copyTo(l.cols(bank, pt, parts, 0, g*b.n), dst, true)
		k += g
	}
}

// loadTurned makes columns [c0, c0+n) of the operand's own axes, those of group g, for K tiles [k0, k0+kn).
func (l *lowering) loadTurned(t *tile, o *dotOperand, g group, k0, kn, c0, n int64) {
	d := &l.u.dom
	td := &l.dt
	o.cols = n
	kdim := min(kn*128, td.k-k0*128)
	o.loc, o.off, o.step = l.sb(l.tileName(l.vals.At(o.root).src), o.dt, int(min(128, td.k-k0*128)), kn*o.cols), 0, 1
	base := tileOff(d, &o.v, t)
	var buf [maxRank]axis
	own := axesOf(d, &o.v, t, buf[:0], g)
	first := int64(0) // of the chunk, among all rows
	if g == groupF {
		first = l.columnOf(t)
	}
	r := l.staysAt(o.root)
	l.repeat((n+127)/128, func(i int64) {
		c := i * 128
		b := rowBlock{n: min(128, n-c), step: 1}
		if o.rows {
			row := first + c0 + c
			b.loc, b.step = r.loc, o.at.step[d.n]
			b.off = o.at.off + (o.at.tile0+row/r.height)*r.tile + k0*128*b.step
			for i := range d.n {
				if d.grp[i] == groupB {
					b.off += t.b[i] * o.at.step[i]
				}
			}
		} else {
			b.loc = l.sb(l.tileName(l.vals.At(o.root).src), o.dt, int(b.n), kdim)
			l.transfer(load, l.homeOf(o.root), l.vals.At(o.root).dt, base+k0*128, own, c0+c, b.n, []axis{{n: kdim, mem: 1, chip: 1}}, side{loc: b.loc, dt: o.dt})
		}
		l.turn(o, b, k0, kn, c)
	})
}

// pointTurned settles, once the unit's tiles are planned, whether an operand that is turned is read where it stays.
func (l *lowering) pointTurned(o *dotOperand, g group) {
	if r := l.staysAt(o.root); r != nil && o.turned {
		o.at, o.rows = l.reachTurned(r, o, g)
	}
}
