package dma

import (
	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const (
	// FirstSemaphore is the first semaphore of the rings; those below belong to the runtime, the engines and barriers.
	FirstSemaphore = 16
	// DefaultSemaphores is the ring length of a queue set when nothing is asked for.
	DefaultSemaphores = 16
	// MaxSemaphores is the longest ring: synchronisation keeps what an engine knows of a ring in one word.
	MaxSemaphores = 32

	numDirs = 3
	numSets = len(target.Sequencers) * numDirs

	partsPerQueue = 8       // one DMA engine serves 8 partitions of a full tile
	bytesPerQueue = 1 << 16 // between DRAM tensors: one full descriptor run
	maxPerSet     = 16
)

// Options are what the command line may change.
type Options struct {
	// SemaphoresPerQueue is the ring length of a queue set; 0 means DefaultSemaphores.
	SemaphoresPerQueue int
}

// Workspace is the storage of AssignQueues, for one worker. The zero value is ready.
type Workspace struct {
	at arena.Column[ir.Inst, uint32] // 1 + position in program order
}

var setNames = func() (names [numSets]string) {
	for e, eng := range target.Sequencers {
		for d, dir := range [numDirs]string{"ld", "st", "cp"} {
			names[e*numDirs+d] = "q" + eng.String() + dir
		}
	}
	return names
}()

// AssignQueues gives every transfer of a function its trigger engine and its queue set, and fills m.Queues.
//
// A transfer that names an engine with a stream other than SP, which is what front ends write for want of a choice, keeps
// it. Otherwise SP triggers loads and copies between DRAM tensors; what leaves the chip is triggered by the engine that wrote its source last in the present order, so that the wait
// for the data costs nothing: SP if that was a transfer itself or nobody, Activation if it was PE, whose stream is kept
// free. Needs the edges of ssa/deps.
//
// A set gets one hardware queue for every 8 partitions of its tallest transfer, between DRAM tensors one for every 64 KiB of
// its largest, at most 16; when all sets together pass the 176 of a package, the widest are halved. Its ring is
// SemaphoresPerQueue semaphores from 16 on, sets in order.
func AssignQueues(m *ir.Module, f ir.Func, opt Options, w *Workspace) error {
	ring := opt.SemaphoresPerQueue
	if ring == 0 {
		ring = DefaultSemaphores
	}
	if ring < 1 || ring > MaxSemaphores {
		return target.Errorf(target.User, "%d semaphores per queue: 1 to %d are possible", ring, MaxSemaphores)
	}
	if m.Funcs.At(f).Flags&ir.FuncHasDeps == 0 {
		return target.Errorf(target.Bug, "assigning queues of %s before its dependences are known", m.Names.String(m.Funcs.At(f).Name))
	}
	w.at.Reset()
	w.at.Resize(m.Insts.Len())
	pos := uint32(0)
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			pos++
			w.at.Set(i, pos)
		}
	}
	var used [numSets]bool
	var queues [numSets]int
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			r := m.Insts.At(i)
			if !r.Op.IsDMA() {
				continue
			}
			if err := Check(m, i); err != nil {
				return err
			}
			r.Engine = w.trigger(m, i)
			s := setOf(m, i, r.Engine)
			used[s] = true
			queues[s] = max(queues[s], width(m, i))
		}
	}
	rows, err := layOut(m, f, ring, &used, &queues)
	if err != nil {
		return err
	}
	for _, b := range m.BlocksOf(f) {
		for _, i := range m.OrderOf(b) {
			if r := m.Insts.At(i); r.Op.IsDMA() {
				r.Queue = rows[setOf(m, i, r.Engine)]
			}
		}
	}
	m.Funcs.At(f).Flags |= ir.FuncQueued
	return nil
}

func (w *Workspace) trigger(m *ir.Module, i ir.Inst) target.Engine {
	if e := m.Insts.At(i).Engine; e.HasStream() && e != target.EngineSP {
		return e
	}
	if dir(m, i) != ir.QueueStore {
		return target.EngineSP
	}
	var last ir.Inst
	for _, d := range m.DepsOf(i) {
		if d.Kind == ir.DepFlow && w.at.Get(d.Inst) > w.at.Get(last) {
			last = d.Inst
		}
	}
	if last == 0 {
		return target.EngineSP
	}
	switch p := m.Insts.At(last); {
	case p.Op.IsDMA() || !p.Engine.HasStream():
		return target.EngineSP
	case p.Engine == target.EnginePE:
		return target.EngineAct
	default:
		return p.Engine
	}
}

// dir is what a transfer carries: into the chip, out of it, or within one of the two.
func dir(m *ir.Module, i ir.Inst) ir.QueueDir {
	src := m.Locs.At(m.LocOf(m.Ins(i)[0])).Space.OnChip()
	dst := m.Locs.At(m.LocOf(m.Outs(i)[0])).Space.OnChip()
	switch {
	case dst && !src:
		return ir.QueueLoad
	case src && !dst:
		return ir.QueueStore
	}
	return ir.QueueCopy
}

func setOf(m *ir.Module, i ir.Inst, e target.Engine) int {
	return e.SeqIndex()*numDirs + int(dir(m, i))
}

// width is the hardware queues that a transfer can keep busy.
func width(m *ir.Module, i ir.Inst) int {
	n := int64(1)
	for _, a := range m.AllArgs(i) {
		row := m.APs.At(a.AP())
		if m.Locs.At(row.Loc).Space.OnChip() {
			n = max(n, (int64(row.Parts)+partsPerQueue-1)/partsPerQueue)
		} else if dir(m, i) == ir.QueueCopy {
			n = max(n, (row.Elems()*int64(row.Dtype.Size())+bytesPerQueue-1)/bytesPerQueue)
		}
	}
	return int(min(n, maxPerSet))
}

// layOut makes the rows of the used sets and gives each its queues and its ring.
func layOut(m *ir.Module, f ir.Func, ring int, used *[numSets]bool, queues *[numSets]int) (rows [numSets]ir.Queue, err error) {
	keep := false
	for g := ir.Func(1); int(g) < m.Funcs.Len(); g++ {
		keep = keep || g != f && m.Funcs.At(g).Flags&ir.FuncQueued != 0
	}
	if keep {
		return rows, target.NotSupported("Call", "queue sets are assigned for one function of a module; %s is the second",
			m.Names.String(m.Funcs.At(f).Name))
	}
	m.Queues.Reset()
	sum, sets := 0, 0
	for s := range used {
		if used[s] {
			sum += queues[s]
			sets++
		}
	}
	if FirstSemaphore+sets*ring > m.Gen.Semaphores {
		return rows, target.Errorf(target.Limit, "%d queue sets with %d semaphores each need %d, the core has %d: lower --num-semaphores-per-queue",
			sets, ring, sets*ring, m.Gen.Semaphores-FirstSemaphore)
	}
	for sum > m.Gen.MaxQueues {
		wide := 0
		for s := range queues {
			if queues[s] >= queues[wide] {
				wide = s
			}
		}
		sum -= queues[wide] / 2
		queues[wide] -= queues[wide] / 2
	}
	base := FirstSemaphore
	for s := range used {
		if !used[s] {
			continue
		}
		rows[s] = m.Queues.Add(ir.QueueRow{
			Name: m.Names.Intern(setNames[s]), Owner: target.Sequencers[s/numDirs], Dir: ir.QueueDir(s % numDirs),
			NumQueues: uint8(queues[s]), SemBase: uint8(base),
		})
		base += ring
	}
	m.SemaphoresPerQueue = int32(ring)
	return rows, nil
}
