package flow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/rosmar-compiler/rosmar/arena"
)

// Reader reads functions in a text form, one record a line:
//
//	f NAME BLOCKS VALUES CLASSES   a function; one letter a value: i integer or pointer, f float or vector
//	b ID P P …                     a block and its parameters; blocks are numbered in order
//	a D,D <                        the arguments of the function
//	i D,D <U,U                     an instruction, its results and its uses
//	c D,D <U,U                     a call
//	j U,U >T:A,A >T:               a branch: what it tests, then each target with what it passes
//	r U,U                          a return
type Reader struct {
	s    *bufio.Scanner
	line int
	held bool // the current line is the next function's first

	defined []bool

	loops Loops
	doms  Doms
	at    []spot
}

// spot is where a value is defined: behind which instruction of which block.
type spot struct{ block, inst uint32 }

// MaxValues bounds the values of one function.
const MaxValues = 1 << 26

// NewReader reads from r. A line may be 64 MiB long.
func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1<<16), 64<<20)
	return &Reader{s: s}
}

// Next reads one function into f, io.EOF after the last. Errors name the line.
func (r *Reader) Next(f *Func) error {
	f.Reset()
	if !r.held && !r.next() {
		return r.end()
	}
	r.held = false
	if err := r.function(f); err != nil {
		return fmt.Errorf("line %d: %w", r.line, err)
	}
	return nil
}

func (r *Reader) end() error {
	if err := r.s.Err(); err != nil {
		return fmt.Errorf("line %d: %w", r.line+1, err)
	}
	return io.EOF
}

// next goes to the next line that is not empty.
func (r *Reader) next() bool {
	for r.s.Scan() {
		r.line++
		if len(bytes.TrimSpace(r.s.Bytes())) > 0 {
			return true
		}
	}
	return false
}

func (r *Reader) function(f *Func) error {
	w := bytes.Fields(r.s.Bytes())
	if len(w) < 4 || len(w) > 5 || string(w[0]) != "f" {
		return errors.New("a function starts with `f NAME BLOCKS VALUES CLASSES`")
	}
	blocks, ok1 := number(w[2])
	values, ok2 := number(w[3])
	if !ok1 || !ok2 || values > MaxValues || blocks > MaxValues {
		return fmt.Errorf("%s blocks and %s values: two counts of at most %d", w[2], w[3], MaxValues)
	}
	var classes []byte
	if len(w) == 5 {
		classes = w[4]
	}
	if len(classes) != int(values) {
		return fmt.Errorf("%d classes for %d values", len(classes), values)
	}
	f.Name = string(w[1])
	for _, c := range classes {
		switch c {
		case 'i':
			f.Class = append(f.Class, Int)
		case 'f':
			f.Class = append(f.Class, Float)
		default:
			return fmt.Errorf("class %q: i or f", c)
		}
	}
	if cap(r.defined) < int(values) {
		r.defined = make([]bool, values)
	}
	r.defined = r.defined[:values]
	clear(r.defined)
	ended := true
	for r.next() {
		line := bytes.TrimSpace(r.s.Bytes())
		if line[0] == 'f' {
			r.held = true
			break
		}
		if line[0] == 'b' {
			if !ended {
				return fmt.Errorf("block %d does not end in a branch or return", len(f.Blocks)-1)
			}
			if err := r.block(f, line[1:]); err != nil {
				return err
			}
			ended = false
			continue
		}
		if ended {
			return errors.New("an instruction outside of a block")
		}
		if err := r.inst(f, line); err != nil {
			return err
		}
		k := f.Insts[len(f.Insts)-1].Kind
		ended = k == Branch || k == Return
		f.Blocks[len(f.Blocks)-1].Insts.To = uint32(len(f.Insts))
	}
	if err := r.s.Err(); err != nil {
		return err
	}
	if !ended || len(f.Blocks) != int(blocks) {
		return fmt.Errorf("function %s has %d whole blocks of %d", f.Name, len(f.Blocks), blocks)
	}
	if err := f.finish(r.defined); err != nil {
		return err
	}
	return r.dominated(f)
}

// dominated finds a use that its value's definition does not come before on every way. Blocks that nothing reaches are left alone.
func (r *Reader) dominated(f *Func) error {
	r.loops.Build(f)
	r.doms.Build(f, &r.loops)
	r.at = arena.Resized(r.at, f.Values())
	for b := range f.Blocks {
		for _, v := range f.Of(f.Blocks[b].Params) {
			r.at[v] = spot{uint32(b), f.Blocks[b].Insts.From}
		}
		for i := f.Blocks[b].Insts.From; i < f.Blocks[b].Insts.To; i++ {
			for _, v := range f.Of(f.Insts[i].Defs()) {
				r.at[v] = spot{uint32(b), i + 1}
			}
		}
	}
	for _, b := range r.loops.Order {
		check := func(s Span, i uint32) error {
			for _, v := range f.Of(s) {
				if d := r.at[v]; d.block == b && d.inst > i || d.block != b && (r.loops.Rank[d.block] == NoBlock || !r.doms.Dominates(d.block, b)) {
					return fmt.Errorf("function %s: block %d uses value %d, which is not defined on every way there", f.Name, b, v)
				}
			}
			return nil
		}
		for i := f.Blocks[b].Insts.From; i < f.Blocks[b].Insts.To; i++ {
			if err := check(f.Insts[i].Uses, i); err != nil {
				return err
			}
		}
		for e := f.Blocks[b].Succs.From; e < f.Blocks[b].Succs.To; e++ {
			if err := check(f.Edges[e].Args, f.Last(b)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reader) block(f *Func, line []byte) error {
	w := bytes.Fields(line)
	if len(w) == 0 {
		return errors.New("a block without a number")
	}
	if id, ok := number(w[0]); !ok || int(id) != len(f.Blocks) {
		return fmt.Errorf("block %s: the next one is %d", w[0], len(f.Blocks))
	}
	b := Block{Insts: Span{uint32(len(f.Insts)), uint32(len(f.Insts))}, Succs: Span{uint32(len(f.Edges)), uint32(len(f.Edges))}}
	b.Params.From = uint32(len(f.Ops))
	for _, p := range w[1:] {
		if err := r.define(f, p); err != nil {
			return err
		}
	}
	b.Params.To = uint32(len(f.Ops))
	f.Blocks = append(f.Blocks, b)
	return nil
}

func (r *Reader) inst(f *Func, line []byte) error {
	kind, rest := line[0], line[1:]
	var in Inst
	in.Uses.From = uint32(len(f.Ops))
	switch kind {
	case 'a', 'i', 'c':
		defs, uses, ok := bytes.Cut(rest, []byte("<"))
		if !ok {
			return fmt.Errorf("%c record without `<`", kind)
		}
		if err := r.use(f, uses); err != nil {
			return err
		}
		in.Uses.To = uint32(len(f.Ops))
		for w := range bytes.SplitSeq(bytes.TrimSpace(defs), []byte(",")) {
			if len(w) > 0 {
				if err := r.define(f, w); err != nil {
					return err
				}
			}
		}
		in.To = uint32(len(f.Ops))
		switch kind {
		case 'c':
			in.Kind = Call
		case 'a':
			in.Kind = Args
			if len(f.Insts) != 0 || in.Uses.Len() != 0 {
				return errors.New("arguments stand first in block 0 and use nothing")
			}
		}
	case 'r':
		if err := r.use(f, rest); err != nil {
			return err
		}
		in.Uses.To = uint32(len(f.Ops))
		in.To, in.Kind = in.Uses.To, Return
	case 'j':
		tests, targets, _ := bytes.Cut(rest, []byte(">"))
		if err := r.use(f, tests); err != nil {
			return err
		}
		in.Uses.To = uint32(len(f.Ops))
		in.To, in.Kind = in.Uses.To, Branch
		b := &f.Blocks[len(f.Blocks)-1]
		for t := range bytes.SplitSeq(targets, []byte(">")) {
			to, args, ok := bytes.Cut(t, []byte(":"))
			id, ok2 := number(bytes.TrimSpace(to))
			if !ok || !ok2 {
				return fmt.Errorf("branch target %q: `BLOCK:values`", bytes.TrimSpace(t))
			}
			e := Edge{From: uint32(len(f.Blocks) - 1), To: id, Args: Span{From: uint32(len(f.Ops))}}
			if err := r.use(f, args); err != nil {
				return err
			}
			e.Args.To = uint32(len(f.Ops))
			f.Edges = append(f.Edges, e)
			b.Succs.To = uint32(len(f.Edges))
		}
	default:
		return fmt.Errorf("record %q: f, b, a, i, c, j or r", kind)
	}
	f.Insts = append(f.Insts, in)
	return nil
}

func (r *Reader) use(f *Func, list []byte) error {
	for w := range bytes.SplitSeq(bytes.TrimSpace(list), []byte(",")) {
		if len(w) == 0 {
			continue
		}
		v, ok := number(w)
		if !ok || int(v) >= len(f.Class) {
			return fmt.Errorf("value %q: a number below %d", w, len(f.Class))
		}
		f.Ops = append(f.Ops, v)
	}
	return nil
}

func (r *Reader) define(f *Func, w []byte) error {
	v, ok := number(w)
	if !ok || int(v) >= len(f.Class) {
		return fmt.Errorf("value %q: a number below %d", w, len(f.Class))
	}
	if r.defined[v] {
		return fmt.Errorf("value %d is defined twice", v)
	}
	r.defined[v] = true
	f.Ops = append(f.Ops, v)
	return nil
}

func number(w []byte) (uint32, bool) {
	n := uint64(0)
	for _, c := range w {
		if c < '0' || c > '9' || n > 1<<32 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return uint32(n), len(w) > 0 && n < 1<<32
}

// finish lists predecessors and finds what allocators take for granted beyond the grammar: targets and argument counts, no critical
// edge, an entry without predecessors, every used value defined. That definitions dominate uses is found behind it.
func (f *Func) finish(defined []bool) error {
	if len(f.Blocks) == 0 {
		return fmt.Errorf("function %s has no block", f.Name)
	}
	for i := range f.Edges {
		if e := &f.Edges[i]; int(e.To) >= len(f.Blocks) {
			return fmt.Errorf("function %s: block %d branches to block %d of %d", f.Name, e.From, e.To, len(f.Blocks))
		}
	}
	f.linkPreds()
	if b := &f.Blocks[0]; b.Params.Len() > 0 || b.Preds.Len() > 0 {
		return fmt.Errorf("function %s: the entry has parameters or predecessors", f.Name)
	}
	for i := range f.Edges {
		e := &f.Edges[i]
		to := &f.Blocks[e.To]
		if e.Args.Len() != to.Params.Len() {
			return fmt.Errorf("function %s: block %d passes %d values to block %d, which has %d parameters", f.Name, e.From, e.Args.Len(), e.To, to.Params.Len())
		}
		for k, v := range f.Of(e.Args) {
			if f.Class[v] != f.Class[f.Of(to.Params)[k]] {
				return fmt.Errorf("function %s: block %d passes value %d to a parameter of the other class", f.Name, e.From, v)
			}
		}
		if f.Blocks[e.From].Succs.Len() > 1 && to.Preds.Len() > 1 {
			return fmt.Errorf("function %s: the edge from block %d to block %d is critical", f.Name, e.From, e.To)
		}
	}
	for _, v := range f.Ops {
		if !defined[v] {
			return fmt.Errorf("function %s: value %d is used and never defined", f.Name, v)
		}
	}
	return nil
}
