package bir

import (
	"bytes"
	"encoding/base64"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Writer is the working memory of Write, kept between modules. Usable as its zero value; not for concurrent use.
type Writer struct {
	m   *ir.Module
	out io.Writer
	err error

	buf   []byte   // the text that is not yet out
	mem   []memPos // members of the objects that are open
	open  []openObj
	depth int
	perm  []byte
	text  []byte

	spell  speller
	names  []arena.Name
	insts  []spelling
	blocks []spelling
	sets   []spelling
	locs   []spelling
	regs   []spelling
	queues []spelling
	spelt  []spelling
	ids    []uint32
	funcs  []spelling

	fn      ir.Func
	extras  []extra // of the owner at hand
	lextras []extra // of the placement at hand
	fextras []extra // of the function
	frames  []writeFrame
	tails   []byte
	bound   arena.Column[ir.Axis, bool]
	aliases []ir.AliasRow
	always  keySet
	walk    []exprStep
}

// memPos is a member in buf: `"key":value` from off to end, the key with its quotes to key.
type memPos struct{ off, key, end int }

// openObj is an object that is being written.
type openObj struct {
	mem    int // its first member
	off    int // behind its brace
	sorted bool
}

// Write writes m as BIR JSON, dialect D2: sorted keys, the same bytes for the same module. Objects without a name of their
// own get one. What JSON cannot say is an error that names the object, and nothing complete has then been written.
func Write(w io.Writer, m *ir.Module) error { return new(Writer).Write(w, m) }

// Write is the function Write on reused memory.
func (w *Writer) Write(out io.Writer, m *ir.Module) error {
	w.m, w.out, w.err = m, out, nil
	w.buf, w.mem, w.open, w.depth = w.buf[:0], w.mem[:0], w.open[:0], 0
	w.frames, w.tails = w.frames[:0], w.tails[:0]
	w.bound.Reset()
	w.spellAll()
	w.module()
	w.buf = append(w.buf, '\n')
	w.flush(true)
	w.m, w.out = nil, nil
	return w.err
}

func (w *Writer) fail(c target.Class, format string, args ...any) {
	if w.err == nil {
		w.err = target.Errorf(c, format, args...)
	}
}

// flush hands finished text out. No object may be open whose members are still to be sorted.
func (w *Writer) flush(force bool) {
	if w.err != nil || len(w.buf) == 0 || !force && len(w.buf) < 1<<16 {
		return
	}
	_, w.err = w.out.Write(w.buf)
	w.buf = w.buf[:0]
}

// maxDepth is jsontext's bound on nesting.
const maxDepth = 10_000

func (w *Writer) deeper() {
	if w.depth++; w.depth > maxDepth {
		w.fail(target.Limit, "the module nests deeper than the %d levels that JSON readers take; unroll loops", maxDepth)
	}
}

// begin opens an object whose members may come in any order.
func (w *Writer) begin() {
	w.deeper()
	w.buf = append(w.buf, '{')
	w.open = append(w.open, openObj{mem: len(w.mem), off: len(w.buf), sorted: true})
}

// key begins a member.
func (w *Writer) key(k string) {
	w.startMember()
	w.buf = append(append(append(w.buf, '"'), k...), '"')
	w.endKey()
}

func (w *Writer) startMember() {
	o := &w.open[len(w.open)-1]
	if len(w.mem) > o.mem {
		w.mem[len(w.mem)-1].end = len(w.buf)
		w.buf = append(w.buf, ',')
	}
	w.mem = append(w.mem, memPos{off: len(w.buf)})
}

func (w *Writer) endKey() {
	o := &w.open[len(w.open)-1]
	n := len(w.mem)
	w.mem[n-1].key = len(w.buf)
	if o.sorted && n-1 > o.mem && w.compare(w.mem[n-2], w.mem[n-1]) >= 0 {
		o.sorted = false
	}
	w.buf = append(w.buf, ':')
}

func (w *Writer) compare(a, b memPos) int {
	return bytes.Compare(w.buf[a.off+1:a.key-1], w.buf[b.off+1:b.key-1])
}

// end closes an object: its members are brought into order, and of two with one key the first stays.
func (w *Writer) end() {
	w.sortMembers()
	o := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	w.mem = w.mem[:o.mem]
	w.buf = append(w.buf, '}')
	w.depth--
}

// sortMembers orders the members of the innermost object where they stand.
func (w *Writer) sortMembers() {
	o := &w.open[len(w.open)-1]
	l := w.mem[o.mem:]
	if len(l) > 0 {
		l[len(l)-1].end = len(w.buf)
	}
	if o.sorted {
		return
	}
	w.sortList(l)
	w.perm = append(w.perm[:0], w.buf[o.off:]...)
	w.buf = w.buf[:o.off]
	kept := 0
	for i, x := range l {
		text := w.perm[x.off-o.off : x.end-o.off]
		klen := x.key - x.off
		if i > 0 {
			if p := l[kept-1]; bytes.Equal(w.buf[p.off:p.key], text[:klen]) {
				continue
			}
			w.buf = append(w.buf, ',')
		}
		at := len(w.buf)
		w.buf = append(w.buf, text...)
		l[kept] = memPos{at, at + klen, len(w.buf)}
		kept++
	}
	w.mem = w.mem[:o.mem+kept]
	o.sorted = true
}

// sortList sorts stably: by insertion while short, as most objects are.
func (w *Writer) sortList(l []memPos) {
	if len(l) > 48 {
		slices.SortStableFunc(l, w.compare)
		return
	}
	for i := 1; i < len(l); i++ {
		for j := i; j > 0 && w.compare(l[j-1], l[j]) > 0; j-- {
			l[j-1], l[j] = l[j], l[j-1]
		}
	}
}

func (w *Writer) str(s string) { w.buf = append(w.buf, s...) }

func (w *Writer) int(v int64) { w.buf = strconv.AppendInt(w.buf, v, 10) }

func (w *Writer) bool(v bool) { w.buf = strconv.AppendBool(w.buf, v) }

// word writes a string that needs no escapes.
func (w *Writer) word(s string) { w.buf = append(append(append(w.buf, '"'), s...), '"') }

// quote writes any string.
func (w *Writer) quote(s []byte) {
	b, err := jsontext.AppendQuote(w.buf, s)
	if err != nil {
		w.fail(target.User, "the name %q is not UTF-8", s)
	}
	w.buf = b
}

func (w *Writer) name(n arena.Name) {
	w.text = w.m.Names.Append(w.text[:0], n)
	w.quote(w.text)
}

// spelled writes the name of an object.
func (w *Writer) spelled(s spelling, prefix string) {
	if s == (spelling{}) {
		w.fail(target.Bug, "something refers to an object (%s) that no function holds", prefix)
	}
	w.text = w.appendSpelled(w.text[:0], s, prefix)
	w.quote(w.text)
}

func (w *Writer) appendSpelled(dst []byte, s spelling, prefix string) []byte {
	if s.name == 0 {
		return appendInt(append(dst, prefix...), int64(s.n))
	}
	dst = w.m.Names.Append(dst, s.name)
	if s.n != 0 {
		dst = appendInt(append(dst, '.'), int64(s.n))
	}
	return dst
}

// float writes float32 bits: the shortest decimal, marked as a float; a string of the bits for what JSON numbers lack.
func (w *Writer) float(bits uint32) {
	f := math.Float32frombits(bits)
	if f != f || math.IsInf(float64(f), 0) {
		w.str(`"0x`)
		w.buf = strconv.AppendUint(w.buf, uint64(bits), 16)
		w.str(`"`)
		return
	}
	at := len(w.buf)
	w.buf = strconv.AppendFloat(w.buf, float64(f), 'g', -1, 32)
	if !bytes.ContainsAny(w.buf[at:], ".e") {
		w.str(".0")
	}
}

func (w *Writer) ints(l []int64) {
	w.str("[")
	for i, v := range l {
		if i > 0 {
			w.str(",")
		}
		w.int(v)
	}
	w.str("]")
}

// list opens an array; item separates its elements; close ends it.
func (w *Writer) list() { w.deeper(); w.str("[") }
func (w *Writer) item(i int) {
	if i > 0 {
		w.str(",")
	}
}
func (w *Writer) close() { w.depth--; w.str("]") }

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

func appendQuoted(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// extra is an unexplained member taken apart.
type extra struct {
	owner string // pointer of the inner object, "" for the owner itself, "*" for an attributes bag or list
	key   string // "" with elem
	elem  bool   // an element of a list
	value string
	used  bool
}

// takeExtras takes the texts of an owner apart. bag says that plain keys belong to an attributes bag.
func (w *Writer) takeExtras(dst []extra, s arena.Span, bag bool) []extra {
	dst = dst[:0]
	for _, n := range w.m.NameList.Of(s) {
		dst = append(dst, w.takeExtra(n, bag))
	}
	return dst
}

func (w *Writer) takeExtra(n arena.Name, bag bool) extra {
	t := w.m.Names.String(n)
	k := stringEnd([]byte(t))
	if k == 0 || k == len(t) {
		if !bag || !jsontext.Value(t).IsValid(jsontext.AllowDuplicateNames(true)) {
			w.fail(target.User, "%s is no JSON member to keep", t)
		}
		return extra{owner: "*", elem: true, value: t}
	}
	key, err := jsontext.AppendUnquote(nil, t[:k])
	if err != nil || t[k] != ':' || !jsontext.Value(t[k+1:]).IsValid(jsontext.AllowDuplicateNames(true)) {
		w.fail(target.User, "%s is no JSON member to keep", t)
	}
	x := extra{key: string(key), value: t[k+1:]}
	if bag {
		x.owner = "*"
	}
	if strings.HasPrefix(x.key, "/") {
		i := strings.LastIndexByte(x.key, '/')
		x.owner, x.key = x.key[:i], unescapeSegment(x.key[i+1:])
		if x.owner == "/attributes" && bag {
			x.owner = "*"
		}
	}
	return x
}

func unescapeSegment(s string) string {
	if strings.IndexByte(s, '~') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

// put writes the members of one inner object of the owner at hand.
func (w *Writer) put(l []extra, owner string) {
	for i := range l {
		if x := &l[i]; x.owner == owner && !x.elem {
			w.startMember()
			w.buf = appendQuoted(w.buf, x.key)
			w.endKey()
			w.str(x.value)
		}
	}
}

func hasExtra(l []extra, owner, key string) bool {
	for i := range l {
		if l[i].owner == owner && l[i].key == key {
			return true
		}
	}
	return false
}

// stream writes the members of the innermost object in order, handing those whose value is a lone 0 byte to big.
func (w *Writer) stream(big func(key string)) {
	w.sortMembers()
	o := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	text := string(w.buf[o.off:])
	l := slices.Clone(w.mem[o.mem:])
	w.mem = w.mem[:o.mem]
	w.buf = w.buf[:o.off]
	for i, x := range l {
		w.item(i)
		member := text[x.off-o.off : x.end-o.off]
		key := member[:x.key-x.off]
		if member[len(member)-1] != 0 {
			w.str(member)
			continue
		}
		w.str(key)
		w.str(":")
		big(key[1 : len(key)-1])
	}
	w.str("}")
	w.depth--
}

// later stands for a value that stream lets the caller write.
func (w *Writer) later(key string) {
	w.key(key)
	w.buf = append(w.buf, 0)
}

func (w *Writer) module() {
	m := w.m
	top := w.takeExtras(nil, m.Extra, true)
	if w.err != nil {
		return
	}
	order, nki := w.functionOrder()
	w.begin()
	if m.Gen != nil {
		w.key("arch")
		w.word(m.Gen.Arch)
	}
	entry := m.Entry != 0 && len(order) > 0 && m.Entry != order[0] || m.Entry != 0 && len(order) == 0
	if entry || m.SemaphoresPerQueue != 0 || slices.ContainsFunc(top, func(x extra) bool { return x.owner == "*" }) {
		w.key("attributes")
		w.begin()
		if entry {
			w.key("entry")
			w.spelled(w.funcs[m.Entry], prefixFunc)
		}
		if m.SemaphoresPerQueue != 0 {
			w.key("num_semaphores_per_queue")
			w.int(int64(m.SemaphoresPerQueue))
		}
		w.put(top, "*")
		w.end()
	}
	if m.Consts.Len() > 1 {
		w.later("consts")
	}
	w.later("functions")
	if m.Name != 0 {
		w.key("name")
		w.name(m.Name)
	}
	if len(nki) > 0 {
		w.later("nki_functions")
	}
	if m.Queues.Len() > 1 {
		w.later("queues")
	}
	w.key("version")
	w.str("2")
	w.put(top, "")
	for i := range top {
		if x := &top[i]; x.elem || x.owner != "" && x.owner != "*" {
			w.fail(target.User, "%s%s is no place in a module", x.owner, x.key)
		}
	}
	w.stream(func(key string) {
		w.list()
		switch key {
		case "consts":
			w.consts()
		case "functions":
			w.functions(order)
		case "nki_functions":
			w.functions(nki)
		case "queues":
			w.queueList()
		}
		w.close()
	})
}

// functionOrder is the functions in the order of writing, main first, and apart from them the kernel functions.
func (w *Writer) functionOrder() (list, nki []ir.Func) {
	m := w.m
	for f, r := range m.Funcs.All() {
		switch {
		case r.Flags&ir.FuncNKI != 0:
			nki = append(nki, f)
		case r.Name != 0 && m.Names.String(r.Name) == "main":
			list = slices.Insert(list, 0, f)
		default:
			list = append(list, f)
		}
	}
	return list, nki
}

func (w *Writer) consts() {
	m := w.m
	for c, r := range m.Consts.All() {
		w.item(int(c) - 1)
		w.str("\n")
		w.begin()
		if r.Kind == ir.ConstEmbedded {
			w.key("data")
			w.str(`"`)
			w.buf = base64.StdEncoding.AppendEncode(w.buf, m.Bytes.Of(r.Data))
			w.str(`"`)
		}
		w.key("dtype")
		w.word(r.Dtype.String())
		if r.Kind != ir.ConstEmbedded {
			w.key("recipe")
			w.name(r.Recipe)
			w.key("shape")
			w.ints(m.Ints.Of(r.Shape))
			w.key("tensor")
			w.name(r.Tensor)
		}
		w.end()
		w.flush(false)
	}
	w.str("\n")
}

func (w *Writer) queueList() {
	m := w.m
	for q, r := range m.Queues.All() {
		w.extras = w.takeExtras(w.extras, r.Extra, false)
		w.item(int(q) - 1)
		w.str("\n")
		w.begin()
		if r.Dir != ir.QueueLoad {
			w.key("direction")
			w.word(queueDirs[r.Dir])
		}
		w.key("name")
		w.spelled(w.queues[q], prefixQueue)
		if r.NumQueues != 0 {
			w.key("num_dma_engines")
			w.int(int64(r.NumQueues))
		}
		if r.Owner != target.EngineUnassigned {
			w.key("owner")
			w.word(r.Owner.String())
		}
		if r.SemBase != 0 {
			w.key("semaphore_base")
			w.int(int64(r.SemBase))
		}
		w.put(w.extras, "")
		w.end()
		w.flush(false)
	}
	w.str("\n")
}
