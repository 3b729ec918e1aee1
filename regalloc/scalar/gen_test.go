package scalar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"pgregory.net/rapid"
)

// writer makes text IR of one function with scalar code: input %1 "x" of 16 words, output %2 "y" of 256, SBUF %3 "s" of 64.
type writer struct {
	regs  []string
	lines []string // "block name {", instructions without number, "}"
	inst  int
	block int
	open  bool
}

func (w *writer) reg(name, dtype string, width int, engine string) int {
	w.regs = append(w.regs, fmt.Sprintf("  reg r%d %q %s %d %s phys -1", len(w.regs)+1, name, dtype, width, engine))
	return len(w.regs)
}

func (w *writer) label() string { w.block++; return fmt.Sprintf("b%d", w.block) }

// begin opens a block; the one before falls into it unless it ended with a branch.
func (w *writer) begin(name string) {
	w.end()
	w.lines = append(w.lines, fmt.Sprintf("  block %q {", name))
	w.open = true
}

func (w *writer) end() {
	if w.open {
		w.lines = append(w.lines, "  }")
		w.open = false
	}
}

func (w *writer) emit(format string, args ...any) {
	if !w.open {
		w.begin(w.label())
	}
	w.inst++
	w.lines = append(w.lines, fmt.Sprintf("    I-%d \"i%d\" ", w.inst, w.inst)+fmt.Sprintf(format, args...))
}

func (w *writer) text(flags string) string {
	w.end()
	return `rir 1
module "m" gen3
axis i1 "t" 0 2 1
func "main" entry ` + flags + `{
  set "x" ExternalInput Tensor int32 [16] part -1
  %1 "x" DRAM 1 x 64 at 0
  set "y" ExternalOutput Tensor int32 [256] part -1
  %2 "y" DRAM 1 x 1024 at 0
  set "s" Internal NeuronSBTensor int32 [1 64] part 0
  %3 "s" SB 1 x 256 at 0
` + strings.Join(w.regs, "\n") + "\n" + strings.Join(w.lines, "\n") + "\n}\n"
}

// variable is a register of a generated program.
type variable struct {
	id     int
	wide   bool
	engine string
}

func (v variable) typ() string {
	if v.wide {
		return "int64"
	}
	return "int32"
}

func (v variable) arg() string { return fmt.Sprintf("r%d:%s", v.id, v.typ()) }

func (v variable) attr() string {
	if v.wide {
		return " is_64bit=true"
	}
	return ""
}

// program draws a program in which every read is behind a write on all paths and every loop ends.
type program struct {
	writer
	t        *rapid.T
	vars     []variable
	defined  map[int]bool
	counters int
	budget   int
	within   int // loop instructions around, in whose bodies nothing branches
}

func (p *program) num(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(p.t, label) }

// pick is a variable of an engine and width that is defined, or any when write.
func (p *program) pick(engine string, wide, write bool) (variable, bool) {
	var l []variable
	for _, v := range p.vars {
		if v.engine == engine && v.wide == wide && (write || p.defined[v.id]) {
			l = append(l, v)
		}
	}
	if len(l) == 0 {
		return variable{}, false
	}
	return l[p.num("var", 0, len(l)-1)], true
}

func random(t *rapid.T) string {
	p := &program{t: t, defined: map[int]bool{}, budget: rapid.IntRange(1, 60).Draw(t, "statements")}
	engines := []string{"SP", "Pool"}[:rapid.IntRange(1, 2).Draw(t, "engines")]
	for k := range p.num("vars", 1, 24) {
		v := variable{wide: p.num("wide", 0, 3) == 0, engine: engines[p.num("engine", 0, len(engines)-1)]}
		width := 1
		if v.wide {
			width = 2
		}
		v.id = p.reg(fmt.Sprintf("v%d", k), v.typ(), width, v.engine)
		p.vars = append(p.vars, v)
	}
	if p.num("head", 0, 1) == 1 {
		// All live from the beginning.
		for _, v := range p.vars {
			p.emit("TensorLoad %s (%%1 @%d 1*%d:int32) -> (%s)", v.engine, p.num("at", 0, 14), 1+b2i(v.wide), v.arg())
			p.defined[v.id] = true
		}
	}
	p.statements(3)
	if !p.open {
		p.begin(p.label())
	}
	// What is defined is the result.
	at := 0
	for _, v := range p.vars {
		if !p.defined[v.id] {
			continue
		}
		p.emit("TensorSave %s (%s) -> (%%2 @%d 1*%d:int32)", v.engine, v.arg(), at, 1+b2i(v.wide))
		at += 2
	}
	return p.text("")
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// statements draws code; depth is how many more branches may nest.
func (p *program) statements(depth int) {
	for range p.num("run", 1, 12) {
		if p.budget--; p.budget < 0 {
			return
		}
		engine := p.vars[p.num("of", 0, len(p.vars)-1)].engine
		wide := p.num("64", 0, 3) == 0
		dst, ok := p.pick(engine, wide, true)
		if !ok {
			continue
		}
		a, okA := p.pick(engine, wide, false)
		b, okB := p.pick(engine, wide, false)
		kind := p.num("kind", 0, 15)
		if !okA || !okB {
			kind %= 2
		}
		switch kind {
		case 0:
			p.emit("RegisterMove %s (%d:%s) -> (%s)", engine, p.num("imm", -9, 9), dst.typ(), dst.arg())
		case 1:
			p.emit("TensorLoad %s (%%1 @%d 1*%d:int32) -> (%s)", engine, p.num("at", 0, 14), 1+b2i(wide), dst.arg())
		case 2, 3, 4, 5:
			op := []string{"add", "subtract", "mult", "max", "bitwise_xor", "is_lt"}[p.num("op", 0, 5)]
			p.emit("RegisterAlu %s (%s, %s) -> (%s) op=%s%s", engine, a.arg(), b.arg(), dst.arg(), op, dst.attr())
		case 6:
			p.emit("RegisterAlu %s (%s, %d:%s) -> (%s) op=add%s", engine, a.arg(), p.num("imm", -9, 9), dst.typ(), dst.arg(), dst.attr())
		case 7, 8:
			if wide {
				p.emit("RegisterAlu %s (%s, %s) -> (%s) op=subtract is_64bit=true", engine, a.arg(), a.arg(), dst.arg())
			} else {
				p.emit("RegisterMove %s (%s) -> (%s)", engine, a.arg(), dst.arg())
			}
		case 9:
			p.emit("TensorSave %s (%s) -> (%%3 0+1 @%d 1*%d:int32)", engine, a.arg(), 2*p.num("word", 0, 7), 1+b2i(wide))
			continue
		case 15:
			if depth > 0 {
				p.counted(depth)
			}
			continue
		case 10, 11, 12, 13, 14:
			if depth == 0 || p.within > 0 {
				continue
			}
		}
		switch kind {
		case 10, 11:
			p.branch(depth, a, b)
		case 12:
			p.loop(depth)
		case 13:
			p.tangle(depth, a)
		case 14:
			p.dead(depth)
		default:
			p.defined[dst.id] = true
		}
	}
}

// inner draws code whose definitions do not count afterwards.
func (p *program) inner(depth int) map[int]bool {
	before := map[int]bool{}
	for k, v := range p.defined {
		before[k] = v
	}
	p.statements(depth - 1)
	after := p.defined
	p.defined = before
	return after
}

func (p *program) branch(depth int, a, b variable) {
	then, other, join := p.label(), p.label(), p.label()
	cond := []string{"IS_LTREG", "IS_EQREG", "IS_GEREG"}[p.num("cond", 0, 2)]
	p.emit("CompareAndBranch %s (%s, %s) -> () comp_op=%s on_true=%q on_false=%q", a.engine, a.arg(), b.arg(), cond, then, other)
	p.begin(then)
	one := p.inner(depth)
	p.emit("UnconditionalBranch %s () -> () target=%q", a.engine, join)
	p.begin(other)
	two := p.inner(depth)
	p.begin(join)
	for id := range one {
		if one[id] && two[id] {
			p.defined[id] = true
		}
	}
}

// counter is a fresh register that counts down from a small number.
func (p *program) counter() variable {
	p.counters++
	v := variable{engine: "SP"}
	v.id = p.reg(fmt.Sprintf("n%d", p.counters), "int32", 1, "SP")
	p.emit("RegisterMove SP (%d:int32) -> (%s)", p.num("turns", 1, 3), v.arg())
	return v
}

// again counts down and goes back while turns are left.
func (p *program) again(n variable, to, out string) {
	p.emit("RegisterAlu SP (%s, 1:int32) -> (%s) op=subtract", n.arg(), n.arg())
	p.emit("CompareAndBranch SP (%s, 0:int32) -> () comp_op=IS_GTIMM on_true=%q on_false=%q", n.arg(), to, out)
}

func (p *program) loop(depth int) {
	n := p.counter()
	head, out := p.label(), p.label()
	p.begin(head)
	p.defined = p.inner(depth) // it runs at least once
	p.again(n, head, out)
	p.begin(out)
}

// tangle is a loop with two entries.
func (p *program) tangle(depth int, a variable) {
	n := p.counter()
	one, two, out := p.label(), p.label(), p.label()
	p.emit("CompareAndBranch %s (%s, 0:%s) -> () comp_op=IS_LTIMM on_true=%q on_false=%q", a.engine, a.arg(), a.typ(), one, two)
	p.begin(one)
	p.inner(depth)
	p.begin(two)
	after := p.inner(depth)
	p.again(n, one, out)
	p.begin(out)
	p.defined = after
}

// counted is a loop instruction of two turns.
func (p *program) counted(depth int) {
	p.emit("Loop Unassigned () -> () axis i1 {")
	p.lines = append(p.lines, fmt.Sprintf("    block %q {", p.label()))
	p.within++
	p.statements(depth - 1)
	p.within--
	p.lines = append(p.lines, "    }", "    }")
}

// dead is code that nothing reaches.
func (p *program) dead(depth int) {
	out := p.label()
	p.emit("UnconditionalBranch SP () -> () target=%q", out)
	p.begin(p.label())
	p.inner(depth)
	p.begin(out)
}

func parse(text string) (*ir.Module, error) {
	m := &ir.Module{}
	if err := ir.Parse([]byte(text), m); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return m, nil
}

func printed(m *ir.Module) string {
	var b bytes.Buffer
	if err := ir.Print(&b, m); err != nil {
		return err.Error()
	}
	return b.String()
}

// run simulates a program and gives the bytes of its output.
func run(m *ir.Module, s *sim.Sim) ([]byte, error) {
	s.Steps = 1 << 20
	err := s.Run(m, sim.Env{Input: func(_ string, size int64) ([]byte, error) {
		var d []byte
		for k := range int(size) / 4 {
			d = binary.LittleEndian.AppendUint32(d, uint32(int32(k*k*37-300)))
		}
		return d, nil
	}})
	if err != nil {
		return nil, err
	}
	return bytes.Clone(s.Bytes(m, 2)), nil
}
