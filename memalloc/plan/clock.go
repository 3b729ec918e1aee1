package plan

import "time"

// clock ends a plan after a time. Nothing else in the package depends on the time of day.
type clock struct {
	start, deadline time.Time
	limited, past   bool
}

func (c *clock) begin(limit time.Duration) {
	*c = clock{start: time.Now(), limited: limit > 0}
	if c.limited {
		c.deadline = c.start.Add(limit)
	}
}

// over reports whether the time is up; once it is, it stays so.
func (c *clock) over() bool {
	if c == nil || !c.limited {
		return false
	}
	c.past = c.past || !time.Now().Before(c.deadline)
	return c.past
}

func (c *clock) seconds() float64 { return time.Since(c.start).Seconds() }
