package arena

import "fmt"

// Resized returns a slice of length n on the storage of s, or on new storage that is zero to its end. It keeps no contents:
// elements are what s had there, or zero. New storage is at least a quarter larger than the old, so that sizes which creep up
// one by one do not reallocate each time.
func Resized[T any](s []T, n int) []T {
	if n < 0 {
		panic(fmt.Sprintf("arena: size %d is negative", n))
	}
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, max(n, cap(s)+cap(s)/4))
}

// Zeroed is Resized with every element zero.
func Zeroed[T any](s []T, n int) []T {
	s = Resized(s, n)
	clear(s)
	return s
}
