package memalloc

import (
	"bytes"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
	"github.com/rosmar-compiler/rosmar/ir/verify"
)

// Generated models of every family compute the same, bit for bit, in all of SBUF and PSUM and in a third of both, also where that
// is fewer banks than accumulation groups are open together. Of SBUF they get no more than 70 % of their largest live set, or what
// one instruction needs, so that all of them spill.
func TestThirdOfTheMemories(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates models on three machines")
	}
	for _, name := range []string{
		"zoo:mlp?layers=3&width=512&batch=128&in=512",
		"zoo:gpt2?layers=1&seq=64&width=256&heads=4&ffn=512",
		"zoo:llama3-8b?layers=1&seq=64&width=256&heads=8&kv=2&headdim=32&ffn=512",
		"zoo:resnet50?size=32&width=8&classes=10",
	} {
		for _, level := range []int{20, 30, 40} {
			g := zooModel(t, name)
			p := lowerModel(t, g, level)
			want := outputs(t, p)
			var ws Workspace
			full := check(t, p, &ws, Options{}, want)
			opt := Options{PsumBanks: p.m.Gen.PSUMBanks / 3}
			strip := int64(p.m.Gen.SBReserved)
			opt.SBBytes = strip + min(int64(p.m.Gen.SBUsable()/3), max((sbBound(t, lowerModel(t, g, level))-strip)*7/10, floorOf(&p.m, p.f)+64))
			p = lowerModel(t, g, level)
			if _, err := PSUM(&p.m, p.f, &ws, opt); err != nil {
				t.Fatal(err)
			}
			sb, err := SB(&p.m, p.f, &ws, opt)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DRAM(&p.m, p.f, &ws, opt); err != nil {
				t.Fatal(err)
			}
			if err := verify.Placement(&p.m, p.f, target.SpacePSUM, target.SpaceSB, target.SpaceDRAM); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(outputs(t, p), want) {
				t.Errorf("%s, level %d: a third of the memories computes something else", name, level)
			}
			if sb.Saves+sb.Reloads == 0 {
				t.Errorf("%s, level %d: nothing spilled", name, level)
			}
			t.Logf("%s, level %d: %.0f %% of SBUF live; in %d bytes beside the strip %d saves, %d reloads, %d banks", name, level, full.PeakDemand, opt.SBBytes-strip, sb.Saves, sb.Reloads, opt.PsumBanks)
		}
	}
}
