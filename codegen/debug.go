package codegen

import (
	"encoding/binary"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// provenance is the optional debug member of a package: for every bundle the row of its instruction, and the instruction's
// name and the model operator that it came from. Package lower writes it.
type provenance struct {
	rows   [len(target.Sequencers)][]uint32 // by engine, one a bundle
	name   []uint32
	source []uint32
	texts  []string
}

// readProvenance reads the member, nil when there is none or it is damaged: nothing depends on it.
func readProvenance(pkg *neff.Package) *provenance {
	b := pkg.File(neff.DebugPath)
	if len(b) < 8 || string(b[:4]) != "RDBG" || b[4] != 1 {
		return nil
	}
	r := wordReader{b: b[8:]}
	p := &provenance{}
	for k := range p.rows {
		p.rows[k] = r.words(r.word())
	}
	n := r.word()
	p.name = r.words(n)
	r.words(n) // opcodes, which the bundle tells as well
	p.source = r.words(n)
	for range r.word() {
		if r.bad {
			return nil
		}
		p.texts = append(p.texts, string(r.bytes(r.word())))
	}
	if r.bad {
		return nil
	}
	return p
}

// of is the name and the source of a bundle, "" where nothing is known.
func (p *provenance) of(engine, bundle int) (name, source string) {
	if p == nil || bundle >= len(p.rows[engine]) {
		return "", ""
	}
	row := p.rows[engine][bundle]
	if int(row) >= len(p.name) {
		return "", ""
	}
	return p.text(p.name[row]), p.text(p.source[row])
}

func (p *provenance) text(i uint32) string {
	if int(i) < len(p.texts) {
		return p.texts[i]
	}
	return ""
}

// wordReader takes little-endian words from bytes and never reads or allocates beyond them.
type wordReader struct {
	b   []byte
	bad bool
}

func (r *wordReader) bytes(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *wordReader) word() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *wordReader) words(n uint32) []uint32 {
	if r.bad || uint64(n)*4 > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = r.word()
	}
	return out
}
