//go:build !unix

package memalloc

import "time"

// cpuTime is unknown here; the metric stays away.
func cpuTime() time.Duration { return 0 }
