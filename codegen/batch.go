package codegen

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Guard turns a panic into an internal error.
func Guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			buf := make([]byte, 16<<10)
			buf = buf[:runtime.Stack(buf, false)]
			err = target.Errorf(target.Bug, "panic: %v\n%s", r, buf)
		}
	}()
	return f()
}

// InOrder runs work(w, i) for every i below n on at most j goroutines, each with a worker of its own, and calls emit(i) in
// ascending order as soon as the results up to i are there: what is printed does not depend on j. A panic in work is that
// input's error. It stops taking inputs when ctx ends.
func InOrder(ctx context.Context, n, j int, work func(w *Worker, i int) error, emit func(i int, err error)) error {
	var (
		mu      sync.Mutex
		next    int // to be emitted
		todo    int // to be taken
		results = make([]error, n)
		done    = make([]bool, n)
		group   errgroup.Group
	)
	for range max(1, min(j, n)) {
		group.Go(func() error {
			w := &Worker{}
			for {
				mu.Lock()
				i := todo
				todo++
				mu.Unlock()
				if i >= n || ctx.Err() != nil {
					return ctx.Err()
				}
				err := Guard(func() error { return work(w, i) })
				mu.Lock()
				results[i], done[i] = err, true
				for next < n && done[next] {
					emit(next, results[next])
					next++
				}
				mu.Unlock()
			}
		})
	}
	return group.Wait()
}
