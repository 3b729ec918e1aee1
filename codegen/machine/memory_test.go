package machine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/kernel"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// visit calls f for every byte of a view, one by one.
func visit(v *kernel.View, f func(at int)) {
	var idx [kernel.Axes]int
	for {
		for p := range v.Parts {
			at := v.Off + p*v.PStep
			for d := range v.N {
				at += idx[d] * v.Steps[d]
			}
			for b := range v.Dtype.Size() {
				f(at + b)
			}
		}
		d := 0
		for ; d < v.N; d++ {
			if idx[d]++; idx[d] < v.Nums[d] {
				break
			}
			idx[d] = 0
		}
		if d == v.N {
			return
		}
	}
}

// A store knows byte by byte what was written, over resets and generations that run out, and poisons what it forgets.
func TestStoreAgainstModel(t *testing.T) {
	const size = 6000
	var s store
	var st stamp
	s.resize(size, 100)
	st.next()
	model := make([]bool, size)
	rapid.Check(t, func(t *rapid.T) {
		view := func() kernel.View {
			v := kernel.View{Data: s.data, Dtype: rapid.SampledFrom([]target.Dtype{target.Uint8, target.Float16, target.Float32, target.Int64}).Draw(t, "dtype"),
				Parts: rapid.IntRange(1, 5).Draw(t, "parts"), PStep: 8 * rapid.IntRange(0, 60).Draw(t, "pitch"), N: rapid.IntRange(0, 4).Draw(t, "axes")}
			for d := range v.N {
				v.Steps[d] = v.Dtype.Size() * rapid.IntRange(-6, 12).Draw(t, "step")
				v.Nums[d] = rapid.IntRange(1, 4).Draw(t, "num")
			}
			v.Off = rapid.IntRange(1500, 2500).Draw(t, "off")
			return v
		}
		for range rapid.IntRange(1, 12).Draw(t, "ops") {
			v := view()
			if err := v.Check("test", "view"); err != nil {
				t.Fatal(err)
			}
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0:
				for range rapid.IntRange(1, 300).Draw(t, "runs") {
					s.reset()
					if !st.next() {
						clear(s.shadow)
					}
				}
				clear(model)
				for i, b := range s.data {
					if b != poison {
						t.Fatalf("byte %d is %d after a reset", i, b)
					}
				}
			case 1, 2, 3:
				s.mark(&v, &st)
				visit(&v, func(at int) { model[at], s.data[at] = true, 1 })
			}
			want := true
			visit(&v, func(at int) { want = want && model[at] })
			at, ok := s.written(&v, &st)
			if ok != want {
				t.Fatalf("written says %v, want %v for %+v", ok, want, v)
			}
			if !ok && model[at] {
				t.Fatalf("byte %d is named, but it was written", at)
			}
		}
	})
}

// An on-chip side of a descriptor reaches the bytes that its global addresses name, or is refused.
func TestSideAddresses(t *testing.T) {
	g, _ := target.ByLevel(40) // whose partitions have no gap between them
	def := neff.NewDef(g)
	l := layout{gen: g, def: &def, home: make([]varHome, 3)}
	bound, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		psum := rapid.Bool().Draw(t, "psum")
		pitch, limit := int64(target.SBPartitionPitch), int64(g.SBBytes)
		s := neff.Side{Var: 1, N: uint8(rapid.IntRange(1, 4).Draw(t, "pairs")), Off: int64(isa.SBAddr(rapid.IntRange(2, 120).Draw(t, "partition"), 0))}
		if psum {
			pitch, limit = target.PSUMPartitionPitch, int64(g.PSUMBanks*g.BankBytes)
			s.Var, s.Off = 2, int64(isa.PSUMAddr(rapid.IntRange(2, 120).Draw(t, "partition"), 0, 0))
		}
		s.Off += rapid.SampledFrom([]int64{0, 4, 512, limit / 2, limit - 64, limit - 4}).Draw(t, "byte")
		s.Size[0], s.Step[0] = 4, 1
		for i := 1; i < int(s.N); i++ {
			s.Size[i] = uint32(rapid.IntRange(1, 4).Draw(t, "num"))
			s.Step[i] = pitch*int64(rapid.IntRange(-1, 2).Draw(t, "dp")) + 4*int64(rapid.IntRange(-3, 40).Draw(t, "db"))
		}
		// Every address of the side: which partition and byte.
		legal := true
		var want []int64
		var idx [4]int64
		for {
			at := s.Off
			for i := 1; i < int(s.N); i++ {
				at += idx[i] * s.Step[i]
			}
			rel := at
			if psum {
				rel -= target.PSUMBase
			}
			p, b := rel/pitch, rel%pitch
			legal = legal && rel >= 0 && p < 128 && b+4 <= limit
			want = append(want, p<<32|b)
			i := 1
			for ; i < int(s.N); i++ {
				if idx[i]++; idx[i] < int64(s.Size[i]) {
					break
				}
				idx[i] = 0
			}
			if i >= int(s.N) {
				break
			}
		}
		var a access
		err := l.bindSide(&a, &s, target.Uint32, "side")
		if err != nil {
			refused++
			// A walk that leaves its partition and comes back at another element is refused as a whole.
			return
		}
		bound++
		if !legal {
			t.Fatalf("%+v is bound as %+v, but leaves its memory", s, a)
		}
		k := 0
		var j [4]int
		for {
			p, b := a.part, a.off
			for d := range a.n {
				p += j[d] * a.dp[d]
				b += j[d] * a.step[d]
			}
			if got := int64(p)<<32 | int64(b); got != want[k] {
				t.Fatalf("%+v: element %d at partition %d, byte %d, want %d, %d", s, k, p, b, want[k]>>32, want[k]&(1<<32-1))
			}
			k++
			d := 0
			for ; d < a.n; d++ {
				if j[d]++; j[d] < a.num[d] {
					break
				}
				j[d] = 0
			}
			if d == a.n {
				break
			}
		}
		if k != len(want) {
			t.Fatalf("%d elements, want %d", k, len(want))
		}
	})
	if bound == 0 || refused == 0 {
		t.Errorf("%d sides bound, %d refused: both must occur", bound, refused)
	}
}

// Descriptors copy between any shapes, cast, and fold.
func TestDescriptors(t *testing.T) {
	a := newAsm(t, 30)
	x := floats(64, 3)
	vx, vy := a.variable("x", neff.VarInput, 256), a.variable("y", neff.VarOutput, 256+128+256)
	line := func(row uint32, off, n int, dt target.Dtype) neff.Side {
		return neff.Side{Var: row, Off: int64(off), N: 1, Size: [4]uint32{uint32(n)}, Step: [4]int64{1}, Dtype: dt}
	}
	run := func(sem uint8, ds ...neff.Desc) {
		id := a.next[sp]
		a.next[sp]++
		in := isa.Inst{Opcode: isa.OpDMATrigger, Block: id}
		in.SetName("qSP")
		a.emit(sp, in)
		for i := range ds {
			ds[i].ID, ds[i].Queue = id, sp+1
		}
		ds[len(ds)-1].Sem, ds[len(ds)-1].SemInc = sem, 1
		a.p.Engines[sp].Descs = append(a.p.Engines[sp].Descs, ds...)
		a.wait(sp, sem, 1)
	}
	// [8,8] transposed: runs of one element on one side, of a row on the other.
	run(16, neff.Desc{From: neff.Side{Var: vx, N: 3, Size: [4]uint32{4, 8, 8}, Step: [4]int64{1, 32, 4}}, To: line(vy, 0, 256, target.Uint8)})
	// To bf16 through SBUF, a partition a row, and back inside one block: its descriptors run in order.
	sb := neff.Side{Var: 1, Off: int64(sbA), N: 2, Size: [4]uint32{16, 8}, Step: [4]int64{1, target.SBPartitionPitch}, Dtype: target.BFloat16}
	run(17, neff.Desc{Op: neff.DMACast, From: line(vx, 0, 256, target.Float32), To: sb},
		neff.Desc{From: sb, To: line(vy, 256, 128, target.BFloat16)})
	// x, then x added to it, then the maximum with x reversed.
	to := line(vy, 384, 256, target.Float32)
	back := neff.Side{Var: vx, Off: 252, N: 2, Size: [4]uint32{4, 64}, Step: [4]int64{1, -4}, Dtype: target.Float32}
	run(18, neff.Desc{From: line(vx, 0, 256, target.Float32), To: to}, neff.Desc{Op: neff.DMAAdd, From: line(vx, 0, 256, target.Float32), To: to},
		neff.Desc{Op: neff.DMAMax, From: back, To: to})
	m := a.machine(map[string][]byte{"x": bytesOf(x)})
	if err := m.Run(4); err != nil {
		t.Fatal(err)
	}
	out := m.Output("y")
	y, z := floatsOf(out[:256]), floatsOf(out[384:])
	for i := range 64 {
		if y[i] != x[i%8*8+i/8] {
			t.Fatalf("transposed[%d] = %v", i, y[i])
		}
		b := float32(kernel.Decode(target.BFloat16, uint64(out[256+2*i])|uint64(out[257+2*i])<<8))
		if want := kernel.Decode(target.BFloat16, kernel.Encode(target.BFloat16, x[i])); b != want {
			t.Fatalf("cast[%d] = %v, want %v", i, b, want)
		}
		if want := max(2*x[i], x[63-i]); z[i] != want {
			t.Fatalf("folded[%d] = %v, want %v", i, z[i], want)
		}
	}
	if r, err := Race(a.reread()); err != nil || r.Err() != nil {
		t.Errorf("%v %v", err, r.Err())
	}

	// What is refused: an operation without an implementation, a write to an input (by the reader), a gap between partitions.
	a = newAsm(t, 30)
	vx = a.variable("x", neff.VarInput, 1<<20)
	a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 4, 64, 64), a.sbSide(isa.SBAddr(0, uint32(a.gen.SBBytes-32)), 4, 64))
	m = a.machine(map[string][]byte{"x": make([]byte, 1<<20)})
	wantError(t, m.Run(0), target.User, "block 1 descriptor ", " of SP 0: dma_trigger", "destination covers partitions", "bytes 229344 to 229408 of SBUF")
	_, err := Race(a.reread())
	wantError(t, err, target.User, "destination covers")
	a = newAsm(t, 30)
	vx = a.variable("x", neff.VarInput, 256)
	a.dma(sp, isa.Sync{}, 16, dram(vx, 0, 4, 64, 64), a.sbSide(sbA, 4, 64))
	for i := range a.p.Engines[sp].Descs {
		a.p.Engines[sp].Descs[i].Op = neff.DMATranspose
	}
	m = a.machine(map[string][]byte{"x": make([]byte, 256)})
	wantError(t, m.Run(0), target.Unsupported, "descriptor operation transpose")
}
