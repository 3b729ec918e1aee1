package codegen

import (
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
)

// The code is good, not only right: a schedule is near the busiest timeline, waits are few, and no barrier stops all engines.
func TestScheduleQuality(t *testing.T) {
	for _, c := range []struct {
		model, target string
		most          float64 // makespan over the busiest timeline
	}{
		{"zoo:llama3-8b?layers=1&seq=512", "trn2", 1.5}, {"zoo:llama3-8b?layers=1&seq=512", "trn3", 1.5},
		{"zoo:llama3-8b?layers=1&seq=512", "trn1", 1.5}, {"zoo:llama3-8b?layers=2&seq=256", "trn2", 1.5},
		{"zoo:resnet50", "trn1", 1.5}, {"zoo:resnet50", "trn2", 1.5}, {"zoo:resnet50", "trn3", 1.5}, {"zoo:gpt2?layers=2", "trn2", 1.5},
	} {
		o := NewOptions()
		o.Target = c.target
		var w Worker
		res := w.compileOnly(t, c.model, &o)
		s := &w.schedule.After
		ratio := float64(s.Makespan) / float64(s.Busy[s.Busiest])
		insts, waits := 0, uint32(0)
		for b := range w.m.Blocks.All() {
			for _, i := range w.m.OrderOf(b) {
				insts++
				waits += w.m.Syncs.Get(i).Waits.Len
				if w.m.Insts.At(i).Op.Is(ir.FlagBarrier) {
					t.Errorf("%s for %s: %s is a barrier in straight-line code", c.model, c.target, w.m.InstName(i))
				}
			}
		}
		t.Logf("%s for %s: %d instructions, %d ns, %.2f times %s, %.2f waits an instruction", c.model, c.target, res.Insts, s.Makespan, ratio,
			s.Busiest, float64(waits)/float64(insts))
		if ratio > c.most {
			t.Errorf("%s for %s: the schedule is %.2f times its busiest timeline, %s; at most %.1f", c.model, c.target, ratio, s.Busiest, c.most)
		}
		if float64(waits) > 1.5*float64(insts) {
			t.Errorf("%s for %s: %d waits for %d instructions", c.model, c.target, waits, insts)
		}
	}
}

// Values stay on chip: DRAM sees little more than the inputs, the weights and the outputs, once each.
func TestDRAMBytes(t *testing.T) {
	for _, model := range []string{
		shared(t, "onnx", "deeploy", "CCT_2_32_32_128_Opset20", "network.onnx"), shared(t, "onnx", "light", "light_squeezenet.onnx"),
		"zoo:resnet50",
	} {
		for _, target := range targets {
			o := NewOptions()
			o.Target = target
			var w Worker
			res := w.compileOnly(t, model, &o)
			stats := map[string]int64{}
			for _, pass := range res.Timing {
				for _, c := range pass.Counters {
					stats[c.Name] = c.Value
				}
			}
			moved, floor := stats["dram_loaded"]+stats["dram_saved"], stats["dram_floor"]
			t.Logf("%s for %s: %d of %d bytes, %.3f times", model, target, moved, floor, float64(moved)/float64(floor))
			if floor == 0 || 2*moved > 3*floor {
				t.Errorf("%s for %s: DRAM sees %d bytes; its inputs, weights and outputs are %d", model, target, moved, floor)
			}
		}
	}
}
