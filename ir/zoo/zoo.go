package zoo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Prefix marks the name of a generated model.
const Prefix = "zoo:"

// Is reports the name of a generated model.
func Is(name string) bool { return strings.HasPrefix(name, Prefix) }

// key is one setting of a model: an integer in [low, high], or one of choices.
type key struct {
	name      string
	doc       string
	def       string
	low, high int64
	choices   []string
	published bool // the default is a published dimension, another for each model of the family
}

// args are the settings of one model, all keys present and checked.
type args map[string]string

func (a args) num(k string) int64 {
	n, err := strconv.ParseInt(a[k], 10, 64)
	if err != nil {
		panic("zoo: key " + k + " was not checked")
	}
	return n
}

// on is a setting of 0 or 1.
func (a args) on(k string) bool { return a[k] == "1" }

var dtypes = map[string]graph.Dtype{"f32": graph.F32, "bf16": graph.BF16, "f16": graph.F16}

func (a args) dtype() graph.Dtype { return dtypes[a["dtype"]] }

// model is one row of the table.
type model struct {
	name   string
	doc    string
	family string // models of one family stand together and have the same keys
	dtype  string // default element type
	keys   []key
	check  func(a args) error // what single keys cannot say; nil: nothing
	build  func(m *maker, a args)
	count  func(a args) Counts
}

// common are the keys that every model has.
func common(dtype string) []key {
	return []key{
		{name: "dtype", doc: "element type of weights and activations", def: dtype, choices: []string{"f32", "bf16", "f16"}, published: true},
		{name: "weights", doc: "constants generated from the seed, or parameters (all but norm scales and statistics)", def: "const", choices: []string{"const", "param"}},
		{name: "seed", doc: "what the weights are generated from", def: "1", low: 1, high: 1 << 40},
	}
}

func (m *model) allKeys() []key { return slices.Concat(m.keys, common(m.dtype)) }

// flag is a key of 0 or 1, off by default.
func flag(name, doc string) key {
	return key{name: name, doc: doc, def: "0", choices: []string{"0", "1"}}
}

// dim is a key whose default is a published dimension.
func dim(name, doc string, def, low, high int64) key {
	return key{name: name, doc: doc, def: strconv.FormatInt(def, 10), low: low, high: high, published: true}
}

// models is the zoo.
var models = slices.Concat([]model{mlp}, gpt2Models(), llamaModels(), resnetModels())

// parse reads "zoo:NAME?key=value&…" into the model and its settings, defaults filled in.
func parse(name string) (*model, args, error) {
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return nil, nil, target.Errorf(target.User, "%q is no generated model: write %sNAME?key=value&key=value", name, Prefix)
	}
	head, query, _ := strings.Cut(rest, "?")
	i := slices.IndexFunc(models, func(m model) bool { return m.name == head })
	if i < 0 {
		return nil, nil, target.Errorf(target.User, "no generated model %q; there are %s", head, strings.Join(Names(), ", "))
	}
	m := &models[i]
	keys := m.allKeys()
	a := args{}
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		k, v, ok := strings.Cut(pair, "=")
		at := slices.IndexFunc(keys, func(x key) bool { return x.name == k })
		if at < 0 || !ok {
			return nil, nil, target.Errorf(target.User, "%s: no setting %q; there are %s", Prefix+m.name, pair, keyList(keys))
		}
		if _, twice := a[k]; twice {
			return nil, nil, target.Errorf(target.User, "%s: %s is given twice", Prefix+m.name, k)
		}
		if err := keys[at].check(v); err != nil {
			return nil, nil, target.Errorf(target.User, "%s: %w", Prefix+m.name, err)
		}
		a[k] = v
	}
	for _, k := range keys {
		if _, ok := a[k.name]; !ok {
			a[k.name] = k.def
		}
	}
	if m.check != nil {
		if err := m.check(a); err != nil {
			return nil, nil, target.Errorf(target.User, "%s: %w", Prefix+m.name, err)
		}
	}
	return m, a, nil
}

func (k key) check(v string) error {
	if k.choices != nil {
		if !slices.Contains(k.choices, v) {
			return fmt.Errorf("%s is %s, not %q", k.name, strings.Join(k.choices, " or "), v)
		}
		return nil
	}
	if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < k.low || n > k.high {
		return fmt.Errorf("%s is a number from %d to %d, not %q", k.name, k.low, k.high, v)
	}
	return nil
}

func keyList(keys []key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return strings.Join(names, ", ")
}

// Names lists the models.
func Names() []string {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.name
	}
	return names
}

// Build resets g and fills it with the model. The graph's name is the name as given. An unknown model, an unknown setting or
// a value out of range is an error of class User; a model whose counts pass MaxCount, or a tensor graph.MaxElements, of class
// Limit.
func Build(g *graph.Graph, name string) error {
	m, a, err := parse(name)
	if err != nil {
		return err
	}
	if err := m.count(a).check(m.name); err != nil {
		return err
	}
	g.Reset()
	g.Name = name
	b := graph.Begin(g, m.name)
	mk := &maker{Builder: b, args: a, seed: uint64(a.num("seed"))}
	m.build(mk, a)
	if len(g.Outputs) == 0 && b.Err() == nil {
		return target.Errorf(target.Bug, "%s has no output", name)
	}
	root := graph.Node(0)
	if len(g.Outputs) == 1 {
		root = g.Outputs[0].Node
	}
	c, err := b.End(root)
	if err != nil {
		return err
	}
	g.Entry = c
	return nil
}

// New is Build into a new graph.
func New(name string) (*graph.Graph, error) {
	g := new(graph.Graph)
	return g, Build(g, name)
}

// maker is a builder that knows how the model wants its weights.
type maker struct {
	*graph.Builder
	args
	seed uint64
	made uint64 // weights so far: each has its own seed
}

// next is the seed of the next weight.
func (m *maker) next() uint64 {
	m.made++
	return m.seed<<20 + m.made
}

// weight is a constant of the standard deviation, or a parameter.
func (m *maker) weight(name string, std float64, dims ...int64) graph.Node {
	seed := m.next()
	if m.args["weights"] == "param" {
		return m.Param(name, m.dtype(), dims...)
	}
	m.SetLabel(name)
	return m.Weight(m.dtype(), dims, seed, float32(std))
}

// around is a vector of a normalisation: a constant always, since random scales and variances are no model.
func (m *maker) around(name string, mean, std float64, n int64) graph.Node {
	seed := m.next()
	m.SetLabel(name)
	return m.WeightAround(m.dtype(), []int64{n}, seed, float32(mean), float32(std))
}

// gain is the ratio of the mean square that a weight really has to that of the deviation std: a parameter is drawn from
// [−1, 1) whatever std is.
func (m *maker) gain(std float64) float64 {
	if m.args["weights"] == "param" {
		return 1.0 / 3 / (std * std)
	}
	return 1
}

// linear is x·W, or x·W + b with bias, for W [in, out] of deviation √(gain/in).
func (m *maker) linear(name string, x graph.Node, out int64, gain float64, bias bool) graph.Node {
	if m.Err() != nil {
		return 0
	}
	dims := m.Dims(x)
	in := dims[len(dims)-1]
	w := m.weight(name+"/weight", math.Sqrt(gain/float64(in)), in, out)
	b := graph.Node(0)
	if bias {
		b = m.weight(name+"/bias", 0.1, out)
	}
	m.SetLabel(name)
	y := m.MatMul(x, w)
	if bias {
		y = m.Add(y, b)
	}
	return y
}
