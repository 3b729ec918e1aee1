// Package zoo builds models from a name, "zoo:NAME?key=value&key=value": programs of a known shape and size for tests,
// benchmarks and batch compiles, without files.
//
// # Tables
//
//	models   one row a model: name, keys with default and bounds, builder, closed-form counts      zoo.go
//
// Weights are constants that are generated from a seed when somebody reads them (graph.Materialise), so that a model of
// many gigabytes costs a few kilobytes until it is run; with weights=param they are parameters of the entry instead.
//
// # Invariants
//
// The same name gives the same graph. Every key is bounded so that no count overflows 63 bits. Count says what a model holds
// without building it, and a test holds it against the graph.
package zoo
