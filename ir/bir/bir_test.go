package bir_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func read(t testing.TB, data []byte) *ir.Module {
	t.Helper()
	m := new(ir.Module)
	if err := bir.Read(data, m); err != nil {
		t.Fatalf("%v\n%s", err, excerpt(data))
	}
	return m
}

func write(t testing.TB, m *ir.Module) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := bir.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func excerpt(b []byte) []byte { return b[:min(len(b), 600)] }

// stable checks that a module written and read is the same module, and that its text no longer changes.
func stable(t testing.TB, m *ir.Module) []byte {
	t.Helper()
	once := write(t, m)
	back := read(t, once)
	if d := cmp.Diff(string(ir.Append(nil, m)), string(ir.Append(nil, back))); d != "" {
		t.Errorf("module before and after (-before +after):\n%s", d)
	}
	if twice := write(t, back); !bytes.Equal(once, twice) {
		t.Errorf("the text changes: %s", cmp.Diff(string(once), string(twice)))
	}
	return once
}

// relu runs a module of testdata/relu.json's interface and compares with relu(AᵀB).
func relu(t *testing.T, m *ir.Module, gen string) {
	t.Helper()
	g, err := target.Lookup(gen)
	if err != nil {
		t.Fatal(err)
	}
	m.Gen = g
	const k, mm, n = 96, 48, 200
	a, b := make([]float32, k*mm), make([]float32, k*n)
	for i := range a {
		a[i] = float32(i%13-6) / 4
	}
	for i := range b {
		b[i] = float32(i%17-8) / 8
	}
	var s sim.Sim
	err = s.Run(m, sim.Env{Input: func(name string, size int64) ([]byte, error) {
		if name == "A_set" {
			return bf16(a), nil
		}
		return bf16(b), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	var out ir.Loc
	for l, r := range m.Locs.All() {
		if m.Names.String(r.Name) == "C" {
			out = l
		}
	}
	got := s.Bytes(m, out)
	positive := 0
	for i := range mm {
		for j := range n {
			sum := 0.0
			for x := range k {
				sum += float64(a[x*mm+i]) * float64(b[x*n+j])
			}
			if sum = max(0, sum); sum > 0 {
				positive++
			}
			v := math.Float32frombits(binary.LittleEndian.Uint32(got[4*(i*n+j):]))
			if float64(v) != sum { // every product and sum is exact in float32
				t.Fatalf("%s: C[%d,%d] = %v, want %v", gen, i, j, v, sum)
			}
		}
	}
	if positive == 0 || positive == mm*n {
		t.Fatalf("the data does not tell relu from a copy: %d of %d positive", positive, mm*n)
	}
}

func bf16(v []float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(f)>>16))
	}
	return b
}

func TestRelu(t *testing.T) {
	data := load(t, "relu.json")
	for _, gen := range []string{"trn1", "trn2", "trn3"} {
		m := read(t, data)
		relu(t, m, gen)
		relu(t, read(t, write(t, m)), gen)
	}
	m := read(t, data)
	golden(t, "relu.d2.json", stable(t, m))
	golden(t, "relu.rir", ir.Append(nil, m))
	if err := bir.Executable(m); err != nil {
		t.Error(err)
	}
}

// TestDialects reads the same program as D1 and as D3 spell it.
func TestDialects(t *testing.T) {
	want := string(ir.Append(nil, read(t, load(t, "relu.json"))))
	base := string(load(t, "relu.json"))
	replace := func(pairs ...string) []byte {
		out := strings.NewReplacer(pairs...).Replace(base)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(base, pairs[i]) {
				t.Fatalf("%q is not in the text", pairs[i])
			}
		}
		return []byte(out)
	}
	d1 := replace(`"accumulation_flag": 1, "psum_zero_region": 0`, `"start_tensor_calc": true, "stop_tensor_calc": false`,
		`"accumulation_flag": 6, "psum_zero_region": 0`, `"start_tensor_calc": false, "stop_tensor_calc": true`,
		`"engine": "SP"`, `"engine": "sp"`, `"engine": "PE"`, `"engine": "pe"`, `"engine": "Activation"`, `"engine": "act"`,
		`"version": 2`, `"version": 1`)
	wrapped := append(append([]byte(`{"module": `), base...), '}')
	for name, data := range map[string][]byte{"D1": d1, "wrapped": wrapped} {
		m := read(t, data)
		if d := cmp.Diff(want, string(ir.Append(nil, m))); d != "" {
			t.Errorf("%s (-D2 +%s):\n%s", name, name, d)
		}
		relu(t, m, "trn2")
	}
	d1 = replace(`"engine": "PE", "accumulation_flag": 1`, `"accumulation_flag": 1`)
	if m := read(t, d1); m.Insts.At(3).Engine != target.EngineUnassigned {
		t.Errorf("an absent engine reads as %s", m.Insts.At(3).Engine)
	}
	// D3: queues, debug blocks, names that repeat.
	d3 := replace(`"name": "I-1"`, `"name": "I-0", "debug": {"lineno": 7}, "queue": "qSPld"`,
		`[["I-0", "Flow"], ["I-1", "Flow"]]`, `[["I-0", "Flow"]]`,
		`"arch": "gen3"`, `"arch": "cayman", "queues": [{"name": "qSPld", "num_dma_engines": 16, "blocks": [{"name": "b", "instructions": []}]}]`)
	m := read(t, d3)
	relu(t, m, "trn2")
	if got := m.DepsOf(3); len(got) != 1 || got[0].Inst != 2 {
		t.Errorf("a dependence on a repeated name is on %v; the nearest before it is I-2", got)
	}
	text := string(write(t, m))
	for _, s := range []string{`"name":"I-0.1"`, `["I-0.1","Flow"]`, `"debug":{"lineno": 7}`, `"queue":"qSPld"`,
		`{"blocks":[{"name": "b", "instructions": []}],"name":"qSPld","num_dma_engines":16}`} {
		if !strings.Contains(text, s) {
			t.Errorf("%s is not in the text written:\n%s", s, text)
		}
	}
	stable(t, read(t, []byte(text)))
}

func parse(t testing.TB, text []byte) *ir.Module {
	t.Helper()
	m := new(ir.Module)
	if err := ir.Parse(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAll writes and reads a module with every form that both the tables and JSON have.
func TestAll(t *testing.T) {
	text := load(t, "all.rir")
	m := parse(t, text)
	if d := cmp.Diff(string(text), string(ir.Append(nil, m))); d != "" {
		t.Fatalf("the module is not in the form that is printed:\n%s", d)
	}
	golden(t, "all.json", stable(t, m))
}

func float32s(v ...float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}
