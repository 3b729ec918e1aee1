package isa

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestNoOverlap: the fields of a form and the header share no bit, and all lie in 64 bytes.
func TestNoOverlap(t *testing.T) {
	for i := range forms {
		f := &forms[i]
		seen := Bundle{0xFF, 0xFE, 0xFF, 0xFF}
		for j := range f.rows {
			r := &f.rows[j]
			if int(r.off)+r.width() > BundleSize {
				t.Errorf("%s: %s ends at byte %d", f.name, r.name, int(r.off)+r.width())
				continue
			}
			if r.width() == 0 {
				t.Errorf("%s: %s has no width", f.name, r.name)
			}
			var m Bundle
			r.mask(&m)
			for k := range m {
				if seen[k]&m[k] != 0 {
					t.Errorf("%s (%s): %s overlaps another field at byte 0x%02X", f.name, genNames(f.gens), r.name, k)
				}
				seen[k] |= m[k]
			}
		}
	}
}

// TestMembers: each row names a whole member of Inst of the width that its kind reads and writes, no two rows of a form
// share a member (but the type of an operand may be told once for two), and dt and par name byte members.
func TestMembers(t *testing.T) {
	type span struct{ at, size uintptr }
	var whole []span
	typ := reflect.TypeOf(z)
	var walk func(reflect.Type, uintptr)
	walk = func(ty reflect.Type, base uintptr) {
		whole = append(whole, span{base, ty.Size()})
		switch ty.Kind() {
		case reflect.Struct:
			for i := 0; i < ty.NumField(); i++ {
				walk(ty.Field(i).Type, base+ty.Field(i).Offset)
			}
		case reflect.Array:
			for i := 0; i < ty.Len(); i++ {
				walk(ty.Elem(), base+uintptr(i)*ty.Elem().Size())
			}
		}
	}
	walk(typ, 0)
	is := func(at, size int) bool {
		for _, s := range whole {
			if int(s.at) == at && int(s.size) == size {
				return true
			}
		}
		return false
	}
	for i := range forms {
		f := &forms[i]
		used := map[uint16]string{}
		for j := range f.rows {
			r := &f.rows[j]
			if r.mem == noMember {
				if r.kind != kConst {
					t.Errorf("%s: %s has no member", f.name, r.name)
				}
				continue
			}
			w := r.memberWidth()
			if r.kind == kName { // a slot may be shorter than the member
				w = len(z.Name)
			}
			if !is(int(r.mem), w) {
				t.Errorf("%s: %s names %s, which is not a member of %d bytes", f.name, r.name, memberAt(r.mem), w)
			}
			if prev, ok := used[r.mem]; ok {
				t.Errorf("%s: %s and %s share member %s", f.name, prev, r.name, memberAt(r.mem))
			}
			used[r.mem] = r.name
		}
		for j := range f.rows {
			r := &f.rows[j]
			if r.kind == kDesc {
				for _, m := range []uint16{r.dt, r.par} {
					if m != noMember && used[m] == "" {
						t.Errorf("%s: %s depends on %s, which the form does not carry", f.name, r.name, memberAt(m))
					}
				}
			}
			if r.kind == kImm && used[r.dt] == "" {
				t.Errorf("%s: %s has no source code field", f.name, r.name)
			}
		}
	}
}

// TestOverrides: CoreV3 changes exactly the documented forms, and CoreV4 its own; all else is inherited.
func TestOverrides(t *testing.T) {
	changed := func(g int) map[Opcode]bool {
		m := map[Opcode]bool{}
		for op := range index[g] {
			if index[g][op] != nil && index[g][op] != index[g-1][op] {
				m[Opcode(op)] = true
			}
		}
		return m
	}
	v3 := changed(1)
	for _, op := range []Opcode{OpTensorTensor, OpTensorTensorBit, OpLoadWeights, OpMatmul, OpLoadTags, OpMatmulSparse,
		OpCoreBarrier, OpSB2SB, OpSeqBounds, OpRangeSelect, OpMaxIndexLoad, OpNonzero, OpGetRandState, OpRandSetState, OpSetRandState} {
		if !v3[op] {
			t.Errorf("CoreV3 does not override %s", op)
		}
		delete(v3, op)
	}
	for op := range v3 {
		t.Errorf("CoreV3 overrides %s", op)
	}
	v4 := changed(2)
	for _, op := range []Opcode{OpActivate2, OpExponential, OpLoadWeightsMx, OpMatmulMx, OpQuantizeMx, OpRand2} {
		if !v4[op] {
			t.Errorf("CoreV4 does not override %s", op)
		}
		delete(v4, op)
	}
	delete(v4, OpMatmul)     // copies the zero region
	delete(v4, OpTensorCopy) // the gather form that replaces IndirectCopy
	delete(v4, OpTensorCopyCast)
	for op := range v4 {
		t.Errorf("CoreV4 overrides %s", op)
	}
	for _, op := range []Opcode{OpIndirectCopy, OpGather, OpGatherLoad} {
		if op.On(40) || !op.On(30) {
			t.Errorf("%s: wrong generations", op)
		}
	}
}

// TestSizes pins the rows that are copied by the million.
func TestSizes(t *testing.T) {
	if n := reflect.TypeOf(Inst{}).Size(); n%8 != 0 || n > 448 {
		t.Errorf("Inst is %d bytes", n)
	}
	if n := reflect.TypeOf(Desc{}).Size(); n != 40 {
		t.Errorf("Desc is %d bytes", n)
	}
	if n := reflect.TypeOf(Bundle{}).Size(); n != 64 {
		t.Errorf("Bundle is %d bytes", n)
	}
}

func TestForms(t *testing.T) {
	got := Markdown()
	if *update {
		if err := os.WriteFile("FORMS.md", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("FORMS.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("FORMS.md is stale: run go test -run Forms -update")
	}
}

// TestWireBytes pins the enumerations against the notes, written out by hand.
func TestWireBytes(t *testing.T) {
	alu := []struct {
		op target.AluOp
		b  uint8
	}{
		{target.AluBypass, 0}, {target.AluAdd, 4}, {target.AluMult, 6}, {target.AluEqual, 18}, {target.AluNotEqual, 0x18},
		{target.AluGT, 0x13}, {target.AluGE, 0x14}, {target.AluLT, 0x16}, {target.AluLE, 0x15}, {target.AluPow, 0x1A},
		{target.AluMod, 0x1B}, {target.AluRsqrt, 0x1D}, {target.AluAbs, 0x19},
	}
	for _, a := range alu {
		for _, level := range []int{20, 30, 40} {
			if b, ok := AluByte(level, a.op); !ok || b != a.b {
				t.Errorf("%s on %d: 0x%02X, want 0x%02X", a.op, level, b, a.b)
			}
			if op, ok := AluOf(level, a.b); !ok || op != a.op {
				t.Errorf("byte 0x%02X on %d: %s, want %s", a.b, level, op, a.op)
			}
		}
	}
	for _, a := range []struct {
		op target.AluOp
		b  uint8
	}{{target.AluAbsMax, 0x20}, {target.AluAbsMin, 0x21}, {target.AluModInt, 0xC8}} {
		if _, ok := AluByte(30, a.op); ok {
			t.Errorf("%s encodes on CoreV3", a.op)
		}
		if b, ok := AluByte(40, a.op); !ok || b != a.b {
			t.Errorf("%s on CoreV4: 0x%02X, want 0x%02X", a.op, b, a.b)
		}
		if _, ok := AluOf(20, a.b); ok {
			t.Errorf("byte 0x%02X decodes on CoreV2", a.b)
		}
	}
	for _, op := range []target.AluOp{target.AluAverage, target.AluElemMul} {
		if _, ok := AluByte(40, op); ok {
			t.Errorf("%s has a byte", op)
		}
	}
	for d := target.Dtype(0); d < target.NumDtypes; d++ {
		for _, level := range []int{20, 30, 40} {
			tag, ok := DtypeTag(level, d)
			if !ok {
				t.Fatalf("%s has no tag", d)
			}
			back, ok := DtypeOf(level, tag)
			if !ok {
				t.Fatalf("tag %d has no type", tag)
			}
			if again, _ := DtypeTag(level, back); again != tag {
				t.Errorf("%s -> %d -> %s -> %d", d, tag, back, again)
			}
		}
	}
	if tag, _ := DtypeTag(40, target.Float4E2M1x4); tag != 16 {
		t.Errorf("fp4 on CoreV4: tag %d", tag)
	}
	if tag, _ := DtypeTag(30, target.Float4E2M1x4); tag != 5 {
		t.Errorf("fp4 on CoreV3: tag %d", tag)
	}
	if b, _ := FuncByte(target.ActIdentity); b != 1 {
		t.Errorf("Identity is %d", b)
	}
	if _, ok := AccByte(target.AccAccumulate); ok {
		t.Error("Accumulate has a byte")
	}
}

func TestGroupCode(t *testing.T) {
	for _, c := range []struct {
		pos, size int
		code      uint8
	}{{0, 32, 1}, {32, 32, 2}, {64, 1, 4}, {96, 17, 8}, {0, 64, 3}, {64, 33, 12}, {0, 128, 15}, {0, 65, 15}} {
		got, ok := GroupCode(c.pos, c.size)
		if !ok || got != c.code {
			t.Errorf("GroupCode(%d, %d) = %d, %v; want %d", c.pos, c.size, got, ok, c.code)
		}
		pos, size, ok := GroupSpan(c.code)
		if !ok || pos != c.pos || size < c.size {
			t.Errorf("GroupSpan(%d) = %d, %d", c.code, pos, size)
		}
	}
	for _, c := range [][2]int{{16, 8}, {32, 64}, {64, 65}, {0, 129}, {0, 0}, {-32, 8}} {
		if code, ok := GroupCode(c[0], c[1]); ok {
			t.Errorf("GroupCode(%d, %d) = %d", c[0], c[1], code)
		}
	}
}

func TestAddresses(t *testing.T) {
	if a := SBAddr(32, 0x4000); a != 8<<20+0x4000 { // quadrant 1 at 8 MiB
		t.Errorf("SBAddr = 0x%X", a)
	}
	if a := PSUMAddr(1, 2, 4); a != 0x2000000+0x8000+0x1000+4 {
		t.Errorf("PSUMAddr = 0x%X", a)
	}
	for part := 0; part < 128; part += 31 {
		if p, ok := PlaceOf(SBAddr(part, 77)); !ok || p != (Place{target.SpaceSB, part, 0, 77}) {
			t.Errorf("PlaceOf SB: %+v", p)
		}
		if p, ok := PlaceOf(PSUMAddr(part, 5, 77)); !ok || p != (Place{target.SpacePSUM, part, 5, 5*2048 + 77}) {
			t.Errorf("PlaceOf PSUM: %+v", p)
		}
	}
	for _, a := range []uint32{0x2400000, RegAddr(3), AddrIndirect, 1 << 30} {
		if _, ok := PlaceOf(a); ok {
			t.Errorf("PlaceOf(0x%X) is a place", a)
		}
	}
}

func TestPack(t *testing.T) {
	d := Pack(Desc{Addr: 7, N: 4, Step: [4]int32{1, 0, 8, 100}, Num: [4]uint32{8, 1, 4, 2}})
	want := Desc{Addr: 7, N: 2, Step: [4]int32{1, 100}, Num: [4]uint32{32, 2}}
	if d != want {
		t.Errorf("Pack = %+v, want %+v", d, want)
	}
	one := Pack(Desc{N: 2, Step: [4]int32{5, 9}, Num: [4]uint32{1, 1}})
	if one != (Desc{N: 1, Step: [4]int32{1}, Num: [4]uint32{1}}) {
		t.Errorf("Pack of a single element = %+v", one)
	}
	big := Pack(Desc{N: 2, Step: [4]int32{1, 4096}, Num: [4]uint32{4096, 16}})
	if big.N != 2 {
		t.Errorf("Pack merged into a count of %d", big.Num[0])
	}
}
