package plan

import "strconv"

// cutProblem is a rectangle of span moments by height bytes that was cut into n buffers at random, so a layout of that height exists
// and is known: the offsets are returned. Of 100 cuts, stack split the bytes and the rest the time. drop of 1000 buffers are left out.
func cutProblem(n int, span, height int64, stack, drop int, seed uint64) (*Problem, []int64) {
	rng := splitmix(seed)
	type rect struct{ t0, t1, b0, b1 int64 }
	rects := []rect{{0, span, 0, height}}
	for tries := 0; len(rects) < n && tries < 20*n; tries++ {
		// The largest of three by area, so that sizes stay comparable.
		at := int(rng.next() % uint64(len(rects)))
		for range 2 {
			k := int(rng.next() % uint64(len(rects)))
			if a, b := rects[k], rects[at]; (a.t1-a.t0)*(a.b1-a.b0) > (b.t1-b.t0)*(b.b1-b.b0) {
				at = k
			}
		}
		r := rects[at]
		q := r
		if int(rng.next()%100) < stack {
			if r.b1-r.b0 < 2 {
				continue
			}
			x := r.b0 + 1 + int64(rng.next()%uint64(r.b1-r.b0-1))
			r.b1, q.b0 = x, x
		} else {
			if r.t1-r.t0 < 2 {
				continue
			}
			x := r.t0 + 1 + int64(rng.next()%uint64(r.t1-r.t0-1))
			r.t1, q.t0 = x, x
		}
		rects[at] = r
		rects = append(rects, q)
	}
	for i := len(rects) - 1; i > 0; i-- {
		k := int(rng.next() % uint64(i+1))
		rects[i], rects[k] = rects[k], rects[i]
	}
	p := &Problem{}
	var off []int64
	for i, r := range rects {
		if int(rng.next()%1000) < drop && p.Len() > 0 {
			continue
		}
		p.Add(strconv.Itoa(i), r.t0, r.t1, r.b1-r.b0)
		off = append(off, r.b0)
	}
	return p, off
}
