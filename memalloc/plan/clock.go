package plan

import "time"

// clock ends a plan after a time, or when it is told to stop. Nothing else in the package depends on the time of day.
type clock struct {
	start, deadline time.Time
	limited, past   bool
	stop            <-chan struct{}
}

func (c *clock) begin(limit time.Duration, stop <-chan struct{}) {
	*c = clock{start: time.Now(), limited: limit > 0, stop: stop}
	if c.limited {
		c.deadline = c.start.Add(limit)
	}
}

// over reports whether the time is up; once it is, it stays so.
func (c *clock) over() bool {
	if c.limited {
		c.past = c.past || !time.Now().Before(c.deadline)
	}
	return c.past || c.stopped()
}

// stopped reports whether somebody said stop.
func (c *clock) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

func (c *clock) seconds() float64 { return time.Since(c.start).Seconds() }
