// Package lower is the tail: what turns a scheduled, placed program into the package of bytes that the machine runs.
//
//	ActTables   table loads in front of the activations that need them      acttables.go
//	Sync        semaphores: the waits and updates of every instruction      sync.go
//
// # Invariants
//
// Each engine's stream is a subsequence of one total order, the schedule, and every wait names a producer that comes earlier
// in it: no set of engines can wait in a circle.
package lower
