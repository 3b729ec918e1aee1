package lower

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Semaphores of the producing engines: FirstEngineSem + the engine's place in target.Sequencers, which is Pool 3,
// Activation 4, PE 5, DVE 6, SP 7. 0 to 2 belong to the runtime, 8 to barriers.
const FirstEngineSem = 3

const numEngines = len(target.Sequencers)

// SyncStats counts what synchronisation did.
type SyncStats struct {
	Insts   int
	Deps    int // dependences that cross engines or wait for a transfer
	Waits   int // what is left of them and of the rings
	Updates int // engine instructions that somebody awaits
	Rings   int // waits of a trigger for its own ring slot
}

// SyncSpace is the storage of Sync, for one worker. The zero value is ready.
type SyncSpace struct {
	rec    arena.Column[ir.Inst, syncRec]
	rings  []ringState
	slots  []ir.Inst // last transfer of each ring slot, by set
	cands  []cand
	vers   []uint32 // snapshots of knowledge, one after the other
	cur    []uint32 // what each engine knows now
	stride int
	ring   uint32
}

// syncRec is an instruction that has its place: pos in program order from 1, seq in its engine's stream from 1, the
// snapshot of what its engine knew when it ran, and for a transfer its number in the set.
type syncRec struct {
	pos, seq, ver, num uint32
	awaited            bool
	engine             uint8 // place in target.Sequencers
	count              int32 // value of the engine's semaphore after its update
}

type ringState struct {
	num    uint32 // transfers so far
	base   uint16
	queues int32
}

type cand struct {
	pos  uint32
	inst ir.Inst
}

// Knowledge is a vector: for each engine the last instruction of its stream that has surely run, then for each queue set a
// pair: 1 + the last transfer that is surely complete, and a mask of those before it (bit d: d transfers earlier). What lies a
// whole ring behind is complete as well, because a slot is reused only when its engine knew so. An engine learns when it
// waits: it then knows what the awaited engine, or the trigger of the awaited transfer, knew.

func ringHas(v []uint32, at int, num, ring uint32) bool {
	last := v[at]
	if num >= last {
		return false
	}
	d := last - 1 - num
	return d >= ring || v[at+1]>>d&1 != 0
}

func ringAdd(v []uint32, at int, num uint32) {
	if last := v[at]; num >= last {
		v[at], v[at+1] = num+1, shift(v[at+1], num+1-last)|1
	} else if d := last - 1 - num; d < 32 {
		v[at+1] |= 1 << d
	}
}

func shift(mask, by uint32) uint32 {
	if by >= 32 {
		return 0
	}
	return mask << by
}

// learn merges the knowledge b into a.
func (s *SyncSpace) learn(a, b []uint32) {
	for e := range numEngines {
		a[e] = max(a[e], b[e])
	}
	for k := numEngines; k < s.stride; k += 2 {
		if a[k] >= b[k] {
			a[k+1] |= shift(b[k+1], a[k]-b[k])
		} else {
			a[k], a[k+1] = b[k], b[k+1]|shift(a[k+1], b[k]-a[k])
		}
	}
}

func (s *SyncSpace) know(e int) []uint32 { return s.cur[e*s.stride : (e+1)*s.stride] }

// knows reports whether the engine knows that the instruction has run, or that the transfer is complete.
func (s *SyncSpace) knows(v []uint32, e int, r *syncRec, q ir.Queue) bool {
	if q != 0 {
		return ringHas(v, numEngines+2*int(q-1), r.num, s.ring)
	}
	return int(r.engine) == e || v[r.engine] >= r.seq
}

// Sync gives the instructions of a straight-line function their waits and updates, in m.Syncs. Needs edges, the final order and
// queues. Allocates nothing when it runs again.
//
// An engine instruction that another engine awaits adds 1 to its engine's semaphore, and a wait is for the running count. A
// transfer uses slot number mod R of its set's ring, adds the set's queues to it, and is awaited by everybody, its own
// engine and other transfers included; its trigger waits until the transfer that had the slot before is known to be complete.
// Waits that other waits imply are left out. Engines run and retire in order, so an engine never waits for itself.
func Sync(m *ir.Module, f ir.Func, s *SyncSpace) (SyncStats, error) {
	var st SyncStats
	const need = ir.FuncHasDeps | ir.FuncQueued
	if fl := m.Funcs.At(f).Flags; fl&need != need {
		return st, target.Errorf(target.Bug, "synchronising %s before its dependences and queues are known", m.Names.String(m.Funcs.At(f).Name))
	}
	if err := s.begin(m); err != nil {
		return st, err
	}
	pos := uint32(0)
	var seq [numEngines]uint32
	var ver [numEngines]uint32
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			if r.Op.Is(ir.FlagTerminator) {
				continue
			}
			if r.Op.Is(ir.FlagBarrier | ir.FlagRegion) {
				return st, target.NotSupported(r.Op.String(), "%s (%s): synchronisation takes straight-line code of one core without barriers",
					m.InstName(i), r.Op)
			}
			if !r.Engine.HasStream() {
				// No pass chooses the engine of a computation: it comes with the program.
				return st, target.Errorf(target.User, "%s (%s) runs on %s, which has no instruction stream; name the engine in the program", m.InstName(i), r.Op, r.Engine)
			}
			e := r.Engine.SeqIndex()
			pos++
			seq[e]++
			rec := s.rec.Ptr(i)
			*rec = syncRec{pos: pos, seq: seq[e], engine: uint8(e)}
			st.Insts++
			if err := s.wants(m, i, rec, &st); err != nil {
				return st, err
			}
			if waits := s.settle(m, i, e, &st); waits {
				ver[e] = uint32(len(s.vers) / s.stride)
				s.vers = append(s.vers, s.know(e)...)
			}
			rec.ver = ver[e]
			s.know(e)[e] = seq[e]
		}
	}
	s.number(m, f, &st)
	m.Funcs.At(f).Flags |= ir.FuncSynced
	return st, nil
}

func (s *SyncSpace) begin(m *ir.Module) error {
	sets := m.Queues.Len() - 1
	s.ring = uint32(m.SemaphoresPerQueue)
	if s.ring < 1 || s.ring > 32 {
		return target.Errorf(target.User, "the module has rings of %d semaphores for its queue sets; 1 to 32 are possible; run alloc_queues first", s.ring)
	}
	s.stride = numEngines + 2*sets
	s.rings = s.rings[:0]
	for q := ir.Queue(1); int(q) <= sets; q++ {
		r := m.Queues.At(q)
		s.rings = append(s.rings, ringState{base: uint16(r.SemBase), queues: int32(r.NumQueues)})
	}
	s.slots = arena.Zeroed(s.slots, sets*int(s.ring))
	s.cur = arena.Zeroed(s.cur, numEngines*s.stride)
	s.vers = append(s.vers[:0], s.cur[:s.stride]...) // snapshot 0: nothing known
	s.rec.Reset()
	s.rec.Resize(m.Insts.Len())
	m.Syncs.Reset()
	m.Syncs.Resize(m.Insts.Len())
	m.SyncOps.Reset()
	return nil
}

// wants lists what the instruction must know before it starts and its engine does not know yet.
func (s *SyncSpace) wants(m *ir.Module, i ir.Inst, rec *syncRec, st *SyncStats) error {
	s.cands = s.cands[:0]
	e := int(rec.engine)
	v := s.know(e)
	var newest [numEngines]cand
	for _, d := range m.DepsOf(i) {
		p := s.rec.Ptr(d.Inst)
		if p.pos == 0 || p.pos >= rec.pos {
			return target.Errorf(target.Bug, "%s depends on %s, which does not come before it in the schedule", m.InstName(i), m.InstName(d.Inst))
		}
		q := ir.Queue(0)
		if pr := m.Insts.At(d.Inst); pr.Op.IsDMA() {
			q = pr.Queue
		}
		if q != 0 || int(p.engine) != e {
			st.Deps++
		}
		if s.knows(v, e, p, q) {
			continue
		}
		if q != 0 {
			s.cands = append(s.cands, cand{p.pos, d.Inst})
		} else if c := &newest[p.engine]; p.pos > c.pos {
			*c = cand{p.pos, d.Inst}
		}
	}
	for _, c := range newest {
		if c.pos != 0 {
			s.cands = append(s.cands, c)
		}
	}
	r := m.Insts.At(i)
	if !r.Op.IsDMA() {
		return nil
	}
	if r.Queue == 0 || int(r.Queue) > len(s.rings) || m.Queues.At(r.Queue).Owner != r.Engine {
		return target.Errorf(target.Bug, "%s is triggered by %s but has no queue set of it", m.InstName(i), r.Engine)
	}
	ring := &s.rings[r.Queue-1]
	rec.num = ring.num
	ring.num++
	slot := &s.slots[uint32(r.Queue-1)*s.ring+rec.num%s.ring]
	if before := *slot; before != 0 {
		if p := s.rec.Ptr(before); !s.knows(v, e, p, r.Queue) {
			s.cands = append(s.cands, cand{p.pos, before})
			st.Rings++
		}
	}
	*slot = i
	return nil
}

// settle turns the candidates into waits, newest first: a newer producer may imply an older one, never the other way round.
func (s *SyncSpace) settle(m *ir.Module, i ir.Inst, e int, st *SyncStats) bool {
	if len(s.cands) == 0 {
		return false
	}
	if len(s.cands) > 1 {
		slices.SortFunc(s.cands, func(a, b cand) int { return int(int64(b.pos) - int64(a.pos)) })
	}
	v := s.know(e)
	mark := m.SyncOps.Mark()
	for _, c := range s.cands {
		p := s.rec.Ptr(c.inst)
		pr := m.Insts.At(c.inst)
		q := ir.Queue(0)
		if pr.Op.IsDMA() {
			q = pr.Queue
		}
		if s.knows(v, e, p, q) {
			continue
		}
		at := int(p.ver) * s.stride
		s.learn(v, s.vers[at:at+s.stride])
		v[p.engine] = max(v[p.engine], p.seq)
		op := ir.SyncOp{From: c.inst}
		if q == 0 {
			op.Sem = uint16(FirstEngineSem + int(p.engine))
			p.awaited = true
		} else {
			ringAdd(v, numEngines+2*int(q-1), p.num)
			r := &s.rings[q-1]
			op.Sem = r.base + uint16(p.num%s.ring)
			op.Value = r.queues * int32(p.num/s.ring+1)
		}
		m.SyncOps.Push(op)
		st.Waits++
	}
	span := m.SyncOps.Since(mark)
	slices.Reverse(m.SyncOps.Of(span))
	m.Syncs.Ptr(i).Waits = span
	return true
}

// number counts the updates of each engine and fills the wait values that depend on them.
func (s *SyncSpace) number(m *ir.Module, f ir.Func, st *SyncStats) {
	var count [numEngines]int32
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			rec := s.rec.Ptr(i)
			row := m.Syncs.Ptr(i)
			ops := m.SyncOps.Of(row.Waits)
			for k := range ops {
				if ops[k].Value == 0 {
					ops[k].Value = s.rec.Ptr(ops[k].From).count
				}
			}
			switch {
			case rec.pos == 0:
			case m.Insts.At(i).Op.IsDMA():
				r := &s.rings[m.Insts.At(i).Queue-1]
				row.Updates = m.SyncOps.Add(ir.SyncOp{Sem: r.base + uint16(rec.num%s.ring), Value: r.queues})
			case rec.awaited:
				count[rec.engine]++
				rec.count = count[rec.engine]
				row.Updates = m.SyncOps.Add(ir.SyncOp{Sem: uint16(FirstEngineSem + int(rec.engine)), Value: 1})
				st.Updates++
			}
		}
	}
}
