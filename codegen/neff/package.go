package neff

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// What this package knows of the wire; a test holds it against codegen/isa.
const (
	bundleSize  = 64
	lengthByte  = 0x10 // bit 0 is an option of one instruction
	triggerOp   = 0xC1
	triggerName = 0x0C // 32 bytes, NUL padded
	triggerID   = 0x30 // u32
)

// Program is what one engine runs. A writer gives the bundles as bytes, or as Emit, which must write Bundles of them; Read
// gives bytes.
type Program struct {
	Stream  []byte
	Emit    func(io.Writer) error
	Bundles int64
	Descs   []Desc // blocks in ascending id order
}

func (p *Program) bundles() int64 {
	if p.Emit != nil {
		return p.Bundles
	}
	return int64(len(p.Stream)) / bundleSize
}

// Package is a finished program of one core.
type Package struct {
	Header  Header // Name, Build and Features matter to Write, which adds the features that the content needs
	Level   int    // generation: 20, 30 or 40
	Def     Def
	Tensors TensorMap
	Weights []Weight
	Engines [5]Program // in the order of target.Sequencers
	Files   []Member   // constants and extras, full paths

	byPath map[string]int // rows of Files, built by File when it is behind
}

// Engine finds the program of an engine, nil for one without a stream.
func (p *Package) Engine(e target.Engine) *Program {
	if k := e.SeqIndex(); k >= 0 {
		return &p.Engines[k]
	}
	return nil
}

func (p *Package) bundles() (n int64) {
	for i := range p.Engines {
		n += p.Engines[i].bundles()
	}
	return n
}

// File finds a member of Files by its full path, nil when there is none.
func (p *Package) File(path string) []byte {
	if p.byPath == nil || len(p.byPath) != len(p.Files) {
		p.byPath = make(map[string]int, len(p.Files))
		for i := range p.Files {
			p.byPath[p.Files[i].Path] = i
		}
	}
	if i, ok := p.byPath[path]; ok && i < len(p.Files) && p.Files[i].Path == path {
		return p.Files[i].Data
	}
	return nil
}

// Const is the bytes of a file variable that the package carries, nil when they are to be supplied.
func (p *Package) Const(v *Var) ([]byte, error) {
	if v.File == "" {
		return nil, nil
	}
	b := p.File(coreDir + v.File)
	if !strings.HasSuffix(v.File, ".npy") {
		return b, nil
	}
	a, err := ParseNPY(b)
	if err != nil {
		return nil, target.Errorf(target.User, "neff: constant %q: %w", v.Name, err)
	}
	return a.Data, nil
}

// AddConst stores a constant as .npy, once for equal contents, and names it in the variable.
func (p *Package) AddConst(v *Var, a Array) error {
	b, err := AppendNPY(nil, a)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	name := "const/" + hex.EncodeToString(sum[:12]) + ".npy"
	v.Type, v.File, v.Size = VarFile, name, int64(len(a.Data))
	if p.File(coreDir+name) == nil {
		p.byPath[coreDir+name] = len(p.Files)
		p.Files = append(p.Files, Member{coreDir + name, b})
	}
	return nil
}

// DebugPath is the optional member that maps bundles to their source.
const DebugPath = coreDir + "debug.bin"

// features are the bits that the content needs.
func (p *Package) features() uint64 {
	f := p.Header.Features
	if p.Level > 20 {
		f |= FeatDVEFast
	}
	if p.Level >= 40 {
		f |= FeatLevel40
	}
	for i := range p.Def.Vars {
		if p.Def.Vars[i].Size > 1<<32 {
			f |= FeatLargeTensor
		}
	}
	for i := range p.Engines {
		for j := range p.Engines[i].Descs {
			if d := &p.Engines[i].Descs[j]; d.From.N > 2 || d.To.N > 2 {
				return f | FeatHigherDimDesc
			}
		}
	}
	return f
}

// Write checks a package and writes it, deterministically: equal packages give equal bytes. It returns the header written.
// out is a temporary file or a Buffer.
func (p *Package) Write(out io.WriteSeeker, plain bool) (Header, error) {
	g, ok := target.ByLevel(p.Level)
	if !ok || !g.CodeGen {
		return Header{}, target.Errorf(target.Unsupported, "neff: level %d has no instruction set", p.Level)
	}
	if err := p.check(); err != nil {
		return Header{}, err
	}
	h := p.Header
	h.Features = p.features()
	parts, err := p.parts(g, h.Features)
	if err != nil {
		return Header{}, err
	}
	w, err := NewWriter(out, h, plain)
	if err != nil {
		return Header{}, err
	}
	for i := range parts {
		if err := w.AddStream(parts[i].path, parts[i].size, parts[i].write); err != nil {
			return Header{}, err
		}
	}
	return w.Close()
}

// part is one member to be written.
type part struct {
	path  string
	size  int64
	write func(io.Writer) error
}

func fromBytes(path string, b []byte) part {
	return part{path, int64(len(b)), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

func (p *Package) parts(g *target.Generation, features uint64) ([]part, error) {
	var parts []part
	add := func(path string, b []byte, err error) error {
		parts = append(parts, fromBytes(path, b))
		return err
	}
	info, err := p.marshalInfo()
	if err := add("info.json", info, err); err != nil {
		return nil, err
	}
	kelf, err := p.marshalKelf(g)
	if err := add(kelfName, kelf, err); err != nil {
		return nil, err
	}
	manifest, err := p.marshalManifest(g)
	if err := add("neff.json", manifest, err); err != nil {
		return nil, err
	}
	def, err := p.Def.marshal(features)
	if err := add(coreDir+"def.json", def, err); err != nil {
		return nil, err
	}
	tensors, err := json.Marshal(p.Tensors, sortedKeys)
	if err := add(coreDir+"tensor_map.json", tensors, err); err != nil {
		return nil, err
	}
	if len(p.Weights) > 0 {
		weights, err := marshalWeights(p.Weights)
		if err := add(coreDir+"weights.json", weights, err); err != nil {
			return nil, err
		}
	}
	names, err := quotedNames(&p.Def)
	if err != nil {
		return nil, err
	}
	for i, e := range target.Sequencers {
		prog := &p.Engines[i]
		stream := fromBytes(coreDir+e.Info().Name+".bin", prog.Stream)
		if prog.Emit != nil {
			stream = part{stream.path, prog.Bundles * bundleSize, prog.Emit}
		}
		descs := func(w io.Writer) error { return names.write(w, e, prog.Descs) }
		var n int64 // the list is spelled twice: once to learn its size, which a tar member needs first
		if err := descs(&counter{io.Discard, &n}); err != nil {
			return nil, err
		}
		parts = append(parts, stream, part{coreDir + e.Info().Name + ".json", n, descs})
	}
	for _, f := range p.Files {
		parts = append(parts, fromBytes(f.Path, f.Data))
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.path, b.path) })
	return parts, nil
}

// check holds the invariants of a package, for writer and reader alike.
func (p *Package) check() error {
	if err := p.Def.check(); err != nil {
		return err
	}
	if err := p.Tensors.check(&p.Def); err != nil {
		return err
	}
	for i, e := range target.Sequencers {
		prog := &p.Engines[i]
		if err := CheckBlocks(prog.Descs, &p.Def); err != nil {
			return engineError(e, err)
		}
		if prog.Emit == nil {
			if err := p.checkStream(e, prog); err != nil {
				return engineError(e, err)
			}
		}
	}
	return p.checkFiles()
}

func engineError(e target.Engine, err error) error {
	return &target.Error{Class: target.ClassOf(err), Err: &wrapped{e.Info().Name, err}}
}

// wrapped adds the engine to a message and keeps the class.
type wrapped struct {
	name string
	err  error
}

func (w *wrapped) Error() string { return w.name + ": " + w.err.Error() }
func (w *wrapped) Unwrap() error { return w.err }

// checkStream: whole bundles, legal length bytes, and each trigger names a queue set of its engine and a block of its list.
func (p *Package) checkStream(e target.Engine, prog *Program) error {
	if len(prog.Stream)%bundleSize != 0 {
		return target.Errorf(target.User, "neff: stream of %d bytes is not whole bundles", len(prog.Stream))
	}
	for at := 0; at < len(prog.Stream); at += bundleSize {
		b := prog.Stream[at : at+bundleSize]
		if b[1]&^1 != lengthByte {
			return target.Errorf(target.User, "neff: bundle %d has length byte 0x%02X, want 0x10", at/bundleSize, b[1])
		}
		if b[0] != triggerOp {
			continue
		}
		name, _, _ := bytes.Cut(b[triggerName:triggerName+32], []byte{0})
		id := binary.LittleEndian.Uint32(b[triggerID:])
		i, ok := slices.BinarySearchFunc(prog.Descs, id, func(d Desc, id uint32) int { return cmp.Compare(d.ID, id) })
		if !ok {
			return target.Errorf(target.User, "neff: bundle %d triggers block %d, which the list does not have", at/bundleSize, id)
		}
		q := &p.Def.Queues[prog.Descs[i].Queue]
		if q.Name != string(name) {
			return target.Errorf(target.User, "neff: bundle %d triggers block %d on %q; its descriptors are on %q", at/bundleSize, id, name, q.Name)
		}
		if q.Owner != e {
			return target.Errorf(target.User, "neff: bundle %d triggers queue set %q of %s", at/bundleSize, name, q.Owner)
		}
	}
	return nil
}

// checkFiles: every file variable has its bytes here or a recipe, never both; sizes agree.
func (p *Package) checkFiles() error {
	weights := make(map[string]bool, len(p.Weights))
	for i := range p.Weights {
		if w := &p.Weights[i]; weights[w.Var] {
			return target.Errorf(target.User, "neff: variable %q has two weights", w.Var)
		}
		weights[p.Weights[i].Var] = true
	}
	files := make(map[string][]byte, len(p.Files))
	for _, f := range p.Files {
		if generated(f.Path) {
			return target.Errorf(target.User, "neff: file %q has a name that the package makes itself", f.Path)
		}
		files[f.Path] = f.Data
	}
	found := 0
	for i := range p.Def.Vars {
		v := &p.Def.Vars[i]
		if v.Type != VarFile {
			continue
		}
		if v.File == "" {
			if !weights[v.Name] {
				return target.Errorf(target.User, "neff: variable %q has neither a file nor a recipe", v.Name)
			}
			found++
			continue
		}
		if weights[v.Name] {
			return target.Errorf(target.User, "neff: variable %q has a file and a recipe", v.Name)
		}
		b, ok := files[coreDir+v.File]
		if !ok {
			return target.Errorf(target.User, "neff: file %q of variable %q is missing", v.File, v.Name)
		}
		if strings.HasSuffix(v.File, ".npy") {
			a, err := ParseNPY(b)
			if err != nil {
				return target.Errorf(target.User, "neff: constant %q: %w", v.Name, err)
			}
			b = a.Data
		}
		if int64(len(b)) != v.Size {
			return target.Errorf(target.User, "neff: constant %q has %d bytes, its variable %d", v.Name, len(b), v.Size)
		}
	}
	if found != len(p.Weights) {
		return target.Errorf(target.User, "neff: %d weights for %d variables without a file", len(p.Weights), found)
	}
	return nil
}

// generated reports the member names that Write makes from typed fields.
func generated(path string) bool {
	switch path {
	case "info.json", kelfName, "neff.json", coreDir + "def.json", coreDir + "tensor_map.json", coreDir + "weights.json":
		return true
	}
	for _, e := range target.Sequencers {
		if path == coreDir+e.Info().Name+".bin" || path == coreDir+e.Info().Name+".json" {
			return true
		}
	}
	return false
}
