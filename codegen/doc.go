// Package codegen turns programs into packages and runs packages: options, the pass registry, the planes as literal tables,
// the one loop that runs a plane, loading of inputs, and comparison of results. It is the top of the house: nothing below
// imports it.
//
//	Load      a file or generated model becomes a Program               load.go, convert.go the way back
//	Worker    the module and workspaces of one goroutine                worker.go, batch.go for many inputs
//	Options   the flags, what is wrong with them, the list they select  options.go, allocation.go
//	Compile   Program in, package bytes out                             compile.go, constants.go, debug.go
//	registry  every pass by name; plane2 the list of level 2            passes.go, plane.go
//	steps     what each pass builds on and undoes                       needs.go; what tiles from outside claim, claims.go
//	colouring the registered allocators, rotation, HBM as passes        memory.go, registers.go, hbm.go
//	snapshots memory analysis behind passes; metrics of a compile       snapshot.go, metrics.go
//	runPlane  timing, labels, dumps, verification, simulation           run.go, check.go; --timing, profile.go
//	Execute   a package on the machine simulator, compared              execute.go, tensors.go, suite.go for folders
//	Support   what list-operators tries and prints                      support.go, supportdoc.go
//
// Disassemble is in disasm.go.
package codegen
