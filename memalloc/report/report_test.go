package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/memalloc"
)

// A value that spilled, one that is placed and one that is not, a PSUM tile, and DRAM of two address spaces.
const small = `rir 1
module "m" trn2
func "main" entry {
  set "in" ExternalInput Tensor float32 [128 16] part -1
    %1 "in" DRAM 1 x 8192 at 0
  set "home" Internal Tensor float32 [128 16] part -1 spill_home
    %2 "home" DRAM 1 x 8192 at 4096 allocated
  set "s" Internal Tensor float32 [64 16] part -1 Shared
    %3 "s" DRAM 1 x 4096 at 12288 allocated
  set "a" Internal NeuronSBTensor float32 [128 16] part 0
    %4 "a" SB 128 x 64 at 16640 allocated
  set "b" Internal NeuronSBTensor float32 [64 16] part 0
    %5 "b" SB 64 x 60 at 16704 base 64 allocated
  set "c" Internal NeuronSBTensor float32 [32 16] part 0
    %6 "c" SB 32 x 64 at 0
  set "p" Internal NeuronPSUMTensor float32 [128 600] part 0
    %7 "p" PSUM 128 x 2400 at 0 bank 2 allocated
  block "Block1" {
    I-1 "la" Load SP (%1 @0 16*128 1*16:float32) -> (%4 0+128 @0 1*16:float32)
    I-2 "spill" Save Activation (%4 0+128 @0 1*16:float32) -> (%2 @0 16*128 1*16:float32) spill
    I-3 "mm" Matmult PE (%4 0+128 @0 1*16:float32, %4 0+128 @0 1*16:float32) -> (%7 0+16 @0 1*16:float32) accumulation_flag=3
    I-4 "lb" Load SP (%2 @0 16*64 1*15:float32) -> (%5 0+64 @0 1*15:float32) reload
    I-5 "rp" Activation Activation (%7 0+16 @0 1*16:float32, 0:float32, 1:float32, 0:float32) -> (%6 0+16 @0 1*16:float32) func=Copy
    I-6 "ss" Save Activation (%5 0+64 @0 1*15:float32) -> (%3 @0 16*64 1*15:float32)
    I-7 "lc" Load SP (%3 @0 16*32 1*15:float32) -> (%6 0+32 @0 1*15:float32)
  }
}
`

const smallReport = `function main: 7 points

spilling DRAM: 1 values, 1 saves of 8192 bytes, 1 reloads of 3840 bytes
saves  bytes  reloads  bytes  size  place  home
1      8192   1        3840   8192  4096   %home

live-range DRAM: 2
from  to  bytes  partitions  place  tensor  first  last
1     3   8192   1           4096   %home   spill  lb
5     6   4096   1           12288  %s      ss     lc

memory-pressure DRAM: 25769803776 bytes
lane    peak  used %  point  instruction  largest live
local   8192  0.0     1      spill        %home 8192
shared  4096  0.0     5      ss           %s 4096
points  local  shared
0       0      0
1       8192   0
2       8192   0
3       8192   0
4       0      0
5       0      4096
6       0      4096

spilling SB: 1 values, 1 saves of 8192 bytes, 1 reloads of 3840 bytes
saves  bytes  reloads  bytes  size  place  home
1      8192   1        3840   8192  4096   %home

live-range SB: 3
from  to  bytes a partition  partitions  place     tensor  first  last
0     2   64                 128         0+16640   %a      la     mm
3     5   64                 64          64+16704  %b      lb     ss
4     6   64                 32          -         %c      rp     lc

memory-pressure SB: 229376 bytes a partition
lane    peak  used %  point  instruction  largest live
mean    64    0.0     0      la           %a 64
0-31    64    0.0     0      la           %a 64
32-63   64    0.0     0      la           %a 64
64-95   64    0.0     0      la           %a 64
96-127  64    0.0     0      la           %a 64
points  mean  0-31  32-63  64-95  96-127
0       64    64    64     64     64
1       64    64    64     64     64
2       64    64    64     64     64
3       32    0     0      64     64
4       48    0     0      64     64
5       48    0     0      64     64
6       16    0     0      0      0

spilling PSUM: 0 values, 0 saves of 0 bytes, 0 reloads of 0 bytes

live-range PSUM: 1
from  to  banks  partitions  place   tensor  first  last
2     4   2      128         bank 2  %p      mm     rp

memory-pressure PSUM: 8 banks
lane  peak  used %  point  instruction  largest live
all   2     25.0    2      mm           %p 2
points  all
0       0
1       0
2       2
3       2
4       2
5       0
6       0
`

func parse(t testing.TB, text string) *ir.Module {
	t.Helper()
	m := new(ir.Module)
	if err := ir.Parse([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func text(t testing.TB, m *ir.Module, o Options) string {
	t.Helper()
	var ws memalloc.Workspace
	var b strings.Builder
	if err := Write(&b, m, m.Entry, &ws, &o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReport(t *testing.T) {
	if got := text(t, parse(t, small), Options{}); got != smallReport {
		t.Errorf("%s", got)
	}
}

// One view of one memory, while one tensor is live: what ends before or begins after is not there.
func TestTensor(t *testing.T) {
	m := parse(t, small)
	got := text(t, m, Options{Views: LiveRange | Pressure, Spaces: []target.Space{target.SpaceSB}, Tensor: "%p"})
	want := `function main, while %p is live: points 2 to 4

live-range SB: 3
`
	if !strings.HasPrefix(got, want) || strings.Contains(got, "DRAM") || strings.Contains(got, "spilling") || strings.Contains(got, "\n5 ") {
		t.Error(got)
	}
	if got = text(t, m, Options{Views: LiveRange, Spaces: []target.Space{target.SpaceSB}, Tensor: "s"}); !strings.Contains(got, "live-range SB: 2\n") || strings.Contains(got, "%a") {
		t.Error(got)
	}
	var ws memalloc.Workspace
	err := Write(&strings.Builder{}, m, m.Entry, &ws, &Options{Tensor: "nobody"})
	if target.ClassOf(err) != target.User || !strings.Contains(err.Error(), "no tensor nobody") {
		t.Error(err)
	}
	idle := parse(t, strings.Replace(small, `(%3 @0 16*32 1*15:float32) ->`, `(%1 @0 16*32 1*15:float32) ->`, 1))
	idle.SetOrder(1, idle.OrderOf(1)[:5])
	if got = text(t, idle, Options{Tensor: "s"}); !strings.HasSuffix(got, "s is not live in it\n") {
		t.Error(got)
	}
}

// A large function makes no large report, and the peak is that of adding up all live ranges point by point.
func TestBounded(t *testing.T) {
	var b ir.Builder
	var m ir.Module
	m.Gen, _ = target.ByLevel(30)
	b.NewFunc(&m, "main", "Block1")
	const n, width = 5000, 40
	var ring [width]ir.Loc
	var size [n]int64
	for k := range n {
		size[k] = int64(2 + k*7%90)
		l := b.SB(m.Names.Intern(fmt.Sprintf("t%d", k)), target.Float32, 128, size[k])
		if old := ring[k%width]; old != 0 {
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{b.Chip(old, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 2})}, []ir.Arg{b.Chip(l, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 2})})
		} else {
			b.Emit(ir.OpMemset, target.EngineDVE, nil, []ir.Arg{b.Chip(l, target.Float32, 0, 128, 0, ir.Pair{Step: 1, Num: 2})})
		}
		ring[k%width] = l
	}
	b.Close()
	got := text(t, &m, Options{})
	if lines := strings.Count(got, "\n"); lines > maxRanges+6*buckets || !strings.Contains(got, fmt.Sprintf("%d left out", n-maxRanges)) {
		t.Errorf("%d lines", lines)
	}
	peak := int64(0)
	for p := range n {
		sum := int64(0)
		for k := max(0, p-width); k <= p; k++ {
			if p < n && (k > p-width || k+width == p) && (k+width < n || k == p) {
				sum += (4*size[k] + 7) / 8 * 8
			}
		}
		peak = max(peak, sum)
	}
	if !strings.Contains(got, fmt.Sprintf("mean  %d  ", peak)) {
		t.Errorf("no peak of %d in\n%s", peak, got[strings.Index(got, "memory-pressure SB"):][:400])
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A disk that is full is said so.
func TestWriteError(t *testing.T) {
	m := parse(t, small)
	var ws memalloc.Workspace
	if err := Write(full{}, m, m.Entry, &ws, &Options{}); err == nil {
		t.Error("no error")
	}
}
