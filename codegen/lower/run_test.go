package lower

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/codegen/machine"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/dma"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Random placed programs, through the whole tail, compute on the machine what the IR simulator says, to the bit, whatever the
// interleaving; and the race check finds nothing.
func TestMachineAgreesWithIR(t *testing.T) {
	var p prog
	var s sim.Sim
	machines := map[int]*machine.Machine{}
	for _, level := range []int{20, 30, 40} {
		g, _ := target.ByLevel(level)
		m, err := machine.New(g)
		if err != nil {
			t.Fatal(err)
		}
		machines[level] = m
	}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		if testing.Short() && n >= 20 {
			return
		}
		level := rapid.SampledFrom([]int{20, 30, 40}).Draw(t, "level")
		out := p.runnable(t, level)
		ring := rapid.SampledFrom([]int{1, 2, 16}).Draw(t, "ring")
		p.tail(t, rapid.Bool().Draw(t, "schedule"), dma.Options{SemaphoresPerQueue: ring})
		m := &p.m
		input := make([]byte, inputBytes)
		r := uint32(n + 1)
		n++
		for k := 0; k < len(input); k += 4 {
			r = r*1664525 + 1013904223
			binary.LittleEndian.PutUint32(input[k:], math.Float32bits(float32(int32(r))/(1<<31)))
		}
		if err := s.Run(m, sim.Env{Input: func(string, int64) ([]byte, error) { return input, nil }}); err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(s.Bytes(m, out))
		var file neff.Buffer
		if _, _, err := Write(m, p.b.Func, Options{Plain: true}, &p.enc, &file); err != nil {
			t.Fatal(err)
		}
		pkg, err := neff.ReadBytes(file.Bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := machine.Race(pkg)
		if err == nil {
			err = rep.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		mc := machines[level]
		if err := mc.Load(pkg); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(2) {
			if err := mc.SetInput("in", input); err != nil {
				t.Fatal(err)
			}
			if err := mc.Run(seed); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := mc.Output("out"); !bytes.Equal(got, want) {
				for k := 0; k+4 <= len(got); k += 4 {
					if a, b := binary.LittleEndian.Uint32(got[k:]), binary.LittleEndian.Uint32(want[k:]); a != b {
						t.Fatalf("seed %d: element %d is %v (%#x) on the machine, %v (%#x) in the IR", seed, k/4,
							math.Float32frombits(a), a, math.Float32frombits(b), b)
					}
				}
				t.Fatalf("seed %d: %d bytes on the machine, %d in the IR", seed, len(got), len(want))
			}
		}
	})
}

const (
	runTiles   = 6  // tiles in SBUF
	runParts   = 64 // partitions and elements of a tile
	outTiles   = 4
	inTiles    = 3
	inputBytes = inTiles * runParts * runParts * 4
)

// runnable is a random program in which every byte is written before it is read and every output at least once.
func (p *prog) runnable(t *rapid.T, level int) (out ir.Loc) {
	m := &p.m
	m.Reset()
	m.Gen, _ = target.ByLevel(level)
	m.Name = m.Names.Intern("random")
	b := &p.b
	b.NewFunc(m, "f", "Block1")
	const f32 = target.Float32
	in := b.DRAM(m.Names.Intern("in"), ir.KindExternalInput, f32, inTiles, runParts, runParts)
	out = b.DRAM(m.Names.Intern("out"), ir.KindExternalOutput, f32, outTiles, runParts, runParts)
	tmp := b.DRAM(m.Names.Intern("tmp"), ir.KindInternal, f32, 2, runParts, runParts)
	m.Locs.At(tmp).Flags |= ir.LocAllocated
	m.Locs.At(tmp).Addr = 256
	var tiles, halves, psum []ir.Loc
	addr := int64(m.Gen.SBReserved)
	place := func(l ir.Loc) ir.Loc {
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Addr = addr
		addr += m.Locs.At(l).Bytes
		return l
	}
	for k := range runTiles {
		tiles = append(tiles, place(b.SB(m.Names.Intern(fmt.Sprintf("t%d", k)), f32, runParts, runParts)))
	}
	for k := range 2 {
		halves = append(halves, place(b.SB(m.Names.Intern(fmt.Sprintf("h%d", k)), target.BFloat16, runParts, runParts)))
	}
	for k := range 3 {
		l := b.PSUM(m.Names.Intern(fmt.Sprintf("p%d", k)), f32, runParts, runParts)
		m.Locs.At(l).Flags |= ir.LocAllocated
		m.Locs.At(l).Bank = int8(k)
		psum = append(psum, l)
	}
	ids := place(b.SB(m.Names.Intern("ids"), target.Int32, runParts, 2))
	full := row(runParts)
	tile := func(l ir.Loc) ir.Arg { return b.Chip(l, m.Sets.At(m.Locs.At(l).Set).Dtype, 0, runParts, 0, full) }
	mem := func(l ir.Loc, k int) ir.Arg {
		return b.Mem(l, f32, int64(k)*runParts*runParts, ir.Pair{Step: runParts, Num: runParts}, full)
	}
	pick := func(ls []ir.Loc) ir.Loc { return rapid.SampledFrom(ls).Draw(t, "loc") }
	intn := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
	const dmaEngine = target.EngineDMA
	vector := func() target.Engine { return []target.Engine{target.EngineDVE, target.EnginePool}[intn(2)] }

	// Everything that may be read has bytes first.
	for k, l := range tiles {
		b.Emit(ir.OpLoad, dmaEngine, []ir.Arg{mem(in, k%inTiles)}, []ir.Arg{tile(l)})
	}
	for k, l := range halves {
		b.Emit(ir.OpTensorCopy, vector(), []ir.Arg{tile(tiles[k])}, []ir.Arg{tile(l)})
	}
	for _, l := range psum {
		b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{tile(tiles[0]), tile(tiles[1])}, []ir.Arg{tile(l)}, ir.Int(ir.KeyAccumulationFlag, 3))
	}
	for k := range outTiles {
		b.Emit(ir.OpDMACopy, dmaEngine, []ir.Arg{mem(in, k%inTiles)}, []ir.Arg{mem(out, k)})
	}
	for k := range 2 {
		b.Emit(ir.OpSave, dmaEngine, []ir.Arg{tile(tiles[k])}, []ir.Arg{mem(tmp, k)})
	}
	for range rapid.IntRange(5, 40).Draw(t, "insts") {
		switch intn(19) {
		case 18: // rows of the input or of scratch, by indices in a column that may be overwritten right after
			col := int64(intn(2))
			at := b.Chip(ids, target.Int32, 0, runParts, col, row(1))
			b.Emit(ir.OpIota, vector(), nil, []ir.Arg{at}, m.IntsAttr(ir.KeyPattern, 0, 1), ir.Int(ir.KeyBase, int64(intn(runParts))), ir.Int(ir.KeyChannelMultiplier, int64(intn(2))))
			table, n := in, uint32(inTiles*runParts)
			if intn(2) == 0 {
				table, n = tmp, 2*runParts
			}
			if h, rows := intn(2), b.Mem(table, f32, int64(intn(8)), ir.Pair{Step: runParts, Num: n - 1}, row(runParts/2)); h == 0 {
				b.Emit(ir.OpIndirectLoad, target.EnginePool, []ir.Arg{rows, at}, []ir.Arg{b.Chip(pick(tiles), f32, 0, runParts, int64(intn(runParts/2)), row(runParts/2))})
			} else {
				i := b.Emit(ir.OpIndirectLoad, target.EnginePool, []ir.Arg{rows, at}, []ir.Arg{b.Chip(pick(tiles), f32, 0, runParts, 0, row(runParts/2))})
				m.Insts.At(i).NIn, m.Insts.At(i).NInd = 1, 1
			}
		case 0:
			b.Emit(ir.OpLoad, dmaEngine, []ir.Arg{mem(in, intn(inTiles))}, []ir.Arg{tile(pick(tiles))})
		case 1, 2:
			b.Emit(ir.OpSave, dmaEngine, []ir.Arg{tile(pick(tiles))}, []ir.Arg{mem(out, intn(outTiles))})
		case 3: // through scratch, transposed on the way back by the walk order
			b.Emit(ir.OpSave, dmaEngine, []ir.Arg{tile(pick(tiles))}, []ir.Arg{mem(tmp, intn(2))})
			b.Emit(ir.OpLoad, dmaEngine, []ir.Arg{b.Mem(tmp, f32, int64(intn(2))*runParts*runParts, ir.Pair{Step: 1, Num: runParts}, ir.Pair{Step: runParts, Num: runParts})},
				[]ir.Arg{tile(pick(tiles))})
		case 4: // a casting transfer
			b.Emit(ir.OpLoad, dmaEngine, []ir.Arg{mem(in, intn(inTiles))}, []ir.Arg{tile(pick(halves))})
		case 5, 6:
			dst := pick(psum)
			flags := []int64{1, 4, 6}
			if intn(2) == 0 {
				flags = []int64{3}
			}
			for _, f := range flags {
				b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{tile(pick(tiles)), tile(pick(tiles))}, []ir.Arg{tile(dst)}, ir.Int(ir.KeyAccumulationFlag, f))
			}
		case 7:
			b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{tile(pick(halves)), tile(pick(halves))}, []ir.Arg{tile(pick(psum))}, ir.Int(ir.KeyAccumulationFlag, 3))
		case 8:
			f := []target.ActFunc{target.ActRelu, target.ActTanh, target.ActExp, target.ActSigmoid, target.ActSquare}[intn(5)]
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{tile(pick(psum)), b.Chip(pick(tiles), f32, 0, runParts, int64(intn(runParts)), row(1)), ir.ImmF32(0.125)},
				[]ir.Arg{tile(pick(tiles))}, ir.Int(ir.KeyFunc, int64(f)))
		case 9:
			b.Emit(ir.OpActivation, target.EngineAct, []ir.Arg{tile(pick(tiles)), ir.ImmF32(0.5), ir.ImmF32(0.25)},
				[]ir.Arg{tile(pick(tiles)), b.Chip(pick(tiles), f32, 0, runParts, int64(intn(runParts)), row(1))},
				ir.Int(ir.KeyFunc, int64(target.ActSigmoid)), ir.Int(ir.KeyAcc, int64(target.AccZeroAccumulate)), ir.Int(ir.KeyReduceOp, int64(target.AluAdd)))
		case 10:
			b.Emit(ir.OpTensorTensor, vector(), []ir.Arg{tile(pick(tiles)), tile(pick(tiles))}, []ir.Arg{tile(pick(tiles))},
				ir.Int(ir.KeyOp, int64([]target.AluOp{target.AluMax, target.AluSub, target.AluMult}[intn(3)])))
		case 11:
			b.Emit(ir.OpTensorScalar, vector(), []ir.Arg{tile(pick(tiles))}, []ir.Arg{tile(pick(tiles))}, ir.Int(ir.KeyOp0, int64(target.AluMult)),
				ir.Float(ir.KeyConst0, 0.5), ir.Int(ir.KeyOp1, int64(target.AluSub)), ir.Float(ir.KeyConst1, 0.25), ir.Bool(ir.KeyReverse1, true))
		case 12: // a corner in strides
			w := ir.Pair{Step: 8, Num: 4}
			b.Emit(ir.OpMemset, vector(), nil, []ir.Arg{b.Chip(pick(tiles), f32, 32, 20, int64(intn(16)), w, ir.Pair{Step: 3, Num: 2})}, ir.Int(ir.KeyConstant, 0x3F000000))
		case 13:
			l := pick(tiles)
			b.Emit(ir.OpTensorReduce, target.EngineDVE, []ir.Arg{b.Chip(pick(tiles), f32, 0, runParts, 0, ir.Pair{Step: 8, Num: 8}, row(8))},
				[]ir.Arg{b.Chip(l, f32, 0, runParts, 3, ir.Pair{Step: 7, Num: 8})}, ir.Int(ir.KeyOp, int64(target.AluMax)), ir.Int(ir.KeyAxis, int64(ir.AxisX)))
		case 14:
			pr := pick(tiles)
			b.Emit(ir.OpCopyPredicated, target.EngineDVE, []ir.Arg{tile(pick(tiles)), b.Chip(pr, target.Uint8, 0, runParts, 1, ir.Pair{Step: 4, Num: runParts})}, []ir.Arg{tile(pick(tiles))},
				ir.Bool(ir.KeyReversePred, intn(2) == 0))
		case 16: // half a bank by copy, the other half by a group
			l := pick(psum)
			b.Emit(ir.OpTensorCopy, target.EngineDVE, []ir.Arg{b.Chip(pick(tiles), f32, 0, runParts, 0, row(32))}, []ir.Arg{b.Chip(l, f32, 0, runParts, 32, row(32))})
			for _, f := range []int64{1, 6} {
				b.Emit(ir.OpMatmult, target.EnginePE, []ir.Arg{b.Chip(pick(tiles), f32, 0, runParts, 0, row(32)), tile(pick(tiles))},
					[]ir.Arg{b.Chip(l, f32, 0, runParts, 0, row(32))}, ir.Int(ir.KeyAccumulationFlag, f))
			}
		case 17: // a sum beside the result, of either sign
			b.Emit(ir.OpTensorScalarPtr, target.EngineDVE, []ir.Arg{tile(pick(tiles)), b.Chip(pick(tiles), f32, 0, runParts, int64(intn(runParts)), row(1))},
				[]ir.Arg{tile(pick(tiles)), b.Chip(pick(tiles), f32, 0, runParts, int64(intn(runParts)), row(1))}, ir.Int(ir.KeyOp0, int64(target.AluMult)),
				ir.Int(ir.KeyAcc, int64(target.AccZeroAccumulate)), ir.Bool(ir.KeyNegateSecondOutput, intn(2) == 0))
		case 15:
			b.Emit(ir.OpIota, target.EnginePool, nil, []ir.Arg{b.Chip(pick(tiles), f32, 0, runParts, 0, row(32))},
				m.IntsAttr(ir.KeyPattern, 3, 4, 1, 8), ir.Int(ir.KeyBase, -7), ir.Int(ir.KeyChannelMultiplier, 2))
		}
	}
	return out
}
