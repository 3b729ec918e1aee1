package arena

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Each structure is driven by random calls beside a naive model. One instance lives through all cases of a test, so that what a
// Reset leaves behind is found.

// TestMain asks rapid for more and longer cases than its defaults: some faults need a deep heap or a third Reset. Flags given on
// the command line still count.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "1000", "rapid.steps": "60"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

type row struct{ a, b uint32 }
type rowID uint32

func TestTableModel(t *testing.T) {
	var tab Table[rowID, row]
	rapid.Check(t, func(t *rapid.T) {
		tab.Reset()
		model := []row{{}}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := row{rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b")}
				if id := tab.Add(r); int(id) != len(model) {
					t.Fatalf("Add gave id %d, want %d", id, len(model))
				}
				model = append(model, r)
			},
			"write": func(t *rapid.T) {
				if len(model) > 1 {
					i := rapid.IntRange(1, len(model)-1).Draw(t, "i")
					tab.At(rowID(i)).b++
					model[i].b++
				}
			},
			"reserve": func(t *rapid.T) { tab.Reserve(rapid.IntRange(0, 50).Draw(t, "n")) },
			"reset":   func(t *rapid.T) { tab.Reset(); model = model[:1] },
			"": func(t *rapid.T) {
				if tab.Len() != len(model) {
					t.Fatalf("Len %d, want %d", tab.Len(), len(model))
				}
				for i, r := range model {
					if got := *tab.At(rowID(i)); got != r {
						t.Fatalf("row %d is %v, want %v", i, got, r)
					}
				}
				next := rowID(1)
				for id, r := range tab.All() {
					if id != next || *r != model[id] {
						t.Fatalf("All gave %d %v, want %d %v", id, *r, next, model[id])
					}
					next++
				}
				if int(next) != len(model) {
					t.Fatalf("All gave %d rows, want %d", next-1, len(model)-1)
				}
			},
		})
	})
}

func TestColumnModel(t *testing.T) {
	var col Column[rowID, uint32]
	id := rapid.Uint32Range(0, 300)
	rapid.Check(t, func(t *rapid.T) {
		col.Reset()
		model := map[uint32]uint32{}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, v := id.Draw(t, "i"), rapid.Uint32().Draw(t, "v")
				col.Set(rowID(i), v)
				model[i] = v
			},
			"ptr": func(t *rapid.T) {
				i := id.Draw(t, "i")
				*col.Ptr(rowID(i)) += 7
				model[i] += 7
			},
			"resize": func(t *rapid.T) {
				n := id.Draw(t, "n")
				col.Resize(int(n))
				maps.DeleteFunc(model, func(i, _ uint32) bool { return i >= n })
				if len(col.Slice()) != int(n) {
					t.Fatalf("Slice has %d values after Resize(%d)", len(col.Slice()), n)
				}
			},
			"reset": func(t *rapid.T) { col.Reset(); clear(model) },
			"": func(t *rapid.T) {
				for i := range uint32(310) {
					if got := col.Get(rowID(i)); got != model[i] {
						t.Fatalf("value of %d is %d, want %d", i, got, model[i])
					}
				}
				for i, v := range col.Slice() {
					if v != model[uint32(i)] {
						t.Fatalf("Slice()[%d] is %d, want %d", i, v, model[uint32(i)])
					}
				}
			},
		})
	})
}

func TestPoolModel(t *testing.T) {
	var pool Pool[uint32]
	list := rapid.SliceOfN(rapid.Uint32(), 0, 9)
	rapid.Check(t, func(t *rapid.T) {
		pool.Reset()
		type entry struct {
			span Span
			want []uint32
		}
		var model []entry
		total := 0
		put := func(s Span, want []uint32) {
			model = append(model, entry{s, want})
			total += len(want)
			if len(want) == 0 && s != (Span{}) {
				t.Fatalf("empty list is %v, want the zero Span", s)
			}
			if int(s.Len) != len(want) || s.Empty() != (len(want) == 0) || s.End() != s.Off+s.Len {
				t.Fatalf("span %v for %d elements", s, len(want))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add":   func(t *rapid.T) { xs := list.Draw(t, "xs"); put(pool.Add(xs...), xs) },
			"slice": func(t *rapid.T) { xs := list.Draw(t, "xs"); put(pool.AddSlice(xs), xs) },
			"alloc": func(t *rapid.T) {
				n := rapid.IntRange(0, 9).Draw(t, "n")
				put(pool.Alloc(n), make([]uint32, n))
			},
			"push": func(t *rapid.T) {
				xs := list.Draw(t, "xs")
				mark := pool.Mark()
				for _, x := range xs {
					pool.Push(x)
				}
				put(pool.Since(mark), xs)
			},
			"abandon": func(t *rapid.T) {
				mark := pool.Mark()
				for _, x := range list.Draw(t, "xs") {
					pool.Push(x)
				}
				pool.Truncate(mark)
			},
			"copy": func(t *rapid.T) {
				if len(model) > 0 {
					e := rapid.SampledFrom(model).Draw(t, "e")
					put(pool.AddSlice(pool.Of(e.span)), slices.Clone(e.want))
				}
			},
			"write": func(t *rapid.T) {
				if len(model) > 0 {
					e := rapid.SampledFrom(model).Draw(t, "e")
					if len(e.want) > 0 {
						pool.Of(e.span)[0]++
						e.want[0]++
					}
					_ = append(pool.Of(e.span), 99)
				}
			},
			"reserve": func(t *rapid.T) { pool.Reserve(rapid.IntRange(0, 40).Draw(t, "n")) },
			"reset":   func(t *rapid.T) { pool.Reset(); model = nil; total = 0 },
			"": func(t *rapid.T) {
				if pool.Len() != total {
					t.Fatalf("Len %d, want %d", pool.Len(), total)
				}
				for _, e := range model {
					if !slices.Equal(pool.Of(e.span), e.want) {
						t.Fatalf("list %v is %v, want %v", e.span, pool.Of(e.span), e.want)
					}
				}
			},
		})
	})
}

func TestNamesModel(t *testing.T) {
	var names Names
	piece := rapid.SampledFrom([]string{"x", "", ".", "a.b", ".spill3", ".t0", ".t00", ".u4294967295", ".u4294967296", ".clone", "7",
		".home12", ".split1", "reload2", ".reload2", "%", "é", "\x00"})
	text := rapid.Custom(func(t *rapid.T) string {
		s := ""
		for range rapid.IntRange(0, 5).Draw(t, "pieces") {
			s += piece.Draw(t, "piece")
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		names.Reset()
		byText := map[string]Name{"": 0}
		byName := map[Name]string{0: ""}
		learn := func(x Name, s string) {
			if got := names.String(x); got != s {
				t.Fatalf("name %d is spelled %q, want %q", x, got, s)
			}
			if y, ok := byText[s]; ok && y != x {
				t.Fatalf("%q has the names %d and %d", s, y, x)
			}
			byText[s], byName[x] = x, s
		}
		sync := func() { // take in the parents that Intern made
			for x := range Name(names.Len()) {
				if _, ok := byName[x]; !ok {
					learn(x, names.String(x))
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"intern": func(t *rapid.T) { s := text.Draw(t, "s"); learn(names.Intern(s), s); sync() },
			"bytes": func(t *rapid.T) {
				s := text.Draw(t, "s")
				b := []byte(s)
				x := names.InternBytes(b)
				for i := range b {
					b[i] = '!'
				}
				learn(x, s)
				sync()
			},
			"derive": func(t *rapid.T) {
				p := Name(rapid.IntRange(0, names.Len()-1).Draw(t, "parent"))
				k := Derive(rapid.IntRange(0, int(deriveCount)-1).Draw(t, "kind"))
				o := rapid.Uint32().Draw(t, "ordinal")
				s := byName[p]
				if k != DeriveNone {
					s = fmt.Sprintf("%s.%s%d", s, k, o)
				}
				x := names.Derived(p, k, o)
				learn(x, s)
				if k != DeriveNone {
					if gp, gk, g := names.Origin(x); gp != p || gk != k || g != o {
						t.Fatalf("origin of %q is %d %v %d, want %d %v %d", s, gp, gk, g, p, k, o)
					}
				}
				if names.Root(x) != names.Root(p) {
					t.Fatalf("root of %q is %d, that of its parent %d", s, names.Root(x), names.Root(p))
				}
			},
			"lookup": func(t *rapid.T) {
				s := text.Draw(t, "s")
				x, ok := names.Lookup(s)
				if want, has := byText[s]; ok != has || x != want {
					t.Fatalf("Lookup(%q) is %d %v, want %d %v", s, x, ok, want, has)
				}
			},
			"reserve": func(t *rapid.T) { names.Reserve(rapid.IntRange(0, 200).Draw(t, "n"), 10) },
			"reset": func(t *rapid.T) {
				names.Reset()
				byText, byName = map[string]Name{"": 0}, map[Name]string{0: ""}
			},
			"": func(t *rapid.T) {
				if names.Len() != len(byName) {
					t.Fatalf("Len %d, want %d", names.Len(), len(byName))
				}
				for x := range Name(names.Len()) {
					if got, ok := names.Lookup(byName[x]); !ok || got != x {
						t.Fatalf("Lookup(%q) is %d %v, want %d", byName[x], got, ok, x)
					}
					if got := string(names.Append([]byte("<"), x)); got != "<"+byName[x] {
						t.Fatalf("Append gave %q, want %q", got, "<"+byName[x])
					}
				}
			},
		})
	})
}

func TestSparseSetModel(t *testing.T) {
	var set SparseSet
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "universe")
		set.Resize(n)
		var model []uint32
		elem := rapid.Custom(func(t *rapid.T) uint32 { return uint32(rapid.IntRange(0, n-1).Draw(t, "x")) })
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				x := elem.Draw(t, "x")
				isNew := !slices.Contains(model, x)
				if set.Add(x) != isNew {
					t.Fatalf("Add(%d) is %v", x, !isNew)
				}
				if isNew {
					model = append(model, x)
				}
			},
			"remove": func(t *rapid.T) {
				x := elem.Draw(t, "x")
				i := slices.Index(model, x)
				if set.Remove(x) != (i >= 0) {
					t.Fatalf("Remove(%d) is %v", x, i < 0)
				}
				if i >= 0 {
					end := len(model) - 1
					model[i] = model[end]
					model = model[:end]
				}
			},
			"pop": func(t *rapid.T) {
				x, ok := set.Pop()
				if ok != (len(model) > 0) {
					t.Fatalf("Pop gave ok %v with %d members", ok, len(model))
				}
				if ok {
					if want := model[len(model)-1]; x != want {
						t.Fatalf("Pop gave %d, want %d", x, want)
					}
					model = model[:len(model)-1]
				}
			},
			"clear":  func(t *rapid.T) { set.Clear(); model = model[:0] },
			"resize": func(t *rapid.T) { n = rapid.IntRange(1, 80).Draw(t, "n"); set.Resize(n); model = model[:0] },
			"": func(t *rapid.T) {
				if !slices.Equal(set.Members(), model) || set.Len() != len(model) {
					t.Fatalf("members %v, want %v", set.Members(), model)
				}
				for x := range uint32(90) {
					if set.Has(x) != slices.Contains(model, x) {
						t.Fatalf("Has(%d) is %v, members %v", x, set.Has(x), model)
					}
				}
			},
		})
	})
}

func TestBitMatrixModel(t *testing.T) {
	var m BitMatrix
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		m.Resize(n)
		model := map[[2]uint32]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				a := uint32(rapid.IntRange(0, n-1).Draw(t, "a"))
				b := uint32(rapid.IntRange(0, n-1).Draw(t, "b"))
				key := [2]uint32{min(a, b), max(a, b)}
				if got, want := m.Set(a, b), a != b && !model[key]; got != want {
					t.Fatalf("Set(%d, %d) is %v, want %v", a, b, got, want)
				}
				if a != b {
					model[key] = true
				}
			},
			"resize": func(t *rapid.T) {
				n = rapid.IntRange(1, 40).Draw(t, "n")
				m.Resize(n)
				clear(model)
			},
			"": func(t *rapid.T) {
				for a := range uint32(n) {
					for b := range uint32(n) {
						if got, want := m.Has(a, b), model[[2]uint32{min(a, b), max(a, b)}]; got != want {
							t.Fatalf("Has(%d, %d) is %v, want %v", a, b, got, want)
						}
					}
				}
			},
		})
	})
}

func TestAdjacencyModel(t *testing.T) {
	var g Adjacency
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "nodes")
		node := rapid.Custom(func(t *rapid.T) uint32 { return uint32(rapid.IntRange(0, n-1).Draw(t, "x")) })
		edges := rapid.SliceOf(rapid.Custom(func(t *rapid.T) [2]uint32 {
			return [2]uint32{node.Draw(t, "a"), node.Draw(t, "b")}
		})).Draw(t, "edges")
		g.Begin(n)
		for _, e := range slices.Backward(edges) { // the order of counting does not matter
			g.Count(e[0], e[1])
		}
		g.Fill()
		want := make([][]uint32, n)
		stored := 0
		for _, e := range edges {
			g.Put(e[0], e[1])
			if e[0] != e[1] {
				want[e[0]] = append(want[e[0]], e[1])
				want[e[1]] = append(want[e[1]], e[0])
				stored++
			}
		}
		g.Finish()
		if g.Len() != n || g.Edges() != stored {
			t.Fatalf("%d nodes, %d edges, want %d, %d", g.Len(), g.Edges(), n, stored)
		}
		for a := range uint32(n) {
			if !slices.Equal(g.Neighbours(a), want[a]) || g.Degree(a) != len(want[a]) {
				t.Fatalf("node %d: degree %d, neighbours %v, want %v", a, g.Degree(a), g.Neighbours(a), want[a])
			}
		}
	})
}

func TestHeapModel(t *testing.T) {
	var h Heap
	prio := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "universe")
		h.Reset(n)
		model := map[uint32]int64{}
		elem := rapid.Custom(func(t *rapid.T) uint32 { return uint32(rapid.IntRange(0, n-1).Draw(t, "x")) })
		first := func() (x uint32, p int64) {
			found := false
			for y, q := range model {
				if !found || q < p || q == p && y < x {
					x, p, found = y, q, true
				}
			}
			return x, p
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) { x, p := elem.Draw(t, "x"), prio.Draw(t, "p"); h.Push(x, p); model[x] = p },
			"update": func(t *rapid.T) {
				x, p := elem.Draw(t, "x"), prio.Draw(t, "p")
				_, in := model[x]
				if h.Update(x, p) != in {
					t.Fatalf("Update(%d) is %v", x, !in)
				}
				if in {
					model[x] = p
				}
			},
			"remove": func(t *rapid.T) {
				x := elem.Draw(t, "x")
				_, in := model[x]
				if h.Remove(x) != in {
					t.Fatalf("Remove(%d) is %v", x, !in)
				}
				delete(model, x)
			},
			"pop": func(t *rapid.T) {
				if len(model) > 0 {
					wx, wp := first()
					if x, p := h.Pop(); x != wx || p != wp {
						t.Fatalf("Pop gave %d %d, want %d %d", x, p, wx, wp)
					}
					delete(model, wx)
				}
			},
			"reset": func(t *rapid.T) { n = rapid.IntRange(1, 60).Draw(t, "n"); h.Reset(n); clear(model) },
			"": func(t *rapid.T) {
				if h.Len() != len(model) {
					t.Fatalf("Len %d, want %d", h.Len(), len(model))
				}
				for x := range uint32(70) {
					want, in := model[x]
					if p, ok := h.Priority(x); ok != in || p != want || h.Has(x) != in {
						t.Fatalf("priority of %d is %d %v, want %d %v", x, p, ok, want, in)
					}
				}
				if len(model) > 0 {
					wx, wp := first()
					if x, p := h.Peek(); x != wx || p != wp {
						t.Fatalf("Peek gave %d %d, want %d %d", x, p, wx, wp)
					}
				}
			},
		})
	})
}

func TestScratchModel(t *testing.T) {
	var s Scratch[uint32]
	rapid.Check(t, func(t *rapid.T) {
		s.Reset()
		var taken [][]uint32
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, 40).Draw(t, "n")
				xs := s.Take(n)
				if len(xs) != n || slices.ContainsFunc(xs, func(x uint32) bool { return x != 0 }) {
					t.Fatalf("Take(%d) gave %v", n, xs)
				}
				taken = append(taken, xs)
			},
			"dirty": func(t *rapid.T) {
				n := rapid.IntRange(0, 40).Draw(t, "n")
				xs := s.TakeDirty(n)
				if len(xs) != n {
					t.Fatalf("TakeDirty(%d) has length %d", n, len(xs))
				}
				taken = append(taken, xs)
			},
			"reset": func(t *rapid.T) { s.Reset(); taken = nil },
			"": func(t *rapid.T) {
				for i, xs := range taken {
					for j := range xs {
						xs[j] = uint32(i + 1)
					}
					_ = append(xs, 99)
				}
				for i, xs := range taken {
					if slices.ContainsFunc(xs, func(x uint32) bool { return x != uint32(i+1) }) {
						t.Fatalf("slice %d of %d is shared: %v", i, len(taken), xs)
					}
				}
			},
		})
	})
}
