package ir

// The enumerations that only the IR needs; those of the machine are in ir/target. JSON carries names; ordinals are those of
// the public notes.

// TensorKind is the role of a logical tensor.
type TensorKind uint8

const (
	KindExternalInput TensorKind = iota
	KindExternalInputParameter
	KindInput
	KindExternalOutput
	KindExternalOutputParameter
	KindOutput
	KindConst
	KindInternal
	KindPointer
	KindInternalInterface
	NumTensorKinds
)

var tensorKinds = [NumTensorKinds]string{
	"ExternalInput", "ExternalInputParameter", "Input", "ExternalOutput", "ExternalOutputParameter", "Output", "Const",
	"Internal", "Pointer", "InternalInterface",
}

// IsInput reports kinds whose data comes from outside.
func (k TensorKind) IsInput() bool { return k <= KindInput }

// IsOutput reports kinds whose data leaves the function.
func (k TensorKind) IsOutput() bool { return k >= KindExternalOutput && k <= KindOutput }

// IsInternal reports kinds that the compiler finds a place for: in DRAM they share one variable, where others have their own.
func (k TensorKind) IsInternal() bool { return k == KindInternal || k == KindInternalInterface }

// TensorClass is the buffer family of a logical tensor.
type TensorClass uint8

const (
	ClassTensor TensorClass = iota
	ClassLoopTensor
	ClassSingleValueTensor
	ClassNeuronTensor
	ClassNeuronWeightTensor
	ClassIdentityWeightTensor
	ClassNeuronBlockTensor
	ClassDRAM2DBlockTensor
	ClassNeuron3DBlockTensor
	ClassDRAM3DBlockTensor
	ClassNeuronLocalTensor
	ClassNeuronSBTensor
	ClassNeuronPSUMTensor
	NumTensorClasses
)

var tensorClasses = [NumTensorClasses]string{
	"Tensor", "LoopTensor", "SingleValueTensor", "NeuronTensor", "NeuronWeightTensor", "IdentityWeightTensor",
	"NeuronBlockTensor", "DRAM2DBlockTensor", "Neuron3DBlockTensor", "DRAM3DBlockTensor", "NeuronLocalTensor",
	"NeuronSBTensor", "NeuronPSUMTensor",
}

// AddrSpace says which cores see a DRAM tensor.
type AddrSpace uint8

const (
	AddrLocal AddrSpace = iota
	AddrShared
	AddrDebug
	NumAddrSpaces
)

var addrSpaces = [NumAddrSpaces]string{"Local", "Shared", "Debug"}

// Origin says which front end made an object.
type Origin uint8

const (
	OriginInternal Origin = iota
	OriginPenguin
	OriginNKI
	NumOrigins
)

var origins = [NumOrigins]string{"Internal", "Penguin", "NKI"}

// DepKind is the kind of a dependence edge. A larger kind subsumes a smaller one between the same two instructions.
type DepKind uint8

const (
	DepOrdered DepKind = 1
	DepAnti    DepKind = 2
	DepOutput  DepKind = 3
	DepFlow    DepKind = 4
)

var depKinds = [5]string{"", "Ordered", "Anti", "Output", "Flow"}

// PerfMode is the matmul performance mode.
type PerfMode uint8

var perfModes = [...]string{"None", "DoubleRow", "DoubleColumn", "DoublePixel", "DoubleRowSwInterleave"}

// AxisList is how many innermost free axes a reduction folds.
type AxisList uint8

const (
	AxisX AxisList = iota
	AxisXY
	AxisXYZ
	AxisXYZW
	AxisXYZWC
	AxisC // across partitions
)

var axisLists = [...]string{"X", "XY", "XYZ", "XYZW", "XYZWC", "C"}

// CopyMode is the mode of a DMA copy.
type CopyMode uint8

const (
	CopyPlain CopyMode = iota
	CopyTranspose
	CopyCCE
	CopyReplicate
	CopyDynamic
)

var copyModes = [...]string{"Copy", "Transpose", "CCE", "Replicate", "Dynamic"}

// DGEType says who generates the descriptors of a DMA.
type DGEType uint8

const (
	DGENone DGEType = iota
	DGESoftware
	DGEHardware
	DGEUnassigned
)

var dgeTypes = [...]string{"None", "SWDGE", "HWDGE", "Unassigned"}

// PoolFunc is the function of Pool.
type PoolFunc uint8

const (
	PoolMax PoolFunc = iota
	PoolAvg
)

var poolFuncs = [...]string{"Max", "Avg"}

// MemsetMode says what a Memset writes.
type MemsetMode uint8

const (
	MemsetConst MemsetMode = iota
	MemsetRandom
)

var memsetModes = [...]string{"Const", "Random"}

var (
	tscModes      = [...]string{"Reduce", "Cumulative", "Scan"}
	branchOps     = [...]string{"IS_LTIMM", "IS_LEIMM", "IS_EQIMM", "IS_NEIMM", "IS_GEIMM", "IS_GTIMM", "IS_LTREG", "IS_LEREG", "IS_EQREG", "IS_NEREG", "IS_GEREG", "IS_GTREG", "Unsupported"}
	transposeOps  = [...]string{"None", "WXYZ", "XYZW", "ZYXW", "WYXZ", "XWYZ", "YXWZ", "ZWXY", "WZYX", "XZYW", "YZXW", "ZXYW", "WXZY", "XYWZ"}
	clearModes    = [...]string{"SemaphoreZero", "SemaphoreZeroBitmask"}
	rngAlgorithms = [...]string{"LFSR", "PCG32", "PHILOX"}
	distributions = [...]string{"Raw", "Uniform", "Normal", "Binomial"}
)

func name[T ~uint8](list []string, v T) string {
	if int(v) < len(list) {
		return list[v]
	}
	return "?"
}

func parse[T ~uint8](list []string, s string) (T, bool) {
	for i, n := range list {
		if n == s {
			return T(i), true
		}
	}
	return 0, false
}

func (k TensorKind) String() string  { return name(tensorKinds[:], k) }
func (c TensorClass) String() string { return name(tensorClasses[:], c) }
func (a AddrSpace) String() string   { return name(addrSpaces[:], a) }
func (o Origin) String() string      { return name(origins[:], o) }
func (d DepKind) String() string     { return name(depKinds[:], d) }
func (a AxisList) String() string    { return name(axisLists[:], a) }
func (c CopyMode) String() string    { return name(copyModes[:], c) }
func (d DGEType) String() string     { return name(dgeTypes[:], d) }

// ParseTensorKind finds a kind by its JSON name; the other parsers likewise.
func ParseTensorKind(s string) (TensorKind, bool)   { return parse[TensorKind](tensorKinds[:], s) }
func ParseTensorClass(s string) (TensorClass, bool) { return parse[TensorClass](tensorClasses[:], s) }
func ParseAddrSpace(s string) (AddrSpace, bool)     { return parse[AddrSpace](addrSpaces[:], s) }
func ParseOrigin(s string) (Origin, bool)           { return parse[Origin](origins[:], s) }
func ParseDepKind(s string) (DepKind, bool) {
	d, ok := parse[DepKind](depKinds[:], s)
	return d, ok && d != 0
}
