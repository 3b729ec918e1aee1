package codegen

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Disassemble writes the engine streams of a package as text, one line a bundle: its index, the instruction, its waits and
// updates; branch targets get a label, DMA triggers the
// descriptors of their block, gathers of rows the name of their table, and bundles the names that a package with debug names has. It reads any file of this shape, ours or
// not, as far as it goes: what our strict reader refuses is shown without descriptors and semaphore names, and the reason
// is the first line. fallback is the generation of a file that does not name its own; nil refuses such a file. engine
// picks one stream by any of its names, "" takes all.
func Disassemble(out io.Writer, data []byte, fallback *target.Generation, engine string) error {
	var pick target.Engine
	if engine != "" {
		e, ok := target.ParseEngine(engine)
		if !ok || !e.HasStream() {
			return target.Errorf(target.User, "engine %q: there are Pool, Activation, PE, DVE and SP", engine)
		}
		pick = e
	}
	pkg, refused := neff.ReadBytes(data, nil)
	if refused == nil {
		return disasmPackage(out, pkg, pick)
	}
	return disasmForeign(out, data, refused, fallback, pick)
}

func disasmPackage(out io.Writer, pkg *neff.Package, pick target.Engine) error {
	g, ok := target.ByLevel(pkg.Level)
	if !ok {
		return target.Errorf(target.Bug, "package of level %d", pkg.Level)
	}
	d := disasm{out: out, g: g, def: &pkg.Def, names: readProvenance(pkg)}
	d.line("; %s for %s (%s)", pkg.Header.Name, g.Name, g.Arch)
	d.semaphores(pkg)
	for i, e := range target.Sequencers {
		if pick != 0 && e != pick {
			continue
		}
		d.stream(e.String(), i, pkg.Engines[i].Stream, pkg.Engines[i].Descs)
	}
	return d.err
}

// disasmForeign shows the streams of a file that the strict reader refuses.
func disasmForeign(out io.Writer, data []byte, refused error, g *target.Generation, pick target.Engine) error {
	rep, err := neff.Inspect(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		return err
	}
	if rep.Arch != "" {
		if own, err := target.Lookup(rep.Arch); err == nil {
			g = own
		} else if g == nil {
			return err
		}
	}
	if g == nil {
		return target.Errorf(target.User, "the file does not say which generation it is for; give --target")
	}
	d := disasm{out: out, g: g}
	d.line("; not a package of ours: %v", refused)
	d.line("; read as %s (%s)", g.Name, g.Arch)
	err = neff.Walk(bytes.NewReader(data), int64(len(data)), nil, func(m neff.Member) error {
		if neff.KindOf(m.Path) != "stream" {
			return nil
		}
		stem := strings.TrimSuffix(path.Base(m.Path), ".bin")
		e, ok := target.ParseEngine(stem)
		if !ok {
			e, _ = target.ParseEngine(strings.ToLower(stem))
		}
		if pick != 0 && e != pick {
			return nil
		}
		d.stream(m.Path, 0, m.Data, nil)
		return d.err
	})
	if d.err != nil {
		return d.err
	}
	if err != nil {
		d.line("; the archive ends early: %v", err)
	}
	return d.err
}

// disasm writes lines and keeps the first error.
type disasm struct {
	out   io.Writer
	err   error
	g     *target.Generation
	def   *neff.Def // nil for a foreign file
	names *provenance
	buf   []byte
}

func (d *disasm) line(format string, args ...any) {
	d.buf = append(fmt.Appendf(d.buf[:0], format, args...), '\n')
	d.flush()
}

func (d *disasm) flush() {
	if d.err == nil {
		_, d.err = d.out.Write(d.buf)
	}
}

// semaphores lists what each counter stands for.
func (d *disasm) semaphores(pkg *neff.Package) {
	for i, e := range target.Sequencers {
		if len(pkg.Engines[i].Stream) > 0 {
			d.line("; s%d counts instructions of %s", lower.FirstEngineSem+i, e)
		}
	}
	for _, q := range pkg.Def.Queues[1:] {
		if n := len(q.Semaphores); n > 0 {
			d.line("; s%d..s%d complete transfers of %s, %d hardware queues, triggered by %s", q.Semaphores[0], q.Semaphores[n-1], q.Name, q.NumQueues, q.Owner)
		}
	}
}

// stream writes one engine, the one of that place in target.Sequencers.
func (d *disasm) stream(name string, engine int, stream []byte, descs []neff.Desc) {
	n := len(stream) / isa.BundleSize
	d.line("\n%s: %d bundles", name, n)
	labels := d.labels(stream)
	for i := range n {
		if labels[uint64(i)] {
			d.line("L%d:", i)
		}
		b := (*isa.Bundle)(stream[i*isa.BundleSize:])
		d.buf = fmt.Appendf(d.buf[:0], "%-7d ", i)
		d.buf = isa.Disasm(d.g.Level, b, d.buf)
		if name, source := d.names.of(engine, i); name+source != "" {
			d.buf = append(d.buf, " ; "...)
			d.buf = append(d.buf, name...)
			if source != "" {
				d.buf = append(append(d.buf, " of "...), source...)
			}
		}
		d.buf = append(d.buf, '\n')
		d.flush()
		if op := isa.Opcode(b[0]); (op == isa.OpDMATrigger || op == isa.OpIndirectDMA) && d.def != nil {
			var in isa.Inst
			switch {
			case isa.Decode(d.g.Level, b, &in) != nil:
			case op == isa.OpDMATrigger:
				d.block(descs, in.Block)
			default:
				d.table(in.Var)
			}
		}
		if d.err != nil {
			return
		}
	}
	if rest := len(stream) % isa.BundleSize; rest != 0 {
		d.line("; %d bytes after the last bundle", rest)
	}
}

// labels are the bundles that a branch of the stream goes to.
func (d *disasm) labels(stream []byte) map[uint64]bool {
	var at map[uint64]bool
	var in isa.Inst
	for i := 0; i+isa.BundleSize <= len(stream); i += isa.BundleSize {
		b := (*isa.Bundle)(stream[i:])
		if isa.Opcode(b[0]) != isa.OpBranch || isa.Decode(d.g.Level, b, &in) != nil {
			continue
		}
		if at == nil {
			at = map[uint64]bool{}
		}
		at[in.Target] = true
	}
	return at
}

// table names the variable that a gather takes rows of.
func (d *disasm) table(id uint32) {
	if row := d.def.VarByID(id); row != 0 {
		d.line("        ; rows of %s", d.def.Vars[row].Name)
	}
}

// block writes the descriptors of a block. The list is in ascending order of ids.
func (d *disasm) block(descs []neff.Desc, id uint32) {
	i, _ := slices.BinarySearchFunc(descs, id, func(x neff.Desc, id uint32) int { return cmp.Compare(x.ID, id) })
	for ; i < len(descs) && descs[i].ID == id; i++ {
		x := &descs[i]
		d.buf = append(d.buf[:0], "        ; "...)
		d.buf = append(d.buf, x.Op.String()...)
		d.buf = append(d.buf, ' ')
		d.buf = d.side(d.buf, &x.From)
		d.buf = append(d.buf, " -> "...)
		d.buf = d.side(d.buf, &x.To)
		if x.SemInc != 0 {
			d.buf = fmt.Appendf(d.buf, "; completes s%d+%d", x.Sem, x.SemInc)
		}
		d.buf = append(d.buf, '\n')
		d.flush()
	}
}

// side is "variable+offset[step:count,…] dtype", bytes, innermost first.
func (d *disasm) side(dst []byte, s *neff.Side) []byte {
	dst = append(dst, d.def.Vars[s.Var].Name...)
	dst = fmt.Appendf(dst, "+%d[", s.Off)
	for i := range s.N {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, "%d:%d", s.Step[i], s.Size[i])
	}
	dst = append(dst, "] "...)
	return append(dst, s.Dtype.String()...)
}
