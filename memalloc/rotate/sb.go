package rotate

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

const (
	granule = 8
	// maxShift is the strictest alignment that a tile keeps for having it now, log2 in granules: that of tiles of whole pages.
	maxShift = 6
	// Small tiles, those that the allocator aligns to the bus, rotate apart from the others, in the lowest lowPart of SB, so
	// that they do not cut the rest into pieces that no long tile fits. Measured on Llama-3-8B, ResNet-50 and GPT-2: a limit
	// between 512 B and 4 KiB and a part between a fifth and a sixteenth differ by 3 % in makespan, save for streams of 4 KiB
	// tiles, which want more than a fifth.
	small   = 512 / granule
	lowPart = 16
)

// place is where a unit is, in granules. quads 0: nowhere.
type place struct {
	lo, hi int32
	quads  uint8
}

// window is a stretch of SB that rotates on its own: the next tile goes at cursor or above, and from the top around to lo.
type window struct{ lo, hi, cursor int }

// SB gives each SB tile of a placed function, in order of definition, the next free place above that of the tile before it,
// around its window: all bytes are handed out before any is handed out again, so it is the place that has been idle for
// longest.
func SB(m *ir.Module, f ir.Func, ws *Workspace, alloc *memalloc.Workspace, opt memalloc.Options) Stats {
	units := ws.begin(m, f, alloc, target.SpaceSB, ssa.BySlot)
	st := Stats{Units: len(units)}
	ws.at = arena.Resized(ws.at, len(units))
	for i := range units {
		ws.spot(m, i, &units[i])
	}
	n := int(opt.Raw(m.Gen) / granule)
	base := int((opt.Strip(m.Gen) + granule - 1) / granule)
	if base >= n {
		return st
	}
	ws.words = arena.Resized(ws.words, (n+63)/64)
	cut := base + (n-base)/lowPart
	low, high := window{base, cut, base}, window{cut, n, cut}
	for i := range units {
		if p := &ws.at[i]; p.hi-p.lo < small {
			ws.shift(uint32(i), &low, n)
		} else {
			ws.shift(uint32(i), &high, n)
		}
	}
	for i := range units {
		u := &units[i]
		addr := int64(ws.at[i].lo) * granule
		if ws.fixed[i] || m.Locs.At(u.First).Addr == addr {
			continue
		}
		st.Moved++
		for k := range u.Count {
			m.Locs.At(u.Loc(k)).Addr = addr
		}
	}
	return st
}

// shift moves unit i to the next free place of its window.
func (ws *Workspace) shift(i uint32, w *window, n int) {
	p := &ws.at[i]
	length := int(p.hi - p.lo)
	if ws.fixed[i] || p.quads == 0 || length == 0 || int(p.hi) > n {
		return
	}
	clear(ws.words)
	for _, j := range ws.graph.Neighbours(i) {
		if o := &ws.at[j]; o.quads&p.quads != 0 {
			memalloc.Mark(ws.words, int(o.lo), min(int(o.hi), n))
		}
	}
	if memalloc.NextSet(ws.words, int(p.lo), int(p.hi)) < int(p.hi) {
		return // shared on purpose
	}
	shift := uint8(min(maxShift, bits.TrailingZeros32(uint32(p.lo))))
	at := memalloc.Fit(ws.words, w.cursor, w.hi, length, shift)
	if at < 0 {
		at = memalloc.Fit(ws.words, w.lo, min(w.hi, w.cursor+length), length, shift)
	}
	if at < 0 {
		return
	}
	p.lo, p.hi = int32(at), int32(at+length)
	w.cursor = at + length
}

// spot finds the bytes and quadrants of a unit. What is off the grid, or whose locations are apart, obstructs as a whole and
// stays.
func (ws *Workspace) spot(m *ir.Module, i int, u *ssa.Unit) {
	p := &ws.at[i]
	*p = place{}
	first := m.Locs.At(u.First)
	for k := range u.Count {
		l := m.Locs.At(u.Loc(k))
		if l.Flags&ir.LocAllocated == 0 || l.Addr < 0 {
			continue
		}
		if l.Addr%granule != 0 || l.Addr != first.Addr || l.Base != first.Base {
			ws.fixed[i] = true
		}
		lo, hi := int32(l.Addr/granule), int32((l.Addr+l.Bytes+granule-1)/granule)
		if p.quads == 0 {
			p.lo = lo
		}
		p.lo, p.hi = min(p.lo, lo), max(p.hi, hi)
		q := l.Base / target.QuadrantPartitions
		p.quads |= uint8(1<<(target.BandHeight(int(l.Parts))/target.QuadrantPartitions)-1) << q & 15
	}
}
