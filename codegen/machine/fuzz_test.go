package machine

import (
	"math/rand/v2"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// hostile makes a package of bundles of all kinds, spread over the engines at random and then damaged: edits are triples of
// bundle, byte and value. Descriptors are damaged within what a reader lets through.
func hostile(corpus [][]byte, seed uint64, edits []byte) *neff.Package {
	r := rand.New(rand.NewPCG(seed, 9))
	g, _ := target.ByLevel(30)
	p := &neff.Package{Header: neff.NewHeader("fuzz", "", 0), Level: 30, Def: neff.NewDef(g)}
	for _, id := range target.Sequencers {
		p.Def.Queues = append(p.Def.Queues, neff.Queue{Name: "q" + id.String(), Type: neff.QueueData, NumQueues: 4, Owner: id})
	}
	p.Def.Vars = append(p.Def.Vars, neff.Var{Name: "x", Type: neff.VarInput, ID: 3, Size: 1 << 12}, neff.Var{Name: "t", Type: neff.VarTmpBuf, ID: 4, Size: 1 << 12})
	for e := range p.Engines {
		prog := &p.Engines[e]
		for range r.IntN(12) {
			prog.Stream = append(prog.Stream, corpus[r.IntN(len(corpus))]...)
		}
		for ; len(edits) >= 3 && len(prog.Stream) > 0; edits = edits[3:] {
			prog.Stream[(int(edits[0])*isa.BundleSize+int(edits[1])%isa.BundleSize)%len(prog.Stream)] = edits[2]
			if edits[2]%5 == 0 {
				edits = edits[3:]
				break
			}
		}
		for i := range uint32(r.IntN(5)) {
			d := neff.Desc{ID: 1 + i/2, Queue: uint32(e + 1), Op: neff.DMAOp(r.IntN(4)), Sem: uint8(16 + r.IntN(3)), SemInc: uint8(1 + r.IntN(2))}
			for _, s := range [2]*neff.Side{&d.From, &d.To} {
				*s = neff.Side{Var: uint32(1 + r.IntN(4)), Off: 4 * int64(r.IntN(2000)), N: 2, Dtype: target.Float32,
					Size: [4]uint32{16, 4}, Step: [4]int64{1, 4 * int64(r.IntN(40)-20)}}
				if s.Var <= 2 {
					s.Step[1] += target.SBPartitionPitch * int64(r.IntN(3))
					s.Off += target.PSUMBase * int64(s.Var-1)
				}
			}
			if d.Check(&p.Def) == nil {
				prog.Descs = append(prog.Descs, d)
			}
		}
	}
	return p
}

// bundles are those of all opcode cases and of the example.
func bundles(tb testing.TB) [][]byte {
	var out [][]byte
	add := func(a *asm) {
		for e := range a.p.Engines {
			s := a.p.Engines[e].Stream
			for at := 0; at < len(s); at += isa.BundleSize {
				out = append(out, s[at:at+isa.BundleSize])
			}
		}
	}
	add(example(tb, 30, nil))
	for _, c := range opCases() {
		if c.level == 0 {
			a, _ := c.build(tb)
			add(a)
		}
	}
	return out
}

// survive runs and checks a package: any error will do, a panic or an endless run will not.
func survive(m *Machine, p *neff.Package, seed uint64) (ran bool) {
	m.MaxSteps = 2000
	if m.Load(p) == nil && m.SetInput("x", make([]byte, 1<<12)) == nil {
		ran = m.Run(seed) == nil
	}
	if r, err := Race(p); err == nil {
		_ = r.Err()
	}
	return ran
}

func FuzzHostile(f *testing.F) {
	corpus := bundles(f)
	g, _ := target.ByLevel(30)
	m, err := New(g)
	if err != nil {
		f.Fatal(err)
	}
	for k := range uint64(40) {
		f.Add(k, []byte{byte(k), byte(3 * k), byte(7 * k), 1, 4, 5, 2, 6, 0x13})
	}
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		survive(m, hostile(corpus, seed, edits), seed)
	})
}

// The same for a second in every test run, on one machine that lives through all of it and still gets numbers right.
func TestHostile(t *testing.T) {
	corpus := bundles(t)
	_, _, in := exampleInputs()
	good := example(t, 30, nil)
	m := good.machine(in)
	if err := m.Run(0); err != nil {
		t.Fatal(err)
	}
	want := append([]byte(nil), m.Output("y")...)
	r := rand.New(rand.NewPCG(1, 2))
	n := 1500
	if testing.Short() {
		n = 400
	}
	ran := 0
	for k := range n {
		edits := make([]byte, 3*r.IntN(8))
		for i := range edits {
			edits[i] = byte(r.Uint32())
		}
		if survive(m, hostile(corpus, uint64(k), edits), uint64(k)) {
			ran++
		}
	}
	m.MaxSteps = 0
	if err := m.Load(good.reread()); err != nil {
		t.Fatal(err)
	}
	for name, b := range in {
		if err := m.SetInput(name, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Run(7); err != nil {
		t.Fatal(err)
	}
	if string(m.Output("y")) != string(want) {
		t.Error("numbers differ after hostile packages")
	}
	t.Logf("%d of %d hostile packages ran to their end", ran, n)
}
