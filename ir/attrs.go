package ir

import (
	"math"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Attr is one op-specific property of an instruction. An absent attribute has the default of its key. What Val holds is the
// form of the key: bits, an ordinal, or a packed span.
type Attr struct {
	Key Key
	Val uint64
}

// Key names an attribute. The table below gives its JSON key, its form and its default.
type Key uint16

// Form says what an attribute's Val holds.
type Form uint8

const (
	FormInt    Form = iota // int64
	FormBool               // 0 or 1
	FormFloat              // float32 bits
	FormEnum               // ordinal into the key's names
	FormName               // arena.Name: a string
	FormNames              // span of NameLists
	FormInts               // span of Ints
	FormPairs              // span of Ints, [step, num] pairs
	FormFloats             // span of Ints, float32 bits each
	FormBlock              // Block, written by name
	FormQueue              // Queue, written by name
	FormRaw                // arena.Name: JSON text that no key of ours explains, kept verbatim
)

const (
	KeyNone Key = iota
	KeyAccumulationFlag
	KeyPsumZeroRegion
	KeyReplicationResolution
	KeyReplicationShift
	KeyReplicationRows
	KeyIsTranspose
	KeyIsFmapOneZero
	KeyIsWeightOneZero
	KeyTileSize
	KeyTilePosition
	KeyPerfMode
	KeyIfmapQuantOffset
	KeyWeightsQuantOffset
	KeyCompressRatio
	KeyScale
	KeyAlpha
	KeyFunc // activation function
	KeyAcc
	KeyOp0
	KeyOp1
	KeyReduceOp
	KeyCanReadUninit
	KeyIsActivate2
	KeyReverse0
	KeyReverse1
	KeyActFuncSet
	KeyOp
	KeyAxis
	KeyApplyTranspose
	KeyNegate
	KeyPoolFunc
	KeyConst0
	KeyConst1
	KeyIsTensorScalarAddr
	KeyIsScalarTensorTensor
	KeyIsTensorTensorScan
	KeyNegateSecondOutput
	KeyTSCMode
	KeyReversePred
	KeyAccumulatorCmd
	KeyBase
	KeyPattern
	KeyChannelMultiplier
	KeyCompareOp
	KeyFillValue
	KeyMemsetMode
	KeyConstant
	KeyIsKeepThreshold
	KeyMask
	KeyCompareOp0
	KeyCompareOp1
	KeyReduceCmd
	KeyNumActiveChannels
	KeyImmValue
	KeyNegated
	KeyTotalElements
	KeyQueue
	KeyDGEType
	KeyDuplicate
	KeyDMAQoS
	KeyCopyMode
	KeyOobIsErr
	KeyTransposeOp
	KeyConstants
	KeyCCEOp
	KeyUseGpsimdDMA
	KeyDMABlocks
	KeyNumTilingDims
	KeyRuntimeSemaphoreWait
	KeyNumIndices
	KeyEntryStep
	KeyNumValidIndices
	KeyIs64Bit
	KeyCompOp
	KeyOnTrue
	KeyOnFalse
	KeyTarget
	KeyHint
	KeyCallee
	KeyTableID
	KeyClearMode
	KeySemaGroup
	KeyIsResetSema
	KeyRuntimeSemaphore
	KeyBarrierID
	KeyCores
	KeyInstance
	KeyNoRearm
	KeyRandomAlgorithm
	KeyRandSteps
	KeyDistribution
	KeyAsmBytes
	KeySyncType
	KeyLatencyEstimate
	KeyTriggerDebugSema
	KeyEngineID
	KeyOptinPasses
	KeyLoopnest
	KeySchedStart
	KeySchedEnd
	KeyExtra // FormRaw: `"key":value` text of an unknown key, one attribute each
	NumKeys
)

// KeyInfo is the row of a key.
type KeyInfo struct {
	JSON    string
	Form    Form
	Default uint64
	Enum    []string
}

var f32 = func(f float32) uint64 { return uint64(math.Float32bits(f)) }

var keys = [NumKeys]KeyInfo{
	KeyAccumulationFlag:      {JSON: "accumulation_flag"},
	KeyPsumZeroRegion:        {JSON: "psum_zero_region"},
	KeyReplicationResolution: {JSON: "replication_resolution"},
	KeyReplicationShift:      {JSON: "replication_shift_amnt"},
	KeyReplicationRows:       {JSON: "replication_num_rows"},
	KeyIsTranspose:           {JSON: "is_transpose", Form: FormBool},
	KeyIsFmapOneZero:         {JSON: "is_fmap_onezero", Form: FormBool},
	KeyIsWeightOneZero:       {JSON: "is_weight_onezero", Form: FormBool},
	KeyTileSize:              {JSON: "tile_size", Form: FormInts},
	KeyTilePosition:          {JSON: "tile_position", Form: FormInts},
	KeyPerfMode:              {JSON: "perf_mode", Form: FormEnum, Enum: perfModes[:]},
	KeyIfmapQuantOffset:      {JSON: "ifmap_quant_offset"},
	KeyWeightsQuantOffset:    {JSON: "weights_quant_offset"},
	KeyCompressRatio:         {JSON: "compress_ratio"},
	KeyScale:                 {JSON: "scale", Form: FormFloat, Default: f32(1)},
	KeyAlpha:                 {JSON: "alpha", Form: FormFloat},
	KeyFunc:                  {JSON: "func", Form: FormEnum, Enum: actNames()},
	KeyAcc:                   {JSON: "acc", Form: FormEnum, Enum: accNames()},
	KeyOp0:                   {JSON: "op0", Form: FormEnum, Enum: aluNames()},
	KeyOp1:                   {JSON: "op1", Form: FormEnum, Enum: aluNames()},
	KeyReduceOp:              {JSON: "reduce_op", Form: FormEnum, Enum: aluNames()},
	KeyCanReadUninit:         {JSON: "can_read_uninit", Form: FormBool},
	KeyIsActivate2:           {JSON: "is_activate2", Form: FormBool},
	KeyReverse0:              {JSON: "reverse0", Form: FormBool},
	KeyReverse1:              {JSON: "reverse1", Form: FormBool},
	KeyActFuncSet:            {JSON: "act_func_set_id"},
	KeyOp:                    {JSON: "op", Form: FormEnum, Enum: aluNames()},
	KeyAxis:                  {JSON: "axis", Form: FormEnum, Enum: axisLists[:]},
	KeyApplyTranspose:        {JSON: "apply_transpose", Form: FormBool},
	KeyNegate:                {JSON: "negate", Form: FormBool},
	KeyPoolFunc:              {JSON: "func", Form: FormEnum, Enum: poolFuncs[:]},
	KeyConst0:                {JSON: "const0", Form: FormFloat},
	KeyConst1:                {JSON: "const1", Form: FormFloat},
	KeyIsTensorScalarAddr:    {JSON: "is_tensor_scalar_addr", Form: FormBool},
	KeyIsScalarTensorTensor:  {JSON: "is_scalar_tensor_tensor", Form: FormBool},
	KeyIsTensorTensorScan:    {JSON: "is_tensor_tensor_scan", Form: FormBool},
	KeyNegateSecondOutput:    {JSON: "negate_second_output", Form: FormBool},
	KeyTSCMode:               {JSON: "mode", Form: FormEnum, Enum: tscModes[:]},
	KeyReversePred:           {JSON: "reverse_pred", Form: FormBool},
	KeyAccumulatorCmd:        {JSON: "accumulator_cmd", Form: FormEnum, Enum: accNames()},
	KeyBase:                  {JSON: "base"},
	KeyPattern:               {JSON: "pattern", Form: FormPairs},
	KeyChannelMultiplier:     {JSON: "channel_multiplier"},
	KeyCompareOp:             {JSON: "compare_op", Form: FormEnum, Enum: aluNames()},
	KeyFillValue:             {JSON: "fill_value", Form: FormFloat},
	KeyMemsetMode:            {JSON: "mode", Form: FormEnum, Enum: memsetModes[:]},
	KeyConstant:              {JSON: "constant"},
	KeyIsKeepThreshold:       {JSON: "is_keep_threshold", Form: FormBool},
	KeyMask:                  {JSON: "mask", Form: FormInts},
	KeyCompareOp0:            {JSON: "compare_op0", Form: FormEnum, Enum: aluNames()},
	KeyCompareOp1:            {JSON: "compare_op1", Form: FormEnum, Enum: aluNames()},
	KeyReduceCmd:             {JSON: "reduce_cmd", Form: FormEnum, Enum: accNames()},
	KeyNumActiveChannels:     {JSON: "num_active_channels"},
	KeyImmValue:              {JSON: "imm_value", Form: FormFloat},
	KeyNegated:               {JSON: "negated", Form: FormBool},
	KeyTotalElements:         {JSON: "total_elements"},
	KeyQueue:                 {JSON: "queue", Form: FormQueue},
	KeyDGEType:               {JSON: "dge_type", Form: FormEnum, Default: uint64(DGEUnassigned), Enum: dgeTypes[:]},
	KeyDuplicate:             {JSON: "duplicate", Form: FormBool},
	KeyDMAQoS:                {JSON: "dma_qos"},
	KeyCopyMode:              {JSON: "mode", Form: FormEnum, Enum: copyModes[:]},
	KeyOobIsErr:              {JSON: "oob_is_err", Form: FormBool},
	KeyTransposeOp:           {JSON: "transpose_op", Form: FormEnum, Enum: transposeOps[:]},
	KeyConstants:             {JSON: "constants", Form: FormFloats},
	KeyCCEOp:                 {JSON: "cce_op", Form: FormEnum, Enum: aluNames()},
	KeyUseGpsimdDMA:          {JSON: "use_gpsimd_dma", Form: FormBool},
	KeyDMABlocks:             {JSON: "dma_blocks", Form: FormNames},
	KeyNumTilingDims:         {JSON: "num_tiling_dimensions"},
	KeyRuntimeSemaphoreWait:  {JSON: "runtime_semaphore_wait_value"},
	KeyNumIndices:            {JSON: "num_indices"},
	KeyEntryStep:             {JSON: "entry_step_elements"},
	KeyNumValidIndices:       {JSON: "num_valid_indices"},
	KeyIs64Bit:               {JSON: "is_64bit", Form: FormBool},
	KeyCompOp:                {JSON: "comp_op", Form: FormEnum, Enum: branchOps[:]},
	KeyOnTrue:                {JSON: "on_true", Form: FormBlock},
	KeyOnFalse:               {JSON: "on_false", Form: FormBlock},
	KeyTarget:                {JSON: "target", Form: FormBlock},
	KeyHint:                  {JSON: "hint"},
	KeyCallee:                {JSON: "target", Form: FormName},
	KeyTableID:               {JSON: "table_id"},
	KeyClearMode:             {JSON: "mode", Form: FormEnum, Enum: clearModes[:]},
	KeySemaGroup:             {JSON: "sema_group", Form: FormInts},
	KeyIsResetSema:           {JSON: "is_reset_sema", Form: FormBool},
	KeyRuntimeSemaphore:      {JSON: "runtime_semaphore"},
	KeyBarrierID:             {JSON: "id"},
	KeyCores:                 {JSON: "cores", Form: FormInts},
	KeyInstance:              {JSON: "instance", Form: FormName},
	KeyNoRearm:               {JSON: "no_rearm", Form: FormBool},
	KeyRandomAlgorithm:       {JSON: "random_algorithm", Form: FormEnum, Enum: rngAlgorithms[:]},
	KeyRandSteps:             {JSON: "rand_num_steps"},
	KeyDistribution:          {JSON: "distribution", Form: FormEnum, Enum: distributions[:]},
	KeyAsmBytes:              {JSON: "asm_bytes", Form: FormInts},
	KeySyncType:              {JSON: "sync_type", Form: FormName},
	KeyLatencyEstimate:       {JSON: "latency_estimate"},
	KeyTriggerDebugSema:      {JSON: "dma_trigger_debug_update_semaphore_id"},
	KeyEngineID:              {JSON: "engine_id"},
	KeyOptinPasses:           {JSON: "optin_passes", Form: FormNames},
	KeyLoopnest:              {JSON: "loopnest", Form: FormNames},
	KeySchedStart:            {JSON: "scheduled_start"},
	KeySchedEnd:              {JSON: "scheduled_end"},
	KeyExtra:                 {JSON: "", Form: FormRaw},
}

func aluNames() (s []string) {
	for o := target.AluBypass; o < target.NumAluOps; o++ {
		s = append(s, o.String())
	}
	return s
}

func accNames() (s []string) {
	for c := target.AccIdle; c < target.NumAccCmds; c++ {
		s = append(s, c.String())
	}
	return s
}

func actNames() (s []string) {
	for f := target.ActIdentity; f < target.NumActFuncs; f++ {
		s = append(s, f.String())
	}
	return s
}

// Info is the row of the key.
func (k Key) Info() *KeyInfo {
	if k < NumKeys {
		return &keys[k]
	}
	return &KeyInfo{}
}

// String is the JSON key.
func (k Key) String() string { return k.Info().JSON }

// KeyFor finds the attribute that a JSON key means on an opcode: a few keys (mode, op, func, target) mean different
// things on different opcodes.
func KeyFor(op Opcode, json []byte) (Key, bool) {
	switch string(json) {
	case "func":
		if op == OpPool {
			return KeyPoolFunc, true
		}
		return KeyFunc, true
	case "mode":
		switch op {
		case OpMemset:
			return KeyMemsetMode, true
		case OpTensorScalarCache:
			return KeyTSCMode, true
		case OpGroupResetSemaphores:
			return KeyClearMode, true
		}
		return KeyCopyMode, true
	case "target":
		if op == OpCall {
			return KeyCallee, true
		}
		return KeyTarget, true
	}
	k, ok := keyByName[string(json)]
	return k, ok
}

var keyByName = func() map[string]Key {
	m := map[string]Key{}
	for k := KeyNone + 1; k < KeyExtra; k++ {
		if _, dup := m[keys[k].JSON]; !dup {
			m[keys[k].JSON] = k
		}
	}
	return m
}()

// Attribute constructors.

// Int makes an integer or ordinal attribute.
func Int(k Key, v int64) Attr { return Attr{k, uint64(v)} }

// Bool makes a flag.
func Bool(k Key, v bool) Attr {
	if v {
		return Attr{k, 1}
	}
	return Attr{k, 0}
}

// Float makes a float attribute.
func Float(k Key, v float32) Attr { return Attr{k, uint64(math.Float32bits(v))} }

// Enum makes an ordinal attribute from any of the machine's or IR's enumerations.
func Enum[T ~uint8](k Key, v T) Attr { return Attr{k, uint64(v)} }

// SpanVal packs a span into an attribute value.
func SpanVal(s arena.Span) uint64 { return uint64(s.Off) | uint64(s.Len)<<32 }

// ValSpan unpacks a span from an attribute value.
func ValSpan(v uint64) arena.Span { return arena.Span{Off: uint32(v), Len: uint32(v >> 32)} }

// Ints makes an integer-list (or pair-list) attribute; vals is copied into the module.
func (m *Module) IntsAttr(k Key, vals ...int64) Attr { return Attr{k, SpanVal(m.Ints.AddSlice(vals))} }

// AttrsOf are the explicit attributes of an instruction.
func (m *Module) AttrsOf(i Inst) []Attr {
	r := m.Insts.At(i)
	return m.Attrs.Of(arena.Span{Off: r.Attrs, Len: uint32(r.NAttr)})
}

// Attr is the value of an attribute or its default.
func (m *Module) Attr(i Inst, k Key) uint64 {
	for _, a := range m.AttrsOf(i) {
		if a.Key == k {
			return a.Val
		}
	}
	return keys[k].Default
}

// SetAttr replaces the value of an attribute in place when the instruction has it; otherwise it re-lays the instruction's
// attributes at the end of the pool.
func (m *Module) SetAttr(i Inst, a Attr) {
	as := m.AttrsOf(i)
	for j := range as {
		if as[j].Key == a.Key {
			as[j].Val = a.Val
			return
		}
	}
	mark := m.Attrs.Mark()
	for j := range as {
		m.Attrs.Push(m.AttrsOf(i)[j])
	}
	m.Attrs.Push(a)
	s := m.Attrs.Since(mark)
	r := m.Insts.At(i)
	r.Attrs, r.NAttr = s.Off, uint16(s.Len)
}

// AttrInt, AttrBool and AttrFloat read an attribute in its form.
func (m *Module) AttrInt(i Inst, k Key) int64     { return int64(m.Attr(i, k)) }
func (m *Module) AttrBool(i Inst, k Key) bool     { return m.Attr(i, k) != 0 }
func (m *Module) AttrFloat(i Inst, k Key) float32 { return math.Float32frombits(uint32(m.Attr(i, k))) }

// AttrInts reads a list attribute, nil when absent. The slice belongs to the module.
func (m *Module) AttrInts(i Inst, k Key) []int64 { return m.Ints.Of(ValSpan(m.Attr(i, k))) }
