package regalloc

import (
	"math/bits"
	"slices"
)

// monotone is a priority queue whose minimum never falls: what is pushed is not below what was popped last. It is a radix heap
// (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", JACM 1990): an entry stands in the bucket of
// the highest bit in which it differs from the last minimum, and moves to a lower one when that bucket comes first, so that a push
// is an append and memory is walked in order. Of equal priorities the least number comes first.
type monotone struct {
	last    uint64
	filled  uint64 // buckets 1 to 64 that hold something, as bits 0 to 63
	buckets [65][]monotoneEntry
	ready   int // taken of bucket 0, which is in order of number
	n       int
}

type monotoneEntry struct {
	prio uint64
	id   uint32
}

func (q *monotone) reset() {
	q.last, q.filled, q.ready, q.n = 0, 0, 0, 0
	for i := range q.buckets {
		q.buckets[i] = q.buckets[i][:0]
	}
}

// push queues a number. prio must not be negative.
func (q *monotone) push(id uint32, prio int64) {
	q.n++
	q.put(monotoneEntry{uint64(prio), id})
}

func (q *monotone) put(e monotoneEntry) {
	k := bits.Len64(e.prio ^ q.last)
	if k == 0 {
		// In its place among those that are left of bucket 0.
		b := q.buckets[0]
		at, _ := slices.BinarySearchFunc(b[q.ready:], e.id, func(o monotoneEntry, id uint32) int { return int(o.id) - int(id) })
		q.buckets[0] = slices.Insert(b, q.ready+at, e)
		return
	}
	q.buckets[k] = append(q.buckets[k], e)
	q.filled |= 1 << (k - 1)
}

// pop takes out the first. The queue must not be empty.
func (q *monotone) pop() (id uint32, prio int64) {
	if q.ready == len(q.buckets[0]) {
		q.refill()
	}
	e := q.buckets[0][q.ready]
	q.ready++
	q.n--
	return e.id, int64(e.prio)
}

// refill makes the least priority the last one and deals out the bucket that holds it.
func (q *monotone) refill() {
	k := bits.TrailingZeros64(q.filled) + 1
	b := q.buckets[k]
	q.last = b[0].prio
	for _, e := range b {
		q.last = min(q.last, e.prio)
	}
	q.buckets[0], q.ready = q.buckets[0][:0], 0
	for _, e := range b {
		if j := bits.Len64(e.prio ^ q.last); j == 0 {
			q.buckets[0] = append(q.buckets[0], e)
		} else {
			q.buckets[j] = append(q.buckets[j], e)
			q.filled |= 1 << (j - 1)
		}
	}
	q.buckets[k] = b[:0]
	q.filled &^= 1 << (k - 1)
	slices.SortFunc(q.buckets[0], func(a, b monotoneEntry) int { return int(a.id) - int(b.id) })
}
