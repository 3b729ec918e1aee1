// Package isa knows the wire: the 64-byte bundles of each core generation, both ways.
//
// # Tables
//
//	opTable     256 opcode words: mnemonic and generations                   opcode.go
//	forms       one row per wire form: opcodes, generations, fields          forms_*.go
//	field       one field of a form: place and kind in the bundle, and the
//	            member of Inst that holds its decoded value                  field.go
//	Inst        the decoded fields of any form in one flat struct            inst.go
//	dtype, ALU, accumulator, function and group codes                       wire.go
//
// The encoder, the decoder, the disassembler and FORMS.md are four readers of the one table; a form is changed in one
// place. A generation that overrides a form has a row of its own for the same opcode, and index (layout.go) picks the row by
// (generation, opcode).
//
// # Invariants
//
//   - No two fields of a form overlap and all lie in 64 bytes.
//   - Encode and Decode accept the same set of bundles: both end in the same check (check.go), so whatever Decode accepts
//     Encode turns back into the same bytes, and every bit that no field covers is zero.
//   - Decode(Encode(x)) == x for canonical x. Two kinds of value are not canonical and come back as their canonical
//     sibling: element types that share a tag (see DtypeTag), and AccIdle in the one-ALU Activation form, which the wire
//     spells as AccZeroAccumulate.
//   - Encode, Decode and Disasm of a legal bundle allocate nothing.
//
// The package imports ir/target and nothing else of ours: the compiler's tail fills Inst from its IR, the machine
// simulator reads Inst, and neither sees the other's side.
//
// Layouts follow the public notes on the reference encoder; where those leave a hole the form's note says "our format".
package isa
