package target

// Engine is one sequencer of a core, by the ordinal of the public notes.
type Engine uint8

const (
	EngineUnassigned Engine = iota
	EnginePool              // GpSimd: eight programmable SIMD cores
	EngineAct               // Scalar: pointwise and table functions
	EnginePE                // Tensor: the systolic array
	EngineDMA               // DMA rings: no instruction stream of their own
	EngineDVE               // Vector
	EngineSP                // Sync: control and DMA triggers
	EngineAll               // barrier fan-out
	NumEngines
)

// EngineInfo is the spelling of an engine in each place that writes it.
type EngineInfo struct {
	Name  string // BIR JSON and file stem, "Activation"
	Token string // NEFF definition key, "act"
	Ext   string // name in profiles, "Scalar"
}

var engines = [NumEngines]EngineInfo{
	EngineUnassigned: {"Unassigned", "", "Unassigned"},
	EnginePool:       {"Pool", "pool", "GPSIMD"},
	EngineAct:        {"Activation", "act", "Scalar"},
	EnginePE:         {"PE", "pe", "Tensor"},
	EngineDMA:        {"DMA", "dma", "SyncDMA"},
	EngineDVE:        {"DVE", "dve", "Vector"},
	EngineSP:         {"SP", "sp", "Sync"},
	EngineAll:        {"ALL", "", "All"},
}

// Sequencers are the engines with an instruction stream, in ordinal order.
var Sequencers = [5]Engine{EnginePool, EngineAct, EnginePE, EngineDVE, EngineSP}

var seqIndex = func() (t [NumEngines]int) {
	for e := range t {
		t[e] = -1
	}
	for k, e := range Sequencers {
		t[e] = k
	}
	return t
}()

// SeqIndex is the place of the engine in Sequencers, -1 when it has no instruction stream.
func (e Engine) SeqIndex() int {
	if e < NumEngines {
		return seqIndex[e]
	}
	return -1
}

// Info gives the spellings; an unknown ordinal has empty ones.
func (e Engine) Info() EngineInfo {
	if e < NumEngines {
		return engines[e]
	}
	return EngineInfo{}
}

// String is the JSON name.
func (e Engine) String() string { return e.Info().Name }

// HasStream reports whether the engine runs instructions of its own.
func (e Engine) HasStream() bool {
	return e.SeqIndex() >= 0
}

// ParseEngine accepts the JSON name, the NEFF token and the external name.
func ParseEngine(s string) (Engine, bool) {
	for e := EngineUnassigned; e < NumEngines; e++ {
		in := engines[e]
		if s == in.Name || s == in.Ext || (s != "" && s == in.Token) || (e == EngineUnassigned && s == "unassigned") {
			return e, true
		}
	}
	return 0, false
}
