package codegen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Results come in order whatever the number of goroutines, each input is worked on once, and a panic is the error of its
// input alone.
func TestInOrder(t *testing.T) {
	for _, j := range []int{1, 3, 100} {
		const n = 40
		var mu sync.Mutex
		taken := map[int]int{}
		workers := map[*Worker]bool{}
		var got []string
		err := InOrder(context.Background(), n, j, func(w *Worker, i int) error {
			mu.Lock()
			taken[i]++
			workers[w] = true
			mu.Unlock()
			time.Sleep(time.Duration((i*7)%5) * 100 * time.Microsecond)
			switch i {
			case 7:
				return errors.New("seven")
			case 9:
				panic("nine")
			}
			return nil
		}, func(i int, err error) {
			line := fmt.Sprint(i)
			if err != nil {
				line += " " + target.ClassOf(err).String()
			}
			got = append(got, line)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != n || got[7] != "7 error" || got[9] != "9 internal error" {
			t.Errorf("j = %d: %v", j, got)
		}
		for i := range n {
			if !strings.HasPrefix(got[i], fmt.Sprint(i)) || taken[i] != 1 {
				t.Errorf("j = %d: input %d was worked on %d times and reported as %q", j, i, taken[i], got[i])
			}
		}
		if len(workers) > j {
			t.Errorf("j = %d: %d workers", j, len(workers))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	seen := 0
	err := InOrder(ctx, 10, 1, func(*Worker, int) error { cancel(); return nil }, func(int, error) { seen++ })
	if !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("after a cancel: %v, %d results", err, seen)
	}
}
