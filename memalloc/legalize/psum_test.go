package legalize

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ssa"
)

func TestPSUM(t *testing.T) {
	const cols = 100
	for _, c := range []struct {
		name      string
		level     int
		dtype     target.Dtype
		transpose bool
		mixed     bool // a second, plain writer
		cols      int64
		want      target.Dtype
		err       string
	}{
		{name: "fp32 stays", level: 20, dtype: target.Float32, want: target.Float32},
		{name: "bf16 widens", level: 20, dtype: target.BFloat16, want: target.Float32},
		{name: "fp16 widens on V3", level: 30, dtype: target.Float16, want: target.Float32},
		{name: "bf16 stays on V4", level: 40, dtype: target.BFloat16, want: target.BFloat16},
		{name: "fp16 widens on V4", level: 40, dtype: target.Float16, want: target.Float32},
		{name: "transpose widens on V2", level: 20, dtype: target.BFloat16, transpose: true, want: target.Float32},
		{name: "transpose stays on V3", level: 30, dtype: target.BFloat16, transpose: true, want: target.BFloat16},
		{name: "fp8 transpose stays on V4", level: 40, dtype: target.Float8E4, transpose: true, want: target.Float8E4},
		{name: "both kinds of writers", level: 30, dtype: target.BFloat16, transpose: true, mixed: true, err: "two tensors"},
		{name: "integers", level: 30, dtype: target.Int16, err: "rounds differently"},
		{name: "leaves the bank", level: 30, dtype: target.BFloat16, cols: 600, err: "tile the columns by 512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := c.cols
			if n == 0 {
				n = cols
			}
			var m ir.Module
			var b ir.Builder
			m.Gen, _ = target.ByLevel(c.level)
			b.NewFunc(&m, "main", "Block1")
			x := b.SB(m.Names.Intern("x"), target.BFloat16, 128, 128)
			y := b.SB(m.Names.Intern("y"), target.BFloat16, 128, n)
			p := b.PSUM(m.Names.Intern("acc"), c.dtype, 128, n+4)
			dst := b.Chip(p, c.dtype, 0, 128, 4, ir.Pair{Step: 1, Num: uint32(n)})
			in := []ir.Arg{b.Chip(x, target.BFloat16, 0, 128, 0, ir.Pair{Step: 1, Num: 128}), b.Chip(y, target.BFloat16, 0, 128, 0, ir.Pair{Step: 1, Num: uint32(n)})}
			b.Emit(ir.OpMatmult, target.EnginePE, in, []ir.Arg{dst}, ir.Int(ir.KeyAccumulationFlag, 3), ir.Bool(ir.KeyIsTranspose, c.transpose))
			if c.mixed {
				b.Emit(ir.OpMatmult, target.EnginePE, in, []ir.Arg{dst}, ir.Int(ir.KeyAccumulationFlag, 3))
			}
			// The reader shares the pattern row with the writer.
			evict := b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{dst}, []ir.Arg{in[1]})
			b.Close()
			var lin ssa.Linear
			_, err := PSUM(&m, b.Func, &lin)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "%acc") {
					t.Fatalf("error %v, want one with %q that names %%acc", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			check := func() {
				l, a := m.Locs.At(p), m.Ins(evict)[0]
				ap := m.APs.At(a.AP())
				if s := m.Sets.At(l.Set); s.Dtype != c.want || a.Dtype != c.want || ap.Dtype != c.want {
					t.Errorf("types %s, %s, %s, want %s", s.Dtype, a.Dtype, ap.Dtype, c.want)
				}
				if want := (n + 4) * int64(c.want.Size()); l.Bytes != want {
					t.Errorf("%d bytes a partition, want %d", l.Bytes, want)
				}
				if ap.Off != 4 || int64(ap.Pairs[0].Step) != m.Pitch(p, c.want) {
					t.Errorf("offset %d, pitch %d of %d elements a row", ap.Off, ap.Pairs[0].Step, m.Pitch(p, c.want))
				}
			}
			check()
			if again, err := PSUM(&m, b.Func, &lin); err != nil || again != 0 {
				t.Errorf("second run: %d widened, %v", again, err)
			}
			check()
		})
	}
}
