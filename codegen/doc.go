// Package codegen turns programs into packages and runs packages: options, the pass registry, the planes as literal tables,
// the one loop that runs a plane, loading of inputs, and comparison of results. It is the top of the house: nothing below
// imports it.
//
//	Load      a file or generated model becomes a Program               load.go
//	Worker    the module and workspaces of one goroutine                worker.go
//	Compile   Program in, package bytes out                             compile.go
//	registry  every pass by name; plane2 the list of level 2            passes.go, plane.go
//	colouring the registered allocators, rotation, HBM as passes        memory.go, hbm.go
//	snapshots memory analysis behind passes; metrics of a compile       snapshot.go, metrics.go
//	runPlane  timing, labels, dumps, verification, simulation           run.go, check.go
//	Execute   a package on the machine simulator, compared              execute.go
package codegen
