package arena

import "fmt"

// Heap is a priority queue of the numbers 0 to n-1 in which priorities may change while queued. The least priority comes out
// first, and of equal ones the least number, so the order never depends on how the heap was built. Negate the priority for
// the greatest first.
//
// It is a heap of four children a node (Johnson, "Priority queues with update and finding minimum spanning trees", 1975): half
// as deep as a binary one, with the children in one or two cache lines. All changes take logarithmic time. Where priorities do not
// change, sort once instead; where they are small integers with many equal, use a bucket for each.
type Heap struct {
	heap []heapEntry
	pos  []uint32 // 1 + index in heap, 0 = not queued; zero up to cap but for the queued
}

type heapEntry struct {
	prio int64
	id   uint32
}

func (e heapEntry) before(f heapEntry) bool {
	return e.prio < f.prio || e.prio == f.prio && e.id < f.id
}

// Reset makes the universe 0 to n-1 and the queue empty, and keeps the storage. It takes time in what is still queued.
func (h *Heap) Reset(n int) {
	for _, e := range h.heap {
		h.pos[e.id] = 0
	}
	h.heap = h.heap[:0]
	h.pos = Resized(h.pos, n)
}

// Len returns the number of the queued.
func (h *Heap) Len() int { return len(h.heap) }

// Has reports whether x is queued.
func (h *Heap) Has(x uint32) bool { return uint(x) < uint(len(h.pos)) && h.pos[x] != 0 }

// Priority returns the priority of x; ok is false when x is not queued.
func (h *Heap) Priority(x uint32) (prio int64, ok bool) {
	if !h.Has(x) {
		return 0, false
	}
	return h.heap[h.pos[x]-1].prio, true
}

// Push queues x, or changes its priority when it is queued already. It panics when x is outside the universe.
func (h *Heap) Push(x uint32, prio int64) {
	if uint(x) >= uint(len(h.pos)) {
		h.outside(x)
	}
	if h.pos[x] != 0 {
		h.Update(x, prio)
		return
	}
	h.heap = append(h.heap, heapEntry{prio, x})
	h.up(len(h.heap)-1, heapEntry{prio, x})
}

// Update changes the priority of x, up or down, and reports whether x is queued; if not, it does nothing.
func (h *Heap) Update(x uint32, prio int64) bool {
	if !h.Has(x) {
		return false
	}
	i, e := int(h.pos[x]-1), heapEntry{prio, x}
	if e.before(h.heap[i]) {
		h.up(i, e)
	} else {
		h.down(i, e)
	}
	return true
}

// Peek returns the first of the queue and leaves it there. It panics when the queue is empty.
func (h *Heap) Peek() (x uint32, prio int64) {
	if len(h.heap) == 0 {
		panic("arena: peek at an empty heap")
	}
	return h.heap[0].id, h.heap[0].prio
}

// Pop takes out the first of the queue. It panics when the queue is empty.
func (h *Heap) Pop() (x uint32, prio int64) {
	x, prio = h.Peek()
	h.cut(0)
	return x, prio
}

// Remove takes x out and reports whether it was queued.
func (h *Heap) Remove(x uint32) bool {
	if !h.Has(x) {
		return false
	}
	h.cut(int(h.pos[x] - 1))
	return true
}

// cut removes the entry at i and moves the last one into the hole.
func (h *Heap) cut(i int) {
	end := len(h.heap) - 1
	gone, last := h.heap[i], h.heap[end]
	h.pos[gone.id] = 0
	h.heap = h.heap[:end]
	if i == end {
		return
	}
	if last.before(gone) {
		h.up(i, last)
	} else {
		h.down(i, last)
	}
}

// up places e at i or at an ancestor of it, whose places move down.
func (h *Heap) up(i int, e heapEntry) {
	for i > 0 {
		parent := (i - 1) / 4
		p := h.heap[parent]
		if !e.before(p) {
			break
		}
		h.heap[i] = p
		h.pos[p.id] = uint32(i + 1)
		i = parent
	}
	h.heap[i] = e
	h.pos[e.id] = uint32(i + 1)
}

// down places e at i or at a descendant of it, whose places move up.
func (h *Heap) down(i int, e heapEntry) {
	for {
		first := 4*i + 1
		if first >= len(h.heap) {
			break
		}
		best, m := first, h.heap[first]
		for c, end := first+1, min(first+4, len(h.heap)); c < end; c++ {
			if k := h.heap[c]; k.before(m) {
				best, m = c, k
			}
		}
		if !m.before(e) {
			break
		}
		h.heap[i] = m
		h.pos[m.id] = uint32(i + 1)
		i = best
	}
	h.heap[i] = e
	h.pos[e.id] = uint32(i + 1)
}

//go:noinline
func (h *Heap) outside(x uint32) {
	panic(fmt.Sprintf("arena: %d is outside the universe of %d numbers of this heap", x, len(h.pos)))
}
