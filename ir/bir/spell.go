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
	unnamed := false
	for _, n := range list {
		unnamed = unnamed || n == 0
		s.uses.Set(n, use{scope: s.scope})
	}
	last := uint64(0)
	if unnamed {
		// Numbers beyond those that follow the prefix in a name of the scope are free, with any suffix.
		for _, n := range list {
			s.text = names.Append(s.text[:0], n)
			last = max(last, numberAfter(s.text, prefix))
		}
	}
	for i, n := range list {
		if n == 0 {
			last++
			out[i] = spelling{n: uint32(last)}
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
			s.text = appendInt(append(names.Append(s.text[:0], n), '.'), int64(u.next))
			if x, ok := names.Lookup(string(s.text)); !ok || s.uses.Get(x).scope != s.scope {
				break
			}
		}
		out[i] = spelling{name: n, n: u.next}
	}
}

// maxNumber keeps numbers inside a spelling even when every object follows the largest.
const maxNumber = 1 << 30

// numberAfter is the number behind the prefix in a name, 0 when there is none. Larger numbers than maxNumber cannot be
// those of a spelling.
func numberAfter(name []byte, prefix string) uint64 {
	if len(name) <= len(prefix) || string(name[:len(prefix)]) != prefix {
		return 0
	}
	v := uint64(0)
	for _, c := range name[len(prefix):] {
		if c -= '0'; c > 9 || v > maxNumber {
			break
		}
		v = v*10 + uint64(c)
	}
	if v > maxNumber {
		return 0
	}
	return v
}
