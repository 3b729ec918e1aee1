package ir

import (
	"math"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"pgregory.net/rapid"
)

func TestTrips(t *testing.T) {
	for _, c := range []struct {
		r      AxisRow
		n      uint64
		ok     bool
		lo, hi int64
	}{
		{AxisRow{Lo: 0, Hi: 4, Step: 1}, 4, true, 0, 3},
		{AxisRow{Lo: 1, Hi: 8, Step: 3}, 3, true, 1, 7},
		{AxisRow{Lo: 1, Hi: 7, Step: 3}, 2, true, 1, 4},
		{AxisRow{Lo: 5, Hi: -1, Step: -2}, 3, true, 1, 5},
		{AxisRow{Lo: 4, Hi: 4, Step: 1}, 0, true, 0, 0},
		{AxisRow{Lo: 4, Hi: 5, Step: -1}, 0, true, 0, 0},
		{AxisRow{Lo: 4, Hi: 5}, 0, false, 0, 0},
		{AxisRow{Lo: math.MinInt64, Hi: math.MaxInt64, Step: 1}, math.MaxUint64, true, math.MinInt64, math.MaxInt64 - 1},
		{AxisRow{Lo: 1, Hi: 0, Step: math.MinInt64}, 1, true, 1, 1},
	} {
		n, ok := c.r.Trips()
		if n != c.n || ok != c.ok {
			t.Errorf("%+v: %d trips, %v", c.r, n, ok)
		}
		if n > 0 {
			if lo, hi := c.r.Range(); lo != c.lo || hi != c.hi {
				t.Errorf("%+v: from %d to %d", c.r, lo, hi)
			}
		}
	}
}

// Random expressions: a value by a plain recursion, and bounds that hold all values over the axes.
func TestExprEval(t *testing.T) {
	var x ExprEval
	rapid.Check(t, func(t *rapid.T) {
		var m Module
		num := func(s string, lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(t, s) }
		n := int(num("axes", 1, 3))
		for range n {
			lo := num("lo", -5, 5)
			m.Axes.Add(AxisRow{Lo: lo, Hi: lo + num("len", 1, 4), Step: 1})
			m.Exprs.Add(ExprRow{Kind: ExprAxis, Ref: uint32(m.Axes.Len() - 1)})
		}
		old := func() Expr { return Expr(num("old", 1, int64(m.Exprs.Len()-1))) }
		for range num("exprs", 1, 6) {
			switch num("kind", 0, 3) {
			case 0:
				m.Exprs.Add(ExprRow{Kind: ExprMul, A: old(), C: num("c", -3, 3)})
			case 1:
				m.Exprs.Add(ExprRow{Kind: ExprFloorDiv, A: old(), C: num("c", 1, 4)})
			case 2:
				m.Exprs.Add(ExprRow{Kind: ExprMod, A: old(), C: num("c", 1, 4)})
			case 3:
				m.Exprs.Add(ExprRow{Kind: ExprAffine, C: num("c", -9, 9), Terms: m.Terms.Add(Term{old(), num("k", -3, 3)}, Term{old(), num("k", -3, 3)})})
			}
		}
		e := Expr(m.Exprs.Len() - 1)
		var at [4]int64
		var value func(Expr) int64
		value = func(e Expr) int64 {
			r := m.Exprs.At(e)
			switch r.Kind {
			case ExprAxis:
				return at[r.Ref]
			case ExprMul:
				return value(r.A) * r.C
			case ExprFloorDiv:
				return int64(math.Floor(float64(value(r.A)) / float64(r.C)))
			case ExprMod:
				return (value(r.A)%r.C + r.C) % r.C
			}
			v := r.C
			for _, k := range m.Terms.Of(r.Terms) {
				v += k.Coeff * value(k.Expr)
			}
			return v
		}
		lo, hi, err := x.Bounds(&m, e, func(a Axis) (int64, int64, bool) {
			lo, hi := m.Axes.At(a).Range()
			return lo, hi, true
		})
		if err != nil {
			t.Fatal(err)
		}
		var walk func(k int)
		walk = func(k int) {
			if k <= n {
				for at[k] = m.Axes.At(Axis(k)).Lo; at[k] < m.Axes.At(Axis(k)).Hi; at[k]++ {
					walk(k + 1)
				}
				return
			}
			want := value(e)
			a, b, err := x.Bounds(&m, e, func(a Axis) (int64, int64, bool) { return at[a], at[a], true })
			if err != nil || a != want || b != want {
				t.Fatalf("value [%d, %d], %v, want %d", a, b, err, want)
			}
			if want < lo || want > hi {
				t.Fatalf("value %d outside of [%d, %d]", want, lo, hi)
			}
		}
		walk(1)
	})
}

// A shared part is computed once: without that this takes 2^60 steps.
func TestExprEvalShares(t *testing.T) {
	var m Module
	e := m.Exprs.Add(ExprRow{Kind: ExprAffine, C: 1})
	for range 60 {
		e = m.Exprs.Add(ExprRow{Kind: ExprSum, Terms: m.Terms.Add(Term{e, 1}, Term{e, 1})})
	}
	var x ExprEval
	if lo, hi, err := x.Bounds(&m, e, nil); err != nil || lo != 1<<60 || hi != 1<<60 {
		t.Errorf("[%d, %d], %v", lo, hi, err)
	}
}

func TestResolve(t *testing.T) {
	var m Module
	m.Gen, _ = target.ByLevel(30)
	var b Builder
	b.NewFunc(&m, "main", "Block1")
	s := b.Tensor(0, KindInternal, ClassNeuronBlockTensor, target.Float32, 3, 64, 16)
	var block [3]Loc
	for k := range block {
		block[k] = b.Place(s, 0, target.SpaceSB, 64, 64)
	}
	b.Close()
	sym := SymRow{Set: s, AP: APRow{Dtype: target.Float32, Parts: 32, Off: 4, Pairs: [5]Pair{{16, 32}, {1, 8}}}}
	for _, c := range []struct {
		addr  int64
		ok    bool
		block int
		start uint8
		off   int64
	}{
		{0, true, 0, 0, 4}, {1024, true, 1, 0, 4}, {2048 + 32*16 + 4, true, 2, 32, 8}, {-4, true, 0, 0, 0},
		{-5, false, 0, 0, 0}, {3072, false, 0, 0, 0}, {5, false, 0, 0, 0}, {33 * 16, false, 0, 0, 0},
	} {
		a, ok := m.Resolve(&sym, c.addr)
		if ok != c.ok || ok && (a.Loc != block[c.block] || a.Start != c.start || a.Off != c.off) {
			t.Errorf("at %d: %+v, %v", c.addr, a, ok)
		}
	}
}
