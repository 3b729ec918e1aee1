// Package lower is the tail: what turns a scheduled, placed program into the package of bytes that the machine runs.
//
//	ActTables   table loads in front of the activations that need them              acttables.go
//	Sync        semaphores: the waits and updates of every instruction              sync.go
//	Package     the package of a synchronised function; Write also writes it        package.go
//	Tail        the encoder and its storage: streams and their waits                tail.go
//	            bundles by opcode                                                    encode.go, matmul.go
//	            operands as address words, descriptors, scalars                      pattern.go
//	            transfers as blocks of DMA descriptors                               descriptors.go
//	            gathers of rows as words of their own                                gather.go
//	            provenance by bundle, only when asked for                            debug.go
//
// The order of calls is fixed: ssa/deps, ssa/sched with its groups, dma.AssignQueues, ActTables, Sync, Package.
//
// # Invariants
//
// Each engine's stream is a subsequence of one total order, the schedule, and every wait names a producer that comes earlier
// in it: no set of engines can wait in a circle.
//
// An instruction of several bundles waits on its first and updates on its last. A transfer is a trigger in the stream of its
// engine and a block in that engine's list; blocks are numbered from 1 in schedule order. Completion is in the
// descriptors (neff.Share), so a block adds the hardware queues of its set to one semaphore. A gather of rows is a transfer without a block: its word
// says what moves and names the semaphore, to which it adds as much.
//
// Encoding asserts and never repairs: an operand that does not fit its slot is an internal error that names the instruction,
// because the floors above had to split it; an opcode or a mode without an encoding is unsupported by name. Equal modules
// give equal bytes. Encoding allocates nothing for an instruction.
package lower
