package sim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
)

// The index of the first gather is an input, of the second an index operand; the table of the second is written in part.
const gathers = `rir 1
module "m" trn2
func "sg0000" entry {
  set "T" ExternalInput Tensor int16 [5 3] part 0
    %1 "T" DRAM 1 x 30 at 0
  set "ids" ExternalInput Tensor int64 [3] part 0
    %2 "ids" DRAM 1 x 24 at 0
  set "C" ExternalOutput Tensor int16 [3 2] part 0
    %3 "C" DRAM 1 x 12 at 0
  set "D" ExternalOutput Tensor int16 [3] part 0
    %4 "D" DRAM 1 x 6 at 0
  set "i" Internal NeuronSBTensor int64 [3 1] part 0
    %5 "i" SB 3 x 8 at 0
  set "r" Internal NeuronSBTensor int16 [3 2] part 0
    %6 "r" SB 3 x 4 at 0
  set "H" Internal Tensor int16 [5] part -1
    %7 "H" DRAM 1 x 10 at 0
  block "Block1" {
    I-1 "l" Load SP (%2 @0 1*3:int64) -> (%5 0+3 @0 1*1:int64)
    I-2 "g" IndirectLoad Pool (%1 @1 3*5 1*2:int16, %5 0+3 @0 1*1:int32) -> (%6 0+3 @0 1*2:int16)
    I-3 "s" Save SP (%6 0+3 @0 1*2:int16) -> (%3 @0 2*3 1*2:int16)
    I-4 "c" DMACopy SP (%1 @3 1*4:int16) -> (%7 @1 1*4:int16)
    I-5 "h" IndirectLoad Pool (%7 @0 1*5:int16) ind (%5 0+3 @0 1*1:int32) -> (%6 0+3 @0 1*1:int16)
    I-6 "s" Save SP (%6 0+3 @0 1*1:int16) -> (%4 @0 1*3:int16)
  }
}
`

func TestGather(t *testing.T) {
	run := func(ids ...int64) (string, error) {
		var m ir.Module
		if err := ir.Parse([]byte(gathers), &m); err != nil {
			t.Fatal(err)
		}
		var table, idx []byte
		for k := range 15 {
			table = binary.LittleEndian.AppendUint16(table, uint16(10*(k/3)+k%3))
		}
		for _, k := range ids {
			idx = binary.LittleEndian.AppendUint64(idx, uint64(k))
		}
		var s Sim
		err := s.Run(&m, Env{Input: func(name string, size int64) ([]byte, error) {
			if name == "T" {
				return table, nil
			}
			return idx, nil
		}})
		got := ""
		for _, l := range []ir.Loc{3, 4} {
			b := s.Bytes(&m, l)
			for k := 0; k < len(b) && err == nil; k += 2 {
				got += fmt.Sprint(int16(binary.LittleEndian.Uint16(b[k:])), " ")
			}
		}
		return got, err
	}
	for _, c := range []struct {
		ids  []int64
		want string
	}{
		{[]int64{4, 1, 4}, "41 42 11 12 41 42 20 10 20 "},
		{[]int64{1, 2, 1<<40 + 3}, "11 12 21 22 31 32 10 11 12 "}, // low words
	} {
		if got, err := run(c.ids...); err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.ids, got, err, c.want)
		}
	}
	for _, c := range []struct {
		ids  []int64
		want []string
	}{
		{[]int64{1, 5, 1}, []string{"g (IndirectLoad)", "index 5 of partition 1 is out of [0, 5)"}},
		{[]int64{1, 1, -1}, []string{"g (IndirectLoad)", "index -1 of partition 2"}},
		{[]int64{2, 0, 1}, []string{"h (IndirectLoad)", "of %H, which nothing wrote"}},
	} {
		_, err := run(c.ids...)
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v: %v, want %q", c.ids, err, w)
			}
		}
	}
}
