package ir

import "github.com/rosmar-compiler/rosmar/ir/target"

// Opcode is an instruction type, by the ordinal of the public notes: 110 members, dense.
type Opcode uint8

const (
	OpGeneric Opcode = iota
	OpGenericCopy
	OpGenericRelu
	OpAbstractCopy
	OpActivation
	OpReadActivationAccumulator
	OpLoadActFuncSet
	OpMatmultBase
	OpMatmult
	OpMatmultSparse
	OpMemset
	OpGetGlobalRankId
	OpNoOp
	OpEventSemaphore
	OpGroupResetSemaphores
	OpAllEngineBarrier
	OpDrain
	OpHalt
	OpDMA
	OpLoad
	OpPool
	OpReciprocal
	OpSave
	OpTensorCopy
	OpTensorCopyDynamicSrc
	OpTensorCopyDynamicDst
	OpIndirectCopy
	OpTensorReduce
	OpTensorScalar
	OpTensorScalarPtr
	OpTensorScalarCache
	OpTensorTensor
	OpDMACopy
	OpGPSIMDSB2SB
	OpBNStats
	OpBNStatsAggregate
	OpBNGradients
	OpBNBackprop
	OpBNBackprop2
	OpStreamShuffle
	OpStreamTranspose
	OpReadVarAddr
	OpGenericIndirectLoad
	OpIndirectLoad
	OpGenericIndirectSave
	OpIndirectSave
	OpIndirectSaveAccumulate
	OpCollective
	OpCollectiveCompute
	OpCollectiveSend
	OpCollectiveRecv
	OpSelect
	OpCopyPredicated
	OpCustomOp
	OpBIRKernel
	OpNKIKernel
	OpNKIKLIRKernel
	OpDevicePrint
	OpGetRandState
	OpSetRandState
	OpRand
	OpIota
	OpTensorScalarAffineSelect
	OpRangeSelect
	OpGetSequenceBounds
	OpDropout
	OpGetCurProcessingRankID
	OpDMATrigger
	OpDMADescriptor
	OpDMADescriptorCopy
	OpDMADescriptorCCE
	OpDMADescriptorTranspose
	OpDMADescriptorReplicate
	OpRegisterAlu
	OpRegisterMove
	OpTensorLoad
	OpTensorSave
	OpTerminator
	OpCompareAndBranch
	OpUnconditionalBranch
	OpBranchHint
	OpReturn
	OpExit
	OpBreak
	OpCall
	OpSwitchQueueInstance
	OpResetQueueInstance
	OpCoreBarrier
	OpMax
	OpMaxIndex
	OpMatchReplace
	OpMaxIndexAndMatchReplace
	OpGather
	OpInlineASMBytes
	OpTensorCompletion
	OpMatmultMx
	OpQuantizeMx
	OpRand2
	OpRandSetState
	OpRandGetState
	OpRng
	OpActivationReadAccumulator
	OpDveReadAccumulator
	OpExponential
	OpNonzeroWithCount
	OpLoop
	OpDynamicForLoop
	OpDMABlock
	OpDoWhile
	OpTongaReduceMacroSymbolic
	NumOpcodes
)

// OpFlag is a property of an opcode.
type OpFlag uint16

const (
	FlagGeneric     OpFlag = 1 << iota // lowered before code generation
	FlagDMA                            // moves data through the rings
	FlagMatmul                         //
	FlagRegion                         // holds blocks
	FlagTerminator                     // ends a block
	FlagControl                        // no data operands: control, scalars, synchronisation
	FlagBarrier                        // orders every engine
	FlagElementwise                    // element i of the result depends on element i of each tensor input only
	FlagReadsDst                       // the destination is also an input (predicated copies, accumulation)
	FlagContainer                      // kernels, debug: never encoded as such
	FlagAbstract                       // a base that no program may contain
)

// State is a set of engine registers that behave as memory: dependences, schedulers, simulators and the race check treat
// each as a location.
type State uint8

const (
	StateActAcc   State = 1 << iota // %act.acc: the Scalar engine's accumulator
	StateDVEAcc                     // %dve.acc: the Vector engine's accumulator
	StatePEW                        // %pe.w: the stationary operand in the array
	StateActTable                   // %act.table: the resident function table
	StateRNG                        // %rng: random state
	NumStates     = 5
)

type engineMask uint8

const (
	ePool = engineMask(1) << target.EnginePool
	eAct  = engineMask(1) << target.EngineAct
	ePE   = engineMask(1) << target.EnginePE
	eDVE  = engineMask(1) << target.EngineDVE
	eSP   = engineMask(1) << target.EngineSP
	eDMA  = engineMask(1) << target.EngineDMA
	eAll  = engineMask(1) << target.EngineAll
	eSeq  = ePool | eAct | ePE | eDVE | eSP
	eAny  = eSeq | eDMA | eAll
	eDP   = eAct | eDVE | ePool
)

// OpInfo is the row of an opcode. Operand counts are tensor operands including immediates; -1 is no upper bound. Reads and
// Writes are the engine state that every instance touches; StateOf adds what depends on attributes.
type OpInfo struct {
	Name          string
	Engines       engineMask
	MinIn, MaxIn  int8
	MinOut        int8
	MaxOut        int8
	Level         uint8 // first generation level that has it, 0 = all
	Cost          target.CostClass
	Flags         OpFlag
	Reads, Writes State
}

const (
	cNone = target.CostNone
	cElem = target.CostElementwise
	cTwo  = target.CostTwoInput
	cDMA  = target.CostDMA
)

var opcodes = [NumOpcodes]OpInfo{
	OpGeneric:                   {"Generic", eAny, 0, -1, 0, -1, 0, cElem, FlagGeneric, 0, 0},
	OpGenericCopy:               {"GenericCopy", eAny, 1, 1, 1, 1, 0, cElem, FlagGeneric | FlagElementwise, 0, 0},
	OpGenericRelu:               {"GenericRelu", eAny, 1, 1, 1, 1, 0, cElem, FlagGeneric | FlagElementwise, 0, 0},
	OpAbstractCopy:              {"AbstractCopy", eAny, 1, 1, 1, 1, 0, cElem, FlagGeneric | FlagElementwise, 0, 0},
	OpActivation:                {"Activation", eAct, 1, 4, 1, 2, 0, cElem, FlagElementwise, 0, 0},
	OpReadActivationAccumulator: {"ReadActivationAccumulator", eAct, 0, 1, 1, 1, 0, target.CostAccRead, 0, StateActAcc, 0},
	OpLoadActFuncSet:            {"LoadActFuncSet", eAct, 0, 0, 0, 0, 0, target.CostTableLoad, FlagControl, 0, StateActTable},
	OpMatmultBase:               {"MatmultBase", ePE, 2, 5, 1, 1, 0, target.CostMatmul, FlagMatmul | FlagAbstract, 0, StatePEW},
	OpMatmult:                   {"Matmult", ePE, 2, 2, 1, 1, 0, target.CostMatmul, FlagMatmul, 0, StatePEW},
	OpMatmultSparse:             {"MatmultSparse", ePE, 3, 3, 1, 1, 30, target.CostMatmul, FlagMatmul, 0, StatePEW},
	OpMemset:                    {"Memset", eDP, 0, 0, 1, 1, 0, target.CostMemset, 0, 0, 0},
	OpGetGlobalRankId:           {"GetGlobalRankId", eSeq, 0, 0, 1, 1, 0, cNone, FlagControl, 0, 0},
	OpNoOp:                      {"NoOp", eSeq, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpEventSemaphore:            {"EventSemaphore", eSeq, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpGroupResetSemaphores:      {"GroupResetSemaphores", eSeq | eAll, 0, 0, 0, 0, 0, cNone, FlagControl | FlagBarrier, 0, 0},
	OpAllEngineBarrier:          {"AllEngineBarrier", eSeq | eAll, 0, 0, 0, 0, 0, cNone, FlagControl | FlagBarrier, 0, 0},
	OpDrain:                     {"Drain", eSeq | eAll, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpHalt:                      {"Halt", eSeq | eAll, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpDMA:                       {"DMA", eAny, 1, -1, 1, 1, 0, cDMA, FlagDMA | FlagAbstract, 0, 0},
	OpLoad:                      {"Load", eAny, 1, 1, 1, 1, 0, cDMA, FlagDMA, 0, 0},
	OpPool:                      {"Pool", ePool | eDVE, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpReciprocal:                {"Reciprocal", eDVE, 1, 1, 1, 1, 0, target.CostReciprocal, FlagElementwise, 0, 0},
	OpSave:                      {"Save", eAny, 1, 1, 1, 1, 0, cDMA, FlagDMA, 0, 0},
	OpTensorCopy:                {"TensorCopy", eDP, 1, 1, 1, 1, 0, cElem, FlagElementwise, 0, 0},
	OpTensorCopyDynamicSrc:      {"TensorCopyDynamicSrc", ePool | eDVE, 2, 2, 1, 1, 0, cElem, FlagGeneric, 0, 0},
	OpTensorCopyDynamicDst:      {"TensorCopyDynamicDst", ePool | eDVE, 2, 2, 1, 1, 0, cElem, FlagGeneric | FlagReadsDst, 0, 0},
	OpIndirectCopy:              {"IndirectCopy", ePool, 2, 2, 1, 1, 0, cTwo, 0, 0, 0},
	OpTensorReduce:              {"TensorReduce", eDVE | ePool, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpTensorScalar:              {"TensorScalar", eDP, 1, 1, 1, 1, 0, cElem, FlagElementwise, 0, 0},
	OpTensorScalarPtr:           {"TensorScalarPtr", eDVE | ePool, 2, 3, 1, 2, 0, cElem, FlagElementwise, 0, 0},
	OpTensorScalarCache:         {"TensorScalarCache", eDVE, 2, 3, 1, 2, 0, cElem, 0, 0, 0},
	OpTensorTensor:              {"TensorTensor", eDVE | ePool, 2, 2, 1, 1, 0, cTwo, FlagElementwise, 0, 0},
	OpDMACopy:                   {"DMACopy", eAny, 1, 16, 1, 1, 0, cDMA, FlagDMA, 0, 0},
	OpGPSIMDSB2SB:               {"GPSIMDSB2SB", ePool, 1, 1, 1, 1, 30, cElem, 0, 0, 0},
	OpBNStats:                   {"BNStats", eDVE | ePool, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpBNStatsAggregate:          {"BNStatsAggregate", eDVE | ePool, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpBNGradients:               {"BNGradients", ePool, 1, -1, 1, -1, 0, cElem, 0, 0, 0},
	OpBNBackprop:                {"BNBackprop", ePool, 1, -1, 1, -1, 0, cElem, 0, 0, 0},
	OpBNBackprop2:               {"BNBackprop2", ePool, 1, -1, 1, -1, 0, cElem, 0, 0, 0},
	OpStreamShuffle:             {"StreamShuffle", eDVE, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpStreamTranspose:           {"StreamTranspose", eDVE, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpReadVarAddr:               {"ReadVarAddr", eAny, 0, 1, 1, 1, 0, cDMA, FlagDMA, 0, 0},
	OpGenericIndirectLoad:       {"GenericIndirectLoad", eAny, 2, -1, 1, 1, 0, cDMA, FlagGeneric | FlagDMA, 0, 0},
	OpIndirectLoad:              {"IndirectLoad", ePool, 1, 2, 1, 1, 0, cDMA, FlagDMA, 0, 0},
	OpGenericIndirectSave:       {"GenericIndirectSave", eAny, 2, -1, 1, 1, 0, cDMA, FlagGeneric | FlagDMA, 0, 0},
	OpIndirectSave:              {"IndirectSave", ePool, 2, 2, 1, 1, 0, cDMA, FlagDMA | FlagReadsDst, 0, 0},
	OpIndirectSaveAccumulate:    {"IndirectSaveAccumulate", ePool, 2, 3, 1, 1, 0, cDMA, FlagDMA | FlagReadsDst, 0, 0},
	OpCollective:                {"Collective", eAny, 0, -1, 0, -1, 0, cDMA, FlagAbstract, 0, 0},
	OpCollectiveCompute:         {"CollectiveCompute", eAny, 1, -1, 1, -1, 0, cDMA, 0, 0, 0},
	OpCollectiveSend:            {"CollectiveSend", eAny, 1, -1, 0, -1, 0, cDMA, 0, 0, 0},
	OpCollectiveRecv:            {"CollectiveRecv", eAny, 0, -1, 1, -1, 0, cDMA, 0, 0, 0},
	OpSelect:                    {"Select", eDVE, 3, 3, 1, 1, 0, cTwo, FlagGeneric | FlagElementwise, 0, 0},
	OpCopyPredicated:            {"CopyPredicated", eDVE, 2, 2, 1, 2, 0, cTwo, FlagReadsDst | FlagElementwise, 0, 0},
	OpCustomOp:                  {"CustomOp", ePool, 0, -1, 0, -1, 0, cElem, 0, 0, 0},
	OpBIRKernel:                 {"BIRKernel", eAny, 0, -1, 0, -1, 0, cNone, FlagContainer, 0, 0},
	OpNKIKernel:                 {"NKIKernel", eAny, 0, -1, 0, -1, 0, cNone, FlagContainer, 0, 0},
	OpNKIKLIRKernel:             {"NKIKLIRKernel", eAny, 0, -1, 0, -1, 0, cNone, FlagContainer, 0, 0},
	OpDevicePrint:               {"DevicePrint", eAny, 0, -1, 0, -1, 0, cNone, FlagContainer, 0, 0},
	OpGetRandState:              {"GetRandState", eDVE | ePool, 0, 0, 1, 1, 0, cNone, 0, StateRNG, 0},
	OpSetRandState:              {"SetRandState", eDVE | ePool, 1, 1, 0, 0, 0, cNone, 0, 0, StateRNG},
	OpRand:                      {"Rand", eDVE | ePool, 0, 2, 1, 1, 0, cElem, 0, StateRNG, StateRNG},
	OpIota:                      {"Iota", ePool | eDVE, 0, 0, 1, 1, 0, cElem, 0, 0, 0},
	OpTensorScalarAffineSelect:  {"TensorScalarAffineSelect", ePool | eDVE, 1, 1, 1, 1, 0, cElem, FlagElementwise, 0, 0},
	OpRangeSelect:               {"RangeSelect", eDVE, 3, 3, 1, 2, 30, cElem, FlagElementwise, 0, 0},
	OpGetSequenceBounds:         {"GetSequenceBounds", ePool, 1, 1, 1, 1, 30, cElem, 0, 0, 0},
	OpDropout:                   {"Dropout", eDVE, 2, 2, 1, 1, 0, cElem, 0, StateRNG, StateRNG},
	OpGetCurProcessingRankID:    {"GetCurProcessingRankID", eSeq, 0, 0, 1, 1, 0, cNone, FlagControl, 0, 0},
	OpDMATrigger:                {"DMATrigger", eAny, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpDMADescriptor:             {"DMADescriptor", eAny, 1, -1, 1, 1, 0, cNone, FlagContainer, 0, 0},
	OpDMADescriptorCopy:         {"DMADescriptorCopy", eAny, 1, -1, 1, 1, 0, cNone, FlagContainer, 0, 0},
	OpDMADescriptorCCE:          {"DMADescriptorCCE", eAny, 1, -1, 1, 1, 0, cNone, FlagContainer, 0, 0},
	OpDMADescriptorTranspose:    {"DMADescriptorTranspose", eAny, 1, -1, 1, 1, 0, cNone, FlagContainer, 0, 0},
	OpDMADescriptorReplicate:    {"DMADescriptorReplicate", eAny, 1, -1, 1, 1, 0, cNone, FlagContainer, 0, 0},
	OpRegisterAlu:               {"RegisterAlu", eSeq, 1, 2, 1, 1, 0, cNone, FlagControl, 0, 0},
	OpRegisterMove:              {"RegisterMove", eSeq, 1, 1, 1, 1, 0, cNone, FlagControl, 0, 0},
	OpTensorLoad:                {"TensorLoad", eSeq, 1, 1, 1, 2, 0, cNone, FlagControl, 0, 0},
	OpTensorSave:                {"TensorSave", eSeq, 1, 2, 1, 1, 0, cNone, FlagControl, 0, 0},
	OpTerminator:                {"Terminator", eSeq, 0, 0, 0, 0, 0, cNone, FlagControl | FlagTerminator | FlagAbstract, 0, 0},
	OpCompareAndBranch:          {"CompareAndBranch", eAny, 1, 2, 0, 0, 0, cNone, FlagControl | FlagTerminator, 0, 0},
	OpUnconditionalBranch:       {"UnconditionalBranch", eAny, 0, 0, 0, 0, 0, cNone, FlagControl | FlagTerminator, 0, 0},
	OpBranchHint:                {"BranchHint", eSeq, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpReturn:                    {"Return", eAny, 0, 0, 0, 0, 0, cNone, FlagControl | FlagTerminator, 0, 0},
	OpExit:                      {"Exit", eAny, 0, 0, 0, 0, 0, cNone, FlagControl | FlagTerminator, 0, 0},
	OpBreak:                     {"Break", eAny, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpCall:                      {"Call", eAny, 0, -1, 0, -1, 0, cNone, FlagControl | FlagBarrier, 0, 0},
	OpSwitchQueueInstance:       {"SwitchQueueInstance", eSeq, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpResetQueueInstance:        {"ResetQueueInstance", eSeq, 0, 0, 0, 0, 0, cNone, FlagControl, 0, 0},
	OpCoreBarrier:               {"CoreBarrier", eSeq | eAll, 0, 0, 0, 0, 30, cNone, FlagControl | FlagBarrier, 0, 0},
	OpMax:                       {"Max", eDVE, 1, 1, 1, 1, 0, cElem, 0, 0, 0},
	OpMaxIndex:                  {"MaxIndex", eDVE, 2, 2, 1, 1, 0, cElem, 0, 0, 0},
	OpMatchReplace:              {"MatchReplace", eDVE, 2, 2, 1, 1, 0, cElem, 0, 0, 0},
	OpMaxIndexAndMatchReplace:   {"MaxIndexAndMatchReplace", eDVE, 2, 2, 2, 2, 30, cElem, 0, 0, 0},
	OpGather:                    {"Gather", ePool, 2, 2, 1, 1, 0, cTwo, 0, 0, 0},
	OpInlineASMBytes:            {"InlineASMBytes", eSeq, 0, -1, 0, -1, 0, cNone, 0, 0, 0},
	OpTensorCompletion:          {"TensorCompletion", eSeq, 0, 1, 0, 1, 0, cNone, FlagControl, 0, 0},
	OpMatmultMx:                 {"MatmultMx", ePE, 4, 4, 1, 1, 40, target.CostMatmul, FlagMatmul, 0, StatePEW},
	OpQuantizeMx:                {"QuantizeMx", eDVE, 1, 1, 2, 2, 40, cElem, 0, 0, 0},
	OpRand2:                     {"Rand2", eDVE, 0, 2, 1, 1, 40, cElem, 0, StateRNG, StateRNG},
	OpRandSetState:              {"RandSetState", eDVE | ePool, 1, 1, 0, 0, 30, cNone, 0, 0, StateRNG},
	OpRandGetState:              {"RandGetState", eDVE | ePool, 0, 0, 1, 1, 30, cNone, 0, StateRNG, 0},
	OpRng:                       {"Rng", eDVE | ePool, 0, 0, 1, 1, 0, cElem, 0, StateRNG, StateRNG},
	OpActivationReadAccumulator: {"ActivationReadAccumulator", eAct, 0, 1, 1, 1, 0, target.CostAccRead, 0, StateActAcc, 0},
	OpDveReadAccumulator:        {"DveReadAccumulator", eDVE, 0, 0, 1, 1, 0, target.CostAccRead, 0, StateDVEAcc, 0},
	OpExponential:               {"Exponential", eDVE, 2, 2, 1, 2, 40, cElem, 0, 0, 0},
	OpNonzeroWithCount:          {"NonzeroWithCount", eDVE | ePool, 1, 1, 1, 1, 30, cElem, 0, 0, 0},
	OpLoop:                      {"Loop", eAny, 0, 0, 0, 0, 0, cNone, FlagRegion, 0, 0},
	OpDynamicForLoop:            {"DynamicForLoop", eAny, 0, -1, 0, 0, 0, cNone, FlagRegion, 0, 0},
	OpDMABlock:                  {"DMABlock", eAny, 0, 0, 0, 0, 0, cNone, FlagRegion, 0, 0},
	OpDoWhile:                   {"DoWhile", eAny, 0, -1, 0, 0, 0, cNone, FlagRegion, 0, 0},
	OpTongaReduceMacroSymbolic:  {"TongaReduceMacroSymbolic", eAny, 1, 1, 1, 1, 0, cElem, FlagGeneric, 0, 0},
}

// Info is the row of the opcode.
func (o Opcode) Info() *OpInfo {
	if o < NumOpcodes {
		return &opcodes[o]
	}
	return &OpInfo{Name: "opcode?"}
}

// String is the JSON name.
func (o Opcode) String() string { return o.Info().Name }

// Is reports whether the opcode has any of the flags.
func (o Opcode) Is(f OpFlag) bool { return o.Info().Flags&f != 0 }

// IsDMA reports whether the opcode moves data through the rings.
func (o Opcode) IsDMA() bool { return o.Is(FlagDMA) }

// RunsOn reports whether the engine may issue the opcode. EngineUnassigned is always allowed: a pass will choose.
func (o Opcode) RunsOn(e target.Engine) bool {
	return e == target.EngineUnassigned || o.Info().Engines>>e&1 != 0
}

var opcodeByName = func() map[string]Opcode {
	m := make(map[string]Opcode, NumOpcodes)
	for o := OpGeneric; o < NumOpcodes; o++ {
		m[opcodes[o].Name] = o
	}
	return m
}()

// ParseOpcode finds an opcode by its JSON name, without allocating.
func ParseOpcode(name []byte) (Opcode, bool) {
	o, ok := opcodeByName[string(name)]
	return o, ok
}
