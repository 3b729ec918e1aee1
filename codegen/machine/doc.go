// Package machine runs a package from its bytes alone: it decodes the streams and descriptor lists and computes the model's
// numbers. It shares no code with what wrote them: of ours it imports codegen/isa, codegen/neff, ir/kernel and ir/target,
// never ir, ir/sim or debug data.
//
//	Machine     memory and engines of one core; Load, SetInput, Run, Output      machine.go
//	store       one byte space: poisoned data, written or not byte by byte       memory.go
//	access      one operand as partitions × byte patterns                        access.go
//	opRow       what each opcode reads and writes, and on which engines          ops.go
//	engine      one sequencer: pc, registers, accumulator, latched operands      engine.go
//	exec        arithmetic of each opcode, by ir/kernel                          exec.go
//	control     waits, updates, registers, branches                              control.go
//	transfer    descriptor blocks in flight                                      transfer.go
//	gather      gathers of rows in flight, and what Race enters for them         gather.go
//	step        the seeded interleaving, deadlock                                step.go
//	Race        happens-before by vector clocks, once a package, without data    race.go, clocks.go, history.go
//
// # The machine
//
// One goroutine. The actors are five engines and the parts of the transfers in flight; a bundle or a descriptor is atomic, and
// the order in which actors advance is drawn from a seed, adversarial orders included. They meet only at semaphores and
// events. A transfer starts any time after its trigger; its parts (maximal runs of descriptors, each ended by one that adds
// to a semaphore) proceed in any order, a part's descriptors in theirs. A gather of rows is one part, which reads its
// indices when it starts.
//
// # What is an error
//
//   - reading a byte that nothing wrote in this run; nothing on the wire can ask for an exception
//   - an operand outside its memory; an index outside its table; an opcode on an engine that does not run it; an instruction without an implementation,
//     by name
//   - an activation function whose table set is not resident
//   - a multiply by weights that were not loaded for it
//   - no actor can advance while an engine has bundles left: deadlock, printed with all waits
//   - an output that was not written in full
//
// An error names the engine, the bundle index, the disassembled bundle and the addresses.
//
// # Race check
//
// Each semaphore has one producer and only grows (Race refuses programs where that does not hold, barriers excepted), so
// what happens before what does not depend on the interleaving. Race executes waits and updates once, keeps for every byte
// the last write and the reads since, and reports each pair of conflicting accesses that no semaphore orders. A run with
// some seed may or may not show the wrong numbers of a race; Race finds it always.
package machine
