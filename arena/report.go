package arena

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Usage is the memory of the tables of one name.
type Usage struct {
	Name  string
	Rows  int
	Bytes int
}

// Report sums up memory by table name. Owners of tables add theirs under a dotted name such as "ir.insts"; what several workers
// add under one name is summed. Not for hot paths.
type Report struct {
	entries []Usage
	index   map[string]int   // name to entry; never iterated
	counted map[uintptr]bool // beginnings of arrays, by AddFields; never iterated
}

// Add adds rows and bytes to the entry of name.
func (r *Report) Add(name string, rows, bytes int) {
	if i, ok := r.index[name]; ok {
		r.entries[i].Rows += rows
		r.entries[i].Bytes += bytes
		return
	}
	if r.index == nil {
		r.index = make(map[string]int)
	}
	r.index[name] = len(r.entries)
	r.entries = append(r.entries, Usage{name, rows, bytes})
}

// Total returns the bytes of all entries.
func (r *Report) Total() int {
	sum := 0
	for _, u := range r.entries {
		sum += u.Bytes
	}
	return sum
}

// Entries returns a copy of the entries, the largest first, those of equal size by name.
func (r *Report) Entries() []Usage {
	es := slices.Clone(r.entries)
	slices.SortFunc(es, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return es
}

// Reset drops all entries.
func (r *Report) Reset() {
	r.entries = r.entries[:0]
	clear(r.index)
	clear(r.counted)
}

// String returns the table that WriteTo writes.
func (r *Report) String() string {
	var b strings.Builder
	r.WriteTo(&b) // a Builder does not fail
	return b.String()
}

// WriteTo writes one line for each entry, in the order of Entries, with rows, bytes, bytes a row and the share of the whole, and a
// line with the sum.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	sum := Usage{Name: "total"}
	nameWidth := len(sum.Name)
	for _, u := range r.entries {
		nameWidth = max(nameWidth, len(u.Name))
		sum.Rows += u.Rows
		sum.Bytes += u.Bytes
	}
	rowsWidth := max(len("rows"), len(strconv.Itoa(sum.Rows)))
	bytesWidth := max(len("bytes"), len(strconv.Itoa(sum.Bytes)))
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-*s  %*s  %*s  %8s  %6s\n", nameWidth, "table", rowsWidth, "rows", bytesWidth, "bytes", "B/row", "share")
	for _, u := range r.Entries() {
		perRow, share := "-", 0.0
		if u.Rows > 0 {
			perRow = strconv.FormatFloat(float64(u.Bytes)/float64(u.Rows), 'f', 1, 64)
		}
		if sum.Bytes > 0 {
			share = 100 * float64(u.Bytes) / float64(sum.Bytes)
		}
		fmt.Fprintf(&b, "%-*s  %*d  %*d  %8s  %5.1f%%\n", nameWidth, u.Name, rowsWidth, u.Rows, bytesWidth, u.Bytes, perRow, share)
	}
	fmt.Fprintf(&b, "%-*s  %*d  %*d\n", nameWidth, sum.Name, rowsWidth, sum.Rows, bytesWidth, sum.Bytes)
	return b.WriteTo(w)
}
