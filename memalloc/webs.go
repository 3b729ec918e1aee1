package memalloc

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// Web splitting: a location that is written over after its last use holds several values one after the other. Each becomes a
// location of its own, so that the gaps between them are free and each may lie elsewhere, or be spilled, by itself.
//
// The usual way is a union-find over definitions and the uses that they reach. Only webs that are apart in time are worth
// splitting, and in straight-line code those are what lies between cuts: points that no definition before reaches past. So each
// read asks for the earliest definition that it may find, and what no such span crosses is a cut. In-place chains and accumulation
// read what they write and are never cut.

// maxDefs is how many definitions that are still to be seen by a read are kept apart; a location with more stays whole.
const maxDefs = 64

// webs is the storage of the splitting.
type webs struct {
	open      bool     // the first round, before which locations are split
	rewritten []uint32 // units that are written over after a read
	defs      []def
	cross     []int32 // by access: change in the number of spans from definition to use that cross the gap before it
	cuts      []int   // first accesses of the second web and those after
}

// def is a definition that a read may still find.
type def struct {
	fp     ir.Footprint
	access int
	gone   int64 // bytes of its rectangle that later definitions cover, none counted twice
}

func (w *webs) begin() { w.open, w.rewritten = true, w.rewritten[:0] }

// splitWebs splits what sbProblem found written over, and reports whether the units must be numbered anew.
func (ws *Workspace) splitWebs(m *ir.Module, mt *Metrics) bool {
	w, sp := &ws.webs, &ws.spill
	w.open = false
	for _, i := range w.rewritten {
		u := ws.ranges.Units[i]
		acc := ws.lin.Of(u.First)
		if !w.cut(m, &ws.lin, acc, &u) {
			continue
		}
		mt.Splittable++
		mt.Split += len(w.cuts)
		l := *m.Locs.At(u.First)
		set := *m.Sets.At(u.Set)
		for k, from := range w.cuts {
			to := len(acc)
			if k+1 < len(w.cuts) {
				to = w.cuts[k+1]
			}
			_, clone := sp.newSet(u.Set, arena.DeriveSplit, set.Class, target.SpaceSB, int64(l.Parts), l.Bytes, set.Flags)
			for _, a := range acc[from:to] {
				arg := &m.Args.Of(arena.Span{Off: a.Arg, Len: 1})[0]
				row := *m.APs.At(arg.AP())
				row.Loc = clone
				arg.Ref = uint32(m.APs.Add(row))
			}
		}
	}
	if mt.Split == 0 {
		return false
	}
	sp.apply()
	return true
}

// cut finds the cuts of a location. No cut lies in a loop, whose turns follow each other, but in one that has all accesses in its
// own body and carries nothing from turn to turn: there a turn is straight-line code.
func (w *webs) cut(m *ir.Module, lin *ssa.Linear, acc []ssa.Access, u *ssa.Unit) bool {
	turn := u.Start == acc[0].At && u.End == acc[len(acc)-1].At+1
	for k := range acc {
		turn = turn && lin.LoopOf(acc[k].At) == lin.LoopOf(acc[0].At)
	}
	w.defs, w.cuts = w.defs[:0], w.cuts[:0]
	w.cross = arena.Resized(w.cross, len(acc)+1)
	clear(w.cross)
	for k := range acc {
		a := &acc[k]
		fp := m.FootprintOf(apOf(m, a.Arg))
		if a.Flags&ssa.Read != 0 {
			from, ok := w.reach(&fp)
			if !ok {
				from = 0 // some of its bytes are older than all definitions
			}
			if k > from {
				w.cross[from+1]++
				w.cross[k+1]--
			}
		}
		if a.Flags&ssa.Write != 0 {
			w.define(&fp, k)
			if len(w.defs) > maxDefs {
				return false
			}
		}
	}
	spans := int32(0)
	for k := range acc {
		if spans += w.cross[k]; spans == 0 && k > 0 && acc[k].Flags&ssa.Write != 0 && acc[k-1].At < acc[k].At &&
			(turn || !lin.Share(acc[k-1].At, acc[k].At)) {
			w.cuts = append(w.cuts, k)
		}
	}
	return len(w.cuts) > 0
}

// define adds a definition and forgets those that no read can find any more.
func (w *webs) define(fp *ir.Footprint, access int) {
	first := true // no definition newer than d covers any of these bytes
	for i := len(w.defs) - 1; i >= 0; i-- {
		d := &w.defs[i]
		n := shared(fp, &d.fp)
		if n == 0 {
			continue
		}
		if first && fp.N == 0 {
			d.gone += n
		}
		first = false
	}
	keep := w.defs[:0]
	for _, d := range w.defs {
		if !fp.Contains(&d.fp) && d.gone < int64(d.fp.P1-d.fp.P0)*(d.fp.Hi-d.fp.Lo) {
			keep = append(keep, d)
		}
	}
	w.defs = append(keep, def{fp: *fp, access: access})
}

// shared is the bytes that the rectangles of two accesses have in common.
func shared(f, g *ir.Footprint) int64 {
	return int64(max(0, min(f.P1, g.P1)-max(f.P0, g.P0))) * max(0, min(f.Hi, g.Hi)-max(f.Lo, g.Lo))
}

// reach is the earliest definition that a read of fp may find, false when it may find none.
func (w *webs) reach(fp *ir.Footprint) (from int, ok bool) {
	for i := len(w.defs) - 1; i >= 0; i-- {
		d := &w.defs[i]
		if d.fp.Contains(fp) {
			return d.access, true
		}
		if d.fp.Overlaps(fp) {
			from, ok = d.access, true
		}
	}
	return from, ok
}
