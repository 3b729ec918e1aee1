package verify

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Groups proves that accumulation groups are well formed in the final order: a group begins with START, or with a copy of what it adds
// to into just those bytes, every later member has ACCUMULATE, it ends with STOP, and no other write touches its partitions and
// banks while it is open.
func Groups(m *ir.Module, f ir.Func) error {
	p := &problems{m: m}
	type open struct {
		inst ir.Inst // the member that opened the group
		fp   ir.Footprint
	}
	var groups, ready []open // ready are copies that a group may add to
	for _, b := range m.BlocksOf(f) {
		groups, ready = groups[:0], ready[:0]
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			flags := uint64(0)
			if r.Op.Is(ir.FlagMatmul) {
				flags = m.Attr(i, ir.KeyAccumulationFlag)
			}
			for _, a := range m.Outs(i) {
				if a.Kind != ir.ArgAP {
					continue
				}
				fp := m.FootprintOf(a.AP())
				if fp.Space != target.SpacePSUM {
					continue
				}
				mine := -1
				for k := range groups {
					if groups[k].fp == fp && r.Op.Is(ir.FlagMatmul) && flags&ir.GroupStart == 0 {
						mine = k
						continue
					}
					if banksMeet(m, &groups[k].fp, &fp) {
						p.inst(i, "writes PSUM where the group opened by %s is not closed", m.InstName(groups[k].inst))
					}
				}
				to := slices.IndexFunc(ready, func(o open) bool { return o.fp == fp })
				ready = slices.DeleteFunc(ready, func(o open) bool { return o.fp.Overlaps(&fp) })
				if !r.Op.Is(ir.FlagMatmul) {
					if r.Op == ir.OpTensorCopy {
						ready = append(ready, open{i, fp})
					}
					continue
				}
				if mine < 0 && to >= 0 && flags&ir.GroupStart == 0 {
					groups = append(groups, open{i, fp})
					mine = len(groups) - 1
				}
				switch {
				case flags&ir.GroupStart != 0:
					groups = append(groups, open{i, fp})
					mine = len(groups) - 1
				case mine < 0:
					p.inst(i, "continues an accumulation group that no START opened")
					continue
				case flags&ir.GroupAccumulate == 0:
					p.inst(i, "is a later member of its group and neither starts nor accumulates")
				}
				if flags&ir.GroupStop != 0 {
					groups[mine] = groups[len(groups)-1]
					groups = groups[:len(groups)-1]
				}
			}
		}
		for _, g := range groups {
			p.inst(g.inst, "opens an accumulation group that nothing closes")
		}
	}
	return p.err(target.Bug)
}

// banksMeet reports footprints that share a bank and a partition.
func banksMeet(m *ir.Module, a, b *ir.Footprint) bool {
	bank := int64(m.Gen.BankBytes)
	return a.Region == b.Region && a.P0 < b.P1 && b.P0 < a.P1 && a.Lo/bank <= (b.Hi-1)/bank && b.Lo/bank <= (a.Hi-1)/bank
}

// Sync proves the invariant that excludes deadlock: in the one order of each block, the producer of every wait stands
// earlier, and the updates made to the semaphore by then reach the value waited for, whatever the engines' pace. It also
// proves that every semaphore has one producer: one engine, or one ring slot of one queue. An instruction may take back of a
// semaphore of its own engine what it waited for; that makes a wait which is right in every turn of a loop.
func Sync(m *ir.Module, f ir.Func) error {
	p := &problems{m: m}
	type producer struct {
		engine target.Engine
		queue  ir.Queue
		total  int64
		used   bool
	}
	var sems [256]producer
	var point arena.Column[ir.Inst, int32]
	now := int32(0)
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			now++
			r := m.Insts.At(i)
			s := m.Syncs.Get(i)
			for _, w := range m.SyncOps.Of(s.Waits) {
				if int(w.Sem) >= len(sems) {
					p.inst(i, "waits for semaphore %d", w.Sem)
					continue
				}
				if w.From != 0 && point.Get(w.From) == 0 {
					p.inst(i, "waits for %s, which is not earlier in the order", m.InstName(w.From))
				}
				if got := sems[w.Sem].total; got < int64(w.Value) {
					p.inst(i, "waits for semaphore %d to reach %d; everything earlier adds up to %d", w.Sem, w.Value, got)
				}
			}
			for _, u := range m.SyncOps.Of(s.Updates) {
				if int(u.Sem) >= len(sems) || u.Value == 0 || u.Value < 0 && !takesBack(m.SyncOps.Of(s.Waits), u) {
					p.inst(i, "updates semaphore %d by %d", u.Sem, u.Value)
					continue
				}
				q := &sems[u.Sem]
				if q.used && (q.engine != r.Engine || q.queue != r.Queue) && !r.Op.Is(ir.FlagBarrier) {
					p.inst(i, "updates semaphore %d, which %s updates too; a semaphore has one producer", u.Sem, q.engine)
				}
				q.engine, q.queue, q.used = r.Engine, r.Queue, true
				if !r.Op.IsDMA() {
					q.queue = 0
				}
				q.total += int64(u.Value)
			}
			point.Set(i, now)
		}
	}
	return p.err(target.Bug)
}

// takesBack reports an update that lowers a semaphore by no more than its instruction waits for.
func takesBack(waits []ir.SyncOp, u ir.SyncOp) bool {
	for _, w := range waits {
		if w.Sem == u.Sem && w.Value >= -u.Value {
			return true
		}
	}
	return false
}
