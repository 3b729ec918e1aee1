package lower

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// hb is what must have happened before, from the semaphores alone: node 2k is the start of instruction k of the order (a
// trigger's issue), node 2k+1 its end (a transfer's completion). The only facts used are: a stream runs in order, a
// transfer completes some time after its trigger, a semaphore counts what adds to it.
type hb struct {
	m     *ir.Module
	order []ir.Inst
	preds [][]int // direct predecessors
	waits [][]int // those that are waits, by instruction
}

func newHB(t *rapid.T, m *ir.Module, blk ir.Block) *hb {
	h := &hb{m: m, order: m.OrderOf(blk)}
	n := len(h.order)
	h.preds, h.waits = make([][]int, 2*n), make([][]int, n)
	type add struct {
		k  int
		by int32
	}
	adds := map[uint16][]add{} // by semaphore, in order
	last := map[target.Engine]int{}
	for k, i := range h.order {
		r := m.Insts.At(i)
		if p, ok := last[r.Engine]; ok {
			node := 2*p + 1
			if m.Insts.At(h.order[p]).Op.IsDMA() {
				node = 2 * p
			}
			h.preds[2*k] = append(h.preds[2*k], node)
		}
		last[r.Engine] = k
		h.preds[2*k+1] = append(h.preds[2*k+1], 2*k)
		row := m.Syncs.Get(i)
		for _, w := range m.SyncOps.Of(row.Waits) {
			sum, at := int32(0), -1
			for _, a := range adds[w.Sem] {
				if sum < w.Value {
					sum, at = sum+a.by, a.k
				}
			}
			if sum != w.Value || at < 0 {
				t.Fatalf("%s waits for semaphore %d >= %d: the producers before it in the schedule reach %d", m.InstName(i), w.Sem, w.Value, sum)
			}
			if h.order[at] != w.From {
				t.Fatalf("%s waits for %s, the semaphore says %s", m.InstName(i), m.InstName(w.From), m.InstName(h.order[at]))
			}
			h.waits[k] = append(h.waits[k], 2*at+1)
			h.preds[2*k] = append(h.preds[2*k], 2*at+1)
		}
		ups := m.SyncOps.Of(row.Updates)
		if len(ups) > 1 || r.Op.IsDMA() && len(ups) != 1 {
			t.Fatalf("%s has %d updates", m.InstName(i), len(ups))
		}
		for _, u := range ups {
			q := m.Queues.At(r.Queue)
			if r.Op.IsDMA() {
				if int(u.Sem) < int(q.SemBase) || int(u.Sem) >= int(q.SemBase)+int(m.SemaphoresPerQueue) || u.Value != int32(q.NumQueues) {
					t.Fatalf("%s adds %d to semaphore %d; its ring starts at %d", m.InstName(i), u.Value, u.Sem, q.SemBase)
				}
			} else if u.Sem != uint16(FirstEngineSem+r.Engine.SeqIndex()) || u.Value != 1 {
				t.Fatalf("%s on %s adds %d to semaphore %d", m.InstName(i), r.Engine, u.Value, u.Sem)
			}
			adds[u.Sem] = append(adds[u.Sem], add{k, u.Value})
		}
	}
	// A count on a ring means the transfers in trigger order only if none starts before its slot is free.
	before := map[uint16]int{}
	for k, i := range h.order {
		if !m.Insts.At(i).Op.IsDMA() {
			continue
		}
		sem := m.SyncOps.Of(m.Syncs.Get(i).Updates)[0].Sem
		if p, ok := before[sem]; ok && !h.reaches(2*p+1, 2*k, -1) {
			t.Fatalf("%s starts before %s is known to be complete, on the same semaphore %d", m.InstName(i), m.InstName(h.order[p]), sem)
		}
		before[sem] = k
	}
	return h
}

// reaches reports whether a happens before b, not using the direct edge skip -> b.
func (h *hb) reaches(a, b, skip int) bool {
	seen := map[int]bool{}
	stack := []int{b}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, p := range h.preds[n] {
			if n == b && p == skip {
				continue
			}
			if p == a {
				return true
			}
			if !seen[p] && p >= a-1 {
				seen[p] = true
				stack = append(stack, p)
			}
		}
	}
	return false
}

// Every dependence is a happens-before of the semaphores, rings are never overrun, producers come first, and no wait is
// implied by the others.
func TestSyncCoversDependences(t *testing.T) {
	var p prog
	rapid.Check(t, func(t *rapid.T) {
		p.random(t, 70)
		ring := rapid.SampledFrom([]int{1, 2, 3, 16}).Draw(t, "ring")
		p.tail(t, rapid.Bool().Draw(t, "schedule"), dma.Options{SemaphoresPerQueue: ring})
		m := &p.m
		h := newHB(t, m, p.b.Block)
		at := map[ir.Inst]int{}
		for k, i := range h.order {
			at[i] = k
			for _, d := range m.DepsOf(i) {
				if !h.reaches(2*at[d.Inst]+1, 2*k, -1) &&
					!(m.Insts.At(d.Inst).Engine == m.Insts.At(i).Engine && !m.Insts.At(d.Inst).Op.IsDMA()) {
					t.Fatalf("%s (%s) may start before %s (%s) ends (%s)", m.InstName(i), m.Insts.At(i).Op, m.InstName(d.Inst),
						m.Insts.At(d.Inst).Op, d.Kind)
				}
			}
			for _, w := range h.waits[k] {
				if h.reaches(w, 2*k, w) {
					t.Fatalf("%s: the wait for %s is implied by the others", m.InstName(i), m.InstName(h.order[w/2]))
				}
			}
		}
	})
}

// A load of many tiles by one reader: the ring bounds the waits, and the oldest transfers need none.
func TestSyncRingBoundsWaits(t *testing.T) {
	var p prog
	p.init(30, 40)
	for k := range 40 {
		p.load(p.sb[k], k)
	}
	var is []ir.Inst
	for k := 39; k > 0; k-- {
		is = append(is, p.add(target.EngineDVE, p.sb[0], p.sb[0], p.sb[k]))
	}
	st := p.tail(t, false, dma.Options{})
	total := 0
	for _, i := range is {
		total += int(p.m.Syncs.Get(i).Waits.Len)
	}
	if total != 16 {
		t.Errorf("%d waits for 40 loads in a ring of 16; the last 16 need one each", total)
	}
	if st.Rings != 24 {
		t.Errorf("%d waits for ring slots, want 24", st.Rings)
	}
}

// The example of the IR notes: relu(AᵀB), waits and updates by hand.
func TestSyncExample(t *testing.T) {
	var p prog
	p.init(30, 4)
	a := p.load(p.sb[0], 0)
	b := p.load(p.sb[1], 1)
	mm := p.matmul(p.psum[0], p.sb[1], p.sb[0], 3)
	act := p.act(target.ActRelu, p.sb[2], p.psum[0])
	save := p.save(p.sb[2], 0)
	p.tail(t, false, dma.Options{})
	m := &p.m
	show := func(i ir.Inst) string {
		r := m.Syncs.Get(i)
		s := ""
		for _, w := range m.SyncOps.Of(r.Waits) {
			s += fmt.Sprintf("[%d>=%d]", w.Sem, w.Value)
		}
		for _, u := range m.SyncOps.Of(r.Updates) {
			s += fmt.Sprintf("%d+=%d", u.Sem, u.Value)
		}
		return s
	}
	// Sets in order: qActivationst from 16, qSPld from 32; each tile takes 16 queues.
	for _, c := range []struct {
		name string
		i    ir.Inst
		want string
	}{
		{"load A", a, "32+=16"}, {"load B", b, "33+=16"}, {"matmul", mm, "[32>=16][33>=16]5+=1"},
		{"relu", act, "[5>=1]"}, {"save", save, "16+=16"},
	} {
		if got := show(c.i); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestActTables(t *testing.T) {
	var p prog
	p.init(30, 4)
	for _, f := range []target.ActFunc{target.ActRelu, target.ActExp, target.ActRelu, target.ActLn, target.ActTanh, target.ActExp} {
		p.act(f, p.sb[0], p.sb[1])
	}
	p.b.Close()
	if n := ActTables(&p.m, p.b.Func, &p.edits); n != 3 {
		t.Errorf("%d loads, want 3", n)
	}
	got := ""
	for _, i := range p.m.OrderOf(p.b.Block) {
		if p.m.Insts.At(i).Op == ir.OpLoadActFuncSet {
			got += fmt.Sprintf("%d ", p.m.AttrInt(i, ir.KeyActFuncSet))
		} else {
			got += target.ActFunc(p.m.Attr(i, ir.KeyFunc)).String() + " "
		}
	}
	if want := "Relu 1 Exp Relu Ln 4 Tanh 1 Exp "; got != want {
		t.Errorf("stream %q, want %q", got, want)
	}
	if n := ActTables(&p.m, p.b.Func, &p.edits); n != 0 {
		t.Errorf("a second run adds %d loads", n)
	}
}

func TestSyncRefuses(t *testing.T) {
	var p prog
	p.init(30, 2)
	p.b.Emit(ir.OpAllEngineBarrier, target.EngineAll, nil, nil)
	p.b.Close()
	p.m.Funcs.At(p.b.Func).Flags |= ir.FuncHasDeps | ir.FuncQueued
	p.m.SemaphoresPerQueue = 16
	if _, err := Sync(&p.m, p.b.Func, &p.sync); target.ClassOf(err) != target.Unsupported {
		t.Errorf("a barrier: %v", err)
	}
	p.m.Funcs.At(p.b.Func).Flags = 0
	if _, err := Sync(&p.m, p.b.Func, &p.sync); target.ClassOf(err) != target.Bug {
		t.Errorf("without queues: %v", err)
	}
}

func TestSyncAllocatesNothing(t *testing.T) {
	var p prog
	p.chain(300)
	p.tail(t, true, dma.Options{})
	if n := testing.AllocsPerRun(3, func() {
		if _, err := Sync(&p.m, p.b.Func, &p.sync); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSync(b *testing.B) {
	var p prog
	const n = 5000
	p.chain(n)
	p.tail(b, true, dma.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Sync(&p.m, p.b.Func, &p.sync); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*n)*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}
