package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// column is a property that a CSV can hold.
type column uint8

const (
	colOther column = iota // one that is not ours
	colID
	colLower
	colUpper
	colSize
	colAlign
	colHint
	colGaps
	colOffset
	numColumns
)

// spellings are the names of columns in MiniMalloc's CSV. An inclusive one gives the last moment, not the first after it.
var spellings = [...]struct {
	name      string
	col       column
	inclusive bool
}{
	{"id", colID, false}, {"buffer", colID, false}, {"buffer_id", colID, false},
	{"lower", colLower, false}, {"start", colLower, false}, {"begin", colLower, false},
	{"upper", colUpper, false}, {"end", colUpper, true},
	{"size", colSize, false},
	{"alignment", colAlign, false},
	{"hint", colHint, false},
	{"gaps", colGaps, false},
	{"offset", colOffset, false},
}

const knownColumns = "id, lower, upper (or end), size, alignment, hint, gaps, offset"

// ReadCSV reads MiniMalloc's CSV: a header that names the columns, in any order; a buffer a line; the first empty line
// ends it. Lifetimes are [lower, upper), or [lower, end] with `end` in place of `upper`, which holds for gaps too. A gap is `a-b`
// (absent in [a, b)) or `a-b@lo:hi` (only the bytes lo to hi), several are separated by spaces. An offset, unless it
// is empty or -1, is one that the plan must keep. Columns of other names are left alone; Problem.Unknown has them.
//
// Errors name line and column of the text, both from 1. A column given twice, a buffer named twice, one that is never live or has
// no bytes, a number that is negative or does not fit, and a row with too few or too many fields are errors. Memory is linear in
// len(data), which is not kept.
func ReadCSV(data []byte) (*Problem, error) {
	p := &Problem{firstLine: 2}
	r := newCSVReader(data)
	r.p = p
	if err := r.header(); err != nil {
		return nil, err
	}
	rows := min(bytes.Count(r.rest, []byte("\n"))+1, len(r.rest)/shortestRow+1, MaxBuffers)
	p.reserve(rows, len(r.rest))
	seen := newNameSet(rows)
	total := int64(0)
	for r.next() {
		if p.Len() >= MaxBuffers {
			return nil, r.fail(target.Limit, 1, "more than %d buffers", MaxBuffers)
		}
		if err := r.row(); err != nil {
			return nil, err
		}
		i := p.Len() - 1
		f := p.fault(i)
		if f.text == "" {
			f = p.useless(i)
		}
		if f.text != "" {
			return nil, r.fail(target.User, r.start[f.col], "buffer %.60q: %s", p.nameBytes(i), f.text)
		}
		if total += p.Size[i] + p.Align[i]; total > MaxTotal {
			return nil, r.fail(target.Limit, r.start[colSize], "buffer %.60q: sizes and alignments up to it sum to %d, the limit is %d; use a larger unit",
				p.nameBytes(i), total, int64(MaxTotal))
		}
		if first := seen.add(p, i); first != i {
			return nil, r.fail(target.User, r.start[colID], "buffer %.60q was already given at line %d", p.nameBytes(i), p.firstLine+first)
		}
	}
	if len(bytes.TrimSpace(r.rest)) > 0 {
		p.unread = r.line
	}
	return p, nil
}

// useless is a row that a file has no reason to hold: more likely a mistake than a wish. Problems made by hand may have it.
func (p *Problem) useless(i int) rowFault {
	switch {
	case p.Upper[i] == p.Lower[i]:
		return rowFault{colUpper, fmt.Sprintf("lower is %d and so is upper: it is never live", p.Lower[i])}
	case p.Size[i] == 0:
		return rowFault{colSize, "size is 0, must be 1 or more"}
	}
	return rowFault{}
}

// shortestRow is the bytes of a row without a name: ",0,1,1" and the end of the line.
const shortestRow = 7

func (p *Problem) reserve(rows, bytes int) {
	col := func() []int64 { return make([]int64, 0, rows) }
	p.Lower, p.Upper, p.Size, p.Align, p.Hint, p.Fixed = col(), col(), col(), col(), col(), col()
	p.Gaps = make([]arena.Span, 0, rows)
	p.nameEnds = make([]uint32, 0, rows)
	p.names = make([]byte, 0, min(bytes, 8*rows))
}

// nameSet finds names given twice. It is an open table of words: the upper half of a name's hash, then its row plus one. Words, because a map of
// strings takes five times the memory, and millions of rows are read.
type nameSet struct {
	seed  maphash.Seed
	table []uint64
}

func newNameSet(rows int) nameSet {
	return nameSet{maphash.MakeSeed(), make([]uint64, 1<<bits.Len(uint(rows+rows/2)))}
}

// add puts the name of row i in and returns i, or the row that has the same name.
func (s *nameSet) add(p *Problem, i int) int {
	name := p.nameBytes(i)
	h := maphash.Bytes(s.seed, name)
	mask := uint64(len(s.table) - 1)
	for k := h & mask; ; k = (k + 1) & mask {
		w := s.table[k]
		if w == 0 {
			s.table[k] = h&^math.MaxUint32 | uint64(i+1)
			return i
		}
		if first := int(w&math.MaxUint32) - 1; (w^h)>>32 == 0 && bytes.Equal(p.nameBytes(first), name) {
			return first
		}
	}
}

type csvReader struct {
	p         *Problem
	rest      []byte
	text      []byte // the line, without its end
	line      int
	columns   []column        // of the header, in order
	inclusive bool            // `end` in place of `upper`
	start     [numColumns]int // where the field of each column of this row starts, from 1
}

func newCSVReader(data []byte) csvReader {
	return csvReader{rest: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
}

// next takes a line and reports whether there is one that is not empty.
func (r *csvReader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	r.line++
	r.text = r.rest
	if k := bytes.IndexByte(r.rest, '\n'); k >= 0 {
		r.text, r.rest = r.rest[:k], r.rest[k+1:]
	} else {
		r.rest = nil
	}
	r.text = bytes.TrimSuffix(r.text, []byte("\r"))
	return len(bytes.TrimSpace(r.text)) > 0
}

func (r *csvReader) fail(c target.Class, col int, format string, args ...any) error {
	return target.Errorf(c, "%d:%d: "+format, append([]any{r.line, max(col, 1)}, args...)...)
}

func (r *csvReader) header() error {
	if !r.next() {
		r.line = max(r.line, 1)
		return r.fail(target.User, 1, "no header; the first line names the columns: %s", knownColumns)
	}
	var have [numColumns]bool
	pos, rest := 1, r.text
	for more := true; more; {
		var field []byte
		field, rest, more = bytes.Cut(rest, []byte(","))
		c := r.column(field)
		if c == colOther {
			r.p.unknown = append(r.p.unknown, string(bytes.TrimSpace(field)))
		} else if have[c] {
			return r.fail(target.User, pos, "column %q is the second one for the same property", bytes.TrimSpace(field))
		}
		have[c] = true
		r.columns = append(r.columns, c)
		pos += len(field) + 1
	}
	for _, need := range [...]struct {
		col  column
		name string
	}{{colID, "id"}, {colLower, "lower"}, {colUpper, "upper"}, {colSize, "size"}} {
		if !have[need.col] {
			return r.fail(target.User, 1, "no column %q in the header %.60q; needed are id, lower, upper (or end) and size, separated by commas, in ASCII or UTF-8", need.name, r.text)
		}
	}
	return nil
}

// column is the property of a header's field.
func (r *csvReader) column(field []byte) column {
	name := bytes.TrimSpace(field)
	for _, s := range spellings {
		if s.name == string(name) {
			r.inclusive = r.inclusive || s.inclusive
			return s.col
		}
	}
	return colOther
}

// row appends the row of the line. Only the form of the fields is judged, not their values.
func (r *csvReader) row() error {
	p := r.p
	v := [numColumns]int64{colAlign: 1, colHint: None, colOffset: None}
	var gaps []byte
	pos, rest, more := 1, r.text, true
	for k, c := range r.columns {
		if !more {
			return r.fail(target.User, len(r.text)+1, "%d fields where the header has %d", k, len(r.columns))
		}
		var field []byte
		field, rest, more = bytes.Cut(rest, []byte(","))
		r.start[c] = pos
		switch c {
		case colOther:
		case colID:
			if bytes.IndexByte(field, '\r') >= 0 {
				return r.fail(target.User, pos, "carriage return inside the name %.40q; lines end in LF or CR LF", field)
			}
			p.names = append(p.names, field...)
		case colGaps:
			gaps = field
		default:
			num := bytes.TrimSpace(field)
			if len(num) == 0 && (c == colAlign || c == colHint || c == colOffset) {
				break
			}
			x, ok := parseInt(num)
			if !ok {
				return r.fail(target.User, pos, "%.40q is not a whole number of 64 bits", num)
			}
			v[c] = x
		}
		pos += len(field) + 1
	}
	if more {
		return r.fail(target.User, pos, "more fields than the %d of the header; names cannot hold commas", len(r.columns))
	}
	if len(p.names) > math.MaxUint32 {
		return r.fail(target.Limit, r.start[colID], "names of more than 4 GiB")
	}
	if r.inclusive {
		// One after the last moment; a value that cannot be raised is out of range anyhow.
		v[colUpper] = min(v[colUpper], math.MaxInt64-1) + 1
	}
	p.addRow(v[colLower], v[colUpper], v[colSize])
	i := p.Len() - 1
	p.Align[i], p.Hint[i], p.Fixed[i] = v[colAlign], v[colHint], v[colOffset]
	if len(gaps) > 0 {
		return r.gaps(i, gaps)
	}
	return nil
}

func (r *csvReader) gaps(i int, text []byte) error {
	p := r.p
	from := len(p.GapPool)
	ordered := true
	for k := 0; k < len(text); {
		if text[k] == ' ' {
			k++
			continue
		}
		word := text[k:]
		if e := bytes.IndexByte(word, ' '); e >= 0 {
			word = word[:e]
		}
		g, ok := parseGap(word)
		if !ok {
			return r.fail(target.User, r.start[colGaps]+k, "%.60q is not a gap; the form is a-b or a-b@lo:hi", word)
		}
		if r.inclusive {
			g.Upper = min(g.Upper, math.MaxInt64-1) + 1
		}
		ordered = ordered && (len(p.GapPool) == from || p.GapPool[len(p.GapPool)-1].Lower <= g.Lower)
		p.GapPool = append(p.GapPool, g)
		k += len(word)
	}
	p.Gaps[i] = arena.Span{Off: uint32(from), Len: uint32(len(p.GapPool) - from)}
	if !ordered {
		own := append([]Gap(nil), p.GapPool[from:]...)
		p.GapPool = p.GapPool[:from]
		p.SetGaps(i, own...)
	}
	return nil
}

func parseGap(word []byte) (g Gap, ok bool) {
	times, bytesPart, windowed := bytes.Cut(word, []byte("@"))
	a, b, dash := bytes.Cut(times, []byte("-"))
	if !dash {
		return g, false
	}
	var okA, okB bool
	g.Lower, okA = parseInt(a)
	g.Upper, okB = parseInt(b)
	if !okA || !okB {
		return g, false
	}
	if !windowed {
		return g, true
	}
	lo, hi, colon := bytes.Cut(bytesPart, []byte(":"))
	if !colon {
		return g, false
	}
	g.Lo, okA = parseInt(lo)
	g.Hi, okB = parseInt(hi)
	return g, okA && okB
}

// parseInt reads digits with an optional minus, and nothing else.
func parseInt(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	x := uint64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		x = x*10 + uint64(c-'0')
	}
	if neg {
		return -int64(x), x <= 1<<63
	}
	return int64(x), x <= math.MaxInt64
}

// WriteCSV writes a problem with the offsets, one a buffer: id, lower, upper, size, of the rest the columns in use, and the offset.
// Reading it back gives the same problem with every offset fixed. WriteOffsets is for a problem that was read.
func WriteCSV(w io.Writer, p *Problem, offsets []int64) error {
	if len(offsets) != p.Len() {
		return target.Errorf(target.Bug, "%d offsets for %d buffers", len(offsets), p.Len())
	}
	if k := bytes.IndexAny(p.names, ",\n\r"); k >= 0 {
		i, _ := slices.BinarySearch(p.nameEnds, uint32(k+1))
		return target.Errorf(target.User, "buffer %.60q: a name in CSV cannot hold a comma or the end of a line", p.nameBytes(i))
	}
	aligned, hinted, gapped := false, false, false
	for i := range p.Size {
		aligned = aligned || p.Align[i] != 1
		hinted = hinted || p.Hint[i] != None
		gapped = gapped || p.Gaps[i].Len > 0
	}
	bw := bufio.NewWriterSize(w, 1<<16)
	bw.WriteString("id,lower,upper,size")
	for _, c := range [...]struct {
		used bool
		name string
	}{{aligned, ",alignment"}, {hinted, ",hint"}, {gapped, ",gaps"}} {
		if c.used {
			bw.WriteString(c.name)
		}
	}
	bw.WriteString(",offset\n")
	var scratch [24]byte
	num := func(before byte, x int64) { bw.Write(strconv.AppendInt(append(scratch[:0], before), x, 10)) }
	for i := range p.Size {
		bw.Write(p.nameBytes(i))
		num(',', p.Lower[i])
		num(',', p.Upper[i])
		num(',', p.Size[i])
		if aligned {
			num(',', p.Align[i])
		}
		if hinted {
			num(',', p.Hint[i])
		}
		if gapped {
			before := byte(',')
			for _, g := range p.gaps(i) {
				num(before, g.Lower)
				num('-', g.Upper)
				if g.Lo != g.Hi {
					num('@', g.Lo)
					num(':', g.Hi)
				}
				before = ' '
			}
			if p.Gaps[i].Len == 0 {
				bw.WriteByte(',')
			}
		}
		num(',', offsets[i])
		bw.WriteByte('\n')
	}
	return bw.Flush() // the first error sticks
}

// WriteOffsets copies a CSV that ReadCSV took, with the offsets in its column `offset`, which is added behind the others where there is
// none. Every other field stays as it is, byte for byte. Lines end in LF; a byte order mark and what follows the first empty line
// are dropped.
func WriteOffsets(w io.Writer, data []byte, offsets []int64) error {
	r := newCSVReader(data)
	bw := bufio.NewWriterSize(w, 1<<16)
	var scratch [24]byte
	at := 0 // the column of offsets
	for row := -1; r.next(); row++ {
		var text []byte
		switch {
		case row < 0:
			text = []byte("offset")
			for more, rest := true, r.text; more; {
				var field []byte
				field, rest, more = bytes.Cut(rest, []byte(","))
				if r.column(field) == colOffset {
					text = field
					break
				}
				at++
			}
		case row < len(offsets):
			text = strconv.AppendInt(scratch[:0], offsets[row], 10)
		default:
			return target.Errorf(target.Bug, "%d offsets for more buffers", len(offsets))
		}
		line := r.text
		for range at {
			field, rest, more := bytes.Cut(line, []byte(","))
			bw.Write(field)
			bw.WriteByte(',')
			if line = rest; !more {
				break
			}
		}
		bw.Write(text)
		if k := bytes.IndexByte(line, ','); k >= 0 {
			bw.Write(line[k:])
		}
		bw.WriteByte('\n')
	}
	return bw.Flush()
}
