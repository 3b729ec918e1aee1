package lower

import (
	"encoding/binary"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// tracer gathers what leads from a bundle to its source: columns by bundle and a table of texts. Nothing needs it to run.
//
// The member is little-endian: "RDBG", version 1; for each sequencer the bundle count and one u32 a bundle, the row of its
// instruction; the row count, then the columns name, opcode and source of the rows, each an u32 into the texts; the text
// count, then each text with an u32 length. Text 0 is empty.
type tracer struct {
	m     *ir.Module
	rows  [numEngines][]uint32
	insts []ir.Inst
	row   map[ir.Inst]uint32
}

func newTracer(m *ir.Module) *tracer { return &tracer{m: m, row: map[ir.Inst]uint32{}} }

func (t *tracer) note(e target.Engine, i ir.Inst, bundles int) {
	r, ok := t.row[i]
	if !ok {
		r = uint32(len(t.insts))
		t.insts = append(t.insts, i)
		t.row[i] = r
	}
	k := e.SeqIndex()
	for range bundles {
		t.rows[k] = append(t.rows[k], r)
	}
}

func (t *tracer) bytes() []byte {
	le := binary.LittleEndian
	out := append([]byte("RDBG"), 1, 0, 0, 0)
	for k := range t.rows {
		out = le.AppendUint32(out, uint32(len(t.rows[k])))
		for _, r := range t.rows[k] {
			out = le.AppendUint32(out, r)
		}
	}
	texts := []string{""}
	seen := map[string]uint32{"": 0}
	text := func(s string) uint32 {
		id, ok := seen[s]
		if !ok {
			id = uint32(len(texts))
			seen[s] = id
			texts = append(texts, s)
		}
		return id
	}
	m := t.m
	out = le.AppendUint32(out, uint32(len(t.insts)))
	for _, i := range t.insts {
		out = le.AppendUint32(out, text(m.InstName(i)))
	}
	for _, i := range t.insts {
		out = le.AppendUint32(out, text(m.Insts.At(i).Op.String()))
	}
	for _, i := range t.insts {
		out = le.AppendUint32(out, text(m.Names.String(m.Source.Get(i))))
	}
	out = le.AppendUint32(out, uint32(len(texts)))
	for _, s := range texts {
		out = le.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	return out
}
