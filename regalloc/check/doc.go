// Package check proves the answers of register allocators: that whatever way control takes, every use finds the value that it
// names.
//
// It walks the answer forwards with, for each place, the set of values that it is known to hold. An instruction writes its
// results, a move copies a set, a call empties the registers it destroys, and where blocks meet only what holds on every way in
// remains. Along an edge every place that holds an argument gains the parameter that it feeds. Once nothing changes any more, one last
// walk holds every operand against the sets. It shares nothing with the allocators but the form of their input and output: it
// does not even ask what is live.
//
// A copy of a value that is left over from the iteration before cannot be mistaken for this one's: the first way into the block
// that defines the value holds no copy of it, so no copy remains where the ways meet; and a parameter is taken out of every place before
// its edge puts it in.
package check
