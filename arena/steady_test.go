package arena

import (
	"fmt"
	"testing"
)

// workload is one round of use of each structure at a given size: reset, fill, read. The same rounds are what the tests of steady
// state count allocations in and what the benchmarks time, so that a benchmark never times something else than what is promised.
type workload struct {
	name  string
	round func(n int)
}

// lcg gives the same numbers on every run (Numerical Recipes' constants).
type lcg uint32

func (s *lcg) next() uint32 {
	*s = *s*1664525 + 1013904223
	return uint32(*s >> 4)
}

// sink keeps the compiler from dropping reads.
var sink uint64

// workloads returns fresh structures, with texts for up to n names.
func workloads(n int) []workload {
	var (
		tab     Table[rowID, row]
		col     Column[rowID, uint32]
		pool    Pool[uint32]
		names   Names
		interns Names
		set     SparseSet
		matrix  BitMatrix
		graph   Adjacency
		heap    Heap
		scratch Scratch[uint64]
		buf     []byte
		texts   = make([][]byte, n)
	)
	for i := range texts {
		texts[i] = fmt.Appendf(nil, "fusion.%d/dot", i)
	}
	return []workload{
		{"Table", func(n int) {
			tab.Reset()
			for i := range n {
				tab.Add(row{uint32(i), 1})
			}
			for _, r := range tab.All() {
				sink += uint64(r.a)
			}
			for i := range n {
				sink += uint64(tab.At(rowID(i + 1)).b)
			}
		}},
		{"Column", func(n int) {
			col.Reset()
			for i := range n {
				col.Set(rowID(i), uint32(i))
			}
			for i := range n {
				*col.Ptr(rowID(i)) += col.Get(rowID(n - i))
			}
		}},
		{"Pool", func(n int) {
			pool.Reset()
			for i := 0; i < n; i += 8 {
				a := pool.Add(uint32(i), 2, 3)
				b := pool.AddSlice(pool.Of(a))
				m := pool.Mark()
				pool.Push(uint32(b.Len))
				pool.Push(2)
				sink += uint64(pool.Of(pool.Since(m))[1])
			}
		}},
		{"NamesIntern", func(n int) { // all new each round
			names.Reset()
			for _, s := range texts[:n] {
				names.InternBytes(s)
			}
		}},
		{"NamesHit", func(n int) {
			for _, s := range texts[:n] {
				sink += uint64(interns.InternBytes(s))
			}
		}},
		{"NamesDerived", func(n int) {
			names.Reset()
			x := names.InternBytes(texts[0])
			for i := range n {
				y := names.Derived(x, DeriveSpill, uint32(i))
				buf = names.Append(buf[:0], y)
				sink += uint64(len(buf))
			}
		}},
		{"SparseSet", func(n int) {
			set.Resize(n)
			rng := lcg(1)
			for range n {
				if x := rng.next() % uint32(n); !set.Add(x) {
					set.Remove(x)
				}
			}
			for _, x := range set.Members() {
				sink += uint64(x)
			}
			set.Clear()
		}},
		{"BitMatrix", func(n int) { // n pairs among 4,096 nodes: 1 MiB
			const nodes = 4096
			matrix.Resize(nodes)
			rng := lcg(1)
			for range n {
				if matrix.Set(rng.next()%nodes, rng.next()%nodes) {
					sink++
				}
			}
		}},
		{"Adjacency", func(n int) { // n edges among n/8 nodes, each to a near one, as live ranges have them
			nodes := uint32(n/8 + 64)
			graph.Begin(int(nodes))
			rng := lcg(1)
			for i := range uint32(n) {
				graph.Count(i/8, i/8+rng.next()%64)
			}
			graph.Fill()
			rng = 1
			for i := range uint32(n) {
				graph.Put(i/8, i/8+rng.next()%64)
			}
			graph.Finish()
			for a := range nodes {
				for _, b := range graph.Neighbours(a) {
					sink += uint64(b)
				}
			}
		}},
		{"Heap", func(n int) { // each queued, each changed once, all taken out
			heap.Reset(n)
			rng := lcg(1)
			for i := range uint32(n) {
				heap.Push(i, int64(rng.next()))
			}
			for i := range uint32(n) {
				heap.Update(i, int64(rng.next()))
			}
			for heap.Len() > 0 {
				x, _ := heap.Pop()
				sink += uint64(x)
			}
		}},
		{"Scratch", func(n int) {
			scratch.Reset()
			for i := 0; i < n; i += 64 {
				scratch.Take(48)[0] = 1
				scratch.TakeDirty(16)[0] = 1
			}
		}},
	}
}

// TestSteadyState checks that a second round of the same size allocates nothing, and neither does a smaller one.
func TestSteadyState(t *testing.T) {
	const n = 2000
	for _, w := range workloads(n) {
		w.round(n)
		w.round(n) // a Scratch that grew in its first round holds all of it from the second on
		if got := testing.AllocsPerRun(5, func() { w.round(n) }); got != 0 {
			t.Errorf("%s allocates %v times in a round it has had before, want 0", w.name, got)
		}
		if got := testing.AllocsPerRun(5, func() { w.round(n / 3) }); got != 0 {
			t.Errorf("%s allocates %v times in a smaller round, want 0", w.name, got)
		}
	}
}

// TestMillion runs every structure at the size of a large module.
func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("a million elements in each structure")
	}
	const n = 1 << 20
	for _, w := range workloads(n) {
		t.Run(w.name, func(t *testing.T) { w.round(n) })
	}
}

// BenchmarkArena times rounds of 1,000, 32,000 and a million elements; ns/elem that stays level from one to the next, but for the
// caches, shows that nothing is worse than linear.
func BenchmarkArena(b *testing.B) {
	const most = 1 << 20
	for _, w := range workloads(most) {
		for _, n := range []int{1 << 10, 1 << 15, most} {
			b.Run(fmt.Sprintf("%s/n=%d", w.name, n), func(b *testing.B) {
				w.round(n)
				w.round(n)
				b.ReportAllocs()
				for b.Loop() {
					w.round(n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/elem")
			})
		}
	}
}

// BenchmarkResetAfterLarge times a small round in structures that once were large: it must cost what a small one costs.
func BenchmarkResetAfterLarge(b *testing.B) {
	const large, small = 1 << 20, 1 << 6
	for _, w := range workloads(large) {
		if w.name == "BitMatrix" {
			continue // its size is the same in all rounds
		}
		b.Run(w.name, func(b *testing.B) {
			w.round(large)
			w.round(small)
			b.ReportAllocs()
			for b.Loop() {
				w.round(small)
			}
		})
	}
}
