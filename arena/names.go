package arena

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"unsafe"
)

// Name is an interned text. Name 0 is the empty text. Two names of one Names are equal exactly when their texts are.
type Name uint32

// Derive says how a name was made from its parent.
type Derive uint8

// The kinds of derivation. The word of each, followed by the ordinal, is what the text of a derived name ends in.
const (
	DeriveNone   Derive = iota // not derived
	DeriveSpill                // .spillN: the store of a spilled value
	DeriveReload               // .reloadN: the load of a spilled value
	DeriveClone                // .cloneN: a copy made by duplication
	DeriveHome                 // .homeN: the place in memory of a spilled value
	DeriveSplit                // .splitN: a part of a split live range
	DeriveTile                 // .tN: a tile of a tensor
	DeriveUnroll               // .uN: an instance in an unrolled loop
	deriveCount
)

var deriveWords = [deriveCount]string{
	DeriveSpill:  "spill",
	DeriveReload: "reload",
	DeriveClone:  "clone",
	DeriveHome:   "home",
	DeriveSplit:  "split",
	DeriveTile:   "t",
	DeriveUnroll: "u",
}

const (
	maxDeriveWord = 6  // letters of the longest word
	maxDigits     = 10 // digits of the largest ordinal
	minSlots      = 64
	maxNames      = 3 << 30 // what 2^32 slots hold
)

// String returns the word of the kind, empty for DeriveNone.
func (d Derive) String() string {
	if d < deriveCount {
		return deriveWords[d]
	}
	return "Derive(" + strconv.Itoa(int(d)) + ")"
}

// Names turns texts into numbers and back. A pass that makes a million copies of a value names them by (parent, kind,
// ordinal) for 16 bytes each; no text is made until one is printed.
//
// There is one form for each text, whichever way it came in. Intern takes off every ending of the shape
//
//	"." word ordinal     word: a word of Derive; ordinal: decimal, below 2^32, no leading zeros
//
// stores what is left as plain text, and derives the rest from it. So Intern("x.spill3") is Derived(Intern("x"), DeriveSpill, 3)
// in either order, and text that is printed and parsed again keeps its identity. As a consequence Intern also creates the
// names of the parents. "x.spill03" and "x.spill" are plain texts.
//
// Numbers ascend in the order of creation and do not depend on the hash. A parent's number is below its child's, so loops
// up the chain end. Names holds up to 4 GiB of plain text and 3·2^30 names, and panics beyond. Do not intern text that is used
// once: it stays until Reset.
type Names struct {
	rows  []nameRow // row 0 is the empty text; empty before the first name
	text  []byte    // plain texts, end to end
	slots []uint64  // open addressing with linear probing: hash<<32 | name, 0 = free; a power of two long, at most 3/4 full
	seed  maphash.Seed
	salt  uint64
}

type nameRow struct {
	a, b uint32 // plain: offset and length in text; derived: parent and ordinal
	hash uint32
	kind Derive // DeriveNone = plain
}

// Intern returns the name of s, making it if it is new.
func (n *Names) Intern(s string) Name {
	if len(s) == 0 {
		return 0
	}
	if n.slots == nil {
		n.init()
	}
	end := plainEnd(s)
	name := n.plain(s[:end])
	for end < len(s) {
		var kind Derive
		var ordinal uint32
		kind, ordinal, end = nextEnding(s, end)
		name = n.derived(name, kind, ordinal)
	}
	return name
}

// InternBytes is Intern for a byte slice. It copies nothing unless the name is new, and keeps no reference to b.
func (n *Names) InternBytes(b []byte) Name {
	// Intern reads its argument during the call only, and copies what it stores; b cannot change meanwhile.
	return n.Intern(unsafe.String(unsafe.SliceData(b), len(b)))
}

// Lookup returns the name of s if it exists. It changes nothing.
func (n *Names) Lookup(s string) (Name, bool) {
	if len(s) == 0 {
		return 0, true
	}
	if n.slots == nil {
		return 0, false
	}
	end := plainEnd(s)
	var name Name
	if end > 0 {
		_, found := n.findPlain(s[:end], n.hashPlain(s[:end]))
		if found == 0 {
			return 0, false
		}
		name = found
	}
	for end < len(s) {
		var kind Derive
		var ordinal uint32
		kind, ordinal, end = nextEnding(s, end)
		_, found := n.findDerived(name, kind, ordinal, n.hashDerived(name, kind, ordinal))
		if found == 0 {
			return 0, false
		}
		name = found
	}
	return name, true
}

// Derived returns the name made from parent by kind and ordinal; the same three give the same name. With DeriveNone it
// returns parent.
func (n *Names) Derived(parent Name, kind Derive, ordinal uint32) Name {
	if kind == DeriveNone {
		return parent
	}
	if kind >= deriveCount || int(parent) >= n.Len() {
		panic(fmt.Sprintf("arena: cannot derive a name of kind %d from name %d: kinds end at %d, names at %d",
			uint8(kind), uint32(parent), deriveCount-1, n.Len()-1))
	}
	if n.slots == nil {
		n.init()
	}
	return n.derived(parent, kind, ordinal)
}

// Origin returns what x was derived from, by what, and with which ordinal; kind is DeriveNone and the rest 0 for plain text.
func (n *Names) Origin(x Name) (parent Name, kind Derive, ordinal uint32) {
	if r := n.row(x); r.kind != DeriveNone {
		return Name(r.a), r.kind, r.b
	}
	return 0, DeriveNone, 0
}

// Root returns the plain text that the chain of derivations of x starts from; it is x itself when x is plain.
func (n *Names) Root(x Name) Name {
	for r := n.row(x); r.kind != DeriveNone; r = n.row(x) {
		x = Name(r.a)
	}
	return x
}

// String spells x. Each call makes a new string: printers use Append.
func (n *Names) String(x Name) string {
	if r := n.row(x); r.kind == DeriveNone {
		return string(n.text[r.a : r.a+r.b])
	}
	var buf [64]byte
	return string(n.Append(buf[:0], x))
}

// Append appends the text of x to dst. The chain of derivations is walked twice, for the length and then from the end of
// the text to its start, so its depth needs no stack.
func (n *Names) Append(dst []byte, x Name) []byte {
	size, y := 0, x
	r := n.row(y)
	for ; r.kind != DeriveNone; r = n.row(y) {
		size += 1 + len(deriveWords[r.kind]) + digits(r.b)
		y = Name(r.a)
	}
	size += int(r.b)
	old := len(dst)
	dst = slices.Grow(dst, size)[:old+size]
	end := len(dst)
	for r = n.row(x); r.kind != DeriveNone; r = n.row(Name(r.a)) {
		for v, first := r.b, true; first || v > 0; v /= 10 {
			first = false
			end--
			dst[end] = byte('0' + v%10)
		}
		word := deriveWords[r.kind]
		end -= len(word)
		copy(dst[end:], word)
		end--
		dst[end] = '.'
	}
	copy(dst[old:end], n.text[r.a:r.a+r.b])
	return dst
}

// Len returns the number of names with the empty one: names are 0 to Len()-1.
func (n *Names) Len() int { return max(1, len(n.rows)) }

// Reserve makes room for more names, and for so many bytes of plain text.
func (n *Names) Reserve(names, text int) {
	if n.slots == nil {
		n.init()
	}
	n.rows = slices.Grow(n.rows, names)
	n.text = slices.Grow(n.text, text)
	size := len(n.slots)
	for size/4*3 < len(n.rows)+names {
		size *= 2
	}
	if size > len(n.slots) {
		n.rehash(size)
	}
}

// Reset forgets all names but the empty one and keeps the storage. It takes time in the names it forgets, not in the largest
// number there ever was.
func (n *Names) Reset() {
	if n.slots == nil {
		return
	}
	if len(n.rows) < len(n.slots)/16 {
		mask := uint32(len(n.slots) - 1)
		for x := 1; x < len(n.rows); x++ {
			i := n.rows[x].hash & mask
			for uint32(n.slots[i]) != uint32(x) {
				i = (i + 1) & mask
			}
			n.slots[i] = 0
		}
	} else {
		clear(n.slots)
	}
	n.rows = n.rows[:1]
	n.text = n.text[:0]
}

func (n *Names) init() {
	n.rows = append(n.rows[:0], nameRow{})
	n.slots = make([]uint64, minSlots)
	n.seed = maphash.MakeSeed()
	n.salt = maphash.String(n.seed, "")
}

// row returns the row of x; it gives the empty text's before there is any storage.
func (n *Names) row(x Name) nameRow {
	if uint(x) < uint(len(n.rows)) {
		return n.rows[x]
	}
	if x != 0 {
		panic(fmt.Sprintf("arena: name %d is not in this table: its names end at %d", uint32(x), n.Len()-1))
	}
	return nameRow{}
}

func (n *Names) plain(s string) Name {
	if len(s) == 0 {
		return 0
	}
	h := n.hashPlain(s)
	slot, x := n.findPlain(s, h)
	if x != 0 {
		return x
	}
	if uint64(len(n.text))+uint64(len(s)) > math.MaxUint32 {
		panic(fmt.Sprintf("arena: names are full: %d bytes of text, %d more pass the limit of %d",
			len(n.text), len(s), uint32(math.MaxUint32)))
	}
	off := uint32(len(n.text))
	n.text = append(n.text, s...)
	return n.insert(slot, nameRow{a: off, b: uint32(len(s)), hash: h})
}

func (n *Names) derived(parent Name, kind Derive, ordinal uint32) Name {
	h := n.hashDerived(parent, kind, ordinal)
	slot, x := n.findDerived(parent, kind, ordinal, h)
	if x != 0 {
		return x
	}
	return n.insert(slot, nameRow{a: uint32(parent), b: ordinal, hash: h, kind: kind})
}

func (n *Names) hashPlain(s string) uint32 { return uint32(maphash.String(n.seed, s)) }

// hashDerived mixes the three fields with the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func (n *Names) hashDerived(parent Name, kind Derive, ordinal uint32) uint32 {
	x := uint64(parent)<<32 | uint64(ordinal)
	x ^= n.salt + uint64(kind)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32(x ^ x>>31)
}

// findPlain returns the name of the plain text s, or 0 and the slot where it belongs.
func (n *Names) findPlain(s string, h uint32) (slot uint32, x Name) {
	mask := uint32(len(n.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := n.slots[i]
		if e == 0 {
			return i, 0
		}
		if uint32(e>>32) != h {
			continue
		}
		if r := &n.rows[uint32(e)]; r.kind == DeriveNone && string(n.text[r.a:r.a+r.b]) == s {
			return i, Name(uint32(e))
		}
	}
}

// findDerived returns the name of the triple, or 0 and the slot where it belongs.
func (n *Names) findDerived(parent Name, kind Derive, ordinal, h uint32) (slot uint32, x Name) {
	mask := uint32(len(n.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := n.slots[i]
		if e == 0 {
			return i, 0
		}
		if uint32(e>>32) != h {
			continue
		}
		if r := &n.rows[uint32(e)]; r.kind == kind && r.a == uint32(parent) && r.b == ordinal {
			return i, Name(uint32(e))
		}
	}
}

func (n *Names) insert(slot uint32, r nameRow) Name {
	x := len(n.rows)
	if uint64(x) >= maxNames {
		panic(fmt.Sprintf("arena: names are full: all %d are in use", uint32(maxNames)))
	}
	n.rows = append(n.rows, r)
	n.slots[slot] = uint64(r.hash)<<32 | uint64(x)
	if len(n.rows) > len(n.slots)/4*3 {
		n.rehash(2 * len(n.slots))
	}
	return Name(x)
}

func (n *Names) rehash(size int) {
	n.slots = make([]uint64, size)
	mask := uint32(size - 1)
	for x := 1; x < len(n.rows); x++ {
		h := n.rows[x].hash
		i := h & mask
		for n.slots[i] != 0 {
			i = (i + 1) & mask
		}
		n.slots[i] = uint64(h)<<32 | uint64(x)
	}
}

// cutEnding returns what the last ending of s derives, and where it starts; kind is DeriveNone when s has none.
func cutEnding(s string) (kind Derive, ordinal uint32, start int) {
	i := len(s)
	for i > 0 && s[i-1]-'0' < 10 && len(s)-i < maxDigits {
		i--
	}
	d := s[i:]
	if len(d) == 0 || len(d) > 1 && d[0] == '0' {
		return DeriveNone, 0, len(s)
	}
	j := i
	for j > 0 && s[j-1]-'a' < 26 && i-j <= maxDeriveWord {
		j--
	}
	if j == i || j == 0 || s[j-1] != '.' { // an eleventh digit ends up here too
		return DeriveNone, 0, len(s)
	}
	for k := DeriveNone + 1; k < deriveCount; k++ {
		if deriveWords[k] != s[j:i] {
			continue
		}
		v := uint64(0)
		for _, c := range []byte(d) {
			v = v*10 + uint64(c-'0')
		}
		if v > math.MaxUint32 {
			break
		}
		return k, uint32(v), j - 1
	}
	return DeriveNone, 0, len(s)
}

// plainEnd returns where the endings of s start. Each step looks at one ending, so the whole takes time in len(s).
func plainEnd(s string) int {
	end := len(s)
	for {
		kind, _, start := cutEnding(s[:end])
		if kind == DeriveNone {
			return end
		}
		end = start
	}
}

// nextEnding reads the ending that starts at start, one of those found by plainEnd, and returns where it ends.
func nextEnding(s string, start int) (kind Derive, ordinal uint32, end int) {
	end = start + 1
	for end < len(s) && s[end] != '.' {
		end++
	}
	kind, ordinal, _ = cutEnding(s[:end])
	return kind, ordinal, end
}

// digits returns the number of decimal digits of v.
func digits(v uint32) int {
	d := 1
	for ; v >= 10; v /= 10 {
		d++
	}
	return d
}
