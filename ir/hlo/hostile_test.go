package hlo

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// TestHostile reads texts that are built to cost more than their size: whether they read or not, time stays within seconds and memory
// within a multiple of the text.
func TestHostile(t *testing.T) {
	const n = 20000
	rep := strings.Repeat
	lines := func(format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i, i+1)
		}
		return b.String()
	}
	nested := "f32[]"
	for range 1000 {
		nested = "(" + nested + ")"
	}
	inline := "add"
	for i := range maxInline {
		inline = fmt.Sprintf("{ p%d = f32[] parameter(0) r%d = f32[] call(p%d), to_apply=%s }", i, i, i, inline)
	}
	for _, tt := range []struct {
		name, text string
		ok         bool
	}{
		{"a chain of forward references", string(module("p0 = f32[] parameter(0)\n" + lines("a%d = f32[] abs(a%d)\n") + fmt.Sprintf("a%d = f32[] abs(p0)", n))), true},
		{"calls that all point forwards", "HloModule m\n" + lines("c%d { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c%d }\n") +
			fmt.Sprintf("c%d { p = f32[] parameter(0) }\nENTRY e { p = f32[] parameter(0) }", n), true},
		{"a circle of forward references", string(module(lines("a%d = f32[] abs(a%d)\n") + fmt.Sprintf("a%d = f32[] abs(a0)", n))), false},
		{"deep tuple types", string(module("p = " + nested + " parameter(0)\n" + rep("// x\n", n) + "q = " + nested + " copy(p)")), true},
		{"tuples of tuples", string(module("t0 = () tuple()\n" + func() string {
			s, ty := "", "()"
			for i := 1; i < 14; i++ {
				ty = "(" + ty + "," + ty + ")"
				s += fmt.Sprintf("t%d = %s tuple(t%d, t%d)\n", i, ty, i-1, i-1)
			}
			return s
		}())), true},
		{"computations printed in each other", string(module("p = f32[] parameter(0)\nROOT r = f32[] call(p), to_apply=" + inline)), true},
		{"open brackets", string(module("p = f32[] parameter(0), metadata=" + rep("{", n*10))), false},
		{"open tuple types", string(module("p = " + rep("(", n*10))), false},
		{"open comment", string(module("p = f32[] parameter(0) " + rep("/*", n*10))), false},
		{"quotes", string(module("p = f32[] parameter(0), metadata={" + rep(`"\\\"`, n*10))), false},
		{"backslashes", string(module(`p = f32[] parameter(0), metadata={a="` + rep(`\`, n*10))), false},
		{"a literal that its type does not announce", string(module("p = s32[3] constant({" + rep("1,", n*10) + "2})")), false},
		{"a type that its literal does not fill", string(module("p = s32[1000000000] constant({1,2})")), false},
		{"a billion equal elements promised", string(module("p = s32[1000000000] constant({1,1})")), false},
		{"many dimensions", string(module("p = f32[" + rep("1,", n*10) + "1] parameter(0)")), false},
		{"long numbers", string(module("p = f32[] constant(" + rep("1", n*10) + ")")), true},
		{"windows", string(module("p = f32[] parameter(0)\nq = f32[] reduce-window(p, p), to_apply=add, window={size=1" + rep("x1", n*10) + "}")), false},
		{"calls in the wrong order", string(module("p = f32[] parameter(0)\nq = f32[] while(p), " + rep("body=add, condition=add, ", n))), false},
		{"aliases", "HloModule m, input_output_alias={" + rep("{0}: (0, {}, may-alias), ", n) + "}\nENTRY e { p = f32[] parameter(0) ROOT t = (f32[]) tuple(p) }", true},
		{"debug table without end", "HloModule m\nFileNames\n" + rep("1 \"x\"\n", n), false},
	} {
		text := []byte(tt.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		var g graph.Graph
		err := Read(text, &g)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if (err == nil) != tt.ok {
			t.Errorf("%s: error %.300v", tt.name, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: a message of %d bytes", tt.name, len(err.Error()))
		}
		if took > 3*time.Second {
			t.Errorf("%s: %d bytes took %v", tt.name, len(text), took)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(100*len(text)+1<<20) {
			t.Errorf("%s: %d bytes of text took %d bytes of memory", tt.name, len(text), used)
		}
	}
}
