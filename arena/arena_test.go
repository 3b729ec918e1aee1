package arena

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name string
		got  uintptr
		want uintptr
	}{
		{"Span", unsafe.Sizeof(Span{}), 8},
		{"Name", unsafe.Sizeof(Name(0)), 4},
		{"nameRow", unsafe.Sizeof(nameRow{}), 16},
		{"heapEntry", unsafe.Sizeof(heapEntry{}), 16},
		{"Table", unsafe.Sizeof(Table[rowID, row]{}), 24},
		{"Column", unsafe.Sizeof(Column[rowID, row]{}), 24},
		{"Pool", unsafe.Sizeof(Pool[row]{}), 24},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

// TestBytes checks Bytes against the capacity that a Reserve or Resize from empty must give.
func TestBytes(t *testing.T) {
	var tab Table[rowID, row]
	tab.Reserve(1000)
	var col Column[rowID, uint64]
	col.Resize(1000)
	var pool Pool[uint32]
	pool.Reserve(1000)
	var names Names
	names.Reserve(1000, 5000)
	var set SparseSet
	set.Resize(1000)
	var m BitMatrix
	m.Resize(1000)
	var g Adjacency
	g.Begin(1000)
	g.Count(1, 2)
	g.Fill()
	var h Heap
	h.Reset(1000)
	var s Scratch[uint16]
	s.Take(1000)
	for _, c := range []struct {
		name       string
		got, least int
	}{
		{"Table", Held(&tab), 1001 * 8},
		{"Column", Held(&col), 1000 * 8},
		{"Pool", Held(&pool), 1000 * 4},
		{"Names", Held(&names), 1001*16 + 5000 + 2048*8},
		{"SparseSet", Held(&set), 1000 * 8},
		{"BitMatrix", Held(&m), MatrixBytes(1000)},
		{"Adjacency", Held(&g), 1000*4 + 1001*4 + 2*4},
		{"Heap", Held(&h), 1000 * 4},
		{"Scratch", Held(&s), 1000 * 2},
	} {
		if c.got < c.least || c.got > c.least*3/2 {
			t.Errorf("%s reports %d bytes, want %d to %d", c.name, c.got, c.least, c.least*3/2)
		}
	}
	if got, want := MatrixBytes(16384), 16<<20-1024; got != want { // 16384·16383/2 bits
		t.Errorf("a matrix of 16384 nodes takes %d bytes, want %d", got, want)
	}
}

// TestZeroValues checks that everything may be asked of structures that were never written.
func TestZeroValues(t *testing.T) {
	var tab Table[rowID, row]
	if tab.Len() != 1 || *tab.At(0) != (row{}) || tab.Rows() != nil || Held(&tab) != 0 {
		t.Error("zero Table is not empty")
	}
	tab.Reset()
	for id := range tab.All() {
		t.Errorf("zero Table has the id %d", id)
	}
	var col Column[rowID, row]
	if col.Get(7) != (row{}) || len(col.Slice()) != 0 {
		t.Error("zero Column is not zero")
	}
	var pool Pool[row]
	if len(pool.Of(Span{})) != 0 || pool.Since(pool.Mark()) != (Span{}) {
		t.Error("zero Pool is not empty")
	}
	var names Names
	if x, ok := names.Lookup("x"); ok || x != 0 {
		t.Error("zero Names knows x")
	}
	if x, ok := names.Lookup(""); !ok || x != 0 || names.Len() != 1 || names.String(0) != "" || names.InternBytes(nil) != 0 {
		t.Error("zero Names does not know the empty text")
	}
	if names.Derived(0, DeriveNone, 3) != 0 || names.Root(0) != 0 {
		t.Error("zero Names derives from nothing")
	}
	names.Reset()
	var set SparseSet
	if _, ok := set.Pop(); ok || set.Has(0) || set.Remove(0) {
		t.Error("zero SparseSet is not empty")
	}
	var g Adjacency
	g.Begin(0)
	g.Fill()
	g.Finish()
	if g.Edges() != 0 {
		t.Error("empty graph has edges")
	}
	var h Heap
	if h.Has(0) || h.Remove(0) || h.Update(0, 1) {
		t.Error("zero Heap is not empty")
	}
	var s Scratch[row]
	if len(s.Take(0)) != 0 {
		t.Error("zero Scratch gives elements")
	}
	var r Report
	if r.Total() != 0 || len(r.Entries()) != 0 {
		t.Error("zero Report is not empty")
	}
}

// TestPanics checks that misuse is named. Structures of elements without size reach the limits of uint32 for nothing.
func TestPanics(t *testing.T) {
	type none struct{}
	for _, c := range []struct {
		name, want string
		do         func()
	}{
		{"table full", "table of arena.none is full: all 4294967295 ids", func() {
			tab := Table[rowID, none]{rows: make([]none, math.MaxUint32)}
			if id := tab.Add(none{}); id != math.MaxUint32 {
				panic(fmt.Sprintf("the last id is %d", id))
			}
			tab.Add(none{})
		}},
		{"foreign id", "id 5 is not in this table of arena.row: its ids end at 1", func() {
			var tab Table[rowID, row]
			tab.Add(row{})
			tab.At(5)
		}},
		{"pool full by slice", "pool of arena.none is full: it holds 4294967290 elements, 6 more", func() {
			p := Pool[none]{items: make([]none, math.MaxUint32-5)}
			p.Add(none{}, none{}, none{}, none{}, none{}, none{})
		}},
		{"pool full by alloc", "6 more pass the limit", func() {
			p := Pool[none]{items: make([]none, math.MaxUint32-5)}
			p.Alloc(6)
		}},
		{"pool full by push", "it holds 4294967295 elements, 1 more", func() {
			p := Pool[none]{items: make([]none, math.MaxUint32-5)}
			for range 6 {
				p.Push(none{})
			}
		}},
		{"negative list", "list length -1", func() { new(Pool[row]).Alloc(-1) }},
		{"mark beyond", "mark 1 is beyond the end 0", func() { new(Pool[row]).Since(1) }},
		{"truncate beyond", "mark 1 is beyond the end 0", func() { new(Pool[row]).Truncate(1) }},
		{"negative column", "column size -1", func() { new(Column[rowID, row]).Resize(-1) }},
		{"unknown parent", "from name 9: kinds end at 7, names at 0", func() { new(Names).Derived(9, DeriveSpill, 0) }},
		{"unknown kind", "kind 8 from name 0", func() { new(Names).Derived(0, deriveCount, 0) }},
		{"unknown name", "name 9 is not in this table: its names end at 0", func() { _ = new(Names).String(9) }},
		{"set universe", "3 is outside the universe of 3", func() {
			var s SparseSet
			s.Resize(3)
			s.Add(3)
		}},
		{"negative universe", "size -1 is negative", func() { new(SparseSet).Resize(-1) }},
		{"matrix node", "node 3 is outside the bit matrix of 3", func() {
			var m BitMatrix
			m.Resize(3)
			m.Set(0, 3)
		}},
		{"matrix negative", "bit matrix size -1", func() { new(BitMatrix).Resize(-1) }},
		{"edge not put", "near node 0 of 2", func() {
			var g Adjacency
			g.Begin(2)
			g.Count(0, 1)
			g.Fill()
			g.Finish()
		}},
		{"other edge put", "differ from the 0 counted", func() {
			var g Adjacency
			g.Begin(4)
			g.Count(1, 2)
			g.Fill()
			g.Put(0, 2)
			g.Finish()
		}},
		{"neighbours too early", "out of range", func() {
			var g Adjacency
			first := true
			for range 2 { // the second time, the list of the first is still in the storage
				g.Begin(2)
				g.Count(0, 1)
				g.Fill()
				g.Put(0, 1)
				if g.list[0] != 1 {
					panic("no list in the storage: the test proves nothing")
				}
				if first {
					first = false
					g.Finish()
					continue
				}
				g.Neighbours(0)
			}
		}},
		{"heap universe", "3 is outside the universe of 3", func() {
			var h Heap
			h.Reset(3)
			h.Push(3, 0)
		}},
		{"empty pop", "peek at an empty heap", func() { new(Heap).Pop() }},
		{"negative scratch", "scratch length -1", func() { new(Scratch[row]).Take(-1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("panic says %q, want %q in it", got, c.want)
				}
			}()
			c.do()
		})
	}
}

func TestTableAddWhileIterating(t *testing.T) {
	var tab Table[rowID, row]
	for i := range uint32(10) {
		tab.Add(row{a: i})
	}
	seen := 0
	for id, r := range tab.All() {
		if r.a != uint32(id)-1 {
			t.Fatalf("row %d has %d", id, r.a)
		}
		r.b = 1
		for range 100 {
			tab.Add(row{a: 999})
		}
		seen++
	}
	for id, r := range tab.All() {
		if id > 10 {
			break
		}
		if r.b != 1 {
			t.Errorf("the write to row %d is lost", id)
		}
	}
	if seen != 10 || tab.Len() != 1011 || len(tab.Rows()) != 1011 {
		t.Errorf("saw %d rows, have %d, want 10 and 1011", seen, tab.Len())
	}
}

// TestTableReset checks that a stray write to row 0 does not outlive the function it happened in.
func TestTableReset(t *testing.T) {
	var tab Table[rowID, row]
	tab.Add(row{1, 2})
	tab.At(0).a = 7
	tab.Reset()
	if *tab.At(0) != (row{}) || tab.Len() != 1 {
		t.Errorf("row 0 is %v after Reset", *tab.At(0))
	}
}

// TestNamesCollide asks for names under the hash of others: only the full comparison may decide.
func TestNamesCollide(t *testing.T) {
	var n Names
	x := n.Intern("abc")
	d := n.Derived(0, DeriveSpill, 3) // its row holds 0 and 3, as that of abc
	if r, q := n.rows[x], n.rows[d]; r.a != q.a || r.b != q.b {
		t.Fatalf("rows %v and %v differ: the test proves nothing", r, q)
	}
	h := n.rows[d].hash
	if _, got := n.findPlain("abc", h); got != 0 {
		t.Errorf("abc is found as %q", n.String(got))
	}
	for _, c := range []struct {
		parent  Name
		kind    Derive
		ordinal uint32
		want    Name
	}{{0, DeriveSpill, 3, d}, {0, DeriveReload, 3, 0}, {0, DeriveSpill, 4, 0}, {1, DeriveSpill, 3, 0}} {
		if _, got := n.findDerived(c.parent, c.kind, c.ordinal, h); got != c.want {
			t.Errorf("%d %v %d is found as %d, want %d", c.parent, c.kind, c.ordinal, got, c.want)
		}
	}
}

// TestHeapDrain removes, changes and drains at a size where the tree is deep, with many equal priorities.
func TestHeapDrain(t *testing.T) {
	const n = 5000
	var h Heap
	h.Reset(n)
	rng := lcg(1)
	type entry = heapEntry
	var want []entry
	for x := range uint32(n) {
		h.Push(x, int64(rng.next()%1000))
	}
	for range n {
		x := rng.next() % n
		switch rng.next() % 3 {
		case 0:
			h.Remove(x)
		default:
			h.Push(x, int64(rng.next()%1000))
		}
	}
	for x := range uint32(n) {
		if p, ok := h.Priority(x); ok {
			want = append(want, entry{p, x})
		}
	}
	slices.SortFunc(want, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.prio, b.prio), cmp.Compare(a.id, b.id))
	})
	if len(want) != h.Len() || len(want) < n/4 {
		t.Fatalf("%d have a priority, %d are queued", len(want), h.Len())
	}
	for i, w := range want {
		if x, p := h.Pop(); x != w.id || p != w.prio {
			t.Fatalf("number %d out is %d with %d, want %d with %d", i, x, p, w.id, w.prio)
		}
	}
}

// TestNamesRule pins which texts are derived; the format of the text IR depends on it.
func TestNamesRule(t *testing.T) {
	for _, c := range []struct {
		text, root string
		parents    int
	}{
		{"x", "x", 0},
		{"x.spill3", "x", 1},
		{"x.spill3.reload0", "x", 2},
		{"a.b.c.t12", "a.b.c", 1},
		{".u0", "", 1},
		{"x.home4294967295", "x", 1},
		{"x.home4294967296", "x.home4294967296", 0},
		{"x.home42949672950", "x.home42949672950", 0},
		{"x.clone01", "x.clone01", 0},
		{"x.clone00", "x.clone00", 0},
		{"x.clone", "x.clone", 0},
		{"x.1", "x.1", 0},
		{"x.spilled1", "x.spilled1", 0},
		{"xspill1", "xspill1", 0},
		{"spill1", "spill1", 0},
		{"t1", "t1", 0},
		{"x.t1.y", "x.t1.y", 0},
		{"x.t1 ", "x.t1 ", 0},
		{"x.T1", "x.T1", 0},
		{"x..t1", "x.", 1},
		{"x.t1.t", "x.t1.t", 0},
	} {
		var n Names
		x := n.Intern(c.text)
		if got := n.String(n.Root(x)); got != c.root || n.String(x) != c.text {
			t.Errorf("%q is spelled %q with root %q, want root %q", c.text, n.String(x), got, c.root)
		}
		parents := 0
		for p, kind, _ := n.Origin(x); kind != DeriveNone; p, kind, _ = n.Origin(p) {
			parents++
		}
		if parents != c.parents {
			t.Errorf("%q has %d parents, want %d", c.text, parents, c.parents)
		}
	}
	for d := range deriveCount {
		if len(d.String()) > maxDeriveWord {
			t.Errorf("the word %q is longer than %d letters", d, maxDeriveWord)
		}
	}
	if deriveCount.String() != "Derive(8)" {
		t.Errorf("unknown kind is spelled %q", deriveCount)
	}
}

// TestNamesOrder checks that numbers follow the calls and not the seed of the hash.
func TestNamesOrder(t *testing.T) {
	var a, b Names
	for i := range 5000 {
		s := fmt.Sprintf("v%d.spill%d", i%700, i%13)
		if x, y := a.Intern(s), b.Intern(s); x != y {
			t.Fatalf("%q is %d and %d in two tables", s, x, y)
		}
	}
	if a.seed == b.seed || a.seed == (maphash.Seed{}) {
		t.Error("two tables share a seed: the test proves nothing")
	}
}

// TestNamesDeep checks that a chain of a million derivations is spelled, read back and dropped without recursion.
func TestNamesDeep(t *testing.T) {
	const depth = 1_000_000
	var n Names
	x := n.Intern("x")
	for range depth {
		x = n.Derived(x, DeriveUnroll, 7)
	}
	s := n.String(x)
	if want := "x" + strings.Repeat(".u7", depth); s != want {
		t.Fatalf("a chain of %d is spelled with %d bytes, want %d", depth, len(s), len(want))
	}
	if y := n.Intern(s); y != x {
		t.Errorf("read back as %d, want %d", y, x)
	}
	if y, ok := n.Lookup(s); !ok || y != x {
		t.Errorf("looked up as %d %v, want %d", y, ok, x)
	}
	if n.Len() != depth+2 || n.String(n.Root(x)) != "x" {
		t.Errorf("%d names, want %d", n.Len(), depth+2)
	}
	n.Reset()
	if y, ok := n.Lookup("x"); ok {
		t.Errorf("x is %d after Reset", y)
	}
}

// TestNamesResetSmall takes the way through Reset that frees single slots.
func TestNamesResetSmall(t *testing.T) {
	var n Names
	n.Reserve(100_000, 0)
	for round := range 50 {
		for i := range 3000 {
			s := fmt.Sprintf("r%d.%d", round, i)
			if x := n.Intern(s); int(x) != i+1 {
				t.Fatalf("%q is %d, want %d", s, x, i+1)
			}
		}
		n.Reset()
		if i := slices.IndexFunc(n.slots, func(e uint64) bool { return e != 0 }); i >= 0 {
			t.Fatalf("slot %d is taken after Reset", i)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "x.spill3", "x.t01", "..u0.u0", "x.home4294967296", "a.reload4294967295.clone0"} {
		f.Add([]byte(s), uint8(1), uint32(3))
	}
	var n Names // one table for all cases, so that cases meet each other's names
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, ordinal uint32) {
		x := n.InternBytes(b)
		if got := n.Append(nil, x); !bytes.Equal(got, b) {
			t.Fatalf("%q is spelled %q", b, got)
		}
		if y := n.Intern(string(b)); y != x {
			t.Fatalf("%q is %d and %d", b, x, y)
		}
		d := n.Derived(x, Derive(kind)%deriveCount, ordinal)
		if y := n.Intern(n.String(d)); y != d {
			t.Fatalf("%q is %d when derived and %d when read", n.String(d), d, y)
		}
	})
}

func TestReport(t *testing.T) {
	var r Report
	r.Add("ir.insts", 100, 4000)
	r.Add("b", 0, 50)
	r.Add("ir.insts", 100, 3950)
	r.Add("a", 5, 50)
	want := []Usage{{"ir.insts", 200, 7950}, {"a", 5, 50}, {"b", 0, 50}}
	if got := r.Entries(); !slices.Equal(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
	if r.Total() != 8050 {
		t.Errorf("total %d, want 8050", r.Total())
	}
	const table = "" +
		"table     rows  bytes     B/row   share\n" +
		"ir.insts   200   7950      39.8   98.8%\n" +
		"a            5     50      10.0    0.6%\n" +
		"b            0     50         -    0.6%\n" +
		"total      205   8050\n"
	if got := r.String(); got != table {
		t.Errorf("table is\n%s\nwant\n%s", got, table)
	}
	var b bytes.Buffer
	if n, err := r.WriteTo(&b); err != nil || n != int64(len(table)) || b.String() != table {
		t.Errorf("WriteTo wrote %d bytes, %v", n, err)
	}
	broken := errors.New("broken")
	if _, err := r.WriteTo(writerFunc(func([]byte) (int, error) { return 0, broken })); !errors.Is(err, broken) {
		t.Errorf("WriteTo to a broken writer gives %v", err)
	}
	r.Reset()
	r.Add("c", 1, 2)
	if got := r.Entries(); !slices.Equal(got, []Usage{{"c", 1, 2}}) {
		t.Errorf("after Reset the entries are %v", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Unique keeps the first of each neighbour, and both sides agree.
func TestAdjacencyUnique(t *testing.T) {
	var g Adjacency
	edges := [][2]uint32{{0, 1}, {1, 2}, {1, 0}, {2, 1}, {3, 0}, {0, 1}}
	for range 2 {
		g.Begin(5)
		for _, e := range edges {
			g.Count(e[0], e[1])
		}
		g.Fill()
		for _, e := range edges {
			g.Put(e[0], e[1])
		}
		g.Finish()
		g.Unique()
		for a, want := range [][]uint32{{1, 3}, {0, 2}, {1}, {0}, {}} {
			if got := g.Neighbours(uint32(a)); !slices.Equal(got, want) || g.Degree(uint32(a)) != len(want) {
				t.Errorf("node %d: %v, degree %d, want %v", a, got, g.Degree(uint32(a)), want)
			}
		}
		if g.Edges() != 3 {
			t.Errorf("%d edges, want 3", g.Edges())
		}
	}
}

// TestAddFields checks what is counted: arrays of arrays, what lies beyond a length, no array twice, nothing behind pointers.
func TestAddFields(t *testing.T) {
	type inner struct{ list []uint32 }
	other := make([]byte, 100)
	x := struct {
		Plain  []uint64
		Nested [2][]inner
		again  []byte
		same   []byte
		Far    *inner
		Count  int
	}{Plain: make([]uint64, 3, 4), again: other, same: other[:10], Far: &inner{make([]uint32, 9)}}
	x.Nested[1] = append(make([]inner, 0, 2), inner{make([]uint32, 5)}, inner{make([]uint32, 7)})[:1]
	var r Report
	r.AddFields("x", &x)
	r.AddFields("again", &x)
	header := int(reflect.TypeFor[inner]().Size())
	want := []Usage{{"x.again", 100, 100}, {"x.nested", 1, 2*header + 12*4}, {"x.plain", 3, 32}}
	if got := r.Entries(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.Reset()
	r.AddFields("x", &x)
	if got := r.Total(); got != 180+2*header || got != Held(&x) {
		t.Errorf("%d bytes after a reset", got)
	}
}
