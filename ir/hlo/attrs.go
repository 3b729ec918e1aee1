package hlo

import (
	"bytes"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// oneDim are the operators whose dimensions attribute is one number.
var oneDim = [graph.NumOps]bool{
	graph.OpConcat: true, graph.OpSort: true, graph.OpAllGather: true, graph.OpAllGatherStart: true, graph.OpReduceScatter: true,
	graph.OpAllToAll: true, graph.OpGetDimensionSize: true, graph.OpSetDimensionSize: true,
}

// windowKeys are the attributes of a window, each a list as long as size, in the order of windowDefaults.
var windowKeys = [...]graph.Key{graph.AttrWindowStride, graph.AttrWindowPadLow, graph.AttrWindowPadHigh, graph.AttrWindowLhsDilate,
	graph.AttrWindowRhsDilate, graph.AttrWindowReverse}

var windowDefaults = [...]int64{1, 0, 0, 1, 1, 0}

const _ = uint(64 - graph.NumKeys) // Reader.seenKeys has a bit for each

// keepsRaw reports whether attributes without a key are kept as text.
func keepsRaw(op graph.Op) bool {
	c := op.Class()
	return c == graph.ClassCollective || c == graph.ClassOpaque && op != graph.OpSelectAndScatter && op != graph.OpMap
}

// attributes reads {"," name "=" value}.
func (r *Reader) attributes(n graph.Node) bool {
	for {
		r.space()
		if !r.take(',') {
			return true
		}
		r.space()
		start := r.p
		key := r.ident()
		if len(key) == 0 {
			return r.expected(start, "an attribute after ','")
		}
		if !r.take('=') {
			r.space()
			if !r.take('=') {
				return r.expected(r.p, "'=' after attribute "+string(clip(key, 40)))
			}
		}
		if r.p < len(r.d) && class[r.d[r.p]]&(cSpace|cSlash) != 0 {
			r.space()
		}
		if !r.attribute(n, key, start) {
			return false
		}
	}
}

func (r *Reader) attribute(n graph.Node, key []byte, start int) bool {
	switch string(key) {
	case "metadata", "sharding", "control-predecessors", "operand_layout_constraints", "api_version", "origin", "statistics",
		"parameter_replication", "custom_call_has_side_effect", "result_accuracy", "indices_are_sorted", "unique_indices",
		"operand_precision", "kind", "domain", "inferred_dimension", "async_execution_thread":
		return r.value()
	case "dimensions":
		if oneDim[r.op] {
			return r.oneInt(graph.AttrDim, start)
		}
		return r.ints(graph.AttrDims, start)
	case "iota_dimension":
		return r.number(graph.AttrDim, start)
	case "index":
		return r.number(graph.AttrIndex, start)
	case "direction":
		return r.direction(start)
	case "type":
		return r.compareType(start)
	case "slice":
		return r.slices(start)
	case "padding":
		return r.padding(start)
	case "window":
		return r.window(start)
	case "dim_labels":
		return r.dimLabels(start)
	case "dynamic_slice_sizes":
		return r.ints(graph.AttrSizes, start)
	case "slice_sizes":
		return r.ints(graph.AttrSliceSizes, start)
	case "lhs_batch_dims":
		return r.ints(graph.AttrLhsBatch, start)
	case "lhs_contracting_dims":
		return r.ints(graph.AttrLhsContract, start)
	case "rhs_batch_dims":
		return r.ints(graph.AttrRhsBatch, start)
	case "rhs_contracting_dims":
		return r.ints(graph.AttrRhsContract, start)
	case "offset_dims":
		return r.ints(graph.AttrOffsetDims, start)
	case "collapsed_slice_dims":
		return r.ints(graph.AttrCollapsedDims, start)
	case "start_index_map":
		return r.ints(graph.AttrStartIndexMap, start)
	case "operand_batching_dims", "input_batching_dims":
		return r.ints(graph.AttrOperandBatch, start)
	case "start_indices_batching_dims", "scatter_indices_batching_dims":
		return r.ints(graph.AttrIndicesBatch, start)
	case "update_window_dims":
		return r.ints(graph.AttrUpdateWindowDims, start)
	case "inserted_window_dims":
		return r.ints(graph.AttrInsertedDims, start)
	case "scatter_dims_to_operand_dims":
		return r.ints(graph.AttrScatterDims, start)
	case "index_vector_dim":
		return r.number(graph.AttrIndexVectorDim, start)
	case "feature_group_count":
		return r.number(graph.AttrGroups, start)
	case "batch_group_count":
		return r.number(graph.AttrBatchGroups, start)
	case "feature_index":
		return r.number(graph.AttrFeature, start)
	case "exponent_bits":
		return r.number(graph.AttrExponent, start)
	case "mantissa_bits":
		return r.number(graph.AttrMantissa, start)
	case "k":
		return r.number(graph.AttrK, start)
	case "largest":
		return r.flag(graph.AttrLargest, start)
	case "is_stable":
		return r.flag(graph.AttrStable, start)
	case "epsilon":
		return r.float(graph.AttrEpsilon, start)
	case "custom_call_target":
		raw, ok := r.quoted()
		return ok && r.add(graph.NameAttr(graph.AttrTarget, r.unquote(raw)), start)
	case "backend_config":
		return r.backend(start)
	case "frontend_attributes":
		return r.frontend(n)
	case "to_apply", "calls":
		return r.called(key, 0, 0, start)
	case "condition":
		return r.called(key, 1, 0, start)
	case "body":
		return r.called(key, 2, 1, start)
	case "true_computation":
		return r.called(key, 3, 0, start)
	case "false_computation":
		return r.called(key, 4, 1, start)
	case "select":
		return r.called(key, 5, 0, start)
	case "scatter":
		return r.called(key, 6, 1, start)
	case "branch_computations":
		return r.calledList(key, 7, start)
	case "called_computations":
		return r.calledList(key, 8, start)
	}
	if !r.value() {
		return false
	}
	if keepsRaw(r.op) {
		if len(r.raw) > 0 {
			r.raw = append(r.raw, ", "...)
		}
		r.raw = append(r.raw, r.d[start:r.p]...)
	}
	return true
}

func (r *Reader) number(k graph.Key, start int) bool {
	v, ok := r.integer("a number")
	return ok && r.addInt(k, v, start)
}

// intList reads {1,2,3} into the graph's integers.
func (r *Reader) intList() (arena.Span, bool) {
	mark := r.g.Ints.Mark()
	if !r.take('{') {
		return arena.Span{}, r.expected(r.p, "a list such as {0,1}")
	}
	for {
		if r.p < len(r.d) && class[r.d[r.p]]&cDigit == 0 {
			r.space()
			if r.take('}') {
				break
			}
		}
		v, ok := r.integer("a number or '}'")
		if !ok {
			return arena.Span{}, false
		}
		r.g.Ints.Push(v)
		if r.take(',') {
			continue
		}
		r.space()
		if r.take(',') {
			continue
		}
		if r.take('}') {
			break
		}
		return arena.Span{}, r.expected(r.p, "',' or '}' in a list")
	}
	return r.g.Ints.Since(mark), true
}

func (r *Reader) ints(k graph.Key, start int) bool {
	s, ok := r.intList()
	return ok && r.addInts(k, s, start)
}

func (r *Reader) oneInt(k graph.Key, start int) bool {
	s, ok := r.intList()
	if !ok {
		return false
	}
	if s.Len != 1 {
		return r.errorf(start, "%s takes one dimension, found %d", r.op, s.Len)
	}
	return r.addInts(k, s, start)
}

func (r *Reader) flag(k graph.Key, start int) bool {
	off := r.p
	switch string(r.ident()) {
	case "true":
		return r.addInt(k, 1, start)
	case "false":
		return r.addInt(k, 0, start)
	}
	return r.expected(off, "true or false")
}

func (r *Reader) float(k graph.Key, start int) bool {
	off := r.p
	v, ok := parseFloat(r.ident(), 64)
	if !ok {
		return r.expected(off, "a number")
	}
	return r.add(r.g.FloatAttr(k, v), start)
}

func (r *Reader) direction(start int) bool {
	off := r.p
	var d graph.Dir
	switch string(r.ident()) {
	case "EQ":
		d = graph.DirEQ
	case "NE":
		d = graph.DirNE
	case "LT":
		d = graph.DirLT
	case "LE":
		d = graph.DirLE
	case "GT":
		d = graph.DirGT
	case "GE":
		d = graph.DirGE
	default:
		return r.expected(off, "EQ, NE, LT, LE, GT or GE")
	}
	return r.addInt(graph.AttrDirection, int64(d), start)
}

// compareType keeps the one comparison that differs from what the element type implies.
func (r *Reader) compareType(start int) bool {
	if r.op != graph.OpCompare {
		return r.value()
	}
	if string(r.ident()) == "TOTALORDER" {
		return r.addInt(graph.AttrTotal, 1, start)
	}
	return true
}

// slices reads {[0:8], [0:16:2]}.
func (r *Reader) slices(start int) bool {
	r.nums = r.nums[:0]
	if !r.take('{') {
		return r.expected(r.p, "a list such as {[0:8]}")
	}
	for {
		r.space()
		if r.take('}') {
			break
		}
		if !r.take('[') {
			return r.expected(r.p, "'[' or '}' in a slice")
		}
		lo, ok := r.integer("the start of a slice")
		if !ok {
			return false
		}
		if !r.take(':') {
			return r.expected(r.p, "':' in a slice")
		}
		hi, ok := r.integer("the limit of a slice")
		if !ok {
			return false
		}
		step := int64(1)
		if r.take(':') {
			if step, ok = r.integer("the stride of a slice"); !ok {
				return false
			}
		}
		if !r.take(']') {
			return r.expected(r.p, "']' in a slice")
		}
		r.nums = append(r.nums, lo, hi, step)
		r.space()
		if !r.take(',') && r.peek() != '}' {
			return r.expected(r.p, "',' or '}' in a slice")
		}
	}
	return r.add(r.column(graph.AttrStart, 0, 3), start) && r.add(r.column(graph.AttrLimit, 1, 3), start) &&
		r.add(r.column(graph.AttrStride, 2, 3), start)
}

// column makes a list of every width-th scratch number, from number i on.
func (r *Reader) column(k graph.Key, i, width int) graph.Attr {
	mark := r.g.Ints.Mark()
	for ; i < len(r.nums); i += width {
		r.g.Ints.Push(r.nums[i])
	}
	return graph.Attr{Key: k, Span: r.g.Ints.Since(mark)}
}

// padding reads 0_1x2_3_1: low, high and interior of each dimension.
func (r *Reader) padding(start int) bool {
	r.nums = r.nums[:0]
	for {
		lo, ok := r.integer("padding such as 0_1x0_0")
		if !ok {
			return false
		}
		if !r.take('_') {
			return r.expected(r.p, "'_' between low and high padding")
		}
		hi, ok := r.integer("the high padding")
		if !ok {
			return false
		}
		in := int64(0)
		if r.take('_') {
			if in, ok = r.integer("the interior padding"); !ok {
				return false
			}
		}
		r.nums = append(r.nums, lo, hi, in)
		if !r.take('x') {
			break
		}
	}
	return r.add(r.column(graph.AttrLow, 0, 3), start) && r.add(r.column(graph.AttrHigh, 1, 3), start) &&
		r.add(r.column(graph.AttrInterior, 2, 3), start)
}

// window reads {size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=… rhs_dilate=… rhs_reversal=…} in any order and gives all seven lists.
func (r *Reader) window(start int) bool {
	g := r.g
	if !r.take('{') {
		return r.expected(r.p, "a window such as {size=3x3}")
	}
	var spans [len(windowKeys) + 1]arena.Span // size last
	var have [len(windowKeys) + 1]bool
	const size = len(windowKeys)
	for {
		r.space()
		if r.take('}') {
			break
		}
		off := r.p
		slot := -1
		switch string(r.ident()) {
		case "size":
			slot = size
		case "stride":
			slot = 0
		case "pad":
			slot = 1
		case "lhs_dilate":
			slot = 3
		case "rhs_dilate":
			slot = 4
		case "rhs_reversal":
			slot = 5
		}
		if slot < 0 {
			return r.expected(off, "size, stride, pad, lhs_dilate, rhs_dilate, rhs_reversal or '}' in a window")
		}
		if have[slot] {
			return r.errorf(off, "given twice in a window: %s", r.found(off))
		}
		have[slot] = true
		if !r.take('=') {
			return r.expected(r.p, "'=' in a window")
		}
		r.nums = r.nums[:0]
		for {
			v, ok := r.integer("a number in a window")
			if !ok {
				return false
			}
			r.nums = append(r.nums, v)
			if slot == 1 {
				if !r.take('_') {
					return r.expected(r.p, "'_' between low and high padding")
				}
				if v, ok = r.integer("the high padding"); !ok {
					return false
				}
				r.nums = append(r.nums, v)
			}
			if !r.take('x') {
				break
			}
		}
		if slot == 1 {
			spans[1], spans[2] = r.column(0, 0, 2).Span, r.column(0, 1, 2).Span
			have[2] = true
			continue
		}
		spans[slot] = r.column(0, 0, 1).Span
	}
	rank := spans[size].Len
	if rank > maxRank {
		return r.errorf(start, "a window of %d dimensions, the limit is %d", rank, maxRank)
	}
	if !r.addInts(graph.AttrWindowSize, spans[size], start) {
		return false
	}
	for i, k := range windowKeys {
		if !have[i] {
			mark := g.Ints.Mark()
			for range rank {
				g.Ints.Push(windowDefaults[i])
			}
			spans[i] = g.Ints.Since(mark)
		} else if spans[i].Len != rank {
			return r.errorf(start, "a window of %d sizes gives %d numbers elsewhere", rank, spans[i].Len)
		}
		if !r.addInts(k, spans[i], start) {
			return false
		}
	}
	return true
}

// dimLabels reads b01f_01io->b01f into the three lists of AttrDimLabels. A ? is a dimension without a role and appears in none.
func (r *Reader) dimLabels(start int) bool {
	g := r.g
	var lists [3][maxRank]int64
	var spatial [3]int
	for side := range 3 {
		major, minor := byte('b'), byte('f')
		if side == 1 {
			major, minor = 'i', 'o'
		}
		l := &lists[side]
		for i := range l {
			l[i] = -1
		}
		off := r.p
		for dim := int64(0); ; dim++ {
			c := r.peek()
			slot := -1
			switch {
			case c == major:
				slot = 0
			case c == minor:
				slot = 1
			case class[c]&cDigit != 0:
				slot = 2 + int(c-'0')
				spatial[side]++
			case c == '?' && dim < maxRank:
				r.p++
				continue
			}
			if slot < 0 {
				break
			}
			if l[slot] >= 0 {
				return r.errorf(r.p, "dimension label %q is given twice", c)
			}
			l[slot] = dim
			r.p++
		}
		n := spatial[side] + 2
		for i := range n {
			if l[i] < 0 || n != spatial[0]+2 {
				return r.expected(off, "labels of the batch, the feature and every spatial dimension, as in b01f_01io->b01f")
			}
		}
		if side == 0 && !r.take('_') {
			return r.expected(r.p, "'_' after the labels of the left side")
		}
		if side == 1 && (!r.take('-') || !r.take('>')) {
			return r.expected(r.p, "'->' after the labels of the right side")
		}
	}
	mark := g.Ints.Mark()
	for side := range 3 {
		for i := range spatial[0] + 2 {
			g.Ints.Push(lists[side][i])
		}
	}
	return r.addInts(graph.AttrDimLabels, g.Ints.Since(mark), start)
}

// unquote interns the text of a string.
func (r *Reader) unquote(raw []byte) arena.Name {
	if bytes.IndexByte(raw, '\\') < 0 {
		return r.g.Names.InternBytes(raw)
	}
	r.text = unescape(r.text[:0], raw)
	return r.g.Names.InternBytes(r.text)
}

// backend keeps the configuration of custom calls as text, and of loops the trip count in it.
func (r *Reader) backend(start int) bool {
	from := r.p
	if !r.value() {
		return false
	}
	raw := r.d[from:r.p]
	switch {
	case r.op == graph.OpWhile:
		if n, ok := tripCount(raw); ok {
			return r.addInt(graph.AttrTripCount, n, start)
		}
	case r.op == graph.OpCustomCall || keepsRaw(r.op):
		if raw[0] == '"' {
			return r.add(graph.NameAttr(graph.AttrBackend, r.unquote(raw[1:len(raw)-1])), start)
		}
		return r.add(graph.NameAttr(graph.AttrBackend, r.g.Names.InternBytes(raw)), start)
	}
	return true
}

// tripCount finds "known_trip_count":{"n":"8"} with or without escapes.
func tripCount(raw []byte) (int64, bool) {
	word := []byte("known_trip_count")
	i := bytes.Index(raw, word)
	if i < 0 {
		return 0, false
	}
	v, digits := int64(0), 0
	for _, c := range raw[i+len(word):] {
		if c-'0' < 10 {
			if digits++; digits > 18 {
				return 0, false
			}
			v = v*10 + int64(c-'0')
			continue
		}
		if digits > 0 || c == '}' {
			break
		}
	}
	return v, digits > 0
}

// frontend looks for the attributes of the Neuron stack that name inputs and outputs, and for those that Write adds to elided constants.
func (r *Reader) frontend(n graph.Node) bool {
	from := r.p
	if !r.value() {
		return false
	}
	if r.op != graph.OpConstant && !r.isEntry {
		return true
	}
	raw := r.d[from:r.p]
	switch {
	case r.op == graph.OpConstant:
		k := r.g.Consts.At(r.row.Const)
		if v, ok := frontendValue(raw, "rosmar_seed="); ok && k.Kind == graph.ConstElided {
			k.Seed, _ = parseInt(v, graph.U64)
		}
		if v, ok := frontendValue(raw, "rosmar_std="); ok && k.Kind == graph.ConstElided {
			f, _ := parseFloat(v, 32)
			k.Std = float32(f)
		}
		if v, ok := frontendValue(raw, "rosmar_mean="); ok && k.Kind == graph.ConstElided {
			f, _ := parseFloat(v, 32)
			k.Mean = float32(f)
		}
	case r.op == graph.OpParameter:
		if v, ok := frontendValue(raw, "neff_input_names="); ok && len(v) > 0 && bytes.IndexByte(v, ',') < 0 {
			r.renames = append(r.renames, rename{n, r.unquote(v)})
		}
	}
	if v, ok := frontendValue(raw, "neff_output_names="); ok {
		r.outNames = namesAt{n, v}
	}
	return true
}

// frontendValue finds the string after key, which includes its =.
func frontendValue(raw []byte, key string) ([]byte, bool) {
	i := bytes.Index(raw, []byte(key))
	if i < 1 || class[raw[i-1]]&cName != 0 {
		return nil, false
	}
	i += len(key)
	if i >= len(raw) || raw[i] != '"' {
		return nil, false
	}
	end := stringEnd(raw, i+1)
	if end < 0 {
		return nil, false
	}
	return raw[i+1 : end-1], true
}

// called reads the name of a computation, or the place of one that is printed here. which numbers the attribute.
func (r *Reader) called(key []byte, which, slot uint8, start int) bool {
	if r.seenCalls>>which&1 != 0 {
		return r.errorf(start, "the attribute is given twice: %s", r.found(start))
	}
	r.seenCalls |= 1 << which
	return r.callee(key, slot)
}

func (r *Reader) callee(key []byte, slot uint8) bool {
	off := r.p
	if r.peek() == '{' {
		if !r.balanced() {
			return false
		}
		r.calls = append(r.calls, callRef{r.inlineName(key), uint32(off), slot, true})
		return true
	}
	name, ok := r.name("the name of a computation")
	if !ok {
		return false
	}
	r.calls = append(r.calls, callRef{r.g.Names.InternBytes(name), uint32(off), slot, false})
	return true
}

// inlineName makes a name that no computation has yet: those printed in place have none.
func (r *Reader) inlineName(key []byte) arena.Name {
	for {
		r.inlineSeq++
		r.text = append(append(append(append(r.text[:0], r.inst...), '.'), key...), '.')
		r.text = appendUint(r.text, uint64(r.inlineSeq))
		if n := r.g.Names.InternBytes(r.text); r.compOf.Get(n) == 0 {
			return n
		}
	}
}

// calledList reads {%a, %b}.
func (r *Reader) calledList(key []byte, which uint8, start int) bool {
	if r.seenCalls>>which&1 != 0 {
		return r.errorf(start, "the attribute is given twice: %s", r.found(start))
	}
	r.seenCalls |= 1 << which
	if !r.take('{') {
		return r.callee(key, 0)
	}
	for {
		r.space()
		if r.take('}') {
			return true
		}
		if !r.callee(key, 0) {
			return false
		}
		r.space()
		if !r.take(',') && r.peek() != '}' {
			return r.expected(r.p, "',' or '}' in a list of computations")
		}
	}
}
