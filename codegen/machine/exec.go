package machine

import (
	"encoding/binary"
	"math"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// unit is the arithmetic state of an engine, beside what its sequencer holds.
type unit struct {
	acc   [128]float32 // accumulator, one lane a partition
	table uint8        // resident function table set, 0 = none
	tiles []tile       // PE: resident stationary operands
	saved []byte       // what the first bundle of a pair loaded, dense
	shape kernel.View  // of saved
}

// tile is a stationary operand in a part of the array: sets of 32-wide quarters of its rows and columns.
type tile struct {
	rows, cols uint8
	valid      bool
	w          kernel.Weights
}

func (u *unit) restart() {
	clear(u.acc[:])
	u.table = 0
	for i := range u.tiles {
		u.tiles[i].valid = false
	}
	u.shape = kernel.View{}
}

// execute runs the tensor part of the decoded bundle: operands are bound, what it reads must be written, and what it writes
// becomes so.
func (m *Machine) execute(g *engine, u *unit, r *opRow) error {
	o := &m.ops
	if err := g.bind(&m.layout, r, o); err != nil {
		return err
	}
	for i := 0; i < numOperands; i++ {
		if o.have>>i&1 == 0 {
			continue
		}
		st := m.view(&o.a[i], &m.views[i])
		if o.a[i].write && st.fixed {
			return target.Errorf(target.User, "%s is %s, which is read only", roles[i], m.layout.name(o.a[i].space))
		}
		if o.reads(i, &g.in, r) {
			if at, ok := st.written(&m.views[i], &m.stamp); !ok {
				return m.layout.unwritten(roles[i], o.a[i].space, st, at)
			}
		}
	}
	if err := m.compute(g, u); err != nil {
		return err
	}
	for i := iDst; i < numOperands; i++ {
		if o.have>>i&1 == 0 {
			continue
		}
		st := &m.stores[o.a[i].space]
		if g.in.Opcode == isa.OpStreamShuffle {
			m.markShuffled(g, st)
			continue
		}
		st.mark(&m.views[i], &m.stamp)
	}
	g.latch()
	return nil
}

// unwritten is the error of a read of byte at of a store.
func (l *layout) unwritten(role string, space uint32, st *store, at int) error {
	if space < spaceVars {
		return target.Errorf(target.User, "%s reads %s partition %d, byte %d, which nothing wrote", role, l.name(space), at/st.pitch, at%st.pitch)
	}
	return target.Errorf(target.User, "%s reads byte %d of %s, which nothing wrote", role, at, l.name(space))
}

// markShuffled marks the lanes that a shuffle writes: those whose mask entry does not keep them.
func (m *Machine) markShuffled(g *engine, st *store) {
	v := m.views[iDst]
	for p := range v.Parts {
		if g.in.Mask[p%kernel.Block] == kernel.ShuffleKeep {
			continue
		}
		lane := v
		lane.Off += p * v.PStep
		lane.Parts = 1
		st.mark(&lane, &m.stamp)
	}
}

// scalar is operand i as a scalar: the column that it points to, a register or the word itself. Words are floats; the bitwise
// forms take the integer that the float is.
func (m *Machine) scalar(g *engine, i int, src uint8, word uint32) kernel.Scalar {
	if m.ops.have>>i&1 != 0 {
		return kernel.Ptr(&m.views[i])
	}
	switch src {
	case isa.SrcPointer:
		return kernel.Scalar{} // not read by its operator
	case isa.SrcRegister:
		word = g.regs[word&63]
	}
	return kernel.Imm(math.Float32frombits(word))
}

// lanes is the accumulator from the first partition of the output on.
func (m *Machine) lanes(u *unit) []float32 { return u.acc[m.ops.a[iDst].part:] }

func (m *Machine) compute(g *engine, u *unit) error {
	in, k, v := &g.in, &m.scratch, &m.views
	out := &v[iDst]
	switch in.Opcode {
	case isa.OpLoadWeights:
		return m.loadWeights(in, u)
	case isa.OpMatmul:
		return m.matmul(in, u)

	case isa.OpActivate, isa.OpActivate2:
		if set := in.Func.TableSet(); set != 0 && set != int(u.table) {
			return target.Errorf(target.User, "%s needs table set %d, but set %d is resident", in.Func, set, u.table)
		}
		a := kernel.ActOps{Func: in.Func,
			Scale: m.scalar(g, iImm0, in.Imm0Src, in.Imm0),
			Bias:  m.scalar(g, iImm1, in.Imm1Src, in.Imm1),
			Alpha: m.scalar(g, iImm2, in.Imm2Src, in.Imm2)}
		acc := kernel.Acc{Cmd: in.Acc, Lanes: m.lanes(u)}
		if in.Opcode == isa.OpActivate2 {
			a.Two, a.Op0, a.Op1, a.Rev0, a.Rev1 = true, in.Op0, in.Op1, in.Reverse&1 != 0, in.Reverse&2 != 0
			acc.Op = in.RedOp
		} else if acc.Cmd == target.AccZeroAccumulate && g.sumIsDead() {
			acc.Cmd = target.AccIdle
		}
		return kernel.Activation(k, out, &v[iSrc], &a, &acc)
	case isa.OpActReadAcc:
		return kernel.ReadAccumulator(out, m.lanes(u), false)
	case isa.OpDveReadAcc:
		return kernel.ReadAccumulator(out, m.lanes(u), in.Negate != 0)
	case isa.OpExponential:
		return kernel.Exponential(k, out, &v[iSrc], m.scalar(g, iImm0, in.Imm0Src, in.Imm0),
			&kernel.Acc{Cmd: in.Acc, Lanes: m.lanes(u)})

	case isa.OpTensorTensor, isa.OpTensorTensorBit:
		return kernel.TensorTensor(k, in.Op0, out, &v[iSrc], &v[iSrc1], &kernel.Acc{Cmd: in.Acc, Lanes: m.lanes(u)})
	case isa.OpTensorScalar, isa.OpTensorScalarBit, isa.OpTensorScalarReduce, isa.OpTensorScalarScan,
		isa.OpScalarTensorTensor, isa.OpScalarTensorTensorB, isa.OpTensorTensorScan:
		return m.tensorScalar(g, u)
	case isa.OpTensorCopy, isa.OpTensorCopyCast:
		if in.Ptr != 0 || in.Count != 0 {
			return target.NotSupported("gathering copy", "a copy by an index list is not simulated")
		}
		return kernel.Copy(k, out, &v[iSrc])
	case isa.OpTensorReduce, isa.OpTensorReduceBit:
		return kernel.TensorReduce(k, in.Op0, out, &v[iSrc], in.Negate != 0)
	case isa.OpCrossLaneReduce, isa.OpCrossLaneReduceBit:
		return kernel.PartitionReduce(k, in.Op0, out, &v[iSrc], in.Negate != 0)
	case isa.OpPool:
		return kernel.Pool(k, in.Mode == poolAverage, out, &v[iSrc])
	case isa.OpReciprocal:
		return kernel.Reciprocal(k, out, &v[iSrc])
	case isa.OpMemset:
		return kernel.Memset(out, uint64(in.Imm0))
	case isa.OpIota:
		a := affine(in)
		return kernel.Iota(k, out, &a)
	case isa.OpAffineSelect:
		a := affine(in)
		return kernel.AffineSelect(k, out, &v[iSrc], &a, in.Op0, math.Float32frombits(in.Imm0))
	case isa.OpRangeSelect:
		ro := kernel.RangeOps{Lo: kernel.Ptr(&v[iImm1]), Hi: kernel.Ptr(&v[iImm2]), Cmp0: in.Op0, Cmp1: in.Op1, Fill: math.Float32frombits(in.Imm0)}
		return kernel.RangeSelect(k, out, &v[iSrc], &ro, &kernel.Acc{Cmd: in.Acc, Op: in.RedOp, Lanes: m.lanes(u)})
	case isa.OpCopyPredicated, isa.OpCopyPredicatedOld:
		return kernel.CopyPredicated(k, out, &v[iSrc], &v[iSrc1], in.Reverse != 0, nil)
	case isa.OpMax:
		return kernel.Max8(k, out, &v[iSrc])
	case isa.OpMatchReplace:
		return kernel.MatchReplace8(k, out, &v[iSrc], &v[iValues], math.Float32frombits(in.Imm0))
	case isa.OpBNStats:
		return kernel.BNStats(k, out, &v[iSrc])
	case isa.OpBNAggregate:
		return kernel.BNAggregate(k, out, &v[iSrc])
	case isa.OpIndirectCopy:
		return kernel.IndirectCopy(k, out, &v[iSrc], &v[iIndex], int(in.Count))

	case isa.OpMaxIndexLoad, isa.OpStreamLoad, isa.OpGatherLoad:
		return m.save(u)
	}
	return m.second(g, u)
}

// second runs the bundles that use what the one before them loaded.
func (m *Machine) second(g *engine, u *unit) error {
	in, k, v := &g.in, &m.scratch, &m.views
	want := isa.OpStreamLoad
	switch in.Opcode {
	case isa.OpMaxIndex:
		want = isa.OpMaxIndexLoad
	case isa.OpGather:
		want = isa.OpGatherLoad
	}
	if g.pair.op != want || u.shape.Data == nil {
		return target.Errorf(target.User, "there is no %s before it", want)
	}
	out := &v[iDst]
	switch in.Opcode {
	case isa.OpMaxIndex:
		if err := kernel.MaxIndex8(k, out, &v[iSrc], &u.shape); err != nil || m.ops.have>>iDst1&1 == 0 {
			return err
		}
		return kernel.MatchReplace8(k, &v[iDst1], &v[iSrc], &u.shape, math.Float32frombits(g.pair.fill))
	case isa.OpGather:
		return kernel.Gather(k, out, &u.shape, &v[iSrc])
	case isa.OpStreamTranspose:
		return kernel.StreamTranspose(k, out, &u.shape)
	case isa.OpStreamShuffle:
		return kernel.StreamShuffle(k, out, &u.shape, &in.Mask)
	}
	return target.Errorf(target.Bug, "%s has a row but no body", in.Opcode)
}

// poolAverage is the function code of an averaging pool.
const poolAverage = 2

// save keeps a dense copy of the input for the second bundle of a pair.
func (m *Machine) save(u *unit) error {
	src := &m.views[iSrc]
	n := src.Elems()
	size := n * src.Dtype.Size()
	if cap(u.saved) < src.Parts*size {
		u.saved = make([]byte, src.Parts*size)
	}
	u.saved = u.saved[:src.Parts*size]
	u.shape = kernel.Dense(u.saved, 0, src.Dtype, src.Parts, size, n)
	return kernel.Copy(&m.scratch, &u.shape, src)
}

func affine(in *isa.Inst) kernel.Affine {
	a := kernel.Affine{Base: int64(in.Base), Mult: int64(in.ChanMul), N: int(in.Dst.N)}
	for d := range a.N {
		a.Steps[d], a.Nums[d] = int64(in.Steps[d]), int(in.Dst.Num[d])
	}
	return a
}

func (m *Machine) tensorScalar(g *engine, u *unit) error {
	in, k, v := &g.in, &m.scratch, &m.views
	a := kernel.ScalarOps{Op0: in.Op0, Op1: in.Op1, Rev0: in.Reverse&1 != 0, Rev1: in.Reverse&2 != 0,
		S0: m.scalar(g, iImm0, in.Imm0Src, in.Imm0), S1: m.scalar(g, iImm1, in.Imm1Src, in.Imm1)}
	acc := kernel.Acc{Cmd: in.Acc, Lanes: m.lanes(u)}
	out, src := &v[iDst], &v[iSrc]
	switch in.Opcode {
	case isa.OpTensorScalarReduce:
		return kernel.TensorScalarCache(k, out, src, &a, kernel.CacheReduce, &acc)
	case isa.OpTensorScalarScan:
		if acc.Cmd == target.AccIdle {
			acc.Cmd = target.AccLoadAccumulate
		}
		return kernel.TensorScalarCache(k, out, src, &a, kernel.CacheCumulative, &acc)
	case isa.OpScalarTensorTensor, isa.OpScalarTensorTensorB:
		return kernel.ScalarTensorTensor(k, out, src, &v[iSrc1], &a, &acc)
	case isa.OpTensorTensorScan:
		return kernel.TensorTensorScan(k, out, src, &v[iSrc1], &a)
	}
	return kernel.TensorScalar(k, out, src, &a, &acc)
}

// sumIsDead reports that nothing reads the accumulator before the next activation starts it anew on the same lanes: the wire
// of the one-ALU form cannot say idle, so most sums are made for nobody. It looks a few bundles ahead and says no when in
// doubt.
func (g *engine) sumIsDead() bool {
	const ahead = 8
	const accAt, partsAt, dstAt = 0x0E, 0x22, 0x30 // of the Activation form
	this := g.bundle()
	for pc := g.pc + 1; pc <= g.pc+ahead; pc++ {
		if pc >= g.n {
			return true
		}
		b := g.stream[pc*isa.BundleSize : (pc+1)*isa.BundleSize]
		switch isa.Opcode(b[0]) {
		case isa.OpActivate:
			word := binary.LittleEndian.Uint32(b[dstAt:])
			p, ok := isa.PlaceOf(word)
			q, _ := isa.PlaceOf(binary.LittleEndian.Uint32(this[dstAt:]))
			return ok && b[accAt] == 3 && b[partsAt] >= this[partsAt] && p.Partition == q.Partition
		case isa.OpActReadAcc, isa.OpActivate2, isa.OpBranch, isa.OpCall:
			return false
		}
	}
	return false
}

// loadWeights puts a stationary operand into its tile of the array, and whatever overlapped it out.
func (m *Machine) loadWeights(in *isa.Inst, u *unit) error {
	if in.Perf != 0 {
		return target.NotSupported("matmul performance mode", "performance mode %d is not simulated", in.Perf)
	}
	if err := m.inGroup(iSrc, in.RowGroup, int(in.Rows)); err != nil {
		return err
	}
	mode := kernel.WeightsFull
	switch {
	case in.Transpose == isa.TransposeMark && m.gen.ExactTranspose:
		mode = kernel.WeightsMove
	case in.Variant == isa.VariantFP32Lo:
		mode = kernel.WeightsLo
	case in.Variant == isa.VariantFP32Hi:
		mode = kernel.WeightsHi
	}
	slot := -1
	for i := range u.tiles {
		t := &u.tiles[i]
		if t.rows&in.RowGroup != 0 && t.cols&in.ColGroup != 0 {
			t.valid = false
		}
		if !t.valid {
			slot = i
		}
	}
	if slot < 0 {
		slot = len(u.tiles)
		u.tiles = append(u.tiles, tile{})
	}
	t := &u.tiles[slot]
	t.rows, t.cols, t.valid = in.RowGroup, in.ColGroup, true
	return t.w.Load(&m.views[iSrc], mode)
}

// inGroup demands that an on-chip operand of n partitions lies in the quarters of a group code.
func (m *Machine) inGroup(i int, code uint8, n int) error {
	pos, size, ok := isa.GroupSpan(code)
	if p := m.ops.a[i].part; !ok || p < pos || p+n > pos+size {
		return target.Errorf(target.User, "%s covers partitions %d to %d, group code %d covers %d to %d", roles[i], p, p+n, code, pos, pos+size)
	}
	return nil
}

// matmul multiplies by the tile that its group codes name. The multiplier of an exact transpose must have been loaded for
// it, and the other way round.
func (m *Machine) matmul(in *isa.Inst, u *unit) error {
	if in.Perf != 0 {
		return target.NotSupported("matmul performance mode", "performance mode %d is not simulated", in.Perf)
	}
	if err := m.inGroup(iSrc, in.RowGroup, int(in.Rows)); err != nil {
		return err
	}
	if err := m.inGroup(iDst, in.ColGroup, int(in.Cols)); err != nil {
		return err
	}
	for i := range u.tiles {
		t := &u.tiles[i]
		if !t.valid || t.rows != in.RowGroup || t.cols != in.ColGroup {
			continue
		}
		if t.w.K != int(in.Rows) || t.w.M != int(in.Cols) {
			return target.Errorf(target.User, "multiplies %d×%d weights, %d×%d are resident", in.Rows, in.Cols, t.w.K, t.w.M)
		}
		if move := in.Variant == isa.VariantTransposed; move != (t.w.Mode == kernel.WeightsMove) && m.gen.ExactTranspose {
			return target.Errorf(target.User, "variant %d with weights that were loaded for another kind of product", in.Variant)
		}
		m.stats.MACs += int64(in.Rows) * int64(in.Cols) * int64(in.Dst.Elems())
		return kernel.Matmul(&m.scratch, &m.views[iDst], &m.views[iSrc], &t.w, in.Flags&isa.FlagAccumulate != 0)
	}
	return target.Errorf(target.User, "no weights are resident in row group %d, column group %d", in.RowGroup, in.ColGroup)
}
