package onnx

import (
	"errors"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// Inputs lists the inputs that a caller feeds, in order: the graph inputs without an initializer. Those that reading fixes by
// Options.Known are among them.
func Inputs(data []byte) ([]string, error) {
	var m model
	var names arena.Names
	if err := m.parse(data, &names); err != nil {
		return nil, err
	}
	constant := map[arena.Name]bool{}
	for i := m.inits.Off; i < m.inits.End(); i++ {
		constant[names.InternBytes(m.text(m.tensors.At(tensorID(i)).Name))] = true
	}
	var list []string
	for i := m.inputs.Off; i < m.inputs.End(); i++ {
		if n := m.values.At(valueID(i)).Name; !constant[n] {
			list = append(list, names.String(n))
		}
	}
	return list, nil
}

// ReadSpecialised is ReadOptions for a caller who has values for inputs: when reading fails because a shape depends on an input,
// that input is fixed to lookup's value and the model is read again. Only integers and single elements are fixed, so that data
// stays an input. It returns the inputs that were fixed; they are no parameters of g.
func ReadSpecialised(data []byte, opt Options, lookup func(input string) (Tensor, bool), g *graph.Graph) (fixed []string, err error) {
	known := make(map[string]Tensor, len(opt.Known))
	for name, t := range opt.Known {
		known[name] = t
	}
	opt.Known = known
	for {
		err = ReadOptions(data, opt, g)
		var need *NeedsValueError
		if !errors.As(err, &need) {
			return fixed, err
		}
		before := len(known)
		for _, name := range need.Inputs {
			if _, ok := known[name]; ok {
				continue
			}
			t, ok := lookup(name)
			if n, fits := elements(t.Dims); !ok || !fits || !t.Dtype.IsInt() && n != 1 {
				continue
			}
			known[name] = t
			fixed = append(fixed, name)
		}
		if len(known) == before {
			return fixed, err
		}
	}
}
