package bir

import (
	"iter"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// binding are the members that change what an instruction does and that no table explains: a module that has one can be
// read and written back, but not compiled.
var binding = map[string]string{
	"dynamic_ap_info":             "a pattern addressed at run time",
	"tensor_indirect_arg_id":      "a pattern addressed through another tensor",
	"num_tensor_indirect_indices": "a pattern addressed through another tensor",
	"reg_ap_offset":               "a pattern offset by a register",
	"value_list":                  "a list of values chosen by an expression",
	"predicates":                  "a guard",
	"cond":                        "a loop with a condition",
	"lb":                          "a loop bound that is computed",
	"ub":                          "a loop bound that is computed",
	"stride":                      "a loop bound that is computed",
	"wait_mode":                   "a wait of another kind",
	"update_mode":                 "an update of another kind",
	"indirect_dims":               "an indirect transfer",
}

// Executable reports the first member kept as text that an instruction cannot do without, as an Unsupported error naming
// both, and nil when the tables say all. A compile asks before it begins.
func Executable(m *ir.Module) error {
	for i, r := range m.Insts.All() {
		for _, a := range m.AttrsOf(i) {
			if a.Key != ir.KeyExtra {
				continue
			}
			t := m.Names.String(arena.Name(a.Val))
			n := stringEnd([]byte(t))
			if n == 0 {
				continue
			}
			key := t[1 : n-1]
			key = key[strings.LastIndexByte(key, '/')+1:]
			why, ok := binding[key]
			if !ok || plainMode(key, t[n:]) || empty(t[n:]) {
				continue
			}
			return target.NotSupported(r.Op.String(), "%s (%s) has %s: %s cannot be compiled", m.InstName(i), r.Op, key, why)
		}
	}
	return nil
}

// plainMode reports the modes of waits and updates that are ours: until a count, and by a count.
func plainMode(key, value string) bool {
	switch key {
	case "wait_mode":
		return value == `:"sem-ge-imm"`
	case "update_mode":
		return value == `:"sem-inc"` || value == `:"sem-add-imm"`
	}
	return false
}

func empty(value string) bool { return value == ":[]" || value == ":null" || value == ":{}" }

// ConstFiles yields the constant tensors whose bytes are still in files, with the names of the files: a compile reads them
// and hands the bytes to Embed. Read itself opens nothing.
func ConstFiles(m *ir.Module) iter.Seq2[ir.Set, string] {
	return func(yield func(ir.Set, string) bool) {
		for s, r := range m.Sets.All() {
			if r.Kind == ir.KindConst && r.Const == 0 && r.File != 0 && !yield(s, m.Names.String(r.File)) {
				return
			}
		}
	}
}

// Embed gives a constant tensor its bytes, row-major in its own type. They are copied. Their number must be the size of the
// tensor's placement, or of its shape when it has none.
func Embed(m *ir.Module, s ir.Set, data []byte) error {
	r := m.Sets.At(s)
	size := int64(r.Dtype.Size())
	for _, n := range m.Ints.Of(r.Shape) {
		size *= n
	}
	if r.Count > 0 {
		l := m.Locs.At(r.First)
		size = l.Bytes * int64(l.Parts)
	}
	if int64(len(data)) != size {
		return target.Errorf(target.User, "constant %q takes %d bytes, got %d", m.Names.String(r.Name), size, len(data))
	}
	c := m.Consts.Add(ir.ConstRow{Kind: ir.ConstEmbedded, Dtype: r.Dtype, Data: m.Bytes.AddSlice(data)})
	m.Sets.At(s).Const = c
	return nil
}
