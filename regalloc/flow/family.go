package flow

import (
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Families joins values that pass into each other through parameters of blocks and are never live at once, so that one place can hold a
// whole family and its edges need no moves. The test is of definitions along the dominator tree: two values interfere where one is live
// at the definition of the other (Budimlic and others, "Fast Copy Coalescing and Live-Range Identification", PLDI 2002). A second Build of the
// same size allocates nothing.
type Families struct {
	up   []uint32 // union-find over values
	key  []uint64 // by value: place of its definition in preorder; 0 for values of blocks that control never reaches
	anc  []uint32 // by value: the nearest member of its family whose definition dominates its own
	list []run    // by root: members by key; of no length for a family of one
	pool []Value

	f *Func
	d *Doms
	l *Live
	r *Ranges
}

type run struct{ off, n, room uint32 }

const (
	noValue = ^uint32(0)
	// The work for one value is bounded. Beyond these figures it stays by itself, which costs moves and nothing else.
	maxFamily = 4096
	maxTests  = 64
)

// Build joins the parameters of f with the arguments that feed them, in the order of blocks.
func (s *Families) Build(f *Func, o *Loops, d *Doms, l *Live, r *Ranges) {
	n := f.Values()
	s.f, s.d, s.l, s.r = f, d, l, r
	s.up, s.key, s.anc = arena.Resized(s.up, n), arena.Resized(s.key, n), arena.Resized(s.anc, n)
	s.list = arena.Zeroed(s.list, n)
	s.pool = s.pool[:0]
	for v := range s.up {
		s.up[v], s.anc[v], s.key[v] = uint32(v), noValue, 0
	}
	for _, b := range o.Order {
		blk := &f.Blocks[b]
		base := uint64(d.Preorder(b)) << 32
		for _, v := range f.Of(blk.Params) {
			s.key[v] = base + 1
		}
		for i := blk.Insts.From; i < blk.Insts.To; i++ {
			for _, v := range f.Of(f.Insts[i].Defs()) {
				s.key[v] = base + uint64(i) + 2
			}
		}
	}
	for _, b := range o.Order {
		blk := &f.Blocks[b]
		for k, p := range f.Of(blk.Params) {
			if r.End[p] == 0 {
				continue
			}
			for _, e := range f.Preds[blk.Preds.From:blk.Preds.To] {
				if a := f.Ops[f.Edges[e].Args.From+uint32(k)]; s.key[a] != 0 {
					s.join(p, a)
				}
			}
		}
	}
	s.f, s.d, s.l, s.r = nil, nil, nil, nil
}

// Of names the family of v by one of its members.
func (s *Families) Of(v Value) uint32 {
	for s.up[v] != v {
		s.up[v] = s.up[s.up[v]]
		v = s.up[v]
	}
	return v
}

func (s *Families) size(root uint32) uint32 { return max(1, s.list[root].n) }

// join makes one family of two if no member of one interferes with a member of the other.
func (s *Families) join(a, b Value) {
	x, y := s.Of(a), s.Of(b)
	if x == y {
		return
	}
	if s.size(x) < s.size(y) {
		x, y = y, x
	}
	if s.size(x)+s.size(y) > maxFamily {
		return
	}
	small := s.members(y)
	for _, v := range small {
		if !s.fits(v, x) {
			return
		}
	}
	s.up[y] = x
	for _, v := range small {
		s.insert(x, v)
	}
}

// members lists a family; the list is good until the next insert.
func (s *Families) members(root uint32) []Value {
	l := &s.list[root]
	if l.n == 0 {
		*l = run{uint32(len(s.pool)), 1, 1}
		s.pool = append(s.pool, root)
	}
	return s.pool[l.off : l.off+l.n]
}

// place is the number of members with keys of at most that of v.
func (s *Families) place(in []Value, v Value) int {
	lo, hi := 0, len(in)
	for lo < hi {
		if m := (lo + hi) / 2; s.key[in[m]] <= s.key[v] {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// above finds the nearest definition among members that dominates that of v; at is v's place. It fails when it had to look at too many.
func (s *Families) above(in []Value, at int, v Value) (Value, bool) {
	if at == 0 {
		return noValue, true
	}
	x := in[at-1]
	for range maxTests {
		if x == noValue || s.dominates(x, v) {
			return x, true
		}
		x = s.anc[x]
	}
	return noValue, false
}

func (s *Families) dominates(x, v Value) bool {
	return s.d.Dominates(s.l.home[x], s.l.home[v]) && s.key[x] <= s.key[v]
}

// fits reports whether v interferes with no member of a family. In a family without interference it is enough to look at the nearest definition
// above v, and at those below v with none between: whatever is live farther on is live there.
func (s *Families) fits(v Value, root uint32) bool {
	in := s.members(root)
	at := s.place(in, v)
	up, ok := s.above(in, at, v)
	if !ok || up != noValue && s.interferes(up, v) {
		return false
	}
	for tests := 0; at < len(in) && s.dominates(v, in[at]); at++ {
		if tests++; tests > maxTests {
			return false
		}
		if w := in[at]; (s.anc[w] == noValue || !s.dominates(v, s.anc[w])) && s.interferes(v, w) {
			return false
		}
	}
	return true
}

// interferes reports whether x is live right behind the definition of v, which it dominates.
func (s *Families) interferes(x, v Value) bool {
	if s.key[x] == s.key[v] {
		return true
	}
	b := s.l.home[v]
	end := uint32(0)
	if s.l.home[x] == b {
		end = s.r.End[x]
	} else if k, ok := s.find(b, x); ok {
		end = s.r.InEnd[k]
	} else {
		return false
	}
	at := uint32(s.key[v])
	return end == LiveOut || at == 1 && end > 0 || at > 1 && end > at-2
}

// find looks x up among the values that are live into b.
func (s *Families) find(b uint32, x Value) (uint32, bool) {
	lo, hi := s.l.off[b], s.l.off[b+1]
	for lo < hi {
		if m := (lo + hi) / 2; s.l.vals[m] < x {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, lo < s.l.off[b+1] && s.l.vals[lo] == x
}

// insert puts v into a family and keeps the nearest ancestors right.
func (s *Families) insert(root uint32, v Value) {
	in := s.members(root)
	at := s.place(in, v)
	up, _ := s.above(in, at, v)
	for k := at; k < len(in) && s.dominates(v, in[k]); k++ {
		if w := in[k]; s.anc[w] == up {
			s.anc[w] = v
		}
	}
	s.anc[v] = up
	l := &s.list[root]
	if l.n == l.room {
		off := uint32(len(s.pool))
		room := max(4, 2*l.room)
		s.pool = slices.Grow(s.pool, int(room))[:len(s.pool)+int(room)]
		copy(s.pool[off:], s.pool[l.off:l.off+l.n])
		l.off, l.room = off, room
	}
	l.n++
	in = s.pool[l.off : l.off+l.n]
	copy(in[at+1:], in[at:])
	in[at] = v
}
