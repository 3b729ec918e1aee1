package memalloc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// liveScan sums weights over points.
type liveScan struct {
	delta []int64
	order []uint32
}

// peak is the largest sum of the weights of the nodes that are live together, and the first point where it stands. weight is
// asked once a segment.
func (s *liveScan) peak(segs []regalloc.Seg, points int, weight func(node uint32) int64) (sum int64, at ssa.Point) {
	s.delta = arena.Resized(s.delta, max(1, points)+1)
	clear(s.delta)
	for _, x := range segs {
		w := weight(x.Node)
		s.delta[x.Start] += w
		s.delta[x.End] -= w
	}
	live := int64(0)
	for p, d := range s.delta {
		if live += d; live > sum {
			sum, at = live, ssa.Point(p)
		}
	}
	return sum, at
}

// within is the largest sum that peak found at a point of the segments, which come in order, and the first such point.
func (s *liveScan) within(own []regalloc.Seg) (sum int64, at ssa.Point) {
	sum, at = -1, own[0].Start
	live := int64(0)
	for p, d := range s.delta {
		live += d
		for len(own) > 0 && own[0].End <= ssa.Point(p) {
			own = own[1:]
		}
		if len(own) == 0 {
			break
		}
		if live > sum && own[0].Start <= ssa.Point(p) {
			sum, at = live, ssa.Point(p)
		}
	}
	return sum, at
}

// largest are up to n of the nodes that are live at a point, the heaviest first.
func (s *liveScan) largest(segs []regalloc.Seg, at ssa.Point, n int, weight func(node uint32) int64) []uint32 {
	s.order = s.order[:0]
	for _, x := range segs {
		if x.Start <= at && at < x.End {
			s.order = append(s.order, x.Node)
		}
	}
	slices.SortFunc(s.order, func(a, b uint32) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	return s.order[:min(n, len(s.order))]
}

// firstFailure is the unit that a message is about: one that spilling cannot help, or else the first that found no place.
func (ws *Workspace) firstFailure() uint32 {
	if len(ws.result.Stuck) > 0 {
		return ws.result.Stuck[0]
	}
	return ws.result.Unplaced[0]
}

// overflow is the message for a tensor that finds no place: what it needs of how much, and why it does not get it.
type overflow struct {
	space       target.Space
	loc         ir.Loc
	need, limit int64
	what        string // the unit of need and limit
	why, try    string
}

// shownLive is how many of the tensors that stand in the way a message names.
const shownLive = 5

// complain is the error of an overflow: the tensor, its need, the limit, the worst point of its life, and the largest tensors that
// are live there. own are the tensor's live segments, all those of the memory.
func (ws *Workspace) complain(m *ir.Module, o *overflow, own, all []regalloc.Seg, weight func(node uint32) int64) error {
	ws.live.peak(all, ws.lin.Points(), weight)
	sum, at := ws.live.within(own)
	return o.err(m, sum, ws.instAt(at), ws.list(m, ws.live.largest(all, at, shownLive, weight), weight))
}

// list names units with their weights.
func (ws *Workspace) list(m *ir.Module, units []uint32, weight func(unit uint32) int64) string {
	var b strings.Builder
	for k, i := range units {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", m.LocName(ws.ranges.Units[i].First), weight(i))
	}
	return b.String()
}

// err is the message: sum are live at an instruction, the largest of which are listed; -1 for a tensor that never is.
func (o *overflow) err(m *ir.Module, sum int64, at ir.Inst, largest string) error {
	if sum < 0 {
		return target.Errorf(target.Limit, "%s overflow: %s needs %d %s of %d, %s; no instruction touches it: take it out of the program, or %s",
			o.space, m.LocName(o.loc), o.need, o.what, o.limit, o.why, o.try)
	}
	return target.Errorf(target.Limit, "%s overflow: %s needs %d %s of %d, %s; %d are live at %s, the largest of them: %s; %s",
		o.space, m.LocName(o.loc), o.need, o.what, o.limit, o.why, sum, m.InstName(at), largest, o.try)
}

// instAt is the instruction at a point, none behind the last.
func (ws *Workspace) instAt(p ssa.Point) ir.Inst {
	if int(p) < ws.lin.Points() {
		return ws.lin.Insts[p]
	}
	return 0
}

// overflow is the error for a unit of a colouring allocator.
func (ws *Workspace) overflow(m *ir.Module, mt *Metrics, unit uint32) error {
	weight := func(i uint32) int64 { return m.Locs.At(ws.ranges.Units[i].First).Bytes }
	o := overflow{
		space: mt.Space, loc: ws.ranges.Units[unit].First, limit: mt.Capacity, what: "bytes a partition", why: "and spilling cannot help",
		try: "plan smaller tiles (--tile-sb-bytes) or give the allocator more bytes (--sb-bytes)",
	}
	if mt.Space == target.SpacePSUM {
		weight = func(i uint32) int64 { return int64(ws.psum.span[i]) }
		o.what, o.try = "banks", "give the allocator more banks (--psum-banks) or keep fewer results in PSUM at once (a lower --tile-level)"
		if mt.Spilled > 0 {
			o.why = "too many reloads needed: what was copied to SBUF did not make room"
		}
	} else {
		o.limit -= int64(ws.sb.floor) * granule
	}
	o.need = weight(unit)
	if ws.solver.Nodes[unit].Cost != regalloc.Infinite {
		o.why = "and spilling is off"
	}
	return ws.complain(m, &o, ws.segs[unit:unit+1], ws.segs, weight)
}
