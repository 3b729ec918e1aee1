package codegen

import (
	"archive/zip"
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// ReadTensors reads the tensors of a file: one of a .npy or of a TensorProto .pb, all of an .npz in the order of their
// names in the archive.
func ReadTensors(file string) ([]NamedTensor, error) {
	data, err := ReadInput(file)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(file) {
	case ".npy":
		t, err := parseNPY(data)
		if err != nil {
			return nil, target.Errorf(target.User, "%s: %w", file, err)
		}
		return []NamedTensor{{"", t}}, nil
	case ".pb":
		t, err := onnx.ReadTensor(data)
		if err != nil {
			return nil, target.Errorf(target.User, "%s: %w", file, err)
		}
		return []NamedTensor{{t.Name, graph.Tensor{Dtype: t.Dtype, Dims: t.Dims, Data: t.Data}}}, nil
	case ".npz":
		return readNPZ(file, data)
	}
	return nil, target.Errorf(target.User, "%s: tensors are read from .npy, .npz and .pb files", file)
}

func readTensors(files []string) ([]NamedTensor, error) {
	var out []NamedTensor
	for _, f := range files {
		ts, err := ReadTensors(f)
		if err != nil {
			return nil, err
		}
		out = append(out, ts...)
	}
	return out, nil
}

func readNPZ(file string, data []byte) ([]NamedTensor, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, target.Errorf(target.User, "%s: %v", file, err)
	}
	var out []NamedTensor
	for _, f := range z.File {
		if f.UncompressedSize64 > MaxInput {
			return nil, target.Errorf(target.Limit, "%s: %s unpacks to %d bytes", file, f.Name, f.UncompressedSize64)
		}
		r, err := f.Open()
		if err != nil {
			return nil, target.Errorf(target.User, "%s: %v", file, err)
		}
		b, err := io.ReadAll(io.LimitReader(r, MaxInput))
		r.Close()
		if err != nil {
			return nil, target.Errorf(target.User, "%s: %s: %v", file, f.Name, err)
		}
		t, err := parseNPY(b)
		if err != nil {
			return nil, target.Errorf(target.User, "%s: %s: %w", file, f.Name, err)
		}
		out = append(out, NamedTensor{strings.TrimSuffix(f.Name, ".npy"), t})
	}
	return out, nil
}

// npyTypes are numpy's type strings. bfloat16 and one-byte floats travel as raw bytes.
var npyTypes = []struct {
	descr string
	dtype graph.Dtype
}{
	{"|b1", graph.Bool}, {"|u1", graph.U8}, {"|i1", graph.S8}, {"<u2", graph.U16}, {"<i2", graph.S16}, {"<f2", graph.F16},
	{"<V2", graph.BF16}, {"|V2", graph.BF16}, {"<u4", graph.U32}, {"<i4", graph.S32}, {"<f4", graph.F32}, {"<u8", graph.U64},
	{"<i8", graph.S64}, {"<f8", graph.F64},
}

func parseNPY(b []byte) (graph.Tensor, error) {
	a, err := neff.ParseNPY(b)
	if err != nil {
		return graph.Tensor{}, err
	}
	for _, t := range npyTypes {
		if t.descr == a.Descr {
			return graph.Tensor{Dtype: t.dtype, Dims: slices.Clone(a.Shape), Data: a.Data}, nil
		}
	}
	return graph.Tensor{}, target.NotSupported(a.Descr, "numpy type %q", a.Descr)
}

// WriteTensor writes a tensor as .npy.
func WriteTensor(w io.Writer, t graph.Tensor) error {
	for _, x := range npyTypes {
		if x.dtype != t.Dtype {
			continue
		}
		b, err := neff.AppendNPY(nil, neff.Array{Descr: x.descr, Shape: t.Dims, Data: t.Data})
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	return target.NotSupported(t.Dtype.String(), "tensors of %s are not written as .npy", t.Dtype)
}
