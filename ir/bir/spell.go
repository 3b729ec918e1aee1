package bir

import (
	"github.com/rosmar-compiler/rosmar/arena"
)

// spelling is the name of an object in the text: its own, its own and ".N" where an earlier object of its scope has it
// already, or a prefix and N where it has none. The zero spelling is an object that the text does not hold.
type spelling struct {
	name arena.Name
	n    uint32
}

// use is what the speller knows about a name in the scope at hand.
type use struct {
	scope uint32
	taken bool   // the first object of the name has it
	next  uint32 // last suffix tried
}

// speller gives the objects of one kind and scope different names.
type speller struct {
	uses  arena.Column[arena.Name, use]
	scope uint32
	text  []byte
}

func (s *speller) reset() { s.uses.Reset(); s.scope = 0 }

// spell fills in what the objects are called, in their order. names and out go in step.
func (s *speller) spell(names *arena.Names, prefix string, list []arena.Name, out []spelling) {
	s.scope++
	for _, n := range list {
		s.uses.Set(n, use{scope: s.scope})
	}
	last := uint32(0)
	for i, n := range list {
		if n == 0 {
			for {
				last++
				if s.text = appendInt(append(s.text[:0], prefix...), int64(last)); !s.used(names) {
					break
				}
			}
			out[i] = spelling{n: last}
			continue
		}
		u := s.uses.Ptr(n)
		if !u.taken {
			u.taken = true
			out[i] = spelling{name: n}
			continue
		}
		for {
			u.next++
			if s.text = appendInt(append(names.Append(s.text[:0], n), '.'), int64(u.next)); !s.used(names) {
				break
			}
		}
		out[i] = spelling{name: n, n: u.next}
	}
}

// used reports whether an object of the scope has s.text as its own name. Two made-up names never meet: one with a suffix
// differs in it or in what stands before, and one without has no point.
func (s *speller) used(names *arena.Names) bool {
	x, ok := names.Lookup(view(s.text))
	return ok && s.uses.Get(x).scope == s.scope
}
