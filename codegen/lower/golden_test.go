package lower

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example is the program of the IR notes: C[64,256] = relu(A[128,64]ᵀ·B[128,256]).
func (p *prog) example(level int, in target.Dtype) {
	m := &p.m
	m.Reset()
	m.Gen, _ = target.ByLevel(level)
	m.Name = m.Names.Intern("relu_example")
	b := &p.b
	b.NewFunc(m, "sg0000", "Block1")
	name := m.Names.Intern
	sb := func(n string, d target.Dtype, parts int, elems, addr int64) ir.Loc {
		l := b.SB(name(n), d, parts, elems)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Addr = addr
		return l
	}
	a := b.DRAM(name("A"), ir.KindExternalInput, in, 128, 64)
	bb := b.DRAM(name("B"), ir.KindExternalInput, in, 128, 256)
	c := b.DRAM(name("C"), ir.KindExternalOutput, target.Float32, 64, 256)
	es := int64(in.Size())
	base := int64(m.Gen.SBReserved)
	asb := sb("a_sb", in, 128, 64, base)
	bsb := sb("b_sb", in, 128, 256, base+64*es)
	csb := sb("c_sb", target.Float32, 64, 256, base+320*es)
	acc := b.PSUM(name("acc"), target.Float32, 64, 256)
	m.Locs.At(acc).Flags |= ir.LocAllocated
	pair := func(s int32, n uint32) ir.Pair { return ir.Pair{Step: s, Num: n} }
	chip := func(l ir.Loc, d target.Dtype, parts int, n uint32) ir.Arg {
		return b.Chip(l, d, 0, parts, 0, pair(1, n))
	}
	b.Source = name("load_A")
	b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{b.Mem(a, in, 0, pair(64, 128), pair(1, 64))}, []ir.Arg{chip(asb, in, 128, 64)})
	b.Source = name("load_B")
	b.Emit(ir.OpLoad, target.EngineSP, []ir.Arg{b.Mem(bb, in, 0, pair(256, 128), pair(1, 256))}, []ir.Arg{chip(bsb, in, 128, 256)})
	b.Source = name("dot")
	b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{chip(bsb, in, 128, 256), chip(asb, in, 128, 64)}, []ir.Arg{chip(acc, target.Float32, 64, 256)},
		ir.Int(ir.KeyAccumulationFlag, 3))
	b.Source = name("relu")
	b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{chip(acc, target.Float32, 64, 256), ir.ImmF32(0), ir.ImmF32(1), ir.ImmF32(0)},
		[]ir.Arg{chip(csb, target.Float32, 64, 256)}, ir.Int(ir.KeyFunc, int64(target.ActRelu)))
	b.Source = name("store_C")
	b.Emit(ir.OpSave, target.EngineSP, []ir.Arg{chip(csb, target.Float32, 64, 256)}, []ir.Arg{b.Mem(c, target.Float32, 0, pair(256, 64), pair(1, 256))})
}

// pack writes the package and reads it back, strictly.
func (p *prog) pack(t testing.TB, opt Options) ([]byte, *neff.Package, Stats) {
	t.Helper()
	var out neff.Buffer
	_, st, err := Write(&p.m, p.b.Func, opt, &p.enc, &out)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := neff.ReadBytes(out.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), pkg, st
}

// listing is everything of a package that a reader of the golden files wants to see.
func listing(t testing.TB, pkg *neff.Package) string {
	t.Helper()
	var s strings.Builder
	for _, q := range pkg.Def.Queues[1:] {
		fmt.Fprintf(&s, "queue %s %s owner %s, %d queues, semaphores %d..%d\n", q.Name, q.Type, q.Owner, q.NumQueues, q.Semaphores[0], q.Semaphores[len(q.Semaphores)-1])
	}
	for _, v := range pkg.Def.Vars[1:] {
		fmt.Fprintf(&s, "var %d %q %s %d bytes\n", v.ID, v.Name, v.Type, v.Size)
	}
	for k, e := range target.Sequencers {
		prog := &pkg.Engines[k]
		fmt.Fprintf(&s, "\n%s\n", e)
		for at := 0; at < len(prog.Stream); at += isa.BundleSize {
			s.Write(isa.Disasm(pkg.Level, (*isa.Bundle)(prog.Stream[at:]), nil))
			s.WriteByte('\n')
		}
		for _, d := range prog.Descs {
			side := func(x *neff.Side) string {
				return fmt.Sprintf("%s+%#x steps %v sizes %v %s", pkg.Def.Vars[x.Var].Name, x.Off, x.Step[:x.N], x.Size[:x.N], x.Dtype)
			}
			fmt.Fprintf(&s, "block %d %s %s: %s -> %s, semaphore %d += %d\n", d.ID, pkg.Def.Queues[d.Queue].Name, d.Op, side(&d.From), side(&d.To), d.Sem, d.SemInc)
		}
	}
	return s.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (run with -update after checking):\n%s", path, d)
	}
}

// The example of the IR notes on all three generations, in bfloat16 and in float32.
func TestGoldenExample(t *testing.T) {
	var p prog
	for _, level := range []int{20, 30, 40} {
		for _, d := range []target.Dtype{target.BFloat16, target.Float32} {
			t.Run(fmt.Sprintf("%d-%s", level, d), func(t *testing.T) {
				p.example(level, d)
				p.tail(t, true, dma.Options{})
				first, pkg, _ := p.pack(t, Options{Build: "test"})
				golden(t, fmt.Sprintf("example-%d-%s.txt", level, d), listing(t, pkg))
				again, _, _ := p.pack(t, Options{Build: "test"})
				if !bytes.Equal(first, again) {
					t.Error("a second package of the same module differs")
				}
			})
		}
	}
}
