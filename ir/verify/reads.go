package verify

import (
	"cmp"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Reads proves, on physical addresses in program order, that every byte that an instruction reads of a location was last
// written through that same location (or a must-alias of it). It is what Placement proves of lifetimes, byte by byte: after
// scheduling, a location may be overwritten where its last byte-wise reader has passed although another part of it is still
// read. Loops make their turns, so that it also holds rings of blocks to the number of live ones. Bytes that nothing wrote are none of
// its business: Written reports them. Where such bytes may be read, by can_read_uninit or in a table that is gathered from, a read is
// checked if all of it was written.
//
// Ownership is kept for each of the four partition quadrants as segments of bytes, each with a list of (partitions, owner);
// a write takes its partitions away from every owner of its bytes. Segments are kept by pages of bytes and end with them, so
// that an access costs what it touches and not what the memory holds.
func Reads(m *ir.Module, f ir.Func) error {
	p := &problems{m: m}
	o := &owners{left: math.MaxInt64}
	alias := aliasRoots(m)
	w := &walker{m: m}
	var written *writtenBytes // where some reads may find bytes that nothing wrote
	for i := range m.Insts.All() {
		if !sure(m, i, 0) {
			written = newWrittenBytes(m)
			break
		}
	}
	at := func(a ir.Arg) (fp ir.Footprint, l ir.Loc, ok bool) {
		row := w.pattern(a)
		if row == nil {
			return fp, 0, false
		}
		fp, l = m.Footprint(row), row.Loc
		return fp, l, fp.Region == 0
	}
	var tooLong error
	long := func(i ir.Inst, fp *ir.Footprint, l ir.Loc) bool {
		n := cutRuns(fp, maxRuns)
		if n > maxRuns && tooLong == nil {
			tooLong = target.Errorf(target.Limit, "%s (%s): touches more than %d runs of bytes of %s, too many to check one by one; use several instructions, or a pattern with longer runs",
				m.InstName(i), m.Insts.At(i).Op, int64(maxRuns), m.LocName(l))
		}
		return n > maxRuns
	}
	w.walk(f, func(i ir.Inst) {
		outs := m.Outs(i)
		all := m.AllArgs(i)
		accumulates := m.ReadsDst(i)
		for k, a := range all {
			if k >= len(all)-len(outs) && !accumulates {
				continue
			}
			fp, l, ok := at(a)
			if !ok || long(i, &fp, l) {
				continue
			}
			if other := o.read(&fp, root(alias, l)); other != 0 && !mayAlias(m, alias, other, root(alias, l)) && (sure(m, i, k) || written.holds(w.pattern(a))) {
				p.inst(i, "reads %s where %s was written over it (%s, partitions %d to %d, bytes %d to %d)",
					m.LocName(l), m.LocName(other), fp.Space, fp.P0, fp.P1-1, fp.Lo, fp.Hi)
			}
		}
		for _, a := range outs {
			if fp, l, ok := at(a); ok && !long(i, &fp, l) {
				o.write(&fp, root(alias, l))
			}
			if written != nil {
				written.note(w, a)
			}
		}
	})
	if p.count == 0 {
		return tooLong
	}
	return p.err(target.Bug)
}

// maxRuns is how many runs of bytes Reads takes of one operand: each is state of its own, of some 40 bytes.
const maxRuns = 1 << 22

// cutRuns is the number of runs of a footprint, cut at the ends of pages, if it is not above most, else a larger number.
func cutRuns(fp *ir.Footprint, most int64) int64 {
	n := 1 + fp.Run>>pageBits
	for k := 0; k < int(fp.N) && n <= most; k++ {
		n *= fp.Num[k] // below 2^32
	}
	return n
}

// aliasRoots maps locations of must-aliases towards one of their class, which root finds: the smallest.
func aliasRoots(m *ir.Module) map[ir.Loc]ir.Loc {
	roots := map[ir.Loc]ir.Loc{}
	for _, a := range m.AliasRows() {
		if a.Kind == ir.AliasMust {
			x, y := root(roots, a.A), root(roots, a.B)
			for _, l := range [...]ir.Loc{a.A, a.B, x, y} {
				roots[l] = min(x, y)
			}
		}
	}
	return roots
}

// mayAlias reports two classes of must-aliases whose locations may share bytes: what one finds may be the other's.
func mayAlias(m *ir.Module, roots map[ir.Loc]ir.Loc, x, y ir.Loc) bool {
	return slices.ContainsFunc(m.AliasRows(), func(r ir.AliasRow) bool {
		a, b := root(roots, r.A), root(roots, r.B)
		return a == x && b == y || a == y && b == x
	})
}

// root halves the paths that it walks, so that long chains of aliases stay cheap.
func root(roots map[ir.Loc]ir.Loc, l ir.Loc) ir.Loc {
	for {
		r, ok := roots[l]
		if !ok || r == l {
			return l
		}
		if up := roots[r]; up != r {
			roots[l], r = up, up
		}
		l = r
	}
}

// owners is the state of every byte: for each space and quadrant the segments in order of lo, page by page.
type owners struct {
	spaces [3][4][][]segment
	lists  []owner // lists[0] is none
	free   uint32
	fresh  []segment
	left   int64 // segments that may still be looked at; accesses end where there are none left
}

type segment struct {
	lo, hi int64
	head   uint32
}

// pageBits: a matrix whose rows of 128 bytes are owned one by one has 256 segments a page.
const pageBits = 15

// eachPage cuts [lo, hi) at the ends of pages and calls f with the segments of each, which need not exist yet.
func eachPage(pages *[][]segment, lo, hi int64, f func(segs *[]segment, lo, hi int64) bool) bool {
	if last := int((hi - 1) >> pageBits); last >= len(*pages) {
		*pages = append(*pages, make([][]segment, last+1-len(*pages))...)
	}
	for lo < hi {
		n := lo >> pageBits
		end := min(hi, (n+1)<<pageBits)
		if !f(&(*pages)[n], lo, end) {
			return false
		}
		lo = end
	}
	return true
}

type owner struct {
	mask uint32 // partitions of the quadrant
	loc  ir.Loc
	next uint32
}

func spaceIndex(s target.Space) int {
	switch s {
	case target.SpaceSB:
		return 0
	case target.SpacePSUM:
		return 1
	}
	return 2
}

// quadrant is the mask of the partitions of quadrant q that [p0, p1) covers.
func quadrantMask(q int, p0, p1 int32) uint32 {
	lo, hi := max(p0-int32(32*q), 0), min(p1-int32(32*q), 32)
	if lo >= hi {
		return 0
	}
	return uint32((uint64(1)<<hi - 1) &^ (uint64(1)<<lo - 1))
}

// eachRun calls f for the runs of a footprint in ascending order of the innermost axes.
func eachRun(fp *ir.Footprint, f func(lo, hi int64) bool) {
	var idx [5]int64
	for {
		at := fp.Lo
		for d := range int(fp.N) {
			at += idx[d] * fp.Step[d]
		}
		if !f(at, at+fp.Run) {
			return
		}
		d := 0
		for ; d < int(fp.N); d++ {
			if idx[d]++; idx[d] < fp.Num[d] {
				break
			}
			idx[d] = 0
		}
		if d == int(fp.N) {
			return
		}
	}
}

// read returns an owner other than l of a byte that the footprint covers, or none.
func (o *owners) read(fp *ir.Footprint, l ir.Loc) (other ir.Loc) {
	for q := range 4 {
		mask := quadrantMask(q, fp.P0, fp.P1)
		if mask == 0 {
			continue
		}
		pages := &o.spaces[spaceIndex(fp.Space)][q]
		look := func(page *[]segment, lo, hi int64) bool {
			segs := *page
			for k := firstAfter(segs, lo); k < len(segs) && segs[k].lo < hi; k++ {
				for n := segs[k].head; n != 0; n = o.lists[n].next {
					if w := &o.lists[n]; w.mask&mask != 0 && w.loc != l {
						other = w.loc
						return false
					}
				}
			}
			return true
		}
		eachRun(fp, func(lo, hi int64) bool { return eachPage(pages, lo, hi, look) })
		if other != 0 {
			return other
		}
	}
	return 0
}

// firstAfter is the first segment that ends behind lo.
func firstAfter(segs []segment, lo int64) int {
	k, _ := slices.BinarySearchFunc(segs, lo, func(s segment, lo int64) int { return cmp.Compare(s.hi, lo+1) })
	return k
}

func (o *owners) write(fp *ir.Footprint, l ir.Loc) {
	for q := range 4 {
		mask := quadrantMask(q, fp.P0, fp.P1)
		if mask == 0 {
			continue
		}
		pages := &o.spaces[spaceIndex(fp.Space)][q]
		take := func(segs *[]segment, lo, hi int64) bool {
			o.take(segs, lo, hi, mask, l)
			return o.left > 0
		}
		eachRun(fp, func(lo, hi int64) bool { return eachPage(pages, lo, hi, take) })
	}
}

// take gives the partitions of mask in [lo, hi) to l. The segments of the range are cut at its ends and rebuilt; neighbours
// that l then owns alone become one.
func (o *owners) take(segs *[]segment, lo, hi int64, mask uint32, l ir.Loc) {
	s := *segs
	from := firstAfter(s, lo)
	to := from
	o.fresh = o.fresh[:0]
	at := lo
	alone := func(a, b int64) {
		if n := len(o.fresh); n > 0 && o.fresh[n-1].hi == a {
			if w := &o.lists[o.fresh[n-1].head]; w.next == 0 && w.mask == mask && w.loc == l {
				o.fresh[n-1].hi = b
				return
			}
		}
		o.fresh = append(o.fresh, segment{a, b, o.add(mask, l, 0)})
	}
	for ; to < len(s) && s[to].lo < hi; to++ {
		x := s[to]
		if x.lo < lo {
			o.fresh = append(o.fresh, segment{x.lo, lo, o.copyList(x.head, 0)})
		}
		if x.lo > at {
			alone(at, x.lo)
		}
		a, b := max(x.lo, lo), min(x.hi, hi)
		if rest := o.copyList(x.head, mask); rest == 0 {
			alone(a, b)
		} else {
			o.fresh = append(o.fresh, segment{a, b, o.add(mask, l, rest)})
		}
		if x.hi > hi {
			o.fresh = append(o.fresh, segment{hi, x.hi, o.copyList(x.head, 0)})
		}
		at = b
		o.drop(x.head)
	}
	if at < hi {
		alone(at, hi)
	}
	o.left -= int64(1 + to - from + (len(s)-to)/64) // those behind only move
	*segs = slices.Replace(s, from, to, o.fresh...)
}

func (o *owners) add(mask uint32, l ir.Loc, next uint32) uint32 {
	if len(o.lists) == 0 {
		o.lists = append(o.lists, owner{})
	}
	if n := o.free; n != 0 {
		o.free = o.lists[n].next
		o.lists[n] = owner{mask, l, next}
		return n
	}
	o.lists = append(o.lists, owner{mask, l, next})
	return uint32(len(o.lists) - 1)
}

// copyList copies a list without the partitions of mask.
func (o *owners) copyList(head, mask uint32) (out uint32) {
	for n := head; n != 0; n = o.lists[n].next {
		if keep := o.lists[n].mask &^ mask; keep != 0 {
			out = o.add(keep, o.lists[n].loc, out)
		}
	}
	return out
}

func (o *owners) drop(head uint32) {
	for head != 0 {
		next := o.lists[head].next
		o.lists[head] = owner{next: o.free}
		o.free, head = head, next
	}
}
