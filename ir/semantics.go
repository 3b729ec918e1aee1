package ir

// Semantics of instructions: what every producer, pass, simulator and encoder agrees on.
//
// # Data
//
// Engines read any type, compute in fp32 and round on writing (nearest even; to an integer type: toward zero, saturating).
// Operators of the bitwise class work on raw bits, and a copy between equal types is exact in every bit, also for 64-bit
// types, which only copies and DMAs may touch. A predicate or truth value is 1 or 0 in the destination's type (uint8 where
// it has a tensor of its own). Operands of one instruction have equal partition counts and, after dropping unit axes, equal
// free element counts; elements pair up in pattern order. Exceptions stand at the opcode.
//
// # Operands by opcode (imm: immediate; [p,1]: a vector of one fp32 element a partition)
//
//	Load, Save, DMACopy   src → dst. Elements in pattern order, the two shapes independent, equal counts; on chip the
//	                      partition axis is the outermost. Types may differ (the ring casts as an engine would).
//	                      Load: DRAM → SB. Save: SB or PSUM → DRAM. DMACopy: any of DRAM, SB, PSUM to any.
//	IndirectLoad          table, index [p,1] (second input or index operand) → dst [p, row]. The outermost axis of the table's
//	                      pattern in DRAM numbers its rows, the other one walks a row: dst[p] = row index[p]. Indices are
//	                      int32 or uint32 in SB; one outside the rows is an error in the simulators and on the machine.
//	                      A transfer like Load, owned by Pool: index, rows and destination are touched at any time until
//	                      it is complete. Types are equal, dst is in SB without gaps and does not meet the index.
//	Memset                → dst. `constant`: the element's bits in dst's own type.
//	Iota                  → dst. base + Σ step·index (pattern, outermost first) + channel_multiplier·partition of the pattern.
//	Activation            x, bias ([p,1] or imm), scale ([p,1] or imm), alpha (imm) → y [, acc [p,1]]. y = func(x·scale +
//	                      bias), alpha for parametric functions. A missing bias is 0; a missing scale or alpha is the
//	                      attribute of that name. With op0 or op1: func(op1(op0(x, scale), bias)). `acc` says how
//	                      `reduce_op` (add when absent) folds the row of y, before rounding to y's type, into %act.acc.
//	                      A second output, here and below, stands for a read of the accumulator right after.
//	Exponential           x, max ([p,1] or imm) → y [, acc]: y = exp(x - max), folded by reduce_cmd.
//	ActivationReadAccumulator, DveReadAccumulator   → dst [p,1]: the accumulator of each partition.
//	TensorCopy            x → y.
//	TensorTensor          a, b → y = a op b; `acc` folds the row into %dve.acc. At most one operand in PSUM.
//	TensorScalar          x → y = op1(op0(x, const0), const1); reverse0 and reverse1 swap the operands of their operator;
//	                      bypass passes the left value on.
//	TensorScalarPtr       x, s0 [, s1] → y [, acc]: the same with s0, s1 as [p,1] or imm;
//	                      negate_second_output flips the sign of what acc gets.
//	                      is_scalar_tensor_tensor: x, s0, z → y = op1(op0(x, s0), z) with z a tensor.
//	                      is_tensor_tensor_scan: x, init, z → y, y[i] = op1(op0(y[i-1], x[i]), z[i]), y[-1] = init.
//	TensorScalarCache     x, s0 [, s1] → y [, acc]: op0(x, s0) folded with op1; in cumulative mode y is the fold so far.
//	TensorReduce          x → y: folds the innermost free axes of x with `op`, one for `axis` X to four for XYZW, or the
//	                      partitions for C and XYZWC; `negate` flips the sign of the result.
//	Pool                  x → y: folds the two innermost free axes of x with max or mean.
//	Reciprocal            x → y = 1/x.
//	Select                pred, t, f → y. CopyPredicated: src, pred → dst where pred ≠ 0 (reverse_pred: = 0), else dst stays.
//	TensorScalarAffineSelect   x → y: x where (base + Σ step·index + channel_multiplier·partition) compare_op 0, else fill.
//	RangeSelect           x, lo [p,1], hi [p,1] → y [, acc]: x where index compare_op0 lo and index compare_op1 hi, else fill.
//	Max                   x → y [p,8] descending. MaxIndex: x, v [p,8] → uint32 [p,8] first index of each.
//	MatchReplace          x, v [p,8] → y: first match of each of v replaced by imm_value.
//	MaxIndexAndMatchReplace   x, v [p,8] → MaxIndex's result, MatchReplace's result.
//	BNStats               x → [p,6]: count, mean, count·variance of the even elements, then of the odd ones.
//	BNStatsAggregate      [p,6n] → [p,2]: mean, variance.
//	StreamTranspose       x → y: each 32×32 block (partition quadrant × 32 free elements) transposed.
//	StreamShuffle         x → y: in each quadrant, partition i of y is partition mask[i] of x.
//	Gather                x, index → y[p,i] = x[p, index[p,i]].
//	IndirectCopy          x, index → y[p,i] = x[p, list[i]], a list for 16 partitions.
//	Matmult               moving [K, N], stationary [K, M] → PSUM [M, N]: Σ over partitions k, ascending, fp32;
//	                      accumulation_flag: 1 START overwrites, 2 STOP closes the group, 4 ACCUMULATE adds. A pattern of
//	                      the moving operand may have several free axes; N is their product and the destination walks N in
//	                      the same order. 32-bit floats pair only with 32-bit floats and run as two passes, low halves of
//	                      the stationary first. is_transpose: exact, destination in the moving operand's type (V3 and later).
//	RegisterMove          a → register: a register, or an immediate; 64 bits come from an immediate only.
//	RegisterAlu           a, b → register: a op b on integers of 32 bits, is_64bit: of 64. All operands are read before the result
//	                      is written.
//	TensorLoad            memory → one or two registers: an element each; a 64-bit register takes one of 8 bytes or two of 4.
//	                      TensorSave: registers → memory. Elements of less than 4 bytes are extended and cut.
//	CompareAndBranch      a, b: to block on_true where a comp_op b, else to on_false. UnconditionalBranch: to target. A block that
//	                      ends without one falls into the next.
//	DMATrigger            the wire form of a static DMA; made by codegen/lower, never by a front end.
//
// The accumulation flags of a group are 1, 4…4, 6, or 3 for a group of one. Nothing but the group's matmuls writes the
// destination between START and STOP.
//
// # Loops
//
// A Loop runs the blocks of its region once for each value of its axis, lo, lo+step, … below hi (above hi for a negative step).
// Operands in it may be symbolic: their expression is over the axes of the loops around them. Resolve says what they touch.
//
// # Limits of the operands
//
// Start partitions obey target.LegalStart. Free axes: five-pair patterns only for the input of TensorReduce and Pool (four
// free axes), four pairs elsewhere (three free axes), two free axes for scalar-tensor-tensor and scan operands; steps fit
// int16, counts uint16. A PSUM destination of a matmul stays in one bank (V4: up to eight banks). PSUM is written in
// four-byte types only (is_transpose and, on V4, bfloat16 excepted). Pool does not touch PSUM.
