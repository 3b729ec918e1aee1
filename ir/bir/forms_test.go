package bir_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
	"github.com/rosmar-compiler/rosmar/ir/sim"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// fn is a module of one function with allocations and the instructions of one block.
func fn(allocs, insts string) []byte {
	return []byte(`{"functions":[{"name":"f","allocations":[` + allocs + `],"blocks":[{"name":"b","instructions":[` + insts + `]}]}]}`)
}

func tensor(name, space string, parts, bytes int) string {
	return fmt.Sprintf(`{"Skind":"memory_location_set","name":"%s_set","dtype":"float32","tensor_shape":[%d],"memorylocations":[{"name":"%s","type":"%s","dims":[%d,%d]}]}`,
		name, parts, name, space, parts, bytes)
}

func pattern(loc, dtype string, offset int, ap string) string {
	return fmt.Sprintf(`{"kind":"physical_ap","memref":"%s","dtype":"%s","offset":%d,"ap":%s}`, loc, dtype, offset, ap)
}

// TestOffset splits packed offsets by the pitch in elements of the operand's type.
func TestOffset(t *testing.T) {
	for _, c := range []struct {
		dtype, ap  string
		offset     int
		start      uint8
		parts      uint16
		off        int64
		free       int
		reads, err string
	}{
		{dtype: "float32", ap: "[[512,128],[1,512]]", parts: 128, free: 1},
		{dtype: "float32", ap: "[[512,32],[1,512]]", offset: 16384, start: 32, parts: 32, free: 1},
		{dtype: "float32", ap: "[[512,128],[1,16]]", offset: 8, parts: 128, off: 8, free: 1},
		{dtype: "float32", ap: "[[512,128],[2,256]]", parts: 128, free: 1},
		{dtype: "float32", ap: "[[512,128],[0,4],[1,128]]", parts: 128, free: 2},
		{dtype: "float32", ap: "[[512,128],[1,32],[32,16]]", parts: 128, free: 2},
		{dtype: "bfloat16", ap: "[[1024,2],[-1,1024]]", offset: 3*1024 + 1023, start: 3, parts: 2, off: 1023, free: 1},
		{dtype: "uint64", ap: "[[256,1]]", offset: 255, parts: 1, off: 255},
		{dtype: "uint8", ap: "[[7,1],[1,2]]", offset: 127*2048 + 2046, start: 127, parts: 1, off: 2046, free: 1},
		{dtype: "float32", ap: "[[512,128],[1,512]]", offset: 512, err: "partitions 1 to 128"},
		{dtype: "bfloat16", ap: "[[512,128],[1,512]]", err: "steps by 512; a partition of \"x\" has 1024 elements of bfloat16"},
		{dtype: "float32", ap: "[[512,1],[-1,2]]", err: "walks elements -1 to 0"},
		{dtype: "float32", ap: "[]", err: "needs a partition axis"},
		{dtype: "float32", ap: "[[512,200]]", err: "200 partitions; there are 128"},
		{dtype: "float32", ap: "[[512,1]]", offset: 128 * 512, err: "on \"x\" it lies in [0, 65536)"},
	} {
		data := fn(tensor("x", "SB", 128, 2048), `{"name":"i","opcode":"NoOp","ins":[`+pattern("x", c.dtype, c.offset, c.ap)+`]}`)
		var m ir.Module
		err := bir.Read(data, &m)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s at %d: %v, want %s", c.ap, c.offset, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		a := m.APs.At(1)
		if a.Start != c.start || a.Parts != c.parts || a.Off != c.off || len(a.Free(target.SpaceSB)) != c.free {
			t.Errorf("%s at %d reads as %+v", c.ap, c.offset, *a)
		}
		if out := write(t, &m); !bytes.Contains(out, fmt.Appendf(nil, `"offset":%d`, c.offset)) {
			t.Errorf("%s at %d is written as %s", c.ap, c.offset, out)
		}
	}
}

// TestBuilt writes a module whose objects mostly lack names or share them, and runs what comes back.
func TestBuilt(t *testing.T) {
	var m ir.Module
	m.Gen, _ = target.Lookup("trn2")
	var b ir.Builder
	b.NewFunc(&m, "f", "b")
	x := b.DRAM(m.Names.Intern("x"), ir.KindExternalInput, target.Float32, 4)
	y := b.DRAM(m.Names.Intern("y"), ir.KindExternalOutput, target.Float32, 4)
	mid := make([]ir.Loc, 3)
	names := []string{"", "t", "t"}
	for i := range mid {
		mid[i] = b.SB(m.Names.Intern(names[i]), target.Float32, 1, 4)
	}
	all := ir.Pair{Step: 1, Num: 4}
	chip := func(i int) []ir.Arg { return []ir.Arg{b.Chip(mid[i], target.Float32, 0, 1, 0, all)} }
	in := []ir.Arg{b.Mem(x, target.Float32, 0, all)}
	out := []ir.Arg{b.Mem(y, target.Float32, 0, all)}
	first := b.Emit(ir.OpLoad, target.EngineSP, in, chip(0))
	copied := b.Emit(ir.OpTensorCopy, target.EngineDVE, chip(0), chip(1))
	b.Emit(ir.OpTensorTensor, target.EngineDVE, append(chip(0), chip(1)...), chip(2), ir.Enum(ir.KeyOp, target.AluAdd))
	last := b.Emit(ir.OpSave, target.EngineSP, chip(2), out)
	b.Close()
	for i, n := range map[ir.Inst]string{first: "I-2", last: "I-2"} {
		m.Insts.At(i).Name = m.Names.Intern(n)
	}
	m.Insts.At(last).Deps = m.Deps.Add(ir.Dep{Inst: copied, Kind: ir.DepFlow}, ir.Dep{Inst: first, Kind: ir.DepOrdered})
	text := write(t, &m)
	for _, want := range []string{`"name":"I-1"`, `"name":"I-2"`, `"name":"I-3"`, `"name":"I-2.1"`, `[["I-1","Flow"],["I-2","Ordered"]]`,
		`"name":"t"`, `"name":"t.1"`, `"name":"loc1"`, `"name":"set1"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	back := read(t, text)
	stable(t, back)
	var s sim.Sim
	if err := s.Run(back, sim.Env{Input: func(string, int64) ([]byte, error) { return float32s(1, 2, -3, 0.5), nil }}); err != nil {
		t.Fatal(err)
	}
	if got := s.Bytes(back, y); !bytes.Equal(got, float32s(2, 4, -6, 1)) {
		t.Errorf("the module read back computes %v", got)
	}
}

// TestUnsayable are modules that JSON cannot hold: an error that names the instruction, never a wrong text.
func TestUnsayable(t *testing.T) {
	const head = "rir 1\nmodule \"m\" trn2\naxis i1 \"i\" 0 4 1\naxis i2 \"i\" 0 4 1\nexpr e1 axis i1\nfunc \"f\" entry {\n  set \"s\" Internal NeuronSBTensor float32 [1] part 0\n    %1 \"x\" SB 8 x 32 at 0\n  block \"b\" {\n    "
	const sym = `"n" DMACopy SP (sym(set 1 0+1 @0 8*1 addr e1):float32) -> ()`
	for name, c := range map[string]struct{ inst, want string }{
		"partition step": {`I-1 "n" TensorCopy DVE (%1 0+2/16*2 @0:float32) -> ()`, "does not step by the 8 elements"},
		"element":        {`I-1 "n" TensorCopy DVE (%1 0+2 @8:float32) -> ()`, "element 8 is outside a partition"},
		"extra":          {`I-1 "n" NoOp SP () -> () extra="x:1"`, "x:1 is no JSON member to keep"},
		"extra value":    {`I-1 "n" NoOp SP () -> () extra="\"x\":y"`, "is no JSON member to keep"},
		"axis":           {"I-1 " + sym, "belongs to no loop around"},
		"hidden axis": {"I-1 \"L\" Loop SP () -> () axis i1 {\n      block \"c\" {\n        I-2 \"K\" Loop SP () -> () axis i2 {\n          block \"d\" {\n            I-3 " + sym +
			"\n          }\n        }\n      }\n    }", "an inner loop has the same name"},
	} {
		m := parse(t, []byte(head+c.inst+"\n  }\n}\n"))
		var out bytes.Buffer
		if err := bir.Write(&out, m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s\n%s", name, err, c.want, out.Bytes())
		}
	}
}

// TestExpressions reads every kind of both versions.
func TestExpressions(t *testing.T) {
	read1 := func(expr string) (string, error) {
		data := fn(tensor("x", "DRAM", 4, 400)+`,{"Skind":"register","name":"r","dtype":"int32"}`,
			`{"name":"L","opcode":"Loop","LoopAxis":{"name":"i","lb":1,"ub":4},"blocks":[{"name":"c","instructions":[{"name":"n","opcode":"NoOp","ins":[{"kind":"symbolic_ap","memsetref":"x_set","dtype":"float32","ap":[[1,2]],"addrs":[`+expr+`]}]}]}]}`)
		var m ir.Module
		if err := bir.Read(data, &m); err != nil {
			return "", err
		}
		text := string(stable(t, &m))
		_, text, _ = strings.Cut(text, `"addrs":[`)
		text, _, _ = strings.Cut(text, `],"ap"`)
		return text, nil
	}
	axis := `{"axis":"i","kind":"AffIVKind"}`
	affine := `{"c":3,"kind":"AffExprKind","terms":[{"coeff":-8,"idx":` + axis + `},{"coeff":1,"idx":{"kind":"IntRuntimeValueKind","regref":"r"}}]}`
	for _, c := range []struct{ in, want string }{
		{affine, ""},
		{`7`, `{"c":7,"kind":"AffExprKind","terms":[]}`},
		{`{"kind":"SumKind","n_terms":2,"terms":[` + affine + `,` + axis + `]}`, ""},
		{`{"kind":"MultKind","scale":-4,"var":` + affine + `}`, ""},
		{`{"denom":4,"kind":"FloorDivKind","numer":` + affine + `}`, ""},
		{`{"numer":` + affine + `,"denom":4,"kind":"ModuloKind"}`, `{"denom":4,"kind":"ModuloKind","numer":` + affine + `}`},
		{`{"denom":4,"kind":"CCDivKind","numer":` + axis + `,"replica_groups_id":2}`, ""},
		{`{"kind":"ShardIDKind","ub":2}`, ""},
		{`{"arg_id":1,"kind":"IndirectArgId"}`, ""},
		{`{"channel_id":1,"iteration_id":3,"kind":"CCGetRankKind"}`, ""},
		{`{"terms":[{"AxisLabel":"i","coef":64},{"AxisLabel":"i"}],"c":2}`, `{"c":2,"kind":"AffExprKind","terms":[{"coeff":64,"idx":` + axis + `},{"coeff":1,"idx":` + axis + `}]}`},
		{`{"terms":[{"AxisLabel":"i","coef":64}],"c":0,"op":"Div","op_param":8}`, `{"denom":8,"kind":"FloorDivKind","numer":{"c":0,"kind":"AffExprKind","terms":[{"coeff":64,"idx":` + axis + `}]}}`},
		{`{"terms":[],"op":"Mod","op_param":8}`, `{"denom":8,"kind":"ModuloKind","numer":{"c":0,"kind":"AffExprKind","terms":[]}}`},
	} {
		got, err := read1(c.in)
		if err != nil {
			t.Error(err)
			continue
		}
		if c.want == "" {
			c.want = c.in
		}
		if got != c.want {
			t.Errorf("%s is written as\n%s, want\n%s", c.in, got, c.want)
		}
	}
	for in, want := range map[string]string{
		`{"kind":"Foo"}`:                                               `unknown kind of expression "Foo"`,
		`{"kind":"AffIVKind","axis":"j"}`:                              `there is no loop axis "j" around this`,
		`{"kind":"AffIVKind"}`:                                         "without axis",
		`{"kind":"AffIVKind","axis":"i","c":1}`:                        "keys of another kind",
		`{"kind":"ModuloKind","denom":0,"numer":1}`:                    "divides by 0",
		`{"kind":"ModuloKind","numer":1}`:                              "lacks an operand",
		`{"kind":"SumKind","n_terms":3,"terms":[1]}`:                   "n_terms is 3 for 1 terms",
		`{"kind":"IntRuntimeValueKind","regref":"q"}`:                  `there is no register "q"`,
		`{"idx":1,"coeff":2}`:                                          "a term where an expression is expected",
		`{"kind":"AffExprKind","what":2}`:                              "unknown key of an expression",
		`{"terms":[],"op":"Pow"}`:                                      `operator "Pow"`,
		`1,2`:                                                          "more than one address expression",
		`{"kind":"MultKind","scale":1,"var":{"idx":1,"coeff":1}}`:      "a term where",
		strings.Repeat(`{"kind":"MultKind","scale":1,"var":`, 20_000):  "depth",
		`{"kind":"AffExprKind","c":9223372036854775808}`:               "not an integer",
		`{"kind":"AffExprKind","terms":{"idx":1}}`:                     "expected an array",
		`{"kind":"CCGetRankKind","iteration_id":-1}`:                   "-1 is not an integer",
		`{"kind":"ShardIDKind","ub":1,"ub":1}`:                         "the object has the key twice",
		`{"terms":[{"AxisLabel":"i","coef":1,"idx":3}],"c":1}`:         "without a kind",
		`{"kind":"SumKind","terms":[{"coeff":2,"idx":1}],"n_terms":1}`: "without coefficients",
	} {
		if _, err := read1(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %.200v, want %s", in, err, want)
		}
	}
}

// TestScopes reads loops that share the name of an axis.
func TestScopes(t *testing.T) {
	loop := func(name, axis, body string) string {
		return `{"name":"` + name + `","opcode":"Loop","LoopAxis":{"name":"` + axis + `","ub":4},"blocks":[{"name":"b` + name + `","instructions":[` + body + `]}]}`
	}
	use := func(name string) string {
		return `{"name":"` + name + `","opcode":"NoOp","ins":[{"kind":"symbolic_ap","memsetref":"x_set","dtype":"float32","ap":[[1,2]],"addrs":[{"kind":"AffIVKind","axis":"i"}]}]}`
	}
	m := read(t, fn(tensor("x", "DRAM", 4, 400), loop("A", "i", use("1")+","+loop("B", "i", use("2"))+","+use("3"))+","+loop("C", "i", use("4"))))
	axisOf := map[string]ir.Axis{}
	for i, r := range m.Insts.All() {
		if ins := m.Ins(i); len(ins) == 1 {
			axisOf[m.Names.String(r.Name)] = ir.Axis(m.Exprs.At(m.Syms.At(ir.Sym(ins[0].Ref)).Addr).Ref)
		}
	}
	if axisOf["1"] != 1 || axisOf["2"] != 2 || axisOf["3"] != 1 || axisOf["4"] != 3 {
		t.Errorf("the axes are %v", axisOf)
	}
	stable(t, m)
	// A name is not bound outside of its loop, before or behind.
	for _, insts := range []string{use("1") + "," + loop("A", "i", ""), loop("A", "i", "") + "," + use("1")} {
		if err := bir.Read(fn(tensor("x", "DRAM", 4, 400), insts), new(ir.Module)); err == nil || !strings.Contains(err.Error(), "no loop axis") {
			t.Errorf("an axis outside of its loop: %v", err)
		}
	}
}

// TestRegions keeps regions whose heads no table explains.
func TestRegions(t *testing.T) {
	m := read(t, fn("", `{"name":"D","opcode":"DynamicForLoop","DynamicForLoopAxis":"i","lb":0,"ub":{"kind":"ShardIDKind","ub":4},"stride":1,"blocks":[{"name":"c","instructions":[]}]},
		{"name":"E","opcode":"DynamicForLoop","DynamicForLoopAxis":{"name":"j","ub":{"kind":"ShardIDKind","ub":4},"x":1},"blocks":[]},
		{"name":"W","opcode":"DoWhile","cond":{"r":1},"blocks":[{"name":"d","instructions":[{"name":"n","opcode":"NoOp"}]}]},
		{"name":"B","opcode":"DMABlock","dma_trigger":"t","block_id":3,"priority_class":"x","blocks":[{"name":"e","instructions":[]}]}`))
	text := string(stable(t, m))
	for _, want := range []string{`"DynamicForLoopAxis":{"lb":0,"name":"i","stride":1,"ub":0}`,
		`"DynamicForLoopAxis":{"lb":0,"name":"j","stride":1,"ub":{"kind":"ShardIDKind","ub":4},"x":1}`,
		`"cond":{"r":1}`, `"dma_trigger":"t"`, `"block_id":3`, `"priority_class":"x"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if err := bir.Executable(m); err == nil || target.ClassOf(err) != target.Unsupported || !strings.Contains(err.Error(), "D (DynamicForLoop)") {
		t.Errorf("a computed bound can be compiled: %v", err)
	}
}

func TestExecutable(t *testing.T) {
	for in, want := range map[string]string{
		`"ins":[{"kind":"imm_value","dtype":"int32","value":1,"dynamic_ap_info":{"c":0}}]`: "dynamic_ap_info",
		`"predicates":[1]`: "predicates",
		`"predicates":[]`:  "",
		`"sync_info":{"on_wait":[{"id":1,"wait_value":2,"wait_mode":"sem-ge-imm"}]}`: "",
		`"sync_info":{"on_wait":[{"id":1,"wait_value":2,"wait_mode":"sem-ge-reg"}]}`: "wait_mode",
		`"sync_info":{"on_update":[{"id":1,"update_mode":"sem-dec"}]}`:               "update_mode",
		`"unknown":1`: "",
	} {
		err := bir.Executable(read(t, fn("", `{"name":"i","opcode":"NoOp",`+in+`}`)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "i (NoOp) has "+want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// TestConstants finds the files of constants, embeds their bytes and keeps them through a text.
func TestConstants(t *testing.T) {
	set := func(name, more string) string {
		return `{"Skind":"memory_location_set","name":"` + name + `_set","kind":"Const","dtype":"float32","tensor_shape":[2],"file":"` + name + `.npy","memorylocations":[{"name":"` + name + `","type":"DRAM","dims":[1,8]}]` + more + `}`
	}
	m := read(t, []byte(`{"consts":[{"dtype":"float32","data":"AACAPwAAAEA="}],`+string(fn(set("a", "")+","+set("b", `,"const":1`), "")[1:])))
	var files []string
	for s, f := range bir.ConstFiles(m) {
		files = append(files, f)
		if err := bir.Embed(m, s, make([]byte, 7)); err == nil || !strings.Contains(err.Error(), `"a_set" takes 8 bytes, got 7`) {
			t.Errorf("seven bytes: %v", err)
		}
		if err := bir.Embed(m, s, float32s(3, 4)); err != nil {
			t.Error(err)
		}
	}
	if len(files) != 1 || files[0] != "a.npy" {
		t.Errorf("files %q", files)
	}
	m = read(t, stable(t, m))
	for range bir.ConstFiles(m) {
		t.Error("a constant with bytes still asks for its file")
	}
	if c := m.Consts.At(m.Sets.At(1).Const); !bytes.Equal(m.Bytes.Of(c.Data), float32s(3, 4)) {
		t.Errorf("the constant is %v", m.Bytes.Of(c.Data))
	}
}

// TestNumbers reads and writes what is exact, and what is nearly out of range.
func TestNumbers(t *testing.T) {
	imm := func(dtype, value string) []byte {
		return fn("", `{"name":"i","opcode":"NoOp","ins":[{"kind":"imm_value","dtype":"`+dtype+`","value":`+value+`}]}`)
	}
	for _, c := range []struct{ dtype, in, out string }{
		{"float32", `0.1`, `0.1`}, {"float32", `1`, `1.0`}, {"float32", `-0`, `-0.0`}, {"float32", `1e20`, `1e+20`},
		{"float32", `3.4028234663852886e38`, `3.4028235e+38`}, {"float32", `1e-45`, `1e-45`}, {"float32", `16777217`, `1.6777216e+07`},
		{"float32", `"nan"`, `"0x7fc00000"`}, {"float32", `"-inf"`, `"0xff800000"`}, {"bfloat16", `"0x7f800001"`, `"0x7f800001"`},
		{"int32", `-2147483648`, `-2147483648`}, {"int32", `5.0`, `5`}, {"int32", `1e3`, `1000`}, {"uint32", `4294967295`, `4294967295`},
		{"uint64", `18446744073709551615`, `18446744073709551615`}, {"int64", `-9223372036854775808`, `-9223372036854775808`},
		{"int64", `9007199254740993`, `9007199254740993`}, {"uint8", `255`, `255`}, {"int8", `-128`, `-128`},
	} {
		m := read(t, imm(c.dtype, c.in))
		if text := stable(t, m); !bytes.Contains(text, []byte(`"value":`+c.out+`}`)) {
			t.Errorf("%s of %s is written as %s", c.in, c.dtype, text)
		}
	}
	for _, c := range []struct{ dtype, in string }{
		{"float32", `3.5e38`}, {"float32", `"x"`}, {"float32", `"0x1ffffffff"`}, {"float32", `true`}, {"int32", `2147483648`},
		{"uint32", `-1`}, {"uint64", `18446744073709551616`}, {"int64", `9223372036854775808`}, {"uint8", `256`}, {"int8", `-129`},
		{"int32", `0.5`}, {"int32", `1e300`}, {"int32", `"1"`}, {"uint64", `-1`},
	} {
		if err := bir.Read(imm(c.dtype, c.in), new(ir.Module)); err == nil || !strings.Contains(err.Error(), "/functions/0/blocks/0/instructions/0/ins/0/value: ") {
			t.Errorf("%s of %s: %v", c.in, c.dtype, err)
		}
	}
}

// TestForms reads spellings that differ from those written.
func TestForms(t *testing.T) {
	inst := func(s string) string {
		return string(fn(tensor("a", "DRAM", 4, 8)+","+tensor("b", "DRAM", 4, 8), `{"name":"i",`+s+`}`))
	}
	for in, want := range map[string]string{
		// Function attributes as a bag; flags of ours in it.
		`{"functions":[{"name":"f","attributes":{"queued":true,"synced":false,"x":[1],"/y":2}}]}`: `"attributes":{"/y":2,"queued":true,"x":[1]}`,
		`{"functions":[{"name":"f","attributes":["queued",7,"x"]}]}`:                              `"attributes":["queued","x",7]`,
		`{"functions":[{"name":"f","attributes":null}],"attributes":null}`:                        `"attributes":[]`,
		// main comes first and runs; another entry is said.
		`{"functions":[{"name":"f"},{"name":"main"}]}`: `"functions":[
{"allocations":[
],"attributes":[],"blocks":[
],"name":"main"},`,
		`{"attributes":{"entry":"f"},"functions":[{"name":"f"},{"name":"main"}]}`: `"attributes":{"entry":"f"}`,
		`{"nki_functions":[{"name":"f"}],"archRev":"A0"}`:                         "\"functions\":[\n],\"nki_functions\":[",
		`{"functions":[],"archRev":{"r": 1}}`:                                     `"revision":{"r": 1}`,
		// Attributes: constant expressions, ordinals, flags as numbers.
		inst(`"opcode":"Matmult","accumulation_flag":{"c":3,"kind":"AffExprKind","terms":[]},"is_transpose":{"kind":"AffExprKind","c":1},"perf_mode":1`): `"accumulation_flag":3,`,
		inst(`"opcode":"Matmult","accumulation_flag":5,"is_transpose":1,"perf_mode":1`):                                                                  `"is_transpose":true,"is_weight_onezero":false,"name":"i","opcode":"Matmult","optin_passes":[],"origin":"Internal","outs":[],"perf_mode":"DoubleRow"`,
		inst(`"opcode":"Matmult","start_tensor_calc":true,"stop_tensor_calc":true,"accumulation_flag":3`):                                                `"accumulation_flag":3,`,
		inst(`"opcode":"Matmult","start_tensor_calc":false`):                                                                                             `"accumulation_flag":4,`,
		inst(`"opcode":"Matmult"`): `"accumulation_flag":0,`,
		inst(`"opcode":"Activation","func":"Exp","scale":"inf","alpha":2`):     `"scale":"0x7f800000"`,
		inst(`"opcode":"NoOp","op\u0063ode2":1,"queue":null,"sync_info":null`): `"opcode2":1`,
		// Immediates among the outputs are inputs, behind those that stand there.
		inst(`"opcode":"NoOp","outs":[{"kind":"imm_value","dtype":"int8","value":1,"x":2}],"ins":[{"kind":"imm_value","dtype":"int8","value":0}]`): `"ins":[{"dtype":"int8","kind":"imm_value","value":0},{"dtype":"int8","kind":"imm_value","value":1,"x":2}]`,
		// A tensor with one placement needs no memref, a pattern with a memref no memsetref.
		inst(`"opcode":"NoOp","ins":[{"kind":"physical_ap","memref":null,"memsetref":"a_set","dtype":"float32","ap":[[1,8]]}]`): `"memref":"a","memsetref":"a_set","offset":0`,
		inst(`"opcode":"NoOp","ins":[{"kind":"symbolic_ap","memref":"a","dtype":"float32","ap":[[1,8]]}]`):                      `"memref":"a","memsetref":"a_set"}`,
		// Aliases: both ends, the old form, kinds joined.
		strings.Replace(strings.Replace(inst(`"opcode":"NoOp"`), `"name":"a",`, `"name":"a","alias":[["b",1],["b_set","b",1]],`, 1), `"name":"b","type"`, `"name":"b","alias":[["a_set","a",2]],"type"`, 1): `"alias":[["a_set","a",3]]`,
	} {
		var m ir.Module
		if err := bir.Read([]byte(in), &m); err != nil {
			t.Errorf("%v\n%s", err, in)
			continue
		}
		if text := string(stable(t, read(t, write(t, &m)))); !strings.Contains(text, want) {
			t.Errorf("%s\nis written as\n%s\nwant %s", in, text, want)
		}
	}
	for in, want := range map[string]string{
		inst(`"opcode":"NoOp","ins":[{"kind":"symbolic_ap","dtype":"float32","ap":[]}]`):                                                              "without memref and memsetref",
		inst(`"opcode":"NoOp","ins":[{"kind":"symbolic_imm_value","dtype":"float32"}]`):                                                               "without expr",
		inst(`"opcode":"NoOp","ins":[{"kind":"register_ap","memsetref":"a_set","dtype":"float32","ap":[]}]`):                                          "without regref",
		inst(`"opcode":"NoOp","ins":[{"kind":"imm_array","dtype":"float32","value_array":1}]`):                                                        "without a list value_array",
		inst(`"opcode":"NoOp","ins":[{"kind":"physical_ap","memref":"a","memref_owner_func":"g","dtype":"float32","ap":[]}]`):                         `there is no function "g"`,
		inst(`"opcode":"Iota","pattern":[[1,2],[3]]`):                                                                                                 "expected a pair [step, num]",
		inst(`"opcode":"Iota","pattern":[1,2]`):                                                                                                       "expected a list of pairs",
		inst(`"opcode":"StreamShuffle","mask":3`):                                                                                                     "/mask: expected a list, found 3",
		inst(`"opcode":"StreamShuffle","mask":[3,true]`):                                                                                              "expected a list of numbers",
		inst(`"opcode":"NoOp","optin_passes":[1]`):                                                                                                    "expected a name, found 1",
		inst(`"opcode":"UnconditionalBranch","target":""`):                                                                                            "expected the name of a block",
		inst(`"opcode":"NoOp","engine_id":"x"`):                                                                                                       `expected an integer, found "x"`,
		inst(`"opcode":"NoOp","flags":["x"]`):                                                                                                         `unknown flag "x"`,
		inst(`"opcode":"NoOp","LoopAxis":{"name":"i"}`):                                                                                               "has a loop axis",
		inst(`"opcode":"Loop","LoopAxis":{"name":"i"},"DynamicForLoopAxis":"j"`):                                                                      "the loop has two axes",
		`{"consts":[{"dtype":"int8"}],"functions":[]}`:                                                                                                "a constant has dtype and either",
		`{"consts":[{"dtype":"int8","data":"AA=","x":1}],"functions":[]}`:                                                                             "/consts/0/data: illegal base64",
		`{"queues":[{"name":"q"},{"name":"q"}],"functions":[]}`:                                                                                       `queue "q" is defined twice`,
		`{"functions":[{"name":"f","allocations":[{"Skind":"register","name":"r","dtype":"int32"},{"Skind":"register","name":"r","dtype":"int8"}]}]}`: `register "r" is defined twice`,
		`{"functions":[{"name":"f","allocations":[{"Skind":"register","name":"r","dtype":"int32","file":"x"}]}]}`:                                     "has keys of a tensor",
		`{"functions":[{"name":"f","attributes":3}]}`:                                                                                                 "expected a list or an object, found a number",
	} {
		if err := bir.Read([]byte(in), new(ir.Module)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

// TestSoft keeps values whose spelling is not settled.
func TestSoft(t *testing.T) {
	m := read(t, fn("", `{"name":"i","opcode":"Load","dma_qos":"Unassigned","hint":{"x":1},"queue":"q1"},{"name":"j","opcode":"DMATrigger","queue":"q2","dma_blocks":["x"],"sync_info":{"on_wait":[{"from":"DMABlock_7","id":4,"wait_value":1}]}},{"name":"k","opcode":"Load","queue":"q1"}`))
	text := string(stable(t, m))
	for _, want := range []string{`"dma_qos":"Unassigned"`, `"hint":{"x":1}`, `{"name":"q1"}`, `{"name":"q2"}`, `"from":"DMABlock_7"`} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s occurs %d times in\n%s", want, strings.Count(text, want), text)
		}
	}
	if m.Queues.Len() != 3 || m.Insts.At(3).Queue != 1 {
		t.Errorf("queues that no list declares: %d of them, the last load on %v", m.Queues.Len()-1, m.Insts.At(3).Queue)
	}
}

func TestIsBIR(t *testing.T) {
	for in, want := range map[string]bool{
		string(load(t, "relu.json")):    true,
		string(load(t, "relu.d2.json")): true,
		` {"module": {`:                 true,
		`{"arch":"gen3","attributes":{"a":[1,{}]},"functions":[{"na`: true,
		`{"arch":"gen3","attribu`:                                    false,
		`{}`:                                                         false,
		`{"a":"functions"}`:                                          false,
		`[{"functions":[]}]`:                                         false,
		`HloModule m`:                                                false,
		``:                                                           false,
		`{"a":` + strings.Repeat("[1,", 1<<20):                       false,
		`{"a":` + strings.Repeat("[", 20_000):                        false,
		"rir 1\nmodule \"functions\" trn2\n":                         false,
		`{"a":[` + strings.Repeat("1,", 1<<20) + `1]`: false,
	} {
		if got := bir.IsBIR([]byte(in)); got != want {
			t.Errorf("%.40q: %v", in, got)
		}
	}
}

// TestReuse reads and writes different modules through one reader, writer and module: nothing is left over, and in the
// steady state next to nothing is allocated.
func TestReuse(t *testing.T) {
	var r bir.Reader
	var w bir.Writer
	var m ir.Module
	files := [][]byte{load(t, "all.json"), load(t, "relu.json"), program(100_000), []byte(`{"functions":[`), fn("", "")}
	for round := range 3 {
		for i, data := range files {
			if err := r.Read(data, &m); (err != nil) != (i == 3) {
				t.Fatal(err)
			} else if err != nil {
				continue
			}
			var b bytes.Buffer
			if err := w.Write(&b, &m); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), write(t, read(t, data))) {
				t.Errorf("round %d: text %d differs through reused memory", round, i)
			}
		}
	}
	data := files[2]
	if n := testing.AllocsPerRun(5, func() {
		if err := r.Read(data, &m); err != nil {
			t.Error(err)
		}
	}); n > 4 {
		t.Errorf("reading %d instructions a second time allocates %v times", m.Insts.Len()-1, n)
	}
	var b bytes.Buffer
	b.Grow(1 << 20)
	if n := testing.AllocsPerRun(5, func() {
		b.Reset()
		if err := w.Write(&b, &m); err != nil {
			t.Error(err)
		}
	}); n > 12 {
		t.Errorf("writing %d instructions a second time allocates %v times", m.Insts.Len()-1, n)
	}
}

// TestUnsayableModules are like TestUnsayable, outside of instructions; what refers to instructions that are gone is left
// out instead.
func TestUnsayableModules(t *testing.T) {
	for text, want := range map[string]string{
		"module \"\"\n  extra \"\\\"/x/y\\\":1\"\nfunc \"f\" {\n}\n":                                                                "/xy is no place in a module",
		"module \"\"\n  extra \"7\"\nfunc \"f\" {\n}\n":                                                                             "is no place in a module",
		"module \"\"\nfunc \"f\" {\n  extra \"\\\"/blocks/z/k\\\":1\"\n}\n":                                                         `function "f" has no /blocks/z for "k"`,
		"module \"\"\nfunc \"f\" {\n  extra \"7\"\n  extra \"\\\"k\\\":1\"\n}\n":                                                    "attributes are names or members, not 7",
		"module \"\\xff\"\nfunc \"f\" {\n}\n":                                                                                       `the name "\xff" is not UTF-8`,
		"module \"\"\nqueue q1 \"q\" SP load 1 sem 0\n  extra \"[\"\nfunc \"f\" {\n}\n":                                             "[ is no JSON member to keep",
		"module \"\"\naxis i1 \"\" 0 1 1\nfunc \"f\" {\n  block \"b\" {\n    I-1 \"L\" Loop SP () -> () axis i1 {\n    }\n  }\n}\n": "loop axis i1 has no name",
	} {
		var out bytes.Buffer
		if err := bir.Write(&out, parse(t, []byte("rir 1\n"+text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s\n%s", text, err, want, out.Bytes())
		}
	}
	// An expression whose rows share children is a small table and a huge tree.
	var m ir.Module
	var b ir.Builder
	b.NewFunc(&m, "f", "b")
	x := b.DRAM(m.Names.Intern("x"), ir.KindInternal, target.Float32, 4)
	e := m.Exprs.Add(ir.ExprRow{Kind: ir.ExprShard, C: 2})
	for range 60 {
		e = m.Exprs.Add(ir.ExprRow{Kind: ir.ExprSum, Terms: m.Terms.Add(ir.Term{Expr: e, Coeff: 1}, ir.Term{Expr: e, Coeff: 1})})
	}
	s := m.Syms.Add(ir.SymRow{Set: m.Locs.At(x).Set, Addr: e, AP: ir.APRow{Dtype: target.Float32}})
	i := b.Emit(ir.OpNoOp, target.EngineSP, []ir.Arg{{Kind: ir.ArgSym, Dtype: target.Float32, Ref: uint32(s)}}, nil)
	gone := b.Emit(ir.OpNoOp, target.EngineSP, nil, nil)
	m.Insts.At(i).Deps = m.Deps.Add(ir.Dep{Inst: gone, Kind: ir.DepFlow})
	b.Close()
	if err := bir.Write(io.Discard, &m); target.ClassOf(err) != target.Limit {
		t.Errorf("an expression of 2^60 nodes: %v", err)
	}
	m.Syms.At(s).Addr = 0
	var edits ir.Edits
	edits.Delete(gone)
	edits.Apply(&m)
	if text := write(t, &m); bytes.Contains(text, []byte("dependencies")) || bytes.Count(text, []byte("NoOp")) != 1 {
		t.Errorf("a dependence on an instruction that is gone: %s", text)
	}
}
