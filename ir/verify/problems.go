package verify

import (
	"fmt"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// maxProblems is how many findings a report prints; the rest is counted.
const maxProblems = 12

// problems collects findings, each with the instruction or location that it is about.
type problems struct {
	m     *ir.Module
	lines []string
	count int
	last  ir.Inst // the caller's: of the latest finding

	scratch [8]side // operands of the instruction at hand; those beyond are put elsewhere
}

func (p *problems) addf(format string, args ...any) {
	if p.count++; p.count <= maxProblems {
		p.lines = append(p.lines, fmt.Sprintf(format, args...))
	}
}

// inst reports a finding on an instruction.
func (p *problems) inst(i ir.Inst, format string, args ...any) {
	if p.count++; p.count <= maxProblems {
		p.lines = append(p.lines, fmt.Sprintf("%s (%s): ", p.m.InstName(i), p.m.Insts.At(i).Op)+fmt.Sprintf(format, args...))
	}
}

// err is nil without findings. Illegal modules are a bug when a pass made them; the caller that reads a module from a user
// passes User.
func (p *problems) err(c target.Class) error {
	if p.count == 0 {
		return nil
	}
	if p.count > maxProblems {
		p.lines = append(p.lines, fmt.Sprintf("and %d more", p.count-maxProblems))
	}
	return target.Errorf(c, "%s", strings.Join(p.lines, "\n"))
}
