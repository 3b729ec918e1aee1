package verify

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Written proves that in program order every byte that an instruction reads was written before through the same location: what a pass
// moves behind such a read could lie on bytes that it never was to find. Findings are errors of the user.
//
// Instructions with can_read_uninit may read anything. Inputs, constants and what others share or place are written by others, and the
// rows that a gather reads are known when it runs. Loops make their turns as for Reads; where they cannot make all, and where only the
// machine knows an address, a write counts for all that it could reach. So does, for its tensor, a write when maxSegments have been looked
// at, or to more than maxPieces bytes: the time is bounded whatever the patterns are. Where branches say what runs, any write of the function
// may come before a read.
func Written(m *ir.Module, f ir.Func) error {
	p := &problems{m: m}
	w := &walker{m: m, known: true}
	x := newWrittenBytes(m)
	if branches(m) {
		w.walk(f, func(i ir.Inst) {
			for _, a := range m.Outs(i) {
				x.note(w, a)
			}
		})
	}
	w.walk(f, func(i ir.Inst) {
		if p.count > 0 && p.last == i {
			return // in another turn
		}
		outs, all := m.Outs(i), m.AllArgs(i)
		for k, a := range all {
			if isOut := k >= len(all)-len(outs); isOut && !m.ReadsDst(i) || !sure(m, i, k) {
				continue
			}
			if row := w.pattern(a); row != nil {
				if lo, hi, ok := x.read(row); !ok {
					p.inst(i, "reads bytes %d to %d of %s, partitions %d to %d, and not all of them were written; write a location before it is read, or mark the read can_read_uninit",
						lo, hi-1, m.LocName(row.Loc), row.Start, int(row.Start)+max(1, int(row.Parts))-1)
					p.last = i
				}
			}
		}
		for _, a := range outs {
			x.note(w, a)
		}
	})
	return p.err(target.User)
}

// branches reports whether the order of blocks in some function is not that in which they run.
func branches(m *ir.Module) bool {
	for _, r := range m.Insts.All() {
		if r.Op == ir.OpCompareAndBranch || r.Op == ir.OpUnconditionalBranch {
			return true
		}
	}
	return false
}

// sure reports that operand k of an instruction reads all bytes of its pattern, and must find them written.
func sure(m *ir.Module, i ir.Inst, k int) bool {
	return !m.AttrBool(i, ir.KeyCanReadUninit) && (k > 0 || m.Insts.At(i).Op != ir.OpIndirectLoad)
}

// writtenBytes is what has been written of each location.
type writtenBytes struct {
	m    *ir.Module
	locs arena.Column[ir.Loc, stock]
	// bytes of the locations that are written in pieces, by ranges of addresses that are theirs alone
	bytes owners
	next  int64
}

const (
	maxSegments = 1 << 21
	maxPieces   = 1 << 34
)

// stock is what is known of a location.
type stock struct {
	whole bool   // all of it is there
	reads uint32 // that had to look at bytes
	base  int64  // 1 + the address of its bytes in writtenBytes.bytes, 0 none yet
}

func newWrittenBytes(m *ir.Module) *writtenBytes {
	x := &writtenBytes{m: m, bytes: owners{left: maxSegments}}
	x.locs.Resize(m.Locs.Len())
	for l, r := range m.Locs.All() {
		switch k := m.Sets.At(r.Set).Kind; {
		case k.IsInput(), k == ir.KindConst, k == ir.KindPointer, k == ir.KindInternalInterface, r.Flags&(ir.LocReserved|ir.LocPinned|ir.LocRemoteWriter) != 0:
			x.fill(l)
		}
	}
	for _, a := range m.AliasRows() {
		x.fill(a.A)
		x.fill(a.B)
	}
	return x
}

// note takes down what an output of the walk's instruction writes.
func (x *writtenBytes) note(w *walker, a ir.Arg) {
	switch row := w.pattern(a); {
	case row != nil && (a.Kind == ir.ArgAP || !w.cut):
		x.write(row)
	case row != nil || symbolic(a):
		eachLoc(x.m, a, x.fill)
	}
}

func (x *writtenBytes) fill(l ir.Loc) { x.locs.Set(l, stock{whole: true}) }

// place is the footprint of a pattern within its location, partitions and bytes from 0 on.
func (x *writtenBytes) place(row *ir.APRow) (fp ir.Footprint) {
	fp = x.m.Footprint(row)
	if l := x.m.Locs.At(row.Loc); l.Flags&ir.LocAllocated != 0 {
		from := l.Addr
		if l.Space.OnChip() {
			fp.P0, fp.P1 = fp.P0-int32(l.Base), fp.P1-int32(l.Base)
		}
		if l.Space == target.SpacePSUM {
			from += int64(l.Bank) * target.PSUMBankPitch
		}
		fp.Lo, fp.Hi = fp.Lo-from, fp.Hi-from
	}
	return fp
}

func (x *writtenBytes) write(row *ir.APRow) {
	e := x.locs.Get(row.Loc)
	if e.whole {
		return
	}
	l := x.m.Locs.At(row.Loc)
	fp := x.place(row)
	parts, size := int64(max(1, l.Parts)), l.Bytes
	if !l.Space.OnChip() {
		parts, size = 1, size*parts
	}
	if fp.N == 0 && fp.Run == size && int64(fp.P1-fp.P0) == parts {
		x.fill(row.Loc)
		return
	}
	if !x.affords(&fp) || e.base == 0 && size > maxPieces-x.next {
		x.fill(row.Loc)
		return
	}
	if e.base == 0 {
		e.base = x.next + 1
		x.next += (size + 1<<pageBits - 1) &^ (1<<pageBits - 1)
		x.locs.Set(row.Loc, e)
	}
	fp.Lo, fp.Hi = fp.Lo+e.base-1, fp.Hi+e.base-1
	fp.Space = target.SpaceSB
	if x.bytes.write(&fp, row.Loc); x.bytes.left <= 0 {
		x.fill(row.Loc)
	}
}

// read reports whether all bytes of a pattern are there, and the bounds of the pattern in its location.
func (x *writtenBytes) read(row *ir.APRow) (lo, hi int64, ok bool) {
	e := x.locs.Get(row.Loc)
	if e.whole {
		return 0, 0, true
	}
	fp := x.place(row)
	if lo, hi = fp.Lo, fp.Hi; e.base == 0 {
		return lo, hi, false
	}
	if !x.affords(&fp) {
		return lo, hi, true
	}
	// Most are whole before they are read, and then no pattern matters. Asked at the first read and after each doubling of their number,
	// that costs little where they never are.
	e.reads++
	x.locs.Set(row.Loc, e)
	if e.reads&(e.reads-1) == 0 && x.isWhole(row.Loc, e.base-1) {
		x.fill(row.Loc)
		return lo, hi, true
	}
	fp.Lo, fp.Hi = fp.Lo+e.base-1, fp.Hi+e.base-1
	fp.Space = target.SpaceSB
	return lo, hi, x.bytes.holds(&fp)
}

// isWhole reports that every byte of a location is there.
func (x *writtenBytes) isWhole(loc ir.Loc, base int64) bool {
	l := x.m.Locs.At(loc)
	parts, size := int32(max(1, l.Parts)), l.Bytes
	if !l.Space.OnChip() {
		parts, size = 1, size*int64(parts)
	}
	return x.bytes.holds(&ir.Footprint{Space: target.SpaceSB, P1: parts, Lo: base, Hi: base + size, Run: size})
}

// affords reports whether a footprint has no more runs than segments may still be looked at.
func (x *writtenBytes) affords(fp *ir.Footprint) bool {
	return cutRuns(fp, x.bytes.left) <= x.bytes.left
}

// holds reports that all bytes of a pattern are there.
func (x *writtenBytes) holds(row *ir.APRow) bool { _, _, ok := x.read(row); return ok }

// holds reports that every byte of a footprint that is looked at has an owner.
func (o *owners) holds(fp *ir.Footprint) bool {
	for q := range 4 {
		mask := quadrantMask(q, fp.P0, fp.P1)
		if mask == 0 {
			continue
		}
		ok := true
		look := func(page *[]segment, lo, hi int64) bool {
			segs := *page
			o.left--
			for k := firstAfter(segs, lo); lo < hi && o.left > 0; k++ {
				o.left--
				if ok = k < len(segs) && segs[k].lo <= lo; !ok {
					return false
				}
				missing := mask
				for n := segs[k].head; n != 0; n = o.lists[n].next {
					missing &^= o.lists[n].mask
				}
				if ok = missing == 0; !ok {
					return false
				}
				lo = segs[k].hi
			}
			return o.left > 0
		}
		eachRun(fp, func(lo, hi int64) bool { return eachPage(&o.spaces[spaceIndex(fp.Space)][q], lo, hi, look) })
		if !ok {
			return false
		}
	}
	return true
}
