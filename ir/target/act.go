package target

// ActFunc is a function of the Scalar engine. The ordinals are ours: the order of the published name list.
type ActFunc uint8

const (
	ActIdentity ActFunc = iota
	ActAbs
	ActAbsReciprocalSqrt
	ActArctan
	ActCopy
	ActDerivativeErf
	ActDerivativeGelu
	ActDerivativeSilu
	ActDsqrt
	ActErf
	ActExp
	ActGelu
	ActGeluApprxSigmoid
	ActGeluApprxTanh
	ActIsFinite
	ActLn
	ActLnPrime
	ActLrelu
	ActMemsetZero
	ActMish
	ActPrelu
	ActReciprocal
	ActRelu
	ActRsqrt
	ActSigmoid
	ActSign
	ActSilu
	ActSin
	ActSoftplus
	ActSqrt
	ActSquare
	ActTanh
	ActUnknown
	NumActFuncs
)

// The Scalar engine interpolates from tables, of which NumActTables sets exist and one is resident at a time. Which
// function lives in which set is not published; this grouping is ours. Set 0 needs no table: it is always resident.
var acts = [NumActFuncs]struct {
	name string
	set  uint8
}{
	ActIdentity:          {"Identity", 0},
	ActAbs:               {"Abs", 0},
	ActAbsReciprocalSqrt: {"Abs_reciprocal_sqrt", 2},
	ActArctan:            {"Arctan", 5},
	ActCopy:              {"Copy", 0},
	ActDerivativeErf:     {"Derivative_Erf", 6},
	ActDerivativeGelu:    {"Derivative_Gelu", 6},
	ActDerivativeSilu:    {"Derivative_silu", 6},
	ActDsqrt:             {"Dsqrt", 6},
	ActErf:               {"Erf", 3},
	ActExp:               {"Exp", 1},
	ActGelu:              {"Gelu", 3},
	ActGeluApprxSigmoid:  {"Gelu_apprx_sigmoid", 3},
	ActGeluApprxTanh:     {"Gelu_apprx_tanh", 3},
	ActIsFinite:          {"Is_finite", 0},
	ActLn:                {"Ln", 1},
	ActLnPrime:           {"Ln_prime", 6},
	ActLrelu:             {"Lrelu", 0},
	ActMemsetZero:        {"MemsetZero", 0},
	ActMish:              {"Mish", 4},
	ActPrelu:             {"Prelu", 0},
	ActReciprocal:        {"Reciprocal", 2},
	ActRelu:              {"Relu", 0},
	ActRsqrt:             {"Rsqrt", 2},
	ActSigmoid:           {"Sigmoid", 4},
	ActSign:              {"Sign", 0},
	ActSilu:              {"Silu", 4},
	ActSin:               {"Sin", 5},
	ActSoftplus:          {"Softplus", 1},
	ActSqrt:              {"Sqrt", 2},
	ActSquare:            {"Square", 0},
	ActTanh:              {"Tanh", 4},
	ActUnknown:           {"Unknown", 7},
}

// NumActTables is how many table sets exist.
const NumActTables = 8

// String is the JSON name.
func (f ActFunc) String() string {
	if f < NumActFuncs {
		return acts[f].name
	}
	return "act?"
}

// TableSet is the set that must be resident before the function runs; 0 means none is needed.
func (f ActFunc) TableSet() int {
	if f < NumActFuncs {
		return int(acts[f].set)
	}
	return 0
}

// ParseActFunc finds a function by its JSON name.
func ParseActFunc(s string) (ActFunc, bool) {
	for i := range acts {
		if acts[i].name == s {
			return ActFunc(i), true
		}
	}
	return 0, false
}

// Parametric reports the functions that read the second immediate (alpha).
func (f ActFunc) Parametric() bool { return f == ActLrelu || f == ActPrelu }
