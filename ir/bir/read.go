package bir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

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
	refs    []ref // to instructions and blocks of the function
	queued  []ref // to queues of the module
	calls   []ref // to functions of the module
	axes    []ref // mentioned before their loop
	abroad  []lateOperand
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
	r.queued, r.calls, r.extra, r.fextra, r.abroad = r.queued[:0], r.calls[:0], r.extra[:0], r.fextra[:0], r.abroad[:0]
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
			r.fail(r.end, "text after the module")
		} else {
			r.syntax(err)
		}
		return
	}
	r.finish()
}

// finish resolves what names across functions mean.
func (r *Reader) finish() {
	m := r.m
	r.fn = 0
	for i := range r.abroad {
		x := &r.abroad[i]
		row := r.physical(&x.o)
		if r.err != nil {
			return
		}
		*m.APs.At(x.ap) = row
	}
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
