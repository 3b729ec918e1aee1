package onnx

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// externalFiles are the files of weights that a model refers to, each mapped once and kept as a blob of the graph.
type externalFiles struct {
	blobs map[string]uint32
}

// open gives the blob of a file in dir. Names are slash-separated and stay inside dir: absolute names, "..", and links that
// lead out of it are refused.
func (x *externalFiles) open(g *graph.Graph, dir, name string) (uint32, error) {
	if b, ok := x.blobs[name]; ok {
		return b, nil
	}
	if name == "" || strings.ContainsRune(name, 0) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return 0, fmt.Errorf("external file %q is not a name inside the model's folder", name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	st, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return 0, err
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait
		return 0, fmt.Errorf("external file %q is not a regular file", name)
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	data, err := mapFile(f, st.Size())
	if err != nil {
		return 0, err
	}
	if x.blobs == nil {
		x.blobs = map[string]uint32{}
	}
	b := uint32(len(g.Blobs))
	g.Blobs = append(g.Blobs, data)
	x.blobs[name] = b
	return b, nil
}

// loadFile reads a file whole, where mapping is not to be had.
func loadFile(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}
