//go:build unix

package memalloc

import (
	"syscall"
	"time"
)

// cpuTime is what the process has computed so far, the collector included. Unlike the clock it does not count the time that
// other processes take.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
