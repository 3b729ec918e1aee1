package verify

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// x is of one turn, y and sum are carried, z is read behind the loop, p is written in two pieces, r is a ring of two live blocks.
const looped = `rir 1
module "m" trn2
axis i1 "i" 0 4 1
expr e1 axis i1
expr e2 affine 0 e1*32
expr e3 affine 32 e1*32
func "sg0000" entry {
  set "A" ExternalInput Tensor float32 [4 8] part -1
    %1 "A" DRAM 1 x 128 at 0
  set "B" ExternalOutput Tensor float32 [4 8] part -1
    %2 "B" DRAM 1 x 128 at 0
  set "x" Internal NeuronSBTensor float32 [4 8] part 0
    %3 "x" SB 4 x 32 at 20000 allocated
  set "y" Internal NeuronSBTensor float32 [4 8] part 0
    %4 "y" SB 4 x 32 at 20032 allocated
  set "z" Internal NeuronSBTensor float32 [4 8] part 0
    %5 "z" SB 4 x 32 at 20064 allocated
  set "p" Internal NeuronSBTensor float32 [4 8] part 0
    %6 "p" SB 4 x 32 at 20000 allocated
  set "r" Internal NeuronBlockTensor float32 [5 4 8] part 1 live 2
    %7 "r0" SB 4 x 32 at 20096 allocated
    %8 "r1" SB 4 x 32 at 20128 allocated
    %9 "r2" SB 4 x 32 at 20096 allocated
    %10 "r3" SB 4 x 32 at 20128 allocated
    %11 "r4" SB 4 x 32 at 20096 allocated
  block "Block1" {
    I-1 "y0" Load SP (%1 @0 8*4 1*8:float32) -> (%4 0+4 @0 1*8:float32)
    I-2 "r0" TensorCopy DVE (%4 0+4 @0 1*8:float32) -> (%7 0+4 @0 1*8:float32)
    I-3 "L" Loop Unassigned () -> () axis i1 {
      block "body" {
        I-4 "x1" TensorCopy DVE (%4 0+4 @0 1*8:float32) -> (%3 0+4 @0 1*8:float32)
        I-5 "rw" TensorCopy DVE (%3 0+4 @0 1*8:float32) -> (sym(set 7 0+4 @0 8*4 1*8 addr e3):float32)
        I-6 "p1" Memset DVE () -> (%6 0+4 @0 2*4:float32) constant=0
        I-7 "p2" Memset DVE () -> (%6 0+4 @1 2*4:float32) constant=0
        I-8 "rr" TensorTensor DVE (sym(set 7 0+4 @0 8*4 1*8 addr e2):float32, %6 0+4 @0 1*8:float32) -> (%5 0+4 @0 1*8:float32) op=add
        I-9 "y1" TensorCopy DVE (%5 0+4 @0 1*8:float32) -> (%4 0+4 @0 1*8:float32)
      }
    }
    I-10 "sv" Save SP (%5 0+4 @0 1*8:float32) -> (%2 @0 8*4 1*8:float32)
  }
}
`

// The legal program passes; each row moves one tensor or damages one access, and the finding names it.
func TestLoopLives(t *testing.T) {
	for _, c := range []struct{ name, old, new, placement, reads string }{
		{"legal", "", "", "", ""},
		{"twice in a turn", `%6 "p" SB 4 x 32 at 20000`, `%6 "p" SB 4 x 32 at 20096`, "%p and %r0 are live at once", "reads %r0 where %p was written"},
		{"local over carried", `%3 "x" SB 4 x 32 at 20000`, `%3 "x" SB 4 x 32 at 20032`, "%x and %y are live at once", ""},
		{"carried by half", "%6 0+4 @1 2*4:float32) constant", "%6 0+4 @1 2*3:float32) constant", "%x and %p are live at once", "reads %p where %x was written"},
		{"read behind the loop", `%5 "z" SB 4 x 32 at 20064`, `%5 "z" SB 4 x 32 at 20000`, "%x and %z are live at once", ""},
		{"three live blocks", "expr e3 affine 32 e1*32", "expr e3 affine 64 e1*32", "", "reads %r"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := looped
			if c.old != "" {
				if src = strings.Replace(looped, c.old, c.new, 1); src == looped {
					t.Fatalf("the program does not contain %q", c.old)
				}
			}
			if c.name == "three live blocks" {
				src = strings.Replace(src, `"i" 0 4 1`, `"i" 0 3 1`, 1)
			}
			var m ir.Module
			if err := ir.Parse([]byte(src), &m); err != nil {
				t.Fatal(err)
			}
			for _, k := range []struct {
				name, want string
				err        error
			}{{"placement", c.placement, Placement(&m, m.Entry, target.SpaceSB)}, {"reads", c.reads, Reads(&m, m.Entry)}} {
				if k.want == "" && k.err != nil || k.want != "" && (k.err == nil || !strings.Contains(k.err.Error(), k.want)) {
					t.Errorf("%s: %v\nwant %q", k.name, k.err, k.want)
				}
			}
		})
	}
}

// Random loops over locations at random places, against a model that runs them and keeps the owner of every byte: Reads says what
// the model says, and where Placement finds nothing neither does it.
func TestLoopsAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	bad, clean, clear, seen := 0, 0, 0, 0
	for range 2000 {
		var m ir.Module
		m.Gen, _ = target.ByLevel(30)
		var b ir.Builder
		b.NewFunc(&m, "f", "b")
		var locs []ir.Loc
		for range 3 {
			locs = append(locs, b.SB(m.Names.Intern("x"), target.Uint8, 32, 16))
		}
		ring := b.Tensor(m.Names.Intern("ring"), ir.KindInternal, ir.ClassNeuronBlockTensor, target.Uint8, 3, 32, 16)
		for range 3 {
			b.Place(ring, 0, target.SpaceSB, 32, 16)
		}
		first := m.Sets.At(ring).First
		for l := ir.Loc(1); int(l) < m.Locs.Len(); l++ {
			row := m.Locs.At(l)
			row.Flags |= ir.LocAllocated
			row.Addr = int64(16 * r.IntN(8))
			if l >= first+2 && r.IntN(2) == 0 {
				m.Sets.At(ring).LiveN = 2
				row.Addr = m.Locs.At(first).Addr
			}
		}
		arg := func(index ir.Expr) ir.Arg {
			switch r.IntN(5) {
			case 0:
				row := ir.SymRow{Set: ring, Addr: index, AP: ir.APRow{Dtype: target.Uint8, Parts: 32}}
				row.AP.Pairs = [5]ir.Pair{{Step: 16, Num: 32}, {Step: 1, Num: 16}}
				return ir.Arg{Kind: ir.ArgSym, Dtype: target.Uint8, Ref: uint32(m.Syms.Add(row))}
			case 1:
				return b.Chip(first+ir.Loc(r.IntN(3)), target.Uint8, 0, 32, 0, ir.Pair{Step: 1, Num: 16})
			case 2:
				return b.Chip(locs[r.IntN(3)], target.Uint8, 0, 32, int64(r.IntN(2)), ir.Pair{Step: 2, Num: 8})
			}
			return b.Chip(locs[r.IntN(3)], target.Uint8, 0, 32, 0, ir.Pair{Step: 1, Num: 16})
		}
		// A body of a few copies around an inner loop, and copies around it.
		depth := 1 + r.IntN(2)
		blocks := []ir.Block{b.Block}
		orders := [][]ir.Inst{nil}
		var loops []ir.Inst
		var axes []ir.Axis
		index := ir.Expr(0)
		copies := func(d int) {
			for range r.IntN(4) {
				src, dst := arg(index), arg(index)
				ins := []ir.Arg{src}
				if r.IntN(3) == 0 {
					ins = nil
				}
				orders[d] = append(orders[d], m.NewInst(blocks[d], ir.OpTensorCopy, target.EngineDVE, ins, []ir.Arg{dst}))
			}
		}
		indices := []ir.Expr{0}
		for d := range depth {
			copies(d)
			a := m.Axes.Add(ir.AxisRow{Hi: int64(r.IntN(4)), Step: 1})
			axes = append(axes, a)
			l := m.NewInst(blocks[d], ir.OpLoop, target.EngineUnassigned, nil, nil)
			orders[d] = append(orders[d], l)
			loops = append(loops, l)
			blocks = append(blocks, m.Blocks.Add(ir.BlockRow{Func: b.Func, Parent: l}))
			orders = append(orders, nil)
			e := m.Exprs.Add(ir.ExprRow{Kind: ir.ExprAxis, Ref: uint32(a)})
			index = m.Exprs.Add(ir.ExprRow{Kind: ir.ExprMul, A: e, C: 16 * 32})
			indices = append(indices, index)
		}
		copies(depth)
		for d := depth - 1; d >= 0; d-- {
			index = indices[d]
			copies(d)
		}
		b.Close()
		for d, blk := range blocks {
			m.Blocks.At(blk).Order = m.Order.AddSlice(orders[d])
			if d > 0 {
				m.Regions.Set(loops[d-1], ir.RegionRow{Axis: axes[d-1], Blocks: m.BlockList.Add(blk)})
			}
		}
		var owner [256]ir.Loc
		written := map[[2]int64]bool{}
		wrong, lost := "", false
		at := map[ir.Axis]int64{}
		var run func(d int)
		run = func(d int) {
			for _, i := range orders[d] {
				if m.Insts.At(i).Op == ir.OpLoop {
					a := axes[d]
					for at[a] = 0; at[a] < m.Axes.At(a).Hi; at[a]++ {
						run(d + 1)
					}
					continue
				}
				touch := func(a ir.Arg, f func(byte int64, l ir.Loc)) {
					row := ir.APRow{}
					if a.Kind == ir.ArgSym {
						s := m.Syms.At(ir.Sym(a.Ref))
						row = s.AP
						row.Loc = first
						if s.Addr != 0 {
							row.Loc += ir.Loc(at[ir.Axis(m.Exprs.At(m.Exprs.At(s.Addr).A).Ref)])
						}
					} else {
						row = *m.APs.At(a.AP())
					}
					for k := range int64(row.Pairs[1].Num) {
						f(m.Locs.At(row.Loc).Addr+row.Off+k*int64(row.Pairs[1].Step), row.Loc)
					}
				}
				for _, a := range m.Ins(i) {
					touch(a, func(k int64, l ir.Loc) {
						if owner[k] != 0 && owner[k] != l {
							lost = lost || written[[2]int64{k, int64(l)}]
							if wrong == "" {
								wrong = m.InstName(i)
							}
						}
					})
				}
				touch(m.Outs(i)[0], func(k int64, l ir.Loc) { owner[k], written[[2]int64{k, int64(l)}] = l, true })
			}
		}
		run(0)
		err := Reads(&m, b.Func)
		if (err != nil) != (wrong != "") {
			t.Fatalf("model: first bad read %q, checker: %v\n%s", wrong, err, ir.Append(nil, &m))
		}
		place := Placement(&m, b.Func, target.SpaceSB)
		switch {
		case wrong != "":
			bad++
			if !strings.HasPrefix(err.Error(), wrong+" ") {
				t.Fatalf("first bad read is %s: %v", wrong, err)
			}
			// The blocks of a ring are on the producer's word, and nothing keeps what was never written.
			if place == nil && lost && m.Sets.At(ring).LiveN == 0 {
				t.Fatalf("placement finds nothing, but %v\n%s", err, ir.Append(nil, &m))
			}
			if lost {
				seen++
			}
		case place == nil:
			clear++
			fallthrough
		default:
			clean++
		}
	}
	if bad < 200 || clean < 200 || clear < 100 || seen < 100 {
		t.Errorf("%d programs with a bad read (%d of lost bytes), %d without, %d well placed: the generator is lopsided", bad, seen, clean, clear)
	}
}

// Nests that would run for ever are walked for a while, and empty loops with them.
func TestWalkEnds(t *testing.T) {
	text := func(n int) string {
		var b strings.Builder
		b.WriteString("rir 1\nmodule \"m\" trn2\n")
		for k := range n {
			fmt.Fprintf(&b, "axis i%d \"i%d\" 0 1000000000000 1\n", k+1, k+1)
		}
		b.WriteString("func \"f\" entry {\n  block \"b0\" {\n")
		for k := range n {
			fmt.Fprintf(&b, "I-%d \"\" Loop Unassigned () -> () axis i%d {\nblock \"b%d\" {\n", k+1, k+1, k+1)
		}
		b.WriteString(strings.Repeat("}\n}\n", n) + "}\n}\n")
		return b.String()
	}
	for _, n := range []int{1, 3, 1000} {
		var m ir.Module
		if err := ir.Parse([]byte(text(n)), &m); err != nil {
			t.Fatal(err)
		}
		steps := 0
		(&walker{m: &m}).walk(m.Entry, func(ir.Inst) { steps++ })
		if steps < n || steps > maxSteps {
			t.Errorf("depth %d: %d steps", n, steps)
		}
	}
}
