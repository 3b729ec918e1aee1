package machine

import (
	"errors"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// engine is one sequencer. Its stream and lists belong to the package; the rest is its state.
type engine struct {
	id     target.Engine
	level  int
	stream []byte
	descs  []neff.Desc
	blocks []block
	n      int // bundles

	pc      int
	in      isa.Inst // the bundle at pc, when decoded is set
	decoded bool
	halted  bool
	arrived bool // at a barrier, its update done
	regs    [64]uint32
	pair    pair
}

// block is the descriptors lo to hi of an engine's list that one trigger starts.
type block struct {
	id     uint32
	lo, hi uint32
}

// pair is what the first bundle of a two-bundle instruction tells the second.
type pair struct {
	op     isa.Opcode
	dt     target.Dtype
	parts  int
	second isa.Desc // output of MaxIndexAndMatchReplace
	fill   uint32
}

// program gives the engine a stream and its descriptor blocks.
func (g *engine) program(id target.Engine, level int, p *neff.Program, stream []byte) {
	blocks := g.blocks[:0]
	*g = engine{id: id, level: level, stream: stream, n: len(stream) / isa.BundleSize, descs: p.Descs}
	for i := 0; i < len(p.Descs); {
		j := i + 1
		for j < len(p.Descs) && p.Descs[j].ID == p.Descs[i].ID {
			j++
		}
		blocks = append(blocks, block{p.Descs[i].ID, uint32(i), uint32(j)})
		i = j
	}
	g.blocks = blocks
}

// restart goes back to the first bundle with fresh state.
func (g *engine) restart() {
	g.pc, g.decoded, g.halted, g.arrived = 0, false, g.n == 0, false
	g.regs, g.pair = [64]uint32{}, pair{}
}

func (g *engine) bundle() *isa.Bundle { return (*isa.Bundle)(g.stream[g.pc*isa.BundleSize:]) }

// fetch decodes the bundle at pc once.
func (g *engine) fetch() error {
	if g.decoded {
		return nil
	}
	if err := isa.Decode(g.level, g.bundle(), &g.in); err != nil {
		return err
	}
	g.decoded = true
	return nil
}

// step leaves the bundle for the next one.
func (g *engine) step() {
	g.decoded, g.arrived = false, false
	if g.pc++; g.pc >= g.n {
		g.halted = true
	}
}

// block finds a descriptor block by its id.
func (g *engine) block(id uint32) (block, bool) {
	if k := int(id) - 1; k >= 0 && k < len(g.blocks) && g.blocks[k].id == id { // ids usually count from 1
		return g.blocks[k], true
	}
	lo, hi := 0, len(g.blocks)
	for lo < hi {
		mid := (lo + hi) / 2
		if g.blocks[mid].id < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(g.blocks) && g.blocks[lo].id == id {
		return g.blocks[lo], true
	}
	return block{}, false
}

// where is the engine, the bundle index and the disassembled bundle.
func (g *engine) where(pc int) string {
	if pc < 0 || pc >= g.n {
		return g.id.String() + " after its last bundle"
	}
	b := (*isa.Bundle)(g.stream[pc*isa.BundleSize:])
	return string(isa.Disasm(g.level, b, append(append([]byte(g.id.String()), ' '), itoa(pc)+": "...)))
}

// fail wraps an error with the place and keeps its class and subject.
func (g *engine) fail(err error) error {
	return &target.Error{Class: target.ClassOf(err), Subject: subject(err), Err: &placed{g.where(g.pc), err}}
}

func subject(err error) string {
	var e *target.Error
	if errors.As(err, &e) {
		return e.Subject
	}
	return ""
}

type placed struct {
	where string
	err   error
}

func (p *placed) Error() string { return p.where + ": " + p.err.Error() }
func (p *placed) Unwrap() error { return p.err }
