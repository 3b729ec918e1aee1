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

// peak is the largest sum of the weights of the units that are live together, and the first point where it stands.
func (s *liveScan) peak(units []ssa.Unit, points int, weight func(i int) int64) (sum int64, at ssa.Point) {
	s.delta = arena.Resized(s.delta, max(1, points)+1)
	clear(s.delta)
	for i := range units {
		w := weight(i)
		s.delta[units[i].Start] += w
		s.delta[units[i].End] -= w
	}
	live := int64(0)
	for p, d := range s.delta {
		if live += d; live > sum {
			sum, at = live, ssa.Point(p)
		}
	}
	return sum, at
}

// largest are up to n of the units that are live at a point, the largest first.
func (s *liveScan) largest(units []ssa.Unit, at ssa.Point, n int, weight func(i int) int64) []uint32 {
	s.order = s.order[:0]
	for i := range units {
		if units[i].Start <= at && at < units[i].End {
			s.order = append(s.order, uint32(i))
		}
	}
	slices.SortFunc(s.order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(weight(int(b)), weight(int(a))), cmp.Compare(a, b))
	})
	return s.order[:min(n, len(s.order))]
}

// firstFailure is the unit that a message is about: one that spilling cannot help, or else the first that found no place.
func (ws *Workspace) firstFailure() uint32 {
	if len(ws.result.Stuck) > 0 {
		return ws.result.Stuck[0]
	}
	return ws.result.Unplaced[0]
}

// overflow is the error for a unit that finds no place: its need, the limit, the worst point of its life, and what lies there.
func (ws *Workspace) overflow(m *ir.Module, mt *Metrics, unit uint32) error {
	u := &ws.ranges.Units[unit]
	weight := func(i int) int64 { return m.Locs.At(ws.ranges.Units[i].First).Bytes }
	unitName, try := "bytes a partition", "plan smaller tiles (--tile-sb-bytes) or give the allocator more bytes (--sb-bytes)"
	if mt.Space == target.SpacePSUM {
		weight = func(i int) int64 { return int64(ws.psum.span[i]) }
		unitName, try = "banks", "give the allocator more banks (--psum-banks) or tile the operator smaller"
	}
	// The worst point within the unit's own range.
	ws.live.peak(ws.ranges.Units, ws.lin.Points(), weight)
	live, sum, at := int64(0), int64(-1), u.Start
	for p, d := range ws.live.delta {
		if live += d; live > sum && ssa.Point(p) >= u.Start && ssa.Point(p) < u.End {
			sum, at = live, ssa.Point(p)
		}
	}
	var b strings.Builder
	for k, i := range ws.live.largest(ws.ranges.Units, at, 5, weight) {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", m.LocName(ws.ranges.Units[i].First), weight(int(i)))
	}
	inst := "none"
	if int(at) < ws.lin.Points() {
		inst = m.InstName(ws.lin.Insts[at])
	}
	free := mt.Capacity
	if mt.Space == target.SpaceSB {
		free -= int64(ws.sb.floor) * granule
	}
	why := "and spilling cannot help"
	if ws.solver.Nodes[unit].Cost != regalloc.Infinite {
		why = "and spilling is off"
	}
	return target.Errorf(target.Limit, "%s overflow: %s needs %d %s of %d, %s; %d are live at %s, the largest of them: %s; %s",
		mt.Space, m.LocName(u.First), weight(int(unit)), unitName, free, why, sum, inst, b.String(), try)
}
