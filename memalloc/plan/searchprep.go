package plan

import (
	"math/bits"
	"slices"
)

// usable reports whether the search takes the model.
func (s *search) usable(m *model) bool {
	if m.n == 0 || m.n > maxSearch || (m.n+63)/64*int(m.s) > maxMembers || m.n*len(m.obs) > maxObstacles {
		return false
	}
	inSections := 0
	for i := range m.obs {
		inSections += int(m.obs[i].hi - m.obs[i].lo)
	}
	return inSections <= maxObstacles
}

func sized[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// prepare takes the model.
func (s *search) prepare(m *model) {
	n, sn := m.n, int(m.s)
	s.m = m
	s.words = (n + 63) / 64
	s.member = sized(s.member, sn*s.words)
	for u := range n {
		for _, p := range m.partsOf(uint32(u)) {
			for x := p.lo; x < p.hi; x++ {
				s.member[int(x)*s.words+u>>6] |= 1 << (u & 63)
			}
		}
	}
	s.prepareMeets()
	s.waits = sized(s.waits, s.words)
	s.rest, s.least, s.off = sized(s.rest, n), sized(s.least, n), sized(s.off, n)
	s.sec = sized(s.sec, sn+1)
	s.stamp = 0
	s.stampRest, s.stampLeast = sized(s.stampRest, n), sized(s.stampLeast, n)
	s.prepareObstacles()
}

// prepareMeets finds the pairs. Without gaps, those of u are the ones that start before its end, less those that end by its start.
func (s *search) prepareMeets() {
	m, w := s.m, s.words
	s.meets = sized(s.meets, m.n*w)
	if m.gapped {
		for x := range int(m.s) {
			row := s.member[x*w : (x+1)*w]
			for i, set := range row {
				for ; set != 0; set &= set - 1 {
					u := i<<6 + bits.TrailingZeros64(set)
					for k, v := range row {
						s.meets[u*w+k] |= v
					}
				}
			}
		}
	} else {
		sn := int(m.s) + 1
		started, ended := sized(s.scratchMeetA, sn*w), sized(s.scratchMeetB, sn*w)
		s.scratchMeetA, s.scratchMeetB = started, ended
		for u := range m.n {
			started[(int(m.lo[u])+1)*w+u>>6] |= 1 << (u & 63)
			ended[int(m.hi[u])*w+u>>6] |= 1 << (u & 63)
		}
		for i := w; i < sn*w; i++ {
			started[i] |= started[i-w]
			ended[i] |= ended[i-w]
		}
		for u := range m.n {
			a, b := started[int(m.hi[u])*w:], ended[int(m.lo[u])*w:]
			row := s.meets[u*w : (u+1)*w]
			for k := range row {
				row[k] = a[k] &^ b[k]
			}
		}
	}
	for u := range m.n {
		s.meets[u*w+u>>6] &^= 1 << (u & 63)
	}
}

func (s *search) prepareObstacles() {
	m := s.m
	s.obsFirst, s.secFirst = sized(s.obsFirst, m.n+1), sized(s.secFirst, int(m.s)+1)
	s.obsOf, s.obsIn = s.obsOf[:0], s.obsIn[:0]
	if len(m.obs) == 0 {
		return
	}
	for u := range m.n {
		for i := range m.obs {
			if o := &m.obs[i]; m.lo[u] < o.hi && o.lo < m.hi[u] && s.inTime(uint32(u), o) {
				s.obsOf = append(s.obsOf, uint32(i))
			}
		}
		s.obsFirst[u+1] = uint32(len(s.obsOf))
	}
	for i := range m.obs {
		for x := m.obs[i].lo; x < m.obs[i].hi; x++ {
			s.secFirst[x+1]++
		}
	}
	for x := range m.s {
		s.secFirst[x+1] += s.secFirst[x]
	}
	s.obsIn = sized(s.obsIn, int(s.secFirst[m.s]))
	for i := len(m.obs) - 1; i >= 0; i-- {
		for x := m.obs[i].lo; x < m.obs[i].hi; x++ {
			s.secFirst[x+1]--
			s.obsIn[s.secFirst[x+1]] = uint32(i)
		}
	}
	// Now secFirst[x+1] is where x starts: one place too far.
	copy(s.secFirst, s.secFirst[1:])
	s.secFirst[m.s] = uint32(len(s.obsIn))
}

func (s *search) inTime(u uint32, o *obstacle) bool {
	for _, p := range s.m.partsOf(u) {
		if p.lo < o.hi && o.lo < p.hi {
			return true
		}
	}
	return false
}

// fit is the least offset for u at or above x that its alignment and the obstacles leave.
func (s *search) fit(u uint32, x int64) int64 {
	m := s.m
	x = alignUp(x, m.align[u])
	for _, i := range s.obsOf[s.obsFirst[u]:s.obsFirst[u+1]] {
		if o := &m.obs[i]; x < o.b && o.a < x+m.size[u] {
			x = alignUp(o.b, m.align[u])
		}
	}
	return x
}

// blocked is what obstacles take above a floor.
func (s *search) blocked(sec int32, floor int64) int64 {
	t := int64(0)
	for _, i := range s.obsIn[s.secFirst[sec]:s.secFirst[sec+1]] {
		if o := &s.m.obs[i]; o.b > floor {
			t += o.b - max(o.a, floor)
		}
	}
	return t
}
