package onnx

import (
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// term is one operand of an einsum: a node and the label of each of its dimensions. Letters are themselves; the dimensions
// behind an ellipsis are negative, -1 the last.
type term struct {
	x      N
	labels []int
}

func (t term) at(label int) int { return slices.Index(t.labels, label) }

// opEinsum sums what only one operand has, then contracts the operands from left to right.
func opEinsum(e *emit) {
	eq := strings.ReplaceAll(e.attrStr("equation", ""), " ", "")
	left, right, explicit := strings.Cut(eq, "->")
	subs := strings.Split(left, ",")
	if len(subs) != len(e.ins) {
		e.fail("equation %q for %d operands", eq, len(e.ins))
	}
	ts := make([]term, len(subs))
	widest := 0 // dimensions behind the ellipsis
	for i, s := range subs {
		x := e.in(i)
		ts[i] = term{x, e.labels(s, e.rank(x))}
		for _, l := range ts[i].labels {
			widest = max(widest, -l)
		}
	}
	count := map[int]int{}
	var order []int // letters as they appear
	for _, t := range ts {
		for _, l := range t.labels {
			if count[l]++; l > 0 && !slices.Contains(order, l) {
				order = append(order, l)
			}
		}
	}
	var out []int
	switch {
	case explicit:
		out = e.labels(right, strings.Count(right, "")-1-3*strings.Count(right, "...")+widest*strings.Count(right, "..."))
	default:
		for k := widest; k > 0; k-- {
			out = append(out, -k)
		}
		slices.Sort(order)
		for _, l := range order {
			if count[l] == 1 {
				out = append(out, l)
			}
		}
	}
	for _, l := range out {
		if count[l] == 0 {
			e.fail("equation %q: the result names what no operand has", eq)
		}
	}
	for i := range ts {
		ts[i] = e.sumOut(ts[i], func(l int) bool { return count[l] == 1 && !slices.Contains(out, l) })
	}
	t := ts[0]
	for i := 1; i < len(ts); i++ {
		later := func(l int) bool {
			return slices.Contains(out, l) || slices.ContainsFunc(ts[i+1:], func(u term) bool { return u.at(l) >= 0 })
		}
		t = e.contract(t, ts[i], later)
	}
	t = e.sumOut(t, func(l int) bool { return !slices.Contains(out, l) })
	if len(t.labels) != len(out) {
		e.fail("equation %q", eq)
	}
	perm := make([]int64, len(out))
	for i, l := range out {
		perm[i] = int64(t.at(l))
	}
	y := e.transpose(t.x, perm...)
	if y == e.in(0) {
		e.pass(0)
		return
	}
	e.set(0, y)
}

// labels reads the subscripts of an operand of a rank. A letter twice in one operand (a diagonal) is refused.
func (e *emit) labels(s string, rank int) []int {
	var out []int
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case strings.HasPrefix(s[i:], "..."):
			n := rank - (len(s) - 3)
			for k := n; k > 0; k-- {
				out = append(out, -k)
			}
			i += 2
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if slices.Contains(out, int(c)) {
				e.refuse("subscripts %q repeat %c", s, c)
			}
			out = append(out, int(c))
		default:
			e.fail("subscripts %q", s)
		}
	}
	if len(out) != rank || strings.Count(s, "...") > 1 {
		e.fail("subscripts %q for rank %d", s, rank)
	}
	return out
}

func (e *emit) sumOut(t term, gone func(int) bool) term {
	var axes []int64
	var kept []int
	for i, l := range t.labels {
		if gone(l) {
			axes = append(axes, int64(i))
		} else {
			kept = append(kept, l)
		}
	}
	return term{e.reduce(graph.ReduceSum, t.x, axes, false), kept}
}

// contract is one dot: labels of both operands are batch dimensions if they are needed later, else summed over. A dimension of 1
// behind an ellipsis stretches.
func (e *emit) contract(a, b term, later func(int) bool) term {
	var ab, bb, ac, bc []int64
	var labels []int
	ad, bd := e.shape(a.x), e.shape(b.x)
	for i, l := range a.labels {
		if j := b.at(l); j >= 0 && l < 0 {
			ad[i] = max(ad[i], bd[j])
			bd[j] = ad[i]
		}
	}
	a.x, b.x = e.stretch(a.x, ad), e.stretch(b.x, bd)
	for i, l := range a.labels {
		j := b.at(l)
		switch {
		case j < 0:
		case later(l):
			ab, bb, labels = append(ab, int64(i)), append(bb, int64(j)), append(labels, l)
		default:
			ac, bc = append(ac, int64(i)), append(bc, int64(j))
		}
	}
	for _, l := range a.labels {
		if b.at(l) < 0 {
			labels = append(labels, l)
		}
	}
	for _, l := range b.labels {
		if a.at(l) < 0 {
			labels = append(labels, l)
		}
	}
	return term{e.dot(a.x, b.x, ab, bb, ac, bc), labels}
}
