package arena

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// ID is a reference of one kind, declared by its owner as a named uint32. Zero means none.
type ID interface{ ~uint32 }

// Table is the primary table of one kind of thing and the only source of its IDs.
//
// IDs are dense and ascend from 1 in the order of Add, so that a Column over them has no holes. Row 0 is reserved and reads
// as the zero row. Rows are never removed: a pass that kills a thing marks its row or leaves it out of the order.
//
// Rows sit in one slice and move when it grows. One reused slice costs a tenth of one that grows from empty each time, hence
// Reset and Reserve. Do not use a Table for data about things that another Table owns (that is a Column), nor while other
// goroutines read it and it grows.
type Table[I ID, R any] struct {
	rows []R // empty, or rows[0] is the reserved row
}

// Add stores r and returns its ID. It panics when all 2^32-1 IDs are used up.
func (t *Table[I, R]) Add(r R) I {
	i := len(t.rows)
	if i == 0 || uint64(i) > math.MaxUint32 {
		return t.addEdge(r)
	}
	t.rows = append(t.rows, r)
	return I(i)
}

// addEdge keeps the first row and the overflow out of the path that is inlined.
//
//go:noinline
func (t *Table[I, R]) addEdge(r R) I {
	if len(t.rows) > 0 {
		panic(fmt.Sprintf("arena: table of %T is full: all %d ids are in use", r, uint32(math.MaxUint32)))
	}
	var zero R
	t.rows = append(t.rows, zero, r)
	return 1
}

// At returns the row of i. The pointer is valid until the next Add, Reserve or Reset. The row of 0 is the zero row and must
// not be written. At panics when this table never handed out i.
func (t *Table[I, R]) At(i I) *R {
	if uint(i) < uint(len(t.rows)) {
		return &t.rows[i]
	}
	return t.atEdge(i)
}

//go:noinline
func (t *Table[I, R]) atEdge(i I) *R {
	if i == 0 {
		return new(R) // the reserved row of a table that has no storage yet; storing it here would race with other readers
	}
	var zero R
	panic(fmt.Sprintf("arena: id %d is not in this table of %T: its ids end at %d", uint32(i), zero, t.Len()-1))
}

// Len returns the number of rows with the reserved one: IDs are 1 to Len()-1.
func (t *Table[I, R]) Len() int { return max(1, len(t.rows)) }

// Rows returns all rows, indexed by ID, for scans; it is nil before the first Add. Valid until the next Add, Reserve or Reset.
func (t *Table[I, R]) Rows() []R { return t.rows }

// Reset forgets all rows and keeps the storage. The IDs handed out before are void.
func (t *Table[I, R]) Reset() {
	if len(t.rows) > 0 {
		t.rows = t.rows[:1]
		clear(t.rows)
	}
}

// Reserve makes room for n more rows, so that the next n calls of Add do not move any.
func (t *Table[I, R]) Reserve(n int) {
	if len(t.rows) == 0 {
		n++
	}
	t.rows = slices.Grow(t.rows, n)
}

// All yields the IDs that exist when the loop starts, in ascending order, with their rows. The body may Add; the pointer it
// was given is then void, but the next one is right.
func (t *Table[I, R]) All() iter.Seq2[I, *R] {
	return func(yield func(I, *R) bool) {
		for i, n := 1, len(t.rows); i < n && i < len(t.rows); i++ {
			if !yield(I(i), &t.rows[i]) {
				return
			}
		}
	}
}
