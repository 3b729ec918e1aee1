package arena

// Queue is a priority queue of numbers whose priorities do not change while queued: Heap without the index of places, so that
// it costs what is queued and nothing for the universe. The least priority comes out first, and of equal ones the least number.
// A number that is pushed twice comes out twice.
type Queue struct {
	heap []heapEntry
}

// Reset empties the queue and keeps the storage.
func (q *Queue) Reset() { q.heap = q.heap[:0] }

// Len returns the number of the queued.
func (q *Queue) Len() int { return len(q.heap) }

// Push queues x.
func (q *Queue) Push(x uint32, prio int64) {
	e := heapEntry{prio, x}
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

// Peek returns the first of the queue and leaves it there. It panics when the queue is empty.
func (q *Queue) Peek() (x uint32, prio int64) {
	if len(q.heap) == 0 {
		panic("arena: peek at an empty queue")
	}
	return q.heap[0].id, q.heap[0].prio
}

// Pop takes out the first of the queue. It panics when the queue is empty.
func (q *Queue) Pop() (x uint32, prio int64) {
	x, prio = q.Peek()
	end := len(q.heap) - 1
	e := q.heap[end]
	q.heap = q.heap[:end]
	if end == 0 {
		return x, prio
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= end {
			break
		}
		best, m := first, q.heap[first]
		for c := first + 1; c < min(first+4, end); c++ {
			if k := q.heap[c]; k.before(m) {
				best, m = c, k
			}
		}
		if !m.before(e) {
			break
		}
		q.heap[i] = m
		i = best
	}
	q.heap[i] = e
	return x, prio
}
