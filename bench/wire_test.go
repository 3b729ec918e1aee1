package bench

import (
	"io"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// BenchmarkWire spells and reads what a real package is made of.
func BenchmarkWire(b *testing.B) {
	file := compiled(b, "zoo:llama3-8b?layers=1&seq=512")
	p, err := neff.ReadBytes(file, nil)
	must(b, err)
	var bundles []isa.Bundle
	for i := range p.Engines {
		for s := p.Engines[i].Stream; len(s) > 0; s = s[isa.BundleSize:] {
			bundles = append(bundles, isa.Bundle(s))
		}
	}
	insts := make([]isa.Inst, len(bundles))
	for i := range bundles {
		must(b, isa.Decode(p.Level, &bundles[i], &insts[i]))
	}
	descs := 0
	for i := range p.Engines {
		descs += len(p.Engines[i].Descs)
	}

	b.Run("encode", func(b *testing.B) {
		var out isa.Bundle
		b.ReportAllocs()
		start := cpuTime()
		for b.Loop() {
			for i := range insts {
				must(b, isa.Encode(p.Level, &insts[i], &out))
			}
		}
		rate(b, float64(len(insts)), "bundles/s")
		cpuRate(b, start, float64(len(insts)), "bundles/s")
	})
	b.Run("decode", func(b *testing.B) {
		var in isa.Inst
		b.ReportAllocs()
		start := cpuTime()
		for b.Loop() {
			for i := range bundles {
				must(b, isa.Decode(p.Level, &bundles[i], &in))
			}
		}
		rate(b, float64(len(bundles)), "bundles/s")
		cpuRate(b, start, float64(len(bundles)), "bundles/s")
	})
	b.Run("disasm", func(b *testing.B) {
		var line []byte
		b.ReportAllocs()
		for b.Loop() {
			for i := range bundles {
				line = isa.Disasm(p.Level, &bundles[i], line[:0])
			}
		}
		rate(b, float64(len(bundles)), "bundles/s")
	})
	b.Run("descriptors", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i, e := range target.Sequencers {
				must(b, neff.WriteEngine(io.Discard, e, p.Engines[i].Descs, &p.Def))
			}
		}
		rate(b, float64(descs), "descs/s")
	})
	for _, plain := range []bool{false, true} {
		name := "write/gzip"
		if plain {
			name = "write/plain"
		}
		b.Run(name, func(b *testing.B) {
			var out neff.Buffer
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				_, err := p.Write(&out, plain)
				must(b, err)
			}
			rate(b, float64(len(bundles)), "bundles/s")
		})
	}
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := neff.ReadBytes(file, nil)
			must(b, err)
		}
		rate(b, float64(len(bundles)), "bundles/s")
	})
}

// BenchmarkTail encodes a synchronised module and packs it: the last pass without the passes before it.
func BenchmarkTail(b *testing.B) {
	for _, model := range []string{big, "zoo:resnet50"} {
		b.Run(spell(model), func(b *testing.B) {
			c, n := until(b, model, "codegen")
			var t lower.Tail
			run := func() {
				c.out.Reset()
				_, _, err := lower.Write(&c.module, c.module.Entry, lower.Options{}, &t, &c.out)
				must(b, err)
			}
			run()
			b.ReportAllocs()
			var cpu cpuMeter
			for b.Loop() {
				cpu.begin()
				run()
				cpu.end()
			}
			rate(b, float64(n), "inst/s")
			cpu.report(b, n)
		})
	}
}
