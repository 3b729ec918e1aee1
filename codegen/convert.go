package codegen

import (
	"io"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/hlo"
	"github.com/rosmar-compiler/rosmar/ir/onnx"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Convert writes a program in another format: a graph as HLO text or ONNX, or as the tiles that the options' target gets, in
// BIR JSON or text IR. Tiles have no way back to a graph.
func (w *Worker) Convert(p *Program, format Format, opt *Options, out io.Writer) error {
	switch format {
	case FormatHLO, FormatONNX:
		if p.Graph == nil {
			return target.Errorf(target.User, "%s holds tiles, which have no way back to %s; write .json or .rir", p.Format, format)
		}
		if format == FormatHLO {
			return hlo.Write(out, p.Graph)
		}
		return onnx.Write(out, p.Graph)
	case FormatBIR, FormatRIR:
		gen, err := opt.Generation(p.generation())
		if err != nil {
			return err
		}
		w.gen, w.opt = gen, opt
		if err := w.begin(p, &Result{}); err != nil {
			return err
		}
		if format == FormatBIR {
			return bir.Write(out, w.m)
		}
		return ir.Print(out, w.m)
	}
	return target.Errorf(target.Bug, "convert to format %d", format)
}
