package codegen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// SupportMarkdown lists what is lowered for a generation and what is refused: list-operators prints it, the README has it.
func SupportMarkdown(g *target.Generation) string {
	var b bytes.Buffer
	var names, refused []string
	for _, s := range Operators(g) {
		if s.Err == nil {
			names = append(names, s.Name)
		} else {
			refused = append(refused, s.Name+": "+reason(s))
		}
	}
	list(&b, fmt.Sprintf("Operators that are lowered (HLO's names, ours where HLO has none): %d.", len(names)), names)
	fmt.Fprintf(&b, "Refused, by name:\n\n")
	for _, r := range refused {
		fmt.Fprintf(&b, "- %s\n", r)
	}
	list(&b, "\nRefused unless it vanishes before lowering (calls and fusions are inlined, constants folded, tuples taken apart):", Untried())

	moves, adds := Types(g)
	var moved, added, foreign []string
	for i := range moves {
		switch {
		case moves[i].Err != nil:
			foreign = append(foreign, moves[i].Name)
			continue
		case adds[i].Err == nil:
			added = append(added, moves[i].Name)
		}
		moved = append(moved, moves[i].Name)
	}
	list(&b, "Element types that are moved, compared by bytes and converted where the machine can:", moved)
	list(&b, "Types of arithmetic (32-bit integers too where the values provably fit 24 bits):", added)
	list(&b, "Types that are refused:", foreign)

	ops := onnx.SupportedOps()
	list(&b, fmt.Sprintf("ONNX operators that are read: %d. Each becomes operators of the first list, and is refused where one of them is.", len(ops)), ops)
	fmt.Fprintf(&b, "Refused by the ONNX reader:\n\n")
	for _, r := range onnx.Refusals() {
		fmt.Fprintf(&b, "- %s\n", r)
	}
	return b.String()
}

// reason is why an operator is refused, without the instruction that was tried.
func reason(s Support) string {
	msg := s.Err.Error()
	if _, r, ok := strings.Cut(msg, "): "); ok {
		return r
	}
	return msg
}

func list(b *bytes.Buffer, title string, names []string) {
	fmt.Fprintf(b, "%s\n\n> %s\n\n", title, wrap(names))
}

// wrap is names with commas, in quoted lines of at most 120 columns.
func wrap(names []string) string {
	var b bytes.Buffer
	col := 0
	for i, n := range names {
		if i < len(names)-1 {
			n += ","
		}
		if col > 0 && col+1+len(n) > 120 {
			b.WriteString("\n> ")
			col = 0
		} else if col > 0 {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(n)
		col += len(n)
	}
	return b.String()
}
