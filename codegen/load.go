package codegen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
	"github.com/rosmar-compiler/rosmar/ir/zoo"
)

// Format is what an input turned out to be.
type Format uint8

const (
	FormatHLO Format = iota + 1
	FormatONNX
	FormatBIR
	FormatRIR
	FormatZoo
)

// String is the name that messages use.
func (f Format) String() string {
	return [...]string{"", "HLO text", "ONNX", "BIR JSON", "text IR", "generated model"}[f]
}

// Program is one input: a model as a graph, or a module that is already in tiles. Exactly one of the two is set.
type Program struct {
	Name   string
	Format Format
	Graph  *graph.Graph
	Module *ir.Module
}

// MaxInput bounds the bytes of one input file, and of what a compressed one unpacks to.
const MaxInput = 8 << 30

// Load reads an input: a file told by its content and then by its suffix, "-" for standard input, or a generated model
// `zoo:NAME?key=value`. A gzip file is unpacked first.
func Load(name string) (*Program, error) {
	if zoo.Is(name) {
		g, err := zoo.New(name)
		if err != nil {
			return nil, err
		}
		return &Program{Name: g.Name, Format: FormatZoo, Graph: g}, nil
	}
	data, err := ReadInput(name)
	if err != nil {
		return nil, err
	}
	dir := ""
	if name != "-" {
		dir = filepath.Dir(name)
	}
	p, err := Parse(data, name, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// ReadInput is the bytes of a file, or of standard input for "-".
func ReadInput(name string) ([]byte, error) {
	var r io.Reader = os.Stdin
	var buf bytes.Buffer
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, target.Errorf(target.User, "%v", err)
		}
		defer f.Close()
		if st, err := f.Stat(); err == nil && st.IsDir() {
			return nil, target.Errorf(target.User, "%s is a folder; give a file", name)
		} else if err == nil && st.Size() > MaxInput {
			return nil, target.Errorf(target.Limit, "%s has %d bytes; the limit is %d", name, st.Size(), int64(MaxInput))
		} else if err == nil {
			buf.Grow(int(st.Size()) + bytes.MinRead) // a large file once, not in growing copies
		}
		r = f
	}
	if _, err := buf.ReadFrom(io.LimitReader(r, MaxInput+1)); err != nil {
		return nil, target.Errorf(target.User, "%s: %v", name, err)
	}
	if buf.Len() > MaxInput {
		return nil, target.Errorf(target.Limit, "%s has more than %d bytes", name, int64(MaxInput))
	}
	return buf.Bytes(), nil
}

// Unpack is what a gzip archive holds, and whether data is one; anything else is returned as it is.
func Unpack(data []byte) (unpacked []byte, packed bool, err error) {
	if !bytes.HasPrefix(data, []byte{0x1F, 0x8B}) {
		return data, false, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, true, target.Errorf(target.User, "gzip: %v", err)
	}
	// A text model packs about tenfold; a hundredfold is a bomb.
	limit := min(int64(MaxInput), 1<<20+100*int64(len(data)))
	data, err = io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, true, target.Errorf(target.User, "gzip: %v", err)
	}
	if int64(len(data)) > limit {
		return nil, true, target.Errorf(target.Limit, "gzip: unpacks to more than %d bytes", limit)
	}
	return data, true, nil
}

// Parse reads an input that is already in memory. name and dir serve messages, the suffix and external data. The program
// refers to data.
func Parse(data []byte, name, dir string) (*Program, error) {
	data, packed, err := Unpack(data)
	if err != nil {
		return nil, err
	}
	if packed {
		name = strings.TrimSuffix(name, ".gz")
	}
	p := &Program{Name: ModelName(name)}
	switch format := sniff(data, name); format {
	case FormatHLO:
		p.Format, p.Graph = format, &graph.Graph{}
		if err := hlo.Read(data, p.Graph); err != nil {
			return nil, err
		}
		// The text states every type; the builders of the other formats infer them.
		if err := graph.Check(p.Graph); err != nil {
			return nil, err
		}
	case FormatONNX:
		p.Format, p.Graph = format, &graph.Graph{}
		if err := onnx.Read(data, dir, p.Graph); err != nil {
			return nil, err
		}
	case FormatBIR:
		p.Format, p.Module = format, &ir.Module{}
		if err := readBIR(data, dir, p.Module); err != nil {
			return nil, err
		}
	case FormatRIR:
		p.Format, p.Module = format, &ir.Module{}
		if err := ir.Parse(data, p.Module); err != nil {
			return nil, err
		}
	default:
		if len(data) == 0 {
			return nil, target.Errorf(target.User, "is empty")
		}
		if IsPackage(data) {
			return nil, target.Errorf(target.User, "is a package already; rosmar run, inspect and disasm take packages")
		}
		return nil, target.Errorf(target.User, "is neither HLO text, ONNX, BIR JSON nor text IR (first bytes %q)", data[:min(16, len(data))])
	}
	if p.Module != nil && p.Module.Gen != nil {
		if err := verify.Module(p.Module, target.User); err != nil {
			return nil, err
		}
	}
	if p.Graph != nil && p.Graph.Name == "" {
		p.Graph.Name = p.Name
	}
	return p, nil
}

// readBIR reads a JSON module whose constants may lie in .npy files of its folder. What the tables do not say and an
// instruction cannot do without is refused.
func readBIR(data []byte, dir string, m *ir.Module) error {
	if err := bir.Read(data, m); err != nil {
		return err
	}
	if err := bir.Executable(m); err != nil {
		return err
	}
	for s, file := range bir.ConstFiles(m) {
		name := m.Names.String(m.Sets.At(s).Name)
		if dir == "" || !filepath.IsLocal(file) {
			return target.Errorf(target.User, "constant %q: its file %q must lie in the folder of the module", name, file)
		}
		b, err := ReadInput(filepath.Join(dir, file))
		if err != nil {
			return target.Errorf(target.User, "constant %q: %w", name, err)
		}
		a, err := neff.ParseNPY(b)
		if err != nil {
			return target.Errorf(target.User, "constant %q: %s: %w", name, file, err)
		}
		if err := bir.Embed(m, s, a.Data); err != nil {
			return err
		}
	}
	return nil
}

// sniff tells formats by content; the suffix decides where content does not.
func sniff(data []byte, name string) Format {
	switch {
	case hlo.IsHLO(data):
		return FormatHLO
	case ir.IsText(data):
		return FormatRIR
	case bir.IsBIR(data):
		return FormatBIR
	case onnx.IsONNX(data):
		return FormatONNX
	}
	return FormatOf(name)
}

// suffixes of the formats; the longer of two that fit comes first.
var suffixes = [...]struct {
	suffix string
	format Format
}{
	{".hlo.txt", FormatHLO}, {".hlo", FormatHLO}, {".onnx", FormatONNX}, {".json", FormatBIR}, {".rir", FormatRIR},
}

// FormatOf is the format that a file's suffix stands for, 0 for a suffix that says nothing.
func FormatOf(name string) Format {
	for _, s := range suffixes {
		if strings.HasSuffix(name, s.suffix) {
			return s.format
		}
	}
	return 0
}

// IsPackage reports whether data begins like a package.
func IsPackage(data []byte) bool { return neff.IsPackage(data) }

// ModelName is an input's name without folder and suffixes: for the package header and for the names of outputs. The
// settings of a generated model stay part of it.
func ModelName(name string) string {
	if name == "-" {
		return "stdin"
	}
	if rest, ok := strings.CutPrefix(name, zoo.Prefix); ok {
		return strings.NewReplacer("?", "-", "&", "-", "/", "-").Replace(rest)
	}
	base := strings.TrimSuffix(filepath.Base(name), ".gz")
	for _, s := range suffixes {
		if b, ok := strings.CutSuffix(base, s.suffix); ok && b != "" {
			return b
		}
	}
	return base
}
