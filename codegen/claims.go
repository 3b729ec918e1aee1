package codegen

import (
	"errors"
	"math"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// checkClaims holds a module that came from outside to what it says of itself: tensors are in one memory, constants have their bytes, aliases
// are in DRAM, what is read was written, and the passes that its functions claim to have been through left what they leave. Later passes build on it unchecked, and what
// they would run into is the module's fault and not theirs.
func (w *Worker) checkClaims() error {
	m := w.m
	for s, r := range m.Sets.All() {
		first, n := m.LocsOf(s)
		for l := first; l < first+ir.Loc(n); l++ {
			if a, b := m.Locs.At(first).Space, m.Locs.At(l).Space; a != b {
				return target.Errorf(target.User, "tensor %s has placements in %s (%s) and in %s (%s); one memory is possible", m.Names.String(r.Name), a, m.LocName(first), b, m.LocName(l))
			}
		}
		if r.Count > 0 && (r.Kind.IsInput() || r.Kind.IsOutput()) {
			// The machine is fed by shapes and types, and the program reads by bytes.
			l := m.Locs.At(first)
			if l.Space.OnChip() {
				return target.NotSupported("on-chip "+r.Kind.String(), "tensor %s is an %s in %s; inputs and outputs lie in DRAM, and a Load or a Save moves them", m.Names.String(r.Name), r.Kind, l.Space)
			}
			if l.Bytes*int64(max(l.Parts, 1)) != shapeBytes(m.Ints.Of(r.Shape), r.Dtype) {
				return target.Errorf(target.User, "tensor %s of %d bytes: its shape %v of %s has %d", m.Names.String(r.Name), l.Bytes*int64(max(l.Parts, 1)), m.Ints.Of(r.Shape), r.Dtype, shapeBytes(m.Ints.Of(r.Shape), r.Dtype))
			}
		}
		if r.Const == 0 || r.Count == 0 {
			continue
		}
		c, l := m.Consts.At(r.Const), m.Locs.At(r.First)
		if size := l.Bytes * int64(max(l.Parts, 1)); c.Kind == ir.ConstEmbedded && int64(c.Data.Len) != size {
			return target.Errorf(target.User, "constant %s of %d bytes has %d bytes of data", m.Names.String(r.Name), size, c.Data.Len)
		}
	}
	for g, r := range m.Regs.All() {
		if r.Phys >= 0 && int(r.Phys)+int(r.Width) > target.RegisterLanes {
			return target.Errorf(target.User, "register %s is fixed at lane %d and takes %d; an engine has lanes 0 to %d; phys -1 leaves the choice to coloring_allocator_reg", m.RegName(g), r.Phys, r.Width, target.RegisterLanes-1)
		}
	}
	for _, a := range m.AliasRows() {
		switch {
		case m.Locs.At(a.A).Space.OnChip() || m.Locs.At(a.B).Space.OnChip():
			return target.NotSupported("on-chip alias", "%s and %s are aliases; only tensors in DRAM may be, and on chip two access patterns on one tensor say the same", m.LocName(a.A), m.LocName(a.B))
		case a.Kind != ir.AliasMay && a.Kind != ir.AliasMust:
			return target.NotSupported("alias kind", "%s and %s are aliases of kind %d; known are %d, they may share bytes, and %d, they are the same bytes", m.LocName(a.A), m.LocName(a.B), a.Kind, ir.AliasMay, ir.AliasMust)
		}
	}
	claimed := false
	err := w.eachFunc(func(f ir.Func) error {
		if err := errors.Join(w.checkGiven(f), verify.Written(m, f)); err != nil {
			return err
		}
		flags := m.Funcs.At(f).Flags & (placed | late)
		claimed = claimed || flags != 0
		if flags&placed != 0 {
			if err := w.checkPlaced(f, flags); err != nil {
				return err
			}
		}
		if flags&ir.FuncQueued != 0 {
			if err := w.checkQueued(f); err != nil {
				return err
			}
		}
		if flags&late != 0 {
			return w.checkBackward(f)
		}
		return nil
	})
	if err != nil || !claimed {
		return err
	}
	var e *target.Error
	if err = w.verifyNow(); errors.As(err, &e) && e.Class == target.Bug {
		return target.Errorf(target.User, "the program says that passes have run on it, and does not bear it out: %s", err)
	}
	return err
}

// checkGiven holds the placements that a module brings along against each other: allocators keep them and place the rest around them.
// Once a function is scheduled, lifetimes no longer say what is apart.
func (w *Worker) checkGiven(f ir.Func) error {
	if w.m.Funcs.At(f).Flags&ir.FuncScheduled != 0 {
		return nil
	}
	if err := verify.Given(w.m, f); err != nil {
		return target.Errorf(target.User, "the placements that function %s brings along are wrong: %w", w.m.Names.String(w.m.Funcs.At(f).Name), err)
	}
	return nil
}

// checkPlaced finds a tensor that is used, is in a memory whose tensors are said to be placed, and has no place.
func (w *Worker) checkPlaced(f ir.Func, flags ir.FuncFlag) error {
	m := w.m
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			for _, a := range m.AllArgs(i) {
				if a.Kind != ir.ArgAP {
					continue
				}
				at := m.APs.At(a.AP()).Loc
				l := m.Locs.At(at)
				kind := m.Sets.At(l.Set).Kind
				say := map[target.Space]ir.FuncFlag{target.SpacePSUM: ir.FuncPsumPlaced, target.SpaceSB: ir.FuncSBPlaced, target.SpaceDRAM: ir.FuncDRAMPlaced}[l.Space]
				if l.Space == target.SpaceDRAM && !kind.IsInternal() {
					continue
				}
				if flags&say != 0 && l.Flags&ir.LocAllocated == 0 {
					return target.Errorf(target.User, "%s: the function says that tensors in %s are placed, and %s has no address", m.InstName(i), l.Space, m.LocName(at))
				}
			}
		}
	}
	return nil
}

// checkQueued finds a transfer without a queue set of the engine that triggers it.
func (w *Worker) checkQueued(f ir.Func) error {
	m := w.m
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			if r.Op.IsDMA() && (r.Queue == 0 || m.Queues.At(r.Queue).Owner != r.Engine) {
				return target.Errorf(target.User, "%s: the function says that transfers have their queues, and this one, which %s triggers, has no queue set of that engine; run alloc_queues", m.InstName(i), r.Engine)
			}
		}
	}
	return nil
}

// checkBackward finds a dependence on what comes later.
func (w *Worker) checkBackward(f ir.Func) error {
	m := w.m
	w.order.Reset()
	w.order.Resize(m.Insts.Len())
	at := uint32(0)
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			at++
			w.order.Set(i, at)
			for _, d := range m.DepsOf(i) {
				if w.order.Get(d.Inst) == 0 {
					return target.Errorf(target.User, "%s depends on %s, which does not come before it in function %s", m.InstName(i), m.InstName(d.Inst), m.Names.String(m.Funcs.At(f).Name))
				}
			}
		}
	}
	return nil
}

// shapeBytes are the bytes of a tensor, -1 where an axis is negative or the product no number.
func shapeBytes(shape []int64, d target.Dtype) int64 {
	n := int64(d.Size())
	for _, v := range shape {
		if v < 0 || v > 0 && n > math.MaxInt64/v {
			return -1
		}
		n *= v
	}
	return n
}
