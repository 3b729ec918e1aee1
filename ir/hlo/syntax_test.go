package hlo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// sink has every form of the syntax at least once.
const sink = `// a comment
HloModule sink.1, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias), {1, 0}: (1, {}), {2}: (2, {1}, may-alias) }, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}, num_partitions=2

FileNames
1 "dir/a {\".py"
2 "b.py"

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %x, f32[] %y), metadata={op_type="a" op_name="b} \" {" source_line=3}
}

cond {
  state = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(8)
  ROOT lt = pred[] compare(i, n), direction=LT
}, execution_thread="main"

ENTRY %main (p: f32[4,8], q: f32[4], t: (f32[4], f32[4,8])) -> (f32[4,8], (f32[4], /*index=2*/s32[]), f32[4,8]) {
  %p = f32[4,8]{1,0:T(8,128)(2,1)S(1)} parameter(0), sharding={devices=[2,1]<=[2]}, frontend_attributes={neff_input_names="gpu/data"}
  %q = f32[4] parameter(1)
  %t = (f32[4]{0}, f32[4,8]{1,0}) parameter(2)
  %late = f32[4]{0} negate(%early)
  %early = f32[4]{0} abs(%q)
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]{0}) tuple(s32[] %zero, f32[4]{0} %late)
  %loop = (s32[], f32[4]{0}) while((s32[], f32[4]{0}) %init), condition=%cond, body=%later, backend_config={"known_trip_count":{"n":"8"},"x":[1,{"y":2}]}
  %inl = f32[4]{0} call(%q), to_apply=
    {
      a = f32[4]{0} parameter(0)
      ROOT b = f32[4]{0} map(a), dimensions={0}, to_apply={ c = f32[] parameter(0) ROOT d = f32[] sine(c) }
    }
  %c1 = bf16[2,3]{1,0} constant({ { 1, 2.5, -inf }, { nan, /*i=1*/ 1e-3, 0x1.8p1 } })
  %c2 = pred[2] constant({true, 0})
  %c3 = c64[] constant((0, 1))
  %c4 = s8[3]{0} constant({-128, 5, 127})
  %c5 = f32[0]{0} constant({})
  %c6 = f32[1024,1024]{1,0} constant({...})
  %sl = f32[2,3]{1,0} slice(%p), slice={[0:2], [1:7:2]}
  %pd = f32[7,-1]{1,0} `

func module(body string) []byte {
	return []byte("HloModule t\n\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }\n\nENTRY main {\n" + body + "\n}\n")
}

// goodSink is sink with its last, unfinished line replaced by the rest of the module.
func goodSink() string {
	head, _, _ := strings.Cut(sink, "  %pd = ")
	return head + `  %pad = f32[7,11]{1,0} pad(%p, %k), padding=0_3x1_2_0
  %k = f32[] constant(0)
  %conv = f32[1,5,5,4]{3,2,1,0} convolution(%img, %ker), window={size=3x3 stride=2x2 pad=1_1x0_-1 rhs_dilate=1x2 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f, feature_group_count=2
  %img = f32[1,9,9,8]{3,2,1,0} constant({...})
  %ker = f32[3,3,4,4]{3,2,1,0} constant({...})
  %red = f32[4]{0} reduce(f32[4,8]{1,0} %p, f32[] %k), dimensions={1}, to_apply=%add
  %odd = f32[<=4,8] frobnicate(%p, ((f32[], s32[]), f32[2]{0}) %loop), mode="a,b", dimensions={1,0}, calls=%add, channel=3
  %cc = f32[4]{0} custom-call(%q), custom_call_target="Gelu\"x\"", backend_config="{\"a\": 1}"
  %ar = f32[4]{0} all-reduce(%q), channel_id=1, replica_groups=[1,2]<=[2], use_global_device_ids=true, to_apply=%add
  %inner = (f32[4]{0}, s32[]) tuple(%red, %zero)
  ROOT %out = (f32[4,8]{1,0}, (f32[4]{0}, s32[]), f32[4,8]{1,0}) tuple(%p, %inner, %p), frontend_attributes={neff_output_names="w,x,y,z"}
}

%later (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  ROOT %s = (s32[], f32[4]{0}) parameter(0)
}
`
}

func mustRead(t *testing.T, text string) *graph.Graph {
	t.Helper()
	g := new(graph.Graph)
	if err := Read([]byte(text), g); err != nil {
		t.Fatalf("%v", err)
	}
	checkTables(t, "text", g)
	return g
}

func find(t *testing.T, g *graph.Graph, name string) graph.Node {
	t.Helper()
	id, ok := g.Names.Lookup(name)
	for n, row := range g.Nodes.All() {
		if ok && row.Name == id {
			return n
		}
	}
	t.Fatalf("no instruction %q", name)
	return 0
}

func TestSink(t *testing.T) {
	g := mustRead(t, goodSink())
	ints := func(name string, k graph.Key, want ...int64) {
		t.Helper()
		if got := g.IntList(find(t, g, name), k); !slices.Equal(got, want) {
			t.Errorf("%s: attribute %d is %v, want %v", name, k, got, want)
		}
	}
	ints("loop", graph.AttrTripCount, 8)
	ints("lt", graph.AttrDirection, int64(graph.DirLT))
	ints("sl", graph.AttrStart, 0, 1)
	ints("sl", graph.AttrLimit, 2, 7)
	ints("sl", graph.AttrStride, 1, 2)
	ints("pad", graph.AttrLow, 0, 1)
	ints("pad", graph.AttrHigh, 3, 2)
	ints("pad", graph.AttrInterior, 0, 0)
	ints("conv", graph.AttrWindowSize, 3, 3)
	ints("conv", graph.AttrWindowStride, 2, 2)
	ints("conv", graph.AttrWindowPadLow, 1, 0)
	ints("conv", graph.AttrWindowPadHigh, 1, -1)
	ints("conv", graph.AttrWindowLhsDilate, 1, 1)
	ints("conv", graph.AttrWindowRhsDilate, 1, 2)
	ints("conv", graph.AttrWindowReverse, 0, 1)
	ints("conv", graph.AttrDimLabels, 0, 3, 1, 2, 2, 3, 0, 1, 0, 3, 1, 2)
	ints("conv", graph.AttrGroups, 2)
	ints("red", graph.AttrDims, 1)
	ints("red", graph.AttrKind, int64(graph.ReduceSum))
	ints("ar", graph.AttrKind, int64(graph.ReduceSum))
	ints("odd", graph.AttrDims, 1, 0)
	for _, s := range []struct {
		name string
		key  graph.Key
		want string
	}{
		{"odd", graph.AttrTarget, "frobnicate"},
		{"odd", graph.AttrRaw, `mode="a,b", channel=3`},
		{"cc", graph.AttrTarget, `Gelu"x"`},
		{"cc", graph.AttrBackend, `{"a": 1}`},
		{"ar", graph.AttrRaw, "channel_id=1, replica_groups=[1,2]<=[2], use_global_device_ids=true"},
	} {
		if got := g.Str(find(t, g, s.name), s.key); got != s.want {
			t.Errorf("%s: attribute %d is %q, want %q", s.name, s.key, got, s.want)
		}
	}
	if g.Op(find(t, g, "odd")) != graph.OpOther || !slices.Equal(g.Dims(find(t, g, "odd")), []int64{4, 8}) {
		t.Error("an unknown operator with a dynamic dimension is misread")
	}
	calls := g.Calls(find(t, g, "loop"))
	if got := g.Names.String(g.Comps.At(calls[0]).Name) + " " + g.Names.String(g.Comps.At(calls[1]).Name); got != "cond later" {
		t.Errorf("the loop calls %q", got)
	}
	inl := g.Comps.At(g.Calls(find(t, g, "inl"))[0])
	if g.Op(inl.Root) != graph.OpMap || g.Op(g.Comps.At(g.Calls(inl.Root)[0]).Root) != graph.OpSin {
		t.Error("computations printed in place are misread")
	}
	if got := g.Operands(find(t, g, "late"))[0]; got != find(t, g, "early") {
		t.Errorf("the operand used before its definition is %v", got)
	}
	// Names and outputs.
	if got := g.NodeName(g.Params(g.Entry)[0]); got != "gpu/data" {
		t.Errorf("parameter 0 is called %q", got)
	}
	var names []string
	for _, o := range g.Outputs {
		names = append(names, g.Names.String(o.Name)+"="+g.NodeName(o.Node))
	}
	if got := strings.Join(names, " "); got != "w=gpu/data x=red y=zero z=gpu/data" {
		t.Errorf("outputs %s", got)
	}
	if want := []graph.Alias{{Output: 0, Input: 0, Must: true}, {Output: 1, Input: 1}}; !slices.Equal(g.Aliases, want) {
		t.Errorf("aliases %v, want %v", g.Aliases, want)
	}
	// Constants.
	con := func(name string) (*graph.ConstRow, []byte) {
		k := g.Nodes.At(find(t, g, name)).Const
		return g.Consts.At(k), g.ConstBytes(k)
	}
	_, b := con("c1")
	want := []uint16{0x3f80, 0x4020, 0xff80, 0x7fc0, 0x3a83, 0x4040}
	for i, w := range want {
		if got := uint16(b[2*i]) | uint16(b[2*i+1])<<8; got != w {
			t.Errorf("element %d of c1 is %#x, want %#x", i, got, w)
		}
	}
	if _, b := con("c2"); string(b) != "\x01\x00" {
		t.Errorf("c2 is %q", b)
	}
	if _, b := con("c3"); string(b) != "\x00\x00\x00\x00\x00\x00\x80\x3f" {
		t.Errorf("c3 is %q", b)
	}
	if _, b := con("c4"); string(b) != "\x80\x05\x7f" {
		t.Errorf("c4 is %q", b)
	}
	if k, _ := con("c5"); k.Kind != graph.ConstSplat {
		t.Errorf("the empty constant has kind %d", k.Kind)
	}
	if k, _ := con("c6"); k.Kind != graph.ConstElided {
		t.Errorf("the elided constant has kind %d", k.Kind)
	}
}

func TestLiterals(t *testing.T) {
	for _, tt := range []struct {
		typ, lit string
		bits     uint64 // of the splat
	}{
		{"f32[]", "0.1", uint64(math.Float32bits(0.1))},
		{"f32[]", "1e-45", 1},
		{"f32[]", "-0", 0x80000000},
		{"f32[]", "3.40282347e+38", 0x7f7fffff},
		{"f32[]", "1e39", 0x7f800000},
		{"f32[]", "-inf", 0xff800000},
		{"f32[]", "nan", 0x7fc00000},
		{"f32[]", "-nan", 0xffc00000},
		{"f32[]", "nan(0x400001)", 0x7fc00001},
		{"f32[]", "nan(0x1)", 0x7f800001},
		{"f32[]", "0x1.fp-2", uint64(math.Float32bits(0x1.fp-2))},
		{"f32[2,2]", "{{7, 7}, {7, 7.0}}", uint64(math.Float32bits(7))},
		{"f32[4000000]", "{...}", 0},
		{"f64[1]", "{0.1}", math.Float64bits(0.1)},
		{"f64[]", "1e-400", 0},
		{"f16[]", "65504", 0x7bff},
		{"f16[]", "65520", 0x7c00},
		{"f16[]", "6e-8", 1},
		{"bf16[]", "3.3895314e+38", 0x7f7f},
		{"f8e4m3fn[]", "448", 0x7e},
		{"f8e4m3fn[]", "500", 0x7f},
		{"f8e4m3fn[]", "-nan", 0xff},
		{"f8e5m2[]", "-inf", 0xfc},
		{"f8e4m3fnuz[]", "-0", 0},
		{"f8e4m3fnuz[]", "nan", 0x80},
		{"f8e8m0fnu[]", "0.5", 126},
		{"f4e2m1fn[]", "-6", 0xf},
		{"f4e2m1fn[]", "100", 0x7},
		{"s32[]", "-2147483648", 0x80000000},
		{"s4[]", "-8", 8},
		{"u4[2]", "{15, 15}", 15},
		{"u64[]", "18446744073709551615", math.MaxUint64},
		{"s64[3]", "{-1, -1, -1}", math.MaxUint64},
		{"pred[]", "true", 1},
		{"pred[2,0]", "{ {}, {} }", 0},
		{"f32[0,7]", "{}", 0},
	} {
		g := mustRead(t, string(module("ROOT c = "+tt.typ+" constant("+tt.lit+")")))
		k := g.Consts.At(g.Nodes.At(find(t, g, "c")).Const)
		if k.Bits != tt.bits || k.Kind != graph.ConstSplat && tt.lit != "{...}" {
			t.Errorf("%s constant(%s): kind %d, bits %#x, want %#x", tt.typ, tt.lit, k.Kind, k.Bits, tt.bits)
		}
	}
}

func TestDimLabels(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []int64
	}{
		{"b0f_0io->b0f", []int64{0, 2, 1, 1, 2, 0, 0, 2, 1}},
		{"bf012_oi012->bf012", []int64{0, 1, 2, 3, 4, 1, 0, 2, 3, 4, 0, 1, 2, 3, 4}},
		{"f01b_i01o->01bf", []int64{3, 0, 1, 2, 0, 3, 1, 2, 2, 3, 0, 1}},
		{"b1?0f_01io->b01f", []int64{0, 4, 3, 1, 2, 3, 0, 1, 0, 3, 1, 2}},
		{"bf_io->bf", []int64{0, 1, 0, 1, 0, 1}},
	} {
		g := mustRead(t, string(module("a = f32[1] parameter(0)\nROOT c = f32[1] convolution(a, a), dim_labels="+tt.text)))
		if got := g.IntList(find(t, g, "c"), graph.AttrDimLabels); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.text, got, tt.want)
		}
	}
}

// TestAttributes reads one instruction of each kind that carries attributes of its own.
func TestAttributes(t *testing.T) {
	type ints map[graph.Key][]int64
	for _, tt := range []struct {
		line  string
		op    graph.Op
		ints  ints
		calls string
	}{
		{"c = f32[] conditional(b, p, p), true_computation=t, false_computation=f", graph.OpConditional, nil, "t f"},
		{"c = f32[] conditional(b, p, p), false_computation=f, true_computation=t", graph.OpConditional, nil, "t f"},
		{"c = f32[] conditional(i, p, p, p), branch_computations={%f, t, f}", graph.OpConditional, nil, "f t f"},
		{"c = f32[] while(p), body=t, condition=w", graph.OpWhile, nil, "w t"},
		{`c = f32[] while(p), condition=w, body=t, backend_config="{\"known_trip_count\":{\"n\":\"12\"}}"`, graph.OpWhile,
			ints{graph.AttrTripCount: {12}}, "w t"},
		{"c = f32[] fusion(p), kind=kLoop, calls=t", graph.OpFusion, nil, "t"},
		{"c = f32[2] select-and-scatter(v, v, p), window={size=2}, scatter=add, select=ge", graph.OpSelectAndScatter,
			ints{graph.AttrWindowSize: {2}, graph.AttrKind: {int64(graph.ReduceSum)}}, "ge add"},
		{`c = f32[] custom-call(p), custom_call_target="x", called_computations={%t, %f}`, graph.OpCustomCall, nil, "t f"},
		{"c = f32[2] sort(v), dimensions={0}, is_stable=true, to_apply=ge", graph.OpSort,
			ints{graph.AttrDim: {0}, graph.AttrStable: {1}}, "ge"},
		{"c = pred[2] compare(v, v), direction=GE, type=TOTALORDER", graph.OpCompare,
			ints{graph.AttrDirection: {int64(graph.DirGE)}, graph.AttrTotal: {1}}, ""},
		{"c = pred[2] compare(v, v), direction=NE, type=FLOAT", graph.OpCompare,
			ints{graph.AttrDirection: {int64(graph.DirNE)}, graph.AttrTotal: nil}, ""},
		{"c = (f32[1], s32[1]) topk(v), k=1, largest=false", graph.OpTopK, ints{graph.AttrK: {1}, graph.AttrLargest: {0}}, ""},
		{"c = f32[2,3] iota(), iota_dimension=1", graph.OpIota, ints{graph.AttrDim: {1}}, ""},
		{"c = f32[4] concatenate(v, v), dimensions={0}", graph.OpConcat, ints{graph.AttrDim: {0}, graph.AttrDims: nil}, ""},
		{"c = f32[4] all-gather(v), replica_groups={{0,1}}, dimensions={0}", graph.OpAllGather, ints{graph.AttrDim: {0}}, ""},
		{"c = f32[3,2] broadcast(v), dimensions={1}", graph.OpBroadcast, ints{graph.AttrDims: {1}}, ""},
		{"c = f32[2] reduce-precision(v), exponent_bits=5, mantissa_bits=10", graph.OpReducePrecision,
			ints{graph.AttrExponent: {5}, graph.AttrMantissa: {10}}, ""},
		{"c = f32[1] dynamic-slice(v, i), dynamic_slice_sizes={1}", graph.OpDynamicSlice, ints{graph.AttrSizes: {1}}, ""},
		{"c = f32[] dot(v, v), lhs_batch_dims={}, lhs_contracting_dims={0}, rhs_contracting_dims={ 0 }, operand_precision={highest,highest}",
			graph.OpDot, ints{graph.AttrLhsContract: {0}, graph.AttrRhsContract: {0}, graph.AttrLhsBatch: nil}, ""},
		{"c = f32[1] gather(v, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, operand_batching_dims={1}, " +
			"start_indices_batching_dims={2}, index_vector_dim=1, slice_sizes={1}, indices_are_sorted=true", graph.OpGather,
			ints{graph.AttrCollapsedDims: {0}, graph.AttrStartIndexMap: {0}, graph.AttrOperandBatch: {1}, graph.AttrIndicesBatch: {2},
				graph.AttrIndexVectorDim: {1}, graph.AttrSliceSizes: {1}}, ""},
		{"c = f32[2] scatter(v, j, v), update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={2}, " +
			"input_batching_dims={3}, scatter_indices_batching_dims={4}, index_vector_dim=1, to_apply=add", graph.OpScatter,
			ints{graph.AttrUpdateWindowDims: {0}, graph.AttrInsertedDims: {1}, graph.AttrScatterDims: {2}, graph.AttrOperandBatch: {3},
				graph.AttrIndicesBatch: {4}, graph.AttrKind: {int64(graph.ReduceSum)}}, "add"},
		{"c = f32[2] batch-norm-inference(v, v, v, v, v), epsilon=0.5, feature_index=0", graph.OpBatchNormInference,
			ints{graph.AttrFeature: {0}}, ""},
		{"c = f32[2] relu(v)", graph.OpOther, nil, ""}, // ours, not HLO's: nobody's text means it
		{"c = f32[2] slice-start(v), slice={[0:2]}, calls=t", graph.OpOther, ints{graph.AttrStart: {0}}, "t"},
	} {
		g := mustRead(t, `HloModule m
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
ge { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = pred[] compare(x, y), direction=GE }
t { x = f32[] parameter(0) }
f { x = f32[] parameter(0) }
w { x = f32[] parameter(0) ROOT y = pred[] constant(true) }
ENTRY main {
b = pred[] parameter(0)
i = s32[] parameter(1)
p = f32[] parameter(2)
v = f32[2] parameter(3)
j = s32[1] parameter(4)
ROOT `+tt.line+"\n}")
		n := find(t, g, "c")
		if g.Op(n) != tt.op {
			t.Errorf("%s: operator %v", tt.line, g.Op(n))
		}
		for k, want := range tt.ints {
			if got := g.IntList(n, k); !slices.Equal(got, want) {
				t.Errorf("%s: attribute %d is %v, want %v", tt.line, k, got, want)
			}
		}
		var calls []string
		for _, c := range g.Calls(n) {
			calls = append(calls, g.Names.String(g.Comps.At(c).Name))
		}
		if got := strings.Join(calls, " "); got != tt.calls {
			t.Errorf("%s: calls %q, want %q", tt.line, got, tt.calls)
		}
		if e := g.Float(n, graph.AttrEpsilon, 0); tt.op == graph.OpBatchNormInference && e != 0.5 {
			t.Errorf("epsilon %v", e)
		}
		h := mustRead(t, text(t, g))
		if d := diff(g, h); d != "" {
			t.Errorf("%s: written and read: %s", tt.line, d)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		class      target.Class
	}{
		{"", `1:1: expected "HloModule" at the start, found the end of the text`, target.User},
		{"HloModule", "1:10: expected the name of the module", target.User},
		{"HloModule m", "1:12: the module has no ENTRY computation", target.User},
		{"HloModule m\nHloModule n", "2:1: a second HloModule", target.User},
		{"HloModule m\n\nENTRY e { }", "3:9: computation %e has no instructions", target.User},
		{"HloModule m\n\nENTRY e { a = f32[] parameter(0)", "3:9: computation %e is never closed", target.User},
		{"HloModule m\nENTRY e { a = f32[] parameter(0) }\nENTRY f { a = f32[] parameter(0) }", "3:7: a second ENTRY computation; the first is %e", target.User},
		{"HloModule m\nENTRY e { a = f32[] parameter(0) }\ne { a = f32[] parameter(0) }", "3:1: a second computation %e", target.User},
		{"HloModule m, input_output_alias={ {0}: (7, {}) }\nENTRY e { a = f32[] parameter(0) }", "1:35: the alias names parameter 7, there are 1", target.User},
		{"HloModule m, input_output_alias={ {3}: (0, {}) }\nENTRY e { a = f32[] parameter(0) }", "1:35: the alias names element 3 of a result of 0 elements", target.User},
		{"HloModule m, input_output_alias={ {}: (0, {}) }\nENTRY e { a = f32[] parameter(0) ROOT b = s32[] convert(a) }", "1:35: the alias joins an output and a parameter of different types", target.User},
	} {
		check(t, []byte(tt.text), tt.want, tt.class)
	}
	for _, tt := range []struct {
		body, want string
		class      target.Class
	}{
		{"p = f32[ parameter(0)", `6:10: %p: expected a dimension, found "parameter(0)"`, target.User},
		{"p = f32 parameter(0)", "expected a type such as f32[2,3]", target.User},
		{"p = q7[2] parameter(0)", `6:5: %p: unknown element type "q7"`, target.Unsupported},
		{"p = f32[?] parameter(0)", "dimension ? has no bound", target.Unsupported},
		{"p = f32[1000000,1000000,1000000] parameter(0)", "more than 2^46 elements", target.Limit},
		{"p = f32[-3] parameter(0)", "negative dimension", target.Limit},
		{"p = f32[" + strings.Repeat("1,", 64) + "1] parameter(0)", "more than 64 dimensions", target.Limit},
		{"p = f32[99999999999999999999] parameter(0)", "a dimension is beyond 64 bits", target.User},
		{"p = " + strings.Repeat("(", 2000) + "f32[]", "tuples nest deeper than 1024", target.Limit},
		{"p = tuple[] parameter(0)", "unknown element type", target.Unsupported},
		{"p = f32[] parameter(1)", "parameter number 1 in a computation of 1 parameters", target.User},
		{"p = f32[] parameter(-1)", "parameter number -1 is negative", target.User},
		{"p = f32[] parameter(0)\nq = f32[] parameter(0)", "a second parameter number 0", target.User},
		{"p = f32[] parameter(0)\np = f32[] abs(p)", "7:1: %p: a second instruction of this name", target.User},
		{"p = f32[] parameter(0)\nROOT q = f32[] abs(p)\nROOT r = f32[] abs(p)", "a second ROOT in computation %main", target.User},
		{"p = f32[] abs(nobody)", "6:15: %p: operand %nobody is not defined in computation %main", target.User},
		{"p = f32[] abs(x)", "operand %x is not defined", target.User},
		{"p = f32[] abs(p)", "%p: the instruction depends on its own result", target.User},
		{"p = f32[] abs(q)\nq = f32[] negate(p)", "the instruction depends on its own result", target.User},
		{"p = f32[] parameter(0)\nq = f32[] add(p)", "7:11: %q: add takes 2 operands, found 1", target.User},
		{"p = f32[] parameter(0)\nq = f32[] add(p p)", "7:17: %q: expected ',' or ')' after an operand, found \"p)\"", target.User},
		{"p = f32[] parameter(0)\nq = f32[] add(p,)", "expected an operand", target.User},
		{"p = f32[] parameter(0)\nq = f32[] add(f32[] , p)", "expected an operand after its type", target.User},
		{"p = f32[] parameter(0)\nq = pred[] compare(p, p)", "compare needs the attribute direction", target.User},
		{"p = f32[] parameter(0)\nq = pred[] compare(p, p), direction=XX", "expected EQ, NE, LT, LE, GT or GE, found \"XX\"", target.User},
		{"p = f32[] parameter(0)\nq = f32[] abs(p), index=1, index=2", "the attribute is given twice", target.User},
		{"p = f32[] parameter(0)\nq = f32[] abs(p), ", "expected an attribute after ','", target.User},
		{"p = f32[] parameter(0)\nq = f32[] abs(p), metadata={a=\"b", "the string is never closed", target.User},
		{"p = f32[] parameter(0)\nq = f32[] abs(p), metadata={a={}", "5:12: computation %main is never closed", target.User},
		{"p = f32[] parameter(0)\nq = f32[] abs(p), metadata={a={", `7:28: %q: the '{' is never closed`, target.User},
		{"p = f32[] parameter(0)\nq = f32[] reduce(p, p), dimensions={0}", "reduce needs 1 computations, found 0", target.User},
		{"p = f32[] parameter(0)\nq = f32[] call(p), to_apply=nobody", "7:29: %q: computation %nobody is not defined", target.User},
		{"p = f32[] parameter(0)\nq = f32[] call(p), to_apply=main", "computation %main calls itself", target.User},
		{"p = f32[] parameter(0)\nq = (f32[]) tuple(p, p)", "tuple of 2 operands has another type", target.User},
		{"p = f32[] parameter(0)\nq = (s32[]) tuple(p)", "operand 0 of the tuple has another type", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] slice(p), slice={[0-2]}", "expected ':' in a slice", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] pad(p, p), padding=1x2", "expected '_' between low and high padding", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] reduce-window(p, p), window={size=2 stride=1x1}, to_apply=add", "a window of 1 sizes gives 2 numbers elsewhere", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] reduce-window(p, p), window={height=2}, to_apply=add", "expected size, stride, pad", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] convolution(p, p), dim_labels=b01_01io->b01f", "expected labels of the batch", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] convolution(p, p), dim_labels=b11f_01io->b01f", "is given twice", target.User},
		{"p = f32[4] parameter(0)\nq = f32[2] convolution(p, p), dim_labels=b01f_0io->b01f", "expected labels of the batch", target.User},
		{"p = f32[2] constant({1, 2, 3})", "dimension 0 of the literal has 3 entries, its type says 2", target.User},
		{"p = f32[2,2] constant({{1, 2}, {3}})", "dimension 1 of the literal has 1 entries", target.User},
		{"p = f32[2] constant({1, {2}})", "the literal nests deeper than its 1 dimensions", target.User},
		{"p = f32[2] constant(1)", "expected '{' at depth 1 of a literal with 1 dimensions, found \"1)\"", target.User},
		{"p = f32[] constant(abc)", `expected a number of type f32, found "abc)"`, target.User},
		{"p = f32[] constant(--1)", "expected a number of type f32", target.User},
		{"p = s8[] constant(128)", "expected a number of type s8", target.User},
		{"p = u8[] constant(-1)", "expected a number of type u8", target.User},
		{"p = s32[] constant(1.5)", "expected a number of type s32", target.User},
		{"p = pred[] constant(2)", "expected true or false", target.User},
		{"p = c64[] constant(1)", "expected a complex number", target.User},
		{"p = token[] constant(1)", "a constant of type token", target.Unsupported},
		{"p = f32[70000000000] constant({1, 2})", "does not fit", target.Limit},
		{"p = f32[] call(), to_apply=" + strings.Repeat("{ r = f32[] call(), to_apply=", 70) + "add" + strings.Repeat(" }", 70), "printed inside each other deeper than 64", target.Limit},
	} {
		check(t, module(tt.body), tt.want, tt.class)
	}
}

func check(t *testing.T, data []byte, want string, class target.Class) {
	t.Helper()
	var g graph.Graph
	err := Read(data, &g)
	if err == nil {
		t.Errorf("%.200s\nreads without an error, want %q", data, want)
		return
	}
	if !strings.Contains(err.Error(), want) || target.ClassOf(err) != class {
		t.Errorf("%.200s\n%v (%v)\nwant %q (%v)", data, err, target.ClassOf(err), want, class)
	}
}

// TestPrefixes cuts a module that uses all of the syntax at every byte.
func TestPrefixes(t *testing.T) {
	text := goodSink()
	var r Reader
	var g graph.Graph
	// What follows the entry may be cut off at the end of a computation only when nothing refers to it, which sink does.
	for n := range len(text) - 2 {
		if err := r.Read([]byte(text[:n]), &g); err == nil {
			t.Errorf("the first %d bytes read without an error", n)
		} else if !strings.Contains(err.Error(), ":") {
			t.Errorf("the first %d bytes: no position in %q", n, err)
		}
	}
	if err := r.Read([]byte(text), &g); err != nil {
		t.Errorf("whole after its prefixes: %v", err)
	}
}

func TestReuse(t *testing.T) {
	text := []byte(goodSink())
	var r Reader
	var g graph.Graph
	if err := r.Read(text, &g); err != nil {
		t.Fatal(err)
	}
	nodes, types, names := g.Nodes.Len(), g.Types.Len(), g.Names.Len()
	allocs := testing.AllocsPerRun(20, func() {
		if err := r.Read(text, &g); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations to read again, want 0", allocs)
	}
	if g.Nodes.Len() != nodes || g.Types.Len() != types || g.Names.Len() != names {
		t.Error("the second reading differs from the first")
	}
}

func TestIsHLO(t *testing.T) {
	for text, want := range map[string]bool{
		"HloModule m": true, "\xef\xbb\xbf// c\n/* d */ HloModule": true, "": false, "HloModules": false, "{\"a\":1}": false, "\x08\x07": false,
	} {
		if got := IsHLO([]byte(text)); got != want {
			t.Errorf("IsHLO(%q) = %v", text, got)
		}
	}
}
