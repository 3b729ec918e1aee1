package codegen

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/publicdata"
)

// shared finds a file or folder of the public test data beside the module, and skips the test when there is none.
func shared(t testing.TB, path ...string) string {
	t.Helper()
	return publicdata.Path(t, path...)
}

var targets = []string{"trn1", "trn2", "trn3"}

// verified are options with every checker on.
func verified(target string) Options {
	o := NewOptions()
	o.Target = target
	o.Verify = true
	return o
}

// compile compiles a program with fresh storage and returns the package.
func compile(t testing.TB, p *Program, o Options) ([]byte, *Result) {
	t.Helper()
	var w Worker
	var buf neff.Buffer
	res, err := w.Compile(context.Background(), p, &o, &buf)
	if err != nil {
		t.Fatalf("%s for %s: %v", p.Name, o.Target, err)
	}
	return bytes.Clone(buf.Bytes()), res
}

func load(t testing.TB, name string) *Program {
	t.Helper()
	p, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// match runs a package over a number of interleavings against the interpreter on random inputs.
func match(t testing.TB, pkg []byte, model string, seedWeights uint64, seeds int) *RunResult {
	t.Helper()
	p := load(t, model)
	p.Seed(seedWeights)
	res, err := Execute(context.Background(), pkg, &RunOptions{
		Random: 1, HasRand: true, Against: p, Seeds: seeds, Rtol: -1, Atol: -1,
	})
	if err != nil {
		t.Fatalf("%s: %v", model, err)
	}
	if len(res.Comparisons) == 0 {
		t.Fatalf("%s: nothing was compared", model)
	}
	if f := res.Failed(); f != nil {
		t.Fatalf("%s: output %q: %s", model, f.Name, f.Diff)
	}
	return res
}

// unzip lays the cases of an archive out in a temporary folder.
func unzip(t testing.TB, archive string) string {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") || strings.Contains(f.Name, "..") {
			continue
		}
		p := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err == nil {
			err = os.WriteFile(p, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compileOnly compiles a model through the worker, whose tables the caller then looks at.
func (w *Worker) compileOnly(t testing.TB, model string, o *Options) *Result {
	t.Helper()
	var buf neff.Buffer
	res, err := w.Compile(context.Background(), load(t, model), o, &buf)
	if err != nil {
		t.Fatalf("%s for %s: %v", model, o.Target, err)
	}
	return res
}
