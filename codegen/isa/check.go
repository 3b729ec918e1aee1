package isa

import (
	"strconv"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxElems is the most elements that an operand may have in a partition.
const maxElems = 1 << 16

// check holds the rules that tie fields together. Encode and Decode both end here, so they accept the same bundles; c is
// the class of the error, Limit for an instruction that was built, User for one that was read.
func (l *layout) check(c target.Class, g int, in *Inst) error {
	for i := range l.rows {
		f := &l.rows[i]
		switch f.kind {
		case kDesc:
			if d := descOf(in, f.mem); d.N != 0 {
				if err := checkDesc(c, g, in, f, d); err != nil {
					return err
				}
			}
		case kPtr:
			if err := checkAddr(c, in.Opcode, f, get32(in, f.mem)); err != nil {
				return err
			}
		case kImm:
			v := get32(in, f.mem)
			switch get8(in, f.dt) {
			case SrcPointer:
				if err := checkAddr(c, in.Opcode, f, v); err != nil {
					return err
				}
				if v%4 != 0 {
					return target.Errorf(c, "%s: %s pointer 0x%X is not aligned to 4", in.Opcode, f.name, v)
				}
			case SrcRegister:
				if v > 63 {
					return target.Errorf(c, "%s: %s register %d is outside 0..63", in.Opcode, f.name, v)
				}
			}
		case kName:
			if err := checkName(c, in, f); err != nil {
				return err
			}
		}
	}
	if err := checkSync(c, in); err != nil {
		return err
	}
	if err := l.checkShape(c, in); err != nil {
		return err
	}
	return checkOpcode(c, g, in)
}

// checkAddr accepts a byte of SBUF or PSUM, or a register word where the operand may be dynamic.
func checkAddr(c target.Class, op Opcode, f *field, a uint32) error {
	if a&AddrRegister != 0 {
		if a&^AddrRegister > 63 {
			return target.Errorf(c, "%s: %s register word 0x%X is not 0x80000000 + 0..63", op, f.name, a)
		}
		return nil
	}
	if f.flags&fIndirect != 0 {
		a &^= AddrIndirect
	}
	p, ok := PlaceOf(a)
	switch {
	case !ok:
		return target.Errorf(c, "%s: %s address 0x%X is in neither SBUF (below 0x2000000) nor PSUM (0x2000000..0x23FFFFF)", op, f.name, a)
	case f.flags&fPSUM != 0 && p.Space != target.SpacePSUM:
		return target.Errorf(c, "%s: %s address 0x%X must be in PSUM", op, f.name, a)
	case f.flags&fSBUF != 0 && p.Space != target.SpaceSB:
		return target.Errorf(c, "%s: %s address 0x%X must be in SBUF", op, f.name, a)
	}
	return nil
}

// checkDesc proves that a pattern stays inside its partition and that its type, alignment and start partition are legal.
// A register address is known only at run time, and so are these.
func checkDesc(c target.Class, g int, in *Inst, f *field, d *Desc) error {
	if n := d.Elems(); n > maxElems {
		return target.Errorf(c, "%s: %s has %d elements a partition; the limit is %d", in.Opcode, f.name, n, maxElems)
	}
	if f.flags&fVector != 0 && d.Elems() != 8 {
		return target.Errorf(c, "%s: %s has %d elements, want 8", in.Opcode, f.name, d.Elems())
	}
	if err := checkAddr(c, in.Opcode, f, d.Addr); err != nil {
		return err
	}
	if d.Addr&(AddrRegister|AddrIndirect) != 0 || f.dt == noMember {
		return nil
	}
	gen := gens[g]
	p, _ := PlaceOf(d.Addr)
	dt := target.Dtype(get8(in, f.dt))
	size := dt.Size()
	if a := dt.Align(); a > 1 && p.Off%uint32(a) != 0 {
		return target.Errorf(c, "%s: %s address 0x%X is not aligned to %d for %s", in.Opcode, f.name, d.Addr, a, dt)
	}
	limit := int64(gen.SBBytes)
	if p.Space == target.SpacePSUM {
		limit = int64(gen.PSUMBanks) * int64(gen.BankBytes)
	}
	lo, hi := d.Span()
	lo, hi = int64(p.Off)+lo*int64(size), int64(p.Off)+(hi+1)*int64(size)
	if lo < 0 || hi > limit {
		return target.Errorf(c, "%s: %s walks bytes %d..%d of its partition; %s has 0..%d", in.Opcode, f.name, lo, hi, p.Space, limit)
	}
	if f.par != noMember {
		if n := int(get8(in, f.par)); !target.LegalStart(p.Partition, n) {
			return target.Errorf(c, "%s: %s of %d partitions cannot start at partition %d", in.Opcode, f.name, n, p.Partition)
		}
	}
	if p.Space == target.SpacePSUM && f.flags&fWrite != 0 && !psumWritable(gen, in, dt) {
		return target.Errorf(c, "%s: %s writes %s to PSUM; %s takes 4-byte types there", in.Opcode, f.name, dt, gen.Core)
	}
	return nil
}

// psumWritable is the rule of PSUM writes: 4-byte types; bf16 on V4; and the type of a PE transpose where it is exact.
func psumWritable(gen *target.Generation, in *Inst, dt target.Dtype) bool {
	switch {
	case dt == target.Int32 || dt == target.Uint32 || dt == target.Float32 || dt == target.Float32R:
		return true
	case dt == target.BFloat16 && gen.PSUMBF16:
		return true
	case in.Opcode == OpMatmul && in.Variant == VariantTransposed && gen.ExactTranspose:
		return dt.Size() == 2
	}
	return false
}

func checkName(c target.Class, in *Inst, f *field) error {
	b := in.Name[:]
	end := -1
	for i, ch := range b {
		switch {
		case ch == 0 && end < 0:
			end = i
		case ch != 0 && end >= 0:
			return target.Errorf(c, "%s: %s has bytes after its end", in.Opcode, f.name)
		case ch != 0 && (ch < 0x21 || ch > 0x7E):
			return target.Errorf(c, "%s: %s has byte 0x%02X; names are printable ASCII without spaces", in.Opcode, f.name, ch)
		}
	}
	if end < 0 || end >= int(f.n) {
		return target.Errorf(c, "%s: %s %q is longer than %d bytes", in.Opcode, f.name, string(in.NameBytes()), f.n-1)
	}
	if end == 0 {
		return target.Errorf(c, "%s: %s is empty", in.Opcode, f.name)
	}
	return nil
}

// checkSync: no semaphore without a mode, and the one value of the inline band has one owner.
func checkSync(c target.Class, in *Inst) error {
	s := &in.Sync
	uses, err := checkWait(c, in.Opcode, s.WaitMode, s.WaitSem, s.Value)
	if err != nil {
		return err
	}
	amount := false
	switch s.UpdateMode {
	case UpdateNone:
		if s.UpdateSem != 0 {
			return target.Errorf(c, "%s: update semaphore %d without an update mode", in.Opcode, s.UpdateSem)
		}
	case UpdateEvent, UpdateInc, UpdateDec:
	case UpdateAdd, UpdateSub, UpdateWrite:
		amount = true
	default:
		return target.Errorf(c, "%s: update mode 0x%02X is unknown", in.Opcode, s.UpdateMode)
	}
	if in.Opcode == OpEventSemaphore {
		if !amount && in.UpdateValue != 0 {
			return target.Errorf(c, "%s: update value %d without a mode that takes one", in.Opcode, in.UpdateValue)
		}
		uses1, err := checkWait(c, in.Opcode, in.Wait1Mode, in.Wait1Sem, in.Wait1Value)
		if err == nil && !uses1 && in.Wait1Value != 0 {
			err = target.Errorf(c, "%s: wait1 value %d without a mode that takes one", in.Opcode, in.Wait1Value)
		}
		if err != nil {
			return err
		}
		amount = false
	}
	switch {
	case uses && amount:
		return target.Errorf(c, "%s: wait mode 0x%02X and update mode 0x%02X both need the one sync value; put the wait in an event_semaphore", in.Opcode, s.WaitMode, s.UpdateMode)
	case !uses && !amount && s.Value != 0:
		return target.Errorf(c, "%s: sync value %d without a mode that takes one", in.Opcode, s.Value)
	}
	return nil
}

// checkWait reports whether the wait takes a value.
func checkWait(c target.Class, op Opcode, mode, sem uint8, v uint32) (uses bool, err error) {
	switch mode {
	case WaitNone:
		if sem != 0 {
			return false, target.Errorf(c, "%s: wait semaphore %d without a wait mode", op, sem)
		}
		return false, nil
	case WaitGE:
		if v > 1<<31-1 {
			return true, target.Errorf(c, "%s: wait value %d is outside 0..2147483647", op, v)
		}
		return true, nil
	case WaitGEReg:
		if v > 63 {
			return true, target.Errorf(c, "%s: wait register %d is outside 0..63", op, v)
		}
		return true, nil
	case WaitEvent:
		return false, nil
	}
	return false, target.Errorf(c, "%s: wait mode 0x%02X is unknown", op, mode)
}

func (l *layout) checkShape(c target.Class, in *Inst) error {
	if l.shape == shapeFree {
		return nil
	}
	src, dst := in.Src.Elems(), in.Dst.Elems()
	switch l.shape {
	case shapeEqual:
		if src != dst {
			return target.Errorf(c, "%s: in has %d elements a partition, out %d", in.Opcode, src, dst)
		}
		if s1 := in.Src1.Elems(); in.Src1.N != 0 && s1 != dst {
			return target.Errorf(c, "%s: the second input has %d elements a partition, out %d", in.Opcode, s1, dst)
		}
	case shapeInner:
		if dst == 0 || src%dst != 0 {
			return target.Errorf(c, "%s: %d elements cannot be folded into %d", in.Opcode, src, dst)
		}
	case shapeVector8:
		if dst != 8 {
			return target.Errorf(c, "%s: out has %d elements, want 8", in.Opcode, dst)
		}
		if src < 8 || src > 16384 {
			return target.Errorf(c, "%s: in has %d elements a partition; 8..16384 are possible", in.Opcode, src)
		}
	}
	return nil
}

// bitForm tells the opcodes that work on raw bits and those that compute in fp32 from all others.
var bitForm = [256]uint8{
	OpTensorTensor: arith, OpTensorReduce: arith, OpTensorScalar: arith, OpTensorReduceT: arith, OpCrossLaneReduce: arith,
	OpTensorScalarReduce: arith, OpScalarTensorTensor: arith, OpTensorTensorScan: arith, OpTensorScalarScan: arith,
	OpTensorTensorBit: bits, OpTensorReduceBit: bits, OpTensorScalarBit: bits, OpTensorReduceTBit: bits,
	OpCrossLaneReduceBit: bits, OpScalarTensorTensorB: bits,
}

const (
	arith = iota + 1
	bits
)

// checkOps: an operator of the bitwise class needs the opcode that works on raw bits, and that opcode takes no other but
// bypass.
func checkOps(c target.Class, in *Inst) error {
	want := bitForm[in.Opcode]
	if want == 0 {
		return nil
	}
	for _, op := range [2]target.AluOp{in.Op0, in.Op1} {
		if op != target.AluBypass && op.Bitwise() != (want == bits) {
			return target.Errorf(c, "%s: %s is of the other class of operators (raw bits, or fp32)", in.Opcode, op)
		}
	}
	return nil
}

// checkOpcode holds the rules of single forms.
func checkOpcode(c target.Class, g int, in *Inst) error {
	if err := checkOps(c, in); err != nil {
		return err
	}
	switch in.Opcode {
	case OpLoadWeights, OpMatmul, OpMatmulSparse, OpLoadTags, OpLoadWeightsMx, OpMatmulMx:
		return checkPE(c, g, in)
	case OpActivate, OpActivate2:
		return checkActivation(c, g, in)
	case OpActReadAcc:
		if in.Count != in.Dst.Elems() {
			return target.Errorf(c, "%s: count %d differs from the %d elements of out", in.Opcode, in.Count, in.Dst.Elems())
		}
	case OpTensorCopy, OpTensorCopyCast:
		if in.Opcode == OpTensorCopy && dtypeTag(g, in.DtSrc) != dtypeTag(g, in.DtDst) {
			return target.Errorf(c, "%s: copies %s to %s; a cast is tensor_copy_cast", in.Opcode, in.DtSrc, in.DtDst)
		}
		if in.Src.Addr&(AddrRegister|AddrIndirect) != AddrIndirect && (in.Ptr != 0 || in.Count != 0) {
			return target.Errorf(c, "%s: gather words are set, but the input is not an index list", in.Opcode)
		}
	case OpTensorReduce, OpTensorReduceBit:
		n, k := uint64(in.Dst.Elems()), uint8(0)
		for i := uint32(0); i < in.Src.N && k < in.Axes; i++ { // only axes that the wire keeps count
			if in.Src.Num[i] != 1 {
				n *= uint64(in.Src.Num[i])
				k++
			}
		}
		if k < in.Axes {
			return target.Errorf(c, "%s: folds %d axes, the packed input has %d", in.Opcode, in.Axes, k)
		}
		if n != uint64(in.Src.Elems()) {
			return target.Errorf(c, "%s: %d innermost axes times %d results is %d elements, in has %d", in.Opcode, in.Axes, in.Dst.Elems(), n, in.Src.Elems())
		}
	case OpCrossLaneReduce, OpCrossLaneReduceBit:
		if in.Axes != 0 {
			return target.Errorf(c, "%s: axes %d, want 0", in.Opcode, in.Axes)
		}
	case OpBNStats:
		if n := in.Src.Elems(); n > 512 {
			return target.Errorf(c, "%s: in has %d elements a partition; the limit is 512", in.Opcode, n)
		}
	case OpAffineSelect:
		switch in.Op0 {
		case target.AluEqual, target.AluNotEqual, target.AluGT, target.AluGE, target.AluLT, target.AluLE:
		default:
			return target.Errorf(c, "%s: %s is not a comparison", in.Opcode, in.Op0)
		}
	case OpExponential:
		if in.Op0 != target.AluBypass || in.Op1 != target.AluBypass || in.Reverse != 0 {
			return target.Errorf(c, "%s: op0 and op1 must be bypass and reverse 0", in.Opcode)
		}
	case OpStreamShuffle:
		for i, m := range in.Mask {
			if m > 31 && m != 255 {
				return target.Errorf(c, "%s: mask[%d] is %d; 0..31 or 255 are possible", in.Opcode, i, m)
			}
		}
	case OpQuantizeMx:
		if in.Parts%32 != 0 {
			return target.Errorf(c, "%s: partitions %d is not one of 32, 64, 96, 128", in.Opcode, in.Parts)
		}
		return checkMx(c, in)
	case OpGroupReset:
		if in.Mode == ResetRange && (in.SemLast < in.SemFirst || in.Mask != [32]byte{}) {
			return target.Errorf(c, "%s: range %d..%d must rise and have no mask", in.Opcode, in.SemFirst, in.SemLast)
		}
		if in.Mode == ResetMask && (in.SemFirst != 0 || in.SemLast != 0) {
			return target.Errorf(c, "%s: mask mode has no range", in.Opcode)
		}
	case OpRegisterMove:
		if in.Mode == 2 && in.Imm0Src == 0 {
			return target.Errorf(c, "%s: a register pair can be moved from an immediate only", in.Opcode)
		}
	case OpIndirectDMA:
		return checkIndirect(c, g, in)
	case OpDMAStatic, OpDMADynamic:
		for _, s := range [2]*DMASide{&in.From, &in.To} {
			if s.Mode&^(AddrTwoReg|AddrMove) != AddrStatic && s.Mode&^(AddrTwoReg|AddrMove) != AddrDGE &&
				s.Mode&^(AddrTwoReg|AddrMove) != AddrDGEReg {
				return target.Errorf(c, "%s: address mode 0x%02X is unknown", in.Opcode, s.Mode)
			}
		}
	}
	return nil
}

// checkIndirect: indices and rows lie inside their partitions, on partitions that exist, and elements are whole words.
func checkIndirect(c target.Class, g int, in *Inst) error {
	size := in.Count2
	if size&(size-1) != 0 {
		return target.Errorf(c, "%s: element bytes %d is not one of 1, 2, 4, 8", in.Opcode, size)
	}
	if in.DtSrc != target.Int32 && in.DtSrc != target.Uint32 {
		return target.Errorf(c, "%s: indices are %s; int32 and uint32 are possible", in.Opcode, in.DtSrc)
	}
	for _, s := range [2]struct {
		name         string
		addr         uint32
		align, bytes int64
	}{{"indices", in.Ptr, 4, 4}, {"data", in.Imm0, int64(size), int64(size) * int64(in.Imm1)}} {
		p, ok := PlaceOf(s.addr)
		if !ok {
			continue // a register word
		}
		if int64(p.Off)%s.align != 0 {
			return target.Errorf(c, "%s: %s address 0x%X is not aligned to %d", in.Opcode, s.name, s.addr, s.align)
		}
		if end := int64(p.Off) + s.bytes; end > int64(gens[g].SBBytes) {
			return target.Errorf(c, "%s: %s takes bytes %d..%d of its partition; SB has 0..%d", in.Opcode, s.name, p.Off, end, gens[g].SBBytes)
		}
		if end := p.Partition + int(in.Count); end > 128 {
			return target.Errorf(c, "%s: %s takes partitions %d..%d of 128", in.Opcode, s.name, p.Partition, end)
		}
	}
	return nil
}

// checkPE: K rows and M columns lie in their tiles, N agrees on both sides, the type has the variant that it needs, and a
// product on CoreV2 and V3 stays in one bank.
func checkPE(c target.Class, g int, in *Inst) error {
	op, gen := in.Opcode, gens[g]
	if _, size, _ := GroupSpan(in.RowGroup); int(in.Rows) > size {
		return target.Errorf(c, "%s: %d rows do not fit row group %d of %d", op, in.Rows, in.RowGroup, size)
	}
	switch op {
	case OpLoadWeightsMx, OpMatmulMx:
		if err := checkMx(c, in); err != nil {
			return err
		}
	case OpLoadTags:
		want := [16]uint8{2: 4, 4: 8, 12: 8, 8: 12}[in.RowGroup&15]
		if in.Variant != want {
			return target.Errorf(c, "%s: column code %d, want %d for row group %d", op, in.Variant, want, in.RowGroup)
		}
		return nil
	default:
		if _, size, _ := GroupSpan(in.ColGroup); int(in.Cols) > size {
			return target.Errorf(c, "%s: %d columns do not fit column group %d of %d", op, in.Cols, in.ColGroup, size)
		}
		if in.DtSrc.Class() == target.ClassPacked {
			return target.Errorf(c, "%s: packed type %s needs the block-scaled forms", op, in.DtSrc)
		}
		if in.DtSrc == target.Float32R {
			return target.Errorf(c, "%s: float32r is written as float32 with variant %d", op, VariantFP32R)
		}
	}
	switch op {
	case OpLoadWeights:
		fp32 := in.DtSrc == target.Float32
		switch in.Variant {
		case VariantNormal:
			if fp32 {
				return target.Errorf(c, "%s: float32 weights need variant %d, 0x%X or 0x%X", op, VariantFP32R, VariantFP32Lo, VariantFP32Hi)
			}
		case VariantFP32R, VariantFP32Lo, VariantFP32Hi:
			if !fp32 {
				return target.Errorf(c, "%s: variant 0x%X needs float32 weights, not %s", op, in.Variant, in.DtSrc)
			}
		default:
			return target.Errorf(c, "%s: variant 0x%X is unknown", op, in.Variant)
		}
		return checkCount(c, op, "weights", in.Src.Elems(), uint32(in.Cols), in.Perf)
	case OpMatmul:
		if err := checkCount(c, op, "moving", in.Src.Elems(), in.Dst.Elems(), in.Perf); err != nil {
			return err
		}
		if n, max := in.Dst.Elems(), gen.MaxMoving(in.DtSrc); int(n) > max {
			return target.Errorf(c, "%s: N is %d; %s takes %d of %s", op, n, gen.Core, max, in.DtSrc)
		}
	}
	if op == OpMatmul || op == OpMatmulSparse || op == OpMatmulMx {
		lo, hi := in.Dst.Span()
		if p, ok := PlaceOf(in.Dst.Addr); ok && gen.Level < 40 {
			size, bank := int64(in.DtDst.Size()), int64(gen.BankBytes)
			first, last := (int64(p.Off)+lo*size)/bank, (int64(p.Off)+(hi+1)*size-1)/bank
			if first != last {
				return target.Errorf(c, "%s: psum spans banks %d..%d; %s keeps a product in one", op, first, last, gen.Core)
			}
		}
	}
	return nil
}

// checkCount ties the streamed elements to the columns: one to one, or two to one where the performance mode feeds pairs.
func checkCount(c target.Class, op Opcode, name string, have, want uint32, perf uint8) error {
	if have == want || perf != 0 && uint64(have) == 2*uint64(want) {
		return nil
	}
	return target.Errorf(c, "%s: %s has %d elements a partition, want %d (perf mode %d)", op, name, have, want, perf)
}

func checkMx(c target.Class, in *Inst) error {
	if in.Mx.Sign != 1 && in.Mx.Sign != 0xFF {
		return target.Errorf(c, "%s: mx sign 0x%02X is not 0x01 or 0xFF", in.Opcode, in.Mx.Sign)
	}
	return nil
}

// checkActivation: alpha only where the function reads it; on V4 pointer scalars share the quadrant of an SBUF input, or
// one quadrant when the input is in PSUM.
func checkActivation(c target.Class, g int, in *Inst) error {
	if !in.Func.Parametric() && (in.Imm2Src != 0 || in.Imm2 != 0) {
		return target.Errorf(c, "%s: alpha is set, but %s does not read it", in.Opcode, in.Func)
	}
	if gens[g].Level < 40 {
		return nil
	}
	const quadrant = target.SBPartitionPitch * target.QuadrantPartitions
	want, have := int64(-1), false
	if p, ok := PlaceOf(in.Src.Addr); ok && p.Space == target.SpaceSB {
		want, have = int64(in.Src.Addr/quadrant), true
	}
	scalars := [3]struct {
		src uint8
		v   uint32
	}{{in.Imm0Src, in.Imm0}, {in.Imm1Src, in.Imm1}, {in.Imm2Src, in.Imm2}}
	for i, s := range scalars {
		if s.src != SrcPointer || s.v&AddrRegister != 0 || i == 2 && !in.Func.Parametric() {
			continue
		}
		if q := int64(s.v / quadrant); !have {
			want, have = q, true
		} else if q != want {
			return target.Errorf(c, "%s: scalar %d points into quadrant %d, the operand it goes with is in %d", in.Opcode, i, q, want)
		}
	}
	return nil
}

func setString(set uint64) string {
	var b []byte
	for v := 0; v < 64; v++ {
		if set>>v&1 != 0 {
			if len(b) > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendInt(b, int64(v), 10)
		}
	}
	return string(b)
}

func hexByte(v int) string {
	const digits = "0123456789ABCDEF"
	return "0x" + string([]byte{digits[v>>4&15], digits[v&15]})
}
