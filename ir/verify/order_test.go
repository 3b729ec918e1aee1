package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
)

// A group goes on from a copy into just its bytes, of which nothing has been touched since, and from nothing else.
func TestGroupsGoOn(t *testing.T) {
	head, _, _ := strings.Cut(legal, "    I-3 ")
	const (
		matmul = `"mm" Matmult PE (%5 0+8 @0 1*6:float32, %4 0+8 @0 1*4:float32) -> (%6 0+4 @0 1*6:float32) accumulation_flag=`
		out    = `"out" TensorCopy DVE (%6 0+4 @0 1*6:float32) -> (%7 0+4 @0 1*6:float32)`
		back   = `"back" TensorCopy DVE (%7 0+4 @0 1*6:float32) -> (%6 0+4 @0 1*6:float32)`
		half   = `"half" TensorCopy DVE (%7 0+4 @0 1*3:float32) -> (%6 0+4 @0 1*3:float32)`
		zero   = `"zero" Memset DVE () -> (%6 0+4 @5 1*1:float32) constant=0`
	)
	for _, c := range []struct {
		name  string
		insts []string
		want  string // of the error, empty for none
	}{
		{"cut once", []string{matmul + "3", out, back, matmul + "6"}, ""},
		{"cut twice", []string{matmul + "1", matmul + "6", out, back, matmul + "4", matmul + "6", out, back, matmul + "6"}, ""},
		{"not brought back", []string{matmul + "3", out, matmul + "6"}, "that no START opened"},
		{"half brought back", []string{matmul + "3", out, back, half, matmul + "6"}, "that no START opened"},
		{"overwritten", []string{matmul + "3", out, back, zero, matmul + "6"}, "that no START opened"},
		{"brought back once for two", []string{matmul + "3", out, back, matmul + "6", matmul + "6"}, "that no START opened"},
		{"brought back into an open group", []string{matmul + "1", out, back, matmul + "6"}, "is not closed"},
		{"left open", []string{matmul + "3", out, back, matmul + "4"}, "that nothing closes"},
		{"overwrites", []string{matmul + "3", out, back, matmul + "2"}, "neither starts nor accumulates"},
	} {
		var text strings.Builder
		text.WriteString(head)
		for k, i := range c.insts {
			fmt.Fprintf(&text, "    I-%d %s\n", 3+k, i)
		}
		text.WriteString("  }\n}\n")
		var m ir.Module
		if err := ir.Parse([]byte(text.String()), &m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err := Groups(&m, m.Entry)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
