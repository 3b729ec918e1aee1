package memalloc

import (
	"cmp"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/regalloc"
)

// maxAround is how many stays may begin while a value is away for its cut to be looked at again, and packBudget how many neighbours
// a stay may have on average for packing to go on: they bound the work.
const (
	maxAround  = 1024
	packBudget = 4096
)

// fitter looks at the stays as rectangles of time and bytes, all at once: before the walk, which then knows where they would best lie,
// and after it, when some cuts turn out needless. The walk sends away what stands in the way at the time, and the room that this had
// before stays empty.
type fitter struct {
	// Items are the stays of each tenant in turn and the cuts between them. The place of an undone cut is that of the stays beside it.
	// A move is a cut of no length, and before it the stay lasts until all that moves at the same point has moved.
	spans  []regalloc.Seg
	stop   []uint32 // that a stay begins with, or a cut ends at
	move   []uint32 // 1 + the move that it is, or that it begins with, 0 none
	isCut  []bool
	loose  []uint32 // stops before which the tenant is in pieces
	sb     rects
	byTime []regalloc.Seg
	index  regalloc.Index
	order  []uint32
	sort   arena.Sorter
	hits   []uint32
	around []uint32
}

// inPieceMove stands for the moves by which a tenant is taken to pieces and put together again, which nothing undoes.
const inPieceMove = ^uint32(0)

// inPieces reports whether the moves before a stop make pieces of a tenant.
func inPieces(ms []move) bool {
	for k := range ms {
		if ms[k].off != 0 || ms[k].len == 0 {
			return true
		}
	}
	return false
}

// list numbers the items of the stays as they have been cut, the stays at places by stop, or nowhere yet.
func (j *fitter) list(ws *Workspace, s *stays, w *walker, at []spot) {
	j.spans, j.stop, j.move, j.isCut = j.spans[:0], j.stop[:0], j.move[:0], j.isCut[:0]
	j.sb.reset(0, int64(ws.sb.n)*granule, int64(ws.sb.floor)*granule)
	j.sb.tight = true
	j.loose = j.loose[:0]
	add := func(from, to, stop, move uint32, cut bool, t *tenant, length int32, at spot) {
		j.spans = append(j.spans, regalloc.Seg{Start: from, End: to, Node: uint32(len(j.spans))})
		j.stop, j.move, j.isCut = append(j.stop, stop), append(j.move, move), append(j.isCut, cut)
		j.sb.at = append(j.sb.at, place{lo: at.lo, hi: at.lo + length, quads: at.quads, class: t.class, shift: t.shift, least: t.shift})
	}
	for k := range s.tenants {
		t := &s.tenants[k]
		for n := t.first; n < t.end; n++ {
			x := &s.stops[n]
			if n > t.first && !x.cut {
				ms := w.movesOf(s, n)
				if inPieces(ms) { // they lie where they lie
					last := uint32(len(ms) - 1)
					j.spans[len(j.spans)-1].End = ms[0].at + 1
					add(ms[last].at, ms[last].at, n, inPieceMove, true, t, t.len, spot{})
					add(ms[last].at, ms[last].at, n, x.moves+last, false, t, t.len, ms[last].to)
					j.loose = append(j.loose, n)
					ms = nil
				}
				for k, d := range ms {
					j.spans[len(j.spans)-1].End = d.at + 1
					add(d.at, d.at, n, x.moves+uint32(k), true, t, t.len, spot{})
					add(d.at, d.at, n, x.moves+uint32(k), false, t, d.len, d.to)
				}
				j.spans[len(j.spans)-1].End = x.end + 1
				continue
			}
			if n > t.first {
				add(s.stops[n-1].end+1, x.at, n, 0, true, t, t.len, spot{})
			}
			if at == nil {
				add(x.at, x.end+1, n, 0, false, t, t.len, spot{})
			} else {
				add(x.at, x.end+1, n, 0, false, t, t.len, at[n])
			}
		}
	}
	for _, n := range j.loose {
		ms, t := w.movesOf(s, n), &s.tenants[s.stops[n].tenant]
		for k, d := range ms[:len(ms)-1] {
			if d.len == 0 {
				continue
			}
			end := ms[len(ms)-1].at
			for _, o := range ms[k+1:] {
				if o.off == d.off {
					end = o.at
					break
				}
			}
			add(d.at, end+1, n, s.stops[n].moves+uint32(k), false, t, d.len, d.to)
		}
	}
	j.sort.Start(len(j.spans))
	j.sort.By(func(id uint32) uint64 { return uint64(j.spans[id].Start) })
	j.byTime = arena.Resized(j.byTime, len(j.spans))
	for k := range j.sort.Items {
		j.byTime[k] = j.spans[j.sort.Items[k].ID]
	}
	j.index.Build(j.byTime)
}

// place finds item id a place that is free over the time of the items first to last.
func (j *fitter) place(id, first, last uint32) bool {
	j.hits = j.index.Append(j.hits[:0], j.spans[first].Start, j.spans[last].End)
	j.around = j.around[:0]
	for _, h := range j.hits {
		if n := j.byTime[h].Node; (n < first || n > last) && j.sb.at[n].quads != 0 {
			j.around = append(j.around, n)
		}
	}
	return j.sb.Place(id, j.around)
}

// pack lays the stays without cutting any, those that take most first, and tells the walk where they lie. Some find no place.
func (j *fitter) pack(ws *Workspace, s *stays, w *walker) {
	j.list(ws, s, w, nil)
	w.want = arena.Resized(w.want, len(s.stops))
	clear(w.want)
	j.order = j.order[:0]
	for id := range j.spans {
		if u := s.tenants[s.stops[j.stop[id]].tenant].unit; ws.solver.Nodes[u].Fixed {
			j.sb.at[id] = ws.sb.at[u]
		} else if !j.isCut[id] {
			j.order = append(j.order, uint32(id))
		}
	}
	area := func(id uint32) int64 {
		p, t := &j.sb.at[id], &j.spans[id]
		return int64(p.hi-p.lo) * quadsOfClass(p.class) * int64(t.End-t.Start)
	}
	j.sort.Take(j.order)
	j.sort.By(func(id uint32) uint64 { return ^uint64(area(id)) })
	j.sort.Put(j.order)
	budget := packBudget * len(j.order)
	for _, id := range j.order {
		if budget < 0 {
			return
		}
		if j.place(id, id, id) {
			w.want[j.stop[id]] = spot{j.sb.at[id].lo, j.sb.at[id].quads}
		}
		budget -= len(j.hits)
	}
}

// rejoin goes through the cuts and moves, those that cost most first, and undoes those for which all that they part finds a place together.
func (j *fitter) rejoin(ws *Workspace, s *stays, w *walker) {
	j.list(ws, s, w, w.at)
	price := func(id uint32) int64 {
		x := &s.stops[j.stop[id]]
		cost := x.reload + x.save
		if j.move[id] == inPieceMove {
			return 0
		}
		if j.move[id] != 0 { // of what is lost on the way
			n := int64(s.tenants[x.tenant].len)
			cost = 1 + cost*(n-int64(min(j.length(id-1), j.length(id+1))))/n
		}
		return cost
	}
	j.order = j.order[:0]
	for id := range j.spans {
		if j.isCut[id] && price(uint32(id)) > 0 {
			j.order = append(j.order, uint32(id))
		}
	}
	j.sort.Take(j.order)
	j.sort.By(func(id uint32) uint64 { return ^uint64(price(id)) })
	j.sort.Put(j.order)
	for _, id := range j.order {
		first, last := id-1, id+1
		for first > 0 && j.isCut[first-1] && j.sb.at[first-1].quads != 0 && id-first < maxAround {
			first -= 2
		}
		for int(last)+1 < len(j.spans) && j.isCut[last+1] && j.sb.at[last+1].quads != 0 && last-id < maxAround {
			last += 2
		}
		if j.crowded(first, last) || j.sb.at[id-1].quads == 0 || j.sb.at[id+1].quads == 0 || !j.place(id, first, last) {
			continue
		}
		for n := first; n <= last; n++ {
			j.sb.at[n] = j.sb.at[id]
		}
		if d := j.move[id]; d != 0 {
			w.moves[d-1].undone = true
		} else {
			s.stops[j.stop[id]].cut = false
		}
	}
	for id := range j.spans {
		if p := &j.sb.at[id]; p.quads != 0 {
			if d := j.move[id]; d != 0 {
				w.moves[d-1].to, w.moves[d-1].len = spot{p.lo, p.quads}, p.hi-p.lo
			} else {
				w.at[j.stop[id]] = spot{p.lo, p.quads}
			}
		}
	}
	w.settled(s)
	for k := range s.tenants { // a location may begin at any stop
		for n := s.tenants[k].first + 1; n < s.tenants[k].end; n++ {
			if ms := w.movesOf(s, n); len(ms) > 0 {
				w.at[n] = ms[len(ms)-1].to
			} else if !s.stops[n].cut && w.at[n-1].quads != 0 {
				w.at[n] = w.at[n-1]
			}
		}
	}
}

func (j *fitter) length(id uint32) int32 { return j.sb.at[id].hi - j.sb.at[id].lo }

// crowded reports whether the items first to last, or those that begin in their time, are too many to look at.
func (j *fitter) crowded(first, last uint32) bool {
	byStart := func(s regalloc.Seg, p uint32) int { return cmp.Compare(s.Start, p) }
	a, _ := slices.BinarySearchFunc(j.byTime, j.spans[first].Start, byStart)
	b, _ := slices.BinarySearchFunc(j.byTime, j.spans[last].End, byStart)
	return last-first >= maxAround || b-a > maxAround
}
