package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
)

var update = flag.Bool("update", false, "rewrite golden files, scripts and the README's list")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rosmar": main})
}

// TestScripts runs testdata/script: each is a session with the real command in a process of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"mkcase":   mkcase,
			"mkplan":   mkplan,
			"mktar":    mktar,
			"prefixes": prefixes,
			"flips":    flips,
		},
		// [race]: a command takes ten times as long to start, so scripts that run nothing at the same time leave the race detector out.
		Condition: func(cond string) (bool, error) {
			if cond == "race" {
				return raceEnabled, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("CI", "")
			env.Setenv("TERM", "dumb")
			return nil
		},
	})
}

// exits CODE COMMAND… runs a command that must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// mkcase FOLDER KIND writes an ONNX test case: relu is one that passes, wrong has another number, double a type that the machine lacks.
func mkcase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mkcase FOLDER relu|wrong|double")
	}
	dir := ts.MkAbs(args[0])
	var g graph.Graph
	g.Name = args[1]
	b := graph.Begin(&g, "main")
	d := graph.F32
	if args[1] == "double" {
		d = graph.F64
	}
	r := b.Unary(graph.OpRelu, b.Param("x", d, 4, 8))
	b.Output("y", r)
	c, err := b.End(r)
	ts.Check(err)
	g.Entry = c
	in := graph.RandomInputs(&g, 5)
	out, err := graph.Eval(&g, in)
	ts.Check(err)
	if args[1] == "wrong" {
		out[0].Data = bytes.Clone(out[0].Data)
		out[0].Data[len(out[0].Data)-1] ^= 0x40
	}
	data := filepath.Join(dir, "test_data_set_0")
	ts.Check(os.MkdirAll(data, 0o755))
	var buf bytes.Buffer
	ts.Check(onnx.Write(&buf, &g))
	ts.Check(os.WriteFile(filepath.Join(dir, "model.onnx"), buf.Bytes(), 0o644))
	for name, t := range map[string]graph.Tensor{"input_0.pb": in[0], "output_0.pb": out[0]} {
		buf.Reset()
		ts.Check(onnx.WriteTensor(&buf, onnx.Tensor{Name: name[:1], Dtype: t.Dtype, Dims: t.Dims, Data: t.Data}))
		ts.Check(os.WriteFile(filepath.Join(data, name), buf.Bytes(), 0o644))
	}
}

// mkplan FILE N writes N buffers of which some fifty are live at once, too many for a proof of the lowest layout.
func mkplan(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mkplan FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := []byte("id,lower,upper,size\n")
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		text = fmt.Appendf(text, "%d,%d,%d,%d\n", i, i, i+1+rng.IntN(100), 1+rng.IntN(1000))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o644))
}

// mktar FILE writes an archive of the package's shape that is not ours: no header, an unknown opcode, a stray file.
func mktar(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mktar FILE")
	}
	stream := make([]byte, 128)
	stream[0], stream[1] = 0xFE, 0x10
	stream[64], stream[65] = 0xFE, 0x10
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range []struct {
		name string
		data []byte
	}{{"neff.json", []byte(`{"target_arch": "sunda"}`)}, {"sg00/PE.bin", stream}, {"notes.txt", []byte("hello")}} {
		ts.Check(w.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.data)), Mode: 0o644, Typeflag: tar.TypeReg}))
		_, err := w.Write(f.data)
		ts.Check(err)
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), buf.Bytes(), 0o644))
}

// prefixes N FILE COMMAND… runs a command on N prefixes of a file, which must not end with a bug, and leaves no file when it fails.
func prefixes(ts *testscript.TestScript, neg bool, args []string) {
	damage(ts, args, func(b []byte, k, n int) []byte { return b[:len(b)*k/n] })
}

// flips N FILE COMMAND… is prefixes with one bit of the file turned over.
func flips(ts *testscript.TestScript, neg bool, args []string) {
	damage(ts, args, func(b []byte, k, n int) []byte {
		b = bytes.Clone(b)
		at := (len(b)*k + len(b)/2) / n
		b[at] ^= 1 << (k % 8)
		return b
	})
}

// damage runs COMMAND with @ replaced by each damaged file. In process: many damaged files, one start.
func damage(ts *testscript.TestScript, args []string, change func(b []byte, k, n int) []byte) {
	if len(args) < 3 {
		ts.Fatalf("usage: prefixes|flips N FILE ARGUMENTS…")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	whole, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	dir, err := os.MkdirTemp("", "damage")
	ts.Check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "damaged"+filepath.Ext(args[1]))
	for k := range n {
		ts.Check(os.WriteFile(file, change(whole, k, n), 0o644))
		var line []string
		for _, a := range args[2:] {
			line = append(line, strings.ReplaceAll(strings.ReplaceAll(a, "@", file), "$OUT", filepath.Join(dir, "out.neff")))
		}
		log, err := os.Create(filepath.Join(dir, "log"))
		ts.Check(err)
		code := runIn(line, log)
		said, err := os.ReadFile(log.Name())
		ts.Check(err)
		log.Close()
		switch {
		case code != exitFine && code != exitUser && code != exitLimit:
			ts.Fatalf("piece %d of %d: exit %d: %s", k, n, code, said)
		case code != exitFine && !bytes.HasPrefix(said, []byte("rosmar: ")):
			ts.Fatalf("piece %d of %d: no message: %s", k, n, said)
		case code != exitFine:
			left, err := filepath.Glob(filepath.Join(dir, "*out.neff*"))
			ts.Check(err)
			hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
			ts.Check(err)
			if len(left)+len(hidden) > 0 {
				ts.Fatalf("piece %d of %d left %v %v", k, n, left, hidden)
			}
		default:
			os.Remove(filepath.Join(dir, "out.neff"))
		}
	}
}

// runIn is the command in this process: its exit code, and what it says in log.
func runIn(args []string, log *os.File) int {
	a := newApp(&bytes.Buffer{}, log)
	return a.report(a.execute(context.Background(), args))
}
