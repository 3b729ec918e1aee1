package ssa

import "github.com/rosmar-compiler/rosmar/ir"

// Loop is one region of a flattened order: the points Head < p < End are its body, Head is its own instruction. 32 bytes.
type Loop struct {
	Inst      ir.Inst
	Head, End Point
	Parent    uint32 // the loop around it, 0 at top level
	Top       uint32 // the outermost loop around it, or itself
	depth     uint32 // 1 at top level
	jump      uint32 // some loop around it, so that a search outwards takes logarithmic time (Myers, 1983)
	// Runs says that every instruction of the body is known to run: the loop and all around it make a turn or more.
	Runs bool
}

// open numbers the loop of a region instruction, whose point has just been added, in loop parent.
func (l *Linear) open(m *ir.Module, i ir.Inst, parent uint32) uint32 {
	n := uint32(len(l.Loops))
	up := &l.Loops[parent]
	x := Loop{Inst: i, Head: Point(len(l.Insts) - 1), Parent: parent, Top: up.Top, depth: up.depth + 1, jump: parent}
	if far := &l.Loops[up.jump]; up.depth-far.depth == far.depth-l.Loops[far.jump].depth {
		x.jump = far.jump
	}
	if parent == 0 {
		x.Top, x.jump = n, 0
	}
	if a := m.Regions.Get(i).Axis; a != 0 {
		trips, _ := m.Axes.At(a).Trips()
		x.Runs = m.Insts.At(i).Op == ir.OpLoop && trips > 0 && (parent == 0 || up.Runs)
		l.twice = l.twice || l.axes.Get(a)
		l.axes.Set(a, true)
	}
	l.Loops = append(l.Loops, x)
	return n
}

// LoopOf is the innermost loop whose body a point is in, 0 for none.
func (l *Linear) LoopOf(p Point) uint32 {
	if len(l.loopOf) == 0 {
		return 0
	}
	return l.loopOf[p]
}

// In reports a point in the body of a loop; every point is in loop 0.
func (l *Linear) In(p Point, loop uint32) bool {
	return loop == 0 || l.Loops[loop].Head < p && p < l.Loops[loop].End
}

// SharedAxis reports two loops that count with one axis, so that an index may mean two things.
func (l *Linear) SharedAxis() bool { return l.twice }

// Share reports two points with a loop around both.
func (l *Linear) Share(p, q Point) bool {
	n := l.LoopOf(p)
	return n != 0 && l.Loops[n].Top == l.Loops[l.LoopOf(q)].Top
}

// Leaving is the outermost loop that p is in and q is not, 0 when q is in all loops of p.
func (l *Linear) Leaving(p, q Point) uint32 {
	n := l.LoopOf(p)
	if l.In(q, n) {
		return 0
	}
	for {
		x := &l.Loops[n]
		switch {
		case x.jump != 0 && !l.In(q, x.jump):
			n = x.jump
		case x.Parent != 0 && !l.In(q, x.Parent):
			n = x.Parent
		default:
			return n
		}
	}
}
