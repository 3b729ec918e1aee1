package target

import "strings"

// RegisterLanes is the number of 32-bit lanes of an engine's register file, those included that no program may allocate.
const RegisterLanes = 64

// Generation is the geometry, the limits and the rates of one core generation. The figures are those of public notes.
type Generation struct {
	Level int    // 10, 20, 30, 40
	Arch  string // BIR JSON arch, "gen3"
	Name  string // what --target takes, "trn2"
	Core  string // "CoreV3"

	// CodeGen is false for a generation that is analysed only.
	CodeGen bool

	SBPartitions int // 128
	SBBytes      int // raw bytes a partition
	SBReserved   int // bytes a partition of the descriptor strip, at offset 0
	PSUMParts    int
	PSUMBanks    int
	BankBytes    int // bytes a partition in one bank
	PERows       int
	PECols       int
	Lanes        int // Pool and Act channels

	HBMGiB         int // allocation window of a core
	Semaphores     int
	Registers      int // allocatable scalar registers an engine
	HWDGE          bool
	MaxMovingFP32  int // free size of a moving operand, 4-byte elements
	MaxMoving16    int // the same, 2-byte elements
	MaxStationary  int // free size of a stationary operand
	ActTables      int
	DMAEngines     int
	MaxDescriptor  int // bytes of one element descriptor run
	MaxQueues      int
	DescPerPacket  int
	RatePE         int // cost rates: (elements*m + base)*100/rate = ns
	RateAct        int
	RatePool       int
	RateDVE        int
	DMADiv         int // bytes a ns of one DMA engine
	DMADiv8        int // aggregate
	DMAStart       int // ns until the first byte
	WindowPE       int // reorder windows of the scheduler
	WindowPool     int
	WindowAct      int
	WindowDVE      int
	SharedPorts    bool // DVE and Pool exclude each other in SBUF, DVE and Act in PSUM (V2)
	PSUMBF16       bool // matmul may write bf16 to PSUM (V4)
	ExactTranspose bool // PE transposes keep type and bits (V3+)
}

var generations = [...]Generation{
	{
		Level: 10, Arch: "inferentia", Name: "inf1", Core: "CoreV1", CodeGen: false,
		SBPartitions: 128, SBBytes: 98304, SBReserved: 16384, PSUMParts: 64, PSUMBanks: 4, BankBytes: 2048,
		PERows: 128, PECols: 64, Lanes: 64, HBMGiB: 16, Semaphores: 256, Registers: 62,
		MaxMovingFP32: 512, MaxMoving16: 512, MaxStationary: 64, ActTables: 8, DMAEngines: 16, MaxDescriptor: 65536,
		MaxQueues: 176, DescPerPacket: 64, RatePE: 140, RateAct: 140, RatePool: 140, RateDVE: 112, DMADiv: 17, DMADiv8: 272,
		DMAStart: 1300, WindowPE: 64, WindowPool: 8, WindowAct: 8, WindowDVE: 8, SharedPorts: true,
	},
	{
		Level: 20, Arch: "sunda", Name: "trn1", Core: "CoreV2", CodeGen: true,
		SBPartitions: 128, SBBytes: 196608, SBReserved: 16384, PSUMParts: 128, PSUMBanks: 8, BankBytes: 2048,
		PERows: 128, PECols: 128, Lanes: 128, HBMGiB: 16, Semaphores: 256, Registers: 62,
		MaxMovingFP32: 512, MaxMoving16: 512, MaxStationary: 128, ActTables: 8, DMAEngines: 16, MaxDescriptor: 65536,
		MaxQueues: 176, DescPerPacket: 64, RatePE: 140, RateAct: 140, RatePool: 140, RateDVE: 112, DMADiv: 17, DMADiv8: 272,
		DMAStart: 1300, WindowPE: 64, WindowPool: 8, WindowAct: 8, WindowDVE: 8, SharedPorts: true,
	},
	{
		Level: 30, Arch: "gen3", Name: "trn2", Core: "CoreV3", CodeGen: true,
		SBPartitions: 128, SBBytes: 229376, SBReserved: 16392, PSUMParts: 128, PSUMBanks: 8, BankBytes: 2048,
		PERows: 128, PECols: 128, Lanes: 128, HBMGiB: 24, Semaphores: 256, Registers: 62, HWDGE: true,
		MaxMovingFP32: 512, MaxMoving16: 512, MaxStationary: 128, ActTables: 8, DMAEngines: 16, MaxDescriptor: 65536,
		MaxQueues: 176, DescPerPacket: 64, RatePE: 120, RateAct: 120, RatePool: 120, RateDVE: 96, DMADiv: 23, DMADiv8: 368,
		DMAStart: 1300, WindowPE: 64, WindowPool: 8, WindowAct: 8, WindowDVE: 8, ExactTranspose: true,
	},
	{
		Level: 40, Arch: "core_v4", Name: "trn3", Core: "CoreV4", CodeGen: true,
		SBPartitions: 128, SBBytes: 262144, SBReserved: 16392, PSUMParts: 128, PSUMBanks: 8, BankBytes: 2048,
		PERows: 128, PECols: 128, Lanes: 128, HBMGiB: 36, Semaphores: 256, Registers: 62, HWDGE: true,
		MaxMovingFP32: 4096, MaxMoving16: 8192, MaxStationary: 128, ActTables: 8, DMAEngines: 16, MaxDescriptor: 65536,
		MaxQueues: 176, DescPerPacket: 64, RatePE: 120, RateAct: 120, RatePool: 120, RateDVE: 120, DMADiv: 33, DMADiv8: 528,
		DMAStart: 1300, WindowPE: 64, WindowPool: 8, WindowAct: 16, WindowDVE: 16, PSUMBF16: true, ExactTranspose: true,
	},
}

var aliases = map[string]int{
	"tonga": 10, "inf1": 10, "inferentia": 10,
	"sunda": 20, "trainium": 20, "trn1": 20, "inf2": 20,
	"cayman": 30, "gen3": 30, "trn2": 30,
	"core_v4": 40, "mariana": 40, "trn3": 40,
}

// SBUsable is the bytes a partition beyond the reserved strip.
func (g *Generation) SBUsable() int { return g.SBBytes - g.SBReserved }

// HBMBytes is the allocation window of one core.
func (g *Generation) HBMBytes() int64 { return int64(g.HBMGiB) << 30 }

// MaxMoving is the largest free size of a moving matmul operand of the type.
func (g *Generation) MaxMoving(d Dtype) int {
	if d.Size() >= 4 {
		return g.MaxMovingFP32
	}
	return g.MaxMoving16
}

// ByLevel finds a generation by its level number.
func ByLevel(level int) (*Generation, bool) {
	for i := range generations {
		if generations[i].Level == level {
			return &generations[i], true
		}
	}
	return nil, false
}

// Lookup finds a generation by product name, arch name or alias. core_v5 exists only as a name and is refused by it.
func Lookup(name string) (*Generation, error) {
	if level, ok := aliases[strings.ToLower(name)]; ok {
		g, _ := ByLevel(level)
		return g, nil
	}
	if name == "core_v5" || name == "trn4" {
		return nil, NotSupported(name, "target %q has a name but no published model; use trn1, trn2 or trn3", name)
	}
	return nil, Errorf(User, "unknown target %q; known targets: trn1, trn2, trn3 (and inf1 for analysis only)", name)
}

// ForCodeGen is Lookup for a caller that will emit code: a generation without an encoder is refused by name.
func ForCodeGen(name string) (*Generation, error) {
	g, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	if !g.CodeGen {
		return nil, NotSupported(name, "target %s (%s) can be analysed but has no code generator; use trn1, trn2 or trn3", name, g.Core)
	}
	return g, nil
}
