package verify

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Random accesses on overlapping locations, against a model that keeps the owner of every byte.
func TestReadsAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found, clean := 0, 0
	for round := range 300 {
		base := 0
		if round%2 == 1 {
			base = 1<<pageBits - 64 // locations on both sides of the end of a page
		}
		var m ir.Module
		m.Gen, _ = target.ByLevel(30)
		var b ir.Builder
		b.NewFunc(&m, "f", "b")
		var locs []ir.Loc
		for range 4 {
			l := b.SB(m.Names.Intern("x"), target.Uint8, 64, 40)
			row := m.Locs.At(l)
			row.Flags |= ir.LocAllocated
			row.Addr, row.Base = int64(base+r.IntN(6)*8), uint8(32*r.IntN(2))
			locs = append(locs, l)
		}
		arg := func(l ir.Loc) ir.Arg {
			start, parts := r.IntN(64), 0
			parts = 1 + r.IntN(64-start)
			n, step := 1+r.IntN(8), 1+r.IntN(4)
			return b.Chip(l, target.Uint8, start, parts, int64(r.IntN(8)), ir.Pair{Step: int32(step), Num: uint32(n)})
		}
		var model [128][128]ir.Loc
		bad := ir.Inst(0)
		for range 12 {
			src, dst := arg(locs[r.IntN(len(locs))]), arg(locs[r.IntN(len(locs))])
			i := b.Emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{src}, []ir.Arg{dst})
			each(&m, src, func(p, at int, l ir.Loc) {
				if w := model[p][at-base]; w != 0 && w != l && bad == 0 {
					bad = i
				}
			})
			each(&m, dst, func(p, at int, l ir.Loc) { model[p][at-base] = l })
		}
		b.Close()
		err := Reads(&m, b.Func)
		if (err != nil) != (bad != 0) {
			t.Fatalf("model: first bad read %v, checker: %v\n%s", bad, err, ir.Append(nil, &m))
		}
		if bad != 0 {
			found++
			if !strings.HasPrefix(err.Error(), m.InstName(bad)+" ") {
				t.Fatalf("first bad read is %s: %v", m.InstName(bad), err)
			}
		} else {
			clean++
		}
	}
	if found < 20 || clean < 20 {
		t.Errorf("%d programs with a bad read and %d without: the generator is lopsided", found, clean)
	}
}

func each(m *ir.Module, a ir.Arg, f func(p, at int, l ir.Loc)) {
	ap := m.APs.At(a.AP())
	l := m.Locs.At(ap.Loc)
	for p := range int(ap.Parts) {
		for k := range int(ap.Pairs[1].Num) {
			f(int(l.Base)+int(ap.Start)+p, int(l.Addr+ap.Off)+k*int(ap.Pairs[1].Step), ap.Loc)
		}
	}
}

// A pattern of more runs than can be looked at is named, and costs no time.
func TestReadsOfTooManyRuns(t *testing.T) {
	var m ir.Module
	m.Gen, _ = target.ByLevel(30)
	var b ir.Builder
	b.NewFunc(&m, "f", "b")
	l := b.DRAM(m.Names.Intern("x"), ir.KindInternal, target.Uint8, 1, 1<<33)
	m.Locs.At(l).Flags |= ir.LocAllocated
	every := b.Mem(l, target.Uint8, 0, ir.Pair{Step: 1 << 16, Num: 1 << 16}, ir.Pair{Step: 2, Num: 1 << 15})
	i := b.Emit(ir.OpDMACopy, target.EngineSP, nil, []ir.Arg{every})
	b.Close()
	err := Reads(&m, b.Func)
	if want := m.InstName(i) + " (DMACopy): touches more than 4194304 runs of bytes of %x"; target.ClassOf(err) != target.Limit || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
