package lower

import (
	"io"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Tail encodes one function. It is the storage of encoding and packing, for one worker; the zero value is ready, and a
// second module reuses everything.
type Tail struct {
	m *ir.Module
	f ir.Func

	insts   []isa.Inst // bundles of the instruction at hand
	lead    isa.Inst   // waits that do not fit the first of them
	bundle  isa.Bundle
	buf     []byte
	blocks  uint32 // descriptor blocks of the engine so far
	weights weightState
	names   [][36]byte                    // of queue sets, as triggers spell them
	at      arena.Column[ir.Inst, uint32] // position in program order, from 1
	streams [target.NumEngines][]ir.Inst  // what each engine runs, in schedule order

	// The package under construction.
	pkg      neff.Package
	descs    [numEngines][]neff.Desc
	queueRow arena.Column[ir.Queue, uint32]
	varRow   arena.Column[ir.Loc, uint32]
	scratch  uint32 // row of the variable of internal DRAM
	cut      cutter
	trace    *tracer
}

// begin takes a synchronised function.
func (t *Tail) begin(m *ir.Module, f ir.Func) error {
	t.m, t.f = m, f
	const need = ir.FuncHasDeps | ir.FuncQueued | ir.FuncSynced | ir.FuncGroupsLegal
	if fl := m.Funcs.At(f).Flags; fl&need != need {
		return target.Errorf(target.Bug, "encoding %s before dependences, groups, queues and semaphores are final",
			m.Names.String(m.Funcs.At(f).Name))
	}
	if m.Gen == nil || !m.Gen.CodeGen {
		return target.Errorf(target.Bug, "encoding for a generation without an instruction set")
	}
	t.names = t.names[:0]
	for q := range m.Queues.Len() {
		var in isa.Inst
		in.SetName(m.Names.String(m.Queues.At(ir.Queue(q)).Name))
		t.names = append(t.names, in.Name)
	}
	t.at.Reset()
	t.at.Resize(m.Insts.Len())
	for e := range t.streams {
		t.streams[e] = t.streams[e][:0]
	}
	pos := uint32(0)
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			pos++
			t.at.Set(i, pos)
			if r := m.Insts.At(i); r.Engine < target.NumEngines && !r.Op.Is(ir.FlagTerminator) {
				t.streams[r.Engine] = append(t.streams[r.Engine], i)
			}
		}
	}
	return nil
}

// next is a cleared bundle of the instruction at hand; the pointer is valid until the following call.
func (t *Tail) next(op isa.Opcode) *isa.Inst {
	n := len(t.insts)
	if n < cap(t.insts) {
		t.insts = t.insts[:n+1]
		t.insts[n] = isa.Inst{}
	} else {
		t.insts = append(t.insts, isa.Inst{})
	}
	t.insts[n].Opcode = op
	return &t.insts[n]
}

const flushAt = 1 << 15

// walk encodes the stream of an engine into out, in schedule order; without out it only counts.
func (t *Tail) walk(e target.Engine, out io.Writer) (bundles int64, err error) {
	m := t.m
	t.blocks = 0
	t.weights = weightState{}
	t.buf = t.buf[:0]
	for _, i := range t.streams[e] {
		t.insts = t.insts[:0]
		if err := t.encode(i, m.Insts.At(i)); err != nil {
			return bundles, t.blame(i, err)
		}
		n, err := t.emit(i, out != nil)
		if err != nil {
			return bundles, t.blame(i, err)
		}
		bundles += int64(n)
		if t.trace != nil && out == nil {
			t.trace.note(e, i, n)
		}
		if len(t.buf) >= flushAt {
			if _, err := out.Write(t.buf); err != nil {
				return bundles, err
			}
			t.buf = t.buf[:0]
		}
	}
	if out != nil && len(t.buf) > 0 {
		if _, err := out.Write(t.buf); err != nil {
			return bundles, err
		}
	}
	return bundles, nil
}

// blame names the instruction. What does not fit the wire here should have been refused or split earlier: a bug, unless the
// generation or our subset lacks it altogether.
func (t *Tail) blame(i ir.Inst, err error) error {
	c := target.ClassOf(err)
	if c != target.Unsupported {
		c = target.Bug
	}
	return target.Errorf(c, "%s (%s): %w", t.m.InstName(i), t.m.Insts.At(i).Op, err)
}

// emit puts waits and updates on the bundles of an instruction and encodes them. The last wait is inline in the first
// bundle, the others go two by two into EventSemaphores before it; the update is on the last bundle.
func (t *Tail) emit(i ir.Inst, encode bool) (n int, err error) {
	m := t.m
	row := m.Syncs.Get(i)
	waits := m.SyncOps.Of(row.Waits)
	if len(t.insts) == 0 {
		if len(waits) == 0 && row.Updates.Empty() {
			return 0, nil
		}
		t.next(isa.OpNoOp)
	}
	for len(waits) > 1 {
		e := &t.lead
		*e = isa.Inst{Opcode: isa.OpEventSemaphore}
		e.Sync.WaitMode, e.Sync.WaitSem, e.Sync.Value = isa.WaitGE, uint8(waits[0].Sem), uint32(waits[0].Value)
		k := 1
		if len(waits) > 2 {
			e.Wait1Mode, e.Wait1Sem, e.Wait1Value = isa.WaitGE, uint8(waits[1].Sem), uint32(waits[1].Value)
			k = 2
		}
		waits = waits[k:]
		if err := t.put(e, encode); err != nil {
			return n, err
		}
		n++
	}
	if len(waits) == 1 {
		s := &t.insts[0].Sync
		s.WaitMode, s.WaitSem, s.Value = isa.WaitGE, uint8(waits[0].Sem), uint32(waits[0].Value)
	}
	if ups := m.SyncOps.Of(row.Updates); len(ups) > 0 && !m.Insts.At(i).Op.IsDMA() {
		s := &t.insts[len(t.insts)-1].Sync
		s.UpdateMode, s.UpdateSem = isa.UpdateInc, uint8(ups[0].Sem)
	}
	for k := range t.insts {
		if err := t.put(&t.insts[k], encode); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (t *Tail) put(in *isa.Inst, encode bool) error {
	if !encode {
		return nil
	}
	if err := isa.Encode(t.m.Gen.Level, in, &t.bundle); err != nil {
		return err
	}
	t.buf = append(t.buf, t.bundle[:]...)
	return nil
}
