package tile

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// count is what emitting something would make.
type count struct {
	insts       int64
	descriptors int64
}

func (c count) times(n int64) count { return count{c.insts * n, c.descriptors * n} }

func (c *count) add(d count) {
	c.insts += d.insts
	c.descriptors += d.descriptors
}

// descriptorAxes is the (step, size) entries of a descriptor's side.
const descriptorAxes = 4

// descriptorBytes is the ring space of one element descriptor, both sides.
const descriptorBytes = 32

// entries is how many descriptors a side of the axes takes: the outermost axes beyond what one holds are unrolled. An
// innermost axis that is not contiguous leaves the run to single elements.
func entries(ps []ir.Pair) int64 {
	room := descriptorAxes
	if k := len(ps) - 1; k >= 0 && ps[k].Step != 1 {
		room--
	}
	n := int64(1)
	for i := 0; i < len(ps)-room; i++ {
		n *= int64(ps[i].Num)
	}
	return n
}

func patternDescriptors(mem, chip []ir.Pair) int64 {
	// On chip the partition axis is an entry of its own.
	n := int64(1)
	if len(chip) >= descriptorAxes {
		n = int64(chip[0].Num)
	}
	return max(n, entries(mem))
}

// descriptors is the same for a copy within DRAM.
func descriptors(_ int, axes []axis) int64 {
	var srcBuf, dstBuf [maxRank]ir.Pair
	src, dst := srcBuf[:0], dstBuf[:0]
	for _, a := range axes {
		src = append(src, ir.Pair{Step: int32(a.mem), Num: uint32(a.n)})
		dst = append(dst, ir.Pair{Step: int32(a.chip), Num: uint32(a.n)})
	}
	return max(entries(src), entries(dst))
}

// refuse computes, before anything is emitted, the instructions and the DRAM bytes of every unit, from one tile of each kind
// that its loops have; a program beyond a limit is refused by the operator that weighs most.
func (l *lowering) refuse() {
	l.counting = true
	var total count
	var worst count
	var worstNode graph.Node
	for id := 1; id < len(l.units) && l.err == nil; id++ {
		u := &l.units[id]
		l.count = count{}
		c := l.countUnit(u)
		total.add(c)
		if c.insts > worst.insts {
			worst, worstNode = c, l.vals.At(l.valsOf(u)[0]).src
		}
	}
	for i := range l.outs {
		l.count = count{}
		l.finishOutput(&l.outs[i])
		total.add(l.count)
		if l.count.insts > worst.insts {
			worst, worstNode = l.count, l.outs[i].node
		}
	}
	l.counting = false
	l.homesNeeded(total)
	if l.err != nil {
		return
	}
	l.stats.Counted = total.insts
	if total.insts > l.opt.MaxInstructions {
		l.fail(target.Errorf(target.Limit, "%s: the program takes %d instructions, %d of them for this operator; the limit is %d (--max-instruction-limit)",
			l.g.NodeString(worstNode), total.insts, worst.insts, l.opt.MaxInstructions))
	}
}

// countUnit emits nothing: it runs a few of each loop and multiplies.
func (l *lowering) countUnit(u *unit) count {
	if u.kind == unitPieces {
		l.emitPieces(u)
		return l.count
	}
	l.prepare(u)
	if l.err != nil {
		return count{}
	}
	batches := int64(1)
	for _, a := range l.outer {
		batches *= a.n
	}
	var at [maxRank]int64
	idx := at[:len(l.outer)]
	l.repeat(batches, func(int64) {
		var t tile
		for i, at := range l.outerAt {
			t.b[at] = idx[i]
		}
		l.runBatch(&t)
		odometer(idx, l.outer)
	})
	return l.count
}

// homesNeeded refuses a program whose tensors in DRAM, each alive from the unit that makes it to the last that reads it, and
// whose descriptors do not fit the window.
func (l *lowering) homesNeeded(total count) {
	if l.err != nil {
		return
	}
	bytes := func(v val) int64 {
		return (product(l.shapeOf(v))*int64(l.vals.At(v).dt.Size()) + 4095) &^ 4095
	}
	always := total.descriptors * descriptorBytes
	l.sizes.Reset()
	last := l.sizes.Take(l.vals.Len()) // unit that reads a value
	for v := val(1); int(v) < l.vals.Len(); v++ {
		r := l.vals.At(v)
		if r.op == vNone {
			continue
		}
		for _, a := range l.argsOf(v) {
			last[a.root] = max(last[a.root], int64(r.unit))
		}
		if r.op == vInput || r.op == vConst {
			always += bytes(v)
		}
	}
	for i := range l.outs {
		o := &l.outs[i]
		always += l.g.TypeBytes(l.g.Nodes.At(o.node).Type)
		if o.v.root != 0 {
			last[o.v.root] = int64(len(l.units))
		}
	}
	begins, ends := l.sizes.Take(len(l.units)+1), l.sizes.Take(len(l.units)+1)
	for v := val(1); int(v) < l.vals.Len(); v++ {
		r := l.vals.At(v)
		if r.op == vNone || r.unit == 0 || !l.homed.Get(v) {
			continue
		}
		begins[r.unit] += bytes(v)
		ends[last[v]] += bytes(v)
	}
	cur, peak, at := always, always, unitID(0)
	for id := range begins {
		cur += begins[id]
		if cur > peak {
			peak, at = cur, unitID(id)
		}
		cur -= ends[id]
	}
	if peak <= l.opt.HBMBytes {
		return
	}
	n := graph.Node(0)
	if at > 0 && int(at) < len(l.units) {
		n = l.vals.At(l.valsOf(&l.units[at])[0]).src
	} else {
		for v := val(1); int(v) < l.vals.Len(); v++ {
			if r := l.vals.At(v); (r.op == vInput || r.op == vConst) && (n == 0 || l.g.TypeBytes(l.g.Nodes.At(r.src).Type) > l.g.TypeBytes(l.g.Nodes.At(n).Type)) {
				n = r.src
			}
		}
	}
	where := "the inputs and outputs"
	if n != 0 {
		where = l.g.NodeString(n)
	}
	l.fail(target.Errorf(target.Limit, "%s: the model needs %d bytes of DRAM here; the window of a core is %d (--hbm-gib)", where, peak, l.opt.HBMBytes))
}
