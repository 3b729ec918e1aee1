package flow_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/regalloc/flow"
	"github.com/rosmar-compiler/rosmar/regalloc/flowtest"
)

// known is what allocators know of a function.
type known struct {
	loops    flow.Loops
	doms     flow.Doms
	live     flow.Live
	ranges   flow.Ranges
	families flow.Families
}

func (k *known) build(f *flow.Func, walks int) {
	k.loops.Build(f)
	k.doms.Build(f, &k.loops)
	k.live.Build(f)
	k.ranges.Build(f, &k.loops, &k.live, &flow.File{N: [2]int{8, 8}, Saved: [2]int{5, 0}}, 0, walks)
	k.families.Build(f, &k.loops, &k.doms, &k.live, &k.ranges)
}

func each(t *testing.T, n uint64, do func(f *flow.Func, text string, k *known)) {
	var k known
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 2))
		f, text := flowtest.Random(rng, flowtest.Shape{Blocks: 1 + rng.IntN(12), Insts: rng.IntN(6), Operands: 3, Calls: 20, Floats: 20, Params: 4, Far: rng.IntN(100), Lost: rng.IntN(2) * 20})
		k.build(f, len(f.Blocks)+2)
		do(f, text, &k)
	}
	f, _ := flowtest.Random(rand.New(rand.NewPCG(1, 1)), flowtest.Shape{Blocks: 20, Insts: 10, Operands: 3, Calls: 20, Params: 4, Far: 50})
	k.build(f, 4)
	if n := testing.AllocsPerRun(5, func() { k.build(f, 4) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDominators takes each block out and sees what is no longer reached.
func TestDominators(t *testing.T) {
	each(t, 300, func(f *flow.Func, text string, k *known) {
		reach := func(without int) []bool {
			seen := make([]bool, len(f.Blocks))
			if without == 0 {
				return seen
			}
			seen[0] = true
			for stack := []uint32{0}; len(stack) > 0; {
				b := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				for e := f.Blocks[b].Succs.From; e < f.Blocks[b].Succs.To; e++ {
					if to := f.Edges[e].To; int(to) != without && !seen[to] {
						seen[to] = true
						stack = append(stack, to)
					}
				}
			}
			return seen
		}
		all := reach(-1)
		for a := range f.Blocks {
			if !all[a] {
				continue
			}
			seen := reach(a)
			for b := range f.Blocks {
				if !all[b] {
					continue
				}
				want := a == b || !seen[b]
				if got := k.doms.Dominates(uint32(a), uint32(b)); got != want {
					t.Fatalf("block %d dominates block %d: %v\n%s", a, b, got, text)
				}
				if want && k.doms.Preorder(uint32(a)) > k.doms.Preorder(uint32(b)) {
					t.Fatalf("block %d stands behind block %d, which it dominates", a, b)
				}
			}
		}
	})
}

// TestNextUses finds distances instruction by instruction until nothing changes.
func TestNextUses(t *testing.T) {
	each(t, 150, func(f *flow.Func, text string, k *known) {
		const none = 1 << 29
		d := make([][]int, len(f.Insts)) // from before the instruction
		for i := range d {
			d[i] = make([]int, f.Values())
			for v := range d[i] {
				d[i][v] = none
			}
		}
		after := func(b, i, v int) int {
			if uint32(i)+1 < f.Blocks[b].Insts.To {
				return d[i+1][v]
			}
			best := none
			for e := f.Blocks[b].Succs.From; e < f.Blocks[b].Succs.To; e++ {
				to := &f.Blocks[f.Edges[e].To]
				if !slices.Contains(f.Of(to.Params), flow.Value(v)) {
					best = min(best, d[to.Insts.From][v])
				}
				for x, arg := range f.Of(f.Edges[e].Args) {
					if int(arg) == v {
						best = min(best, d[to.Insts.From][f.Of(to.Params)[x]])
					}
				}
			}
			return best
		}
		for again := true; again; {
			again = false
			for b := range f.Blocks {
				for i := int(f.Blocks[b].Insts.From); i < int(f.Blocks[b].Insts.To); i++ {
					in := &f.Insts[i]
					for v := range f.Values() {
						want := min(none, 1+after(b, i, v))
						for _, x := range f.Of(in.Defs()) {
							if int(x) == v {
								want = none
							}
						}
						for _, x := range f.Of(in.Uses) {
							if int(x) == v && (in.Kind == flow.Op || in.Kind == flow.Branch) {
								want = 0
							}
						}
						if want < d[i][v] {
							d[i][v], again = want, true
						}
					}
				}
			}
		}
		hold := func(what string, got uint32, base, want int) {
			if want >= none != (got >= flow.Unread) || want < none && int(got) != base+want {
				t.Fatalf("%s: %d, want %d+%d\n%s", what, got, base, want, text)
			}
		}
		for _, b := range k.loops.Order {
			blk := &f.Blocks[b]
			first := int(blk.Insts.From)
			for row := blk.Params.From; row < blk.Params.To; row++ {
				hold("parameter", k.ranges.Rows[row].Next, first, d[first][f.Ops[row]])
			}
			for x, v := range k.live.In(b) {
				hold("live in", k.ranges.In[k.live.Row(b)+uint32(x)].Next, 0, d[first][v])
			}
			for i := first; i < int(blk.Insts.To); i++ {
				for row := f.Insts[i].Uses.From; row < f.Insts[i].To; row++ {
					hold("operand", k.ranges.Rows[row].Next, i+1, after(int(b), i, int(f.Ops[row])))
				}
			}
		}
	})
}

// TestWeights counts by hand: a use in the block is a load, one where two ways meet half a load on each, behind a call half of that.
func TestWeights(t *testing.T) {
	var f flow.Func
	text := "f w 4 4 iifi\nb 0\na 0,2 <\ni 1 <0,2\nj 1 >1: >2:\nb 1\ni  <0\nj  >3:0\nb 2\nc  <\nj  >3:0\nb 3 3\ni  <3,0\ni  <2\nr\n"
	if err := flow.NewReader(strings.NewReader(text)).Next(&f); err != nil {
		t.Fatal(err)
	}
	var k known
	k.build(&f, 3)
	const load = flow.LoadWeight
	in := func(b, n uint32) uint32 { return k.ranges.In[k.live.Row(b)+n].Weight }
	use := f.Insts[1].Uses.From
	for _, c := range []struct {
		what      string
		got, want uint32
	}{
		{"0 into block 3", in(3, 0), load},
		{"0 into block 1", in(1, 0), load},
		{"0 into block 2, for itself and for the parameter", in(2, 0), (load/2 + load/2) / 2},
		{"0 after its first use", k.ranges.Rows[use].Weight, load + load/2},
		{"2 into block 1", in(1, 1), load / 2},
		{"2 into block 2, whose class no call spares", in(2, 1), 0},
		{"the parameter", k.ranges.Rows[f.Blocks[3].Params.From].Weight, load},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	if end := k.ranges.End[1]; end != 2 {
		t.Errorf("value 1 ends at %d, want 2", end)
	}
	if end := k.ranges.End[0]; end != flow.LiveOut {
		t.Errorf("value 0 ends at %d", end)
	}
}

// TestFamilies walks blocks backwards with the set of live values: no two of a family are in it, nor one where another is defined.
func TestFamilies(t *testing.T) {
	joined := 0
	each(t, 1500, func(f *flow.Func, text string, k *known) {
		for _, b := range k.loops.Order {
			blk := &f.Blocks[b]
			live := map[flow.Value]bool{}
			for e := blk.Succs.From; e < blk.Succs.To; e++ {
				for _, v := range k.live.In(f.Edges[e].To) {
					live[v] = true
				}
			}
			alone := func(v flow.Value) {
				for w := range live {
					if v != w && k.families.Of(v) == k.families.Of(w) {
						t.Fatalf("values %d and %d are a family and live at once in block %d\n%s", v, w, b, text)
					}
				}
			}
			for v := range live {
				alone(v)
			}
			for e := blk.Succs.From; e < blk.Succs.To; e++ {
				for _, v := range f.Of(f.Edges[e].Args) {
					live[v] = true // an argument that ends here may be a family with what lives on in another target only
				}
			}
			for i := int(blk.Insts.To) - 1; i >= int(blk.Insts.From); i-- {
				defs := f.Of(f.Insts[i].Defs())
				for _, v := range defs {
					delete(live, v)
				}
				for _, v := range defs {
					alone(v)
				}
				for _, v := range f.Of(f.Insts[i].Uses) {
					live[v] = true
				}
			}
			params := f.Of(blk.Params)
			for _, v := range params {
				delete(live, v)
			}
			for x, v := range params {
				if k.families.Of(v) != v || x > 0 {
					joined++
				}
				alone(v)
				for _, w := range params[:x] {
					if k.families.Of(v) == k.families.Of(w) {
						t.Fatalf("parameters %d and %d of block %d are a family\n%s", v, w, b, text)
					}
				}
			}
		}
	})
	if joined == 0 {
		t.Error("no family")
	}
}
