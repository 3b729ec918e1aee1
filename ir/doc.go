// Package ir is the tile-level program: functions, blocks, instructions, operands, tensors and their placements, registers,
// queues, dependences, synchronisation and loops, all in flat tables of one Module. It is what every pass reads and writes.
//
// # Tables
//
//	InstRow   40 B  opcode, engine, operand, attribute and dependence spans      module.go, opcode.go
//	Arg        8 B  one operand: access pattern, immediate, register             access.go
//	APRow     56 B  a physical access pattern on one location                    access.go
//	Attr      16 B  one op-specific property; absent means the key's default     attrs.go
//	SetRow          a logical tensor; LocRow: one placement of it                module.go
//	BlockRow        a block and its program order                                module.go
//
// # Invariants
//
// Zero is none in every ID and row 0 of every table is reserved. No row holds a pointer. Instruction rows never move:
// program order is the block's list, and passes change it through Edits. An operand list is inputs, then index operands,
// then outputs. A pointer into a table is valid only until the next Add to that table.
//
// An access pattern is in elements of its own type, outermost axis first; on chip its first axis is the partition axis.
// FootprintOf is the one function that turns a pattern into bytes.
//
// The text form (.rir) prints and parses to the same bytes; JSON lives in ir/bir.
package ir
