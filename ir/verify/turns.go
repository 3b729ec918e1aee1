package verify

import (
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
)

// maxSteps is how many instructions a walk over a function with loops takes; beyond it loops make fewer turns.
const maxSteps = 1 << 20

// walker runs over the instructions of a function in the order in which they run, loops in their turns, without computing anything.
type walker struct {
	m     *ir.Module
	known bool // the caller's: an axis has values only where those of every turn are known
	cut   bool // loops make fewer turns than they have
	axes  map[ir.Axis]int64
	eval  ir.ExprEval
	row   ir.APRow
}

// walk calls visit for each instruction as often as it runs. Loops make all their turns if that takes no more than maxSteps
// steps; else as many, the first ones, as all of them together can. One that only the machine can count makes two.
func (w *walker) walk(f ir.Func, visit func(ir.Inst)) {
	m := w.m
	o := flatten(m, f)
	most := uint64(math.MaxUint64)
	for _, n := range [...]uint64{math.MaxUint64, 64, 16, 4, 2, 1} {
		if most = n; o.steps(n) <= maxSteps {
			break
		}
	}
	w.axes, w.cut = map[ir.Axis]int64{}, most != math.MaxUint64
	type turn struct {
		region int
		left   uint64
		axis   ir.Axis
		before int64
		bound  bool
	}
	var stack []turn
	next := 0 // the next region to begin, in order of heads
	for p := 1; p < len(o.insts) || len(stack) > 0; {
		if k := len(stack) - 1; k >= 0 && int32(p) == o.regions[stack[k].region].end {
			t := &stack[k]
			if t.left > 0 {
				t.left--
				if _, ok := w.axes[t.axis]; ok {
					w.axes[t.axis] += m.Axes.At(t.axis).Step
				}
				p, next = int(o.regions[t.region].head)+1, t.region+1
				continue
			}
			if t.bound {
				w.axes[t.axis] = t.before
			} else {
				delete(w.axes, t.axis)
			}
			stack = stack[:k]
			continue
		}
		visit(o.insts[p])
		if next < len(o.regions) && o.regions[next].head == int32(p) {
			r := next
			next++
			if n := min(most, o.turns(r)); n > 0 {
				t := turn{region: r, left: n - 1, axis: m.Regions.Get(o.insts[p]).Axis}
				t.before, t.bound = w.axes[t.axis]
				switch {
				case w.known && m.Insts.At(o.insts[p]).Op != ir.OpLoop:
					delete(w.axes, t.axis)
				case t.axis != 0:
					w.axes[t.axis] = m.Axes.At(t.axis).Lo
				}
				stack = append(stack, t)
			} else {
				p = int(o.regions[r].end) - 1
				for next < len(o.regions) && o.regions[next].head <= int32(p) {
					next++
				}
			}
		}
		p++
	}
}

// turns is how many turns a region makes; two where only the machine knows.
func (o *flattened) turns(r int) uint64 {
	i := o.regions[r].inst
	axis := o.m.Regions.Get(i).Axis
	if o.m.Insts.At(i).Op != ir.OpLoop || axis == 0 {
		return 2
	}
	n, _ := o.m.Axes.At(axis).Trips()
	return n
}

// steps is how many instructions run when no loop makes more than most turns.
func (o *flattened) steps(most uint64) uint64 {
	inside := make([]uint64, len(o.regions)+1) // of one turn, and one for itself; the last entry is the function
	for r := range inside {
		inside[r] = 1
	}
	at := func(r int32) *uint64 {
		if r < 0 {
			return &inside[len(o.regions)]
		}
		return &inside[r]
	}
	for p := range o.insts {
		*at(o.in[p])++
	}
	for r := len(o.regions) - 1; r >= 0; r-- {
		n, each := min(most, o.turns(r)), inside[r]
		up := at(o.regions[r].up)
		if n > 0 && each > maxSteps/n {
			*up += maxSteps + 1
		} else {
			*up += n * each
		}
		*up = min(*up, maxSteps+1)
	}
	return inside[len(o.regions)]
}

// pattern is what an operand touches in this turn, nil for what is no pattern and for what only the machine knows. Valid until the
// next call.
func (w *walker) pattern(a ir.Arg) *ir.APRow {
	switch a.Kind {
	case ir.ArgAP:
		return w.m.APs.At(a.AP())
	case ir.ArgSym, ir.ArgSymPW:
		s := w.m.Syms.At(ir.Sym(a.Ref))
		addr, _, err := w.eval.Bounds(w.m, s.Addr, func(x ir.Axis) (int64, int64, bool) {
			v, ok := w.axes[x]
			return v, v, ok
		})
		if row, ok := w.m.Resolve(s, addr); err == nil && ok {
			w.row = row
			return &w.row
		}
	}
	return nil
}
