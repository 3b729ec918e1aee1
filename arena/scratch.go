package arena

import "fmt"

// Scratch hands out slices that live until the next Reset. Those taken between two Resets never overlap, even when the storage
// has to grow in between, and after one round of a given size the next such round allocates nothing.
//
// Without Reset it only grows: call Reset where the pass starts. Do not use it for results, nor for a slice whose length is
// not known when it is taken (keep a slice field and append).
type Scratch[T any] struct {
	buf   []T // len is what is taken of it
	taken int // elements taken since Reset, with those in storage that was outgrown
}

// Take returns n zero elements. An append to the slice never runs into another one.
func (s *Scratch[T]) Take(n int) []T {
	t := s.TakeDirty(n)
	clear(t)
	return t
}

// TakeDirty returns n elements of any value, for the caller that writes them all before reading.
func (s *Scratch[T]) TakeDirty(n int) []T {
	if n < 0 {
		panic(fmt.Sprintf("arena: scratch length %d is negative", n))
	}
	s.taken += n
	if n > cap(s.buf)-len(s.buf) {
		// Room for the whole round, so that it fits without growing the next time. The old storage lives as long as its slices.
		s.buf = make([]T, 0, max(s.taken, 2*cap(s.buf)))
	}
	start := len(s.buf)
	s.buf = s.buf[:start+n]
	return s.buf[start : start+n : start+n]
}

// Reset takes back all slices and keeps the storage.
func (s *Scratch[T]) Reset() { s.buf, s.taken = s.buf[:0], 0 }
