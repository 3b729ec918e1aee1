package memalloc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/regalloc"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// need is what one location must have at an instruction, whatever is split, shrunk or spilled: the bytes a partition between the
// first and the last that the instruction touches, in a band of that many partitions.
type need struct {
	loc   ir.Loc
	bytes int64
	parts int32
}

func (n *need) quads() int64 {
	return int64(target.BandHeight(int(n.parts))) / target.QuadrantPartitions
}

// oomScan is the storage of CheckFits.
type oomScan struct {
	needs  []need
	fixed  []regalloc.Seg // lives of what may not be spilled, by start; Node is a location
	boxes  []need         // of them
	active []int          // positions in fixed
	most   int64          // bytes a partition: what there is, or what worst lacks them for
	worst  error
}

// CheckFits refuses, before anything is placed, a function that no allocator could place: whose operands of one instruction, with
// the tensors that may not be spilled and are live there, exceed SBUF or the banks, or whose DRAM tensors that are live at once
// exceed the window. These are lower bounds: a function that passes may still not fit, one that is refused cannot. What has a
// place counts as nothing, nor do operands whose address is not known, nor those of transfers, which can be cut into smaller ones
// or, loads, be done again piece by piece. Errors are of class Limit.
func CheckFits(m *ir.Module, f ir.Func, ws *Workspace, opt Options) error {
	ws.lin.Build(m, f)
	strip := opt.Strip(m.Gen)
	for _, s := range m.SetsOf(f) {
		first, n := m.LocsOf(s)
		for l := first; l < first+ir.Loc(n); l++ {
			if r := m.Locs.At(l); r.Space == target.SpaceSB && r.Flags&ir.LocReserved != 0 {
				if strip = 0; target.BandHeight(int(r.Parts)) == m.Gen.SBPartitions {
					strip = r.Bytes
				}
			}
		}
	}
	size := opt.Raw(m.Gen) &^ (granule - 1)
	free := size - strip
	banks := int64(opt.Banks(m.Gen))
	ws.unspillable(m, &opt)
	x := &ws.oom
	x.active = x.active[:0]
	x.most, x.worst = free, nil
	next := 0
	acc, locs := ws.lin.All()
	for k := 0; k < len(acc); {
		from := k
		sb, psum := int64(0), int64(0) // at least what the precise count finds
		for k < len(acc) && acc[k].Inst == acc[from].Inst {
			switch l := m.Locs.At(locs[k]); l.Space {
			case target.SpaceSB:
				sb += l.Bytes + granule - 1
			case target.SpacePSUM:
				psum = max(psum, l.Bytes)
			}
			k++
		}
		if next < len(x.fixed) || len(x.active) > 0 {
			at := acc[from].At
			for next < len(x.fixed) && x.fixed[next].Start <= at {
				x.active = append(x.active, next)
				next++
			}
			x.active = slices.DeleteFunc(x.active, func(i int) bool { return x.fixed[i].End <= at })
		}
		if sb <= x.most && psum <= banks*int64(m.Gen.BankBytes) && len(x.active) == 0 || m.Insts.At(acc[from].Inst).Op.IsDMA() {
			continue
		}
		if err := ws.operandsFit(m, acc[from:k], locs[from:k], size, strip, banks); err != nil {
			return err
		}
	}
	if x.worst != nil {
		return x.worst
	}
	return ws.dramFits(m, f, opt.window(m.Gen))
}

// dramFits holds the DRAM tensors that are live at once against the window.
func (ws *Workspace) dramFits(m *ir.Module, f ir.Func, window int64) error {
	total := int64(0)
	for _, s := range m.SetsOf(f) {
		first, n := m.LocsOf(s)
		for l := first; l < first+ir.Loc(n) && internal(m.Sets.At(s).Kind); l++ {
			if r := m.Locs.At(l); r.Space == target.SpaceDRAM {
				total += min(roundPage(dramBytes(r)), window+1)
			}
		}
	}
	if total <= window {
		return nil
	}
	units, segs := ws.Live(m, f, target.SpaceDRAM)
	weight := func(i uint32) int64 { return ws.dram.size[i] }
	sum, at := ws.live.peak(segs, ws.lin.Points(), weight)
	if sum <= window {
		return nil
	}
	top := ws.live.largest(segs, at, shownLive, weight)
	o := overflow{
		space: target.SpaceDRAM, loc: units[top[0]].First, need: weight(top[0]), limit: window, what: "bytes",
		why: "and DRAM does not spill", try: "split the model or give a wider window (--hbm-gib)",
	}
	return o.err(m, sum, ws.instAt(at), ws.list(m, top, weight))
}

// unspillable lists the lives of SB locations that stay where they are from their one definition to their last use.
func (ws *Workspace) unspillable(m *ir.Module, opt *Options) {
	x := &ws.oom
	x.fixed, x.boxes = x.fixed[:0], x.boxes[:0]
	for _, s := range m.SetsOf(ws.lin.Func) {
		r := m.Sets.At(s)
		if r.Count == 0 || m.Locs.At(r.First).Space != target.SpaceSB || r.Flags&ir.SetReload == 0 && !(opt.NoSpillHint && r.Flags&ir.SetNoSpill != 0) {
			continue
		}
		for k := range r.Count {
			loc := r.First + ir.Loc(k)
			acc := ws.lin.Of(loc)
			if hasAddress(m.Locs.At(loc)) || len(acc) == 0 || acc[0].Flags&(ssa.Write|ssa.Read) != ssa.Write {
				continue
			}
			n, plain := need{loc: loc}, true
			for i := range acc {
				plain = plain && acc[i].Flags&(ssa.Symbolic|ssa.Nested) == 0 && (i == 0 || acc[i].Flags&ssa.Write == 0)
			}
			if !plain {
				continue
			}
			for i := range acc {
				n.add(m, acc[i].Arg)
			}
			x.fixed = append(x.fixed, regalloc.Seg{Start: acc[0].At, End: acc[len(acc)-1].At + 1, Node: uint32(len(x.boxes))})
			x.boxes = append(x.boxes, n)
		}
	}
	slices.SortFunc(x.fixed, func(a, b regalloc.Seg) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Node, b.Node)) })
}

// add widens a need to the larger of it and an operand's.
func (n *need) add(m *ir.Module, arg uint32) {
	fp := m.FootprintOf(apOf(m, arg))
	n.bytes = max(n.bytes, (fp.Hi-fp.Lo+granule-1)&^(granule-1))
	n.parts = max(n.parts, fp.P1-fp.P0)
}

// operandsFit holds the needs of one instruction against the memories. What SBUF lacks is noted where it is the most.
func (ws *Workspace) operandsFit(m *ir.Module, acc []ssa.Access, locs []ir.Loc, size, strip, banks int64) error {
	x := &ws.oom
	x.needs = x.needs[:0]
	for _, i := range x.active {
		x.needs = append(x.needs, x.boxes[x.fixed[i].Node])
	}
	held := len(x.needs)
	for k := range acc {
		l := m.Locs.At(locs[k])
		if !l.Space.OnChip() || hasAddress(l) || acc[k].Flags&ssa.Symbolic != 0 {
			continue
		}
		var n need
		n.loc = locs[k]
		n.add(m, acc[k].Arg)
		if l.Space == target.SpacePSUM {
			// Only what the array writes must be there; other accesses can be to a copy in SBUF.
			need := (n.bytes + int64(m.Gen.BankBytes) - 1) / int64(m.Gen.BankBytes)
			if acc[k].Flags&ssa.Write != 0 && m.Insts.At(acc[k].Inst).Op.Is(ir.FlagMatmul) && need > banks {
				o := overflow{
					space: target.SpacePSUM, loc: n.loc, need: need, limit: banks, what: "banks", why: "at one instruction",
					try: "give the allocator more banks (--psum-banks) or tile the operator smaller",
				}
				return o.err(m, need, acc[k].Inst, fmt.Sprintf("%s %d", m.LocName(n.loc), need))
			}
			continue
		}
		at := slices.IndexFunc(x.needs, func(o need) bool { return o.loc == n.loc })
		switch {
		case at < 0:
			x.needs = append(x.needs, n)
		case at >= held && n.bytes*n.quads() > x.needs[at].bytes*x.needs[at].quads():
			x.needs[at] = n
		}
	}
	area, tall, other := int64(0), int64(0), int64(0)
	for i := range x.needs {
		n := &x.needs[i]
		area += n.bytes * n.quads()
		if n.quads() == 4 {
			tall += n.bytes
		} else {
			other = max(other, n.bytes)
		}
	}
	sum := max((area+3)/4, tall+other)
	if len(x.needs) == 0 || sum <= x.most {
		return nil
	}
	slices.SortStableFunc(x.needs, func(a, b need) int { return cmp.Compare(b.bytes*b.quads(), a.bytes*a.quads()) })
	var list []string
	for i := range x.needs[:min(shownLive, len(x.needs))] {
		list = append(list, fmt.Sprintf("%s %d", m.LocName(x.needs[i].loc), x.needs[i].bytes))
	}
	o := overflow{
		space: target.SpaceSB, loc: x.needs[0].loc, need: x.needs[0].bytes, limit: size, what: "bytes a partition",
		why: fmt.Sprintf("of which the runtime has %d, and nothing here can be spilled", strip),
		try: "plan smaller tiles (--tile-sb-bytes)",
	}
	if total := sum + strip; total <= int64(m.Gen.SBBytes) {
		o.try += fmt.Sprintf(" or give the allocator more bytes (--sb-bytes, %d at least)", total)
	} else {
		o.try += fmt.Sprintf("; this takes %d, and %s has %d", total, m.Gen.Name, m.Gen.SBBytes)
	}
	x.most, x.worst = sum, o.err(m, sum, acc[0].Inst, strings.Join(list, ", "))
	return nil
}
