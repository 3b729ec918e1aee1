package zoo

import (
	"fmt"
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

var dtypes = map[string]graph.Dtype{"f32": graph.F32, "bf16": graph.BF16}

func (a args) dtype() graph.Dtype { return dtypes[a["dtype"]] }

// Counts is the size of a model in closed form.
type Counts struct {
	Weights int64 // elements of all weights and biases
	MACs    int64 // multiply-adds of dots and convolutions in one run
	Inputs  int64 // parameters of the entry that are no weights
	Outputs int64
}

// model is one row of the table.
type model struct {
	name  string
	doc   string
	keys  []key
	build func(m *maker, a args)
	count func(a args) Counts
}

// Keys that every model has.
var common = []key{
	{name: "dtype", doc: "element type of weights and activations", def: "f32", choices: []string{"f32", "bf16"}},
	{name: "weights", doc: "constants generated from the seed, or parameters", def: "const", choices: []string{"const", "param"}},
	{name: "seed", doc: "what the weights are generated from", def: "1", low: 1, high: 1 << 62},
}

// models is the zoo, by name.
var models = []model{mlp}

// Parse reads "zoo:NAME?key=value&…" into the model and its settings, defaults filled in.
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
	keys := slices.Concat(m.keys, common)
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

// Help describes every model and its settings, one line each.
func Help() string {
	var b strings.Builder
	line := func(k key) {
		values := strings.Join(k.choices, "|")
		if k.choices == nil {
			values = fmt.Sprintf("%d…%d", k.low, k.high)
		}
		fmt.Fprintf(&b, "    %-8s %s (%s; default %s)\n", k.name, k.doc, values, k.def)
	}
	for _, m := range models {
		fmt.Fprintf(&b, "%s%s  %s\n", Prefix, m.name, m.doc)
		for _, k := range m.keys {
			line(k)
		}
	}
	b.WriteString("every model:\n")
	for _, k := range common {
		line(k)
	}
	return b.String()
}

// Count is the size of a model, without building it.
func Count(name string) (Counts, error) {
	m, a, err := parse(name)
	if err != nil {
		return Counts{}, err
	}
	return m.count(a), nil
}

// Build resets g and fills it with the model. The graph's name is the name as given.
func Build(g *graph.Graph, name string) error {
	m, a, err := parse(name)
	if err != nil {
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

// weight is a constant of the standard deviation, or a parameter.
func (m *maker) weight(name string, d graph.Dtype, std float64, dims ...int64) graph.Node {
	m.made++
	if m.args["weights"] == "param" {
		return m.Param(name, d, dims...)
	}
	m.SetLabel(name)
	return m.Weight(d, dims, m.seed<<20+m.made, float32(std))
}
