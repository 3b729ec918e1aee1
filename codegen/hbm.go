package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// HBM is what a program takes of the device's memory, in bytes.
type HBM struct {
	Allocated   int64 // intermediates, at the addresses that the allocators gave
	Runtime     int64 // inputs, outputs and constants, for which the runtime finds a place
	Descriptors int64 // of the transfers' rings
	Code        int64 // of the engine streams, one bundle an instruction until they are encoded
}

// Total is all of it. Tensors that several cores see are in it once.
func (h *HBM) Total() int64 { return h.Allocated + h.Runtime + h.Descriptors + h.Code }

const (
	// slotBytes is a slot of a descriptor ring: address, length and flags of one contiguous run. Our figure.
	slotBytes = 16
	// bundleBytes is one instruction word.
	bundleBytes = 64
)

// hbmUsage holds all of that against the window of one core. Above the limit it warns, a tenth above it it also says which tensors
// are largest; either is an error unless the check is disabled.
func hbmUsage(w *Worker) error {
	h := w.measureHBM()
	w.reports.hbm = h
	limit := w.gen.HBMBytes()
	if w.opt.HBMGiB > 0 {
		limit = int64(w.opt.HBMGiB) << 30
	}
	total := h.Total()
	w.Count("hbm_bytes", total)
	w.Count("hbm_descriptors", h.Descriptors)
	w.Count("hbm_limit", limit)
	if total <= limit {
		return nil
	}
	text := fmt.Sprintf("the program needs %d bytes of HBM (inputs, outputs and weights %d, intermediates %d, descriptors %d, code %d); the window of %s is %d",
		total, h.Runtime, h.Allocated, h.Descriptors, h.Code, w.gen.Name, limit)
	if float64(total) > 1.1*float64(limit) {
		text += "; largest tensors: " + w.largestDRAM()
	}
	if w.opt.NoHBMCheck {
		if w.Talk != nil {
			fmt.Fprintf(w.Talk, "warning: %s\n", text)
		}
		return nil
	}
	return target.Errorf(target.Limit, "%s; split the model, use a target with more, or go on with --disable-hbm-usage-check", text)
}

func (w *Worker) measureHBM() (h HBM) {
	m := w.m
	for _, r := range m.Locs.All() {
		if r.Space != target.SpaceDRAM {
			continue
		}
		n := r.Bytes * int64(max(1, r.Parts))
		if !m.Sets.At(r.Set).Kind.IsInternal() {
			h.Runtime += n
		} else if r.Flags&ir.LocAllocated != 0 {
			h.Allocated = max(h.Allocated, r.Addr+n)
		}
	}
	for b := range m.Blocks.All() {
		for _, i := range m.OrderOf(b) {
			h.Code += bundleBytes
			if m.Insts.At(i).Op.IsDMA() {
				h.Descriptors += slotBytes * ringSlots(m, i, int64(w.gen.MaxDescriptor))
			}
		}
	}
	return h
}

// ringSlots is how many runs a transfer consists of: contiguous on both sides, and of at most longest bytes. Patterns that are not
// known yet count as one.
func ringSlots(m *ir.Module, i ir.Inst, longest int64) int64 {
	slots := int64(1)
	for _, a := range m.AllArgs(i) {
		if a.Kind != ir.ArgAP {
			continue
		}
		fp := m.FootprintOf(a.AP())
		slots = max(slots, fp.Runs()*int64(fp.P1-fp.P0)*((fp.Run+longest-1)/longest))
	}
	return slots
}

// largestDRAM names the largest tensors in DRAM.
func (w *Worker) largestDRAM() string {
	type row struct {
		loc  ir.Loc
		size int64
	}
	var rows []row
	for l, r := range w.m.Locs.All() {
		if r.Space == target.SpaceDRAM {
			rows = append(rows, row{l, r.Bytes * int64(max(1, r.Parts))})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.loc, b.loc)) })
	var text []string
	for _, r := range rows[:min(5, len(rows))] {
		text = append(text, fmt.Sprintf("%s %d", w.m.LocName(r.loc), r.size))
	}
	return strings.Join(text, ", ")
}
