package onnx

import (
	"archive/zip"
	"io"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/publicdata"
)

// dataDir finds the folder with the ONNX test data beside the module, or skips the test.
func dataDir(t testing.TB) string {
	t.Helper()
	return publicdata.Path(t, "onnx")
}

// testCase is one model with reference tensors.
type testCase struct {
	name    string
	model   []byte
	inputs  []namedBytes
	outputs []namedBytes
}

type namedBytes struct {
	name string
	data []byte
}

// zipCases reads all cases of a zip file, by name.
func zipCases(t testing.TB, path string) []testCase {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	byName := map[string]*testCase{}
	read := func(f *zip.File) []byte {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	files := append([]*zip.File(nil), z.File...)
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
	for _, f := range files {
		dir, base := filepath.Split(f.Name)
		dir = strings.TrimSuffix(dir, "/")
		name := strings.TrimSuffix(dir, "/test_data_set_0")
		if base == "" || strings.HasSuffix(dir, "test_data_set_1") {
			continue
		}
		c := byName[name]
		if c == nil {
			c = &testCase{name: name}
			byName[name] = c
		}
		switch {
		case base == "model.onnx":
			c.model = read(f)
		case strings.HasPrefix(base, "input_"):
			c.inputs = append(c.inputs, namedBytes{base, read(f)})
		case strings.HasPrefix(base, "output_"):
			c.outputs = append(c.outputs, namedBytes{base, read(f)})
		}
	}
	var cases []testCase
	for _, c := range byName {
		if c.model == nil {
			continue
		}
		byNumber := func(l []namedBytes) {
			sort.Slice(l, func(i, j int) bool {
				if len(l[i].name) != len(l[j].name) {
					return len(l[i].name) < len(l[j].name)
				}
				return l[i].name < l[j].name
			})
		}
		byNumber(c.inputs)
		byNumber(c.outputs)
		cases = append(cases, *c)
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].name < cases[j].name })
	return cases
}

func allZipCases(t testing.TB) []testCase {
	dir := dataDir(t)
	cases := zipCases(t, filepath.Join(dir, "node", "onnx-node-tests-1.21.zip"))
	return append(cases, zipCases(t, filepath.Join(dir, "pytorch", "onnx-pytorch-tests.zip"))...)
}
