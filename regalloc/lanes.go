package regalloc

import (
	"math/bits"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Lanes is the geometry of a register file: lanes that are all alike, and nodes that take one of them or a few consecutive ones.
// A pair may start at an odd lane. The zero value needs a Reset.
type Lanes struct {
	// At is the first lane of each node, -1 where it has none.
	At []int32

	n     int // lanes
	width []uint8
	taken []uint64 // lanes that nobody may have, and those of the last word that do not exist
	busy  []uint64
	// The lanes of each node that has a place, none of one that has not, so that select need not ask: a word a node in a file of up
	// to 64 lanes, else rows pairs of words a node.
	mask []uint64
	wide [][2]uint64
	rows int
}

// Reset starts over with n nodes of one lane each, none of which has a place, and a file of lanes lanes, none of which is taken.
func (l *Lanes) Reset(n, lanes int) {
	l.n, l.rows = lanes, 0
	l.At = arena.Resized(l.At, n)
	for i := range l.At {
		l.At[i] = -1
	}
	l.width = arena.Resized(l.width, n)
	for i := range l.width {
		l.width[i] = 1
	}
	words := 1
	if lanes <= 64 {
		l.mask = arena.Zeroed(l.mask, n)
	} else {
		l.rows = (lanes + 127) / 128
		words = 2 * l.rows
		l.wide = arena.Zeroed(l.wide, n*l.rows)
	}
	l.busy = arena.Resized(l.busy, words)
	l.taken = arena.Zeroed(l.taken, words)
	for k := lanes; k < 64*words; k++ {
		l.Forbid(k)
	}
}

// Forbid keeps a lane free.
func (l *Lanes) Forbid(lane int) { l.taken[lane>>6] |= 1 << (lane & 63) }

// SetWidth says that node n takes w consecutive lanes.
func (l *Lanes) SetWidth(n uint32, w int) { l.width[n] = uint8(w) }

// Width is how many lanes node n takes.
func (l *Lanes) Width(n uint32) int { return int(l.width[n]) }

// Fix gives node n a place before colouring. Its Node must be Fixed, so that Select leaves it alone.
func (l *Lanes) Fix(n uint32, lane int) { l.put(n, lane) }

// Forget takes their places from nodes that are not fixed, for a second Select.
func (l *Lanes) Forget(nodes []Node) {
	for i := range nodes {
		if nodes[i].Fixed {
			continue
		}
		l.At[i] = -1
		if l.rows == 0 {
			l.mask[i] = 0
		} else {
			clear(l.wide[i*l.rows : (i+1)*l.rows])
		}
	}
}

// Node describes a node of w lanes and some cost of spilling to a Solver whose Weight is one class of 1: it has as many places as
// there are runs of w lanes that nobody forbids, and a neighbour of v lanes denies it at most w+v-1 of them.
func (l *Lanes) Node(w int, cost int64) Node {
	room := 0
	for at := range l.n {
		if l.fits(l.taken, at, w) {
			room++
		}
	}
	return Node{Cost: cost, Room: int64(room), Own: int32(w) - 1, Len: int32(w), Bytes: int64(w)}
}

// Place takes the lowest free run of lanes.
func (l *Lanes) Place(n uint32, neighbours []uint32) bool {
	switch l.rows {
	case 0:
		busy, mask := l.taken[0], l.mask
		// Four at a time; the last four may overlap those before, so that no rest needs a loop whose end would be guessed wrong.
		if last := len(neighbours) - 4; last >= 0 {
			for i := 0; i < last; i += 4 {
				q := neighbours[i : i+4 : i+4]
				busy |= mask[q[0]] | mask[q[1]] | mask[q[2]] | mask[q[3]]
			}
			q := neighbours[last:]
			busy |= mask[q[0]] | mask[q[1]] | mask[q[2]] | mask[q[3]]
		} else {
			for _, j := range neighbours {
				busy |= mask[j]
			}
		}
		if l.width[n] == 1 {
			at := bits.TrailingZeros64(^busy)
			if at == 64 {
				return false
			}
			l.At[n], mask[n] = int32(at), 1<<at
			return true
		}
		l.busy[0] = busy
	case 1:
		lo, hi, wide := l.taken[0], l.taken[1], l.wide
		for _, j := range neighbours {
			m := &wide[j]
			lo |= m[0]
			hi |= m[1]
		}
		l.busy[0], l.busy[1] = lo, hi
	default:
		copy(l.busy, l.taken)
		for _, j := range neighbours {
			for k, m := range l.wide[int(j)*l.rows : int(j+1)*l.rows] {
				l.busy[2*k] |= m[0]
				l.busy[2*k+1] |= m[1]
			}
		}
	}
	w := int(l.width[n])
	for k, b := range l.busy {
		for free := ^b; free != 0; free &= free - 1 {
			if at := 64*k + bits.TrailingZeros64(free); w == 1 || l.fits(l.busy, at, w) {
				l.put(n, at)
				return true
			}
		}
	}
	return false
}

// fits reports w lanes from at on that are in the file and not in busy.
func (l *Lanes) fits(busy []uint64, at, w int) bool {
	if at+w > l.n {
		return false
	}
	for k := at; k < at+w; k++ {
		if busy[k>>6]>>(k&63)&1 != 0 {
			return false
		}
	}
	return true
}

func (l *Lanes) put(n uint32, at int) {
	l.At[n] = int32(at)
	if l.rows == 0 {
		l.mask[n] = (1<<l.width[n] - 1) << at
		return
	}
	for k := at; k < at+int(l.width[n]); k++ {
		l.wide[int(n)*l.rows+k>>7][k>>6&1] |= 1 << (k & 63)
	}
}
