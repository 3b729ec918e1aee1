package memalloc

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc/bestfit"
	"github.com/rosmar-compiler/rosmar/ssa"
)

// sheet is a program that is written down instruction by instruction.
type sheet struct {
	*program
	b   ir.Builder
	out int
}

func newSheet(t testing.TB, level int) *sheet { return sheetOn(t, new(program), level) }

func sheetOn(t testing.TB, p *program, level int) *sheet {
	s := &sheet{program: p}
	s.m.Gen = generation(t, level)
	s.b.NewFunc(&s.m, "main", "Block1")
	s.f = s.b.Func
	return s
}

func (s *sheet) sb(name string, parts int, words int64) value {
	return value{parts: parts, words: words, space: target.SpaceSB, loc: s.b.SB(s.m.Names.Intern(name), target.Float32, parts, words)}
}

func (s *sheet) psum(name string, words int64) value {
	return value{parts: 128, words: words, space: target.SpacePSUM, loc: s.b.PSUM(s.m.Names.Intern(name), target.Float32, 128, words)}
}

func (s *sheet) set(v value) {
	s.b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&s.b, v)})
}

func (s *sheet) act(x, y value) {
	s.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&s.b, x)}, []ir.Arg{whole(&s.b, y)})
}

func (s *sheet) matmul(x, acc value, flags int64) {
	s.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&s.b, x), whole(&s.b, x)}, []ir.Arg{whole(&s.b, acc)}, ir.Int(ir.KeyAccumulationFlag, flags))
}

// save writes words [lo, hi) of a value to an output.
func (s *sheet) save(v value, lo, hi int64) {
	s.out++
	d := s.b.DRAM(s.m.Names.Intern(fmt.Sprintf("out%d", s.out)), ir.KindExternalOutput, target.Float32, int64(v.parts), hi-lo)
	s.b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{part(&s.b, v, lo, hi)},
		[]ir.Arg{s.b.Mem(d, target.Float32, 0, ir.Pair{Step: int32(hi - lo), Num: uint32(v.parts)}, ir.Pair{Step: 1, Num: uint32(hi - lo)})})
}

// done closes the program and says what it computes.
func (s *sheet) done(t testing.TB) map[row][]uint64 {
	t.Helper()
	s.b.Close()
	want, err := execute(&s.m, s.f)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// place runs the scan and holds the result to the checkers and to what the program computed before.
func (s *sheet) place(t testing.TB, opt Options, want map[row][]uint64) (psum, sb Metrics) {
	t.Helper()
	psum, sb = scanAll(t, s.program, new(Workspace), opt)
	got, err := execute(&s.m, s.f)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got)
	return psum, sb
}

// refused runs the scan and wants an error of a class with all of the words.
func (s *sheet) refused(t testing.TB, opt Options, class target.Class, words ...string) {
	t.Helper()
	_, _, err := LinearScan(&s.m, s.f, new(Workspace), opt)
	if err == nil || target.ClassOf(err) != class {
		t.Errorf("error %v, want one of class %v", err, class)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

// words are options for so many words of SB beyond a strip of 8 bytes, without alignments.
func words(n int64) Options {
	return Options{StripBytes: 8, SBBytes: 8 + 4*n, Align: Alignments{AXIThreshold: -1, RMW: -1, Page: -1, AP: -1}}
}

// spy is a manager that takes the lowest free place, found cell by cell, and keeps a record of what it is asked.
type spy struct {
	rows   int
	cells  [4][]uint64 // 1 + owner
	record []string
}

func (s *spy) Reset(rows int, size uint32) {
	s.rows = rows
	for r := range s.cells {
		s.cells[r] = make([]uint64, size)
	}
	s.record = append(s.record, fmt.Sprintf("reset %d", rows))
}

func (s *spy) fill(owner uint32, b bestfit.Block) {
	for r := b.Row; r < b.Row+b.Rows; r++ {
		for x := b.Lo; x < b.Hi; x++ {
			if s.cells[r][x] == 0 {
				s.cells[r][x] = uint64(owner) + 1
			}
		}
	}
}

func (s *spy) Reserve(owner uint32, b bestfit.Block) { s.fill(owner, b) }

func (s *spy) Place(owner uint32, q bestfit.Request) (bestfit.Block, bool) {
	for at := uint32(0); int(at+q.Len) <= len(s.cells[0]); at += max(1, q.Align) {
	rows:
		for r := uint8(0); int(r+q.Rows) <= s.rows; r++ {
			if q.Starts>>r&1 == 0 {
				continue
			}
			for k := r; k < r+q.Rows; k++ {
				for x := at; x < at+q.Len; x++ {
					if s.cells[k][x] != 0 {
						continue rows
					}
				}
			}
			b := bestfit.Block{Lo: at, Hi: at + q.Len, Row: r, Rows: q.Rows}
			s.fill(owner, b)
			s.record = append(s.record, fmt.Sprintf("place %d", owner))
			return b, true
		}
	}
	return bestfit.Block{}, false
}

func (s *spy) Free(owner uint32) (had bool) {
	for r := range s.cells {
		for x, o := range s.cells[r] {
			if o == uint64(owner)+1 {
				s.cells[r][x] = 0
				had = true
			}
		}
	}
	s.record = append(s.record, fmt.Sprintf("free %d", owner))
	return had
}

func (s *spy) Fragmentation() (median, tail float64) { return 0.25, 0.75 }

// ladder is n tiles of a memory, each made of the one before.
func ladder(t testing.TB, n int, tileWords int64) (*sheet, []value, map[row][]uint64) {
	s := newSheet(t, 30)
	var v []value
	for k := range n {
		v = append(v, s.sb(fmt.Sprintf("x%02d", k), 128, tileWords))
		if k == 0 {
			s.set(v[0])
		} else {
			s.act(v[k-1], v[k])
		}
	}
	s.save(v[n-1], 0, tileWords)
	return s, v, s.done(t)
}

// Seed 74: PSUM is scanned first, then SB, each once and in program order; a location of another memory is a bug.
func TestSeed74OneScanASpace(t *testing.T) {
	s := newSheet(t, 30)
	x, y, acc, bcc := s.sb("x", 128, 8), s.sb("y", 128, 8), s.psum("acc", 8), s.psum("bcc", 8)
	s.set(x)
	s.matmul(x, acc, 3)
	s.matmul(x, bcc, 3)
	s.act(acc, y)
	s.act(bcc, y)
	s.save(y, 0, 8)
	want := s.done(t)
	var m spy
	s.place(t, Options{Manager: &m}, want)
	if got := strings.Join(m.record, ", "); got != "reset 1, place 0, place 1, free 0, free 1, reset 4, place 0, free 0, place 1" {
		t.Errorf("%s", got)
	}
	// A set whose second block lies elsewhere.
	z := newSheet(t, 30)
	set := z.b.Tensor(z.m.Names.Intern("mixed"), ir.KindInternal, ir.ClassNeuronSBTensor, target.Float32, 2, 128, 8)
	a := value{parts: 128, words: 8, loc: z.b.Place(set, z.m.Sets.At(set).Name, target.SpaceSB, 128, 32)}
	b := value{parts: 128, words: 8, loc: z.b.Place(set, z.m.Sets.At(set).Name, target.SpacePSUM, 128, 32)}
	z.m.Sets.At(set).LiveN = 1
	z.set(a)
	z.act(a, b)
	z.done(t)
	z.refused(t, Options{}, target.Bug, "the scan of SB", "mixed", "in PSUM")
}

// Seed 75: what has no use left is freed before the outputs of the next instruction are placed, and they take its place; what
// is used for the last time at an instruction is still there for its outputs.
func TestSeed75ExpireFirst(t *testing.T) {
	s, v, want := ladder(t, 9, 100)
	_, sb := s.place(t, words(200), want)
	if sb.Evictions != 0 || sb.Spilled != 0 {
		t.Errorf("%d evictions: two tiles are live at a time", sb.Evictions)
	}
	for k := 2; k < len(v); k++ {
		if a, b := s.m.Locs.At(v[k-2].loc).Addr, s.m.Locs.At(v[k].loc).Addr; a != b {
			t.Errorf("x%02d at %d, and x%02d, which has just gone, was at %d", k, b, k-2, a)
		}
	}
	s, _, _ = ladder(t, 3, 100)
	s.refused(t, words(198), target.Limit, "%x01 needs 400 bytes a partition of 792", "no victim is left", "800 are live")
}

// Seed 76: the log names what found no place and the active sets in order; the head is spilled, and placement tried again.
func TestSeed76FailureIsLogged(t *testing.T) {
	s := newSheet(t, 30)
	late, mid, soon, next := s.sb("late", 128, 100), s.sb("mid", 128, 100), s.sb("soon", 128, 100), s.sb("next", 128, 200)
	s.set(soon)
	s.set(late)
	s.set(mid)
	s.set(next) // needs the place of two
	s.save(next, 0, 200)
	s.save(soon, 0, 100)
	s.save(mid, 0, 100)
	s.save(late, 0, 100)
	want := s.done(t)
	var log bytes.Buffer
	opt := words(300)
	opt.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	s.place(t, opt, want)
	lines := strings.Split(log.String(), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "failed to allocate") })
	wanted := []string{
		`msg="failed to allocate" set=next index=0 point=3`,
		`msg=active index=0 set=late type=16`, `msg=active index=1 set=mid type=16`, `msg=active index=2 set=soon type=16`,
		`msg="spill: store" set=late index=0 point=3`, `msg="spill: reload" set=late index=0 point=7`,
		`msg="spill: store" set=mid index=0 point=3`, `msg="spill: reload" set=mid index=0 point=6`,
	}
	if at < 0 || !slices.Equal(lines[at:at+len(wanted)], wanted) {
		t.Errorf("the log says\n%s", log.String())
	}
	if !opt.Log.Enabled(context.Background(), slog.LevelDebug) || strings.Count(log.String(), "failed to allocate") != 1 {
		t.Errorf("one failure, logged otherwise:\n%s", log.String())
	}
}

// Seed 77: the order of the active sets, by every key in turn.
func TestSeed77ActiveOrder(t *testing.T) {
	s := newSheet(t, 30)
	names := []string{"a", "b", "b", "b", "c"}
	for _, n := range names {
		set := s.b.Tensor(s.m.Names.Intern(n), ir.KindInternal, ir.ClassNeuronSBTensor, target.Float32, 1, 128, 8)
		s.b.Place(set, s.m.Names.Intern(map[string]string{"a": "z", "b": "y", "c": "x"}[n]), target.SpaceSB, 128, 32)
	}
	s.done(t)
	var ws Workspace
	ws.spill.m = &s.m
	for i := range names {
		l := ir.Loc(i + 1)
		ws.ranges.Units = append(ws.ranges.Units, ssa.Unit{Set: s.m.Locs.At(l).Set, First: l})
	}
	s.m.Locs.At(3).Name = s.m.Names.Intern("m") // the third has a location of another name
	add := func(unit uint32, end ssa.Point, length uint32) {
		ws.scan.pieces = append(ws.scan.pieces, piece{unit: unit, end: end, req: bestfit.Request{Rows: 1, Len: length}})
	}
	add(0, 5, 9)  // 0: ends first
	add(1, 9, 20) // 1: larger than the next
	add(2, 9, 20) // 2: of the b's the one whose location comes first
	add(3, 9, 10) // 3
	add(4, 9, 1)  // 4: the last name
	add(1, 9, 1)  // 5: a copy of a b
	add(0, 9, 30) // 6: a copy of a, whose name is the first of those that end at 9
	add(4, 12, 1) // 7: ends last
	add(1, 9, 1)  // 8: equal to 5 but younger
	want := []uint32{7, 6, 2, 3, 1, 5, 8, 4, 0}
	for _, i := range []uint32{3, 8, 0, 7, 5, 1, 6, 4, 2} {
		ws.activate(i)
	}
	if !slices.Equal(ws.scan.active, want) {
		t.Errorf("order %v, want %v", ws.scan.active, want)
	}
}

// Seed 78: a store after the definition, a reload before the next use of a copy that holds just what the uses touch, sets of
// one location both; nothing refers to the spilled place when the scan is done.
func TestSeed78StoreAndReload(t *testing.T) {
	s := newSheet(t, 30)
	x, y := s.sb("x", 128, 100), s.sb("y", 128, 100)
	s.set(x)
	s.set(y)
	s.save(y, 0, 100)
	s.save(x, 40, 60)
	s.save(x, 50, 60)
	want := s.done(t)
	_, sb := s.place(t, words(100), want)
	if sb.Spilled != 1 || sb.Saves != 1 || sb.Reloads != 1 || sb.Evictions != 1 {
		t.Errorf("%d spilled, %d saves, %d reloads, %d evictions; want one of each", sb.Spilled, sb.Saves, sb.Reloads, sb.Evictions)
	}
	var ops []string
	var copied ir.Loc
	for _, i := range s.m.OrderOf(s.m.BlocksOf(s.f)[0]) {
		r := s.m.Insts.At(i)
		ops = append(ops, r.Op.String())
		if r.Flags&ir.InstReload != 0 {
			copied = s.m.LocOf(s.m.Outs(i)[0])
		}
	}
	if got, want := strings.Join(ops, " "), "Memset Save Memset Save Load Save Save"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if l := s.m.Locs.At(copied); l.Bytes != 80 || s.m.Sets.At(l.Set).Count != 1 || l.Addr != 8 {
		t.Errorf("the copy is %+v; want the 20 words that are read", *l)
	}
	if l := s.m.Locs.At(x.loc); l.Addr != 8 || l.Bytes != 400 {
		t.Errorf("x stood at %+v", *l)
	}
}

// Seed 80: the manager is a component that is given to the scan, and its fragmentation is reported; alignments and banks hold
// under either.
func TestSeed80InjectedManager(t *testing.T) {
	build := func() (*sheet, map[row][]uint64) {
		s := newSheet(t, 40)
		var tiles []value
		for k := range 12 {
			v := s.sb(fmt.Sprintf("v%02d", k), []int{128, 32, 64, 16}[k%4], int64(5+40*(k%5)))
			s.set(v)
			tiles = append(tiles, v)
		}
		one, two := s.psum("one", 8), s.psum("two", 1000)
		s.matmul(tiles[0], one, 3)
		s.b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{whole(&s.b, tiles[0]), whole(&s.b, tiles[0])}, []ir.Arg{part(&s.b, two, 0, 8)}, ir.Int(ir.KeyAccumulationFlag, 3))
		s.act(one, tiles[1])
		s.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{part(&s.b, two, 0, 8)}, []ir.Arg{part(&s.b, tiles[2], 0, 8)})
		for k, v := range tiles {
			if k%3 != 1 {
				s.save(v, 0, v.words)
			}
		}
		return s, s.done(t)
	}
	for _, m := range []Manager{nil, &spy{}} {
		s, want := build()
		psum, sb := s.place(t, Options{Manager: m}, want)
		for l := ir.Loc(1); int(l) < s.m.Locs.Len(); l++ {
			switch r := s.m.Locs.At(l); {
			case r.Space == target.SpaceSB && (r.Addr%32 != 0 || r.Bytes < 512 && r.Addr%256 != 0):
				t.Errorf("%s of %d bytes at %d", s.m.LocName(l), r.Bytes, r.Addr)
			case r.Space == target.SpacePSUM && r.Bytes > 2048 && r.Bank%2 != 0:
				t.Errorf("%s at bank %d", s.m.LocName(l), r.Bank)
			}
		}
		if m != nil && (sb.FragMedian != 0.25 || psum.FragTail != 0.75) {
			t.Errorf("fragmentation %v, %v is not the manager's", sb.FragMedian, psum.FragTail)
		}
		if m == nil && (sb.FragTail <= 0 || sb.FragTail >= 1 || sb.FragMedian > sb.FragTail) {
			t.Errorf("fragmentation %v, %v", sb.FragMedian, sb.FragTail)
		}
	}
}

// Seed 91: the effort for reloads changes how many there are, by linear scan as by colouring.
func TestSeed91EffortOfLinearScan(t *testing.T) {
	build := func() (*sheet, map[row][]uint64) {
		s := newSheet(t, 30)
		x, y := s.sb("x", 128, 100), s.sb("y", 128, 100)
		s.set(x)
		s.set(y)
		s.save(y, 0, 100)
		for range 3 {
			z := s.sb("z", 1, 1)
			s.set(z)
			for range 100 { // x is used again after 100 points, twice
				s.act(z, z)
			}
			s.save(x, 0, 100)
			s.save(x, 0, 100)
		}
		return s, s.done(t)
	}
	reloads := map[DMALevel]int{}
	for _, level := range []DMALevel{DMAOff, DMADefault, DMAAggressive} {
		s, want := build()
		opt := words(102)
		opt.DMALevel = level
		_, sb := s.place(t, opt, want)
		reloads[level] = sb.Reloads
	}
	if reloads[DMAOff] != 6 || reloads[DMADefault] != 3 || reloads[DMAAggressive] != 1 {
		t.Errorf("reloads by level %v, want 6, 3 and 1", reloads)
	}
}
