// Package sim runs IR. It proves that a pass kept the meaning of a module: before allocation every location is a buffer of
// its own; after it the simulator reads and writes physical bytes at the allocated addresses, so that a wrong placement
// gives wrong numbers.
//
// Scalar registers are the same: a cell of its own each until it has a physical number, then lanes of its engine's file. Top-level
// blocks follow their branches, up to a limit of instructions.
//
// Arithmetic is ir/kernel's, called in program order; this package only turns operands into views. Memory starts poisoned
// (0xFF: NaN in every float type) and a shadow byte for each byte says whether it was written; reading one that was not is
// an error that names the instruction and the operand, unless the instruction has can_read_uninit.
//
// Loops run as often as their axes say, before and after placement, and symbolic patterns are resolved where the axes stand (loop.go).
//
// # Invariants
//
// One Sim serves one goroutine and may run any number of modules: memory is reset, never freed. Nothing outside the module
// and the Env influences a result.
package sim
