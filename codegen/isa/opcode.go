package isa

// Opcode is byte 0 of a bundle.
type Opcode uint8

// Opcode words, in wire order within each group.
const (
	OpLoadWeights   Opcode = 0x01
	OpMatmul        Opcode = 0x02
	OpLoadTags      Opcode = 0x06
	OpMatmulSparse  Opcode = 0x07
	OpLoadWeightsMx Opcode = 0x09
	OpMatmulMx      Opcode = 0x0A

	OpActivate       Opcode = 0x21
	OpLoadActFuncSet Opcode = 0x23
	OpActReadAcc     Opcode = 0x24
	OpActivate2      Opcode = 0x25
	OpExponential    Opcode = 0x30

	OpTensorTensor        Opcode = 0x41
	OpTensorReduce        Opcode = 0x42
	OpTensorScalar        Opcode = 0x43
	OpPool                Opcode = 0x45
	OpTensorCopy          Opcode = 0x46
	OpTensorCopyCast      Opcode = 0x47
	OpReciprocal          Opcode = 0x48
	OpMemset              Opcode = 0x49
	OpMemsetRandom        Opcode = 0x4D
	OpTensorTensorBit     Opcode = 0x51
	OpTensorReduceBit     Opcode = 0x52
	OpTensorScalarBit     Opcode = 0x53
	OpBNStats             Opcode = 0x61
	OpBNAggregate         Opcode = 0x62
	OpBNGradients         Opcode = 0x63
	OpBNBackpropLoad      Opcode = 0x64
	OpBNBackprop          Opcode = 0x65
	OpGatherLoad          Opcode = 0x67
	OpGather              Opcode = 0x68
	OpStreamLoad          Opcode = 0x69
	OpStreamShuffle       Opcode = 0x6A
	OpStreamTranspose     Opcode = 0x6B
	OpMax                 Opcode = 0x6C
	OpMaxIndexLoad        Opcode = 0x6D
	OpMaxIndex            Opcode = 0x6E
	OpMatchReplace        Opcode = 0x6F
	OpCopyPredicatedOld   Opcode = 0x72
	OpTensorScalarAddr    Opcode = 0x74
	OpGetRandState        Opcode = 0x77
	OpRandSetState        Opcode = 0x78
	OpCrossLaneReduce     Opcode = 0x7C
	OpCrossLaneReduceBit  Opcode = 0x7D
	OpIota                Opcode = 0x7E
	OpDropout             Opcode = 0x7F
	OpBNStatsT            Opcode = 0x82
	OpTensorReduceT       Opcode = 0x83
	OpTensorReduceTBit    Opcode = 0x84
	OpCustomOp            Opcode = 0x85
	OpCustomOpArg         Opcode = 0x86
	OpBNBackprop2         Opcode = 0x8E
	OpAffineSelect        Opcode = 0x92
	OpTensorScalarT       Opcode = 0x93
	OpBNGradients2        Opcode = 0x94
	OpTensorScalarReduce  Opcode = 0x9A
	OpDveReadAcc          Opcode = 0x9B
	OpScalarTensorTensor  Opcode = 0x9D
	OpScalarTensorTensorB Opcode = 0x9E
	OpEngineNop           Opcode = 0x9F

	OpEventSemaphore Opcode = 0xA0
	OpHalt           Opcode = 0xA1
	OpDrain          Opcode = 0xA2
	OpNoOp           Opcode = 0xA4
	OpRegisterMove   Opcode = 0xA7
	OpRegisterAlu    Opcode = 0xA8
	OpBranch         Opcode = 0xA9
	OpTensorLoadReg  Opcode = 0xAA
	OpTensorSaveReg  Opcode = 0xAB
	OpGroupReset     Opcode = 0xB0
	OpReadVarAddr    Opcode = 0xB2
	OpRangeSelect    Opcode = 0xBC
	OpSeqBounds      Opcode = 0xBE
	OpSB2SB          Opcode = 0xBF

	OpDMATrigger       Opcode = 0xC1
	OpResetQueue       Opcode = 0xC2
	OpIndirectDMA      Opcode = 0xC4
	OpCollectiveCoarse Opcode = 0xC8
	OpReadVarAddr2     Opcode = 0xC9
	OpIndirectAccum    Opcode = 0xCA
	OpCollectiveSend   Opcode = 0xCB
	OpTensorSave       Opcode = 0xCD
	OpTensorLoad       Opcode = 0xCE
	OpSwitchQueue      Opcode = 0xCF
	OpSetRandState     Opcode = 0xD0
	OpReturn           Opcode = 0xD2
	OpCall             Opcode = 0xD3
	OpDMAStatic        Opcode = 0xD4
	OpBarrier          Opcode = 0xD5
	OpIndirectChecked  Opcode = 0xD6
	OpCoreBarrier      Opcode = 0xD8
	OpCollectiveFine   Opcode = 0xD9
	OpDMADynamic       Opcode = 0xDA
	OpGetProcRank      Opcode = 0xDB
	OpGetGlobalRank    Opcode = 0xDC
	OpBranchHint       Opcode = 0xDD
	OpCompletion       Opcode = 0xDE
	OpExit             Opcode = 0xDF

	OpRand2            Opcode = 0xE2
	OpQuantizeMx       Opcode = 0xE3
	OpTensorTensorScan Opcode = 0xE5
	OpTensorScalarScan Opcode = 0xE6
	OpIndirectCopy     Opcode = 0xE7
	OpCopyPredicated   Opcode = 0xEA
	OpNonzero          Opcode = 0xF2
)

// Generation sets of the opcode and form tables.
const (
	genV2  = 1 << 0
	genV3  = 1 << 1
	genV4  = 1 << 2
	genAll = genV2 | genV3 | genV4
	genV3V = genV3 | genV4
)

type opInfo struct {
	name string
	gens uint8
}

// opTable knows every word of the encoding notes, also those without a laid-out form.
var opTable = [256]opInfo{
	OpLoadWeights: {"load_weights", genAll}, OpMatmul: {"matmul", genAll},
	OpLoadTags: {"load_tags", genV3V}, OpMatmulSparse: {"matmul_sparse", genV3V},
	OpLoadWeightsMx: {"load_weights_mx", genV4}, OpMatmulMx: {"matmul_mx", genV4},

	OpActivate: {"activate", genAll}, OpLoadActFuncSet: {"load_act_func_set", genAll},
	OpActReadAcc: {"act_read_acc", genAll}, OpActivate2: {"activate2", genV4}, OpExponential: {"exponential", genV4},

	OpTensorTensor: {"tensor_tensor", genAll}, OpTensorReduce: {"tensor_reduce", genAll},
	OpTensorScalar: {"tensor_scalar", genAll}, OpPool: {"pool", genAll}, OpTensorCopy: {"tensor_copy", genAll},
	OpTensorCopyCast: {"tensor_copy_cast", genAll}, OpReciprocal: {"reciprocal", genAll}, OpMemset: {"memset", genAll},
	OpMemsetRandom: {"memset_random", genAll}, OpTensorTensorBit: {"tensor_tensor_bit", genAll},
	OpTensorReduceBit: {"tensor_reduce_bit", genAll}, OpTensorScalarBit: {"tensor_scalar_bit", genAll},
	OpBNStats: {"bn_stats", genAll}, OpBNAggregate: {"bn_aggregate", genAll}, OpBNGradients: {"bn_gradients", genAll},
	OpBNBackpropLoad: {"bn_backprop_load", genAll}, OpBNBackprop: {"bn_backprop", genAll},
	OpGatherLoad: {"gather_load", genV2 | genV3}, OpGather: {"gather", genV2 | genV3},
	OpStreamLoad: {"stream_load", genAll}, OpStreamShuffle: {"stream_shuffle", genAll},
	OpStreamTranspose: {"stream_transpose", genAll}, OpMax: {"max8", genAll}, OpMaxIndexLoad: {"max_index_load", genAll},
	OpMaxIndex: {"max_index", genAll}, OpMatchReplace: {"match_replace", genAll},
	OpCopyPredicatedOld: {"copy_predicated_legacy", genAll}, OpTensorScalarAddr: {"tensor_scalar_addr", genAll},
	OpGetRandState: {"get_rand_state", genAll}, OpRandSetState: {"rand_set_state", genV3V},
	OpCrossLaneReduce: {"cross_lane_reduce", genAll}, OpCrossLaneReduceBit: {"cross_lane_reduce_bit", genAll},
	OpIota: {"iota", genAll}, OpDropout: {"dropout", genAll}, OpBNStatsT: {"bn_stats_transposed", genAll},
	OpTensorReduceT: {"tensor_reduce_transposed", genAll}, OpTensorReduceTBit: {"tensor_reduce_transposed_bit", genAll},
	OpCustomOp: {"custom_op", genAll}, OpCustomOpArg: {"custom_op_arg", genAll}, OpBNBackprop2: {"bn_backprop2", genAll},
	OpAffineSelect: {"affine_select", genAll}, OpTensorScalarT: {"tensor_scalar_transposed", genAll},
	OpBNGradients2: {"bn_gradients2", genAll}, OpTensorScalarReduce: {"tensor_scalar_reduce", genAll},
	OpDveReadAcc: {"dve_read_acc", genAll}, OpScalarTensorTensor: {"scalar_tensor_tensor", genAll},
	OpScalarTensorTensorB: {"scalar_tensor_tensor_bit", genAll}, OpEngineNop: {"engine_nop", genAll},

	OpEventSemaphore: {"event_semaphore", genAll}, OpHalt: {"halt", genAll}, OpDrain: {"drain", genAll},
	OpNoOp: {"nop", genAll}, OpRegisterMove: {"reg_move", genAll}, OpRegisterAlu: {"reg_alu", genAll},
	OpBranch: {"branch", genAll}, OpTensorLoadReg: {"tensor_load_reg", genAll}, OpTensorSaveReg: {"tensor_save_reg", genAll},
	OpGroupReset: {"group_reset", genAll}, OpReadVarAddr: {"read_var_addr", genAll}, OpRangeSelect: {"range_select", genV3V},
	OpSeqBounds: {"get_sequence_bounds", genV3V}, OpSB2SB: {"gpsimd_sb2sb", genV3V},

	OpDMATrigger: {"dma_trigger", genAll}, OpResetQueue: {"reset_queue", genAll}, OpIndirectDMA: {"indirect_dma", genAll},
	OpCollectiveCoarse: {"collective_coarse", genAll}, OpReadVarAddr2: {"read_var_addr2", genAll},
	OpIndirectAccum: {"indirect_save_accumulate", genAll}, OpCollectiveSend: {"collective_send_recv", genAll},
	OpTensorSave: {"tensor_save", genAll}, OpTensorLoad: {"tensor_load", genAll}, OpSwitchQueue: {"switch_queue", genAll},
	OpSetRandState: {"set_rand_state", genAll}, OpReturn: {"return", genAll}, OpCall: {"call", genAll},
	OpDMAStatic: {"dma_static", genAll}, OpBarrier: {"all_engine_barrier", genAll},
	OpIndirectChecked: {"indirect_dma_checked", genAll}, OpCoreBarrier: {"core_barrier", genV3V},
	OpCollectiveFine: {"collective_fine", genAll}, OpDMADynamic: {"dma_dynamic", genAll},
	OpGetProcRank: {"get_proc_rank", genAll}, OpGetGlobalRank: {"get_global_rank", genAll},
	OpBranchHint: {"branch_hint", genAll}, OpCompletion: {"tensor_completion", genAll}, OpExit: {"exit", genAll},

	OpRand2: {"rand2", genV4}, OpQuantizeMx: {"quantize_mx", genV4}, OpTensorTensorScan: {"tensor_tensor_scan", genAll},
	OpTensorScalarScan: {"tensor_scalar_scan", genAll}, OpIndirectCopy: {"indirect_copy", genV2 | genV3},
	OpCopyPredicated: {"copy_predicated", genAll}, OpNonzero: {"nonzero_with_count", genV3V},
}

// String is the mnemonic; an unknown word prints as op?.
func (o Opcode) String() string {
	if n := opTable[o].name; n != "" {
		return n
	}
	return "op?"
}

// Known reports an opcode word of the encoding notes, whether or not its form is laid out.
func (o Opcode) Known() bool { return opTable[o].name != "" }

// On reports whether a generation has the opcode.
func (o Opcode) On(level int) bool {
	g, ok := genIndex(level)
	return ok && opTable[o].gens>>g&1 != 0
}

// genIndex maps a generation level to 0, 1, 2 for CoreV2, V3, V4.
func genIndex(level int) (int, bool) {
	switch level {
	case 20:
		return 0, true
	case 30:
		return 1, true
	case 40:
		return 2, true
	}
	return 0, false
}
