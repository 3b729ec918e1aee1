package isa

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown is FORMS.md: every wire form as a table, and every opcode word, from the tables that encode and decode.
func Markdown() []byte {
	var b strings.Builder
	b.WriteString("# Wire forms\n\nGenerated from the form tables of this package (`go test -run Forms -update`). All words are little-endian; bytes that no\nrow names are zero; byte 0 is the opcode, byte 1 is 0x10. Descriptors: address, then steps (i16), then counts (u16), fastest\naxis first, unused axes 1, 1.\n")
	for i := range forms {
		f := &forms[i]
		fmt.Fprintf(&b, "\n## %s (%s)\n\n%s\n\nOpcodes:", f.name, genNames(f.gens), f.note)
		for _, op := range f.ops {
			fmt.Fprintf(&b, " 0x%02X `%s`", uint8(op), op)
		}
		b.WriteString("\n\n| Offset | Bytes | Field | Kind | Inst |\n|---|---|---|---|---|\n")
		inOrder := slices.Clone(f.rows)
		slices.SortStableFunc(inOrder, func(a, b field) int { return int(a.off) - int(b.off) })
		for j := range inOrder {
			r := &inOrder[j]
			if r.mem >= mWaitMode && r.mem <= mSyncValue && f.ops[0] != OpEventSemaphore {
				if r.mem == mWaitMode {
					b.WriteString("| 0x04 | 8 | sync band | wait mode, semaphore, update mode, semaphore, value | Sync |\n")
				}
				continue
			}
			k := kindNames[r.kind]
			switch {
			case r.kind == kDesc && r.ext != 0:
				k = fmt.Sprintf("%d-D descriptor, one more axis at 0x%02X", r.n, r.ext)
			case r.kind == kDesc:
				k = fmt.Sprintf("%d-D descriptor", r.n)
			case r.kind == kConst:
				k = fmt.Sprintf("constant 0x%02X", r.lo)
			case r.set != 0:
				k += " of " + setString(r.set)
			case r.lo != 0 || r.kind == kU8 && r.hi != 0xFF:
				k += fmt.Sprintf(" %d..%d", r.lo, r.hi)
			}
			if r.flags&fOptional != 0 {
				k += ", may be absent"
			}
			mem := ""
			if r.mem != noMember {
				mem = memberName(r)
			}
			fmt.Fprintf(&b, "| 0x%02X | %d | %s | %s | %s |\n", r.off, r.width(), r.name, k, mem)
		}
	}
	b.WriteString("\n## Opcode words\n\n| Word | Name | Generations | Form |\n|---|---|---|---|\n")
	for i := range opTable {
		op := Opcode(i)
		if !op.Known() {
			continue
		}
		form := "named only"
		for g := range index {
			if l := index[g][op]; l != nil {
				form = l.name
			}
		}
		fmt.Fprintf(&b, "| 0x%02X | `%s` | %s | %s |\n", i, op, genNames(opTable[i].gens), form)
	}
	return []byte(b.String())
}

// memberName is the member of Inst behind a row: the struct when the row fills all of it, an element for arrays.
func memberName(r *field) string {
	if r.kind == kDesc {
		return strings.TrimSuffix(memberAt(r.mem), ".Addr")
	}
	name := memberAt(r.mem)
	if r.mem > mSteps && r.mem < mSteps+16 {
		return fmt.Sprintf("Steps[%d]", (r.mem-mSteps)/4)
	}
	return name
}

func genNames(g uint8) string {
	var s []string
	for i := range gens {
		if g>>i&1 != 0 {
			s = append(s, gens[i].Core)
		}
	}
	return strings.Join(s, ", ")
}
