// Package dma decides how transfers leave the program: who triggers them, on which queue set, and whether the rings can
// run them at all.
//
//	Check          what a transfer must satisfy                              check.go
//	AssignQueues   trigger engine and queue set of every transfer            queues.go
//
// # Tables
//
// ir.QueueRow is one queue set: the hardware queues that one engine triggers for one direction, and its ring of completion
// semaphores. Sets are made in a fixed order (engine, then load, store, copy), only those that are used.
//
// # Invariants after AssignQueues
//
// Every transfer has an engine with an instruction stream and a queue set that this engine owns. Rings do not overlap and
// lie in semaphores 16 to 255. All sets together use at most 176 hardware queues. Transfers of one set are not ordered by
// it: whoever needs an order waits. A gather of rows is a load of Pool's, on Pool's set.
package dma
