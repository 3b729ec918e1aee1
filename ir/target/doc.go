// Package target is the machine: what every NeuronCore generation has, how much of it, what is legal on it and what
// things cost. It is floor 0 and imports nothing of ours, so that the compiler, the encoders and the machine simulator
// can share the vocabulary of the hardware without sharing any code that turns one form of a program into another.
//
// # Tables
//
//	Generation    geometry, limits and rates of one core generation      generation.go
//	Engine        the five sequencers, the DMA rings, barrier fan-out    engine.go
//	Dtype         the 20 element types: size, alignment, class           dtype.go
//	Space         memory spaces and their codes                          space.go
//	AluOp         arithmetic of Vector and GpSimd, by ordinal            alu.go
//	ActFunc       functions of the Scalar engine and their table sets    act.go
//	cost          the integer latency oracle                             cost.go
//	Error         user error, unsupported, limit, bug                    errors.go
//
// # Invariants
//
// All values are compile-time constants: nothing is probed and nothing but an explicit option overrides a limit.
// Ordinals are those of the public notes on the reference compiler; wire bytes live in codegen/isa, never here.
package target
