package machine

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/rosmar-compiler/rosmar/ir/kernel"
)

const (
	poison    = 0xFF // NaN in every float type
	pageShift = 10   // dirty pages, the unit of poisoning again
	rowPad    = 64   // bytes after each partition row: keeps a column out of one cache set
)

// store is one byte space. A byte of shadow equals the generation of the run when this run wrote the byte of data; nothing
// else may be read. fixed bytes, inputs and constants, have no shadow: they count as written and are never written.
type store struct {
	data, shadow []byte
	dirty        []uint64 // pages that a run may have written, one bit each
	pitch        int      // bytes from one partition to the next
	fixed        bool
}

// resize gives the store n poisoned bytes. It keeps its memory; what its shadow says is of earlier generations.
func (s *store) resize(n, pitch int) {
	if s.fixed {
		*s = store{}
	}
	pages := (n + 1<<pageShift - 1) >> pageShift
	words := (pages + 63) / 64
	if cap(s.data) < n {
		s.data, s.shadow, s.dirty = make([]byte, n), make([]byte, n), make([]uint64, words)
		s.pitch = pitch
		spoil(s.data)
		return
	}
	s.reset()
	s.data, s.shadow, s.dirty, s.pitch = s.data[:n], s.shadow[:n], s.dirty[:words], pitch
}

// fix makes the store a view of bytes that are all written.
func (s *store) fix(b []byte) { *s = store{data: b, fixed: true, pitch: len(b)} }

// reset poisons what was written, in time proportional to it.
func (s *store) reset() {
	for w, set := range s.dirty {
		for ; set != 0; set &= set - 1 {
			lo := (w*64 + bits.TrailingZeros64(set)) << pageShift
			spoil(s.data[lo:min(lo+1<<pageShift, len(s.data))])
		}
		s.dirty[w] = 0
	}
}

// poisoned is a block to copy from: a copy is much faster than a loop over bytes.
var poisoned = func() (b [1 << 15]byte) {
	for i := range b {
		b[i] = poison
	}
	return b
}()

func spoil(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, poisoned[:]):]
	}
}

const stampSize = 1 << 14

// stamp is the generation of the current run and a block of it, to compare shadows with and to copy from.
type stamp struct {
	block [stampSize]byte
	gen   byte
}

// next begins a generation. It reports false when generations are used up, after 255 of them: then all shadows must be
// cleared.
func (t *stamp) next() bool {
	t.gen++
	fresh := t.gen != 0
	if !fresh {
		t.gen = 1
	}
	for i := range t.block {
		t.block[i] = t.gen
	}
	return fresh
}

// walker visits the bytes of a view as rows: at, at+step, … k times n contiguous bytes. Axes that repeat the same bytes are
// skipped.
type walker struct {
	at, k, step, n int
	axes           int
	steps          [kernel.Axes + 1]int
	nums, idx      [kernel.Axes + 1]int
}

func (w *walker) start(v *kernel.View) {
	w.at, w.n, w.k, w.step, w.axes = v.Off, v.Dtype.Size(), 1, 0, 0
	row := false
	for d := 0; d <= v.N; d++ {
		num, step := v.Parts, v.PStep
		if d < v.N {
			num, step = v.Nums[d], v.Steps[d]
		}
		switch {
		case num == 1 || step == 0:
		case !row && step == w.n:
			w.n *= num
		case !row:
			w.k, w.step, row = num, step, true
		case w.axes == 0 && step == w.step*w.k:
			w.k *= num
		default:
			w.steps[w.axes], w.nums[w.axes], w.idx[w.axes] = step, num, 0
			w.axes++
		}
	}
}

// next moves to the next row.
func (w *walker) next() bool {
	for d := 0; d < w.axes; d++ {
		w.at += w.steps[d]
		if w.idx[d]++; w.idx[d] < w.nums[d] {
			return true
		}
		w.at -= w.idx[d] * w.steps[d]
		w.idx[d] = 0
	}
	return false
}

// written reports whether this run wrote every byte of a checked view, else the first one that it did not.
func (s *store) written(v *kernel.View, t *stamp) (int, bool) {
	if s.fixed {
		return 0, true
	}
	block := &t.block
	want4, want2 := binary.LittleEndian.Uint32(block[:]), binary.LittleEndian.Uint16(block[:])
	var w walker
	w.start(v)
	for {
		at := w.at
		switch w.n {
		case 4:
			for i := 0; i < w.k; i++ {
				if binary.LittleEndian.Uint32(s.shadow[at:]) != want4 {
					return s.unwritten(at, 4, t.gen), false
				}
				at += w.step
			}
		case 2:
			for i := 0; i < w.k; i++ {
				if binary.LittleEndian.Uint16(s.shadow[at:]) != want2 {
					return s.unwritten(at, 2, t.gen), false
				}
				at += w.step
			}
		default:
			for i := 0; i < w.k; i++ {
				run := s.shadow[at : at+w.n]
				for len(run) > stampSize {
					if !bytes.Equal(run[:stampSize], block[:]) {
						return s.unwritten(at, w.n, t.gen), false
					}
					run = run[stampSize:]
				}
				if !bytes.Equal(run, block[:len(run)]) {
					return s.unwritten(at, w.n, t.gen), false
				}
				at += w.step
			}
		}
		if !w.next() {
			return 0, true
		}
	}
}

func (s *store) unwritten(at, n int, gen byte) int {
	for i := at; i < at+n; i++ {
		if s.shadow[i] != gen {
			return i
		}
	}
	return at
}

// mark makes every byte of a checked view written.
func (s *store) mark(v *kernel.View, t *stamp) {
	block := &t.block
	word4, word2 := binary.LittleEndian.Uint32(block[:]), binary.LittleEndian.Uint16(block[:])
	var w walker
	w.start(v)
	for {
		at := w.at
		far := (w.k - 1) * w.step
		if w.step > 1<<pageShift || w.step < -1<<pageShift {
			for i := 0; i < w.k; i++ {
				s.touch(at+i*w.step, at+i*w.step+w.n)
			}
		} else {
			s.touch(at+min(far, 0), at+max(far, 0)+w.n)
		}
		switch w.n {
		case 4:
			for i := 0; i < w.k; i++ {
				binary.LittleEndian.PutUint32(s.shadow[at:], word4)
				at += w.step
			}
		case 2:
			for i := 0; i < w.k; i++ {
				binary.LittleEndian.PutUint16(s.shadow[at:], word2)
				at += w.step
			}
		default:
			for i := 0; i < w.k; i++ {
				run := s.shadow[at : at+w.n]
				for len(run) > 0 {
					run = run[copy(run, block[:]):]
				}
				at += w.step
			}
		}
		if !w.next() {
			return
		}
	}
}

// touch notes that bytes lo to hi may be written.
func (s *store) touch(lo, hi int) {
	for p := lo >> pageShift; p <= (hi-1)>>pageShift; p++ {
		s.dirty[p>>6] |= 1 << (p & 63)
	}
}
