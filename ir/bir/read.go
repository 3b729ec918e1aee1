package bir

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Reader is the working memory of Read, kept between files. Usable as its zero value; not for concurrent use.
type Reader struct {
	m    *ir.Module
	data []byte
	err  error

	// The token at hand: its first byte (0 for every number's first digit) and its place in data. The source is
	// data[base:…]: a part of the text that was put off is read by a decoder of its own.
	dec         *jsontext.Decoder
	whole, late jsontext.Decoder
	src, part   bytes.Buffer
	base        int
	kind        byte
	start, end  int
	key         []byte // the last member name, unquoted; valid until the next token
	keyAt       span   // with quotes
	unquoted    []byte

	scratch instScratch

	names    arena.Column[arena.Name, nameRef]
	funcs    arena.Column[arena.Name, ir.Func]
	queues   arena.Column[arena.Name, ir.Queue]
	axisSeen arena.Column[ir.Axis, axisInfo]

	fn      ir.Func
	refs    []ref       // to instructions and blocks of the function
	queued  []ref       // to queues of the module
	calls   []ref       // to functions of the module
	axes    []ref       // mentioned before their loop
	alias   []aliasRef  // of the function
	foreign foreignLocs // placements of other functions
	first   ir.Func     // first of functions
	main    ir.Func
	entry   ref

	extra     []arena.Name // module
	fextra    []arena.Name // function
	sets      []ir.Set
	regs      []ir.Reg
	ints      []int64
	list      []arena.Name
	text      []byte
	path      []byte
	sortSpans []textName
}

// span is a piece of the text.
type span struct{ off, end int }

// nameRef is what a name means in the function that is being read; stale when fn is another.
type nameRef struct {
	fn          ir.Func
	first, last ir.Inst
	loc         ir.Loc
	set         ir.Set
	reg         ir.Reg
	block       ir.Block
	axis        ir.Axis
}

// ref is a name that is resolved later. Row says which row or pool element takes what it stands for.
type ref struct {
	kind refKind
	row  uint32
	inst ir.Inst
	name arena.Name
	at   int
}

type refKind uint8

const (
	refDep   refKind = iota + 1 // row: element of Deps
	refWait                     // row: element of SyncOps
	refBlock                    // row: element of Attrs
)

// maxText bounds what is read: names and lists then fit their 32-bit offsets.
const maxText = math.MaxUint32

// Read reads a BIR JSON module in any of the three dialects into m, which is reset first. Errors name the place by JSON
// pointer, line and offset; after an error m holds what was read so far and is of no use.
func Read(data []byte, m *ir.Module) error { return new(Reader).Read(data, m) }

// Read is the function Read on reused memory.
func (r *Reader) Read(data []byte, m *ir.Module) error {
	m.Reset()
	if len(data) > maxText {
		return target.Errorf(target.Limit, "the text has %d bytes; BIR JSON is read up to %d", len(data), maxText)
	}
	r.m, r.data, r.err, r.base, r.end = m, data, nil, 0, 0
	r.names.Reset()
	r.funcs.Reset()
	r.queues.Reset()
	r.axisSeen.Reset()
	r.fn, r.first, r.main, r.entry = 0, 0, 0, ref{}
	r.queued, r.calls, r.extra, r.fextra = r.queued[:0], r.calls[:0], r.extra[:0], r.fextra[:0]
	r.foreign.reset()
	r.src = *bytes.NewBuffer(data)
	r.whole.Reset(&r.src, jsontext.AllowDuplicateNames(true))
	r.dec = &r.whole
	r.file()
	r.m, r.data = nil, nil
	r.src, r.part = bytes.Buffer{}, bytes.Buffer{}
	return r.err
}

// fail records the first error. The pointer and the line are found from the offset, by reading the text once more.
func (r *Reader) fail(at int, format string, args ...any) {
	r.failClass(target.User, at, format, args...)
}

func (r *Reader) failClass(c target.Class, at int, format string, args ...any) {
	if r.err == nil {
		r.kind = 0
		r.err = target.Errorf(c, "%s: %w (%s)", pointerAt(r.data, at), fmt.Errorf(format, args...), place(r.data, at))
	}
}

func place(data []byte, at int) string {
	at = min(at, len(data))
	return fmt.Sprintf("line %d, offset %d", 1+bytes.Count(data[:at], []byte{'\n'}), at)
}

// pointerAt is the JSON pointer of the value, or of the member whose name stands, at an offset.
func pointerAt(data []byte, at int) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := dec.ReadToken(); err != nil || dec.InputOffset() > int64(at) {
			if p := dec.StackPointer(); p != "" {
				return string(p)
			}
			return "/"
		}
	}
}

func (r *Reader) syntax(err error) {
	if r.err != nil {
		return
	}
	r.kind = 0
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		if errors.Is(err, io.EOF) {
			err = errors.New("the text is empty")
		}
		r.err = target.Errorf(target.User, "/: %w", err)
		return
	}
	p := string(s.JSONPointer)
	if p == "" {
		p = "/"
	}
	r.err = target.Errorf(target.User, "%s: not JSON: %w (%s)", p, s.Err, place(r.data, int(s.ByteOffset)))
}

// next takes a token. Its kind is its first byte, '0' for numbers; 0 after an error.
func (r *Reader) next() byte {
	if r.err != nil {
		return 0
	}
	i := r.end
	if _, err := r.dec.ReadToken(); err != nil {
		r.syntax(err)
		return 0
	}
	r.end = r.base + int(r.dec.InputOffset())
	for {
		switch c := r.data[i]; c {
		case ' ', '\t', '\r', '\n', ':', ',':
			i++
			continue
		default:
			r.start = i
			if c == '-' || c-'0' < 10 {
				c = '0'
			}
			r.kind = c
			return c
		}
	}
}

// skip completes the value that the token at hand begins and gives its place.
func (r *Reader) skip() span {
	s := span{r.start, r.end}
	if r.kind == '{' || r.kind == '[' {
		for depth := 1; depth > 0; {
			switch r.next() {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case 0:
				return span{}
			}
		}
		s.end = r.end
	}
	return s
}

// value takes a whole value.
func (r *Reader) value() span {
	r.next()
	return r.skip()
}

func (r *Reader) raw(s span) []byte { return r.data[s.off:s.end] }

// object takes the opening brace of an object.
func (r *Reader) object() bool { return r.expect('{') }

func (r *Reader) array() bool { return r.expect('[') }

func (r *Reader) expect(kind byte) bool {
	r.next()
	return r.is(kind)
}

// is checks the kind of the token at hand.
func (r *Reader) is(kind byte) bool {
	if r.kind != kind && r.err == nil {
		r.fail(r.start, "expected %s, found %s", kindName(kind), kindName(r.kind))
	}
	return r.kind == kind && r.err == nil
}

func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't':
		return "true"
	case 'f':
		return "false"
	case 'n':
		return "null"
	}
	return fmt.Sprintf("%q", kind)
}

// member takes the name of the next member into key, and reports whether there is one.
func (r *Reader) member() bool {
	if r.next() != '"' {
		return false
	}
	r.keyAt = span{r.start, r.end}
	r.key = r.unquote(r.keyAt)
	return true
}

// element takes the first token of the next element of an array, and reports whether there is one.
func (r *Reader) element() bool {
	k := r.next()
	return k != ']' && k != 0
}

// unquote is the text of a string; it may lie in r.unquoted, which the next call overwrites.
func (r *Reader) unquote(s span) []byte {
	b := r.data[s.off+1 : s.end-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var err error
	if r.unquoted, err = jsontext.AppendUnquote(r.unquoted[:0], r.data[s.off:s.end]); err != nil {
		r.fail(s.off, "%v", err)
	}
	return r.unquoted
}

// str takes a string.
func (r *Reader) str() []byte {
	if !r.expect('"') {
		return nil
	}
	return r.unquote(span{r.start, r.end})
}

func (r *Reader) name() arena.Name { return r.m.Names.InternBytes(r.str()) }

// someName takes a string that may not be empty.
func (r *Reader) someName() arena.Name {
	n := r.name()
	if n == 0 {
		r.fail(r.start, "the name is empty")
	}
	return n
}

// nameHere is the name of the string at hand.
func (r *Reader) nameHere() arena.Name {
	if !r.is('"') {
		return 0
	}
	return r.m.Names.InternBytes(r.unquote(span{r.start, r.end}))
}

// int takes an integer in [lo, hi].
func (r *Reader) int(lo, hi int64) int64 {
	r.next()
	return r.intHere(lo, hi)
}

func (r *Reader) intHere(lo, hi int64) int64 {
	if !r.is('0') {
		return 0
	}
	v, ok := parseInt(r.data[r.start:r.end])
	if !ok || v < lo || v > hi {
		r.fail(r.start, "%s is not an integer from %d to %d", r.data[r.start:r.end], lo, hi)
		return 0
	}
	return v
}

func (r *Reader) bool() bool {
	switch k := r.next(); k {
	case 't':
		return true
	case 'f', 0:
		return false
	default:
		if b := r.data[r.start:r.end]; len(b) == 1 && (b[0] == '0' || b[0] == '1') {
			return b[0] == '1'
		}
		r.fail(r.start, "expected true or false, found %s", kindName(k))
		return false
	}
}

// enumOf takes the name of an enumeration's member.
func enumOf[T any](r *Reader, what string, parse func(string) (T, bool)) T {
	s := r.str()
	v, ok := parse(string(s))
	if !ok && r.err == nil {
		r.fail(r.start, "unknown %s %q", what, s)
	}
	return v
}

// once reports a member that an object has twice.
func (r *Reader) once(seen *uint32, bit uint) {
	if *seen>>bit&1 != 0 {
		r.fail(r.keyAt.off, "the object has the key twice")
	}
	*seen |= 1 << bit
}

// memberText is the text of a member that the tables do not explain.
func (r *Reader) memberText(key, value span) arena.Name {
	k := r.unquote(key)
	if len(k) > 0 && k[0] == '/' {
		return r.pointerText("", key, value)
	}
	r.text, _ = jsontext.AppendQuote(r.text[:0], k)
	r.text = append(append(r.text, ':'), r.raw(value)...)
	return r.m.Names.InternBytes(r.text)
}

// bagText is memberText for an attributes bag.
func (r *Reader) bagText(key, value span) arena.Name {
	if k := r.unquote(key); len(k) > 0 && k[0] == '/' {
		return r.pointerText("/attributes", key, value)
	}
	return r.memberText(key, value)
}

// pointerText is the text of a member prefix/key of an owner.
func (r *Reader) pointerText(prefix string, key, value span) arena.Name {
	r.path = append(append(r.path[:0], prefix...), '/')
	r.path = appendSegment(r.path, r.unquote(key))
	r.text, _ = jsontext.AppendQuote(r.text[:0], r.path)
	r.text = append(append(r.text, ':'), r.raw(value)...)
	return r.m.Names.InternBytes(r.text)
}

// appendSegment appends one segment of a JSON pointer.
func appendSegment[B ~[]byte | ~string](dst []byte, s B) []byte {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, s[i])
		}
	}
	return dst
}

type textName struct {
	name     arena.Name
	off, end int
}

// sortExtras brings the texts of one owner into order and refuses a key that occurs twice.
func (r *Reader) sortExtras(l []arena.Name, at int) {
	if len(l) < 2 || r.err != nil {
		return
	}
	r.text, r.sortSpans = r.text[:0], r.sortSpans[:0]
	for _, n := range l {
		off := len(r.text)
		r.text = r.m.Names.Append(r.text, n)
		r.sortSpans = append(r.sortSpans, textName{n, off, len(r.text)})
	}
	slices.SortStableFunc(r.sortSpans, func(a, b textName) int { return bytes.Compare(r.text[a.off:a.end], r.text[b.off:b.end]) })
	prev := []byte(nil)
	for i, s := range r.sortSpans {
		t := r.text[s.off:s.end]
		if k := t[:stringEnd(t)]; len(k) < len(t) { // a member, not an element of a list
			if bytes.Equal(k, prev) {
				r.fail(at, "the object has the key %s twice", k)
			}
			prev = k
		}
		l[i] = s.name
	}
}

// file reads the text: a module, or an object that holds one under "module".
func (r *Reader) file() {
	if !r.object() {
		return
	}
	r.module(true)
	if r.err != nil {
		return
	}
	if _, err := r.dec.ReadToken(); err != io.EOF {
		if err == nil {
			err = errors.New("text after the module")
		}
		r.syntax(err)
		return
	}
	r.finish()
}

// Bits of members seen, one list per kind of object.
const (
	seenModule = iota
	seenName
	seenVersion
	seenArch
	seenFunctions
	seenNKI
	seenQueues
	seenAttributes
	seenConsts
)

func (r *Reader) module(top bool) {
	var seen uint32
	at := r.start
	r.moduleMembers(&seen, top)
	if r.err == nil && seen&(1<<seenModule) == 0 && seen&(1<<seenFunctions|1<<seenNKI) == 0 {
		r.fail(at, "the module has no functions: it is not BIR JSON")
	}
	if r.err == nil && top && seen&(1<<seenModule) != 0 && seen&^(1<<seenModule) != 0 {
		r.fail(at, "the module stands both under \"module\" and beside it")
	}
	if top {
		r.m.Extra = r.layNames(r.extra, at)
	}
}

func (r *Reader) layNames(l []arena.Name, at int) arena.Span {
	r.sortExtras(l, at)
	return r.m.NameList.AddSlice(l)
}

func (r *Reader) moduleMembers(seen *uint32, top bool) {
	m := r.m
	for r.member() {
		switch string(r.key) {
		case "module":
			if !top {
				r.keep()
				continue
			}
			r.once(seen, seenModule)
			if r.object() {
				r.module(false)
			}
		case "name":
			r.once(seen, seenName)
			m.Name = r.name()
		case "version":
			r.once(seen, seenVersion)
			if v := r.int(0, math.MaxInt64); r.err == nil && v != 1 && v != 2 {
				r.failClass(target.Unsupported, r.start, "version %d; versions 1 and 2 are known", v)
			}
		case "arch":
			r.once(seen, seenArch)
			s := r.str()
			if r.err != nil {
				return
			}
			g, err := target.Lookup(string(s))
			if err != nil {
				r.failClass(target.ClassOf(err), r.start, "%w", err)
			}
			m.Gen = g
		case "functions":
			r.once(seen, seenFunctions)
			r.functions(false)
		case "nki_functions":
			r.once(seen, seenNKI)
			r.functions(true)
		case "queues":
			r.once(seen, seenQueues)
			r.queueList()
		case "attributes":
			r.once(seen, seenAttributes)
			r.moduleAttributes()
		case "consts":
			r.once(seen, seenConsts)
			r.constList()
		case "archRev":
			// Read under this key and written as revision.
			if v := r.value(); r.err == nil {
				r.text = append(append(r.text[:0], `"/revision":`...), r.raw(v)...)
				r.extra = append(r.extra, m.Names.InternBytes(r.text))
			}
		default:
			r.keep()
		}
	}
	if r.err == nil && r.kind != '}' {
		r.fail(r.start, "expected a member or }")
	}
}

// keep stores a member of the module that no table explains, under its pointer.
func (r *Reader) keep() {
	key := r.keyAt
	if v := r.value(); r.err == nil {
		r.extra = append(r.extra, r.pointerText("", key, v))
	}
}

func (r *Reader) moduleAttributes() {
	if r.next() == 'n' {
		return
	}
	if !r.is('{') {
		return
	}
	var seen uint32
	for r.member() {
		switch string(r.key) {
		case "num_semaphores_per_queue":
			r.once(&seen, 0)
			r.m.SemaphoresPerQueue = int32(r.int(0, 256))
		case "entry":
			r.once(&seen, 1)
			r.entry = ref{name: r.name(), at: r.start}
		default:
			key := r.keyAt
			if v := r.value(); r.err == nil {
				r.extra = append(r.extra, r.bagText(key, v))
			}
		}
	}
}

func (r *Reader) functions(nki bool) {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		f := r.function(nki)
		if r.err != nil {
			return
		}
		if nki {
			continue
		}
		if r.first == 0 {
			r.first = f
		}
	}
}

// constList reads the data of constant tensors, which is ours: [{"dtype", "data": base64} or {"dtype", "tensor", "shape",
// "recipe"}]. Tensors refer to it by position from 1.
func (r *Reader) constList() {
	m := r.m
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		at := r.start
		var seen uint32
		c := ir.ConstRow{Kind: ir.ConstModel}
		for r.member() {
			switch string(r.key) {
			case "dtype":
				r.once(&seen, 0)
				c.Dtype = enumOf(r, "element type", target.ParseDtype)
			case "data":
				r.once(&seen, 1)
				s := r.str()
				var err error
				if r.text, err = base64.StdEncoding.AppendDecode(r.text[:0], s); err != nil {
					r.fail(r.start, "%v", err)
				}
				c.Kind, c.Data = ir.ConstEmbedded, m.Bytes.AddSlice(r.text)
			case "tensor":
				r.once(&seen, 2)
				c.Tensor = r.name()
			case "shape":
				r.once(&seen, 3)
				c.Shape = r.shape()
			case "recipe":
				r.once(&seen, 4)
				c.Recipe = r.name()
			default:
				r.fail(r.keyAt.off, "unknown key of a constant")
			}
		}
		if r.err == nil && (seen&1 == 0 || seen&(1<<1|1<<2) == 0 || seen&(1<<1) != 0 && seen>>2 != 0) {
			r.fail(at, "a constant has dtype and either data, or tensor, shape and recipe")
		}
		if r.err != nil {
			return
		}
		m.Consts.Add(c)
	}
}

// maxRank bounds the rank of a tensor.
const maxRank = 64

// shape takes a list of extents.
func (r *Reader) shape() arena.Span {
	if !r.array() {
		return arena.Span{}
	}
	r.ints = r.ints[:0]
	size := int64(1)
	for r.element() {
		v := r.intHere(0, 1<<48)
		if r.err != nil {
			return arena.Span{}
		}
		if v > 0 {
			if size > (1<<48)/v {
				r.fail(r.start, "the tensor has more than 2^48 elements")
				return arena.Span{}
			}
			size *= v
		}
		if r.ints = append(r.ints, v); len(r.ints) > maxRank {
			r.fail(r.start, "the tensor has more than %d dimensions", maxRank)
		}
	}
	return r.m.Ints.AddSlice(r.ints)
}

// queueList reads DMA queue sets. Blocks and all else that has no column stay text.
func (r *Reader) queueList() {
	m := r.m
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		at := r.start
		var seen uint32
		var q ir.QueueRow
		mark := len(r.fextra)
		for r.member() {
			switch string(r.key) {
			case "name":
				r.once(&seen, 0)
				q.Name = r.someName()
			case "num_dma_engines":
				r.once(&seen, 1)
				q.NumQueues = uint8(r.int(0, 255))
			case "owner":
				r.once(&seen, 2)
				q.Owner = enumOf(r, "engine", target.ParseEngine)
			case "direction":
				r.once(&seen, 3)
				q.Dir = enumOf(r, "direction", parseDir)
			case "semaphore_base":
				r.once(&seen, 4)
				q.SemBase = uint8(r.int(0, 255))
			default:
				key := r.keyAt
				if v := r.value(); r.err == nil {
					r.fextra = append(r.fextra, r.memberText(key, v))
				}
			}
		}
		q.Extra = r.layNames(r.fextra[mark:], at)
		r.fextra = r.fextra[:mark]
		if r.err == nil && q.Name == 0 {
			r.fail(at, "a queue without a name")
		}
		if r.err == nil && r.queues.Get(q.Name) != 0 {
			r.fail(at, "queue %q is defined twice", m.Names.String(q.Name))
		}
		if r.err != nil {
			return
		}
		r.queues.Set(q.Name, m.Queues.Add(q))
	}
}

var queueDirs = [...]string{"load", "store", "copy"}

func parseDir(s string) (ir.QueueDir, bool) {
	i := slices.Index(queueDirs[:], s)
	return ir.QueueDir(max(0, i)), i >= 0
}

// finish resolves what names across functions mean.
func (r *Reader) finish() {
	m := r.m
	declared := m.Queues.Len() > 1
	for _, q := range r.queued {
		id := r.queues.Get(q.name)
		if id == 0 {
			if declared {
				r.fail(q.at, "there is no queue %q", m.Names.String(q.name))
				return
			}
			// Before queue allocation the names stand alone.
			id = m.Queues.Add(ir.QueueRow{Name: q.name})
			r.queues.Set(q.name, id)
		}
		m.Insts.At(q.inst).Queue = id
	}
	for _, c := range r.calls {
		if r.funcs.Get(c.name) == 0 {
			r.fail(c.at, "there is no function %q", m.Names.String(c.name))
			return
		}
	}
	m.Entry = r.first
	if r.main != 0 {
		m.Entry = r.main
	}
	if r.entry.name != 0 {
		if m.Entry = r.funcs.Get(r.entry.name); m.Entry == 0 {
			r.fail(r.entry.at, "there is no function %q", m.Names.String(r.entry.name))
		}
	}
	for s, row := range m.Sets.All() {
		if int(row.Const) >= m.Consts.Len() {
			r.err = target.Errorf(target.User, "tensor %q refers to constant %d of %d", m.Names.String(m.Sets.At(s).Name), row.Const, m.Consts.Len()-1)
			return
		}
	}
}
