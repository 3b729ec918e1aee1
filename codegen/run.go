package codegen

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// PassTiming is one row of --timing.
type PassTiming struct {
	Name     string        `json:"pass"`
	Time     time.Duration `json:"ns"`
	Bytes    int64         `json:"bytes"` // allocated on the heap during the pass
	Insts    int           `json:"instructions"`
	Counters []Counter     `json:"counters,omitempty"`
}

// Counter is a named figure that a pass reports.
type Counter struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Event is progress: pass Index of Total begins.
type Event struct {
	Pass         string
	Of           string // what Index and Total count; passes when empty
	Index, Total int
	Insts        int
}

// Count adds a figure to the row of the running pass.
func (w *Worker) Count(name string, v int64) {
	w.counters = append(w.counters, Counter{name, v})
}

// runPlane runs the passes in order. It is the one place that times, labels, dumps, verifies, simulates and names the
// culprit, so that no pass does any of it.
func (w *Worker) runPlane(ctx context.Context, names []string) error {
	for i, n := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := passByName[n]
		if w.Progress != nil {
			w.Progress(Event{Pass: n, Index: i, Total: len(names), Insts: w.instCount()})
		}
		if err := w.dump(n, i, true); err != nil {
			return err
		}
		if err := w.ready(p); err != nil {
			return err
		}
		w.counters, w.position = nil, i
		before := allocated()
		start := time.Now()
		var err error
		pprof.Do(ctx, pprof.Labels("pass", n, "func", w.funcName()), func(context.Context) { err = w.guarded(p) })
		row := PassTiming{Name: n, Time: time.Since(start), Bytes: allocated() - before, Insts: w.instCount(), Counters: w.counters}
		w.Timing = append(w.Timing, row)
		if err != nil {
			return err
		}
		if err := w.dump(n, i, false); err != nil {
			return err
		}
		if err := w.checkAfter(p); err != nil {
			return err
		}
	}
	return nil
}

// guarded runs one pass and turns a panic into an error that names pass and function.
func (w *Worker) guarded(p *Pass) (err error) {
	defer func() {
		if r := recover(); r != nil {
			buf := make([]byte, 8<<10)
			buf = buf[:runtime.Stack(buf, false)]
			err = target.Errorf(target.Bug, "pass %s on function %s: panic: %v\n%s", p.Name, w.funcName(), r, buf)
		}
	}()
	if err := p.Run(w); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// allocated is the bytes that the process has allocated so far. Workers take differences, into which the allocations of
// other workers count.
func allocated() int64 {
	s := [1]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64())
}
