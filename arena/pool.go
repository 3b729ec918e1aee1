package arena

import (
	"fmt"
	"math"
	"slices"
)

// Span is a list in a Pool. The zero Span is the empty list, and every empty list is the zero Span, so that == compares.
type Span struct{ Off, Len uint32 }

// Empty reports whether the list has no elements.
func (s Span) Empty() bool { return s.Len == 0 }

// End returns the offset after the last element.
func (s Span) End() uint32 { return s.Off + s.Len }

// Pool keeps variable-length lists one after the other in one slice, each behind a Span that fits in a row.
//
// A list has its final length when it is made; its elements may be changed through Of. A list is built piecewise between Mark
// and Since, one at a time. Lists are never freed singly: to change a length, add the new list and drop the old Span. Where
// most lists change length many times the dead ones pile up; use one Table of links there.
//
// A pool holds up to 2^32-1 elements and panics beyond.
type Pool[T any] struct {
	items []T
}

// Add stores a list of the given elements.
func (p *Pool[T]) Add(xs ...T) Span { return p.AddSlice(xs) }

// AddSlice stores a copy of xs, which may be a list of this pool.
func (p *Pool[T]) AddSlice(xs []T) Span {
	if len(xs) == 0 {
		return Span{}
	}
	off := p.room(len(xs))
	p.items = append(p.items, xs...)
	return Span{off, uint32(len(xs))}
}

// Alloc stores a list of n zero elements, to be filled through Of.
func (p *Pool[T]) Alloc(n int) Span {
	if n == 0 {
		return Span{}
	}
	if n < 0 {
		panic(fmt.Sprintf("arena: list length %d is negative", n))
	}
	off := p.room(n)
	p.items = slices.Grow(p.items, n)[:int(off)+n]
	clear(p.items[off:])
	return Span{off, uint32(n)}
}

// Of returns the elements of s. They may be written; the slice is valid until the next call that adds to or resets the pool,
// and an append to it never runs into the next list.
func (p *Pool[T]) Of(s Span) []T {
	end := int(s.Off) + int(s.Len)
	return p.items[s.Off:end:end]
}

// Mark begins a list. Until Since ends it, only Push may add to the pool.
func (p *Pool[T]) Mark() uint32 { return uint32(len(p.items)) }

// Push appends x to the list begun by Mark.
func (p *Pool[T]) Push(x T) {
	if uint64(len(p.items)) >= math.MaxUint32 {
		p.room(1)
	}
	p.items = append(p.items, x)
}

// Since returns the list of what was pushed after mark.
func (p *Pool[T]) Since(mark uint32) Span {
	n := len(p.items) - int(mark)
	if n <= 0 {
		if n < 0 {
			panic(fmt.Sprintf("arena: mark %d is beyond the end %d of the pool", mark, len(p.items)))
		}
		return Span{}
	}
	return Span{mark, uint32(n)}
}

// Truncate drops what was added after mark, such as a list that turned out to be a copy of another.
func (p *Pool[T]) Truncate(mark uint32) {
	if int(mark) > len(p.items) {
		panic(fmt.Sprintf("arena: mark %d is beyond the end %d of the pool", mark, len(p.items)))
	}
	p.items = p.items[:mark]
}

// Len returns the number of elements of all lists.
func (p *Pool[T]) Len() int { return len(p.items) }

// Reserve makes room for n more elements.
func (p *Pool[T]) Reserve(n int) { p.items = slices.Grow(p.items, n) }

// Reset drops all lists and keeps the storage. Spans handed out before are void.
func (p *Pool[T]) Reset() { p.items = p.items[:0] }

// room returns the offset at which n more elements will start, or panics when their offsets do not fit in a Span.
func (p *Pool[T]) room(n int) uint32 {
	if uint64(len(p.items))+uint64(n) > math.MaxUint32 {
		var zero T
		panic(fmt.Sprintf("arena: pool of %T is full: it holds %d elements, %d more pass the limit of %d",
			zero, len(p.items), n, uint32(math.MaxUint32)))
	}
	return uint32(len(p.items))
}
