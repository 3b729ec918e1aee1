package bir_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// TestErrors damages a good text in one place each and expects to be told which.
func TestErrors(t *testing.T) {
	base := string(load(t, "relu.json"))
	const inst = "/functions/0/blocks/0/instructions/"
	for _, c := range []struct{ name, old, new, want string }{
		{"version", `"version": 2`, `"version": 3`, "/version: version 3; versions 1 and 2 are known"},
		{"arch", `"arch": "gen3"`, `"arch": "z80"`, `/arch: unknown target "z80"`},
		{"no core_v5", `"arch": "gen3"`, `"arch": "core_v5"`, "no published model"},
		{"no functions", `"functions"`, `"f"`, "the module has no functions"},
		{"key twice", `"version": 2`, `"version": 2, "version": 2`, "/version: the object has the key twice"},
		{"unknown key twice", `"version": 2`, `"version": 2, "x": 2, "x": 1`, `the object has the key "/x" twice`},
		{"attribute twice", `"accumulation_flag": 1`, `"accumulation_flag": 1, "accumulation_flag": 1`, inst + "2/accumulation_flag: the object has the key twice"},
		{"extra in inst twice", `"accumulation_flag": 1`, `"q": 1, "q": 1`, `the object has the key "q" twice`},
		{"opcode", `"Matmult"`, `"Matmul"`, inst + `2/opcode: unknown opcode "Matmul"`},
		{"no opcode", `"opcode": "Save", `, ``, inst + "5: an instruction without an opcode"},
		{"no name", `"name": "I-5", `, ``, inst + "5: a Save without a name"},
		{"engine", `"engine": "PE"`, `"engine": "CPU"`, inst + `2/engine: unknown engine "CPU"`},
		{"allocation kind", `"Skind": "memory_location_set", "name": "A_set"`, `"Skind": "heap", "name": "A_set"`, `/functions/0/allocations/0/Skind: unknown allocation kind "heap"`},
		{"memory type", `"type": "DRAM"`, `"type": "L2"`, `/functions/0/allocations/0/memorylocations/0/type: unknown memory type "L2"`},
		{"dtype", `"dtype": "bfloat16", "tensor_shape"`, `"dtype": "float64", "tensor_shape"`, `/functions/0/allocations/0/dtype: unknown element type "float64"`},
		{"kind", `"kind": "ExternalInput"`, `"kind": "Foo"`, `unknown tensor kind "Foo"`},
		{"rank", `"tensor_shape": [96, 48]`, `"tensor_shape": [` + strings.Repeat("1,", 64) + `1]`, "more than 64 dimensions"},
		{"elements", `"tensor_shape": [96, 48]`, `"tensor_shape": [100000000, 100000000]`, "more than 2^48 elements"},
		{"negative extent", `"tensor_shape": [96, 48]`, `"tensor_shape": [-1]`, "-1 is not an integer from 0"},
		{"fraction", `"tensor_shape": [96, 48]`, `"tensor_shape": [1.5]`, "/functions/0/allocations/0/tensor_shape/0: 1.5 is not an integer"},
		{"dims on chip", `"dims": [96, 400], "bank": 0,
                            "base": 0, "allocated": true`, `"dims": [96, 2, 200], "bank": 0, "base": 0, "allocated": true`, "in SB they are [partitions up to 128, bytes a partition]"},
		{"bytes", `"dims": [96, 96]`, `"dims": [96000000000, 96000000000]`, "multiply to more than 2^48 bytes"},
		{"placement twice", `"name": "B", "type"`, `"name": "A", "type"`, `placement "A" is defined twice`},
		{"tensor twice", `"name": "B_set"`, `"name": "A_set"`, `tensor "A_set" is defined twice`},
		{"pack hint", `"type": "DRAM", "addr": 0`, `"type": "DRAM", "pack_id_hint": 3, "addr": 0`, "only PSUM takes pack_id_hint"},
		{"no operand kind", `"kind": "physical_ap", "memref": "A"`, `"memref": "A"`, inst + "0/ins/0: an operand without a kind"},
		{"operand kind", `"kind": "physical_ap", "memref": "A"`, `"kind": "ap"`, inst + `0/ins/0/kind: unknown operand kind "ap"`},
		{"memref", `"memref": "A"`, `"memref": "Z"`, inst + `0/ins/0: there is no placement "Z"`},
		{"memsetref", `"memref": "A", "memsetref": "A_set"`, `"memref": "A", "memsetref": "B_set"`, `placement "A" is of tensor "A_set", not of "B_set"`},
		{"partition step", `"dtype": "float32", "offset": 0, "ap": [[200, 48], [1, 200]]}]},
        {"name": "I-3"`, `"dtype": "float32", "offset": 0, "ap": [[100, 48], [1, 200]]}]},
        {"name": "I-3"`, inst + `2/outs/0/ap: the partition axis steps by 100; a partition of "acc" has 200 elements of float32`},
		{"partitions", `"offset": 3072, "ap": [[48, 32]`, `"offset": 3120, "ap": [[48, 32]`, inst + `3/ins/1/ap: the pattern takes partitions 65 to 96 of "a_sb", which has 96`},
		{"row", `"offset": 3072, "ap": [[48, 32], [1, 48]]`, `"offset": 3073, "ap": [[48, 32], [1, 48]]`, inst + `3/ins/1/ap: the pattern walks elements 1 to 48 of a partition of "a_sb", which has 48 of bfloat16`},
		{"offset", `"offset": 3072`, `"offset": -1`, inst + `3/ins/1/offset: the offset is -1`},
		{"huge offset", `"offset": 3072`, `"offset": 1e300`, inst + `3/ins/1/offset: 1e300 is not an integer`},
		{"DRAM end", `"ap": [[48, 96], [1, 48]]}],
         "outs"`, `"ap": [[49, 96], [1, 48]]}], "outs"`, inst + `0/ins/0/ap: the pattern walks elements 0 to 4702 of "A", which has 4608 of bfloat16`},
		{"axes", `"ap": [[48, 96], [1, 48]]}],
         "outs"`, `"ap": [[1,1],[1,1],[1,1],[1,1],[1,1],[1,1]]}], "outs"`, inst + "0/ins/0/ap/5: more than 5 axes"},
		{"no count", `"ap": [[48, 96], [1, 48]]}],
         "outs"`, `"ap": [[48, 0], [1, 48]]}], "outs"`, inst + "0/ins/0/ap/0/1: 0 is not an integer from 1"},
		{"step", `"ap": [[48, 96], [1, 48]]}],
         "outs"`, `"ap": [[4800000000000, 1], [1, 48]]}], "outs"`, "4800000000000 is not an integer from -2147483648"},
		{"span", `"ap": [[48, 96], [1, 48]]}],
         "outs"`, `"ap": [[2147483647, 2147483647], [1, 48]]}], "outs"`, "spans more than 2^48 elements"},
		{"dependence", `["I-1", "Flow"]`, `["I-9", "Flow"]`, `I-2 depends on "I-9", which is no instruction of the function`},
		{"on itself", `["I-1", "Flow"]`, `["I-2", "Flow"]`, `I-2 depends on itself`},
		{"dependence kind", `["I-1", "Flow"]`, `["I-1", "True"]`, `unknown dependence "True"`},
		{"dependence form", `["I-1", "Flow"]`, `["I-1", "Flow", 3]`, `a dependence is [instruction, kind]`},
		{"no func", `"func": "Relu", `, ``, inst + `4: Activation "I-4" has no func`},
		{"func", `"func": "Relu"`, `"func": "Foo"`, inst + `4/func: func has no value "Foo"`},
		{"float", `"scale": 1.0`, `"scale": 1e39`, inst + "4/scale: expected a number that float32 holds, found 1e39"},
		{"bool", `"is_transpose": false`, `"is_transpose": 2`, inst + "2/is_transpose: expected true or false, found 2"},
		{"affine flag", `"accumulation_flag": 1`, `"accumulation_flag": {"kind": "AffIVKind", "axis": "i"}`, "accumulation_flag is an expression; unroll"},
		{"D1 and D2", `"accumulation_flag": 1`, `"accumulation_flag": 1, "start_tensor_calc": false`, "disagree"},
		{"D1 stop alone", `"accumulation_flag": 1`, `"stop_tensor_calc": false`, "the first being required"},
		{"immediate", `"kind": "imm_value", "dtype": "float32", "value": 0.0`, `"kind": "imm_value", "dtype": "int8", "value": 200`, inst + "4/ins/1/value: 200 is no value of int8"},
		{"immediate type", `"kind": "imm_value", "dtype": "float32", "value": 0.0`, `"kind": "imm_value", "dtype": "float8e3", "value": 0`, "an immediate of float8e3"},
		{"immediate null", `"kind": "imm_value", "dtype": "float32", "value": 0.0`, `"kind": "imm_value", "dtype": "float32", "value": null`, "null is no number that float32 holds"},
		{"immediate without value", `"kind": "imm_value", "dtype": "float32", "value": 0.0`, `"kind": "imm_value", "dtype": "float32"`, "an immediate without a value"},
		{"mixed operand", `"kind": "imm_value", "dtype": "float32", "value": 0.0`, `"kind": "imm_value", "dtype": "float32", "value": 0.0, "ap": []`, "keys of another kind of operand"},
		{"register", `"kind": "imm_value", "dtype": "float32", "value": 0.0`, `"kind": "register_access", "dtype": "float32", "regref": "r"`, inst + `4/ins/1/regref: there is no register "r"`},
		{"blocks in Save", `"opcode": "Save"`, `"opcode": "Save", "blocks": []`, "only loops and DMABlock do"},
		{"loop", `"opcode": "Save"`, `"opcode": "Loop"`, `loop "I-5" has no LoopAxis`},
		{"bounds", `"opcode": "Save"`, `"opcode": "Loop", "LoopAxis": {"name": "i", "ub": {}}`, "the bounds of a loop are integers"},
		{"stride", `"opcode": "Save"`, `"opcode": "Loop", "LoopAxis": {"name": "i", "stride": 0}`, "the stride of a loop is 0"},
		{"block twice", `"name": "Block1",`, `"name": "Block1"}, {"name": "Block1",`, `block "Block1" is defined twice`},
		{"nameless block", `"name": "Block1",`, ``, "/functions/0/blocks/0: a block without a name"},
		{"function twice", `"functions": [`, `"functions": [{"name": "sg0000"},`, `function "sg0000" is defined twice`},
		{"nameless function", `"functions": [`, `"functions": [{},`, "/functions/0: the function has no name"},
		{"queue", `"arch": "gen3"`, `"arch": "gen3", "queues": [{"name": "q"}]`, ""},
		{"no queue", `"opcode": "Save"`, `"opcode": "Save", "queue": "q2"`, ""},
		{"semaphore", `"opcode": "Save"`, `"opcode": "Save", "sync_info": {"on_wait": [{"id": 256}]}`, "256 is not an integer from 0 to 255"},
		{"no semaphore", `"opcode": "Save"`, `"opcode": "Save", "sync_info": {"on_wait": [{}]}`, inst + "5/sync_info/on_wait/0: a wait without a semaphore id"},
		{"branch", `"opcode": "Save"`, `"opcode": "UnconditionalBranch", "target": "B9"`, `I-5 branches to "B9", which is no block of the function`},
		{"call", `"opcode": "Save"`, `"opcode": "Call", "target": "B9"`, inst + `5/target: there is no function "B9"`},
		{"entry", `"previous_pass": "build_fdeps"`, `"entry": "g"`, `/attributes/entry: there is no function "g"`},
		{"const", `"kind": "Internal", "dtype": "bfloat16", "tensor_shape": [96, 48]`, `"kind": "Const", "const": 1, "dtype": "bfloat16", "tensor_shape": [96, 48]`, `tensor "a_sb_set" refers to constant 1 of 0`},
		{"alias", `"type": "DRAM", "addr": 0`, `"type": "DRAM", "alias": [["Z", 1]], "addr": 0`, `there is no placement "Z"`},
		{"alias on chip", `"type": "DRAM", "addr": 0`, `"type": "DRAM", "alias": [["acc", 1]], "addr": 0`, "an alias ties two DRAM placements"},
		{"alias kind", `"type": "DRAM", "addr": 0`, `"type": "DRAM", "alias": [["B", 9]], "addr": 0`, "9 is not an integer from 1 to 7"},
		{"array for object", `"functions": [{`, `"functions": [[], {`, "/functions/0: expected an object, found an array"},
		{"trailing text", "\n  }]\n}", "\n  }]\n} x", "not JSON"},
		{"two values", "\n  }]\n}", "\n  }]\n} {}", "text after the module"},
		{"bare word", `"version": 2`, `"version": NaN`, "/version: not JSON"},
		{"UTF-8", `"name": "I-5"`, "\"name\": \"I-\xff\"", "not JSON"},
		{"beside module", `"version": 2`, `"version": 2, "module": {"functions": []}`, "the module stands both under"},
	} {
		if !strings.Contains(base, c.old) {
			t.Errorf("%s: %q is not in the text", c.name, c.old)
			continue
		}
		data := []byte(strings.Replace(base, c.old, c.new, 1))
		m := new(ir.Module)
		err := bir.Read(data, m)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.name)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		case target.ClassOf(err) == target.Bug:
			t.Errorf("%s: %v is a bug", c.name, err)
		case !strings.Contains(err.Error(), "offset") && c.name != "const":
			t.Errorf("%s: %v says no offset", c.name, err)
		}
	}
	both := strings.Replace(strings.Replace(base, `"arch": "gen3"`, `"arch": "gen3", "queues": [{"name": "q"}]`, 1), `"opcode": "Save"`, `"opcode": "Save", "queue": "q2"`, 1)
	if err := bir.Read([]byte(both), new(ir.Module)); err == nil || !strings.Contains(err.Error(), `instructions/5/queue: there is no queue "q2"`) {
		t.Errorf("a queue that is not in the list: %v", err)
	}
}

// TestPrefixes reads every beginning of a text: an error each time.
func TestPrefixes(t *testing.T) {
	data := bytes.TrimSpace(load(t, "all.json"))
	step := 1
	if testing.Short() {
		step = 37
	}
	var r bir.Reader
	var m ir.Module
	for n := 0; n < len(data); n += step {
		if err := r.Read(data[:n], &m); err == nil {
			t.Fatalf("%d bytes of %d read as a module", n, len(data))
		}
	}
	if err := r.Read(data, &m); err != nil {
		t.Fatal(err)
	}
}

// roundTrip checks what must hold for any text that reads: it writes, and what is written reads and writes the same.
func roundTrip(t *testing.T, r *bir.Reader, w *bir.Writer, m *ir.Module, data []byte) bool {
	if err := r.Read(data, m); err != nil {
		if target.ClassOf(err) == target.Bug {
			t.Fatalf("%v\n%q", err, data)
		}
		return false
	}
	var once, twice bytes.Buffer
	if err := w.Write(&once, m); err != nil {
		if target.ClassOf(err) == target.Limit {
			return true
		}
		t.Fatalf("write: %v\n%q", err, data)
	}
	text := string(ir.Append(nil, m))
	if err := r.Read(once.Bytes(), m); err != nil {
		t.Fatalf("read again: %v\n%q\n%s", err, data, once.Bytes())
	}
	if err := w.Write(&twice, m); err != nil {
		t.Fatalf("write again: %v\n%q", err, data)
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Fatalf("%s\n%q\n%s", cmp.Diff(once.String(), twice.String()), data, text)
	}
	return true
}

// TestDamage flips, drops and copies bytes of a good text.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	n := 20000
	if testing.Short() {
		n = 2000
	}
	var r bir.Reader
	var w bir.Writer
	var m ir.Module
	good := 0
	for _, file := range []string{"all.json", "relu.d2.json"} {
		base := load(t, file)
		for range n / 2 {
			data := bytes.Clone(base)
			for range 1 + rng.IntN(3) {
				i := rng.IntN(len(data))
				switch rng.IntN(4) {
				case 0:
					data[i] ^= 1 << rng.IntN(8)
				case 1:
					data[i] = `{}[]":,0123456789-.eEntfu\ `[rng.IntN(27)]
				case 2:
					data = append(data[:i], data[min(len(data), i+1+rng.IntN(20)):]...)
				default:
					j := rng.IntN(len(data))
					data = append(data[:i:i], append(bytes.Clone(data[j:min(len(data), j+rng.IntN(30))]), data[i:]...)...)
				}
				if len(data) == 0 {
					break
				}
			}
			if roundTrip(t, &r, &w, &m, data) {
				good++
			}
		}
	}
	if good == 0 {
		t.Error("no damaged text still reads: the damage is too large to test the round trip")
	}
}

// fuzzSeeds are small texts: mutations of large ones take the fuzzer's time and no new path.
func fuzzSeeds() []string {
	fn := func(allocs, insts string) string {
		return `{"functions":[{"name":"f","allocations":[` + allocs + `],"blocks":[{"name":"b","instructions":[` + insts + `]}]}]}`
	}
	set := func(name, space, rest string) string {
		return `{"Skind":"memory_location_set","name":"` + name + `s","dtype":"int16","tensor_shape":[4],"memorylocations":[{"name":"` + name + `","type":"` + space + `","dims":[4,8]` + rest + `}]}`
	}
	ap := func(name string) string {
		return `{"kind":"physical_ap","memref":"` + name + `","memsetref":"` + name + `s","dtype":"int16","offset":5,"ap":[[4,2],[1,2]]}`
	}
	return []string{
		`{"module":{"arch":"trn1","functions":[{"name":"f","attributes":["a","queued"]}],"attributes":{"x":1},"version":1,"archRev":"B","nki_functions":[{"name":"k"}]}}`,
		fn(set("a", "DRAM", `,"alias":[["bs","b",1]]`)+","+set("b", "DRAM", `,"x":[ 1 ]`), `{"name":"i","opcode":"Load","queue":"q","ins":[`+ap("a")+`],"outs":[`+ap("b")+`]},{"name":"i","opcode":"NoOp","dependencies":[["i","Flow"]]}`),
		fn(set("a", "SB", ""), `{"name":"i","opcode":"Matmult","start_tensor_calc":true,"ins":[`+ap("a")+`],"outs":[{"kind":"imm_value","dtype":"float32","value":"nan"}],"sync_info":{"on_wait":[{"from":"x","id":3}]}}`),
		fn(set("a", "DRAM", "")+`,{"Skind":"register","name":"r","dtype":"int32"}`, `{"name":"L","opcode":"Loop","LoopAxis":{"name":"i","ub":4},"blocks":[{"name":"c","instructions":[{"name":"x","opcode":"DMACopy","ins":[{"kind":"symbolic_ap","memsetref":"as","dtype":"int16","ap":[[1,2]],"addrs":[{"kind":"ModuloKind","denom":3,"numer":{"kind":"AffExprKind","c":1,"terms":[{"idx":{"kind":"AffIVKind","axis":"i"},"coeff":2},{"idx":{"kind":"IntRuntimeValueKind","regref":"r"}}]}}]}]}]}]}`),
		fn("", `{"name":"i","opcode":"RegisterMove","ins":[{"kind":"imm_array","dtype":"uint64","value_array":[1,18446744073709551615]},{"kind":"symbolic_imm_value","dtype":"int8","expr":{"terms":[],"c":4,"op":"Div","op_param":2}}]},{"name":"j","opcode":"CompareAndBranch","comp_op":"IS_LTIMM","on_true":"b","on_false":"b","tile_size":[1,2],"mode":"CCE","constants":[0.5]}`),
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add([]byte(s))
	}
	var r bir.Reader
	var w bir.Writer
	var m ir.Module
	f.Fuzz(func(t *testing.T, data []byte) { roundTrip(t, &r, &w, &m, data) })
}

// TestSeeds keeps the fuzzer's seeds valid.
func TestSeeds(t *testing.T) {
	var r bir.Reader
	var w bir.Writer
	var m ir.Module
	for i, s := range fuzzSeeds() {
		if !roundTrip(t, &r, &w, &m, []byte(s)) {
			t.Errorf("seed %d: %v", i, r.Read([]byte(s), &m))
		}
	}
}

// nested is a module of loops in one another, with an instruction innermost.
func nested(depth int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"functions":[{"name":"f","blocks":[`)
	for i := range depth {
		name := "L" + itoa(i)
		b.WriteString(`{"name":"b` + name + `","instructions":[{"name":"` + name + `","opcode":"Loop","LoopAxis":{"name":"` + name + `","ub":2},"blocks":[`)
	}
	b.WriteString(`{"name":"b","instructions":[{"name":"n","opcode":"NoOp"}]}`)
	for range depth {
		b.WriteString(`]}]}`)
	}
	b.WriteString(`]}]}`)
	return b.Bytes()
}

func itoa(i int) string {
	var b []byte
	for ; i > 0 || len(b) == 0; i /= 10 {
		b = append([]byte{byte('0' + i%10)}, b...)
	}
	return string(b)
}

func TestDepth(t *testing.T) {
	// Eight levels beside the loops: module, functions, function, blocks, block, instructions, instruction, its ins.
	const deepest = (10_000 - 8) / 4
	var r bir.Reader
	var w bir.Writer
	var m ir.Module
	if !roundTrip(t, &r, &w, &m, nested(deepest)) {
		t.Errorf("%d loops do not read: %v", deepest, r.Read(nested(deepest), &m))
	}
	start := time.Now()
	for _, data := range [][]byte{
		nested(100_000),
		[]byte(strings.Repeat(`{"a":`, 100_000)),
		[]byte(`{"functions":[],"a":` + strings.Repeat(`[`, 100_000)),
		[]byte(`{"functions":[{"blocks":` + strings.Repeat(`[`, 100_000)),
	} {
		err := bir.Read(data, &m)
		if err == nil || !strings.Contains(err.Error(), "depth") || len(err.Error()) > 200_000 {
			t.Errorf("100,000 levels: %.200v", err)
		}
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("refusing 100,000 levels takes %v", d)
	}
	// A module that JSON cannot hold is refused by the writer.
	if err := bir.Write(io.Discard, deepModule(3000)); err == nil || target.ClassOf(err) != target.Limit {
		t.Errorf("writing 3,000 loops in one another: %v", err)
	}
}

func deepModule(depth int) *ir.Module {
	m := new(ir.Module)
	var b ir.Builder
	b.NewFunc(m, "f", "b")
	b.Close()
	blk := m.BlocksOf(b.Func)[0]
	for range depth {
		a := m.Axes.Add(ir.AxisRow{Name: m.Names.Intern("i"), Hi: 2, Step: 1})
		i := m.NewInst(blk, ir.OpLoop, target.EngineUnassigned, nil, nil)
		m.SetOrder(blk, []ir.Inst{i})
		inner := m.Blocks.Add(ir.BlockRow{Func: b.Func, Parent: i})
		m.Regions.Set(i, ir.RegionRow{Axis: a, Blocks: m.BlockList.Add(inner)})
		blk = inner
	}
	return m
}

// TestWide reads objects and lists that are large where that is allowed, and refuses the rest, in time linear in the text.
func TestWide(t *testing.T) {
	var m ir.Module
	inst := func(members string) []byte {
		return []byte(`{"functions":[{"name":"f","blocks":[{"name":"b","instructions":[{"name":"n","opcode":"NoOp",` + members + `}]}]}]}`)
	}
	many := func(n int, f func(int) string) string {
		l := make([]string, n)
		for i := range l {
			l[i] = f(i)
		}
		return strings.Join(l, ",")
	}
	if err := bir.Read(inst(many(70_000, func(i int) string { return `"k` + itoa(i) + `":1` })), &m); err == nil || !strings.Contains(err.Error(), "more than 65535 attributes") {
		t.Errorf("70,000 unknown keys: %v", err)
	}
	imm := `{"kind":"imm_value","dtype":"int32","value":1}`
	if err := bir.Read(inst(`"ins":[`+many(300, func(int) string { return imm })+`]`), &m); err == nil || !strings.Contains(err.Error(), "more than 255 operands") {
		t.Errorf("300 operands: %v", err)
	}
	big := inst(`"cores":[` + many(200_000, itoa) + `],"optin_passes":[` + many(100_000, func(i int) string { return `"p` + itoa(i) + `"` }) + `]`)
	if err := bir.Read(big, &m); err != nil {
		t.Error(err)
	}
	stable(t, &m)
	// Repeated names: suffixes are found without trying all of them for each.
	same := []byte(`{"functions":[{"name":"f","blocks":[{"name":"b","instructions":[` + many(50_000, func(int) string { return `{"name":"n","opcode":"NoOp"}` }) + `]}]}]}`)
	once := write(t, read(t, same))
	if !bytes.Contains(once, []byte(`"name":"n.49999"`)) {
		t.Error("the last of 50,000 equal names is not n.49999")
	}
	stable(t, read(t, once))
}

type failing struct{ left int }

var errFull = errors.New("no space")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	m := read(t, program(1<<20))
	for _, left := range []int{0, 100_000} {
		if err := bir.Write(&failing{left}, m); !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
}
