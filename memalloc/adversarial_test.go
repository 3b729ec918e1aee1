package memalloc

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

// hard builds programs that leave an allocator little choice. Sizes are in granules a partition.
type hard struct {
	program
	b ir.Builder
	n int
}

func newHard(t interface{ Fatal(...any) }, level int) *hard {
	h := &hard{}
	h.m.Gen = generation(t, level)
	h.b.NewFunc(&h.m, "main", "Block1")
	h.f = h.b.Func
	return h
}

func (h *hard) tile(name string, parts int, granules int64) value {
	return value{parts: parts, words: 2 * granules, loc: h.b.SB(h.m.Names.Intern(name), target.Float32, parts, 2*granules)}
}

func (h *hard) set(v value) { h.b.Emit(ir.OpMemset, target.EnginePool, nil, []ir.Arg{whole(&h.b, v)}) }
func (h *hard) move(from, to value) {
	h.b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{whole(&h.b, from)}, []ir.Arg{whole(&h.b, to)})
}
func (h *hard) inPlace(v value) {
	h.b.Emit(ir.OpTensorScalar, target.EngineDVE, []ir.Arg{whole(&h.b, v)}, []ir.Arg{whole(&h.b, v)})
}

func (h *hard) out(v value) {
	h.n++
	o := h.b.DRAM(h.m.Names.Intern("out"+string(rune('a'+h.n))), ir.KindExternalOutput, target.Float32, int64(v.parts), v.words)
	h.b.Emit(ir.OpSave, target.EngineAct, []ir.Arg{whole(&h.b, v)}, []ir.Arg{h.b.Mem(o, target.Float32, 0,
		ir.Pair{Step: int32(v.words), Num: uint32(v.parts)}, ir.Pair{Step: 1, Num: uint32(v.words)})})
}

// fix places a tile before the allocator runs.
func (h *hard) fix(v value, base uint8, granules int64, fl ir.LocFlag) {
	l := h.m.Locs.At(v.loc)
	l.Base, l.Addr = base, granules*granule
	l.Flags |= ir.LocAllocated | fl
}

// stripOf is the strip of the cases, in granules: one, so that all sizes are whole.
const hardStrip = 1

// Each case is placed and computes the same, or is refused by the name of a tensor that has no place.
func TestAdversarial(t *testing.T) {
	const room = 32 // granules of SB beside the strip
	for _, c := range []struct {
		name    string
		build   func(h *hard)
		refused string // part of the message, "" when it must be placed
		spills  bool
	}{
		{"nothing", func(*hard) {}, "", false},
		{"one tensor is all there is", func(h *hard) { x := h.tile("x", 128, room); h.set(x); h.inPlace(x); h.out(x) }, "", false},
		{"one tensor is a granule more", func(h *hard) { x := h.tile("x", 128, room+1); h.set(x); h.out(x) }, "%x", false},
		{"two that are all there is, in turns", func(h *hard) {
			x, y := h.tile("x", 128, room), h.tile("y", 128, room)
			h.set(x)
			h.set(y)
			h.out(x)
			h.out(y)
			h.out(x)
		}, "", true},
		{"two that are all there is, in one instruction", func(h *hard) {
			x, y := h.tile("x", 128, room), h.tile("y", 128, room)
			h.set(x)
			h.move(x, y)
			h.out(y)
		}, "needs 256 bytes", false},
		{"four quarters of full length", func(h *hard) {
			var q [4]value
			for k := range q {
				q[k] = h.tile("q"+string(rune('a'+k)), 32, room)
				h.set(q[k])
			}
			for k := range q {
				h.out(q[k])
			}
		}, "", false},
		{"a half and two quarters of full length", func(h *hard) {
			a, b, c := h.tile("a", 32, room), h.tile("b", 32, room), h.tile("c", 64, room)
			for _, v := range []value{a, b, c} {
				h.set(v)
			}
			for _, v := range []value{a, b, c} {
				h.out(v)
			}
		}, "", false},
		{"tall and quarters side by side, all bytes", func(h *hard) {
			var vs []value
			for k := range 8 {
				v := h.tile("v"+string(rune('a'+k)), []int{128, 32, 32, 32, 32, 64, 64, 128}[k], room/4)
				h.set(v)
				vs = append(vs, v)
			}
			for _, v := range vs {
				h.out(v)
			}
		}, "", false},
		{"one more quarter", func(h *hard) {
			var vs []value
			for k := range 9 {
				v := h.tile("v"+string(rune('a'+k)), []int{128, 32, 32, 32, 32, 64, 64, 128, 32}[k], room/4)
				h.set(v)
				vs = append(vs, v)
			}
			for _, v := range vs {
				h.out(v)
			}
		}, "", true},
		{"a pinned tile cuts the memory in two", func(h *hard) {
			p, x, y := h.tile("p", 128, 2), h.tile("x", 128, 15), h.tile("y", 128, 15)
			h.fix(p, 0, hardStrip+15, ir.LocPinned)
			h.set(x)
			h.set(y)
			h.out(x)
			h.out(y)
		}, "", false},
		{"and nothing fits on either side", func(h *hard) {
			p, x := h.tile("p", 128, 2), h.tile("x", 128, 16)
			h.fix(p, 0, hardStrip+15, ir.LocPinned)
			h.set(x)
			h.out(x)
		}, "needs 128 bytes a partition of 256", false},
		{"all is pinned", func(h *hard) {
			p, x := h.tile("p", 128, room), h.tile("x", 32, 1)
			h.fix(p, 0, hardStrip, ir.LocPinned)
			h.set(x)
			h.out(x)
		}, "%x", false},
		{"a placed quarter leaves three", func(h *hard) {
			p := h.tile("p", 32, room)
			h.fix(p, 64, hardStrip, ir.LocUserAllocated)
			h.set(p)
			var q [3]value
			for k := range q {
				q[k] = h.tile("q"+string(rune('a'+k)), 32, room)
				h.set(q[k])
			}
			for k := range q {
				h.out(q[k])
			}
			h.out(p)
		}, "", false},
		{"placed outside of the memory", func(h *hard) {
			p := h.tile("p", 32, 4)
			h.fix(p, 0, hardStrip+room-3, ir.LocUserAllocated)
			h.set(p)
			h.out(p)
		}, "%p is placed", false},
		{"a long chain in place", func(h *hard) {
			x, y := h.tile("x", 128, room-1), h.tile("y", 128, room-1)
			h.set(x)
			h.set(y)
			for range 40 {
				h.inPlace(x)
				h.inPlace(y)
			}
			h.out(x)
			h.out(y)
		}, "", true},
		{"nothing defines it, nothing uses it", func(h *hard) {
			h.tile("idle", 128, room)
			x := h.tile("x", 128, room)
			h.set(x)
			h.out(x)
		}, "", false},
		{"nothing defines it, nothing uses it, and it is too large", func(h *hard) { h.tile("idle", 128, room+1) }, "%idle", false},
		{"nothing uses it", func(h *hard) { h.set(h.tile("x", 128, room)); h.set(h.tile("y", 128, room)) }, "", false},
		{"nothing defines it", func(h *hard) { h.out(h.tile("x", 128, 1)) }, "1 undefined uses and 0 unused definitions; undefined: %x", false},
		{"many small ones that would like boundaries", func(h *hard) {
			var vs []value
			for k := range room {
				v := h.tile("v"+string(rune('a'+k)), 128, 1)
				h.set(v)
				vs = append(vs, v)
			}
			for _, v := range vs {
				h.out(v)
			}
		}, "", false},
		{"too many partitions", func(h *hard) { h.set(h.tile("x", 129, 1)) }, "%x has 129 partitions", false},
		{"no bytes", func(h *hard) {
			x := h.tile("x", 128, room)
			h.m.Locs.At(h.tile("empty", 128, 1).loc).Bytes = 0
			h.set(x)
			h.out(x)
		}, "", false},
	} {
		for _, level := range []int{20, 30} {
			h := newHard(t, level)
			c.build(h)
			h.b.Close()
			var before map[row][]uint64
			if c.refused == "" {
				var err error
				if before, err = execute(&h.m, h.f); err != nil {
					t.Fatal(c.name, err)
				}
			}
			opt := Options{StripBytes: hardStrip * granule, SBBytes: (hardStrip + room) * granule}
			var ws Workspace
			mt, err := SB(&h.m, h.f, &ws, opt)
			if c.refused != "" {
				if err == nil || target.ClassOf(err) != target.Limit && target.ClassOf(err) != target.User || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%s, level %d: error %v, want one with %q", c.name, level, err, c.refused)
				}
				continue
			}
			if err != nil || mt.Iterations > 8 {
				t.Errorf("%s, level %d: %d rounds, error %v", c.name, level, mt.Iterations, err)
				continue
			}
			if spilled := mt.Reloads > 0; spilled != c.spills {
				t.Errorf("%s, level %d: %d reloads", c.name, level, mt.Reloads)
			}
			if _, err := DRAM(&h.m, h.f, &ws, opt); err != nil {
				t.Fatal(c.name, err)
			}
			if err := overlaps(&h.m, h.f); err != nil {
				t.Error(c.name, err)
			}
			after, err := execute(&h.m, h.f)
			if err != nil {
				t.Error(c.name, err)
				continue
			}
			same(t, before, after)
		}
	}
}

// Random programs among tiles that are pinned anywhere, in any amount of memory: placed, and then they compute the same, or refused by
// name. Pinned tiles stay.
func TestAdversarialRandom(t *testing.T) {
	var ws Workspace
	placed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := random(t, rapid.IntRange(1, 50).Draw(t, "n"))
		before, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		size := floorOf(&p.m, p.f) + 8*int64(rapid.IntRange(0, 80).Draw(t, "slack"))
		opt := Options{StripBytes: 64, SBBytes: 64 + size, PsumBanks: rapid.IntRange(2, 8).Draw(t, "banks"), Partners: rapid.Bool().Draw(t, "partners")}
		var b ir.Builder
		b.M, b.Func = &p.m, p.f
		fixed := map[ir.Loc]ir.LocRow{}
		for k := range rapid.IntRange(0, 3).Draw(t, "pinned") {
			parts := rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "parts")
			words := int64(rapid.IntRange(1, max(1, int(size/16))).Draw(t, "words"))
			l := b.SB(p.m.Names.Intern("pin"+string(rune('a'+k))), target.Float32, parts, words)
			r := p.m.Locs.At(l)
			r.Base = uint8(rapid.IntRange(0, 128/parts-1).Draw(t, "band") * parts)
			r.Addr = 64 + 8*int64(rapid.IntRange(0, max(0, int((size-r.Bytes)/8))).Draw(t, "at"))
			r.Flags |= ir.LocAllocated | ir.LocPinned
			fixed[l] = *r
			addSets(&p.m, p.f, []ir.Set{r.Set})
		}
		_, err = PSUM(&p.m, p.f, &ws, opt)
		if err == nil {
			_, err = SB(&p.m, p.f, &ws, opt)
		}
		if err != nil {
			if target.ClassOf(err) != target.Limit || !strings.Contains(err.Error(), "%") {
				t.Fatal(err)
			}
			refused++
			return
		}
		placed++
		if _, err := DRAM(&p.m, p.f, &ws, opt); err != nil {
			t.Fatal(err)
		}
		for l, want := range fixed {
			if *p.m.Locs.At(l) != want {
				t.Fatalf("%s moved", p.m.LocName(l))
			}
			// What is pinned is there all the time, also where nothing touches it.
			for i := 1; i < p.m.Locs.Len(); i++ {
				o := p.m.Locs.At(ir.Loc(i))
				if _, too := fixed[ir.Loc(i)]; too || o.Space != target.SpaceSB || o.Flags&ir.LocAllocated == 0 {
					continue
				}
				if o.Addr < want.Addr+want.Bytes && want.Addr < o.Addr+o.Bytes && int(o.Base) < int(want.Base)+int(want.Parts) && int(want.Base) < int(o.Base)+int(o.Parts) {
					t.Fatalf("%s lies on %s", p.m.LocName(ir.Loc(i)), p.m.LocName(l))
				}
			}
		}
		after, err := execute(&p.m, p.f)
		if err != nil {
			t.Fatal(err)
		}
		same(t, before, after)
	})
	if !testing.Short() && (placed == 0 || refused == 0) {
		t.Errorf("%d placed, %d refused", placed, refused)
	}
	t.Logf("%d placed, %d refused", placed, refused)
}
