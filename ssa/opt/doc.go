// Package opt holds rewrites of instructions into other instructions: what the machine has no word for, and clean-ups.
//
//	LowerSelect   Select as a copy and a predicated copy     lowerselect.go
//	DeadCode      instructions whose results nothing reads   deadcode.go
//
// A rewrite keeps the meaning that ir/semantics.go states, collects its changes in ir.Edits and applies them in one merge.
// New instructions inherit the provenance of the one they replace.
package opt
