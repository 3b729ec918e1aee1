package machine

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

func raceOf(t *testing.T, a *asm) *Report {
	t.Helper()
	r, err := Race(a.reread())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRaceExample(t *testing.T) {
	type changes = map[string]func(*asm, *isa.Sync)
	drop := func(a *asm, s *isa.Sync) { s.WaitMode, s.WaitSem, s.Value = 0, 0, 0 }
	lower := func(a *asm, s *isa.Sync) { s.Value-- }
	for _, level := range []int{20, 30, 40} {
		r := raceOf(t, example(t, level, nil))
		if err := r.Err(); err != nil || r.Bundles != 9 || r.Transfers != 3 || r.Accesses == 0 {
			t.Errorf("level %d: %v, %+v", level, err, r)
		}
	}
	for _, c := range []struct {
		name  string
		f     func(*asm, *isa.Sync)
		words []string
	}{
		{"wait A", drop, []string{"SBUF partitions 0 to 32, bytes 20480 to 20992", "write: block 1 of SP 0: dma_trigger", "read: PE 0: load_weights"}},
		{"matmul", drop, []string{"block 2 of SP 1: dma_trigger", "PE 2: matmul"}},
		{"wait A", lower, []string{"block 1 of SP 0", "PE 1: load_weights"}},
		{"relu", drop, []string{"PSUM partitions 0 to 128, bytes 4096 to 4352", "write: PE", "read: Activation 0: activate"}},
	} {
		err := raceOf(t, example(t, 30, changes{c.name: c.f})).Err()
		wantError(t, err, target.User, c.words...)
	}
	// A wait for what never comes.
	_, err := Race(example(t, 30, changes{"relu": func(a *asm, s *isa.Sync) { s.Value = 2 }}).reread())
	wantError(t, err, target.User, "deadlock", "Activation 0", "semaphore 5 >= 2; it is 1")
}

func TestRaceRing(t *testing.T) {
	build := func(wait bool) *asm {
		a := newAsm(t, 30)
		vx := a.variable("x", neff.VarInput, 1<<16)
		a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 128, 256, 256), a.sbSide(sbA, 128, 256))
		if wait {
			a.wait(sp, 16, 4)
		}
		a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 128, 256, 256), a.sbSide(sbB, 128, 256))
		a.wait(dve, 16, 8)
		a.add(dve, isa.Sync{}, sbY, sbA, sbB, 128, 64)
		return a
	}
	if err := raceOf(t, build(true)).Err(); err != nil {
		t.Error(err)
	}
	r := raceOf(t, build(false))
	if r.Early != 1 || r.Total != 0 {
		t.Errorf("%+v", r)
	}
	wantError(t, r.Err(), target.User, "ring slot reused early: semaphore 16", "block 1 of SP 0", "block 2 of SP 1")
}

// Parts of one transfer run in any order, descriptors of a part do not.
func TestRaceInsideBlock(t *testing.T) {
	build := func(change func(d []neff.Desc)) *asm {
		a := newAsm(t, 30)
		vx := a.variable("x", neff.VarInput, 1<<16)
		a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 128, 256, 256), a.sbSide(sbA, 128, 256))
		change(a.p.Engines[sp].Descs)
		return a
	}
	over := func(d []neff.Desc) { d[2].To.Off = d[1].To.Off }
	r := raceOf(t, build(over))
	if r.Total != 1 || !strings.Contains(r.Err().Error(), "SBUF partitions 32 to 64") {
		t.Errorf("two parts write the same bytes: %v", r.Err())
	}
	if err := raceOf(t, build(func(d []neff.Desc) {
		over(d)
		d[1].Sem, d[1].SemInc, d[2].SemInc = 0, 0, 2
	})).Err(); err != nil {
		t.Errorf("two descriptors of one part: %v", err)
	}
	// Two parts read what one of them writes.
	r = raceOf(t, build(func(d []neff.Desc) {
		tile := d[0].To
		for i := range d {
			d[i].From = tile
			d[i].To.Off += 0x1000
		}
		d[3].To = tile
	}))
	if r.Total == 0 {
		t.Error("a part writes what another reads: no race found")
	}
}

func TestRaceRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		build func(a *asm)
		want  string
	}{
		"two engines": {func(a *asm) {
			a.emit(pe, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, 9)})
			a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, 9)})
		}, "semaphore 9 has two producers: bundles of PE and bundles of DVE"},
		"engine and ring": {func(a *asm) {
			vx := a.variable("x", neff.VarInput, 1<<16)
			a.emit(dve, isa.Inst{Opcode: isa.OpNoOp, Sync: inc(isa.Sync{}, 16)})
			a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 128, 256, 256), a.sbSide(sbA, 128, 256))
		}, "bundles of DVE and transfers of SP"},
		"decrement": {func(a *asm) {
			a.emit(pe, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{UpdateMode: isa.UpdateDec, UpdateSem: 9}})
		}, "update mode 0x14"},
		"event": {func(a *asm) {
			a.emit(pe, isa.Inst{Opcode: isa.OpNoOp, Sync: isa.Sync{WaitMode: isa.WaitEvent, WaitSem: 9}})
		}, "event 9"},
		"reset": {func(a *asm) {
			a.emit(pe, isa.Inst{Opcode: isa.OpGroupReset, Mode: isa.ResetRange, SemFirst: 3, SemLast: 7})
		}, "group_reset"},
		"odd barrier": {func(a *asm) {
			a.emit(pe, isa.Inst{Opcode: isa.OpBarrier, Sync: inc(waitGE(8, 4), 8)})
		}, "waits for 4"},
	} {
		a := newAsm(t, 30)
		c.build(a)
		_, err := Race(a.reread())
		if err == nil || target.ClassOf(err) != target.Unsupported || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	a := newAsm(t, 30)
	vx := a.variable("x", neff.VarInput, 1<<16)
	a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 128, 256, 256), a.sbSide(sbA, 128, 256))
	d := a.p.Engines[sp].Descs
	d[2].SemInc, d[3].Sem, d[3].SemInc = 2, 0, 0
	_, err := Race(a.reread())
	wantError(t, err, target.User, "whose completion no semaphore reports")
}

func TestRaceBarrier(t *testing.T) {
	build := func(barriers int) *asm {
		a := newAsm(t, 30)
		for i := range 2 {
			for e := range 5 {
				if e == dve {
					a.add(dve, isa.Sync{}, sbY, sbA, sbB, 128, 64)
				}
				if e == pool {
					a.add(pool, isa.Sync{}, sbA, sbB, sbB, 128, 64)
				}
				for range barriers {
					a.emit(e, isa.Inst{Opcode: isa.OpBarrier, Sync: inc(waitGE(8, 5*uint32(i+1)), 8)})
				}
			}
		}
		return a
	}
	// Even with barriers between the rounds the two engines meet inside a round.
	if r := raceOf(t, build(0)); r.Total == 0 {
		t.Error("no race without barriers")
	}
	if r := raceOf(t, build(1)); r.Total == 0 || r.Total > 2 {
		t.Errorf("%d races; each of two rounds has one", r.Total)
	}
}

// A program that branches is followed; sites are bundles, not executions.
func TestRaceBranch(t *testing.T) {
	a := newAsm(t, 30)
	a.emit(dve, isa.Inst{Opcode: isa.OpRegisterMove, Mode: 1, Imm0Src: 1, RegDst: 1, DtDst: target.Int32})
	a.add(dve, isa.Sync{}, sbA, sbA, sbB, 128, 64)
	a.emit(dve, isa.Inst{Opcode: isa.OpRegisterAlu, Op0: target.AluAdd, DtSrc: target.Int32, DtSrc1: target.Int32, Imm0Src: 1, RegA: 1, RegDst: 1, Imm64: 1})
	a.emit(dve, isa.Inst{Opcode: isa.OpBranch, Cmp: isa.CmpLTImm, DtSrc: target.Int32, RegA: 1, Base: 7, Target: 1})
	a.add(pool, isa.Sync{}, sbY, sbA, sbB, 128, 64)
	r := raceOf(t, a)
	if r.Bundles != 1+7*3+1 || r.Total == 0 || !strings.Contains(r.Err().Error(), "DVE 1: tensor_tensor") {
		t.Errorf("%+v\n%v", r, r.Err())
	}
}

// model is a program of small accesses with what happens before what, found by search.
type model struct {
	nodes []node
	sems  [256][]int // nodes that add to it, in order
	cum   [256][]int
}

// node is a bundle, or the whole of a transfer.
type node struct {
	preds []int
	acc   []access
}

func (m *model) before(a, b int) bool {
	seen := make([]bool, len(m.nodes))
	stack := []int{b}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n == a {
			return true
		}
		for _, p := range m.nodes[n].preds {
			if !seen[p] {
				seen[p] = true
				stack = append(stack, p)
			}
		}
	}
	return false
}

// bytesOfAccess lists (partition, byte) pairs.
func bytesOfAccess(a *access, visit func(space uint32, p, b int)) {
	var idx [4]int
	for {
		p, at := a.part, a.off
		for d := range a.n {
			p += idx[d] * a.dp[d]
			at += idx[d] * a.step[d]
		}
		for q := range a.parts {
			for b := range a.dt.Size() {
				visit(a.space, p+q, at+b)
			}
		}
		d := 0
		for ; d < a.n; d++ {
			if idx[d]++; idx[d] < a.num[d] {
				break
			}
			idx[d] = 0
		}
		if d == a.n {
			return
		}
	}
}

// races compares all pairs of accesses byte by byte.
func (m *model) races() bool {
	type key struct {
		space uint32
		p, b  int
	}
	type use struct {
		node  int
		write bool
	}
	uses := map[key][]use{}
	for i := range m.nodes {
		for k := range m.nodes[i].acc {
			a := &m.nodes[i].acc[k]
			bytesOfAccess(a, func(space uint32, p, b int) {
				k := key{space, p, b}
				if l := uses[k]; len(l) > 0 && l[len(l)-1] == (use{i, a.write}) {
					return
				}
				uses[k] = append(uses[k], use{i, a.write})
			})
		}
	}
	type pair [2]int
	known := map[pair]bool{}
	for _, l := range uses {
		for i := range l {
			for j := range i {
				a, b := l[j], l[i]
				if a.node == b.node || !a.write && !b.write {
					continue
				}
				ok, seen := known[pair{a.node, b.node}]
				if !seen {
					ok = m.before(a.node, b.node) || m.before(b.node, a.node)
					known[pair{a.node, b.node}] = ok
				}
				if !ok {
					return true
				}
			}
		}
	}
	return false
}

// Race agrees with a search over all pairs on random programs, some of which lack waits.
func TestRaceAgreesWithSearch(t *testing.T) {
	found, clean := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		a := newAsm(t, 30)
		scratch := a.variable("scratch", neff.VarTmpBuf, 1<<16)
		var m model
		var lastOf [5]int
		for e := range lastOf {
			lastOf[e] = -1
		}
		var l layout
		if err := l.open(a.p, a.gen); err != nil {
			rt.Fatal(err)
		}
		careful := rapid.IntRange(0, 100).Draw(rt, "careful")
		add := func(e int, preds []int) int {
			n := len(m.nodes)
			if e >= 0 {
				if lastOf[e] >= 0 {
					preds = append(preds, lastOf[e])
				}
				lastOf[e] = n
			}
			m.nodes = append(m.nodes, node{preds: preds})
			return n
		}
		update := func(s, n, by int) {
			total := by
			if k := len(m.cum[s]); k > 0 {
				total += m.cum[s][k-1]
			}
			m.sems[s], m.cum[s] = append(m.sems[s], n), append(m.cum[s], total)
		}
		// waitFor emits the wait for the k-th growth of a semaphore and gives its node.
		waitFor := func(e, s, k int) {
			v := m.cum[s][k]
			if s >= 16 && rapid.IntRange(0, 9).Draw(rt, "short") == 0 {
				v-- // the transfer is triggered and not complete
				a.wait(e, uint8(s), uint32(v))
				preds := []int{m.nodes[m.sems[s][k]].preds[0]}
				if k > 0 {
					preds = append(preds, m.sems[s][k-1])
				}
				add(e, preds)
				return
			}
			a.wait(e, uint8(s), uint32(v))
			add(e, []int{m.sems[s][k]})
		}
		// A tile of up to 4 axes; partitions and bytes are few, so that tiles meet.
		tile := func() (isa.Desc, int) {
			parts := rapid.SampledFrom([]int{1, 10, 32, 40, 64, 128}).Draw(rt, "parts")
			start := 0
			if parts <= 32 {
				start = 32 * rapid.IntRange(0, 3).Draw(rt, "start")
			}
			d := isa.Desc{Addr: isa.SBAddr(start, 0x4FF0+4*uint32(rapid.IntRange(0, 12).Draw(rt, "off")))}
			d.N = uint32(rapid.IntRange(1, 3).Draw(rt, "axes"))
			for i := range d.N {
				d.Step[i] = int32(rapid.IntRange(1, 6).Draw(rt, "step"))
				d.Num[i] = uint32(rapid.IntRange(2, 4).Draw(rt, "num"))
			}
			return d, parts
		}
		side := func(onChip bool) neff.Side {
			s := neff.Side{Var: scratch, N: 2, Size: [4]uint32{4 * uint32(rapid.IntRange(1, 3).Draw(rt, "run")), uint32(rapid.SampledFrom([]int{1, 4, 8}).Draw(rt, "rows"))}}
			s.Off = 4 * int64(rapid.IntRange(0, 16).Draw(rt, "at"))
			s.Step = [4]int64{1, 4 * int64(rapid.IntRange(1, 5).Draw(rt, "pitch"))}
			if onChip {
				s.Var = 1
				s.Off = int64(isa.SBAddr(rapid.IntRange(8, 100).Draw(rt, "partition"), 0x4FF0)) + s.Off
				s.Step[1] = int64(rapid.IntRange(-1, 2).Draw(rt, "dp"))*target.SBPartitionPitch + 4*int64(rapid.IntRange(0, 3).Draw(rt, "db"))
				if s.Step[1] == 0 {
					s.Step[1] = target.SBPartitionPitch
				}
			}
			return s
		}
		for range rapid.IntRange(2, 30).Draw(rt, "n") {
			e := rapid.IntRange(0, 4).Draw(rt, "engine")
			// Wait for some of what others produced.
			for s := range m.sems {
				if len(m.sems[s]) > 0 && rapid.IntRange(0, 100).Draw(rt, "wait") < careful {
					k := len(m.sems[s]) - 1
					if rapid.IntRange(0, 3).Draw(rt, "older") == 0 {
						k = rapid.IntRange(0, k).Draw(rt, "which")
					}
					waitFor(e, s, k)
				}
			}
			if e == sp || rapid.IntRange(0, 3).Draw(rt, "dma") == 0 {
				s := 16 + 8*e + rapid.IntRange(0, 1).Draw(rt, "slot")
				if k := len(m.sems[s]) - 1; k >= 0 { // the ring's rule
					a.wait(e, uint8(s), uint32(m.cum[s][k]))
					add(e, []int{m.sems[s][k]})
				}
				if e == pool && rapid.Bool().Draw(rt, "gather") {
					in := isa.Inst{Opcode: isa.OpIndirectDMA, DtSrc: target.Int32, Count: uint32(rapid.IntRange(1, 40).Draw(rt, "indices")), Count1: 1, Var: scratch, Count2: 4,
						VarOff: 4 * uint32(rapid.IntRange(0, 16).Draw(rt, "at")), Imm1: uint32(rapid.IntRange(1, 3).Draw(rt, "row")), Imm2: uint32(rapid.IntRange(1, 8).Draw(rt, "rows")),
						Steps: [4]int32{int32(rapid.IntRange(1, 2).Draw(rt, "step")), int32(rapid.IntRange(0, 5).Draw(rt, "pitch"))}, Sem: uint8(s), SemInc: 3}
					in.Ptr = isa.SBAddr(rapid.IntRange(0, 80).Draw(rt, "partition"), 0x4FF0+4*uint32(rapid.IntRange(0, 12).Draw(rt, "index")))
					in.Imm0 = isa.SBAddr(rapid.IntRange(0, 80).Draw(rt, "partition"), 0x4FF0+4*uint32(rapid.IntRange(0, 12).Draw(rt, "data")))
					a.emit(e, in)
					trigger := add(e, nil)
					n := add(-1, []int{trigger})
					var q gather
					var regs [64]uint32
					if err := l.bindGather(&q, &in, &regs); err != nil {
						rt.Fatal(err)
					}
					m.nodes[n].acc = []access{q.index, q.table, q.to}
					update(s, n, 3)
					continue
				}
				from, to := side(rapid.Bool().Draw(rt, "from chip")), side(rapid.Bool().Draw(rt, "to chip"))
				to.Size[0], to.Size[1] = from.Size[0], from.Size[1]
				if to.Step[1] < int64(to.Size[0]) && to.Step[1] > 0 {
					to.Step[1] = int64(to.Size[0])
				}
				id := a.next[e]
				a.next[e]++
				in := isa.Inst{Opcode: isa.OpDMATrigger, Block: id}
				in.SetName("q" + target.Sequencers[e].String())
				a.emit(e, in)
				d := neff.Desc{ID: id, Queue: uint32(e + 1), From: from, To: to, Sem: uint8(s), SemInc: 3}
				a.p.Engines[e].Descs = append(a.p.Engines[e].Descs, d)
				trigger := add(e, nil)
				n := add(-1, []int{trigger})
				var x, y access
				if err := l.bindDescriptor(&d, &x, &y); err != nil {
					rt.Skip(err)
				}
				m.nodes[n].acc = []access{x, y}
				update(s, n, 3)
				continue
			}
			engine := [5]int{pool, act, dve, dve, 0}[e]
			if e == pe {
				engine = dve // PE has no plain copies
				if rapid.Bool().Draw(rt, "pool instead") {
					engine = pool
				}
			}
			src, parts := tile()
			dst, _ := tile()
			dst.Addr = isa.SBAddr(int(src.Addr/target.SBPartitionPitch), dst.Addr%target.SBPartitionPitch)
			dst.N, dst.Num = src.N, src.Num
			for i := range dst.N {
				if dst.Step[i] == 0 {
					dst.Step[i] = 1
				}
			}
			for i := dst.N; i < 4; i++ {
				dst.Step[i] = 0
			}
			in := isa.Inst{Opcode: isa.OpTensorCopy, Src: src, Dst: dst, DtSrc: target.Float32, DtDst: target.Float32, Parts: uint8(parts)}
			updates := rapid.Bool().Draw(rt, "update")
			if updates {
				in.Sync = inc(isa.Sync{}, uint8(3+engine))
			}
			a.emit(engine, in)
			n := add(engine, nil)
			var regs [64]uint32
			var x, y access
			if l.bindDesc(&x, &src, &regs, target.Float32, parts, "in") != nil || l.bindDesc(&y, &dst, &regs, target.Float32, parts, "out") != nil {
				rt.Fatal("tile out of bounds")
			}
			y.write = true
			m.nodes[n].acc = []access{x, y}
			if updates {
				update(3+engine, n, 1)
			}
		}
		r, err := Race(a.p)
		if err != nil {
			rt.Fatal(err)
		}
		if r.Early != 0 {
			rt.Fatalf("%v", r.Err())
		}
		want := m.races()
		if want != (r.Total > 0) {
			rt.Fatalf("search says race %v, Race found %d\n%v", want, r.Total, r.Err())
		}
		if want {
			found++
		} else {
			clean++
		}
	})
	t.Logf("%d with races, %d without", found, clean)
	if found == 0 || clean == 0 {
		t.Errorf("%d programs with races and %d without: both kinds must occur", found, clean)
	}
}

// chain is rounds of load, product, activation, save through rotating tiles, synchronised as a compiler would.
func chain(tb testing.TB, rounds int) *asm {
	a := newAsm(tb, 30)
	vx, vy := a.variable("x", neff.VarInput, 1<<20), a.variable("y", neff.VarOutput, 1<<20)
	const tiles = 8
	for k := range rounds {
		t, r := k%tiles, uint32(k/tiles)
		x, y := isa.SBAddr(0, uint32(0x5000+512*t)), isa.SBAddr(0, uint32(0x8000+512*t))
		ps := isa.PSUMAddr(0, t%4, 0)
		load, save := uint8(16+t), uint8(32+t)
		if r > 0 {
			a.wait(sp, load, 4*r, semPE, uint32(k-tiles+1))
		}
		a.dma(sp, isa.Sync{}, load, dram(vx, 512*t, 128, 512, 4096), a.sbSide(x, 128, 512))
		if k >= 4 {
			a.wait(pe, semAct, uint32(k-3))
		}
		a.matmul(waitGE(load, 4*(r+1)), inc(isa.Sync{}, semPE), ps, x, x, 128, 128, 128, false)
		if r > 0 {
			a.wait(act, save, 4*r)
		}
		a.emit(act, isa.Inst{Opcode: isa.OpActivate, Sync: inc(waitGE(semPE, uint32(k+1)), semAct), Src: desc(ps, 128), Dst: desc(y, 128),
			DtSrc: target.Float32, DtSrc1: target.Float32, DtDst: target.Float32, Parts: 128, Func: target.ActRelu, Acc: target.AccZeroAccumulate,
			Imm0Src: isa.SrcInline, Imm0: math.Float32bits(1), Imm1Src: isa.SrcInline})
		a.dma(act, isa.Sync{}, save, a.sbSide(y, 128, 512), dram(vy, 512*t, 128, 512, 4096))
	}
	return a
}

func TestRaceChain(t *testing.T) {
	r := raceOf(t, chain(t, 100))
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkRace(b *testing.B) {
	a := chain(b, 4000)
	var n, bundles int64
	b.ReportAllocs()
	for b.Loop() {
		r, err := Race(a.p)
		if err != nil || r.Total != 0 {
			b.Fatal(err, r)
		}
		n += r.Accesses
		bundles += r.Bundles
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "accesses/s")
	b.ReportMetric(float64(bundles)/b.Elapsed().Seconds(), "bundles/s")
}
