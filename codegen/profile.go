package codegen

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

// Profile says where the time and the memory of a compile went, and of a run behind it: --timing.
type Profile struct {
	*Result
	Run        []PassTiming   `json:"run,omitempty"` // of a simulation, if there was one
	Allocators []allocatorRow `json:"allocators"`
	Tables     []tableRow     `json:"tables"`   // the worker's, largest first
	OSBytes    uint64         `json:"os_bytes"` // of the process, from the system
}

// Profile is the profile of the worker's last compile.
func (w *Worker) Profile(r *Result) *Profile {
	p := &Profile{Result: r, Allocators: allocators(r)}
	var rep arena.Report
	w.Report(&rep)
	for _, t := range rep.Entries() {
		p.Tables = append(p.Tables, tableRow(t))
	}
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	p.OSBytes = ms.Sys
	return p
}

// WriteJSON writes the profile as one line.
func (p *Profile) WriteJSON(out io.Writer) error {
	b, err := json.Marshal(p)
	if err == nil {
		_, err = out.Write(append(b, '\n'))
	}
	return err
}

type allocatorRow struct {
	Space        string  `json:"space"`
	Placed       int     `json:"placed"`
	Rounds       int     `json:"rounds"`
	Spilled      int     `json:"spilled"`
	SpilledBytes int64   `json:"spilled_bytes"`
	Reloads      int     `json:"reloads"`
	Saves        int     `json:"saves"`
	Moves        int     `json:"moves"` // copies on chip
	HighWater    int64   `json:"high_water"`
	Capacity     int64   `json:"capacity"`
	Utilisation  float64 `json:"utilisation_percent"`
}

type tableRow struct {
	Name  string `json:"name"`
	Rows  int    `json:"rows"`
	Bytes int    `json:"bytes"`
}

func allocators(r *Result) []allocatorRow {
	var rows []allocatorRow
	for _, m := range []struct {
		space string
		*memalloc.Metrics
		optional bool
	}{
		{"PSUM banks", &r.PSUM, false}, {"SBUF bytes a partition", &r.SB, false}, {"DRAM bytes", &r.DRAM[ir.AddrLocal], false},
		{"shared DRAM bytes", &r.DRAM[ir.AddrShared], true}, {"debug DRAM bytes", &r.DRAM[ir.AddrDebug], true},
	} {
		if m.Iterations == 0 || m.optional && m.Nodes == 0 {
			continue
		}
		rows = append(rows, allocatorRow{m.space, m.Nodes, m.Iterations, m.Spilled, m.SpilledBytes, m.Reloads, m.Saves, m.Moves, m.HighWater, m.Capacity, m.Utilisation})
	}
	return rows
}

// shownTables is how many of the worker's tables are listed one by one.
const shownTables = 10

// WriteTable writes the profile as tables.
func (p *Profile) WriteTable(out io.Writer) {
	r := p.Result
	made := "no package"
	if r.Bytes > 0 {
		made = fmt.Sprintf("package of %d bytes", r.Bytes)
	}
	fmt.Fprintf(out, "%s for %s: %d instructions, %s\n\n", r.Name, r.Target, r.Insts, made)
	total := r.Elapsed
	for i := range p.Run {
		total += p.Run[i].Time
	}
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "time\t%%\theap bytes\tinstructions\t  pass\n")
	var sum time.Duration
	var heap int64
	row := func(p *PassTiming) {
		fmt.Fprintf(tw, "%s\t%.1f\t%d\t%d\t  %s%s\n", milli(p.Time), percent(p.Time, total), p.Bytes, p.Insts, p.Name, counters(p.Counters))
		sum, heap = sum+p.Time, heap+p.Bytes
	}
	for i := range r.Timing {
		row(&r.Timing[i])
	}
	for i := range p.Run {
		row(&p.Run[i])
	}
	if rest := total - sum; rest > 0 {
		fmt.Fprintf(tw, "%s\t%.1f\t\t\t  between passes\n", milli(rest), percent(rest, total))
	}
	fmt.Fprintf(tw, "%s\t100.0\t%d\t\t  total\n", milli(total), heap)
	tw.Flush()
	if s := r.Plane.Seconds(); s > 0 {
		fmt.Fprintf(out, "%.0f instructions a second from tiles to package\n", float64(r.Insts)/s)
	}

	fmt.Fprintln(out)
	tw = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "placed\trounds\tspilled\tspilled bytes\treloads\tsaves\tmoves\thigh water\tof\tused %%\t  memory of the machine\n")
	for _, m := range p.Allocators {
		fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t  %s\n",
			m.Placed, m.Rounds, m.Spilled, m.SpilledBytes, m.Reloads, m.Saves, m.Moves, m.HighWater, m.Capacity, m.Utilisation, m.Space)
	}
	tw.Flush()

	fmt.Fprintln(out)
	tw = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "value\t  metric\n")
	for _, m := range r.Metrics {
		if m.Value != 0 {
			digits := 0
			if m.Aggregation == MetricAverage {
				digits = 1
			}
			fmt.Fprintf(tw, "%.*f\t  %s\n", digits, m.Value, m.Name)
		}
	}
	tw.Flush()

	fmt.Fprintln(out)
	tw = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "rows\tbytes\t  memory of the compiler\n")
	var rest, all tableRow
	for i, t := range p.Tables {
		if i < shownTables {
			fmt.Fprintf(tw, "%d\t%d\t  %s\n", t.Rows, t.Bytes, t.Name)
		} else {
			rest.Rows, rest.Bytes = rest.Rows+t.Rows, rest.Bytes+t.Bytes
		}
		all.Bytes += t.Bytes
	}
	if rest.Bytes > 0 {
		fmt.Fprintf(tw, "%d\t%d\t  %d smaller tables\n", rest.Rows, rest.Bytes, len(p.Tables)-shownTables)
	}
	fmt.Fprintf(tw, "\t%d\t  tables of the worker\n", all.Bytes)
	fmt.Fprintf(tw, "\t%d\t  process, from the system\n\n", p.OSBytes)
	tw.Flush()
}

func counters(cs []Counter) string {
	var b strings.Builder
	for _, c := range cs {
		if c.Value != 0 {
			fmt.Fprintf(&b, " %s=%d", c.Name, c.Value)
		}
	}
	return b.String()
}

func milli(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d)/1e6) }

func percent(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
