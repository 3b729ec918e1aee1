package target

// The latency oracle: integers, ns, floor at the end. Formulas and factors are those of public notes; bases that the notes leave
// open are our choice.

// CostClass groups opcodes by formula.
type CostClass uint8

const (
	CostNone        CostClass = iota // control: one issue interval
	CostElementwise                  // one tensor input
	CostTwoInput                     // two tensor inputs
	CostReciprocal                   // iterative divide
	CostMatmul
	CostMemset
	CostDMA
	CostTableLoad
	CostAccRead
)

const (
	costBase   = 100 // static cycles of an engine instruction: operand access 60 + issue 40
	minCycles  = 64
	tableFetch = 1300
)

// Rate is the cost divisor of an engine: its clock in units of 10 MHz.
func (g *Generation) Rate(e Engine) int {
	switch e {
	case EngineDVE:
		return g.RateDVE
	case EnginePE:
		return g.RatePE
	case EnginePool:
		return g.RatePool
	}
	return g.RateAct
}

// EngineCost is the ns of an engine instruction that walks n elements a partition.
func (g *Generation) EngineCost(c CostClass, e Engine, n int64) int64 {
	r := int64(g.Rate(e))
	switch c {
	case CostElementwise:
		return (n + costBase) * 100 / r
	case CostTwoInput:
		if g.Level < 30 {
			n *= 2
		}
		return (n + costBase) * 100 / r
	case CostReciprocal:
		return (8*n + costBase) * 100 / r
	case CostMemset:
		return (100*n + 5000) / int64(g.RateDVE)
	case CostTableLoad:
		return tableFetch
	case CostAccRead:
		return minCycles * 100 / r
	}
	return minCycles * 100 / r
}

// MatmulCost is the ns of a matmul of n moving columns; a four-byte product runs as two passes at half rate.
func (g *Generation) MatmulCost(n int64, fourByte bool) int64 {
	if fourByte {
		n *= 4
	}
	return (n/2 + 200) * 100 / int64(g.RatePE)
}

// DMACost is the ns from trigger to completion of a transfer: parts partitions of n elements of size bytes each.
func (g *Generation) DMACost(parts, n int64, size int) int64 {
	if size == 1 {
		return int64(g.DMAStart) + parts*n/int64(g.DMADiv8)
	}
	return int64(g.DMAStart) + (parts+15)/16*(int64(size)*n)/int64(g.DMADiv)
}
