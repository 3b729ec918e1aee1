package memalloc

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// spilled is what spilling costs: moved is the bytes that its code moves between SBUF and DRAM, saves and reloads, less the loads
// that it makes needless; values is the bytes of what does not stay where it is from its first access to its last.
type spilled struct{ moved, values int64 }

// atom is a stretch of bytes of a location's partitions that all its accesses treat alike, or a part of one that was evicted
// alone.
type atom struct {
	width int64 // bytes a partition
	parts int64 // partitions
	quads int64 // quadrants that its band takes
	uses  []use // shared by the parts of a stretch
	at    int   // index of the next use
	// in: in memory. changed: memory has bytes that DRAM has not. fresh: a load brought it and nothing used it yet. gone: was
	// ever evicted.
	in, changed, fresh, gone bool
}

type use struct {
	at          int
	read, write bool
}

// farthest is a heap of resident atoms, the one that is used last on top. Entries whose use has passed are stale.
type farthest []struct {
	next int
	atom int
}

func (h farthest) Len() int { return len(h) }
func (h farthest) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].next, h[i].next), cmp.Compare(h[i].atom, h[j].atom)) < 0
}
func (h farthest) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *farthest) Push(x any) {
	*h = append(*h, x.(struct {
		next int
		atom int
	}))
}
func (h *farthest) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// belady is the spilled of furthest-next-use eviction (Belady 1966) in a memory of size bytes a partition with nothing but bytes
// in it: no alignment, no rectangles, no holes, no need to lie side by side; any part of a tensor may leave alone. A byte that
// DRAM has as it is needs no save, nor does one that nothing reads again, nor a second time one that was saved; a load that is
// evicted before its first use is only done later.
func belady(m *ir.Module, f ir.Func, size int64) (t spilled) {
	atoms, touched, points := atomsOf(m, f)
	room := 4 * size
	var h farthest
	used := int64(0)
	moved := func(a *atom, width int64) { t.moved += width * a.parts }
	for p := range points {
		// Bring the operands.
		for _, k := range touched[p] {
			for _, a := range atoms[k] {
				u := a.uses[a.at]
				if !a.in {
					a.in = true
					used += a.width * a.quads
					if u.read && !a.fresh {
						moved(a, a.width)
					}
				}
				a.fresh = a.fresh && !u.read
			}
		}
		// Evict what is not an operand, the furthest first.
		for used > room && len(h) > 0 {
			top := heap.Pop(&h).(struct {
				next int
				atom int
			})
			stays := false
			for i := 0; i < len(atoms[top.atom]); i++ {
				a := atoms[top.atom][i]
				if !a.in || a.uses[a.at].at != top.next || top.next == p {
					continue
				}
				if used <= room {
					stays = true
					continue
				}
				if over := (used - room + a.quads - 1) / a.quads; over < a.width { // the rest of it may stay
					rest := *a
					rest.width -= over
					a.width = over
					atoms[top.atom] = append(atoms[top.atom], &rest)
				}
				a.in, a.gone = false, true
				used -= a.width * a.quads
				if a.changed {
					moved(a, a.width)
					a.changed = false
				}
			}
			if stays {
				heap.Push(&h, top)
			}
		}
		// Step over this use, drop what is dead.
		for _, k := range touched[p] {
			live := false
			for _, a := range atoms[k] {
				u := a.uses[a.at]
				a.at++
				if u.write {
					a.changed = !a.fresh
				}
				if a.at == len(a.uses) || !a.uses[a.at].read {
					a.in = false
					used -= a.width * a.quads
				} else {
					live = true
				}
			}
			if live {
				heap.Push(&h, struct {
					next int
					atom int
				}{atoms[k][0].uses[atoms[k][0].at].at, k})
			}
		}
	}
	for _, parts := range atoms {
		for _, a := range parts {
			if a.gone {
				t.values += a.width * a.parts
			}
		}
	}
	return t
}

// atomsOf cuts the SB locations into stretches that all accesses touch whole or not at all, and lists which of them each
// instruction touches.
func atomsOf(m *ir.Module, f ir.Func) (atoms [][]*atom, touched [][]int, points int) {
	type access struct {
		fp          ir.Footprint
		at          int
		read, write bool
		load        bool // from DRAM that nobody changes
	}
	byLoc := map[ir.Loc][]access{}
	var locs []ir.Loc
	written := map[ir.Loc]bool{}
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			for _, a := range m.Outs(i) {
				written[m.LocOf(a)] = true
			}
		}
	}
	note := func(at int, i ir.Inst, a ir.Arg, read, write bool) {
		l := m.LocOf(a)
		if l == 0 || m.Locs.At(l).Space != target.SpaceSB || m.Locs.At(l).Flags&ir.LocReserved != 0 {
			return
		}
		if byLoc[l] == nil {
			locs = append(locs, l)
		}
		load := false
		if op := m.Insts.At(i).Op; write && (op == ir.OpLoad || op == ir.OpDMACopy) && len(m.Ins(i)) == 1 && len(m.Indices(i)) == 0 {
			src := m.LocOf(m.Ins(i)[0])
			load = m.Locs.At(src).Space == target.SpaceDRAM && !written[src]
		}
		byLoc[l] = append(byLoc[l], access{m.FootprintOf(a.AP()), at, read, write, load})
	}
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			for _, a := range m.Ins(i) {
				note(points, i, a, true, false)
			}
			for _, a := range m.Indices(i) {
				note(points, i, a, true, false)
			}
			for _, a := range m.Outs(i) {
				note(points, i, a, m.ReadsDst(i), true)
			}
			points++
		}
	}
	touched = make([][]int, points)
	for _, l := range locs {
		acc := byLoc[l]
		var cuts []int64
		var runs [][]span // by access
		for k := range acc {
			runs = append(runs, nil)
			eachRun(&acc[k].fp, func(lo, hi int64) {
				cuts = append(cuts, lo, hi)
				runs[k] = append(runs[k], span{lo: lo, hi: hi})
			})
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		uses := make([][]use, len(cuts))
		fresh := make([]bool, len(cuts))
		parts := make([]int64, len(cuts))
		for k, a := range acc {
			for _, r := range runs[k] {
				from, _ := slices.BinarySearch(cuts, r.lo)
				for c := from; cuts[c] < r.hi; c++ {
					parts[c] = max(parts[c], int64(a.fp.P1-a.fp.P0))
					if n := len(uses[c]); n > 0 && uses[c][n-1].at == a.at {
						// Reads come before writes within an instruction.
						uses[c][n-1].write = uses[c][n-1].write || a.write
						continue
					}
					fresh[c] = fresh[c] || len(uses[c]) == 0 && a.load
					uses[c] = append(uses[c], use{a.at, a.read, a.write})
				}
			}
		}
		// Stretches with the same uses are one atom.
		bands := int64(target.BandHeight(int(m.Locs.At(l).Parts)) / target.QuadrantPartitions)
		first := len(atoms)
		for c := range uses {
			if len(uses[c]) == 0 {
				continue
			}
			width := cuts[c+1] - cuts[c]
			same := -1
			for k := first; k < len(atoms) && same < 0; k++ {
				if a := atoms[k][0]; a.parts == parts[c] && slices.Equal(a.uses, uses[c]) {
					same = k
				}
			}
			if same >= 0 {
				atoms[same][0].width += width
				continue
			}
			k := len(atoms)
			atoms = append(atoms, []*atom{{width: width, parts: parts[c], quads: bands, uses: uses[c], fresh: fresh[c]}})
			for _, u := range uses[c] {
				touched[u.at] = append(touched[u.at], k)
			}
		}
	}
	return atoms, touched, points
}

// eachRun calls do with the runs of bytes of a footprint.
func eachRun(f *ir.Footprint, do func(lo, hi int64)) {
	var idx [5]int64
	for {
		at := f.Lo
		for i := range int(f.N) {
			at += idx[i] * f.Step[i]
		}
		do(at, at+f.Run)
		i := 0
		for ; i < int(f.N); i++ {
			if idx[i]++; idx[i] < f.Num[i] {
				break
			}
			idx[i] = 0
		}
		if i == int(f.N) {
			return
		}
	}
}

// moved is the bytes that the transfers of a function move between SBUF and DRAM.
func moved(m *ir.Module, f ir.Func) (n int64) {
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			if !m.Insts.At(i).Op.IsDMA() {
				continue
			}
			for _, a := range m.AllArgs(i) {
				if l := m.LocOf(a); l != 0 && m.Locs.At(l).Space == target.SpaceSB {
					fp := m.FootprintOf(a.AP())
					n += fp.Runs() * fp.Run * int64(fp.P1-fp.P0)
				}
			}
		}
	}
	return n
}

// movesOnChip counts the copies by which values moved within SBUF, and their bytes.
func movesOnChip(m *ir.Module, f ir.Func) (n int, bytes int64) {
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			if r := m.Insts.At(i); r.Op == ir.OpTensorCopy && r.Flags&(ir.InstSpill|ir.InstReload) == ir.InstSpill|ir.InstReload {
				fp := m.FootprintOf(m.Outs(i)[0].AP())
				n, bytes = n+1, bytes+fp.Runs()*fp.Run*int64(fp.P1-fp.P0)
			}
		}
	}
	return n, bytes
}

// peakSB is the most bytes a partition that SB tensors take together, whole and over their whole lives, in quarters of a
// partition's height.
func peakSB(m *ir.Module, f ir.Func) (peak int64) {
	first, last := map[ir.Loc]int{}, map[ir.Loc]int{}
	at := 0
	for _, blk := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(blk) {
			for _, a := range m.AllArgs(i) {
				if l := m.LocOf(a); l != 0 && m.Locs.At(l).Space == target.SpaceSB && m.Locs.At(l).Flags&ir.LocReserved == 0 {
					if _, ok := first[l]; !ok {
						first[l] = at
					}
					last[l] = at
				}
			}
			at++
		}
	}
	delta := make([]int64, at+1)
	for l, from := range first {
		n := (m.Locs.At(l).Bytes + granule - 1) / granule * granule * int64(target.BandHeight(int(m.Locs.At(l).Parts))/target.QuadrantPartitions)
		delta[from] += n
		delta[last[l]+1] -= n
	}
	live := int64(0)
	for _, d := range delta {
		live += d
		peak = max(peak, live)
	}
	return (peak + 3) / 4
}
