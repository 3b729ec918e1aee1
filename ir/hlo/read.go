package hlo

import (
	"bytes"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const (
	maxText   = 1 << 30 // bytes of one file: offsets and list positions fit 32 bits with room
	maxInline = 64      // computations printed inside each other; each level is skipped once more than the one above
)

// Reader reads modules and keeps its workspace between them. Usable as its zero value, by one goroutine at a time.
type Reader struct {
	d    []byte
	p    int
	g    *graph.Graph
	err  error
	inst []byte // name of the instruction being read, for messages

	comp    graph.Comp // being read
	isEntry bool
	local   arena.Column[arena.Name, local] // instruction of a name in the computation comp
	compOf  arena.Column[arena.Name, graph.Comp]

	params    []param
	operands  []operandFix
	compFixes []compFix
	inlines   []inline
	inlineSeq int
	combiners []graph.Node // whose AttrKind is settled when all computations are known

	// Of the instruction being read.
	op        graph.Op
	attrs     []graph.Attr
	seenKeys  uint64
	seenCalls uint16
	calls     []callRef
	raw       []byte
	text      []byte
	row       graph.NodeRow

	// Of the module.
	aliases   []alias
	aliasPath []int64
	renames   []rename
	outNames  namesAt

	elems  []graph.Type
	marks  []uint32
	dims   []int64
	nums   []int64
	counts []int64
	prefix []int64
	walk   []outStep
	state  []uint8
	stack  []visit
	seen   arena.Column[arena.Name, bool]
}

type local struct {
	comp graph.Comp
	node graph.Node
}

type param struct {
	number int64
	node   graph.Node
	off    uint32
}

// operandFix is an operand that was used before it was defined: entry pos of NodeLists.
type operandFix struct {
	pos, off uint32
	name     arena.Name
	node     graph.Node
}

// compFix is a called computation that was not known yet: entry pos of CompLists.
type compFix struct {
	pos, off uint32
	name     arena.Name
	node     graph.Node
}

// inline is a computation printed in place of its name. Nodes of a computation are contiguous, so its text is read after the computation
// around it.
type inline struct {
	off, depth int
	name       arena.Name
	pos        uint32 // in CompLists
}

// callRef is a computation that the instruction refers to; slot orders them where the operator says so.
type callRef struct {
	name   arena.Name
	off    uint32
	slot   uint8
	inline bool
}

// rename is the name by which the user of the model knows a parameter.
type rename struct {
	node graph.Node
	name arena.Name
}

// namesAt is a list of output names in the text, and the instruction that carried it.
type namesAt struct {
	node graph.Node
	raw  []byte
}

// IsHLO reports whether data looks like HLO text: its first word is HloModule.
func IsHLO(data []byte) bool {
	r := Reader{d: data[:min(len(data), 1<<16)]}
	r.start()
	return string(r.ident()) == "HloModule"
}

func (r *Reader) start() {
	if bytes.HasPrefix(r.d, []byte("\xef\xbb\xbf")) {
		r.p = 3
	}
	r.space()
}

// Read reads one module into g, which is reset first. The graph keeps nothing of data. After an error g holds nothing of use.
func Read(data []byte, g *graph.Graph) error {
	var r Reader
	return r.Read(data, g)
}

// Read is the function Read on a workspace that is kept.
func (r *Reader) Read(data []byte, g *graph.Graph) error {
	oldName := g.Name
	g.Reset()
	if len(data) > maxText {
		return target.Errorf(target.Limit, "HLO text has %d bytes, the limit is %d; large literals belong in parameters", len(data), maxText)
	}
	r.d, r.g, r.p, r.err, r.inst = data, g, 0, nil, nil
	r.comp, r.isEntry, r.inlineSeq = 0, false, 0
	r.local.Reset()
	r.compOf.Reset()
	r.seen.Reset()
	r.operands, r.compFixes, r.inlines, r.combiners = r.operands[:0], r.compFixes[:0], r.inlines[:0], r.combiners[:0]
	r.aliases, r.aliasPath, r.renames, r.outNames = r.aliases[:0], r.aliasPath[:0], r.renames[:0], namesAt{}
	ok := r.module(oldName)
	r.d, r.g, r.inst, r.outNames = nil, nil, nil, namesAt{}
	if !ok {
		return r.err
	}
	return nil
}

// module = "HloModule" name {"," attribute} {computation | debug table}.
func (r *Reader) module(oldName string) bool {
	g := r.g
	r.start()
	if start := r.p; string(r.ident()) != "HloModule" {
		return r.expected(start, `"HloModule" at the start`)
	}
	r.space()
	name, ok := r.name("the name of the module")
	if !ok {
		return false
	}
	if g.Name = oldName; oldName != string(name) {
		g.Name = string(name)
	}
	if !r.moduleAttrs() {
		return false
	}
	var only graph.Comp
	for {
		r.space()
		if r.p >= len(r.d) {
			break
		}
		start := r.p
		word := r.ident()
		entry := false
		switch string(word) {
		case "FileNames", "FunctionNames", "FileLocations", "StackFrames":
			if r.table() {
				continue
			}
		case "HloModule":
			return r.errorf(start, "a second HloModule: a file holds one module")
		case "ENTRY":
			r.space()
			if c := r.peek(); c == '%' || class[c]&cName != 0 {
				entry = true
				start = r.p
			}
		}
		r.p = start
		if entry && g.Entry != 0 {
			return r.errorf(start, "a second ENTRY computation; the first is %%%s", r.compName(g.Entry))
		}
		c, ok := r.computation(entry)
		if !ok {
			return false
		}
		if entry {
			g.Entry = c
		}
		if only == 0 {
			only = c
		}
		for len(r.inlines) > 0 {
			if !r.inlineBody() {
				return false
			}
		}
	}
	if g.Entry == 0 {
		return r.errorf(len(r.d), "the module has no ENTRY computation")
	}
	return r.link()
}

// table skips the lines of a debug table; false when what follows is no table.
func (r *Reader) table() bool {
	d, p := r.d, r.p
	for p < len(d) && (d[p] == ' ' || d[p] == '\r' || d[p] == '\t') {
		p++
	}
	if p < len(d) && d[p] != '\n' {
		return false
	}
	for p < len(d) {
		q := p + 1 // the first byte of the line
		if q >= len(d) || class[d[q]]&cDigit == 0 {
			break
		}
		i := bytes.IndexByte(d[q:], '\n')
		if i < 0 {
			p = len(d)
			break
		}
		p = q + i
	}
	r.p = p
	return true
}

func (r *Reader) compName(c graph.Comp) string {
	return string(clip(r.g.Names.Append(nil, r.g.Comps.At(c).Name), 80))
}

// computation = ["%"] name [signature] body.
func (r *Reader) computation(entry bool) (graph.Comp, bool) {
	start := r.p
	name, ok := r.name("a computation")
	if !ok {
		return 0, false
	}
	id := r.g.Names.InternBytes(name)
	if r.compOf.Get(id) != 0 {
		return 0, r.errorf(start, "a second computation %%%s", clip(name, 80))
	}
	r.space()
	if r.peek() == '(' {
		if !r.balanced() {
			return 0, false
		}
		r.space()
		if !r.take('-') || !r.take('>') {
			return 0, r.expected(r.p, "'->' after the parameters of a computation")
		}
		r.space()
		if !r.skipShape() {
			return 0, false
		}
	}
	c, ok := r.body(id, entry, 0)
	if !ok {
		return 0, false
	}
	r.space()
	for r.peek() == ',' { // execution_thread="main" and the like
		r.p++
		r.space()
		if len(r.ident()) == 0 || !r.take('=') {
			return 0, r.expected(r.p, "an attribute of the computation")
		}
		if !r.value() {
			return 0, false
		}
		r.space()
	}
	return c, true
}

// body = "{" {instruction} "}". depth counts the inline computations around it.
func (r *Reader) body(name arena.Name, entry bool, depth int) (graph.Comp, bool) {
	g := r.g
	r.space()
	open := r.p
	if !r.take('{') {
		return 0, r.expected(open, "'{' to open the computation")
	}
	c := g.Comps.Add(graph.CompRow{Name: name, First: graph.Node(g.Nodes.Len())})
	r.compOf.Set(name, c)
	r.comp, r.isEntry = c, entry
	r.params, r.operands = r.params[:0], r.operands[:0]
	var root graph.Node
	rootMarked := false
	for {
		r.inst = nil
		r.space()
		if r.take('}') {
			break
		}
		if r.p >= len(r.d) {
			return 0, r.errorf(open, "computation %%%s is never closed", r.compName(c))
		}
		start := r.p
		marked := false
		if word := r.ident(); string(word) == "ROOT" {
			r.space()
			if ch := r.peek(); ch == '%' || class[ch]&cName != 0 {
				marked = true
				if rootMarked {
					return 0, r.errorf(start, "a second ROOT in computation %%%s", r.compName(c))
				}
			} else {
				r.p = start
			}
		} else {
			r.p = start
		}
		n, ok := r.instruction(depth)
		if !ok {
			return 0, false
		}
		if marked || !rootMarked {
			root = n
		}
		rootMarked = rootMarked || marked
	}
	if root == 0 {
		return 0, r.errorf(open, "computation %%%s has no instructions", r.compName(c))
	}
	for _, f := range r.operands {
		l := r.local.Get(f.name)
		if l.comp != c {
			r.inst = g.Names.Append(nil, g.Nodes.At(f.node).Name)
			return 0, r.errorf(int(f.off), "operand %%%s is not defined in computation %%%s", clip(g.Names.Append(nil, f.name), 80), r.compName(c))
		}
		g.NodeLists.Of(arena.Span{Off: f.pos, Len: 1})[0] = l.node
	}
	if len(r.operands) > 0 && !r.acyclicNodes(g.Comps.At(c).First) {
		return 0, false
	}
	params, ok := r.numberParams()
	if !ok {
		return 0, false
	}
	row := g.Comps.At(c)
	row.Root, row.Params = root, params
	if entry {
		r.renameParams(c)
		if !r.outputs(c) {
			return 0, false
		}
	}
	row.Count = uint32(g.Nodes.Len()) - uint32(row.First)
	return c, true
}

// numberParams lists the parameters by number: they come in any order, each number once.
func (r *Reader) numberParams() (arena.Span, bool) {
	lists := &r.g.NodeLists
	span := lists.Alloc(len(r.params))
	of := lists.Of(span)
	for _, p := range r.params {
		if p.number >= int64(len(of)) {
			return span, r.errorf(int(p.off), "parameter number %d in a computation of %d parameters", p.number, len(of))
		}
		if of[p.number] != 0 {
			return span, r.errorf(int(p.off), "a second parameter number %d", p.number)
		}
		of[p.number] = p.node
	}
	return span, true
}

// renameParams gives entry parameters the names that the producer's runtime uses, unless that would name two alike.
func (r *Reader) renameParams(c graph.Comp) {
	if len(r.renames) == 0 {
		return
	}
	g := r.g
	for _, n := range g.Params(c) {
		r.seen.Set(g.Nodes.At(n).Name, true)
	}
	for _, x := range r.renames {
		if !r.seen.Get(x.name) {
			r.seen.Set(x.name, true)
			g.Nodes.At(x.node).Name = x.name
		}
	}
}

// inlineBody reads one computation that was printed in place of its name.
func (r *Reader) inlineBody() bool {
	in := r.inlines[len(r.inlines)-1]
	r.inlines = r.inlines[:len(r.inlines)-1]
	back := r.p
	r.p = in.off
	c, ok := r.body(in.name, false, in.depth)
	if !ok {
		return false
	}
	r.g.CompLists.Of(arena.Span{Off: in.pos, Len: 1})[0] = c
	r.p = back
	return true
}

// link resolves what needs the whole module: called computations, combiners, aliases.
func (r *Reader) link() bool {
	g := r.g
	for _, f := range r.compFixes {
		c := r.compOf.Get(f.name)
		if c == 0 {
			r.inst = g.Names.Append(nil, g.Nodes.At(f.node).Name)
			return r.errorf(int(f.off), "computation %%%s is not defined", clip(g.Names.Append(nil, f.name), 80))
		}
		g.CompLists.Of(arena.Span{Off: f.pos, Len: 1})[0] = c
	}
	if (len(r.compFixes) > 0 || r.inlineSeq > 0) && !r.acyclicComps() {
		return false
	}
	for _, n := range r.combiners {
		calls := g.Calls(n)
		if kind := g.IntList(n, graph.AttrKind); len(kind) == 1 && len(calls) > 0 {
			kind[0] = int64(graph.ReduceKindOf(g, calls[len(calls)-1]))
		}
	}
	return r.linkAliases()
}
