package memalloc

import (
	"strconv"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// DefaultAllreduceMiB is the size of the region of collectives where the options give none.
const DefaultAllreduceMiB = 500

// Attributes of a function that has collectives, in bytes: what its buffers take, and how high they reach in their region.
const (
	attrAllreduceBytes = "allreduce_buffer_size"
	attrAllreduceHigh  = "allreduce_buffer_high_water"
)

// IsCollective reports an instruction whose operands in DRAM lie in the region of collectives.
func IsCollective(op ir.Opcode) bool {
	switch op {
	case ir.OpCollective, ir.OpCollectiveCompute, ir.OpCollectiveSend, ir.OpCollectiveRecv:
		return true
	}
	return false
}

// placeCollectives places the operands of collectives in a region from floor on, and returns where the rest may begin and what
// the rest is. While the region's limit permits, each operand gets bytes of its own, so that one collective need not wait for
// another; one that would cross the limit is tried again on bytes that are free during its life.
func (ws *Workspace) placeCollectives(m *ir.Module, f ir.Func, floor int64, opt *Options, mt *Metrics) (int64, []uint32, error) {
	g := &ws.dram
	n := 0
	sum := int64(0)
	for n < len(g.order) && g.marks[g.order[n]]&markCollective != 0 {
		sum += g.size[g.order[n]]
		n++
	}
	if n == 0 {
		return floor, g.order, nil
	}
	limit := sum // sizes are whole pages
	switch {
	case opt.AllreduceMiB == 0:
		limit = DefaultAllreduceMiB << 20
	case opt.AllreduceMiB > 0:
		limit = int64(opt.AllreduceMiB) << 20
	}
	limit = min(limit, mt.Capacity-floor)
	high := floor
	for _, i := range g.order[:n] {
		at := high
		if at+g.size[i] > floor+limit {
			at = g.lowest(i, floor)
			mt.Edges += len(g.keys)
		}
		if at+g.size[i] > floor+limit {
			u := &ws.ranges.Units[i]
			o := overflow{
				space: target.SpaceDRAM, loc: u.First, need: g.size[i], limit: limit, what: "bytes",
				why: "in the region of collectives", try: "give the region more room (--allreduce-buffer-size, -1 for what the operands add up to)",
			}
			return 0, nil, ws.complain(m, &o, g.segments(i), g.own, func(i uint32) int64 {
				if g.marks[i]&markCollective == 0 {
					return 0
				}
				return g.size[i]
			})
		}
		g.addr[i] = at
		high = max(high, at+g.size[i])
	}
	mt.CollectiveBytes, mt.CollectiveHigh, mt.CollectiveLimit = sum, high-floor, limit
	setFuncAttr(m, f, attrAllreduceBytes, sum)
	setFuncAttr(m, f, attrAllreduceHigh, high-floor)
	return high, g.order[n:], nil
}

// setFuncAttr gives an attribute of a function a value, in the form in which the JSON of the module keeps it.
func setFuncAttr(m *ir.Module, f ir.Func, key string, value int64) {
	head := `"` + key + `":`
	mark := m.NameList.Mark()
	put := false
	for k := range m.NameList.Of(m.Funcs.At(f).Extra) {
		n := m.NameList.Of(m.Funcs.At(f).Extra)[k]
		if strings.HasPrefix(m.Names.String(n), head) {
			n = m.Names.Intern(head + strconv.FormatInt(value, 10))
			put = true
		}
		m.NameList.Push(n)
	}
	if !put {
		m.NameList.Push(m.Names.Intern(head + strconv.FormatInt(value, 10)))
	}
	m.Funcs.At(f).Extra = m.NameList.Since(mark)
}
