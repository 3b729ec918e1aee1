package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/rosmar-compiler/rosmar/codegen"
)

const (
	hideFor   = 200 * time.Millisecond // a quick command draws nothing
	drawEvery = 83 * time.Millisecond  // 12 Hz
)

// progress is one line on a terminal: how many inputs are done, and what the worker that has been busy longest does. It is
// also the writer of everything else that goes to standard error, so that lines never mix. Off a terminal, and where CI or
// TERM=dumb is set, it only passes writes on.
type progress struct {
	mu    sync.Mutex
	err   *os.File
	on    bool
	drawn bool
	start time.Time
	stop  chan struct{}
	done  int
	total int
	jobs  []job // one an input in work, oldest first
}

// job is one input in work.
type job struct {
	index int
	name  string
	since time.Time
	event codegen.Event
}

func newProgress(err *os.File) *progress { return &progress{err: err} }

// enable starts the drawing where it is wanted.
func (p *progress) enable(want bool) {
	if !want || os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(p.err.Fd())) {
		return
	}
	p.on, p.start, p.stop = true, time.Now(), make(chan struct{})
	go func() {
		tick := time.NewTicker(drawEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.draw()
			}
		}
	}()
}

// expect says how many inputs there will be.
func (p *progress) expect(n int) {
	p.mu.Lock()
	p.total = n
	p.mu.Unlock()
}

// begin opens the job of input i and returns the ear for its events.
func (p *progress) begin(i int, name string) func(codegen.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = append(p.jobs, job{index: i, name: name, since: time.Now()})
	return func(e codegen.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for k := range p.jobs {
			if p.jobs[k].index == i {
				p.jobs[k].event = e
			}
		}
	}
}

// end closes the job of input i.
func (p *progress) end(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.jobs {
		if p.jobs[k].index == i {
			p.jobs = append(p.jobs[:k], p.jobs[k+1:]...)
			p.done++
			return
		}
	}
}

// line is what stands on the terminal.
func (p *progress) line(now time.Time, width int) string {
	var b strings.Builder
	if p.total > 1 {
		fmt.Fprintf(&b, "[%d/%d] ", p.done, p.total)
	}
	if len(p.jobs) > 0 {
		j := &p.jobs[0]
		b.WriteString(j.name)
		if e := j.event; e.Pass != "" {
			b.WriteString(": ")
			if e.Total > 0 {
				fmt.Fprintf(&b, "%s %d/%d ", cmp.Or(e.Of, "pass"), e.Index+1, e.Total)
			}
			b.WriteString(e.Pass)
			if e.Insts > 0 {
				fmt.Fprintf(&b, ", %d instructions", e.Insts)
			}
		}
		fmt.Fprintf(&b, ", %.1f s", now.Sub(j.since).Seconds())
		if n := len(p.jobs) - 1; n > 0 {
			fmt.Fprintf(&b, " (+%d)", n)
		}
	}
	r := []rune(b.String())
	if len(r) >= width {
		r = r[:max(0, width-1)]
	}
	return string(r)
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.on || now.Sub(p.start) < hideFor || len(p.jobs) == 0 {
		return
	}
	width, _, err := term.GetSize(int(p.err.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	fmt.Fprintf(p.err, "\r\x1b[K%s", p.line(now, width))
	p.drawn = true
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.err, "\r\x1b[K")
		p.drawn = false
	}
}

// Write passes text on to standard error, with the line out of the way.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	return p.err.Write(b)
}

// close ends the drawing and leaves a clean terminal.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if p.on {
		close(p.stop)
		p.on = false
	}
}
