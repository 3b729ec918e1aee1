// Package bench measures rosmar and holds no product code: everything is in its tests. README.md says how to run, compare
// and profile, and what each metric means.
//
//	Compile     from ir.Module to package bytes, the zoo                  compile_test.go
//	Growth      what twice the layers cost                                growth_test.go
//	Tile, Read  what stands before the plane: lowering, readers           front_test.go
//	Pass        single passes on a real module: legality, allocators per
//	            location and under pressure, edges, schedule, queues,
//	            semaphores                                                pass_test.go
//	Wire        bundles and descriptors, spelled and read back            wire_test.go
//	Kernel, Interp, Sim, Machine, Race   what proves the numbers          prove_test.go
//
// helpers_test.go makes modules and meters the processor.
//
// # Invariants
//
// Names of benchmarks and metrics stay as they are, so that benchstat can compare across commits. A benchmark that needs
// public test data skips without it. What a benchmark prepares it prepares outside the clock, and the first run through a
// workspace, which sizes it, is always outside.
package bench
