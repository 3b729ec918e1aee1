package kernel

import "github.com/rosmar-compiler/rosmar/ir/target"

// Block is the side of a StreamTranspose block and the size of a StreamShuffle group.
const Block = 32

// checkMove demands equal types, which move as raw bits.
func checkMove(op, role string, v, out *View) error {
	if err := v.checkRows(op, role); err != nil {
		return err
	}
	if !sameBits(v.Dtype, out.Dtype) {
		return target.Errorf(target.User, "%s: %s is %s, out is %s; the types must agree", op, role, v.Dtype, out.Dtype)
	}
	return nil
}

// StreamTranspose transposes 32×32 blocks where they stand: with both sizes multiples of 32, out[32a+j, 32b+i] = in[32a+i,
// 32b+j]. A single block may be smaller: in is [p ≤ 32, f ≤ 32] and out [f, p].
func StreamTranspose(s *Scratch, out, in *View) error {
	const op = "StreamTranspose"
	if err := checkMove(op, "out", out, out); err != nil {
		return err
	}
	if err := checkMove(op, "in", in, out); err != nil {
		return err
	}
	p, f := in.Parts, in.Elems()
	whole := p%Block == 0 && f%Block == 0 && out.Parts == p && out.Elems() == f
	small := p <= Block && f <= Block && out.Parts == f && out.Elems() == p
	if !whole && !small {
		return target.Errorf(target.User, "%s: in is %s, out is %s; want equal multiples of %d, or one block and its transpose",
			op, in.shape(), out.shape(), Block)
	}
	if p > maxRow/f {
		return target.Errorf(target.Limit, "%s: in is %s; at most %d elements in all", op, in.shape(), maxRow)
	}
	x, y := s.u64(0, p*f), s.u64(1, out.Elems())
	var ci, co cursor
	ci.start(in)
	co.start(out)
	ci.loadBits(x)
	if !whole {
		for q := range f {
			for i := range y {
				y[i] = x[i*f+q]
			}
			co.storeBits(y)
		}
		return nil
	}
	for q := range p {
		base, j := q/Block*Block, q%Block
		for i := range y {
			y[i] = x[(base+i%Block)*f+i/Block*Block+j]
		}
		co.storeBits(y)
	}
	return nil
}

// ShuffleKeep in a shuffle mask leaves the partition of the output as it is.
const ShuffleKeep = 255

// StreamShuffle permutes each group of 32 partitions: out[32g+i] = in[32g+mask[i]], for a last group of fewer partitions
// too. Mask entries are partitions of the group that exist, or ShuffleKeep.
func StreamShuffle(s *Scratch, out, in *View, mask *[Block]uint8) error {
	const op = "StreamShuffle"
	if err := checkMove(op, "out", out, out); err != nil {
		return err
	}
	if err := checkMove(op, "in", in, out); err != nil {
		return err
	}
	if err := sameShape(op, "in", in, out); err != nil {
		return err
	}
	n := out.Elems()
	if n > maxRow/Block {
		return target.Errorf(target.Limit, "%s: %d elements a partition; at most %d", op, n, maxRow/Block)
	}
	for g := 0; g < out.Parts; g += Block {
		for i := range min(Block, out.Parts-g) {
			if m := int(mask[i]); m != ShuffleKeep && (m >= Block || g+m >= out.Parts) {
				return target.Errorf(target.User, "%s: mask entry %d is %d, group %d has %d partitions",
					op, i, m, g/Block, min(Block, out.Parts-g))
			}
		}
	}
	x := s.u64(0, Block*n)
	var ci cursor
	ci.start(in)
	for g := 0; g < out.Parts; g += Block {
		h := min(Block, out.Parts-g)
		ci.loadBits(x[:h*n])
		for i := range h {
			m := int(mask[i])
			if m == ShuffleKeep {
				continue
			}
			r := out.row(g + i)
			var co cursor
			co.start(&r)
			co.storeBits(x[m*n : (m+1)*n])
		}
	}
	return nil
}

// indices reads k elements as integers and demands that each is in [0, limit).
func indices(op string, c *cursor, dst []uint64, limit int) error {
	c.loadBits(dst)
	for i, u := range dst {
		u = castInt(target.Int64, c.dt, u)
		if u >= uint64(limit) {
			return target.Errorf(target.User, "%s: index %d is out of [0, %d)", op, int64(u), limit)
		}
		dst[i] = u
	}
	return nil
}

func checkIndex(op string, idx *View) error {
	if err := idx.checkRows(op, "index"); err != nil {
		return err
	}
	if !idx.Dtype.IsInteger() {
		return target.Errorf(target.User, "%s: index is %s; it must be an integer type", op, idx.Dtype)
	}
	return nil
}

// Gather is out[p, i] = data[p, idx[p, i]]. A bad index fails with the earlier partitions written.
func Gather(s *Scratch, out, data, idx *View) error {
	const op = "Gather"
	err := checkMove(op, "out", out, out)
	if err == nil {
		err = checkMove(op, "data", data, out)
	}
	if err == nil {
		err = checkIndex(op, idx)
	}
	if err == nil {
		err = sameShape(op, "index", idx, out)
	}
	if err != nil {
		return err
	}
	if data.Parts != out.Parts {
		return target.Errorf(target.User, "%s: data has %d partitions, out has %d", op, data.Parts, out.Parts)
	}
	x, k := s.u64(0, data.Elems()), s.u64(1, out.Elems())
	var cd, ck, co cursor
	cd.start(data)
	ck.start(idx)
	co.start(out)
	for range out.Parts {
		cd.loadBits(x)
		if err := indices(op, &ck, k, len(x)); err != nil {
			return err
		}
		for i, u := range k {
			k[i] = x[u]
		}
		co.storeBits(k)
	}
	return nil
}

// IndirectGroup is how many partitions share one index list of IndirectCopy.
const IndirectGroup = 16

// IndirectCopy is out[p, i] = data[p, list[i]] for i < valid; later elements of out stay. The 16 partitions of a group share a
// list, which is spread over them: entry i stands at partition i mod 16 of the group (of as many as it has), element i
// div 16. A bad index fails with the earlier groups written.
func IndirectCopy(s *Scratch, out, data, idx *View, valid int) error {
	const op = "IndirectCopy"
	err := checkMove(op, "out", out, out)
	if err == nil {
		err = checkMove(op, "data", data, out)
	}
	if err == nil {
		err = checkIndex(op, idx)
	}
	if err != nil {
		return err
	}
	if data.Parts != out.Parts || idx.Parts != out.Parts {
		return target.Errorf(target.User, "%s: out, data and index have %d, %d and %d partitions; they must agree",
			op, out.Parts, data.Parts, idx.Parts)
	}
	w := idx.Elems()
	if valid < 0 || valid > out.Elems() || w > maxRow/IndirectGroup {
		return target.Errorf(target.User, "%s: %d valid indices, out has %d elements a partition", op, valid, out.Elems())
	}
	for g := 0; g < out.Parts; g += IndirectGroup {
		h := min(IndirectGroup, out.Parts-g)
		if valid > h*w {
			return target.Errorf(target.User, "%s: %d valid indices, the list of partitions %d to %d has %d", op, valid, g, g+h-1, h*w)
		}
	}
	x, k, y := s.u64(0, data.Elems()), s.u64(1, IndirectGroup*w), s.u64(2, valid)
	var cd, ck cursor
	cd.start(data)
	ck.start(idx)
	for g := 0; g < out.Parts; g += IndirectGroup {
		h := min(IndirectGroup, out.Parts-g)
		ck.loadBits(k[:h*w])
		for i := range y {
			u := castInt(target.Int64, idx.Dtype, k[i%h*w+i/h])
			if u >= uint64(len(x)) {
				return target.Errorf(target.User, "%s: index %d is out of [0, %d)", op, int64(u), len(x))
			}
			y[i] = u
		}
		for p := range h {
			cd.loadBits(x)
			r := out.row(g + p)
			var co cursor
			co.start(&r)
			for i, u := range y {
				k[i] = x[u]
			}
			co.storeBits(k[:valid])
		}
	}
	return nil
}

// RowsOf is the row of table that each partition of idx, [p,1], names: what GatherRows reads. An index outside the table
// fails. The list is valid until the next operation with s.
func RowsOf(s *Scratch, table, idx *View) ([]int32, error) {
	const op = "IndirectLoad"
	err := table.Check(op, "table")
	if err == nil {
		err = checkIndex(op, idx)
	}
	if err != nil {
		return nil, err
	}
	if idx.Elems() != 1 {
		return nil, target.Errorf(target.User, "%s: index is %s; it must be one a partition", op, idx.shape())
	}
	if err := s.rows(op, table, idx, false); err != nil {
		return nil, err
	}
	return s.scratchI, nil
}

// rows leaves the row of each partition in scratchI, -1 for one to skip.
func (s *Scratch) rows(op string, table, idx *View, skip bool) error {
	if cap(s.scratchI) < idx.Parts {
		s.scratchI = make([]int32, idx.Parts)
	}
	s.scratchI = s.scratchI[:idx.Parts]
	for p := range s.scratchI {
		u := castInt(target.Int64, idx.Dtype, loadBitsAt(idx.Data, idx.Off+p*idx.PStep, idx.Dtype.Size()))
		switch {
		case u < uint64(table.Parts) && u < 1<<31:
			s.scratchI[p] = int32(u)
		case skip:
			s.scratchI[p] = -1
		default:
			return target.Errorf(target.User, "%s: index %d of partition %d is out of [0, %d)", op, int64(u), p, table.Parts)
		}
	}
	return nil
}

// GatherRows is out[p] = table[idx[p]]: the indirect load. The partitions of table are its rows, as many as there are; idx is
// [p,1]. Types may differ as in Copy. An index outside the table fails before anything is written, or leaves its row of out
// alone when skip is set.
func GatherRows(s *Scratch, out, table, idx *View, skip bool) error {
	const op = "IndirectLoad"
	if err := checkRowMove(s, op, out, table, idx, skip); err != nil {
		return err
	}
	n := out.Elems()
	for p, k := range s.scratchI {
		if k < 0 {
			continue
		}
		src, dst := table.row(int(k)), out.row(p)
		var ci, co cursor
		ci.start(&src)
		co.start(&dst)
		copyN(s, &co, &ci, n)
	}
	return nil
}

// ScatterRows is table[idx[p]] = upd[p], or o(table[idx[p]], upd[p]) for an operator other than bypass, p ascending: the indirect
// save and its accumulating form.
func ScatterRows(s *Scratch, o target.AluOp, table, upd, idx *View, skip bool) error {
	const op = "IndirectSave"
	if err := checkArith(op, o); err != nil {
		return err
	}
	if err := checkRowMove(s, op, upd, table, idx, skip); err != nil {
		return err
	}
	if o != target.AluBypass && (!numeric(table.Dtype) || !numeric(upd.Dtype)) {
		return target.NotSupported(table.Dtype.String(), "%s: no arithmetic on %s and %s", op, table.Dtype, upd.Dtype)
	}
	n := upd.Elems()
	for p, k := range s.scratchI {
		if k < 0 {
			continue
		}
		src, dst := upd.row(p), table.row(int(k))
		var cs, cr, cw cursor
		cs.start(&src)
		cw.start(&dst)
		if o == target.AluBypass {
			copyN(s, &cw, &cs, n)
			continue
		}
		cr.start(&dst)
		accumulateN(s, o, &cw, &cr, &cs, n)
	}
	return nil
}

// checkRowMove checks the three views and leaves the row of each partition in scratchI, -1 for one to skip.
func checkRowMove(s *Scratch, op string, rows, table, idx *View, skip bool) error {
	if err := rows.checkRows(op, "rows"); err != nil {
		return err
	}
	if err := table.Check(op, "table"); err != nil {
		return err
	}
	if err := checkCast(op, table, rows); err != nil {
		return err
	}
	if err := checkIndex(op, idx); err != nil {
		return err
	}
	if rows.Elems() != table.Elems() {
		return target.Errorf(target.User, "%s: rows have %d elements, the table's have %d", op, rows.Elems(), table.Elems())
	}
	if idx.Parts != rows.Parts || idx.Elems() != 1 {
		return target.Errorf(target.User, "%s: index is %s; it must be %d×1", op, idx.shape(), rows.Parts)
	}
	return s.rows(op, table, idx, skip)
}
