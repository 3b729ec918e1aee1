package neff

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Read opens a package of our profile from size bytes of r and proves every invariant that the package comment lists. lim
// may be nil. Streams and files are views of what was read.
func Read(r io.ReaderAt, size int64, lim *Limits) (*Package, error) {
	head := make([]byte, min(max(size, 0), HeaderSize))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	h, err := ParseHeader(head)
	if err != nil {
		return nil, err
	}
	rest := size - HeaderSize
	if h.DataSize != uint64(rest) {
		return nil, target.Errorf(target.User, "neff: header announces %d payload bytes, the file has %d", h.DataSize, rest)
	}
	sum, err := digest(h.PkgVersion)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(sum, io.NewSectionReader(r, HeaderSize, rest)); err != nil {
		return nil, err
	}
	want := h
	want.seal(h.DataSize, sum.Sum(nil))
	if want.Hash != h.Hash {
		return nil, target.Errorf(target.User, "neff: payload digest is %x, the header says %x: the file is damaged", want.Hash[:16], h.Hash[:16])
	}
	if _, unknown := FeatureNames(h.Features); unknown != 0 {
		return nil, target.Errorf(target.Unsupported, "neff: unknown feature bits 0x%x", unknown)
	}
	if h.NumTPB != 1 || h.Requested != 1 || h.LNC != 1 {
		return nil, target.Errorf(target.Unsupported, "neff: package for %d cores (lnc %d); one is supported", h.NumTPB, h.LNC)
	}
	arch, err := readArchive(io.NewSectionReader(r, HeaderSize, rest), rest, lim.orDefault(), true, nil)
	if err != nil {
		return nil, err
	}
	return parse(h, arch.members)
}

// ReadBytes is Read of a file in memory.
func ReadBytes(b []byte, lim *Limits) (*Package, error) {
	return Read(bytes.NewReader(b), int64(len(b)), lim)
}

// parse turns members into a package and checks it.
func parse(h Header, members []Member) (*Package, error) {
	p := &Package{Header: h}
	typed := map[string][]byte{}
	for _, m := range members {
		if generated(m.Path) {
			typed[m.Path] = m.Data
		} else {
			p.Files = append(p.Files, m)
		}
	}
	need := func(path string) ([]byte, error) {
		b, ok := typed[path]
		if !ok {
			return nil, target.Errorf(target.User, "neff: member %q is missing", path)
		}
		return b, nil
	}
	info, err := need("info.json")
	if err != nil {
		return nil, err
	}
	var i infoJSON
	if err := json.Unmarshal(info, &i, strictJSON); err != nil {
		return nil, badJSON("info.json", err)
	}
	if i.Name != h.Name || i.Build != h.Build || i.Cores != 1 || i.Version != ManifestVersion {
		return nil, target.Errorf(target.User, "neff: info.json (%q, %q) disagrees with the header (%q, %q)", i.Name, i.Build, h.Name, h.Build)
	}
	manifest, err := need("neff.json")
	if err != nil {
		return nil, err
	}
	kelf, err := need(kelfName)
	if err != nil {
		return nil, err
	}
	var k kelfJSON
	if p.Level, k, err = parseManifest(manifest, kelf); err != nil {
		return nil, err
	}
	def, err := need(coreDir + "def.json")
	if err != nil {
		return nil, err
	}
	if p.Def, err = parseDef(def, h.Features); err != nil {
		return nil, err
	}
	tensors, err := need(coreDir + "tensor_map.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(tensors, &p.Tensors, strictJSON); err != nil {
		return nil, badJSON("tensor_map.json", err)
	}
	if b, ok := typed[coreDir+"weights.json"]; ok {
		if p.Weights, err = parseWeights(b); err != nil {
			return nil, err
		}
	}
	for i, e := range target.Sequencers {
		name := e.Info().Name
		prog := &p.Engines[i]
		if prog.Stream, err = need(coreDir + name + ".bin"); err != nil {
			return nil, err
		}
		list, err := need(coreDir + name + ".json")
		if err != nil {
			return nil, err
		}
		if err := ReadEngine(bytes.NewReader(list), e, &p.Def, func(d *Desc) error {
			prog.Descs = append(prog.Descs, *d)
			return nil
		}); err != nil {
			return nil, err
		}
		prog.Bundles = int64(len(prog.Stream)) / bundleSize
		if ke := k.Engines[e.Info().Token]; ke.Instr != name+".bin" || ke.Count != prog.Bundles {
			return nil, target.Errorf(target.User, "neff: %s counts %d bundles in %q, the stream of %s has %d", kelfName, ke.Count, ke.Instr, name, prog.Bundles)
		}
	}
	if len(k.Engines) != len(target.Sequencers) {
		return nil, target.Errorf(target.User, "neff: %s has %d engines, want %d", kelfName, len(k.Engines), len(target.Sequencers))
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if f := p.features(); f != h.Features {
		return nil, target.Errorf(target.User, "neff: header has features 0x%x, the content needs 0x%x", h.Features, f)
	}
	return p, nil
}
