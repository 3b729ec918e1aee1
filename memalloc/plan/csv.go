package plan

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// column is a property that a CSV can hold.
type column uint8

const (
	colNone column = iota
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

// layout is which columns a CSV has, in order, by the index of their spelling plus one.
type layout struct {
	spelling  [numColumns]uint8
	n         int
	inclusive bool
}

func (l *layout) add(spelling int) {
	l.spelling[l.n] = uint8(spelling + 1)
	l.n++
	l.inclusive = l.inclusive || spellings[spelling].inclusive
}

func (l *layout) col(k int) column { return spellings[l.spelling[k]-1].col }

// ReadCSV reads MiniMalloc's CSV: a header that names the columns, in any order; a buffer a line; the first empty line
// ends it. Lifetimes are [lower, upper), or [lower, end] with `end` in place of `upper`, which holds for gaps too. A gap is `a-b`
// (absent in [a, b)) or `a-b@lo:hi` (only the bytes lo to hi), several are separated by spaces. An offset, unless it
// is empty or -1, is one that the plan must keep.
//
// Errors name line and column of the text, both from 1. A column that is unknown or given twice, a buffer named twice, a
// number that is negative or does not fit, and a row with too few or too many fields are errors. Memory is linear in
// len(data), which is not kept.
func ReadCSV(data []byte) (*Problem, error) {
	p := &Problem{}
	r := csvReader{p: p, rest: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	if err := r.header(); err != nil {
		return nil, err
	}
	lines := bytes.Count(r.rest, []byte("\n")) + 1
	p.reserve(lines, len(r.rest))
	seen := make(map[string]int32, lines)
	total := int64(0)
	for r.next() {
		if p.Len() >= MaxBuffers {
			return nil, r.fail(target.Limit, 1, "more than %d buffers", MaxBuffers)
		}
		if err := r.row(); err != nil {
			return nil, err
		}
		i := p.Len() - 1
		if f := p.fault(i); f.text != "" {
			return nil, r.fail(target.User, r.start[f.col], "buffer %q: %s", p.nameBytes(i), f.text)
		}
		if total += p.Size[i] + p.Align[i]; total > MaxTotal {
			return nil, r.fail(target.Limit, r.start[colSize], "buffer %q: sizes and alignments up to it sum to %d, the limit is %d; use a larger unit",
				p.nameBytes(i), total, int64(MaxTotal))
		}
		name := p.nameBytes(i)
		if first, twice := seen[string(name)]; twice {
			return nil, r.fail(target.User, r.start[colID], "buffer %q was already given at line %d", name, first)
		}
		seen[string(name)] = int32(r.line)
	}
	return p, nil
}

func (p *Problem) reserve(rows, bytes int) {
	col := func() []int64 { return make([]int64, 0, rows) }
	p.Lower, p.Upper, p.Size, p.Align, p.Hint, p.Fixed = col(), col(), col(), col(), col(), col()
	p.Gaps = make([]arena.Span, 0, rows)
	p.nameEnds = make([]uint32, 0, rows)
	p.names = make([]byte, 0, min(bytes, 8*rows))
}

type csvReader struct {
	p     *Problem
	rest  []byte
	text  []byte // the line, without its end
	line  int
	start [numColumns]int // where the field of each column of this row starts, from 1
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
	l := &r.p.layout
	var have [numColumns]bool
	pos, rest := 1, r.text
	for more := true; more; {
		var field []byte
		field, rest, more = bytes.Cut(rest, []byte(","))
		name := string(bytes.TrimSpace(field))
		k := 0
		for k < len(spellings) && spellings[k].name != name {
			k++
		}
		if k == len(spellings) {
			return r.fail(target.User, pos, "unknown column %.40q; known are %s", name, knownColumns)
		}
		if have[spellings[k].col] {
			return r.fail(target.User, pos, "column %q is the second one for the same property", name)
		}
		have[spellings[k].col] = true
		l.add(k)
		pos += len(field) + 1
	}
	for _, need := range [...]struct {
		col  column
		name string
	}{{colID, "id"}, {colLower, "lower"}, {colUpper, "upper"}, {colSize, "size"}} {
		if !have[need.col] {
			return r.fail(target.User, 1, "no column %q; needed are id, lower, upper (or end) and size", need.name)
		}
	}
	return nil
}

// row appends the row of the line. Only the form of the fields is judged, not their values.
func (r *csvReader) row() error {
	p, l := r.p, &r.p.layout
	v := [numColumns]int64{colAlign: 1, colHint: None, colOffset: None}
	var gaps []byte
	pos, rest, more := 1, r.text, true
	for k := range l.n {
		if !more {
			return r.fail(target.User, len(r.text)+1, "%d fields where the header has %d", k, l.n)
		}
		var field []byte
		field, rest, more = bytes.Cut(rest, []byte(","))
		c := l.col(k)
		r.start[c] = pos
		switch c {
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
		return r.fail(target.User, pos, "more fields than the %d of the header; names cannot hold commas", l.n)
	}
	if len(p.names) > math.MaxUint32 {
		return r.fail(target.Limit, r.start[colID], "names of more than 4 GiB")
	}
	if l.inclusive {
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
		if p.layout.inclusive {
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
	if x > math.MaxInt64 {
		return 0, false
	}
	if neg {
		return -int64(x), true
	}
	return int64(x), true
}

// WriteCSV writes the problem with the offsets, one a buffer, in the column `offset`: the last one, unless the CSV that
// the problem was read from had it elsewhere. The other columns keep their order, names and meaning. A problem that was not read
// has id, lower, upper, size, and of the rest those in use. Reading it back gives the same problem with every offset fixed.
func WriteCSV(w io.Writer, p *Problem, offsets []int64) error {
	if len(offsets) != p.Len() {
		return target.Errorf(target.Bug, "%d offsets for %d buffers", len(offsets), p.Len())
	}
	if k := bytes.IndexAny(p.names, ",\n\r"); k >= 0 {
		i, _ := slices.BinarySearch(p.nameEnds, uint32(k+1))
		return target.Errorf(target.User, "buffer %q: a name in CSV cannot hold a comma or the end of a line", p.nameBytes(i))
	}
	l := p.outLayout()
	bw := bufio.NewWriterSize(w, 1<<16)
	for k := range l.n {
		if k > 0 {
			bw.WriteByte(',')
		}
		bw.WriteString(spellings[l.spelling[k]-1].name)
	}
	bw.WriteByte('\n')
	last := int64(0)
	if l.inclusive {
		last = 1
	}
	var scratch [24]byte
	num := func(x int64) { bw.Write(strconv.AppendInt(scratch[:0], x, 10)) }
	for i := range p.Size {
		for k := range l.n {
			if k > 0 {
				bw.WriteByte(',')
			}
			switch l.col(k) {
			case colID:
				bw.Write(p.nameBytes(i))
			case colLower:
				num(p.Lower[i])
			case colUpper:
				num(p.Upper[i] - last)
			case colSize:
				num(p.Size[i])
			case colAlign:
				num(p.Align[i])
			case colHint:
				num(p.Hint[i])
			case colOffset:
				num(offsets[i])
			case colGaps:
				for j, g := range p.gaps(i) {
					if j > 0 {
						bw.WriteByte(' ')
					}
					num(g.Lower)
					bw.WriteByte('-')
					num(g.Upper - last)
					if g.Lo != g.Hi {
						bw.WriteByte('@')
						num(g.Lo)
						bw.WriteByte(':')
						num(g.Hi)
					}
				}
			}
		}
		bw.WriteByte('\n')
	}
	return bw.Flush() // the first error sticks
}

// outLayout is the layout of the source with an offset column, or that of a problem made by hand.
func (p *Problem) outLayout() layout {
	l := p.layout
	offset := len(spellings) - 1
	if l.n == 0 {
		used := [numColumns]bool{colID: true, colLower: true, colUpper: true, colSize: true}
		for i := range p.Size {
			used[colAlign] = used[colAlign] || p.Align[i] != 1
			used[colHint] = used[colHint] || p.Hint[i] != None
			used[colGaps] = used[colGaps] || p.Gaps[i].Len > 0
		}
		done := colNone
		for k, s := range spellings[:offset] {
			if used[s.col] && s.col != done && !s.inclusive {
				l.add(k)
				done = s.col
			}
		}
	}
	for k := range l.n {
		if l.col(k) == colOffset {
			return l
		}
	}
	l.add(offset)
	return l
}
