package neff

// Feature bits: capabilities that a loader must have. Every set bit must be understood.
const (
	FeatCollectiveOffset  = 0x2
	FeatCustomOps         = 0x4
	FeatCoalescedCC       = 0x8
	FeatQueueInstances    = 0x10
	FeatFunctions         = 0x20
	FeatDynamicPWP        = 0x40
	FeatIndirect32bWait   = 0x80
	FeatIndirectBounds    = 0x100
	FeatHigherDimDesc     = 0x200
	FeatVNC               = 0x400
	FeatDVEFast           = 0x800
	FeatDGE               = 0x1000
	FeatPoolRsqrt         = 0x2000
	FeatRemoteSem         = 0x4000
	FeatDGECast           = 0x8000
	FeatVectorDGE         = 0x10000
	FeatEmbeddingStride32 = 0x20000
	FeatNoRearm           = 0x100000
	FeatHardwareDGE       = 0x200000
	FeatPartialSB2SB      = 0x400000
	FeatLevel40           = 0x1000000
	FeatLargeTensor       = 0x2000000
)

var features = [...]struct {
	bit  uint64
	name string
}{
	{FeatCollectiveOffset, "collective_has_offset"},
	{FeatCustomOps, "neff_feature_custom_ops"},
	{FeatCoalescedCC, "neff_coalesced_ccops"},
	{FeatQueueInstances, "neff_queue_set_instances"},
	{FeatFunctions, "neff_has_functions"},
	{FeatDynamicPWP, "neff_feature_dynamic_pwp"},
	{FeatIndirect32bWait, "neff_feature_indirect_memcpy_32b_sem_wait"},
	{FeatIndirectBounds, "neff_feature_indirect_memcpy_bound_check"},
	{FeatHigherDimDesc, "neff_feature_DMA_desc_higher_dim"},
	{FeatVNC, "neff_feature_vnc"},
	{FeatDVEFast, "dve_fast_mode"},
	{FeatDGE, "DGE"},
	{FeatPoolRsqrt, "POOL_RSQRT"},
	{FeatRemoteSem, "neff_feature_remote_sem"},
	{FeatDGECast, "DGE_cast"},
	{FeatVectorDGE, "vector_DGE"},
	{FeatEmbeddingStride32, "embedding_stride32"},
	{FeatNoRearm, "SQI_no_rearm"},
	{FeatHardwareDGE, "hardware_DGE"},
	{FeatPartialSB2SB, "partial_sb2sb_ccop"},
	{FeatLevel40, "core_v4"},
	{FeatLargeTensor, "large_tensor_support"},
}

// FeatureNames lists the set bits in bit order; unknown is what has no name.
func FeatureNames(bits uint64) (names []string, unknown uint64) {
	for _, f := range features {
		if bits&f.bit != 0 {
			names = append(names, f.name)
			bits &^= f.bit
		}
	}
	return names, bits
}

// listedFeatures is the part of the bits that def.json repeats by name.
func listedFeatures(bits uint64) []string {
	names, _ := FeatureNames(bits & (2*FeatVNC - 1 | FeatRemoteSem))
	return names
}
