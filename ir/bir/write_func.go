package bir

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// What objects without a name are called, before a number.
const (
	prefixFunc  = "func"
	prefixBlock = "block"
	prefixInst  = "I-"
	prefixSet   = "set"
	prefixLoc   = "loc"
	prefixReg   = "r"
	prefixQueue = "q"
)

// spellAll names everything that the text holds: functions and queues in the module, the rest in their function.
func (w *Writer) spellAll() {
	m := w.m
	w.spell.reset()
	w.funcs = arena.Zeroed(w.funcs, m.Funcs.Len())
	w.queues = arena.Zeroed(w.queues, m.Queues.Len())
	w.blocks = arena.Zeroed(w.blocks, m.Blocks.Len())
	w.insts = arena.Zeroed(w.insts, m.Insts.Len())
	w.sets = arena.Zeroed(w.sets, m.Sets.Len())
	w.locs = arena.Zeroed(w.locs, m.Locs.Len())
	w.regs = arena.Zeroed(w.regs, m.Regs.Len())

	w.gather()
	for f, r := range m.Funcs.All() {
		w.gatherOne(uint32(f), r.Name)
	}
	w.give(prefixFunc, w.funcs)
	w.gather()
	for q, r := range m.Queues.All() {
		w.gatherOne(uint32(q), r.Name)
	}
	w.give(prefixQueue, w.queues)
	for f := ir.Func(1); int(f) < m.Funcs.Len(); f++ {
		w.gather()
		for _, s := range m.SetsOf(f) {
			w.gatherOne(uint32(s), m.Sets.At(s).Name)
		}
		w.give(prefixSet, w.sets)
		w.gather()
		for _, s := range m.SetsOf(f) {
			first, n := m.LocsOf(s)
			for l := first; l < first+ir.Loc(n); l++ {
				w.gatherOne(uint32(l), m.Locs.At(l).Name)
			}
		}
		w.give(prefixLoc, w.locs)
		w.gather()
		for _, g := range m.RegList.Of(m.Funcs.At(f).Regs) {
			w.gatherOne(uint32(g), m.Regs.At(g).Name)
		}
		w.give(prefixReg, w.regs)
		w.gather()
		w.walkFunc(f, func(i ir.Inst) { w.gatherOne(uint32(i), m.Insts.At(i).Name) }, nil)
		w.give(prefixInst, w.insts)
		w.gather()
		w.walkFunc(f, nil, func(b ir.Block) { w.gatherOne(uint32(b), m.Blocks.At(b).Name) })
		w.give(prefixBlock, w.blocks)
	}
}

func (w *Writer) gather() { w.names, w.ids = w.names[:0], w.ids[:0] }

func (w *Writer) gatherOne(id uint32, n arena.Name) {
	w.names, w.ids = append(w.names, n), append(w.ids, id)
}

// give spells what was gathered.
func (w *Writer) give(prefix string, table []spelling) {
	w.spelt = arena.Zeroed(w.spelt, len(w.names))
	w.spell.spell(&w.m.Names, prefix, w.names, w.spelt)
	for k, id := range w.ids {
		table[id] = w.spelt[k]
	}
}

// walkFunc visits instructions and blocks in the order of writing.
func (w *Writer) walkFunc(f ir.Func, inst func(ir.Inst), block func(ir.Block)) {
	m := w.m
	type at struct {
		blocks []ir.Block
		order  []ir.Inst
	}
	stack := []at{{blocks: m.BlocksOf(f)}}
	for len(stack) > 0 {
		t := &stack[len(stack)-1]
		switch {
		case len(t.order) > 0:
			i := t.order[0]
			t.order = t.order[1:]
			if inst != nil {
				inst(i)
			}
			if m.Insts.At(i).Op.Is(ir.FlagRegion) {
				stack = append(stack, at{blocks: m.BlockList.Of(m.Regions.Get(i).Blocks)})
			}
		case len(t.blocks) > 0:
			b := t.blocks[0]
			t.blocks, t.order = t.blocks[1:], m.OrderOf(b)
			if block != nil {
				block(b)
			}
		default:
			stack = stack[:len(stack)-1]
		}
	}
}

func (w *Writer) functions(list []ir.Func) {
	for k, f := range list {
		w.item(k)
		w.str("\n")
		w.function(f)
		if w.err != nil {
			return
		}
	}
	w.str("\n")
}

func (w *Writer) function(f ir.Func) {
	m := w.m
	r := m.Funcs.At(f)
	w.fn = f
	if w.fextras = w.takeExtras(w.fextras, r.Extra, true); w.err != nil {
		return
	}
	slices.SortStableFunc(w.fextras, func(a, b extra) int { return cmp.Compare(a.owner, b.owner) })
	w.begin()
	w.later("allocations")
	w.key("attributes")
	w.functionAttributes(r.Flags)
	w.later("blocks")
	w.key("name")
	w.spelled(w.funcs[f], prefixFunc)
	w.put(w.fextras, "")
	w.stream(func(key string) {
		w.list()
		if key == "allocations" {
			w.allocations(f)
		} else {
			w.blockTree(f)
		}
		w.close()
	})
	for i := range w.fextras {
		if x := &w.fextras[i]; x.owner != "" && x.owner != "*" && !x.used {
			w.fail(target.User, "function %q has no %s for %q", m.Names.String(r.Name), x.owner, x.key)
		}
	}
}

// functionAttributes writes a list of names, or a bag when one of them has a value.
func (w *Writer) functionAttributes(flags ir.FuncFlag) {
	bag := slices.ContainsFunc(w.fextras, func(x extra) bool { return x.owner == "*" && !x.elem })
	if bag {
		w.begin()
		for _, fl := range funcFlags {
			if flags&fl.flag != 0 {
				w.key(fl.name)
				w.bool(true)
			}
		}
		w.put(w.fextras, "*")
		for i := range w.fextras {
			x := &w.fextras[i]
			if !x.elem {
				continue
			}
			if x.value[0] != '"' {
				w.fail(target.User, "a function's attributes are names or members, not %s", x.value)
				continue
			}
			w.startMember()
			w.str(x.value)
			w.endKey()
			w.bool(true)
		}
		w.end()
		return
	}
	w.list()
	n := 0
	for _, fl := range funcFlags {
		if flags&fl.flag != 0 {
			w.item(n)
			w.word(fl.name)
			n++
		}
	}
	for i := range w.fextras {
		if x := &w.fextras[i]; x.elem {
			w.item(n)
			w.str(x.value)
			n++
		}
	}
	w.close()
}

// innerExtras are the function's unexplained members of an object inside it.
func (w *Writer) innerExtras(list string, s spelling, prefix string) []extra {
	if len(w.fextras) == 0 {
		return nil
	}
	w.text = w.appendSpelled(w.text[:0], s, prefix)
	owner := string(appendSegment([]byte(list), w.text))
	i, ok := slices.BinarySearchFunc(w.fextras, owner, func(x extra, o string) int { return strings.Compare(x.owner, o) })
	if !ok {
		return nil
	}
	j := i
	for j < len(w.fextras) && w.fextras[j].owner == owner {
		w.fextras[j].used = true
		j++
	}
	return w.fextras[i:j]
}

func (w *Writer) allocations(f ir.Func) {
	m := w.m
	w.aliases = w.aliases[:0]
	for _, a := range m.AliasRows() {
		if m.Sets.At(m.Locs.At(a.A).Set).Func == f {
			w.aliases = append(w.aliases, a, ir.AliasRow{A: a.B, B: a.A, Kind: a.Kind})
		}
	}
	slices.SortFunc(w.aliases, func(a, b ir.AliasRow) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	n := 0
	for _, s := range m.SetsOf(f) {
		w.item(n)
		n++
		w.str("\n")
		w.set(s)
		w.flush(false)
	}
	for _, g := range m.RegList.Of(m.Funcs.At(f).Regs) {
		w.item(n)
		n++
		w.str("\n")
		w.register(g)
		w.flush(false)
	}
	w.str("\n")
}

func (w *Writer) register(g ir.Reg) {
	r := w.m.Regs.At(g)
	w.begin()
	w.key("Skind")
	w.word("register")
	w.key("dtype")
	w.word(r.Dtype.String())
	if r.Engine != target.EngineUnassigned {
		w.key("engine")
		w.word(r.Engine.String())
	}
	w.key("name")
	w.spelled(w.regs[g], prefixReg)
	w.key("num_physical_regs")
	w.int(int64(r.Width))
	if r.Phys != -1 {
		w.key("physical_id")
		w.int(int64(r.Phys))
	}
	own := w.innerExtras("/registers/", w.regs[g], prefixReg)
	if len(own) > 0 {
		w.put(own, own[0].owner)
	}
	w.end()
}

func (w *Writer) flag(key string, on bool) {
	if on {
		w.key(key)
		w.bool(true)
	}
}

func (w *Writer) set(s ir.Set) {
	m := w.m
	r := m.Sets.At(s)
	w.extras = w.takeExtras(w.extras, r.Extra, false)
	extras := w.extras
	w.begin()
	w.key("Skind")
	w.word("memory_location_set")
	w.key("addr_space")
	w.word(r.Addr.String())
	if r.Const != 0 {
		w.key("const")
		w.int(int64(r.Const))
	}
	w.key("dtype")
	w.word(r.Dtype.String())
	if r.File != 0 {
		w.key("file")
		w.name(r.File)
	}
	w.key("kind")
	w.word(r.Kind.String())
	if r.LiveN != 0 {
		w.key("live")
		w.int(int64(r.LiveN))
	}
	w.key("memorylocations")
	w.list()
	first, n := m.LocsOf(s)
	for k := range n {
		w.item(k)
		w.loc(first + ir.Loc(k))
	}
	w.close()
	w.key("name")
	w.spelled(w.sets[s], prefixSet)
	w.flag("no_rotate", r.Flags&ir.SetNoRotate != 0)
	w.flag("no_spill", r.Flags&ir.SetNoSpill != 0)
	if r.Origin != ir.OriginInternal {
		w.key("origin")
		w.word(r.Origin.String())
	}
	w.key("partition_dim")
	if r.PartDim < 0 {
		w.str("null")
	} else {
		w.int(int64(r.PartDim))
	}
	w.flag("reload", r.Flags&ir.SetReload != 0)
	w.flag("spill_home", r.Flags&ir.SetSpillHome != 0)
	if !hasExtra(extras, "", "tensorId2MemLocSize") {
		w.key("tensorId2MemLocSize")
		w.int(int64(r.Count))
	}
	w.key("tensor_class")
	w.word(r.Class.String())
	w.key("tensor_shape")
	w.ints(m.Ints.Of(r.Shape))
	w.flag("virtual", r.Flags&ir.SetVirtual != 0)
	w.flag("volatile", r.Flags&ir.SetVolatile != 0)
	w.put(extras, "")
	w.end()
}

func (w *Writer) loc(l ir.Loc) {
	m := w.m
	r := m.Locs.At(l)
	w.lextras = w.takeExtras(w.lextras, r.Extra, false)
	w.begin()
	w.key("Skind")
	w.word("memory_location")
	w.key("addr")
	w.int(r.Addr)
	at, found := slices.BinarySearchFunc(w.aliases, l, func(a ir.AliasRow, l ir.Loc) int { return cmp.Compare(a.A, l) })
	if found {
		w.key("alias")
		w.list()
		for k := at; k < len(w.aliases) && w.aliases[k].A == l; k++ {
			a := w.aliases[k]
			w.item(k - at)
			w.str("[")
			w.spelled(w.sets[m.Locs.At(a.B).Set], prefixSet)
			w.str(",")
			w.spelled(w.locs[a.B], prefixLoc)
			w.str(",")
			w.int(int64(a.Kind))
			w.str("]")
		}
		w.close()
	}
	w.key("allocated")
	w.bool(r.Flags&ir.LocAllocated != 0)
	w.key("bank")
	w.int(int64(r.Bank))
	w.key("base")
	w.int(int64(r.Base))
	w.key("dims")
	w.ints([]int64{int64(r.Parts), r.Bytes})
	w.key("name")
	w.spelled(w.locs[l], prefixLoc)
	if r.Pack != -1 {
		w.key("pack_id_hint")
		w.int(int64(r.Pack))
	}
	w.key("pinned")
	w.bool(r.Flags&ir.LocPinned != 0)
	w.flag("runtime_reserved", r.Flags&ir.LocReserved != 0)
	if r.ID != -1 {
		w.key("tensor_id")
		w.int(int64(r.ID))
	}
	w.key("type")
	w.word(r.Space.String())
	w.flag("user_allocated", r.Flags&ir.LocUserAllocated != 0)
	w.flag("written_by_another_core", r.Flags&ir.LocRemoteWriter != 0)
	w.put(w.lextras, "")
	w.end()
}
