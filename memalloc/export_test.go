package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"pgregory.net/rapid"
)

// RandomProgram draws a program that is right by construction, for tests of what comes after placement.
func RandomProgram(t *rapid.T, n int) (*ir.Module, ir.Func) {
	p := random(t, n)
	return &p.m, p.f
}

// Computes reports an error, or the symbols that a program saves; Same compares two of them.
var Computes, Same = execute, same

// Overlaps reports two live locations that share bytes.
var Overlaps = overlaps

// Within reports a placement that is off its alignment or beyond the limits of the options.
func Within(m *ir.Module, f ir.Func, opt Options) error {
	return bounds(m, f, opt.Raw(m.Gen), opt.Strip(m.Gen), opt.Banks(m.Gen))
}

// RandomLoops draws a program with loops and little memory for it.
func RandomLoops(t *rapid.T) (*ir.Module, ir.Func, Options) {
	p, opt := drawLoops(t)
	return &p.m, p.f, opt
}

// Simulate runs a program on made-up numbers and returns its outputs.
var Simulate = simulate
