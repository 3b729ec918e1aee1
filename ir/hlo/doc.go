// Package hlo reads XLA HLO text into the tensor graph and writes a graph as HLO text.
//
// # Reading
//
// One pass over the bytes, straight into the graph's flat tables. Names are interned; operands are resolved per computation and called
// computations per file, both of which may be used before they are defined. Kept are operators, types, the attributes that have a
// graph.Key, constants, aliases of outputs to inputs. Not kept are layouts, metadata, shardings, debug tables, precision settings.
//
//	text                                      in the graph
//	%a.1, a.1                                 the name a.1; of an entry parameter, neff_input_names when given
//	bf16[8,<=128]{1,0:T(8,128)}               type bf16[8,128]
//	constant({...})                           ConstElided
//	constant of equal elements                ConstSplat, without memory for the elements
//	an operator graph.Op lacks                OpOther, its name in AttrTarget
//	attributes of collectives and such        AttrRaw, verbatim
//	to_apply, calls, condition, body …        calls: while {condition, body}, conditional {true or branch 0, …},
//	                                          select-and-scatter {select, scatter}
//	{ … } printed where a name is expected    a computation of its own
//
// # Invariants
//
// Input is never trusted. Every error is of class target.User (the text is wrong), target.Unsupported (rosmar does not take it) or
// target.Limit, and starts with line:col. Memory is linear in the text: counts come from what was seen, not from what was promised.
// Nesting uses explicit stacks of bounded depth.
//
// # Writing
//
// Write prints what the reader reads back to an equal graph. Composites that HLO lacks are expanded first (Expand).
package hlo
