// Package flow is a function as a register allocator sees it: blocks, instructions, values in SSA form with block parameters,
// and nothing of what they compute. It holds the input, the answer, and what allocators want to know before they start.
//
// # Tables
//
//	Func     blocks, instructions, operands, edges, classes       func.go
//	File     the registers of each class and who saves them       regs.go
//	Answer   a place for every operand, and the moves             answer.go
//	Live     the values that are live into each block             live.go
//	Loops    reverse postorder and the nest of loops              loops.go
//	Doms     the dominator tree                                   dom.go
//	Ranges   where values end and are needed next, what it costs  ranges.go
//	Families values that can share a place across edges           family.go
//	Parallel moves at once, in an order                           parallel.go
//	Reader   functions from their text form                       read.go
//
// # The rules of the problem
//
// Every value is defined once, each use is dominated by its definition, and there are no critical edges. A value is of one class and
// a class has registers of its own. Uses and results of an Op and the tests of a Branch must be in registers; operands of
// Args, Call and Return may be in registers or in stack slots. An instruction reads its uses before it writes its results, so a
// result may take the register of a use that ends there. A call destroys the registers that do not survive calls, after it has read its
// uses and before it writes its results. A slot holds any one value. A move goes from register to register of a class (a
// copy), from register to slot (a store) or from slot to register (a load); never from slot to slot.
package flow
