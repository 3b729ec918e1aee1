package codegen

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
)

// compiled is a small package with names.
func compiled(t testing.TB) []byte {
	t.Helper()
	p, err := Load("zoo:mlp?width=64")
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.Debug = true
	var w Worker
	var buf neff.Buffer
	if _, err := w.Compile(context.Background(), p, &o, &buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// A package shows every bundle with its name, every descriptor of every trigger, and what each semaphore stands for.
func TestDisassemble(t *testing.T) {
	data := compiled(t)
	pkg, err := neff.ReadBytes(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Disassemble(&out, data, nil, ""); err != nil {
		t.Fatal(err)
	}
	bundles, descs := 0, 0
	for i := range pkg.Engines {
		bundles += int(pkg.Engines[i].Bundles)
		descs += len(pkg.Engines[i].Descs)
	}
	named, moved := 0, 0
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.Contains(line, " ; I-") {
			named++
		}
		if strings.HasPrefix(line, "        ; ") && strings.Contains(line, " -> ") {
			moved++
		}
	}
	if named != bundles || moved != descs || bundles == 0 || descs == 0 {
		t.Errorf("%d of %d bundles have names, %d of %d descriptors are shown:\n%s", named, bundles, moved, descs, out.Bytes())
	}
}

// The debug member is never trusted: cut or changed anywhere, it gives names or nothing, and nothing of its claims is
// allocated.
func TestProvenanceHostile(t *testing.T) {
	pkg, err := neff.ReadBytes(compiled(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(pkg.Files, func(m neff.Member) bool { return m.Path == neff.DebugPath })
	if at < 0 || readProvenance(pkg) == nil {
		t.Fatal("no debug member")
	}
	whole := pkg.Files[at].Data
	look := func(b []byte) {
		pkg.Files[at].Data = b
		p := readProvenance(pkg)
		for e := range 5 {
			for i := range 40 {
				p.of(e, i)
			}
		}
	}
	for n := range whole {
		look(whole[:n])
		b := slices.Clone(whole)
		b[n] = 0xFF
		look(b)
		b[n] ^= 0x80
		look(b)
	}
}

// Tiles in another format compile to the same streams; a model in another format computes the same.
func TestConvert(t *testing.T) {
	o := NewOptions()
	var w Worker
	bytesOf := func(p *Program) []byte {
		t.Helper()
		var buf neff.Buffer
		if _, err := w.Compile(context.Background(), p, &o, &buf); err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(buf.Bytes())
	}
	model := func() *Program {
		t.Helper()
		p, err := Load("zoo:mlp?width=64&weights=param")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	want := streams(t, bytesOf(model()))
	for _, f := range []Format{FormatHLO, FormatONNX, FormatBIR, FormatRIR} {
		var text bytes.Buffer
		if err := w.Convert(model(), f, &o, &text); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		p, err := Parse(text.Bytes(), "-", "")
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if p.Format != f {
			t.Errorf("%s is told as %s", f, p.Format)
		}
		data := bytesOf(p)
		if p.Module != nil && !slices.EqualFunc(streams(t, data), want, bytes.Equal) {
			t.Errorf("%s: other engine streams", f)
		}
		res, err := Execute(context.Background(), data, &RunOptions{HasRand: true, Random: 1, Against: model(), Rtol: -1, Atol: -1})
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if len(res.Comparisons) != 1 || res.Failed() != nil {
			t.Errorf("%s: %v", f, res.Comparisons)
		}
	}
}

func streams(t testing.TB, data []byte) [][]byte {
	t.Helper()
	pkg, err := neff.ReadBytes(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for i := range pkg.Engines {
		out = append(out, pkg.Engines[i].Stream)
	}
	return out
}
