package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// PeakReport is where a layout is highest.
type PeakReport struct {
	Peak    int64
	Moment  int64    // with the most live bytes of those at which a buffer ends at the peak, the first of them
	Load    int64    // bytes live then, gaps counted out
	Buffers []uint32 // live then, by offset
}

// FindPeak finds where a layout is highest. Buffers is nil when nothing is ever live.
func FindPeak(p *Problem, offsets []int64) PeakReport {
	var r PeakReport
	type event struct {
		at, load int64
		tops     int
	}
	var events []event
	for i, o := range offsets {
		if p.ever(i) {
			r.Peak = max(r.Peak, o+p.Size[i])
		}
	}
	for i, o := range offsets {
		if !p.ever(i) {
			continue
		}
		top := 0
		if o+p.Size[i] == r.Peak {
			top = 1
		}
		events = append(events, event{p.Lower[i], p.Size[i], top}, event{p.Upper[i], -p.Size[i], -top})
		for _, g := range p.gaps(i) {
			gone := p.Size[i] - (g.Hi - g.Lo)
			events = append(events, event{g.Lower, -gone, 0}, event{g.Upper, gone, 0})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	load, tops, most := int64(0), 0, int64(-1)
	for i, e := range events {
		load += e.load
		tops += e.tops
		if i+1 < len(events) && events[i+1].at == e.at {
			continue
		}
		if tops > 0 && load > most {
			most, r.Moment, r.Load = load, e.at, load
		}
	}
	for i := range offsets {
		if p.ever(i) && p.Lower[i] <= r.Moment && r.Moment < p.Upper[i] && !absent(p, i, r.Moment) {
			r.Buffers = append(r.Buffers, uint32(i))
		}
	}
	slices.SortStableFunc(r.Buffers, func(a, b uint32) int { return cmp.Compare(offsets[a], offsets[b]) })
	return r
}

func absent(p *Problem, i int, t int64) bool {
	for _, g := range p.gaps(i) {
		if g.Lower <= t && t < g.Upper {
			return g.Lo == g.Hi
		}
	}
	return false
}

// WriteJSON writes a result as one line of JSON: peak, lower_bound, ratio, seconds, optimal.
func WriteJSON(w io.Writer, r Result) error {
	_, err := fmt.Fprintf(w, `{"peak":%d,"lower_bound":%d,"ratio":%s,"seconds":%s,"optimal":%t}`+"\n",
		r.Peak, r.LowerBound, strconv.FormatFloat(r.Ratio, 'f', -1, 64), strconv.FormatFloat(r.Seconds, 'f', -1, 64), r.Optimal)
	return err
}

// listed bounds the buffers that WriteText names.
const listed = 10

// WriteText writes a result for people: the figures, then who lives where the layout is highest, largest first. capacity is 0 for none.
func WriteText(w io.Writer, p *Problem, r Result, capacity int64) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintf(bw, "peak         %d\nlower bound  %d\nratio        %.4f\n", r.Peak, r.LowerBound, r.Ratio)
	optimal := "not proven"
	switch {
	case r.Peak == r.LowerBound:
		optimal = "yes, the peak is the lower bound"
	case r.Optimal:
		optimal = "yes, the search saw everything below"
	}
	fmt.Fprintf(bw, "optimal      %s\n", optimal)
	switch missing := r.Peak - capacity; {
	case capacity == 0:
	case missing <= 0:
		fmt.Fprintf(bw, "capacity     %d, %d left\n", capacity, -missing)
	case r.Impossible:
		fmt.Fprintf(bw, "capacity     %d, %d missing; no layout fits\n", capacity, missing)
	default:
		fmt.Fprintf(bw, "capacity     %d, %d missing\n", capacity, missing)
	}
	if r.Hints > 0 {
		fmt.Fprintf(bw, "hints        %d of %d granted\n", r.Hinted, r.Hints)
	}
	at := FindPeak(p, r.Offsets)
	fmt.Fprintf(bw, "buffers      %d, of which %d at the peak", p.Len(), len(at.Buffers))
	if len(at.Buffers) == 0 {
		fmt.Fprintln(bw)
		return bw.Flush()
	}
	fmt.Fprintf(bw, ", at moment %d with %d live:\n", at.Moment, at.Load)
	slices.SortStableFunc(at.Buffers, func(a, b uint32) int { return cmp.Compare(p.Size[b], p.Size[a]) })
	t := tabwriter.NewWriter(bw, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  size\toffset\tlower\tupper\tbuffer\n")
	for _, u := range at.Buffers[:min(listed, len(at.Buffers))] {
		fmt.Fprintf(t, "  %d\t%d\t%d\t%d\t%s\n", p.Size[u], r.Offsets[u], p.Lower[u], p.Upper[u], printable(p.Name(int(u))))
	}
	t.Flush()
	if more := len(at.Buffers) - listed; more > 0 {
		fmt.Fprintf(bw, "  and %d more\n", more)
	}
	return bw.Flush() // the first error sticks
}

// printable is a name that cannot disturb a terminal or a table; a long one is cut.
func printable(name string) string {
	q := fmt.Sprintf("%.60q", name)
	if q == `"`+name+`"` {
		return name
	}
	return q
}

const (
	svgWidth  = 1200
	svgHeight = 800
	svgMargin = 40
)

// WriteSVG draws a layout: time to the right, offsets upwards, a rectangle for each stretch of a buffer, with a line at the peak and one at
// the lower bound. Colours come from row numbers, so the same layout is the same picture.
func WriteSVG(w io.Writer, p *Problem, r Result) error {
	bw := bufio.NewWriterSize(w, 1<<16)
	first, last := int64(0), int64(1)
	for i := range p.Size {
		if i == 0 || p.Lower[i] < first {
			first = p.Lower[i]
		}
		last = max(last, p.Upper[i])
	}
	sx := float64(svgWidth) / float64(max(last-first, 1))
	sy := float64(svgHeight) / float64(max(r.Peak, r.LowerBound, 1))
	fixed := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	x := func(t int64) float64 { return svgMargin + float64(t-first)*sx }
	y := func(o int64) float64 { return svgMargin + svgHeight - float64(o)*sy }
	fmt.Fprintf(bw, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		svgWidth+2*svgMargin, svgHeight+2*svgMargin)
	fmt.Fprintf(bw, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="20">peak %d, lower bound %d, ratio %s, %d buffers, moments %d to %d</text>`+"\n",
		svgMargin, r.Peak, r.LowerBound, strconv.FormatFloat(r.Ratio, 'f', 4, 64), p.Len(), first, last)
	rect := func(i int, start, end, a, b int64) {
		if start >= end || a >= b {
			return
		}
		o := r.Offsets[i]
		fmt.Fprintf(bw, `<rect x="%s" y="%s" width="%s" height="%s" fill="hsl(%d,55%%,%d%%)"/>`,
			fixed(x(start)), fixed(y(o+b)), fixed(float64(end-start)*sx), fixed(float64(b-a)*sy), uint32(i)*137%360, 55+uint32(i)*53%25)
	}
	for i := range p.Size {
		if p.Lower[i] == p.Upper[i] || p.Size[i] == 0 {
			continue
		}
		bw.WriteString(`<g stroke="#333" stroke-width="0.3">`)
		at := p.Lower[i]
		for _, g := range p.gaps(i) {
			rect(i, at, g.Lower, 0, p.Size[i])
			rect(i, g.Lower, g.Upper, g.Lo, g.Hi)
			at = g.Upper
		}
		rect(i, at, p.Upper[i], 0, p.Size[i])
		bw.WriteString("<title>")
		escapeXML(bw, p.nameBytes(i))
		fmt.Fprintf(bw, " [%d, %d) bytes [%d, %d)</title></g>\n", p.Lower[i], p.Upper[i], r.Offsets[i], r.Offsets[i]+p.Size[i])
	}
	for _, l := range [...]struct {
		at     int64
		colour string
	}{{r.Peak, "#c00"}, {r.LowerBound, "#06c"}} {
		fmt.Fprintf(bw, `<line x1="%d" y1="%s" x2="%d" y2="%s" stroke="%s" stroke-dasharray="6 3"/>`+"\n",
			svgMargin, fixed(y(l.at)), svgMargin+svgWidth, fixed(y(l.at)), l.colour)
	}
	bw.WriteString("</svg>\n")
	return bw.Flush() // the first error sticks
}

// escapeXML writes a name as text; bytes that XML cannot hold become the replacement character.
func escapeXML(w *bufio.Writer, name []byte) {
	for _, c := range string(name) {
		switch {
		case c == '&':
			w.WriteString("&amp;")
		case c == '<':
			w.WriteString("&lt;")
		case c == '>':
			w.WriteString("&gt;")
		case c < 0x20 && c != '\t' || c == 0xfffe || c == 0xffff:
			w.WriteRune('\ufffd')
		default:
			w.WriteRune(c)
		}
	}
}
