package neff

import (
	"bytes"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// flushAt is the buffer of the descriptor writer.
const flushAt = 1 << 15

// WriteEngine streams an engine's JSON: its descriptors in the order of the list, keys sorted, and for Activation and DVE
// their tables. Nothing is kept, so a list of any length costs one buffer.
func WriteEngine(w io.Writer, e target.Engine, descs []Desc, def *Def) error {
	n, err := quotedNames(def)
	if err != nil {
		return err
	}
	return n.write(w, e, descs)
}

// spelling is the names of queue sets and variables as JSON strings, and the buffer in which lists are spelled.
type spelling struct {
	queues, vars []string
	buf          []byte
}

// quotedNames spells the names of both tables once.
func quotedNames(def *Def) (*spelling, error) {
	var text []byte
	ends := make([]int, 0, len(def.Queues)+len(def.Vars))
	quote := func(s string) (err error) {
		if text, err = jsontext.AppendQuote(text, s); err != nil {
			return target.Errorf(target.User, "neff: name %q is not UTF-8", s)
		}
		ends = append(ends, len(text))
		return nil
	}
	for i := range def.Queues {
		if err := quote(def.Queues[i].Name); err != nil {
			return nil, err
		}
	}
	for i := range def.Vars {
		if err := quote(def.Vars[i].Name); err != nil {
			return nil, err
		}
	}
	all, list, at := string(text), make([]string, len(ends)), 0
	for i, end := range ends {
		list[i], at = all[at:end], end
	}
	return &spelling{queues: list[:len(def.Queues)], vars: list[len(def.Queues):]}, nil
}

func (n *spelling) write(w io.Writer, e target.Engine, descs []Desc) error {
	if n.buf == nil {
		n.buf = make([]byte, 0, flushAt+4096)
	}
	buf := append(n.buf[:0], '{')
	if e == target.EngineAct {
		buf = append(buf, `"activation_function_sets":`...)
		buf = append(appendActSets(buf), ',')
	}
	buf = append(buf, `"dma":[`...)
	for i := range descs {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, '\n')
		buf = appendDesc(buf, &descs[i], n.queues, n.vars)
		if len(buf) >= flushAt {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	buf = append(buf, ']')
	if e == target.EngineDVE {
		buf = append(buf, `,"dve_tables":[]`...)
	}
	buf = append(buf, '}', '\n')
	_, err := w.Write(buf)
	return err
}

func appendDesc(b []byte, d *Desc, queues, vars []string) []byte {
	b = append(b, `{"desc":{`...)
	b = appendSide(b, "from", &d.From, vars)
	if d.Op != DMACopy {
		b = append(b, `"op":"`...)
		b = append(b, d.Op.String()...)
		b = append(b, `",`...)
	}
	b = appendSide(b, "to", &d.To, vars)
	b[len(b)-1] = '}' // over the last comma
	b = append(b, `,"id":`...)
	b = strconv.AppendUint(b, uint64(d.ID), 10)
	b = append(b, `,"queue":`...)
	b = append(b, queues[d.Queue]...)
	if d.SemInc != 0 {
		b = append(b, `,"semaphore":`...)
		b = strconv.AppendUint(b, uint64(d.Sem), 10)
		b = append(b, `,"semaphore_increment":`...)
		b = strconv.AppendUint(b, uint64(d.SemInc), 10)
	}
	return append(b, '}')
}

// appendSide writes the members of one side, each followed by a comma. The default type, uint8, is left out.
func appendSide(b []byte, side string, s *Side, vars []string) []byte {
	key := func(suffix string) {
		b = append(b, '"')
		b = append(b, side...)
		b = append(b, suffix...)
		b = append(b, '"', ':')
	}
	key("")
	b = append(b, vars[s.Var]...)
	b = append(b, ',')
	if s.Dtype != target.Uint8 {
		key("_dtype")
		b = append(b, '"')
		b = append(b, s.Dtype.String()...)
		b = append(b, '"', ',')
	}
	key("_off")
	b = strconv.AppendInt(b, s.Off, 10)
	b = append(b, ',')
	key("_sizes")
	b = append(b, '[')
	for i := uint8(0); i < s.N && i < 4; i++ {
		b = strconv.AppendUint(b, uint64(s.Size[i]), 10)
		b = append(b, ',')
	}
	b[len(b)-1] = ']'
	b = append(b, ',')
	key("_steps")
	b = append(b, '[')
	for i := uint8(0); i < s.N && i < 4; i++ {
		b = strconv.AppendInt(b, s.Step[i], 10)
		b = append(b, ',')
	}
	b[len(b)-1] = ']'
	return append(b, ',')
}

// appendActSets writes which functions live in which table set, so that a loader with another grouping notices.
func appendActSets(b []byte) []byte {
	b = append(b, '[')
	for set := 1; set < target.NumActTables; set++ {
		if set > 1 {
			b = append(b, ',')
		}
		b = append(b, `{"functions":[`...)
		first := true
		for f := target.ActFunc(0); f < target.NumActFuncs; f++ {
			if f.TableSet() != set {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, '"')
			b = append(b, f.String()...)
			b = append(b, '"')
		}
		b = append(b, `],"id":`...)
		b = strconv.AppendInt(b, int64(set), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

// ReadEngine streams an engine's JSON into visit, one descriptor at a time; the pointer is valid during the call. Names
// become rows of def. It checks the form; CheckBlocks checks the meaning.
func ReadEngine(r io.Reader, e target.Engine, def *Def, visit func(*Desc) error) error {
	rd, err := newDescReader(r, e, def)
	if err != nil {
		return err
	}
	return rd.run(visit)
}

type descReader struct {
	dec    *jsontext.Decoder
	file   string
	engine target.Engine
	d      Desc
	queues map[string]uint32 // by quoted name
	vars   map[string]uint32
}

func newDescReader(r io.Reader, e target.Engine, def *Def) (*descReader, error) {
	n, err := quotedNames(def)
	if err != nil {
		return nil, err
	}
	rd := &descReader{dec: jsontext.NewDecoder(r), file: e.Info().Name + ".json", engine: e,
		queues: make(map[string]uint32, len(n.queues)), vars: make(map[string]uint32, len(n.vars))}
	for i := 1; i < len(n.queues); i++ {
		rd.queues[n.queues[i]] = uint32(i)
	}
	for i := 1; i < len(n.vars); i++ {
		rd.vars[n.vars[i]] = uint32(i)
	}
	return rd, nil
}

func (rd *descReader) bad(format string, args ...any) error {
	args = append([]any{rd.file, rd.dec.InputOffset()}, args...)
	return target.Errorf(target.User, "neff: %s at byte %d: "+format, args...)
}

func (rd *descReader) run(visit func(*Desc) error) error {
	seen := false
	err := rd.object(func(key string) error {
		switch key {
		case `"dma"`:
			seen = true
			return rd.list(func() error {
				rd.d = Desc{}
				if err := rd.desc(&rd.d); err != nil {
					return err
				}
				return visit(&rd.d)
			})
		case `"activation_function_sets"`:
			v, err := rd.value()
			if err != nil {
				return err
			}
			if rd.engine != target.EngineAct || !bytes.Equal(v, appendActSets(nil)) {
				return rd.bad("table sets differ from those of this machine")
			}
			return nil
		case `"dve_tables"`:
			v, err := rd.value()
			if err == nil && string(v) != "[]" {
				err = rd.bad("tables of DVE are not supported")
			}
			return err
		}
		return rd.bad("unknown key %s", key)
	})
	if err != nil {
		return err
	}
	if !seen {
		return rd.bad("no \"dma\" list")
	}
	if _, err := rd.dec.ReadToken(); err != io.EOF {
		return rd.bad("data after the object")
	}
	return nil
}

// object calls member with each key, quoted as it stands; member must consume the value.
func (rd *descReader) object(member func(key string) error) error {
	if err := rd.open('{'); err != nil {
		return err
	}
	for rd.dec.PeekKind() == '"' {
		v, err := rd.value()
		if err != nil {
			return err
		}
		if err := member(keyOf(v)); err != nil {
			return err
		}
	}
	return rd.shut()
}

// keys are the member names of the format, so that looking at one allocates nothing.
var keys = func() map[string]string {
	m := map[string]string{}
	for _, k := range []string{"dma", "activation_function_sets", "dve_tables", "desc", "id", "queue", "semaphore",
		"semaphore_increment", "op", "from", "from_dtype", "from_off", "from_sizes", "from_steps", "to", "to_dtype",
		"to_off", "to_sizes", "to_steps"} {
		m[`"`+k+`"`] = `"` + k + `"`
	}
	return m
}()

func keyOf(v []byte) string {
	if k, ok := keys[string(v)]; ok {
		return k
	}
	return string(v)
}

func (rd *descReader) list(elem func() error) error {
	if err := rd.open('['); err != nil {
		return err
	}
	for k := rd.dec.PeekKind(); k != ']' && k != 0; k = rd.dec.PeekKind() {
		if err := elem(); err != nil {
			return err
		}
	}
	return rd.shut()
}

func (rd *descReader) open(kind jsontext.Kind) error {
	t, err := rd.dec.ReadToken()
	if err != nil {
		return badJSON(rd.file, err)
	}
	if t.Kind() != kind {
		return rd.bad("%s where %s is due", t.Kind(), kind)
	}
	return nil
}

func (rd *descReader) shut() error {
	if _, err := rd.dec.ReadToken(); err != nil {
		return badJSON(rd.file, err)
	}
	return nil
}

// value reads any value; the bytes are valid until the next read.
func (rd *descReader) value() ([]byte, error) {
	v, err := rd.dec.ReadValue()
	if err != nil {
		return nil, badJSON(rd.file, err)
	}
	return v, nil
}

func (rd *descReader) desc(d *Desc) error {
	has := 0
	err := rd.object(func(key string) error {
		switch key {
		case `"desc"`:
			has |= 1
			return rd.object(func(key string) error { return rd.sides(d, key) })
		case `"id"`:
			has |= 2
			return rd.uint(&d.ID, 1<<32-1)
		case `"queue"`:
			has |= 4
			return rd.name(&d.Queue, rd.queues, "queue set")
		case `"semaphore"`:
			return rd.uint8(&d.Sem)
		case `"semaphore_increment"`:
			return rd.uint8(&d.SemInc)
		}
		return rd.bad("unknown key %s", key)
	})
	if err == nil && has != 7 {
		err = rd.bad("descriptor without desc, id or queue")
	}
	return err
}

func (rd *descReader) sides(d *Desc, key string) error {
	switch key {
	case `"op"`:
		v, err := rd.value()
		if err != nil {
			return err
		}
		for op := DMAOp(0); op < numDMAOps; op++ {
			if len(v) > 2 && string(v[1:len(v)-1]) == dmaOps[op] {
				d.Op = op
				return nil
			}
		}
		return rd.bad("unknown operation %s", v)
	case `"from"`:
		return rd.name(&d.From.Var, rd.vars, "variable")
	case `"to"`:
		return rd.name(&d.To.Var, rd.vars, "variable")
	case `"from_dtype"`:
		return rd.dtype(&d.From.Dtype)
	case `"to_dtype"`:
		return rd.dtype(&d.To.Dtype)
	case `"from_off"`:
		return rd.int(&d.From.Off)
	case `"to_off"`:
		return rd.int(&d.To.Off)
	case `"from_sizes"`:
		return rd.sizes(&d.From)
	case `"to_sizes"`:
		return rd.sizes(&d.To)
	case `"from_steps"`:
		return rd.steps(&d.From)
	case `"to_steps"`:
		return rd.steps(&d.To)
	}
	return rd.bad("unknown key %s", key)
}

func (rd *descReader) int(p *int64) error {
	v, err := rd.value()
	if err != nil {
		return err
	}
	n, perr := strconv.ParseInt(string(v), 10, 64)
	if perr != nil {
		return rd.bad("%s is not an integer", v)
	}
	*p = n
	return nil
}

func (rd *descReader) uint(p *uint32, limit uint64) error {
	v, err := rd.value()
	if err != nil {
		return err
	}
	n, perr := strconv.ParseUint(string(v), 10, 64)
	if perr != nil || n > limit {
		return rd.bad("%s is not an integer in 0..%d", v, limit)
	}
	*p = uint32(n)
	return nil
}

func (rd *descReader) uint8(p *uint8) error {
	var n uint32
	err := rd.uint(&n, 255)
	*p = uint8(n)
	return err
}

func (rd *descReader) name(p *uint32, rows map[string]uint32, what string) error {
	v, err := rd.value()
	if err != nil {
		return err
	}
	row, ok := rows[string(v)]
	if !ok {
		return rd.bad("unknown %s %s", what, v)
	}
	*p = row
	return nil
}

func (rd *descReader) dtype(p *target.Dtype) error {
	v, err := rd.value()
	if err != nil {
		return err
	}
	if len(v) > 2 {
		if d, ok := target.ParseDtype(string(v[1 : len(v)-1])); ok {
			*p = d
			return nil
		}
	}
	return rd.bad("unknown element type %s", v)
}

func (rd *descReader) sizes(s *Side) error {
	n := 0
	err := rd.list(func() error {
		if n == 4 {
			return rd.bad("more than 4 sizes")
		}
		n++
		return rd.uint(&s.Size[n-1], 1<<32-1)
	})
	return rd.pairs(s, n, err)
}

func (rd *descReader) steps(s *Side) error {
	n := 0
	err := rd.list(func() error {
		if n == 4 {
			return rd.bad("more than 4 steps")
		}
		n++
		return rd.int(&s.Step[n-1])
	})
	return rd.pairs(s, n, err)
}

// pairs demands that sizes and steps have the same length.
func (rd *descReader) pairs(s *Side, n int, err error) error {
	if err != nil {
		return err
	}
	if n == 0 || s.N != 0 && int(s.N) != n {
		return rd.bad("sizes and steps differ in length")
	}
	s.N = uint8(n)
	return nil
}
