package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// None in Hint or Fixed says that there is no such wish.
const None = -1

const (
	// MaxBuffers bounds the rows of a problem.
	MaxBuffers = 1 << 24
	// MaxTotal bounds the sum of sizes and alignments, so that no sum of offsets overflows.
	MaxTotal = 1 << 60
	// MaxTime bounds moments.
	MaxTime = 1 << 61
)

// Gap is a stretch of a buffer's lifetime, [Lower, Upper), in which it occupies only its own bytes [Lo, Hi): none of them when
// the two are equal.
type Gap struct {
	Lower, Upper int64
	Lo, Hi       int64
}

// Problem is a set of buffers, one a row, with one column for each property. Add appends a row; the columns may be
// written after that. The zero value is an empty problem.
type Problem struct {
	Lower, Upper []int64      // live in [Lower, Upper)
	Size         []int64      // bytes, or any unit
	Align        []int64      // the offset is a multiple of it; 1 for any
	Hint         []int64      // an offset wished for, or None
	Fixed        []int64      // the offset that must be kept, or None
	Gaps         []arena.Span // into GapPool

	GapPool []Gap // the gaps of a buffer side by side, ascending, disjoint, within its lifetime

	names    []byte
	nameEnds []uint32

	firstLine int      // of the text that it was read from; 0 for one made by hand
	unknown   []string // columns of that text that are not ours
	unread    int      // the empty line that ended it, where more follows
}

// Len is the number of buffers.
func (p *Problem) Len() int { return len(p.Size) }

// Name is the name of buffer i. It allocates: it is for messages and output.
func (p *Problem) Name(i int) string { return string(p.nameBytes(i)) }

// Unknown is the columns of the CSV that ReadCSV has no use for, in order.
func (p *Problem) Unknown() []string { return p.unknown }

// Unread is the number of the empty line at which ReadCSV ended, as the format wants, where text follows it; else 0.
func (p *Problem) Unread() int { return p.unread }

// label is the name of buffer i for messages, cut where it is long, with its line where it has one.
func (p *Problem) label(i int) string {
	if p.firstLine == 0 {
		return fmt.Sprintf("%.60q", p.nameBytes(i))
	}
	return fmt.Sprintf("%.60q (line %d)", p.nameBytes(i), p.firstLine+i)
}

func (p *Problem) nameBytes(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = p.nameEnds[i-1]
	}
	return p.names[from:p.nameEnds[i]]
}

// Add appends a buffer that is live in [lower, upper), without alignment, hint, fixed offset or gaps, and returns its row.
func (p *Problem) Add(name string, lower, upper, size int64) int {
	p.names = append(p.names, name...)
	p.addRow(lower, upper, size)
	return len(p.Size) - 1
}

func (p *Problem) addRow(lower, upper, size int64) {
	p.nameEnds = append(p.nameEnds, uint32(len(p.names)))
	p.Lower = append(p.Lower, lower)
	p.Upper = append(p.Upper, upper)
	p.Size = append(p.Size, size)
	p.Align = append(p.Align, 1)
	p.Hint = append(p.Hint, None)
	p.Fixed = append(p.Fixed, None)
	p.Gaps = append(p.Gaps, arena.Span{})
}

// SetGaps gives buffer i its gaps. They may come in any order; Validate judges them.
func (p *Problem) SetGaps(i int, gaps ...Gap) {
	p.Gaps[i] = arena.Span{Off: uint32(len(p.GapPool)), Len: uint32(len(gaps))}
	p.GapPool = append(p.GapPool, gaps...)
	own := p.gaps(i)
	slices.SortStableFunc(own, func(a, b Gap) int { return cmp.Compare(a.Lower, b.Lower) })
}

func (p *Problem) gaps(i int) []Gap {
	s := p.Gaps[i]
	return p.GapPool[s.Off : s.Off+s.Len]
}

// ever reports whether any byte of buffer i is ever live: what its gaps leave of its lifetime.
func (p *Problem) ever(i int) bool {
	left := p.Upper[i] - p.Lower[i]
	for _, g := range p.gaps(i) {
		if g.Lo == g.Hi {
			left -= g.Upper - g.Lower
		}
	}
	return left > 0 && p.Size[i] > 0
}

// Reset empties the problem and keeps its storage.
func (p *Problem) Reset() {
	*p = Problem{
		Lower: p.Lower[:0], Upper: p.Upper[:0], Size: p.Size[:0], Align: p.Align[:0], Hint: p.Hint[:0], Fixed: p.Fixed[:0],
		Gaps: p.Gaps[:0], GapPool: p.GapPool[:0], names: p.names[:0], nameEnds: p.nameEnds[:0],
	}
}

// Validate reports the first row that breaks a rule: a negative number, a lifetime or gap that ends before it starts, gaps that
// overlap or leave the lifetime, a fixed offset off its alignment, or sums beyond MaxTotal. Readers call it for the
// rows they read; Plan calls it again, since columns may be written by hand. It does not look for names given twice.
func (p *Problem) Validate() error {
	n := len(p.Size)
	if n > MaxBuffers {
		return target.Errorf(target.Limit, "problem of %d buffers: the limit is %d", n, MaxBuffers)
	}
	if len(p.Lower) != n || len(p.Upper) != n || len(p.Align) != n || len(p.Hint) != n || len(p.Fixed) != n ||
		len(p.Gaps) != n || len(p.nameEnds) != n {
		return target.Errorf(target.User, "problem with columns of different lengths: every buffer needs a value in each")
	}
	total := int64(0)
	for i := range n {
		if err := p.validateRow(i); err != nil {
			return err
		}
		if total += p.Size[i] + p.Align[i]; total > MaxTotal {
			return target.Errorf(target.Limit, "buffer %.60q: sizes and alignments up to it sum to %d, the limit is %d; use a larger unit",
				p.nameBytes(i), total, int64(MaxTotal))
		}
	}
	return nil
}

// rowFault is what is wrong with a row, and the column to blame.
type rowFault struct {
	col  column
	text string
}

func (p *Problem) validateRow(i int) error {
	if f := p.fault(i); f.text != "" {
		return target.Errorf(target.User, "buffer %.60q: %s", p.nameBytes(i), f.text)
	}
	return nil
}

func (p *Problem) fault(i int) rowFault {
	lower, upper, size := p.Lower[i], p.Upper[i], p.Size[i]
	switch {
	case lower < 0 || lower > MaxTime:
		return rowFault{colLower, fmt.Sprintf("lower is %d, must be 0 to %d", lower, int64(MaxTime))}
	case upper < 0 || upper > MaxTime:
		return rowFault{colUpper, fmt.Sprintf("upper is %d, must be 0 to %d", upper, int64(MaxTime))}
	case upper < lower:
		return rowFault{colUpper, fmt.Sprintf("upper is %d, before lower %d", upper, lower)}
	case size < 0 || size > MaxTotal:
		return rowFault{colSize, fmt.Sprintf("size is %d, must be 0 to %d", size, int64(MaxTotal))}
	case p.Align[i] < 1 || p.Align[i] > MaxTotal:
		return rowFault{colAlign, fmt.Sprintf("alignment is %d, must be 1 to %d", p.Align[i], int64(MaxTotal))}
	case p.Hint[i] < None || p.Hint[i] > MaxTotal:
		return rowFault{colHint, fmt.Sprintf("hint is %d, must be -1 (none) to %d", p.Hint[i], int64(MaxTotal))}
	case p.Fixed[i] < None || p.Fixed[i] > MaxTotal:
		return rowFault{colOffset, fmt.Sprintf("offset is %d, must be -1 (free) to %d", p.Fixed[i], int64(MaxTotal))}
	case p.Fixed[i] > 0 && p.Fixed[i]%p.Align[i] != 0:
		return rowFault{colOffset, fmt.Sprintf("offset is %d, not a multiple of the alignment %d", p.Fixed[i], p.Align[i])}
	}
	s := p.Gaps[i]
	if uint64(s.Off)+uint64(s.Len) > uint64(len(p.GapPool)) {
		return rowFault{colGaps, "gaps lie outside the pool"}
	}
	last := int64(math.MinInt64)
	for _, g := range p.gaps(i) {
		switch {
		case g.Lower >= g.Upper:
			return rowFault{colGaps, fmt.Sprintf("gap %d-%d is empty", g.Lower, g.Upper)}
		case g.Lower < lower || g.Upper > upper:
			return rowFault{colGaps, fmt.Sprintf("gap %d-%d leaves the lifetime [%d, %d)", g.Lower, g.Upper, lower, upper)}
		case g.Lower < last:
			return rowFault{colGaps, fmt.Sprintf("gap %d-%d overlaps one that ends at %d", g.Lower, g.Upper, last)}
		case g.Lo < 0 || g.Hi < g.Lo || g.Hi > size:
			return rowFault{colGaps, fmt.Sprintf("gap %d-%d occupies the bytes %d:%d of a buffer of %d", g.Lower, g.Upper, g.Lo, g.Hi, size)}
		}
		last = g.Upper
	}
	return rowFault{}
}
