package zoo

import (
	"math"
	"math/bits"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Counts is the size of a model in closed form.
type Counts struct {
	Weights    int64 // elements of all weights, biases, norm scales and statistics
	Statistics int64 // of these, the running means and variances of batch norms, which are not trained
	MACs       int64 // multiply-adds of dots and convolutions in one run
	Inputs     int64 // parameters of the entry that are no weights
	Outputs    int64
}

// MaxCount bounds what is counted: sums of a few counts then still fit 63 bits.
const MaxCount = 1 << 60

// product and sum saturate at MaxInt64. Operands are not negative.
func product(xs ...int64) int64 {
	p := uint64(1)
	for _, x := range xs {
		hi, lo := bits.Mul64(p, uint64(x))
		if hi != 0 || lo > math.MaxInt64 {
			p = math.MaxInt64
			continue
		}
		p = lo
	}
	return int64(p)
}

func sum(xs ...int64) int64 {
	s := int64(0)
	for _, x := range xs {
		if s += x; s < 0 {
			return math.MaxInt64
		}
	}
	return s
}

func (c Counts) check(model string) error {
	what, n := "weights", c.Weights
	if c.MACs > n {
		what, n = "multiply-adds", c.MACs
	}
	if n > MaxCount {
		return target.Errorf(target.Limit, "%s: more than 2^60 %s; ask for fewer layers, fewer rows or narrower ones", Prefix+model, what)
	}
	return nil
}

// Count is the size of a model, without building it.
func Count(name string) (Counts, error) {
	m, a, err := parse(name)
	if err != nil {
		return Counts{}, err
	}
	c := m.count(a)
	return c, c.check(m.name)
}
