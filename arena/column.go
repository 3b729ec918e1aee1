package arena

import (
	"fmt"
	"slices"
)

// Column is a side table: one value for every ID of a kind, as if each had been set to zero. It grows on write, so it needs
// no size and stays right while its Table grows.
//
// Storage is dense up to the largest ID written. Do not use it where few IDs of a large table get a value (use a SparseSet
// with values beside it, or a sorted list), nor to hand out IDs (use a Table).
type Column[I ID, V any] struct {
	vals []V // what lies between len and cap is stale, and is cleared when it comes into use
}

// Get returns the value of i, zero when it was never set.
func (c *Column[I, V]) Get(i I) V {
	if uint(i) < uint(len(c.vals)) {
		return c.vals[i]
	}
	var zero V
	return zero
}

// Set stores v as the value of i.
func (c *Column[I, V]) Set(i I, v V) {
	if uint(i) >= uint(len(c.vals)) {
		c.reach(i)
	}
	c.vals[i] = v
}

// Ptr returns the place of i's value. It is valid until a call of Set, Ptr or Resize for a larger ID, or Reset.
func (c *Column[I, V]) Ptr(i I) *V {
	if uint(i) >= uint(len(c.vals)) {
		c.reach(i)
	}
	return &c.vals[i]
}

// Reset makes every value zero again and keeps the storage. It takes constant time: stale values are cleared as they come
// into use, so a small function after a large one pays for the small one. Slice is empty afterwards.
func (c *Column[I, V]) Reset() { c.vals = c.vals[:0] }

// Resize makes the column hold the IDs below n, normally the Len of their Table: new values are zero, those at n and above
// are forgotten. After it, Slice has length n and Set, Ptr below n do not move anything.
func (c *Column[I, V]) Resize(n int) {
	if n < 0 {
		panic(fmt.Sprintf("arena: column size %d is negative", n))
	}
	if n <= len(c.vals) {
		c.vals = c.vals[:n]
		return
	}
	c.grow(n)
}

// Slice returns the values by ID, as far as they are stored, for scans. Valid as long as a Ptr.
func (c *Column[I, V]) Slice() []V { return c.vals }

// reach keeps growth out of the paths that are inlined.
//
//go:noinline
func (c *Column[I, V]) reach(i I) { c.grow(int(i) + 1) }

func (c *Column[I, V]) grow(n int) {
	old := len(c.vals)
	c.vals = slices.Grow(c.vals, n-old)[:n]
	clear(c.vals[old:])
}
