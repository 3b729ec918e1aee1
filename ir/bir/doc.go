// Package bir reads and writes BIR JSON, the tile-level IR as a file: three dialects in (D1 of early 2025, D2 of compiler
// 2.24, D3 of 2.27), D2 out.
//
//	Read   one pass of tokens over the text, straight into the tables of ir.Module      read.go, token.go, module.go,
//	                                                                                    function.go, inst.go, operand.go,
//	                                                                                    expr.go, attr.go, kept.go
//	Write  sorted keys, one line a tensor or instruction, the same bytes every time     write.go, write_func.go,
//	                                                                                    write_inst.go, spell.go
//	IsBIR  whether a text looks like a module                                           sniff.go
//	Executable, ConstFiles, Embed   what a compile has to know about a module read      semantic.go
//
// # Reading
//
// The order of keys is free. What depends on keys that may follow (attributes on the opcode, instructions on the tensors)
// is kept as an offset into the text and resolved at the end of its object; names are resolved at the end of their function,
// queues and calls at the end of the module. Every error is the user's unless the text is right and beyond us, and reads
// `/functions/0/…/ap: message (line, offset)`: offsets are all that is kept while reading, the pointer is found by a second
// pass when there is something to say.
//
// An attribute at its default is dropped, so that an absent key and a written default give the same module. Attributes are
// kept in the order of ir.Key, whatever the order of the text.
//
// The packed `offset` of an access pattern on chip is split into the first partition and the element in the row, with the
// row pitch of the location in elements of the operand's type; it is joined on writing. The step of the partition axis must
// be the pitch, and the pattern must stay inside the location. DRAM offsets are linear.
//
// A repeated instruction name (D3, after unrolling) names two instructions; a reference means the nearest one before it, else
// the first one after it. Writing appends .1, .2 … to the later ones and gives names to what has none.
//
// A loop binds the name of its axis inside of itself; an expression means the innermost. Version 1 expressions become those
// of version 2, and D1's start_tensor_calc and stop_tensor_calc the accumulation flag: 1 or 4, plus 2.
//
// Unknown names are errors, but for what may stand in text that is kept: the producer of a wait can be a block of a queue,
// and the blocks of a trigger are not looked up. Where no queues are listed, the names on instructions make them.
//
// DRAM dims that are not a pair become [1, bytes].
//
// # What the tables do not explain
//
// Unknown keys are kept with their values byte for byte and written back. The text is `"key":value`, an ir.KeyExtra
// attribute of an instruction or an Extra list. A key that begins with "/" is a JSON pointer (RFC 6901) from the owner:
// "/ins/0/access_shape" on an instruction, "/blocks/Block1/x" on a function, "/artifact_path" on a module. Without it the key
// is a member of the owner itself, and of the attributes bag on a module or function. An element of a function's attributes
// list is its JSON text alone. Pointers into lists go stale when a pass changes the list; one beyond its end is dropped.
// Executable finds members kept as text that a compile may not ignore.
//
// Keys of our own carry what the tables hold and the dialects do not: name and consts on the module, const, live, no_rotate,
// spill_home, reload on a tensor, source and flags on an instruction, owner, direction, semaphore_base on a queue,
// physical_id and engine on a register, and pass flags in the functions' attributes.
//
// # Numbers
//
// Floats are the shortest decimal that gives the same float32, always with a point or an exponent; NaN and infinities, which
// JSON lacks, are strings of the bits: "0x7fc00000" (reading takes "nan", "inf", "-inf" too). Integers are exact.
//
// # Bounds
//
// Nesting ends at 10,000 levels, the limit of jsontext: 2,498 loops in one another. A text is at most 4 GiB. An instruction
// has at most 255 operands a list and 65,535 attributes, an access pattern five axes.
package bir
