package codegen

import (
	"errors"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// checkClaims holds a module that came from outside to what it says of itself: tensors are in one memory, constants have their bytes, and
// the passes that its functions claim to have been through left what they leave. Later passes build on it unchecked, and what
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
		if r.Const == 0 || r.Count == 0 {
			continue
		}
		c, l := m.Consts.At(r.Const), m.Locs.At(r.First)
		if size := l.Bytes * int64(max(l.Parts, 1)); c.Kind == ir.ConstEmbedded && int64(c.Data.Len) != size {
			return target.Errorf(target.User, "constant %s of %d bytes has %d bytes of data", m.Names.String(r.Name), size, c.Data.Len)
		}
	}
	claimed := false
	err := w.eachFunc(func(f ir.Func) error {
		flags := m.Funcs.At(f).Flags & (placed | late)
		claimed = claimed || flags != 0
		if flags&placed != 0 {
			if err := w.checkPlaced(f, flags); err != nil {
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
				if l.Space == target.SpaceDRAM && kind != ir.KindInternal && kind != ir.KindInternalInterface {
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
