package neff

import (
	"archive/tar"
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/codegen/isa"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// sample is a small package with every kind of part: a load, a trigger, a constant, a supplied weight, an alias.
func sample(tb testing.TB, level int) *Package {
	tb.Helper()
	g, _ := target.ByLevel(level)
	p := &Package{Header: NewHeader("sample", "rosmar test", 0), Level: level, Def: NewDef(g)}
	p.Def.Queues = append(p.Def.Queues,
		Queue{Name: "qPEld", Type: QueueData, NumQueues: 1, Owner: target.EnginePE, Semaphores: []uint8{40}},
		Queue{Name: "qSPld", Type: QueueIn, NumQueues: 2, Owner: target.EngineSP, Semaphores: []uint8{16, 17}, Instances: []string{"a", "b"}})
	p.Def.Vars = append(p.Def.Vars,
		Var{Name: "x", Type: VarInput, ID: 3, Size: 4096},
		Var{Name: "y", Type: VarOutput, ID: 4, Size: 4096, Align: 64},
		Var{Name: "scratch", Type: VarTmpBuf, ID: 5, Size: 1 << 20},
		Var{Name: "w/é", ID: 6}, Var{Name: "big", Type: VarFile, ID: 7, Size: 128})
	if err := p.AddConst(&p.Def.Vars[6], Array{"<f4", []int64{2, 4}, make([]byte, 32)}); err != nil {
		tb.Fatal(err)
	}
	p.Weights = []Weight{{Var: "big", Tensor: "conv1.weight", Shape: []int64{8, 8}, Dtype: "float32", SHA256: [32]byte{1, 2, 3},
		Recipe: []RecipeStep{{Op: RecipeSlice, A: []int64{0, 0}, B: []int64{8, 4}, C: []int64{1, 1}}, {Op: RecipePermute, A: []int64{1, 0}}, {Op: RecipeCast, Dtype: "bfloat16"}}}}
	p.Tensors = TensorMap{
		Inputs:  []Tensor{{Name: "x", Dtype: "float32", Shape: []int64{8, 128}, Size: 4096}},
		Outputs: []Tensor{{Name: "y", Dtype: "float32", Shape: []int64{8, 128}, Size: 4096}},
		Aliases: []Alias{{"x", "y"}}}
	stream := func(ins ...isa.Inst) []byte {
		var out []byte
		for i := range ins {
			var b isa.Bundle
			if err := isa.Encode(level, &ins[i], &b); err != nil {
				tb.Fatal(err)
			}
			out = append(out, b[:]...)
		}
		return out
	}
	trig := isa.Inst{Opcode: isa.OpDMATrigger, Block: 1}
	trig.SetName("qSPld")
	trig2 := isa.Inst{Opcode: isa.OpDMATrigger, Block: 9}
	trig2.SetName("qSPld")
	sp := p.Engine(target.EngineSP)
	sp.Stream = stream(trig, isa.Inst{Opcode: isa.OpNoOp}, trig2)
	load := Desc{ID: 1, Queue: 2, Sem: 16, SemInc: 1,
		From: Side{Var: 3, Dtype: target.Float32, N: 2, Size: [4]uint32{512, 8}, Step: [4]int64{1, 512}},
		To:   Side{Var: 1, Dtype: target.Float32, N: 2, Size: [4]uint32{512, 8}, Step: [4]int64{1, target.SBPartitionPitch}, Off: 0x4010}}
	half := load
	half.From.Size[1], half.To.Size[1], half.Sem, half.SemInc = 4, 4, 0, 0
	cast := Desc{ID: 9, Queue: 2, Op: DMACast, Sem: 17, SemInc: 2,
		From: Side{Var: 1, Dtype: target.BFloat16, N: 3, Size: [4]uint32{256, 2, 3}, Step: [4]int64{1, -256, 0}, Off: 4096},
		To:   Side{Var: 5, Dtype: target.Float32, N: 1, Size: [4]uint32{3072}, Step: [4]int64{1}, Off: 1 << 19}}
	sp.Descs = []Desc{half, load, cast}
	p.Engine(target.EngineAct).Stream = stream(isa.Inst{Opcode: isa.OpHalt})
	p.Files = append(p.Files, Member{DebugPath, []byte("columns")})
	return p
}

func write(tb testing.TB, p *Package, plain bool) []byte {
	tb.Helper()
	var buf Buffer
	if _, err := p.Write(&buf, plain); err != nil {
		tb.Fatal(err)
	}
	return bytes.Clone(buf.Bytes())
}

func TestRoundTrip(t *testing.T) {
	for _, level := range []int{20, 30, 40} {
		for _, plain := range []bool{false, true} {
			p := sample(t, level)
			b := write(t, p, plain)
			if again := write(t, sample(t, level), plain); !bytes.Equal(b, again) {
				t.Fatal("two writes differ")
			}
			q, err := ReadBytes(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(write(t, q, plain), b) {
				t.Error("written again, the bytes differ")
			}
			if !reflect.DeepEqual(q.Def, p.Def) || !reflect.DeepEqual(q.Tensors, p.Tensors) || !reflect.DeepEqual(q.Weights, p.Weights) {
				t.Errorf("definition, tensors or weights differ:\n%+v\n%+v", q.Def, p.Def)
			}
			if q.Level != level || q.Header.Name != "sample" {
				t.Errorf("level %d, name %q", q.Level, q.Header.Name)
			}
			for i := range p.Engines {
				if !bytes.Equal(p.Engines[i].Stream, q.Engines[i].Stream) || !reflect.DeepEqual(p.Engines[i].Descs, q.Engines[i].Descs) {
					t.Errorf("engine %s differs:\n%+v\n%+v", target.Sequencers[i], q.Engines[i].Descs, p.Engines[i].Descs)
				}
			}
			if c, err := q.Const(&q.Def.Vars[6]); err != nil || len(c) != 32 {
				t.Errorf("constant: %d bytes, %v", len(c), err)
			}
			if c, err := q.Const(&q.Def.Vars[7]); err != nil || c != nil {
				t.Errorf("supplied weight: %v, %v", c, err)
			}
		}
	}
}

// TestEmit: a stream that is written a section at a time gives the same file.
func TestEmit(t *testing.T) {
	p := sample(t, 30)
	want := write(t, p, false)
	sp := p.Engine(target.EngineSP)
	whole := sp.Stream
	sp.Stream, sp.Bundles = nil, int64(len(whole)/64)
	sp.Emit = func(w io.Writer) error {
		for at := 0; at < len(whole); at += 64 {
			if _, err := w.Write(whole[at : at+64]); err != nil {
				return err
			}
		}
		return nil
	}
	if !bytes.Equal(write(t, p, false), want) {
		t.Error("the file differs")
	}
	sp.Bundles++
	if _, err := p.Write(&Buffer{}, false); err == nil || target.ClassOf(err) != target.Bug {
		t.Errorf("a short stream: %v", err)
	}
	sp.Bundles -= 2
	if _, err := p.Write(&Buffer{}, false); err == nil || target.ClassOf(err) != target.Bug {
		t.Errorf("a long stream: %v", err)
	}
}

// TestHeaderBytes pins the layout by hand.
func TestHeaderBytes(t *testing.T) {
	h := NewHeader("net", "b", FeatDVEFast)
	h.seal(0x0102, []byte("0123456789abcdef"))
	b, err := h.AppendTo(nil)
	if err != nil || len(b) != 1024 {
		t.Fatal(len(b), err)
	}
	want := make([]byte, 1024)
	put := func(at int, s string) { copy(want[at:], s) }
	put(0, "\x02")               // pkg_version
	put(8, "\x00\x04")           // header_size 1024
	put(16, "\x02\x01")          // data_size
	put(24, "\x02")              // major
	put(40, "b")                 // build
	put(168, "\x01")             // num_tpb
	put(172, "0123456789abcdef") // hash
	put(204, "012345F7\xb89abcdef")
	want[210], want[212] = '6'&0x0F|0x40, '8'&0x3F|0x80 // version 4, variant 10
	put(211, "7")
	put(220, "net")      // name
	put(476, "\x01")     // requested
	put(480, "\x01")     // per node
	put(544, "\x00\x08") // features
	put(552, "\x01")     // lnc
	if !bytes.Equal(b, want) {
		for i := range b {
			if b[i] != want[i] {
				t.Errorf("byte %d is 0x%02X, want 0x%02X", i, b[i], want[i])
			}
		}
	}
	if back, err := ParseHeader(b); err != nil || back != h {
		t.Errorf("%+v %v", back, err)
	}
	h.Name = strings.Repeat("n", 256)
	if _, err := h.AppendTo(nil); err == nil || target.ClassOf(err) != target.Limit {
		t.Errorf("long name: %v", err)
	}
}

// TestWireFacts holds the three facts of the wire that this package repeats against codegen/isa.
func TestWireFacts(t *testing.T) {
	if bundleSize != isa.BundleSize || triggerOp != uint8(isa.OpDMATrigger) {
		t.Error("bundle size or trigger opcode differ")
	}
	in := isa.Inst{Opcode: isa.OpDMATrigger, Block: 0xA1B2C3D4}
	in.SetName("queue")
	var b isa.Bundle
	if err := isa.Encode(30, &in, &b); err != nil {
		t.Fatal(err)
	}
	if b[1] != lengthByte || binary.LittleEndian.Uint32(b[triggerID:]) != 0xA1B2C3D4 || !bytes.HasPrefix(b[triggerName:], []byte("queue\x00")) {
		t.Error("the trigger's fields are elsewhere")
	}
}

// TestPrefixes: every prefix of a package is an error, never a panic, for both readers.
func TestPrefixes(t *testing.T) {
	for _, plain := range []bool{false, true} {
		b := write(t, sample(t, 30), plain)
		step := 1
		if plain {
			step = 97
		}
		for n := 0; n < len(b); n += step {
			if _, err := ReadBytes(b[:n], nil); err == nil {
				t.Fatalf("prefix of %d of %d bytes reads", n, len(b))
			}
			Inspect(bytes.NewReader(b[:n]), int64(n), nil)
		}
		// With the header mended, so that the archive reader itself meets the cut.
		for n := HeaderSize + 1; n < len(b); n += step {
			if _, err := ReadBytes(reseal(t, b[:HeaderSize], b[HeaderSize:n]), nil); err == nil {
				t.Fatalf("resealed prefix of %d bytes reads", n)
			}
		}
	}
}

// reseal puts a header with the right size and digest before a payload.
func reseal(tb testing.TB, head, payload []byte) []byte {
	tb.Helper()
	h, err := ParseHeader(head)
	if err != nil {
		tb.Fatal(err)
	}
	sum, err := digest(h.PkgVersion)
	if err != nil {
		h.PkgVersion, sum = VersionMD5, md5.New()
	}
	sum.Write(payload)
	h.seal(uint64(len(payload)), sum.Sum(nil))
	b, err := h.AppendTo(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return append(b, payload...)
}

// pack makes a package file of raw tar entries behind a sealed header.
func pack(tb testing.TB, entries ...tar.Header) []byte {
	tb.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for i := range entries {
		e := entries[i]
		body := e.Size
		if err := tw.WriteHeader(&e); err != nil {
			tb.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := io.CopyN(tw, zeros{}, body); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		tb.Fatal(err)
	}
	if over := buf.Len() % tarBlocking; over != 0 {
		buf.Write(make([]byte, tarBlocking-over))
	}
	h := NewHeader("x", "", 0)
	head, _ := h.AppendTo(nil)
	return reseal(tb, head, buf.Bytes())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestHostile(t *testing.T) {
	reg := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
	}
	lim := Limits{Members: 3, Member: 4096, Total: 6000, Free: 6000, Ratio: 10}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"absolute", pack(t, reg("/etc/passwd", 1)), "absolute path"},
		{"dot dot", pack(t, reg("a/../../b", 1)), "\"..\" part"},
		{"empty part", pack(t, reg("a//b", 1)), "empty"},
		{"twice", pack(t, reg("a", 1), reg("a", 1)), "occurs twice"},
		{"unsorted", pack(t, reg("b", 1), reg("a", 1)), "must be sorted"},
		{"symlink", pack(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "b"}), "links and devices are refused"},
		{"hard link", pack(t, tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}), "links and devices are refused"},
		{"device", pack(t, tar.Header{Typeflag: tar.TypeChar, Name: "a"}), "links and devices are refused"},
		{"directory", pack(t, tar.Header{Typeflag: tar.TypeDir, Name: "a/"}), "part"},
		{"many", pack(t, reg("a", 1), reg("b", 1), reg("c", 1), reg("d", 1)), "more than 3 members"},
		{"large", pack(t, reg("a", 5000)), "5000 bytes; the limit is 4096"},
		{"total", pack(t, reg("a", 4000), reg("b", 4000)), "hold more than 6000 bytes"},
		{"no members", pack(t), "\"info.json\" is missing"},
	} {
		_, err := ReadBytes(c.file, &lim)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if r, err := Inspect(bytes.NewReader(c.file), int64(len(c.file)), &lim); err == nil && len(r.Problems) == 0 {
			t.Errorf("%s: Inspect finds no problem", c.name)
		}
	}
}

// TestBomb: a gzip bomb ends at the ratio, having read little more than the limit.
func TestBomb(t *testing.T) {
	var buf Buffer
	w, err := NewWriter(&buf, NewHeader("bomb", "", 0), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddStream("zeros", 64<<20, func(out io.Writer) error { _, err := io.CopyN(out, zeros{}, 64<<20); return err }); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lim := DefaultLimits
	lim.Free, lim.Ratio = 1<<20, 20
	if _, err := ReadBytes(buf.Bytes(), &lim); err == nil || target.ClassOf(err) != target.Limit {
		t.Errorf("bomb of %d bytes: %v", len(buf.Bytes()), err)
	}
	n := testing.AllocsPerRun(1, func() { ReadBytes(buf.Bytes(), &lim) })
	if n > 2000 {
		t.Errorf("%v allocations on a bomb", n)
	}
}

// TestStrict breaks one rule at a time in the model: neither Write nor, for bytes made by hand, Read lets it pass.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Package)
		want string
	}{
		{"double var id", func(p *Package) { p.Def.Vars[4].ID = 3 }, "share id 3"},
		{"double var name", func(p *Package) { p.Def.Vars[5].Name = "x" }, "\"x\" is defined twice"},
		{"queue count", func(p *Package) { p.Def.Queues[1].NumQueues = 17 }, "17 queues; 1..16"},
		{"queue owner", func(p *Package) { p.Def.Queues[2].Owner = target.EnginePool }, "triggers queue set \"qSPld\" of Pool"},
		{"block missing", func(p *Package) { e := p.Engine(target.EngineSP); e.Descs = e.Descs[:2] }, "triggers block 9, which the list does not have"},
		{"queue of block", func(p *Package) { p.Engine(target.EngineSP).Descs[2].Queue = 1 }, "its descriptors are on \"qPEld\""},
		{"order", func(p *Package) { p.Engine(target.EngineSP).Descs[0].ID = 5 }, "block 1 comes after block 5"},
		{"half bundle", func(p *Package) { e := p.Engine(target.EngineSP); e.Stream = e.Stream[:100] }, "not whole bundles"},
		{"length byte", func(p *Package) { p.Engine(target.EngineSP).Stream[65] = 3 }, "bundle 1 has length byte 0x03"},
		{"bounds", func(p *Package) { p.Engine(target.EngineSP).Descs[1].From.Off = 1 }, "walks bytes 1..4097 of \"x\", which has 4096"},
		{"write input", func(p *Package) {
			d := &p.Engine(target.EngineSP).Descs[1]
			d.To = d.From
		}, "writes input \"x\""},
		{"totals", func(p *Package) { p.Engine(target.EngineSP).Descs[1].From.Size[1] = 7 }, "copy of 3584 bytes"},
		{"repeat write", func(p *Package) { p.Engine(target.EngineSP).Descs[1].To.Step[1] = 0 }, "writes the same bytes 8 times"},
		{"run", func(p *Package) { p.Engine(target.EngineSP).Descs[1].From.Size[0] = 70000 }, "innermost run of 70000 bytes"},
		{"semaphore", func(p *Package) { p.Engine(target.EngineSP).Descs[1].SemInc = 0 }, "both or neither"},
		{"huge", func(p *Package) {
			s := &p.Engine(target.EngineSP).Descs[1].From
			s.N, s.Size, s.Step = 4, [4]uint32{1, 1 << 31, 1 << 31, 1 << 31}, [4]int64{1, 1 << 40, 1 << 40, 1 << 40}
		}, "more than 2^40 bytes"},
		{"psum below", func(p *Package) {
			s := &p.Engine(target.EngineSP).Descs[1].To
			s.Var = 2
		}, "below PSUM"},
		{"tensor size", func(p *Package) { p.Tensors.Inputs[0].Size = 1 }, "has 1 bytes, its variable 4096"},
		{"alias", func(p *Package) { p.Tensors.Aliases[0].Input = "y" }, "names no input or no output"},
		{"constant gone", func(p *Package) { p.Files = p.Files[1:] }, "of variable \"w/é\" is missing"},
		{"weight gone", func(p *Package) { p.Weights = nil }, "neither a file nor a recipe"},
		{"constant size", func(p *Package) { p.Def.Vars[6].Size = 8 }, "has 32 bytes, its variable 8"},
		{"file name", func(p *Package) { p.Files = append(p.Files, Member{"sg00/PE.bin", nil}) }, "makes itself"},
	} {
		p := sample(t, 30)
		c.edit(p)
		if _, err := p.Write(&Buffer{}, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// remake edits members of a written package and reads the result.
func remake(t *testing.T, edit func(path string, b []byte) []byte) error {
	t.Helper()
	b := write(t, sample(t, 30), false)
	h, err := ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	arch, err := readArchive(bytes.NewReader(b[HeaderSize:]), int64(len(b)), DefaultLimits, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	w, err := NewWriter(&buf, h, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range arch.members {
		if d := edit(m.Path, m.Data); d != nil {
			if err := w.Add(m.Path, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = ReadBytes(buf.Bytes(), nil)
	return err
}

func TestReadErrors(t *testing.T) {
	swap := func(path, from, to string) func(string, []byte) []byte {
		return func(p string, b []byte) []byte {
			if p != path {
				return b
			}
			out := bytes.Replace(b, []byte(from), []byte(to), 1)
			if bytes.Equal(out, b) {
				t.Fatalf("%s does not contain %q:\n%s", path, from, b)
			}
			return out
		}
	}
	drop := func(path string) func(string, []byte) []byte {
		return func(p string, b []byte) []byte {
			if p == path {
				return nil
			}
			return b
		}
	}
	if err := remake(t, func(_ string, b []byte) []byte { return b }); err != nil {
		t.Fatalf("an unchanged copy does not read: %v", err)
	}
	for _, c := range []struct {
		name string
		edit func(string, []byte) []byte
		want string
	}{
		{"arch", swap("kelf-0.json", "gen3", "sunda"), "neff.json is for \"gen3\", kelf-0.json for \"sunda\""},
		{"no stream", drop("sg00/PE.bin"), "\"sg00/PE.bin\" is missing"},
		{"no list", drop("sg00/DVE.json"), "\"sg00/DVE.json\" is missing"},
		{"no def", drop("sg00/def.json"), "\"sg00/def.json\" is missing"},
		{"count", swap("kelf-0.json", `"count": 3`, `"count": 4`), "counts 4 bundles"},
		{"unknown key", swap("sg00/def.json", `"alignment"`, `"alignmint"`), "alignmint"},
		{"var id", swap("sg00/def.json", `"var_id": 4`, `"var_id": 3`), "share id 3"},
		{"var type", swap("sg00/def.json", `"tmp-buf"`, `"tmp-bof"`), "unknown type \"tmp-bof\""},
		{"unknown queue", swap("sg00/SP.json", `"qSPld"`, `"qSPxx"`), "unknown queue set \"qSPxx\""},
		{"unknown variable", swap("sg00/SP.json", `"from":"x"`, `"from":"q"`), "unknown variable \"q\""},
		{"steps", swap("sg00/SP.json", `"from_steps":[1,512]`, `"from_steps":[1]`), "differ in length"},
		{"negative size", swap("sg00/SP.json", `[512,4]`, `[512,-4]`), "is not an integer in"},
		{"op", swap("sg00/SP.json", `"cast"`, `"cost"`), "unknown operation"},
		{"desc key", swap("sg00/SP.json", `"queue"`, `"qeuue"`), "unknown key"},
		{"not JSON", swap("sg00/SP.json", `"dma"`, `dma`), "SP.json"},
		{"table sets", swap("sg00/Activation.json", `"Exp",`, ``), "table sets differ"},
		{"digest text", swap("sg00/weights.json", `"010203`, `"01020`), "is not a SHA-256"},
		{"recipe", swap("sg00/weights.json", `"permute"`, `"shuffle"`), "\"shuffle\" is unknown"},
		{"name", swap("info.json", `"sample"`, `"simple"`), "disagrees with the header"},
		{"debug is free", swap("sg00/debug.bin", "columns", "rows"), ""},
	} {
		err := remake(t, c.edit)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	b := write(t, sample(t, 30), false)
	for _, c := range []struct {
		name string
		at   int
		want string
	}{{"header size", 8, "header size field"}, {"data size", 16, "payload bytes"}, {"digest", 172, "damaged"}, {"payload", 1500, "damaged"},
		{"version", 0, "package version"}, {"feature", 547, "unknown feature bits"}, {"padding", 1000, "padding byte 1000"}, {"cores", 168, "cores"}} {
		bad := bytes.Clone(b)
		bad[c.at] ^= 0x88
		if _, err := ReadBytes(bad, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := ReadBytes(append(bytes.Clone(b), 0), nil); err == nil {
		t.Error("a byte after the payload passes")
	}
	if _, err := ReadBytes(reseal(t, b[:HeaderSize], append(bytes.Clone(b[HeaderSize:]), 0)), nil); err == nil || !strings.Contains(err.Error(), "after the compressed payload") {
		t.Errorf("a byte after the gzip stream: %v", err)
	}
}

// TestFlips: any single damaged byte is found, and no damage panics.
func TestFlips(t *testing.T) {
	b := write(t, sample(t, 30), false)
	for at := 0; at < len(b); at++ {
		bad := bytes.Clone(b)
		bad[at] ^= byte(1 + at*37%255)
		_, err := ReadBytes(bad, nil)
		free := at >= 24 && at < 168 || at >= 204 && at < 476 || at >= 480 && at < 544 // versions, texts, identity: not digested
		if err == nil && !free {
			t.Errorf("byte %d flipped, and the package reads", at)
		}
		Inspect(bytes.NewReader(bad), int64(len(bad)), nil)
		if at >= HeaderSize {
			ReadBytes(reseal(t, b[:HeaderSize], bad[HeaderSize:]), nil)
		}
	}
}

func TestInspect(t *testing.T) {
	b := write(t, sample(t, 30), false)
	r, err := Inspect(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil || len(r.Problems) != 0 {
		t.Fatal(err, r.Problems)
	}
	if r.Arch != "gen3" || !r.HashOK || !r.Compressed || len(r.Streams) != 5 || r.Inputs[0] != "x float32[8,128]" {
		t.Errorf("%+v", r)
	}
	for _, s := range r.Streams {
		if s.Path == "sg00/SP" && (s.Bundles != 3 || s.Descriptors != 3 || s.Blocks != 2) {
			t.Errorf("SP: %+v", s)
		}
	}
	text := string(r.AppendText(nil))
	for _, want := range []string{"name      sample", "feature   dve_fast_mode", "queue     qSPld", "member    sg00/def.json"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestInspectForeign reads a file of another maker: two cores, other prefixes, loose JSON, links of no harm to us.
func TestInspectForeign(t *testing.T) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, f := range []struct{ name, body string }{
		{"./sgLnk/sg01/def.json", `{"dma_queue":{"qPoolIn":{"type":"in"}},"var":{"a":{"type":"input","size":64,"var_id":1},"b":{"type":"file","size":"x"}}}`},
		{"./sgLnk/sg01/pe.bin", strings.Repeat("\x02\x10"+strings.Repeat("\x00", 62), 3)},
		{"./sgLnk/sg01/pe.json", `{"dma":[{"id":4,"desc":{}},{"id":4},{"id":5}],"more":[1,2]}`},
		{"./kelf-0.json", `{"target_arch":"sunda"}`},
		{"./hlo_metrics.json", `{`},
	} {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.body)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		io.WriteString(tw, f.body)
	}
	tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./sg00/", Mode: 0o700})
	tw.Close()
	h := NewHeader("theirs", "2.24", 1<<40)
	h.NumTPB = 2
	head, _ := h.AppendTo(nil)
	for _, file := range [][]byte{append(head, buf.Bytes()...), buf.Bytes()} {
		r, err := Inspect(bytes.NewReader(file), int64(len(file)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Arch != "sunda" || len(r.Streams) != 1 || r.Streams[0] != (StreamInfo{"sgLnk/sg01/pe", 3, 3, 2}) || len(r.Queues) != 1 {
			t.Errorf("%+v", r)
		}
		if text := string(r.AppendText(nil)); !strings.Contains(text, "problem   no tensor map") || !strings.Contains(text, "1 variables could not be read") {
			t.Errorf("%s", text)
		}
	}
	if _, err := Inspect(strings.NewReader("hello"), 5, nil); err == nil {
		t.Error("no archive, no error")
	}
}

var fuzzLimits = Limits{Members: 100, Member: 1 << 20, Total: 1 << 22, Free: 1 << 20, Ratio: 50}

// reread: whatever reads can be written and read again.
func reread(t *testing.T, b []byte) {
	t.Helper()
	Inspect(bytes.NewReader(b), int64(len(b)), &fuzzLimits)
	p, err := ReadBytes(b, &fuzzLimits)
	if err != nil {
		return
	}
	var buf Buffer
	if _, err := p.Write(&buf, true); err != nil {
		t.Fatalf("a package that reads does not write: %v", err)
	}
	if _, err := ReadBytes(buf.Bytes(), nil); err != nil {
		t.Fatalf("what was written does not read: %v", err)
	}
}

// FuzzRead writes a patch over a package, as it is and under a mended header. Inputs stay small, so the fuzzer's time does
// not go into shrinking them.
func FuzzRead(f *testing.F) {
	files := [2][]byte{write(f, sample(f, 30), false), write(f, sample(f, 20), true)}
	f.Add(uint16(0), []byte{2})
	f.Add(uint16(1024), []byte{0x1F, 0x8B, 8})
	f.Add(uint16(2048), []byte(`{"dma":[]}`))
	f.Fuzz(func(t *testing.T, at uint16, patch []byte) {
		for _, file := range files {
			b := bytes.Clone(file)
			i := int(at) % len(b)
			copy(b[i:], patch)
			reread(t, b)
			if _, err := ParseHeader(b); err == nil {
				reread(t, reseal(t, b[:HeaderSize], b[HeaderSize:]))
			}
		}
	})
}

// FuzzMember replaces one member, so that the parsers behind the archive meet hostile text.
func FuzzMember(f *testing.F) {
	file := write(f, sample(f, 30), true)
	h, err := ParseHeader(file)
	if err != nil {
		f.Fatal(err)
	}
	arch, err := readArchive(bytes.NewReader(file[HeaderSize:]), int64(len(file)), DefaultLimits, true, nil)
	if err != nil {
		f.Fatal(err)
	}
	for i, m := range arch.members {
		f.Add(uint8(i), m.Data)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		var buf Buffer
		w, err := NewWriter(&buf, h, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range arch.members {
			if i == int(which)%len(arch.members) {
				m.Data = data
			}
			if err := w.Add(m.Path, m.Data); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		reread(t, buf.Bytes())
	})
}

// many is a package with n descriptors.
func many(tb testing.TB, n int) *Package {
	p := sample(tb, 30)
	pe := p.Engine(target.EnginePE)
	d := p.Engine(target.EngineSP).Descs[1]
	d.Queue = 1
	pe.Descs = nil
	for i := range n {
		d.ID = uint32(i/16 + 1)
		pe.Descs = append(pe.Descs, d)
	}
	return p
}

func BenchmarkWriteEngine(b *testing.B) {
	p := many(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteEngine(io.Discard, target.EnginePE, p.Engine(target.EnginePE).Descs, &p.Def); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/desc")
}

func BenchmarkReadEngine(b *testing.B) {
	p := many(b, 1000)
	var buf bytes.Buffer
	if err := WriteEngine(&buf, target.EnginePE, p.Engine(target.EnginePE).Descs, &p.Def); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := ReadEngine(bytes.NewReader(buf.Bytes()), target.EnginePE, &p.Def, func(*Desc) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/desc")
	b.ReportMetric(float64(buf.Len())/1000, "B/desc")
}

func BenchmarkWrite(b *testing.B) {
	p := many(b, 20000)
	p.Engine(target.EnginePool).Stream = bytes.Repeat(p.Engine(target.EngineAct).Stream, 20000)
	var buf Buffer
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if _, err := p.Write(&buf, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(buf.Bytes())), "file-bytes")
}
