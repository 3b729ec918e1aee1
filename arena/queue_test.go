package arena

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Against a sorted list, with many equal priorities and numbers.
func TestQueueModel(t *testing.T) {
	var q Queue
	rapid.Check(t, func(t *rapid.T) {
		q.Reset()
		var model []heapEntry
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "push") > 0 {
				e := heapEntry{rapid.Int64Range(-4, 4).Draw(t, "prio"), rapid.Uint32Range(0, 20).Draw(t, "x")}
				q.Push(e.id, e.prio)
				at, _ := slices.BinarySearchFunc(model, e, func(a, b heapEntry) int {
					if a.before(b) {
						return -1
					}
					return 1
				})
				model = slices.Insert(model, at, e)
			} else if len(model) > 0 {
				if x, p := q.Pop(); x != model[0].id || p != model[0].prio {
					t.Fatalf("popped %d of priority %d, want %+v", x, p, model[0])
				}
				model = model[1:]
			}
			if q.Len() != len(model) {
				t.Fatalf("length %d, want %d", q.Len(), len(model))
			}
			if len(model) > 0 {
				if x, p := q.Peek(); x != model[0].id || p != model[0].prio {
					t.Fatalf("first is %d of priority %d, want %+v", x, p, model[0])
				}
			}
		}
	})
}

func TestQueueAllocatesNothing(t *testing.T) {
	var q Queue
	run := func() {
		q.Reset()
		for x := range uint32(500) {
			q.Push(x, int64(x*7919%101))
		}
		for q.Len() > 0 {
			q.Pop()
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if Held(&q) == 0 {
		t.Error("no storage counted")
	}
}
