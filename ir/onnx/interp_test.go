package onnx

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// compare checks got against the published want: |got - want| <= atol + rtol·|want|, NaN and infinities alike.
func compare(got graph.Tensor, want Tensor, rtol, atol float64) error {
	if got.Dtype != want.Dtype || fmt.Sprint(got.Dims) != fmt.Sprint(want.Dims) && len(got.Dims)+len(want.Dims) > 0 {
		return fmt.Errorf("%v%v, expected %v%v", got.Dtype, got.Dims, want.Dtype, want.Dims)
	}
	size, worst, at := want.Dtype.Size(), 0.0, -1
	for i := 0; i < len(want.Data)/size; i++ {
		g := graph.DecodeFloat(want.Dtype, elementBits(want.Dtype, got.Data[i*size:]))
		w := graph.DecodeFloat(want.Dtype, elementBits(want.Dtype, want.Data[i*size:]))
		if g == w || g != g && w != w {
			continue
		}
		over := math.Abs(g-w) - (atol + rtol*math.Abs(w))
		if over > worst || math.IsNaN(over) || math.IsInf(over, 0) {
			if worst, at = over, i; !(over <= math.MaxFloat64) {
				worst = math.Inf(1)
			}
			if math.IsInf(worst, 1) {
				return fmt.Errorf("element %d is %v, expected %v", i, g, w)
			}
		}
	}
	if at >= 0 {
		return fmt.Errorf("element %d is %v, expected %v", at,
			graph.DecodeFloat(want.Dtype, elementBits(want.Dtype, got.Data[at*size:])), graph.DecodeFloat(want.Dtype, elementBits(want.Dtype, want.Data[at*size:])))
	}
	return nil
}

// tolerance is by the narrowest float type among the reference tensors.
func tolerance(ts []Tensor) (rtol, atol float64) {
	rtol, atol = 1e-3, 1e-5
	for _, t := range ts {
		switch t.Dtype {
		case graph.F16:
			rtol, atol = max(rtol, 4e-3), max(atol, 1e-3)
		case graph.BF16:
			rtol, atol = max(rtol, 2e-2), max(atol, 2e-2)
		}
	}
	return rtol, atol
}

// runCase interprets a case and compares it with its published outputs. An Unsupported error means that the case is out of
// reach by name.
func runCase(c *testCase, g *graph.Graph) (fixed int, err error) {
	known, err := readCase(c, g)
	if err != nil {
		return 0, err
	}
	return len(known), evalCase(c, g)
}

// evalCase interprets what readCase read.
func evalCase(c *testCase, g *graph.Graph) error {
	var inputs []graph.Tensor
	var refs []Tensor
	for _, p := range g.Params(g.Entry) {
		i := inputIndex(c.model, g.NodeName(p))
		if i < 0 || i >= len(c.inputs) {
			return fmt.Errorf("no file for input %s", g.NodeName(p))
		}
		t, err := ReadTensor(c.inputs[i].data)
		if err != nil {
			return err
		}
		refs = append(refs, t)
		inputs = append(inputs, graph.Tensor{Dtype: t.Dtype, Dims: t.Dims, Data: t.Data})
	}
	outs, err := graph.Eval(g, inputs)
	if err != nil {
		return err
	}
	if len(outs) != len(c.outputs) {
		return fmt.Errorf("%d outputs, %d published", len(outs), len(c.outputs))
	}
	var want []Tensor
	for _, o := range c.outputs {
		t, err := ReadTensor(o.data)
		if err != nil {
			return err
		}
		want = append(want, t)
	}
	rtol, atol := tolerance(append(refs, want...))
	for i, o := range outs {
		if err := compare(o, want[i], rtol, atol); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// report runs cases and fails the test for each that is neither right nor refused by name.
func report(t *testing.T, cases []testCase) (passed, refused int) {
	var g graph.Graph
	special := 0
	for i := range cases {
		c := &cases[i]
		fixed, err := runCase(c, &g)
		var te *target.Error
		switch {
		case err == nil:
			passed++
			if fixed > 0 {
				special++
			}
		case errors.As(err, &te) && te.Class == target.Unsupported && te.Subject != "":
			refused++
			t.Logf("UNSUPPORTED %s: %v", c.name, err)
		default:
			t.Errorf("FAIL %s: %v", c.name, err)
		}
	}
	t.Logf("%d cases: %d passed (%d of them with shape inputs fixed), %d refused by name", len(cases), passed, special, refused)
	return passed, refused
}

// TestPublishedCases interprets every single-operator case and compares it with the reference data.
func TestPublishedCases(t *testing.T) {
	passed, _ := report(t, allZipCases(t))
	if passed < 680 {
		t.Errorf("%d cases passed, expected 680 or more", passed)
	}
}

var npyHead = regexp.MustCompile(`'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([^)]*)\)`)

// readNpy decodes a NumPy array of little-endian elements.
func readNpy(b []byte) (Tensor, error) {
	if len(b) < 10 || string(b[:6]) != "\x93NUMPY" {
		return Tensor{}, errors.New("not a .npy file")
	}
	n := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	m := npyHead.FindStringSubmatch(string(b[10:n]))
	if m == nil || m[2] == "True" {
		return Tensor{}, fmt.Errorf("header %q", b[10:n])
	}
	types := map[string]graph.Dtype{"<f4": graph.F32, "<f8": graph.F64, "<i8": graph.S64, "<i4": graph.S32, "|i1": graph.S8, "|u1": graph.U8, "|b1": graph.Bool}
	t := Tensor{Dtype: types[m[1]], Data: b[n:]}
	if t.Dtype == graph.DtypeNone {
		return Tensor{}, fmt.Errorf("element type %s", m[1])
	}
	for _, s := range strings.Split(m[3], ",") {
		if s = strings.TrimSpace(s); s != "" {
			d, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return Tensor{}, err
			}
			t.Dims = append(t.Dims, d)
		}
	}
	return t, nil
}

// convertTo changes the element type: NumPy archives of float64 for models of float32, say.
func convertTo(t Tensor, d graph.Dtype) Tensor {
	if t.Dtype == d {
		return t
	}
	size := t.Dtype.Size()
	vals := make([]float64, len(t.Data)/size)
	for i := range vals {
		vals[i] = graph.DecodeFloat(t.Dtype, elementBits(t.Dtype, t.Data[i*size:]))
	}
	o := graph.TensorOf(d, t.Dims, vals...)
	return Tensor{Name: t.Name, Dtype: d, Dims: t.Dims, Data: o.Data}
}

// npz reads an archive of arrays, by name.
func npz(t *testing.T, path string) []Tensor {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out []Tensor
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		v, err := readNpy(b)
		if err != nil {
			t.Fatalf("%s: %s: %v", path, f.Name, err)
		}
		v.Name = strings.TrimSuffix(f.Name, ".npy")
		out = append(out, v)
	}
	return out
}

// TestDeeploy interprets the small complete networks.
func TestDeeploy(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(dataDir(t), "deeploy", "*", "network.onnx"))
	sort.Strings(files)
	if len(files) == 0 {
		t.Skip("no networks")
	}
	for _, f := range files {
		t.Run(filepath.Base(filepath.Dir(f)), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var g graph.Graph
			err = Read(data, filepath.Dir(f), &g)
			if filepath.Base(filepath.Dir(f)) == "microLlama1" { // RMSNorm, and opset 10 with softmax over the last dimension
				wantRefused(t, err, target.Unsupported, "RMSNorm")
				err = ReadOptions(data, Options{Lenient: true}, &g)
			}
			if err != nil {
				t.Fatal(err)
			}
			ins, want := npz(t, filepath.Join(filepath.Dir(f), "inputs.npz")), npz(t, filepath.Join(filepath.Dir(f), "outputs.npz"))
			pick := func(l []Tensor, name string, i int) Tensor {
				for _, v := range l {
					if v.Name == name {
						return v
					}
				}
				return l[i]
			}
			var inputs []graph.Tensor
			for i, p := range g.Params(g.Entry) {
				v := convertTo(pick(ins, g.NodeName(p), i), g.Dtype(p))
				inputs = append(inputs, graph.Tensor{Dtype: v.Dtype, Dims: g.Dims(p), Data: v.Data})
			}
			outs, err := graph.Eval(&g, inputs)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range outs {
				w := convertTo(pick(want, g.Names.String(g.Outputs[i].Name), i), o.Dtype)
				w.Dims = o.Dims
				if len(w.Data) != len(o.Data) {
					t.Fatalf("output %d has %d bytes, published %d", i, len(o.Data), len(w.Data))
				}
				if err := compare(o, w, 1e-3, 1e-5); err != nil {
					t.Errorf("output %d: %v", i, err)
				}
			}
		})
	}
}

// TestLight interprets a network whose weights are splats; the published output is for x[i] = i/N.
func TestLight(t *testing.T) {
	names := []string{"light_squeezenet"}
	if !testing.Short() {
		names = append(names, "light_shufflenet", "light_densenet121", "light_inception_v1", "light_resnet50", "light_bvlc_alexnet")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(dataDir(t), "light")
			data, err := os.ReadFile(filepath.Join(dir, name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			pb, err := os.ReadFile(filepath.Join(dir, name+"_output_0.pb"))
			if err != nil {
				t.Fatal(err)
			}
			want, err := ReadTensor(pb)
			if err != nil {
				t.Fatal(err)
			}
			var g graph.Graph
			if err := Read(data, dir, &g); err != nil {
				t.Fatal(err)
			}
			var inputs []graph.Tensor
			for _, p := range g.Params(g.Entry) {
				x := graph.NewTensor(graph.F32, g.Dims(p)...)
				n := x.Len()
				var b bytes.Buffer
				for i := range n {
					_ = binary.Write(&b, binary.LittleEndian, float32(i)/float32(n))
				}
				x.Data = b.Bytes()
				inputs = append(inputs, x)
			}
			outs, err := graph.Eval(&g, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if err := compare(outs[0], want, 1e-3, 1e-5); err != nil {
				t.Error(err)
			}
		})
	}
}
