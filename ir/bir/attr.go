package bir

import (
	"math"
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// instAttrs lays down the attributes of an instruction: those of the key table in its order, then the unexplained members
// in the order of their texts.
func (r *Reader) instAttrs(t *frame) {
	s, m := &r.scratch, r.m
	row := &t.row
	s.attrs, s.late, s.names = s.attrs[:0], s.late[:0], s.names[:0]
	var given keySet
	for _, x := range s.pend[t.pend:] {
		name := r.unquote(x.key)
		k, ok := ir.KeyFor(row.Op, name)
		if !ok || k == ir.KeyQueue {
			s.names = append(s.names, r.memberText(x.key, x.val))
			continue
		}
		if given.has(k) {
			r.fail(x.key.off, "the object has the key twice")
			return
		}
		given.add(k)
		if k == ir.KeyCallee {
			r.calls = append(r.calls, ref{name: m.Names.InternBytes(r.callee(x.val)), at: x.val.off})
		}
		val, form := r.attrValue(row.Op, k, x.val)
		if r.err != nil {
			return
		}
		switch form {
		case valueText:
			s.names = append(s.names, r.memberText(x.key, x.val))
		case valueGiven:
			s.attrs = append(s.attrs, ir.Attr{Key: k, Val: val})
		}
	}
	if t.seen&(1<<seenStart|1<<seenStop) != 0 {
		r.tensorCalc(t, &given)
	}
	for _, k := range mustHave[row.Op] {
		if !given.has(k) && r.err == nil {
			r.fail(t.at, "%s %q has no %s", row.Op, m.Names.String(row.Name), k)
		}
	}
	r.innerTexts(t)
	if r.err != nil {
		return
	}
	if len(s.late) == 0 {
		sortAttrs(s.attrs)
	} else {
		r.sortLate()
	}
	r.sortExtras(s.names, t.at)
	if len(s.attrs)+len(s.names) > math.MaxUint16 {
		r.fail(t.at, "%s %q has more than %d attributes", row.Op, m.Names.String(row.Name), math.MaxUint16)
		return
	}
	mark := m.Attrs.Mark()
	for _, a := range s.attrs {
		m.Attrs.Push(a)
	}
	for _, n := range s.names {
		m.Attrs.Push(ir.Attr{Key: ir.KeyExtra, Val: uint64(n)})
	}
	row.Attrs, row.NAttr = mark, uint16(len(s.attrs)+len(s.names))
	for _, b := range s.late {
		r.refs = append(r.refs, ref{kind: refBlock, row: mark + uint32(b.attr), inst: t.inst, name: b.name, at: b.at})
	}
}

// keySet is a set of attribute keys.
type keySet [(ir.NumKeys + 63) / 64]uint64

func (s *keySet) has(k ir.Key) bool { return s[k/64]>>(k%64)&1 != 0 }
func (s *keySet) add(k ir.Key)      { s[k/64] |= 1 << (k % 64) }

// sortAttrs orders a short list by key.
func sortAttrs(a []ir.Attr) {
	for i := 1; i < len(a); i++ {
		for j := i; j > 0 && a[j-1].Key > a[j].Key; j-- {
			a[j-1], a[j] = a[j], a[j-1]
		}
	}
}

// sortLate is sortAttrs that keeps track of block references.
func (r *Reader) sortLate() {
	s := &r.scratch
	for i := range s.late {
		// The attribute says which reference it is until the order stands.
		s.attrs[s.late[i].attr].Val = uint64(i)
	}
	sortAttrs(s.attrs)
	for i, a := range s.attrs {
		if a.Key.Info().Form == ir.FormBlock {
			s.late[a.Val].attr = i
			s.attrs[i].Val = 0
		}
	}
}

// tensorCalc turns D1's two booleans of a matmul into the accumulation flag.
func (r *Reader) tensorCalc(t *frame, given *keySet) {
	s, m := &r.scratch, r.m
	if !t.row.Op.Is(ir.FlagMatmul) || t.seen>>seenStart&1 == 0 {
		r.fail(t.at, "%s %q: start_tensor_calc and stop_tensor_calc belong to matmuls, the first being required", t.row.Op, m.Names.String(t.row.Name))
		return
	}
	flag := uint64(flagAccumulate)
	if t.calc&calcStart != 0 {
		flag = flagStart
	}
	if t.calc&calcStop != 0 {
		flag |= flagStop
	}
	if given.has(ir.KeyAccumulationFlag) {
		for _, a := range s.attrs {
			if a.Key == ir.KeyAccumulationFlag && a.Val == flag {
				return
			}
		}
		r.fail(t.at, "%s %q: accumulation_flag and start_tensor_calc, stop_tensor_calc disagree", t.row.Op, m.Names.String(t.row.Name))
		return
	}
	s.attrs = append(s.attrs, ir.Attr{Key: ir.KeyAccumulationFlag, Val: flag})
}

// Bits of accumulation_flag.
const (
	flagStart      = 1
	flagStop       = 2
	flagAccumulate = 4
)

var extraLists = [...]string{inIns: "/ins/", inInd: "/indirection_ins/", inOuts: "/outs/", inImms: "/ins/", inAxis: "/LoopAxis",
	inSync: "/sync_info", inWait: "/sync_info/on_wait/", inUpdate: "/sync_info/on_update/"}

// innerTexts spells the unexplained members of the objects inside an instruction.
func (r *Reader) innerTexts(t *frame) {
	s := &r.scratch
	for _, x := range s.extra[t.extra:] {
		prefix := extraLists[x.where]
		if prefix[len(prefix)-1] == '/' {
			i := x.index
			if x.where == inImms {
				i += len(s.ins) - int(t.ins)
			}
			if i < len(shortPrefixes) && (x.where == inIns || x.where == inOuts) {
				prefix = shortPrefixes[i][x.where]
			} else {
				prefix += strconv.Itoa(i)
			}
		} else if x.where == inAxis && t.seen>>seenDynAxis&1 != 0 {
			prefix = "/DynamicForLoopAxis"
		}
		s.names = append(s.names, r.pointerText(prefix, x.m.key, x.m.val))
	}
}

// shortPrefixes are the pointers of the first operands.
var shortPrefixes = [...][3]string{
	{inIns: "/ins/0", inOuts: "/outs/0"}, {inIns: "/ins/1", inOuts: "/outs/1"},
	{inIns: "/ins/2", inOuts: "/outs/2"}, {inIns: "/ins/3", inOuts: "/outs/3"},
}

// keepProducer keeps as text the producer of a wait that is no instruction of the function, such as a block of a queue.
func (r *Reader) keepProducer(x ref) {
	m := r.m
	row := m.Insts.At(x.inst)
	i := x.row - m.Syncs.Get(x.inst).Waits.Off
	r.path = strconv.AppendUint(append(r.path[:0], `"/sync_info/on_wait/`...), uint64(i), 10)
	r.text = append(append(r.text[:0], r.path...), `/from":`...)
	r.text = appendQuoted(r.text, m.Names.String(x.name))
	old := arena.Span{Off: row.Attrs, Len: uint32(row.NAttr)}
	s := &r.scratch
	s.attrs = append(s.attrs[:0], m.Attrs.Of(old)...)
	n := 0
	for n < len(s.attrs) && s.attrs[n].Key != ir.KeyExtra {
		n++
	}
	s.names = s.names[:0]
	for _, a := range s.attrs[n:] {
		s.names = append(s.names, arena.Name(a.Val))
	}
	s.names = append(s.names, m.Names.InternBytes(r.text))
	r.sortExtras(s.names, x.at)
	if len(s.attrs) == math.MaxUint16 {
		r.fail(x.at, "%s has more than %d attributes", m.InstName(x.inst), math.MaxUint16)
		return
	}
	s.attrs = s.attrs[:n]
	for _, name := range s.names {
		s.attrs = append(s.attrs, ir.Attr{Key: ir.KeyExtra, Val: uint64(name)})
	}
	row.Attrs, row.NAttr = m.Attrs.AddSlice(s.attrs).Off, uint16(len(s.attrs))
}

type valueForm uint8

const (
	valueGiven   valueForm = iota
	valueDefault           // leave the attribute out
	valueText              // no value of the key's form: keep the member as text
)

// soft are keys whose values have spellings that the public notes leave open: what does not fit stays text.
func soft(k ir.Key) bool {
	switch k {
	case ir.KeyDMAQoS, ir.KeyHint, ir.KeyInstance, ir.KeySyncType, ir.KeyRandomAlgorithm, ir.KeyDistribution, ir.KeyRandSteps,
		ir.KeyRuntimeSemaphore, ir.KeyBarrierID, ir.KeyCores, ir.KeyAsmBytes, ir.KeyTableID, ir.KeyLatencyEstimate,
		ir.KeySemaGroup, ir.KeyTransposeOp, ir.KeyTSCMode:
		return true
	}
	return false
}

// attrValue reads a member in the form of its key.
func (r *Reader) attrValue(op ir.Opcode, k ir.Key, v span) (uint64, valueForm) {
	m := r.m
	in := k.Info()
	c := cursor{b: r.raw(v)}
	kind := c.next()
	bad := func(want string) (uint64, valueForm) {
		switch {
		case soft(k):
			return 0, valueText
		case kind == '{':
			r.failClass(target.Unsupported, v.off, "%s is an expression; unroll the loops around it first", in.JSON)
		default:
			r.fail(v.off, "expected %s, found %s", want, c.token())
		}
		return 0, valueDefault
	}
	scalar := func(val uint64) (uint64, valueForm) {
		if val == in.Default {
			return val, valueDefault
		}
		return val, valueGiven
	}
	switch in.Form {
	case ir.FormInt:
		if kind == '{' {
			if n, ok := r.constantExpr(v); ok {
				return scalar(uint64(n))
			}
		}
		if kind != '0' {
			return bad("an integer")
		}
		n, ok := parseInt(c.token())
		if !ok {
			return bad("an integer")
		}
		return scalar(uint64(n))
	case ir.FormBool:
		switch t := c.token(); {
		case kind == '{':
			if n, ok := r.constantExpr(v); ok && (n == 0 || n == 1) {
				return scalar(uint64(n))
			}
		case kind == 't' || kind == '0' && string(t) == "1":
			return scalar(1)
		case kind == 'f' || kind == '0' && string(t) == "0":
			return scalar(0)
		}
		return bad("true or false")
	case ir.FormFloat:
		bits, ok := r.floatToken(&c, kind, v.off)
		if !ok {
			return bad("a number that float32 holds")
		}
		return scalar(uint64(bits))
	case ir.FormEnum:
		if kind == '0' {
			if n, ok := parseInt(c.token()); ok && n >= 0 && n < int64(len(in.Enum)) {
				return scalar(uint64(n))
			}
		}
		if kind == '"' {
			s := r.unquote(v)
			for i, n := range in.Enum {
				if n == string(s) {
					return scalar(uint64(i))
				}
			}
			if !soft(k) {
				r.fail(v.off, "%s has no value %q", in.JSON, s)
				return 0, valueDefault
			}
		}
		return bad("a name")
	case ir.FormName:
		if kind != '"' {
			return bad("a string")
		}
		return scalar(uint64(m.Names.InternBytes(r.unquote(v))))
	case ir.FormBlock:
		if kind != '"' {
			return bad("the name of a block")
		}
		n := m.Names.InternBytes(r.unquote(v))
		if n == 0 {
			return bad("the name of a block")
		}
		s := &r.scratch
		s.late = append(s.late, lateBlock{attr: len(s.attrs), name: n, at: v.off})
		return 0, valueGiven
	case ir.FormNames:
		if kind != '[' {
			return bad("a list of names")
		}
		r.list = r.list[:0]
		for e := c.next(); e != ']'; e = c.next() {
			if e != '"' {
				return bad("a name")
			}
			r.list = append(r.list, m.Names.InternBytes(r.unquote(span{v.off + c.at, v.off + c.i})))
		}
		return scalar(ir.SpanVal(m.NameList.AddSlice(r.list)))
	case ir.FormInts, ir.FormPairs, ir.FormFloats:
		if kind != '[' {
			return bad("a list")
		}
		r.ints = r.ints[:0]
		for e := c.next(); e != ']'; e = c.next() {
			if in.Form == ir.FormPairs {
				if e != '[' {
					return bad("a list of pairs [step, num]")
				}
				for range 2 {
					n, ok := int64(0), false
					if c.next() == '0' {
						n, ok = parseInt(c.token())
					}
					if !ok {
						return bad("a pair [step, num] of integers")
					}
					r.ints = append(r.ints, n)
				}
				if c.next() != ']' {
					return bad("a pair [step, num]")
				}
				continue
			}
			n, ok := int64(0), false
			if in.Form == ir.FormFloats {
				var bits uint32
				bits, ok = r.floatToken(&c, e, v.off)
				n = int64(bits)
			} else if e == '0' {
				n, ok = parseInt(c.token())
			}
			if !ok {
				return bad("a list of numbers")
			}
			r.ints = append(r.ints, n)
		}
		if (k == ir.KeyTileSize || k == ir.KeyTilePosition) && slices.Equal(r.ints, unsetTile[:]) {
			return 0, valueDefault
		}
		return scalar(ir.SpanVal(m.Ints.AddSlice(r.ints)))
	}
	return bad("something else")
}

// unsetTile is how JSON spells a matmul tile that covers the array.
var unsetTile = [2]int64{-1, -1}

// floatToken reads a number, or a string for what JSON numbers lack.
func (r *Reader) floatToken(c *cursor, kind byte, off int) (uint32, bool) {
	switch kind {
	case '0':
		return parseFloat(c.token())
	case '"':
		return parseFloatWord(r.unquote(span{off + c.at, off + c.i}))
	}
	return 0, false
}

func (r *Reader) callee(v span) []byte {
	if r.data[v.off] != '"' {
		return nil
	}
	return r.unquote(v)
}

// mustHave are the keys without which an instruction would mean something else.
var mustHave = [ir.NumOpcodes][]ir.Key{
	ir.OpActivation:               {ir.KeyFunc},
	ir.OpTensorReduce:             {ir.KeyOp, ir.KeyAxis},
	ir.OpPool:                     {ir.KeyPoolFunc},
	ir.OpTensorScalar:             {ir.KeyOp0},
	ir.OpTensorScalarPtr:          {ir.KeyOp0},
	ir.OpTensorTensor:             {ir.KeyOp},
	ir.OpTensorScalarAffineSelect: {ir.KeyPattern, ir.KeyCompareOp},
	ir.OpIota:                     {ir.KeyPattern},
	ir.OpStreamShuffle:            {ir.KeyMask},
	ir.OpCompareAndBranch:         {ir.KeyCompOp, ir.KeyOnTrue, ir.KeyOnFalse},
	ir.OpUnconditionalBranch:      {ir.KeyTarget},
	ir.OpCall:                     {ir.KeyCallee},
}
